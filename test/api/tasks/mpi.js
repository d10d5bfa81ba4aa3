// @ts-check
// Ranks of MPI: programs in C, and those in JavaScript that the tests of pamir/mpi have for partners.
import { readFileSync } from "node:fs";
import { runProgram } from "pamir/c";
import { init, waitallSync } from "pamir/mpi";
import { exchange } from "./mpi-exchange.js";
import { runScenario } from "./support.js";

await runScenario({
  async c(client, { flags }) {
    const binary = readFileSync(new URL("../../c/built/partner.wasm", import.meta.url));
    const lines = new TextDecoder();
    let text = "";
    const write = (/** @type {number} */ _, /** @type {Uint8Array} */ bytes) => {
      text += lines.decode(bytes, { stream: true });
    };
    const { code, error } = await runProgram(client, binary, { args: ["partner"], env: {}, folders: [], write });
    if (code !== 0) throw error ?? new Error(`the program ended with ${code}`);
    // How many lines each has written: the test knows what they say by what it has received.
    Atomics.add(flags, 1, text.trim().split("\n").length);
    client.close();
  },
  /** Runs short.wasm, and counts the barriers and reductions that go by JavaScript. */
  async short(client, { flags }) {
    const world = client.world.bind(client);
    client.world = async (...given) => {
      const geometry = await world(...given);
      const { barrierSync, allreduceSync } = geometry;
      geometry.barrierSync = (...all) => {
        Atomics.add(flags, 1, 1);
        return barrierSync.apply(geometry, all);
      };
      geometry.allreduceSync = (...all) => {
        Atomics.add(flags, 2, 1);
        return allreduceSync.apply(geometry, all);
      };
      return geometry;
    };
    const binary = readFileSync(new URL("../../c/built/short.wasm", import.meta.url));
    const args = ["short", "60"];
    const { code, error } = await runProgram(client, binary, { args, env: {}, folders: [], write() {} });
    if (code !== 0) throw error ?? new Error(`the program ended with ${code}`);
    client.close();
  },
  async exchange(client) {
    const mpi = await init(client);
    await exchange(mpi.world, true);
    mpi.finalizeSync();
    client.close();
  },
  /** Sends once the test says so, and sleeps until then. */
  async sleeper(client, { flags }) {
    const mpi = await init(client);
    Atomics.wait(flags, 1, 0, 300);
    mpi.world.sendSync(Int32Array.of(7), 0, 3);
    await mpi.finalize();
    client.close();
  },
  /** Sends messages whose payload the receiver fetches, more at once than there is room for. */
  async crowd(client, { count }) {
    const mpi = await init(client);
    const sends = Array.from({ length: count }, (_, at) => mpi.world.issend(Int32Array.of(at), 0, 2));
    mpi.world.sendSync(new Uint8Array(0), 0, 3);
    waitallSync(sends);
    await mpi.finalize();
    client.close();
  },
  /** Ends once it is told to, with a message whose payload is gone with it. */
  async mortal(client) {
    const mpi = await init(client);
    mpi.world.recvSync(new Uint8Array(0), 0, 1);
    mpi.world.isend(new Uint8Array(300_000), 0, 7);
    process.exit();
  },
});

// pamir/mpi on a page: rank 0 is the page, which never blocks, and two workers play ping-pong by calls that block.
import { launch, type TaskExit } from "pamir";
import { init } from "pamir/mpi";
import { expect, it } from "vitest";
import { ROUNDS } from "./tasks/mpi.js";

const entry = new URL("./tasks/mpi.js", import.meta.url);

/** Starts three ranks, this page among them. */
const start = (args: string, onExit: (exit: TaskExit) => void = () => {}) =>
  launch(entry, { tasks: 3, join: true, heapBytes: 32 * 1024 ** 2, args, onError: "ignore", onExit });

it("workers exchange messages, and all ranks add up", async () => {
  const job = await start("");
  const mpi = await init(job.client);
  const sum = new Float64Array(5);
  await mpi.world.allreduce(Float64Array.of(0.5, 0, 0, 0, 0), sum);
  // Rank 1 has both additions of each round, rank 2 all but the last one.
  const counted = 4 * ROUNDS - 1;
  expect([...sum]).toEqual([4.5, counted, counted, counted, counted]);
  expect(() => mpi.world.recvSync(new Uint8Array(1))).toThrow(expect.objectContaining({ code: "PAMIR_WOULD_BLOCK" }));
  await mpi.finalize();
  await job.terminate();
});

it("a rank that aborts has failed", async () => {
  const exits: TaskExit[] = [];
  const job = await start("abort", (exit) => exits.push(exit));
  const mpi = await init(job.client);
  await mpi.world.allreduce(new Float64Array(5), new Float64Array(5));
  await expect(mpi.world.recv(new Uint8Array(1), 1)).rejects.toMatchObject({ code: "PAMIR_SHUTDOWN" });
  expect(exits[0]).toMatchObject({ task: 1, cause: "error", error: expect.stringContaining("abort(3) of rank 1") });
  await job.terminate();
});

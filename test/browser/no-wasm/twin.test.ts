// A Content-Security-Policy that forbids WebAssembly: jobs run on the kernels in TypeScript.
import { info, launch } from "pamir";
import { expect, it } from "vitest";
import { ANSWER, REGION, TWICE } from "../isolated/tasks/peer.js";

const ENTRY = new URL("../isolated/tasks/peer.js", import.meta.url);

it("info() says so, and what would allow it", () => {
  expect(() => new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))).toThrow(/unsafe-eval/);
  expect(info()).toMatchObject({ mode: "shared", kernel: "ts" });
  expect(info().why).toMatch(/Content-Security-Policy forbids WebAssembly: allow it by script-src 'wasm-unsafe-eval'/);
});

it("tasks get the TypeScript kernels; to ask for wasm is an error", async () => {
  const job = await launch(ENTRY, { tasks: 2, join: true, heapBytes: 16 * 1024 ** 2 });
  const { client } = job;
  expect(client.kernel).toBe("ts");
  const context = client.createContext();
  let answer = 0;
  context.dispatch(ANSWER, (message) => {
    answer = message.getInt32(0);
  });
  context.sendImmediate(client.endpoint(1), TWICE, null, new Int32Array([21]));
  while (answer === 0) await context.progress({ timeout: 60_000 });
  expect(answer).toBe(42);
  await job.terminate();
  await expect(launch(ENTRY, { tasks: 1, kernel: "wasm" })).rejects.toMatchObject({ code: "PAMIR_NO_WASM" });
});

it("the engine thread runs them too", async () => {
  const options = { tasks: 2, join: true, heapBytes: 16 * 1024 ** 2, engine: "thread" } as const;
  const job = await launch(ENTRY, options);
  const { client } = job;
  const context = client.createContext();
  let remote = -1;
  context.dispatch(ANSWER, (message) => {
    remote = new Float64Array(message.payload.slice().buffer)[0] as number;
  });
  context.sendImmediate(client.endpoint(1), REGION, null, new Int32Array([2 ** 20]));
  while (remote < 0) await context.progress({ timeout: 60_000 });
  const local = client.createRegion(2 ** 20);
  context.get({ to: client.endpoint(1), local, remote });
  await context.flush({ timeout: 60_000 });
  expect(local.bytes.every((byte) => byte === 7)).toBe(true);
  expect([client.kernel, job.engine]).toEqual(["ts", "thread"]);
  await job.terminate();
});

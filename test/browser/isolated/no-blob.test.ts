// A Content-Security-Policy that forbids workers from blob:, as the engine thread is one: each task is its own engine.
import { type Job, launch, type Result, SUCCESS } from "pamir";
import { beforeAll, expect, it, vi } from "vitest";
import { ANSWER, REGION } from "./tasks/peer.js";

const BYTES = 4 * 1024 ** 2;

beforeAll(() => {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "worker-src 'self'";
  document.head.append(policy);
});

it.each(["wasm", "ts"] as const)(
  "P11: launch() works, what is issued meanwhile is done, a warning says why: %s",
  async (kernel) => {
    const violated = new Promise<string>((resolve) => {
      addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective), { once: true });
    });
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const entry = new URL("./tasks/peer.js", import.meta.url);
    const job: Job = await launch(entry, { tasks: 2, join: true, heapBytes: 2 ** 24, kernel, engine: "thread" });
    try {
      const { client } = job;
      const context = client.createContext();
      // At once: nobody knows yet that no engine thread will be there.
      const [from, into] = [client.createRegion(BYTES), client.createRegion(BYTES)];
      from.bytes.fill(5);
      into.bytes.fill(0);
      const results: Result[] = [];
      const note = (_: unknown, result: Result): void => {
        results.push(result);
      };
      context.put({ to: context.endpoint, local: from, remote: into.handle, onLocal: note, onRemote: note });
      expect([job.engine, results]).toEqual(["thread", []]);
      await context.flush({ timeout: 60_000 });
      expect([job.engine, results]).toEqual(["ended", [SUCCESS, SUCCESS]]);
      expect(into.bytes.every((byte) => byte === 5)).toBe(true);
      expect(await violated).toBe("worker-src");
      expect(warn.mock.calls).toEqual([
        [expect.stringMatching(/^pamir: there is no engine thread: .*worker-src blob:.* Each task is its own engine$/)],
      ]);
      // And the others do it inline too.
      let remote = -1;
      context.dispatch(ANSWER, (message) => {
        remote = new Float64Array(message.payload.slice().buffer)[0] as number;
      });
      context.sendImmediate(client.endpoint(1), REGION, null, new Int32Array([BYTES]));
      while (remote < 0) await context.progress({ timeout: 60_000 });
      context.get({ to: client.endpoint(1), local: into, remote });
      await context.flush({ timeout: 60_000 });
      expect(into.bytes.every((byte) => byte === 7)).toBe(true);
    } finally {
      await job.terminate();
      warn.mockRestore();
    }
  },
);

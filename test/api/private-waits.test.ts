// Where tasks share no memory, whoever waits is woken by its own thread alone: what that must not be taken for.
import { afterEach, describe, expect, it } from "vitest";
import { TASK_BELL_OFFSET, TASK_PARKED_OFFSET } from "../../assembly/layout.js";
import { type Context, SUCCESS } from "../../src/index.js";
import { taskSlot } from "../../src/memory/map.js";
import { type PrivateJob, portsJob } from "../support/ports-job.js";
import { PATIENCE } from "./support.js";

const LIMITS = { tasks: 2, contexts: 2, laneBytes: 8192, heapBytes: 2 ** 21 };
const PING = 1;

describe.each(["wasm", "ts"] as const)("private waits: %s", (kernel) => {
  let job: PrivateJob;
  afterEach(() => {
    for (const { client } of job.tasks) client.close();
  });
  /** Both contexts of task 0. */
  function begin() {
    job = portsJob(LIMITS, [kernel]);
    const [{ client, task, map } = {} as never] = job.tasks;
    return { client, task, map, contexts: [client.createContext(), client.createContext()] as [Context, Context] };
  }

  it("two contexts that wake each other all the time let their thread's event loop have its turns", async () => {
    const { contexts } = begin();
    const [a, b] = contexts;
    let isTimeUp = false;
    setTimeout(() => {
      isTimeUp = true;
    }, 5);
    const end = performance.now() + 10_000;
    for (const [me, other] of [contexts, [b, a] as const]) {
      me.dispatch(PING, () => {
        if (!isTimeUp && performance.now() < end) me.sendImmediate(other.endpoint, PING);
      });
    }
    a.sendImmediate(b.endpoint, PING);
    // Waits that what comes does not end.
    const others = job.tasks[1]?.client.createContext() as Context;
    const waits = contexts.map((context) => context.whenEnded(others.endpoint, { timeout: PATIENCE }));
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(performance.now()).toBeLessThan(end);
    others.close();
    await Promise.all(waits);
  });

  it("a lane that can't be replaced by a larger one rings for nobody", () => {
    const { client, task, map, contexts } = begin();
    const [a, b] = contexts;
    let came = 0;
    b.dispatch(PING, () => void came++);
    a.sendImmediate(b.endpoint, PING);
    b.advance();
    // Much memory, in pieces of which none takes a lane.
    const pages = Array.from({ length: 300 }, () => client.createRegion(4096));
    for (let i = 0; i < pages.length; i += 2) pages[i]?.close();
    const rest = [];
    for (let bytes = 2 ** 20; bytes >= 8192; bytes /= 2) {
      try {
        for (;;) rest.push(client.createRegion(bytes));
      } catch {}
    }
    for (let i = 0; i < 3; i++) for (const context of contexts) context.advance();
    expect(a.send({ to: b.endpoint, dispatch: PING, payload: new Uint8Array(60_000) })).toBe(SUCCESS);
    for (let i = 0; i < 10; i++) a.advance();
    // Now its next packet has no room.
    const slot = taskSlot(map, 0);
    task.kernel.storeWord(slot + TASK_PARKED_OFFSET, 1);
    const before = task.kernel.loadWord(slot + TASK_BELL_OFFSET);
    for (let i = 0; i < 10; i++) a.advance();
    expect(task.kernel.loadWord(slot + TASK_BELL_OFFSET)).toBe(before);
    task.kernel.storeWord(slot + TASK_PARKED_OFFSET, 0);
    for (let i = 0; came < 2 && i < 100; i++) for (const context of contexts) context.advance();
    expect(came).toBe(2);
  });
});

// Timers beyond what a host's own timer takes, 2^31 - 1 ms: hosts call back after 1 ms then, and Node warns each time.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TASK_SLEEPS_OFFSET } from "../../assembly/layout.js";
import { taskSlot } from "../../src/memory/map.js";
import { sleepOn } from "../../src/node/bell.js";
import { Parker } from "../../src/node/park.js";
import { Spins } from "../../src/node/spins.js";
import { Keepalive } from "../../src/support/keepalive.js";
import { after } from "../../src/support/timers.js";
import { type Build, makeRig } from "../support/kernels.js";

const DAY_MS = 86_400_000;
const LIMIT_MS = 2 ** 31 - 1;
const LONG = [LIMIT_MS, LIMIT_MS + 1, 3e9, Number.MAX_SAFE_INTEGER, 1e300, Number.POSITIVE_INFINITY];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("after()", () => {
  it.each([0, 1, LIMIT_MS, LIMIT_MS + 1, 3e9, 1e10])("calls once, after %d ms", (milliseconds) => {
    const call = vi.fn();
    after(milliseconds, call);
    if (milliseconds > 0) vi.advanceTimersByTime(milliseconds - 1);
    expect(call).toHaveBeenCalledTimes(0);
    vi.advanceTimersByTime(Math.min(1, milliseconds));
    expect(call).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(100 * DAY_MS);
    expect(call).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([Number.MAX_SAFE_INTEGER, 1e300])("of %d ms has one timer at a time, and calls nothing in a year", (time) => {
    const call = vi.fn();
    const stop = after(time, call);
    for (let day = 0; day < 365; day++) {
      vi.advanceTimersByTime(DAY_MS);
      expect(vi.getTimerCount()).toBe(1);
    }
    expect(call).toHaveBeenCalledTimes(0);
    stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("of Infinity has no timer", () => {
    const stop = after(Number.POSITIVE_INFINITY, () => expect.unreachable());
    expect(vi.getTimerCount()).toBe(0);
    stop();
  });

  it("is stopped in its first part, and in a later one", () => {
    const call = vi.fn();
    after(3e9, call)();
    const stop = after(3e9, call);
    vi.advanceTimersByTime(LIMIT_MS + 1);
    stop();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(1e10);
    expect(call).toHaveBeenCalledTimes(0);
  });
});

describe.each<Build>(["wasm", "twin"])("%s", (build) => {
  it.each(LONG)("a wait of %d ms sleeps once in a minute, and can be ended", async (timeout) => {
    const { producer, memory, map } = makeRig({ producer: build });
    const clock = { now: () => performance.now(), origin: 0 };
    const witness = { tracer: undefined, patience: Number.POSITIVE_INFINITY };
    const parker = new Parker({
      kernel: producer,
      memory,
      map,
      task: 0,
      cores: 1,
      clock,
      keepalive: new Keepalive(),
      witness,
    });
    const awaited = {
      kind: 0,
      block: map.contextsBase,
      poll: () => false,
      lastLook: () => {
        producer.bellArm(taskSlot(map, 0));
        return false;
      },
      activity: { busy: 0 },
      restless: () => false,
      spins: new Spins(),
      found: false,
    };
    let isStopped = false;
    const wait = parker.waitAsync(awaited, timeout, 0, () => isStopped);
    const sleeps = (): number => memory.words[(taskSlot(map, 0) + TASK_SLEEPS_OFFSET) >>> 2] as number;
    await vi.advanceTimersByTimeAsync(60_000);
    // It gives its thread away before it sleeps: on a busy machine, that takes some turns more.
    for (let turn = 0; sleeps() === 0 && turn < 10_000; turn++) await new Promise(setImmediate);
    expect(sleeps()).toBe(1);
    isStopped = true;
    parker.ring();
    expect(await wait).toBe(false);
    // That of the thread's Keepalive alone.
    expect(vi.getTimerCount()).toBe(1);
  });

  it.each(LONG)("a thread may sleep for %d ms, blocking", (milliseconds) => {
    const { producer, memory, map } = makeRig({ producer: build });
    const slot = taskSlot(map, 0);
    const seen = producer.bellArm(slot);
    producer.ring(slot);
    // The bell has rung since: the sleep is over as it begins.
    sleepOn(producer, memory, slot, seen, milliseconds);
    expect(producer.bellArm(slot)).toBe(seen + 1);
  });
});

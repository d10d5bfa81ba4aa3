// How long a thread spins before it sleeps, counted in looks: by a clock that only stands where the test puts it.
import { describe, expect, it } from "vitest";
import {
  TASK_SLEEPS_OFFSET,
  TASK_SPINS_LOST_OFFSET,
  TASK_SPINS_WON_OFFSET,
  WAIT_TIMED_OUT,
} from "../../assembly/layout.js";
import { taskSlot } from "../../src/memory/map.js";
import { type Awaited, Parker } from "../../src/node/park.js";
import { Spins } from "../../src/node/spins.js";
import { Keepalive } from "../../src/support/keepalive.js";
import { type Build, makeRig } from "../support/kernels.js";

const SPIN_MS = 1;

/**
 * A Parker; what comes comes when `due` says so, and a sleep lasts for its whole timeout.
 * @param gift milliseconds for which another thread has the core that this one gives away; undefined: the job is not crowded
 */
function bench(build: Build, cores = 2, gift?: number) {
  const { producer, memory: given, map } = makeRig({ producer: build });
  let now = 1;
  let gifts = 0;
  let searches = 0;
  const findYield = (): (() => void) => {
    searches++;
    return () => {
      gifts++;
      now += gift as number;
    };
  };
  const memory = gift === undefined ? given : { ...given, findYield };
  let looks = 0;
  let sleeps = 0;
  let due = () => false;
  const kernel = {
    ...Object.fromEntries(Object.keys(producer).map((name) => [name, producer[name as keyof typeof producer]])),
    bellDisarm: (slot: number) => producer.bellDisarm(slot),
    ring: (slot: number) => producer.ring(slot),
    spinEnter: (job: number, task: number, tasks: number) => producer.spinEnter(job, task, tasks),
    spinLeave: (job: number, task: number) => producer.spinLeave(job, task),
    bellWait: (_slot: number, _seen: number, milliseconds: number) => {
      now += milliseconds;
      sleeps++;
      return WAIT_TIMED_OUT;
    },
  } as unknown as typeof producer;
  const clock = { now: () => now, origin: 0 };
  const witness = { tracer: undefined, patience: Number.POSITIVE_INFINITY };
  const parker = new Parker({ kernel, memory, map, task: 0, cores, clock, keepalive: new Keepalive(), witness });
  const activity = { busy: 0 };
  const restless = { is: false };
  const awaited: Awaited = {
    kind: 0,
    block: map.contextsBase,
    poll: (rounds) => {
      looks++;
      if (rounds > 1) now += SPIN_MS / 8;
      return due();
    },
    lastLook: () => {
      producer.bellArm(taskSlot(map, 0));
      return due();
    },
    activity,
    restless: () => restless.is,
    spins: new Spins(),
    found: false,
  };
  return {
    restless,
    /** Looks of one wait of so many milliseconds, for what comes at the look of that number, or never. */
    wait(milliseconds: number, at = Number.POSITIVE_INFINITY) {
      const first = looks;
      const slept = sleeps;
      due = () => looks - first >= at;
      parker.wait(awaited, milliseconds, SPIN_MS);
      return { looks: looks - first, sleeps: sleeps - slept };
    },
    /** Blocking sleeps of one wait that does not block otherwise. @param idle whether the event loop waits for nothing else */
    async nap(milliseconds: number, idle: (naps: number) => boolean, at = Number.POSITIVE_INFINITY) {
      const first = looks;
      const slept = sleeps;
      due = () => looks - first >= at;
      const mayNap = (): boolean => idle(sleeps - slept);
      let isStopped = false;
      const wait = parker.waitAsync({ ...awaited, mayNap }, milliseconds, 0, () => isStopped);
      // Where it falls asleep without blocking, it is stopped.
      const watch = setInterval(() => {
        if (parker.sleepers === 0) return;
        isStopped = true;
        parker.ring();
      }, 1);
      const isOver = await wait;
      clearInterval(watch);
      return { isOver, naps: sleeps - slept };
    },
    activity,
    now: () => now,
    /** Spins won and lost, as the task's slot counts them. */
    spins() {
      const slot = taskSlot(map, 0);
      return [TASK_SPINS_WON_OFFSET, TASK_SPINS_LOST_OFFSET].map((offset) => memory.words[(slot + offset) >>> 2]);
    },
    pause(milliseconds: number) {
      now += milliseconds;
    },
    stayedAwake: () => parker.stayedAwake(),
    /** As wait() for what never comes, without blocking the thread. */
    async waitAsync(milliseconds: number) {
      due = () => false;
      let isStopped = false;
      const wait = parker.waitAsync(awaited, milliseconds, SPIN_MS, () => isStopped);
      if (parker.sleepers > 0) {
        now += milliseconds;
        isStopped = true;
        parker.ring();
      }
      await wait;
    },
    /** How often the core was given away, and how often the thread looked for what does that. */
    gifts: () => [gifts, searches],
  };
}

describe.each<Build>(["wasm", "twin"])("%s", (build) => {
  const ASLEEP = { looks: 2, sleeps: 1 };
  /** One that looks behind the sleep alone, besides its last look before that. */
  const AT_ONCE = { looks: 1, sleeps: 1 };

  it("who begins spins, then sleeps", () => {
    const { looks, sleeps } = bench(build).wait(10);
    expect(sleeps).toBe(1);
    expect(looks).toBeGreaterThan(8);
  });

  it("on one core nothing comes while a thread spins: it sleeps at once", () => {
    const parker = bench(build, 1);
    expect(parker.wait(10)).toEqual(ASLEEP);
    for (let i = 0; i < 3; i++) expect(parker.wait(10)).toEqual(AT_ONCE);
    expect(parker.spins()).toEqual([0, 0]);
  });

  it("counts what its spins come to, and does not spin for a while where they were in vain", () => {
    const parker = bench(build);
    parker.wait(10, 4);
    expect(parker.spins()).toEqual([1, 0]);
    parker.wait(0.1);
    expect(parker.spins()).toEqual([1, 1]);
    // Woken soon, which would make it spin, but for the loss.
    expect(parker.wait(0.1)).toEqual(ASLEEP);
    expect(parker.spins()).toEqual([1, 1]);
    expect(parker.wait(0.1, 2).sleeps).toBe(1);
    parker.pause(0.05);
    expect(parker.wait(10).looks).toBeGreaterThan(8);
    expect(parker.spins()).toEqual([1, 2]);
  });

  describe("learns from few losses, and keeps that for the waits that follow", () => {
    /** Spins that are lost in so many milliseconds of waits that each sleep for 0.1 ms; every other one may not block. */
    async function lostIn(parker: ReturnType<typeof bench>, milliseconds: number, mayNotBlock = false) {
      const [, before = 0] = parker.spins();
      const end = parker.now() + milliseconds;
      for (let i = 0; parker.now() < end; i++) {
        if (mayNotBlock && i % 2 === 0) await parker.waitAsync(0.1);
        else parker.wait(0.1);
      }
      return (parker.spins()[1] ?? 0) - before;
    }

    it.each([false, true])("if every other wait does not block: %s", async (mayNotBlock) => {
      const parker = bench(build);
      // In 100 ms there are 400 waits: of 0.2 ms, 0.4, … without a spin, and then of 25.6 ms.
      expect(await lostIn(parker, 100, mayNotBlock)).toBeLessThanOrEqual(11);
      expect(await lostIn(parker, 1000, mayNotBlock)).toBeLessThanOrEqual(41);
    });

    it("after many won spins, too: the ninth loss in a row stops it", async () => {
      const parker = bench(build);
      for (let i = 0; i < 1000; i++) parker.wait(0.1, 4);
      const looks = Array.from({ length: 10 }, () => parker.wait(0.1).looks);
      expect(looks.map((count) => count > 8)).toEqual([...Array(9).fill(true), false]);
      expect(parker.spins()).toEqual([1000, 9]);
    });

    it("spins again after one spin that was won, however many were lost before", async () => {
      const parker = bench(build);
      await lostIn(parker, 200);
      parker.pause(25.6);
      parker.wait(0.1, 2);
      const [won = 0, lost = 0] = parker.spins();
      for (let i = 0; i < 20; i++) expect(parker.wait(0.1, 4).sleeps).toBe(0);
      expect(parker.spins()).toEqual([won + 20, lost]);
    });
  });

  it("who has slept for long sleeps at once", () => {
    const parker = bench(build);
    parker.wait(10);
    expect(parker.wait(10)).toEqual(AT_ONCE);
  });

  it("who has slept for long looks first if there is more than messages to do", () => {
    const parker = bench(build);
    parker.wait(10);
    parker.activity.busy = 1;
    expect(parker.wait(10)).toEqual(ASLEEP);
    parker.activity.busy = 0;
    expect(parker.wait(10)).toEqual(AT_ONCE);
  });

  it("who awaits what no thread rings for sleeps a millisecond at a time, also if there is nothing else to do", () => {
    const parker = bench(build, 1);
    parker.restless.is = true;
    expect(parker.wait(10).sleeps).toBe(10);
  });

  it("a wait that may nap blocks its thread 10 ms at a time, up to its timeout", async () => {
    const parker = bench(build);
    const start = parker.now();
    expect(await parker.nap(45, () => true)).toEqual({ isOver: false, naps: 5 });
    expect(parker.now() - start).toBe(45);
  });

  it("it naps no more once its event has come, or its event loop waits for something", async () => {
    const parker = bench(build);
    // A look before the first nap, and one behind each.
    expect(await parker.nap(1000, () => true, 4)).toEqual({ isOver: true, naps: 3 });
    expect((await parker.nap(30, () => false)).naps).toBe(0);
    expect((await parker.nap(30, (naps) => naps < 2)).naps).toBe(2);
  });

  it("it does not nap for ever: an idle worker sleeps without waking", async () => {
    const parker = bench(build);
    expect((await parker.nap(400, () => true)).naps).toBe(20);
  });

  describe("with more tasks than cores", () => {
    /** Behind so many sleeps, it has looked for what gives its core away. */
    const SLEEPS = 16;
    const crowded = (gift: number, cores = 2) => {
      const parker = bench(build, cores, gift);
      for (let i = 0; i < SLEEPS - 1; i++) parker.wait(0.1);
      expect(parker.gifts()).toEqual([0, 0]);
      parker.wait(0.1);
      expect(parker.gifts()).toEqual([0, 1]);
      // Spins in vain are forgiven, and the last sleep was short.
      parker.pause(100);
      parker.wait(0.1);
      return parker;
    };

    it("looks for what gives its core away once, and not while most of its sleeps are longer than such a spin", () => {
      const parker = bench(build, 2, 0.01);
      for (let i = 0; i < 100; i++) {
        parker.wait(0.1);
        parker.wait(5);
        parker.wait(5);
      }
      expect(parker.gifts()).toEqual([0, 0]);
      for (let i = 0; i < 3 * SLEEPS; i++) parker.wait(0.1);
      expect(parker.gifts()[1]).toBe(1);
    });

    it("gives its core away between looks, until what it awaits has come", () => {
      for (const cores of [1, 2]) {
        const parker = crowded(0.01, cores);
        const [before = 0] = parker.gifts();
        const { sleeps } = parker.wait(10, 300);
        expect(sleeps).toBe(0);
        const [after = 0, searches] = parker.gifts();
        expect(after - before).toBeGreaterThan(10);
        expect(searches).toBe(1);
      }
    });

    it("sleeps once others have had their turns for long enough", () => {
      const parker = crowded(0.01);
      const [before = 0] = parker.gifts();
      expect(parker.wait(100).sleeps).toBe(1);
      const [after = 0] = parker.gifts();
      expect(after - before).toBeGreaterThan(10);
      expect(after - before).toBeLessThan(SPIN_MS * 100 * 20);
    });

    it("does not spin on one core while it gives nothing away", () => {
      const parker = crowded(5, 1);
      // A gift of 5 ms, and a sleep of 1 ms: a spin would pay again.
      expect(parker.wait(6).sleeps).toBe(1);
      expect(parker.wait(0.1)).toEqual(ASLEEP);
    });

    it("sleeps if another thread computes while it has the core", () => {
      const parker = crowded(5);
      const [before = 0] = parker.gifts();
      expect(parker.wait(100).sleeps).toBe(1);
      expect(parker.gifts()[0]).toBe(before + 1);
      // Its event loop stood still meanwhile: that does not happen again soon.
      const giftsIn = (milliseconds: number): number => {
        const [first = 0] = parker.gifts();
        for (let passed = 0; passed < milliseconds; passed += 1.2) {
          parker.pause(1);
          parker.wait(0.1);
          parker.wait(0.1);
        }
        return (parker.gifts()[0] as number) - first;
      };
      // The pause is twice as long after each slice, up to a second.
      for (let i = 0; i < 12; i++) giftsIn(1100);
      expect(giftsIn(900)).toBeLessThan(3);
    });
  });

  it("what is there at the first look does not make one spin again", () => {
    const parker = bench(build);
    parker.wait(10);
    expect(parker.wait(10, 0)).toEqual({ looks: 1, sleeps: 0 });
    // The last look before a sleep has found something: the next wait looks before that.
    for (let i = 0; i < 3; i++) expect(parker.wait(10, 1)).toEqual({ looks: 1, sleeps: 0 });
    parker.pause(3);
    expect(parker.wait(10)).toEqual(ASLEEP);
    expect(parker.wait(10)).toEqual(AT_ONCE);
  });

  it("who was woken soon spins for what comes next, unless it is long ago", () => {
    const parker = bench(build);
    parker.wait(10);
    parker.wait(0.1, 2);
    expect(parker.wait(10).looks).toBeGreaterThan(8);
    parker.wait(0.1, 2);
    parker.pause(3);
    expect(parker.wait(10)).toEqual(AT_ONCE);
    parker.stayedAwake();
    expect(parker.wait(10).looks).toBeGreaterThan(8);
  });

  it("what comes while one spins makes one spin again", () => {
    const parker = bench(build);
    expect(parker.wait(10, 4)).toEqual({ looks: 4, sleeps: 0 });
    parker.pause(3);
    expect(parker.wait(10).looks).toBeGreaterThan(8);
  });
});

/** A Parker of the one task of a node, whose events the event loop brings. Each look takes 0.01 ms, and a sleep `sleepMs`. */
function benchAlone(cores = 2, receive?: () => void) {
  const { producer, memory, map } = makeRig({ producer: "twin" });
  let now = 1;
  let looks = 0;
  let turns = 0;
  let due = 0;
  const clock = { now: () => now, origin: 0 };
  const witness = { tracer: undefined, patience: Number.POSITIVE_INFINITY };
  const alone = { ...map, locals: 1 };
  const parker = new Parker({
    kernel: producer,
    memory,
    map: alone,
    task: 0,
    cores,
    clock,
    keepalive: new Keepalive(),
    witness,
    whyPrivate: "tests share no memory",
    receive,
  });
  const awaited: Awaited = {
    kind: 0,
    block: map.contextsBase,
    poll: () => {
      looks++;
      now += 0.01;
      return looks >= due;
    },
    lastLook: () => {
      producer.bellArm(taskSlot(map, 0));
      return false;
    },
    activity: { busy: 0 },
    restless: () => false,
    spins: new Spins(),
    found: false,
  };
  const word = (offset: number): number => memory.words[(taskSlot(map, 0) + offset) >>> 2] as number;
  return {
    /** Sleeps, and turns of the event loop, of a wait for what comes at the look of that number, or else by the sleep's end. */
    async wait(at: number, sleepMs = 0.05) {
      const slept = word(TASK_SLEEPS_OFFSET);
      const turned = turns;
      due = looks + at;
      let isOver = false;
      const ring = (): void => {
        if (isOver) return;
        turns++;
        if (word(TASK_SLEEPS_OFFSET) > slept) {
          now += sleepMs;
          due = 0;
          parker.ring();
        } else setImmediate(ring);
      };
      setImmediate(ring);
      await parker.waitAsync(awaited, Number.POSITIVE_INFINITY, SPIN_MS / 20, () => false);
      isOver = true;
      return { sleeps: word(TASK_SLEEPS_OFFSET) - slept, turns: turns - turned };
    },
    /** Waits, in a loop that turns by itself, until `isOver`. Returns the turns. */
    async waitFor(isOver: () => boolean) {
      let turned = 0;
      let goesOn = true;
      const turn = (): void => {
        turned++;
        if (goesOn) setImmediate(turn);
      };
      setImmediate(turn);
      const all = { ...awaited, spins: new Spins(), poll: isOver };
      await parker.waitAsync(all, Number.POSITIVE_INFINITY, SPIN_MS, () => false);
      goesOn = false;
      return turned;
    },
    ring: () => parker.ring(),
    spins: () => [TASK_SPINS_WON_OFFSET, TASK_SPINS_LOST_OFFSET].map(word),
    pause(milliseconds: number) {
      now += milliseconds;
    },
  };
}

describe("the one task of a node, whose event loop brings what comes", () => {
  const NEVER = 1000;

  it("the event loop turns before a sleep: what comes meanwhile needs no sleep", async () => {
    const parker = benchAlone();
    expect((await parker.wait(8)).sleeps).toBe(0);
    expect(parker.spins()).toEqual([1, 0]);
    const { sleeps, turns } = await parker.wait(NEVER);
    expect(sleeps).toBe(1);
    // Four times the length of a spin, by looks of 0.01 ms.
    expect(turns).toBeGreaterThanOrEqual(19);
    expect(parker.spins()).toEqual([1, 1]);
  });

  it("what receive() takes needs no turn, but every 32nd look is one", async () => {
    let received = 0;
    const parker = benchAlone(2, () => void received++);
    expect(await parker.waitFor(() => received === 31)).toBeLessThanOrEqual(2);
    received = 0;
    const turns = await parker.waitFor(() => received === 31 * 5);
    expect(turns).toBeGreaterThanOrEqual(5);
    expect(turns).toBeLessThanOrEqual(7);
  });

  it("a ring ends the wait for a turn: no second turn is needed, and others that wait for it go on", async () => {
    const parker = benchAlone();
    let hasCome = false;
    let immediates = 0;
    const both = Promise.all([parker.waitFor(() => hasCome), parker.waitFor(() => hasCome)]);
    // As a packet does: within the turn, and before those of setImmediate().
    setImmediate(() => immediates++);
    await Promise.resolve();
    hasCome = true;
    parker.ring();
    for (let i = 0; i < 20; i++) await Promise.resolve();
    expect(immediates).toBe(0);
    expect(await both).toEqual([0, 0]);
    // The turn that nothing waits for any more does no harm.
    await new Promise(setImmediate);
    expect(await parker.waitFor(() => immediates === 1)).toBeLessThanOrEqual(1);
  });

  it("turns that were in vain are not repeated for a while", async () => {
    const parker = benchAlone();
    await parker.wait(NEVER);
    const { sleeps, turns } = await parker.wait(NEVER);
    expect(sleeps).toBe(1);
    expect(turns).toBeLessThan(3);
    parker.pause(0.1);
    expect((await parker.wait(8)).sleeps).toBe(0);
    expect(parker.spins()).toEqual([1, 1]);
  });

  it("after a long sleep, and on one core, there are none", async () => {
    const parker = benchAlone();
    await parker.wait(NEVER, 5);
    parker.pause(100);
    expect((await parker.wait(NEVER)).turns).toBeLessThan(3);
    expect(parker.spins()).toEqual([0, 1]);
    const alone = benchAlone(1);
    expect((await alone.wait(NEVER)).turns).toBeLessThan(3);
    expect(alone.spins()).toEqual([0, 0]);
  });
});

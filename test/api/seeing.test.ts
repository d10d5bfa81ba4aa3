// What can be seen of a job while it runs: its dump, diagnostics channels, and debug mode's warnings.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Client, type Context, type Job, type Message, SUCCESS, type TaskDump, TIMEDOUT } from "pamir";
import { afterEach, describe, expect, it, vi } from "vitest";
import { seeingSuite } from "../conformance/seeing.suite.js";
import { ENGINE_VARIANTS, endEngine, PATIENCE, thrownBy, until, VARIANTS, withJob } from "./support.js";

const PAGE = 4096;
const SLICE = 262144;

afterEach(() => {
  vi.restoreAllMocks();
});

seeingSuite("shared memory");

describe.each(VARIANTS)("$name", (variant) => {
  it("the dump says what the heap is used for, by whom, and what is free in one piece", () =>
    // A lane of its own task: another one may have ended by the time that it is opened.
    withJob(variant, { tasks: 1, contexts: 2 }, ({ job, client, context }) => {
      const before = job.dump().heap;
      expect(before.free).toBeLessThanOrEqual(before.bytes);
      const [first, second] = [client.createRegion(3 * PAGE), client.createRegion(PAGE + 1)];
      expect(context.resume([client.endpoint(0, 1)])).toBe(SUCCESS);
      const { free, owners } = job.dump().heap;
      const own = owners.find(({ task }) => task === 0);
      expect(own?.regions).toBe(5 * PAGE);
      expect(own?.lanes).toBeGreaterThan(0);
      expect(free).toBe(before.free - 5 * PAGE - (own?.lanes as number));
      // The hole that the first one leaves is not joined with what is free behind the second.
      first.close();
      context.advance();
      client.createRegion(1).close();
      const { heap } = job.dump();
      expect(heap.largest).toBeLessThan(heap.free);
      expect(heap.largest).toBeGreaterThan(heap.free - 5 * PAGE);
      expect(job.dump().toString()).toMatch(/heap: \d+ of \d+ bytes free, \d+ in one piece\n {2}of task 0: lanes \d+ /);
      second.close();
    }));

  it("the dump says what an injection FIFO has left, and what was refused", () =>
    withJob(variant, { fifos: 1, slots: 8 }, ({ job, client, context }) => {
      const bytes = 4 * SLICE;
      const [from, into] = [client.createRegion(bytes), client.createRegion(bytes)];
      const injections = () => job.dump().tasks[0]?.contexts[0]?.injections;
      expect(injections()).toEqual([]);
      let result = -1;
      const onLocal = (_: unknown, told: number) => {
        result = told;
      };
      context.put({ to: context.endpoint, local: from, remote: into.handle, bytes, onLocal });
      expect(injections()).toEqual([{ fifo: 0, slots: 8, left: 2, pending: 1, refused: 0 }]);
      expect(job.dump().stuck).toContain("injection FIFO 0 of 0.0: 2 descriptors wait for 0.0 to advance");
      expect(job.dump().toString()).toContain("injection FIFO 0 of 8 slots: 2 left, 1 callbacks pending, 0 refused");
      into.close();
      until(context, () => result !== -1);
      expect(result).not.toBe(SUCCESS);
      expect(injections()).toEqual([{ fifo: 0, slots: 8, left: 0, pending: 0, refused: 1 }]);
    }));
});

/** What task 1 is seen to do, once `condition` holds of it; the test's own thread looks on. */
function seenOf(job: Job, condition: (task: TaskDump) => boolean): TaskDump {
  const end = performance.now() + PATIENCE;
  for (;;) {
    const task = job.dump().tasks[1] as TaskDump;
    if (condition(task)) return task;
    if (performance.now() > end) throw new Error(`task 1 is ${JSON.stringify(task)}`);
  }
}

describe.each(ENGINE_VARIANTS)("who moves what is long: $name", (variant) => {
  const hasThread = variant.engine === "thread";
  const own = (job: Job, context: number) => job.dump().tasks[0]?.contexts[context]?.transfers;
  /** Advances these until it is so: an engine thread may need its time. */
  const step = (contexts: readonly Context[], condition: () => boolean) => {
    const end = performance.now() + PATIENCE;
    // Asked until it holds, and not once more: what is seen of a thread may be over by then.
    let holds = condition();
    while (!holds && performance.now() < end) {
      for (const context of contexts) context.advance();
      holds = condition();
    }
    expect(holds).toBe(true);
  };

  it("the dump says who it is, and whether it is asleep", () =>
    withJob(variant, { tasks: 1 }, async ({ job, client, context }) => {
      const text = () => /^engine: .*$/m.exec(String(job.dump()))?.[0];
      if (!hasThread) {
        expect(job.dump().engine).toEqual({ mode: "inline", parked: false });
        expect(text()).toBe("engine: each task, as it advances");
        return;
      }
      step([context], () => text() === "engine: a thread, asleep");
      expect(job.dump().engine.mode).toBe("thread");
      // Nobody tells when it has so much to do that it is seen awake.
      const [local, remote] = [client.createRegion(2 ** 21), client.createRegion(2 ** 21)];
      const put = () => context.put({ to: context.endpoint, local, remote: remote.handle, onLocal: () => {} });
      step([context], () => {
        put();
        return text() === "engine: a thread, awake";
      });
      const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
      endEngine(job);
      for (const end = performance.now() + PATIENCE; job.engine !== "ended" && performance.now() < end; )
        await new Promise((resolve) => setTimeout(resolve, 1));
      expect(job.dump().engine).toEqual({ mode: "ended", parked: false });
      expect(text()).toBe("engine: each task, as it advances, since the engine thread has ended");
      await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce(), { timeout: PATIENCE });
    }));

  it("P9 the dump says what became of a payload that is offered, and moved: bytes, fragments, whom it waits for", () =>
    withJob(variant, { tasks: 1, contexts: 2, heapBytes: 2 ** 24 }, ({ job, client, context: origin }) => {
      const target = client.createContext({ fragment: 1000, depth: 2 });
      const bytes = 2 ** 20;
      const into = client.createRegion(bytes);
      const [sent, received]: [number[], number[]] = [[], []];
      target.dispatch(1, (message) => message.receive(into.bytes, (_, result) => void received.push(result)));
      expect([own(job, 0), own(job, 1)]).toEqual([[], []]);
      // Staged: four fragments of 64 KiB, and then it waits for its origin to advance, with either engine.
      origin.send({
        to: target.endpoint,
        dispatch: 1,
        payload: new Uint8Array(bytes),
        rendezvous: true,
        onLocal: (_, result) => void sent.push(result),
      });
      const offered = { side: "origin", peer: [0, 1], bytes, left: 0 };
      expect([own(job, 0), own(job, 1)]).toEqual([[{ ...offered, fragments: 0, queued: 0 }], []]);
      expect(job.dump().stuck).toEqual([]);
      expect(String(job.dump())).toContain(
        "payload to 0.1: 1048576 bytes offered, 0 fragments moved, 0 descriptors queued",
      );
      target.advance();
      const name = "payload of 1048576 bytes, 0.0 → 0.1:";
      if (!hasThread) {
        // The target has written its chain, and its engine has not begun.
        expect(own(job, 1)).toEqual([{ side: "target", peer: [0, 0], bytes, left: bytes, fragments: 0, queued: 2 }]);
        expect(job.dump().stuck).toEqual([`${name} 2 descriptors wait for 0.1 to advance`]);
        target.advance();
        expect(own(job, 1)).toMatchObject([{ queued: 0 }]);
        expect(job.dump().stuck).toEqual([`${name} 6 descriptors wait for 0.0 to advance`]);
        origin.advance();
        expect(own(job, 0)).toMatchObject([{ fragments: 2 }]);
        expect(own(job, 1)).toMatchObject([{ left: bytes - 2 * 65_536 }]);
        target.advance();
        // Two more had been staged, and two in the places of those that are moved.
        origin.advance();
        target.advance();
      } else {
        step([], () => own(job, 0)?.[0]?.fragments === 4);
        // Counted there first, and then by its target.
        step([], () => own(job, 1)?.[0]?.left === bytes - 4 * 65_536);
        step([], () => job.dump().stuck.some((line) => line.endsWith("wait for 0.0 to advance, which stages it")));
        expect(own(job, 1)).toMatchObject([{ side: "target", left: bytes - 4 * 65_536 }]);
      }
      expect(String(job.dump())).toMatch(
        /payload from 0\.0: \d+ of 1048576 bytes have not come, \d descriptors queued/,
      );
      expect(job.dump().stuck.every((line) => line.startsWith(name))).toBe(true);
      step([origin, target], () => sent.length === 1 && received.length === 1);
      expect([sent, received]).toEqual([[SUCCESS], [SUCCESS]]);
      expect([own(job, 0), own(job, 1), job.dump().stuck]).toEqual([[], [], []]);
      // As an origin's, the rget FIFO that was a target's.
      target.send({ to: origin.endpoint, dispatch: 2, payload: into.bytes, rendezvous: true, onLocal: () => {} });
      expect(own(job, 1)).toEqual([{ ...offered, peer: [0, 0], fragments: 0, queued: 0 }]);
    }));

  it("the dump says whom the descriptors of an injection FIFO wait for", () =>
    withJob(variant, { tasks: 1, fifos: 1 }, ({ job, client, context }) => {
      const bytes = 2 ** 21;
      const [local, remote] = [client.createRegion(bytes), client.createRegion(bytes)];
      let [issued, called] = [0, 0];
      const put = { to: context.endpoint, local, remote: remote.handle, onLocal: () => called++ };
      const look = () => {
        for (let i = 0; i < 30; i++) if (context.put(put) === SUCCESS) issued++;
        return job.dump().stuck;
      };
      let lines = look();
      // An engine thread may be through with all of them before anybody looks.
      for (const end = performance.now() + PATIENCE; hasThread && lines.length === 0 && performance.now() < end; ) {
        step([context], () => called === issued);
        lines = look();
      }
      expect(lines.length).toBe(1);
      expect(lines[0]).toMatch(
        hasThread
          ? /^injection FIFO 0 of 0\.0: \d+ descriptors wait for the engine thread$/
          : /^injection FIFO 0 of 0\.0: \d+ descriptors wait for 0\.0 to advance$/,
      );
      step([context], () => called === issued);
      // An engine thread says what is done before it says how far it is.
      if (hasThread) step([], () => job.dump().stuck.length === 0);
      expect(job.dump().stuck).toEqual([]);
    }));
});

describe.each(VARIANTS)("who waits, for what, since when: $name", (variant) => {
  it.each([
    ["advanceUntil()", "advanceUntil"],
    ["progress()", "progress"],
    ["messages()", "messages"],
    ["whenRoom()", "whenRoom"],
    ["whenEnded()", "whenEnded"],
    ["drain()", "drain"],
    ["call()", "call"],
  ])("%s", (name, how) =>
    withJob(variant, { module: "waits.js", laneBytes: 1024, args: { how } }, async ({ job }) => {
      const isAsleep = ({ parked, contexts }: TaskDump) => parked && contexts[0]?.waits.includes(name) === true;
      const first = seenOf(job, isAsleep);
      const later = seenOf(job, (task) => isAsleep(task) && task.since > first.since + 20);
      expect(later.sleeps).toBeGreaterThan(0);
      expect(String(job.dump())).toMatch(
        new RegExp(`task 1: up, asleep for \\d+\\.\\d s in .*${name.replace("()", "\\(\\)")} of context 0`),
      );
      job.interrupt(1);
      await expect(job.exited).resolves.toEqual([{ task: 1, code: 0, cause: "exit" }]);
      expect(job.dump().tasks[1]).toMatchObject({ parked: false, contexts: [] });
    }),
  );

  it("a task sees what another one holds: messages, bytes that wait, bytes that nobody has asked for, calls", () =>
    withJob(
      variant,
      { module: "waits.js", laneBytes: 1024, args: { how: "holds" } },
      async ({ job, client, context }) => {
        const held = () => client.dump().tasks[1]?.contexts[0];
        seenOf(job, ({ contexts }) => (contexts[0]?.calls ?? 0) === 3 && (contexts[0]?.pending.messages ?? 0) > 0);
        for (let i = 0; i < 5; i++)
          expect(context.sendImmediate(client.endpoint(1), 77, null, new Uint8Array(16))).toBe(0);
        seenOf(job, ({ contexts }) => contexts[0]?.unexpectedBytes === 80);
        const lane = held()?.lanes.find(({ origin }) => origin[0] === 0);
        expect(lane).toMatchObject({ messages: 5, queued: 0, paused: false, pausedFor: 0 });
        expect(held()).toMatchObject({
          state: "open",
          messages: 5,
          pending: { bytes: 8 * (held()?.pending.messages ?? 0) },
        });
        // Nothing was read here so far: the origin waits for room.
        const full = () => client.dump().tasks[0]?.contexts[0]?.lanes.find(({ origin }) => origin[0] === 1);
        seenOf(job, () => full()?.roomWanted === true);
        expect(client.dump().stuck.join()).toMatch(
          /lane 1\.0 → 0\.0: the origin waits for room for \d+\.\d s, \d+ of 1024/,
        );
        expect(String(client.dump())).toMatch(/\d+ messages wait for room, \d+ bytes held\n.*80 bytes of messages/);
        let got = 0;
        context.dispatch(10, () => {
          got++;
        });
        context.dispatch(11, () => new Uint8Array(1));
        until(context, () => got === 100);
        seenOf(job, ({ contexts }) => {
          context.advance();
          return contexts[0]?.calls === 0 && contexts[0].pending.messages === 0 && contexts[0].pending.bytes === 0;
        });
        // Who has sent all takes its wish for room back a moment later.
        let { stuck } = job.dump();
        for (const end = performance.now() + PATIENCE; stuck.length > 0 && performance.now() < end; )
          ({ stuck } = job.dump());
        expect(stuck).toEqual([]);
      },
    ));

  it("says since when a lane is full that took the place of a smaller one meanwhile", () =>
    withJob(variant, { tasks: 1, laneBytes: 1024, context: { pendingBytes: 2 ** 22 } }, ({ job, context }) => {
      const start = performance.now();
      const to = context.endpoint;
      context.dispatch(10, () => {});
      while (context.sendImmediate(to, 10, null, new Uint8Array(100), false) === SUCCESS);
      for (let i = 0; i < 160; i++) context.send({ to, dispatch: 10, payload: new Uint8Array(15_000) });
      const lane = () => job.dump().tasks[0]?.contexts[0]?.lanes[0];
      const isFull = () => lane()?.roomWanted === true && (lane()?.bytes ?? 0) > 1024;
      while (!isFull() && !context.drained) context.advance();
      expect(lane()).toMatchObject({ bytes: 262_144, roomWanted: true });
      expect(lane()?.wantedFor).toBeLessThanOrEqual(performance.now() - start + 1);
    }));

  it("is JSON, all of it", () =>
    withJob(variant, {}, ({ job }) => {
      const { toString: _, ...plain } = job.dump();
      expect(JSON.parse(JSON.stringify(plain))).toEqual(plain);
    }));

  it("says that a message waits for a context that does not exist", () =>
    withJob(variant, { tasks: 1, contexts: 2 }, ({ job, client, context }) => {
      context.sendImmediate(client.endpoint(0, 1), 5);
      expect(job.dump().stuck).toEqual(["lane 0.0 → 0.1: 16 bytes wait for a context that does not exist yet"]);
      client.createContext();
      expect(job.dump().stuck).toEqual([]);
    }));

  it("says that nobody does anything, if that lasts", () =>
    withJob(variant, { module: "sleeper.js" }, async ({ job, context }) => {
      const waits = context.progress({ timeout: PATIENCE });
      const end = performance.now() + PATIENCE;
      let said: string | undefined;
      while (said === undefined && performance.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        said = job.dump().stuck.find((line) => /^all tasks are asleep for \d+\.\d s$/.test(line));
      }
      expect(said).toBeDefined();
      context.close();
      await expect(waits).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
    }));
});

describe("diagnostics channels", () => {
  const [plain] = VARIANTS;

  it("tell of launch, attach, contexts, a full lane, a paused one, an end, leave and exit", async () => {
    const told: [name: string, message: Record<string, unknown>][] = [];
    const names = ["launch", "attach", "context", "full", "paused", "ended", "leave", "exit"];
    const listen = (message: unknown, name: string | symbol): void => {
      told.push([String(name), message as Record<string, unknown>]);
    };
    for (const name of names) subscribe(`pamir:${name}`, listen);
    try {
      await withJob(plain, { module: "waits.js", laneBytes: 1024, args: { how: "floods" } }, async (given) => {
        const { job, client, context } = given;
        const small = client.createContext({ unexpectedBytes: 1000 });
        const isTold = (name: string) => told.some(([channel]) => channel === `pamir:${name}`);
        for (const end = performance.now() + PATIENCE; !isTold("paused") && performance.now() < end; ) small.advance();
        // Refused, too, while the other task has the lock of the heap: then there is no lane yet that could be full.
        for (const end = performance.now() + PATIENCE; !isTold("full") && performance.now() < end; )
          context.sendImmediate(client.endpoint(1), 5, null, new Uint8Array(100), false);
        void job.terminate(1);
        await context.whenEnded(client.endpoint(1), { timeout: PATIENCE });
        client.close();
        const find = (name: string) => told.find(([channel]) => channel === `pamir:${name}`)?.[1];
        expect(find("launch")).toEqual({ job });
        expect(find("attach")).toEqual({ client });
        expect(find("context")).toEqual({ client, context });
        expect(find("full")).toEqual({ from: context.endpoint, to: client.endpoint(1), bytes: 100 });
        const paused = { from: client.endpoint(1), to: small.endpoint, bytes: expect.any(Number) };
        expect(find("paused")).toEqual(paused);
        expect(find("ended")).toEqual({ context, task: 1 });
        expect(find("leave")).toEqual({ client });
      });
      expect(told.filter(([name]) => name === "pamir:exit").map(([, { exit }]) => exit)).toEqual([
        expect.objectContaining({ task: 1, cause: "terminated" }),
      ]);
    } finally {
      for (const name of names) unsubscribe(`pamir:${name}`, listen);
    }
  });
});

describe("debug mode", () => {
  const [plain] = VARIANTS;
  const warnings = () => {
    const told: string[] = [];
    vi.spyOn(console, "warn").mockImplementation((text: string) => void told.push(text));
    return told;
  };
  const makeOne = (client: Client, bytes: number): number => client.createRegion(bytes).handle;

  it("names each region that is open when its task closes the client, and where it was made", () => {
    const told = warnings();
    return withJob(plain, { debug: true }, ({ client }) => {
      makeOne(client, 10);
      client.createRegion(20).close();
      client.close();
      expect(told).toHaveLength(1);
      expect(told[0]).toMatch(
        /^pamir: task 0 closes its client with a region of 10 bytes that was never closed, made at .*makeOne.*seeing\.test/,
      );
    });
  });

  it("names the place also where a geometry makes the region later than its call", () => {
    const told = warnings();
    return withJob(plain, { debug: true, tasks: 1 }, async ({ client }) => {
      const world = await client.world();
      const shareOne = () => world.shareRegion(64);
      await shareOne();
      await world.createCounter();
      client.close();
      expect(told).toHaveLength(3);
      for (const text of told) expect(text).toMatch(/closed, made at .*seeing\.test/);
      expect(told[0]).toMatch(/ of 64 bytes .*shareOne/);
    });
  });

  it("names the place of each call that makes a region, also where stacks are cut to one frame", () => {
    const told = warnings();
    const { stackTraceLimit } = Error;
    return withJob(plain, { debug: true, tasks: 1 }, async ({ client, context }) => {
      const world = await client.world();
      const keepOne = (message: Message) => message.keep();
      context.dispatch(3, (message) => void keepOne(message));
      context.sendImmediate(context.endpoint, 3, null, new Uint8Array(8));
      Error.stackTraceLimit = 1;
      const shareOne = () => world.shareRegion(64);
      const gridOne = () => world.createGrid({ size: [8] });
      makeOne(client, 10);
      await shareOne();
      await gridOne();
      context.advance();
      client.close();
      const makers = [
        /makeOne.*seeing\.test/,
        /shareOne.*seeing\.test/,
        /gridOne.*seeing\.test/,
        /keepOne.*seeing\.test/,
      ];
      expect(told).toEqual(makers.map((maker) => expect.stringMatching(maker)));
    }).finally(() => {
      Error.stackTraceLimit = stackTraceLimit;
    });
  });

  it("tells of a region that nobody can close any more", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const told = warnings();
    return withJob(plain, { debug: true }, async ({ client }) => {
      makeOne(client, 30);
      const start = performance.now();
      while (told.length === 0 && performance.now() - start < PATIENCE) {
        collect();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(told).toEqual([expect.stringMatching(/^pamir: task 0 lost a region of 30 bytes that was never closed/)]);
      client.close();
      expect(told).toHaveLength(1);
    });
  });

  it("is off unless it is asked for", () => {
    const told = warnings();
    return withJob(plain, {}, ({ client }) => {
      makeOne(client, 10);
      client.close();
      expect(told).toEqual([]);
    });
  });

  it("is true or false", async () => {
    await expect(withJob(plain, { debug: "yes" as never }, () => {})).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: 'debug is "yes", not a boolean, nor { slow, wait }',
    });
    await expect(withJob(plain, { debug: { slow: 0 } }, () => {})).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: "debug.slow is 0, not a number of milliseconds above 0",
    });
  });

  /** Milliseconds. */
  const SLOW = 200;
  /** Time goes on as the test says, and a little with each look at it: what a machine takes from a thread does not count. */
  const ownTime = () => {
    let now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => {
      now += 2 ** -10;
      return now;
    });
    return (milliseconds: number): void => {
      now += milliseconds;
    };
  };

  it("names the handler, callback or work that keeps its context from making progress, once", () => {
    const told = warnings();
    return withJob(plain, { tasks: 1, debug: { slow: SLOW, wait: PATIENCE } }, ({ context }) => {
      const lasting = ownTime();
      context.dispatch(3, () => lasting(SLOW + 50));
      context.dispatch(4, () => {});
      for (let i = 0; i < 3; i++) context.sendImmediate(context.endpoint, i === 0 ? 4 : 3);
      context.advance();
      const why = "nothing else of that context made progress meanwhile";
      const took = (what: string) => expect.stringMatching(new RegExp(`^pamir: ${what} took \\d+ ms: ${why}$`));
      // Twice, but told once.
      const handlers = told.filter((text) => !text.includes("was not advanced"));
      expect(handlers).toEqual([took("the handler of dispatch id 3 in context 0 of task 0")]);
      context.fence(context.endpoint, () => lasting(SLOW + 50));
      context.advance();
      context.post(() => lasting(SLOW + 50));
      context.advance();
      for (const what of ["a callback", "posted work"]) {
        expect(told.filter((text) => text.includes(what))).toEqual([took(`${what} in context 0 of task 0`)]);
      }
    });
  });

  it("names the context that was not advanced while something was there for it, and the place where it was at last", () => {
    const told = warnings();
    return withJob(plain, { tasks: 1, debug: { slow: SLOW, wait: PATIENCE } }, async ({ context }) => {
      const lasting = ownTime();
      context.dispatch(4, () => {});
      context.advance();
      context.sendImmediate(context.endpoint, 4);
      lasting(SLOW + 50);
      context.advance();
      expect(told).toEqual([
        expect.stringMatching(/^pamir: context 0 of task 0 was not advanced for \d+ ms: until .*seeing\.test/),
      ]);
      // Asleep, it was not kept from it.
      setTimeout(() => {
        lasting(SLOW + 50);
        context.sendImmediate(context.endpoint, 4);
      }, 100);
      await context.progress({ timeout: PATIENCE });
      lasting(SLOW + 50);
      context.advance();
      expect(told).toHaveLength(1);
    });
  });

  it("names a wait that goes on, blocking or not, with the state of all", () => {
    const told = warnings();
    return withJob(plain, { module: "sleeper.js", debug: { slow: PATIENCE, wait: 100 } }, async ({ context }) => {
      expect(context.advanceUntil(() => false, { timeout: 1000 })).toBe(TIMEDOUT);
      expect(told).toEqual([
        expect.stringMatching(
          /^pamir: advanceUntil\(\) of context 0 of task 0 goes on for 100 ms\nheap: .*\ntask 1: (up|absent)/s,
        ),
      ]);
      await expect(context.progress({ timeout: 1000 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
      expect(told[1]).toMatch(/^pamir: progress\(\) of context 0 of task 0 goes on for 100 ms\n/);
      expect(told).toHaveLength(2);
    });
  });

  it("names what runs when somebody advances within it", () => {
    warnings();
    return withJob(plain, { tasks: 1, debug: true }, ({ context }) => {
      let text = "";
      context.dispatch(3, () => {
        text = thrownBy(() => context.advance()).text;
      });
      context.sendImmediate(context.endpoint, 3);
      context.advance();
      expect(text).toBe(
        "advance() from within the handler of dispatch id 3 in context 0 of task 0: it is not re-entrant",
      );
    });
  });
});

describe("a message to a dispatch id without a handler", () => {
  const plain = VARIANTS[0] as (typeof VARIANTS)[number];
  const named = (job: Job, context = 0) => job.dump().tasks[0]?.contexts[context]?.handlerless;

  it("the dump names the id, also of a call, until there is a handler, or a stream", () =>
    withJob(plain, { tasks: 1 }, async ({ job, context }) => {
      expect(named(job)).toBe(undefined);
      const reply = context.call(0, 77, null, { timeout: PATIENCE });
      context.sendImmediate(0, 0, null, new Uint8Array(8));
      context.sendImmediate(0, 78, null, new Uint8Array(8));
      for (let i = 0; i < 3; i++) context.advance();
      expect(named(job)).toBe(77);
      expect(String(job.dump())).toMatch(/ bytes of messages without a handler: dispatch id 77 has waited longest$/m);
      context.dispatch(77, () => Uint8Array.of(1));
      expect(named(job)).toBe(0);
      expect([...(await reply)]).toEqual([1]);
      context.dispatch(0, () => {});
      expect(named(job)).toBe(78);
      for await (const _ of context.messages(78, { timeout: PATIENCE })) {
        expect(named(job)).toBe(undefined);
        break;
      }
      expect(String(job.dump())).not.toContain("waited longest");
    }));

  it("one that is too large to be kept is named too", () =>
    withJob(plain, { tasks: 1, context: { unexpectedBytes: 100 } }, ({ job, context }) => {
      context.send({ to: 0, dispatch: 79, payload: new Uint8Array(1000) });
      context.advance();
      expect(named(job)).toBe(79);
      let seen = 0;
      context.dispatch(79, () => seen++);
      until(context, () => seen === 1);
      expect(named(job)).toBe(undefined);
    }));

  it("debug mode says it, once it has waited for `slow`, and not of one whose handler comes in time", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    return withJob(plain, { tasks: 1, debug: { slow: 40, wait: PATIENCE } }, ({ context }) => {
      context.sendImmediate(0, 80);
      context.advance();
      context.dispatch(80, () => {});
      context.sendImmediate(0, 81);
      const heard = () => warn.mock.calls.map(([text]) => String(text)).filter((text) => text.includes("handler"));
      for (const end = performance.now() + PATIENCE; heard().length === 0 && performance.now() < end; )
        context.advance();
      const told = heard();
      expect(told[0]).toMatch(
        /^pamir: dispatch id 81 of context 0 of task 0 has had no handler for \d+ ms: messages to it wait for dispatch\(\)$/,
      );
      expect(told.filter((text) => text.includes("id 80"))).toEqual([]);
    }).finally(() => warn.mockRestore());
  });
});

// The engine thread: it moves what is long for all tasks of a job, and when it ends, each goes on by itself. The names begin
// with the element of the mechanism that they prove.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import {
  type Client,
  type Context,
  EAGAIN,
  ERROR,
  type Job,
  type KernelName,
  launch,
  type Result,
  SHUTDOWN,
  SUCCESS,
} from "pamir";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import {
  awaitFlag,
  chooseSeed,
  DATA,
  ENGINE_VARIANTS,
  endEngine,
  OTHER,
  PATIENCE,
  pattern,
  processesOf,
  QUIT,
  RESULT,
  randomFrom,
  rejectionOf,
  sameBytes,
  thrownBy,
  until,
  type Variant,
  withJob,
} from "./support.js";
import { busy } from "./tasks/busy.js";
import { makeFlags } from "./tasks/flags.js";

const module = "engine.js";
const MIB = 1024 ** 2;

const THREADS = ENGINE_VARIANTS.filter(({ engine }) => engine === "thread");
/** Tasks of both kernels; the engine thread runs what the first one does. */
const MIXED: readonly Variant[] = [
  { name: "wasm with ts", kernels: ["wasm", "ts"], engine: "thread" },
  { name: "ts with wasm", kernels: ["ts", "wasm"], engine: "thread" },
];

afterEach(() => {
  vi.restoreAllMocks();
});

/** What came of a round of the other side. */
type Seen = ReturnType<typeof busy>["seen"];

/** Reports of the task in `busy`, one for each round: what each of its contexts has seen. */
function reports(context: Context): Seen[][] {
  const came: Seen[][] = [];
  context.dispatch(RESULT, (message) => {
    const take = (bytes: Uint8Array) => void came.push(JSON.parse(new TextDecoder().decode(bytes)));
    if (message.immediate) take(message.payload.slice());
    else {
      const bytes = new Uint8Array(message.payloadBytes);
      message.receive(bytes, () => take(bytes));
    }
  });
  return came;
}

/** Fails unless all memory comes back once these advance: closed regions give theirs to whoever wants a new one. */
function expectNothingLeft(job: Job, client: Client, contexts: readonly Context[]): void {
  const { bytes } = job.dump().heap;
  const end = performance.now() + PATIENCE;
  let free = 0;
  do {
    for (const context of contexts) context.advance();
    // All of the heap is given to no region. Small ones, closed again, would be too many while the engine thread has no core.
    expect(thrownBy(() => client.createRegion(bytes)).code).toBe("PAMIR_NO_MEMORY");
    ({ free } = job.dump().heap);
  } while (free !== bytes && performance.now() < end);
  expect(free).toBe(bytes);
}

/** Advances all contexts of a task until the condition holds. */
function spin(client: Client, condition: () => boolean, about: () => unknown = () => undefined): void {
  const end = performance.now() + PATIENCE;
  while (!condition()) {
    client.advance();
    if (performance.now() > end) {
      throw new Error(`not yet: ${condition}\n${JSON.stringify([about(), client.dump()], null, 1)}`);
    }
  }
}

describe("launch({ engine })", () => {
  it.each([0, 1, true, null, "", "Thread", "inline ", {}, []])("refuses %j", async (engine) => {
    const { code, text } = await rejectionOf(launch(null, { tasks: 1, join: true, engine: engine as never }));
    expect(code).toBe("PAMIR_INVAL");
    const shown = typeof engine === "string" ? `"${engine}"` : Array.isArray(engine) ? "Array" : (engine ?? null);
    expect(text).toBe(`engine is ${typeof shown === "object" && shown ? "Object" : shown}, not "inline" or "thread"`);
  });

  it.each([
    [undefined, "inline"],
    ["inline", "inline"],
    ["thread", "thread"],
  ] as const)("job.engine of %j is %j", async (engine, told) => {
    await using job = await launch(null, { tasks: 1, join: true, heapBytes: 2 ** 22, engine });
    expect([job.engine, job.dump().engine.mode]).toEqual([told, told]);
  });
});

describe.each(THREADS)("$name", (variant) => {
  it("P11 moves for one that is alone, and sleeps while there is nothing to move", () =>
    withJob(variant, { tasks: 1 }, ({ job, client, context }) => {
      const [local, remote] = [client.createRegion(MIB), client.createRegion(MIB)];
      local.bytes.set(pattern(MIB));
      for (let round = 0; round < 20; round++) {
        remote.bytes.fill(0);
        let result: Result | undefined;
        const onRemote = (_: unknown, told: Result) => {
          result = told;
        };
        context.put({ to: context.endpoint, local, remote: remote.handle, onRemote });
        // Both sleep at times: each is woken by the other.
        if (round % 2 === 0) until(context, () => result !== undefined);
        else
          for (const end = performance.now() + PATIENCE; result === undefined && performance.now() < end; )
            context.advance();
        expect([result, sameBytes(local.bytes, remote.bytes)]).toEqual([SUCCESS, true]);
        // Seen once: about to sleep, it may find one thing more.
        let { engine } = job.dump();
        for (const end = performance.now() + PATIENCE; !engine.parked && performance.now() < end; )
          ({ engine } = job.dump());
        expect(engine).toEqual({ mode: "thread", parked: true });
      }
    }));

  it("P11 moves while nobody advances", () =>
    withJob(variant, { tasks: 1 }, ({ client, context }) => {
      const [local, remote] = [client.createRegion(MIB), client.createRegion(MIB)];
      local.bytes.set(pattern(MIB));
      remote.bytes.fill(0);
      context.put({ to: context.endpoint, local, remote: remote.handle });
      // Not by the bytes: who compares what is being written may find equal what is not, since memcmp() looks twice.
      const isLeft = () => client.dump().tasks[0]?.contexts[0]?.injections.some(({ left }) => left > 0);
      for (const end = performance.now() + PATIENCE; isLeft() && performance.now() < end; );
      expect(isLeft()).toBe(false);
      expect(sameBytes(local.bytes, remote.bytes)).toBe(true);
    }));

  it.each([
    ["of another task", { tasks: 2 }],
    ["of another context of the task", { tasks: 1 }],
  ])("P11 what is short, %s, is done while what is long goes on", (_, { tasks }) =>
    withJob(
      variant,
      { module, scenario: "brief", tasks, contexts: 2, fifos: 1, heapBytes: 64 * MIB },
      ({ client, context, flags }) => {
        const [local, remote] = [client.createRegion(16 * MIB), client.createRegion(16 * MIB)];
        const log: string[] = [];
        context.dispatch(RESULT, () => log.push("short"));
        if (tasks > 1) awaitFlag(flags, 10, 1);
        // Many gigabytes, for which nobody waits in the end.
        const put = { to: context.endpoint, local, remote: remote.handle };
        for (let i = 0; i < 1000; i++) context.put(put);
        context.put({ ...put, onRemote: () => log.push("long") });
        if (tasks > 1) {
          context.sendImmediate(client.endpoint(1), OTHER, null, new Float64Array([remote.handle]));
        } else {
          const other = client.createContext();
          other.put({ ...put, bytes: 5000 });
          other.put({ ...put, bytes: 8, onRemote: () => log.push("short") });
          context.post(() => (other.advance() > 0 ? SUCCESS : EAGAIN));
        }
        until(context, () => log.length > 0);
        expect(log).toEqual(["short"]);
      },
    ),
  );

  it.each([
    ["one context each", {}, 1],
    ["four contexts each, with 32 injection FIFOs", { contexts: 4, fifos: 32 }, 4],
    ["four slots in one injection FIFO", { slots: 4, fifos: 1 }, 1],
    ["a trace", { trace: true }, 1],
    ["debug mode", { debug: true }, 1],
    ["the smallest lanes", { laneBytes: 64 }, 1],
  ] as const)("P11 two tasks do everything to each other: %s", (_, options, count) => {
    const seed = chooseSeed();
    const request = { module, scenario: "busy", heapBytes: 64 * MIB, args: { seed, contexts: count, counts: [200] } };
    return withJob(variant, { ...request, ...options }, ({ job, client, context, flags }) => {
      const contexts = [context, ...Array.from({ length: count - 1 }, () => client.createContext())];
      const sides = contexts.map((each, i) => busy(client, each, client.endpoint(1, i), seed + 10 + i));
      const came = reports(context);
      awaitFlag(flags, 10, 1);
      context.sendImmediate(client.endpoint(1), DATA);
      for (const side of sides) side.begin(200);
      const isOver = () => sides.every((side) => side.isOver()) && came.length === 1;
      if (count === 1) until(context, isOver);
      else spin(client, isOver);
      for (const side of sides) side.checkWords();
      for (const seen of [...sides.map((side) => side.seen), ...(came[0] as Seen[])]) {
        expect({ seed, ...seen }).toMatchObject({ seed, wrong: [], error: 0, shutdown: 0 });
        expect(seen.success).toBeGreaterThan(100);
      }
      if ("trace" in options) expect(job.trace().traceEvents.length).toBeGreaterThan(100);
      context.sendImmediate(client.endpoint(1), QUIT);
      for (const side of sides) side.close();
    });
  });
});

describe.each(THREADS)("tasks come, and go: $name", (variant) => {
  it("P11 it serves those that come later, whoever has started them", async () => {
    const url = new URL("tasks/engine.js", import.meta.url);
    const inProcesses = variant.processes !== undefined;
    const { flags, place } = await makeFlags(inProcesses);
    const seed = chooseSeed();
    const args = { scenario: "busy", seed, counts: [60], flags: place };
    const options = {
      tasks: 1,
      maxTasks: 5,
      join: true,
      engine: "thread",
      heapBytes: 64 * MIB,
      contexts: 5,
      args,
      ...processesOf(variant, 1),
    } as const;
    await using job = await launch(url, { ...options, kernel: variant.kernels[0] as KernelName });
    const { client } = job;
    const last = client.createContext();
    for (let number = 1; number <= 4; number++) {
      const context = client.createContext();
      // A worker of somebody else, which is a thread of this process; the same as one that the job starts.
      const worker =
        number % 2 === 0 && !inProcesses ? new Worker(new URL("tasks/adopted.js", import.meta.url)) : undefined;
      // It talks to the context of task 0 that has its number.
      const task =
        worker === undefined
          ? job.spawn({ args: { ...args, peer: number } })
          : job.adopt(worker, { args: { ...args, peer: number } });
      expect(task).toBe(number);
      const side = busy(client, context, client.endpoint(task), seed + number);
      const came = reports(context);
      awaitFlag(flags, 10, number);
      context.sendImmediate(client.endpoint(task), DATA);
      side.begin(60);
      until(context, () => side.isOver() && came.length === 1);
      for (const seen of [side.seen, ...(came[0] as Seen[])]) {
        expect({ seed, ...seen }).toMatchObject({ seed, wrong: [], error: 0, shutdown: 0 });
      }
      context.sendImmediate(client.endpoint(task), QUIT);
      until(context, () => context.sendImmediate(client.endpoint(task), OTHER) === SHUTDOWN);
      side.close();
      context.close();
      // It ends by itself, behind its client.
      if (worker !== undefined) await once(worker, "exit");
    }
    expect(job.engine).toBe("thread");
    expect((await job.exited).map(({ task, code }) => [task, code])).toEqual([1, 2, 3, 4].map((task) => [task, 0]));
    last.advance();
  });

  it("P11 it goes on for a caller that is left alone: job.exited has resolved, and puts are done", async () => {
    const kernel = variant.kernels[0] as KernelName;
    const limits = { tasks: 3, join: true, engine: "thread", heapBytes: 2 ** 24, kernel } as const;
    const options = { ...limits, ...processesOf(variant, 3) };
    await using job = await launch(new URL("tasks/ends.js", import.meta.url), options);
    expect((await job.exited).map(({ task, code }) => [task, code])).toEqual([
      [1, 0],
      [2, 0],
    ]);
    const { client } = job;
    const context = client.createContext();
    const [local, remote] = [client.createRegion(MIB), client.createRegion(MIB)];
    local.bytes.set(pattern(MIB));
    for (const to of [context.endpoint, client.endpoint(0, 1)]) {
      remote.bytes.fill(0);
      let result: Result | undefined;
      const onRemote = (_: unknown, told: Result) => {
        result = told;
      };
      context.put({ to, local, remote: remote.handle, onRemote });
      until(context, () => result !== undefined);
      expect([result, sameBytes(local.bytes, remote.bytes), job.engine]).toEqual([SUCCESS, true, "thread"]);
    }
    expect(context.put({ to: client.endpoint(1), local, remote: 2 ** 20 + 1024 })).toBe(SHUTDOWN);
    // And ends, as it does elsewhere.
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    endEngine(job);
    await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(1), { timeout: PATIENCE });
    expect(job.engine).toBe("ended");
    let isDone = false;
    context.put({
      to: context.endpoint,
      local,
      remote: remote.handle,
      onRemote: () => {
        isDone = true;
      },
    });
    until(context, () => isDone);
  });

  it.each(Array.from({ length: 8 }, (_, i) => i))(
    "P10 a task is ended in the midst of it all: what it had is told, the others go on, memory comes back: %i",
    (number) => {
      const seed = chooseSeed() + 1000 * number;
      const counts = [150];
      const request = {
        module,
        scenario: "busy",
        tasks: 3,
        heapBytes: 64 * MIB,
        args: { seed, counts, peer: "task" },
      };
      return withJob(variant, request, async ({ job, client, context, flags }) => {
        const contexts = [context, client.createContext()] as const;
        const sides = contexts.map((each, i) => busy(client, each, client.endpoint(1 + i), seed + 10 + i));
        const [doomed, other] = sides as [(typeof sides)[0], (typeof sides)[0]];
        const came = contexts.map(reports);
        awaitFlag(flags, 10, 2);
        for (const [i, each] of contexts.entries()) each.sendImmediate(client.endpoint(1 + i), DATA);
        for (const side of sides) side.begin(150);
        const moment = randomFrom(seed).below(140);
        let [isKilled, hasEnded] = [false, false];
        context.whenEnded(client.endpoint(1), () => {
          hasEnded = true;
          doomed.leave();
        });
        spin(
          client,
          () => {
            doomed.isOver();
            if (!isKilled && (doomed.seen.came >= moment || doomed.isThrough())) {
              isKilled = true;
              void job.terminate(1);
            }
            return hasEnded && doomed.isAllBack() && other.isOver() && came[1]?.length === 1;
          },
          () => ({ seed, moment, isKilled, hasEnded, doomed: doomed.seen, other: other.seen }),
        );
        for (const seen of [doomed.seen, other.seen, ...((came[1] as Seen[][])[0] as Seen[])]) {
          expect({ seed, moment, ...seen }).toMatchObject({ wrong: [], error: 0 });
        }
        expect(other.seen.shutdown).toBe(0);
        contexts[1].sendImmediate(client.endpoint(2), QUIT);
        expect(await job.exited).toMatchObject([{ cause: "terminated" }, { code: 0 }]);
        for (const side of sides) side.close();
        const last = client.createContext();
        for (const each of contexts) each.close();
        expectNothingLeft(job, client, [last]);
      });
    },
  );

  it("P10 a context closes in the midst of it all: its memory comes back, and the others of its task go on", () => {
    const seed = chooseSeed();
    return withJob(variant, { tasks: 1, contexts: 40, heapBytes: 64 * MIB }, ({ job, client, context }) => {
      for (let round = 0; round < 12; round++) {
        const pair = [client.createContext(), client.createContext()] as const;
        const [first, second] = pair;
        const sides = [
          busy(client, first, second.endpoint, seed + 2 * round),
          busy(client, second, first.endpoint, seed + 2 * round + 1),
        ] as const;
        for (const side of sides) side.begin(60);
        const moment = 5 * round;
        spin(client, () => {
          for (const side of sides) side.isOver();
          return sides[1].seen.came >= moment || sides[1].isThrough();
        });
        first.close();
        sides[1].leave();
        spin(client, () => sides[1].isAllBack());
        expect({ seed, round, ...sides[1].seen }).toMatchObject({ wrong: [], error: 0 });
        second.close();
        for (const side of sides) side.close();
        expectNothingLeft(job, client, [context]);
      }
    });
  });

  it("P8 close({ drain: true }) waits for all that goes on, in whatever hands it is", () =>
    withJob(variant, { tasks: 1, heapBytes: 64 * MIB }, async ({ client, context: origin }) => {
      const target = client.createContext();
      const bytes = 4 * MIB;
      const [from, into, put] = [client.createRegion(bytes), client.createRegion(bytes), client.createRegion(bytes)];
      from.bytes.set(pattern(bytes));
      const results: Result[] = [];
      const hear = (_: unknown, result: Result) => void results.push(result);
      target.dispatch(DATA, (message) => message.receive(into.bytes, hear));
      target.dispatch(OTHER, (message) => message.receive(new Uint8Array(message.payloadBytes), hear));
      const parameters = { to: target.endpoint, rendezvous: true, onLocal: hear };
      origin.send({ ...parameters, dispatch: DATA, payload: from.bytes });
      origin.send({ ...parameters, dispatch: OTHER, payload: from.bytes.slice() });
      origin.put({ to: target.endpoint, local: from, remote: put.handle, onLocal: hear, onRemote: hear });
      await client.close({ drain: true, timeout: PATIENCE });
      // The target had nothing of its own to wait for: what it receives may be over or not.
      expect(results.length).toBeGreaterThanOrEqual(4);
      expect(new Set(results)).toEqual(new Set([SUCCESS]));
      expect([sameBytes(put.bytes, from.bytes), sameBytes(into.bytes, from.bytes)]).toEqual([true, true]);
    }));

  it("its end does not keep a job from ending, nor terminate(), nor another end", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    for (const how of ["terminate", "close", "at once"]) {
      await withJob(variant, { module: "sleeper.js", tasks: 2 }, async ({ job, client }) => {
        endEngine(job);
        endEngine(job);
        if (how !== "at once") await vi.waitFor(() => expect(job.engine).toBe("ended"), { timeout: PATIENCE });
        if (how === "close") {
          client.close();
          job.interrupt(1);
        }
        const exits = how === "close" ? await job.terminate() : await job.terminate();
        expect(exits.map(({ task }) => task)).toEqual([1]);
      });
    }
    expect(warn.mock.calls.length).toBeLessThanOrEqual(3);
  });
});

describe.each(THREADS)("it ends with transfers in its hands: $name", (variant) => {
  it.each(["to another context", "to itself"])("P10 their rget FIFOs come back: %s", async (whom) => {
    vi.spyOn(console, "warn").mockImplementation(() => {});
    await withJob(variant, { tasks: 1, heapBytes: 64 * MIB }, async ({ job, client, context: origin }) => {
      const target = whom === "to itself" ? origin : client.createContext();
      const into = Array.from({ length: 8 }, () => client.createRegion(MIB).bytes);
      const received: Result[] = [];
      const sent: Result[] = [];
      let next = 0;
      target.dispatch(DATA, (message) =>
        message.receive(into[next++ % 8] as Uint8Array, (_, result) => void received.push(result)),
      );
      let payloads = into.map((_, i) => pattern(MIB, i));
      const offerAll = (): void => {
        for (const payload of payloads) {
          const onLocal = (_: unknown, result: Result) => void sent.push(result);
          expect(origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal })).toBe(
            SUCCESS,
          );
        }
      };
      const isOver = (): boolean => sent.length === 8 && received.length === 8;
      // Up, and at work.
      offerAll();
      spin(client, isOver);
      expect([...sent.splice(0), ...received.splice(0)]).toEqual(new Array(16).fill(SUCCESS));
      // All that may be under way at a time, and none of it can be through: more of it is not staged.
      offerAll();
      while (next < 16) target.advance();
      endEngine(job);
      await vi.waitFor(() => expect(job.engine).toBe("ended"), { timeout: PATIENCE });
      spin(client, isOver);
      expect([...sent.splice(0), ...received.splice(0)]).toEqual(new Array(16).fill(ERROR));
      // Each hears that the other has broken them off too.
      for (let i = 0; i < 10; i++) client.advance();
      const { free } = job.dump().heap;
      for (let round = 0; round < 10; round++) {
        payloads = into.map((_, i) => pattern(MIB, i + round));
        offerAll();
        spin(client, isOver);
        expect([...sent.splice(0), ...received.splice(0)]).toEqual(new Array(16).fill(SUCCESS));
        for (const [i, bytes] of into.entries()) expect(sameBytes(bytes, payloads[i] as Uint8Array)).toBe(true);
        expect(job.dump().heap.free).toBe(free);
      }
    });
  });
});

describe.each([...THREADS, ...MIXED])("it ends at a random moment: $name", (variant) => {
  const ROUNDS = 13;
  let [rounds, broken] = [0, 0];
  afterAll(() => {
    // Unless a few were picked out.
    if (rounds === ROUNDS) expect(broken).toBeGreaterThan(0);
  });

  it.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    "P10 all is called back once, on both sides, and both go on: %i",
    async (number) => {
      const seed = chooseSeed() + 1000 * number;
      const random = randomFrom(seed);
      const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
      const counts = [120, 60];
      const shape = [{}, { slots: 4, fifos: 1 }, { laneBytes: 256 }][number % 3];
      const request = { module, scenario: "busy", heapBytes: 32 * MIB, args: { seed, counts }, ...shape };
      await withJob(variant, request, async ({ job, client, context, flags }) => {
        const side = busy(client, context, client.endpoint(1), seed + 1);
        const came = reports(context);
        awaitFlag(flags, 10, 1);
        context.sendImmediate(client.endpoint(1), DATA);
        side.begin(counts[0] as number);
        let isEnded = false;
        // When so much is done.
        const moment = random.below(75);
        until(context, () => {
          const isOver = side.isOver();
          if (!isEnded && (side.seen.came >= moment || isOver)) {
            isEnded = true;
            endEngine(job);
          }
          return isOver && isEnded && job.engine === "ended" && came.length === 1;
        });
        side.checkWords();
        await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(1), { timeout: PATIENCE });
        // Ended before it was up, there has been none.
        expect(warn.mock.calls[0]?.[0]).toMatch(
          /^pamir: (the engine thread has ended|there is no engine thread): it was/,
        );
        for (const seen of [side.seen, ...(came[0] as Seen[])]) {
          expect({ seed, moment, ...seen }).toMatchObject({ wrong: [], shutdown: 0 });
        }
        rounds++;
        if (side.seen.error > 0) broken++;
        // Each is its own engine now. The first fence tells of what was behind the last one.
        let isFenced = false;
        context.fenceAll(() => {
          isFenced = true;
        });
        until(context, () => isFenced);
        const before = [side.seen.error, came[0]?.[0]?.error ?? 0];
        context.sendImmediate(client.endpoint(1), DATA);
        side.begin(counts[1] as number);
        until(context, () => side.isOver() && came.length === 2);
        side.checkWords();
        for (const [i, seen] of [side.seen, ...(came[1] as Seen[])].entries()) {
          expect({ seed, moment, ...seen }).toMatchObject({ wrong: [], shutdown: 0 });
          expect(seen.error - (before[i] as number)).toBeLessThanOrEqual(i);
        }
        context.sendImmediate(client.endpoint(1), QUIT);
        expect(await job.exited).toMatchObject([{ task: 1, code: 0, cause: "exit" }]);
        side.close();
        const last = client.createContext();
        context.close();
        expectNothingLeft(job, client, [last]);
        expect(warn).toHaveBeenCalledTimes(1);
      });
    },
  );
});

describe("the process of a job with an engine thread", () => {
  it.each(["alone", "others", "spare", "terminate", "close"])(
    "P11 ends by itself, with its caller alone: %s",
    async (how) => {
      const file = fileURLToPath(new URL("programs/engine.js", import.meta.url));
      const child = spawn(process.execPath, [file, how], { stdio: ["ignore", "pipe", "inherit"] });
      let output = "";
      child.stdout.on("data", (text) => {
        output += text;
      });
      const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
      const [code] = await once(child, "close");
      clearTimeout(timer);
      expect({ output, code }).toEqual({ output: "moved thread\n", code: 0 });
    },
  );
});

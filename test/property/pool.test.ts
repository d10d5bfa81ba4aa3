// Random calls of pools of random options: values of every kind against structuredClone(), workers that die, signals, timeouts,
// streams, callbacks, and pools that end in the midst. Each call settles once, with the right value or an error that fits.
import fc from "fast-check";
import { type Pool, type PoolOptions, pool } from "pamir/pool";
import { describe, expect, it } from "vitest";
import { anything, areAlike } from "../support/any-value.js";
import { byEffort, SEED } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";
import type { api } from "./tasks/pool-random.js";

type Api = typeof api;
type Random = (below: number) => number;
const ENTRY = new URL("./tasks/pool-random.js", import.meta.url);
/** Tests that together make all calls, so that shards share them: 100,000 of them in a deep run. */
const PARTS = Array.from({ length: byEffort({ quick: 1, normal: 1, deep: 20 }) }, (_, part) => part);
/** Calls of all rounds of a test, and of a round. Processes take their time to start: ten times as long. */
const callsOf = (processes: boolean): number =>
  byEffort({ quick: 200, normal: processes ? 400 : 800, deep: processes ? 500 : 4500 });
const ROUND = byEffort({ quick: 200, normal: 200, deep: 500 });
/** Calls at once. */
const AT_ONCE = 24;
/** Milliseconds after which a call is taken for one that hangs. */
const HANGS = 60_000;

const VALUES = fc
  .sample(anything, { seed: SEED, numRuns: byEffort({ quick: 200, normal: 400, deep: 3000 }) })
  .map((value) => ({ value, copy: structuredClone(value) }));

/** A round: a pool, and what becomes of its calls. */
interface Round {
  readonly workers: Pool<Api>;
  readonly random: Random;
  readonly options: PoolOptions;
  /** Whether workers die. */
  readonly isDeadly: boolean;
  isEnding: boolean;
}

/** A call: what it gives is checked in it. It rejects with an error of the call, or of the check. */
type Action = (round: Round) => Promise<unknown>;

class Wrong extends Error {}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Wrong(what);
}

/** The functions as a random caller reaches them. */
function some({ workers, random, options }: Round): Pick<Pool<Api>, keyof Api> {
  const way = random(8);
  if (way === 0) return workers.by(random(5));
  if (way === 1) return workers[random(options.workers as number)] as Pool<Api>;
  if (way === 2) return workers.with({ priority: random(3) });
  return workers;
}

const drawn = ({ random }: Round): (typeof VALUES)[number] => VALUES[random(VALUES.length)] as (typeof VALUES)[number];

async function rejects(call: Promise<unknown>, isRight: (error: Error & Record<string, unknown>) => boolean) {
  const error = await call.then(
    () => new Wrong("no error"),
    (thrown) => thrown as Error & Record<string, unknown>,
  );
  // An error of the pool's own has its code, and no field of the function's.
  if (!isRight(error as Error & Record<string, unknown>)) throw error;
}

/** A signal that is aborted within some milliseconds. */
function signalOf(random: Random, reason: unknown = undefined): AbortSignal {
  const controller = new AbortController();
  const delay = random(8);
  if (delay === 0) controller.abort(reason);
  else setTimeout(() => controller.abort(reason), delay);
  return controller.signal;
}

const ACTIONS: readonly [weight: number, name: string, action: Action][] = [
  [
    30,
    "same",
    async (round) => {
      const { value, copy } = drawn(round);
      check(areAlike(copy, await some(round).same(value)), "same");
    },
  ],
  [
    10,
    "list",
    async (round) => {
      const all = Array.from({ length: round.random(4) }, () => drawn(round));
      const got = (await some(round).list(...all.map(({ value }) => value))) as unknown[];
      const right = all.reverse();
      check(got.length === right.length && got.every((one, i) => areAlike(right[i]?.copy, one)), "list");
    },
  ],
  [
    4,
    "large",
    async (round) => {
      const bytes = new Uint8Array(round.random(400_000)).fill(round.random(256));
      const got = (await some(round).same({ bytes })) as { bytes: Uint8Array };
      check(Buffer.compare(got.bytes, bytes) === 0, "large");
    },
  ],
  [
    8,
    "late",
    async (round) => {
      const { value, copy } = drawn(round);
      check(areAlike(copy, await some(round).late(value, round.random(4))), "late");
    },
  ],
  [
    5,
    "fail",
    (round) => {
      const number = round.random(1000);
      return rejects(some(round).fail(number), (error) => error.name === "RangeError" && error.number === number);
    },
  ],
  [
    3,
    "unclonable",
    (round) =>
      rejects(round.random(2) === 0 ? some(round).unclonable(1) : some(round).same([Symbol("s")]), (error) =>
        /^(the result: value\.inner\[0\]|argument 1: value\[0\]) can't be copied/.test(error.message),
      ),
  ],
  [
    8,
    "stream",
    async (round) => {
      const all = Array.from({ length: round.random(6) }, () => drawn(round));
      const pauses = round.random(3);
      let place = 0;
      for await (const got of some(round).stream.stream(
        all.map(({ value }) => value),
        round.random(2),
      )) {
        check(areAlike(all[place++]?.copy, got), "stream");
        if (pauses === 1) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      check(place === all.length, `stream ended at ${place} of ${all.length}`);
    },
  ],
  [
    5,
    "left stream",
    async (round) => {
      const end = round.random(300);
      let place = 0;
      for await (const got of some(round).count.stream()) {
        check(got === place++, "count");
        if (got === end) break;
      }
    },
  ],
  [
    3,
    "failing stream",
    async (round) => {
      const after = round.random(150);
      let place = 0;
      const read = async (): Promise<void> => {
        for await (const got of some(round).failing.stream(after)) check(got === place++, "failing");
      };
      await rejects(read(), (error) => error.message === `after ${after}` && place === after);
    },
  ],
  [
    6,
    "callback",
    async (round) => {
      const count = round.random(5);
      let calls = 0;
      const sum = await some(round).sum(count, (i) => {
        calls++;
        return 10 * i;
      });
      check(sum === 5 * count * (count - 1), `sum of ${count} is ${sum}`);
      check(round.options.retries !== undefined || calls === count, `${calls} callbacks, not ${count}`);
    },
  ],
  [
    3,
    "proxy",
    async (round) => {
      // It ends with its worker.
      if (round.options.min !== undefined || round.options.recycleAfter !== undefined) return;
      const counter = (await some(round).counter(5)) as unknown as { add(by: number): Promise<number> };
      check((await counter.add(2)) === 7 && (await counter.add(3)) === 10, "proxy");
    },
  ],
  [
    4,
    "signal",
    async (round) => {
      const { value, copy } = drawn(round);
      const reason = value === undefined ? "reason" : value;
      const got = await some(round).aborted(signalOf(round.random, reason));
      check(areAlike(value === undefined ? "reason" : copy, got), "reason");
    },
  ],
  [
    5,
    "canceled",
    (round) => {
      const call = round.workers.with({ signal: signalOf(round.random) }).untilAborted();
      return rejects(call, (error) => error.code === "PAMIR_CANCELED");
    },
  ],
  [
    5,
    "timed out",
    (round) => {
      const call = round.workers.with({ timeout: round.random(10) }).untilAborted();
      return rejects(call, (error) => error.code === "PAMIR_TIMEDOUT");
    },
  ],
  [
    2,
    "canceled stream",
    (round) => {
      const read = async (): Promise<void> => {
        for await (const _ of round.workers.with({ signal: signalOf(round.random) }).count.stream());
      };
      return rejects(read(), (error) => error.code === "PAMIR_CANCELED");
    },
  ],
  [
    2,
    "all",
    async (round) => {
      const { value, copy } = drawn(round);
      for (const got of await round.workers.all.same(value)) check(areAlike(copy, got), "all");
    },
  ],
  [
    2,
    "map",
    async (round) => {
      const items = Array.from({ length: round.random(8) }, (_, i) => i);
      const ordered = round.random(2) === 0;
      const got: number[] = [];
      for await (const one of round.workers.map(items, (item) => round.workers.late(item, item % 3), { ordered }))
        got.push(one as number);
      check(JSON.stringify(ordered ? got : got.sort((a, b) => a - b)) === JSON.stringify(items), `map ${got}`);
    },
  ],
  [
    2,
    "sync",
    async (round) => {
      // A thread that blocks can't hear that a worker has ended, or wait for one that starts.
      if (round.isDeadly || round.options.min !== undefined || round.options.recycleAfter !== undefined) return;
      const { value, copy } = drawn(round);
      check(areAlike(copy, round.workers.sync.same(value)), "sync");
    },
  ],
  [
    2,
    "die",
    async (round) => {
      if (!round.isDeadly) return;
      const retries = round.random(2);
      let begun = 0;
      const how = ["exit", "throw"][round.random(2)] as string;
      const call = round.workers.with({ retries }).die(how, () => ++begun);
      await rejects(call, (error) => error.code === "PAMIR_SHUTDOWN");
      check(begun <= 1 + retries, `a call with ${retries} retries has begun ${begun} times`);
    },
  ],
  [
    1,
    "killed process",
    async (round) => {
      if (!round.isDeadly || round.options.processes !== true) return;
      process.kill((await some(round).pid()) as number, "SIGKILL");
    },
  ],
  [
    1,
    "killed for its time",
    (round) => {
      if (!round.isDeadly) return Promise.resolve();
      return rejects(round.workers.with({ timeout: 5 }).spin(600_000), ({ code }) => code === "PAMIR_TIMEDOUT");
    },
  ],
];

const TOTAL = ACTIONS.reduce((sum, [weight]) => sum + weight, 0);

function draw(random: Random): readonly [name: string, action: Action] {
  let left = random(TOTAL);
  for (const [weight, name, action] of ACTIONS) {
    left -= weight;
    if (left < 0) return [name, action];
  }
  throw new Error("no action");
}

/** Whether an error fits a call that something else has ended. */
function isFit({ isDeadly, isEnding }: Round, error: unknown): boolean {
  const { code } = error as { code?: string };
  if (code === "PAMIR_SHUTDOWN") return isDeadly || isEnding;
  return code === "PAMIR_CLOSED" && isEnding;
}

async function hung(name: string, call: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Wrong(`${name} hangs`)), HANGS);
  });
  try {
    await Promise.race([call, late]);
  } finally {
    clearTimeout(timer);
  }
}

function optionsOf(random: Random, processes: boolean, isDeadly: boolean): PoolOptions {
  const workers = 1 + random(3);
  return {
    workers,
    concurrency: 1 + random(3) * 3,
    min: random(3) === 0 ? 0 : undefined,
    idleTimeout: random(3),
    recycleAfter: random(4) === 0 ? 20 + random(50) : undefined,
    retries: random(3) === 0 ? 2 : undefined,
    killAfter: isDeadly ? 20 : undefined,
    processes,
    onError: "ignore",
  };
}

/** Ends the pool in one of four ways. */
async function end(round: Round, calls: Set<Promise<unknown>>): Promise<void> {
  const { workers, random } = round;
  const way = random(4);
  if (way >= 2) {
    await hung("the last calls", Promise.all(calls));
    // The workers have come back, also those that have died.
    expect(await workers.with({ retries: 100 }).same(way)).toBe(way);
    const { queued, completed, failed } = workers.stats;
    expect(queued).toBe(0);
    expect(failed).toBeLessThanOrEqual(completed);
  }
  round.isEnding = true;
  await hung("the end of the pool", way === 1 ? workers.terminate() : workers.close());
  await hung("calls at the end of their pool", Promise.all(calls));
  expect(workers.stats).toMatchObject({ queued: 0 });
}

async function play(random: Random, processes: boolean, count: number): Promise<void> {
  const isDeadly = random(2) === 0;
  const options = optionsOf(random, processes, isDeadly);
  const workers = await pool<Api>(ENTRY, options);
  const round: Round = { workers, random, options, isDeadly, isEnding: false };
  const calls = new Set<Promise<unknown>>();
  const wrong: unknown[] = [];
  let settled = 0;
  try {
    for (let i = 0; i < count && wrong.length === 0; i++) {
      const [name, action] = draw(random);
      const call = hung(name, action(round))
        .catch((error) => {
          if (!isFit(round, error)) wrong.push(new Error(`${name}: ${String(error)}`, { cause: error }));
        })
        .finally(() => {
          settled++;
          calls.delete(call);
        });
      calls.add(call);
      if (calls.size >= AT_ONCE) await Promise.race(calls);
    }
    if (wrong.length === 0) await end(round, calls);
    if (wrong.length === 0) expect(settled).toBe(count);
  } finally {
    round.isEnding = true;
    await workers.terminate();
  }
  if (wrong.length > 0) throw new Error(`${JSON.stringify(options)} ${String(wrong[0])}`, { cause: wrong[0] });
}

const WAYS: [name: string, processes: boolean][] = [["threads", false]];
if (process.platform === "linux") WAYS.push(["processes", true]);

describe.each(WAYS)("a pool of %s", (name, processes) => {
  it.each(PARTS)("settles each of many random calls once, and right: part %i", async (part) => {
    const random = randomOf(SEED ^ name.length ^ (part << 16));
    for (let calls = 0; calls < callsOf(processes); calls += ROUND) {
      try {
        await play(random, processes, ROUND);
      } catch (error) {
        throw new Error(`${replayNote()}, round ${calls / ROUND}: ${String(error)}`, { cause: error });
      }
    }
  });
});

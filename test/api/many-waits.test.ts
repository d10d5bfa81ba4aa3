// Many promises of one context. What one of them costs does not depend on how many wait: counted in atomic loads of the twin,
// of which each look at shared memory takes some. One promise advances for all, so the others go on however it ends.
import { type Client, type Context, type Geometry, type Job, launch } from "pamir";
import { expect, it, vi } from "vitest";
import { PATIENCE, rejectionOf } from "./support.js";

const FEW = 50;
const MANY = 400;

interface Pair {
  readonly job: Job;
  readonly client: Client;
  readonly one: Context;
  readonly other: Context;
}

/**
 * A job of one task with two contexts, and room for a third one. Its waits do not spin: how often a wait looks while it spins
 * depends on the machine's load, by a factor of 1.1 to 4.
 */
async function withPair<T>(body: (pair: Pair) => Promise<T>): Promise<T> {
  const job = await launch(null, { tasks: 1, join: true, contexts: 3, kernel: "ts", heapBytes: 64 * 1024 ** 2 });
  try {
    const { client } = job;
    return await body({
      job,
      client,
      one: client.createContext({ spin: 0 }),
      other: client.createContext({ spin: 0 }),
    });
  } finally {
    await job.terminate();
  }
}

async function geometries({ client, one, other }: Pair): Promise<[Geometry, Geometry]> {
  const members = [one.endpoint, other.endpoint];
  const made = await Promise.all([one, other].map((context) => client.createGeometry(members, { context })));
  return made as [Geometry, Geometry];
}

function repeated<T>(count: number, make: (place: number) => T): T[] {
  return Array.from({ length: count }, (_, place) => make(place));
}

/** The first member begins all at once, the second one after the other. */
async function oneByOne(
  count: number,
  [first, second]: [Geometry, Geometry],
  call: (geometry: Geometry) => Promise<unknown>,
) {
  const all = Promise.all(repeated(count, () => call(first)));
  for (let place = 0; place < count; place++) {
    await call(second);
    await new Promise(setImmediate);
  }
  await all;
}

const CASES: [name: string, begin: (pair: Pair) => Promise<(count: number) => Promise<unknown>>][] = [
  [
    "collective operations in slots",
    async (pair) => {
      const members = await geometries(pair);
      const send = Int32Array.of(1);
      return (count) => oneByOne(count, members, (one) => one.allreduce({ send, operation: "sum" }));
    },
  ],
  [
    "collective operations over messages",
    async (pair) => {
      const members = await geometries(pair);
      const algorithm = "binomial";
      return (count) =>
        oneByOne(count, members, (one) => one.broadcast({ buffer: new Int32Array(1), root: 1, algorithm }));
    },
  ],
  [
    "operations of one of many geometries",
    async (pair) => {
      const all = [await geometries(pair)];
      return async (count) => {
        while (all.length < count / 10) all.push(await geometries(pair));
        await oneByOne(count, all[0] as [Geometry, Geometry], (one) => one.barrier());
      };
    },
  ],
];

/** Atomic loads for each of `count` promises. */
function looks(count: number, begin: (pair: Pair) => Promise<(count: number) => Promise<unknown>>): Promise<number> {
  return withPair(async (pair) => {
    const wait = await begin(pair);
    const load = vi.spyOn(Atomics, "load");
    try {
      await wait(count);
      return load.mock.calls.length / count;
    } finally {
      load.mockRestore();
    }
  });
}

it.each(CASES)("%s: one takes as many looks however many wait", async (_, begin) => {
  const [few, many] = [await looks(FEW, begin), await looks(MANY, begin)];
  expect(many, `${few.toFixed(1)} looks with ${FEW}, with ${MANY}`).toBeLessThan(1.5 * few);
});

it("geometries that are made at once take as many looks as one after the other", async () => {
  // Each one's block is memory, which takes the longer to find the more there are.
  const made = (isAtOnce: boolean) =>
    looks(100, async ({ client, one, other }) => (count) => {
      const make = (context: Context, id: number): Promise<Geometry> =>
        client.createGeometry([one.endpoint, other.endpoint], { id, context });
      const all: Promise<Geometry>[] = isAtOnce ? repeated(count, (id) => make(one, id)) : [];
      const pairs = async (): Promise<void> => {
        for (let id = 0; id < count; id++) {
          if (!isAtOnce) all.push(make(one, id));
          await make(other, id);
          await new Promise(setImmediate);
        }
      };
      return pairs().then(() => Promise.all(all));
    });
  expect(await made(true)).toBeLessThan(1.25 * (await made(false)));
});

const TIMEOUT = { timeout: 20 };
const ENDS: [name: string, code: string, end: (pair: Pair, geometry: Geometry) => Promise<unknown>][] = [
  ["its timeout has passed", "PAMIR_TIMEDOUT", (_, geometry) => geometry.barrier(TIMEOUT)],
  [
    "its signal is aborted",
    "PAMIR_CANCELED",
    (_, geometry) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      return geometry.barrier({ signal: controller.signal });
    },
  ],
  [
    "a handler throws",
    "",
    ({ one, other }, geometry) => {
      one.dispatch(1, () => {
        throw new RangeError("not today");
      });
      setTimeout(() => other.sendImmediate(one.endpoint, 1), 100);
      return geometry.barrier();
    },
  ],
];

it.each(ENDS)("the promise that advances ends because %s: another one goes on", (_, code, end) =>
  withPair(async (pair) => {
    const [first, second] = await geometries(pair);
    const ended = rejectionOf(end(pair, first));
    const late = rejectionOf(first.barrier(TIMEOUT));
    const others = repeated(3, () => first.barrier({ timeout: PATIENCE }));
    const { code: got, text } = await ended;
    if (code !== "") expect(got).toBe(code);
    else expect(text).toContain("not today");
    expect(await late).toMatchObject({ code: "PAMIR_TIMEDOUT" });
    await Promise.all(repeated(5, () => second.barrier({ timeout: PATIENCE })));
    await Promise.all(others);
  }),
);

it("a promise that does not advance ends at its timeout, and by its signal", () =>
  withPair(async (pair) => {
    const [first, second] = await geometries(pair);
    const controller = new AbortController();
    const leading = first.barrier({ timeout: PATIENCE });
    const late = rejectionOf(first.amGather({ dispatch: 1, send: Int32Array.of(1) }, TIMEOUT));
    const canceled = rejectionOf(first.barrier({ signal: controller.signal }));
    setTimeout(() => controller.abort(), 20);
    expect(await late).toMatchObject({
      code: "PAMIR_TIMEDOUT",
      text: "amGather() of rank 0 still waits for rank 1 (context 1 of task 0)",
      cause: { message: expect.stringContaining("not over after 20 ms") },
    });
    expect(await canceled).toMatchObject({ code: "PAMIR_CANCELED" });
    await Promise.all([leading, second.barrier({ timeout: PATIENCE })]);
  }));

it("a promise that finds its end as it begins wakes the one that advances", () =>
  withPair(async (pair) => {
    const [first, second] = await geometries(pair);
    const { client, one } = pair;
    const third = client.createContext();
    third.close();
    const leading = first.barrier({ timeout: PATIENCE });
    // Until it sleeps.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const refused = await rejectionOf(
      client.createGeometry([one.endpoint, third.endpoint], { context: one, timeout: PATIENCE }),
    );
    expect(refused.code).toBe("PAMIR_SHUTDOWN");
    await Promise.all([leading, second.barrier({ timeout: PATIENCE })]);
  }));

it("an interrupt, and a close, end all promises", () =>
  withPair(async (pair) => {
    const [first] = await geometries(pair);
    const interrupted = repeated(3, () => rejectionOf(first.barrier()));
    setTimeout(() => pair.job.interrupt(0), 20);
    for (const { code } of await Promise.all(interrupted)) expect(code).toBe("PAMIR_INTERRUPTED");
    const closed = repeated(3, () => rejectionOf(first.barrier()));
    const made = rejectionOf(
      pair.client.createGeometry([pair.one.endpoint, pair.other.endpoint], { context: pair.one }),
    );
    setTimeout(() => pair.one.close(), 20);
    for (const { code } of await Promise.all([...closed, made])) expect(code).toBe("PAMIR_CLOSED");
  }));

// A member ends at each step of what geometries do: the others hear of it, none waits for ever, the memory comes back, and the
// next geometry works.
import { describe, expect, it } from "vitest";
import { EAGAIN, type Geometry, type MemRegion, PamiError, type Result, SHUTDOWN, SUCCESS } from "../../src/index.js";
import type { Task } from "../../src/protocol/task.js";
// Loaded before the members call: to load code takes longer than all else.
import "../../src/pami/extensions/extensions.js";
import { byEffort, SEED, sample } from "../support/effort.js";
import { type Carrier, type Mortal, MortalJob } from "../support/mortal-members.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";

const SIZE = 4;

/** What a member does while one of them may end. It returns after each operation that has worked, or throws. */
type Act = (geometry: Geometry, member: Mortal) => Promise<unknown>;

interface Scenario {
  readonly name: string;
  readonly carriers: readonly Carrier[];
  readonly act: Act;
  /** Whether what acts is a geometry that is there. Otherwise it is made meanwhile. */
  readonly isMade: boolean;
}

const BOTH: readonly Carrier[] = ["one memory", "ports"];
const SHARED: readonly Carrier[] = ["one memory"];

/** Values whose sum tells who has taken part. */
const sums = async (geometry: Geometry, length: number, algorithm?: string): Promise<void> => {
  const send = new Int32Array(length).fill(geometry.rank + 1);
  const sum = await geometry.allreduce({ send, operation: "sum", ...(algorithm === undefined ? {} : { algorithm }) });
  const { size } = geometry;
  if (sum.some((value) => value !== (size * (size + 1)) / 2)) throw new Error(`wrong sum: ${sum[0]}`);
};

const broadcast = async (geometry: Geometry, root: number, length: number, algorithm?: string): Promise<void> => {
  const buffer = new Int32Array(length).fill(geometry.rank === root ? 77 : 0);
  await geometry.broadcast({ buffer, root, ...(algorithm === undefined ? {} : { algorithm }) });
  if (buffer.some((value) => value !== 77)) throw new Error(`wrong bytes: ${buffer[0]}`);
};

const gathered = async (geometry: Geometry, length: number): Promise<void> => {
  const all = await geometry.gather({ send: new Int32Array(length).fill(geometry.rank), root: 1 });
  if (all?.some((value, place) => value !== Math.floor(place / length))) throw new Error("wrong blocks");
};

/** Takes the memory that a task can have. */
function takeAll({ regions }: Task): MemRegion[] {
  const taken: MemRegion[] = [];
  for (let bytes = 2 ** 22; bytes >= 4096; bytes /= 4) {
    try {
      for (;;) taken.push(regions.create(bytes));
    } catch {
      // There is none of that length any more.
    }
  }
  return taken;
}

/** What each member has for each: its rank, and the other's. */
const blocksOf = (geometry: Geometry, length: number): Int32Array =>
  Int32Array.from({ length: geometry.size * length }, (_, i) => 100 * geometry.rank + Math.floor(i / length));

const expectBlocks = (is: Int32Array, length: number, expected: (rank: number) => number): void => {
  const wrong = is.findIndex((value, i) => value !== expected(Math.floor(i / length)));
  if (wrong >= 0) throw new Error(`wrong block: ${is[wrong]} at ${wrong}`);
};

/** Blocks of so many elements that go to a root, and from another one. */
const rooted = async (geometry: Geometry, length: number): Promise<void> => {
  const { rank } = geometry;
  const all = await geometry.gather({ send: new Int32Array(length).fill(rank), root: 1 });
  if (rank === 1) expectBlocks(all as Int32Array, length, (other) => other);
  const receive = new Int32Array(length);
  await geometry.scatter({ send: rank === 2 ? blocksOf(geometry, length) : null, receive, root: 2 });
  expectBlocks(receive, length, () => 200 + rank);
};

/** Blocks of so many elements from all to all. */
const mutual = async (geometry: Geometry, length: number): Promise<void> => {
  const { rank, size } = geometry;
  const all = await geometry.allgather({ send: new Int32Array(length).fill(rank) });
  expectBlocks(all, length, (other) => other);
  expectBlocks(await geometry.alltoall({ send: blocksOf(geometry, length) }), length, (other) => 100 * other + rank);
  const counts = new Array<number>(size).fill(length);
  const receive = new Int32Array(size * length);
  const given = { send: blocksOf(geometry, length), receive, sendCounts: counts, receiveCounts: counts };
  expectBlocks(await geometry.alltoallv(given), length, (other) => 100 * other + rank);
};

/** Sums up to each member, and of a part for each. */
const partial = async (geometry: Geometry, length: number): Promise<void> => {
  const { rank, size } = geometry;
  const upTo = await geometry.scan({ send: new Int32Array(length).fill(1), operation: "sum" });
  expectBlocks(upTo, length, () => rank + 1);
  const own = await geometry.reduceScatter({ send: blocksOf(geometry, length), operation: "sum" });
  expectBlocks(own, length, () => size * rank + (100 * size * (size - 1)) / 2);
};

/** One member begins active messages of all kinds; the others are in a barrier meanwhile, which it joins at the end. */
const active = async (geometry: Geometry): Promise<void> => {
  const { rank, size } = geometry;
  const [TOLD, ASKED] = [1, 2];
  let told = 0;
  geometry.dispatch(TOLD, ({ payload }) => {
    told += payload.length;
  });
  geometry.dispatch(ASKED, () => Int32Array.of(rank, 1));
  const begin = async (): Promise<void> => {
    const send = Int32Array.of(rank, 1);
    const all = await geometry.amGather({ dispatch: ASKED, send });
    expect([...all]).toEqual(Array.from({ length: size }, (_, other) => [other, 1]).flat());
    const sum = await geometry.amReduce({ dispatch: ASKED, send, operation: "sum" });
    expect([...sum]).toEqual([(size * (size - 1)) / 2, size]);
    await geometry.amBroadcast({ dispatch: TOLD, payload: new Uint8Array(10) });
    await geometry.amScatter({ dispatch: TOLD, send: new Uint8Array(20 * size) });
  };
  try {
    if (rank === 1) await begin();
  } finally {
    await geometry.barrier(); // The others are in it, also where the root has heard of an end.
  }
  if (told > 30) throw new Error(`${told} bytes came`);
};

/** Geometries of some of the members. */
const parts = async (geometry: Geometry): Promise<void> => {
  const made: Geometry[] = [];
  try {
    made.push(await geometry.split(geometry.rank % 2));
    made.push(await geometry.splitByNode());
    for (const part of made) await sums(part, 2);
  } finally {
    for (const part of made) part.close();
  }
};

const counted = async (geometry: Geometry): Promise<void> => {
  const region = await geometry.shareRegion(64);
  try {
    const counter = await geometry.createCounter({ root: 1 });
    try {
      const number = await counter.next();
      const all = await geometry.allgather({ send: Float64Array.of(Number(number)) });
      expect([...all].sort()).toEqual(geometry.endpoints.map((_, i) => i));
    } finally {
      await counter.close();
    }
  } finally {
    await region.close();
  }
};

const exchanged = async (geometry: Geometry): Promise<void> => {
  const grid = await geometry.createGrid({ size: [2 * geometry.size], periodic: true });
  try {
    for (let step = 0; step < 2; step++) await grid.exchange();
  } finally {
    await grid.close();
  }
};

const aggregated = async (geometry: Geometry): Promise<void> => {
  let came = 0;
  const onItems = ({ length }: Int32Array): void => {
    came += length;
  };
  const aggregator = await geometry.createAggregator({ type: Int32Array, onItems });
  try {
    for (let to = 0; to < geometry.size; to++) {
      const result = aggregator.push(to, Int32Array.of(to));
      if (result === SHUTDOWN) throw new PamiError("PAMIR_SHUTDOWN", `member ${to} has ended`);
      expect(result).toBe(SUCCESS);
    }
    await aggregator.finish();
    expect(came).toBe(geometry.size);
  } finally {
    await aggregator.close();
  }
};

/** Messages that no lane takes whole: there is no memory for a larger one. */
const squeezed = async (geometry: Geometry, { task }: Mortal): Promise<void> => {
  const items = 1500;
  let came = 0;
  const onItems = ({ length }: Int32Array): void => {
    came += length;
  };
  const taken = takeAll(task);
  try {
    const aggregator = await geometry.createAggregator({ type: Int32Array, onItems });
    try {
      for (let item = 0; item < items; item++) {
        for (let to = 0; to < geometry.size; to++) {
          while (aggregator.push(to, Int32Array.of(item)) === EAGAIN) await aggregator.whenRoom(to);
        }
      }
      await aggregator.finish();
      expect(came).toBe(items * geometry.size);
    } finally {
      await aggregator.close();
    }
  } finally {
    for (const region of taken) region.close();
  }
};

const SCENARIOS: readonly Scenario[] = [
  { name: "creation", carriers: BOTH, isMade: false, act: (geometry) => broadcast(geometry, 1, 2) },
  {
    name: "operations with inline bytes",
    carriers: SHARED,
    isMade: true,
    act: async (geometry) => {
      await sums(geometry, 2);
      await geometry.barrier();
      await broadcast(geometry, 2, 2);
    },
  },
  {
    name: "operations by regions",
    carriers: SHARED,
    isMade: true,
    act: async (geometry, { task }) => {
      const region = task.regions.create(4000);
      try {
        const view = new Int32Array(region.bytes.buffer, region.bytes.byteOffset, 1000);
        view.fill(geometry.rank === 2 ? 7 : 0);
        await geometry.broadcast({ buffer: view, root: 2 });
        if (view.some((value) => value !== 7)) throw new Error("wrong bytes");
        await broadcast(geometry, 1, 500);
      } finally {
        region.close();
      }
    },
  },
  { name: "reductions by slices", carriers: SHARED, isMade: true, act: (geometry) => sums(geometry, 500, "slices") },
  {
    name: "short messages",
    carriers: BOTH,
    isMade: true,
    act: async (geometry) => {
      await sums(geometry, 100, "recursive-doubling");
      await broadcast(geometry, 1, 10, "binomial");
    },
  },
  {
    name: "long messages",
    carriers: BOTH,
    isMade: true,
    act: async (geometry) => {
      await broadcast(geometry, 2, 5000, "binomial");
      await sums(geometry, 6000, "rabenseifner");
    },
  },
  {
    name: "operations without memory",
    carriers: BOTH,
    isMade: true,
    act: async (geometry, { task }) => {
      const taken = takeAll(task);
      try {
        await Promise.all([
          broadcast(geometry, 2, 200),
          sums(geometry, 500),
          broadcast(geometry, 0, 5000),
          sums(geometry, 6000),
          gathered(geometry, 300),
        ]);
      } finally {
        for (const region of taken) region.close();
      }
    },
  },
  { name: "blocks of a root, inline or short", carriers: BOTH, isMade: true, act: (geometry) => rooted(geometry, 2) },
  { name: "long blocks of a root", carriers: BOTH, isMade: true, act: (geometry) => rooted(geometry, 5000) },
  { name: "blocks of all, inline or short", carriers: BOTH, isMade: true, act: (geometry) => mutual(geometry, 2) },
  { name: "long blocks of all", carriers: BOTH, isMade: true, act: (geometry) => mutual(geometry, 5000) },
  { name: "scan and reduceScatter", carriers: BOTH, isMade: true, act: (geometry) => partial(geometry, 50) },
  { name: "active messages", carriers: BOTH, isMade: true, act: active },
  { name: "close", carriers: BOTH, isMade: true, act: async (geometry) => geometry.close() },
  { name: "split() and splitByNode()", carriers: BOTH, isMade: true, act: parts },
  { name: "a shared region and a counter", carriers: BOTH, isMade: true, act: counted },
  { name: "a grid", carriers: BOTH, isMade: true, act: exchanged },
  { name: "an aggregator", carriers: BOTH, isMade: true, act: aggregated },
  { name: "an aggregator without memory", carriers: BOTH, isMade: true, act: squeezed },
];

/** Kernel calls that a member makes if it does not end. */
async function run(
  { act, isMade }: Scenario,
  carrier: Carrier,
  victim: number,
  step: number,
): Promise<number | undefined> {
  const job = new MortalJob(SIZE, carrier);
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const made = new Map<Mortal, Geometry>();
    const make = async (member: Mortal): Promise<void> => {
      made.set(member, await member.geometry(endpoints));
    };
    if (isMade) await job.outcomes(make);
    const mortal = job.members[victim] as Mortal;
    mortal.calls = 0;
    mortal.end = step;
    const outcomes = await job.outcomes(async (member) => {
      if (!isMade) await make(member);
      await act(made.get(member) as Geometry, member);
    });
    const { calls, isDead } = mortal;
    mortal.end = Number.POSITIVE_INFINITY;
    if (!isDead) {
      for (const outcome of outcomes.values()) expect(outcome).toBeUndefined();
      job.kill(mortal);
    }
    for (const outcome of outcomes.values()) {
      if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN" });
    }
    if (!isMade) await expectSame(job, made);
    await expectGoingOn(job, made);
    return isDead ? undefined : calls;
  } finally {
    await job.close();
  }
}

/** Those that have the geometry find it failed, unless all that live have it. */
async function expectSame(job: MortalJob, made: ReadonlyMap<Mortal, Geometry>): Promise<void> {
  const ended = job.members.filter(({ isDead }) => isDead).map(({ number }) => `context 0 of task ${number} has ended`);
  const having = job.living.filter((member) => made.has(member));
  if (having.length === job.living.length) return;
  const outcomes = await job.outcomes((member) => (made.get(member) as Geometry).barrier(), having);
  for (const outcome of outcomes.values()) {
    expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN" });
    expect(ended.some((text) => (outcome as Error).message.includes(text))).toBe(true);
  }
}

/** No region of a geometry is left, once the members that live have given back what is idle. */
async function expectNothingKept(job: MortalJob): Promise<void> {
  for (let round = 0; round < 2; round++) {
    await job.quiet();
    for (const { task } of job.living) task.reclaim();
  }
  expect(job.regionBytes()).toEqual([]);
}

/** The members that live make the next geometry, and use it; then no region of a geometry is left. */
async function expectGoingOn(job: MortalJob, made: ReadonlyMap<Mortal, Geometry>): Promise<void> {
  const endpoints = job.living.map(({ endpoint }) => endpoint);
  const next = await job.outcomes(async (member) => {
    const geometry = await member.geometry(endpoints, 1);
    await sums(geometry, 2);
    await sums(geometry, 600);
    geometry.close();
  });
  for (const outcome of next.values()) expect(outcome).toBeUndefined();
  for (const member of job.living) made.get(member)?.close();
  await expectNothingKept(job);
}

const ROWS = SCENARIOS.flatMap((scenario) =>
  scenario.carriers.flatMap((carrier) =>
    [0, 1, 2, 3].map((victim) => [scenario.name, carrier, victim, scenario] as const),
  ),
);

/** What is drawn for a random run. */
interface Draw {
  readonly size: number;
  readonly scenario: Scenario;
  readonly carrier: Carrier;
  readonly ends: readonly { readonly victim: number; readonly step: number }[];
}

/** Members advance in a random order, and each may be late. Some may give up making the geometry. */
async function runAtRandom({ size, scenario, carrier, ends }: Draw, random: (below: number) => number): Promise<void> {
  const job = new MortalJob(size, carrier);
  try {
    job.order = () => Array.from({ length: size }, () => job.members[random(size)] as Mortal);
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const made = new Map<Mortal, Geometry>();
    const gaveUp = new Set<Mortal>();
    const make = async (member: Mortal, rounds?: number): Promise<void> => {
      await member.pause(random(30));
      made.set(member, await member.geometry(endpoints, 0, rounds));
    };
    if (scenario.isMade) await job.outcomes((member) => make(member));
    const isKnown = random(2) === 0;
    const known = isKnown ? await job.outcomes((member) => member.geometry(endpoints, 2)) : new Map<Mortal, Geometry>();
    for (const { victim, step } of ends) {
      const mortal = job.members[victim] as Mortal;
      mortal.calls = 0;
      mortal.end = step;
    }
    // One that gives up is awaited by those that have not heard of it: they give up later.
    const isImpatient = job.members.map(() => random(6) === 0);
    const patience = isImpatient.includes(true) ? 500 : undefined;
    const outcomes = await job.outcomes(async (member) => {
      if (!scenario.isMade) await make(member, isImpatient[member.number] ? random(30) : patience);
      await scenario.act(made.get(member) as Geometry, member);
    });
    for (const member of job.members) member.end = Number.POSITIVE_INFINITY;
    for (const [member, outcome] of outcomes) {
      if (!(outcome instanceof Error)) continue;
      const { code } = outcome as Error & { code: string };
      if (code === "PAMIR_TIMEDOUT") gaveUp.add(member);
      else if (code !== "PAMIR_SHUTDOWN") throw outcome;
    }
    const [culprit] = [...gaveUp, ...job.members.filter(({ isDead }) => isDead)];
    if (culprit === undefined && outcomes.size > 0) {
      for (const outcome of outcomes.values()) expect(outcome).toBeUndefined();
    }
    if (!scenario.isMade && gaveUp.size === 0) await expectSame(job, made);
    for (const member of job.living) (known.get(member) as Geometry | undefined)?.close();
    if (job.living.length > 0) await expectGoingOn(job, made);
  } finally {
    await job.close();
  }
}

it(`members end at random, and advance in any order (${replayNote()})`, { timeout: 240_000 }, async () => {
  for (let round = 0; round < byEffort({ quick: 10, normal: 30, deep: 500 }); round++) {
    const random = randomOf(SEED + round);
    const size = 3 + random(7);
    const scenario = SCENARIOS[random(3) === 0 ? 0 : random(SCENARIOS.length)] as Scenario;
    const carrier = scenario.carriers[random(scenario.carriers.length)] as Carrier;
    const ends = Array.from({ length: random(3) }, () => ({ victim: random(size), step: random(60) }));
    try {
      await runAtRandom({ size, scenario, carrier, ends }, random);
    } catch (error) {
      const drawn = `${size} members, ${scenario.name}, ${carrier}, ends ${JSON.stringify(ends)}`;
      throw new Error(`round ${round}: ${drawn}`, { cause: error });
    }
  }
});

/** One member has ended, and the others shrink the geometry; another one ends meanwhile. */
async function runShrink(carrier: Carrier, victim: number, step: number): Promise<number | undefined> {
  const job = new MortalJob(SIZE + 1, carrier);
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const made = new Map<Mortal, Geometry>();
    await job.outcomes(async (member) => made.set(member, await member.geometry(endpoints)));
    const mortal = job.members[victim] as Mortal;
    mortal.calls = 0;
    mortal.end = step;
    job.kill(job.members[SIZE] as Mortal);
    const shrunk = await job.outcomes((member) => (made.get(member) as Geometry).shrink());
    const { calls, isDead } = mortal;
    mortal.end = Number.POSITIVE_INFINITY;
    if (!isDead) job.kill(mortal);
    const lists = new Set<string>();
    for (const outcome of shrunk.values()) {
      if (outcome instanceof Error) throw outcome;
      lists.add(`${outcome.endpoints}`);
    }
    // All have the same members. It may have ended behind that.
    expect(lists.size).toBe(1);
    const again = await job.outcomes(async (member) => {
      const smaller = await (shrunk.get(member) as Geometry).shrink();
      expect([...smaller.endpoints]).toEqual(job.living.map(({ endpoint }) => endpoint));
      await sums(smaller, 2);
      smaller.close();
      (shrunk.get(member) as Geometry).close();
    });
    for (const outcome of again.values()) expect(outcome).toBeUndefined();
    await expectGoingOn(job, made);
    return isDead ? undefined : calls;
  } finally {
    await job.close();
  }
}

describe.each(BOTH)("%s", (carrier) => {
  it.each([
    [0, 1, 2],
    [2, 0, 1],
  ])("members that close one after another leave no memory behind: %i, %i, %i", async (...order) => {
    const job = new MortalJob(3, carrier);
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const made = await job.outcomes((member) => member.geometry(endpoints));
      for (const number of order) {
        (made.get(job.members[number] as Mortal) as Geometry).close();
        await job.quiet();
      }
      await expectNothingKept(job);
    } finally {
      await job.close();
    }
  });

  it.each([0, 1, 2])("a context that closes with open geometries leaves no memory behind: %i", async (closing) => {
    const job = new MortalJob(3, carrier);
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const made: Map<Mortal, Geometry | Error>[] = [];
      for (let id = 0; id < 3; id++) made.push(await job.outcomes((member) => member.geometry(endpoints, id)));
      const [some] = made as [Map<Mortal, Geometry>];
      await job.outcomes((member) => broadcast(some.get(member) as Geometry, closing, 10));
      const mortal = job.members[closing] as Mortal;
      // What it has published stays readable.
      const last = job.outcomes((member) => broadcast(some.get(member) as Geometry, closing, 10));
      await job.round();
      mortal.core.close();
      await last;
      const others = job.members.filter((member) => member !== mortal);
      const after = await job.outcomes((member) => (some.get(member) as Geometry).barrier(), others);
      for (const outcome of after.values()) expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN" });
      for (const geometries of made) for (const member of others) (geometries.get(member) as Geometry).close();
      await expectNothingKept(job);
    } finally {
      await job.close();
    }
  });

  it("idle scratch memory goes to a region that finds no other", async () => {
    const job = new MortalJob(2, carrier, { heapBytes: 2 ** 21, regions: 1024 });
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const made = await job.outcomes((member) => member.geometry(endpoints));
      await job.outcomes((member) => sums(made.get(member) as Geometry, 2 ** 14));
      const [{ task }] = job.members as [Mortal];
      const blocks = carrier === "ports" ? 0 : 4096;
      const [, , idle] = job.regionBytes().find(([, owner]) => owner === 0) as [number, number, number];
      expect(idle - blocks).toBeGreaterThanOrEqual(2 ** 16);
      let bytes = 0;
      const fill = (): void => {
        for (;;) bytes += task.regions.create(4096).length;
      };
      expect(fill).toThrow(/no 4096 bytes/);
      const [, , all] = job.regionBytes().find(([, owner]) => owner === 0) as [number, number, number];
      expect(all).toBe(bytes + blocks);
    } finally {
      await job.close();
    }
  });
});

it.each([
  ["there is memory: what it has left is read later, too", false, SUCCESS],
  ["the heap is full: what it has left is read at once, and later operations fail", true, SHUTDOWN],
] as const)("a member ends that is ahead, and %s", async (_, isFull, late) => {
  const job = new MortalJob(3, "one memory", { heapBytes: 2 ** 21, regions: 1024 });
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const made = (await job.outcomes((member) => member.geometry(endpoints))) as Map<Mortal, Geometry>;
    const of = (member: Mortal): Geometry => made.get(member) as Geometry;
    const [one, other, victim] = job.members as [Mortal, Mortal, Mortal];
    /** The next broadcast of the victim, at one member. */
    const begin = (member: Mortal, value: number, results: Result[]): Int32Array => {
      const buffer = Int32Array.of(value);
      const onDone = (__: unknown, result: Result): void => void results.push(result);
      expect(of(member).collective("broadcast", { buffer, root: 2, onDone })).toBe(SUCCESS);
      return buffer;
    };
    const [own, first, second]: Result[][] = [[], [], []];
    begin(victim, 7, own as Result[]);
    begin(victim, 8, own as Result[]);
    job.kill(victim);
    const held = isFull ? takeAll(one.task) : [];
    const before = [one, other].map((member) => begin(member, 0, first as Result[]));
    await job.quiet();
    expect(first).toEqual([SUCCESS, SUCCESS]);
    expect(before).toEqual([Int32Array.of(7), Int32Array.of(7)]);
    const behind = [one, other].map((member) => begin(member, 0, second as Result[]));
    await job.quiet();
    expect(second).toEqual([late, late]);
    expect(behind).toEqual(behind.map(() => Int32Array.of(isFull ? 0 : 8)));
    for (const region of held) region.close();
    const later = await job.outcomes((member) => of(member).barrier());
    for (const outcome of later.values()) {
      const text = isFull ? "no memory for what context 0 of task 2 has left" : "context 0 of task 2 has ended";
      expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN", message: expect.stringContaining(text) });
    }
    await expectGoingOn(job, made);
  } finally {
    await job.close();
  }
});

it("a context closes, and its memory is written anew, before the last reader has read its part of a result", async () => {
  const job = new MortalJob(2, "one memory");
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const made = await job.outcomes((member) => member.geometry(endpoints));
    const results = new Map<Mortal, Result>();
    const views = job.members.map((member) => {
      const { buffer, byteOffset } = member.task.regions.create(8000).bytes;
      const [send, receive] = [
        new Int32Array(buffer, byteOffset, 1000),
        new Int32Array(buffer, byteOffset + 4000, 1000),
      ];
      send.fill(1);
      const onDone = (_: unknown, result: Result): void => void results.set(member, result);
      const parameters = { send, receive, operation: "sum", algorithm: "slices", onDone } as const;
      (made.get(member) as Geometry).collective("allreduce", parameters);
      return receive;
    });
    const [closing, reading] = job.members as [Mortal, Mortal];
    closing.step(); // It has read all that it needs, and the other one has not.
    closing.core.close();
    views[0]?.fill(-1);
    await job.quiet();
    expect(results.get(reading)).toBe(SHUTDOWN);
    (made.get(reading) as Geometry).close();
  } finally {
    await job.close();
  }
});

/** Runs it without an end, then with an end at each step in turn, or at so many of them. */
async function atEachStep(run: (step: number) => Promise<number | undefined>, seed: number): Promise<void> {
  const calls = (await run(Number.POSITIVE_INFINITY)) as number;
  const random = randomOf(seed);
  const most = byEffort({ quick: 5, normal: 15, deep: 100_000 });
  for (let step = 0; step < calls; step += 1 + random(Math.max(1, Math.floor((2 * calls) / most)))) {
    try {
      await run(step);
    } catch (error) {
      throw new Error(`step ${step} of ${calls}`, { cause: error });
    }
  }
}

const DRAWN = sample(ROWS, byEffort({ quick: 4, normal: 16, deep: ROWS.length }), "rows");

describe("a member ends at each call of its kernel", () => {
  it.each(DRAWN)(`%s, %s, member %i (${replayNote()})`, (_, carrier, victim, scenario) =>
    atEachStep((step) => run(scenario, carrier, victim, step), SEED ^ victim),
  );

  it.each(BOTH.flatMap((carrier) => [0, 1, 2, 3].map((victim) => [carrier, victim] as const)))(
    `shrink, %s, member %i (${replayNote()})`,
    (carrier, victim) => atEachStep((step) => runShrink(carrier, victim, step), SEED ^ victim),
  );
});

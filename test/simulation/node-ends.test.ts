// A whole node that falls silent in the midst of collective operations, in virtual time: each member on the other nodes
// hears of it in bounded time, shrink() gives them the geometry of all that are left, and that works.
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Geometry } from "../../src/index.js";
import { geometryOf, type Members, tasksOf } from "../support/collective-rig.js";
import { scaled } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

/** Virtual microseconds without an answer after which a node is given up. */
const SILENCE = 1_000_000;
/** Virtual milliseconds within which each wait is over. A second node may fall silent while the first one is missed. */
const TURNS_MAX = (10 * SILENCE) / 1000;

type Operate = (geometry: Geometry) => Promise<unknown>;

const filled = ({ rank }: Geometry, length: number): Int32Array => new Int32Array(length).fill(rank + 1);

/** Of all that are left, one may be left. */
const second = ({ size }: Geometry): number => Math.min(1, size - 1);

const OPERATIONS: readonly Operate[] = [
  (geometry) => geometry.barrier(),
  (geometry) => geometry.broadcast({ buffer: new Int32Array(4), root: geometry.size - 1 }),
  (geometry) => geometry.broadcast({ buffer: new Int32Array(20_000), root: second(geometry) }),
  (geometry) => geometry.reduce({ send: filled(geometry, 100), operation: "sum" }),
  (geometry) => geometry.allreduce({ send: filled(geometry, 2), operation: "sum" }),
  (geometry) => geometry.allreduce({ send: Float64Array.of(geometry.rank, 1), operation: "sum" }),
  (geometry) => geometry.allreduce({ send: filled(geometry, 9000), operation: "max" }),
  (geometry) => geometry.gather({ send: filled(geometry, 3000), root: second(geometry) }),
  (geometry) => geometry.allgather({ send: filled(geometry, 3) }),
  (geometry) => geometry.allgather({ send: filled(geometry, 3000) }),
  (geometry) => geometry.alltoall({ send: filled(geometry, 7 * geometry.size) }),
  (geometry) => geometry.scan({ send: filled(geometry, 50), operation: "sum" }),
  (geometry) => geometry.reduceScatter({ send: filled(geometry, 50 * geometry.size), operation: "sum" }),
];

/** What promises come to, of members that go on. Throws if that takes too long. */
async function outcomes<T>(given: Members, promises: readonly Promise<T>[]): Promise<PromiseSettledResult<T>[]> {
  let left = promises.length;
  const settled = (): void => {
    left--;
  };
  for (const promise of promises) promise.then(settled, settled);
  for (let turn = 0; left > 0; turn++) {
    if (turn > TURNS_MAX) throw new Error(`${left} of ${promises.length} members wait for ever`);
    for (const { context } of given.members) context.advance();
    await given.turn();
    // What waits have ended goes on, in a turn of the event loop.
    if (turn % 16 === 15) await nextTurn();
  }
  return Promise.allSettled(promises);
}

async function run(seed: number): Promise<void> {
  const random = randomOf(seed);
  const [tasksPerNode, nodes] = [2 + random(3), 2 + random(3)];
  const tasks = tasksPerNode * nodes - random(2);
  const limits = { tasks, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 64, fifos: 2, slots: 8 };
  const faults = { loss: random(2) / 50, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
  const job = new NetworkedJob({ seed, limits, kernels: ["wasm", "ts"], tasksPerNode, silence: SILENCE, faults });
  const all = tasksOf(job);
  const geometries = await geometryOf(all);
  const silent = random(nodes);
  const nodeOf = (task: number): number => Math.floor(task / tasksPerNode);
  const living = geometries.map((_, task) => task).filter((task) => nodeOf(task) !== silent);
  const rest: Members = { ...all, members: living.map((task) => all.members[task] as Members["members"][number]) };
  const first = OPERATIONS[random(OPERATIONS.length)] as Operate;
  const then = OPERATIONS[random(OPERATIONS.length)] as Operate;
  const waits = geometries.map(async (geometry) => {
    await first(geometry);
    await then(geometry);
  });
  for (const wait of waits) wait.catch(() => {});
  // Some of the members that fall silent have taken their part, and some have not.
  const isLate = geometries.map(() => random(3) === 0);
  for (let turns = random(8); turns > 0; turns--) {
    for (const [task, { context }] of all.members.entries()) if (!isLate[task]) context.advance();
    // Steps of the network that are smaller than a hop.
    job.run(random(3) === 0 ? 1000 : 1 + random(30));
    await undefined;
  }
  job.endNode(silent * tasksPerNode);
  const heard = await outcomes(
    rest,
    living.map((task) => waits[task] as Promise<void>),
  );
  for (const one of heard) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "PAMIR_SHUTDOWN" });
  const geometriesLeft = living.map((task) => geometries[task] as Geometry);
  const barriers = await outcomes(
    rest,
    geometriesLeft.map((geometry) => geometry.barrier()),
  );
  for (const one of barriers) expect(one).toMatchObject({ status: "rejected", reason: { code: "PAMIR_SHUTDOWN" } });
  const shrunk = await outcomes(
    rest,
    geometriesLeft.map((geometry) => geometry.shrink()),
  );
  // Silence is no certain end: what is left goes on if it is the majority, or half with rank 0.
  const isMajority = 2 * living.length > geometries.length || (2 * living.length === geometries.length && silent > 0);
  if (!isMajority) {
    for (const one of shrunk) expect(one).toMatchObject({ status: "rejected", reason: { code: "PAMIR_MINORITY" } });
    for (const task of living) job.tasks[task]?.client.close();
    return;
  }
  const survivors = shrunk.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
  const endpoints = rest.members.map(({ context }) => context.endpoint);
  for (const survivor of survivors) expect([...survivor.endpoints]).toEqual(endpoints);
  for (const operate of [first, then, OPERATIONS[4] as Operate]) {
    for (const one of await outcomes(rest, survivors.map(operate))) if (one.status === "rejected") throw one.reason;
  }
  for (const task of living) job.tasks[task]?.client.close();
}

it(`a node falls silent in the midst of operations of all (${replayNote()})`, { timeout: 600_000 }, async () => {
  for (let round = 0; round < scaled(16); round++) {
    try {
      await run(SEED + round);
    } catch (error) {
      throw new Error(`round ${round}: seed ${SEED + round}`, { cause: error });
    }
  }
});

it("a node falls silent, and its process is found to have ended later: shrink() goes on then", async () => {
  const limits = { tasks: 2, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 64, fifos: 2, slots: 8 };
  const job = new NetworkedJob({ seed: SEED, limits, kernels: ["wasm", "ts"], silence: SILENCE });
  const all = tasksOf(job);
  const [, geometry] = (await geometryOf(all)) as [Geometry, Geometry];
  const rest: Members = { ...all, members: all.members.slice(1) };
  job.endNode(0);
  const [barrier] = await outcomes(rest, [geometry.barrier()]);
  expect(barrier).toMatchObject({ status: "rejected", reason: { code: "PAMIR_SHUTDOWN" } });
  const [silent] = await outcomes(rest, [geometry.shrink()]);
  expect(silent).toMatchObject({ status: "rejected", reason: { code: "PAMIR_MINORITY" } });
  job.tasks[1]?.node.lose(0, true);
  const [certain] = await outcomes(rest, [geometry.shrink()]);
  expect(certain).toMatchObject({ status: "fulfilled", value: { size: 1, rank: 0 } });
  job.tasks[1]?.client.close();
});

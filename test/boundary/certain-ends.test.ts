// A whole node ends. A launcher tells the agent of the other one that the node is lost, and that its tasks are gone, in any
// order, and maybe after silence was heard: half of the members without rank 0 go on, for they know that the others have ended.
import { expect, it } from "vitest";
import type { Geometry } from "../../src/index.js";
import { geometryOf, type Members, settled, tasksOf } from "../support/collective-rig.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 4, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 64, fifos: 2, slots: 8 };
/** Turns in which shrink() comes as far as it can. */
const TURNS = 200;

type Order = (node: Networked["node"]) => void;
const silence: Order = (node) => node.lose(0);
const lost: Order = (node) => node.lose(0, true);
const gone =
  (task: number): Order =>
  (node) =>
    node.confirm(task);

const ORDERS: readonly (readonly [string, readonly Order[]])[] = [
  ["lost, gone, gone", [lost, gone(0), gone(1)]],
  ["gone, gone, lost", [gone(0), gone(1), lost]],
  ["gone, lost, gone", [gone(0), lost, gone(1)]],
  ["the sibling's end first", [gone(1), lost, gone(0)]],
  ["lost, the sibling's end", [lost, gone(1)]],
  ["silence, lost, gone", [silence, lost, gone(1)]],
  ["silence, gone, gone", [silence, gone(0), gone(1)]],
];

interface Half {
  readonly job: NetworkedJob;
  readonly all: Members;
  /** The node that is left, and its tasks' geometries of all. */
  readonly node: Networked["node"];
  readonly geometries: Geometry[];
  readonly left: Members;
}

/** A job of two nodes, of which that with rank 0 has ended. @param isTold whether a launcher tells of each end */
async function halfOf(isTold: boolean): Promise<Half> {
  const job = new NetworkedJob({ seed: SEED, limits: LIMITS, kernels: ["wasm", "ts"], tasksPerNode: 2 });
  for (const { agent } of job.tasks) agent.isTold = isTold;
  const all = tasksOf(job);
  const geometries = (await geometryOf(all)).slice(2);
  const { node } = job.tasks[2] as Networked;
  job.endNode(0);
  return { job, all, node, geometries, left: { ...all, members: all.members.slice(2) } };
}

function closeLeft({ job }: Half): void {
  for (const { client } of job.tasks.slice(2)) client.close();
}

it.each(ORDERS)("%s: shrink() that waits between any two of these orders goes on with 2", async (_, orders) => {
  const half = await halfOf(true);
  const shrunk = half.geometries.map((geometry) => geometry.shrink());
  for (const one of shrunk) one.catch(() => {});
  for (const order of orders) {
    order(half.node);
    for (let turn = 0; turn < TURNS; turn++) {
      for (const { context } of half.left.members) context.advance();
      await half.all.turn();
    }
  }
  const sizes = (await settled(half.left, shrunk)).map((one) =>
    one.status === "fulfilled" ? one.value.size : one.reason,
  );
  expect(sizes).toEqual([2, 2]);
  closeLeft(half);
});

it("without a launcher, nothing is awaited: PAMIR_MINORITY", async () => {
  const half = await halfOf(false);
  const shrunk = half.geometries.map((geometry) => geometry.shrink());
  lost(half.node);
  for (const one of await settled(half.left, shrunk)) {
    expect(one).toMatchObject({ status: "rejected", reason: { code: "PAMIR_MINORITY" } });
  }
  closeLeft(half);
});

it("an end of which the launcher never tells: PAMIR_MINORITY, and the next shrink() knows what was told since", async () => {
  const half = await halfOf(true);
  lost(half.node);
  const first = half.geometries.map((geometry) => geometry.shrink());
  for (const one of await settled(half.left, first)) {
    expect(one).toMatchObject({ status: "rejected", reason: { code: "PAMIR_MINORITY" } });
  }
  gone(1)(half.node);
  const then = await settled(
    half.left,
    half.geometries.map((geometry) => geometry.shrink()),
  );
  expect(then.map((one) => (one.status === "fulfilled" ? one.value.size : one.reason))).toEqual([2, 2]);
  closeLeft(half);
});

// Operations in two levels: within nodes, and between their leaders, so that as few bytes as possible go between nodes. Each
// operation composes schedules of one level. A leader is the first member of its node, or the root.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule/schedule.js";
import {
  prefixSums,
  type ReductionShape,
  type RootedShape,
  type Shape,
  sumOf,
  type UniformShape,
  type VectorShape,
} from "../schedule/shape.js";
import { bruckAllgatherv } from "./allgather.js";
import { doublingAllreduce } from "./allreduce.js";
import { dissemination } from "./barrier.js";
import { binomialBroadcast } from "./broadcast.js";
import { linearGather } from "./gather.js";
import { foldOf, memberOf } from "./order.js";
import { binomialReduce, reduceInOrder } from "./reduce.js";

/** The placement of members: the number of each member's node, by rank. */
export interface Placement {
  readonly nodeOf: readonly number[];
}

/** Phases: within nodes, between their leaders, and within nodes again. */
const [IN, BETWEEN, OUT] = [2, 3, 4];

/** The placement, from the view of one member. */
class Nodes {
  /** The members of each node, in the order of ranks; nodes are in the order of their first members. */
  readonly all: readonly (readonly number[])[];
  readonly leaders: readonly number[];
  /** The place of this member's node among all nodes. */
  readonly own: number;
  /** The members of this node, this member's place among them, and the leader's place. */
  readonly members: readonly number[];
  readonly rank: number;
  readonly leader: number;
  readonly isLeader: boolean;

  constructor(nodeOf: readonly number[], rank: number, root = -1) {
    this.all = nodesOf(nodeOf);
    this.leaders = this.all.map((members) => (members.includes(root) ? root : (members[0] as number)));
    this.own = this.all.findIndex((members) => members.includes(rank));
    this.members = this.all[this.own] as readonly number[];
    this.rank = this.members.indexOf(rank);
    this.leader = this.members.indexOf(this.leaders[this.own] as number);
    this.isLeader = this.rank === this.leader;
  }

  /** The shape of an operation within this node. */
  get within(): { rank: number; size: number; root: number } {
    return { rank: this.rank, size: this.members.length, root: this.leader };
  }

  /** The shape of an operation between leaders. @param root the leader that is the root there */
  between(root = 0): { rank: number; size: number; root: number } {
    return { rank: this.own, size: this.all.length, root: this.leaders.indexOf(root) };
  }
}

function nodesOf(nodeOf: readonly number[]): number[][] {
  const nodes = new Map<number, number[]>();
  for (const [rank, node] of nodeOf.entries()) {
    const members = nodes.get(node);
    if (members === undefined) nodes.set(node, [rank]);
    else members.push(rank);
  }
  return [...nodes.values()];
}

/**
 * Whether partial sums of nodes keep the order of order.ts. They do if each node has consecutive ranks, and all nodes have the
 * same number of members, a power of two; and in some other placements. Otherwise leadersReduce() and leadersAllreduce() are
 * only for operations that commute, without rounding.
 */
export function nodesKeepOrder(nodeOf: readonly number[]): boolean {
  const nodes = nodesOf(nodeOf);
  const ranks = nodes.flat();
  if (ranks.some((rank, place) => rank !== place)) return false;
  const size = ranks.length;
  const begins = nodes.map(([first]) => first as number);
  const inTwoLevels = new Set(nodes.flatMap((members, node) => stepsOf([...members, begins[node + 1] ?? size])));
  for (const step of stepsOf([...begins, size])) inTwoLevels.add(step);
  return stepsOf([...ranks, size]).every((step) => inTwoLevels.has(step));
}

/** The steps of a reduction in the order of order.ts. @param begins the first rank of each operand, and the end of the last */
function stepsOf(begins: readonly number[]): string[] {
  const fold = foldOf(begins.length - 1);
  const steps: string[] = [];
  const step = (...places: number[]): void => void steps.push(places.map((place) => begins[place]).join());
  for (let pair = 0; pair < fold.pairs; pair++) step(2 * pair, 2 * pair + 1, 2 * pair + 2);
  for (let count = 1; count < fold.power; count *= 2) {
    for (let first = 0; first < fold.power; first += 2 * count) {
      step(...[first, first + count, first + 2 * count].map((operand) => memberOf(fold, operand)));
    }
  }
  return steps;
}

/** Barrier: members tell their leader that they have come, leaders tell each other, and then their members. */
export function leadersBarrier({ rank, nodeOf }: Shape & Placement): Schedule {
  const nodes = new Nodes(nodeOf, rank);
  const builder = new ScheduleBuilder();
  builder.add(signals(nodes, true), IN, nodes.members, {});
  if (nodes.isLeader) builder.add(dissemination(nodes.between()), BETWEEN, nodes.leaders, {});
  return builder.add(signals(nodes, false), OUT, nodes.members, {}).build();
}

/** Signals of all members to their leader, or the other way. */
function signals({ within: { rank, size, root } }: Nodes, isIn: boolean): Schedule {
  const builder = new ScheduleBuilder();
  for (let other = 0; other < size; other++) {
    if (rank === root ? other === root : other !== root) continue;
    if (isIn === (rank === root)) builder.hear(other);
    else builder.signal(other);
  }
  return builder.build();
}

/**
 * Broadcast: between leaders, then within nodes.
 * @param between the leaders' algorithm
 */
export function leadersBroadcast(
  { rank, root, bytes, nodeOf }: RootedShape & Placement,
  between = binomialBroadcast,
): Schedule {
  const nodes = new Nodes(nodeOf, rank, root);
  const builder = new ScheduleBuilder();
  const all = span(rank === root ? "send" : "receive", 0, bytes);
  if (nodes.isLeader) {
    builder.add(between({ ...nodes.between(root), bytes }), BETWEEN, nodes.leaders, { send: all, receive: all });
  }
  return broadcastWithin(builder, nodes, all).build();
}

/** The leader's bytes go to all members of its node. */
function broadcastWithin(builder: ScheduleBuilder, nodes: Nodes, all: Span): ScheduleBuilder {
  const schedule = binomialBroadcast({ ...nodes.within, bytes: all.bytes });
  return builder.add(schedule, OUT, nodes.members, { send: all, receive: all });
}

/** Reduces within nodes, to their leaders. @returns the leader's partial sum */
function reduceWithin(
  builder: ScheduleBuilder,
  nodes: Nodes,
  { bytes, elementBytes }: Pick<ReductionShape, "bytes" | "elementBytes">,
  result: Span,
): Span {
  const send = span("send", 0, bytes);
  if (nodes.members.length === 1) return send;
  const schedule = binomialReduce({ ...nodes.within, bytes, elementBytes });
  builder.add(schedule, IN, nodes.members, { send, receive: result });
  return result;
}

/** Reduction of partial sums: within nodes, then between leaders. nodesKeepOrder() says whether the order is kept. */
export function leadersReduce(shape: ReductionShape & Placement): Schedule {
  const { rank, root, bytes, elementBytes, nodeOf } = shape;
  const nodes = new Nodes(nodeOf, rank, root);
  const builder = new ScheduleBuilder();
  const result = rank === root || !nodes.isLeader ? span("receive", 0, bytes) : builder.scratch(bytes);
  const send = reduceWithin(builder, nodes, shape, result);
  if (nodes.isLeader) {
    const schedule = binomialReduce({ ...nodes.between(root), bytes, elementBytes });
    builder.add(schedule, BETWEEN, nodes.leaders, { send, receive: result });
  }
  return builder.build();
}

/**
 * Reduction of partial sums, whose result all get: within nodes, between leaders, then back. nodesKeepOrder() says whether the
 * order is kept.
 * @param between the leaders' algorithm: doublingAllreduce() for short vectors, rabenseifnerAllreduce() for long vectors
 */
export function leadersAllreduce(
  shape: Omit<ReductionShape, "root"> & Placement,
  between = doublingAllreduce,
): Schedule {
  const { rank, bytes, elementBytes, nodeOf } = shape;
  const nodes = new Nodes(nodeOf, rank);
  const builder = new ScheduleBuilder();
  const result = span("receive", 0, bytes);
  const send = reduceWithin(builder, nodes, shape, result);
  if (nodes.isLeader) {
    const schedule = between({ ...nodes.between(), bytes, elementBytes });
    builder.add(schedule, BETWEEN, nodes.leaders, { send, receive: result });
  }
  return broadcastWithin(builder, nodes, result).build();
}

/** Blocks that lie node by node, without gaps. */
interface Packed {
  /** The bytes of each node. */
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
  /** Where the block of each member begins, by rank. */
  readonly places: readonly number[];
}

function packed(nodes: Nodes, counts: readonly number[]): Packed {
  const places: number[] = [];
  let end = 0;
  for (const member of nodes.all.flat()) {
    places[member] = end;
    end += counts[member] as number;
  }
  const nodeCounts = nodes.all.map((members) => sumOf(members.map((member) => counts[member] as number)));
  return { counts: nodeCounts, offsets: prefixSums(nodeCounts), places };
}

/** Leaders get the blocks of their nodes, at their places in `all`. */
function gatherWithin(builder: ScheduleBuilder, nodes: Nodes, counts: readonly number[], at: Packed, all: Span): void {
  const schedule = linearGather({
    ...nodes.within,
    counts: nodes.members.map((member) => counts[member] as number),
    offsets: nodes.members.map((member) => at.places[member] as number),
  });
  const send = span("send", 0, counts[nodes.members[nodes.rank] as number] as number);
  builder.add(schedule, IN, nodes.members, { send, receive: all });
}

/** The blocks that a leader has of its own node. */
function ofNode(nodes: Nodes, at: Packed, all: Span): Span {
  return part(all, at.offsets[nodes.own] as number, at.counts[nodes.own] as number);
}

/**
 * Gather within nodes, allgather between leaders, broadcast within nodes. Blocks may differ in length.
 * @param between the leaders' algorithm: ringAllgather() for long blocks
 */
export function leadersAllgather(
  { rank, counts, offsets, nodeOf }: VectorShape & Placement,
  between = bruckAllgatherv,
): Schedule {
  const nodes = new Nodes(nodeOf, rank);
  const builder = new ScheduleBuilder();
  const at = packed(nodes, counts);
  const isInPlace = at.places.every((place, member) => place === offsets[member] || counts[member] === 0);
  const all = isInPlace ? span("receive", 0, sumOf(counts)) : builder.scratch(sumOf(counts));
  gatherWithin(builder, nodes, counts, at, all);
  allgatherBetween(builder, nodes, at, all, between);
  broadcastWithin(builder, nodes, all);
  if (isInPlace) return builder.build();
  for (const [member, place] of at.places.entries()) {
    const bytes = counts[member] as number;
    builder.copy(part(all, place, bytes), span("receive", offsets[member] as number, bytes));
  }
  return builder.build();
}

function allgatherBetween(
  builder: ScheduleBuilder,
  nodes: Nodes,
  at: Packed,
  all: Span,
  between: (shape: VectorShape) => Schedule,
): void {
  if (!nodes.isLeader) return;
  const schedule = between({ ...nodes.between(), counts: at.counts, offsets: at.offsets });
  builder.add(schedule, BETWEEN, nodes.leaders, { send: ofNode(nodes, at, all), receive: all });
}

/** The operands of all members, in one buffer. */
function operandsOf({ size, bytes }: UniformShape, nodes: Nodes, builder: ScheduleBuilder): Operands {
  const counts = new Array<number>(size).fill(bytes);
  return { counts, at: packed(nodes, counts), all: builder.scratch(nodes.isLeader ? size * bytes : 0) };
}

interface Operands {
  readonly counts: readonly number[];
  readonly at: Packed;
  readonly all: Span;
}

/**
 * Reduction that keeps the order of order.ts wherever members are: leaders send the operands of their nodes to the root, which
 * reduces. For short vectors.
 */
export function operandsReduce(shape: ReductionShape & Placement): Schedule {
  const { rank, size, root, bytes, nodeOf } = shape;
  const nodes = new Nodes(nodeOf, rank, root);
  const builder = new ScheduleBuilder();
  const { counts, at, all } = operandsOf(shape, nodes, builder);
  gatherWithin(builder, nodes, counts, at, all);
  if (!nodes.isLeader) return builder.build();
  const schedule = linearGather({ ...nodes.between(root), counts: at.counts, offsets: at.offsets });
  builder.add(schedule, BETWEEN, nodes.leaders, { send: ofNode(nodes, at, all), receive: all });
  if (rank !== root) return builder.build();
  return reduceOperands(builder, size, at, all, bytes).build();
}

/**
 * Like operandsReduce(), with the result for all members: each leader gets all operands, reduces, and gives its node the
 * result.
 */
export function operandsAllreduce(shape: Omit<ReductionShape, "root"> & Placement): Schedule {
  const { rank, size, bytes, nodeOf } = shape;
  const nodes = new Nodes(nodeOf, rank);
  const builder = new ScheduleBuilder();
  const { counts, at, all } = operandsOf(shape, nodes, builder);
  gatherWithin(builder, nodes, counts, at, all);
  allgatherBetween(builder, nodes, at, all, bruckAllgatherv);
  if (nodes.isLeader) reduceOperands(builder, size, at, all, bytes);
  return broadcastWithin(builder, nodes, span("receive", 0, bytes)).build();
}

function reduceOperands(builder: ScheduleBuilder, size: number, at: Packed, all: Span, bytes: number): ScheduleBuilder {
  const result = reduceInOrder(builder, size, (member) => part(all, at.places[member] as number, bytes));
  return builder.copy(result, span("receive", 0, bytes));
}

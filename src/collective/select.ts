// Which algorithm carries an operation. Each type has a list; the first algorithm that works for a request is the default. The
// limits come from `npm run bench -- collectives --tune`.

import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import { PamiError, show } from "../core/error.js";
import { bruckAllgather, doublingAllgather, ringAllgather } from "./algorithms/allgather.js";
import { doublingAllreduce, rabenseifnerAllreduce, ringAllreduce } from "./algorithms/allreduce.js";
import { bruckAlltoall, pairwiseAlltoall } from "./algorithms/alltoall.js";
import { dissemination } from "./algorithms/barrier.js";
import { binomialBroadcast, knomialBroadcast, scatterRingBroadcast } from "./algorithms/broadcast.js";
import { binomialGather, binomialScatter, linearGather, linearScatter } from "./algorithms/gather.js";
import {
  leadersAllgather,
  leadersAllreduce,
  leadersBarrier,
  leadersBroadcast,
  leadersReduce,
  operandsAllreduce,
  operandsReduce,
} from "./algorithms/leaders.js";
import {
  binomialReduce,
  halvingReduceScatter,
  knomialReduce,
  pairwiseReduceScatter,
  rabenseifnerReduce,
} from "./algorithms/reduce.js";
import { doublingScan } from "./algorithms/scan.js";
import type { CollectiveCall } from "./calls.js";
import type { GeometryCore } from "./geometry-core.js";
import type { CollectiveOperation, OperationBuffers } from "./operation.js";
import { type CollectiveType, OPERATION_ROWS } from "./operations.js";
import type { Round, Schedule, Transfer } from "./schedule/schedule.js";
import { blockSegment, inSegments } from "./schedule/segments.js";
import { prefixSums } from "./schedule/shape.js";
import { type SharedAlgorithm, SharedOperation } from "./shared/shared-operation.js";
import {
  BarrierSteps,
  type Blocks,
  BroadcastSteps,
  FLAT_MEMBERS,
  FlatReduceSteps,
  GatherSteps,
  ScatterSteps,
  SliceReduceSteps,
  UniformScatterSteps,
} from "./shared/shared-steps.js";
import { ALGORITHM_SHIFT, describeKind } from "./signature.js";
import {
  ALLGATHER_SHORT,
  ALLREDUCE_SHORT,
  ALLTOALL_MEMBERS,
  ALLTOALL_SHORT,
  BROADCAST_MEMBERS,
  BROADCAST_SHORT,
  FLAT_SHORT,
  GATHER_SHORT,
  OPERANDS_SHORT,
  REDUCE_SCATTER_SHORT,
  REDUCE_SHORT,
} from "./tuning.js";

/** A member's request. Lengths and offsets are in bytes. */
export interface CollectiveRequest extends OperationBuffers {
  readonly type: CollectiveType;
  readonly root: number;
  /** Bytes of a member's block, or of the whole vector of a broadcast or reduction. */
  readonly bytes: number;
  readonly elementBytes: number;
  /** The blocks of all members in "send", and in "receive", if the operation has blocks there. */
  readonly sent: Blocks | undefined;
  readonly received: Blocks | undefined;
  readonly isExclusive: boolean;
  /** Whether the order of a reduction must be that of algorithms/order.ts: not if the operation is exact and commutes. */
  readonly isOrdered: boolean;
}

/** An algorithm as `geometry.algorithms()` lists it. */
export interface AlgorithmInfo {
  /** The algorithm's name, for the parameter `algorithm`. */
  readonly name: string;
  /** Whether the algorithm works for every request of its type in this geometry. */
  readonly always: boolean;
  /** Requests for which the algorithm works; empty: for all. */
  readonly conditions: string;
  /** Requests for which the algorithm is the default, in words. */
  readonly preferred: string;
}

export interface Algorithm extends AlgorithmInfo {
  /** Whether the algorithm works in a geometry at all. */
  fits(geometry: GeometryCore): boolean;
  works(request: CollectiveRequest, geometry: GeometryCore): boolean;
  /** Whether the algorithm is the default for a request, if it works. */
  isPreferred(request: CollectiveRequest, geometry: GeometryCore): boolean;
  readonly shared?: (request: CollectiveRequest, geometry: GeometryCore) => SharedAlgorithm;
  readonly schedule?: (request: CollectiveRequest, geometry: GeometryCore) => Schedule;
}

const always = (): boolean => true;

/** A condition: as a text of tables, and as what it asks. */
interface Rule {
  readonly text: string;
  readonly holds: (request: CollectiveRequest, geometry: GeometryCore) => boolean;
}

const NONE: Rule = { text: "", holds: always };
const ALWAYS: Rule = { text: "always", holds: always };
const ELSE: Rule = { text: "else", holds: always };
const WHEREVER: Rule = { text: "wherever it works", holds: always };
const NEVER: Rule = { text: "never", holds: () => false };

/** @param what bytes of what, as "blocks of " */
const upTo = (limit: number, what = ""): Rule => ({
  text: `${what}up to ${limit} bytes`,
  holds: ({ bytes }) => bytes <= limit,
});

/** @param preferred where it is chosen, if no earlier one is @param condition where it works @param fits which geometries */
function overMessages(
  name: string,
  schedule: (request: CollectiveRequest, geometry: GeometryCore) => Schedule,
  preferred: Rule,
  condition = NONE,
  fits: Algorithm["fits"] = always,
): Algorithm {
  return { ...algorithm(name, preferred, condition), fits, schedule };
}

function algorithm(name: string, preferred: Rule, condition: Rule) {
  const { text: conditions, holds: works } = condition;
  const { text, holds: isPreferred } = preferred;
  return { name, always: condition === NONE, conditions, preferred: text, works, isPreferred };
}

function inMemory(
  name: string,
  shared: (request: CollectiveRequest, geometry: GeometryCore) => SharedAlgorithm,
  preferred = WHEREVER,
  condition = NONE,
): Algorithm {
  return { ...algorithm(name, preferred, condition), fits: ({ isShared }) => isShared, shared };
}

/** The vectors of an operation whose members all have blocks of the same length. */
function uniform({ bytes }: CollectiveRequest, size: number): Blocks {
  const counts = new Array<number>(size).fill(bytes);
  return { counts, offsets: prefixSums(counts) };
}

function shapeOf(request: CollectiveRequest, geometry: GeometryCore) {
  const { rank, size } = geometry;
  const { bytes, root, elementBytes } = request;
  return { rank, size, bytes, root, elementBytes };
}

/** Like overMessages(), in two levels: if the members are in several nodes, and some members share a node. */
function byLeaders(
  name: string,
  schedule: (request: CollectiveRequest, geometry: GeometryCore) => Schedule,
  preferred = ALWAYS,
  condition = NONE,
): Algorithm {
  return overMessages(name, schedule, preferred, condition, ({ hasLevels }) => hasLevels);
}

/** Whether the nodes' partial sums are partial sums of order.ts, or the order does not matter. */
function mayReduceNodes({ isOrdered }: CollectiveRequest, { keepsOrder }: GeometryCore): boolean {
  return !isOrdered || keepsOrder;
}

const KEEPS_ORDER: Rule = {
  text: "partial sums of nodes keep the order, or the order does not matter",
  holds: mayReduceNodes,
};

const placed = (request: CollectiveRequest, geometry: GeometryCore) => ({
  ...shapeOf(request, geometry),
  nodeOf: geometry.nodes,
});

const barrier = [
  inMemory("flags", (_, geometry) => new BarrierSteps(geometry.shared)),
  byLeaders("leaders", (request, geometry) => leadersBarrier(placed(request, geometry))),
  overMessages("dissemination", (_, geometry) => dissemination(geometry), ELSE),
];

const broadcast = [
  inMemory("direct", (request, geometry) => new BroadcastSteps(geometry.shared, request.root)),
  byLeaders("leaders", (request, geometry) => leadersBroadcast(placed(request, geometry)), upTo(BROADCAST_SHORT)),
  overMessages("binomial", (request, geometry) => binomialBroadcast(shapeOf(request, geometry)), {
    text: `up to ${BROADCAST_SHORT} bytes, or ${BROADCAST_MEMBERS} members`,
    holds: ({ bytes }, { size }) => bytes <= BROADCAST_SHORT || size <= BROADCAST_MEMBERS,
  }),
  overMessages("scatter-ring", (request, geometry) => scatterRingBroadcast(shapeOf(request, geometry)), ELSE),
  overMessages("4-nomial", (request, geometry) => knomialBroadcast(shapeOf(request, geometry), 4), NEVER),
];

const rootOf = (request: CollectiveRequest): number | undefined =>
  OPERATION_ROWS[request.type].root === "" ? undefined : request.root;
const flat = inMemory(
  "flat",
  (request, geometry) => new FlatReduceSteps(geometry.shared, rootOf(request)),
  upTo(FLAT_SHORT),
  {
    text: `at most ${FLAT_MEMBERS} members, ${MEMBER_INLINE_BYTES} bytes; no function of the user's`,
    holds: ({ reducer, bytes }, { shared }) => reducer !== undefined && FlatReduceSteps.fits(shared, bytes, reducer),
  },
);
const sliced = inMemory(
  "slices",
  (request, geometry) => new SliceReduceSteps(geometry.shared, request, rootOf(request)),
);

const reduce = [
  flat,
  sliced,
  byLeaders(
    "leaders",
    (request, geometry) => inSegments(placed(request, geometry), leadersReduce),
    { text: "always", holds: mayReduceNodes },
    KEEPS_ORDER,
  ),
  byLeaders(
    "leaders-operands",
    (request, geometry) => inSegments(placed(request, geometry), operandsReduce),
    upTo(OPERANDS_SHORT),
  ),
  overMessages(
    "binomial",
    (request, geometry) => inSegments(shapeOf(request, geometry), binomialReduce),
    upTo(REDUCE_SHORT),
  ),
  overMessages("rabenseifner", (request, geometry) => inSegments(shapeOf(request, geometry), rabenseifnerReduce), ELSE),
  overMessages(
    "4-nomial",
    (request, geometry) => inSegments(shapeOf(request, geometry), (shape) => knomialReduce(shape, 4)),
    NEVER,
  ),
];

const allreduce = [
  flat,
  sliced,
  byLeaders(
    "leaders",
    (request, geometry) =>
      inSegments(placed(request, geometry), (shape) =>
        leadersAllreduce(shape, request.bytes <= ALLREDUCE_SHORT ? doublingAllreduce : rabenseifnerAllreduce),
      ),
    { text: "always", holds: mayReduceNodes },
    KEEPS_ORDER,
  ),
  byLeaders(
    "leaders-operands",
    (request, geometry) => inSegments(placed(request, geometry), operandsAllreduce),
    upTo(OPERANDS_SHORT),
  ),
  overMessages(
    "recursive-doubling",
    (request, geometry) => inSegments(shapeOf(request, geometry), doublingAllreduce),
    upTo(ALLREDUCE_SHORT),
  ),
  overMessages(
    "rabenseifner",
    (request, geometry) => inSegments(shapeOf(request, geometry), rabenseifnerAllreduce),
    ELSE,
  ),
  overMessages("ring", (request, geometry) => inSegments(shapeOf(request, geometry), ringAllreduce), NEVER, {
    text: "the operation commutes; not for sums and products of floats, whose results would depend on where a slice lies",
    holds: ({ isOrdered }) => !isOrdered,
  }),
];

const gatherInMemory = inMemory(
  "direct",
  (request, geometry) =>
    new GatherSteps(geometry.shared, request.root, request.received ?? uniform(request, geometry.size)),
);
const linearGatherOf = (request: CollectiveRequest, geometry: GeometryCore): Schedule => {
  const { counts, offsets } = request.received ?? uniform(request, geometry.size);
  return linearGather({ ...shapeOf(request, geometry), counts, offsets });
};
const gather = [
  gatherInMemory,
  overMessages(
    "binomial",
    (request, geometry) => binomialGather(shapeOf(request, geometry)),
    upTo(GATHER_SHORT, "blocks of "),
  ),
  overMessages("linear", linearGatherOf, ELSE),
];
const gatherv = [gatherInMemory, overMessages("linear", linearGatherOf, ELSE)];

const scatterInMemory = inMemory("direct", (request, geometry) => {
  const { size } = geometry;
  if (!OPERATION_ROWS[request.type].isUneven)
    return new UniformScatterSteps(geometry.shared, request.root, request.bytes);
  const sent = geometry.rank === request.root ? (request.sent ?? uniform(request, size)) : undefined;
  const offsets = new Array<number>(size).fill(0);
  const received = { counts: new Array<number>(size).fill(request.receive.length), offsets };
  return new ScatterSteps(geometry.shared, request.root, sent, received);
});
const linearScatterOf = (request: CollectiveRequest, geometry: GeometryCore): Schedule => {
  const blocks = request.sent ?? uniform(request, geometry.size);
  const counts = [...blocks.counts];
  counts[geometry.rank] = request.receive.length;
  return linearScatter({ ...shapeOf(request, geometry), counts, offsets: blocks.offsets });
};
const scatter = [
  scatterInMemory,
  overMessages(
    "binomial",
    (request, geometry) => binomialScatter(shapeOf(request, geometry)),
    upTo(GATHER_SHORT, "blocks of "),
  ),
  overMessages("linear", linearScatterOf, ELSE),
];
const scatterv = [scatterInMemory, overMessages("linear", linearScatterOf, ELSE)];

const allgatherInMemory = inMemory(
  "direct",
  (request, geometry) =>
    new GatherSteps(geometry.shared, undefined, request.received ?? uniform(request, geometry.size)),
);
const ring = overMessages(
  "ring",
  (request, geometry) => {
    const { counts, offsets } = request.received ?? uniform(request, geometry.size);
    return ringAllgather({ ...shapeOf(request, geometry), counts, offsets });
  },
  ELSE,
);
const leadersOfAllgather = byLeaders(
  "leaders",
  (request, geometry) => {
    const { counts, offsets } = request.received ?? uniform(request, geometry.size);
    return leadersAllgather({ ...placed(request, geometry), counts, offsets });
  },
  upTo(ALLGATHER_SHORT, "blocks of "),
);
const allgather = [
  allgatherInMemory,
  leadersOfAllgather,
  overMessages(
    "recursive-doubling",
    (request, geometry) => doublingAllgather(shapeOf(request, geometry)),
    upTo(ALLGATHER_SHORT, "blocks of "),
    NONE,
    ({ size }) => (size & (size - 1)) === 0,
  ),
  overMessages(
    "bruck",
    (request, geometry) => bruckAllgather(shapeOf(request, geometry)),
    upTo(ALLGATHER_SHORT, "blocks of "),
  ),
  ring,
];
const allgatherv = [allgatherInMemory, ring];

const alltoallInMemory = inMemory("direct", (request, geometry) => {
  if (!OPERATION_ROWS[request.type].isUneven) return new UniformScatterSteps(geometry.shared, undefined, request.bytes);
  const all = uniform(request, geometry.size);
  return new ScatterSteps(geometry.shared, undefined, request.sent ?? all, request.received ?? all);
});
const pairwise = overMessages(
  "pairwise",
  (request, geometry) => {
    const all = uniform(request, geometry.size);
    const { sent = all, received = all } = request;
    return pairwiseAlltoall({
      ...shapeOf(request, geometry),
      sendCounts: sent.counts,
      sendOffsets: sent.offsets,
      receiveCounts: received.counts,
      receiveOffsets: received.offsets,
    });
  },
  ELSE,
);
const alltoall = [
  alltoallInMemory,
  overMessages("bruck", (request, geometry) => bruckAlltoall(shapeOf(request, geometry)), {
    text: `${ALLTOALL_MEMBERS} members or more, blocks of up to ${ALLTOALL_SHORT} bytes`,
    holds: ({ bytes }, { size }) => size >= ALLTOALL_MEMBERS && bytes <= ALLTOALL_SHORT,
  }),
  pairwise,
];
const alltoallv = [alltoallInMemory, pairwise];

const scan = [
  overMessages(
    "recursive-doubling",
    (request, geometry) => inSegments(shapeOf(request, geometry), (shape) => doublingScan(shape, request.isExclusive)),
    ALWAYS,
  ),
];

const scattered = (request: CollectiveRequest, geometry: GeometryCore) => ({
  ...shapeOf(request, geometry),
  counts: (request.sent as Blocks).counts,
});
const reduceScatter = [
  inMemory(
    "slices",
    (request, geometry) => new SliceReduceSteps(geometry.shared, request, undefined, (request.sent as Blocks).counts),
  ),
  overMessages(
    "halving",
    (request, geometry) => halvingReduceScatter(scattered(request, geometry)),
    upTo(REDUCE_SCATTER_SHORT),
  ),
  overMessages(
    "pairwise",
    (request, geometry) => {
      const shape = scattered(request, geometry);
      return pairwiseReduceScatter(shape, blockSegment(shape.counts, request.elementBytes));
    },
    ELSE,
  ),
];

export const ALGORITHMS: Readonly<Record<CollectiveType, readonly Algorithm[]>> = {
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  scan,
  reduceScatter,
};

/** The algorithm of active messages. */
export const ACTIVE_ALGORITHM: AlgorithmInfo = { name: "binomial", always: true, conditions: "", preferred: "always" };

/** @throws PAMIR_INVAL for an unknown name */
export function algorithmOf<Info extends AlgorithmInfo>(type: string, all: readonly Info[], name: string): Info {
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = all.map((one) => one.name).join(", ");
  throw new PamiError("PAMIR_INVAL", `algorithm ${show(name)} of ${type}() is unknown; there are ${names}`);
}

/** The default algorithm. All members choose the same algorithm, since the choice depends only on data that they share. */
export function defaultAlgorithm(
  request: CollectiveRequest,
  geometry: GeometryCore,
  mayBe: (algorithm: Algorithm) => boolean = always,
): Algorithm {
  const found = ALGORITHMS[request.type].find(
    (one) => mayBe(one) && one.fits(geometry) && one.works(request, geometry) && one.isPreferred(request, geometry),
  );
  return found as Algorithm;
}

/** The schedule of an operation in one memory that members lack. @param isLacking see MissingSchedule */
function missingSchedule(
  request: CollectiveRequest,
  geometry: GeometryCore,
  isLacking: (rank: number) => boolean,
): Schedule {
  const { gets, root } = OPERATION_ROWS[request.type];
  if (gets === "blocks" && root !== "") {
    // The root alone knows whose blocks it has read.
    const { counts, offsets } = request.received ?? uniform(request, geometry.size);
    const missing = counts.map((bytes, rank) => (isLacking(rank) ? bytes : 0));
    return linearGather({ ...shapeOf(request, geometry), counts: missing, offsets });
  }
  const { schedule } = defaultAlgorithm(request, geometry, ({ shared }) => shared === undefined);
  return withEnd((schedule as NonNullable<typeof schedule>)(request, geometry), request, geometry);
}

/** The data on which all members must agree, the algorithm included. */
function withAlgorithm(signature: number, { type }: CollectiveRequest, algorithm: Algorithm): number {
  return signature ^ (ALGORITHMS[type].indexOf(algorithm) << ALGORITHM_SHIFT);
}

/** A member's call, for debug mode. */
export function callOf(request: CollectiveRequest, signature: number, algorithm: string, size: number): CollectiveCall {
  const { type, root, bytes, sent, received, send, receive, isExclusive, isOrdered, reducer } = request;
  const { gives, gets, root: side, isUneven } = OPERATION_ROWS[type];
  const isOfAll = side === "" && gives !== gets;
  const all = !isOfAll ? undefined : isUneven ? received : sent;
  const commutes = reducer?.isUser && !isOrdered;
  const list = (counts: readonly number[] | undefined, ofRoot: number): readonly number[] =>
    !isUneven || isOfAll ? [] : (counts ?? Array.from({ length: size }, (_, rank) => (rank === root ? ofRoot : 0)));
  return {
    what: `${isExclusive ? "exclusive " : ""}${describeKind(signature, reducer?.elementBytes)}${commutes ? " that commutes" : ""}`,
    root,
    bytes: isUneven ? 0 : bytes,
    counts: all?.counts.join() ?? "",
    algorithm,
    gives: list(sent?.counts, side === "gets" ? send.length : 0),
    gets: list(received?.counts, side === "gives" ? receive.length : 0),
  };
}

/** Begins an operation. @param agreed the data on which all members must agree, without the algorithm */
export function begin(
  algorithm: Algorithm,
  request: CollectiveRequest,
  geometry: GeometryCore,
  agreed: number,
): CollectiveOperation {
  const signature = withAlgorithm(agreed, request, algorithm);
  const { name, shared, schedule } = algorithm;
  const call = geometry.isChecked ? callOf(request, agreed, name, geometry.size) : undefined;
  if (shared !== undefined) {
    const steps = shared(request, geometry);
    const operation = new SharedOperation(geometry, request, steps, (isLacking) =>
      missingSchedule(request, geometry, isLacking),
    );
    operation.call = call;
    geometry.beginShared(operation, signature);
    return operation;
  }
  const made = (schedule as NonNullable<typeof schedule>)(request, geometry);
  const whole = withStart(withEnd(made, request, geometry), request, geometry);
  return geometry.beginSchedule(whole, request, signature, call);
}

/** How often the members of an operation over messages wait for each other, so that none is further ahead. */
const SYNCHRONIZING_INTERVAL = 64;
/** Added to the tags of a barrier before or after an algorithm, so that they differ from the algorithm's tags. */
const BEFORE = 2 ** 20;
const BEHIND = 4095 * 2 ** 20;

/** Now and then, a barrier comes first. */
function withStart(schedule: Schedule, { type }: CollectiveRequest, geometry: GeometryCore): Schedule {
  if (type === "barrier" || geometry.nextNumber % SYNCHRONIZING_INTERVAL !== 0) return schedule;
  return { ...schedule, rounds: [...barrierRounds(geometry, BEFORE), ...schedule.rounds] };
}

/**
 * A barrier follows the user's function: a member at which the function throws does not take part in the barrier. So the
 * operation fails at all members, or at none.
 */
function withEnd(schedule: Schedule, { reducer }: CollectiveRequest, geometry: GeometryCore): Schedule {
  if (reducer?.isUser !== true) return schedule;
  return { ...schedule, rounds: [...schedule.rounds, ...barrierRounds(geometry, BEHIND)] };
}

function barrierRounds(geometry: GeometryCore, first: number): Round[] {
  const shifted = (transfer: Transfer): Transfer => ({ ...transfer, tag: transfer.tag + first });
  return dissemination(geometry).rounds.map(({ sends, receives, locals }) => ({
    sends: sends.map(shifted),
    receives: receives.map(shifted),
    locals,
  }));
}

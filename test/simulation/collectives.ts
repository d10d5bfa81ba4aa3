// The algorithms of src/collective/algorithms, and what each kind of collective operation does, without messages.
import {
  bruckAllgather,
  bruckAllgatherv,
  doublingAllgather,
  ringAllgather,
} from "../../src/collective/algorithms/allgather.js";
import { doublingAllreduce, rabenseifnerAllreduce, ringAllreduce } from "../../src/collective/algorithms/allreduce.js";
import { bruckAlltoall, pairwiseAlltoall } from "../../src/collective/algorithms/alltoall.js";
import { dissemination } from "../../src/collective/algorithms/barrier.js";
import {
  binomialBroadcast,
  knomialBroadcast,
  scatterRingBroadcast,
} from "../../src/collective/algorithms/broadcast.js";
import {
  binomialGather,
  binomialScatter,
  linearGather,
  linearScatter,
} from "../../src/collective/algorithms/gather.js";
import {
  leadersAllgather,
  leadersAllreduce,
  leadersBarrier,
  leadersBroadcast,
  leadersReduce,
  nodesKeepOrder,
  operandsAllreduce,
  operandsReduce,
} from "../../src/collective/algorithms/leaders.js";
import {
  binomialReduce,
  halvingReduceScatter,
  knomialReduce,
  pairwiseReduceScatter,
  rabenseifnerReduce,
} from "../../src/collective/algorithms/reduce.js";
import { doublingScan } from "../../src/collective/algorithms/scan.js";
import type { Schedule } from "../../src/collective/schedule/schedule.js";
import { powerBelow, prefixSums } from "../../src/collective/schedule/shape.js";
import { AFFINE, BRACKETS, reducedInOrder, reducedInTurn, SUM } from "./operators.js";
import { type Member, type Operator, type Outcome, randomBytes, simulate } from "./schedules.js";

export interface Plan {
  readonly size: number;
  readonly root: number;
  /** Bytes of a block. */
  readonly bytes: number;
  /** Bytes from each member to each, where blocks differ; where they depend on one member alone, the first row. */
  readonly counts: readonly (readonly number[])[];
  /** Bytes between blocks that differ in length, which nothing may write. */
  readonly gap: number;
  readonly elementBytes: 1 | 8;
  readonly nodeOf: readonly number[];
}

export type Kind =
  | "barrier"
  | "broadcast"
  | "gather"
  | "scatter"
  | "allgather"
  | "alltoall"
  | "reduce"
  | "allreduce"
  | "reduceScatter"
  | "scan"
  | "exclusiveScan";

/** What an algorithm promises of the order in which it combines operands. */
export type Order = "ordered" | "any";

export interface Algorithm {
  readonly name: string;
  readonly kind: Kind;
  /** Whether blocks may differ in length. */
  readonly isUneven?: boolean;
  /** Whether it works where members send from and receive into the same memory. */
  readonly isInPlace?: boolean;
  /** Of a reduction; default: that of order.ts. */
  readonly order?: (plan: Plan) => Order;
  /** Default: works always. */
  readonly works?: (plan: Plan) => boolean;
  readonly make: (shape: FullShape) => Schedule;
}

/** All that any algorithm wants to know. */
export interface FullShape {
  readonly rank: number;
  readonly size: number;
  readonly root: number;
  readonly bytes: number;
  readonly elementBytes: number;
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
  readonly sendCounts: readonly number[];
  readonly sendOffsets: readonly number[];
  readonly receiveCounts: readonly number[];
  readonly receiveOffsets: readonly number[];
  readonly nodeOf: readonly number[];
}

/** What a member knows. Blocks that differ may have gaps between them, but for reductions. */
export function shapeOf(plan: Plan, algorithm: Algorithm, rank: number): FullShape {
  const { counts: matrix, gap: _, ...common } = plan;
  const { isUneven } = algorithm;
  const all = (bytes: number): number[] => new Array<number>(plan.size).fill(bytes);
  const counts = isUneven ? (matrix[0] as readonly number[]) : all(plan.bytes);
  const sendCounts = isUneven ? (matrix[rank] as readonly number[]) : all(plan.bytes);
  const receiveCounts = isUneven ? matrix.map((row) => row[rank] as number) : all(plan.bytes);
  const gap = isUneven && algorithm.kind !== "reduceScatter" ? plan.gap : 0;
  const offsetsOf = (lengths: readonly number[]): number[] => prefixSums(lengths.map((length) => length + gap));
  return {
    ...common,
    rank,
    counts,
    offsets: offsetsOf(counts),
    sendCounts,
    sendOffsets: offsetsOf(sendCounts),
    receiveCounts,
    receiveOffsets: offsetsOf(receiveCounts),
  };
}

const byPlacement = ({ nodeOf }: Plan): Order => (nodesKeepOrder(nodeOf) ? "ordered" : "any");

export const ALGORITHMS: readonly Algorithm[] = [
  { name: "dissemination", kind: "barrier", make: dissemination },
  { name: "binomialBroadcast", kind: "broadcast", make: binomialBroadcast },
  { name: "knomialBroadcast", kind: "broadcast", make: (shape) => knomialBroadcast(shape, 4) },
  { name: "scatterRingBroadcast", kind: "broadcast", make: scatterRingBroadcast },
  { name: "linearGather", kind: "gather", isUneven: true, isInPlace: true, make: linearGather },
  { name: "binomialGather", kind: "gather", isInPlace: true, make: binomialGather },
  { name: "linearScatter", kind: "scatter", isUneven: true, isInPlace: true, make: linearScatter },
  { name: "binomialScatter", kind: "scatter", isInPlace: true, make: binomialScatter },
  { name: "ringAllgather", kind: "allgather", isUneven: true, isInPlace: true, make: ringAllgather },
  { name: "bruckAllgather", kind: "allgather", isInPlace: true, make: bruckAllgather },
  { name: "bruckAllgatherv", kind: "allgather", isUneven: true, isInPlace: true, make: bruckAllgatherv },
  {
    name: "doublingAllgather",
    kind: "allgather",
    isInPlace: true,
    works: ({ size }) => powerBelow(size) === size,
    make: doublingAllgather,
  },
  { name: "pairwiseAlltoall", kind: "alltoall", isUneven: true, make: pairwiseAlltoall },
  { name: "bruckAlltoall", kind: "alltoall", isInPlace: true, make: bruckAlltoall },
  { name: "binomialReduce", kind: "reduce", isInPlace: true, make: binomialReduce },
  { name: "knomialReduce", kind: "reduce", isInPlace: true, make: (shape) => knomialReduce(shape, 4) },
  { name: "rabenseifnerReduce", kind: "reduce", isInPlace: true, make: rabenseifnerReduce },
  { name: "doublingAllreduce", kind: "allreduce", isInPlace: true, make: doublingAllreduce },
  { name: "rabenseifnerAllreduce", kind: "allreduce", isInPlace: true, make: rabenseifnerAllreduce },
  { name: "ringAllreduce", kind: "allreduce", isInPlace: true, order: () => "any", make: ringAllreduce },
  {
    name: "pairwiseReduceScatter",
    kind: "reduceScatter",
    isUneven: true,
    isInPlace: true,
    make: pairwiseReduceScatter,
  },
  { name: "halvingReduceScatter", kind: "reduceScatter", isUneven: true, isInPlace: true, make: halvingReduceScatter },
  { name: "doublingScan", kind: "scan", isInPlace: true, make: (shape) => doublingScan(shape, false) },
  { name: "doublingScan", kind: "exclusiveScan", isInPlace: true, make: (shape) => doublingScan(shape, true) },
  { name: "leadersBarrier", kind: "barrier", make: leadersBarrier },
  { name: "leadersBroadcast", kind: "broadcast", make: (shape) => leadersBroadcast(shape) },
  { name: "leadersReduce", kind: "reduce", isInPlace: true, order: byPlacement, make: leadersReduce },
  {
    name: "leadersAllreduce",
    kind: "allreduce",
    isInPlace: true,
    order: byPlacement,
    make: (shape) => leadersAllreduce(shape),
  },
  {
    name: "leadersAllgather",
    kind: "allgather",
    isUneven: true,
    isInPlace: true,
    make: (shape) => leadersAllgather(shape),
  },
  { name: "operandsReduce", kind: "reduce", isInPlace: true, make: operandsReduce },
  { name: "operandsAllreduce", kind: "allreduce", isInPlace: true, make: operandsAllreduce },
];

/** Algorithms with other parts than they have by themselves. */
export const VARIANTS: readonly Algorithm[] = [
  { name: "knomialBroadcast, radix 3", kind: "broadcast", make: (shape) => knomialBroadcast(shape, 3) },
  { name: "knomialReduce, radix 8", kind: "reduce", isInPlace: true, make: (shape) => knomialReduce(shape, 8) },
  {
    name: "leadersBroadcast, a ring between",
    kind: "broadcast",
    make: (shape) => leadersBroadcast(shape, scatterRingBroadcast),
  },
  {
    name: "leadersAllreduce, Rabenseifner's between",
    kind: "allreduce",
    isInPlace: true,
    order: byPlacement,
    make: (shape) => leadersAllreduce(shape, rabenseifnerAllreduce),
  },
  {
    name: "leadersAllgather, a ring between",
    kind: "allgather",
    isUneven: true,
    isInPlace: true,
    make: (shape) => leadersAllgather(shape, ringAllgather),
  },
];

/** What `name` is called in a title. */
export const titleOf = ({ name, kind }: Algorithm): string => `${name} (${kind})`;

/** A plan; of blocks that differ, some have no bytes, some `bytes`. */
export function planOf(size: number, root: number, bytes: number, random: (below: number) => number): Plan {
  const elementBytes = bytes % 8 === 0 ? 8 : 1;
  const count = (): number => {
    const kind = random(4);
    if (kind === 0) return 0;
    return kind === 1 ? bytes : elementBytes * random(5);
  };
  const counts = Array.from({ length: size }, () => Array.from({ length: size }, count));
  const perNode = 1 + random(4);
  return {
    size,
    root,
    bytes,
    counts,
    gap: 3 * random(2),
    elementBytes,
    nodeOf: counts.map((_, rank) => Math.floor(rank / perNode)),
  };
}

export const worksFor = ({ works }: Algorithm, plan: Plan): boolean => works?.(plan) ?? true;

export const orderOf = ({ order }: Algorithm, plan: Plan): Order => order?.(plan) ?? "ordered";

export const isRooted = ({ kind }: Algorithm): boolean => /^(broadcast|gather|scatter|reduce)$/.test(kind);

export const isScan = ({ kind }: Algorithm): boolean => /scan/i.test(kind);

export const isReduction = ({ kind }: Algorithm): boolean => /reduce|scan/i.test(kind);

/** The operations with which an algorithm is run: what its order is shows in those that do not commute or associate. */
export function operatorsFor(algorithm: Algorithm, plan: Plan): readonly Operator[] {
  const size = plan.elementBytes;
  if (!isReduction(algorithm) || orderOf(algorithm, plan) === "any") return [SUM[size]];
  return isScan(algorithm) ? [AFFINE[size]] : [AFFINE[size], BRACKETS[size]];
}

/** The buffers of a member, and what is to be in "receive" behind the operation. */
interface Expected {
  readonly sendBytes: number;
  readonly receiveBytes: number;
  /** In place, where "send" begins in "receive", or "receive" in "send". undefined: this member has nothing in place. */
  readonly inPlace: { readonly sendAt: number } | { readonly receiveAt: number } | undefined;
  /** Writes the result. What it leaves alone stays as it was. */
  fill(receive: Uint8Array, sends: readonly Uint8Array[], operator: Operator): void;
}

/** Results of reductions, by their operands. */
const results = new WeakMap<readonly Uint8Array[], Uint8Array>();

function reducedOnce(operator: Operator, sends: readonly Uint8Array[], reduced: typeof reducedInTurn): Uint8Array {
  const result = results.get(sends) ?? reduced(operator, sends);
  results.set(sends, result);
  return result;
}

const extentOf = (counts: readonly number[], offsets: readonly number[]): number =>
  Math.max(...counts.map((count, i) => count + (offsets[i] as number)));

/** What the operation is to do at one member. */
function expectedOf(plan: Plan, algorithm: Algorithm, rank: number): Expected {
  const { kind } = algorithm;
  const { root, bytes } = plan;
  const shape = shapeOf(plan, algorithm, rank);
  const isRoot = rank === root;
  const all = extentOf(shape.counts, shape.offsets);
  const [own, at] = [shape.counts[rank] as number, shape.offsets[rank] as number];
  const block = (from: Uint8Array, member: number, offset = shape.offsets[member] as number): Uint8Array =>
    from.subarray(offset, offset + (shape.counts[member] as number));
  const reduced = orderOf(algorithm, plan) === "any" ? reducedInTurn : reducedInOrder;
  const gathered = (receive: Uint8Array, sends: readonly Uint8Array[]): void => {
    for (const [member, sent] of sends.entries()) {
      receive.set(block(sent, member, 0), shape.offsets[member]);
    }
  };
  switch (kind) {
    case "barrier":
      return { sendBytes: 0, receiveBytes: 0, inPlace: undefined, fill: () => {} };
    case "broadcast":
      return {
        sendBytes: isRoot ? bytes : 0,
        receiveBytes: isRoot ? 0 : bytes,
        inPlace: undefined,
        fill: (receive, sends) => !isRoot && receive.set(sends[root] as Uint8Array),
      };
    case "gather":
      return {
        sendBytes: own,
        receiveBytes: isRoot ? all : 0,
        inPlace: isRoot ? { sendAt: at } : undefined,
        fill: (receive, sends) => isRoot && gathered(receive, sends),
      };
    case "scatter":
      return {
        sendBytes: isRoot ? all : 0,
        receiveBytes: own,
        inPlace: isRoot ? { receiveAt: at } : undefined,
        fill: (receive, sends) => receive.set(block(sends[root] as Uint8Array, rank)),
      };
    case "allgather":
      return { sendBytes: own, receiveBytes: all, inPlace: { sendAt: at }, fill: gathered };
    case "alltoall":
      return {
        sendBytes: extentOf(shape.sendCounts, shape.sendOffsets),
        receiveBytes: extentOf(shape.receiveCounts, shape.receiveOffsets),
        inPlace: { sendAt: 0 },
        fill: (receive, sends) => {
          for (const [member, sent] of sends.entries()) {
            const from = shapeOf(plan, algorithm, member).sendOffsets[rank] as number;
            const count = shape.receiveCounts[member] as number;
            receive.set(sent.subarray(from, from + count), shape.receiveOffsets[member]);
          }
        },
      };
    case "reduce":
      return {
        sendBytes: bytes,
        receiveBytes: isRoot ? bytes : 0,
        inPlace: isRoot ? { sendAt: 0 } : undefined,
        fill: (receive, sends, operator) => isRoot && receive.set(reducedOnce(operator, sends, reduced)),
      };
    case "allreduce":
      return {
        sendBytes: bytes,
        receiveBytes: bytes,
        inPlace: { sendAt: 0 },
        fill: (receive, sends, operator) => receive.set(reducedOnce(operator, sends, reduced)),
      };
    case "reduceScatter":
      return {
        sendBytes: all,
        receiveBytes: own,
        inPlace: { receiveAt: 0 },
        fill: (receive, sends, operator) =>
          receive.set(
            reduced(
              operator,
              sends.map((sent) => block(sent, rank)),
            ),
          ),
      };
    case "scan":
    case "exclusiveScan": {
      const last = kind === "scan" ? rank : rank - 1;
      return {
        sendBytes: bytes,
        receiveBytes: bytes,
        inPlace: { sendAt: 0 },
        fill: (receive, sends, operator) => last >= 0 && receive.set(reducedInTurn(operator, sends.slice(0, last + 1))),
      };
    }
  }
}

/** The members of an operation, and what each is to receive; with `isInPlace`, where their buffers are shared. */
export interface Operation {
  readonly members: Member[];
  readonly expected: readonly Uint8Array[];
  /** What each has sent: it is to be as it was, but for what is in place. */
  readonly sends: readonly Uint8Array[];
  readonly isInPlace: boolean;
}

export function operationOf(
  plan: Plan,
  algorithm: Algorithm,
  operator: Operator,
  isInPlace: boolean,
  random: (below: number) => number,
): Operation {
  const filled = (bytes: number): Uint8Array => randomBytes(bytes, random);
  const ranks = Array.from({ length: plan.size }, (_, rank) => rank);
  const wanted = ranks.map((rank) => expectedOf(plan, algorithm, rank));
  const members = wanted.map(({ sendBytes, receiveBytes, inPlace }, rank): Member => {
    const schedule = algorithm.make(shapeOf(plan, algorithm, rank));
    if (!isInPlace || inPlace === undefined) {
      return { schedule, send: filled(sendBytes), receive: filled(receiveBytes) };
    }
    if ("sendAt" in inPlace) {
      const receive = filled(Math.max(receiveBytes, inPlace.sendAt + sendBytes));
      return { schedule, receive, send: receive.subarray(inPlace.sendAt, inPlace.sendAt + sendBytes) };
    }
    const send = filled(sendBytes);
    return { schedule, send, receive: send.subarray(inPlace.receiveAt, inPlace.receiveAt + receiveBytes) };
  });
  const sends = members.map(({ send }) => send.slice());
  const expected = members.map(({ receive }, rank) => {
    const result = receive.slice();
    wanted[rank]?.fill(result, sends, operator);
    return result;
  });
  return { members, expected, sends, isInPlace };
}

/** The first byte that differs, or -1. */
export const differs = (is: Uint8Array, should: Uint8Array): number => is.findIndex((byte, i) => byte !== should[i]);

/** Runs it. @throws Fault, or an error that says which member has something else than it should */
export function check(
  { members, expected, sends, isInPlace }: Operation,
  { kind }: Algorithm,
  operator: Operator,
  random: (below: number) => number,
  isInspected = true,
): Outcome {
  const outcome = simulate(members, operator, random, isInspected);
  for (const [rank, { receive, send }] of members.entries()) {
    const place = differs(receive, expected[rank] as Uint8Array);
    if (place >= 0) throw new Error(`result: rank ${rank} has another byte ${place} than it should`);
    if (!isInPlace && differs(send, sends[rank] as Uint8Array) >= 0)
      throw new Error(`input: rank ${rank}'s has changed`);
  }
  if (kind === "barrier" && outcome.begunBefore.some((begun) => begun < members.length)) {
    throw new Error(`barrier: members leave when ${outcome.begunBefore} have come`);
  }
  return outcome;
}

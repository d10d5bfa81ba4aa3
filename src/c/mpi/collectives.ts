// Collective operations of MPI, over geometries. Source: MPI 5.0, chapter 6.
import {
  type ElementType,
  type Geometry,
  type MemRegion,
  SUCCESS as OK,
  type Operation,
  type Result,
  type UserOperation,
} from "../../index.js";
import type { Communicator } from "../../mpi/communicator.js";
import { ERR, IN_PLACE, SUCCESS } from "./constants.js";
import { MpiFailure } from "./failure.js";
import type { Call, MpiState, UserOp } from "./state.js";
import { type Datatype, isDense, pack, unpack } from "./types.js";

/** Elements of a buffer as bytes without gaps. */
interface Side {
  readonly view: Uint8Array;
  /** Copies what has come into the program's buffer, and gives the place back. */
  end(hasCome: boolean): void;
}

/** Views of the program's buffers that are kept. */
const VIEWS_MAX = 64;
const NOTHING_LEFT = (): void => {};

export class Collectives {
  readonly #state: MpiState;
  readonly #views = new Map<number, Uint8Array>();
  /** Two places for the vectors of a function of the program, and two words for its arguments. */
  #places: MemRegion | undefined;

  constructor(state: MpiState) {
    this.#state = state;
  }

  comm(handle: number): Communicator {
    return this.#state.comms.get(handle).comm;
  }

  /** A buffer of `count` elements. @param isGiven whether its contents count */
  side(buffer: number, count: number, typeHandle: number, isGiven: boolean): Side {
    const type = this.#state.types.committed(typeHandle);
    if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
    const { engine, bytes: memory } = this.#state;
    // A double and an int have four bytes of padding, which are moved too: reductions take whole pairs.
    const isPair = type.runs.length === 2 && type.runs[0] === 0 && type.lowerBound === 0 && type.element === "f64_i32";
    const bytes = count * (isPair ? type.extent : type.bytes);
    if (isDense(type) || isPair) {
      if (bytes > 0 && buffer === 0) throw new MpiFailure(ERR.BUFFER, `the buffer of ${bytes} bytes is NULL`);
      return { view: this.#viewOf(memory, buffer, bytes), end: NOTHING_LEFT };
    }
    const region = engine.scratch(bytes);
    const from = region.bytes.byteOffset;
    const copy = (to: number, start: number, length: number): void => engine.copy(to, start, length);
    if (isGiven) pack(copy, type, buffer, count, from);
    return {
      view: memory.subarray(from, from + bytes),
      end: (hasCome) => {
        if (hasCome) unpack(copy, type, from, bytes, buffer);
        engine.freeScratch(region);
      },
    };
  }

  /** The same view for the same bytes, while there are few: a geometry does not check a call anew that is like one before. */
  #viewOf(memory: Uint8Array, buffer: number, bytes: number): Uint8Array {
    const key = buffer + bytes * 2 ** 32;
    let view = this.#views.get(key);
    if (view !== undefined) return view;
    if (this.#views.size >= VIEWS_MAX) this.#views.clear();
    view = memory.subarray(buffer, buffer + bytes);
    this.#views.set(key, view);
    return view;
  }

  /** Runs an operation. @throws MpiFailure unless it succeeds */
  run(comm: Communicator, name: string, begin: (geometry: Geometry) => Result): void {
    if (begin(comm.geometry) === OK) return;
    const error = comm.failure(name);
    throw new MpiFailure(
      (error as { code?: string }).code === "PAMIR_SHUTDOWN" ? ERR.PROC_FAILED : ERR.OTHER,
      error.message,
    );
  }

  /** As which elements and by which operation a reduction goes. @throws MpiFailure */
  reduction(
    typeHandle: number,
    opHandle: number,
  ): { operation: Operation | UserOperation; type: ElementType | undefined } {
    const type = this.#state.types.committed(typeHandle);
    const op = this.#state.operation(opHandle);
    if (typeof op === "object") return { operation: this.#own(op, type, typeHandle), type: undefined };
    if (op === undefined) throw new MpiFailure(ERR.OP, `0x${opHandle.toString(16)} is no operation`);
    if (type.element === undefined) throw new MpiFailure(ERR.OP, `the operation ${op} is not one for ${type.name}`);
    return { operation: op, type: type.element };
  }

  /** A function of the program as an operation: it finds its vectors in the program's memory. */
  #own(op: UserOp, type: Datatype, typeHandle: number): UserOperation {
    const state = this.#state;
    const call = state.functionAt(op.call);
    return {
      commutative: op.commutative,
      elementBytes: type.bytes,
      combine: (left, right, out) => {
        const bytes = left.byteLength;
        const places = this.#placesFor(2 * bytes + 16);
        const at = places.bytes.byteOffset;
        const [args, first, second] = [at, at + 16, at + 16 + bytes];
        state.bytes.set(bytesOf(left), first);
        state.bytes.set(bytesOf(right), second);
        state.setWord(args, bytes / type.bytes);
        state.setWord(args + 4, typeHandle);
        call(first, second, args, args + 4);
        bytesOf(out).set(state.bytes.subarray(second, second + bytes));
      },
    };
  }

  #placesFor(bytes: number): MemRegion {
    if (this.#places === undefined || this.#places.length < bytes) {
      if (this.#places !== undefined) this.#state.engine.freeScratch(this.#places);
      this.#places = this.#state.engine.scratch(bytes);
    }
    return this.#places;
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The calls of this file, without their guards: the number is that of the argument with the communicator. */
export function collectiveCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const all = new Collectives(state);
  const checkRoot = (comm: Communicator, root: number): void => {
    if (!(root >= 0 && root < comm.size))
      throw new MpiFailure(ERR.ROOT, `the root is rank ${root}, none of 0 to ${comm.size - 1}`);
  };
  return {
    MPI_Barrier: [
      0,
      (handle) => {
        all.run(all.comm(handle as number), "MPI_Barrier", (geometry) => geometry.barrierSync());
        return SUCCESS;
      },
    ],
    MPI_Bcast: [
      4,
      (buffer, count, type, root, handle) => {
        const comm = all.comm(handle as number);
        checkRoot(comm, root as number);
        const side = all.side(buffer as number, count as number, type as number, comm.rank === root);
        all.run(comm, "MPI_Bcast", (geometry) => geometry.broadcastSync({ buffer: side.view, root: root as number }));
        side.end(comm.rank !== root);
        return SUCCESS;
      },
    ],
    ...reductionCalls(state, all, checkRoot),
    ...evenCalls(all, checkRoot),
    ...unevenCalls(state, all, checkRoot),
  };
}

type CheckRoot = (comm: Communicator, root: number) => void;

function reductionCalls(
  state: MpiState,
  all: Collectives,
  checkRoot: CheckRoot,
): Record<string, readonly [number, Call]> {
  /** Runs a reduction of equal vectors. @param isReceiver whether this member gets the result */
  const reduce = (
    given: readonly number[],
    isReceiver: boolean,
    run: (what: {
      send: Uint8Array | null;
      receive: Uint8Array | null;
      operation: Operation | UserOperation;
      type?: ElementType | undefined;
    }) => void,
  ): number => {
    const [from, to, count, type, op] = given as [number, number, number, number, number];
    const isInPlace = from === IN_PLACE;
    const reduction = all.reduction(type, op);
    const send = isInPlace ? undefined : all.side(from, count, type, true);
    const receive = isReceiver ? all.side(to, count, type, isInPlace) : undefined;
    run({ send: send?.view ?? null, receive: receive?.view ?? null, ...reduction });
    send?.end(false);
    receive?.end(true);
    return SUCCESS;
  };
  const scan = (name: string, exclusive: boolean): readonly [number, Call] => [
    5,
    (...given) => {
      const comm = all.comm(given[5] as number);
      return reduce(given, true, (what) =>
        all.run(comm, name, (geometry) => geometry.scanSync({ ...what, exclusive })),
      );
    },
  ];
  return {
    MPI_Allreduce: [
      5,
      (...given) => {
        const comm = all.comm(given[5] as number);
        return reduce(given, true, (what) =>
          all.run(comm, "MPI_Allreduce", (geometry) => geometry.allreduceSync(what)),
        );
      },
    ],
    MPI_Reduce: [
      6,
      (...given) => {
        const comm = all.comm(given[6] as number);
        const root = given[5] as number;
        checkRoot(comm, root);
        return reduce(given, comm.rank === root, (what) =>
          all.run(comm, "MPI_Reduce", (geometry) => geometry.reduceSync({ ...what, root })),
        );
      },
    ],
    MPI_Scan: scan("MPI_Scan", false),
    MPI_Exscan: scan("MPI_Exscan", true),
    MPI_Reduce_scatter_block: [
      5,
      (from, to, count, type, op, handle) => {
        const comm = all.comm(handle as number);
        const counts = new Array<number>(comm.size).fill(count as number);
        return scatterReduced(all, { comm, from, to, counts, type, op } as ReduceScatter);
      },
    ],
    MPI_Reduce_scatter: [
      5,
      (from, to, pointer, type, op, handle) => {
        const comm = all.comm(handle as number);
        const counts = state.array(pointer as number, comm.size);
        return scatterReduced(all, { comm, from, to, counts, type, op } as ReduceScatter);
      },
    ],
  };
}

interface ReduceScatter {
  readonly comm: Communicator;
  readonly from: number;
  readonly to: number;
  readonly counts: readonly number[];
  readonly type: number;
  readonly op: number;
}

function scatterReduced(all: Collectives, given: ReduceScatter): number {
  const { comm, from, to, counts, type, op } = given;
  const isInPlace = from === IN_PLACE;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const reduction = all.reduction(type, op);
  const own = counts[comm.rank] as number;
  const send = all.side(isInPlace ? to : from, total, type, true);
  const receive = isInPlace ? undefined : all.side(to, own, type, false);
  const what = { counts, ...reduction };
  all.run(comm, "MPI_Reduce_scatter", (geometry) =>
    geometry.reduceScatterSync(
      receive === undefined
        ? { send: null, receive: send.view, ...what }
        : { send: send.view, receive: receive.view, ...what },
    ),
  );
  send.end(isInPlace);
  receive?.end(true);
  return SUCCESS;
}

function evenCalls(all: Collectives, checkRoot: CheckRoot): Record<string, readonly [number, Call]> {
  /** Blocks of equal lengths from all to all, or to one. */
  const gathers = (name: string, given: readonly number[], comm: Communicator, root: number | undefined): number => {
    const [from, sendCount, sendType, to, count, type] = given as [number, number, number, number, number, number];
    const isReceiver = root === undefined || root === comm.rank;
    const send = from === IN_PLACE ? undefined : all.side(from, sendCount, sendType, true);
    const receive = isReceiver ? all.side(to, count * comm.size, type, from === IN_PLACE) : undefined;
    const what = { send: send?.view ?? null, receive: receive?.view ?? null };
    all.run(comm, name, (geometry) =>
      root === undefined ? geometry.allgatherSync(what) : geometry.gatherSync({ ...what, root }),
    );
    send?.end(false);
    receive?.end(true);
    return SUCCESS;
  };
  return {
    MPI_Allgather: [6, (...given) => gathers("MPI_Allgather", given, all.comm(given[6] as number), undefined)],
    MPI_Gather: [
      7,
      (...given) => {
        const comm = all.comm(given[7] as number);
        checkRoot(comm, given[6] as number);
        return gathers("MPI_Gather", given, comm, given[6]);
      },
    ],
    MPI_Scatter: [
      7,
      (from, sendCount, sendType, to, count, type, root, handle) => {
        const comm = all.comm(handle as number);
        checkRoot(comm, root as number);
        const isRoot = comm.rank === root;
        const send = isRoot
          ? all.side(from as number, (sendCount as number) * comm.size, sendType as number, true)
          : undefined;
        const isInPlace = to === IN_PLACE;
        const receive = isInPlace ? undefined : all.side(to as number, count as number, type as number, false);
        all.run(comm, "MPI_Scatter", (geometry) =>
          geometry.scatterSync({ send: send?.view ?? null, receive: receive?.view ?? null, root: root as number }),
        );
        send?.end(false);
        receive?.end(true);
        return SUCCESS;
      },
    ],
    MPI_Alltoall: [
      6,
      (from, sendCount, sendType, to, count, type, handle) => {
        const comm = all.comm(handle as number);
        const isInPlace = from === IN_PLACE;
        const send = isInPlace
          ? undefined
          : all.side(from as number, (sendCount as number) * comm.size, sendType as number, true);
        const receive = all.side(to as number, (count as number) * comm.size, type as number, isInPlace);
        all.run(comm, "MPI_Alltoall", (geometry) =>
          geometry.alltoallSync({ send: send?.view ?? null, receive: receive.view }),
        );
        send?.end(false);
        receive.end(true);
        return SUCCESS;
      },
    ],
  };
}

/** Blocks of several lengths in a buffer of the program, which may leave gaps between them. */
class Blocks {
  readonly view: Uint8Array;
  readonly counts: number[];
  readonly displacements: number[];

  /** @param places pointer to the displacements, in elements @throws MpiFailure MPI_ERR_TYPE for types with gaps */
  constructor(state: MpiState, buffer: number, counts: number, places: number, typeHandle: number, size: number) {
    const type = state.types.committed(typeHandle);
    if (!isDense(type))
      throw new MpiFailure(ERR.UNSUPPORTED_OPERATION, `${type.name} has gaps: blocks of several lengths take none`);
    const own = state.array(counts, size);
    const at = state.array(places, size);
    const negative = own.findIndex((count) => count < 0);
    if (negative >= 0) throw new MpiFailure(ERR.COUNT, `the count for rank ${negative} is ${own[negative]}`);
    this.counts = own.map((count) => count * type.bytes);
    this.displacements = at.map((place) => place * type.bytes);
    // Blocks may lie before the buffer's first byte: the view begins at the first block.
    const used = this.displacements.filter((_, rank) => (own[rank] as number) > 0);
    const first = used.length === 0 ? 0 : Math.min(...used);
    const end = Math.max(first, ...this.displacements.map((place, rank) => place + (this.counts[rank] as number)));
    this.displacements = this.displacements.map((place, rank) => ((own[rank] as number) > 0 ? place - first : 0));
    this.view = state.bytes.subarray(buffer + first, buffer + end);
  }
}

function unevenCalls(state: MpiState, all: Collectives, checkRoot: CheckRoot): Record<string, readonly [number, Call]> {
  return {
    MPI_Allgatherv: [
      7,
      (from, sendCount, sendType, to, counts, places, type, handle) => {
        const comm = all.comm(handle as number);
        const send =
          from === IN_PLACE ? undefined : all.side(from as number, sendCount as number, sendType as number, true);
        const { view, ...blocks } = new Blocks(
          state,
          to as number,
          counts as number,
          places as number,
          type as number,
          comm.size,
        );
        all.run(comm, "MPI_Allgatherv", (geometry) =>
          geometry.allgathervSync({ send: send?.view ?? null, receive: view, ...blocks }),
        );
        send?.end(false);
        return SUCCESS;
      },
    ],
    MPI_Gatherv: [
      8,
      (from, sendCount, sendType, to, counts, places, type, root, handle) => {
        const comm = all.comm(handle as number);
        checkRoot(comm, root as number);
        const send =
          from === IN_PLACE ? undefined : all.side(from as number, sendCount as number, sendType as number, true);
        const isRoot = comm.rank === root;
        const blocks = isRoot
          ? new Blocks(state, to as number, counts as number, places as number, type as number, comm.size)
          : undefined;
        all.run(comm, "MPI_Gatherv", (geometry) =>
          geometry.gathervSync({
            send: send?.view ?? null,
            receive: blocks?.view ?? null,
            counts: blocks?.counts,
            displacements: blocks?.displacements,
            root: root as number,
          }),
        );
        send?.end(false);
        return SUCCESS;
      },
    ],
    MPI_Scatterv: [
      8,
      (from, counts, places, sendType, to, count, type, root, handle) => {
        const comm = all.comm(handle as number);
        checkRoot(comm, root as number);
        const isRoot = comm.rank === root;
        const blocks = isRoot
          ? new Blocks(state, from as number, counts as number, places as number, sendType as number, comm.size)
          : undefined;
        const receive = to === IN_PLACE ? undefined : all.side(to as number, count as number, type as number, false);
        all.run(comm, "MPI_Scatterv", (geometry) =>
          geometry.scattervSync({
            send: blocks?.view ?? null,
            receive: receive?.view ?? null,
            counts: blocks?.counts,
            displacements: blocks?.displacements,
            root: root as number,
          }),
        );
        receive?.end(true);
        return SUCCESS;
      },
    ],
    MPI_Alltoallv: [
      8,
      (from, sendCounts, sendPlaces, sendType, to, counts, places, type, handle) => {
        const comm = all.comm(handle as number);
        const receive = new Blocks(state, to as number, counts as number, places as number, type as number, comm.size);
        const send =
          from === IN_PLACE
            ? undefined
            : new Blocks(
                state,
                from as number,
                sendCounts as number,
                sendPlaces as number,
                sendType as number,
                comm.size,
              );
        all.run(comm, "MPI_Alltoallv", (geometry) =>
          geometry.alltoallvSync({
            send: send?.view ?? null,
            receive: receive.view,
            sendCounts: (send ?? receive).counts,
            sendDisplacements: (send ?? receive).displacements,
            receiveCounts: receive.counts,
            receiveDisplacements: receive.displacements,
          }),
        );
        return SUCCESS;
      },
    ],
  };
}

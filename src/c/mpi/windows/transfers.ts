// Puts and gets. In the memory of its own node, a rank copies itself; to other nodes go puts and gets of pamir, one for each run
// of the target's type.
import { EAGAIN, type MemRegion, type Result, SHUTDOWN, SUCCESS } from "../../../index.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";
import { isDense, pack, unpack } from "../types.js";
import { boundsOf, type Elements, eachPair, eachRun } from "./elements.js";
import type { RankMemory, Window } from "./window.js";

/** An operation that is under way to one rank. */
export interface OpenTransfer {
  readonly rank: number;
  /** Parts of it that are not over. */
  left: number;
  hasFailed: boolean;
  /** Called once it is over. */
  readonly onEnd: (operation: OpenTransfer) => void;
}

export class Transfers {
  readonly #state: MpiState;
  readonly #copy: (to: number, from: number, bytes: number) => void;

  constructor(state: MpiState) {
    this.#state = state;
    this.#copy = (to, from, bytes) => state.engine.copy(to, from, bytes);
  }

  /**
   * The target's side of an operation.
   * @throws MpiFailure MPI_ERR_RANK, MPI_ERR_DISP, MPI_ERR_RMA_RANGE, MPI_ERR_RMA_SYNC
   */
  target(window: Window, rank: number, place: number, side: Elements): Elements {
    const part = partOf(window, rank);
    window.epochs.checkAccess(rank);
    if (place < 0) throw new MpiFailure(ERR.DISP, `the displacement is ${place}, not a number from 0`);
    const target = { ...side, address: part.base + place * part.unit };
    const [first, end] = boundsOf(target);
    if (first >= part.base && end <= part.base + part.size) return target;
    const text = `bytes ${first - part.base} to ${end - part.base} of rank ${rank}'s window, which has ${part.size}`;
    throw new MpiFailure(ERR.RMA_RANGE, text);
  }

  /** Whether this task may read and write the part now, until it advances. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  checkAlive(window: Window, rank: number): void {
    const part = window.parts[rank] as RankMemory;
    if (this.#state.engine.hasEnded(window, rank)) throw ended(rank);
    if (part.owner === this.#state.context.endpoint || !part.isLocal) return;
    // A get of no byte is refused once the region is closed. Until the next advance(), its memory is not used otherwise.
    this.#begin(rank, () =>
      this.#state.context.get({ to: part.owner, local: window.locks, remote: part.region, bytes: 0 }),
    );
  }

  /** @returns the operation; undefined: it is over */
  transfer(isPut: boolean, window: Window, rank: number, origin: Elements, target: Elements): OpenTransfer | undefined {
    this.checkAlive(window, rank);
    if ((window.parts[rank] as RankMemory).isLocal) {
      eachPair(origin, target, isPut ? (from, to, bytes) => this.#copy(to, from, bytes) : this.#copy);
      return undefined;
    }
    if (origin.bytes === 0) return undefined;
    const { engine } = this.#state;
    const isInPlace = isDense(origin.type) && engine.holds(origin.address, origin.bytes);
    const inPlace = isInPlace ? engine.regionOf(origin.address, origin.bytes) : undefined;
    const local = inPlace ?? engine.scratch(origin.bytes);
    const first = inPlace === undefined ? local.bytes.byteOffset : origin.address;
    if (inPlace === undefined && isPut) pack(this.#copy, origin.type, origin.address, origin.count, first);
    const operation = this.begin(window, rank, ({ hasFailed }) => {
      if (inPlace !== undefined) return;
      if (!isPut && !hasFailed) unpack(this.#copy, origin.type, first, origin.bytes, origin.address);
      engine.freeScratch(local);
    });
    const localFirst = first - local.bytes.byteOffset;
    try {
      eachRun(target, (address, bytes, place) => {
        this.#move(isPut, window, rank, { operation, local, localOffset: localFirst + place, address, bytes });
      });
    } finally {
      this.end(operation);
    }
    return operation;
  }

  #move(
    isPut: boolean,
    window: Window,
    rank: number,
    run: { operation: OpenTransfer; local: MemRegion; localOffset: number; address: number; bytes: number },
  ): void {
    const { operation, local, localOffset, address, bytes } = run;
    const { owner, region, regionBase } = window.parts[rank] as RankMemory;
    const { context } = this.#state;
    const done = (_: unknown, result: Result): void => this.end(operation, result);
    const common = { to: owner, local, localOffset, remote: region, remoteOffset: address - regionBase, bytes };
    operation.left++;
    try {
      this.#begin(rank, () =>
        isPut ? context.put({ ...common, onRemote: done }) : context.get({ ...common, onLocal: done }),
      );
    } catch (error) {
      operation.left--;
      operation.hasFailed = true;
      throw error;
    }
  }

  /** Begins an operation that consists of one part, which end() ends. */
  begin(window: Window, rank: number, onEnd: (operation: OpenTransfer) => void): OpenTransfer {
    (window.pending[rank] as number)++;
    return {
      rank,
      left: 1,
      hasFailed: false,
      onEnd: (operation) => {
        (window.pending[rank] as number)--;
        if (operation.hasFailed) window.failed.add(rank);
        onEnd(operation);
      },
    };
  }

  /** A part of an operation is over. */
  end(operation: OpenTransfer, result: Result = SUCCESS): void {
    if (result !== SUCCESS) operation.hasFailed = true;
    if (--operation.left === 0) operation.onEnd(operation);
  }

  /** Waits until all operations to a rank are over, and can be seen there. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  flush(window: Window, rank: number): void {
    const { engine } = this.#state;
    const isOver = (): boolean => window.pending[rank] === 0 || engine.hasEnded(window, rank);
    if (!isOver()) engine.waitUntil(isOver);
    const isLost = window.pending[rank] !== 0;
    if (window.failed.delete(rank) || isLost) throw ended(rank);
  }

  /** As flush(), for all ranks. */
  flushAll(window: Window): void {
    let failure: unknown;
    for (let rank = 0; rank < window.size; rank++) {
      if (window.pending[rank] === 0 && !window.failed.has(rank)) continue;
      try {
        this.flush(window, rank);
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** Begins a transfer of pamir, once there is room. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  #begin(rank: number, start: () => Result): void {
    let result: Result;
    try {
      result = start();
      if (result === EAGAIN) {
        this.#state.engine.waitUntil(() => {
          result = start();
          return result !== EAGAIN;
        });
      }
    } catch (error) {
      // The region is gone with its task, of whose end this task has not heard yet.
      if ((error as { code?: string }).code === "PAMIR_STALE") throw ended(rank);
      throw error;
    }
    if (result === SHUTDOWN) throw ended(rank);
  }
}

/** @throws MpiFailure MPI_ERR_RANK */
export function partOf(window: Window, rank: number): RankMemory {
  const part = window.parts[rank];
  if (part === undefined) throw new MpiFailure(ERR.RANK, `rank ${rank} is none of 0 to ${window.size - 1}`);
  return part;
}

/** @returns an error MPIX_ERR_PROC_FAILED */
export function ended(rank: number): MpiFailure {
  return new MpiFailure(ERR.PROC_FAILED, `rank ${rank} has ended`);
}

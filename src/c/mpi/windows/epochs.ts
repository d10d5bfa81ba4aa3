// Which operations a program may do now: the epochs of one window at one rank. Source: MPI 5.0, section 12.5.
import { ERR, LOCK_EXCLUSIVE } from "../constants.js";
import { MpiFailure } from "../failure.js";

export class Epochs {
  readonly #size: number;
  /** Whether the last MPI_Win_fence() lets operations follow. */
  isFenced = false;
  /** Targets of MPI_Win_start(). */
  started: readonly number[] | undefined;
  /** Origins of MPI_Win_post(). */
  posted: readonly number[] | undefined;
  /** Kinds of the locks that this rank has, by the ranks of their targets. */
  readonly locks = new Map<number, number>();
  /** Whether MPI_Win_lock_all() was called: ranks are locked at their first operation, or at once if `locks` has them. */
  isAllLocked = false;

  constructor(size: number) {
    this.#size = size;
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC no epoch lets this rank read and write that of `rank` */
  checkAccess(rank: number): void {
    if (this.isFenced || this.isLocked(rank) || this.started?.includes(rank)) return;
    throw wrong(`no epoch is open for rank ${rank}: a fence, a lock or MPI_Win_start() is missing`);
  }

  isLocked(rank: number): boolean {
    return this.isAllLocked || this.locks.has(rank);
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC */
  checkLocked(call: string, rank: number): void {
    if (!this.isLocked(rank)) throw wrong(`${call}: rank ${rank} is not locked`);
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC */
  checkAnyLocked(call: string): void {
    if (!this.isAllLocked && this.locks.size === 0) throw wrong(`${call}: no rank is locked`);
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC another epoch of accesses is open */
  checkNone(call: string): void {
    if (this.started !== undefined) throw wrong(`${call}: MPI_Win_complete() is missing`);
    if (this.isAllLocked) throw wrong(`${call}: MPI_Win_unlock_all() is missing`);
    const [first] = this.locks;
    if (first === undefined) return;
    const kind = first[1] === LOCK_EXCLUSIVE ? "exclusive" : "shared";
    throw wrong(`${call}: rank ${first[0]} has a ${kind} lock, MPI_Win_unlock() is missing`);
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC rank `rank` can't be locked now */
  checkLock(call: string, rank: number): void {
    if (this.locks.has(rank) || this.isAllLocked) throw wrong(`${call}: rank ${rank} is locked already`);
    if (this.started !== undefined) throw wrong(`${call}: MPI_Win_complete() is missing`);
  }

  /** @throws MpiFailure MPI_ERR_RMA_SYNC */
  checkExposure(call: string): readonly number[] {
    if (this.posted === undefined) throw wrong(`${call}: MPI_Win_post() is missing`);
    return this.posted;
  }

  /** Ranks of the window. */
  get all(): readonly number[] {
    return Array.from({ length: this.#size }, (_, rank) => rank);
  }
}

/** @returns an error MPI_ERR_RMA_SYNC */
export function wrong(text: string): MpiFailure {
  return new MpiFailure(ERR.RMA_SYNC, text);
}

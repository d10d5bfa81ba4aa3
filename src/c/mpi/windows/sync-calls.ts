// Synchronization of windows: fences, locks, and epochs of groups. Source: MPI 5.0, section 12.5.
import { ERR, LOCK_EXCLUSIVE, LOCK_SHARED, MODE_NOPRECEDE, MODE_NOSUCCEED, PROC_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call } from "../state.js";
import { wrong } from "./epochs.js";
import { LockWords } from "./lock-words.js";
import { ended, partOf } from "./transfers.js";
import type { Window } from "./window.js";
import { MESSAGE, type WindowSet } from "./windows.js";

/** The calls of this file: the number is that of the argument with the window. */
export function syncCalls(windows: WindowSet): Record<string, readonly [number, Call]> {
  const { table, transfers } = windows;
  const flushOne: readonly [number, Call] = [
    1,
    (rank, handle) => {
      const window = table.get(handle as number);
      if (rank === PROC_NULL) return SUCCESS;
      partOf(window, rank as number);
      window.epochs.checkLocked("MPI_Win_flush", rank as number);
      transfers.flush(window, rank as number);
      return SUCCESS;
    },
  ];
  const flushAll: readonly [number, Call] = [
    0,
    (handle) => {
      const window = table.get(handle as number);
      window.epochs.checkAnyLocked("MPI_Win_flush_all");
      transfers.flushAll(window);
      return SUCCESS;
    },
  ];
  return {
    MPI_Win_fence: [
      1,
      (assertions, handle) => {
        const window = table.get(handle as number);
        window.epochs.checkNone("MPI_Win_fence");
        if (((assertions as number) & MODE_NOPRECEDE) === 0) transfers.flushAll(window);
        windows.barrier(window, "MPI_Win_fence");
        window.epochs.isFenced = ((assertions as number) & MODE_NOSUCCEED) === 0;
        return SUCCESS;
      },
    ],
    MPI_Win_flush: flushOne,
    MPI_Win_flush_local: flushOne,
    MPI_Win_flush_all: flushAll,
    MPI_Win_flush_local_all: flushAll,
    MPI_Win_sync: [
      0,
      (handle) => {
        table.get(handle as number);
        // Loops that wait for a word of the window call this: so what others ask of this rank goes on.
        windows.state.engine.advance();
        return SUCCESS;
      },
    ],
    ...lockCalls(windows),
    ...groupCalls(windows),
  };
}

function lockCalls({ state, table, transfers }: WindowSet): Record<string, readonly [number, Call]> {
  const words = new LockWords(state);
  const lock = (window: Window, rank: number, kind: number): void => {
    words.acquire(window, rank, kind);
    window.epochs.locks.set(rank, kind);
  };
  const unlock = (window: Window, rank: number): void => {
    const kind = window.epochs.locks.get(rank) as number;
    window.epochs.locks.delete(rank);
    transfers.flush(window, rank);
    words.release(window, rank, kind);
  };
  return {
    MPI_Win_lock: [
      3,
      (kind, rank, _assertions, handle) => {
        const window = table.get(handle as number);
        if (kind !== LOCK_EXCLUSIVE && kind !== LOCK_SHARED)
          throw new MpiFailure(ERR.LOCKTYPE, `the kind of the lock is ${kind}, neither exclusive nor shared`);
        if (rank === PROC_NULL) return SUCCESS;
        partOf(window, rank as number);
        window.epochs.checkLock("MPI_Win_lock", rank as number);
        lock(window, rank as number, kind as number);
        window.epochs.isFenced = false;
        return SUCCESS;
      },
    ],
    MPI_Win_unlock: [
      1,
      (rank, handle) => {
        const window = table.get(handle as number);
        if (rank === PROC_NULL) return SUCCESS;
        partOf(window, rank as number);
        if (!window.epochs.locks.has(rank as number) || window.epochs.isAllLocked)
          throw wrong(`MPI_Win_unlock: rank ${rank} is not locked`);
        unlock(window, rank as number);
        return SUCCESS;
      },
    ],
    MPI_Win_lock_all: [
      1,
      (_assertions, handle) => {
        const window = table.get(handle as number);
        const { epochs } = window;
        epochs.checkNone("MPI_Win_lock_all");
        epochs.isFenced = false;
        try {
          for (const rank of epochs.all) if (!hasEnded(state.engine, window, rank)) lock(window, rank, LOCK_SHARED);
        } catch (error) {
          for (const rank of [...epochs.locks.keys()]) unlock(window, rank);
          throw error;
        }
        epochs.isAllLocked = true;
        return SUCCESS;
      },
    ],
    MPI_Win_unlock_all: [
      0,
      (handle) => {
        const window = table.get(handle as number);
        const { epochs } = window;
        if (!epochs.isAllLocked) throw wrong("MPI_Win_unlock_all: MPI_Win_lock_all() is missing");
        epochs.isAllLocked = false;
        let failure: unknown;
        for (const rank of [...epochs.locks.keys()]) {
          try {
            unlock(window, rank);
          } catch (error) {
            failure ??= error;
          }
        }
        if (failure !== undefined) throw failure;
        return SUCCESS;
      },
    ],
  };
}

function groupCalls(windows: WindowSet): Record<string, readonly [number, Call]> {
  const { state, table, transfers } = windows;
  const { engine } = state;
  /** Ranks in the window of a group's members. @throws MpiFailure MPI_ERR_GROUP */
  const ranksOf = (window: Window, group: number): number[] =>
    state.groups.get(group).map((endpoint) => {
      const rank = window.endpoints.indexOf(endpoint);
      if (rank < 0) throw new MpiFailure(ERR.GROUP, "a member of the group is none of the window");
      return rank;
    });
  /** Takes one message of each rank. @throws MpiFailure MPIX_ERR_PROC_FAILED a rank has ended without its message */
  const takeAll = (window: Window, ranks: readonly number[], counts: Int32Array): void => {
    const isThere = (rank: number): boolean => counts[rank] !== 0;
    const isOver = (): boolean => ranks.every((rank) => isThere(rank) || engine.hasEnded(window, rank));
    if (!isOver()) engine.waitUntil(isOver);
    const lost = ranks.find((rank) => !isThere(rank));
    for (const rank of ranks) if (isThere(rank)) (counts[rank] as number)--;
    if (lost !== undefined) throw ended(lost);
  };
  return {
    MPI_Win_start: [
      2,
      (group, _assertions, handle) => {
        const window = table.get(handle as number);
        window.epochs.checkNone("MPI_Win_start");
        const ranks = ranksOf(window, group as number);
        takeAll(window, ranks, window.posts);
        window.epochs.isFenced = false;
        window.epochs.started = ranks;
        return SUCCESS;
      },
    ],
    MPI_Win_complete: [
      0,
      (handle) => {
        const window = table.get(handle as number);
        const { started } = window.epochs;
        if (started === undefined) throw wrong("MPI_Win_complete: MPI_Win_start() is missing");
        window.epochs.started = undefined;
        transfers.flushAll(window);
        for (const rank of started) windows.tell(window, rank, MESSAGE.COMPLETE);
        return SUCCESS;
      },
    ],
    MPI_Win_post: [
      2,
      (group, _assertions, handle) => {
        const window = table.get(handle as number);
        if (window.epochs.posted !== undefined) throw wrong("MPI_Win_post: MPI_Win_wait() is missing");
        const ranks = ranksOf(window, group as number);
        window.epochs.posted = ranks;
        for (const rank of ranks) windows.tell(window, rank, MESSAGE.POST);
        return SUCCESS;
      },
    ],
    MPI_Win_wait: [
      0,
      (handle) => {
        const window = table.get(handle as number);
        const origins = window.epochs.checkExposure("MPI_Win_wait");
        window.epochs.posted = undefined;
        takeAll(window, origins, window.completes);
        return SUCCESS;
      },
    ],
    MPI_Win_test: [
      0,
      (handle, flag) => {
        const window = table.get(handle as number);
        const origins = window.epochs.checkExposure("MPI_Win_test");
        engine.advance();
        const isOver = origins.every((rank) => window.completes[rank] !== 0 || engine.hasEnded(window, rank));
        state.setWord(flag as number, +isOver);
        if (!isOver) return SUCCESS;
        window.epochs.posted = undefined;
        takeAll(window, origins, window.completes);
        return SUCCESS;
      },
    ],
  };
}

function hasEnded(engine: WindowSet["state"]["engine"], window: Window, rank: number): boolean {
  return engine.hasEnded(window, rank);
}

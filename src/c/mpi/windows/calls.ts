// All calls about windows, by their names.
import { MpiFailure } from "../failure.js";
import type { Infos } from "../objects/info.js";
import type { Call, MpiState } from "../state.js";
import { objectCalls } from "./object-calls.js";
import { operationCalls } from "./operation-calls.js";
import { syncCalls } from "./sync-calls.js";
import { lifeCalls, makingCalls } from "./window-calls.js";
import { WindowSet } from "./windows.js";

/** The calls about windows, without their guards: the number is that of the argument with the communicator. */
export function windowCalls(state: MpiState, infos: Infos): Record<string, readonly [number, Call]> {
  const windows = new WindowSet(state);
  const guarded = {
    ...lifeCalls(windows),
    ...objectCalls(windows, infos),
    ...operationCalls(windows),
    ...syncCalls(windows),
  };
  const calls: Record<string, readonly [number, Call]> = { ...makingCalls(windows, infos) };
  for (const [name, [at, run]] of Object.entries(guarded)) calls[name] = [-1, byWindow(windows, name, at, run)];
  return calls;
}

/** A call that fails as its window's error handler says. @param at which argument is the window; -1: none, or a pointer to it */
function byWindow({ state, table }: WindowSet, name: string, at: number, run: Call): Call {
  return (...given) => {
    try {
      return run(...given);
    } catch (error) {
      if (!(error instanceof MpiFailure) || at < 0) throw error;
      const handle = given[at] as number;
      // Errors about a window that does not exist are those of MPI_COMM_WORLD.
      if (!table.has(handle)) throw error;
      return state.handled(name, handle, table.get(handle).errorHandler, error.errorClass, error.message);
    }
  };
}

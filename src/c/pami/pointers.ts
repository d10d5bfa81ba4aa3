// Pointers that calls of PAMI need: NULL in place of one is an error that names the argument. Without this check, a call would read
// and write at address 0, where pamir's own data begin.
import { PamiError } from "../../index.js";
import { NULL } from "./layouts.js";

/** A call, as state.ts has it. */
type Call = (...given: number[]) => number;

/** Which argument is a pointer, its name in pami.h, and which argument counts its elements (none: it is always needed). */
type Needed = readonly [index: number, name: string, count?: number];

const PARAMETERS: readonly Needed[] = [[1, "parameters"]];
const NEEDED: Readonly<Record<string, readonly Needed[]>> = {
  PAMI_Client_create: [[1, "client"]],
  PAMI_Client_destroy: [[0, "client"]],
  PAMI_Client_query: [[1, "settings", 2]],
  PAMI_Context_createv: [[3, "contexts", 4]],
  PAMI_Context_destroyv: [[0, "contexts", 1]],
  PAMI_Context_query: [[1, "settings", 2]],
  PAMI_Context_advancev: [[0, "contexts", 1]],
  PAMI_Context_trylock_advancev: [[0, "contexts", 1]],
  PAMI_Endpoint_create: [[3, "endpoint"]],
  PAMI_Endpoint_query: [
    [1, "task"],
    [2, "offset"],
  ],
  PAMI_Purge: [[1, "endpoints", 2]],
  PAMI_Resume: [[1, "endpoints", 2]],
  PAMI_Dispatch_query: [[2, "settings", 3]],
  PAMI_Send: PARAMETERS,
  PAMI_Send_immediate: PARAMETERS,
  PAMI_Put: PARAMETERS,
  PAMI_Get: PARAMETERS,
  PAMI_Rput: PARAMETERS,
  PAMI_Rget: PARAMETERS,
  PAMI_Rmw: PARAMETERS,
  PAMI_Memregion_create: [
    [1, "address", 2],
    [3, "granted"],
    [4, "region"],
  ],
  PAMI_Memregion_destroy: [[1, "region"]],
  PAMI_Geometry_world: [[1, "geometry"]],
  PAMI_Geometry_create_taskrange: [[7, "ranges", 8]],
  PAMI_Geometry_create_tasklist: [[7, "tasks", 8]],
  PAMI_Geometry_create_endpointlist: [[5, "endpoints", 6]],
  PAMI_Geometry_destroy: [[1, "geometry"]],
  PAMI_Geometry_query: [[1, "settings", 2]],
  PAMI_Geometry_algorithms_num: [[2, "counts"]],
  PAMI_Geometry_algorithms_query: [[2, "always", 4]],
  PAMI_Collective: [[1, "transfer"]],
};

/** @throws PAMIR_INVAL */
export function checkPointer(pointer: number | undefined, name: string): void {
  if (pointer === NULL) throw new PamiError("PAMIR_INVAL", `${name} is NULL`);
}

/** The call, with a look at its pointers first. */
export function withPointers(name: string, run: Call): Call {
  const needed = NEEDED[name];
  if (needed === undefined) return run;
  const [first] = needed;
  // Sends and transfers look without an array for their arguments.
  if (needed === PARAMETERS || (run.length === 2 && first?.[0] === 1 && first[2] === undefined)) {
    const what = (first as Needed)[1];
    return (one, other) => {
      checkPointer(other, what);
      return run(one as number, other as number);
    };
  }
  return (...given) => {
    for (const [index, what, count] of needed)
      if (count === undefined || given[count] !== 0) checkPointer(given[index], what);
    return run(...given);
  };
}

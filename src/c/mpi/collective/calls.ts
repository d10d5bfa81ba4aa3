// Collective operations of MPI, over geometries. Source: MPI 5.0, chapter 6.
import type { Call, MpiState } from "../state.js";
import { Collectives } from "./collectives.js";
import { evenRows } from "./even.js";
import { type CollectiveRow, callsOf } from "./prepared.js";
import { reductionRows } from "./reduction-rows.js";
import { unevenRows } from "./uneven.js";

/** The calls of this file, without their guards: the number is that of the argument with the communicator. */
export function collectiveCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const all = new Collectives(state);
  const rows: readonly CollectiveRow[] = [...evenRows(all), ...unevenRows(all), ...reductionRows(state, all)];
  return Object.assign({}, ...rows.map((row) => callsOf(state, row)));
}

// MPI for one program: made before the program runs, since geometries are loaded by promises.
import { MPI_ENGINE_STORED_BYTES_OFFSET, MPI_ENGINE_STORED_OFFSET } from "../../../assembly/layout.js";
import type { Client } from "../../index.js";
import { makeWorld } from "../../mpi/world.js";
import type { ProgramPlace } from "../place.js";
import { mpiCalls } from "./calls.js";
import { ShortCalls } from "./requests/short-calls.js";
import { MpiAbort, MpiState } from "./state.js";

export interface MpiLoaded {
  /** The functions that the program may import from "mpi". */
  readonly calls: Record<string, (...given: number[]) => number>;
  setTable(table: WebAssembly.Table | undefined): void;
  /** The exit code of an error by which MPI ends a program; undefined: another error. */
  codeOf(error: unknown): number | undefined;
  /** How many messages have no receive yet, and bytes of their payloads. */
  stored(): readonly [messages: number, bytes: number];
}

export async function loadMpi(client: Client, place: ProgramPlace, hostName = "localhost"): Promise<MpiLoaded> {
  const { context, world } = await makeWorld(client);
  const state = new MpiState(client, context, world, place);
  state.hostName = hostName;
  const calls = mpiCalls(state);
  // Short calls read the program's buffers where they are: in the job's memory.
  const short = place.arena === undefined ? {} : new ShortCalls(state, place, place.arena).over(calls);
  const { engine } = state;
  const field = (offset: number): number => engine.field(engine.pointer, offset);
  return {
    calls: { ...calls, ...short },
    setTable(table) {
      state.table = table;
    },
    codeOf: (error) => (error instanceof MpiAbort ? error.code : undefined),
    stored: () => [field(MPI_ENGINE_STORED_OFFSET), field(MPI_ENGINE_STORED_BYTES_OFFSET) >>> 0],
  };
}

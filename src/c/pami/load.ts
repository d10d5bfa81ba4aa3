// PAMI for one program: made before the program runs, since geometries are loaded by promises.
import { type Client, type Context, type Geometry, PamiError } from "../../index.js";
import { makeWorld } from "../../mpi/world.js";
import type { ProgramPlace } from "../place.js";
import { collectiveCalls } from "./collectives.js";
import { environmentCalls, freeCalls } from "./environment.js";
import { geometryCalls } from "./geometries.js";
import { messageCalls } from "./messages.js";
import { withPointers } from "./pointers.js";
import { PamiState, type ProgramArena, type ProgramRoom } from "./state.js";
import { transferCalls } from "./transfers.js";

export interface PamiLoaded {
  /** The functions that the program may import from "pami". */
  readonly calls: Record<string, (...given: number[]) => number | bigint>;
  setTable(table: WebAssembly.Table | undefined): void;
}

/** All tasks of the job call it. @throws PAMIR_PROGRAM the program has a memory of its own, which others can't reach */
export async function loadPami(client: Client, place: ProgramPlace): Promise<PamiLoaded> {
  const { arena } = place;
  if (arena === undefined) {
    const text = "a program of pami.h can't have a memory of its own (isolate), which other tasks can't reach";
    throw new PamiError("PAMIR_PROGRAM", text);
  }
  const { context, world } = await makeWorld(client);
  return loadedBy(client, context, world, { region: arena, bytes: arena.length });
}

/** PAMI for a program over the tasks of a geometry, all of which call it. */
export async function loadedBy(
  client: Client,
  context: Context,
  world: Geometry,
  room: ProgramRoom,
): Promise<PamiLoaded> {
  const state = new PamiState(client, context, world, room, await arenasOf(client, world, room));
  const guarded = {
    ...environmentCalls(state),
    ...messageCalls(state),
    ...transferCalls(state),
    ...geometryCalls(state),
    ...collectiveCalls(state),
  };
  const calls: PamiLoaded["calls"] = { ...freeCalls(state) };
  for (const [name, run] of Object.entries(guarded)) calls[name] = state.guarded(name, withPointers(name, run));
  return {
    calls,
    setTable(table) {
      state.table = table;
    },
  };
}

/** Where the programs of all tasks lie, by task. */
async function arenasOf(client: Client, world: Geometry, { region, bytes }: ProgramRoom): Promise<ProgramArena[]> {
  const send = Float64Array.of(region.handle, region.bytes.byteOffset, bytes);
  const all = new Float64Array(3 * world.size);
  await world.allgather({ send, receive: all });
  const arenas: ProgramArena[] = [];
  for (const [rank, endpoint] of world.endpoints.entries()) {
    const [name, base, length] = all.subarray(3 * rank, 3 * rank + 3) as unknown as [number, number, number];
    arenas[client.taskOf(endpoint)] = { handle: name, base, bytes: length };
  }
  return arenas;
}

// PAMI_Collective: a row for each type of operation says which words of its command are what.
import {
  type CollectiveType,
  type ElementType,
  type Geometry,
  type MemRegion,
  type Operation,
  PamiError,
  type Result,
  type UserOperation,
} from "../../index.js";
import { IN_PLACE, NULL, OPERATIONS, TYPES, XFER } from "./layouts.js";
import { checkPointer } from "./pointers.js";
import { packed } from "./program-context.js";
import type { PamiCall, PamiState } from "./state.js";

/** What pamir is asked for. */
type Parameters = Record<string, unknown>;

/** Reads the words of a command. */
interface Command {
  readonly state: PamiState;
  readonly geometry: Geometry;
  /** A word, by its number. */
  word(index: number): number;
}

interface Row {
  readonly type: CollectiveType;
  prepare(command: Command): Parameters;
}

/** Operations by their number: pami_xfer_type_t. */
export const COLLECTIVES: Readonly<Record<number, Row>> = {
  0: {
    type: "broadcast",
    prepare: (c) => ({ root: rootOf(c), buffer: target(c, c.word(1), c.word(2), c.word(3), "buf") }),
  },
  1: { type: "allreduce", prepare: (c) => reduction(c, 0, true) },
  2: {
    type: "reduce",
    prepare: (c) => {
      const root = rootOf(c);
      return { root, ...reduction(c, 1, root === c.geometry.rank) };
    },
  },
  3: { type: "allgather", prepare: (c) => even(c, 0, 1, c.geometry.size) },
  4: { type: "allgatherv", prepare: (c) => gatherv(c, 0, true) },
  5: { type: "allgatherv", prepare: (c) => gatherv(c, 0, true) },
  6: {
    type: "scatter",
    prepare: (c) => {
      const root = rootOf(c);
      return { root, ...even(c, 1, root === c.geometry.rank ? c.geometry.size : 0, 1) };
    },
  },
  7: { type: "scatterv", prepare: scatterv },
  8: { type: "scatterv", prepare: scatterv },
  9: {
    type: "gather",
    prepare: (c) => {
      const root = rootOf(c);
      return { root, ...even(c, 1, 1, root === c.geometry.rank ? c.geometry.size : 0) };
    },
  },
  10: {
    type: "gatherv",
    prepare: (c) => {
      const root = rootOf(c);
      return { root, ...gatherv(c, 1, root === c.geometry.rank) };
    },
  },
  11: {
    type: "gatherv",
    prepare: (c) => {
      const root = rootOf(c);
      return { root, ...gatherv(c, 1, root === c.geometry.rank) };
    },
  },
  12: { type: "barrier", prepare: () => ({}) },
  13: { type: "alltoall", prepare: (c) => even(c, 0, c.geometry.size, c.geometry.size) },
  14: { type: "alltoallv", prepare: alltoallv },
  15: { type: "alltoallv", prepare: alltoallv },
  16: { type: "scan", prepare: (c) => ({ ...reduction(c, 0, true, false), exclusive: c.word(8) !== 0 }) },
};

export function collectiveCalls(state: PamiState): Record<string, PamiCall> {
  return {
    PAMI_Collective: (handle, xfer) => {
      const own = state.context(handle as number);
      const number = state.word((xfer as number) + XFER.ALGORITHM);
      const algorithm = state.algorithms[number - 1];
      if (algorithm === undefined)
        throw new PamiError("PAMIR_INVAL", `${number} is no algorithm of PAMI_Geometry_algorithms_query()`);
      const geometry = state.geometry(algorithm.geometry);
      const { type, prepare } = COLLECTIVES[algorithm.type] as Row;
      const command = (xfer as number) + XFER.COMMAND;
      const parameters = prepare({ state, geometry, word: (index) => state.word(command + 4 * index) });
      if (algorithm.name !== undefined) parameters.algorithm = algorithm.name;
      const fn = state.word((xfer as number) + XFER.DONE_FN);
      if (fn !== NULL) {
        parameters.onDone = own.done;
        parameters.cookie = packed(fn, state.word((xfer as number) + XFER.COOKIE));
      }
      return geometry.collective(type, parameters as never) as Result;
    },
  };
}

/** The rank of the root, whose endpoint is the command's first word. @throws PAMIR_INVAL */
function rootOf({ geometry, word }: Command): number {
  const endpoint = word(0) >>> 0;
  const rank = geometry.endpoints.indexOf(endpoint);
  if (rank < 0) throw new PamiError("PAMIR_INVAL", `root ${endpoint} is no endpoint of the geometry`);
  return rank;
}

/** @throws PAMIR_INVAL */
function typeOf(handle: number): readonly [bytes: number, element?: ElementType] {
  const found = TYPES[handle];
  if (found === undefined) throw new PamiError("PAMIR_INVAL", `${handle} is no type`);
  return found;
}

function target({ state }: Command, pointer: number, type: number, count: number, name = "rcvbuf"): Uint8Array {
  return state.target(pointer, count * typeOf(type)[0], name);
}

function source({ state }: Command, pointer: number, type: number, count: number): Uint8Array {
  return state.source(pointer, count * typeOf(type)[0], "sndbuf");
}

/**
 * Six words: sndbuf, stype, stypecount, rcvbuf, rtype, rtypecount; the counts are those of one block.
 * @param at the first of them @param sent blocks that this member gives; 0: none @param received blocks that it gets
 */
function even(c: Command, at: number, sent: number, received: number): Parameters {
  const [from, to] = [c.word(at), c.word(at + 3)];
  return {
    send: from === IN_PLACE || sent === 0 ? null : source(c, from, c.word(at + 1), c.word(at + 2) * sent),
    receive: to === IN_PLACE || received === 0 ? null : target(c, to, c.word(at + 4), c.word(at + 5) * received),
  };
}

/** sndbuf, stype, stypecount, rcvbuf, rtype, and the vectors rtypecounts and rdispls, which are bytes for pamir. */
function gatherv(c: Command, at: number, gets: boolean): Parameters {
  const from = c.word(at);
  const send = from === IN_PLACE ? null : source(c, from, c.word(at + 1), c.word(at + 2));
  if (!gets) return { send, receive: null };
  return { send, ...blocks(c, at + 3, "receive", "counts", "displacements") };
}

function scatterv(c: Command): Parameters {
  const root = rootOf(c);
  const to = c.word(5);
  const receive = to === IN_PLACE ? null : target(c, to, c.word(6), c.word(7));
  if (root !== c.geometry.rank) return { root, send: null, receive };
  return { root, receive, ...blocks(c, 1, "send", "counts", "displacements") };
}

function alltoallv(c: Command): Parameters {
  const isInPlace = c.word(0) === IN_PLACE;
  const received = blocks(c, 4, "receive", "receiveCounts", "receiveDisplacements");
  if (!isInPlace) return { ...received, ...blocks(c, 0, "send", "sendCounts", "sendDisplacements") };
  const { receiveCounts: sendCounts, receiveDisplacements: sendDisplacements } = received;
  return { ...received, send: null, sendCounts, sendDisplacements };
}

/** A buffer, its type, and the vectors of counts and displacements, as parameters of these names. */
function blocks(c: Command, at: number, buffer: string, counts: string, displacements: string): Parameters {
  const [bytes] = typeOf(c.word(at + 1));
  const vector = (index: number, name: string): number[] => {
    checkPointer(c.word(at + index), name);
    return c.state.array(c.word(at + index), c.geometry.size).map((count) => count * bytes);
  };
  const side = buffer === "send" ? "s" : "r";
  const [lengths, places] = [vector(2, `${side}typecounts`), vector(3, `${side}displs`)];
  const end = lengths.reduce((most, length, i) => Math.max(most, length === 0 ? 0 : length + (places[i] as number)), 0);
  const pointer = c.word(at);
  return {
    [buffer]: buffer === "send" ? c.state.source(pointer, end, "sndbuf") : c.state.target(pointer, end, "rcvbuf"),
    [counts]: lengths,
    [displacements]: places,
  };
}

/**
 * sndbuf, stype, stypecount, rcvbuf, rtype, rtypecount, op, data_cookie, and whether the operation is commutative.
 * @param gets whether this member gets the result @param saysCommutative whether the last word is there
 */
function reduction(c: Command, at: number, gets: boolean, saysCommutative = true): Parameters {
  const from = c.word(at);
  const isInPlace = from === IN_PLACE;
  const typeHandle = c.word(at + (isInPlace ? 4 : 1));
  const count = c.word(at + (isInPlace ? 5 : 2));
  const [bytes, type] = typeOf(typeHandle);
  const fn = c.word(at + 6);
  const operation =
    OPERATIONS[fn] ?? userOperation(c, fn, c.word(at + 7), saysCommutative && c.word(at + 8) !== 0, bytes);
  return {
    send: isInPlace ? null : source(c, from, typeHandle, count),
    receive: gets ? target(c, c.word(at + 3), typeHandle, count) : null,
    operation,
    ...(typeof operation === "string" && type !== undefined ? { type } : {}),
  };
}

/** A pami_data_function: `target = source op target`, where the source comes from lower ranks. */
function userOperation(
  { state }: Command,
  fn: number,
  cookie: number,
  commutative: boolean,
  elementBytes: number,
): UserOperation<Uint8Array> | Operation {
  state.functionAt(fn);
  return {
    commutative,
    elementBytes,
    combine(left, right, out) {
      const { length } = left;
      const half = (length + 15) & ~15;
      const room = roomFor(state, 2 * half);
      const at = room.bytes.byteOffset;
      room.bytes.set(left);
      room.bytes.set(right, half);
      state.invoke(fn, at + half, at, length, cookie);
      out.set(room.bytes.subarray(half, half + length));
    },
  };
}

const rooms = new WeakMap<PamiState, MemRegion>();

/** A place for two vectors that functions of the program can see. */
function roomFor(state: PamiState, bytes: number): MemRegion {
  let room = rooms.get(state);
  if (room === undefined || room.length < bytes) {
    room?.close();
    room = state.client.createRegion(2 * bytes);
    rooms.set(state, room);
  }
  return room;
}

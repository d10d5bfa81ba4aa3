// One-sided operations: memory regions, puts, gets, read-modify-writes, fences. A program lies in one region of its task, so that
// each address of it is an offset there.
import {
  PamiError,
  type PutParameters,
  type Result,
  type RmwOperation,
  type RmwParameters,
  type RmwType,
  SUCCESS,
} from "../../index.js";
import { MEMREGION, NULL, RDMA, RMA, RMW, RMW_COMPARE, RMW_FETCH, RMW_MODIFY, TYPES } from "./layouts.js";
import { remoteOf } from "./messages.js";
import { checkPointer } from "./pointers.js";
import { type ProgramContext, packed } from "./program-context.js";
import type { PamiCall, PamiState } from "./state.js";

const HALF = 2 ** 32;

export function transferCalls(state: PamiState): Record<string, PamiCall> {
  return {
    PAMI_Put: (handle, at) => {
      const own = state.context(handle as number);
      addressed(state, own, at as number, RMA.REMOTE_DONE_FN);
      return own.context.put(own.put);
    },
    PAMI_Get: (handle, at) => {
      const own = state.context(handle as number);
      addressed(state, own, at as number, NULL);
      return own.context.get(own.put);
    },
    PAMI_Rput: (handle, at) => {
      const own = state.context(handle as number);
      registered(state, own, at as number, RDMA.REMOTE_DONE_FN);
      return own.context.put(own.put);
    },
    PAMI_Rget: (handle, at) => {
      const own = state.context(handle as number);
      registered(state, own, at as number, NULL);
      return own.context.get(own.put);
    },
    PAMI_Rmw: (handle, at) => rmw(state, state.context(handle as number), at as number),
    PAMI_Memregion_create: (handle, address, bytes, granted, region) => {
      state.context(handle as number);
      const start = state.offset(address as number, bytes as number, "address");
      const { handle: name } = state.arena;
      state.setWord((region as number) + MEMREGION.HANDLE, (name % HALF) | 0);
      state.setWord((region as number) + MEMREGION.HANDLE_HIGH, Math.floor(name / HALF));
      state.setWord((region as number) + MEMREGION.START, start);
      state.setWord((region as number) + MEMREGION.BYTES, bytes as number);
      state.setWord(granted as number, bytes as number);
      return SUCCESS;
    },
    PAMI_Memregion_destroy: (handle, region) => {
      state.context(handle as number);
      state.clear(region as number, MEMREGION.SIZE);
      return SUCCESS;
    },
    PAMI_Fence_begin: (handle) => {
      state.context(handle as number).context.fenceBegin();
      return SUCCESS;
    },
    PAMI_Fence_end: (handle) => {
      state.context(handle as number).context.fenceEnd();
      return SUCCESS;
    },
    PAMI_Fence_all: (handle, fn, cookie) => {
      const own = state.context(handle as number);
      return own.context.fenceAll(fenceDone(own, fn as number), packed(fn as number, cookie as number));
    },
    PAMI_Fence_endpoint: (handle, fn, cookie, to) => {
      const own = state.context(handle as number);
      const done = fenceDone(own, fn as number);
      return own.context.fence((to as number) >>> 0, done, packed(fn as number, cookie as number));
    },
  };
}

function fenceDone(own: ProgramContext, fn: number): ProgramContext["done"] {
  return fn === NULL ? () => {} : own.done;
}

/** Writes what all transfers have in common. @param remoteFnAt offset of rdone_fn; NULL: there is none */
function common(state: PamiState, own: ProgramContext, at: number, remoteFnAt: number): PutParameters {
  const { put } = own;
  const localFn = state.word(at + RMA.DONE_FN);
  const remoteFn = remoteFnAt === NULL ? NULL : state.word(at + remoteFnAt);
  const cookie = state.word(at + RMA.COOKIE);
  put.to = state.word(at + RMA.TO) >>> 0;
  put.bytes = state.word(at + RMA.BYTES) >>> 0;
  put.onLocal = localFn === NULL ? undefined : own.done;
  put.onRemote = remoteOf(state, own, localFn, remoteFn, cookie);
  put.cookie = packed(localFn === NULL ? remoteFn : localFn, cookie);
  return put;
}

/** A transfer by addresses. @throws PAMIR_INVAL, PAMIR_BOUNDS */
function addressed(state: PamiState, own: ProgramContext, at: number, remoteFnAt: number): void {
  const put = common(state, own, at, remoteFnAt);
  const remote = state.word(at + RMA.REMOTE);
  const { handle, offset } = locate(state, put.to, remote, put.bytes as number, "addr.remote");
  put.localOffset = state.offset(state.word(at + RMA.LOCAL), put.bytes as number, "addr.local");
  put.remote = handle;
  put.remoteOffset = offset;
}

/** A transfer by memory regions. @throws PAMIR_INVAL, PAMIR_BOUNDS */
function registered(state: PamiState, own: ProgramContext, at: number, remoteFnAt: number): void {
  const put = common(state, own, at, remoteFnAt);
  const bytes = put.bytes as number;
  const [local, remote] = [state.word(at + RDMA.LOCAL), state.word(at + RDMA.REMOTE)];
  checkPointer(local, "rdma.local.mr");
  checkPointer(remote, "rdma.remote.mr");
  put.localOffset = place(state, local, state.word(at + RDMA.LOCAL_OFFSET), bytes);
  put.remoteOffset = place(state, remote, state.word(at + RDMA.REMOTE_OFFSET), bytes);
  put.remote = state.word(remote + MEMREGION.HANDLE_HIGH) * HALF + (state.word(remote + MEMREGION.HANDLE) >>> 0);
}

/** Where bytes of a memory region lie in the region of its program. @throws PAMIR_BOUNDS */
function place(state: PamiState, region: number, offset: number, bytes: number): number {
  const length = state.word(region + MEMREGION.BYTES) >>> 0;
  if ((offset >>> 0) + bytes > length)
    throw new PamiError("PAMIR_BOUNDS", `${bytes} bytes at offset ${offset >>> 0} of a memory region of ${length}`);
  return (state.word(region + MEMREGION.START) >>> 0) + (offset >>> 0);
}

/**
 * Names bytes of another program. Its bounds are checked here, since a put to another node is refused too late to say so.
 * @throws PAMIR_INVAL, PAMIR_BOUNDS
 */
function locate(
  state: PamiState,
  to: number,
  pointer: number,
  bytes: number,
  name: string,
): { handle: number; offset: number } {
  const task = state.client.taskOf(to);
  const found = state.arenas[task];
  if (found === undefined) throw new PamiError("PAMIR_INVAL", `task ${task} has no program of the job's first ones`);
  if (bytes === 0) return { handle: found.handle, offset: 0 };
  checkPointer(pointer, name);
  const offset = (pointer >>> 0) - found.base;
  if (offset < 0 || offset + bytes > found.bytes || !state.isOfProgram(pointer >>> 0, bytes))
    throw new PamiError("PAMIR_BOUNDS", `${bytes} bytes at ${pointer >>> 0} are not of the program of task ${task}`);
  return { handle: found.handle, offset };
}

function rmw(state: PamiState, own: ProgramContext, at: number): Result {
  const code = state.word(at + RMW.OPERATION);
  const [bytes, element] = TYPES[state.word(at + RMW.TYPE)] ?? [0];
  if (element !== "i32" && element !== "u32" && element !== "i64" && element !== "u64")
    throw new PamiError("PAMIR_INVAL", `type ${state.word(at + RMW.TYPE)} is none of an rmw: int, long or long long`);
  const fetches = (code & RMW_FETCH) !== 0;
  const compares = (code & RMW_COMPARE) !== 0;
  const modify = RMW_MODIFY[code >> 2];
  if (modify === undefined && (!fetches || compares || code >> 2 !== 0))
    throw new PamiError("PAMIR_INVAL", `operation ${code} of an rmw is not there`);
  const to = state.word(at + RMW.TO) >>> 0;
  const remote = state.word(at + RMW.REMOTE);
  const { handle, offset: remoteOffset } = locate(state, to, remote, bytes, "remote");
  const fn = state.word(at + RMW.DONE_FN);
  const word = (field: number, name: string): number | bigint | { region: typeof state.arena; offset: number } => {
    const pointer = state.word(at + field);
    const offset = state.offset(pointer, bytes, name);
    if (bytes === 8 && !state.isAsLaunched(pointer >>> 0, bytes)) return state.wide(pointer, element === "i64");
    if (bytes === 8) return { region: state.arena, offset };
    return element === "u32" ? state.word(pointer) >>> 0 : state.word(pointer);
  };
  const parameters: RmwParameters = {
    to,
    remote: handle,
    remoteOffset,
    // To fetch alone is to add nothing.
    operation: `${fetches ? "fetch-" : ""}${compares ? "compare-" : ""}${modify ?? "add"}` as RmwOperation,
    type: element as RmwType,
    value: modify === undefined ? 0 : word(RMW.VALUE, "value"),
    cookie: packed(fn, state.word(at + RMW.COOKIE)),
  };
  if (compares) parameters.test = word(RMW.TEST, "test");
  if (fetches) {
    parameters.result = state.arena;
    parameters.resultOffset = state.offset(state.word(at + RMW.LOCAL), bytes, "local");
  }
  if (fn !== NULL) parameters.onDone = own.done;
  return own.context.rmw(parameters);
}

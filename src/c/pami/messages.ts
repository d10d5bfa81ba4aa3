// Active messages: dispatch ids, their handlers, sends.
import {
  type Callback,
  type DispatchHints,
  type MemRegion,
  type Message,
  PamiError,
  RECV_IMMEDIATE_MAX,
  type Result,
  SUCCESS,
} from "../../index.js";
import { DATA_COPY, HINT, HINT_SHIFTS, NULL, QUEUE_IMMEDIATE_SHIFT, RECEIVE, SEND, TYPES } from "./layouts.js";
import { type ProgramContext, packed } from "./program-context.js";
import type { PamiCall, PamiState } from "./state.js";

const NAMES = ["default", "enable", "disable"] as const;

export function messageCalls(state: PamiState): Record<string, PamiCall> {
  return {
    // The union of functions and the hints come by address, as C passes structs.
    PAMI_Dispatch_set: (handle, dispatch, functions, cookie, hintsAt) => {
      const own = state.context(handle as number);
      const fn = state.word(functions as number);
      state.functionAt(fn);
      const bits = state.word(hintsAt as number);
      const hint = (shift: number): number => (bits >>> shift) & 3;
      const hints: Record<string, string> = {};
      for (const [name, shift] of Object.entries(HINT_SHIFTS)) {
        const value = NAMES[hint(shift)];
        if (value === undefined) throw new PamiError("PAMIR_HINT", `hint ${name} is PAMI_HINT_INVALID`);
        // Types of their own for what is received are not there: without them, either value is honored.
        if (name === "recvContiguous" || name === "recvCopy") continue;
        // What is not asked for is left out: pamir honors "disable" of what it never does.
        if (value !== "default") hints[name] = value;
      }
      // A payload that comes in packets goes to its place at once.
      if (hint(HINT_SHIFTS.recvImmediate) === HINT.DEFAULT) hints.delivery = "early";
      const isAlways = hint(HINT_SHIFTS.recvImmediate) === HINT.ENABLE;
      const receiver = { fn, cookie: cookie as number, isAlways };
      own.context.dispatch(
        (dispatch as number) >>> 0,
        (message) => received(state, own, message, receiver),
        hints as DispatchHints,
      );
      if (hint(QUEUE_IMMEDIATE_SHIFT) === HINT.DISABLE) own.noQueue.add((dispatch as number) >>> 0);
      return SUCCESS;
    },
    PAMI_Send_immediate: (handle, parameters) => {
      const own = state.context(handle as number);
      const at = parameters as number;
      const dispatch = state.word(at + SEND.DISPATCH);
      return own.context.sendImmediate(
        state.word(at + SEND.TO) >>> 0,
        dispatch,
        viewAt(state, at, SEND.HEADER, "header.iov_base"),
        viewAt(state, at, SEND.DATA, "data.iov_base"),
        !own.noQueue.has(dispatch),
      );
    },
    PAMI_Send: (handle, parameters) => send(state, state.context(handle as number), parameters as number),
  };
}

/** The bytes that a struct iovec names. */
function viewAt(state: PamiState, parameters: number, field: number, name: string): Uint8Array | undefined {
  const bytes = state.word(parameters + field + 4);
  return bytes === 0 ? undefined : state.source(state.word(parameters + field), bytes, name);
}

function send(state: PamiState, own: ProgramContext, at: number): Result {
  const { send: parameters } = own;
  const localFn = state.word(at + SEND.LOCAL_FN);
  const remoteFn = state.word(at + SEND.REMOTE_FN);
  const cookie = state.word(at + SEND.COOKIE);
  parameters.to = state.word(at + SEND.TO) >>> 0;
  parameters.dispatch = state.word(at + SEND.DISPATCH);
  parameters.header = viewAt(state, at, SEND.HEADER, "send.header.iov_base");
  parameters.payload = viewAt(state, at, SEND.DATA, "send.data.iov_base");
  parameters.onLocal = localFn === NULL ? undefined : own.done;
  parameters.onRemote = remoteOf(state, own, localFn, remoteFn, cookie);
  parameters.cookie = packed(localFn === NULL ? remoteFn : localFn, cookie);
  return own.context.send(parameters);
}

/** The callback for the remote end. Both ends share a cookie, so that a second function needs a closure. */
export function remoteOf(
  state: PamiState,
  own: ProgramContext,
  localFn: number,
  remoteFn: number,
  cookie: number,
): Callback | undefined {
  if (remoteFn === NULL) return undefined;
  if (localFn === NULL) return own.done;
  return (_, result) => state.event(remoteFn, own.handle, cookie, result);
}

/** A handler of the program, with its cookie; and whether it gets each payload at once. */
interface Receiver {
  readonly fn: number;
  readonly cookie: number;
  readonly isAlways: boolean;
}

/** Calls a handler of the program. */
function received(state: PamiState, own: ProgramContext, message: Message, { fn, cookie, isAlways }: Receiver): void {
  const { headerBytes, payloadBytes, immediate } = message;
  const isWhole = immediate && (isAlways || ((headerBytes + 7) & ~7) + payloadBytes <= RECV_IMMEDIATE_MAX);
  let header = message.bytes.byteOffset + message.headerOffset;
  let payload = message.bytes.byteOffset + message.payloadOffset;
  let copy: MemRegion | undefined;
  // What has waited for its handler may be a copy that the program can't see.
  if (message.bytes.buffer !== state.client.bytes.buffer) {
    const shift = (headerBytes + 7) & ~7;
    copy = state.client.createRegion(shift + (isWhole ? payloadBytes : 0) + 1);
    copy.bytes.set(message.header);
    if (isWhole) copy.bytes.set(message.payload, shift);
    header = copy.bytes.byteOffset;
    payload = header + shift;
  }
  const at = isWhole ? NULL : own.receiveAt;
  if (!isWhole) state.clear(at, RECEIVE.BYTES);
  try {
    state.invoke(
      fn,
      own.handle,
      cookie,
      header,
      headerBytes,
      isWhole ? payload : NULL,
      payloadBytes,
      message.origin,
      at,
    );
    if (!isWhole) receive(state, own, message, at);
  } finally {
    copy?.close();
  }
}

/** Does what a handler has written into its pami_recv_t. @throws PAMIR_INVAL, PAMIR_BOUNDS */
function receive(state: PamiState, own: ProgramContext, message: Message, at: number): void {
  const address = state.word(at + RECEIVE.ADDRESS);
  const fn = state.word(at + RECEIVE.LOCAL_FN);
  const type = state.word(at + RECEIVE.TYPE);
  const dataFn = state.word(at + RECEIVE.DATA_FN);
  if (address === NULL && message.payloadBytes > 0) {
    message.discard();
    return;
  }
  if (type !== NULL && TYPES[type] === undefined)
    throw new PamiError("PAMIR_INVAL", `type ${type} of a pami_recv_t is not there: payloads are contiguous`);
  if (dataFn !== NULL && dataFn !== DATA_COPY)
    throw new PamiError("PAMIR_INVAL", "data_fn of a pami_recv_t is not PAMI_DATA_COPY");
  const place =
    message.payloadBytes === 0
      ? EMPTY
      : state.target(address + state.word(at + RECEIVE.OFFSET), message.payloadBytes, "addr");
  message.receive(place, fn === NULL ? undefined : own.done, packed(fn, state.word(at + RECEIVE.COOKIE)));
}

const EMPTY = new Uint8Array(0);

// Begin and end, time, names, errors, attributes, operations of the program's own. Source: MPI 5.0, chapters 9, 11 and 6.9.
import { VERSION } from "../../index.js";
import {
  ERR,
  ERRORS_ABORT,
  ERRORS_ARE_FATAL,
  ERRORS_RETURN,
  OP_NULL,
  SUCCESS,
  TAG_UB,
  THREAD_FUNNELED,
} from "./constants.js";
import { MpiFailure, nameOfClass } from "./failure.js";
import { isOver, take } from "./requests.js";
import { type Call, MpiAbort, type MpiState } from "./state.js";

/** Keys of predefined attributes. */
const KEY = { TAG_UB: 501, IO: 502, HOST: 503, WTIME_IS_GLOBAL: 504, UNIVERSE_SIZE: 505 } as const;

/** Calls that are allowed before MPI_Init() and after MPI_Finalize(). They have no guard. */
export function freeCalls(state: MpiState): Record<string, (...given: number[]) => number> {
  const store = (pointer: number, value: number): number => {
    if (pointer !== 0) state.setWord(pointer, value);
    return SUCCESS;
  };
  const begin = (): number => {
    if (state.phase !== "before") throw new MpiAbort(ERR.OTHER, "MPI_Init() was called twice");
    state.phase = "running";
    return SUCCESS;
  };
  return {
    MPI_Init: begin,
    MPI_Init_thread: (_argc, _argv, _required, provided) => {
      store(provided as number, THREAD_FUNNELED);
      return begin();
    },
    MPI_Initialized: (flag) => store(flag as number, +(state.phase !== "before")),
    MPI_Finalized: (flag) => store(flag as number, +(state.phase === "after")),
    MPI_Query_thread: (level) => store(level as number, THREAD_FUNNELED),
    MPI_Is_thread_main: (flag) => store(flag as number, 1),
    MPI_Wtime: () => state.client.now(),
    MPI_Wtick: () => state.client.query("CLIENT_WTICK"),
    MPI_Get_version: (version, subversion) => {
      store(version as number, 5);
      return store(subversion as number, 0);
    },
    MPI_Get_library_version: (text, length) =>
      store(length as number, state.setText(text as number, `pamir ${VERSION}`)),
    MPI_Abort: (_comm, code) => {
      throw new MpiAbort(code as number, `MPI_Abort(${code})`);
    },
    MPI_Error_class: (code, pointer) => store(pointer as number, code as number),
    MPI_Error_string: (code, text, length) =>
      store(
        length as number,
        state.setText(text as number, code === SUCCESS ? "MPI_SUCCESS" : nameOfClass(code as number)),
      ),
    MPI_Pcontrol: () => SUCCESS,
  };
}

export function environmentCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  return {
    MPI_Finalize: [
      -1,
      () => {
        state.engine.drain();
        for (const request of state.forgotten) if (isOver(state, request)) take(state, request);
        // No rank is gone while another one still gets what it has sent.
        const { world } = state.communicators;
        if (world.size > 1) world.geometry.barrierSync();
        state.phase = "after";
        return SUCCESS;
      },
    ],
    MPI_Get_processor_name: [
      -1,
      (text, length) => store(length as number, state.setText(text as number, state.hostName.slice(0, 255))),
    ],
    MPI_Buffer_attach: [
      -1,
      (buffer, bytes) => {
        if (state.attached !== undefined) throw new MpiFailure(ERR.BUFFER, "a buffer is attached already");
        state.attached = { buffer: buffer as number, bytes: bytes as number };
        return SUCCESS;
      },
    ],
    MPI_Buffer_detach: [
      -1,
      (pointer, size) => {
        if (state.attached === undefined) throw new MpiFailure(ERR.BUFFER, "no buffer is attached");
        // Buffered sends are copies of the engine's own: the buffer is free once they are out.
        state.engine.drain();
        state.setWord(pointer as number, state.attached.buffer);
        store(size as number, state.attached.bytes);
        state.attached = undefined;
        return SUCCESS;
      },
    ],
    MPI_Comm_set_errhandler: [
      0,
      (handle, errorHandler) => {
        if (![ERRORS_ARE_FATAL, ERRORS_RETURN, ERRORS_ABORT].includes(errorHandler as 0x141)) {
          throw new MpiFailure(ERR.ERRHANDLER, `0x${(errorHandler as number).toString(16)} is no error handler`);
        }
        state.comms.get(handle as number).errorHandler = errorHandler as number;
        return SUCCESS;
      },
    ],
    MPI_Comm_get_errhandler: [
      0,
      (handle, pointer) => store(pointer as number, state.comms.get(handle as number).errorHandler),
    ],
    MPI_Op_create: [
      -1,
      (call, commutes, pointer) =>
        store(pointer as number, state.ops.add({ call: call as number, commutative: commutes !== 0 })),
    ],
    MPI_Op_free: [
      -1,
      (pointer) => {
        state.ops.remove(state.word(pointer as number));
        return store(pointer as number, OP_NULL);
      },
    ],
    MPI_Op_commutative: [
      -1,
      (handle, flag) => {
        const op = state.operation(handle as number);
        return store(flag as number, +(typeof op !== "object" || op.commutative));
      },
    ],
    ...attributeCalls(state, store),
  };
}

function attributeCalls(
  state: MpiState,
  store: (pointer: number, value: number) => number,
): Record<string, readonly [number, Call]> {
  let nextKey = 1000;
  /** Words with the values of predefined attributes: the program gets pointers to them. */
  const predefined = new Map<number, number>();
  const pointerTo = (key: number): number | undefined => {
    const values: Record<number, number> = {
      [KEY.TAG_UB]: TAG_UB,
      [KEY.IO]: state.communicators.world.rank,
      [KEY.WTIME_IS_GLOBAL]: 0,
      [KEY.UNIVERSE_SIZE]: state.communicators.world.size,
    };
    const value = values[key];
    if (value === undefined) return undefined;
    let pointer = predefined.get(key);
    if (pointer === undefined) {
      pointer = state.engine.scratch(4).bytes.byteOffset;
      predefined.set(key, pointer);
    }
    state.setWord(pointer, value);
    return pointer;
  };
  const get: Call = (handle, key, value, flag) => {
    const found = pointerTo(key as number) ?? state.comms.get(handle as number).attributes.get(key as number);
    if (found !== undefined) state.setWord(value as number, found);
    return store(flag as number, +(found !== undefined));
  };
  const set: Call = (handle, key, value) => {
    state.comms.get(handle as number).attributes.set(key as number, value as number);
    return SUCCESS;
  };
  const remove: Call = (handle, key) => {
    state.comms.get(handle as number).attributes.delete(key as number);
    return SUCCESS;
  };
  const create: Call = (_copy, _remove, pointer) => store(pointer as number, nextKey++);
  const free: Call = (pointer) => store(pointer as number, 0);
  return {
    MPI_Comm_create_keyval: [-1, create],
    MPI_Comm_free_keyval: [-1, free],
    MPI_Comm_set_attr: [0, set],
    MPI_Comm_get_attr: [0, get],
    MPI_Comm_delete_attr: [0, remove],
    MPI_Attr_get: [0, get],
    MPI_Attr_put: [0, set],
  };
}

// Begin and end, time, names, buffers, operations of the program's own. Source: MPI 5.0, chapters 9, 11 and 6.9.
import { VERSION } from "../../index.js";
import { COMM_SELF, ERR, OP_NULL, SUCCESS, THREAD_FUNNELED } from "./constants.js";
import { MpiFailure } from "./failure.js";
import { meet } from "./failures/survivors.js";
import type { ObjectAttributes } from "./objects/attributes.js";
import { isOver, take } from "./requests/requests.js";
import { type Call, MpiAbort, type MpiState } from "./state.js";

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
    MPI_Error_class: (code, pointer) => store(pointer as number, state.errors.classOf(code as number)),
    MPI_Error_string: (code, text, length) =>
      store(length as number, state.setText(text as number, state.errors.textOf(code as number))),
    MPI_Pcontrol: () => SUCCESS,
    MPI_Aint_add: (base, shift) => ((base as number) + (shift as number)) | 0,
    MPI_Aint_diff: (one, other) => ((one as number) - (other as number)) | 0,
  };
}

export function environmentCalls(
  state: MpiState,
  attributes: ObjectAttributes,
): Record<string, readonly [number, Call]> {
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  return {
    MPI_Finalize: [
      -1,
      () => {
        attributes.clear(state.comms.get(COMM_SELF));
        state.engine.drain();
        for (const request of state.forgotten) if (isOver(state, request)) take(state, request);
        // No rank is gone while another one still gets what it has sent.
        const { world } = state.communicators;
        if (world.size > 1) meet(world);
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
  };
}

// The calls of error handlers, and of error classes and codes that a program adds. Source: MPI 5.0, sections 9.3 to 9.5.
import { ERRHANDLER_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";

export function errorCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const { errors } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  return {
    MPI_Comm_create_errhandler: [-1, (call, pointer) => store(pointer as number, errors.addHandler(call as number))],
    MPI_Errhandler_free: [
      -1,
      (pointer) => {
        const handle = state.word(pointer as number);
        errors.checkHandler(handle);
        return store(pointer as number, ERRHANDLER_NULL);
      },
    ],
    MPI_Comm_set_errhandler: [
      0,
      (handle, errorHandler) => {
        errors.checkHandler(errorHandler as number);
        state.comms.get(handle as number).errorHandler = errorHandler as number;
        return SUCCESS;
      },
    ],
    MPI_Comm_get_errhandler: [
      0,
      (handle, pointer) => store(pointer as number, state.comms.get(handle as number).errorHandler),
    ],
    MPI_Comm_call_errhandler: [
      0,
      (handle, code) => {
        state.comms.get(handle as number);
        const failure = new MpiFailure(code as number, `the program says: ${errors.textOf(code as number)}`);
        state.failed("MPI_Comm_call_errhandler", handle as number, failure);
        return SUCCESS;
      },
    ],
    MPI_Add_error_class: [-1, (pointer) => store(pointer as number, errors.addClass())],
    MPI_Add_error_code: [-1, (errorClass, pointer) => store(pointer as number, errors.addCode(errorClass as number))],
    MPI_Add_error_string: [
      -1,
      (code, text) => {
        errors.setText(code as number, state.text(text as number));
        return SUCCESS;
      },
    ],
  };
}

// Windows as objects: attributes, names, groups, error handlers. Source: MPI 5.0, sections 12.2, 7.7, 7.8 and 9.3.
import type { MemRegion } from "../../../index.js";
import { ERR, SUCCESS, WIN_UNIFIED } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Infos } from "../objects/info.js";
import type { Call } from "../state.js";
import type { RankMemory, Window } from "./window.js";
import type { WindowSet } from "./windows.js";

/** Keys of predefined attributes. */
const KEY = { BASE: 601, DISP_UNIT: 602, SIZE: 603, CREATE_FLAVOR: 604, MODEL: 605 } as const;

/** What the program has given for a key of its own. */
interface OwnKey {
  /** Index of the function that is called when an attribute goes; 0: none. */
  readonly remove: number;
  readonly extra: number;
}

/** The calls of this file: the number is that of the argument with the window. */
export function objectCalls(windows: WindowSet, infos: Infos): Record<string, readonly [number, Call]> {
  const { state, table } = windows;
  const store = (pointer: number | undefined, value: number): number => {
    state.setWord(pointer as number, value);
    return SUCCESS;
  };
  return {
    MPI_Win_get_group: [
      0,
      (handle, pointer) => store(pointer, state.groups.add(table.get(handle as number).endpoints)),
    ],
    MPI_Win_set_name: [
      0,
      (handle, text) => {
        table.get(handle as number).name = state.text(text as number);
        return SUCCESS;
      },
    ],
    MPI_Win_get_name: [
      0,
      (handle, text, length) => store(length, state.setText(text as number, table.get(handle as number).name)),
    ],
    MPI_Win_set_info: [
      0,
      (handle, info) => {
        const window = table.get(handle as number);
        for (const [key, value] of infos.entries(info as number)) window.info.set(key, value);
        return SUCCESS;
      },
    ],
    MPI_Win_get_info: [0, (handle, pointer) => store(pointer, infos.add(new Map(table.get(handle as number).info)))],
    MPI_Win_set_errhandler: [
      0,
      (handle, errorHandler) => {
        state.errors.checkHandler(errorHandler as number);
        table.get(handle as number).errorHandler = errorHandler as number;
        return SUCCESS;
      },
    ],
    MPI_Win_create_errhandler: [-1, (call, pointer) => store(pointer, state.errors.addHandler(call as number))],
    MPI_Win_get_errhandler: [0, (handle, pointer) => store(pointer, table.get(handle as number).errorHandler)],
    MPI_Win_call_errhandler: [
      0,
      (handle, code) => {
        const { errorHandler } = table.get(handle as number);
        const text = `the program says: ${state.errors.textOf(code as number)}`;
        state.handled("MPI_Win_call_errhandler", handle as number, errorHandler, code as number, text);
        return SUCCESS;
      },
    ],
    ...attributeCalls(windows, store),
  };
}

function attributeCalls(
  windows: WindowSet,
  store: (pointer: number | undefined, value: number) => number,
): Record<string, readonly [number, Call]> {
  const { state, table } = windows;
  const keys = new Map<number, OwnKey>();
  let nextKey = 1000;
  /** A word for each attribute of each window that is a pointer: the program gets its address. */
  const places = new Map<Window, MemRegion>();
  const pointerTo = (window: Window, index: number, value: number): number => {
    let place = places.get(window);
    if (place === undefined) {
      place = state.engine.scratch(16);
      places.set(window, place);
    }
    const pointer = place.bytes.byteOffset + 4 * index;
    state.setWord(pointer, value);
    return pointer;
  };
  const predefined = (window: Window, key: number): number | undefined => {
    const { base, size, unit } = window.parts[window.rank] as RankMemory;
    if (key === KEY.BASE) return base;
    if (key === KEY.SIZE) return pointerTo(window, 0, size);
    if (key === KEY.DISP_UNIT) return pointerTo(window, 1, unit);
    if (key === KEY.CREATE_FLAVOR) return pointerTo(window, 2, window.flavor);
    return key === KEY.MODEL ? pointerTo(window, 3, WIN_UNIFIED) : undefined;
  };
  const own = (key: number): OwnKey => {
    const found = keys.get(key);
    if (found === undefined) throw new MpiFailure(ERR.KEYVAL, `${key} is no key of an attribute`);
    return found;
  };
  const remove = (handle: number, key: number): void => {
    const { attributes } = table.get(handle);
    const value = attributes.get(key);
    if (value === undefined) return;
    const { remove: call, extra } = own(key);
    if (call !== 0) state.functionAt(call)(handle, key, value, extra);
    attributes.delete(key);
  };
  windows.onFree = (handle) => {
    const window = table.get(handle);
    for (const key of [...window.attributes.keys()]) remove(handle, key);
    const place = places.get(window);
    if (place !== undefined) state.engine.freeScratch(place);
    places.delete(window);
  };
  return {
    MPI_Win_create_keyval: [
      -1,
      (_copy, call, pointer, extra) => {
        keys.set(nextKey, { remove: call as number, extra: extra as number });
        return store(pointer, nextKey++);
      },
    ],
    // Attributes with the key stay: the key can't be given again.
    MPI_Win_free_keyval: [-1, (pointer) => store(pointer, 0)],
    MPI_Win_set_attr: [
      0,
      (handle, key, value) => {
        own(key as number);
        remove(handle as number, key as number);
        table.get(handle as number).attributes.set(key as number, value as number);
        return SUCCESS;
      },
    ],
    MPI_Win_get_attr: [
      0,
      (handle, key, value, flag) => {
        const window = table.get(handle as number);
        const found = predefined(window, key as number) ?? window.attributes.get(key as number);
        if (found !== undefined) state.setWord(value as number, found);
        return store(flag, +(found !== undefined));
      },
    ],
    MPI_Win_delete_attr: [
      0,
      (handle, key) => {
        own(key as number);
        remove(handle as number, key as number);
        return SUCCESS;
      },
    ],
  };
}

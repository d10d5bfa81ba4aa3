// ObjectAttributes: values that a program keeps with communicators and datatypes, under keys with functions that copy and delete them.
// Source: MPI 5.0, section 7.7.
import { DUPLICATE_FUNCTION, ERR, KEYVAL_INVALID, NULL_FUNCTION, SUCCESS, TAG_UB } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";

/** Keys of predefined attributes. */
const KEY = {
  TAG_UB: 501,
  IO: 502,
  HOST: 503,
  WTIME_IS_GLOBAL: 504,
  UNIVERSE_SIZE: 505,
  APPNUM: 506,
  LASTUSEDCODE: 507,
} as const;
const FIRST_KEY = 1000;

/** A key, and what the program has given with it: places in its table of functions, and a pointer. */
interface Keyval {
  readonly copy: number;
  readonly remove: number;
  readonly state: number;
}

/** An object with attributes: its handle, and their values in the order in which they were set. */
export interface Attributed {
  readonly handle: number;
  readonly attributes: Map<number, number>;
}

export class ObjectAttributes {
  readonly #state: MpiState;
  readonly #keyvals = new Map<number, Keyval>();
  #nextKey = FIRST_KEY;
  /** Two words: what a function of the program writes. */
  #words = 0;

  constructor(state: MpiState) {
    this.#state = state;
  }

  create(copy: number, remove: number, state: number): number {
    this.#keyvals.set(this.#nextKey, { copy, remove, state });
    return this.#nextKey++;
  }

  /** @throws MpiFailure MPI_ERR_KEYVAL */
  check(key: number): void {
    if (!this.#keyvals.has(key)) throw new MpiFailure(ERR.KEYVAL, `${key} is no key of attributes`);
  }

  set(object: Attributed, key: number, value: number): void {
    this.check(key);
    if (object.attributes.has(key)) this.remove(object, key);
    object.attributes.set(key, value);
  }

  /** @throws MpiFailure the function of the program has failed: the attribute stays */
  remove(object: Attributed, key: number): void {
    const value = object.attributes.get(key);
    const keyval = this.#keyvals.get(key);
    if (value === undefined || keyval === undefined) return;
    if (keyval.remove !== NULL_FUNCTION) {
      const error = this.#state.functionAt(keyval.remove)(object.handle, key, value, keyval.state);
      if (error !== SUCCESS)
        throw new MpiFailure(error, `the function that deletes attributes of key ${key} has failed`);
    }
    object.attributes.delete(key);
  }

  /** Removes all, the last one first. */
  clear(object: Attributed): void {
    for (const key of [...object.attributes.keys()].reverse()) this.remove(object, key);
  }

  /** Gives a duplicate what the functions of the program give it. */
  copy(from: Attributed, to: Attributed): void {
    for (const [key, value] of from.attributes) {
      const keyval = this.#keyvals.get(key);
      if (keyval === undefined || keyval.copy === NULL_FUNCTION) continue;
      if (keyval.copy === DUPLICATE_FUNCTION) {
        to.attributes.set(key, value);
        continue;
      }
      this.#words ||= this.#state.keep(8, "an attribute");
      const words = this.#words;
      const error = this.#state.functionAt(keyval.copy)(from.handle, key, keyval.state, value, words, words + 4);
      if (error !== SUCCESS)
        throw new MpiFailure(error, `the function that copies attributes of key ${key} has failed`);
      if (this.#state.word(words + 4) !== 0) to.attributes.set(key, this.#state.word(words));
    }
  }
}

export function attributeCalls(state: MpiState, attributes: ObjectAttributes): Record<string, readonly [number, Call]> {
  const { comms, types } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  /** Words with the values of predefined attributes: the program gets pointers to them. */
  const predefined = new Map<number, number>();
  const pointerTo = (key: number): number | undefined => {
    const values: Record<number, number> = {
      [KEY.TAG_UB]: TAG_UB,
      [KEY.IO]: state.communicators.world.rank,
      [KEY.WTIME_IS_GLOBAL]: 0,
      [KEY.UNIVERSE_SIZE]: state.communicators.world.size,
      [KEY.APPNUM]: 0,
      [KEY.LASTUSEDCODE]: state.errors.last,
    };
    const value = values[key];
    if (value === undefined) return undefined;
    let pointer = predefined.get(key);
    if (pointer === undefined) {
      pointer = state.keep(4, "an attribute");
      predefined.set(key, pointer);
    }
    state.setWord(pointer, value);
    return pointer;
  };
  type Find = (handle: number) => Attributed;
  const get =
    (find: Find, hasPredefined: boolean): Call =>
    (handle, key, value, flag) => {
      const found = find(handle as number).attributes.get(key as number);
      const known = found ?? (hasPredefined ? pointerTo(key as number) : undefined);
      if (known === undefined && !(key === KEY.HOST && hasPredefined)) attributes.check(key as number);
      if (known !== undefined) state.setWord(value as number, known);
      return store(flag as number, +(known !== undefined));
    };
  const set =
    (find: Find): Call =>
    (handle, key, value) => {
      attributes.set(find(handle as number), key as number, value as number);
      return SUCCESS;
    };
  const remove =
    (find: Find): Call =>
    (handle, key) => {
      attributes.check(key as number);
      attributes.remove(find(handle as number), key as number);
      return SUCCESS;
    };
  const create: Call = (copy, removal, pointer, own) =>
    store(pointer as number, attributes.create(copy as number, removal as number, own as number));
  // ObjectAttributes that have the key keep its functions.
  const free: Call = (pointer) => {
    attributes.check(state.word(pointer as number));
    return store(pointer as number, KEYVAL_INVALID);
  };
  const comm: Find = (handle) => comms.get(handle);
  const type: Find = (handle) => ({ handle, attributes: types.get(handle).attributes });
  return {
    MPI_Comm_create_keyval: [-1, create],
    MPI_Comm_free_keyval: [-1, free],
    MPI_Comm_set_attr: [0, set(comm)],
    MPI_Comm_get_attr: [0, get(comm, true)],
    MPI_Comm_delete_attr: [0, remove(comm)],
    MPI_Keyval_create: [-1, create],
    MPI_Keyval_free: [-1, free],
    MPI_Attr_put: [0, set(comm)],
    MPI_Attr_get: [0, get(comm, true)],
    MPI_Attr_delete: [0, remove(comm)],
    MPI_Type_create_keyval: [-1, create],
    MPI_Type_free_keyval: [-1, free],
    MPI_Type_set_attr: [-1, set(type)],
    MPI_Type_get_attr: [-1, get(type, false)],
    MPI_Type_delete_attr: [-1, remove(type)],
  };
}

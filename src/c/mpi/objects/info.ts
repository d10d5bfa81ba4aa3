// Infos: lists of keys with values, which calls may take as hints. Source: MPI 5.0, chapter 10.
import { ERR, INFO_ENV, INFO_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { HandleTable } from "../handle-table.js";
import type { Call, MpiState } from "../state.js";
import type { ObjectAttributes } from "./attributes.js";
import { duplicate } from "./duplicate.js";

/** Bytes of a key and of a value, with their end marks. */
const KEY_MAX = 256;
const VALUE_MAX = 1024;

export class Infos {
  readonly #state: MpiState;
  readonly #table = new HandleTable<Map<string, string>>("info", ERR.INFO);

  constructor(state: MpiState) {
    this.#state = state;
    const size = state.communicators.world.size;
    this.#table.set(
      INFO_ENV,
      new Map([
        ["maxprocs", `${size}`],
        ["host", state.hostName],
      ]),
    );
  }

  /** @throws MpiFailure MPI_ERR_INFO */
  get(handle: number): Map<string, string> {
    return this.#table.get(handle);
  }

  /** The entries of an info; none of MPI_INFO_NULL. */
  entries(handle: number): Map<string, string> {
    return handle === INFO_NULL ? new Map() : new Map(this.get(handle));
  }

  add(entries: Map<string, string>): number {
    return this.#table.add(entries);
  }

  /** @throws MpiFailure MPI_ERR_INFO */
  remove(handle: number): void {
    if (handle === INFO_ENV) throw new MpiFailure(ERR.INFO, "MPI_INFO_ENV can't be freed");
    this.#table.remove(handle);
  }

  /** @throws MpiFailure MPI_ERR_INFO_KEY */
  key(pointer: number): string {
    const key = this.#state.text(pointer);
    if (key.length === 0 || key.length >= KEY_MAX)
      throw new MpiFailure(ERR.INFO_KEY, `the key has ${key.length} characters, not 1 to ${KEY_MAX - 1}`);
    return key;
  }
}

export function infoCalls(
  state: MpiState,
  infos: Infos,
  attributes: ObjectAttributes,
): Record<string, readonly [number, Call]> {
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  const encoder = new TextEncoder();
  /** Writes as much of a text as fits, with its end mark. @param most bytes with the mark */
  const setPart = (pointer: number, text: string, most: number): void => {
    if (most < 1) return;
    const part = encoder.encode(text).subarray(0, most - 1);
    state.bytes.set(part, pointer >>> 0);
    state.bytes[(pointer >>> 0) + part.length] = 0;
  };
  return {
    MPI_Info_create: [-1, (pointer) => store(pointer as number, infos.add(new Map()))],
    MPI_Info_create_env: [-1, (_argc, _argv, pointer) => store(pointer as number, infos.add(infos.entries(INFO_ENV)))],
    MPI_Info_dup: [-1, (handle, pointer) => store(pointer as number, infos.add(new Map(infos.get(handle as number))))],
    MPI_Info_free: [
      -1,
      (pointer) => {
        infos.remove(state.word(pointer as number));
        return store(pointer as number, INFO_NULL);
      },
    ],
    MPI_Info_set: [
      -1,
      (handle, key, pointer) => {
        const entries = infos.get(handle as number);
        const name = infos.key(key as number);
        const value = state.text(pointer as number);
        if (value.length === 0 || value.length >= VALUE_MAX)
          throw new MpiFailure(
            ERR.INFO_VALUE,
            `the value of ${name} has ${value.length} characters, not 1 to ${VALUE_MAX - 1}`,
          );
        entries.set(name, value);
        return SUCCESS;
      },
    ],
    MPI_Info_delete: [
      -1,
      (handle, key) => {
        const name = infos.key(key as number);
        if (!infos.get(handle as number).delete(name))
          throw new MpiFailure(ERR.INFO_NOKEY, `the info has no key ${name}`);
        return SUCCESS;
      },
    ],
    MPI_Info_get: [
      -1,
      (handle, key, length, pointer, flag) => {
        const value = infos.get(handle as number).get(infos.key(key as number));
        // The length is given without the end mark.
        if (value !== undefined) setPart(pointer as number, value, (length as number) + 1);
        return store(flag as number, +(value !== undefined));
      },
    ],
    MPI_Info_get_string: [
      -1,
      (handle, key, length, pointer, flag) => {
        const value = infos.get(handle as number).get(infos.key(key as number));
        if (value !== undefined) {
          setPart(pointer as number, value, state.word(length as number));
          state.setWord(length as number, encoder.encode(value).length + 1);
        }
        return store(flag as number, +(value !== undefined));
      },
    ],
    MPI_Info_get_valuelen: [
      -1,
      (handle, key, length, flag) => {
        const value = infos.get(handle as number).get(infos.key(key as number));
        if (value !== undefined) state.setWord(length as number, encoder.encode(value).length);
        return store(flag as number, +(value !== undefined));
      },
    ],
    MPI_Info_get_nkeys: [-1, (handle, pointer) => store(pointer as number, infos.get(handle as number).size)],
    MPI_Info_get_nthkey: [
      -1,
      (handle, index, pointer) => {
        const keys = [...infos.get(handle as number).keys()];
        const key = keys[index as number];
        if (key === undefined) throw new MpiFailure(ERR.ARG, `key ${index} is none of 0 to ${keys.length - 1}`);
        state.setText(pointer as number, key);
        return SUCCESS;
      },
    ],
    MPI_Comm_set_info: [
      0,
      (handle, info) => {
        const object = state.comms.get(handle as number);
        object.info = new Map([...(object.info ?? []), ...infos.entries(info as number)]);
        return SUCCESS;
      },
    ],
    MPI_Comm_get_info: [
      0,
      (handle, pointer) => store(pointer as number, infos.add(new Map(state.comms.get(handle as number).info ?? []))),
    ],
    MPI_Comm_dup_with_info: [
      0,
      (handle, info, pointer) => {
        const entries = infos.entries(info as number);
        const made = duplicate(state, attributes, state.comms.get(handle as number));
        state.comms.get(made).info = entries;
        return store(pointer as number, made);
      },
    ],
  };
}

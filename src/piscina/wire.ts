// What goes between a Piscina and its workers.
//
//   first     message by the worker's own port: WorkerStart
//   READY     the worker's answer to that, once its file is loaded
//   RUN       call: [key, task] or [key, number of a parcel, null]; reply: [OK or FAILED, value, …] in the same way
//
// A key is 0 for the file and the name of the options, else [filename, name]. Values are clones (codecs.clone()). What
// that refuses, or is to be transferred, is a parcel: it goes by a MessagePort beside the call.

import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { type Codec, codecs } from "../index.js";

/** Dispatch id of tasks. */
export const RUN = 0;
/** Key of the message that says that a worker is ready. */
export const READY = "pamir:piscina:ready";

export const OK = 0;
export const FAILED = 1;

export type Key = 0 | readonly [filename: string, name: string];

/** A value, or the number of a parcel and null. */
export type Packed<Head> = readonly [head: Head, value: unknown, isParcel?: null];

/** What a worker begins with. */
export interface WorkerStart {
  /** attach() takes it. */
  readonly join: MessagePort;
  readonly parcels: MessagePort;
  readonly filename: string | null;
  readonly name: string;
  readonly niceIncrement: number;
}

const codec: Codec<Packed<unknown>> = codecs.clone();

/** One side's values: as clones, and as parcels. */
export class Values {
  readonly #port: MessagePort;
  readonly #arrived = new Map<number, unknown>();
  #next = 0;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  /** @throws DataCloneError for what structured clone refuses, too */
  pack<Head>(head: Head, value: unknown, transfer: readonly unknown[]): Uint8Array {
    if (transfer.length === 0) {
      try {
        return codec.encode([head, value]);
      } catch (error) {
        if ((error as { code?: string }).code !== "PAMIR_CLONE") throw error;
      }
    }
    const number = this.#next++;
    this.#port.postMessage([number, value], transfer as never[]);
    return codec.encode([head, number, null]);
  }

  /** @param bytes they may be used again once this returns */
  unpack<Head>(bytes: Uint8Array): readonly [head: Head, value: unknown] {
    const [head, value, isParcel] = codec.decode(bytes) as Packed<Head>;
    return [head, isParcel === null ? this.#take(value as number) : value];
  }

  #take(number: number): unknown {
    while (!this.#arrived.has(number)) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) throw new Error(`parcel ${number} has not come`);
      const [other, value] = received.message as [number, unknown];
      this.#arrived.set(other, value);
    }
    const value = this.#arrived.get(number);
    this.#arrived.delete(number);
    return value;
  }
}

// What goes between a Piscina and its workers.
//
//   parentPort, first   WorkerStart
//   READY               the worker's answer to that, once its file is loaded
//
//   By the task port:
//   to the worker       requests, until JOINED has come
//                       a MessagePort, once the Piscina has had JOIN_AFTER tasks: attach() takes it
//   JOINED              the worker has joined the job: requests may come by calls
//   from the worker     answers to these requests, and those to calls where the reply is LATER
//
//   Over the job:
//   RUN                 call: a request; reply: an answer, or LATER
//
// Requests and answers are the bytes of codecs.clone(), on both ways. What that refuses, or transfers, goes by the port as it
// is: postMessage() copies it.

import type { MessagePort } from "node:worker_threads";
import { codecs, type InPlaceCodec } from "../index.js";

/** Dispatch id of tasks. */
export const RUN = 0;
/** Key of the message that says that a worker is ready. */
export const READY = "pamir:piscina:ready";
export const JOINED = 0;
/** The reply to a call whose answer comes by the port. */
export const LATER = 0;

/** Tasks of a Piscina after which its workers join a job. Calls save some 50 µs each, and to start a job takes some 50 ms. */
export const JOIN_AFTER = 100;

export const OK = 0;
export const FAILED = 1;

/** A task. The file and the name of its export are those of the options where there are none. */
export type TaskRequest = readonly [id: number, value: unknown, filename?: string, name?: string];
export type Answer = readonly [id: number, state: number, value: unknown];

/** What a worker begins with. */
export interface WorkerStart {
  /** The task port. */
  readonly port: MessagePort;
  readonly filename: string | null;
  readonly name: string;
  readonly niceIncrement: number;
}

export const clones: InPlaceCodec<unknown> = codecs.clone();

/** The bytes of a request or an answer, in place; undefined: it goes as it is. */
export function bytesOf(value: TaskRequest | Answer): Uint8Array | undefined {
  try {
    return clones.encode(value);
  } catch (error) {
    if ((error as { code?: unknown }).code === "PAMIR_CLONE") return undefined;
    throw error;
  }
}

/** Posts a request or an answer. @param bytes those that bytesOf() gives */
export function post(
  port: MessagePort,
  value: TaskRequest | Answer,
  transfer: readonly unknown[],
  bytes: Uint8Array | undefined,
): void {
  const own = bytes?.slice();
  if (own === undefined) port.postMessage(value, transfer as never[]);
  else port.postMessage(own, [own.buffer]);
}

/** What post() has sent. */
export const posted = (message: unknown): unknown => (message instanceof Uint8Array ? clones.decode(message) : message);

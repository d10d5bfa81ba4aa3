// What goes between a Piscina and its workers.
//
//   parentPort, first   WorkerStart
//   READY               the worker's answer to that, once its file is loaded
//
//   By the task port, as postMessage() copies and transfers:
//   to the worker       PortTask: tasks until JOINED has come, and whatever clones can't have
//   JOINED              the worker has joined the job: tasks may come by calls
//   from the worker     PortAnswer: to each PortTask, and where a call was answered with LATER
//
//   Over the job, as codecs.clone() copies:
//   RUN                 call: [task id, value], or with the file and the name of its export; reply: [OK or FAILED, value] or LATER

import type { MessagePort } from "node:worker_threads";
import { codecs, type InPlaceCodec } from "../index.js";

/** Dispatch id of tasks. */
export const RUN = 0;
/** Key of the message that says that a worker is ready. */
export const READY = "pamir:piscina:ready";
export const JOINED = 0;
/** The reply to a call whose answer comes by the port. */
export const LATER = 0;

export const OK = 0;
export const FAILED = 1;

/** A task. The file and the name of its export are those of the options where there are none. */
export type Request = readonly [id: number, value: unknown, filename?: string, name?: string];
export type PortAnswer = readonly [id: number, state: number, value: unknown];

/** What a worker begins with. */
export interface WorkerStart {
  /** attach() takes it. */
  readonly join: MessagePort;
  /** The task port. */
  readonly port: MessagePort;
  readonly filename: string | null;
  readonly name: string;
  readonly niceIncrement: number;
}

export const clones: InPlaceCodec<unknown> = codecs.clone();

/** Whether the job's codec leaves a value to the port. */
export const isLeft = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === "PAMIR_CLONE";

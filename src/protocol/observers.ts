// Observers of contexts: tracing and debug mode. An observer gives a context other parts, which also record or time the work.
// So the plain parts check nothing on their hot paths.

import { CompletionQueue } from "../core/completion.js";
import type { Endpoint } from "../core/endpoint.js";
import type { JsonCheck } from "../core/message/codec.js";
import type { Handler } from "../core/message/dispatch.js";
import type { Activity } from "../core/progress.js";
import { WorkQueue } from "../core/work.js";
import type { RegionObserver } from "../memory/regions.js";
import type { ParkerWitness } from "../node/park.js";
import type { WaitName } from "../node/wait-kinds.js";
import { Receiver } from "./eager/receiver.js";
import { Sender } from "./eager/sender.js";
import type { Taken } from "./eager/unexpected.js";
import { Rma } from "./rma/rma.js";

/** The parts of one context. */
export interface ObservedParts {
  completions(activity: Activity): CompletionQueue;
  work(activity: Activity): WorkQueue;
  sender(...given: ConstructorParameters<typeof Sender>): Sender;
  receiver(...given: ConstructorParameters<typeof Receiver>): Receiver;
  rma(...given: ConstructorParameters<typeof Rma>): Rma;
  /** The function to call in place of a user's handler, and of a protocol's handler. */
  handler(id: number, handler: Handler): Handler;
  ownHandler(id: number, handler: Handler): Handler;
  /** A message was taken out of a stream. */
  took(taken: Taken, id: number): void;
}

/** The observers of one task. */
export interface Observers {
  readonly witness: ParkerWitness;
  readonly regions: RegionObserver | undefined;
  /** Debug mode: hot calls refuse parameters that do not exist. */
  readonly isStrict: boolean;
  /** Debug mode: refuses a value if codecs.json() would lose a part of it. */
  readonly checkJson: JsonCheck;
  /** Debug mode: a description of the code that runs now. */
  readonly running: string | undefined;
  /** The function to call once a wait has lasted for `witness.patience`. */
  whenLasting(wait: WaitName, own: Endpoint): (() => void) | undefined;
  /** The parts of a context, by its endpoint. */
  parts(own: Endpoint): ObservedParts;
}

const PLAIN: ObservedParts = {
  completions: (activity) => new CompletionQueue(activity),
  work: (activity) => new WorkQueue(activity),
  sender: (...given) => new Sender(...given),
  receiver: (...given) => new Receiver(...given),
  rma: (...given) => new Rma(...given),
  handler: (_, handler) => handler,
  ownHandler: (_, handler) => handler,
  took: () => {},
};

/** No observers. */
export const UNOBSERVED: Observers = {
  witness: { tracer: undefined, patience: Number.POSITIVE_INFINITY },
  regions: undefined,
  isStrict: false,
  checkJson: undefined,
  running: undefined,
  whenLasting: () => undefined,
  parts: () => PLAIN,
};

// The observers of a task whose job is traced, or in debug mode. Only this file chooses the observed parts.
import { CompletionQueue } from "../core/completion.js";
import { WorkQueue } from "../core/work.js";
import type { Tracer } from "../node/tracer.js";
import { Sender } from "../protocol/eager/sender.js";
import { type Observers, UNOBSERVED } from "../protocol/observers.js";
import { Rma } from "../protocol/rma/rma.js";
import type { Debug } from "./debug.js";
import { checkJson } from "./json-losses.js";
import { ContextTracer, ObservedReceiver, TimedCompletions, TimedWork, TracedRma, TracedSender } from "./observed.js";
import { RegionWatch } from "./watch.js";

/** @param tracer if the job is traced @param debug if it is in debug mode */
export function observersOf(task: number, tracer: Tracer | undefined, debug: Debug | undefined): Observers {
  if (tracer === undefined && debug === undefined) return UNOBSERVED;
  return {
    witness: {
      tracer,
      patience: debug?.patience ?? Number.POSITIVE_INFINITY,
      ...(debug && { slept: () => debug.slept() }),
    },
    regions: debug && new RegionWatch(task),
    isStrict: debug !== undefined,
    checkJson: debug && checkJson,
    get running() {
      return debug?.running;
    },
    whenLasting: (wait, own) => debug && (() => debug.lasts(wait, own)),
    parts: (own) => {
      const tracing = tracer && new ContextTracer(tracer, own);
      return {
        completions: (activity) => (debug ? new TimedCompletions(debug, own, activity) : new CompletionQueue(activity)),
        work: (activity) => (debug ? new TimedWork(debug, own, activity) : new WorkQueue(activity)),
        sender: (...given) => (tracing ? new TracedSender(tracing, ...given) : new Sender(...given)),
        rma: (...given) => (tracing ? new TracedRma(tracing, ...given) : new Rma(...given)),
        receiver: (...given) => new ObservedReceiver(tracing, debug, own, ...given),
        handler: (id, handler) => {
          const timed = debug ? debug.handler(own, id, handler) : handler;
          return tracing ? tracing.handler(id, timed) : timed;
        },
        ownHandler: (id, handler) => (tracing ? tracing.ownHandler(id, handler) : handler),
        took: (taken, id) => tracing?.took(taken, id),
      };
    },
  };
}

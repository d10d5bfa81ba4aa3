// The limits of a job's memory: checks the options that set the limits.
import * as L from "../../assembly/layout.js";
import { checkKeys, type Keys } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { endpointsFit, type Limits, MEMORY_BYTES_MAX } from "../memory/map.js";
import { taskAt } from "../node/address.js";
import { environment, isNode } from "../support/host.js";
import { hostModeOf } from "./info.js";

const CONTEXTS_DEFAULT = 4;
const TRACE_EVENTS_DEFAULT = 65536;
export const TRACE_EVENTS_MAX = 2 ** 24;
const HEAP_BYTES_DEFAULT = 256 * 1024 ** 2;
/** Default in a browser: from 64 MiB on, the first message of a job takes 8 ms longer (of 70 ms; Chromium 156). */
const HEAP_BYTES_BROWSER = 32 * 1024 ** 2;

interface TraceLimits {
  readonly events?: number | undefined;
}
const TRACE_KEYS: Keys<TraceLimits> = { events: true };

/** The options of `launch` that give limits. */
export interface LimitOptions {
  readonly maxTasks?: number | undefined;
  readonly contexts?: number | undefined;
  readonly laneBytes?: number | undefined;
  readonly heapBytes?: number | undefined;
  readonly regions?: number | undefined;
  readonly fifos?: number | undefined;
  readonly slots?: number | undefined;
  readonly engine?: "inline" | "thread" | undefined;
  readonly trace?: boolean | TraceLimits | undefined;
}

/** How many tasks may share a memory, and why not more. */
export function roomForTasks(contexts = CONTEXTS_DEFAULT): { readonly most: number; readonly why: string } {
  const most = Math.min(L.TASK_COUNT_MAX, taskAt({ contexts }, L.ENDPOINT_COUNT_MAX));
  return { most, why: `: the limit is ${L.ENDPOINT_COUNT_MAX} endpoints, and each task has ${contexts} contexts` };
}

/** @param launched tasks that are launched @throws PAMIR_INVAL, PAMIR_MEMORY */
export function checkLimits(options: LimitOptions, launched: number): Limits {
  const {
    maxTasks = launched,
    contexts = CONTEXTS_DEFAULT,
    laneBytes = L.LANE_BYTES_DEFAULT,
    heapBytes = isNode() ? HEAP_BYTES_DEFAULT : HEAP_BYTES_BROWSER,
    regions = L.REGION_COUNT_DEFAULT,
    fifos = L.FIFO_COUNT_DEFAULT,
    slots = L.SLOT_COUNT_DEFAULT,
  } = options;
  checkInteger("maxTasks", maxTasks, launched, L.TASK_COUNT_MAX);
  checkInteger("contexts", contexts, 1, L.CONTEXT_COUNT_MAX);
  checkInteger("laneBytes", laneBytes, L.LANE_BYTES_MIN, 2 ** 26);
  checkInteger("heapBytes", heapBytes, L.PAGE_SIZE, MEMORY_BYTES_MAX);
  checkInteger("regions", regions, 1, L.REGION_COUNT_MAX);
  checkInteger("fifos", fifos, 1, L.FIFO_COUNT_MAX);
  checkInteger("slots", slots, L.SLOT_COUNT_MIN, L.SLOT_COUNT_MAX);
  for (const [name, value] of Object.entries({ laneBytes, slots })) {
    if ((value & (value - 1)) !== 0) throw new PamiError("PAMIR_INVAL", `${name} is ${value}, not a power of two`);
  }
  const traceEvents = checkTrace(options.trace === undefined ? Boolean(environment("PAMIR_TRACE")) : options.trace);
  const { engine: kind = "inline" } = options;
  if (kind !== "inline" && kind !== "thread")
    throw new PamiError("PAMIR_INVAL", `engine is ${show(kind)}, not "inline" or "thread"`);
  const isShared = hostModeOf().mode === "shared";
  const engine = kind === "thread" && isShared;
  const limits = { tasks: maxTasks, contexts, laneBytes, heapBytes, regions, fifos, slots, traceEvents, engine };
  // A node has slots for its own tasks and for some tasks of other nodes: see nodeLimits().
  if (isShared && !endpointsFit(limits)) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `${maxTasks} tasks with ${contexts} contexts are ${maxTasks * contexts} endpoints, the limit is ${L.ENDPOINT_COUNT_MAX}`,
    );
  }
  if (heapBytes < laneBytes + L.LANE_BYTES_GROWN) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `heapBytes is ${heapBytes}: one lane of ${laneBytes} and one for large messages need ${laneBytes + L.LANE_BYTES_GROWN}`,
    );
  }
  return limits;
}

/** Checks the `trace` option. @returns the number of events that each task keeps */
function checkTrace(trace: boolean | TraceLimits): number {
  if (trace === false) return 0;
  if (trace !== true && (typeof trace !== "object" || trace === null)) {
    throw new PamiError("PAMIR_INVAL", `trace is ${show(trace)}, not a boolean, nor { events }`);
  }
  if (trace !== true) checkKeys("trace", trace, TRACE_KEYS);
  const { events = TRACE_EVENTS_DEFAULT } = trace === true ? {} : trace;
  checkInteger("trace.events", events, 64, TRACE_EVENTS_MAX);
  if ((events & (events - 1)) !== 0) {
    throw new PamiError("PAMIR_INVAL", `trace.events is ${events}, not a power of two`);
  }
  return events;
}

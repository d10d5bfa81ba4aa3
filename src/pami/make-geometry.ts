// Makes geometries: what client.createGeometry() loads.
import { ContextGeometries, type PartOf } from "../collective/collectives.js";
import { checkKeys, type Keys } from "../core/check.js";
import { checkEndpoint, type Endpoint, nameOf } from "../core/endpoint.js";
import { checkInteger, PamiError } from "../core/error.js";
import { TIMEDOUT } from "../core/result.js";
import { type CollectiveKernel, selectCollectiveKernel } from "../kernel/collective.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Task } from "../protocol/task.js";
import type { Context } from "./context.js";
import { Geometry } from "./geometry.js";
import { LedWaits } from "./led-waits.js";
import { awaitSteps, blockOnSteps, checkMayBlock, type Step, type StepHost, type Steps } from "./steps.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, WAIT_KEYS, type WaitOptions } from "./waits.js";

/** Tasks `from` … `to`, both included, each `step`-th (default 1): ranges as in PAMI. */
export interface GeometryRange {
  /** The first task. */
  readonly from: number;
  /** The last task, or a bound for it. */
  readonly to: number;
  /** From one task to the next (default 1). */
  readonly step?: number | undefined;
}

/** Options of `client.createGeometry`. */
export interface GeometryOptions extends ProgressOptions {
  /** Tells apart geometries of the same members that are made at the same time: 0 … 2^32 - 1 (default 0). */
  readonly id?: number | undefined;
  /** The context that is a member, if several of this task are. */
  readonly context?: Context | undefined;
}

/** Options of `client.createGeometrySync`. */
export interface GeometrySyncOptions extends WaitOptions {
  /** As of `client.createGeometry`. */
  readonly id?: number | undefined;
  /** As of `client.createGeometry`. */
  readonly context?: Context | undefined;
}

const OWN: Keys<Pick<GeometryOptions, "id" | "context">> = { id: true, context: true };
const KEYS: Keys<GeometryOptions> = { ...PROGRESS_KEYS, ...OWN };
const SYNC_KEYS: Keys<GeometrySyncOptions> = { ...WAIT_KEYS, ...OWN };

/** One for each context, and one kernel for each task. */
const collectivesOf = new WeakMap<ContextCore, ContextGeometries>();
const waitsOf = new WeakMap<ContextCore, LedWaits>();
const kernelOf = new WeakMap<Task, CollectiveKernel>();

/** @param call the user's call, for errors @throws as `client.createGeometry` */
export async function makeGeometry(
  call: "world" | "createGeometry",
  task: Task,
  contexts: readonly Context[],
  members: readonly Endpoint[] | GeometryRange,
  options: GeometryOptions,
): Promise<Geometry> {
  checkKeys(`options of ${call}()`, options, call === "world" ? PROGRESS_KEYS : KEYS);
  const { id, context, ...wait } = options;
  checkProgress(`${call}()`, wait);
  const by = memberOf(call, task, contexts, members, id, context);
  return awaitSteps(make(call, by, task), by, wait);
}

/** @throws as `client.createGeometrySync` */
export function makeGeometrySync(
  task: Task,
  contexts: readonly Context[],
  members: readonly Endpoint[] | GeometryRange,
  options: GeometrySyncOptions,
): Geometry {
  const call = "createGeometrySync";
  checkKeys(`options of ${call}()`, options, SYNC_KEYS);
  const { id, context, ...wait } = options;
  checkWait(`${call}()`, wait);
  checkMayBlock(task, "createGeometry");
  const by = memberOf(call, task, contexts, members, id, context);
  return blockOnSteps(make(call, by, task), by.host, wait);
}

/** What a member needs to make a geometry. */
interface Maker extends StepHost {
  readonly context: Context;
  readonly endpoints: readonly Endpoint[];
  readonly id: number;
}

/** @throws PAMIR_INVAL, PAMIR_CLOSED */
function memberOf(
  call: string,
  task: Task,
  contexts: readonly Context[],
  members: readonly Endpoint[] | GeometryRange,
  id = 0,
  wanted?: Context,
): Maker {
  checkInteger("id", id, 0, 2 ** 32 - 1);
  const endpoints = endpointsOf(call, task, members);
  // It may have closed while this module was loaded.
  if (wanted?.closed) throw new PamiError("PAMIR_CLOSED", `${call}(): ${nameOf(wanted.endpoint)} is closed`);
  const own = contexts.filter(({ endpoint }) => endpoints.includes(endpoint));
  const context = wanted ?? own[0];
  if (context === undefined || !own.includes(context)) {
    const list = endpoints.slice(0, 8).map((endpoint) => nameOf(endpoint));
    throw new PamiError("PAMIR_INVAL", `${call}(): no open context of task ${task.number} is among ${list.join(", ")}`);
  }
  if (own.length > 1 && wanted === undefined) {
    throw new PamiError(
      "PAMIR_INVAL",
      `${call}(): ${own.length} contexts of task ${task.number} are members: name one`,
    );
  }
  const { host } = context;
  let waits = waitsOf.get(host.core);
  if (waits === undefined) {
    waits = new LedWaits(host);
    waitsOf.set(host.core, waits);
  }
  return { context, host, waits, endpoints, id };
}

function kernelFor(task: Task): CollectiveKernel {
  let kernel = kernelOf.get(task);
  if (kernel === undefined) {
    kernel = selectCollectiveKernel(task.kernel.name, task.memory);
    kernelOf.set(task, kernel);
  }
  return kernel;
}

/** @param call the user's call, for errors: "split" */
function* make(call: string, maker: Maker, task: Task, part?: PartOf): Steps<Geometry> {
  const { context, host, waits, endpoints, id } = maker;
  const { core } = host;
  const kernel = kernelFor(task);
  let collectives = collectivesOf.get(core);
  if (collectives === undefined) {
    collectives = core.add((activity) => new ContextGeometries(task, core, activity, kernel));
    collectivesOf.set(core, collectives);
  }
  const creation = collectives.begin(endpoints, id, part);
  const late: Step["late"] = (result, cause) =>
    result === TIMEDOUT
      ? new PamiError("PAMIR_TIMEDOUT", `${call}() ${creation.awaited()}`, { cause })
      : new PamiError("PAMIR_INTERRUPTED", `${call}() was interrupted`);
  try {
    yield { until: creation, late };
  } catch (error) {
    // In its last round, it may have come to an end.
    if (!creation.isOver || (error as PamiError).code !== "PAMIR_TIMEDOUT") {
      collectives.giveUp(creation, creation.awaited());
      // The round that has ended the wait may have made it: the others hear that this member has none.
      creation.geometry?.close();
      throw error;
    }
  }
  if (creation.geometry === undefined) throw new PamiError("PAMIR_SHUTDOWN", `${call}(): ${creation.refusal}`);
  return new Geometry(creation.geometry, {
    memory: task.memory,
    task,
    context,
    host,
    waits,
    shutdownError: (text, to) => task.shutdownError(text, to),
    create: (user, some, whole) => make(user, { ...maker, endpoints: some, id: 0 }, task, whole),
    kernel,
  });
}

function endpointsOf(call: string, task: Task, members: readonly Endpoint[] | GeometryRange): readonly Endpoint[] {
  const { jobTasks, contexts } = task.map;
  if (!Array.isArray(members)) {
    checkKeys(`members of ${call}()`, members, { from: true, to: true, step: true });
    const { from, to, step = 1 } = members as GeometryRange;
    checkInteger("from", from, 0, jobTasks - 1);
    checkInteger("to", to, from, jobTasks - 1);
    checkInteger("step", step, 1, jobTasks);
    return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, place) => from + place * step);
  }
  if (members.length === 0) throw new PamiError("PAMIR_INVAL", `members of ${call}(): the list is empty`);
  const seen = new Set<Endpoint>();
  for (const endpoint of members as readonly Endpoint[]) {
    checkEndpoint(endpoint, jobTasks, contexts);
    if (seen.has(endpoint)) {
      throw new PamiError("PAMIR_INVAL", `members of ${call}(): ${nameOf(endpoint)} is there twice`);
    }
    seen.add(endpoint);
  }
  return [...(members as readonly Endpoint[])];
}

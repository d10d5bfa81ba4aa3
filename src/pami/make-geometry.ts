// Makes geometries: what client.createGeometry() loads.
import { ContextGeometries, type PartOf } from "../collective/collectives.js";
import type { Creation } from "../collective/creation.js";
import { checkKeys, type Keys } from "../core/check.js";
import { checkEndpoint, type Endpoint, nameOf } from "../core/endpoint.js";
import { checkInteger, PamiError } from "../core/error.js";
import { type CollectiveKernel, selectCollectiveKernel } from "../kernel/collective.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Task } from "../protocol/task.js";
import type { Context } from "./context.js";
import { Geometry } from "./geometry.js";
import { LedWaits } from "./led-waits.js";
import { checkProgress, PROGRESS_KEYS, type ProgressOptions } from "./waits.js";

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

const KEYS: Keys<GeometryOptions> = { ...PROGRESS_KEYS, id: true, context: true };

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
  const { id = 0, context: wanted, ...wait } = options;
  checkInteger("id", id, 0, 2 ** 32 - 1);
  checkProgress(`${call}()`, wait);
  const endpoints = endpointsOf(task, members);
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
  return make(call, task, context, endpoints, id, wait);
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
async function make(
  call: string,
  task: Task,
  context: Context,
  endpoints: readonly Endpoint[],
  id: number,
  options: ProgressOptions,
  part?: PartOf,
): Promise<Geometry> {
  const { host } = context;
  const { core } = host;
  const kernel = kernelFor(task);
  let collectives = collectivesOf.get(core);
  if (collectives === undefined) {
    collectives = core.add((activity) => new ContextGeometries(task, core, activity, kernel));
    collectivesOf.set(core, collectives);
  }
  let waits = waitsOf.get(core);
  if (waits === undefined) {
    waits = new LedWaits(host);
    waitsOf.set(core, waits);
  }
  const creation = collectives.begin(endpoints, id, part);
  try {
    await waits.until(creation, options, true);
  } catch (error) {
    // In its last round, it may have come to an end.
    if (!creation.isOver || !isLate(error)) throw gaveUp(call, collectives, creation, error);
  }
  if (creation.geometry === undefined) throw new PamiError("PAMIR_SHUTDOWN", `${call}(): ${creation.refusal}`);
  return new Geometry(creation.geometry, {
    memory: task.memory,
    spin: host.spin,
    task,
    context,
    advanceUntil: host.advanceUntil,
    until: host.until,
    waits,
    shutdownError: (text, to) => task.shutdownError(text, to),
    create: (user, members, wait, part) => make(user, task, context, members, 0, wait, part),
    kernel,
  });
}

/** This member gives up. @returns the error to throw */
function gaveUp(call: string, collectives: ContextGeometries, creation: Creation, error: unknown): unknown {
  const awaited = creation.awaited();
  collectives.giveUp(creation, awaited);
  // The round that has ended the wait may have made it: the others hear that this member has none.
  creation.geometry?.close();
  return isLate(error) ? new PamiError("PAMIR_TIMEDOUT", `${call}() ${awaited}`, { cause: error }) : error;
}

function isLate(error: unknown): boolean {
  return error instanceof PamiError && error.code === "PAMIR_TIMEDOUT";
}

function endpointsOf(task: Task, members: readonly Endpoint[] | GeometryRange): readonly Endpoint[] {
  const { jobTasks, contexts } = task.map;
  if (!Array.isArray(members)) {
    checkKeys("members of createGeometry()", members, { from: true, to: true, step: true });
    const { from, to, step = 1 } = members as GeometryRange;
    checkInteger("from", from, 0, jobTasks - 1);
    checkInteger("to", to, from, jobTasks - 1);
    checkInteger("step", step, 1, jobTasks);
    return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, place) => from + place * step);
  }
  if (members.length === 0) throw new PamiError("PAMIR_INVAL", "members of createGeometry(): the list is empty");
  const seen = new Set<Endpoint>();
  for (const endpoint of members as readonly Endpoint[]) {
    checkEndpoint(endpoint, jobTasks, contexts);
    if (seen.has(endpoint)) {
      throw new PamiError("PAMIR_INVAL", `members of createGeometry(): ${nameOf(endpoint)} is there twice`);
    }
    seen.add(endpoint);
  }
  return [...(members as readonly Endpoint[])];
}

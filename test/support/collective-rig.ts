// Members of a geometry that are all on this thread, whatever carries their bytes: contexts of one task, or tasks of nodes.
import { launch } from "pamir";
import type { Client, Context, Geometry, KernelName } from "../../src/index.js";
import { PATIENCE } from "../api/support.js";
import { type Case, guarded, parametersOf } from "../conformance/tasks/collective-case.js";
import { problemOf } from "./collective-model.js";
import type { PrivateJob } from "./ports-job.js";

export interface Member {
  readonly client: Client;
  readonly context: Context;
}

/** What the members need besides: something that carries their messages. */
export interface Members {
  readonly members: readonly Member[];
  /** Lets messages come closer. */
  turn(): Promise<void>;
  close(): Promise<void>;
}

/** Contexts of one task. */
export async function contextsOf(size: number, kernel: KernelName, heapBytes = 256 * 1024 ** 2): Promise<Members> {
  const job = await launch(null, { tasks: 1, join: true, contexts: size, kernel, heapBytes });
  const client = job.client as unknown as Client;
  const members = Array.from({ length: size }, () => ({ client, context: client.createContext() }));
  return { members, turn: async () => undefined, close: async () => void (await job.terminate()) };
}

/** Tasks that share no memory, or those of nodes. */
export function tasksOf(job: PrivateJob, close: () => void = () => {}): Members {
  const members = job.tasks.map(({ client }) => ({ client, context: client.createContext() }));
  const closeAll = async (): Promise<void> => {
    for (const { client } of members) if (!client.closed) client.close();
    close();
  };
  return { members, turn: () => job.turn(), close: closeAll };
}

/** Advances all members until a condition holds. */
export async function until({ members, turn }: Members, isSo: () => boolean, what = (): string => ""): Promise<void> {
  const end = performance.now() + PATIENCE;
  for (let round = 0; !isSo(); round++) {
    for (const { context } of members) if (!context.closed) context.advance();
    await turn();
    if (round % 16 === 15) await new Promise((resolve) => setImmediate(resolve));
    if (performance.now() > end) throw new Error(`it does not come to an end: ${what() || isSo}`);
  }
}

/** The results of promises that need all members to advance. */
export async function settled<T>(
  members: Members,
  promises: readonly Promise<T>[],
): Promise<PromiseSettledResult<T>[]> {
  let left = promises.length;
  for (const promise of promises) {
    promise.then(
      () => left--,
      () => left--,
    );
  }
  await until(members, () => left === 0);
  return Promise.allSettled(promises);
}

/** Makes a geometry of all members, or of those with these numbers. */
export async function geometryOf(
  given: Members,
  which: readonly number[] = given.members.map((_, place) => place),
  id = 0,
): Promise<Geometry[]> {
  const chosen = which.map((place) => given.members[place] as Member);
  const endpoints = chosen.map(({ context }) => context.endpoint);
  const made = chosen.map(({ client, context }) =>
    client.createGeometry(endpoints, { context, id, timeout: PATIENCE }),
  );
  return (await settled(given, made)).map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/** One member's part in a case that is under way. */
export interface Part {
  readonly isOver: boolean;
  /** What is wrong with what it has got. Releases the memory of its views. */
  problem(): string | undefined;
}

/** Begins a case at one member. */
export function beginCase(one: Case, geometry: Geometry, client: Parameters<typeof guarded>[1]): Part {
  const { rank, size } = geometry;
  const memory = guarded(one, client);
  const { parameters, sent, received } = parametersOf(one, rank, size, memory.take);
  let result: unknown;
  if (one.form === "callback") {
    const begin = geometry.collective.bind(geometry) as (type: string, given: object) => number;
    const begun = begin(one.type, { ...parameters, onDone: (_: unknown, came: unknown) => (result = came) });
    if (begun !== 0) throw new Error(`collective() returns ${begun}`);
  } else {
    const call = geometry[one.type] as (given: object, options?: object) => Promise<unknown>;
    const options = { timeout: PATIENCE };
    (one.type === "barrier" ? geometry.barrier(options) : call.call(geometry, parameters, options)).then(
      () => (result = 0),
      (error) => (result = error),
    );
  }
  return {
    get isOver() {
      return result !== undefined;
    },
    problem() {
      const problem = found();
      memory.close();
      return problem === undefined ? undefined : `rank ${rank} of ${size}: ${problem}`;
    },
  };
  function found(): string | undefined {
    if (result !== 0) return `the result is ${result}`;
    if (!memory.isWhole()) return "bytes around the views have changed";
    if (sent !== undefined && Buffer.compare(sent.bytes, sent.before) !== 0) return "what is sent has changed";
    if (received === undefined) return undefined;
    return problemOf(one, rank, size, received.bytes, received.before);
  }
}

/** Runs a case at all members. Returns what is wrong. */
export async function runCase(one: Case, given: Members, geometries: readonly Geometry[]): Promise<string[]> {
  const parts = geometries.map((geometry) => {
    const member = given.members.find(({ context }) => context.endpoint === geometry.endpoints[geometry.rank]);
    return beginCase(one, geometry, (member as Member).client);
  });
  await until(
    given,
    () => parts.every(({ isOver }) => isOver),
    () => JSON.stringify(one),
  );
  return parts.flatMap((part) => part.problem() ?? []);
}

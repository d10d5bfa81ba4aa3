// Members of a geometry that are all on this thread, whatever carries their bytes: contexts of one task, or tasks of nodes.
import { launch } from "pamir";
import type { Client, Context, Geometry, KernelName } from "../../src/index.js";
import { PATIENCE } from "../api/support.js";
import { type Case, type guarded, partOf } from "../conformance/tasks/collective-case.js";
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
    if (performance.now() > end) throw new Error(`it does not come to an end in ${round} rounds: ${what() || isSo}`);
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
  /** What is wrong with what it has got. */
  problem(): string | undefined;
}

/** Begins a case at one member. */
export function beginCase(one: Case, geometry: Geometry, client: Parameters<typeof guarded>[1]): Part {
  const { rank, size } = geometry;
  let ended: { problem: string | undefined; bytes?: Uint8Array | undefined } | undefined;
  partOf(one, geometry as never, client, PATIENCE).then(
    (came) => (ended = came),
    (error) => (ended = { problem: `${error}` }),
  );
  return {
    get isOver() {
      return ended !== undefined;
    },
    problem() {
      const problem = ended?.problem ?? (ended?.bytes && problemOf(one, rank, size, ended.bytes));
      return problem && `rank ${rank} of ${size}: ${problem}`;
    },
  };
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

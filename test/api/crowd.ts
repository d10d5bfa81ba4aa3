// A job of which the test is task 0, and whose other tasks run in processes (tasks/crowd.js).
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Context, type Endpoint, type Job, launch, SUCCESS, type TaskExit } from "pamir";
import { expect } from "vitest";
import { ASK, COUNT, DATA, OTHER, PATIENCE, QUIT, until } from "./support.js";

export const CROWD = new URL("tasks/crowd.js", import.meta.url);
export type CrowdOptions = NonNullable<Parameters<typeof launch>[1]>;

/** What a task's process says of itself. */
export interface Own {
  readonly pid: number;
  readonly title: string;
  /** Handle of a region of the task. */
  readonly area: number;
}

/** What has come of the traffic. Pairs are the other task, and how many messages. */
export interface Counts {
  readonly messages: number;
  readonly wrong: number;
  readonly received: readonly (readonly [number, number])[];
  readonly sent: readonly (readonly [number, number])[];
}

export interface Crowd {
  readonly job: Job;
  readonly context: Context;
  readonly to: (task: number) => Endpoint;
  /** What a task answers to an order. */
  ask(task: number, order: string, given?: object): Promise<unknown>;
  processOf(task: number): Promise<Own>;
  /** What has come of the traffic to a task. */
  countOf(task: number): Promise<Counts>;
  /** Sends a signal to a task's process. */
  signal(pid: number, signal: NodeJS.Signals): void;
}

/** Runs a job of which the test is task 0. Of the other tasks, the first half has one process, the rest another. */
export async function withCrowd(
  options: CrowdOptions,
  body: (crowd: Crowd) => Promise<void>,
  by: typeof launch = launch,
): Promise<void> {
  const defaults = { tasks: 5, processes: 2, join: true, onError: "ignore", heapBytes: 8 * 2 ** 20 } as const;
  const job = await by(CROWD, { ...defaults, ...options });
  const context = job.client.createContext();
  context.dispatch(DATA, (message) => void message.receive(new Uint8Array(message.payloadBytes)));
  context.dispatch(OTHER, () => {});
  const to = (task: number): Endpoint => job.client.endpoint(task);
  const stopped = new Set<number>();
  async function ask(task: number, order: string, given: object = {}): Promise<unknown> {
    const request = new TextEncoder().encode(JSON.stringify({ order, ...given }));
    const reply = await context.call(to(task), ASK, request, { timeout: PATIENCE });
    return JSON.parse(new TextDecoder().decode(reply.slice()));
  }
  async function countOf(task: number): Promise<Counts> {
    const reply = await context.call(to(task), COUNT, null, { timeout: PATIENCE });
    return JSON.parse(new TextDecoder().decode(reply.slice()));
  }
  const processOf = async (task: number): Promise<Own> => (await ask(task, "process")) as Own;
  function signal(pid: number, signal: NodeJS.Signals): void {
    if (signal === "SIGSTOP") stopped.add(pid);
    else stopped.delete(pid);
    process.kill(pid, signal);
  }
  try {
    await body({ job, context, to, ask, processOf, countOf, signal });
  } finally {
    for (const pid of stopped) if (stateOf(pid) === "T") process.kill(pid, "SIGCONT");
    await job.terminate();
  }
}

/** Until each of these tasks has had a hundred more messages. */
export async function untilTraffic({ countOf }: Crowd, tasks: readonly number[]): Promise<void> {
  const all = () => Promise.all(tasks.map(countOf));
  const before = await all();
  const isMore = ({ messages }: Counts, i: number) => messages >= (before[i]?.messages ?? 0) + 100;
  let after = before;
  for (const end = performance.now() + PATIENCE; !after.every(isMore) && performance.now() < end; ) after = await all();
  expect(after.map((counts, i) => isMore(counts, i) && counts.wrong === 0)).toEqual(tasks.map(() => true));
}

/** All tasks but the caller leave, and every byte of the heap is free again. */
export async function leaveAll({ job, context, to }: Crowd, tasks: readonly number[]): Promise<TaskExit[]> {
  for (const task of tasks) until(context, () => context.sendImmediate(to(task), QUIT) === SUCCESS);
  for (let task = 1; task < job.tasks; task++) await context.whenEnded(to(task), { timeout: PATIENCE });
  for (const end = performance.now() + PATIENCE; performance.now() < end; context.advance())
    if (job.dump().heap.free === job.dump().heap.bytes) break;
  expect(job.dump().heap.free).toBe(job.dump().heap.bytes);
  return job.exited;
}

/** State of a process, as a letter; undefined: there is none. Z: it has ended, and its parent has not asked how. */
export function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

/** State of a process once it has ended. */
export async function endOf(pid: number): Promise<string | undefined> {
  const isOver = () => ["Z", undefined].includes(stateOf(pid));
  for (const end = performance.now() + PATIENCE; !isOver() && performance.now() < end; ) await sleep(1);
  return stateOf(pid);
}

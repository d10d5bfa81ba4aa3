// The picture of `pamir top`: a table of tasks for each job.
import { Table } from "console-table-printer";
import { type ContextDump, info, type TaskDump } from "pamir";
import { printableStart } from "../../support/printable.js";
import type { Seen } from "./answer.js";
import { type JobsLook, jobOf } from "./look.js";
import { waysText } from "./ways.js";

/** Most characters that are shown of a text that a job says: its command line, or a line about what stands still. */
const TEXT_MAX = 1000;
/** Most lines of a node about what stands still. */
const STUCK_MAX = 100;

/** The text of all jobs. @param before an earlier look, for rates */
export function textOf({ seen, silent }: JobsLook, before: JobsLook): string {
  const jobs = new Map<string, Seen[]>();
  for (const one of seen) {
    const key = jobOf(one);
    jobs.set(key, [...(jobs.get(key) ?? []), one]);
  }
  return [...jobs.values()].map((nodes) => jobText(nodes, silent, before)).join("\n");
}

/** @param nodes those that have answered */
function jobText(nodes: readonly Seen[], silent: ReadonlySet<number>, before: JobsLook): string {
  const { pid, program, place } = nodes[0] as Seen;
  const hasNodes = (place?.nodes.length ?? 1) > 1;
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      ...(hasNodes ? [{ name: "node", alignment: "right" as const }] : []),
      { name: "task", alignment: "right" },
      { name: "state", alignment: "left" },
      { name: "waits", alignment: "left" },
      ...["messages", "sleeps", "won", "lost", "queued", "pending", "unexpected", "calls"].map((name) => ({
        name,
        alignment: "right" as const,
      })),
    ],
  });
  const heaps: string[] = [];
  const stands: string[] = [];
  for (const one of nodes) {
    const { heap, stuck } = one.dump;
    const was = before.seen.find(({ socket }) => socket === one.socket);
    const name = hasNodes ? `node ${one.place?.node}, process ${one.pid}: ` : "";
    heaps.push(`${name}heap ${number(heap.bytes - heap.free)} of ${number(heap.bytes)} bytes in use`);
    const of = `stuck: ${hasNodes ? `node ${one.place?.node}: ` : ""}`;
    stands.push(...stuck.slice(0, STUCK_MAX).map((line) => `${of}${printableStart(line, TEXT_MAX)}`));
    if (stuck.length > STUCK_MAX) stands.push(`${of}and ${stuck.length - STUCK_MAX} more`);
    for (const task of tasksOf(one))
      table.addRow({ ...(hasNodes && { node: one.place?.node }), ...rowOf(task, one, was) });
  }
  const title = `${pid}  ${printableStart(program.join(" "), TEXT_MAX)}`;
  const ways = waysText(nodes, before.seen);
  return [title, ...heaps, ...absentNodes(nodes, silent), table.render(), ...ways, ...stands, ""].join("\n");
}

/** The tasks of a node: its dump has some of other nodes too. */
function tasksOf({ dump, place }: Seen): readonly TaskDump[] {
  if (place === undefined) return dump.tasks;
  return dump.tasks.filter(({ task }) => Math.floor(task / place.tasksPerNode) === place.node);
}

/** A line for each node of this machine that has not answered, and one for those of others. */
function absentNodes(answered: readonly Seen[], silent: ReadonlySet<number>): string[] {
  const { nodes = [] } = answered[0]?.place ?? {};
  const found = new Set(answered.map(({ place }) => place?.node));
  const lines: string[] = [];
  let elsewhere = 0;
  for (const [node, { pid, isHere }] of nodes.entries()) {
    if (found.has(node)) continue;
    const why = silent.has(pid)
      ? "it does not answer"
      : `it has ended, or has no socket in ${printableStart(info().sockets as string, TEXT_MAX)}`;
    if (isHere) lines.push(`node ${node}, process ${pid}: ${why}`);
    else elsewhere++;
  }
  if (elsewhere > 0)
    lines.push(`${elsewhere} of ${nodes.length} nodes are on other machines, where pamir top shows them`);
  return lines;
}

const total = (contexts: readonly ContextDump[], of: (context: ContextDump) => number): number =>
  contexts.reduce((sum, context) => sum + of(context), 0);
const number = (value: number): string => Math.round(value).toLocaleString("en-US");

/** How far a counter has come, which counts modulo 2^32. */
const counted = (now: number, before: number): number => (now - before) >>> 0;

/**
 * Messages since an earlier look. The counters of a task that has ended are gone, and so are those of its contexts; a context
 * that has come since began at 0.
 */
function messagesSince(now: TaskDump, before: TaskDump): number {
  const were = new Map(before.contexts.map(({ context, messages }) => [context, messages]));
  return total(now.contexts, ({ context, messages }) => counted(messages, were.get(context) ?? 0));
}

function rowOf(task: TaskDump, { at }: Seen, before: Seen | undefined): Record<string, string | number> {
  const elapsed = before === undefined ? Number.NaN : (at - before.at) / 1000;
  const was = before?.dump.tasks.find((other) => other.task === task.task);
  // Of a task that has ended, no rate is known.
  const rate = (since: (now: TaskDump, before: TaskDump) => number): string =>
    was === undefined || task.state === "closed" || task.state === "dead" ? "" : number(since(task, was) / elapsed);
  const { contexts } = task;
  return {
    task: task.task,
    state: task.state !== "up" ? printableStart(task.state, TEXT_MAX) : task.parked ? "asleep" : "awake",
    waits: printableStart(
      contexts.flatMap(({ context, waits }) => waits.map((wait) => `${context}: ${wait}`)).join(", "),
      TEXT_MAX,
    ),
    messages: rate(messagesSince),
    sleeps: rate((now, before) => counted(now.sleeps, before.sleeps)),
    won: rate((now, before) => counted(now.spinsWon, before.spinsWon)),
    lost: rate((now, before) => counted(now.spinsLost, before.spinsLost)),
    queued: number(total(contexts, ({ lanes }) => lanes.reduce((sum, { queued }) => sum + queued, 0))),
    pending: number(total(contexts, ({ pending }) => pending.bytes)),
    unexpected: number(total(contexts, ({ unexpectedBytes }) => unexpectedBytes)),
    calls: number(total(contexts, ({ calls }) => calls)),
  };
}

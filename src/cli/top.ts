// `pamir top`: a live view of the jobs that opted in, over the sockets of their monitors.
import { readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";
import { type ContextDump, type Dump, info, type TaskDump } from "pamir";
import { UsageError, wholeNumber } from "./usage.js";

const topHelp = `pamir top: what the jobs of this machine do that opted in

Usage: pamir top [PID] [--interval MS] [--once] [--json]

A job opts in by launch(…, { top: true }), or by PAMIR_TOP=1 in its environment.

  PID                   only the jobs of this process
  --interval MS         milliseconds from one look to the next, 100 to 60000 (default 1000)
  --once                looks twice, prints once, and ends; so does --json
  --json                the last look, as one JSON array
  --help                this text

Columns: messages, sleeps, and the spins that were won and lost are a second's; queued is what lies in lanes to a task and is not yet taken, pending what
waits for room in one, unexpected what has no handler, all in bytes.
`;

/** A job's answer. */
interface Job {
  readonly pid: number;
  readonly program: readonly string[];
  readonly dump: Dump;
}

/** A job with the time of the look, in milliseconds. */
interface Seen extends Job {
  readonly socket: string;
  readonly at: number;
}

/** Runs the command; its exit code. */
export async function top(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      interval: { type: "string", default: "1000" },
      once: { type: "boolean" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(topHelp);
    return 0;
  }
  const interval = wholeNumber("--interval", values.interval, 100, 60_000);
  const [given, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`top takes one PID, not ${positionals.length}`);
  const pid = given === undefined ? undefined : wholeNumber("PID", given, 1, 2 ** 31 - 1);
  let before = await look(pid);
  if (before.length === 0) {
    const whose = pid === undefined ? "no job" : `no job of process ${pid}`;
    process.stderr.write(`pamir: ${whose} has opted in: launch(…, { top: true }), or PAMIR_TOP=1\n`);
    return 1;
  }
  for (;;) {
    await sleep(interval);
    const now = await look(pid);
    if (values.json) {
      process.stdout.write(`${JSON.stringify(now, null, 2)}\n`);
      return 0;
    }
    const text = now
      .map((job) =>
        jobText(
          job,
          before.find(({ socket }) => socket === job.socket),
        ),
      )
      .join("\n");
    if (values.once) {
      process.stdout.write(text);
      return 0;
    }
    // To the upper left, then what was there is cleared.
    process.stdout.write(`\x1b[H\x1b[J${text}`);
    if (now.length === 0) {
      process.stdout.write("all jobs are over\n");
      return 0;
    }
    before = now;
  }
}

/** What each job answers; those that have gone without a word are forgotten. */
async function look(pid: number | undefined): Promise<Seen[]> {
  const folder = info().sockets as string;
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  const found = names
    .map((name) => ({ name, owner: Number(/^pamir-(\d+)-\d+\.sock$/.exec(name)?.[1]) }))
    .filter(({ owner }) => (pid === undefined ? !Number.isNaN(owner) : owner === pid));
  const jobs = await Promise.all(found.map(({ name }) => ask(join(folder, name))));
  return jobs.filter((job) => job !== undefined).sort((a, b) => a.pid - b.pid || a.socket.localeCompare(b.socket));
}

function ask(socket: string): Promise<Seen | undefined> {
  return new Promise((resolve) => {
    const request = get({ socketPath: socket, timeout: 2000 }, async (response) => {
      let text = "";
      for await (const part of response.setEncoding("utf8")) text += part;
      resolve({ socket, at: performance.now(), ...(JSON.parse(text) as Job) });
    });
    request.on("timeout", () => request.destroy());
    request.on("error", (error: NodeJS.ErrnoException) => {
      // Its process was killed: no process listens there any more.
      if (error.code === "ECONNREFUSED") rmSync(socket, { force: true });
      resolve(undefined);
    });
  });
}

const total = (contexts: readonly ContextDump[], of: (context: ContextDump) => number): number =>
  contexts.reduce((sum, context) => sum + of(context), 0);

function jobText({ pid, program, dump, at }: Seen, before: Seen | undefined): string {
  const { heap, tasks, stuck } = dump;
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "task", alignment: "right" },
      { name: "state", alignment: "left" },
      { name: "waits", alignment: "left" },
      ...["messages", "sleeps", "won", "lost", "queued", "pending", "unexpected", "calls"].map((name) => ({
        name,
        alignment: "right" as const,
      })),
    ],
  });
  const elapsed = before === undefined ? Number.NaN : (at - before.at) / 1000;
  const number = (value: number): string => Math.round(value).toLocaleString("en-US");
  for (const task of tasks) {
    const was = before?.dump.tasks.find((other) => other.task === task.task);
    // Both count modulo 2^32.
    const rate = (of: (dump: TaskDump) => number): string =>
      was === undefined ? "" : number(((of(task) - of(was)) >>> 0) / elapsed);
    const { contexts } = task;
    table.addRow({
      task: task.task,
      state: task.state !== "up" ? task.state : task.parked ? "asleep" : "awake",
      waits: contexts.flatMap(({ context, waits }) => waits.map((wait) => `${context}: ${wait}`)).join(", "),
      messages: rate((one) => total(one.contexts, ({ messages }) => messages)),
      sleeps: rate(({ sleeps }) => sleeps),
      won: rate(({ spinsWon }) => spinsWon),
      lost: rate(({ spinsLost }) => spinsLost),
      queued: number(total(contexts, ({ lanes }) => lanes.reduce((sum, { queued }) => sum + queued, 0))),
      pending: number(total(contexts, ({ pending }) => pending.bytes)),
      unexpected: number(total(contexts, ({ unexpectedBytes }) => unexpectedBytes)),
      calls: number(total(contexts, ({ calls }) => calls)),
    });
  }
  const title = `${pid}  ${program.join(" ")}`;
  const memory = `heap ${number(heap.bytes - heap.free)} of ${number(heap.bytes)} bytes in use`;
  return [title, memory, table.render(), ...stuck.map((line) => `stuck: ${line}`), ""].join("\n");
}

// `pamir top`: a live view of the jobs that opted in, over the sockets of their monitors and nodes.
import { parseArgs } from "node:util";
import { printableJson } from "../support/printable.js";
import { pause } from "../support/timers.js";
import { FolderError, look } from "./top/look.js";
import { textOf } from "./top/text.js";
import { say, UsageError, wholeNumber } from "./usage.js";

const topHelp = `pamir top: what the jobs of this machine do that opted in

Usage: pamir top [PID] [--interval MS] [--once] [--json]

A job opts in by launch(…, { top: true }), by pamir run --top, or by PAMIR_TOP=1 in its environment.

  PID                   only the jobs of which this process is a part, or which it has started
  --interval MS         milliseconds from one look to the next, 100 to 60000 (default 1000)
  --once                looks twice, prints once, and ends; so does --json
  --json                the last look, as one JSON array
  --help                this text

Columns: messages, sleeps, and the spins that were won and lost are a second's; queued is what lies in lanes to a task and is
not yet taken, pending what waits for room in one, unexpected what has no handler, all in bytes. A job of several nodes has
a column for them. Nodes of this machine are shown; of others, their number. A second table has by what their packets go to
other nodes, through which server or to which address, for how long, and how many a second.
`;

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
  try {
    return await show(pid, interval, values);
  } catch (error) {
    if (!(error instanceof FolderError)) throw error;
    say(`pamir: ${error.message}`);
    return 1;
  }
}

/** Shows the jobs, until they are over. */
async function show(
  pid: number | undefined,
  interval: number,
  options: { readonly json?: boolean; readonly once?: boolean },
): Promise<number> {
  let before = await look(pid);
  if (before.seen.length === 0) {
    const whose = pid === undefined ? "no job" : `no job of process ${pid}`;
    say(`pamir: ${whose} has opted in: launch(…, { top: true }), or PAMIR_TOP=1`);
    return 1;
  }
  for (;;) {
    await pause(interval);
    const now = await look(pid);
    if (options.json) {
      process.stdout.write(`${printableJson(now.seen)}\n`);
      return 0;
    }
    const text = textOf(now, before);
    if (options.once) {
      process.stdout.write(text);
      return 0;
    }
    // To the upper left, then what was there is cleared.
    process.stdout.write(`\x1b[H\x1b[J${text}`);
    if (now.seen.length === 0) {
      process.stdout.write("all jobs are over\n");
      return 0;
    }
    before = now;
  }
}

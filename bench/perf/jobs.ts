// What a job of processes costs: from `pamir run -n 4 --processes 4` to a first message, beside four bare processes of Node;
// and the processors' time that eight processes take while they wait.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pause } from "../../src/support/timers.js";
import { cleaned } from "./clean-up.js";
import { now } from "./measure.js";
import { limitOf, Missing, type Order, within } from "./peers.js";
import type { Figures } from "./work.js";

const PROCESSES = 4;
const IDLE_PROCESSES = 8;
/** Until they have settled: V8 compiles, and some 8 s after the last activity it collects garbage, for 20 ms a process. */
const SETTLE_MS = 20_000;
/** What the figure is about. */
const IDLE_SECONDS = 10;
/** Of a short run, in which the figure means little. */
const QUICK_SECONDS = 0.5;

/** Until one of four tasks has said that a message came. */
export function runStart(order: Order): Promise<Figures> {
  const count = `${PROCESSES}`;
  const [cli, app] = ["./cli.js", "./tasks/start.js"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return timed(order, [[cli as string, "run", "-n", count, "--processes", count, app as string]], (child) =>
    once(child.stdout as NonNullable<ChildProcess["stdout"]>, "data"),
  );
}

/** Until four processes that do nothing have ended. */
export function runBareProcesses(order: Order): Promise<Figures> {
  const all = Array.from({ length: PROCESSES }, () => ["-e", "0"]);
  return timed(order, all, (child) => once(child, "close"));
}

/** The processors' time that a job of idle processes takes in IDLE_SECONDS, its launcher included. */
export async function runIdle(order: Order): Promise<Figures> {
  const count = `${IDLE_PROCESSES}`;
  const [cli, app] = ["./cli.js", "./tasks/idle.js"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const args = [cli as string, "run", "-n", count, "--processes", count, app as string];
  const job = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(job, "close");
  const seconds = order.seconds < IDLE_SECONDS / 10 ? QUICK_SECONDS : IDLE_SECONDS;
  const measured = async (): Promise<number> => {
    let waiting = 0;
    for await (const _ of createInterface(job.stdout)) if (++waiting === IDLE_PROCESSES) break;
    if (waiting < IDLE_PROCESSES) throw new Error(`${waiting} of ${IDLE_PROCESSES} processes have started`);
    await pause(seconds === IDLE_SECONDS ? SETTLE_MS : 0);
    const before = timeOf(job.pid as number);
    await pause(seconds * 1000);
    return ((timeOf(job.pid as number) - before) * IDLE_SECONDS) / seconds;
  };
  const end = (): void => void job.kill("SIGTERM");
  try {
    return { p50_ns: await cleaned(() => within(limitOf(order), measured(), end), end) };
  } finally {
    await ended;
  }
}

/** Nanoseconds that the threads of a process and of its children have run. */
function timeOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const own = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0];
    const children = readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean);
    return sum + Number(own) + children.reduce((all, child) => all + timeOf(Number(child)), 0);
  }, 0);
}

/** The time from the start of processes until each of them has done something. It ends once all have ended. */
async function timed(
  order: Order,
  commands: readonly (readonly string[])[],
  isDone: (child: ChildProcess) => Promise<unknown>,
): Promise<Figures> {
  const begin = now();
  const children = commands.map((args) => spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] }));
  const endAll = (): void => {
    for (const child of children) child.kill("SIGKILL");
  };
  const ends = children.map(async (child) => {
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    child.stdout.resume();
    const [code] = await once(child, "close");
    // A link is slower, and joins what shares no memory: it is another figure.
    if (said.includes("[PAMIR_LINK]")) throw new Missing(said.trim());
    if (code !== 0) throw new Error(`exit code ${code}: ${said.trim()}`);
  });
  let over = begin;
  const done = Promise.all(children.map(isDone)).then(() => {
    over = now();
  });
  // A process that fails says nothing, and its end says why.
  await within(limitOf(order), Promise.all(ends), endAll);
  await done;
  return { p50_ns: over - begin };
}

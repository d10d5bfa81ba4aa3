// How soon tasks in processes talk: from `pamir run -n 4 --processes 4` to a first message, beside four bare processes of Node.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { now } from "./measure.js";
import { limitOf, type Order, within } from "./peers.js";
import type { Figures } from "./work.js";

const PROCESSES = 4;

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

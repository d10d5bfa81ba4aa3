// `pamir run --hosts`: each task is a process of one of several hosts. A remote shell starts `pamir node` on each of them. The
// processes of a host share memory; hosts talk by a link.
import { readFileSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { type HostPlacement, type HostSlots, parseHostFile, parseHosts, placeTasks } from "../../../bootstrap/hosts.js";
import { makeKey } from "../../../bootstrap/key.js";
import { Guard } from "../../../start/process/guard.js";
import { after } from "../../../support/timers.js";
import { pathOf } from "../../commands.js";
import { say, UsageError } from "../../usage.js";
import type { Running } from "../job.js";
import {
  asUsageError,
  checkMaySpawn,
  count,
  HOST_TASKS_MAX,
  labelsOf,
  memoriesOf,
  OF_THREADS,
  oneOf,
  refuse,
  startTimeout,
  taskVariables,
  type Values,
} from "../options.js";
import { Restarts } from "../restarts.js";
import { type LaterTask, ServedJob } from "../served.js";
import type { RunTask } from "../task.js";
import { reportWaits } from "../waiting.js";
import type { StartOrder } from "./frames.js";
import { RemoteHost } from "./remote.js";

/** The host that needs no remote shell. */
const HERE = "localhost";

/** @throws UsageError */
function checkHosts(values: Values) {
  refuse(values, [...OF_THREADS, "nodes"], "--hosts");
  checkMaySpawn();
  const placements = place(values);
  const timeout = startTimeout(values);
  const onError = oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report";
  const shell = (values.rsh ?? "ssh").split(/\s+/).filter((word) => word !== "");
  if (shell.length === 0) throw new UsageError("--rsh is empty, not a command");
  if (values["remote-pamir"]?.trim() === "") throw new UsageError("--remote-pamir is empty, not a command");
  return { placements, timeout, onError, shell };
}

export async function runHosts(app: string, args: string[], values: Values): Promise<Running> {
  const { placements, timeout, onError, shell } = checkHosts(values);
  const size = placements.reduce((sum, { count: tasks }) => sum + tasks, 0);
  // The most that divides the tasks of every host: nodes have equally many tasks.
  const perNode = placements.reduce((most, { count: tasks }) => greatestDivisor(most, tasks), 0);
  const restarts = new Restarts(values, size);
  const env = await taskVariables(values, size / perNode, perNode);
  const common = {
    app: resolve(app),
    args,
    execArgv: process.execArgv,
    argv0: process.argv0,
    env,
    cwd: resolve(values.cwd ?? "."),
    memories: memoriesOf(size / perNode + restarts.spare, perNode, env.PAMIR_OPTIONS),
  };
  const key = makeKey();
  const guard = new Guard((why) => {
    say(`pamir run: if this process is killed, its remote shells go on, since sh can't be started: ${why}`);
  });
  const hostOf = (name: string, tasks: StartOrder["tasks"]): RemoteHost =>
    new RemoteHost(name, commandOf(name, shell, values), { ...common, tasks }, key, guard);
  /** Starts a task again, by a remote shell of its own: the earlier one may have gone. */
  const start = async ({ task, rank, env }: LaterTask): Promise<RunTask> => {
    const { host: name } = placements.findLast(({ firstTask }) => firstTask <= rank) as HostPlacement;
    const host = hostOf(name, [{ task, env }]);
    hosts.push(host);
    if ((await Promise.race([awaitHosts([host], shell, timeout, givenUp), givenUp])) === "ended") {
      throw new UsageError("the job ends");
    }
    return host.start()[0] as RunTask;
  };
  const job = new ServedJob({ size, timeout, restarts, onError, labels: labelsOf(values), start });
  const hosts: RemoteHost[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(hosts.map((host) => host.close()));
    guard.close();
  };
  try {
    for (const { host, firstTask, count: tasks } of placements) {
      const orders = Array.from({ length: tasks }, (_, place) => ({
        task: firstTask + place,
        env: job.variablesOf(firstTask + place, { place, count: tasks, perNode }),
      }));
      hosts.push(hostOf(host, orders));
    }
  } catch (error) {
    await close();
    throw error;
  }
  let giveUp: () => void = () => {};
  const givenUp = new Promise<"ended">((settle) => {
    giveUp = () => settle("ended");
  });
  const ended = (async () => {
    try {
      if ((await Promise.race([awaitHosts(hosts, shell, timeout, givenUp), givenUp])) === "ended") return 0;
      const tasks = hosts.flatMap((host) => host.start());
      (hosts[0] as RemoteHost).feed(process.stdin);
      return await Promise.race([job.run(tasks), ...hosts.map(({ refused }) => refused)]);
    } catch (error) {
      job.end();
      throw error;
    } finally {
      await close();
    }
  })();
  return {
    ended,
    end(signal) {
      giveUp();
      job.end(signal);
    },
    pass: (signal) => job.pass(signal),
    endNow() {
      job.endNow();
      for (const host of hosts) void host.close();
    },
  };
}

/** Which hosts get which tasks. @throws UsageError */
function place(values: Values): HostPlacement[] {
  const ppn = count("--ppn", values.ppn);
  try {
    const hosts = hostsOf(values);
    const room = hosts.reduce((sum, { slots }) => sum + (ppn ?? slots), 0);
    const placements = placeTasks(count("--tasks", values.tasks) ?? room, hosts, { ppn });
    const full = placements.find(({ count: tasks }) => tasks > HOST_TASKS_MAX);
    if (full === undefined) return placements;
    const limit = `a launcher starts at most ${HOST_TASKS_MAX} on a host`;
    throw new UsageError(`host ${full.host} gets ${full.count} tasks: ${limit}`);
  } catch (error) {
    throw asUsageError(error);
  }
}

function hostsOf({ hosts, hostfile }: Values): HostSlots[] {
  if (hostfile === undefined) return parseHosts(hosts as string);
  if (hosts !== undefined) throw new UsageError("--hosts does not go with --hostfile");
  let text: string;
  try {
    text = readFileSync(hostfile, "utf8");
  } catch (error) {
    throw new UsageError(`--hostfile ${hostfile}: ${(error as Error).message}`);
  }
  return parseHostFile(text, hostfile, (ignored) => say(`pamir run: ${ignored}`));
}

/** What starts the starter of a host. @throws UsageError the remote shell is not installed */
function commandOf(host: string, shell: readonly string[], values: Values): string[] {
  const own = [process.execPath, realpathSync(process.argv[1] as string)];
  if (host === HERE) return [...own, "node"];
  const [name = "", ...options] = shell;
  const command = name.includes("/") ? name : pathOf(name);
  if (command === undefined) throw new UsageError(`host ${host}: no absolute folder of PATH has ${name} (--rsh)`);
  return [command, ...options, host, `${values["remote-pamir"] ?? own.map(quoted).join(" ")} node`];
}

/** A word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Resolves once all hosts have accepted their orders. @throws UsageError at the first that does not, or is lost then */
async function awaitHosts(
  hosts: readonly RemoteHost[],
  shell: readonly string[],
  timeout: number,
  givenUp: Promise<unknown>,
): Promise<void> {
  const missing = (): string[] => hosts.filter(({ isReady }) => !isReady).map(({ name }) => name);
  const awaited = (): string => {
    const names = missing();
    return `${names.length === 1 ? "host" : "hosts"} ${names.join(", ")}`;
  };
  const stopReports = reportWaits(() => `this job waits for ${awaited()} to answer`);
  let stop = (): void => {};
  const late = new Promise<never>((_, reject) => {
    stop = after(timeout, () => {
      const command = missing().every((name) => name === HERE) ? process.execPath : shell.join(" ");
      const tried = `tried by ${command}, for ${timeout / 1000} s (--start-timeout)`;
      reject(new UsageError(`no answer from ${awaited()}: ${tried}`));
    });
  });
  try {
    const all = Promise.all(hosts.map(({ ready }) => ready));
    await Promise.race([all, ...hosts.map(({ refused }) => refused), late, givenUp]);
  } finally {
    stop();
    stopReports();
  }
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

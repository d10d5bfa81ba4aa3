// `pamir run --nats`: started on each machine, in any order. The launchers meet at a NATS server, and number their nodes; then
// each starts the processes of its node, which find each other there. A launcher tells the others of the ends that it sees.
import { availableParallelism, hostname } from "node:os";
import { PROCESS_COUNT_MAX } from "../../bootstrap/environment.js";
import { takeKey } from "../../bootstrap/key.js";
import { LATER } from "../../bootstrap/later.js";
import { type Met, meetAtNats } from "../../bootstrap/nats/meeting.js";
import { checkNatsKey, NATS_EPOCH } from "../../bootstrap/nats/nats-way.js";
import { SealedMessages } from "../../bootstrap/nats/sealed-messages.js";
import { checkRights, connectNats, type NatsConnection } from "../../nats/connection.js";
import { checkJob, type NatsPlace, natsPlace } from "../../nats/place.js";
import { natsVariables } from "../../nats/variables.js";
import { Guard } from "../../start/process/guard.js";
import { say, UsageError } from "../usage.js";
import { ProcessJob, type Running } from "./job.js";
import {
  asUsageError,
  changeFolder,
  checkAddresses,
  checkMaySpawn,
  count,
  HOST_TASKS_MAX,
  labelsOf,
  memoriesOf,
  OF_THREADS,
  oneOf,
  programOf,
  refuse,
  startTimeout,
  taskVariables,
  type Values,
} from "./options.js";
import { NEWS_FD, type Program, startProcesses } from "./processes.js";
import type { TaskEnd } from "./task.js";

/** What launchers tell each other. */
interface LauncherNews {
  /** The process of a task has ended. */
  readonly gone?: number;
  /** A node has lost its agent. */
  readonly lost?: number;
  /** The job ends, since a task has failed. */
  readonly abort?: true;
}

/** What was asked for, checked. */
interface Plan {
  readonly place: NatsPlace;
  readonly key: Uint8Array | undefined;
  readonly nodes: number;
  /** Tasks of a node. */
  readonly local: number;
  readonly timeout: number;
  readonly onError: "report" | "abort";
  readonly values: Values;
  readonly program: Program;
}

export async function runNats(app: string, args: string[], values: Values): Promise<Running> {
  const plan = await planOf(app, args, values);
  let giveUp: () => void = () => {};
  const givenUp = new Promise<"ended">((settle) => {
    giveUp = () => settle("ended");
  });
  const node = new NatsNode(plan);
  const ended = (async () => {
    try {
      if ((await Promise.race([node.meet(givenUp), givenUp])) === "ended") return 0;
      return await node.run();
    } catch (error) {
      throw asUsageError(error);
    } finally {
      await node.close();
    }
  })();
  return {
    ended,
    end(signal) {
      giveUp();
      node.job.end(undefined, signal);
    },
    pass: (signal) => node.job.pass(signal),
    endNow: () => node.job.endNow(),
  };
}

/** @throws UsageError */
async function planOf(app: string, args: string[], values: Values): Promise<Plan> {
  refuse(values, [...OF_THREADS, "restart", "spare"], "--nats");
  checkMaySpawn();
  const nodes = count("--nodes", values.nodes);
  if (nodes === undefined) throw new UsageError("--nats takes --nodes: the number of machines that start pamir run");
  const size = count("--tasks", values.tasks) ?? availableParallelism() * nodes;
  if (size % nodes !== 0) throw new UsageError(`--tasks is ${size}, not a multiple of --nodes, which is ${nodes}`);
  if (size > PROCESS_COUNT_MAX) throw new UsageError(`--tasks is ${size}: a job has at most ${PROCESS_COUNT_MAX}`);
  const local = size / nodes;
  if (local > HOST_TASKS_MAX)
    throw new UsageError(`--tasks is ${size}, ${local} for a node: a launcher starts at most ${HOST_TASKS_MAX}`);
  const { PAMIR_JOB: named } = process.env;
  const job = values.job ?? named;
  if (job === undefined) throw new UsageError("--nats takes --job: the name under which the machines meet");
  const timeout = startTimeout(values);
  const onError = oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report";
  try {
    checkJob(job);
    const place = natsPlace({ ...natsVariables(), nats: values.nats, job });
    const env = {
      ...process.env,
      ...(await taskVariables({ ...values, link: values.link ?? "nats" }, nodes, local, process.env)),
    };
    // The key goes to the tasks by a descriptor.
    const key = await takeKey(process.env);
    checkNatsKey(place, key, process.env.PAMIR_INSECURE === "1");
    const hasLabels = values["no-labels"] !== true;
    const { execArgv, argv0 } = process;
    const program = { app: programOf(app), args, execArgv, argv0, env, key, hasLabels };
    return { place, key, nodes, local, timeout, onError, values, program };
  } catch (error) {
    throw asUsageError(error);
  }
}

/** The node of this launcher. */
class NatsNode {
  readonly job: ProcessJob;
  readonly #plan: Plan;
  #connection: NatsConnection | undefined;
  #meeting: Promise<unknown> | undefined;
  #settled: Promise<void> = Promise.resolve();
  #met: Met | undefined;
  #tell: (news: LauncherNews) => void = () => {};
  #order: (news: LauncherNews) => void = () => {};

  constructor(plan: Plan) {
    this.#plan = plan;
    const { onError, values } = plan;
    this.job = new ProcessJob({ onError, labels: labelsOf(values), onEnd: (task, end) => this.#onEnd(task, end) });
  }

  /** Meets the launchers of the other nodes. */
  async meet(givenUp: Promise<unknown>): Promise<void> {
    const { place, key, nodes, local, timeout } = this.#plan;
    const { job } = place;
    const connection = await connectNats(place, { name: `pamir run ${job}`, timeout });
    this.#connection = connection;
    const meeting = meetAtNats(connection, {
      job,
      key,
      nodes,
      tasks: local,
      host: hostname(),
      timeout,
      givenUp,
      onWait: ({ waited, most, what }) =>
        say(`pamir run: for ${Math.round(waited / 1000)} of ${Math.round(most / 1000)} s, waits for ${what}`),
      onNotice: (text) => say(`pamir run: ${text}`),
    });
    this.#meeting = meeting;
    const { settled, ...met } = await meeting;
    this.#settled = settled;
    this.#met = met;
    const messages = new SealedMessages(key, `${job} ${met.epoch}`);
    const subject = `pamir.${job}.l.${met.epoch}`;
    connection.subscribe(subject, {
      callback: (error, { data }) => {
        const news = error === null ? (messages.open(data) as LauncherNews | undefined) : undefined;
        if (typeof news === "object" && news !== null) this.#hear(news);
      },
    });
    await checkRights(connection, job, subject);
    this.#tell = (news) => connection.publish(subject, messages.seal(news));
  }

  /** Starts this node's tasks. @returns the exit code once they have ended */
  async run(): Promise<number> {
    const { program, values, local, nodes } = this.#plan;
    const { node } = this.#met as Met;
    if (values.cwd !== undefined) changeFolder(values.cwd);
    checkAddresses(memoriesOf(nodes, local, program.env.PAMIR_OPTIONS));
    const guard = new Guard((why) => {
      say(`pamir run: if this process is killed, its tasks go on, since sh can't be started: ${why}`);
    });
    try {
      const orders = Array.from({ length: local }, (_, place) => ({
        task: node * local + place,
        input: node + place === 0 ? ("inherit" as const) : ("ignore" as const),
        env: this.#variables(place),
      }));
      const tasks = startProcesses(program, orders, guard);
      this.#order = (news) => {
        for (const task of tasks) task.tell(`${JSON.stringify(news)}\n`);
      };
      return await this.job.run(tasks);
    } finally {
      guard.close();
    }
  }

  #variables(place: number): Record<string, string> {
    const { place: nats, nodes, local, values, timeout } = this.#plan;
    const { node, epoch } = this.#met as Met;
    const size = nodes * local;
    return {
      PAMIR_NATS: values.nats as string,
      PAMIR_JOB: nats.job,
      PAMIR_NODES: `${nodes}`,
      [NATS_EPOCH]: epoch,
      PAMIR_RANK: `${node * local + place}`,
      PAMIR_SIZE: `${size}`,
      PAMIR_LOCAL_RANK: `${place}`,
      PAMIR_LOCAL_SIZE: `${local}`,
      // Two launchers of one machine are two nodes.
      PAMIR_NODE: `${node}`,
      PAMIR_START_TIMEOUT: `${Math.ceil(timeout / 1000)}`,
      [LATER]: JSON.stringify({ world: size, most: size, news: NEWS_FD }),
    };
  }

  /** A task of this node has ended. */
  #onEnd(task: number, { code }: TaskEnd): void {
    if (code === 0 || this.job.isEnding) return;
    const { local, onError } = this.#plan;
    const { node } = this.#met as Met;
    const tell = (news: LauncherNews): void => {
      this.#order(news);
      this.#tell(news);
    };
    tell({ gone: task });
    // The process of a node's first task has its agent.
    if (task === node * local) tell({ lost: node });
    if (onError === "abort") this.#tell({ abort: true });
  }

  #hear({ gone, lost, abort }: LauncherNews): void {
    if (abort && !this.job.isEnding) {
      say("pamir run: a task of another node has failed: the job ends");
      this.job.end(1);
    }
    if (gone !== undefined) this.#order({ gone });
    if (lost !== undefined && lost !== this.#met?.node) this.#order({ lost });
  }

  async close(): Promise<void> {
    await this.#meeting?.catch(() => {});
    await this.#settled;
    await this.#connection?.close();
  }
}

// A launcher of `pamir run --nats`: meets the others or comes later, starts its tasks, tells the others of their ends, and starts
// those that fail again.
import { hostname } from "node:os";
import { text } from "node:stream/consumers";
import { NODES_LATER } from "../../../bootstrap/environment.js";
import { type EndOrder, LATER, type Later, type StartReport } from "../../../bootstrap/later.js";
import { type Came, Comer, type ComerOptions } from "../../../bootstrap/nats/come-later.js";
import { BegunError, meetAtNats } from "../../../bootstrap/nats/meeting.js";
import { NatsTalk } from "../../../bootstrap/nats/nats-talk.js";
import { failInPlace, NATS_EPOCH, NATS_ID } from "../../../bootstrap/nats/nats-way.js";
import type { Fact } from "../../../bootstrap/nats/register.js";
import { SealedMessages } from "../../../bootstrap/nats/sealed-messages.js";
import type { OnWait } from "../../../bootstrap/waits.js";
import { connectNats, deniedSubject, type NatsConnection } from "../../../nats/connection.js";
import { randomId } from "../../../nats/ids.js";
import { Guard } from "../../../start/process/guard.js";
import { say } from "../../usage.js";
import { endText, ProcessJob } from "../job.js";
import { changeFolder, checkAddresses, labelsOf, memoriesOf } from "../options.js";
import { NEWS_FD, PMI_FD, startProcesses, type TaskProcess } from "../processes.js";
import type { TaskEnd } from "../task.js";
import type { NatsPlan } from "./nats-plan.js";

/** What this launcher knows of the job before its tasks have met the others. */
interface Begun {
  readonly epoch: string;
  /** Tasks with which the job began, and that it may have. */
  readonly world: number;
  readonly most: number;
  /** By number: the ID of a later task, and its rank, if that is another one. */
  readonly later: ReadonlyMap<number, { readonly id: string; readonly rank?: number }>;
  /** Number of the first task of this launcher. */
  readonly first: number;
}

/** Of a launcher that asks for a number: see ComerOptions. */
type Asking = Pick<ComerOptions, "seat" | "rank" | "count">;

export class NatsNode {
  readonly job: ProcessJob;
  readonly #plan: NatsPlan;
  readonly #running = new Map<number, TaskProcess>();
  #guard: Guard | undefined;
  #connection: NatsConnection | undefined;
  #meeting: Promise<unknown> | undefined;
  #settled: Promise<void> = Promise.resolve();
  #begun: Begun | undefined;
  #talk: NatsTalk | undefined;
  #givenUp: Promise<unknown> = new Promise(() => {});
  /** Once the tasks of this launcher have met the others. */
  #report: StartReport | undefined;
  /** Whether this launcher's tasks have been started, and whether another launcher has ended the job. */
  #hasStarted = false;
  #isAborted = false;
  /** Once a task has ended before it met the others: resolves when they have heard of it. */
  #failing: Promise<void> | undefined;

  constructor(plan: NatsPlan) {
    this.#plan = plan;
    const { onError, values } = plan;
    this.job = new ProcessJob({
      onError,
      labels: labelsOf(values),
      onEnd: (task, end) => this.#onEnd(task, end),
      replace: (task) => this.#replace(task),
    });
  }

  /** Meets the launchers of the other nodes, or comes later. */
  async meet(givenUp: Promise<unknown>): Promise<void> {
    const { place, key, nodes, local, timeout, isLater, values } = this.#plan;
    const { job } = place;
    this.#givenUp = givenUp;
    this.#connection = await connectNats(place, { name: `pamir run ${job}`, timeout });
    // The others would await a node that can't start its tasks.
    if (values.cwd !== undefined) changeFolder(values.cwd);
    try {
      this.#begun = nodes === undefined ? await this.#come() : await this.#begin(this.#connection, nodes);
    } catch (error) {
      if (!isLater || !(error instanceof BegunError)) throw error;
      say(`pamir run: job ${job} has begun: the tasks of this launcher come later`);
      this.#begun = await this.#come();
    }
    const { epoch, first, world, most, later } = this.#begun;
    const seats = later.size > 0 ? [] : Array.from({ length: world / local }, (_, i) => i * local);
    this.#talk = new NatsTalk(this.#connection, {
      job,
      key,
      epoch,
      seat: first,
      seats,
      local,
      isElastic: most > world,
      onFacts: (facts) => this.#hear(facts),
      onWarning: (text) => say(`pamir run: ${text}`),
      onAbort: () => {
        this.#isAborted = true;
        if (this.job.isEnding) return;
        say("pamir run: a task of another node has failed: the job ends");
        this.job.end(1);
      },
    });
    await this.#talk.open();
  }

  async #begin(connection: NatsConnection, nodes: number): Promise<Begun> {
    const { place, key, local, timeout, restarts } = this.#plan;
    const { spare } = restarts;
    const { job } = place;
    const meeting = meetAtNats(connection, {
      job,
      key,
      nodes,
      tasks: local,
      spare,
      host: hostname(),
      timeout,
      givenUp: this.#givenUp,
      onWait: this.#onWait,
      onNotice: (text) => say(`pamir run: ${text}`),
    });
    this.#meeting = meeting;
    const { settled, node, epoch } = await meeting;
    this.#settled = settled;
    const world = nodes * local;
    return { epoch, world, most: world + spare, later: new Map(), first: node * local };
  }

  /** Asks for as many numbers as this launcher has tasks. */
  async #come(): Promise<Begun> {
    const later = new Map<number, { id: string }>();
    let first: Came | undefined;
    const { local } = this.#plan;
    while (later.size < local) {
      const id = randomId();
      const asking = this.#number(id, { seat: first?.task, count: local - later.size });
      const came = await asking.catch(async (error: unknown) => {
        // No task has these numbers: others would await it.
        await Promise.all([...later.values()].map((one) => this.#leave(one.id)));
        throw error;
      });
      first ??= came;
      later.set(came.task, { id });
    }
    const { task, facts } = first as Came;
    const { epoch, world, most } = facts;
    return { epoch, world, most, later, first: task };
  }

  /** Asks the steward for a number. */
  async #number(id: string, who: Asking): Promise<Came> {
    const comer = this.#comer(id, who);
    try {
      return await comer.come();
    } catch (error) {
      // The answer may be on its way.
      await comer.leave();
      throw error;
    } finally {
      comer.close();
    }
  }

  /** Gives a number back, which no later task gets. */
  async #leave(id: string): Promise<void> {
    const comer = this.#comer(id, {});
    await comer.leave();
    comer.close();
  }

  #comer(id: string, who: Asking): Comer {
    const { place, key, timeout } = this.#plan;
    const { job } = place;
    const connection = this.#connection as NatsConnection;
    return new Comer(connection, new SealedMessages(key, job), {
      ...who,
      job,
      id,
      host: hostname(),
      timeout,
      givenUp: this.#givenUp,
      denied: deniedSubject(connection, job),
      onWait: this.#onWait,
    });
  }

  readonly #onWait: OnWait = ({ waited, most, what }) =>
    say(`pamir run: for ${Math.round(waited / 1000)} of ${Math.round(most / 1000)} s, waits for ${what}`);

  /** Starts this launcher's tasks. @returns the exit code once they have ended */
  async run(): Promise<number> {
    const { program, local } = this.#plan;
    const { first, world, most, later } = this.#begun as Begun;
    const nodes = later.size > 0 ? 2 : world / local + most - world;
    checkAddresses(memoriesOf(nodes, later.size > 0 ? 1 : local, program.env.PAMIR_OPTIONS));
    const guard = new Guard((why) => {
      say(`pamir run: if this process is killed, its tasks go on, since sh can't be started: ${why}`);
    });
    this.#guard = guard;
    const numbers = later.size > 0 ? [...later.keys()] : Array.from({ length: local }, (_, place) => first + place);
    try {
      const orders = numbers.map((task, place) => {
        const one = later.get(task);
        return {
          task,
          input: task === 0 ? ("inherit" as const) : ("ignore" as const),
          env: one === undefined ? this.#variables(task, place) : this.#laterVariables(one),
        };
      });
      const tasks = startProcesses(program, orders, guard);
      this.#hasStarted = true;
      for (const task of tasks) this.#watch(task);
      return await this.job.run(tasks);
    } finally {
      guard.close();
    }
  }

  /** Variables of a task with which the job begins. */
  #variables(task: number, place: number): Record<string, string> {
    const { nodes, local } = this.#plan;
    const { epoch, world } = this.#begun as Begun;
    return {
      ...this.#commonVariables({}),
      PAMIR_NODES: `${nodes}`,
      [NATS_EPOCH]: epoch,
      PAMIR_RANK: `${task}`,
      PAMIR_SIZE: `${world}`,
      PAMIR_LOCAL_RANK: `${place}`,
      PAMIR_LOCAL_SIZE: `${local}`,
      // Two launchers of one machine are two nodes.
      PAMIR_NODE: `${Math.floor(task / local)}`,
    };
  }

  /** Variables of a task that comes later. */
  #laterVariables({ id, rank }: { readonly id: string; readonly rank?: number }): Record<string, string> {
    return { ...this.#commonVariables({ rank }), PAMIR_NODES: NODES_LATER, [NATS_ID]: id };
  }

  #commonVariables(more: Pick<Later, "rank">): Record<string, string> {
    const { place, values, timeout } = this.#plan;
    const { world, most } = this.#begun as Begun;
    const later: Later = { world, most, news: NEWS_FD, report: PMI_FD, ...more };
    return {
      PAMIR_NATS: values.nats as string,
      PAMIR_JOB: place.job,
      PAMIR_START_TIMEOUT: `${Math.ceil(timeout / 1000)}`,
      [LATER]: JSON.stringify(later),
    };
  }

  /** A process of this launcher: takes its report. */
  #watch(task: TaskProcess): void {
    this.#running.set(task.task, task);
    text(task.pmi).then(
      (given) => {
        if (given !== "") this.#know(JSON.parse(given) as StartReport);
      },
      () => {},
    );
  }

  #know(report: StartReport): void {
    if (this.#report !== undefined) return;
    this.#report = report;
    const { epoch, world, most } = this.#begun as Begun;
    const { addresses, ...facts } = report;
    this.#talk?.steward.know({ ...facts, epoch, world, most }, addresses);
  }

  /** Tasks of a node with which the job began. */
  get #perNode(): number {
    return this.#report?.perNode ?? this.#plan.local;
  }

  #nodeOf(task: number): number {
    const { world } = this.#begun as Begun;
    return task < world ? Math.floor(task / this.#perNode) : world / this.#perNode + task - world;
  }

  #order(order: EndOrder): void {
    for (const task of this.#running.values()) task.tell(`${JSON.stringify(order)}\n`);
  }

  /** A task of this launcher has ended. */
  #onEnd(task: number, end: TaskEnd): void {
    this.#running.delete(task);
    const { world } = this.#begun as Begun;
    const isFailure = Number(end.code !== 0);
    const isLater = task >= world;
    const facts: Fact[] = [["gone", task, isFailure]];
    // The process of a node's first task has its agent.
    const hasAgent = isLater || task % this.#perNode === 0;
    if (hasAgent) facts.push(["ended", this.#nodeOf(task), isFailure]);
    this.#talk?.steward.add(facts);
    if (isFailure === 0) return;
    this.#order({ gone: task });
    if (hasAgent) this.#order({ lost: this.#nodeOf(task) });
    if (this.#report === undefined && !isLater) this.#failInPlace(task, `its process ${endText(end)}`);
    if (this.job.isEnding) return;
    if (this.#plan.onError === "abort") this.#talk?.abort();
    if (!hasAgent || isLater || !this.#plan.restarts.isOn || this.#report === undefined) return;
    // The node's other tasks are cut off: they are started again, too.
    for (let other = task + 1; other < task + this.#perNode; other++) this.#running.get(other)?.kill("SIGKILL");
  }

  /** A task has not met the others, which would wait for it. They hear of the first one. */
  #failInPlace(task: number, why: string): void {
    const hasOthers = (this.#begun as Begun).world > this.#plan.local;
    if (hasOthers && !this.#isAborted) this.#failing ??= this.#tellWhy(task, why);
  }

  async #tellWhy(task: number, why: string): Promise<void> {
    const { place, key } = this.#plan;
    const { epoch, world } = this.#begun as Begun;
    const connection = await connectNats(place, { name: `pamir run ${place.job}` }).catch(() => undefined);
    if (connection === undefined) return;
    await failInPlace(connection, place, epoch, { rank: task, size: world, key }, why);
  }

  /** Other launchers have told of something. */
  #hear(facts: readonly Fact[]): void {
    for (const [kind, number, isFailure] of facts) {
      if (isFailure !== 1) continue;
      if (kind === "gone") this.#order({ gone: number });
      if (kind === "ended" && ![...this.#running.keys()].some((task) => this.#nodeOf(task) === number))
        this.#order({ lost: number });
    }
  }

  /** Starts a task in the place of one that has failed. */
  #replace(failed: number): Promise<TaskProcess> | undefined {
    const { restarts, program } = this.#plan;
    if (!restarts.isOn) return undefined;
    if (this.#report === undefined) {
      say(`pamir run: task ${failed} is not started again: not all tasks have attached before`);
      return undefined;
    }
    const rank = restarts.rankFor(failed);
    if (rank === undefined) return undefined;
    const start = async (): Promise<TaskProcess> => {
      const id = randomId();
      const { task } = await this.#number(id, { rank, seat: this.#begun?.first });
      restarts.began(rank, task);
      const input = rank === 0 ? ("inherit" as const) : ("ignore" as const);
      const order = { task, input, env: this.#laterVariables({ id, rank }) };
      const [process] = startProcesses(program, [order], this.#guard as Guard);
      this.#watch(process as TaskProcess);
      return process as TaskProcess;
    };
    return start();
  }

  async close(): Promise<void> {
    await this.#meeting?.catch(() => {});
    const { first, later } = this.#begun ?? {};
    if (first !== undefined && later?.size === 0 && !this.#hasStarted)
      this.#failInPlace(first, "its launcher has ended without starting it");
    await this.#failing;
    await this.#talk?.leave();
    await this.#settled;
    await this.#connection?.close();
  }
}

// The switchboard of tasks that share no memory, on the thread that launched the job. The switchboard brings tasks the ports of
// channels, and news.
import type { ErrorParts } from "../../core/task-errors.js";
import { type DumpData, type NodeDump, withText } from "../../observe/dump.js";
import { type Recorded, type Trace, traceFrom } from "../../observe/trace.js";
import { promise } from "../../support/promise.js";
import { after } from "../../support/timers.js";
import type { Sent } from "../../transport/net/port-pipe.js";
import type { TaskNews, TaskReport } from "../start-message.js";
import type { Nodes } from "./monitor.js";

/** Takes news for a task, with a port if the news has one. */
export type Hear = (news: TaskNews, ports: MessagePort[]) => void;

/** The reports of a task to the switchboard. */
type Report = Extract<TaskReport, { connect: number } | { answer: number }>;

/** Sends a report to the thread that launched the job, with a port if the report has one. */
export type TellLauncher = (report: Report, ports?: MessagePort[]) => void;

/** A question to all nodes. */
interface Question {
  /** Tasks that have not answered. */
  readonly missing: Set<number>;
  readonly answers: Map<number, DumpData | readonly Recorded[]>;
  /** Ends the wait for answers. */
  readonly over: () => void;
}

/** Milliseconds in which the last frames of a task that has left are read. */
const READ_MS = 1000;

/** The task on the thread that launched the job, if the caller has joined. */
const CALLER = 0;

export class Switchboard implements Nodes {
  /** Tasks that run. */
  readonly #tasks = new Map<number, Hear>();
  /** By task that does not listen yet, or has not come: news that wait for the task. */
  readonly #waiting = new Map<number, Parameters<Hear>[]>();
  /** By task that has ended: the news of its end, for all other tasks, including later ones. */
  readonly #ends = new Map<number, TaskNews>();
  readonly #left = new Set<number>();
  /**
   * Ports of channels that replace the channels of a writer that has ended. The switchboard keeps its ends of these channels.
   */
  readonly #relays: MessagePort[] = [];
  readonly #questions = new Map<number, Question>();
  #asked = 0;
  #started: number;

  /** @param started launched tasks: each of these tasks knows of the other ones */
  constructor(started: number) {
    this.#started = started;
  }

  /** The caller's own node. */
  join(hear: Hear): void {
    this.#tasks.set(CALLER, hear);
  }

  /** A task begins. Its news wait until it listens. */
  add(task: number, hear: Hear): void {
    const ends = [...this.#ends.values()].map((news): Parameters<Hear> => [news, []]);
    // Channels come before ends: the last frames of a task that has left come through its channel.
    this.#waiting.set(task, [...(this.#waiting.get(task) ?? []), ...ends]);
    this.#tasks.set(task, hear);
    if (task < this.#started) return;
    this.#started = task + 1;
    for (const other of this.#tasks.keys()) this.#deliver(other, { started: this.#started });
  }

  /** A task listens from now on. */
  listens(task: number): void {
    const waiting = this.#waiting.get(task) ?? [];
    this.#waiting.delete(task);
    for (const [news, ports] of waiting) this.#deliver(task, news, ports);
  }

  #deliver(task: number, news: TaskNews, ports: MessagePort[] = []): void {
    const waiting = this.#waiting.get(task);
    if (waiting !== undefined) waiting.push([news, ports]);
    else if (this.#tasks.has(task)) this.#tasks.get(task)?.(news, ports);
    else if (this.#ends.has(task)) for (const port of ports) port.close();
    else this.#waiting.set(task, [[news, ports]]);
  }

  /** Takes a report of a task: a port for another task, which may not have begun, or an answer. */
  hear(from: number, report: Report, ports: readonly MessagePort[] = []): void {
    if ("connect" in report) this.#deliver(report.connect, { from }, [...ports]);
    else {
      const question = this.#questions.get(report.answer);
      question?.answers.set(from, report.given);
      if (question !== undefined) this.#settle(from, question);
    }
  }

  /** A task's answer has come, or will not come. */
  #settle(task: number, { missing, over }: Question): void {
    if (missing.delete(task) && missing.size === 0) over();
  }

  /** Asks all running tasks. Resolves with the answers once none is missing, or after `timeout` milliseconds. */
  async #ask(what: "dump" | "trace", timeout: number, events?: number): Promise<Question["answers"]> {
    const ask = this.#asked++;
    const [isOver, over] = promise<void>();
    const question: Question = { missing: new Set(this.#tasks.keys()), answers: new Map(), over };
    this.#questions.set(ask, question);
    if (question.missing.size === 0) over();
    const stop = after(timeout, over);
    for (const task of [...question.missing]) this.#deliver(task, { ask, what, events });
    await isOver;
    stop();
    this.#questions.delete(ask);
    return question.answers;
  }

  async dumpAll(timeout: number): Promise<NodeDump[]> {
    const tasks = this.#started;
    const answers = (await this.#ask("dump", timeout)) as Map<number, DumpData>;
    return Array.from({ length: tasks }, (_, task): NodeDump => {
      const data = answers.get(task);
      const state = data !== undefined ? "answered" : this.#ends.has(task) ? "ended" : "silent";
      return { tasks: [task], state, dump: data && withText(data) };
    });
  }

  async traceAll(timeout: number, events: number | undefined): Promise<Trace> {
    const tasks = this.#started;
    const answers = (await this.#ask("trace", timeout, events)) as Map<number, readonly Recorded[]>;
    return traceFrom(Array.from({ length: tasks }, (_, task) => answers.get(task)));
  }

  interrupt(task: number): void {
    this.#deliver(task, { interrupt: true });
  }

  /**
   * A task has closed its client. First, the switchboard reads the task's frames to tasks that do not listen yet. Once the
   * worker of a writer ends, Firefox drops the messages of a channel that waits for its reader.
   * @param then called once the worker may end
   */
  left(task: number, then: () => void): void {
    this.#left.add(task);
    const waiting = [...this.#waiting.values()].flat();
    const theirs = waiting.filter(([news, ports]) => "from" in news && news.from === task && ports.length > 0);
    if (theirs.length === 0) {
      then();
      return;
    }
    let missing = theirs.length;
    const stop = after(READ_MS, then);
    for (const delivery of theirs) {
      const [port] = delivery[1] as [MessagePort];
      const { port1, port2 } = new MessageChannel();
      delivery[1] = [port2];
      this.#relays.push(port1);
      let ends = 0;
      port.onmessage = ({ data }: MessageEvent<Sent>) => {
        port1.postMessage(data);
        const { frame } = data;
        if (!("end" in frame) || frame.end !== "task" || ++ends < frame.streams || --missing > 0) return;
        stop();
        then();
      };
    }
  }

  /** Whether a task has closed its client. */
  hasLeft(task: number): boolean {
    return this.#left.has(task);
  }

  /** A task has ended. */
  ended(task: number, error?: ErrorParts | undefined): void {
    for (const [, ports] of this.#waiting.get(task) ?? []) for (const port of ports) port.close();
    this.#waiting.delete(task);
    this.#tasks.delete(task);
    for (const question of this.#questions.values()) this.#settle(task, question);
    this.#announce({ ended: task, hasLeft: this.#left.has(task), error });
  }

  /** The caller has closed its client. The caller's node still gets news, and closes the channels to tasks that end. */
  callerLeft(): void {
    this.#announce({ ended: CALLER, hasLeft: true });
  }

  #announce(news: Extract<TaskNews, { ended: number }>): void {
    this.#ends.set(news.ended, news);
    for (const task of this.#tasks.keys()) if (task !== news.ended) this.#deliver(task, news);
  }
}

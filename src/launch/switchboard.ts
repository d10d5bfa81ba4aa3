// What the thread that launched a job does for tasks that share no memory: brings them the ports of channels, and news.
import type { ErrorParts } from "../core/task-errors.js";
import type { TaskNews } from "./bootstrap.js";

/** Takes news for a task, and the port that goes with some. */
export type Hear = (news: TaskNews, ports: MessagePort[]) => void;

/** The task on the thread that launched the job, if that joined. */
const CALLER = 0;

export class Switchboard {
  /** Tasks that run. */
  readonly #tasks = new Map<number, Hear>();
  /** By task that does not listen yet, or has not come: what it will hear. */
  readonly #waiting = new Map<number, Parameters<Hear>[]>();
  /** By task that has ended: what others hear of that, also those that come later. */
  readonly #ends = new Map<number, TaskNews>();
  readonly #left = new Set<number>();
  #started: number;

  /** @param started tasks that are launched: each of them knows of the others */
  constructor(started: number) {
    this.#started = started;
  }

  /** The caller's own node. */
  join(hear: Hear): void {
    this.#tasks.set(CALLER, hear);
  }

  /** A task begins. What it is to hear waits until it listens. */
  add(task: number, hear: Hear): void {
    const ends = [...this.#ends.values()].map((news): Parameters<Hear> => [news, []]);
    // Channels come first: what a task that has left said before comes by its own.
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

  /** Brings a port of one task to another, which may still have to come. */
  connect(from: number, to: number, port: MessagePort): void {
    this.#deliver(to, { from }, [port]);
  }

  interrupt(task: number): void {
    this.#deliver(task, { interrupt: true });
  }

  /** A task has closed its client. */
  left(task: number): void {
    this.#left.add(task);
  }

  /** A task has ended. */
  ended(task: number, error?: ErrorParts | undefined): void {
    for (const [, ports] of this.#waiting.get(task) ?? []) for (const port of ports) port.close();
    this.#waiting.delete(task);
    this.#tasks.delete(task);
    this.#announce({ ended: task, hasLeft: this.#left.has(task), error });
  }

  /** The caller has closed its client. Its node still hears of others: it closes the channels to them. */
  callerLeft(): void {
    this.#announce({ ended: CALLER, hasLeft: true });
  }

  #announce(news: Extract<TaskNews, { ended: number }>): void {
    this.#ends.set(news.ended, news);
    for (const task of this.#tasks.keys()) if (task !== news.ended) this.#deliver(task, news);
  }
}

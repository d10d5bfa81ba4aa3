// A host on which `pamir run` has tasks: the remote shell that reaches its starter, and the tasks as this launcher sees them.
import { type ChildProcess, spawn } from "node:child_process";
import { Duplex, type Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { VERSION } from "pamir";
import { takeRest } from "../../../start/output/labels.js";
import type { Guard } from "../../../start/process/guard.js";
import { descriptorsText, startText } from "../../../start/process/start-limits.js";
import { after } from "../../../support/timers.js";
import { say, UsageError } from "../../usage.js";
import type { EndSignal, RunTask, TaskEnd, UserSignal } from "../task.js";
import { FRAME, Frames, type StartOrder } from "./frames.js";
import { RemoteOutput } from "./held.js";

/** Most characters of a remote shell's complaints that an error shows. */
const COMPLAINT_MAX = 1000;
/** Most bytes of standard input that are on their way to task 0: those behind them wait here. */
const INPUT_WINDOW = 256 * 1024;

/** Milliseconds in which a remote shell may end. */
const GRACE_MS = 5000;

/** How far a host has come. */
type State = "awaited" | "greeted" | "ready" | "running" | "over";

export class RemoteHost {
  readonly name: string;
  /** Resolves once the host has accepted its order. @throws UsageError */
  readonly ready: Promise<void>;
  /** Rejects if the host is lost before it has started its tasks, or can't start them after all. @throws UsageError */
  readonly refused: Promise<never>;
  /** Resolves once the remote shell has ended. */
  readonly closed: Promise<void>;
  readonly #order: StartOrder;
  readonly #key: Uint8Array;
  readonly #shell: ChildProcess;
  readonly #frames: Frames;
  readonly #command: string;
  #state: State = "awaited";
  #complaint = "";
  /** Why the host never starts its tasks. */
  #error: UsageError | undefined;
  #tasks: RemoteTask[] = [];
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};
  #refuse: (error: Error) => void = () => {};

  /** @param command the remote shell and its arguments, or the starter itself on this machine */
  constructor(name: string, command: readonly string[], order: StartOrder, key: Uint8Array, guard: Guard) {
    this.name = name;
    this.#order = order;
    this.#key = key;
    this.#command = command[0] as string;
    this.ready = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.refused = new Promise((_, reject) => {
      this.#refuse = reject;
    });
    // A caller may wait for another host first.
    for (const promise of [this.ready, this.refused]) promise.catch(() => {});
    // A session of its own: signals of the terminal reach the tasks by this launcher alone.
    const shell = spawn(this.#command, command.slice(1), { detached: true, stdio: ["pipe", "pipe", "pipe"] });
    if (shell.stdio === undefined) {
      shell.on("error", () => {});
      throw new UsageError(`${name}: ${this.#command} can't be started: ${descriptorsText()}`);
    }
    this.#shell = shell;
    const { pid } = shell;
    if (pid !== undefined) guard.add(pid);
    this.#frames = new Frames(
      shell.stdout as Readable,
      shell.stdin as NonNullable<typeof shell.stdin>,
      {
        onGreeting: (version, isRight) => this.#greet(version, isRight),
        onFrame: (kind, task, content) => this.#take(kind, task, content),
        onEnd: (why) => {
          if (why !== undefined) this.#fail(why);
        },
      },
      true,
    );
    shell.stderr?.setEncoding("utf8").on("data", (text: string) => this.#hear(text));
    this.closed = new Promise((resolve) => {
      const close = (why: string): void => {
        if (pid !== undefined) guard.remove(pid);
        this.#fail(why);
        this.#frames.close();
        resolve();
      };
      shell.on("error", (error) => {
        if (pid === undefined) close(`${this.#command} can't be started: ${startText(error)}`);
      });
      shell.on("close", (code, signal) => {
        close(`${this.#command} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}`);
      });
    });
  }

  get isReady(): boolean {
    return this.#state === "ready" || this.#state === "running";
  }

  /** Starts the tasks of the order. @throws UsageError if the host has been lost since it was ready */
  start(): RemoteTask[] {
    if (this.#error !== undefined) throw this.#error;
    this.#state = "running";
    this.#tasks = this.#order.tasks.map(({ task }) => new RemoteTask(task, this.#frames));
    this.#frames.send(FRAME.go);
    return this.#tasks;
  }

  /** Sends an input to task 0, which is on this host, at the task's pace. */
  feed(input: Readable): void {
    this.#tasks.find(({ task }) => task === 0)?.feed(input);
  }

  /** Ends the remote shell, and by that the starter and all tasks that go on. */
  async close(): Promise<void> {
    this.#state = "over";
    // Frames of their ends would be dropped; task 0 lets go of the input at its end.
    for (const task of this.#tasks) task.lose(`the connection to host ${this.name} is closed`);
    this.#end("SIGTERM");
    const stop = after(GRACE_MS, () => this.#end("SIGKILL"));
    await this.closed;
    stop();
  }

  #greet(version: string, isRight: boolean): void {
    if (!isRight) {
      this.#fail(`it has pamir ${version}, which can't work with ${VERSION}`);
      return;
    }
    this.#state = "greeted";
    // Not before: what hears it now is a starter.
    this.#frames.send(FRAME.key, 0, this.#key);
    this.#frames.send(FRAME.order, 0, JSON.stringify(this.#order));
  }

  #take(kind: number, number: number, content: Buffer): void {
    if (kind === FRAME.ready && this.#state === "greeted") {
      this.#state = "ready";
      this.#resolve();
    } else if (kind === FRAME.refused) {
      const why = content.toString();
      this.#refuse(new UsageError(`host ${this.name}: ${why}`));
      this.#fail(why, `host ${this.name}: ${why}`);
    } else {
      this.#tasks.find(({ task }) => task === number)?.take(kind, content);
    }
  }

  /** The remote shell or the starter has written to standard error. */
  #hear(text: string): void {
    if (this.#state === "running") {
      for (const line of text.trimEnd().split("\n")) say(`pamir run: ${this.name}: ${line}`);
    } else {
      this.#complaint = `${this.#complaint}${text}`.slice(-COMPLAINT_MAX);
    }
  }

  /** Nothing more is to be expected of this host. @param lost what is said of its tasks */
  #fail(why: string, lost = `the connection to host ${this.name} has ended: ${why}`): void {
    const state = this.#state;
    if (state === "over") return;
    this.#state = "over";
    const said = this.#complaint
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
    if (state !== "running") {
      this.#error = new UsageError([`host ${this.name}: ${why}`, ...said].join("; "));
      this.#reject(this.#error);
      this.#refuse(this.#error);
    }
    for (const task of this.#tasks) task.lose(lost);
    this.#end("SIGTERM");
  }

  /** Ends the remote shell. */
  #end(signal: EndSignal): void {
    this.#frames.close();
    try {
      process.kill(-(this.#shell.pid as number), signal);
    } catch {
      // It has ended, or was never started.
    }
  }
}

export class RemoteTask implements RunTask {
  readonly task: number;
  readonly stdout: RemoteOutput;
  readonly stderr: RemoteOutput;
  readonly pmi: Duplex;
  readonly ended: Promise<TaskEnd>;
  readonly #frames: Frames;
  #end: (end: TaskEnd) => void = () => {};
  #hasEnded = false;
  #isPmiOver = false;
  #unread = 0;
  #input: Readable | undefined;

  constructor(task: number, frames: Frames) {
    this.task = task;
    this.#frames = frames;
    this.stdout = new RemoteOutput((bytes) => frames.send(FRAME.outputTaken, task, `${bytes}`));
    this.stderr = new RemoteOutput((bytes) => frames.send(FRAME.errorTaken, task, `${bytes}`));
    const end = new Promise<TaskEnd>((resolve) => {
      this.#end = resolve;
    });
    this.ended = end.then(async (found) => {
      await Promise.all([finished(this.stdout), finished(this.stderr)]);
      return found;
    });
    this.pmi = new Duplex({
      read() {},
      write(bytes: Buffer, _, done) {
        frames.send(FRAME.pmi, task, bytes);
        done();
      },
      final(done) {
        frames.send(FRAME.pmiEnd, task);
        done();
      },
      destroy(error, done) {
        if (!this.writableFinished) frames.send(FRAME.pmiEnd, task);
        done(error);
      },
    });
    this.pmi.on("error", () => {});
  }

  tell(news: string): void {
    if (!this.#hasEnded) this.#frames.send(FRAME.news, this.task, news);
  }

  kill(signal: EndSignal): void {
    if (!this.#hasEnded) this.#frames.send(FRAME.kill, this.task, signal);
  }

  pass(signal: UserSignal): void {
    if (!this.#hasEnded) this.#frames.send(FRAME.pass, this.task, signal);
  }

  take(kind: number, content: Buffer): void {
    // Processes that the task has started may go on.
    if (this.#hasEnded) return;
    if (kind === FRAME.output) this.stdout.add(content);
    else if (kind === FRAME.error) this.stderr.add(content);
    else if (kind === FRAME.pmi) this.pmi.push(content);
    else if (kind === FRAME.pmiEnd) this.#endPmi();
    else if (kind === FRAME.ended) this.#finish(JSON.parse(content.toString()) as TaskEnd);
    else if (kind === FRAME.taken) this.#flow(-Number(content.toString()));
  }

  /** The connection has ended: how the task ends is not known. */
  lose(why: string): void {
    this.#finish({ code: null, signal: null, lost: why });
  }

  feed(input: Readable): void {
    this.#input = input;
    input.on("data", (bytes: Buffer) => {
      this.#frames.send(FRAME.input, this.task, bytes);
      this.#flow(bytes.length);
    });
    input.on("end", () => this.#frames.send(FRAME.inputEnd, this.task));
    input.on("error", () => this.#frames.send(FRAME.inputEnd, this.task));
  }

  #flow(bytes: number): void {
    this.#unread += bytes;
    if (this.#unread >= INPUT_WINDOW) this.#input?.pause();
    else if (this.#input?.isPaused()) this.#input.resume();
  }

  #finish(end: TaskEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#input?.destroy();
    this.#endPmi();
    // Its end is reported behind its output, also while nothing is read: what has come is written at once.
    for (const output of [this.stdout, this.stderr]) {
      output.complete();
      takeRest(output, Number.POSITIVE_INFINITY);
    }
    this.#end(end);
  }

  #endPmi(): void {
    if (!this.#isPmiOver) this.pmi.push(null);
    this.#isPmiOver = true;
  }
}

// `pamir node`: starts the tasks of one host for a `pamir run` elsewhere, which speaks frames over standard input and output.
// Its tasks end with that connection.
import { networkInterfaces } from "node:os";
import { VERSION } from "pamir";
import { Guard } from "../../../start/process/guard.js";
import { say, UsageError } from "../../usage.js";
import { changeFolder, checkAddresses, programOf } from "../options.js";
import { startProcesses, type TaskProcess } from "../processes.js";
import type { EndSignal, UserSignal } from "../task.js";
import { FRAME, Frames, greeting, type StartOrder } from "./frames.js";
import { HeldOutput } from "./held.js";

const HELP = `pamir node: started by \`pamir run --hosts\` on each host; it speaks frames over standard input and output
`;

/** Serves one `pamir run`. @returns the exit code, once all tasks have ended */
export async function starter(args: string[]): Promise<number> {
  if (args.length > 0) {
    process.stdout.write(HELP);
    return args[0] === "--help" ? 0 : 2;
  }
  const host = new StarterHost();
  await host.ended;
  return 0;
}

class StarterHost {
  readonly ended: Promise<void>;
  readonly #frames: Frames;
  #finish: () => void = () => {};
  #key: Uint8Array | undefined;
  #order: StartOrder | undefined;
  #guard: Guard | undefined;
  #tasks = new Map<number, TaskProcess>();
  /** Of each task: by the kind of frame that gives bytes back. */
  readonly #outputs = new Map<number, Map<number, HeldOutput>>();
  /** Whether the connection takes more. */
  #isOpen = true;
  #running = 0;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#finish = resolve;
    });
    process.stdout.write(greeting(VERSION));
    this.#frames = new Frames(
      process.stdin,
      process.stdout,
      {
        onFrame: (kind, task, content) => this.#take(kind, task, content),
        onEnd: () => this.#lose(),
      },
      false,
    );
    process.stdout.on("drain", () => this.#flow(true));
  }

  #take(kind: number, number: number, content: Buffer): void {
    const task = this.#tasks.get(number);
    switch (kind) {
      case FRAME.key:
        this.#key = Uint8Array.from(content);
        return;
      case FRAME.order:
        this.#answer(() => this.#prepare(JSON.parse(content.toString()) as StartOrder));
        return;
      case FRAME.go:
        this.#answer(() => this.#start());
        return;
      case FRAME.pmi:
        task?.pmi.write(content);
        return;
      case FRAME.pmiEnd:
        task?.pmi.end();
        return;
      case FRAME.news:
        task?.tell(content.toString());
        return;
      case FRAME.input:
        // Also if the task has closed its input: what comes next is dropped, too.
        task?.stdin?.write(content, () => this.#frames.send(FRAME.taken, number, `${content.length}`));
        return;
      case FRAME.outputTaken:
      case FRAME.errorTaken: {
        const output = this.#outputs.get(number)?.get(kind);
        output?.give(Number(content.toString()));
        output?.flow(this.#isOpen);
        return;
      }
      case FRAME.inputEnd:
        task?.stdin?.end();
        return;
      case FRAME.kill:
        task?.kill(content.toString() as EndSignal);
        return;
      case FRAME.pass:
        task?.pass(content.toString() as UserSignal);
        return;
      default:
        return;
    }
  }

  /** Does something, and says if that fails. */
  #answer(act: () => void): void {
    try {
      act();
    } catch (error) {
      const text = error instanceof UsageError ? error.message : ((error as Error).stack ?? String(error));
      this.#frames.send(FRAME.refused, 0, text);
      this.#close();
    }
  }

  #prepare(order: StartOrder): void {
    changeFolder(order.cwd);
    checkAddresses(order.memories);
    this.#order = { ...order, app: programOf(order.app) };
    this.#frames.send(FRAME.ready);
  }

  #start(): void {
    const { app, args, execArgv, argv0, env, tasks } = this.#order as StartOrder;
    this.#guard = new Guard((why) => {
      say(`if this process is killed, its tasks go on, since sh can't be started: ${why}`);
    });
    const address = reachedAddress();
    const program = {
      app,
      args,
      execArgv,
      argv0,
      env: { ...process.env, ...(address === undefined ? {} : { PAMIR_BIND_HOST: address }), ...env },
      key: this.#key as Uint8Array,
      // The launcher labels what it gets from here.
      hasLabels: true,
    };
    const orders = tasks.map((task) => ({
      ...task,
      input: task.task === 0 ? ("pipe" as const) : ("ignore" as const),
    }));
    const started = startProcesses(program, orders, this.#guard);
    this.#running = started.length;
    for (const task of started) this.#serve(task);
  }

  #serve(task: TaskProcess): void {
    const { task: number, pmi } = task;
    this.#tasks.set(number, task);
    const outputs = new Map<number, HeldOutput>();
    this.#outputs.set(number, outputs);
    for (const [stream, kind, taken] of [
      [task.stdout, FRAME.output, FRAME.outputTaken],
      [task.stderr, FRAME.error, FRAME.errorTaken],
    ] as const) {
      const output = new HeldOutput(stream, (bytes) => {
        if (!this.#frames.send(kind, number, bytes)) this.#flow(false);
        else output.flow(this.#isOpen);
      });
      outputs.set(taken, output);
      void task.exited.then(() => {
        output.takeRest();
        output.flow(this.#isOpen);
      });
    }
    pmi.on("data", (bytes: Buffer) => this.#frames.send(FRAME.pmi, number, bytes));
    pmi.on("end", () => this.#frames.send(FRAME.pmiEnd, number));
    pmi.on("error", () => this.#frames.send(FRAME.pmiEnd, number));
    void task.ended.then((end) => {
      this.#frames.send(FRAME.ended, number, JSON.stringify(end));
      this.#running--;
      if (this.#running === 0) this.#close();
    });
  }

  /** Holds back the tasks that write faster than the connection carries, or lets them go on. */
  #flow(isOpen: boolean): void {
    this.#isOpen = isOpen;
    for (const outputs of this.#outputs.values()) {
      for (const output of outputs.values()) output.flow(isOpen);
    }
  }

  /** The connection has ended: so do the tasks, at once. */
  #lose(): void {
    for (const task of this.#tasks.values()) task.kill("SIGKILL");
    // What comes is dropped.
    for (const outputs of this.#outputs.values()) {
      for (const output of outputs.values()) output.give(Number.POSITIVE_INFINITY);
    }
    this.#flow(true);
    if (this.#running === 0) this.#close();
  }

  #close(): void {
    this.#guard?.close();
    this.#frames.close();
    process.stdin.destroy();
    this.#finish();
  }
}

/** The address at which ssh has reached this host, for other hosts. Undefined: the first of its addresses will do. */
function reachedAddress(): string | undefined {
  const { SSH_CONNECTION, PAMIR_BIND_HOST } = process.env;
  // It has the client's address and port, then this host's.
  const address = SSH_CONNECTION?.split(" ")[2];
  if (PAMIR_BIND_HOST !== undefined || address === undefined) return undefined;
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const found = own.find((one) => one.address === address && !one.internal);
  // The nodes of a job have addresses of one family: of IPv4, if this host has one.
  if (found?.family === "IPv6" && own.some(({ family, internal }) => family === "IPv4" && !internal)) return undefined;
  return found?.address;
}

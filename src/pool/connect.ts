// One worker, without a pool: expose() and connect(), in either direction.
import { type AdoptTarget, type Context, type Endpoint, type Job, launch, PamiError } from "../index.js";
import { checkContext, checkKeys, shown } from "./check.js";
import { exchangeOf } from "./exchange/exchange.js";
import type { Line } from "./exchange/line.js";
import { readStream } from "./exchange/streams.js";
import { FUNCTIONS, packed } from "./exchange/wire.js";
import { type Functions, namesOf } from "./names.js";
import { checkCallOptions, type PoolCallOptions } from "./options.js";
import { type Remote, type RemoteSync, remoteOf } from "./remote.js";
import type { Api } from "./serve.js";

/** What a connection has beside the other side's functions. */
export interface ConnectionMethods<Api> {
  /** The functions for a thread that blocks until each has its result. */
  readonly sync: RemoteSync<Api>;
  /** The functions, with options for their calls. Of a stream, `timeout` is the longest wait for an answer with values. */
  with(options: Pick<PoolCallOptions, "signal" | "timeout">): Remote<Api>;
  /** Ends the connection; if it was made of a worker, also the worker's part in it. */
  close(): Promise<void>;
  /** close(), at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The functions of another thread by name. */
export type Connection<Api> = Remote<Api> & ConnectionMethods<Api>;

const CONNECTION_KEYS = new Set(["signal", "timeout"]);
/** Milliseconds in which a function ends whose call was given up, for what it moves to be dropped at once. */
const LATE_MS = 1000;
/** Milliseconds in which the other side has to serve. */
const START_MS = 60_000;

/**
 * Lets others call functions on this context: as serve(), for a task that has a context of its own. The context advances as
 * the program has it advance.
 * @returns the functions, whose type the caller imports
 * @throws PAMIR_INVAL
 */
export function expose<F extends object>(context: Context, functions: F & Functions<F>): Api<F> {
  checkContext("expose()", context);
  exchangeOf(context).serve({ names: namesOf("expose()", functions), functions }, () => {});
  return functions;
}

/**
 * Connects to functions that another thread serves.
 * @param target a worker that the program has started, where `serve(functions, { port })` waits; or this task's context
 * @param to with a context: the endpoint where expose() or serve() runs
 * @throws PAMIR_INVAL; PAMIR_TIMEDOUT if nothing is served within 60 s; PAMIR_SHUTDOWN if the other side has ended
 */
export function connect<Api>(target: AdoptTarget): Promise<Connection<Api>>;
export function connect<Api>(context: Context, to: Endpoint): Promise<Connection<Api>>;
export async function connect<Api>(target: AdoptTarget | Context, to?: Endpoint): Promise<Connection<Api>> {
  if (to !== undefined) {
    checkContext("connect(), with an endpoint,", target as Context);
    return connectionOf<Api>(exchangeOf(target as Context).lineTo(to), undefined, async () => {});
  }
  if (typeof (target as Partial<Worker> | null)?.postMessage !== "function") {
    throw new PamiError("PAMIR_INVAL", `connect() takes a worker, or a context and an endpoint, not ${shown(target)}`);
  }
  const end = endOf(target as Partial<NodeWorker>);
  let job: Job | undefined;
  try {
    // The worker is the program's: its end is no failure that pamir reports, and calls reject.
    const onExit = (): void => {};
    job = await launch(null, { tasks: 1, maxTasks: 2, join: true, contexts: 2, ports: true, onExit });
    job.unref();
    const connected = adopted<Api>(job, target as AdoptTarget);
    // If the worker ends before.
    connected.catch(() => {});
    return await Promise.race([connected, end.ended]);
  } catch (error) {
    await job?.terminate();
    throw error;
  } finally {
    end.forget();
  }
}

async function adopted<Api>(job: Job, target: AdoptTarget): Promise<Connection<Api>> {
  const exchange = exchangeOf(job.client.createContext());
  const task = job.adopt(target);
  const port = job.port(task) as MessagePort | undefined;
  return connectionOf<Api>(exchange.lineTo(job.client.endpoint(task)), port, async () => void (await job.terminate()));
}

/** What connect() uses of a worker of Node; one of a browser has no event when it ends. */
interface NodeWorker {
  readonly threadId: number;
  once(event: "exit", listener: (code: number) => void): void;
  off(event: "exit", listener: (code: number) => void): void;
}

/** The end of a worker, as a rejection, and what stops listening for it. @throws PAMIR_SHUTDOWN if it has ended already */
function endOf(worker: Partial<NodeWorker>): { readonly ended: Promise<never>; forget(): void } {
  if (typeof worker.once !== "function") return { ended: new Promise(() => {}), forget() {} };
  // Node's own number of a worker that has ended.
  if (worker.threadId === -1) throw new PamiError("PAMIR_SHUTDOWN", "connect() to a worker that has ended");
  let hear: (code: number) => void = () => {};
  const ended = new Promise<never>((_, reject) => {
    hear = (code) => {
      const text = `the worker of connect() has ended with exit code ${code}, before it served`;
      reject(new PamiError("PAMIR_SHUTDOWN", text));
    };
  });
  ended.catch(() => {});
  worker.once("exit", hear);
  return { ended, forget: () => worker.off?.("exit", hear) };
}

/** Drops what a function moves back once its call was given up. A function that goes on for longer is not waited for. */
async function dropLate(line: Line, reply: Promise<unknown>): Promise<void> {
  try {
    await reply;
  } catch (error) {
    const { code } = Object(error) as { code?: string };
    if (code === "PAMIR_TIMEDOUT" || code === "PAMIR_CANCELED")
      await line.settled({ timeout: LATE_MS }).catch(() => {});
  }
}

async function connectionOf<Api>(
  line: Line,
  port: MessagePort | undefined,
  close: () => Promise<void>,
): Promise<Connection<Api>> {
  const names = await line.hello(port, { timeout: START_MS });
  const remoteWith = (options: Pick<PoolCallOptions, "signal" | "timeout"> | undefined): Record<string, unknown> =>
    remoteOf(names, {
      run: (number, args) => {
        const reply = line.ask(FUNCTIONS + number, packed(args), options);
        if (port !== undefined && options !== undefined) void dropLate(line, reply);
        return reply;
      },
      stream: (number, args) => readStream(line, number, args, options ?? {}),
    });
  const remote = remoteWith(undefined);
  const methods: ConnectionMethods<unknown> = {
    sync: remoteOf(names, {
      run: (number, args) => line.askSync(FUNCTIONS + number, packed(args), {}),
    }) as ConnectionMethods<unknown>["sync"],
    with(options) {
      checkKeys("options of with()", options, CONNECTION_KEYS);
      checkCallOptions("with()", options);
      return remoteWith(options) as Remote<unknown>;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  Object.defineProperties(remote, Object.getOwnPropertyDescriptors(methods));
  return remote as unknown as Connection<Api>;
}

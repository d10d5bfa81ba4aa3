// attach(): how a task gets its client.

import {
  JOB_CORES_OFFSET,
  JOB_HASH_OFFSET,
  JOB_LOCALS_OFFSET,
  JOB_MAGIC,
  JOB_MAGIC_OFFSET,
} from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { PamiError, show } from "../core/error.js";
import { textsOf } from "../core/thrown.js";
import { VERSION } from "../generated/version.js";
import type { Memory } from "../kernel/kernel.js";
import {
  asLaunched,
  eitherOpener,
  kernelOpener,
  type OpenKernel,
  openMemory,
  type SharedMemory,
} from "../kernel/open.js";
import { readMap } from "../memory/map.js";
import { taskErrorsIn } from "../node/liveness.js";
import type { JobMemory, JobMemoryRequest } from "../node/memory.js";
import type { Client, OnLeave } from "../pami/client.js";
import type { LookAtSlots } from "../protocol/slots.js";
import { diagnostics } from "../support/diagnostics.js";
import { environment, isNode, type NodePort, nodeModule, webLocks } from "../support/host.js";
import type { MessagePortLike } from "../support/like.js";
import { after } from "../support/timers.js";
import { makeClient } from "./client.js";
import type { Joined } from "./join/join.js";
import type { NatsJob } from "./join/nats-job.js";
import type { PortsNode } from "./node/private-node.js";
import type { InlineParts } from "./node/started-agent.js";
import {
  BOOTSTRAP,
  isTaskName,
  LAUNCHED,
  type LastWord,
  type StartMessage,
  type TaskNews,
  type TaskReport,
} from "./start-message.js";
import type { Hear, TellLauncher } from "./tasks/switchboard.js";

/** A port by which `job.adopt` reaches this thread: `self` in a Web Worker, `parentPort`, or one of a MessageChannel. */
export type AttachPort = Pick<MessagePortLike, "postMessage" | "close">;

let attached: Promise<Client> | undefined;
/** Calls of attach() with a port run one after the other: the second checks whether the first has joined. */
let turns: Promise<unknown> = Promise.resolve();

/**
 * Joins the job that started this worker. Without a port, a second call returns the same client.
 * @param given for a worker that the program started: one end of a channel whose other end `job.adopt` gets. attach() then
 *   waits for that call. After its client is closed, the worker may join another job. For a process, the job that it meets at a
 *   NATS server: variables of the environment say the rest, such as the job key
 * @throws PAMIR_NOT_IN_JOB if no job started this thread, PAMIR_VERSION if another version of pamir did, PAMIR_INVAL
 */
export async function attach(given?: AttachPort | NatsJob): Promise<Client> {
  if (given === undefined || "nats" in Object(given)) {
    attached ??= attachHere(given as NatsJob | undefined);
    return attached;
  }
  const port = given as Partial<AttachPort> | null;
  if (typeof port?.postMessage !== "function") {
    throw new PamiError("PAMIR_INVAL", `port of attach() is ${show(port)}, not a MessagePort`);
  }
  const turn = turns.then(() => attachBy(port as AttachPort));
  turns = turn.catch(() => {});
  return turn;
}

async function attachBy(port: AttachPort): Promise<Client> {
  const client = await attached?.catch(() => undefined);
  if (client?.closed === false) {
    throw new PamiError(
      "PAMIR_INVAL",
      `attach(port) in a thread that is task ${client.task} of a job: close that client first`,
    );
  }
  attached =
    nodeModule("worker_threads") === undefined
      ? joinByMessages(port as MessagePort)
      : joinByPort(port as unknown as NodePort);
  return attached;
}

async function attachHere(place?: NatsJob): Promise<Client> {
  const threads = nodeModule("worker_threads");
  if (threads !== undefined) {
    const bootstrap = (threads.workerData as { [BOOTSTRAP]?: StartMessage } | null)?.[BOOTSTRAP];
    if (bootstrap === undefined || place !== undefined) {
      if (!threads.isMainThread) throw notInJob();
      const { start, memory, onLeave, lookAtSlots, onClient, inline } = await joinMainThread(place);
      const openKernel = await kernelOpener(start.kernel);
      const client = clientOf(start, memory, openKernel, { onLeave, lookAtSlots, inline });
      onClient?.(client);
      return client;
    }
    if (bootstrap.input !== undefined) (await import("./output/input.js")).openInput(bootstrap.input);
    // Loaded on demand: programs whose tasks share memory do not need it.
    const nodes = bootstrap.first === undefined ? undefined : await import("./node/private-node.js");
    const openKernel = await kernelOpener(bootstrap.kernel, bootstrap.module);
    return clientOf(bootstrap, await memoryOf(bootstrap), openKernel, { lookAtSlots: nodes?.lookAtSlots });
  }
  const worker = globalThis as unknown as TaskWorker;
  // A page has a postMessage() too, of another kind.
  if (typeof worker.postMessage !== "function" || typeof document !== "undefined") throw notInJob();
  return joinByMessages(worker);
}

/** In a main thread: a launcher may have started this process, `pamir run` or mpiexec for instance. */
async function joinMainThread(place: NatsJob | undefined): Promise<Joined> {
  // The module that `pamir run` loads first hides the variables: see src/cli/run/task-output.ts.
  (globalThis as unknown as { process?: Record<symbol, () => void> }).process?.[Symbol.for("pamir.task")]?.();
  const launched = environment(LAUNCHED);
  if (launched === undefined || place !== undefined)
    return (await import("./join/by-launcher.js")).joinByLauncher(place);
  return (await import("./join/by-run.js")).joinLaunched(launched);
}

/** In Node, in a worker that the program has started. */
async function joinByPort(port: NodePort): Promise<Client> {
  const { bootstrap, life } = await new Promise<{ bootstrap: StartMessage; life: NodePort }>((resolve) => {
    const hear = (message: { [BOOTSTRAP]?: StartMessage; life: NodePort } | null): void => {
      const bootstrap = message?.[BOOTSTRAP];
      if (bootstrap === undefined) return;
      port.off("message", hear);
      resolve({ bootstrap, life: (message as { life: NodePort }).life });
    };
    port.on("message", hear);
  });
  const memory = await memoryOf(bootstrap);
  const openKernel = await kernelOpener(bootstrap.kernel, bootstrap.module);
  const stop = tellOfExit(life);
  // As long as this end is open, the monitor knows that the worker lives.
  const onLeave = (): void => {
    stop();
    life.close();
  };
  const client = clientOf(bootstrap, memory, openKernel, { onLeave });
  life.on("message", () => client.close());
  life.unref();
  return client;
}

/** Tells the monitor how this worker ends. The monitor did not start the worker, and can't see the worker's end otherwise. */
function tellOfExit(life: NodePort): () => void {
  let failure: Partial<LastWord> | undefined;
  const fail = (thrown: unknown): void => {
    const { name, message, code, stack } = textsOf(thrown);
    const error = typeof thrown === "object" ? `${name}: ${message}` : message;
    failure = { cause: "error", error, errorCode: code === undefined ? undefined : `${code}`, stack };
  };
  const exit = (code: number): void =>
    life.postMessage({ code, cause: "exit", ...(code === 0 ? {} : failure) } satisfies LastWord);
  process.on("uncaughtExceptionMonitor", fail);
  process.on("exit", exit);
  return () => {
    process.off("uncaughtExceptionMonitor", fail);
    process.off("exit", exit);
  };
}

/** In a browser: by a worker's own messages, or a port's. */
async function joinByMessages(worker: TaskWorker | MessagePort): Promise<Client> {
  const tell = (report: TaskReport, ports: MessagePort[] = []): void =>
    worker.postMessage({ [BOOTSTRAP]: report }, ports);
  // Requests the lock at once if its name is known already: the request takes as long as the bootstrap.
  const early = "name" in worker && isTaskName(worker.name) ? holdLock(worker.name) : undefined;
  const bootstrap = await bootstrapFrom(worker);
  if (bootstrap.isAdopted !== true) reportErrors(worker as TaskWorker);
  const release = await (early ?? holdLock(bootstrap.lock));
  // Loaded before "held" is posted: the news that follow must find a listener.
  const nodes = bootstrap.memory === undefined ? await import("./node/private-node.js") : undefined;
  const openKernel = await (nodes ? eitherOpener : kernelOpener)(bootstrap.kernel, bootstrap.module);
  tell("held");
  let stop = (): void => {};
  const onLeave = (): void => {
    // The worker may join another job. This client must not hear that job's news.
    stop();
    tell("left");
    release();
  };
  const listen = (hear: Hear): void => {
    const take = (event: Event): void => {
      const { data, ports } = event as MessageEvent<{ [BOOTSTRAP]?: TaskNews } | null>;
      const news = data?.[BOOTSTRAP];
      if (news === undefined) return;
      event.stopImmediatePropagation();
      hear(news, [...ports]);
    };
    (worker as EventTarget).addEventListener("message", take);
    stop = () => (worker as EventTarget).removeEventListener("message", take);
  };
  if (bootstrap.memory !== undefined || nodes === undefined) {
    const client = clientOf(bootstrap, await memoryOf(bootstrap), openKernel, { onLeave });
    listen((news) => {
      if ("leave" in news) client.close();
    });
    return client;
  }
  const room = nodes.makeJobMemory(
    { ...(bootstrap.room as JobMemoryRequest), first: bootstrap.task },
    bootstrap.kernel === "wasm",
  );
  const { client, hear } = portsNodeOf(nodes, bootstrap, room, { openKernel, tell, onLeave });
  listen(hear);
  return client;
}

function notInJob(): PamiError {
  return new PamiError("PAMIR_NOT_IN_JOB", "attach() in a thread that no job started: use launch(), here or above");
}

/** Milliseconds in which a thread that started this worker for pamir answers: it may be busy. */
const ANSWER_MS = 10_000;

/** The part of a Web Worker's global scope that attach() uses. */
interface TaskWorker extends EventTarget {
  readonly name: string;
  postMessage(message: unknown, ports?: MessagePort[]): void;
}

/** Reports uncaught errors to the thread that launched the job. */
function reportErrors(worker: TaskWorker): void {
  const fail = (error: unknown): void => {
    worker.postMessage({ [BOOTSTRAP]: textsOf(error) as TaskReport });
  };
  worker.addEventListener("error", (event) => fail((event as ErrorEvent).error ?? (event as ErrorEvent).message));
  worker.addEventListener("unhandledrejection", (event) => {
    // The launcher prints the error: printed here too, the error would appear twice.
    event.preventDefault();
    fail((event as PromiseRejectionEvent).reason);
  });
}

/** The bootstrap, from the thread that started this worker, or through a port from the job that adopts it. */
function bootstrapFrom(worker: TaskWorker | MessagePort): Promise<StartMessage> {
  return new Promise((resolve, reject) => {
    const isPort = "start" in worker;
    // launch() answers a worker that it started, however late; and behind a port, a job waits. Any other worker may belong
    // to no job.
    const isSure = isPort || isTaskName(worker.name);
    const ask = (): void => (worker as TaskWorker).postMessage({ [BOOTSTRAP]: "attach" satisfies TaskReport });
    const late = isSure ? undefined : after(ANSWER_MS, () => reject(notInJob()));
    const hear = (event: Event): void => {
      const given = ((event as MessageEvent).data as { [BOOTSTRAP]?: StartMessage | TaskNews } | null)?.[BOOTSTRAP];
      if (given === undefined) return;
      event.stopImmediatePropagation();
      if ("offer" in given) {
        ask();
        return;
      }
      const bootstrap = given as StartMessage;
      worker.removeEventListener("message", hear);
      late?.();
      resolve(bootstrap);
    };
    (worker as EventTarget).addEventListener("message", hear);
    if (isPort) worker.start();
    else ask();
  });
}

/** Takes the Web Lock by which the job sees that this worker lives. Returns a function that releases it. */
function holdLock(name: string): Promise<() => void> {
  const locks = webLocks();
  if (locks === undefined) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    void locks.request(name, () => new Promise<void>((release) => resolve(release)));
  });
}

/** Views over the memory that all tasks share. */
async function memoryOf({ memory, futex, isAdopted, job }: StartMessage): Promise<Memory> {
  const shared = memory as SharedMemory;
  if (futex === undefined) return withYield(asLaunched(openMemory(shared), job), job);
  const { taskFutexOf } = await import("../process/process-memory.js");
  return withYield(openMemory(shared, taskFutexOf(futex, shared as WebAssembly.Memory, isAdopted !== true)), job);
}

/** In Node, with more tasks than cores, waits give their core away. @param job pointer to the job's header */
export async function withYield(memory: Memory, job: number): Promise<Memory> {
  // plain: both are written before any task.
  const [locals, cores] = [JOB_LOCALS_OFFSET, JOB_CORES_OFFSET].map((at) => memory.words[(job + at) >>> 2] as number);
  if (isNode() && (locals as number) > (cores as number))
    memory.findYield = (await import("./tasks/yields.js")).findYield;
  return memory;
}

/** What a client has besides its bootstrap, by the way in which its task has joined. */
interface ClientWay {
  /** To call once the client is closed. */
  readonly onLeave?: OnLeave | undefined;
  /** Present where other nodes are, or come later. */
  readonly lookAtSlots?: LookAtSlots | undefined;
  /** Present if the task's thread has the agent of its node. */
  readonly inline?: InlineParts | undefined;
}

/** The client for a bootstrap, over the memory that all tasks share. */
export function clientOf(
  bootstrap: StartMessage,
  memory: Memory,
  openKernel: OpenKernel,
  { onLeave, lookAtSlots, inline }: ClientWay,
): Client {
  const word = (offset: number): number => (memory.words[(bootstrap.job + offset) >>> 2] as number) >>> 0;
  const theirs = word(JOB_HASH_OFFSET);
  const isOurs = theirs === LAYOUT_HASH && bootstrap.layoutHash === LAYOUT_HASH;
  if (word(JOB_MAGIC_OFFSET) !== JOB_MAGIC || !isOurs) throw otherVersion(bootstrap, theirs);
  const kernel = inline?.kernel ?? openKernel(bootstrap.memory as SharedMemory, memory);
  const { args, debug, rank, first = 0, port } = bootstrap;
  const task = bootstrap.task - first;
  const map = readMap(memory, bootstrap.job);
  const errors = taskErrorsIn(memory, map);
  return attachedAs(
    makeClient({ ...inline, kernel, memory, map, task, rank, args, debug, errors, onLeave, lookAtSlots, port }),
  );
}

/** A module that is loaded on demand: programs whose tasks share memory do not need that module. */
export type PrivateNodes = typeof import("./node/private-node.js");

/** A client over a memory of its own, with the agent that stands for the other tasks. */
export function portsNodeOf(
  { makePortsNode }: PrivateNodes,
  bootstrap: StartMessage,
  room: JobMemory,
  way: { readonly openKernel: OpenKernel; readonly tell: TellLauncher; readonly onLeave: () => void },
): PortsNode {
  if (bootstrap.layoutHash !== LAYOUT_HASH) throw otherVersion(bootstrap, bootstrap.layoutHash);
  const { map, shared, memory } = room;
  const { args, debug, rank, started, why, port } = bootstrap;
  const kernel = way.openKernel(shared, memory);
  const { onLeave } = way;
  const own = { kernel, memory, map, args, debug, rank, whyPrivate: why, onLeave, port };
  const node = makePortsNode(own, started, way.tell);
  attachedAs(node.client);
  return node;
}

function attachedAs(client: Client): Client {
  if (diagnostics.attach.hasSubscribers) diagnostics.attach.publish({ client });
  return client;
}

function otherVersion({ version }: StartMessage, theirs: number): PamiError {
  return new PamiError(
    "PAMIR_VERSION",
    `the job was launched by pamir ${version} (layout ${theirs}), this task imports ${VERSION} (layout ${LAYOUT_HASH}): use one copy`,
  );
}

// attach() in a process that a launcher has started: mpiexec, mpirun, srun, or a script. The processes of a host are a node,
// and share one memory. The first process makes the memory; the other processes open it by their right to open that process's
// descriptors. A link joins several nodes: the first process of each node has the thread of the node's agent.
import { ENDPOINT_COUNT_MAX, JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../../assembly/layout.js";
import { LAYOUT_HASH } from "../../../assembly/layout-hash.js";
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import { LATER_BEGUN, type Later, takeLater } from "../../bootstrap/later.js";
import { type OpenedBootstrap, openBootstrap } from "../../bootstrap/open.js";
import { ranksText, runsOf, whyOf } from "../../bootstrap/text.js";
import type { BootstrapWait } from "../../bootstrap/waits.js";
import { PamiError } from "../../core/error.js";
import type { KernelName } from "../../core/kernel-name.js";
import { VERSION } from "../../generated/version.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import type { Memory } from "../../kernel/kernel.js";
import { type SharedMemory, wasmAllowed } from "../../kernel/open.js";
import type { LinkKind } from "../../link/kind.js";
import type { Address } from "../../link/link.js";
import { type LinkKinds, linkKindOf, linkKinds, linkModule, packagesOf } from "../../link/registry.js";
import { nodeLimits } from "../../node/limits.js";
import { makeJobMemory } from "../../node/memory.js";
import { type VisiblePlace, visibleProgram } from "../../observe/visible.js";
import type { OnLeave } from "../../pami/client.js";
import { noProcesses, openFfi } from "../../process/ffi.js";
import type { FutexSetup } from "../../process/futex.js";
import { hostIdentity, machineIdentity, networkIdentity, startTimeOf } from "../../process/identity.js";
import { mapProcessMemory } from "../../process/mapping.js";
import { findFfi, ProcessMemories, whyNoProcesses } from "../../process/process-memory.js";
import { lookAtSlotsAndRing } from "../../protocol/slot-bell.js";
import { type LookAtSlots, lookAtSlots } from "../../protocol/slots.js";
import { environment, nodeModule } from "../../support/host.js";
import { findPackage } from "../../support/node/packages.js";
import { printable } from "../../support/printable.js";
import { randomWords } from "../../support/randomness.js";
import { decodeText, encodeText } from "../../support/text.js";
import { noteProcesses } from "../info.js";
import { leastBytes } from "../least-memory.js";
import { checkLimits, type LimitOptions } from "../limits.js";
import type { NodeTopSetup } from "../node/node-top.js";
import type { ProcessNodeSetup } from "../node/process-node.js";
import { startWorker } from "../node/start-worker.js";
import { type InlineParts, LEAVE_MS, memoryOf, type StartedAgent, startAgent } from "../node/started-agent.js";
import { recordErrors } from "../process/record-errors.js";
import { startWatch } from "../process/start-watch.js";
import type { TaskBootstrap } from "../start-message.js";
import { joinOptions, kernelOf, type ProcessJoinOptions, portOf, SILENCE_DEFAULT_MS } from "./join-options.js";
import { ownAddress } from "./own-address.js";

/** What a process says of itself. */
interface Introduction {
  /** Processes with the same text are to share memory; empty: this process is to share memory with no other. */
  readonly host: string;
  /** Why this process can't share memory; empty if it can. */
  readonly why: string;
  /** The running system. */
  readonly machine: string;
  /** The network namespace within the host. */
  readonly network: string;
  readonly pid: number;
  /** See startTimeOf(). */
  readonly started: number;
  readonly version: string;
  readonly layoutHash: number;
  /** A random number: rank 0's number is the job's fingerprint. */
  readonly random: number;
  /** The text of PAMIR_OPTIONS: rank 0's text holds for the job. */
  readonly options: ProcessJoinOptions;
  /** Whether `pamir top` may see the job: rank 0's answer holds for the job. */
  readonly isVisible: boolean;
}

/** A memory that the first process of a node has made. */
interface Offer {
  readonly descriptor: number;
  readonly bytes: number;
  /** Pointer to the job header. */
  readonly job: number;
}

/** The node of a process. */
export interface NodePlace {
  readonly node: number;
  /** Nodes with which the job begins, and tasks of each. */
  readonly nodes: number;
  readonly perNode: number;
  /** Tasks of this node: 1 if the node comes later. */
  readonly locals: number;
  /** Number of the node's first task. */
  readonly first: number;
}

/** A node's memory as this process has it. */
export interface JoinedMemory {
  readonly shared: SharedMemory;
  /** Present where processes share the memory. */
  readonly futex: FutexSetup | undefined;
  readonly job: number;
}

/** What a task in this process needs. */
export interface Joined {
  readonly start: TaskBootstrap;
  readonly memory: Memory;
  readonly lookAtSlots: LookAtSlots | undefined;
  /** To call once the client is closed. */
  readonly onLeave: OnLeave;
  /** To call with the client, before the program gets it. */
  readonly onClient?: (client: { close(): void }) => void;
  /** The agent of the node, if this process has it. */
  readonly agent: Pick<StartedAgent, "order" | "outlive"> | undefined;
  /** Present if the agent works on the task's thread. */
  readonly inline?: InlineParts | undefined;
}

/** A node of one task, which launch() makes where processes share no memory. */
export interface LinkedNode {
  /** Tasks that come later. */
  readonly later: Later;
  /** Options of all nodes, which also size the trace. */
  readonly options: ProcessJoinOptions & Pick<LimitOptions, "trace">;
  /** The node's memory, if it is made already. */
  readonly mapped?: JoinedMemory | undefined;
  /** The launching program's command line, if `pamir top` may see the job. */
  readonly program: readonly string[] | undefined;
}

/** Joins the job of the launcher that started this process. @throws PAMIR_NOT_IN_JOB and what openBootstrap() throws */
export async function joinByLauncher(): Promise<Joined> {
  const options = {
    insecure: environment("PAMIR_INSECURE") === "1",
    onWait: ({ waited, most, what }: BootstrapWait) =>
      say(`for ${Math.round(waited / 1000)} of ${Math.round(most / 1000)} s, attach() waits for ${what}`),
    onRefused: (why: string) => say(`attach() has refused a process: ${why}`),
  };
  const { bootstrap, key } = await openBootstrap(process.env, options).catch((cause: unknown): OpenedBootstrap => {
    const { code, message } = cause as PamiError;
    if (code !== "PAMIR_LAUNCHER" || !message.startsWith("no launcher")) throw cause;
    const text = "attach() in a thread that no job started: use launch(), here or above";
    throw new PamiError("PAMIR_NOT_IN_JOB", text, { cause });
  });
  let joined: Joined;
  try {
    joined = await joinBy(bootstrap, key, undefined, takeLater(process.env));
  } catch (error) {
    await bootstrap.fail(whyOf(error));
    throw error;
  }
  await bootstrap.close();
  return joined;
}

function say(text: string): void {
  process.stderr.write(`pamir: ${printable(text, true)}\n`);
}

/**
 * Makes this process's node, or joins it. A process that comes later is a node of its own. That process passes barriers at
 * once, since all other processes have passed them.
 * @param linked for a node of one task, whatever it could share memory with
 * @throws PAMIR_VERSION, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT, PAMIR_MEMORY, PAMIR_ADDRESS
 */
export async function joinBy(
  bootstrap: Bootstrap,
  key: Uint8Array | undefined,
  linked?: LinkedNode,
  later: Later = linked?.later ?? { world: bootstrap.size, most: bootstrap.size },
): Promise<Joined> {
  const ends: (() => unknown)[] = [];
  try {
    return await join(bootstrap, key, linked, later, (end) => ends.push(end));
  } catch (error) {
    // The parts that have begun would keep this process running.
    for (const end of ends) await end();
    throw error;
  }
}

/** @param onFailure takes a function that ends a part which has begun */
async function join(
  bootstrap: Bootstrap,
  key: Uint8Array | undefined,
  linked: LinkedNode | undefined,
  later: Later,
  onFailure: (end: () => unknown) => void,
): Promise<Joined> {
  const { rank } = bootstrap;
  const { world, most } = later;
  const module = linked === undefined ? linkModule() : undefined;
  const kinds = await linkKinds(module);
  const all = await introduce(bootstrap, linked, world, kinds);
  const place = placeOf(all, rank);
  noteSharing(all, rank, place.perNode);
  const { node, nodes, first, locals } = place;
  /** Whether other nodes are there, or come later. */
  const isLinkedTo = nodes > 1 || most > world;
  const { options } = all[0] as Introduction;
  const kernel = kernelOf(options);
  const made = linked?.mapped && { mapped: linked.mapped, offer: undefined };
  // A linked task may have other kernels than the first task.
  const isWasm = linked === undefined ? kernel === "wasm" : wasmAllowed();
  const own = rank === first ? (made ?? makeMemory(place, later, options, isWasm)) : undefined;
  let offer = own?.offer;
  const endOffer = (): void => {
    if (offer !== undefined) fs().closeSync(offer.descriptor);
    offer = undefined;
  };
  onFailure(endOffer);
  if (offer !== undefined) await put(bootstrap, `memory-${node}`, offer);
  const hasAgent = own !== undefined && isLinkedTo;
  const isLinked = linked !== undefined;
  const kind = linkKindOf(kinds, options.link);
  const link = { kind, module };
  const setup = hasAgent ? nodeSetup(own.mapped, place, all, kernel, key, later, isLinked, link) : undefined;
  const agent = setup && (options.agent === "inline" ? await openInline(setup) : await startAgent(setup));
  if (agent !== undefined) {
    onFailure(() => agent.close());
    await put(bootstrap, `address-${node}`, agent.address);
  }
  await bootstrap.barrier();
  const mapped = own?.mapped ?? (await openOffered(bootstrap, all[first] as Introduction, node));
  const siblings = all
    .slice(first, first + locals)
    .map(({ pid, started }, task) => ({ tasks: [task], pid, started, hasAgent: isLinkedTo && task === 0 }))
    .filter((_, task) => task !== rank - first);
  const { futex } = mapped;
  const watching =
    siblings.length > 0 && futex !== undefined
      ? startWatch({ ...mapped, futex, shared: mapped.shared as WebAssembly.Memory }, { processes: siblings })
      : undefined;
  // The promise is awaited behind a barrier. This handler keeps an earlier rejection from being reported as unhandled.
  const watched = watching?.catch(() => {});
  onFailure(async () => (await watched)?.());
  // Behind this barrier, every process of the node has the memory.
  await bootstrap.barrier();
  endOffer();
  let inline: InlineParts | undefined;
  if (agent !== undefined) {
    const addresses: (Address | null)[] = [];
    for (let other = 0; other < nodes; other++) addresses.push(await get<Address>(bootstrap, `address-${other}`));
    // Two later nodes may begin at once. Each node stores its address, then reads: so the second node to store finds the first
    // node's address. A node that this count misses begins after the count, and finds this node's address.
    const begun = rank < world ? 0 : await get<number>(bootstrap, LATER_BEGUN);
    for (let other = nodes; other < nodes + begun; other++) {
      addresses.push((await find<Address>(bootstrap, `address-${other}`)) ?? null);
    }
    checkReach(kind, agent.address, addresses);
    inline = await agent.serve(addresses);
  }
  // Behind this barrier, every agent serves.
  await bootstrap.barrier();
  const memory = memoryOf(mapped);
  const stop = await watching;
  const hide = own === undefined ? () => {} : await showNode(own.mapped, place, all, linked?.program);
  // A linked task may be on another thread than this code.
  const forget = isLinked ? () => {} : recordErrors(memory, mapped.job, rank);
  const start: TaskBootstrap = {
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    memory: mapped.shared,
    room: undefined,
    why: "",
    job: mapped.job,
    module: undefined,
    task: rank - first,
    started: world,
    kernel,
    args: undefined,
    rank: later.rank,
    debug: undefined,
    lock: "",
    futex: mapped.futex,
  };
  const onLeave = (): void | Promise<void> => {
    const end = (): void => {
      stop?.();
      hide();
    };
    forget();
    const ended = agent?.outlive().then(end);
    if (agent === undefined) end();
    // An agent with a thread of its own also serves other tasks, and the exit of this process awaits that agent.
    return inline && ended;
  };
  // A program that has nothing more to do ends here as elsewhere, also if it has not closed its client.
  const onClient = (client: { close(): void }): void => {
    if (agent !== undefined) process.once("beforeExit", () => client.close());
  };
  const look = inline === undefined ? lookAtSlotsAndRing : lookAtSlots;
  return { start, memory, lookAtSlots: isLinkedTo ? look : undefined, onLeave, onClient, agent, inline };
}

/** Exchanges introductions. @returns those of the tasks with which the job begins @throws PAMIR_VERSION */
async function introduce(
  bootstrap: Bootstrap,
  linked: LinkedNode | undefined,
  world: number,
  kinds: LinkKinds,
): Promise<Introduction[]> {
  const { rank } = bootstrap;
  const options = linked?.options ?? joinOptions(kinds);
  const own: Introduction = {
    ...(linked === undefined ? sharing(options, rank >= world ? 1 : bootstrap.localSize) : { host: "", why: "" }),
    machine: machineIdentity(),
    network: networkIdentity(),
    pid: process.pid,
    started: startTimeOf(process.pid),
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    random: randomWords()(),
    options,
    isVisible: (linked === undefined ? visibleProgram() : linked.program) !== undefined,
  };
  await put(bootstrap, `task-${rank}`, own);
  await bootstrap.barrier();
  const all: Introduction[] = [];
  for (let task = 0; task < world; task++) all.push(await get<Introduction>(bootstrap, `task-${task}`));
  for (const [task, { version, layoutHash }] of all.entries()) {
    if (layoutHash === LAYOUT_HASH) continue;
    const text = `task ${task} has pamir ${version} (layout ${layoutHash}), this one ${VERSION} (layout ${LAYOUT_HASH})`;
    throw new PamiError("PAMIR_VERSION", `${text}: use one copy`);
  }
  return all;
}

/**
 * Names the processes that are to share memory with this process, and tries to share it. PAMIR_NODE divides the processes of a
 * host.
 * @param localSize processes on this host; undefined: the launcher does not say
 */
function sharing(options: ProcessJoinOptions, localSize: number | undefined): Pick<Introduction, "host" | "why"> {
  const identity = hostIdentity();
  // Processes of several nodes may have more endpoints than one memory.
  const { contexts } = checkLimits(options, 1);
  const tasks = localSize !== undefined && localSize * contexts <= ENDPOINT_COUNT_MAX ? localSize : 1;
  // A process alone on its node skips the attempt, for whose memory V8 reserves 10 GiB of addresses.
  const why = localSize === 1 ? undefined : whyNoProcesses(leastBytes(options, tasks))?.message;
  const { hostname } = nodeModule("os") as typeof import("node:os");
  return {
    host: `${identity === "" ? hostname() : identity} ${environment("PAMIR_NODE") ?? ""}`,
    why: why ?? (identity === "" ? noProcesses("/proc does not name this system and its processes").message : ""),
  };
}

/** The tasks of each host, if there are several that are to share memory. */
function hostsOf(all: readonly Introduction[]): number[][] {
  const hosts = new Map<string, number[]>();
  for (const [task, { host }] of all.entries()) if (host !== "") hosts.set(host, [...(hosts.get(host) ?? []), task]);
  return [...hosts.values()].filter((tasks) => tasks.length > 1);
}

const WHY_INLINE = 'agent of PAMIR_OPTIONS is "inline", so that each process is a node of its own';

/**
 * Notes whether the processes of this host share memory. For the job, the first process that does not share memory gives the
 * reason.
 */
function noteSharing(all: readonly Introduction[], rank: number, perNode: number): void {
  if (all[0]?.options.agent === "inline") {
    noteProcesses(WHY_INLINE);
    return;
  }
  let hasWarned = false;
  for (const tasks of hostsOf(all)) {
    const unable = tasks.find((task) => all[task]?.why !== "");
    const parts = `${ranksText(runsOf(tasks))} of one host are nodes of ${perNode}, which share no memory`;
    const uneven = tasks.length > perNode ? `${parts}: nodes have equally many tasks, with numbers in a row` : "";
    const why = unable === undefined ? uneven : (all[unable] as Introduction).why;
    if (tasks.includes(rank)) noteProcesses(why);
    if (why === "") continue;
    if (!hasWarned && (unable ?? tasks[0]) === rank)
      process.emitWarning(`${why}; a link joins them instead`, { code: "PAMIR_LINK" });
    hasWarned = true;
  }
}

/**
 * Divides the processes among nodes of equal size, each with consecutive ranks. The size divides the length of every row of
 * processes that can share memory. A process that comes later is a node of its own, as is a process whose task has the agent.
 */
function placeOf(all: readonly Introduction[], rank: number): NodePlace {
  const isInline = all[0]?.options.agent === "inline";
  const runs: number[] = [];
  let last = "";
  for (const [task, { host, why }] of all.entries()) {
    const name = isInline || host === "" || why !== "" ? `alone ${task}` : host;
    if (name === last) (runs[runs.length - 1] as number)++;
    else runs.push(1);
    last = name;
  }
  const perNode = runs.reduce(greatestDivisor);
  const nodes = all.length / perNode;
  if (rank >= all.length) return { node: nodes + rank - all.length, nodes, perNode, locals: 1, first: rank };
  const node = Math.floor(rank / perNode);
  return { node, nodes, perNode, locals: perNode, first: node * perNode };
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** In the first process of a node: makes its memory. @param isWasm whether wasm kernels may run in it */
function makeMemory(
  { nodes, locals, first }: NodePlace,
  { world, most }: Later,
  options: ProcessJoinOptions,
  isWasm: boolean,
): { mapped: JoinedMemory; offer: Offer | undefined } {
  const memories = locals > 1 ? new ProcessMemories() : undefined;
  const own = checkLimits(options, locals);
  const isAlone = nodes === 1 && most === world;
  const limits = isAlone ? own : nodeLimits({ ...own, tasks: most, jobTasks: most }, locals);
  const { map, memory, shared } = makeJobMemory(
    { limits, isFixed: options.heapBytes !== undefined, base: 0, first },
    isWasm,
    memories?.make,
  );
  const sync = sharedAtomics(memory);
  sync.storeWord(map.job + JOB_STARTED_OFFSET, Math.max(world, first + 1));
  sync.storeWord(map.job + JOB_WORLD_OFFSET, world);
  const { job } = map;
  const mapped = { shared, futex: memories?.futex, job };
  const offer = memories?.setup && { descriptor: memories.setup.descriptor, bytes: memories.setup.bytes, job };
  return { mapped, offer };
}

/** In the other processes of a node: maps its memory. */
async function openOffered(bootstrap: Bootstrap, { pid }: Introduction, node: number): Promise<JoinedMemory> {
  const { descriptor: theirs, bytes, job } = await get<Offer>(bootstrap, `memory-${node}`);
  // Not by node:fs, for which node --permission takes --allow-fs-write.
  const descriptor = openFfi(findFfi()).open(`/proc/${pid}/fd/${theirs}`);
  if (descriptor < 0) throw noProcesses(`descriptor ${theirs} of process ${pid} can't be opened`);
  try {
    return { ...mapProcessMemory({ descriptor, bytes, ffi: findFfi() }, job), job };
  } finally {
    fs().closeSync(descriptor);
  }
}

/** The setup of this process's node. @throws PAMIR_INVAL, PAMIR_ADDRESS */
function nodeSetup(
  mapped: JoinedMemory,
  { node, nodes, perNode }: NodePlace,
  all: readonly Introduction[],
  kernel: KernelName,
  key: Uint8Array | undefined,
  { world, most, ended = [], gone = [], news }: Later,
  isLinked: boolean,
  { kind, module }: { readonly kind: LinkKind; readonly module: string | undefined },
): ProcessNodeSetup {
  const { options } = all[0] as Introduction;
  const { silence, packetBytes, impairments } = options;
  const port = portOf(options, node);
  const host = isLinked ? "127.0.0.1" : bindHost(all);
  return {
    ...mapped,
    kernel,
    node,
    nodes,
    tasksPerNode: perNode,
    later: most - world,
    ended,
    gone,
    processes: all.map(({ host, pid, started }) => (isOfThisHost(host) ? { pid, started } : null)),
    news,
    isTold: isLinked || news !== undefined,
    fingerprint: (all[0] as Introduction).random,
    key,
    // Where koffi does not work, a link joins the processes of one program.
    koffi: isLinked ? undefined : findPackage("koffi"),
    silence: silence ?? SILENCE_DEFAULT_MS,
    link: kind.name,
    linkModule: module,
    bind: kind.bind({ host, port, node }),
    packages: packagesOf(kind),
    packetBytes,
    impairments,
    leaveMs: LEAVE_MS,
  };
}

/** Whether this process sees the number of a process with this introduction. */
function isOfThisHost(host: string): boolean {
  const identity = hostIdentity();
  return identity !== "" && host.startsWith(`${identity} `);
}

/**
 * The address of this machine to which other nodes send. PAMIR_BIND_HOST, or loopback if all nodes are on this machine, or the
 * first other address. Each container of a machine has its own loopback.
 */
function bindHost(all: readonly Introduction[]): string {
  const given = environment("PAMIR_BIND_HOST");
  const [machine, network] = [machineIdentity(), networkIdentity()];
  const isHere = (one: Introduction): boolean => one.machine === machine && one.network === network;
  if (given === undefined && machine !== "" && all.every(isHere)) return "127.0.0.1";
  const { networkInterfaces } = nodeModule("os") as typeof import("node:os");
  return ownAddress(given, () => Object.values(networkInterfaces()));
}

/** Checks that packets can travel between the links of these addresses. @throws PAMIR_ADDRESS */
function checkReach(kind: LinkKind, own: Address, addresses: readonly (Address | null)[]): void {
  for (const other of addresses) {
    const why = other === null ? undefined : kind.whyUnreachable?.(own, other);
    if (why !== undefined)
      throw new PamiError("PAMIR_ADDRESS", `this node is at ${own}, another one at ${other}: ${why}`);
  }
}

/** Lets `pamir top` see a node, if the job has opted in. Returns a function that ends this. */
async function showNode(
  { shared, job }: JoinedMemory,
  { node, nodes, perNode, locals, first }: NodePlace,
  all: readonly Introduction[],
  program: readonly string[] = process.argv,
): Promise<() => void> {
  const { random, isVisible } = all[0] as Introduction;
  if (!isVisible) return () => {};
  const { topSource } = await import("../../generated/top.js");
  const own = machineIdentity();
  const place: VisiblePlace = {
    job: random,
    // A later node's number is the number of its task.
    node: node < nodes ? node : first,
    tasksPerNode: locals,
    parent: process.ppid,
    nodes: Array.from({ length: nodes }, (_, other) => {
      const { pid, machine } = all[other * perNode] as Introduction;
      return { pid, isHere: machine === own };
    }),
  };
  const workerData: NodeTopSetup = { shared, job, program, place };
  const worker = startWorker(topSource, { workerData, name: "pamir top" });
  worker.on("error", ({ message }) => process.emitWarning(`pamir: top can't see node ${node}: ${message}`));
  // A worker begins only while its parent's event loop turns, and a task may block from here on.
  await new Promise((resolve) => worker.once("online", resolve).once("exit", resolve));
  worker.unref();
  return () => worker.postMessage("end");
}

/** Loaded on demand: a node whose agent has a thread of its own does not need this module here. */
async function openInline(setup: ProcessNodeSetup): Promise<StartedAgent> {
  return (await import("../node/inline-agent.js")).openInlineAgent(setup);
}

const fs = (): typeof import("node:fs") => nodeModule("fs") as typeof import("node:fs");

function put(bootstrap: Bootstrap, key: string, value: object | string): Promise<void> {
  return bootstrap.put(key, encodeText(JSON.stringify(value)));
}

async function get<Value>(bootstrap: Bootstrap, key: string): Promise<Value> {
  const value = await find<Value>(bootstrap, key);
  if (value === undefined) throw new PamiError("PAMIR_BOOTSTRAP", `a process of the job has not stored ${key}`);
  return value;
}

/** A value, if it is stored already. */
async function find<Value>(bootstrap: Bootstrap, key: string): Promise<Value | undefined> {
  const bytes = await bootstrap.get(key);
  return bytes && (JSON.parse(decodeText(bytes)) as Value);
}

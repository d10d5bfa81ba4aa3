// The one way by which a process joins a job: introduce itself, find its place, make or open the node's memory, start the
// node's agent, meet the other processes. Barriers of the bootstrap lie between the steps. The launcher decides how the
// bootstrap reaches other processes.

import { LAYOUT_HASH } from "../../../assembly/layout-hash.js";
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import { LATER_BEGUN, type Later } from "../../bootstrap/later.js";
import { PamiError } from "../../core/error.js";
import type { KernelName } from "../../core/kernel-name.js";
import { VERSION } from "../../generated/version.js";
import type { Memory } from "../../kernel/kernel.js";
import { wasmAllowed } from "../../kernel/open.js";
import type { LinkKind } from "../../link/kind.js";
import type { Address } from "../../link/link.js";
import { linkKindOf, linkKinds, linkModule, packagesOf } from "../../link/registry.js";
import type { OnLeave } from "../../pami/client.js";
import { machineIdentity, networkIdentity } from "../../process/identity.js";
import { lookAtSlotsAndRing } from "../../protocol/slot-bell.js";
import { type LookAtSlots, lookAtSlots } from "../../protocol/slots.js";
import { environment, nodeModule } from "../../support/host.js";
import { findPackage } from "../../support/node/packages.js";
import type { LimitOptions } from "../limits.js";
import type { ProcessNodeSetup } from "../node/process-node.js";
import { ACKNOWLEDGE_MS, type InlineParts, memoryOf, type StartedAgent, startAgent } from "../node/started-agent.js";
import { recordErrors } from "../process/record-errors.js";
import { startWatch } from "../process/start-watch.js";
import type { StartMessage } from "../start-message.js";
import { type Introduction, introduce, isOfThisHost, noteSharing } from "./introduce.js";
import { kernelOf, type ProcessJoinOptions, portOf, SILENCE_DEFAULT_MS } from "./join-options.js";
import { closeOffer, type JoinedMemory, type MadeMemory, makeMemory, openOffered } from "./node-memory.js";
import { ownAddress } from "./own-address.js";
import { type NodePlace, placeOf } from "./place.js";
import { showNode } from "./show-node.js";
import { reportOf, reportTo } from "./start-report.js";
import { takeSeat } from "./steward-seat.js";
import { find, get, put } from "./values.js";

/** The parts for a task in this process. */
export interface Joined {
  readonly start: StartMessage;
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
  /** Options of all nodes, which also size the trace; of a link that launch() names, the paths of the packages that it needs. */
  readonly options: ProcessJoinOptions &
    Pick<LimitOptions, "trace"> & { readonly packages?: Readonly<Record<string, string>> | undefined };
  /** The node's memory, if it is made already. */
  readonly mapped?: JoinedMemory | undefined;
  /** The launching program's command line, if `pamir top` may see the job. */
  readonly program: readonly string[] | undefined;
}

/** The data of a process that joins: the bootstrap to other processes, and the launcher's data. */
interface Joining {
  readonly bootstrap: Bootstrap;
  readonly key: Uint8Array | undefined;
  readonly linked: LinkedNode | undefined;
  readonly later: Later;
  /** Takes a function that ends a part which has begun. */
  readonly onFailure: (end: () => unknown) => void;
}

/** The data of a process once all processes have introduced themselves. */
interface Plan extends Joining {
  /** Of the tasks with which the job begins. */
  readonly all: readonly Introduction[];
  readonly place: NodePlace;
  /** The options of rank 0, which hold for the job. */
  readonly options: ProcessJoinOptions;
  readonly kernel: KernelName;
  readonly kind: LinkKind;
  /** The user's module of links. */
  readonly module: string | undefined;
  /** Whether other nodes are there, or come later. */
  readonly isLinkedTo: boolean;
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
    const onFailure = (end: () => unknown): void => void ends.push(end);
    return await join(await planOf({ bootstrap, key, linked, later, onFailure }));
  } catch (error) {
    // The parts that have begun would keep this process running.
    for (const end of ends) await end();
    throw error;
  }
}

/** Exchanges introductions, and finds this process's place. */
async function planOf(joining: Joining): Promise<Plan> {
  const { bootstrap, linked, later } = joining;
  // A job of launch() that names no link has nothing to do with the module.
  const module = linked === undefined || linked.options.link !== undefined ? linkModule() : undefined;
  const kinds = await linkKinds(module);
  const all = await introduce(bootstrap, linked, later.world, kinds);
  const place = placeOf(all, bootstrap.rank);
  noteSharing(all, bootstrap.rank, place.perNode);
  const { options } = all[0] as Introduction;
  const isLinkedTo = place.nodes > 1 || later.most > later.world;
  const kind = linkKindOf(kinds, options.link);
  return { ...joining, all, place, options, kernel: kernelOf(options), kind, module, isLinkedTo };
}

async function join(plan: Plan): Promise<Joined> {
  const { bootstrap, all, place, linked } = plan;
  const own = bootstrap.rank === place.first ? await offerMemory(plan) : undefined;
  const agent = own !== undefined && plan.isLinkedTo ? await openAgent(plan, own.mapped) : undefined;
  // From here on each memory is offered, and each agent has its address.
  await bootstrap.barrier();
  const mapped = own?.mapped ?? (await openOffered(bootstrap, all[place.first] as Introduction, place.node));
  const watching = watchSiblings(plan, mapped);
  // Each process of a node has the memory.
  await bootstrap.barrier();
  closeOffer(own);
  const addresses = agent && (await addressesFor(plan, agent.address));
  const report = addresses && reportOf(all, place, addresses);
  // A launcher that has asked for it answers later nodes.
  if (report !== undefined && plan.later.report !== undefined) reportTo(plan.later.report, report);
  const inline = agent && (await agent.serve(addresses ?? []));
  // Each agent serves.
  await bootstrap.barrier();
  const memory = memoryOf(mapped);
  const stop = await watching;
  const hide = own === undefined ? () => {} : await showNode(own.mapped, plan, agent);
  const leaveSeat = agent && report && (await takeSeat(bootstrap.stewarded, plan, report, agent));
  // A linked task may be on another thread than this code.
  const forget = linked === undefined ? recordErrors(memory, mapped.job, bootstrap.rank) : () => {};
  const onLeave = (): void | Promise<void> => {
    const end = (): void => {
      stop?.();
      hide();
      leaveSeat?.();
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
  const start = startOf(plan, mapped);
  return { start, memory, lookAtSlots: plan.isLinkedTo ? look : undefined, onLeave, onClient, agent, inline };
}

/** In the first process of a node: makes the node's memory, and offers it to the other processes. */
async function offerMemory(plan: Plan): Promise<MadeMemory> {
  const { bootstrap, linked, place, later, options, kernel, onFailure } = plan;
  if (linked?.mapped !== undefined) return { mapped: linked.mapped, offer: undefined };
  // A linked task may have other kernels than the first task.
  const isWasm = linked === undefined ? kernel === "wasm" : wasmAllowed();
  const made = makeMemory(place, later, options, isWasm);
  onFailure(() => closeOffer(made));
  if (made.offer !== undefined) await put(bootstrap, `memory-${place.node}`, made.offer);
  return made;
}

/** Opens the link of the node's agent, and tells the other nodes its address. */
async function openAgent(plan: Plan, mapped: JoinedMemory): Promise<StartedAgent> {
  const setup = nodeSetup(plan, mapped);
  const agent =
    plan.options.agent === "inline"
      ? // Loaded on demand: a node whose agent has a thread of its own does not need it here.
        await (await import("../node/inline-agent.js")).openInlineAgent(setup)
      : await startAgent(setup);
  plan.onFailure(() => agent.close());
  await put(plan.bootstrap, `address-${plan.place.node}`, agent.address);
  return agent;
}

/** Watches the other processes of this node, because no launcher does. Resolves with a function that ends the watch. */
function watchSiblings(plan: Plan, mapped: JoinedMemory): ReturnType<typeof startWatch> | undefined {
  const { all, place, bootstrap, isLinkedTo } = plan;
  const { first, locals } = place;
  const siblings = all
    .slice(first, first + locals)
    .map(({ pid, started }, task) => ({ tasks: [task], pid, started, hasAgent: isLinkedTo && task === 0 }))
    .filter((_, task) => task !== bootstrap.rank - first);
  const { futex } = mapped;
  if (siblings.length === 0 || futex === undefined) return undefined;
  const shared = mapped.shared as WebAssembly.Memory;
  const watching = startWatch({ ...mapped, futex, shared }, { processes: siblings });
  // The thread is awaited behind a barrier: a failure before that is none that nothing handles.
  const watched = watching.catch(() => {});
  plan.onFailure(async () => (await watched)?.());
  return watching;
}

/** The addresses of the other nodes; null: that node has ended. @throws PAMIR_ADDRESS a node can't be reached */
async function addressesFor(plan: Plan, own: Address): Promise<(Address | null)[]> {
  const { bootstrap, place, later, kind } = plan;
  const { nodes } = place;
  const addresses: (Address | null)[] = [];
  for (let other = 0; other < nodes; other++) addresses.push(await get<Address>(bootstrap, `address-${other}`));
  // Two later nodes may begin at once. Each stores its address, then reads: so the second to store finds the first's.
  const begun = bootstrap.rank < later.world ? 0 : await get<number>(bootstrap, LATER_BEGUN);
  for (let other = nodes; other < nodes + begun; other++) {
    addresses.push((await find<Address>(bootstrap, `address-${other}`)) ?? null);
  }
  for (const other of addresses) {
    const why = other === null ? undefined : kind.whyUnreachable?.(own, other);
    if (why !== undefined)
      throw new PamiError("PAMIR_ADDRESS", `this node is at ${own}, another one at ${other}: ${why}`);
  }
  return addresses;
}

/** The data of this process's task for attach(). */
function startOf({ bootstrap, place, later, kernel }: Plan, { shared, job, futex }: JoinedMemory): StartMessage {
  return {
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    memory: shared,
    room: undefined,
    why: "",
    job,
    module: undefined,
    task: bootstrap.rank - place.first,
    started: later.world,
    kernel,
    args: undefined,
    rank: later.rank,
    debug: undefined,
    lock: "",
    futex,
  };
}

/** The setup of this process's node. @throws PAMIR_INVAL, PAMIR_ADDRESS */
function nodeSetup(plan: Plan, mapped: JoinedMemory): ProcessNodeSetup {
  const { all, place, later, options, kernel, key, kind, module } = plan;
  const { node, nodes, perNode } = place;
  const { world, most, ended = [], gone = [], news } = later;
  const { silence, packetBytes, impairments } = options;
  const isLinked = plan.linked !== undefined;
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
    // The code of a process of launch() has no place from which it could look.
    packages: plan.linked?.options.packages ?? packagesOf(kind),
    packetBytes,
    impairments,
    leaveMs: ACKNOWLEDGE_MS,
  };
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

// The node of a process: its link, its sessions and its agent, from the opening of the link until other nodes have all frames
// that this node has sent. The agent has a thread of its own (link-agent.ts), or works within the waits of the process's task
// (inline-agent.ts).
import { REFUSED_NODE } from "../../../assembly/layout.js";
import type { EndOrder } from "../../bootstrap/later.js";
import { PamiError } from "../../core/error.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { openMemory, type SharedMemory } from "../../kernel/open.js";
import { selectPacketKernel } from "../../kernel/select.js";
import { DelayedLink } from "../../link/delayed-link.js";
import type { HostedOpening, LinkKind, NodeLink } from "../../link/kind.js";
import type { Address, Link } from "../../link/link.js";
import { LossyLink } from "../../link/lossy-link.js";
import { linkKindOf, linkKinds, openNodeLink } from "../../link/registry.js";
import type { MemoryMap } from "../../memory/map.js";
import { interruptTask, markEngineDead } from "../../node/liveness.js";
import type { VisibleWays } from "../../observe/visible.js";
import { byKoffi } from "../../process/ffi.js";
import type { FutexSetup } from "../../process/futex.js";
import { hasEnded, type ProcessIdentity } from "../../process/identity.js";
import { opensslKeyScheduleOf } from "../../seal/openssl.js";
import { BuddyArena } from "../../session/store/buddy-arena.js";
import { systemClock } from "../../support/clock.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import type { CLibrary } from "../../support/node/foreign.js";
import { printable } from "../../support/printable.js";
import { seededWords } from "../../support/randomness.js";
import { after } from "../../support/timers.js";
import type { Agent } from "../../transport/net/agent.js";
import type { SeededImpairments } from "../join/join-options.js";
import { LinkHost } from "./link-host.js";
import { LinkNode } from "./link-node.js";
import { answerBy, waysOf } from "./node-ways.js";

/** The setup of a process's node. */
export interface ProcessNodeSetup {
  readonly shared: SharedMemory;
  readonly futex: FutexSetup | undefined;
  /** Pointer to the job header. */
  readonly job: number;
  readonly kernel: "wasm" | "ts";
  readonly node: number;
  /** Nodes with which the job begins, and tasks of each. */
  readonly nodes: number;
  readonly tasksPerNode: number;
  /** Tasks that may come later, each in a node of its own. */
  readonly later: number;
  /** If this node comes later: nodes that have ended, and tasks that have done so for certain. */
  readonly ended: readonly number[];
  readonly gone: readonly number[];
  /** By task: its process, if the process is on this host. */
  readonly processes: readonly (ProcessIdentity | null)[];
  /** A descriptor from which the node reads orders, each as a line of JSON; undefined: there is none. */
  readonly news: number | undefined;
  /** Whether orders, from there or by obey(), tell of the end of each process, sooner or later. */
  readonly isTold: boolean;
  /** The job's fingerprint. */
  readonly fingerprint: number;
  /** The job key; undefined: packets are not sealed. */
  readonly key: Uint8Array | undefined;
  /** Path of koffi, to seal and send with less processor time; undefined: it is not installed. */
  readonly koffi: string | undefined;
  /** Milliseconds without an answer after which a node is given up. */
  readonly silence: number;
  /** The kind of the node's link. For a kind of the user's own, also the path of its module. */
  readonly link: string;
  readonly linkModule: string | undefined;
  /** The options with which the kind opens the link. */
  readonly bind: string;
  /** By name: paths of the packages that the kind needs. */
  readonly packages: Readonly<Record<string, string>>;
  /** Bytes of the link's largest packet; undefined: the default. */
  readonly packetBytes: number | undefined;
  /** Injected faults of the link. */
  readonly impairments: SeededImpairments | undefined;
  /** Milliseconds, once all tasks have left, for which the node waits for the last acknowledgments at the most. */
  readonly leaveMs: number;
}

/** To a node that serves. */
export type ProcessNodeOrder =
  | EndOrder
  /** The port brings further orders: the thread that has started this thread may block. */
  | { readonly news: NodePort }
  /** By this port `pamir top` asks how the node's packets go. */
  | { readonly asked: NodePort };

/** Bytes of the memory for packets and streams. */
const ARENA_BYTES = 2 ** 24;
const WASM_PAGE = 65536;
/** Milliseconds between two looks whether nodes that do not acknowledge the last frames are still there. */
const LOOK_MS = 100;
/**
 * Unanswered attempts in a row before the node looks for the socket of another node, and looks in a row that find no socket
 * before that node is lost.
 */
const UNANSWERED_MIN = 3;
const GONE_MIN = 2;

export class ProcessNode {
  readonly agent: Agent;
  readonly #setup: ProcessNodeSetup;
  readonly #node: LinkNode;
  readonly #host: LinkHost;
  readonly #opened: OpenedLink;
  /** Nodes that have ended. */
  readonly #lost: Set<number>;
  readonly #markEnded: () => void;
  #closeNews = (): void => {};
  /** Counts the attempts in a row at which another node's socket was gone. */
  readonly #gone = new Map<number, number>();

  /**
   * @param opened of openLink()
   * @param addresses of the other nodes. A later node whose address is absent connects to this node
   * @param isInline whether the agent works in each advance() of the node's task, or has a thread of its own
   * @throws PAMIR_MEMORY
   */
  constructor(
    setup: ProcessNodeSetup,
    opened: OpenedLink,
    addresses: readonly (Address | null)[],
    { kernel, memory, map }: { readonly kernel: Kernel; readonly memory: Memory; readonly map: MemoryMap },
    isInline: boolean,
  ) {
    const { node, nodes, tasksPerNode, later, ended, gone, fingerprint, key, koffi, silence } = setup;
    this.#setup = setup;
    const { link } = opened;
    this.#opened = opened;
    this.#lost = new Set(ended);
    // Packets of strangers never come into the node's memory.
    const pages = ARENA_BYTES / WASM_PAGE + 1;
    const own = packetMemory(pages, setup);
    const ownMemory = openMemory(own);
    this.#host = new LinkHost((other, why, refused) => {
      this.#lost.add(other);
      if (why === "refused") warn(refusalText(node, other, refused, addresses));
      if (why !== "givenUp") return;
      const text = `node ${node} was given up by node ${other}, which it did not answer for ${silence} ms`;
      // The task of this process may block, and would then not hear of the error.
      interruptTask(kernel, map, 0);
      queueMicrotask(() => {
        throw new PamiError("PAMIR_GIVEN_UP", text);
      });
    }, !isInline);
    this.#node = new LinkNode(
      {
        kernel,
        memory,
        map,
        packets: {
          kernel: selectPacketKernel(setup.kernel, own, ownMemory),
          memory: ownMemory,
          arena: new BuddyArena(WASM_PAGE, ARENA_BYTES),
        },
        link: impaired(link, setup),
        node,
        nodes: nodes + later,
        tasksPerNode,
        world: nodes * tasksPerNode,
        epoch: 1,
        job: fingerprint,
        keySchedule: key && opensslKeyScheduleOf(key, fingerprint, libraryOf(koffi)),
        addressOf: (other) => addresses[other] ?? (other < nodes || other >= nodes + later ? "" : undefined),
        isInline,
        silence: 1000 * silence,
      },
      this.#host,
    );
    link.onUnsent = (to, code) => {
      const other = addresses.indexOf(to);
      warn(unsentText(node, other < 0 ? "a node" : `node ${other}`, to, code, silence));
    };
    this.agent = this.#node.agent;
    this.agent.isTold = setup.isTold;
    this.#host.watchStops(Math.min(silence / 4, LOOK_MS));
    this.#host.hasProcessEnded = (task) => {
      const one = setup.processes[task];
      // While this node was stopped for longer than the silence, other nodes may have given it up, gone on without it, and
      // finished.
      return one != null && hasEnded(one) && this.#host.longestStop() < silence;
    };
    this.#host.onUnanswered = (other, attempts) => void this.#look(other, attempts);
    this.#markEnded = () => markEngineDead(sharedAtomics(memory), map);
    for (const task of gone) this.#node.confirm(task);
    for (const other of ended) this.#node.lose(other);
    if (node >= nodes) this.#greetAll(addresses);
    if (setup.news !== undefined) this.#closeNews = hear(setup.news, this.obey);
  }

  readonly obey = (order: ProcessNodeOrder): void => {
    if ("lost" in order) this.#node.lose(order.lost);
    else if ("gone" in order) this.#node.confirm(order.gone);
    else if ("news" in order) {
      order.news.on("message", this.obey);
      order.news.unref();
    } else answerBy(order.asked, () => this.#ways());
  };

  #ways(): VisibleWays {
    const { node, nodes, later } = this.#setup;
    const others = { own: node, begun: nodes, most: nodes + later, lost: this.#lost };
    return waysOf(this.#opened, this.#node.sessions, others);
  }

  /**
   * All tasks of the node have left. Resolves once other nodes have all frames of this node, or are gone, or after `leaveMs`.
   * The node and its link are closed then.
   */
  async leave(): Promise<void> {
    await this.#settle();
    this.#closeNews();
    this.#node.close();
    this.#host.close();
    this.#markEnded();
  }

  /** This node comes later: the nodes that still run learn of it. */
  #greetAll(addresses: readonly (Address | null)[]): void {
    for (const [other, address] of addresses.entries()) {
      if (address !== null && other !== this.#setup.node && !this.#setup.ended.includes(other)) this.#node.greet(other);
    }
  }

  /** A node has not answered. If its socket was on this machine, and is gone at several attempts in a row, the node is lost. */
  async #look(other: number, attempts: number): Promise<void> {
    const address = this.#node.sessions.addressOf(other);
    if (attempts < UNANSWERED_MIN || address === "") return;
    const count = (await this.#opened.kind.isAbsent?.(address, "here")) === true ? (this.#gone.get(other) ?? 0) + 1 : 0;
    this.#gone.set(other, count);
    if (count === GONE_MIN) this.#node.lose(other);
  }

  /** Resolves once the node has settled, or after `leaveMs`. */
  async #settle(): Promise<void> {
    const { sessions } = this.#node;
    const isAbsent = async (other: number): Promise<boolean> =>
      (await this.#opened.kind.isAbsent?.(sessions.addressOf(other), "anywhere")) === true;
    /** Nodes that were absent at the last look. */
    let absent = new Set<number>();
    let cancel = (): void => {};
    const look = async (): Promise<void> => {
      const found = new Set<number>();
      for (const other of sessions.unacknowledged) if (await isAbsent(other)) found.add(other);
      // One look may be wrong: a node that still runs acknowledges a packet before the next look.
      for (const other of found) if (absent.has(other) && sessions.unacknowledged.has(other)) this.#node.abandon(other);
      absent = found;
      if (!isOver) cancel = after(LOOK_MS, look);
    };
    let isOver = false;
    await new Promise<void>((resolve) => {
      cancel = after(LOOK_MS, look);
      const cancelAll = after(this.#setup.leaveMs, resolve);
      this.#node.settle(() => {
        cancelAll();
        resolve();
      });
    });
    isOver = true;
    cancel();
  }
}

/** The link of a node, and its kind. */
export interface OpenedLink {
  readonly link: NodeLink;
  readonly kind: LinkKind;
}

/**
 * Opens the link of a node. @param isNode whether an address belongs to a node of the job, once the nodes' addresses are known
 */
export async function openLink(
  { bind, link: name, linkModule, packages, packetBytes, koffi }: ProcessNodeSetup,
  isNode: (address: Address) => boolean,
): Promise<OpenedLink> {
  const kind = linkKindOf(await linkKinds(linkModule), name);
  const opening: HostedOpening = { packetBytes, packages, isNode, library: () => libraryOf(koffi), warn };
  return { link: await openNodeLink(kind, bind, opening), kind };
}

/** Makes foreign calls; undefined: koffi is not installed, or can't be loaded, as with `node --permission`. */
function libraryOf(koffi: string | undefined): CLibrary | undefined {
  if (koffi === undefined) return undefined;
  try {
    return byKoffi(koffi);
  } catch {
    return undefined;
  }
}

/** Why another node refuses this node. @param addresses as the nodes have stated them */
function refusalText(node: number, other: number, refused: number, addresses: readonly (Address | null)[]): string {
  const [at, reason] =
    refused === REFUSED_NODE
      ? [`at ${addresses[other]}`, `that is not node ${other}, but another node of this job`]
      : [
          `by node ${other}`,
          `its packets do not come from ${addresses[node]}, the address that it has stated, as behind NAT; or another process is node ${node}`,
        ];
  return `node ${node} is refused ${at} (PAMIR_REFUSED): ${reason}; for node ${node}, the tasks of node ${other} have ended`;
}

const UNSENT: Readonly<Record<string, string>> = {
  ENETUNREACH: "no route leads there",
  EHOSTUNREACH: "no route leads to that host",
  ENETDOWN: "the network is down",
  EHOSTDOWN: "that host is down",
  EPERM: "a firewall of this host forbids it",
  EACCES: "this host forbids it",
  EADDRNOTAVAIL: "the node's own address is not there any more",
  EINVAL: "the node's own address is one of loopback, from which no other host can be reached",
};

function unsentText(node: number, other: string, to: Address, code: string, silence: number): string {
  const why = UNSENT[code] === undefined ? code : `${code}: ${UNSENT[code]}`;
  return `node ${node} can't send to ${other} at ${to} (PAMIR_UNSENT): the system refuses its packets (${why}); unless that changes, its tasks count as ended after ${silence} ms`;
}

/** Not by Node's warnings: the main thread prints an agent's warnings, and may be blocked, or exit first. */
function warn(text: string): void {
  try {
    (nodeModule("fs") as typeof import("node:fs")).writeSync(2, `pamir: ${printable(text, true)}\n`);
  } catch {
    // Nothing reads the standard error.
  }
}

/** The link with the faults of the setup. */
function impaired(link: Link, { impairments, node }: ProcessNodeSetup): Link {
  if (impairments === undefined) return link;
  const { seed = 0, delay = 0, ...faults } = impairments;
  const far = delay > 0 ? new DelayedLink(link, delay, systemClock) : link;
  return new LossyLink(far, faults, seededWords(seed + node));
}

/** @throws PAMIR_MEMORY */
function packetMemory(pages: number, { kernel, node }: ProcessNodeSetup): SharedMemory {
  try {
    if (kernel === "ts") return new SharedArrayBuffer(pages * WASM_PAGE);
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  } catch (cause) {
    const what = `another ${pages * WASM_PAGE} bytes of shared memory, for the packets of node ${node}`;
    const why =
      ': V8 reserves 10 GiB of addresses for each of a node\'s two memories (see ulimit -v): raise it by 10485760, or choose kernel "ts" in PAMIR_OPTIONS';
    throw new PamiError("PAMIR_MEMORY", `this host refuses ${what}${kernel === "ts" ? "" : why}`, { cause });
  }
}

/** Reads orders from a descriptor, without keeping a thread alive. @returns a function that ends the reading */
function hear(descriptor: number, obey: (order: ProcessNodeOrder) => void): () => void {
  const { Socket } = nodeModule("net") as typeof import("node:net");
  const socket = new Socket({ fd: descriptor, readable: true, writable: false });
  let rest = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) obey(JSON.parse(line) as ProcessNodeOrder);
  });
  // The launcher has ended: there are no more orders.
  socket.on("error", () => {});
  socket.unref();
  return () => void socket.destroy();
}

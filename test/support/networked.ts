// Tasks on nodes of a simulated network, all on this thread: each node has a memory, an agent and sessions, each task a client.
// Virtual time goes on in `run()`, and nowhere else. The links and the time may be real instead.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { KernelName } from "../../src/core/kernel-name.js";
import { type Kernel, type Memory, memoryOf } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { wasmKernel } from "../../src/kernel/wasm.js";
import type { Address, Link } from "../../src/link/link.js";
import { type NetworkOptions, SimulatedNetwork } from "../../src/link/simulated-network.js";
import type { Limits, MemoryMap } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import { markDead } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import { nodeKeyScheduleOf } from "../../src/seal/node.js";
import type { Loss, Sessions } from "../../src/session/sessions.js";
import { BuddyArena } from "../../src/session/store/buddy-arena.js";
import { LinkNode, type LinkNodeHost } from "../../src/start/node/link-node.js";
import { makeNodeTask } from "../../src/start/node/private-node.js";
import type { SessionPipe } from "../../src/transport/net/session-pipe.js";
import type { PrivateJob, PrivateTask } from "./ports-job.js";
import { randomOf } from "./random.js";

const JOB = 0x0b5e55ed;
/** Of a node's sessions: queues of gaps, packets behind them. */
const ARENA_BYTES = 4 * 1024 * 1024;

/** Microseconds after which a node is given up: shorter than by default. */
const SILENCE = 10_000_000;

/** Of virtual time, in each turn. */
const TURN_MICROSECONDS = 1000;

/** One task, and its node, which other tasks may have too. */
export interface Networked extends PrivateTask {
  readonly node: LinkNode;
  readonly sessions: Sessions;
  readonly frames: SessionPipe;
  readonly arena: BuddyArena;
  readonly memory: Memory;
  readonly kernel: Kernel;
  /** Its end was without a word, or its node is down: frozen or killed, so that what comes is lost. */
  readonly isDown: boolean;
  /** Ends it, and leaves its node to the others. */
  readonly die: () => void;
}

/** A kernel that its task loses with its end: what of the task's code is still to run here reaches no memory by it. */
function mortal(kernel: Kernel): { readonly kernel: Kernel; readonly die: () => void } {
  let isDead = false;
  const calls = new Map<string | symbol, unknown>();
  const get = (target: Kernel, name: string | symbol): unknown => {
    const found = calls.get(name);
    if (found !== undefined) return found;
    const value = target[name as keyof Kernel] as unknown;
    const call = (...given: unknown[]): unknown => {
      // The agent may ring before it has seen the end.
      if (isDead && name !== "ring") throw new Error(`${String(name)}() of a task that has died`);
      return (value as (...all: unknown[]) => unknown).apply(target, given);
    };
    const made = typeof value === "function" ? call : value;
    calls.set(name, made);
    return made;
  };
  const die = (): void => {
    isDead = true;
  };
  return { kernel: new Proxy(kernel, { get }), die };
}

/** What a node has besides its tasks. */
interface Node {
  readonly node: LinkNode;
  readonly map: MemoryMap;
  readonly memory: Memory;
  readonly kernel: Kernel;
  readonly arena: BuddyArena;
}

/** Links that are real, and their time: turns of the event loop bring packets. */
export interface Wire {
  /** By node, like the others. */
  readonly links: readonly Link[];
  /** By node; undefined: the node is mobile. */
  readonly addresses: readonly (Address | undefined)[];
  readonly hosts: readonly LinkNodeHost[];
}

export interface NetworkedOptions extends Omit<NetworkOptions, "random" | "nodes"> {
  readonly seed: number;
  /** Instead of the simulated network. */
  readonly wire?: Wire | undefined;
  /** Of the job: `tasks` are all of its tasks, or with `only` those that exist; numbers are below `jobTasks`. */
  readonly limits: Limits;
  /** Tasks of each node (default 1). */
  readonly tasksPerNode?: number;
  /** Tasks in such nodes (default: all). Each later one is a node of its own. */
  readonly world?: number;
  /** Numbers of the nodes that are made (default: all). */
  readonly only?: readonly number[];
  /** Slots of a node for tasks of others (default: for all of them). */
  readonly peers?: number;
  readonly kernels: readonly KernelName[];
  readonly isFaithful?: boolean;
  /** Of the job; undefined: packets are not sealed. */
  readonly key?: Uint8Array | undefined;
  readonly initiators?: number;
  readonly responders?: number;
  readonly txQueueBytes?: number;
  /** Microseconds without an answer after which a node is given up (default SILENCE). */
  readonly silence?: number;
  /** `client.args` of every task. */
  readonly args?: unknown;
  /** Called when a task has closed its client. */
  readonly onLeave?: (task: number) => void;
}

export class NetworkedJob implements PrivateJob {
  readonly network: SimulatedNetwork;
  readonly tasks: Networked[] = [];
  /** [who says so, whom it has lost, why] */
  readonly lost: [number, number, Loss][] = [];
  /** Bytes of each arena that its sessions have for ever. */
  readonly arenaBytes: number;
  readonly #isReal: boolean;

  constructor(options: NetworkedOptions) {
    const { limits, seed, tasksPerNode = 1 } = options;
    this.#isReal = options.wire !== undefined;
    const random = randomOf(seed);
    const { jobTasks = limits.tasks } = limits;
    const { world = jobTasks } = options;
    const nodes = Math.ceil(world / tasksPerNode) + jobTasks - world;
    this.network = new SimulatedNetwork({ ...options, nodes, random: () => random(2 ** 32) });
    for (const number of options.only ?? Array.from({ length: nodes }, (_, i) => i)) {
      const node = this.#makeNode(number, nodes, options, () => random(2 ** 32));
      for (let slot = 0; slot < node.map.locals; slot++) this.tasks.push(this.#makeTask(node, slot, options));
    }
    this.arenaBytes = this.tasks[0]?.arena.used ?? 0;
  }

  #makeNode(number: number, nodes: number, options: NetworkedOptions, random: () => number): Node {
    const { limits, kernels, isFaithful, key, wire, tasksPerNode = 1, world } = options;
    const name = kernels[number % kernels.length] as KernelName;
    const isLater = world !== undefined && number * tasksPerNode >= world;
    const first = isLater ? world + number - Math.ceil(world / tasksPerNode) : number * tasksPerNode;
    const locals = isLater ? 1 : Math.min(tasksPerNode, (world ?? limits.jobTasks ?? limits.tasks) - first);
    const ownLimits = nodeLimits(limits, locals, options.peers ?? limits.tasks - locals);
    const request = { limits: ownLimits, isFixed: true, base: 0, first };
    const { map, shared, memory } = makeJobMemory(request, name === "wasm");
    const kernel = selectKernel(name, shared, memory);
    // Packets of strangers never come into the memory of the node.
    const pages = ARENA_BYTES / 65536 + 1;
    const own = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const ownMemory: Memory = memoryOf(own.buffer as unknown as SharedArrayBuffer);
    const arena = new BuddyArena(65536, ARENA_BYTES);
    const packetKernel = name === "wasm" ? wasmKernel(own) : twinPacketKernel(ownMemory);
    const node = new LinkNode(
      {
        kernel,
        memory,
        map,
        packets: { kernel: packetKernel, memory: ownMemory, arena },
        link: wire?.links[number] ?? this.network.attach(number, isFaithful),
        node: number,
        epoch: 1,
        nodes,
        tasksPerNode,
        world,
        job: JOB,
        keySchedule: key && (number % 2 === 0 ? keyScheduleOf(key, JOB) : nodeKeyScheduleOf(key, JOB)),
        addressOf: wire === undefined ? String : (other) => (other < nodes ? wire.addresses[other] : ""),
        initiators: options.initiators,
        responders: options.responders,
        txQueueBytes: options.txQueueBytes,
        silence: options.silence ?? SILENCE,
      },
      this.#hostOf(wire?.hosts[number], random, number),
    );
    return { node, map, memory, kernel, arena };
  }

  #hostOf(real: LinkNodeHost | undefined, random: () => number, number: number): LinkNodeHost {
    const { network } = this;
    const host = real ?? { now: () => network.now, at: (time, call) => network.at(time, call), random };
    return {
      now: () => host.now(),
      at: (time, call) => host.at(time, call),
      random: () => host.random(),
      onLost: (lost, why) => this.lost.push([number, lost, why]),
    };
  }

  #makeTask({ node, map, memory, ...made }: Node, slot: number, { args, onLeave }: NetworkedOptions): Networked {
    const { kernel, die } = map.locals === 1 ? { kernel: made.kernel, die: () => {} } : mortal(made.kernel);
    let isDead = false;
    const whyPrivate = "tasks share no memory, and this thread must not block: it carries the network";
    const number = node.agent.addresses.numberOf(slot);
    const parts = { kernel, memory, map, task: slot, args, whyPrivate, onLeave: () => onLeave?.(number) };
    return {
      ...makeNodeTask(parts, node.agent),
      agent: node.agent,
      map,
      node,
      sessions: node.sessions,
      frames: node.pipe,
      arena: made.arena,
      memory,
      kernel: made.kernel,
      free: () => made.kernel.heapFreePages(map.job),
      get isDown() {
        return isDead || node.isDown;
      },
      die: () => {
        isDead = true;
        die();
        markDead(made.kernel, map, slot);
        // The monitor wakes the agent.
        node.agent.posted();
      },
    };
  }

  /**
   * Has the network carry what is under way, for so many virtual microseconds, or until all is quiet. If time is real, it
   * goes on by itself.
   */
  run(microseconds = Number.POSITIVE_INFINITY): void {
    if (this.#isReal) return;
    const until = this.network.now + microseconds;
    // Time goes on, also where nothing happens.
    if (until !== Number.POSITIVE_INFINITY) this.network.at(until, () => {});
    while (this.network.step(until));
  }

  async turn(): Promise<void> {
    await undefined; // what was sent goes out
    if (this.#isReal) await nextTurn();
    else this.run(TURN_MICROSECONDS);
  }

  /** A task ends without a word; the last one of its node that goes on takes that with it. */
  end(task: number): void {
    const ended = this.tasks[task] as Networked;
    const { node } = ended;
    const goesOn = this.tasks.some(
      (other) => other !== ended && other.node === node && !other.isDown && !other.client.closed,
    );
    if (goesOn) ended.die();
    else this.endNode(task);
  }

  /** A task's node is down from now on. */
  endNode(task: number): void {
    (this.tasks[task] as Networked).node.isDown = true;
  }
}

// Tasks on nodes of a simulated network, all on this thread: a memory, a proxy and a client for each, and the sessions that
// their frames go through. Virtual time goes on in `run()`, and nowhere else.
import type { KernelName } from "../../src/core/kernel-name.js";
import { type Kernel, type Memory, memoryOf } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { wasmKernel } from "../../src/kernel/wasm.js";
import { makePrivateNode } from "../../src/launch/private-node.js";
import { type NetworkOptions, SimulatedNetwork } from "../../src/link/simulated-network.js";
import type { Limits } from "../../src/memory/map.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import { BuddyArena } from "../../src/session/buddy-arena.js";
import { Sessions } from "../../src/session/sessions.js";
import { SessionPipe } from "../../src/transport/net/session-pipe.js";
import type { PrivateJob, PrivateTask } from "./ports-job.js";
import { randomOf } from "./random.js";

const JOB = 0x0b5e55ed;
/** Of a node's sessions: queues of gaps, packets behind them. */
const ARENA_BYTES = 4 * 1024 * 1024;

/** Of virtual time, in each turn. */
const TURN_MICROSECONDS = 1000;

/** One task, on a node of its own. */
export interface Networked extends PrivateTask {
  readonly sessions: Sessions;
  readonly frames: SessionPipe;
  readonly arena: BuddyArena;
  readonly memory: Memory;
  /** The kernels without the proxy. */
  readonly inner: Kernel;
  /** Frozen, or killed: it does nothing, and what comes is lost. */
  isDown: boolean;
}

export interface NetworkedOptions extends Omit<NetworkOptions, "random" | "nodes"> {
  readonly seed: number;
  readonly limits: Limits;
  readonly kernels: readonly KernelName[];
  readonly isFaithful?: boolean;
  /** Of the job; undefined: packets are not sealed. */
  readonly key?: Uint8Array | undefined;
  readonly initiators?: number;
  readonly responders?: number;
  readonly txQueueBytes?: number;
  /** `client.args` of every task. */
  readonly args?: unknown;
  /** Called when a task has closed its client. */
  readonly onLeave?: (task: number) => void;
}

export class NetworkedJob implements PrivateJob {
  readonly network: SimulatedNetwork;
  readonly tasks: Networked[] = [];
  /** [who says so, whom it has lost] */
  readonly lost: [number, number][] = [];
  /** Bytes of each arena that its sessions have for ever. */
  readonly arenaBytes: number;
  readonly #alarms = new Map<number, number>();

  constructor(options: NetworkedOptions) {
    const { limits, seed } = options;
    const random = randomOf(seed);
    this.network = new SimulatedNetwork({ ...options, nodes: limits.tasks, random: () => random(2 ** 32) });
    for (let task = 0; task < limits.tasks; task++) this.tasks.push(this.#make(task, options, () => random(2 ** 32)));
    this.arenaBytes = this.tasks[0]?.arena.used ?? 0;
  }

  #make(task: number, options: NetworkedOptions, random: () => number): Networked {
    const { limits, kernels, isFaithful, initiators, responders, txQueueBytes } = options;
    const name = kernels[task % kernels.length] as KernelName;
    const { map, shared, memory } = makeJobMemory({ limits, isFixed: true, base: 0 }, name === "wasm");
    const inner = selectKernel(name, shared, memory);
    // Packets of strangers never come into the memory of the job.
    const pages = ARENA_BYTES / 65536 + 1;
    const own = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const ownMemory: Memory = memoryOf(own.buffer as unknown as SharedArrayBuffer);
    const arena = new BuddyArena(65536, ARENA_BYTES);
    const link = this.network.attach(task, isFaithful);
    let frames: SessionPipe | undefined;
    const sessions = new Sessions({
      kernel: name === "wasm" ? wasmKernel(own) : twinPacketKernel(ownMemory),
      memory: ownMemory,
      arena,
      link,
      now: () => Math.floor(this.network.now),
      random,
      node: task,
      epoch: 1,
      nodes: limits.tasks,
      nodeOf: (ordinal) => (ordinal < limits.tasks * limits.contexts ? Math.floor(ordinal / limits.contexts) : -1),
      job: JOB,
      keySchedule: options.key && keyScheduleOf(options.key, JOB),
      addressOf: String,
      initiators,
      responders,
      txQueueBytes,
      deliver: (segment) => frames?.take(segment),
      onLost: (other) => {
        this.lost.push([task, other]);
        for (let endpoint = other * limits.contexts; endpoint < (other + 1) * limits.contexts; endpoint++) {
          sessions.forgetTarget(endpoint);
          sessions.streams.forget(endpoint);
        }
        proxy.ended(other, false);
      },
    });
    frames = new SessionPipe(
      map,
      task,
      ownMemory,
      sessions,
      () => this.network.now,
      () => this.#wake(task),
    );
    link.onPacket = (from, packet) => {
      if (this.tasks[task]?.isDown) return;
      sessions.receive(from, packet);
      frames.flush();
    };
    link.onRoom = () => {
      if (this.tasks[task]?.isDown) return;
      sessions.resume();
      frames.flush();
    };
    const whyPrivate = "tasks share no memory, and this thread must not block: it carries the network";
    const onLeave = () => options.onLeave?.(task);
    const parts = { kernel: inner, memory, map, task, args: options.args, pipe: frames };
    const node = makePrivateNode({ ...parts, whyPrivate, onLeave });
    const { proxy } = node;
    const free = () => inner.heapFreePages(map.job);
    return { ...node, map, sessions, frames, arena, memory, inner, isDown: false, free };
  }

  /** Has a node do what is due, now and when it says. */
  #wake(task: number): void {
    const node = this.tasks[task];
    if (node === undefined || node.isDown) return;
    const next = Math.min(node.sessions.advance(), node.frames.due);
    const known = this.#alarms.get(task) ?? Number.POSITIVE_INFINITY;
    if (next >= known || next === Number.POSITIVE_INFINITY) return;
    const time = Math.max(Math.ceil(next), Math.floor(this.network.now) + 1);
    this.#alarms.set(task, time);
    this.network.at(time, () => {
      if (this.#alarms.get(task) !== time) return;
      this.#alarms.delete(task);
      node.frames.flush();
    });
  }

  /** Has the network carry what is under way, for so many virtual microseconds, or until all is quiet. */
  run(microseconds = Number.POSITIVE_INFINITY): void {
    const until = this.network.now + microseconds;
    // Time goes on, also where nothing happens.
    if (until !== Number.POSITIVE_INFINITY) this.network.at(until, () => {});
    while (this.network.step(until));
  }

  async turn(): Promise<void> {
    await undefined; // what was sent goes out
    this.run(TURN_MICROSECONDS);
  }

  /** A node is down from now on. */
  end(task: number): void {
    (this.tasks[task] as Networked).isDown = true;
  }
}

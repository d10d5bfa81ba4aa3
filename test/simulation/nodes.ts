// Nodes of a simulated network. They run the sessions that ship, each over its own part of one memory. A simulation records
// what each stream delivers.
import {
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORDER_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../assembly/layout.js";
import { type Memory, memoryOf, type PacketKernel } from "../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { wasmKernel } from "../../src/kernel/wasm.js";
import type { Link } from "../../src/link/link.js";
import { type NetworkOptions, SimulatedNetwork } from "../../src/link/simulated-network.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import { Sessions, type SessionsOptions } from "../../src/session/sessions.js";
import type { BuddyArena } from "../../src/session/store/buddy-arena.js";
import type { KeySchedule } from "../../src/session/wire/key-schedule.js";
import { randomOf } from "../support/random.js";
import { submit } from "../support/submit.js";
import { IncarnationArena, memoryWithArena } from "./incarnation-arena.js";

export const JOB = 0x5eed5eed;
/** Endpoints of each node: endpoint e of node n is n × ENDPOINTS + e. */
export const ENDPOINTS = 4;

/** Microseconds after which a node is given up, unless options say otherwise: shorter than by default. */
const SILENCE = 10_000_000;

/** Bytes of memory of all nodes together. */
const ARENA_BYTES = 64 * 1024 * 1024;

/** The segments that each stream delivered, in order, by `origin>target`; after a restart, with `@` and the epoch. */
export type Given = Map<string, string[]>;

export interface SimulationOptions extends Omit<NetworkOptions, "random"> {
  /** Decorates a node's link. */
  readonly around?: (link: Link) => Link;
  readonly seed: number;
  readonly kernel?: "wasm" | "ts";
  /** Whether the links are faithful. */
  readonly isFaithful?: boolean;
  readonly sessions?: Partial<SessionsOptions>;
  /** The job key of all nodes; undefined: packets are not sealed. */
  readonly key?: Uint8Array | undefined;
  /** Microseconds after which acknowledgments that are due at once are sent (default: none), as by an event loop's turn. */
  readonly turnMicroseconds?: number | undefined;
  /** Options of single nodes. */
  readonly sessionsOf?: (node: number) => Partial<SessionsOptions>;
  /** Whether delivered segments are kept (default), or only counted. */
  readonly keepsContents?: boolean;
  /** A node has reported the loss of another one. */
  readonly onLost?: (node: number, other: number) => void;
}

/** A job key. */
export const keyOf = (seed: number): Uint8Array => {
  const random = randomOf(seed);
  return Uint8Array.from({ length: 32 }, () => random(256));
};

export interface SimulatedNode {
  readonly number: number;
  sessions: Sessions;
  epoch: number;
  life: IncarnationArena | undefined;
  /** A frozen node does nothing, and packets to it are lost. */
  isFrozen: boolean;
  /** What is to be called once it is not frozen any more. */
  readonly thawed: (() => void)[];
  /** Microseconds by which its clock is ahead. */
  skew: number;
}

export class Simulation {
  readonly network: SimulatedNetwork;
  readonly nodes: SimulatedNode[];
  readonly given: Given = new Map();
  /** Delivered segments. */
  givenCount = 0;
  /** [node that reports it, lost node, whether that one has restarted] */
  readonly lost: [number, number, boolean][] = [];
  /** [node that reports it, node that refuses it, reason] */
  readonly refused: [number, number, number][] = [];
  readonly random: (below: number) => number;
  readonly arena: BuddyArena;
  readonly #memory: Memory;
  readonly #kernel: PacketKernel;
  readonly #options: SimulationOptions;
  readonly #keySchedule: KeySchedule | undefined;
  /** Bytes of memory that the nodes never free. */
  readonly fixedBytes: number;

  constructor(options: SimulationOptions) {
    const { seed, nodes, key, kernel = "wasm" } = options;
    this.#keySchedule = key === undefined ? undefined : keyScheduleOf(key, JOB);
    this.#options = options;
    this.random = randomOf(seed);
    const { shared, arena } = memoryWithArena(ARENA_BYTES);
    this.arena = arena;
    this.#memory = memoryOf(shared.buffer as unknown as SharedArrayBuffer);
    this.#kernel = kernel === "wasm" ? wasmKernel(shared) : twinPacketKernel(this.#memory);
    this.network = new SimulatedNetwork({ ...options, random: () => this.random(2 ** 32) });
    this.nodes = Array.from({ length: nodes }, (_, number) => ({
      number,
      sessions: undefined as unknown as Sessions,
      epoch: 1,
      life: undefined,
      isFrozen: false,
      thawed: [],
      skew: 0,
    }));
    for (const node of this.nodes) this.start(node);
    this.fixedBytes = this.arena.used;
  }

  /** Starts or restarts a node. */
  start(node: SimulatedNode): void {
    const own = this.network.attach(node.number, this.#options.isFaithful);
    const link = this.#options.around?.(own) ?? own;
    node.life?.end();
    node.life = new IncarnationArena(this.arena);
    const { epoch } = node;
    node.thawed.length = 0;
    const sessions = new Sessions({
      kernel: this.#kernel,
      memory: this.#memory,
      arena: node.life,
      link,
      now: () => Math.floor(this.network.now) + node.skew,
      random: () => this.random(2 ** 32),
      node: node.number,
      epoch,
      nodes: this.nodes.length,
      nodeOf: (endpoint) => (endpoint < this.nodes.length * ENDPOINTS ? Math.floor(endpoint / ENDPOINTS) : -1),
      job: JOB,
      addressOf: String,
      deliver: (segment) => this.#give(segment, epoch),
      keySchedule: this.#keySchedule,
      soon: this.#soonOf(node),
      silence: SILENCE,
      onLost: (other, why, refused) => {
        if (refused !== 0) this.refused.push([node.number, other, refused]);
        this.lost.push([node.number, other, why === "restarted" || why === "givenUp"]);
        this.#options.onLost?.(node.number, other);
        for (let i = 0; i < ENDPOINTS; i++) {
          node.sessions.forgetTarget(other * ENDPOINTS + i);
          node.sessions.streams.forget(other * ENDPOINTS + i);
        }
      },
      ...this.#options.sessions,
      ...this.#options.sessionsOf?.(node.number),
    });
    node.sessions = sessions;
    link.onPacket = (from, packet) => {
      if (node.isFrozen) return;
      sessions.receive(from, packet);
      this.#wake(node);
    };
    link.onRoom = () => {
      if (node.isFrozen) return;
      sessions.resume();
      this.#wake(node);
    };
  }

  /** Calls back after a turn of a node's event loop; while the node is frozen, it has none. */
  #soonOf(node: SimulatedNode): SessionsOptions["soon"] {
    const { turnMicroseconds } = this.#options;
    if (turnMicroseconds === undefined) return undefined;
    const { epoch } = node;
    return (call) =>
      this.network.at(this.network.now + turnMicroseconds, () => {
        if (node.epoch !== epoch) return;
        if (node.isFrozen) node.thawed.push(call);
        else call();
      });
  }

  /** Lets a node that was frozen go on. */
  wake(node: SimulatedNode): void {
    for (const call of node.thawed.splice(0)) call();
    node.sessions.resume(); // its link may have said so meanwhile
    this.#wake(node);
  }

  readonly #alarms = new Map<SimulatedNode, number>();

  /** Lets a node do what is due, now and at its next deadline. */
  #wake(node: SimulatedNode): void {
    if (node.isFrozen) return;
    const next = node.sessions.advance() - node.skew;
    const known = this.#alarms.get(node) ?? Number.POSITIVE_INFINITY;
    if (next >= known || next === Number.POSITIVE_INFINITY) return;
    const time = Math.max(Math.ceil(next), Math.floor(this.network.now) + 1);
    this.#alarms.set(node, time);
    this.network.at(time, () => {
      if (this.#alarms.get(node) === time) this.#alarms.delete(node);
      this.#wake(node);
    });
  }

  #give(segment: number, epoch: number): void {
    this.givenCount++;
    if (this.#options.keepsContents === false) return;
    const { words, bytes } = this.#memory;
    const word = (offset: number): number => (words[(segment + offset) >>> 2] as number) >>> 0;
    const key = `${word(SEGMENT_ORIGIN_OFFSET)}>${word(SEGMENT_TARGET_OFFSET)}${epoch === 1 ? "" : `@${epoch}`}`;
    const length = word(SEGMENT_LENGTH_OFFSET) & 0xffff;
    const at = segment + SEGMENT_SIZE;
    const content = Buffer.from(bytes.slice(at, at + length)).toString("latin1");
    const list = this.given.get(key);
    if (list === undefined) this.given.set(key, [`${word(SEGMENT_ORDER_OFFSET)}:${content}`]);
    else list.push(`${word(SEGMENT_ORDER_OFFSET)}:${content}`);
  }

  /** Sends a segment from one endpoint to another. @returns false: the queue is full */
  submit(from: number, to: number, content: Uint8Array, origin = 0, target = 0): boolean {
    const done = this.enqueue(from, to, content, origin, target);
    this.#wake(this.nodes[from] as SimulatedNode);
    return done;
  }

  /** Queues a segment, as submit(), but does not wake the node. */
  enqueue(from: number, to: number, content: Uint8Array, origin = 0, target = 0): boolean {
    const { sessions } = this.nodes[from] as SimulatedNode;
    return submit(sessions, to, from * ENDPOINTS + origin, to * ENDPOINTS + target, 1, content);
  }

  /** Restarts a node, as its next incarnation. */
  restart(node: SimulatedNode): void {
    node.epoch++;
    this.start(node);
  }

  /** Runs until a time, or until no event is left. @returns whether no event is left */
  run(until = Number.POSITIVE_INFINITY): boolean {
    for (let steps = 0; this.network.step(until); steps++) {
      // 39 nodes, each with one responder that all others want, take 17 million steps until they are quiet.
      if (steps > 2_000_000 * this.nodes.length)
        throw new Error(
          `it does not come to rest: ${JSON.stringify([this.network.now, this.network.counts, this.nodes.map(({ sessions }) => [sessions.counts, sessions.dropped, sessions.inUse])])}`,
        );
    }
    return this.network.isQuiet;
  }
}

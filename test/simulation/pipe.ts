// Nodes with one endpoint each, connected by a list of packets: the simplest link. Time passes only when no packet is on the
// way.
import { type Memory, memoryOf, type PacketKernel } from "../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { wasmKernel } from "../../src/kernel/wasm.js";
import type { Link } from "../../src/link/link.js";
import { Sessions, type SessionsOptions } from "../../src/session/sessions.js";
import type { BuddyArena } from "../../src/session/store/buddy-arena.js";
import { randomOf } from "../support/random.js";
import { IncarnationArena, memoryWithArena } from "./incarnation-arena.js";
import { JOB } from "./nodes.js";

export interface PipeOptions extends Partial<SessionsOptions> {
  readonly isFaithful?: boolean;
  readonly packetBytes?: number;
  readonly kernel?: never;
  readonly kernelName?: "wasm" | "ts";
}

interface Node {
  readonly sessions: Sessions;
  readonly life: IncarnationArena;
  readonly link: Link;
}

export class Pipe {
  /** Virtual microseconds. */
  now = 0;
  readonly memory: Memory;
  readonly arena: BuddyArena;
  readonly #kernel: PacketKernel;
  readonly #nodes = new Map<number, Node>();
  readonly #count: number;
  readonly #options: PipeOptions;
  readonly #random = randomOf(1);
  #packets: { from: number; to: number; packet: Uint8Array }[] = [];

  constructor(nodes: number, options: PipeOptions = {}, arenaBytes = 16 * 1024 * 1024) {
    this.#count = nodes;
    this.#options = options;
    const { shared, arena } = memoryWithArena(arenaBytes);
    this.arena = arena;
    this.memory = memoryOf(shared.buffer as unknown as SharedArrayBuffer);
    this.#kernel = options.kernelName === "ts" ? twinPacketKernel(this.memory) : wasmKernel(shared);
  }

  /** Called with each packet that is sent. */
  tap: (from: number, to: number, packet: Uint8Array) => void = () => {};

  start(node: number, deliver: (segment: number) => void, epoch = 1): Sessions {
    const { isFaithful = false, packetBytes = 1400, kernel: _, ...sessionsOptions } = this.#options;
    const link: Link = {
      packetBytes,
      isFaithful,
      send: (to, packet) => {
        this.tap(node, Number(to), packet);
        this.#packets.push({ from: node, to: Number(to), packet: packet.slice() });
        return true;
      },
      onPacket: () => {},
      onRoom: () => {},
      close: () => {},
    };
    const life = new IncarnationArena(this.arena);
    const sessions = new Sessions({
      kernel: this.#kernel,
      memory: this.memory,
      arena: life,
      link,
      now: () => this.now,
      random: () => this.#random(2 ** 32),
      node,
      epoch,
      nodes: this.#count,
      nodeOf: (endpoint) => (endpoint < this.#count ? endpoint : -1),
      job: JOB,
      addressOf: String,
      deliver,
      onLost: () => {},
      ...sessionsOptions,
    });
    this.#nodes.set(node, { sessions, life, link });
    return sessions;
  }

  end(node: number): void {
    this.#nodes.get(node)?.life.end();
    this.#nodes.delete(node);
  }

  /** Delivers a forged packet to a node. */
  inject(to: number, from: string, packet: Uint8Array): void {
    this.#nodes.get(to)?.sessions.receive(from, packet);
  }

  /** Delivers packets in order, until none is on the way and no node has a deadline. */
  run(): void {
    for (;;) {
      let next = Number.POSITIVE_INFINITY;
      for (const { sessions } of this.#nodes.values()) next = Math.min(next, sessions.advance());
      if (this.#packets.length === 0) {
        if (next === Number.POSITIVE_INFINITY) return;
        this.now = Math.max(this.now + 1, Math.ceil(next));
        continue;
      }
      this.carry();
    }
  }

  /** Delivers the packets that are on the way now. */
  carry(): void {
    const packets = this.#packets;
    this.#packets = [];
    for (const { from, to, packet } of packets) this.#nodes.get(to)?.sessions.receive(String(from), packet);
  }
}

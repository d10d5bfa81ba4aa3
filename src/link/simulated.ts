// A network in one process, in virtual time, which jumps to the next event: packets go hop by hop over edges that have a
// delay, a bandwidth and a queue, and meet with what networks do to them. Everything comes from one seed.
import type { Address, Link } from "./link.js";

/** How the nodes are connected. */
export type Topology =
  /** One edge from each node to each other. */
  | { readonly kind: "full" }
  /** As many nodes in each dimension; a node's number is its index. */
  | { readonly kind: "torus"; readonly sides: readonly number[] }
  /** Nodes hang below switches, those below others: so many below each. */
  | { readonly kind: "tree"; readonly arity: number; readonly levels: number };

/** What may happen to a packet; each a part of 1. */
export interface Faults {
  readonly loss: number;
  readonly duplicate: number;
  /** Is overtaken by packets of the next `reorderMicroseconds`. */
  readonly reorder: number;
  readonly reorderMicroseconds: number;
}

export const NO_FAULTS: Faults = { loss: 0, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };

export interface NetworkOptions {
  readonly nodes: number;
  readonly topology?: Topology;
  /** Microseconds that a hop takes. */
  readonly hopMicroseconds?: number;
  /** Of each edge: 1,250 bytes a microsecond are 10 Gbit/s. */
  readonly bytesPerMicrosecond?: number;
  /** What waits before a edge; what comes beyond it is lost. */
  readonly queueBytes?: number;
  readonly packetBytes?: number;
  readonly faults?: Faults;
  /** Any u32. */
  readonly random: () => number;
}

interface Event {
  readonly time: number;
  /** Of two at one time, the one that was made first comes first. */
  readonly number: number;
  readonly run: () => void;
}

/** A packet on its way. */
interface Travelling {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
  /** Microseconds that it stays behind at the end. */
  readonly late: number;
}

interface Edge {
  /** When what is before it has gone through. */
  freeAt: number;
}

/** One node's end of the network. */
class SimulatedLink implements Link {
  readonly packetBytes: number;
  readonly isFaithful: boolean;
  readonly node: number;
  readonly #network: SimulatedNetwork;
  onPacket: (from: Address, packet: Uint8Array) => void = () => {};
  onRoom: () => void = () => {};
  /** Frozen, or gone: what comes is lost. */
  isClosed = false;

  constructor(network: SimulatedNetwork, node: number, packetBytes: number, isFaithful: boolean) {
    this.#network = network;
    this.node = node;
    this.packetBytes = packetBytes;
    this.isFaithful = isFaithful;
  }

  send(to: Address, packet: Uint8Array): boolean {
    if (packet.length > this.packetBytes) throw new Error(`${packet.length} bytes are more than ${this.packetBytes}`);
    if (!this.isClosed) this.#network.carry(this.node, Number(to), packet);
    return true;
  }

  close(): void {
    this.isClosed = true;
  }
}

export class SimulatedNetwork {
  /** Virtual time, in microseconds. */
  now = 0;
  /** Packets that were given to it, those that came, those that were lost, in bytes all that was given. */
  readonly counts = { sent: 0, delivered: 0, lost: 0, duplicated: 0, bytes: 0 };
  faults: Faults;
  /** Whether this packet is lost: partitions, and what a test wants to go wrong. */
  isLost: (from: number, to: number, packet: Uint8Array) => boolean = () => false;
  readonly #options: Required<Omit<NetworkOptions, "faults">>;
  readonly #links: (SimulatedLink | undefined)[];
  readonly #edges = new Map<number, Edge>();
  /** A heap: the next event is the first. */
  readonly #events: Event[] = [];
  #made = 0;

  constructor(options: NetworkOptions) {
    this.#options = {
      topology: { kind: "full" },
      hopMicroseconds: 5,
      bytesPerMicrosecond: 1250,
      queueBytes: 1_048_576,
      packetBytes: 1400,
      ...options,
    };
    this.faults = options.faults ?? NO_FAULTS;
    this.#links = Array.from({ length: options.nodes }, () => undefined);
  }

  /** A node's link; one that was there before is no more. */
  attach(node: number, isFaithful = false): SimulatedLink {
    this.#links[node]?.close();
    const link = new SimulatedLink(this, node, this.#options.packetBytes, isFaithful);
    this.#links[node] = link;
    return link;
  }

  /** Takes a packet; @internal */
  carry(from: number, to: number, packet: Uint8Array): void {
    this.counts.sent++;
    this.counts.bytes += packet.length;
    const { loss, duplicate, reorder, reorderMicroseconds } = this.faults;
    if (this.isLost(from, to, packet) || this.#happens(loss)) {
      this.counts.lost++;
      return;
    }
    const bytes = packet.slice();
    const late = this.#happens(reorder) ? reorderMicroseconds * this.#part() : 0;
    this.#hop(from, { from, to, bytes, late });
    if (!this.#happens(duplicate)) return;
    this.counts.duplicated++;
    this.#hop(from, { from, to, bytes, late: reorderMicroseconds * this.#part() });
  }

  #part(): number {
    return this.#options.random() / 2 ** 32;
  }

  #happens(part: number): boolean {
    return part > 0 && this.#part() < part;
  }

  /** A packet is at a index: on to the next one, or out. */
  #hop(at: number, packet: Travelling): void {
    const { to, bytes, late } = packet;
    if (at === to) {
      this.at(this.now + late, () => this.#arrive(packet));
      return;
    }
    const next = this.#nextPlace(at, to);
    const { hopMicroseconds, bytesPerMicrosecond, queueBytes } = this.#options;
    const key = at * 2 ** 26 + next;
    let edge = this.#edges.get(key);
    if (edge === undefined) {
      edge = { freeAt: 0 };
      this.#edges.set(key, edge);
    }
    const begin = Math.max(this.now, edge.freeAt);
    if ((begin - this.now) * bytesPerMicrosecond > queueBytes) {
      this.counts.lost++;
      return;
    }
    edge.freeAt = begin + bytes.length / bytesPerMicrosecond;
    this.at(edge.freeAt + hopMicroseconds, () => this.#hop(next, packet));
  }

  #arrive({ from, to, bytes }: Travelling): void {
    const link = this.#links[to];
    if (link === undefined || link.isClosed) {
      this.counts.lost++;
      return;
    }
    this.counts.delivered++;
    link.onPacket(String(from), bytes);
  }

  /** Where a packet goes next: nodes are numbered from 0, switches behind them. */
  #nextPlace(at: number, to: number): number {
    const { topology, nodes } = this.#options;
    if (topology.kind === "torus") return nextInTorus(topology.sides, at, to);
    if (topology.kind === "tree") return nextInTree(topology, nodes, at, to);
    return to;
  }

  // ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Has something happen at a time. */
  at(time: number, run: () => void): void {
    const events = this.#events;
    const event = { time: Math.max(time, this.now), number: this.#made++, run };
    let index = events.length;
    events.push(event);
    while (index > 0) {
      const above = (index - 1) >>> 1;
      if (!isBefore(event, events[above] as Event)) break;
      events[index] = events[above] as Event;
      index = above;
    }
    events[index] = event;
  }

  /** Whether nothing will happen any more. */
  get isQuiet(): boolean {
    return this.#events.length === 0;
  }

  /** Runs the next event; false: there is none until then. */
  step(until = Number.POSITIVE_INFINITY): boolean {
    const events = this.#events;
    const [first] = events;
    if (first === undefined || first.time > until) return false;
    const last = events.pop() as Event;
    if (events.length > 0) {
      let index = 0;
      for (;;) {
        let below = 2 * index + 1;
        if (below >= events.length) break;
        if (below + 1 < events.length && isBefore(events[below + 1] as Event, events[below] as Event)) below++;
        if (!isBefore(events[below] as Event, last)) break;
        events[index] = events[below] as Event;
        index = below;
      }
      events[index] = last;
    }
    this.now = first.time;
    first.run();
    return true;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.time < b.time || (a.time === b.time && a.number < b.number);
}

/** Dimension by dimension, the shorter way around. */
function nextInTorus(sides: readonly number[], at: number, to: number): number {
  let unit = 1;
  for (const side of sides) {
    const [here, there] = [Math.floor(at / unit) % side, Math.floor(to / unit) % side];
    if (here !== there) {
      const up = (there - here + side) % side;
      const next = up * 2 <= side ? (here + 1) % side : (here + side - 1) % side;
      return at + (next - here) * unit;
    }
    unit *= side;
  }
  return to;
}

/** Up to the first switch above both, and down. Switches of level 1 are numbered behind the nodes, those of level 2 behind them … */
function nextInTree(
  { arity, levels }: { arity: number; levels: number },
  nodes: number,
  at: number,
  to: number,
): number {
  const firsts = [0, nodes];
  for (let level = 1; level < levels; level++)
    firsts.push((firsts[level] as number) + Math.ceil(nodes / arity ** level));
  let level = firsts.length - 1;
  while (at < (firsts[level] as number)) level--;
  const index = at - (firsts[level] as number);
  const ofTarget = Math.floor(to / arity ** level);
  if (index === ofTarget && level > 0) {
    const below = Math.floor(to / arity ** (level - 1));
    return (firsts[level - 1] as number) + below;
  }
  return level + 1 < firsts.length ? (firsts[level + 1] as number) + Math.floor(index / arity) : to;
}

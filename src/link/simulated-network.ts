// A network in one process. Packets travel hop by hop over edges that have a delay, a bandwidth and a queue, and suffer the
// faults of real networks. Time is virtual: it jumps to the next event. One random source decides everything, so a seed
// replays a run.
import { type Address, checkPacket, type Link } from "./link.js";

/** How the nodes are connected. */
export type Topology =
  /** An edge from each node to every other. */
  | { readonly kind: "full" }
  /** `sides` is the number of nodes in each dimension. Nodes are numbered along the first dimension first. */
  | { readonly kind: "torus"; readonly sides: readonly number[] }
  /** `levels` levels: nodes at the bottom, switches above. Each switch has up to `arity` children. */
  | { readonly kind: "tree"; readonly arity: number; readonly levels: number };

/** What may happen to each packet. All but the last are probabilities from 0 to 1. */
export interface Faults {
  readonly loss: number;
  readonly duplicate: number;
  /** The packet is delayed by up to `reorderMicroseconds`: later packets overtake it. */
  readonly reorder: number;
  readonly reorderMicroseconds: number;
}

export const NO_FAULTS: Faults = { loss: 0, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };

export interface NetworkOptions {
  readonly nodes: number;
  readonly topology?: Topology;
  /** Propagation delay of an edge. */
  readonly hopMicroseconds?: number;
  /** Bandwidth of each edge. The default of 1,250 bytes a microsecond is 10 Gbit/s. */
  readonly bytesPerMicrosecond?: number;
  /** Capacity of the queue before each edge. A packet that finds it full is lost. */
  readonly queueBytes?: number;
  readonly packetBytes?: number;
  /**
   * Packets that a node's link takes before its edges have transmitted one of them: it refuses further ones. Without a
   * limit, links refuse nothing.
   */
  readonly linkPackets?: number | undefined;
  readonly faults?: Faults;
  /** Returns any u32. */
  readonly random: () => number;
}

interface Event {
  readonly time: number;
  /** Events at the same time run in the order of their creation. */
  readonly number: number;
  readonly run: () => void;
}

interface PacketInTransit {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
  /** The address of its sender. */
  readonly source: Address;
  /** The address to which it was sent. */
  readonly target: Address;
  /** Microseconds that the last hop adds, for reordering. */
  readonly extraDelay: number;
}

interface Edge {
  /** When the edge has transmitted everything in its queue. */
  freeAt: number;
}

/** A node's end of the network. */
class SimulatedLink implements Link {
  readonly packetBytes: number;
  readonly isFaithful: boolean;
  readonly #network: SimulatedNetwork;
  readonly #node: number;
  readonly #packetsMax: number;
  onPacket: Link["onPacket"] = () => {};
  onRoom: () => void = () => {};
  /** Packets to a closed link are lost. */
  isClosed = false;
  /** Packets that no edge has transmitted yet; counted only if their number is limited. */
  #packets = 0;
  #hasRefused = false;

  constructor(
    network: SimulatedNetwork,
    node: number,
    options: { packetBytes: number; linkPackets: number },
    isFaithful: boolean,
  ) {
    this.#network = network;
    this.#node = node;
    this.packetBytes = options.packetBytes;
    this.#packetsMax = options.linkPackets;
    this.isFaithful = isFaithful;
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.isClosed) return true;
    if (this.#packets >= this.#packetsMax) {
      this.#hasRefused = true;
      return false;
    }
    const transmittedAt = this.#network.carry(this.#node, this.#network.nodeAt(to), packet, to);
    if (this.#packetsMax === Number.POSITIVE_INFINITY) return true;
    this.#packets++;
    this.#network.at(transmittedAt, () => this.#transmitted());
    return true;
  }

  #transmitted(): void {
    this.#packets--;
    if (!this.#hasRefused || this.isClosed) return;
    this.#hasRefused = false;
    this.onRoom();
  }

  close(): void {
    this.isClosed = true;
  }
}

/** Which node is at an address. */
interface Place {
  readonly node: number;
  /** The first time at which it is there no more. */
  readonly until: number;
}

export class SimulatedNetwork {
  /** Virtual time in microseconds. */
  now = 0;
  /** Packets sent, delivered, lost and duplicated, and bytes sent. */
  readonly counts = { sent: 0, delivered: 0, lost: 0, duplicated: 0, bytes: 0 };
  faults: Faults;
  /** Decides whether a packet is lost, in addition to `faults`: for partitions, and for faults that a test wants. */
  isLost: (from: number, to: number, packet: Uint8Array) => boolean = () => false;
  readonly #options: Required<Omit<NetworkOptions, "faults">> & { readonly linkPackets: number };
  /** By number of the node. A job may have many more numbers than nodes. */
  readonly #links = new Map<number, SimulatedLink>();
  /** Of nodes that have moved: their present and earlier addresses. */
  readonly #places = new Map<Address, Place>();
  /** Of nodes that have moved: their present addresses. */
  readonly #addresses = new Map<number, Address>();
  readonly #edges = new Map<number, Edge>();
  /** A binary heap: the first element is the next event. */
  readonly #events: Event[] = [];
  #eventCount = 0;

  constructor(options: NetworkOptions) {
    this.#options = {
      topology: { kind: "full" },
      hopMicroseconds: 5,
      bytesPerMicrosecond: 1250,
      queueBytes: 1_048_576,
      packetBytes: 1400,
      ...options,
      linkPackets: options.linkPackets ?? Number.POSITIVE_INFINITY,
    };
    this.faults = options.faults ?? NO_FAULTS;
  }

  /** Makes a node's link. The node's previous link is closed. */
  attach(node: number, isFaithful = false): SimulatedLink {
    this.#links.get(node)?.close();
    const link = new SimulatedLink(this, node, this.#options, isFaithful);
    this.#links.set(node, link);
    return link;
  }

  /** The node at an address; NaN: there is none. Until a node moves, its address is its number in decimal digits. */
  nodeAt(address: Address): number {
    const place = this.#places.get(address);
    if (place === undefined) return String(Number(address)) === address ? Number(address) : Number.NaN;
    return this.now < place.until ? place.node : Number.NaN;
  }

  /** The present address of a node. */
  addressOf(node: number): Address {
    return this.#addresses.get(node) ?? String(node);
  }

  /**
   * Gives a node another address. What it has sent before comes from the old one.
   * @param linger microseconds in which packets to the old address still reach it. Later ones are lost.
   */
  move(node: number, address: Address, linger = 0): void {
    this.#places.set(this.addressOf(node), { node, until: this.now + linger });
    this.#places.set(address, { node, until: Number.POSITIVE_INFINITY });
    this.#addresses.set(node, address);
  }

  /**
   * Takes a packet from a node's link. @param target the address to which it goes
   * @returns when the link's edge has transmitted it @internal
   */
  carry(from: number, to: number, packet: Uint8Array, target = this.addressOf(to)): number {
    this.counts.sent++;
    this.counts.bytes += packet.length;
    const { loss, duplicate, reorder, reorderMicroseconds } = this.faults;
    if (!this.#hasNode(to) || this.isLost(from, to, packet) || this.#happens(loss)) {
      this.counts.lost++;
      return this.now;
    }
    const bytes = new Uint8Array(packet);
    const extraDelay = this.#happens(reorder) ? reorderMicroseconds * this.#fraction() : 0;
    const carried = { from, to, bytes, source: this.addressOf(from), target, extraDelay };
    const transmittedAt = this.#hop(from, carried);
    if (this.#happens(duplicate)) {
      this.counts.duplicated++;
      this.#hop(from, { ...carried, bytes: bytes.slice(), extraDelay: reorderMicroseconds * this.#fraction() });
    }
    return transmittedAt;
  }

  #hasNode(number: number): boolean {
    return Number.isInteger(number) && number >= 0 && number < this.#options.nodes;
  }

  /** A random number from 0 to 1, 1 excluded. */
  #fraction(): number {
    return this.#options.random() / 2 ** 32;
  }

  #happens(probability: number): boolean {
    return probability > 0 && this.#fraction() < probability;
  }

  /**
   * A packet is at a node or switch: it is delivered there, or queued for the next edge.
   * @returns when that edge has transmitted it
   */
  #hop(at: number, packet: PacketInTransit): number {
    const { to, bytes, extraDelay } = packet;
    if (at === to) {
      this.at(this.now + extraDelay, () => this.#arrive(packet));
      return this.now;
    }
    const next = this.#nextHop(at, to);
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
      return this.now;
    }
    edge.freeAt = begin + bytes.length / bytesPerMicrosecond;
    this.at(edge.freeAt + hopMicroseconds, () => this.#hop(next, packet));
    return edge.freeAt;
  }

  #arrive({ to, bytes, source, target }: PacketInTransit): void {
    const link = this.#links.get(to);
    if (link === undefined || link.isClosed || this.nodeAt(target) !== to) {
      this.counts.lost++;
      return;
    }
    this.counts.delivered++;
    link.onPacket(source, bytes);
    // They are the link's again. A receiver that reads them later reads nonsense.
    bytes.fill(0xee);
  }

  /** The next node or switch of a packet. Nodes are numbered from 0, and switches after them. */
  #nextHop(at: number, to: number): number {
    const { topology, nodes } = this.#options;
    if (topology.kind === "torus") return nextInTorus(topology.sides, at, to);
    if (topology.kind === "tree") return nextInTree(topology, nodes, at, to);
    return to;
  }

  // ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Schedules a callback. A time in the past means now. */
  at(time: number, run: () => void): void {
    const events = this.#events;
    const event = { time: Math.max(time, this.now), number: this.#eventCount++, run };
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

  /** Runs the next event. @returns false: there is none up to that time */
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

/** Routes one dimension after the other, each in the shorter direction. */
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

/** Routes up to the lowest common ancestor, then down. Switches of level 1 are numbered after the nodes, then level 2, … */
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

// Dynamically-connected transport (D): a node's few initiator contexts serve as many other nodes as there are, one session
// at a time each; a pool of responders takes what others send.
//
//   submit() ─► backlog of a node ─► initiator: CONNECT, session, DISCONNECT ─► wire
//   wire ─► responder of a session ─► streams: once, in order ─► give()
import {
  ACCEPT_ECHO_OFFSET,
  ACCEPT_EPOCH_OFFSET,
  ACCEPT_LIMIT_OFFSET,
  ACCEPT_RESPONDER_OFFSET,
  ACKNOWLEDGE_ALL_OFFSET,
  ACKNOWLEDGE_DELAY_OFFSET,
  ACKNOWLEDGE_ECHO_OFFSET,
  ACKNOWLEDGE_LIMIT_OFFSET,
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_REPEATED_OFFSET,
  ACKNOWLEDGE_WORDS_OFFSET,
  CONNECT_EPOCH_OFFSET,
  CONNECT_HALF,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_KNOWN_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_FLAGS_SHIFT,
  PACKET_HALF,
  PACKET_KIND_SHIFT,
  PACKET_LENGTH_OFFSET,
  PACKET_NUMBER_OFFSET,
  PACKET_PROMPT,
  PACKET_REFUSE,
  PACKET_RIGHT,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_WRONG_SIZE,
  REFUSE_ECHO_OFFSET,
  REFUSE_REASON_OFFSET,
  REFUSE_WAIT_OFFSET,
  REFUSED_BUSY,
  REFUSED_NODE,
  REFUSED_UNKNOWN,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { Queue } from "../support/queue.js";
import { Packet } from "./packet.js";
import { Responder, SESSION_WINDOW } from "./responder.js";
import { type Counts, type Outgoing, Session } from "./session.js";
import { type Arena, HELD_BACK, Streams, segmentBytes } from "./streams.js";
import type { Address, Wire } from "./wire.js";

/** Microseconds without an answer to a connect packet, until it is sent again: then twice as long. */
const CONNECT_TIMEOUT = 20_000;
const CONNECT_TIMEOUT_MAX = 1_000_000;
/** Microseconds for which a node may say nothing, though it is asked again and again, until it is given up (D10). */
const SILENCE_MAX = 10_000_000;
/** … and as often at the least: who was frozen itself has not asked meanwhile. */
const SILENCE_ATTEMPTS = 8;
/** Times in a row that nothing came back, until a silent node has to wait for its turn behind the others. */
const ATTEMPTS_YIELD = 2;
/** Microseconds that a session without work stays open. */
const IDLE_INITIATOR = 50_000;
/** Microseconds after which a session of which nothing was heard may be another's. */
const IDLE_RESPONDER = 5_000_000;
/** What a node without a free responder asks others to wait, in microseconds. */
const BUSY_WAIT = 2000;
/** Data packets of a session, after which it is another node's turn. */
const QUOTA = 64;
/** Bytes of packets that are kept for the next: as many as are under way, not to be made anew each time. */
const SPARE_BYTES = 2 ** 21;

/** What a node is given. */
export interface SessionsOptions {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly arena: Arena;
  readonly wire: Wire;
  /** Microseconds, monotonic. */
  readonly now: () => number;
  /** Any u32. */
  readonly random: () => number;
  /** Number of this node, and how often it has been started. */
  readonly node: number;
  readonly epoch: number;
  /** Of the job: nodes have numbers below it. */
  readonly nodes: number;
  /** Of the job: endpoints have ordinals below it. */
  readonly endpoints: number;
  /** The node of an endpoint. */
  readonly nodeOf: (endpoint: number) => number;
  /** Fingerprint of the job. */
  readonly job: number;
  readonly addressOf: (node: number) => Address;
  readonly initiators?: number | undefined;
  readonly responders?: number | undefined;
  /** Bytes that may wait for one node. */
  readonly backlogBytes?: number | undefined;
  /** Gets each segment in order, by a pointer that is valid until it returns. */
  readonly give: (segment: number) => void;
  /** A node does not answer, or has been started anew: what was for it is lost. */
  readonly lost: (node: number, isRestarted: boolean) => void;
}

/** What is for one node. It exists only while there is something. */
interface Backlog {
  readonly node: number;
  readonly to: Address;
  readonly packets: Queue<Packet>;
  /** Those that were in a session before: they come first. */
  again: Packet[];
  bytes: number;
  /** Times in a row that it was asked, and nothing came back. */
  attempts: number;
  /** When it was asked for the first time of them, in microseconds. */
  silentSince: number;
  /** Connect packets in a row that were refused for want of a responder. */
  refusals: number;
  /** Not to be connected to before, in microseconds. */
  notBefore: number;
  isServed: boolean;
  /** Whether it stands in the line of those that are to be served. */
  isWaiting: boolean;
}

/** A DC initiator context. */
interface Initiator {
  /** `session` of what comes back: changes with each connection. */
  reference: number;
  backlog: Backlog | undefined;
  session: Session | undefined;
  nonce: number[];
  connect: Packet;
  /** Connect packets that were sent. */
  sent: number;
  deadline: number;
  /** Data packets that it may still send while others wait. */
  quota: number;
}

/** Why a packet was dropped, and how often. */
export interface Dropped {
  /** By the rule that was broken: PACKET_WRONG_…. */
  readonly wrong: number[];
  /** Of a session that is none, or another's. */
  unknown: number;
  /** Data packets that came more than once. */
  repeated: number;
  /** Data packets beyond what was allowed, or for which there was no room. */
  heldBack: number;
  /** Acknowledgments of what was never sent. */
  untrue: number;
  /** From or to a node or an endpoint that is not where it says, or not there at all. */
  foreign: number;
  /** Of an earlier life of a node. */
  stale: number;
  /** Answers to another attempt than the last, or to none. */
  unasked: number;
  /** With a tag, which nobody here can verify. */
  sealed: number;
}

/** Microseconds until the next attempt, after so many of which nothing came. */
function backoff(attempts: number): number {
  return Math.min(CONNECT_TIMEOUT * 2 ** attempts, CONNECT_TIMEOUT_MAX);
}

/** The same, and so long that there is a place for one. */
function grown(words: Uint32Array<ArrayBuffer>, place: number): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(Math.max(words.length, 2 ** Math.ceil(Math.log2(place + 1))));
  longer.set(words);
  return longer;
}

export class Sessions {
  /** `taken`: packets that came and were not dropped. */
  readonly counts: Counts & { acknowledgments: number; connects: number; refused: number; taken: number } = {
    data: 0,
    again: 0,
    acknowledgments: 0,
    connects: 0,
    refused: 0,
    taken: 0,
  };
  readonly dropped: Dropped = {
    wrong: [],
    unknown: 0,
    repeated: 0,
    heldBack: 0,
    untrue: 0,
    foreign: 0,
    stale: 0,
    unasked: 0,
    sealed: 0,
  };
  readonly streams: Streams;
  readonly #options: SessionsOptions;
  readonly #out: Outgoing;
  readonly #initiators: Initiator[];
  readonly #responders: (Responder | undefined)[];
  readonly #backlogs = new Map<number, Backlog>();
  /** Those that may be served, in turn. */
  readonly #line = new Queue<Backlog>();
  /** Those that may not be yet: nobody looks at them before the first of them may. */
  readonly #resting = new Set<Backlog>();
  #restUntil = Number.POSITIVE_INFINITY;
  /** Next order number to each target endpoint, by origin endpoint and target. */
  readonly #orders = new Map<number, Uint32Array<ArrayBuffer>>();
  /** Latest epoch of each node that was heard of; 0: none was. */
  #epochs = new Uint32Array(64);
  /** How often a node was given up: for it, this one begins another life each time. */
  readonly #givenUp = new Map<number, number>();
  readonly #spare: Packet[] = [];
  readonly #answer: Packet;
  readonly #packetBytes: number;
  readonly #backlogBytes: number;
  /** Where a packet is copied to. */
  readonly #desk: number;
  readonly #words: Int32Array;
  #generation: number;

  constructor(options: SessionsOptions) {
    const { kernel, memory, arena, wire, initiators = 8, responders = 64, backlogBytes = 1_048_576 } = options;
    this.#options = options;
    this.streams = new Streams(kernel, memory, arena, options.give);
    this.#packetBytes = wire.packetBytes - TAG_BYTES;
    this.#backlogBytes = backlogBytes;
    this.#answer = new Packet(this.#packetBytes);
    this.#out = { send: (to, packet) => wire.send(to, packet.bytes) };
    this.#initiators = Array.from({ length: initiators }, () => this.#makeInitiator());
    this.#responders = Array.from({ length: responders }, () => undefined);
    this.#desk = arena.allocate(wire.packetBytes);
    this.#words = memory.words;
    this.#generation = options.random();
  }

  #makeInitiator(): Initiator {
    const connect = new Packet(this.#packetBytes);
    const nothing = { backlog: undefined, session: undefined, nonce: [], sent: 0, quota: 0 };
    return { ...nothing, reference: 0, connect, deadline: Number.POSITIVE_INFINITY };
  }

  /** Bytes of the content of a segment, at the most. */
  get contentMax(): number {
    return this.#packetBytes - PACKET_SIZE - SEGMENT_SIZE;
  }

  // ── The origin's side ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Sends a segment to an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    const backlog = this.#backlogs.get(node) ?? this.#makeBacklog(node);
    // One that is larger than all that may wait goes alone.
    if (backlog.bytes > 0 && backlog.bytes + content.length > this.#backlogBytes) return false;
    let packet = backlog.packets.last;
    if (packet === undefined || packet.room < content.length) {
      packet = (this.#spare.pop() ?? new Packet(this.#packetBytes)).begin(PACKET_DATA, this.#options.job);
      backlog.packets.push(packet);
    }
    backlog.bytes += content.length;
    packet.segment(origin, target, this.#nextOrder(origin, target), kind, content);
    this.#wait(backlog);
    return true;
  }

  #makeBacklog(node: number): Backlog {
    const backlog: Backlog = {
      node,
      to: this.#options.addressOf(node),
      packets: new Queue(),
      again: [],
      bytes: 0,
      attempts: 0,
      silentSince: 0,
      refusals: 0,
      notBefore: 0,
      isServed: false,
      isWaiting: false,
    };
    this.#backlogs.set(node, backlog);
    return backlog;
  }

  #nextOrder(origin: number, target: number): number {
    let orders = this.#orders.get(origin);
    if (orders === undefined || orders.length <= target) {
      orders = grown(orders ?? new Uint32Array(64), target);
      this.#orders.set(origin, orders);
    }
    const order = orders[target] as number;
    orders[target] = order + 1;
    return order;
  }

  /** Puts a backlog into the line, unless it is served or stands there. */
  #wait(backlog: Backlog): void {
    if (backlog.isServed || backlog.isWaiting) return;
    backlog.isWaiting = true;
    if (backlog.notBefore <= this.#options.now()) this.#line.push(backlog);
    else {
      this.#resting.add(backlog);
      this.#restUntil = Math.min(this.#restUntil, backlog.notBefore);
    }
  }

  /** Puts those into the line that have rested for long enough. */
  #rouse(now: number): void {
    if (this.#restUntil > now) return;
    this.#restUntil = Number.POSITIVE_INFINITY;
    for (const backlog of this.#resting) {
      if (backlog.notBefore <= now) {
        this.#resting.delete(backlog);
        this.#line.push(backlog);
      } else this.#restUntil = Math.min(this.#restUntil, backlog.notBefore);
    }
  }

  /** Whether a node waits that could be served now. */
  get #isAwaited(): boolean {
    return this.#line.length > 0;
  }

  /** Gives free initiators to the nodes that wait, in turn. */
  #serve(now: number): void {
    for (const initiator of this.#initiators) {
      if (initiator.backlog !== undefined) continue;
      const backlog = this.#nextInLine();
      if (backlog === undefined) return;
      this.#connect(initiator, backlog, now);
    }
  }

  #nextInLine(): Backlog | undefined {
    for (let backlog = this.#line.first; backlog !== undefined; backlog = this.#line.first) {
      this.#line.shift();
      if (this.#backlogs.get(backlog.node) !== backlog) continue; // given up
      backlog.isWaiting = false;
      return backlog;
    }
    return undefined;
  }

  #connect(initiator: Initiator, backlog: Backlog, now: number): void {
    const { job, node, random, wire } = this.#options;
    backlog.isServed = true;
    initiator.backlog = backlog;
    initiator.quota = QUOTA;
    initiator.reference = this.#nextReference(this.#initiators.indexOf(initiator));
    initiator.nonce = [(random() | 1) >>> 0, random(), random(), random()];
    initiator.sent = 0;
    const { connect, reference, nonce } = initiator;
    const to = backlog.node;
    const known = this.#epochs[to] ?? 0;
    // Half a handshake (D5b) only with a life that is known: another one must hear of its epoch before anything is taken.
    const isHalf = wire.isFaithful && known !== 0;
    connect.begin(PACKET_CONNECT, job).word(reference).word(node).word(this.#epochFor(to)).word(to);
    connect.word(isHalf ? CONNECT_HALF : 0).word(known);
    for (const word of nonce) connect.word(word);
    this.#sendConnect(initiator, backlog, now);
    if (!isHalf) return;
    const limit = 1 + SESSION_WINDOW;
    const first = nonce[0] as number;
    initiator.session = new Session(first, backlog.to, this.#out, this.counts, limit, initiator.sent, true);
    this.#pump(initiator, now);
  }

  #sendConnect(initiator: Initiator, { to, attempts }: Backlog, now: number): void {
    this.counts.connects++;
    initiator.deadline = now + backoff(attempts);
    this.#out.send(to, initiator.connect.address(0, ++initiator.sent, 0));
  }

  /** A number that nobody had for long, with the place in its low bits. */
  #nextReference(place: number): number {
    this.#generation = (this.#generation + 1) & 0xfffff;
    return ((this.#generation << 12) | (place + 1)) >>> 0;
  }

  /** Sends what may be sent. */
  #pump(initiator: Initiator, now: number): void {
    const { session, backlog } = initiator;
    if (session === undefined || backlog === undefined) return;
    session.repeat(now);
    while (session.mayBegin && (initiator.quota > 0 || !this.#isAwaited)) {
      const packet = backlog.again.shift() ?? this.#takeFirst(backlog);
      if (packet === undefined) break;
      initiator.quota--;
      session.begin(packet, now, backlog.again.length === 0 && backlog.packets.length === 0);
    }
    const isThrough = session.underWay === 0;
    const hasMore = backlog.again.length > 0 || backlog.packets.length > 0;
    if (isThrough && (hasMore || this.#isAwaited)) this.#release(initiator, now, true);
    else if (isThrough) initiator.deadline = now + IDLE_INITIATOR;
    else initiator.deadline = Number.POSITIVE_INFINITY;
  }

  #takeFirst(backlog: Backlog): Packet | undefined {
    const { first } = backlog.packets;
    if (first !== undefined) backlog.packets.shift();
    return first;
  }

  /** The initiator goes on to another node; what this one has not said to have goes back to its backlog, in order. */
  #release(initiator: Initiator, now: number, isOrderly: boolean): void {
    const { session, backlog } = initiator;
    if (backlog === undefined) return;
    if (session !== undefined) {
      backlog.again.unshift(...session.left());
      if (isOrderly) session.disconnect(this.#answer, this.#options.job);
    }
    initiator.session = undefined;
    initiator.backlog = undefined;
    initiator.reference = 0;
    initiator.deadline = Number.POSITIVE_INFINITY;
    backlog.isServed = false;
    if (backlog.again.length > 0 || backlog.packets.length > 0) this.#wait(backlog);
    else if (this.#backlogs.get(backlog.node) === backlog) this.#backlogs.delete(backlog.node);
    this.#serve(now);
  }

  /** A node does not answer (D10), or is another one than it was: what is for it is lost. */
  #fail(node: number, now: number, isRestarted: boolean): void {
    // What is still under way from its life until now is of sessions that are none any more.
    for (const [place, one] of this.#responders.entries()) {
      if (one?.opening.node === node) this.#responders[place] = undefined;
    }
    const backlog = this.#backlogs.get(node);
    if (backlog !== undefined) {
      const initiator = this.#initiators.find((one) => one.backlog === backlog);
      backlog.again = [];
      backlog.packets.clear();
      this.#backlogs.delete(node);
      this.#resting.delete(backlog);
      if (initiator !== undefined) {
        initiator.session = undefined; // and what it had under way
        this.#release(initiator, now, false);
      }
    }
    this.#options.lost(node, isRestarted);
  }

  /**
   * What another node is told as this one's epoch. Whoever gives a node up begins another life for it: what either had under
   * way is lost, and both say so. 16 bits each: 65,536 times of giving up, of 10 s at the least, are a week.
   */
  #epochFor(node: number): number {
    return ((this.#options.epoch << 16) + (this.#givenUp.get(node) ?? 0)) >>> 0;
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    for (const orders of this.#orders.values()) if (target < orders.length) orders[target] = 0;
  }

  /** Nothing came of an attempt: another one, later, or none. */
  #unanswered(initiator: Initiator, now: number): void {
    const { backlog } = initiator;
    if (backlog === undefined) return;
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited) {
      backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(initiator, now, false);
      return;
    }
    if (initiator.session !== undefined && !this.#options.wire.isFaithful) {
      // It was there, and is not any more: what it has not said to have goes into a new session.
      initiator.session = undefined;
    }
    this.#sendConnect(initiator, backlog, now);
  }

  /** Once more nothing has come back from a node; whether that was once too often. */
  #isGivenUp(backlog: Backlog, now: number): boolean {
    if (backlog.attempts++ === 0) backlog.silentSince = now;
    if (now - backlog.silentSince < SILENCE_MAX || backlog.attempts < SILENCE_ATTEMPTS) return false;
    this.#givenUp.set(backlog.node, (this.#givenUp.get(backlog.node) ?? 0) + 1);
    this.#fail(backlog.node, now, false);
    return true;
  }

  /** Does what is due. @returns when something will be, in microseconds; Infinity: never, unless something comes */
  advance(): number {
    const now = this.#options.now();
    this.#rouse(now);
    this.#serve(now);
    let next = Number.POSITIVE_INFINITY;
    for (const initiator of this.#initiators) {
      const { session, backlog } = initiator;
      if (backlog === undefined) continue;
      if (session !== undefined && session.deadline <= now) this.#silent(initiator, session, now);
      else if (initiator.deadline <= now) {
        if (session !== undefined && session.underWay === 0) this.#idle(initiator, now);
        else this.#unanswered(initiator, now);
      } else this.#pump(initiator, now);
      next = Math.min(next, initiator.deadline, initiator.session?.deadline ?? Number.POSITIVE_INFINITY);
    }
    for (const responder of this.#responders) {
      if (responder === undefined) continue;
      if (responder.due <= now) this.#acknowledge(responder, now);
      next = Math.min(next, responder.due);
    }
    // Those that may be served already are so as soon as an initiator is free.
    return Math.min(next, this.#restUntil);
  }

  #idle(initiator: Initiator, now: number): void {
    const { backlog } = initiator;
    if (backlog !== undefined && (backlog.again.length > 0 || backlog.packets.length > 0)) {
      initiator.quota = QUOTA;
      this.#pump(initiator, now);
    } else this.#release(initiator, now, true);
  }

  /** A session's target says nothing. */
  #silent(initiator: Initiator, session: Session, now: number): void {
    const { backlog } = initiator;
    if (backlog === undefined) return;
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited) {
      backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(initiator, now, true);
    } else session.timedOut(now);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A packet came: it is copied, looked at, and only the copy is used. */
  receive(from: Address, packet: Uint8Array): void {
    const { kernel, memory, job, wire } = this.#options;
    const { length } = packet;
    // One that is longer than the wire takes is none that it was given.
    const fits = length <= wire.packetBytes;
    if (fits) memory.bytes.set(packet, this.#desk);
    const rule = fits ? kernel.packetCheck(this.#desk, length, job) : PACKET_WRONG_SIZE;
    if (rule !== PACKET_RIGHT) {
      this.dropped.wrong[rule] = (this.dropped.wrong[rule] ?? 0) + 1;
      return;
    }
    if (((this.#word(0) >>> PACKET_FLAGS_SHIFT) & PACKET_SEALED) !== 0) {
      this.dropped.sealed++;
      return;
    }
    const kind = (this.#word(0) >>> PACKET_KIND_SHIFT) & 0xff;
    const body = this.#desk + (this.#word(PACKET_LENGTH_OFFSET) >>> 16);
    const now = this.#options.now();
    if (kind === PACKET_DATA) this.#data(from, body, length, now);
    else if (kind === PACKET_ACKNOWLEDGE) this.#acknowledged(from, body, now);
    else if (kind === PACKET_CONNECT) this.#connectCame(from, body, now);
    else if (kind === PACKET_ACCEPT) this.#accepted(from, body, now);
    else if (kind === PACKET_REFUSE) this.#refused(from, body, now);
    else if (kind === PACKET_DISCONNECT) this.#disconnected(from);
  }

  /** A word of the packet's header. */
  #word(offset: number): number {
    return (this.#words[(this.#desk + offset) >>> 2] as number) >>> 0;
  }

  /** A word of a packet's body. */
  #at(body: number, offset: number): number {
    return (this.#words[(body + offset) >>> 2] as number) >>> 0;
  }

  #connectCame(from: Address, body: number, now: number): void {
    const { node, nodes, job, random } = this.#options;
    const initiator = this.#at(body, CONNECT_INITIATOR_OFFSET);
    const other = this.#at(body, CONNECT_NODE_OFFSET);
    const epoch = this.#at(body, CONNECT_EPOCH_OFFSET);
    const nonce = [0, 4, 8, 12].map((offset) => this.#at(body, CONNECT_NONCE_OFFSET + offset));
    if (this.#at(body, CONNECT_TARGET_OFFSET) !== node) {
      this.dropped.foreign++;
      this.#refuse(from, initiator, REFUSED_NODE, 0, nonce);
      return;
    }
    if (other >= nodes) {
      this.dropped.foreign++;
      return;
    }
    if (!this.#noteEpoch(other, epoch)) return; // of a node that has been started anew since
    const own = this.#epochFor(other);
    let place = this.#responders.findIndex(
      (one) => one?.opening.from === from && one.opening.initiator === initiator && one.opening.nonce[0] === nonce[0],
    );
    if (place === -1) {
      place = this.#freeResponder(from, other, epoch, now);
      if (place === -1) {
        this.counts.refused++;
        this.#refuse(from, initiator, REFUSED_BUSY, BUSY_WAIT, nonce);
        return;
      }
      const id = this.#nextReference(place);
      const isHalfRight = this.#at(body, CONNECT_KNOWN_OFFSET) === own;
      this.#responders[place] = new Responder(id, { from, initiator, node: other, epoch, nonce, isHalfRight }, now);
    }
    this.counts.taken++;
    const responder = this.#responders[place] as Responder;
    const answer = this.#answer
      .begin(PACKET_ACCEPT, job)
      .word(responder.id)
      .word(own)
      .word(1 + SESSION_WINDOW)
      .word(0);
    answer.word(nonce[0] as number).word(nonce[1] as number);
    for (let word = 0; word < 4; word++) answer.word(random());
    this.#out.send(from, answer.address(initiator, responder.nextSent(), 0));
  }

  /** Whether an epoch of a node is its latest; of a later one all that was before is forgotten. */
  #noteEpoch(node: number, epoch: number): boolean {
    const known = this.#epochs[node] ?? 0;
    if (epoch === 0 || (known !== 0 && seqDelta(epoch, known) < 0)) {
      this.dropped.stale++;
      return false;
    }
    if (node >= this.#epochs.length) this.#epochs = grown(this.#epochs, node);
    this.#epochs[node] = epoch;
    if (known !== 0 && known !== epoch) this.#fail(node, this.#options.now(), true);
    return true;
  }

  /** A place for a responder; -1: there is none. */
  #freeResponder(from: Address, node: number, epoch: number, now: number): number {
    const free = this.#responders.indexOf(undefined);
    if (free !== -1) return free;
    // Those of a node that has been started anew, and those of which nothing was heard for long.
    return this.#responders.findIndex(
      (one) =>
        one !== undefined &&
        (now - one.heard > IDLE_RESPONDER ||
          (one.opening.from === from && one.opening.node === node && one.opening.epoch !== epoch)),
    );
  }

  #refuse(
    to: Address,
    session: number,
    reason: number,
    wait: number,
    [first = 0, second = 0]: readonly number[],
  ): void {
    const answer = this.#answer
      .begin(PACKET_REFUSE, this.#options.job)
      .word(reason)
      .word(wait)
      .word(first)
      .word(second);
    this.#out.send(to, answer.address(session, 1, 0));
  }

  #data(from: Address, body: number, length: number, now: number): void {
    const id = this.#word(PACKET_SESSION_OFFSET);
    const flags = this.#word(0) >>> PACKET_FLAGS_SHIFT;
    const responder = (flags & PACKET_HALF) === 0 ? this.#responders[(id & 0xfff) - 1] : this.#byNonce(from, id);
    if (
      responder === undefined ||
      responder.opening.from !== from ||
      ((flags & PACKET_HALF) === 0 && responder.id !== id)
    ) {
      this.dropped.unknown++;
      this.#refuse(from, id, REFUSED_UNKNOWN, 0, []);
      return;
    }
    const [number, sent] = [this.#word(PACKET_NUMBER_OFFSET), this.#word(PACKET_SENT_OFFSET)];
    if (responder.isKnown(number)) {
      this.dropped.repeated++;
      responder.noteRepeated(sent, now);
      this.#acknowledge(responder, now);
      return;
    }
    const end = this.#desk + length;
    if (!this.#areFrom(responder.opening.node, body, end)) {
      this.dropped.foreign++;
      return;
    }
    if (responder.isBeyond(number) || !this.#takeSegments(body, end)) {
      this.dropped.heldBack++;
      return;
    }
    this.counts.taken++;
    if (responder.note(number, sent, now, (flags & PACKET_PROMPT) !== 0)) this.#acknowledge(responder, now);
  }

  /** Half a handshake: the session whose connect packet had a nonce that begins with this word. */
  #byNonce(from: Address, first: number): Responder | undefined {
    return this.#responders.find(
      (one) => one?.opening.from === from && one.opening.nonce[0] === first && one.opening.isHalfRight,
    );
  }

  /** Whether all segments are of endpoints of a node, for endpoints of this one: only those have streams. */
  #areFrom(node: number, body: number, end: number): boolean {
    const { endpoints, nodeOf, node: own } = this.#options;
    let [lastOrigin, lastTarget] = [-1, -1];
    for (let at = body; at < end; at += segmentBytes(this.#words, at)) {
      const origin = this.#at(at, SEGMENT_ORIGIN_OFFSET);
      const target = this.#at(at, SEGMENT_TARGET_OFFSET);
      if (origin === lastOrigin && target === lastTarget) continue;
      lastOrigin = origin;
      lastTarget = target;
      if (origin >= endpoints || target >= endpoints || nodeOf(origin) !== node || nodeOf(target) !== own) return false;
    }
    return true;
  }

  /** Whether there was room for all segments; of those that were taken, a second one is a repeated one. */
  #takeSegments(body: number, end: number): boolean {
    let isTaken = true;
    for (let at = body; at < end; ) {
      if (this.streams.take(at) === HELD_BACK) isTaken = false;
      at += segmentBytes(this.#words, at);
    }
    return isTaken;
  }

  #acknowledge(responder: Responder, now: number): void {
    this.counts.acknowledgments++;
    this.#out.send(responder.opening.from, responder.acknowledge(this.#answer, this.#options.job, now));
  }

  /** The initiator to which a packet speaks. */
  #initiatorOf(from: Address): Initiator | undefined {
    const reference = this.#word(PACKET_SESSION_OFFSET);
    const initiator = this.#initiators[(reference & 0xfff) - 1];
    if (initiator?.reference === reference && initiator.backlog?.to === from) return initiator;
    this.dropped.unknown++;
    return undefined;
  }

  #accepted(from: Address, body: number, now: number): void {
    const initiator = this.#initiatorOf(from);
    if (initiator?.backlog === undefined) return;
    const { nonce, backlog } = initiator;
    if (this.#at(body, ACCEPT_ECHO_OFFSET) !== nonce[0] || this.#at(body, ACCEPT_ECHO_OFFSET + 4) !== nonce[1]) {
      this.dropped.unasked++;
      return;
    }
    const id = this.#at(body, ACCEPT_RESPONDER_OFFSET);
    const sent = initiator.sent + 1;
    if (!this.#noteEpoch(backlog.node, this.#at(body, ACCEPT_EPOCH_OFFSET))) return;
    this.counts.taken++;
    if (this.#backlogs.get(backlog.node) !== backlog) {
      // What was for it is lost with its earlier life, and nothing is left to be said: the responder is free at once.
      this.#out.send(from, this.#answer.begin(PACKET_DISCONNECT, this.#options.job).address(id, sent, 0));
      return;
    }
    backlog.attempts = 0;
    backlog.refusals = 0;
    if (initiator.session === undefined) {
      const limit = this.#at(body, ACCEPT_LIMIT_OFFSET);
      initiator.session = new Session(id, backlog.to, this.#out, this.counts, limit, initiator.sent);
    } else initiator.session.accept(id);
    this.#pump(initiator, now);
  }

  #refused(from: Address, body: number, now: number): void {
    const reason = this.#at(body, REFUSE_REASON_OFFSET);
    if (reason === REFUSED_UNKNOWN) {
      const id = this.#word(PACKET_SESSION_OFFSET);
      const initiator = this.#initiators.find((one) => one.session?.knows(id) === true && one.backlog?.to === from);
      if (initiator?.backlog === undefined) {
        this.dropped.unknown++;
        return;
      }
      this.counts.taken++;
      const { backlog } = initiator;
      // Once, its node has started anew, or has given the responder to another; more often, it takes its time.
      if (this.#isGivenUp(backlog, now)) return;
      if (backlog.attempts > 1) backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(initiator, now, false);
      return;
    }
    const initiator = this.#initiatorOf(from);
    if (initiator?.backlog === undefined) return;
    // Half a handshake has a session already, and is none until it is accepted.
    if (initiator.session?.isAccepted === true || this.#at(body, REFUSE_ECHO_OFFSET) !== initiator.nonce[0]) {
      this.dropped.unasked++;
      return;
    }
    this.counts.taken++;
    const { backlog } = initiator;
    if (reason === REFUSED_NODE) {
      this.#fail(backlog.node, now, false);
      return;
    }
    // Twice as long each time, and not all at once.
    const asked = Math.min(this.#at(body, REFUSE_WAIT_OFFSET), CONNECT_TIMEOUT_MAX);
    const wait = Math.min(asked * 2 ** Math.min(backlog.refusals++, 6), CONNECT_TIMEOUT_MAX);
    backlog.attempts = 0;
    backlog.notBefore = now + wait * (0.5 + (this.#options.random() & 0xffff) / 65536);
    this.#release(initiator, now, false);
  }

  #acknowledged(from: Address, body: number, now: number): void {
    const initiator = this.#initiatorOf(from);
    if (initiator?.backlog === undefined) return;
    if (initiator.session === undefined) {
      this.dropped.unasked++;
      return;
    }
    const words = this.#at(body, ACKNOWLEDGE_WORDS_OFFSET);
    const first = (body + ACKNOWLEDGE_MASK_OFFSET) >>> 2;
    const there = initiator.session.acknowledged(
      {
        all: this.#at(body, ACKNOWLEDGE_ALL_OFFSET),
        echo: this.#at(body, ACKNOWLEDGE_ECHO_OFFSET),
        delay: this.#at(body, ACKNOWLEDGE_DELAY_OFFSET),
        limit: this.#at(body, ACKNOWLEDGE_LIMIT_OFFSET),
        repeated: this.#at(body, ACKNOWLEDGE_REPEATED_OFFSET),
        mask: this.#words.subarray(first, first + words),
      },
      now,
    );
    if (there === false) {
      this.dropped.untrue++;
      return;
    }
    this.counts.taken++;
    const { backlog } = initiator;
    backlog.attempts = 0;
    for (const packet of there) {
      backlog.bytes -= packet.contentBytes;
      if (this.#spare.length * this.#packetBytes < SPARE_BYTES) this.#spare.push(packet);
    }
    this.#pump(initiator, now);
  }

  #disconnected(from: Address): void {
    const id = this.#word(PACKET_SESSION_OFFSET);
    const place = (id & 0xfff) - 1;
    const responder = this.#responders[place];
    if (responder?.id === id && responder.opening.from === from) {
      this.counts.taken++;
      this.#responders[place] = undefined;
    } else this.dropped.unknown++;
  }

  // ── What is there ─────────────────────────────────────────────────────────────────────────────────────────────

  /** What grows with what is heard of, and said to, though nothing is under way: entries, words, streams, packets. */
  get kept(): { epochs: number; orders: number; streams: number; givenUp: number; spare: number } {
    let orders = 0;
    for (const { length } of this.#orders.values()) orders += length;
    const { count: streams } = this.streams;
    return { epochs: this.#epochs.length, orders, streams, givenUp: this.#givenUp.size, spare: this.#spare.length };
  }

  /** What is in use: after all is quiet, it is nothing. */
  get inUse(): { initiators: number; responders: number; backlogs: number; waiting: number } {
    return {
      initiators: this.#initiators.filter(({ backlog }) => backlog !== undefined).length,
      responders: this.#responders.filter((one) => one !== undefined).length,
      backlogs: this.#backlogs.size,
      waiting: this.streams.waiting,
    };
  }
}

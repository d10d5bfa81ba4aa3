// Carries frames through the sessions of a network. A frame becomes one segment of the stream between its two contexts. A
// longer frame is cut into segments that follow each other in the stream.
//
//   send() ─► queue of a node ─► segments ─► sessions ══ wire ══ sessions ─► streams ─► frame of a pair ─► onFrame()
//
// The agents bound what a queue holds. The bound is a credit for each pair (egress.ts), a slice for each FIFO (remote-rma.ts),
// and depth + 1 fragments for each transfer (remote-rendezvous.ts).

import {
  FRAME_MORE,
  FRAME_PROBE,
  FRAME_RECORDS,
  SEGMENT_KIND_SHIFT,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../../assembly/layout.js";
import { type Endpoint, endpointOf, taskOf } from "../../core/endpoint.js";
import type { Memory } from "../../kernel/kernel.js";
import { copyInto } from "../../support/copy.js";
import { Queue } from "../../support/queue.js";
import { decode, type Encoded, encode, FRAME_VERSION, RECORDS_HEAD_BYTES } from "./encoding.js";
import { BUFFER_BYTES, FrameBuffers } from "./frame-buffers.js";
import type { FillRecords, Frame, FrameMemory, OnFrame, Pipe } from "./frames.js";

const NO_BYTES: Uint8Array = new Uint8Array(0);
const PROBE: Encoded = { kind: FRAME_PROBE, head: NO_BYTES, data: NO_BYTES };
/** Least bytes of a frame for which a segment begins in a packet that has other segments already. */
const PIECE_MIN = 256;

/** Microseconds after the last frame to a node until the pipe probes it; then twice as many, and so on, within bounds. */
const PROBE_FIRST = 1_000_000;
const PROBE_DOUBLED_MAX = 5;

/**
 * A frame on its way out. A class, so that all frames have one shape: copies by spread had new shapes, and took a tenth of the
 * time of an agent that sends messages of 1 MiB.
 */
class OutgoingFrame {
  readonly from: Endpoint;
  readonly to: Endpoint;
  readonly kind: number;
  head: Uint8Array;
  data: Uint8Array;
  /** Bytes of head and data that have gone. */
  at = 0;

  constructor(from: Endpoint, to: Endpoint, { kind, head, data }: Encoded) {
    this.from = from;
    this.to = to;
    this.kind = kind;
    this.head = head;
    this.data = data;
  }
}

/** Bytes from one offset to another. A frame that goes as a whole has a view already. */
function part(bytes: Uint8Array, begin: number, end: number): Uint8Array {
  return begin === 0 && end >= bytes.length ? bytes : bytes.subarray(begin, end);
}

/** A packet as the pipe fills it. */
export interface ClaimedPacket extends FrameMemory {
  /** Where the content of its last segment begins. */
  readonly content: number;
  /** Writes the content of its last segment, which is in two parts. */
  put(first: Uint8Array, more: Uint8Array): void;
}

/** The bytes of an incomplete frame that have come. */
interface Partial {
  /**
   * At most four times as long as `bytes`, however small the pieces are: a frame takes memory only for bytes that have come.
   */
  content: Uint8Array;
  bytes: number;
}

/** The time of a node's next probe, in microseconds, and how often the interval was doubled. */
interface Probe {
  at: number;
  doubled: number;
  /** A task of the node. */
  readonly task: number;
}

/** The nodes of the job's tasks. The tasks of a node have consecutive numbers. */
export interface Places {
  /** This node, and its first task. */
  readonly node: number;
  readonly first: number;
  /** The node of a task; negative: there is no such task. */
  nodeOf(task: number): number;
  /** The first task of a node. */
  firstOf(node: number): number;
}

/** The part of the sessions that the pipe uses. */
export interface SegmentSender {
  /** Bytes of the content of a segment, at the most. */
  readonly contentMax: number;
  /** Bytes of content that the packet takes which is filled for a node now; negative: there is none. */
  roomFor(node: number): number;
  /** Queues a segment, whose content of so many bytes is to be written at once. Undefined: there is no room. */
  claim(node: number, origin: Endpoint, target: Endpoint, kind: number, bytes: number): ClaimedPacket | undefined;
  /** Sends now the segments that were submitted for a node, as far as the node's session may. */
  pump(node: number): void;
  /** Drops the segments that were submitted for a node. */
  abandon(node: number, isGone: boolean): void;
}

/** When a pipe has its turns. */
interface PipeTurns {
  /** Microseconds. */
  now(): number;
  /** Makes the sessions send what they were given, and calls `flush()` at `due`. */
  advance(): void;
  /** Microseconds between two probes of a node, at the most. */
  readonly probeMax?: number | undefined;
}

export class SessionPipe implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = false;
  /** Malformed frames and segments, which were dropped. */
  wrong = 0;
  readonly #places: Places;
  readonly #memory: Memory;
  readonly #segments: SegmentSender;
  readonly #advance: () => void;
  /** Bytes of the longest frame that a node takes. */
  readonly #frameMax: number;
  /** By node: frames that wait to go there. */
  readonly #queues = new Map<number, Queue<OutgoingFrame>>();
  /** Nodes to which something was sent, or from which something came. */
  readonly #talkedTo = new Set<number>();
  /** Tasks from which frames came, and tasks that have ended. */
  readonly #heard = new Set<number>();
  readonly #dropped = new Set<number>();
  /** By origin, then by target: incomplete frames. */
  readonly #partial = new Map<Endpoint, Map<Endpoint, Partial>>();
  readonly #buffers = new FrameBuffers();
  readonly #now: () => number;
  readonly #probeMax: number;
  /** By node. */
  readonly #probes = new Map<number, Probe>();
  /** The time of the first probe, or an earlier one. */
  #probeNext = Number.POSITIVE_INFINITY;
  #hasLeft = false;

  /**
   * @param memory in which segments are given to `take()`
   * @param frameMax bytes of the longest frame that this node takes: a longer one is wrong
   */
  constructor(
    places: Places,
    memory: Memory,
    segments: SegmentSender,
    frameMax: number,
    { now, advance, probeMax = Number.POSITIVE_INFINITY }: PipeTurns,
  ) {
    this.#places = places;
    this.#memory = memory;
    this.#segments = segments;
    this.#frameMax = frameMax;
    this.#now = now;
    this.#advance = advance;
    this.#probeMax = probeMax;
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    const task = taskOf(to);
    const node = this.#places.nodeOf(task);
    const outgoing = new OutgoingFrame(from, to, encode(frame));
    // The frame's bytes go into packets at once. If other frames wait, or without room, the bytes wait in a buffer for flush().
    if (this.#queues.has(node) || !this.#send(node, outgoing)) {
      this.#keep(outgoing);
      this.#push(node, outgoing);
    }
    this.#noteSent(node, task);
  }

  #noteSent(node: number, task: number): void {
    this.#talkedTo.add(node);
    if (!this.#hasLeft) this.#probe(node, task, 0, this.#now());
  }

  recordsMax(to: Endpoint): number {
    const room = this.#segments.roomFor(this.#places.nodeOf(taskOf(to)));
    return (room < PIECE_MIN ? this.#segments.contentMax : room) - RECORDS_HEAD_BYTES;
  }

  sendRecords(from: Endpoint, to: Endpoint, bytes: number, fill: FillRecords): void {
    const task = taskOf(to);
    const node = this.#places.nodeOf(task);
    const size = RECORDS_HEAD_BYTES + bytes;
    const packet =
      size > this.#segments.contentMax || this.#queues.has(node)
        ? undefined
        : this.#claim(node, from, to, FRAME_RECORDS, size);
    if (packet === undefined) {
      const records = this.#buffers.take(bytes).subarray(0, bytes);
      fill({ words: new Int32Array(records.buffer, records.byteOffset, bytes >>> 2), bytes: records }, 0);
      this.send(from, to, { records });
      return;
    }
    const head = packet.content >>> 2;
    packet.words[head] = FRAME_VERSION;
    fill(packet, head + 1);
    this.#noteSent(node, task);
  }

  /** Claims a segment. A packet without room for the segment is full, and need not wait for later segments. */
  #claim(node: number, from: Endpoint, to: Endpoint, kind: number, bytes: number): ClaimedPacket | undefined {
    const room = this.#segments.roomFor(node);
    if (room >= 0 && room < bytes) this.#segments.pump(node);
    return this.#segments.claim(node, from, to, kind, bytes);
  }

  /** Copies the unsent bytes of a frame. */
  #keep(frame: OutgoingFrame): void {
    const { head, data, at } = frame;
    const gone = Math.max(0, at - head.length);
    const bytes = data.length - gone;
    const own = bytes === 0 ? NO_BYTES : this.#buffers.take(bytes).subarray(0, bytes);
    copyInto(own, 0, data.subarray(gone));
    frame.head = head.subarray(at);
    frame.data = own;
    frame.at = 0;
  }

  #push(node: number, frame: OutgoingFrame): void {
    let queue = this.#queues.get(node);
    if (queue === undefined) {
      queue = new Queue();
      this.#queues.set(node, queue);
    }
    queue.push(frame);
  }

  /** When `flush()` is to be called even if nothing comes and nothing is sent, in microseconds. */
  get due(): number {
    return this.#probeNext;
  }

  /** Sets the time of a node's next probe. */
  #probe(node: number, task: number, doubled: number, now: number): void {
    const at = now + Math.min(PROBE_FIRST << doubled, this.#probeMax);
    const probe = this.#probes.get(node);
    if (probe === undefined) this.#probes.set(node, { at, doubled, task });
    else {
      probe.at = at;
      probe.doubled = doubled;
    }
    if (at < this.#probeNext) this.#probeNext = at;
  }

  /** Probes all nodes to which something was sent, at the next flush(). */
  probe(): void {
    const now = this.#now();
    for (const [node, { task }] of this.#probes) this.#probe(node, task, 0, now - PROBE_FIRST);
  }

  /**
   * Probes nodes from which no packet came for long. A node that has died may have acknowledged all packets, and will never
   * answer. If the node does not acknowledge the probe, the sessions report it as lost.
   */
  #probeAll(): void {
    const now = this.#now();
    if (now < this.#probeNext) return;
    this.#probeNext = Number.POSITIVE_INFINITY;
    for (const [node, { at, doubled, task }] of this.#probes) {
      if (at <= now) {
        // Any endpoint of this node and any of that node will do.
        const [from, to] = [endpointOf(this.#places.first, 0), endpointOf(task, 0)];
        this.#push(node, new OutgoingFrame(from, to, PROBE));
        this.#probe(node, task, Math.min(doubled + 1, PROBE_DOUBLED_MAX), now);
      } else if (at < this.#probeNext) this.#probeNext = at;
    }
  }

  leave(): void {
    this.#hasLeft = true;
    this.#probes.clear();
    this.#probeNext = Number.POSITIVE_INFINITY;
  }

  flush(): void {
    this.#probeAll();
    for (const [node, queue] of this.#queues) {
      for (let first = queue.first; first !== undefined && this.#send(node, first); first = queue.first) queue.shift();
      // A node without waiting frames has no queue.
      if (queue.length === 0) this.#queues.delete(node);
    }
    this.#advance();
  }

  /** Submits the segments of a frame, as far as there is room; whether all of it is on its way. */
  #send(node: number, frame: OutgoingFrame): boolean {
    const { from, to, kind, head, data } = frame;
    const size = head.length + data.length;
    const { contentMax } = this.#segments;
    do {
      const left = size - frame.at;
      // A frame of several packets also fills the packet that has begun.
      const room = this.#segments.roomFor(node);
      const bytes = Math.min(left, left > contentMax && room >= PIECE_MIN ? room : contentMax);
      const isLast = frame.at + bytes === size;
      const packet = this.#claim(node, from, to, isLast ? kind : kind | FRAME_MORE, bytes);
      if (packet === undefined) return false;
      const first = part(head, frame.at, frame.at + bytes);
      const inData = Math.max(0, frame.at - head.length);
      packet.put(first, part(data, inData, inData + bytes - first.length));
      frame.at += bytes;
    } while (frame.at < size);
    this.#buffers.give(data);
    return true;
  }

  /** Takes a segment, in the order of its pair. Its bytes may be overwritten once this returns. */
  take(segment: number): void {
    const { words, bytes } = this.#memory;
    const word = (offset: number): number => (words[(segment + offset) >>> 2] as number) >>> 0;
    const [from, to] = [word(SEGMENT_ORIGIN_OFFSET), word(SEGMENT_TARGET_OFFSET)];
    const task = taskOf(from);
    const node = this.#places.nodeOf(task);
    if (node < 0 || node === this.#places.node || this.#places.nodeOf(taskOf(to)) !== this.#places.node) {
      this.wrong++;
      return;
    }
    // The task may be slow rather than dead.
    if (this.#dropped.has(task)) return;
    this.#talkedTo.add(node);
    // A node that only receives from another node learns by its own probe that the other node has ended, or has given it up.
    const { task: probed, doubled } = this.#probes.get(node) ?? { task, doubled: 0 };
    if (!this.#hasLeft) this.#probe(node, probed, doubled, this.#now());
    const code = word(SEGMENT_LENGTH_OFFSET);
    const kind = code >>> SEGMENT_KIND_SHIFT;
    if (kind === FRAME_PROBE) return;
    this.#heard.add(task);
    const at = segment + SEGMENT_SIZE;
    const piece = bytes.subarray(at, at + (code & 0xffff));
    const content = this.#whole(from, to, piece, (kind & FRAME_MORE) !== 0);
    if (content === undefined) return;
    const frame = decode(kind & ~FRAME_MORE, content);
    if (frame === undefined || !this.onFrame(from, to, frame)) this.wrong++;
    this.#buffers.give(content);
  }

  /** The content of a frame that ends with this piece. Undefined: the frame is incomplete, or too long. */
  #whole(from: Endpoint, to: Endpoint, piece: Uint8Array, goesOn: boolean): Uint8Array | undefined {
    let partials = this.#partial.get(from);
    const before = partials?.get(to);
    if (before === undefined && !goesOn) return piece;
    const partial = before ?? { content: NO_BYTES, bytes: 0 };
    this.#append(partial, piece);
    if (goesOn) {
      if (partials === undefined) {
        partials = new Map();
        this.#partial.set(from, partials);
      }
      partials.set(to, partial);
      return undefined;
    }
    if (partials?.delete(to) === true && partials.size === 0) this.#partial.delete(from);
    const { content, bytes } = partial;
    if (bytes <= this.#frameMax) return content.subarray(0, bytes);
    this.wrong++;
    return undefined;
  }

  /** Of a frame that is too long, only the length is counted until its last segment comes. */
  #append(partial: Partial, piece: Uint8Array): void {
    const { content, bytes } = partial;
    const most = this.#frameMax;
    partial.bytes += piece.length;
    if (partial.bytes > most) partial.content = NO_BYTES;
    else if (partial.bytes > content.length) {
      const size = Math.min(2 * partial.bytes, most);
      partial.content = 2 * size < BUFFER_BYTES ? new Uint8Array(size) : this.#buffers.take(size);
      copyInto(partial.content, 0, content.subarray(0, bytes));
      this.#buffers.give(content);
    }
    if (partial.bytes <= most) copyInto(partial.content, bytes, piece);
  }

  firstTaskOf(task: number): number {
    return this.#places.firstOf(this.#places.nodeOf(task));
  }

  get talkedTo(): Iterable<number> {
    return [...this.#talkedTo].map((node) => this.#places.firstOf(node));
  }

  receivesFrom(task: number): boolean {
    return this.#heard.has(task);
  }

  drop(task: number): boolean {
    this.#dropped.add(task);
    this.#heard.delete(task);
    for (const from of this.#partial.keys()) if (taskOf(from) === task) this.#partial.delete(from);
    const node = this.#places.nodeOf(task);
    // Other tasks of the node may still be there.
    for (let other = this.#places.firstOf(node); this.#places.nodeOf(other) === node; other++) {
      if (!this.#dropped.has(other)) return false;
    }
    this.#talkedTo.delete(node);
    this.#probes.delete(node);
    this.abandon(node, false);
    return true;
  }

  /** Drops segments that were sent to a node, and not acknowledged. @param isGone whether the node is not there any more */
  abandon(node: number, isGone: boolean): void {
    this.#queues.delete(node);
    this.#segments.abandon(node, isGone);
  }

  /** Frames that wait, and incomplete frames with their bytes: all 0 once nothing is under way. */
  get inUse(): { frames: number; partials: number; partialBytes: number } {
    const frames = [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
    const partials = [...this.#partial.values()].flatMap((pairs) => [...pairs.values()]);
    const partialBytes = partials.reduce((sum, { content }) => sum + content.length, 0);
    return { frames, partials: partials.length, partialBytes };
  }
}

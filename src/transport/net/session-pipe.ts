// Frames through the sessions of a network. A frame becomes one segment of the stream from its one context to the other;
// a longer one is cut up, and its segments follow each other there.
//
//   send() ─► line of a node ─► segments ─► sessions ══ wire ══ sessions ─► streams ─► frame of a pair ─► onFrame()
//
// A line is bounded by what agents let be under way (egress.ts: a window for each pair; remote-rma.ts: a slice for each
// FIFO; remote-rendezvous.ts: depth + 1 fragments for each transfer).

import {
  FRAME_MORE,
  FRAME_PROBE,
  SEGMENT_KIND_SHIFT,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../../assembly/layout.js";
import { type Endpoint, endpointOf, taskOf } from "../../core/endpoint.js";
import type { Memory } from "../../kernel/kernel.js";
import { Queue } from "../../support/queue.js";
import { decode, type Encoded, encode } from "./encoding.js";
import type { Frame, OnFrame, Pipe } from "./frames.js";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Microseconds after the last frame to a node, until it is asked whether it lives; then twice as many, and so on. */
const PROBE_FIRST = 1_000_000;
const PROBE_DOUBLED_MAX = 5;

/** A frame on its way out. */
interface Outgoing extends Encoded {
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Bytes of head and data that have gone. */
  at: number;
}

/** What has come of a frame that goes on. */
interface Partial {
  /** At most twice as long as that: it is longer only where more has come, in however small pieces. */
  content: Uint8Array;
  bytes: number;
}

/** When a node is asked whether it lives, in microseconds, and how often the time was doubled. */
interface Probe {
  at: number;
  doubled: number;
  /** A task of the node. */
  readonly task: number;
}

/** Where the tasks of the job are: those of a node have numbers that follow each other. */
export interface Places {
  /** This node, and its first task. */
  readonly node: number;
  readonly first: number;
  /** The node of a task; negative: there is no such task. */
  nodeOf(task: number): number;
  /** The first task of a node. */
  firstOf(node: number): number;
}

/** What of the sessions it takes. */
export interface SegmentSender {
  /** Bytes of the content of a segment, at the most. */
  readonly contentMax: number;
  submit(node: number, origin: Endpoint, target: Endpoint, kind: number, content: Uint8Array): boolean;
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
  /** By node: what waits to go there. */
  readonly #lines = new Map<number, Queue<Outgoing>>();
  /** Nodes to which something was sent, or of which something came. */
  readonly #talkedTo = new Set<number>();
  /** Tasks of which frames came, and those that have ended. */
  readonly #heard = new Set<number>();
  readonly #dropped = new Set<number>();
  /** By task, and by pair: what has come of frames that go on. */
  readonly #partial = new Map<number, Map<string, Partial>>();
  readonly #scratch: Uint8Array;
  readonly #now: () => number;
  /** By node. */
  readonly #probes = new Map<number, Probe>();
  /** The first of their times, or one before it. */
  #probeNext = Number.POSITIVE_INFINITY;
  #hasLeft = false;

  /**
   * @param memory in which segments are given to `take()`
   * @param frameMax bytes of the longest frame that this node takes: more can be none
   * @param now microseconds
   * @param advance has the sessions send what they were given, and calls `flush()` at `due`
   */
  constructor(
    places: Places,
    memory: Memory,
    segments: SegmentSender,
    frameMax: number,
    now: () => number,
    advance: () => void,
  ) {
    this.#places = places;
    this.#memory = memory;
    this.#segments = segments;
    this.#frameMax = frameMax;
    this.#now = now;
    this.#advance = advance;
    this.#scratch = new Uint8Array(segments.contentMax);
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    const task = taskOf(to);
    const node = this.#places.nodeOf(task);
    this.#push(node, { from, to, ...encode(frame), at: 0 });
    this.#talkedTo.add(node);
    if (!this.#hasLeft) this.#probe(node, task, 0, this.#now());
  }

  #push(node: number, frame: Outgoing): void {
    let line = this.#lines.get(node);
    if (line === undefined) {
      line = new Queue();
      this.#lines.set(node, line);
    }
    line.push(frame);
  }

  /** When `flush()` is to be called though nothing comes and nothing is sent, in microseconds. */
  get due(): number {
    return this.#probeNext;
  }

  /** Sets when a node is asked next. */
  #probe(node: number, task: number, doubled: number, now: number): void {
    const at = now + PROBE_FIRST * 2 ** doubled;
    const probe = this.#probes.get(node);
    if (probe === undefined) this.#probes.set(node, { at, doubled, task });
    else {
      probe.at = at;
      probe.doubled = doubled;
    }
    if (at < this.#probeNext) this.#probeNext = at;
  }

  /**
   * Asks nodes of which nothing came for long whether they live: one that has died may have acknowledged all that it got,
   * and will not answer it. A node that has been asked in vain is lost, as the sessions say.
   */
  #probeAll(): void {
    const now = this.#now();
    if (now < this.#probeNext) return;
    this.#probeNext = Number.POSITIVE_INFINITY;
    for (const [node, { at, doubled, task }] of this.#probes) {
      if (at <= now) {
        // From where to where does not matter; the endpoints must be theirs.
        this.#push(node, {
          from: endpointOf(this.#places.first, 0),
          to: endpointOf(task, 0),
          kind: FRAME_PROBE,
          head: NO_BYTES,
          data: NO_BYTES,
          at: 0,
        });
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
    for (const [node, line] of this.#lines) {
      for (let first = line.first; first !== undefined && this.#send(node, first); first = line.first) line.shift();
      // A node to which there is nothing to say costs nothing.
      if (line.length === 0) this.#lines.delete(node);
    }
    this.#advance();
  }

  /** Submits the segments of a frame, as far as there is room; whether all of it is on its way. */
  #send(node: number, frame: Outgoing): boolean {
    const { from, to, kind, head, data } = frame;
    const size = head.length + data.length;
    do {
      const bytes = Math.min(size - frame.at, this.#scratch.length);
      // From here on in the data; negative: there is some of the head before it.
      const inData = frame.at - head.length;
      let content = data.subarray(Math.max(0, inData), inData + bytes);
      if (inData < 0) {
        const before = head.subarray(frame.at, frame.at + bytes);
        this.#scratch.set(before);
        this.#scratch.set(data.subarray(0, bytes - before.length), before.length);
        content = this.#scratch.subarray(0, bytes);
      }
      const isLast = frame.at + bytes === size;
      if (!this.#segments.submit(node, from, to, isLast ? kind : kind | FRAME_MORE, content)) return false;
      frame.at += bytes;
    } while (frame.at < size);
    return true;
  }

  /** A segment has come, behind those of its pair; its bytes are somebody else's when this returns. */
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
    // It may be slow, and not dead.
    if (this.#dropped.has(task)) return;
    this.#talkedTo.add(node);
    const probe = this.#probes.get(node);
    if (probe !== undefined) this.#probe(node, probe.task, probe.doubled, this.#now());
    const code = word(SEGMENT_LENGTH_OFFSET);
    const kind = code >>> SEGMENT_KIND_SHIFT;
    if (kind === FRAME_PROBE) return;
    this.#heard.add(task);
    const at = segment + SEGMENT_SIZE;
    const piece = bytes.slice(at, at + (code & 0xffff));
    const content = this.#whole(task, `${from} ${to}`, piece, (kind & FRAME_MORE) !== 0);
    if (content === undefined) return;
    const frame = decode(kind & ~FRAME_MORE, content);
    if (frame === undefined || !this.onFrame(from, to, frame)) this.wrong++;
  }

  /** The content of a frame, of which this is a piece; undefined: it goes on, or is too long. */
  #whole(task: number, pair: string, piece: Uint8Array, goesOn: boolean): Uint8Array | undefined {
    let partials = this.#partial.get(task);
    const before = partials?.get(pair);
    if (before === undefined && !goesOn) return piece;
    const partial = before ?? { content: NO_BYTES, bytes: 0 };
    append(partial, piece, this.#frameMax);
    if (goesOn) {
      if (partials === undefined) {
        partials = new Map();
        this.#partial.set(task, partials);
      }
      partials.set(pair, partial);
      return undefined;
    }
    partials?.delete(pair);
    const { content, bytes } = partial;
    if (bytes <= this.#frameMax) return content.subarray(0, bytes);
    this.wrong++;
    return undefined;
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
    this.#partial.delete(task);
    const node = this.#places.nodeOf(task);
    // Its node's other tasks may go on.
    for (let other = this.#places.firstOf(node); this.#places.nodeOf(other) === node; other++) {
      if (!this.#dropped.has(other)) return false;
    }
    this.#talkedTo.delete(node);
    this.#lines.delete(node);
    this.#probes.delete(node);
    return true;
  }

  /** What waits, for others or of others: nothing, once all is quiet. */
  get inUse(): { frames: number; partials: number; partialBytes: number } {
    const frames = [...this.#lines.values()].reduce((sum, { length }) => sum + length, 0);
    const partials = [...this.#partial.values()].flatMap((pairs) => [...pairs.values()]);
    const partialBytes = partials.reduce((sum, { content }) => sum + content.length, 0);
    return { frames, partials: partials.length, partialBytes };
  }
}

/** @param most bytes of a frame: more than fits in the other one's heap can't be one, and only its end matters */
function append(partial: Partial, piece: Uint8Array, most: number): void {
  const { content, bytes } = partial;
  partial.bytes += piece.length;
  if (partial.bytes > most) partial.content = NO_BYTES;
  else if (partial.bytes > content.length) {
    partial.content = new Uint8Array(Math.min(2 * partial.bytes, most));
    partial.content.set(content);
  }
  if (partial.bytes <= most) partial.content.set(piece, bytes);
}

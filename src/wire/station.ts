// What both sides of a node stand on: what it was given, what it counts, the numbers that it gives out, and which start of
// another node is the latest.
import { TAG_BYTES } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { Counts, Outgoing } from "./session.js";
import type { Arena } from "./streams.js";
import type { Address, Wire } from "./wire.js";

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
}

export class Station {
  readonly options: SessionsOptions;
  readonly counts: Counts & { acknowledgments: number; connects: number; refused: number } = {
    data: 0,
    again: 0,
    acknowledgments: 0,
    connects: 0,
    refused: 0,
  };
  readonly dropped: Dropped = { wrong: [], unknown: 0, repeated: 0, heldBack: 0, untrue: 0 };
  readonly out: Outgoing;
  /** Bytes of the largest packet that it sends, without a tag. */
  readonly packetBytes: number;
  readonly #restarted: (node: number) => void;
  readonly #epochs = new Map<number, number>();
  #generation: number;

  /** @param restarted a node has been started anew */
  constructor(options: SessionsOptions, restarted: (node: number) => void) {
    const { wire, random } = options;
    this.options = options;
    this.packetBytes = wire.packetBytes - TAG_BYTES;
    this.out = { send: (to, packet) => wire.send(to, packet.bytes) };
    this.#restarted = restarted;
    this.#generation = random();
  }

  /** A number that nobody had for long, with the place in its low bits. */
  nextReference(place: number): number {
    this.#generation = (this.#generation + 1) & 0xfffff;
    return ((this.#generation << 12) | (place + 1)) >>> 0;
  }

  /** Whether an epoch of a node is its latest; of a later one all that was before is forgotten. */
  noteEpoch(node: number, epoch: number): boolean {
    const known = this.#epochs.get(node);
    if (known !== undefined && seqDelta(epoch, known) < 0) return false;
    this.#epochs.set(node, epoch);
    if (known !== undefined && known !== epoch) this.#restarted(node);
    return true;
  }
}

// A packet that came: it is copied, looked at, and only the copy is used. A node has one index for it, where a sealed one
// is opened, too.
import {
  PACKET_FLAGS_SHIFT,
  PACKET_KIND_SHIFT,
  PACKET_LENGTH_OFFSET,
  PACKET_NUMBER_OFFSET,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_WRONG_SIZE,
  TAG_BYTES,
} from "../../assembly/layout.js";
import type { Memory, PacketKernel } from "../kernel/kernel.js";
import type { Address } from "../link/link.js";
import type { Seal } from "./key-schedule.js";
import type { Arena } from "./streams.js";

export class ReceivedPacket {
  readonly #kernel: PacketKernel;
  readonly #memory: Memory;
  readonly #job: number;
  readonly #packetBytes: number;
  /** Where a packet is copied to. */
  readonly #buffer: number;
  #length = 0;
  from: Address = "";

  /** @param packetBytes of the largest packet of the link: one that is longer is none that it was given */
  constructor(kernel: PacketKernel, memory: Memory, arena: Arena, job: number, packetBytes: number) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#job = job;
    this.#packetBytes = packetBytes;
    this.#buffer = arena.allocate(packetBytes);
  }

  /** Takes the index of the one before. @returns PACKET_RIGHT, or the first rule that it breaks: then nothing of it counts */
  take(from: Address, packet: Uint8Array): number {
    this.from = from;
    this.#length = packet.length;
    if (packet.length > this.#packetBytes) return PACKET_WRONG_SIZE;
    this.#memory.bytes.set(packet, this.#buffer);
    return this.#kernel.packetCheck(this.#buffer, packet.length, this.#job);
  }

  /**
   * Takes the seal off. @returns PACKET_RIGHT, or the first rule that what was in it breaks; undefined: it is another's seal,
   * and nothing of the packet counts
   */
  open(seal: Seal): number | undefined {
    const { bytes } = this.#memory;
    const { body, end, sent } = this;
    if (!seal.open(bytes.subarray(this.#buffer, end), body - this.#buffer, sent)) return undefined;
    this.#length -= TAG_BYTES;
    const at = this.#buffer + PACKET_LENGTH_OFFSET;
    bytes[at] = this.#length & 0xff;
    bytes[at + 1] = this.#length >>> 8;
    const flags = this.#buffer + (PACKET_FLAGS_SHIFT >>> 3);
    bytes[flags] = (bytes[flags] as number) & ~PACKET_SEALED;
    return this.#kernel.packetCheck(this.#buffer, this.#length, this.#job);
  }

  /** A word of the header. */
  #word(offset: number): number {
    return (this.#memory.words[(this.#buffer + offset) >>> 2] as number) >>> 0;
  }

  get kind(): number {
    return (this.#word(0) >>> PACKET_KIND_SHIFT) & 0xff;
  }

  get flags(): number {
    return this.#word(0) >>> PACKET_FLAGS_SHIFT;
  }

  get isSealed(): boolean {
    return (this.flags & PACKET_SEALED) !== 0;
  }

  get session(): number {
    return this.#word(PACKET_SESSION_OFFSET);
  }

  get sent(): number {
    return this.#word(PACKET_SENT_OFFSET);
  }

  get number(): number {
    return this.#word(PACKET_NUMBER_OFFSET);
  }

  /** Pointers to its body, and behind it. */
  get body(): number {
    return this.#buffer + (this.#word(PACKET_LENGTH_OFFSET) >>> 16);
  }

  get end(): number {
    return this.#buffer + this.#length;
  }

  /** A word of the body. */
  at(offset: number): number {
    return (this.#memory.words[(this.body + offset) >>> 2] as number) >>> 0;
  }

  /** Words of the body, valid until the next packet comes. */
  words(offset: number, count: number): Int32Array {
    const first = (this.body + offset) >>> 2;
    return this.#memory.words.subarray(first, first + count);
  }
}

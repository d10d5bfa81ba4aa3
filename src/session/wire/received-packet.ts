// The packet that a node has just received. It is copied into the node's receive buffer, unless the link has received it into
// the node's memory, checked, and opened there if it is sealed. Only that is read, so the sender cannot change it after the check.
import * as L from "../../../assembly/layout.js";
import type { Memory, PacketKernel } from "../../kernel/kernel.js";
import type { Address } from "../../link/link.js";
import { copyInto } from "../../support/copy.js";
import type { Arena } from "../store/arena.js";
import type { Seal } from "./key-schedule.js";

export class ReceivedPacket {
  readonly #kernel: PacketKernel;
  readonly #memory: Memory;
  readonly #job: number;
  /** Pointer to the receive buffer, and to the packet: there, or where the link has put it. */
  readonly #buffer: number;
  #at: number;
  #length = 0;
  /** The packet, where the link has put it into the node's memory. */
  #received: Uint8Array | undefined;
  from: Address = "";

  /** It takes packets of every size: the links of other nodes may carry larger ones than this node's. */
  constructor(kernel: PacketKernel, memory: Memory, arena: Arena, job: number) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#job = job;
    this.#buffer = arena.allocate(L.PACKET_BYTES_MAX);
    this.#at = this.#buffer;
  }

  /**
   * Takes a packet in place of the previous one: copies it into the receive buffer, unless it is in the node's memory.
   * @returns PACKET_RIGHT, or the first rule that the packet breaks: its fields must not be read then
   */
  load(from: Address, packet: Uint8Array): number {
    this.from = from;
    this.#length = packet.length;
    if (packet.length > L.PACKET_BYTES_MAX) return L.PACKET_WRONG_SIZE;
    const { bytes } = this.#memory;
    const isThere = packet.buffer === bytes.buffer;
    this.#at = isThere ? packet.byteOffset : this.#buffer;
    this.#received = isThere ? packet : undefined;
    if (!isThere) copyInto(bytes, this.#at, packet);
    return this.#kernel.packetCheck(this.#at, packet.length, this.#job);
  }

  /**
   * Opens the packet in place, and removes its tag.
   * @returns PACKET_RIGHT, or the first rule that the opened packet breaks; undefined: it does not open with this seal. The
   * fields must not be read unless it is PACKET_RIGHT.
   */
  open(seal: Seal): number | undefined {
    const packet = this.#received ?? this.#memory.bytes.subarray(this.#at, this.end);
    if (!seal.open(packet, this.body - this.#at, this.sent)) return undefined;
    this.#length -= L.TAG_BYTES;
    packet[L.PACKET_LENGTH_OFFSET] = this.#length & 0xff;
    packet[L.PACKET_LENGTH_OFFSET + 1] = this.#length >>> 8;
    const flags = L.PACKET_FLAGS_SHIFT >>> 3;
    packet[flags] = (packet[flags] as number) & ~L.PACKET_SEALED;
    return this.#kernel.packetCheck(this.#at, this.#length, this.#job);
  }

  /** A word of the header. */
  #word(offset: number): number {
    return (this.#memory.words[(this.#at + offset) >>> 2] as number) >>> 0;
  }

  get kind(): number {
    return (this.#word(0) >>> L.PACKET_KIND_SHIFT) & 0xff;
  }

  get flags(): number {
    return this.#word(0) >>> L.PACKET_FLAGS_SHIFT;
  }

  get isSealed(): boolean {
    return (this.flags & L.PACKET_SEALED) !== 0;
  }

  get session(): number {
    return this.#word(L.PACKET_SESSION_OFFSET);
  }

  /** Its transmission number. */
  get sent(): number {
    return this.#word(L.PACKET_SENT_OFFSET);
  }

  /** Its packet number. */
  get number(): number {
    return this.#word(L.PACKET_NUMBER_OFFSET);
  }

  /** Pointer to its body. */
  get body(): number {
    return this.#at + (this.#word(L.PACKET_LENGTH_OFFSET) >>> 16);
  }

  /** Pointer to the end of its body. */
  get end(): number {
    return this.#at + this.#length;
  }

  /** A word of the body. */
  at(offset: number): number {
    return (this.#memory.words[(this.body + offset) >>> 2] as number) >>> 0;
  }

  /** Four words of the body: a nonce. */
  fourAt(offset: number): number[] {
    return [0, 4, 8, 12].map((at) => this.at(offset + at));
  }

  /** Words of the body; valid until the next load(). */
  words(offset: number, count: number): Int32Array {
    const first = (this.body + offset) >>> 2;
    return this.#memory.words.subarray(first, first + count);
  }
}

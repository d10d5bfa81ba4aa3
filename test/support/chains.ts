// Both sides of a self-pacing transfer in a rig: blocks of rget FIFOs, and the words that chainWrite() makes its links of.
import {
  BLOCK_NEXT_OFFSET,
  BLOCK_RGET_FIFOS_OFFSET,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  CONTEXT_RGET_FIFOS_OFFSET,
  LINK_SIZE,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  RGET_FIFO_BIT_OFFSET,
  RGET_FIFO_BYTES_OFFSET,
  RGET_FIFO_CHAIN_GENERATION_OFFSET,
  RGET_FIFO_CHAIN_INDEX_OFFSET,
  RGET_FIFO_DEPTH_OFFSET,
  RGET_FIFO_FRAGMENT_OFFSET,
  RGET_FIFO_FROM_GENERATION_OFFSET,
  RGET_FIFO_FROM_INDEX_OFFSET,
  RGET_FIFO_FROM_OFFSET_OFFSET,
  RGET_FIFO_OWN_GENERATION_OFFSET,
  RGET_FIFO_OWN_INDEX_OFFSET,
  RGET_FIFO_OWN_OFFSET_OFFSET,
  RGET_FIFO_PEER_ENDPOINT_OFFSET,
  RGET_FIFO_PEER_FIFO_OFFSET,
  RGET_FIFO_PEER_GENERATION_OFFSET,
  RGET_FIFO_PEER_INDEX_OFFSET,
  RGET_FIFO_PEER_OFFSET_OFFSET,
  RGET_FIFO_RING_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_STATUS_OFFSET,
  RGET_FIFO_TO_GENERATION_OFFSET,
  RGET_FIFO_TO_INDEX_OFFSET,
  RGET_FIFO_TO_OFFSET_OFFSET,
} from "../../assembly/layout.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { contextBlock, type MemoryMap, ordinalOf } from "../../src/memory/map.js";
import { bytesFrom } from "./bytes.js";
import type { Rig } from "./kernels.js";

/** A region that is open. */
export interface Region {
  readonly index: number;
  readonly generation: number;
  readonly base: number;
}

/** An rget FIFO of a task's context; its number is its bit in the status register. */
export interface Side {
  readonly task: number;
  readonly ordinal: number;
  readonly context: number;
  readonly block: Region;
  readonly number: number;
  /** Offset of the rget FIFO in its block. */
  readonly offset: number;
  readonly rgetFifo: number;
}

/** What a chain is made of. */
export interface Plan {
  readonly origin: Side;
  readonly target: Side;
  /** Generation of the origin's rget FIFO. */
  readonly generation: number;
  readonly payload: Region;
  readonly from: number;
  readonly destination: Region;
  readonly to: number;
  readonly links: Region;
  readonly bytes: number;
  readonly fragment: number;
  readonly depth: number;
  readonly ring?: number;
}

/** Makes a region a block of rget FIFOs, the first in the list of a task's context. */
export function addBlock(rig: Rig, task: number, block: Region, number = 0): void {
  const context = rig.context(ordinalOf(rig.map, task, number));
  rig.memory.bytes.fill(0, block.base, block.base + BLOCK_SIZE);
  rig.setWord(block.base + BLOCK_NEXT_OFFSET, rig.word(context + CONTEXT_RGET_FIFOS_OFFSET));
  rig.setWord(context + CONTEXT_RGET_FIFOS_OFFSET, block.base);
}

/** An rget FIFO of a block, of a task's context. */
export function sideOf(map: MemoryMap, task: number, block: Region, number: number, context = 0): Side {
  const offset = BLOCK_RGET_FIFOS_OFFSET + number * RGET_FIFO_SIZE;
  const ordinal = ordinalOf(map, task, context);
  return {
    task,
    ordinal,
    context: contextBlock(map, ordinal),
    block,
    number,
    offset,
    rgetFifo: block.base + offset,
  };
}

/** Once for each rget FIFO: where it tells its owner, and the owner of the other one: a task, and a context of it. */
export function readySide(rig: Rig, { block, rgetFifo, number }: Side, peer: number, context = 0): void {
  rig.setWord(rgetFifo + RGET_FIFO_STATUS_OFFSET, block.base + BLOCK_STATUS_OFFSET);
  rig.setWord(rgetFifo + RGET_FIFO_BIT_OFFSET, 1 << number);
  rig.setWord(rgetFifo + RGET_FIFO_PEER_ENDPOINT_OFFSET, ordinalOf(rig.map, peer, context));
}

/** What the target's core writes into its rget FIFO before chainWrite(): offset and value of each word. */
export function chainWords(plan: Plan): [offset: number, value: number][] {
  const { origin, target, payload, destination, links } = plan;
  return [
    [RGET_FIFO_PEER_INDEX_OFFSET, origin.block.index],
    [RGET_FIFO_PEER_GENERATION_OFFSET, origin.block.generation],
    [RGET_FIFO_PEER_OFFSET_OFFSET, origin.offset],
    [RGET_FIFO_PEER_FIFO_OFFSET, plan.generation],
    [RGET_FIFO_OWN_INDEX_OFFSET, target.block.index],
    [RGET_FIFO_OWN_GENERATION_OFFSET, target.block.generation],
    [RGET_FIFO_OWN_OFFSET_OFFSET, target.offset],
    [RGET_FIFO_FROM_INDEX_OFFSET, payload.index],
    [RGET_FIFO_FROM_GENERATION_OFFSET, payload.generation],
    [RGET_FIFO_FROM_OFFSET_OFFSET, plan.from],
    [RGET_FIFO_TO_INDEX_OFFSET, destination.index],
    [RGET_FIFO_TO_GENERATION_OFFSET, destination.generation],
    [RGET_FIFO_TO_OFFSET_OFFSET, plan.to],
    [RGET_FIFO_CHAIN_INDEX_OFFSET, links.index],
    [RGET_FIFO_CHAIN_GENERATION_OFFSET, links.generation],
    [RGET_FIFO_BYTES_OFFSET, plan.bytes],
    [RGET_FIFO_FRAGMENT_OFFSET, plan.fragment],
    [RGET_FIFO_RING_OFFSET, plan.ring ?? 0],
    [RGET_FIFO_DEPTH_OFFSET, plan.depth],
  ];
}

/** An rget FIFO that is open, and the kernel of its task. */
export interface End extends Side {
  readonly kernel: Kernel;
  readonly generation: number;
}

export interface Transfer extends Plan {
  readonly origin: End;
  readonly target: End;
}

/** The rget FIFOs of a transfer: at the origin and at the target. */
export interface Place {
  readonly blocks: readonly [Region, Region];
  readonly numbers: readonly [number, number];
  /** Of the two endpoints; by default the first contexts of tasks 0 and 1. */
  readonly ordinals?: readonly [number, number];
}

export interface Chain {
  readonly fragments: number;
  readonly depth: number;
  readonly fragment?: number;
  /** Bytes of the last fragment. */
  readonly last?: number;
  readonly ring?: number;
  readonly allowed?: number;
}

/** Where the payload begins in its region, and where the destination does. */
export const FROM = 8;
export const TO = 16;

let payload = new Uint8Array();

/** The first bytes of 1, 2, 3 … modulo 251; made once, since there are many. */
function payloadOf(bytes: number): Uint8Array {
  if (payload.length < bytes) payload = bytesFrom(2 * bytes, (i) => (i % 251) + 1);
  return payload.subarray(0, bytes);
}

/** What tasks do for their transfers in a rig: regions, blocks of rget FIFOs, chains. */
export class Chains {
  readonly #rig: Rig;
  readonly #kernelOf: (task: number) => Kernel;
  #opened = 0;

  constructor(rig: Rig, kernelOf: (task: number) => Kernel) {
    this.#rig = rig;
    this.#kernelOf = kernelOf;
  }

  region(task: number, bytes: number): Region {
    const { job, regions } = this.#rig.map;
    const kernel = this.#kernelOf(task);
    const base = kernel.regionAllocate(job, Math.ceil(bytes / PAGE_SIZE), task);
    if (base === OPEN_NO_MEMORY || base === OPEN_BUSY) throw new Error(`regionAllocate() gave ${base}`);
    const index = task * regions + this.#opened++;
    return { index, generation: kernel.regionOpen(job, index, base, bytes), base };
  }

  /** A block of rget FIFOs of an endpoint, before those that it has. */
  block(ordinal: number): Region {
    const [task, context] = this.#ends(ordinal);
    const made = this.region(task, BLOCK_SIZE);
    addBlock(this.#rig, task, made, context);
    return made;
  }

  /** Both sides of a transfer, and what its chain will be made of. The payload is 1, 2, 3 … modulo 251. */
  prepare(
    { fragments, depth, fragment = 100, last = fragment, ring = 0, allowed = NONE }: Chain,
    place: Place,
  ): Transfer {
    const { contexts } = this.#rig.map;
    const { blocks, numbers, ordinals = [0, contexts] } = place;
    const bytes = (fragments - 1) * fragment + last;
    const staged = ring === 0 ? bytes : ring * fragment;
    const origin = this.#open(ordinals[0], blocks[0], numbers[0], ordinals[1], allowed);
    const target = this.#open(ordinals[1], blocks[1], numbers[1], ordinals[0], NONE);
    const transfer: Transfer = {
      origin,
      target,
      generation: origin.generation,
      payload: this.region(origin.task, FROM + staged + 8),
      from: FROM,
      destination: this.region(target.task, TO + bytes + 8),
      to: TO,
      links: this.region(target.task, fragments * LINK_SIZE),
      bytes,
      fragment,
      depth,
      ring,
    };
    this.#rig.write(transfer.payload.base + FROM, payloadOf(staged));
    this.plan(transfer);
    return transfer;
  }

  /** Writes what the target's chain is made of. */
  plan(transfer: Transfer): void {
    for (const [offset, value] of chainWords(transfer)) this.#rig.setWord(transfer.target.rgetFifo + offset, value);
  }

  /** Has the target write the chain, and call its engine; how many links. */
  write({ target }: Transfer): number {
    const { job } = this.#rig.map;
    const links = target.kernel.chainWrite(job, target.rgetFifo);
    if (links !== 0) target.kernel.engineCall(job, target.ordinal);
    return links;
  }

  #open(ordinal: number, block: Region, number: number, peer: number, allowed: number): End {
    const [task, context] = this.#ends(ordinal);
    const side = sideOf(this.#rig.map, task, block, number, context);
    readySide(this.#rig, side, ...this.#ends(peer));
    const kernel = this.#kernelOf(task);
    return { ...side, kernel, generation: kernel.rgetOpen(side.rgetFifo, allowed) };
  }

  #ends(ordinal: number): [task: number, context: number] {
    const { contexts } = this.#rig.map;
    return [Math.floor(ordinal / contexts), ordinal % contexts];
  }
}

// The rget FIFOs of one context: its sides of the transfers that pace themselves, and who is told when one is over. An rget
// FIFO is where the engine at the other side injects descriptors: see RGET FIFO in assembly/layout.ts.
import {
  AWAY_YES,
  BLOCK_RGET_FIFOS_OFFSET,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  CONTEXT_RGET_FIFOS_OFFSET,
  RGET_FIFO_AWAY_OFFSET,
  RGET_FIFO_BIT_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_DEPTH_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_PEER_ENDPOINT_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_STATUS_OFFSET,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  SLICE_BYTES,
  TASK_NOTICE_OFFSET,
  TRANSFER_BROKEN,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
} from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import type { MemRegion } from "../../core/region.js";
import { type Result, resultOf, SHUTDOWN } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import type { RegionTable } from "../../memory/regions.js";
import { isAway, taskAt } from "../../node/address.js";
import type { ContextEngine } from "../../node/engine.js";
import { hasAcknowledged, hasEngineSeen, hasEngineThread, notifyEngine } from "../../node/liveness.js";
import type { AbortSignalLike } from "../../support/like.js";
import type { Base } from "../base.js";

/** An rget FIFO that is in use. */
export interface RgetFifo {
  readonly pointer: number;
  /** Counts its openings and closings. */
  readonly generation: number;
  /** Slots that were processed in it before. */
  readonly head: number;
  /** The region of its block, and where it lies in that. */
  readonly region: MemRegion;
  readonly offset: number;
  /** Ordinal of the endpoint at the other side. */
  readonly peer: number;
}

/** One side of a transfer. */
export interface Side {
  readonly rgetFifo: RgetFifo;
  /** Which word of the rget FIFO has what came of it. */
  readonly resultOffset: number;
  /** Lets go of what is its owner's: takes no notice of a signal any more, keeps no payload. */
  readonly forget: () => void;
  /** The engine thread has ended: tells the other side, if that has begun it. Whether it is over by that. */
  breakOff(): boolean;
  /** It is over, and its rget FIFO is another one's from now on. */
  over(result: Result): void;
}

/** A side whose other one has ended, while the engine thread may be at it. */
interface Abandoned {
  readonly place: Place;
  readonly side: Side;
  /** What that has to have seen. */
  readonly notice: number;
}

/** An rget FIFO whose transfer is over, and at which another thread may still be. */
interface Broken {
  readonly place: Place;
  readonly side: Side;
  /** Whether that thread is at it no more. */
  readonly isFree: () => boolean;
}

/** Where an rget FIFO is. */
interface Place {
  readonly block: Block;
  readonly number: number;
}

interface Block {
  readonly region: MemRegion;
  readonly pointer: number;
  readonly sides: (Side | undefined)[];
}

export class TransferTable {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #context: number;
  readonly #regions: RegionTable;
  /** In the order in which the engine finds them. */
  readonly #blocks: Block[] = [];
  #abandoned: Abandoned[] = [];
  #broken: Broken[] = [];
  readonly #engine: ContextEngine;
  readonly #count: (change: 1 | -1) => void;
  readonly #posted: (() => void) | undefined;

  /**
   * @param count told of each rget FIFO that is opened, or closed
   */
  constructor(
    { kernel, memory, map, block, engine, posted }: Base,
    regions: RegionTable,
    count: (change: 1 | -1) => void,
  ) {
    this.#posted = posted;
    this.#count = count;
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#context = block;
    this.#engine = engine;
    this.#regions = regions;
  }

  /** Whether there is a free rget FIFO, or memory for more. */
  reserve(): boolean {
    if (this.#broken.length > 0) this.#takeBack();
    return this.#blocks.some(({ sides }) => sides.includes(undefined)) || this.#grow();
  }

  /**
   * Opens an rget FIFO for one side of a transfer with an endpoint.
   * @param allowed fragments that may be moved, or NONE: all
   * @param make the side that has it, before anybody else knows of it
   * @returns undefined: there is no memory
   */
  open<T extends Side>(peer: number, allowed: number, make: (rgetFifo: RgetFifo) => T): T | undefined {
    if (!this.reserve()) return undefined;
    const block = this.#blocks.find(({ sides }) => sides.includes(undefined)) as Block;
    const number = block.sides.indexOf(undefined);
    const pointer = rgetFifoAt(block, number);
    const offset = pointer - block.pointer;
    const head = this.#kernel.loadWord(pointer + RGET_FIFO_HEAD_OFFSET);
    const generation = this.#kernel.rgetOpen(pointer, allowed);
    this.#memory.words[(pointer + RGET_FIFO_PEER_ENDPOINT_OFFSET) >>> 2] = peer;
    const away = isAway(this.#map, peer) ? AWAY_YES : 0;
    const awayAt = (pointer + RGET_FIFO_AWAY_OFFSET) >>> 2;
    // Where tasks share memory it is 0 for ever: an engine thread may be looking.
    if (this.#memory.words[awayAt] !== away) this.#memory.words[awayAt] = away;
    // Of a target's it is from 1 on: the dump tells both sides apart by it.
    this.#memory.words[(pointer + RGET_FIFO_DEPTH_OFFSET) >>> 2] = 0;
    const side = make({ pointer, generation, head, region: block.region, offset, peer });
    block.sides[number] = side;
    this.#count(1);
    return side;
  }

  /** One turn of the engine, where that is this thread; ends what is over. Returns how many. */
  advance(): number {
    if (this.#engine.isOwn) this.#kernel.chainRun(this.#map.job, this.#context, SLICE_BYTES);
    return this.#endAll() + (this.#abandoned.length > 0 ? this.#endAbandoned() : 0);
  }

  /** Ends the transfers of which it was told that they are over. Returns how many. */
  #endAll(): number {
    const kernel = this.#kernel;
    let events = 0;
    for (const block of this.#blocks) {
      const { pointer, sides } = block;
      const bits = this.#toldIn(block);
      if (bits === 0) continue;
      kernel.clearBits(pointer + BLOCK_STATUS_OFFSET, bits);
      for (let left = bits; left !== 0; left &= left - 1) {
        const number = 31 - Math.clz32(left & -left);
        const side = sides[number];
        if (side === undefined || this.#isOver(side)) continue;
        events++;
        this.#end({ block, number }, side, this.#resultOf(side));
      }
    }
    return events;
  }

  /** The rget FIFOs of a block, as bits, of which it was told that they are over. */
  #toldIn(block: Block): number {
    // SYNC transfer-over (look): pairs with tell(): what it tells of has happened.
    let bits = this.#kernel.loadWord(block.pointer + BLOCK_STATUS_OFFSET);
    if (bits === 0) return 0;
    // Theirs say what came of them, once the engine thread is at nothing of them any more.
    for (const { place } of this.#abandoned) if (place.block === block) bits &= ~(1 << place.number);
    return bits;
  }

  /** Ends the sides that were abandoned, once the engine thread is at nothing of them any more. Returns how many. */
  #endAbandoned(): number {
    const before = this.#abandoned;
    this.#abandoned = before.filter(({ notice }) => !hasEngineSeen(this.#kernel, this.#map, notice));
    for (const one of before) {
      if (this.#abandoned.includes(one)) continue;
      this.#free(one.place, one.side, this.#settle(one));
    }
    return before.length - this.#abandoned.length;
  }

  /**
   * Empties the rget FIFO of a side whose other one has ended, and says what came of the transfer: that one may have ended
   * when all was over, and before that was told here. Nobody else is at the rget FIFO any more.
   */
  #settle({ place: { block, number }, side }: Abandoned): Result {
    const { resultOffset, rgetFifo } = side;
    const kernel = this.#kernel;
    // SYNC transfer-over (ended): pairs with tell(). Neither that nor what is in the rget FIFO is for the rget FIFO's next
    // transfer.
    const isTold = (kernel.loadWord(block.pointer + BLOCK_STATUS_OFFSET) & (1 << number)) !== 0;
    kernel.clearBits(block.pointer + BLOCK_STATUS_OFFSET, 1 << number);
    const isNoted = kernel.rgetClear(rgetFifo.pointer) !== 0;
    const isThere =
      resultOffset === RGET_FIFO_WRONG_OFFSET && kernel.loadWord(rgetFifo.pointer + RGET_FIFO_LEFT_OFFSET) === 0;
    return isTold || isNoted || isThere ? this.#resultOf(side) : SHUTDOWN;
  }

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    if (this.#abandoned.some(({ notice }) => hasEngineSeen(this.#kernel, this.#map, notice))) return true;
    if (this.#blocks.some((block) => this.#toldIn(block) !== 0)) return true;
    return this.#engine.isOwn && this.#kernel.chainLeft(this.#context) !== 0;
  }

  /** Whether there is a transfer with an endpoint, or an rget FIFO that it may be at. */
  holds(peer: number): boolean {
    if (this.#broken.length > 0) this.#takeBack();
    return this.#blocks.some(({ sides }) => sides.some((side) => side?.rgetFifo.peer === peer));
  }

  /** An endpoint has ended: so do all transfers with it. */
  ended(peer: number): void {
    // What came to its end before that is over as it is; and what was told of an rget FIFO is not for its next transfer.
    this.#endAll();
    for (const block of this.#blocks) {
      const { sides } = block;
      for (let number = 0; number < sides.length; number++) {
        const side = sides[number];
        if (side?.rgetFifo.peer !== peer || this.#isOver(side)) continue;
        this.#abandon({ block, number }, side);
      }
    }
  }

  /** The engine thread has ended: so have all transfers that it may have begun. */
  engineEnded(hadBegun: boolean): void {
    this.#endAll();
    for (const block of this.#blocks) {
      const { sides } = block;
      for (let number = 0; number < sides.length; number++) {
        const side = sides[number];
        // What was over and told of by who has broken it off may have left something.
        if (side === undefined) this.#kernel.rgetClear(rgetFifoAt(block, number));
        if (side === undefined || !hadBegun || this.#isOver(side)) continue;
        // With the agent, all tasks of other nodes have ended: that is told besides.
        if (isAway(this.#map, side.rgetFifo.peer)) continue;
        if (side.breakOff()) this.#break({ block, number }, side);
        // It may have ended between the last descriptor and telling of that.
        else if (this.#kernel.loadWord(side.rgetFifo.pointer + RGET_FIFO_HEAD_OFFSET) !== side.rgetFifo.head)
          this.#end({ block, number }, side, resultOf(TRANSFER_BROKEN));
      }
    }
    this.#endAbandoned();
  }

  #break(place: Place, side: Side): void {
    const { rgetFifo } = side;
    this.#kernel.rgetClose(rgetFifo.pointer);
    const slot = slotOf(this.#map, rgetFifo.peer);
    // SYNC notice (broken): pairs with acknowledgeNotice(): from then on the other side's context finds the rget FIFO
    // closed.
    const notice = (this.#kernel.addWord(slot + TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
    this.#kernel.ring(slot);
    this.#keep(place, side, () => hasAcknowledged(this.#kernel, this.#map, rgetFifo.peer, notice));
    this.#over(side, resultOf(TRANSFER_BROKEN));
  }

  /** Keeps the rget FIFO of a side that is over, without what it has moved: that is its owner's again. */
  #keep(place: Place, { rgetFifo, resultOffset }: Side, isFree: () => boolean): void {
    const side: Side = { rgetFifo, resultOffset, forget: () => {}, breakOff: () => true, over: () => {} };
    place.block.sides[place.number] = side;
    this.#broken.push({ place, side, isFree });
  }

  /** Frees the rget FIFOs that were kept, and at which no other thread is any more. */
  #takeBack(): void {
    this.#broken = this.#broken.filter(({ place: { block, number }, side: { rgetFifo }, isFree }) => {
      if (!isFree()) return true;
      // What it has told of it meanwhile is not for the rget FIFO's next transfer.
      this.#kernel.clearBits(block.pointer + BLOCK_STATUS_OFFSET, 1 << number);
      this.#kernel.rgetClear(rgetFifo.pointer);
      block.sides[number] = undefined;
      return false;
    });
  }

  /** The context closes: its memory goes once nobody can be at it. */
  close(): void {
    // SYNC rget-list (closed): pairs with moveSlice(). Before the regions of what is staged are closed.
    this.#kernel.storeWord(this.#context + CONTEXT_RGET_FIFOS_OFFSET, 0);
    for (const { region, sides } of this.#blocks) {
      for (const side of sides) side?.forget();
      region.close();
    }
  }

  /** Nothing more is moved through an rget FIFO, and all of it is counted as if it were. @param result TRANSFER_…: why */
  stop({ pointer, peer }: RgetFifo, result = TRANSFER_CANCELED): void {
    // SYNC stop (stop): pairs with the engines, on either side.
    this.#kernel.storeWord(pointer + RGET_FIFO_STOP_OFFSET, result);
    // Either may wait for more of it to be staged, and so may the other side's thread, where that copies it.
    if (!isAway(this.#map, peer)) {
      this.#kernel.engineCall(this.#map.job, peer);
      this.#kernel.ring(slotOf(this.#map, peer));
    } else this.#posted?.();
    this.#engine.call();
  }

  /** Why stop() was called, here or by the owner of another's rget FIFO, or TRANSFER_DONE. */
  stopOf(pointer: number): number {
    // SYNC stop (look): pairs with stop().
    return this.#kernel.loadWord(pointer + RGET_FIFO_STOP_OFFSET);
  }

  /** Whether it was. */
  isStopped(pointer: number): boolean {
    return this.stopOf(pointer) !== TRANSFER_DONE;
  }

  #resultOf({ rgetFifo, resultOffset }: Side): Result {
    return resultOf(this.#memory.words[(rgetFifo.pointer + resultOffset) >>> 2] as number);
  }

  /** A transfer is over: it has left nothing in its rget FIFO, unless the engine thread ended, and it was broken off. */
  #end(place: Place, side: Side, result: Result): void {
    this.#kernel.rgetClose(side.rgetFifo.pointer);
    // Who has broken it off knows of the engine thread's end; this context may not have heard of that.
    if (!hasEngineThread(this.#kernel, this.#map)) this.#kernel.rgetClear(side.rgetFifo.pointer);
    else if (isAway(this.#map, side.rgetFifo.peer)) {
      // The other node may have sent more than the transfer needs: it is not for the rget FIFO's next transfer.
      const notice = notifyEngine(this.#kernel, this.#map);
      this.#keep(place, side, () => hasEngineSeen(this.#kernel, this.#map, notice));
      this.#over(side, result);
      return;
    }
    this.#free(place, side, result);
  }

  /** Gives a side up. Nothing is moved any more once that is told, and only then its rget FIFO is free. */
  #abandon(place: Place, side: Side): void {
    this.#kernel.rgetClose(side.rgetFifo.pointer);
    this.#abandoned.push({ place, side, notice: notifyEngine(this.#kernel, this.#map) });
    if (this.#engine.isOwn) this.#endAbandoned();
  }

  /** Whether it is over, or given up, though it has its rget FIFO still. */
  #isOver(side: Side): boolean {
    return this.#broken.some((one) => one.side === side) || this.#abandoned.some((one) => one.side === side);
  }

  #free({ block, number }: Place, side: Side, result: Result): void {
    block.sides[number] = undefined;
    this.#over(side, result);
  }

  #over(side: Side, result: Result): void {
    this.#count(-1);
    side.forget();
    side.over(result);
  }

  /** Adds a block; false: there is no memory. */
  #grow(): boolean {
    const region = regionIfAny(this.#regions, BLOCK_SIZE);
    if (region === undefined) return false;
    const { words } = this.#memory;
    const pointer = region.bytes.byteOffset;
    region.bytes.fill(0);
    words[pointer >>> 2] = this.#blocks[0]?.pointer ?? 0;
    for (let number = 0; number < RGET_FIFO_COUNT; number++) {
      const rgetFifo = rgetFifoAt({ pointer }, number);
      words[(rgetFifo + RGET_FIFO_STATUS_OFFSET) >>> 2] = pointer + BLOCK_STATUS_OFFSET;
      words[(rgetFifo + RGET_FIFO_BIT_OFFSET) >>> 2] = 1 << number;
    }
    this.#blocks.unshift({ region, pointer, sides: Array.from({ length: RGET_FIFO_COUNT }, () => undefined) });
    // SYNC rget-list (blocks): pairs with chainRun().
    this.#kernel.storeWord(this.#context + CONTEXT_RGET_FIFOS_OFFSET, pointer);
    return true;
  }
}

/** Pointer to an rget FIFO of a block. */
function rgetFifoAt({ pointer }: Pick<Block, "pointer">, number: number): number {
  return pointer + BLOCK_RGET_FIFOS_OFFSET + number * RGET_FIFO_SIZE;
}

/** Pointer to the task slot of an endpoint's ordinal. */
export function slotOf(map: MemoryMap, ordinal: number): number {
  return taskSlot(map, taskAt(map, ordinal));
}

/** A region of pamir's own; undefined: there is no memory for it now. */
export function regionIfAny(regions: RegionTable, bytes: number): MemRegion | undefined {
  try {
    return regions.create(bytes, true);
  } catch (error) {
    const code = error instanceof PamiError ? error.code : "";
    if (code === "PAMIR_NO_MEMORY" || code === "PAMIR_BUSY") return undefined;
    throw error;
  }
}

/** Has a signal heard, also where it has been given before; what is returned ends that. */
export function onAbort(signal: AbortSignalLike | undefined, abort: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return () => signal.removeEventListener("abort", abort);
}

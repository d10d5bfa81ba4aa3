// The rget FIFOs of one context: its sides of self-pacing transfers, and their callbacks. The engine at the other side
// injects descriptors into an rget FIFO: see RGET FIFO in assembly/layout.ts.
import * as L from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import type { MemRegion } from "../../core/region.js";
import { type Result, resultOf, SHUTDOWN } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import type { RegionTable } from "../../memory/regions.js";
import { isRemote, taskAt } from "../../node/address.js";
import type { ContextEngine } from "../../node/engine.js";
import { hasAcknowledged, hasEngineSeen, hasEngineThread, notifyEngine } from "../../node/liveness.js";
import { hearAbort } from "../../support/abort.js";
import type { AbortSignalLike } from "../../support/like.js";
import type { ContextParts } from "../base.js";

/** An rget FIFO that is in use. */
export interface RgetFifo {
  readonly pointer: number;
  /** Generation: counts the openings and closings of the rget FIFO. */
  readonly generation: number;
  /** Slots that were processed in the rget FIFO before. */
  readonly head: number;
  /** The region of the rget FIFO's block, and the FIFO's offset in that region. */
  readonly region: MemRegion;
  readonly offset: number;
  /** Ordinal of the endpoint at the other side. */
  readonly peer: number;
}

/** One side of a transfer. */
export interface Side {
  readonly rgetFifo: RgetFifo;
  /** Offset of the rget FIFO's word with the result. */
  readonly resultOffset: number;
  /** Releases the caller's objects: stops listening to its signal, and keeps no payload. */
  readonly forget: () => void;
  /**
   * The engine thread has ended: tells the other side, if that side has begun the transfer. Returns whether this end also ends
   * the transfer.
   */
  breakOff(): boolean;
  /** The transfer is over. Its rget FIFO may serve another transfer from now on. */
  over(result: Result): void;
}

/** A side whose peer has ended, while the engine thread may still use the side's rget FIFO. */
interface Abandoned {
  readonly place: Place;
  readonly side: Side;
  /** The notice that the engine thread has to acknowledge first. */
  readonly notice: number;
}

/** An rget FIFO whose transfer is over, and which another thread may still use. */
interface Broken {
  readonly place: Place;
  readonly side: Side;
  /** Whether the engine thread no longer uses the rget FIFO. */
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
  /** The blocks of rget FIFOs, in the order in which the engine finds them. */
  readonly #blocks: Block[] = [];
  #abandoned: Abandoned[] = [];
  #broken: Broken[] = [];
  readonly #engine: ContextEngine;
  readonly #count: (change: 1 | -1) => void;
  readonly #posted: (() => void) | undefined;

  /** @param count called for each rget FIFO that is opened or closed */
  constructor(
    { kernel, memory, map, block, engine, posted }: ContextParts,
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
   * @param make makes the side that owns the rget FIFO, before any other thread can find the FIFO
   * @returns undefined: there is no memory
   */
  open<T extends Side>(peer: number, allowed: number, make: (rgetFifo: RgetFifo) => T): T | undefined {
    if (!this.reserve()) return undefined;
    const block = this.#blocks.find(({ sides }) => sides.includes(undefined)) as Block;
    const number = block.sides.indexOf(undefined);
    const pointer = rgetFifoAt(block, number);
    const offset = pointer - block.pointer;
    const head = this.#kernel.loadWord(pointer + L.RGET_FIFO_HEAD_OFFSET);
    const { words } = this.#memory;
    words[(pointer + L.RGET_FIFO_PEER_ENDPOINT_OFFSET) >>> 2] = peer;
    // In a target's rget FIFO the depth is 1 or more: the agent and the dump tell the sides apart by it.
    words[(pointer + L.RGET_FIFO_DEPTH_OFFSET) >>> 2] = 0;
    const away = isRemote(this.#map, peer) ? L.AWAY_YES : 0;
    const awayAt = pointer + L.RGET_FIFO_AWAY_OFFSET;
    // SYNC rget-away (open): pairs with the engines, which may still be looking at the transfer before. Between tasks that
    // share memory it is always 0.
    if (words[awayAt >>> 2] !== away) this.#kernel.storeWord(awayAt, away);
    const generation = this.#kernel.rgetOpen(pointer, allowed);
    const side = make({ pointer, generation, head, region: block.region, offset, peer });
    block.sides[number] = side;
    this.#count(1);
    return side;
  }

  /** One turn of the engine, if this thread is the engine. Then ends the transfers that are over. Returns how many ended. */
  advance(): number {
    if (this.#engine.isOwn) this.#kernel.chainRun(this.#map.job, this.#context, L.SLICE_BYTES);
    return this.#endAll() + (this.#abandoned.length > 0 ? this.#endAbandoned() : 0);
  }

  /** Ends the transfers whose status bit is set. Returns how many. */
  #endAll(): number {
    const kernel = this.#kernel;
    let events = 0;
    for (const block of this.#blocks) {
      const { pointer, sides } = block;
      const bits = this.#toldIn(block);
      if (bits === 0) continue;
      kernel.clearBits(pointer + L.BLOCK_STATUS_OFFSET, bits);
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

  /** The rget FIFOs of a block whose status bit is set. */
  #toldIn(block: Block): number {
    // SYNC transfer-over (look): pairs with tell(): the transfer is over, and its result is written.
    let bits = this.#kernel.loadWord(block.pointer + L.BLOCK_STATUS_OFFSET);
    if (bits === 0) return 0;
    // The bits of abandoned sides count only once the engine thread no longer uses these sides.
    for (const { place } of this.#abandoned) if (place.block === block) bits &= ~(1 << place.number);
    return bits;
  }

  /** Ends the abandoned sides that the engine thread no longer uses. Returns how many ended. */
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
   * Empties the rget FIFO of a side whose peer has ended, and returns the transfer's result. The transfer may have been over
   * before the peer ended, with the status bit not seen here yet. No other thread uses the rget FIFO any more.
   */
  #settle({ place: { block, number }, side }: Abandoned): Result {
    const { resultOffset, rgetFifo } = side;
    const kernel = this.#kernel;
    // SYNC transfer-over (ended): pairs with tell(). The rget FIFO's next transfer must find neither the bit nor these
    // descriptors.
    const isTold = (kernel.loadWord(block.pointer + L.BLOCK_STATUS_OFFSET) & (1 << number)) !== 0;
    kernel.clearBits(block.pointer + L.BLOCK_STATUS_OFFSET, 1 << number);
    const isNoted = kernel.rgetClear(rgetFifo.pointer) !== 0;
    const isThere =
      resultOffset === L.RGET_FIFO_WRONG_OFFSET && kernel.loadWord(rgetFifo.pointer + L.RGET_FIFO_LEFT_OFFSET) === 0;
    return isTold || isNoted || isThere ? this.#resultOf(side) : SHUTDOWN;
  }

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    if (this.#abandoned.some(({ notice }) => hasEngineSeen(this.#kernel, this.#map, notice))) return true;
    if (this.#blocks.some((block) => this.#toldIn(block) !== 0)) return true;
    return this.#engine.isOwn && this.#kernel.chainLeft(this.#context) !== 0;
  }

  /** Whether there is a transfer with an endpoint, or an rget FIFO that the endpoint may still use. */
  holds(peer: number): boolean {
    if (this.#broken.length > 0) this.#takeBack();
    return this.#blocks.some(({ sides }) => sides.some((side) => side?.rgetFifo.peer === peer));
  }

  /** An endpoint has ended: ends all transfers with it. */
  ended(peer: number): void {
    // Transfers that were over before keep their result. An rget FIFO's next transfer must not find an old status bit.
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

  /** The engine thread has ended: ends all transfers that it may have begun. */
  engineEnded(hadBegun: boolean): void {
    this.#endAll();
    for (const block of this.#blocks) {
      const { sides } = block;
      for (let number = 0; number < sides.length; number++) {
        const side = sides[number];
        // A transfer that the other side broke off may have left descriptors in the rget FIFO.
        if (side === undefined) this.#kernel.rgetClear(rgetFifoAt(block, number));
        if (side === undefined || !hadBegun || this.#isOver(side)) continue;
        // Without the agent, all tasks of other nodes count as ended: ended() handles their transfers.
        if (isRemote(this.#map, side.rgetFifo.peer)) continue;
        if (side.breakOff()) this.#break({ block, number }, side);
        // The engine thread may have ended after the last descriptor, and before it set the status bit.
        else if (this.#kernel.loadWord(side.rgetFifo.pointer + L.RGET_FIFO_HEAD_OFFSET) !== side.rgetFifo.head)
          this.#end({ block, number }, side, resultOf(L.TRANSFER_BROKEN));
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
    const notice = (this.#kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
    this.#kernel.ring(slot);
    this.#keep(place, side, () => hasAcknowledged(this.#kernel, this.#map, rgetFifo.peer, notice));
    this.#over(side, resultOf(L.TRANSFER_BROKEN));
  }

  /** Keeps the rget FIFO of a side that is over. The moved bytes belong to their owner again. */
  #keep(place: Place, { rgetFifo, resultOffset }: Side, isFree: () => boolean): void {
    const side: Side = { rgetFifo, resultOffset, forget: () => {}, breakOff: () => true, over: () => {} };
    place.block.sides[place.number] = side;
    this.#broken.push({ place, side, isFree });
  }

  /** Frees the kept rget FIFOs that no other thread uses any more. */
  #takeBack(): void {
    this.#broken = this.#broken.filter(({ place: { block, number }, side: { rgetFifo }, isFree }) => {
      if (!isFree()) return true;
      // The rget FIFO's next transfer must not find a status bit that the other thread has set meanwhile.
      this.#kernel.clearBits(block.pointer + L.BLOCK_STATUS_OFFSET, 1 << number);
      this.#kernel.rgetClear(rgetFifo.pointer);
      block.sides[number] = undefined;
      return false;
    });
  }

  /** The context closes: its memory is freed once no thread can access it. */
  close(): void {
    // SYNC rget-list (closed): pairs with moveSlice(). Before the regions of staged payloads are closed.
    this.#kernel.storeWord(this.#context + L.CONTEXT_RGET_FIFOS_OFFSET, 0);
    for (const { region, sides } of this.#blocks) {
      for (const side of sides) side?.forget();
      region.close();
    }
  }

  /**
   * Stops a transfer: the engines move no more bytes, but count further bytes as if moved. @param result TRANSFER_…: the reason
   */
  stop({ pointer, peer }: RgetFifo, result = L.TRANSFER_CANCELED): void {
    // SYNC stop (stop): pairs with the engines, on either side.
    this.#kernel.storeWord(pointer + L.RGET_FIFO_STOP_OFFSET, result);
    // Either engine may wait for a fragment to be staged, as may the other side's thread if it copies the payload.
    if (!isRemote(this.#map, peer)) {
      this.#kernel.engineCall(this.#map.job, peer);
      this.#kernel.ring(slotOf(this.#map, peer));
    } else this.#posted?.();
    this.#engine.call();
  }

  /** The reason of stop(), which the owner of the rget FIFO has called; or TRANSFER_DONE. */
  stopOf(pointer: number): number {
    // SYNC stop (look): pairs with stop().
    return this.#kernel.loadWord(pointer + L.RGET_FIFO_STOP_OFFSET);
  }

  /** Whether stop() was called. */
  isStopped(pointer: number): boolean {
    return this.stopOf(pointer) !== L.TRANSFER_DONE;
  }

  #resultOf({ rgetFifo, resultOffset }: Side): Result {
    return resultOf(this.#memory.words[(rgetFifo.pointer + resultOffset) >>> 2] as number);
  }

  /** A transfer is over. Its rget FIFO is empty, unless the engine thread ended and the transfer was broken off. */
  #end(place: Place, side: Side, result: Result): void {
    this.#kernel.rgetClose(side.rgetFifo.pointer);
    // The side that broke the transfer off knows that the engine thread has ended. This context may not yet know that.
    if (!hasEngineThread(this.#kernel, this.#map)) this.#kernel.rgetClear(side.rgetFifo.pointer);
    else if (isRemote(this.#map, side.rgetFifo.peer)) {
      // The other node may have sent more descriptors than the transfer needs. The rget FIFO's next transfer must not find
      // them.
      const notice = notifyEngine(this.#kernel, this.#map);
      this.#keep(place, side, () => hasEngineSeen(this.#kernel, this.#map, notice));
      this.#over(side, result);
      return;
    }
    this.#free(place, side, result);
  }

  /**
   * Gives up a side. Its rget FIFO is free once the engine thread has acknowledged the notice: from then on it moves
   * nothing.
   */
  #abandon(place: Place, side: Side): void {
    this.#kernel.rgetClose(side.rgetFifo.pointer);
    this.#abandoned.push({ place, side, notice: notifyEngine(this.#kernel, this.#map) });
    if (this.#engine.isOwn) this.#endAbandoned();
  }

  /** Whether a side that still has its rget FIFO is over or given up. */
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
    const region = regionIfAny(this.#regions, L.BLOCK_SIZE);
    if (region === undefined) return false;
    const { words } = this.#memory;
    const pointer = region.bytes.byteOffset;
    region.bytes.fill(0);
    words[pointer >>> 2] = this.#blocks[0]?.pointer ?? 0;
    for (let number = 0; number < L.RGET_FIFO_COUNT; number++) {
      const rgetFifo = rgetFifoAt({ pointer }, number);
      words[(rgetFifo + L.RGET_FIFO_STATUS_OFFSET) >>> 2] = pointer + L.BLOCK_STATUS_OFFSET;
      words[(rgetFifo + L.RGET_FIFO_BIT_OFFSET) >>> 2] = 1 << number;
    }
    this.#blocks.unshift({ region, pointer, sides: Array.from({ length: L.RGET_FIFO_COUNT }, () => undefined) });
    // SYNC rget-list (blocks): pairs with chainRun().
    this.#kernel.storeWord(this.#context + L.CONTEXT_RGET_FIFOS_OFFSET, pointer);
    return true;
  }
}

/** Pointer to an rget FIFO of a block. */
function rgetFifoAt({ pointer }: Pick<Block, "pointer">, number: number): number {
  return pointer + L.BLOCK_RGET_FIFOS_OFFSET + number * L.RGET_FIFO_SIZE;
}

/** Pointer to the task slot of an endpoint's ordinal. */
export function slotOf(map: MemoryMap, ordinal: number): number {
  return taskSlot(map, taskAt(map, ordinal));
}

/** A region for pamir's own use. Undefined: there is no memory for it now. */
export function regionIfAny(regions: RegionTable, bytes: number): MemRegion | undefined {
  try {
    return regions.create(bytes, true);
  } catch (error) {
    const code = error instanceof PamiError ? error.code : "";
    if (code === "PAMIR_NO_MEMORY" || code === "PAMIR_BUSY") return undefined;
    throw error;
  }
}

/** Calls `abort` once a signal is aborted, also if the signal already is. Returns a function that stops listening. */
export function onAbort(signal: AbortSignalLike | undefined, abort: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) abort();
  return hearAbort(signal, abort);
}

// The contract of a transport: what carries records, buffers and offered payloads from a context to a peer. Protocols know
// only this file of the transports. `shm/` implements lanes and buffers of one memory. `net/` implements `Remote`: it stands
// for peers of other memories behind the lanes of this one. What comes is read out of lanes by the `Kernel`.
//
// Every method runs on the thread of its task. A target is an endpoint's ordinal.

/** Results of Lanes.ensure(). */
export const LANE_READY = 0;
/** Try again at the next advance: the heap is locked, or the lane that stood there is not given back yet. */
export const LANE_LATER = 1;
/** As LANE_LATER, but only the target can change it, and it rings when it frees space. */
export const LANE_FULL = 2;
/** There is no memory for what was asked for; a smaller lane may be there. */
export const LANE_NO_MEMORY = 3;
/** The target has ended. */
export const LANE_ENDED = 4;

/** The lanes from one context to its targets. */
export interface Lanes {
  /** Ordinal of that context. */
  readonly origin: number;
  /** Lane to each target, 0 where there is none. Hot paths read it, and pass the lane to the kernel. */
  readonly open: Uint32Array;
  /**
   * Bytes of the largest body that every lane takes as one record, unless the heap had no piece for a first lane of full
   * size.
   */
  readonly smallBodyMax: number;
  /** Bytes of the largest body that a lane takes as one record. */
  recordBodyMax(lane: number): number;
  /**
   * Sends a whole message as one record, whose bytes are copied; false: the lane has no room.
   * @param total bytes of the body
   */
  send(
    lane: number,
    meta: number,
    header: Uint8Array | undefined,
    payload: Uint8Array | undefined,
    total: number,
  ): boolean;
  /** Copies the caller's bytes into shared memory. */
  copyIn(view: Uint8Array, pointer: number): void;
  /**
   * Provides a lane to the target that takes a body of `bytes` as one record. LANE_NO_MEMORY: the lane that is there takes
   * the body in packets.
   */
  ensure(target: number, bytes: number): number;
  /** Whether the target has ended, or its context is closed. */
  hasEnded(target: number): boolean;
  /** Takes back the lane to a target that has ended. */
  reclaim(target: number): void;
  /** Gives the lane up: the target frees it once it has read all; false: the lane has no room to say so. */
  close(target: number): boolean;
}

/** Of Buffers.take(): the target has to read what is in flight to it first. */
export const TAKE_LATER = -1;
/** Of Buffers.take(): there is no memory for a buffer of that size. */
export const TAKE_NO_MEMORY = -2;

/** Buffers on their way from one context to one target. */
export interface UnreadBuffers {
  /** Bytes of the buffers that the target has not read yet. */
  readonly unread: number;
}

/** The buffers of one task, each for one large payload that its target reads in place. */
export interface Buffers {
  /** Bytes that they may have together. */
  readonly share: number;
  /** Whether a payload may ever go in a buffer. */
  fits(bytes: number): boolean;
  /** Begins the flight from a context to a target. */
  flight(): UnreadBuffers;
  /** A slot with a buffer for a payload, or TAKE_…. The caller sends the slot or gives it back before the next trim(). */
  take(flight: UnreadBuffers, bytes: number): number;
  /** Whether take() would give a buffer, as far as one can tell without taking memory for it. */
  mayTake(flight: UnreadBuffers, bytes: number): boolean;
  /** As mayTake(), for a payload that must not go in packets: whether there is memory. */
  hasMemory(flight: UnreadBuffers, bytes: number): boolean;
  /** Bytes that a target takes in buffers now. */
  room(flight: UnreadBuffers): number;
  /** A slot for an extent of this task that is given to a target, or a negative number: no slot is free. */
  give(extent: number): number;
  /** Pointer to the extent of a slot, and to the slot's word. */
  extentOf(slot: number): number;
  pointerOf(slot: number): number;
  /** The slot's record is about to be committed. */
  send(flight: UnreadBuffers, slot: number): void;
  /** A slot that was taken is not sent. */
  giveBack(slot: number): void;
  /** One target more, or one fewer, waits for a buffer, and is to be woken. */
  want(change: 1 | -1): void;
  /** The target has ended: the buffers that it has not kept are used again. */
  end(flight: UnreadBuffers): void;
  /** The context has closed: its buffers come back as the target reads them. */
  close(flight: UnreadBuffers): void;
  /** Gives idle buffers back to the heap. Returns whether there were any. */
  trim(): boolean;
}

/** What carries this node's messages to tasks of other nodes: the agent. */
export interface RemoteAgent {
  /** Whether tasks learn of another task's death even if they send it nothing. */
  readonly failureDetection: boolean;
  /** The task in a slot has created its client. @param wake wakes the waits of this thread */
  serve(slot: number, wake: () => void): void;
  /** Where the agent has no thread: one turn of it, in each advance(). Returns whether it has done something. */
  turn(): boolean;
  /** As of a link: takes frames that have come, without a turn of the event loop. */
  readonly receive?: (() => boolean) | undefined;
  /** Whether turn() would do something. */
  readonly hasWork: boolean;
  /** Whether the agent awaits something for which no thread rings its bell: memory, or a lock. */
  readonly isRestless: boolean;
  /** Where the agent has no thread: the task has committed a record. */
  posted(): void;
  /** The task leaves the job. */
  close(): void;
}

/** The functions of a task's heap that a transport needs. */
export interface TransportHeap {
  /** Gives back what the task has closed and nothing uses any more, and idle buffers. */
  reclaim(): void;
  /** As reclaim(), without the buffers. */
  reclaimRegions(): void;
  /** A region of so many bytes; undefined: there is no memory. */
  block(bytes: number): { readonly pointer: number; close(): void } | undefined;
}

/** The transport of a task. */
export interface Transport {
  readonly buffers: Buffers;
  /** Where the agent of other nodes' messages has no thread of its own. */
  readonly remote: RemoteAgent | undefined;
  /** The lanes of a context. */
  lanes(origin: number): Lanes;
}

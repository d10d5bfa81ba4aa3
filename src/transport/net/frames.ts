// What carries frames between the agents of nodes: ports of channels, or packets of a network.
import type { Endpoint } from "../../core/endpoint.js";

/** A frame from a context to a context of another node. */
export type Frame =
  /** Records from the sending context to the receiving one, each behind a prefix: see records.ts. */
  | { readonly records: Uint8Array }
  /** Credit that the frame's sender gives back: bytes of records that went into its lanes. 0 opens the stream. */
  | { readonly credit: number }
  /**
   * A part of a one-sided operation: `descriptor` describes the whole operation, of which `moved` bytes are done. The remote
   * index is the region's number within the receiver's task. `more` has the bytes and the remote offset of each further put or
   * get on that region. Data come one behind the other.
   */
  | {
      readonly ask: number;
      readonly descriptor: Int32Array;
      readonly moved: number;
      readonly more: Int32Array | readonly number[];
      readonly data: Uint8Array | undefined;
    }
  /** One result of all operations that the frame asked for, or one of each. Data are of those that are done. */
  | {
      readonly answer: number;
      readonly results: Int32Array | readonly number[];
      readonly data: Uint8Array | undefined;
    }
  /**
   * A frame of a self-pacing transfer: see remote-rendezvous.ts. `chain` is CHAIN_…. The first four of `words` name the
   * receiver's rget FIFO; the meaning of the others depends on `chain`.
   */
  | { readonly chain: number; readonly words: Int32Array; readonly data: Uint8Array | undefined }
  /**
   * The last frame of a stream: the context has closed, or its task has left the job. The sender's node sends it once in
   * each stream to the receiver's node that was used before. `streams` is the number of these streams.
   */
  | { readonly end: "context" | "task" | "cutOff"; readonly streams: number };

/**
 * Takes a frame from a context of another node to one of this node. Its bytes are valid until this returns. False: it is
 * malformed, and is dropped.
 */
export type OnFrame = (from: Endpoint, to: Endpoint, frame: Frame) => boolean;

/** Sends a frame from a context of this node to one of another node. The caller owns its bytes again when this returns. */
export type SendFrame = (from: Endpoint, to: Endpoint, frame: Frame) => void;

/** Memory for a frame. */
export interface FrameMemory {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** Writes the records of a frame, from a word of its memory on. */
export type FillRecords = (frame: FrameMemory, at: number) => void;

/** Bytes of a frame of several records, at the most: those of a packet are fewer. */
export const FRAME_BYTES = 65_536;

/**
 * Carries frames: each once, and in order for each pair of contexts. Tasks are named by their numbers in the job, and a node
 * by that of its first task.
 */
export interface Pipe {
  /** Set by the agent. */
  onFrame: OnFrame;
  /** Whether tasks learn of another task's death even if they send it nothing. */
  readonly failureDetection: boolean;
  /** Takes a frame. */
  readonly send: SendFrame;
  /** Bytes of records, a multiple of 4, that the next frame to a context takes without being cut: at most FRAME_BYTES. */
  recordsMax(to: Endpoint): number;
  /** Takes a frame of so many bytes of records, which are written into the place that they leave from. */
  sendRecords(from: Endpoint, to: Endpoint, bytes: number, fill: FillRecords): void;
  /** Sends out what send() has taken. */
  flush(): void;
  /** The first task of a task's node. It names that node here. */
  firstTaskOf(task: number): number;
  /** First tasks of nodes to which something was sent, and that have a task that is not dropped: they wait for ends. */
  readonly talkedTo: Iterable<number>;
  /** Whether frames have come from a task. Then its end comes as a frame, behind all others. */
  receivesFrom(task: number): boolean;
  /** This node has left: its last frames still go out, and the pipe probes no node any more. */
  leave(): void;
  /**
   * A task has ended: the pipe drops what comes from it. Only ends of other tasks still go to it.
   * @returns whether all tasks of its node have ended
   */
  drop(task: number): boolean;
}

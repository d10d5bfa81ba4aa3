// The pipe, which carries frames between the agents of nodes: over ports of channels, or in packets of a network.
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
   * get on that region. The data of the operations follow each other.
   */
  | {
      readonly ask: number;
      readonly descriptor: Int32Array;
      readonly moved: number;
      readonly more: Int32Array | readonly number[];
      readonly data: Uint8Array | undefined;
    }
  /**
   * One result for all operations that the frame asked for, or a result for each. The data belong to the operations that are
   * done.
   */
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
   * The last frame of a stream: the context has closed, or its task has left the job. The sender's node sends this frame once
   * in each stream to the receiver's node that was used before. `streams` is the number of these streams.
   */
  | { readonly end: "context" | "task" | "cutOff"; readonly streams: number };

/**
 * Takes a frame from a context of another node to a context of this node. The frame's bytes are valid until onFrame() returns.
 * False: the frame is malformed, and is dropped.
 */
export type OnFrame = (from: Endpoint, to: Endpoint, frame: Frame) => boolean;

/**
 * Sends a frame from a context of this node to a context of another node. The caller owns the frame's bytes again when send()
 * returns.
 */
export type SendFrame = (from: Endpoint, to: Endpoint, frame: Frame) => void;

/** Memory for a frame. */
export interface FrameMemory {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** Writes the records of a frame, from a word of its memory on. */
export type FillRecords = (frame: FrameMemory, at: number) => void;

/** Most bytes of a frame of several records: a packet takes fewer bytes. */
export const FRAME_BYTES = 65_536;

/**
 * Carries frames: each once, and in order for each pair of contexts. Tasks are named by their numbers in the job, and a node by
 * the number of its first task.
 */
export interface Pipe {
  /** Set by the agent. */
  onFrame: OnFrame;
  /** Whether tasks learn of another task's death even if they send that task nothing. */
  readonly failureDetection: boolean;
  /** Takes a frame. */
  readonly send: SendFrame;
  /** Bytes of records, a multiple of 4, that the next frame to a context takes without being cut: at most FRAME_BYTES. */
  recordsMax(to: Endpoint): number;
  /** Takes a frame of so many bytes of records, which are written into the place that they leave from. */
  sendRecords(from: Endpoint, to: Endpoint, bytes: number, fill: FillRecords): void;
  /** Sends out the frames that send() has taken. */
  flush(): void;
  /** The first task of a task's node, whose number names the node here. */
  firstTaskOf(task: number): number;
  /** First tasks of nodes that wait for ends: nodes to which a frame was sent, and that have a task which is not dropped. */
  readonly talkedTo: Iterable<number>;
  /** Whether frames have come from a task. Then its end comes as a frame, after all its other frames. */
  receivesFrom(task: number): boolean;
  /** This node has left: its last frames still go out, and the pipe probes no node any more. */
  leave(): void;
  /**
   * A task has ended: the pipe drops frames from this task. Only ends of other tasks are still sent to it.
   * @returns whether all tasks of its node have ended
   */
  drop(task: number): boolean;
}

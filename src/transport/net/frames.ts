// What carries frames between the agents of nodes: ports of channels, or packets of a network.
import type { Endpoint } from "../../core/endpoint.js";

/** What one node says to another, from a context to a context. The bytes in it are the receiver's own. */
export type Frame =
  /** Records that the first has sent to the second, each behind a prefix: see records.ts. */
  | { readonly records: Uint8Array }
  /** So many bytes of records that were sent to the first have gone into its lanes. 0 opens the stream. */
  | { readonly credit: number }
  /**
   * A part of a one-sided operation: `descriptor` speaks of the whole, `moved` bytes of it are done. The remote index is the
   * region's number within the receiver's task.
   */
  | {
      readonly ask: number;
      readonly descriptor: Int32Array;
      readonly moved: number;
      readonly data: Uint8Array | undefined;
    }
  | { readonly answer: number; readonly result: number; readonly data: Uint8Array | undefined }
  /**
   * Of a self-pacing transfer: see remote-rendezvous.ts. `chain` is CHAIN_…. The first four of `words` name the receiver's
   * rget FIFO, the others are what that frame says.
   */
  | { readonly chain: number; readonly words: Int32Array; readonly data: Uint8Array | undefined }
  /**
   * The last frame of a stream: the context has closed, or its task has left the job. It is sent once in each stream to the
   * receiver's node that was used before: `streams` is their number.
   */
  | { readonly end: "context" | "task"; readonly streams: number };

/** Gets a frame, from a context of another node to one of this node. False: it is none, and is dropped. */
export type OnFrame = (from: Endpoint, to: Endpoint, frame: Frame) => boolean;

/** Sends a frame from a context of this node to one of another node. */
export type SendFrame = (from: Endpoint, to: Endpoint, frame: Frame) => void;

/**
 * Carries frames: each once, and those of a pair of contexts in order. Tasks are named by their numbers in the job, and a
 * node by that of its first task.
 */
export interface Pipe {
  /** Set by the agent. */
  onFrame: OnFrame;
  /** Whether a task that dies is told of to those that have nothing to say to it. */
  readonly failureDetection: boolean;
  /** Takes a frame; its bytes are the pipe's from now on. */
  readonly send: SendFrame;
  /** What was sent goes out now. */
  flush(): void;
  /** The first task of a task's node: the name of that node here. */
  firstTaskOf(task: number): number;
  /** First tasks of the nodes to which something was sent, and of which not all tasks are dropped: they wait for ends. */
  readonly talkedTo: Iterable<number>;
  /** Whether a task says something: then its end is the last of it. */
  receivesFrom(task: number): boolean;
  /** This node has left: its last frames still go out, and the pipe asks no task any more whether it lives. */
  leave(): void;
  /**
   * A task has ended: nothing goes to it any more but ends of others, and nothing comes.
   * @returns whether all tasks of its node have
   */
  drop(task: number): boolean;
}

// Standard input for the task that `pamir run` names, where it is a thread. A worker of Node with unread input never ends. So
// the task asks for each piece only when its program reads, and the main thread of its process answers.
import type { ReadStream } from "node:tty";
import { nodeModule } from "../../support/host.js";

/** A piece of the input, or null at its end. */
type Answer = Uint8Array | null;

type Threads = typeof import("node:worker_threads");

/** The message by which a task asks. */
const ASK = 1;

/** In a process's main thread: answers a task of this process. The channel keeps no process running. */
export function serveInput(name: string): void {
  const { BroadcastChannel } = nodeModule("worker_threads") as Threads;
  const channel = new BroadcastChannel(name);
  channel.unref();
  let stdin: ReadStream | undefined;
  /** Nothing more comes. */
  let isOver = false;
  const answer = (given: Answer): void => {
    isOver = given === null;
    channel.postMessage(given);
  };
  const open = (): ReadStream => {
    const { stdin } = process;
    stdin.on("data", (piece: Buffer) => {
      stdin.pause();
      answer(new Uint8Array(piece));
    });
    stdin.on("end", () => answer(null));
    stdin.on("error", () => answer(null));
    // A file has none.
    stdin.unref?.();
    return stdin;
  };
  channel.onmessage = (message: unknown): void => {
    if ((message as { data: unknown }).data !== ASK) return;
    if (isOver) {
      answer(null);
      return;
    }
    stdin ??= open();
    stdin.resume();
  };
}

/** In the task's worker: `process.stdin` reads the input of its process from now on. */
export function openInput(name: string): void {
  const { BroadcastChannel } = nodeModule("worker_threads") as Threads;
  const { Readable } = nodeModule("stream") as typeof import("node:stream");
  const channel = new BroadcastChannel(name);
  channel.unref();
  let isAwaited = false;
  const input = new Readable({
    // Nothing is asked for ahead of the program: a worker that awaits an answer does not end.
    highWaterMark: 0,
    read() {
      if (isAwaited) return;
      isAwaited = true;
      channel.ref();
      channel.postMessage(ASK);
    },
    destroy(error, done) {
      channel.close();
      done(error);
    },
  });
  channel.onmessage = (message: unknown): void => {
    const { data } = message as { data: Answer };
    isAwaited = false;
    channel.unref();
    input.push(data);
  };
  // As that of a process: a program that reads no more may end.
  input.on("pause", () => channel.unref());
  input.on("resume", () => {
    if (isAwaited) channel.ref();
  });
  Object.defineProperty(process, "stdin", { value: input, configurable: true, enumerable: true, writable: true });
}

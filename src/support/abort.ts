// One listener on each AbortSignal of this thread, however many calls and waits have it: hosts warn of more than ten.
import type { AbortSignalLike } from "./like.js";

interface Heard {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const NOTHING_HEARD = (): void => {};
const heard = new WeakMap<AbortSignalLike, Heard>();

/**
 * Calls `callback`, which is no other caller's, once a signal is aborted.
 * @returns a function that forgets it; with the last callback, the listener goes
 */
export function hearAbort(signal: AbortSignalLike | undefined, callback: () => void): () => void {
  if (signal === undefined) return NOTHING_HEARD;
  const known = heard.get(signal) ?? listenTo(signal);
  known.callbacks.add(callback);
  return () => {
    if (!known.callbacks.delete(callback) || known.callbacks.size > 0) return;
    signal.removeEventListener("abort", known.listener);
    if (heard.get(signal) === known) heard.delete(signal);
  };
}

function listenTo(signal: AbortSignalLike): Heard {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    heard.delete(signal);
    // Not every signal knows `once`.
    signal.removeEventListener("abort", listener);
    // A callback may make another one needless.
    for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
  };
  const known = { callbacks, listener };
  heard.set(signal, known);
  signal.addEventListener("abort", listener, { once: true });
  return known;
}

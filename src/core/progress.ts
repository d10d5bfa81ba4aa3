// What a context advances besides the lanes that it polls.

/** The waits of a thread that sleep without blocking it. */
export interface Sleepers {
  readonly sleepers: number;
  /** Wakes them. */
  ring(): void;
}

/**
 * Counts what the progress sources of one context have to do, all together: at 0, `advance()` asks none of them. Code of the
 * thread may begin something while a progress() sleeps. Nothing else wakes that, so this does.
 */
export class Activity {
  /** A field, which each round reads. Written by add(). */
  busy = 0;
  readonly #thread: Sleepers | undefined;

  constructor(thread?: Sleepers) {
    this.#thread = thread;
  }

  /** There is more to do, or less, by `change`. */
  add(change: number): void {
    if (change > 0 && this.#thread !== undefined && this.#thread.sleepers > 0) this.#thread.ring();
    this.busy += change;
  }
}

/**
 * A protocol that makes progress in `advance()`. It has what it needs of the optional members, and tells each change of `busy` to its context's Activity: see add() of
 * protocol/context-core.ts.
 */
export interface ProgressSource {
  /** What it has to do: at 0 its advance() is not called. A field, which each round reads. */
  readonly busy: number;
  /** Whether advance() would find something to do now: asked before the thread sleeps, while some source is busy. */
  readonly hasWork: boolean;
  /**
   * One round. Callbacks that are due go to the context's completions, which then run. What it throws comes out of the
   * context's advance(), and all else goes on.
   * @returns events, the callbacks not among them
   */
  advance(): number;
  /** Whether all that was issued here is out. What others have begun here does not count. Absent: a source issues nothing. */
  readonly isDrained?: boolean;
  /**
   * An endpoint has ended, by ordinal. This is told again whenever another one ends. Messages that it sent may still come:
   * `watch()` of ContextCore tells once they are delivered.
   * @param isTaskOver whether its task has ended, and not its context alone
   */
  ended?(ordinal: number, isTaskOver: boolean): void;
  /** Whether something is under way with an endpoint of another node, by ordinal: then its slot stays. */
  holds?(ordinal: number): boolean;
  /** An ordinal is another endpoint's from now on; nothing was under way with the one before, or that had ended. */
  forget?(ordinal: number): void;
  /** The engine thread has ended. @param hadBegun whether it may have begun something of this context */
  engineEnded?(hadBegun: boolean): void;
  /** The context closes. */
  close?(): void;
}

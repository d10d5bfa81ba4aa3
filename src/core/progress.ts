// What a context advances besides the lanes that it polls.

/** Counts what the progress sources of one context have to do, all together: at 0, `advance()` asks none of them. */
export class Activity {
  busy = 0;
}

/**
 * A protocol that makes progress in `advance()`. It counts each change of `busy` in the context's Activity too: see add() of
 * protocol/context.ts.
 */
export interface ProgressSource {
  /** What it has to do: at 0 its advance() is not called. A field, which each round reads. */
  readonly busy: number;
  /** Whether advance() would find something to do now: asked before the thread sleeps. */
  readonly hasWork: boolean;
  /** Whether all that was issued here is out: what others have begun, and nothing here awaits, does not count. */
  readonly isDrained: boolean;
  /** One round; it must not throw. Callbacks that are due go to the context's completions. @returns events */
  advance(): number;
  /** An endpoint has ended, by ordinal. This is told again whenever another one ends. */
  ended(ordinal: number): void;
  /** The engine thread has ended. @param hadBegun whether it may have begun something of this context */
  engineEnded(hadBegun: boolean): void;
  /** The context closes. */
  close(): void;
}

// What a context advances besides the lanes that it polls.

/** Counts what the progress sources of one context have to do, all together: at 0, `advance()` asks none of them. */
export class Activity {
  busy = 0;
}

/** A protocol that makes progress in `advance()`. Each change of `busy` is one of the context's Activity too. */
export interface ProgressSource {
  /** What it has to do: at 0 its advance() is not called. A field, which each round reads. */
  readonly busy: number;
  /** Whether advance() would find something to do now: asked before the thread sleeps. */
  readonly hasWork: boolean;
  /** One round. @returns events */
  advance(): number;
  /** An endpoint has ended, by ordinal. */
  ended(ordinal: number): void;
  /** The engine thread has ended. @param hadBegun whether it may have begun something of this context */
  engineEnded(hadBegun: boolean): void;
  /** The context closes. */
  close(): void;
}

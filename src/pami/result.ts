// Results: small integers that hot calls return and callbacks receive. The first seven are PAMI's (pami_result_t).

export const SUCCESS = 0;
export const ERROR = 1;
export const INVAL = 2;
export const UNIMPL = 3;
export const EAGAIN = 4;
export const ENOMEM = 5;
export const SHUTDOWN = 6;
export const TIMEDOUT = 1000;
export const CANCELED = 1001;
export const INTERRUPTED = 1002;

/** What an operation came to; `errorText` says it in words. */
export type Result =
  | typeof SUCCESS
  | typeof ERROR
  | typeof INVAL
  | typeof UNIMPL
  | typeof EAGAIN
  | typeof ENOMEM
  | typeof SHUTDOWN
  | typeof TIMEDOUT
  | typeof CANCELED
  | typeof INTERRUPTED;

const TEXTS: Record<Result, string> = {
  [SUCCESS]: "success",
  [ERROR]: "error",
  [INVAL]: "invalid argument",
  [UNIMPL]: "not implemented",
  [EAGAIN]: "no room now: advance, and try again",
  [ENOMEM]: "out of memory",
  [SHUTDOWN]: "the other side has ended",
  [TIMEDOUT]: "timed out",
  [CANCELED]: "canceled",
  [INTERRUPTED]: "interrupted",
};

/** A result in words. */
export function errorText(result: number): string {
  return TEXTS[result as Result] ?? `unknown result ${result}`;
}

/** Called in `advance()` when an operation is done. `cookie` is what the caller passed in. */
export type Callback = (cookie: unknown, result: Result) => void;

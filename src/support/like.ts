// What pamir uses of objects that the host gives: types for the public interface. So a program needs neither lib `dom` nor
// `@types/node` to compile against pamir, and an object of either fits.

/** What pamir uses of an `AbortSignal`. */
export interface AbortSignalLike {
  /** Whether it is aborted. */
  readonly aborted: boolean;
  /** Why; becomes the `cause` of the error that a canceled wait rejects with. */
  readonly reason?: unknown;
  /** Called by a wait when it begins. */
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  /** Called by a wait when it ends. */
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A `Worker`, of Node or of a browser: the members by which the types recognize one. */
export interface WorkerLike {
  /** Posts a message; each host has its own overloads. */
  // biome-ignore lint/suspicious/noExplicitAny: each host has its own overloads.
  postMessage(message: any, transfer?: any): void;
  /** Ends the worker. */
  terminate(): unknown;
}

/** A `MessagePort`, of Node or of a browser: the members by which the types recognize one. */
export interface MessagePortLike {
  /** Posts a message; each host has its own overloads. */
  // biome-ignore lint/suspicious/noExplicitAny: each host has its own overloads.
  postMessage(message: any, transfer?: any): void;
  /** Begins to deliver messages. */
  start(): void;
  /** Closes the channel. */
  close(): void;
}

/** The host's own `MessagePort`, if the program's types have one; else what a `MessagePort` has everywhere. */
export type HostMessagePort = typeof globalThis extends { MessagePort: { prototype: infer Port } }
  ? Port
  : MessagePortLike;

/** A `URL`, of Node or of a browser. */
export interface URLLike {
  /** The URL as a string. */
  readonly href: string;
}

// Types of host objects in the public interface, with only the members that pamir uses. So a program compiles against pamir
// without lib `dom` and `@types/node`, and objects of either fit.

/** The members of an `AbortSignal` that pamir uses. */
export interface AbortSignalLike {
  /** Whether it is aborted. */
  readonly aborted: boolean;
  /** The reason. It becomes the `cause` of the error with which a canceled wait rejects. */
  readonly reason?: unknown;
  /** A wait calls this when it begins. */
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  /** A wait calls this when it ends. */
  removeEventListener(type: "abort", listener: () => void): void;
}

/** The host's own `AbortSignal`, if the program's types have one; otherwise the members that pamir uses. */
export type HostAbortSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : AbortSignalLike;

/** A `WebAssembly.Memory`: the members that pamir uses. */
export interface WasmMemoryLike {
  /** The memory's bytes: another object once it has grown. */
  readonly buffer: ArrayBufferLike;
  /** Makes it longer by pages of 64 KiB. */
  grow(pages: number): number;
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
  /** Starts the delivery of messages. */
  start(): void;
  /** Closes the channel. */
  close(): void;
}

/** The host's own `MessagePort`, if the program's types have one; otherwise the members that every host has. */
export type HostMessagePort = typeof globalThis extends { MessagePort: { prototype: infer Port } }
  ? Port
  : MessagePortLike;

/** A `URL`, of Node or of a browser. */
export interface URLLike {
  /** The URL as a string. */
  readonly href: string;
}

// What a task of launchProgram() and its launcher tell each other: over the job's ports, which reach a thread that blocks no more.
import type { HostMessagePort } from "../support/like.js";
import type { MemoryTree } from "./wasi/memory-files.js";

/** What each task is given, as `client.args`. */
export interface ProgramOrder {
  readonly program: Uint8Array<ArrayBuffer>;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly files: MemoryTree;
  /** Standard input, which rank 0 has. */
  readonly input: string;
  readonly hostName: string | undefined;
  readonly isolate: boolean | undefined;
}

/** What a task tells. */
export type ProgramNews =
  | { readonly stream: 1 | 2; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly code: number; readonly error: ProgramFailure | undefined; readonly files: MemoryTree };

/** An error as a message carries it. */
export interface ProgramFailure {
  readonly code: string | undefined;
  readonly message: string;
}

/** The members that ports of all hosts have. */
export interface NewsPort {
  postMessage(message: unknown): void;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
}

/** Hears what the other end tells. */
export function hear(port: HostMessagePort, heard: (message: unknown) => void): void {
  (port as unknown as NewsPort).onmessage = ({ data }) => heard(data);
}

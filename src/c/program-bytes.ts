// A program's bytes, from wherever a program of JavaScript has them.
import { PamiError } from "../index.js";
import { nodeModule } from "../support/host.js";
import type { URLLike } from "../support/like.js";

/** Where a program is: its URL, the answer to a request for it, or its bytes. In Node a text may also be a path. */
export type ProgramSource = string | URLLike | ResponseLike | ArrayBuffer | Uint8Array;

/** A `Response`: the members that pamir uses. */
export interface ResponseLike {
  /** Whether the server has it. */
  readonly ok: boolean;
  /** 404, if it has not. */
  readonly status: number;
  /** Where it came from. */
  readonly url: string;
  /** Its bytes. */
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** @throws PAMIR_PROGRAM it can't be loaded */
export async function programBytes(program: ProgramSource): Promise<Uint8Array<ArrayBuffer>> {
  if (program instanceof Uint8Array) return program.slice();
  if (program instanceof ArrayBuffer) return new Uint8Array(program);
  if (typeof program === "object" && "arrayBuffer" in program) return bytesOf(program);
  const place = typeof program === "string" ? program : program.href;
  try {
    const fs = nodeModule("fs");
    if (fs !== undefined && !/^https?:/.test(place)) {
      return new Uint8Array(fs.readFileSync(place.startsWith("file:") ? new URL(place) : place));
    }
    return await bytesOf(await fetch(place));
  } catch (cause) {
    if (cause instanceof PamiError) throw cause;
    const text = `the program ${place} can't be loaded: ${(cause as Error).message}`;
    throw new PamiError("PAMIR_PROGRAM", text, { cause });
  }
}

async function bytesOf(response: ResponseLike): Promise<Uint8Array<ArrayBuffer>> {
  if (!response.ok)
    throw new PamiError("PAMIR_PROGRAM", `the program ${response.url} can't be loaded: status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

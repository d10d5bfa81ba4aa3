// Runs a program of this folder, with options of Node.
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { isAbsolute } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export interface Ended {
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

/** Runs a program of this folder, or another one, to its end. */
export async function run(
  options: readonly string[],
  parameters: readonly string[],
  spawned: SpawnOptions = {},
  program = "processes.js",
): Promise<Ended> {
  const file = isAbsolute(program) ? program : fileURLToPath(new URL(`programs/${program}`, import.meta.url));
  const child = spawn(process.execPath, [...options, file, ...parameters], { timeout: 60_000, ...spawned });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout as Readable),
    text(child.stderr as Readable),
    once(child, "close"),
  ]);
  return { out, err, code: code as number | null };
}

/** The option of this Node that turns its Permission Model on. */
export const PERMISSION = process.allowedNodeEnvironmentFlags.has("--permission")
  ? "--permission"
  : "--experimental-permission";

/** The options of Node that turn its Permission Model on, and allow some of what it knows. */
export function allowing(...allowed: readonly string[]): string[] {
  return [PERMISSION, ...allowed.map((what) => `--allow-${what}`), "--no-warnings"];
}

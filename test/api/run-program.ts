// Runs a program of this folder, with options of Node.
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";

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
  const child = spawn(process.execPath, [...options, file, ...parameters], { timeout: 100_000, ...spawned });
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

/** A copy of the package, its programs and tasks, where koffi is not installed. */
export function copyOfPackage(prefix: string) {
  const folder = mkdtempSync(join(inject("folder"), prefix));
  for (const part of ["dist", "package.json", "test/api/programs", "test/api/tasks"])
    cpSync(part, join(folder, part), { recursive: true });
  const koffi = join(folder, "node_modules/koffi");
  return {
    folder,
    program: join(folder, "test/api/programs/processes.js"),
    /** Installs koffi, with some functions of the C library replaced. @param errno of calls that fail; 0: the real one */
    replaceCalls(calls: Readonly<Record<string, string>>, errno = 0): void {
      mkdirSync(koffi, { recursive: true });
      const others = Object.entries(calls).map(([name, code]) => `${name}: ${code}`);
      writeFileSync(
        join(koffi, "index.js"),
        `const koffi = require(${JSON.stringify(fileURLToPath(import.meta.resolve("koffi")))});
        const calls = { ${others.join(", ")} };
        const load = (library) => {
          const c = koffi.load(library);
          return { func: (name, ...type) => calls[name] ?? c.func(name, ...type) };
        };
        module.exports = { ...koffi, load${errno === 0 ? "" : `, errno: () => ${errno}`} };`,
      );
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

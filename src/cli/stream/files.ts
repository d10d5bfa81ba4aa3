// The files that are streamed: those that are named, or large ones that are at hand.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError } from "../usage.js";

/** A file that is streamed. */
export interface StreamedFile {
  readonly path: string;
  readonly content: Buffer;
  /** SHA-256, in hexadecimal digits. */
  readonly digest: string;
}

/** Without names: so many of the largest files, of so many bytes each. */
const FILES = 8;
const FILE_BYTES_MIN = 2 ** 20;
const FILE_BYTES_MAX = 2 ** 25;
/** Of a large project: files that are looked at. */
const LOOKED_AT = 100_000;

/** Reads the files with these names, or large ones that are at hand. @throws UsageError for one that can't be read */
export function filesOf(names: readonly string[]): StreamedFile[] {
  const paths = names.length > 0 ? names.map(checkFile) : largeFiles();
  return paths.map((path) => {
    const content = readFile(path);
    return { path, content, digest: createHash("sha256").update(content).digest("hex") };
  });
}

function checkFile(name: string): string {
  const file = resolve(name);
  try {
    if (!statSync(file).isFile()) throw new UsageError(`${name} is not a file`);
    return file;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`can't read ${name}: ${(error as NodeJS.ErrnoException).code ?? error}`);
  }
}

function readFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`can't read ${file}: ${(error as NodeJS.ErrnoException).code ?? error}`);
  }
}

/** Large files of the packages at hand: where pamir is developed, its own tools. The running Node, if there are few. */
function largeFiles(): string[] {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const folder = [join(root, "node_modules"), resolve(root, "..")].find(
    (folder) => folder.endsWith("node_modules") && existsSync(folder),
  );
  const found: { path: string; bytes: number }[] = [];
  const entries = folder === undefined ? [] : readdirSync(folder, { recursive: true, withFileTypes: true });
  for (const { name, parentPath } of entries.filter((entry) => entry.isFile()).slice(0, LOOKED_AT)) {
    // Maps of sources are long, too, and say nothing to anybody.
    if (name.endsWith(".map")) continue;
    const path = join(parentPath, name);
    const bytes = statSync(path).size;
    if (bytes >= FILE_BYTES_MIN && bytes <= FILE_BYTES_MAX) found.push({ path, bytes });
  }
  found.sort((a, b) => b.bytes - a.bytes || (a.path < b.path ? -1 : 1));
  const paths = found.slice(0, FILES).map(({ path }) => path);
  return paths.length < 2 ? [process.execPath, ...paths] : paths;
}

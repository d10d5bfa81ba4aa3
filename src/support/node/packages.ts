// Packages that a program may install besides pamir: optional peer dependencies. They are looked up when they are needed, so
// bundlers see no import of them. The current folder is no place to look: other users may write to it, or above it.
import { nodeModule } from "../host.js";

type Require = ReturnType<typeof import("node:module").createRequire>;

/** Names that Node, Deno and Bun give to a program without a file: it came by --eval, or by standard input. */
const NO_FILE = /(?:^|[\\/])(?:\[[^\\/]*\]|\$deno\$[^\\/]*)$/;

/** Extensions of a worker's file. Without a file, a worker has its first argument in the same place. */
const WORKER_FILE = /\.[cm]?[jt]sx?$/;

/** The file that Node runs in this thread, without symbolic links. Undefined: it runs none, as for `node -e`. */
function programFile(createRequire: (from: string) => Require): string | undefined {
  const { argv, _eval: code } = process as typeof process & { _eval?: string };
  const [, file = ""] = argv;
  const isMain = nodeModule("worker_threads")?.isMainThread !== false;
  // Behind --eval stands what the program is told, a path of data perhaps.
  if (isMain ? code !== undefined : !WORKER_FILE.test(file)) return undefined;
  if (NO_FILE.test(file)) return undefined;
  try {
    // As Node finds it: it may be a link, a folder with a package.json, or lack its extension. A relative path throws.
    return createRequire(file).resolve(file);
  } catch {
    return undefined;
  }
}

/** Files beside which packages may lie: this one, the program's, and the module of a job's tasks. */
function* besides(createRequire: (from: string) => Require, entry: string | undefined): Generator<string> {
  // A bundler that makes CommonJS leaves no URL: then this file is the program's.
  const own = import.meta.url as string | undefined;
  if (own?.startsWith("file:")) yield own;
  const program = programFile(createRequire);
  if (program !== undefined) yield program;
  if (entry?.startsWith("file:")) yield entry;
}

/**
 * Looks beside this package, beside the program, and beside the module of a job's tasks, each with the folders above it.
 * Undefined: the package is not installed, or this is no Node.
 */
function found<Found>(look: (require: Require) => Found, entry?: string): Found | undefined {
  const createRequire = nodeModule("module")?.createRequire;
  if (createRequire === undefined) return undefined;
  for (const from of besides(createRequire, entry)) {
    try {
      return look(createRequire(from));
    } catch (error) {
      if ((error as { code?: string }).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

/** A CommonJS package. @param path where findPackage() has found it, for threads that can't look */
export function optionalPackage(name: string, path?: string): unknown {
  if (path === undefined) return found((require) => require(name) as unknown);
  return nodeModule("module")?.createRequire(path)(path);
}

/** The path of a package, which is not loaded. @param entry URL of the module of a job's tasks */
export function findPackage(name: string, entry?: string): string | undefined {
  return found((require) => require.resolve(name), entry);
}

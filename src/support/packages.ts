// Packages that a program may install besides pamir: optional peer dependencies. They are looked up when they are needed, so
// bundlers see no import of them.
import { nodeModule } from "./host.js";

type Require = ReturnType<typeof import("node:module").createRequire>;

/** Looks beside this package, then beside the program. Undefined: the package is not installed, or this is no Node. */
function found<Found>(look: (require: Require) => Found): Found | undefined {
  const createRequire = nodeModule("module")?.createRequire;
  if (createRequire === undefined) return undefined;
  for (const from of [import.meta.url, `${process.cwd()}/`]) {
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

/** The path of a package. */
export function findPackage(name: string): string | undefined {
  return found((require) => require.resolve(name));
}

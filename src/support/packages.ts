// Packages that a program may install besides pamir: optional peer dependencies. They are looked up when they are needed, so
// bundlers see no import of them.
import { nodeModule } from "./host.js";

/** A CommonJS package, beside this package or beside the program. Undefined: it is not installed, or this is no Node. */
export function optionalPackage(name: string): unknown {
  const require = nodeModule("module")?.createRequire;
  if (require === undefined) return undefined;
  for (const from of [import.meta.url, `${process.cwd()}/`]) {
    try {
      return require(from)(name);
    } catch (error) {
      if ((error as { code?: string }).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

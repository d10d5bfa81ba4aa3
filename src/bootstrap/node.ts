// Modules of Node that the bootstrap can't do without.
import { PamiError } from "../core/error.js";
import { nodeModule } from "../support/host.js";

/** A built-in module of Node. @throws PAMIR_BOOTSTRAP on other hosts */
export function needModule<Name extends Parameters<typeof nodeModule>[0]>(
  name: Name,
): NonNullable<ReturnType<typeof nodeModule<Name>>> {
  const found = nodeModule(name);
  if (found === undefined) {
    throw new PamiError("PAMIR_BOOTSTRAP", `the bootstrap of several processes needs node:${name}, which is not here`);
  }
  return found;
}

// Values that the processes of a job leave for each other at a bootstrap, as JSON.
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import { PamiError } from "../../core/error.js";
import { decodeText, encodeText } from "../../support/text.js";

export function put(bootstrap: Bootstrap, key: string, value: object | string): Promise<void> {
  return bootstrap.put(key, encodeText(JSON.stringify(value)));
}

/** A value that must be stored by now. @throws PAMIR_BOOTSTRAP */
export async function get<Value>(bootstrap: Bootstrap, key: string): Promise<Value> {
  const value = await find<Value>(bootstrap, key);
  if (value === undefined) throw new PamiError("PAMIR_BOOTSTRAP", `a process of the job has not stored ${key}`);
  return value;
}

/** A value, if it is stored already. */
export async function find<Value>(bootstrap: Bootstrap, key: string): Promise<Value | undefined> {
  const bytes = await bootstrap.get(key);
  return bytes && (JSON.parse(decodeText(bytes)) as Value);
}

// The entry of a task: checks before a worker is made, and the correct spelling for the text of an error.
import { PamiError, show } from "../core/error.js";
import { isNode, nodeModule } from "../support/host.js";
import type { URLLike, WorkerLike } from "../support/like.js";
import type { TaskEntry } from "./tasks/monitor.js";

const refuse = (text: string, cause?: unknown): never => {
  throw new PamiError("PAMIR_ENTRY", text, { cause });
};

/** @throws PAMIR_ENTRY */
export function checkEntry(entry: URLLike | string | (() => WorkerLike) | null): TaskEntry {
  if (typeof entry === "function" && !isNode()) return entry;
  if (typeof entry === "function") {
    return refuse("entry is a function: in Node it is the URL of the task module");
  }
  // A path of Windows is a URL, too: of the scheme "c:".
  if (typeof entry === "string" && /^(?:[a-z]:)?[\\/]/i.test(entry)) return refusePath(entry);
  let url: URL;
  try {
    url = new URL((entry as URLLike | null)?.href ?? (entry as string));
  } catch (cause) {
    return refuseNoUrl(entry, cause);
  }
  if (isNode() && url.protocol === "file:") checkFile(url);
  else if (isNode()) checkScheme(url);
  return url.href;
}

function refusePath(path: string): never {
  if (!isNode()) return refuse(`entry is ${show(path)}, a path: use new URL(${show(path)}, import.meta.url)`);
  return refuse(
    `entry is ${show(path)}, a path: use pathToFileURL() of "node:url", in CommonJS pathToFileURL(__filename)`,
  );
}

function refuseNoUrl(entry: unknown, cause: unknown): never {
  const relative = typeof entry === "string" ? entry.replace(/^(?!\.)/, "./") : "./task.js";
  const inModule = `new URL(${show(relative)}, import.meta.url)`;
  const inCommonJs = isNode() ? `, in CommonJS pathToFileURL(require.resolve(${show(relative)}))` : "";
  return refuse(`entry is ${show(entry)}, not a URL: use ${inModule}${inCommonJs}`, cause);
}

/** In Node and the like: refuses the schemes from which no worker starts there. */
function checkScheme(url: URL): void {
  const { protocol, href } = url;
  // Bun and Deno load modules from more places.
  const isOther = "Deno" in globalThis || "Bun" in globalThis;
  if (protocol === "data:" || (isOther && protocol !== "node:")) return;
  const why = protocol === "node:" ? "a module of Node itself" : `Node starts no worker from ${protocol}`;
  refuse(`entry is ${show(href)}: ${why}. Save the task module as a file, and use its URL`);
}

function checkFile(url: URL): void {
  let path = url.href;
  try {
    path = nodeModule("url")?.fileURLToPath(url) ?? path;
    const { permission } = process as { permission?: { has(scope: string, path?: string): boolean } };
    // Without this check, statSync() throws in Node 20.
    if (permission?.has("fs.read", path) === false) {
      refuse(`the task module ${path} may not be read: node --permission takes --allow-fs-read for that`);
    }
    const why = whyNoModule(path);
    if (why !== undefined) refuse(`the task module ${path} ${why}`);
  } catch (error) {
    if (error instanceof PamiError) throw error;
    refuse(`the task module ${path} can't be read: ${(error as Error).message}`, error);
  }
}

function whyNoModule(path: string): string | undefined {
  const { statSync, openSync, closeSync } = nodeModule("fs") as typeof import("node:fs");
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return "does not exist";
  if (found.isDirectory()) return "is a directory: name a file in it";
  if (!found.isFile()) return "is no file";
  closeSync(openSync(path, "r")); // accessSync asks Deno for the user's id, which takes --allow-sys
  const extension = /\.(?:json|node|wasm|html)$/.exec(path)?.[0];
  return extension && `is no program: a ${extension} file, not a module in JavaScript`;
}

// A task of `pamir run program.wasm`: runs the program of its second argument, with what the command line has behind that.
import { readFileSync, readSync } from "node:fs";
import { hostname } from "node:os";
import { setFlagsFromString } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { attach, PamiError } from "pamir";
import { hostFolder, runProgram } from "pamir/c";

const [isolated = "", path = "", ...args] = process.argv.slice(2);

// V8 has no on-stack replacement from its baseline compiler: a loop in main() stays slow. CG of NAS: 86 ms with, 36 without.
setFlagsFromString("--no-liftoff");

/**
 * Writes at once. In a worker, write() sends its first bytes alone until the event loop has a turn, and that stands still while the
 * program runs; _write() sends them all.
 */
function write(stream: 1 | 2, bytes: Uint8Array): void {
  const out = stream === 1 ? process.stdout : process.stderr;
  if (isMainThread) out.write(Buffer.from(bytes));
  else out._write(Buffer.from(bytes), "buffer" as BufferEncoding, () => {});
}

function read(count: number): Uint8Array {
  const into = new Uint8Array(count);
  try {
    return into.subarray(0, readSync(0, into));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EOF") return into.subarray(0, 0);
    throw error;
  }
}

const client = await attach();
try {
  const { code, error } = await runProgram(client, readFileSync(path), {
    args: [path, ...args],
    // Without --isolate: only if it can't be moved.
    isolate: isolated !== "" || undefined,
    env: Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    folders: ["/", "."].map((path) => ({ path, folder: hostFolder(path) })),
    hostName: hostname(),
    write,
    read,
  });
  if (error !== undefined) {
    const { cause } = error as { cause?: unknown };
    const { stack = "" } = cause instanceof Error ? cause : error;
    const frames = stack.slice(stack.search(/\n {4}at |$/));
    const code = error instanceof PamiError && error.code !== "PAMIR_PROGRAM" ? ` (${error.code})` : "";
    console.error(`pamir: task ${client.task}: ${error.message}${code}${/wasm/.test(frames) ? frames : ""}`);
  }
  process.exitCode = code;
} catch (error) {
  if (!(error instanceof PamiError)) throw error;
  console.error(`pamir: task ${client.task}: ${error.message} (${error.code})`);
  process.exitCode = 2;
}
client.close();
// Node 24 counts what _write() has sent, and waits for ever for as many answers.
if (!isMainThread) process.exit();

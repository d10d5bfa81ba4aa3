// A task of `pamir run program.wasm`: runs the program of its first argument, with what the command line has behind that.
import { readFileSync, readSync } from "node:fs";
import { hostname } from "node:os";
import { setFlagsFromString } from "node:v8";
import { attach, PamiError } from "pamir";
import { hostFolder, runProgram } from "pamir/c";

const [path = "", ...args] = process.argv.slice(2);

// V8 has no on-stack replacement from its baseline compiler: a loop in main() stays slow. CG of NAS: 86 ms with, 36 without.
setFlagsFromString("--no-liftoff");

/** Writes at once: a worker's stream waits for its event loop, which stands still while the program runs. */
function write(stream: 1 | 2, bytes: Uint8Array): void {
  const out = stream === 1 ? process.stdout : process.stderr;
  out._write(Buffer.from(bytes), "buffer" as BufferEncoding, () => {});
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
    const stack = cause instanceof Error ? cause.stack : error.stack?.replace(/^.*\n/, "");
    console.error(`pamir: task ${client.task}: ${error.message}${/wasm/.test(stack ?? "") ? `\n${stack}` : ""}`);
  }
  process.exitCode = code;
} catch (error) {
  if (!(error instanceof PamiError)) throw error;
  console.error(`pamir: task ${client.task}: ${error.message} (${error.code})`);
  process.exitCode = 2;
}
client.close();

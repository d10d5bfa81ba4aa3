// @ts-check
// Streams a file from task 0 to all others, which check it by SHA-256. Shows: send with back-pressure, a handler that gathers
// chunks in the order sent, calls with a reply.
//   node examples/stream.js [tasks] [file]
//   npx pamir run --hosts a,b examples/stream.js 2 FILE
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { attach, launch } from "pamir";

const CHUNK_BYTES = 64 * 1024;
const CHUNK = 1; // task 0 → all: the next bytes
const FINISH = 2; // a call of task 0: the other task replies with its digest

const [, , tasks = "2", file] = process.argv;

/** @param {import("pamir").Client} client */
async function stream(client) {
  const context = client.createContext();
  const { task, size } = client;
  if (task > 0) {
    const hash = createHash("sha256");
    let isOver = false;
    context.dispatch(CHUNK, (message) => void hash.update(message.payload));
    context.dispatch(FINISH, () => {
      isOver = true;
      return hash.digest();
    });
    while (!isOver) await context.progress({ timeout: 60_000 });
    return await client.close({ drain: true, timeout: 60_000 });
  }
  // Without a file: 4 MiB that no compression would shorten.
  const content = file === undefined ? generate(4 * 1024 ** 2) : readFileSync(file);
  const others = Array.from({ length: size - 1 }, (_, i) => client.endpoint(i + 1));
  const start = client.now();
  for (let at = 0; at < content.length; at += CHUNK_BYTES) {
    const payload = content.subarray(at, at + CHUNK_BYTES);
    for (const to of others) {
      // Without a queue, a slow receiver holds its sender back.
      await context.sendWhenRoom({ to, dispatch: CHUNK, payload, queue: false }, { timeout: 60_000 });
    }
  }
  const digests = await Promise.all(others.map((to) => context.call(to, FINISH, null, { timeout: 60_000 })));
  const rate = (content.length * others.length) / (client.now() - start) / 1e6;
  const right = createHash("sha256").update(content).digest("hex");
  const wrong = digests.filter((digest) => Buffer.from(digest).toString("hex") !== right).length;
  if (wrong > 0) throw new Error(`${wrong} of ${others.length} digests differ`);
  console.log(`tasks: ${size}, ${content.length} bytes to each: every SHA-256 is right, ${rate.toFixed(0)} MB/s`);
  await client.close({ drain: true, timeout: 60_000 });
}

/** @param {number} length */
function generate(length) {
  const words = new Uint32Array(length / 4);
  for (let i = 0, word = 1; i < words.length; i++) {
    word = Math.imul(word, 1664525) + 1013904223;
    words[i] = word;
  }
  return Buffer.from(words.buffer);
}

// A task gets its client: a thread that is launched below, or a process of `pamir run`, mpiexec, mpirun, srun.
const client = await attach().catch((error) => {
  if (error.code !== "PAMIR_NOT_IN_JOB") throw error;
});
if (client !== undefined) await stream(client);
else {
  const job = await launch(new URL(import.meta.url), {
    tasks: Number(tasks),
    workerOptions: { argv: process.argv.slice(2) },
  });
  for (const { task, code, cause, error = cause } of await job.exited) {
    if (code === 0) continue;
    console.error(`task ${task}: ${error}`);
    process.exitCode = 1;
  }
}

// @ts-nocheck
// A log is read in chunks, parsed by two workers, and written by one: by pamir.
import { openSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { CHUNK_BYTES, LineReader, parse } from "../lines.js";

const [PARSE, WRITE] = [1, 2];

export async function pipeline(input, output) {
  const reader = new LineReader(input);
  const job = await launch(new URL(import.meta.url), { tasks: 4, join: true, args: output });
  const context = job.client.createContext();
  const chunk = new Uint8Array(CHUNK_BYTES);
  const feed = async (worker) => {
    for (let bytes = reader.read(chunk); bytes > 0; bytes = reader.read(chunk))
      await context.call(worker, PARSE, chunk.subarray(0, bytes));
  };
  // Two calls to each worker are under way: it parses one chunk while the next one is read.
  await Promise.all([1, 2, 1, 2].map(feed));
  await job.terminate();
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  const file = client.task === 3 && openSync(client.args, "w");
  context.dispatch(PARSE, ({ payload }) => context.call(3, WRITE, parse(payload)));
  context.dispatch(WRITE, ({ payload }) => void writeSync(file, payload));
  while (!context.closed) await context.progress();
}

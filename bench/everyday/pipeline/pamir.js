// @ts-nocheck
// A log is read in chunks, parsed by two workers, and written by one: by pamir.
import { openSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { onMessage } from "../large.js";
import { CHUNK_BYTES, LineReader, parse } from "../lines.js";

const [PARSE, WRITE] = [1, 2];

export async function pipeline(input, output) {
  const reader = new LineReader(input);
  const job = await launch(new URL(import.meta.url), { tasks: 4, join: true, args: output });
  const { client } = job;
  const context = client.createContext();
  // Two calls of each worker are under way: it parses one chunk while the next one is read.
  const feed = async (task) => {
    const chunk = new Uint8Array(CHUNK_BYTES);
    for (let bytes = reader.read(chunk); bytes > 0; bytes = reader.read(chunk))
      await context.call(client.endpoint(task), PARSE, chunk.subarray(0, bytes));
  };
  await Promise.all([1, 2, 1, 2].map(feed));
  await job.terminate();
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  const file = client.task === 3 ? openSync(client.args, "w") : -1;
  onMessage(context, PARSE, (lines) => context.call(client.endpoint(3), WRITE, parse(lines)));
  onMessage(context, WRITE, (records) => void writeSync(file, records));
  while (!context.closed) await context.progress();
}

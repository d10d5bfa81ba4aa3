// @ts-nocheck
// The same by pamir, without a copy: chunks and records are regions, which messages give away. No task keeps them, so their
// memory is free for the next ones once they are read.
import { openSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { CHUNK_BYTES, LineReader, parse, recordBytesMax } from "../lines.js";

const [LINES, NEXT, RECORDS, END] = [1, 2, 3, 4];

export async function pipeline(input, output) {
  const reader = new LineReader(input);
  const job = await launch(new URL(import.meta.url), { tasks: 4, join: true, args: output });
  const { client } = job;
  const context = client.createContext();
  let atWorkers = 0;
  const feed = (to) => {
    const chunk = client.createRegion(CHUNK_BYTES);
    const bytes = reader.read(chunk.bytes);
    if (bytes === 0) return chunk.close();
    atWorkers++;
    context.send({ to, dispatch: LINES, payload: chunk.bytes.subarray(0, bytes), transfer: true });
  };
  context.dispatch(NEXT, ({ origin }) => {
    atWorkers--;
    feed(origin);
  });
  // Two chunks of each worker are under way: it parses one while the next one is read.
  for (const worker of [1, 2, 1, 2]) feed(client.endpoint(worker));
  while (atWorkers > 0) await context.progress();
  // Behind the records of its worker.
  await Promise.all([1, 2].map((worker) => context.call(client.endpoint(worker), END)));
  await job.terminate();
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  const writer = client.endpoint(3);
  const file = client.task === 3 && openSync(client.args, "w");
  context.dispatch(LINES, ({ origin, payload }) => {
    const memory = client.createRegion(recordBytesMax(payload.length));
    context.send({ to: writer, dispatch: RECORDS, payload: parse(payload, memory.bytes), transfer: true });
    context.send({ to: origin, dispatch: NEXT });
  });
  context.dispatch(RECORDS, ({ payload }) => void writeSync(file, payload));
  context.dispatch(END, () => (client.task === 3 ? undefined : context.call(writer, END)));
  while (!context.closed) await context.progress();
}

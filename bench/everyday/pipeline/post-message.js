// @ts-nocheck
// The same by postMessage with transfer. A chunk goes back to the reader, which fills it again.
import { once } from "node:events";
import { openSync, writeSync } from "node:fs";
import { isMainThread, MessageChannel, parentPort, Worker, workerData } from "node:worker_threads";
import { CHUNK_BYTES, LineReader, parse } from "../lines.js";

const start = (data, ports) => new Worker(new URL(import.meta.url), { workerData: data, transferList: ports });

export async function pipeline(input, output) {
  const reader = new LineReader(input);
  const channels = [new MessageChannel(), new MessageChannel()];
  const ports = channels.map(({ port2 }) => port2);
  const writer = start({ output, ports }, ports);
  for (const { port1 } of channels) {
    const worker = start({ port: port1 }, [port1]);
    const feed = (chunk) => worker.postMessage(chunk.subarray(0, reader.read(chunk)), [chunk.buffer]);
    worker.on("message", feed);
    // Two chunks of each worker are under way: it parses one while the next one is read.
    for (let i = 0; i < 2; i++) feed(new Uint8Array(CHUNK_BYTES));
  }
  await once(writer, "exit");
}

if (workerData?.port) {
  parentPort.on("message", (lines) => {
    if (lines.length === 0) process.exit();
    const records = parse(lines);
    workerData.port.postMessage(records, [records.buffer]);
    parentPort.postMessage(new Uint8Array(lines.buffer), [lines.buffer]);
  });
} else if (!isMainThread) {
  const file = openSync(workerData.output, "w");
  for (const port of workerData.ports) port.on("message", (records) => writeSync(file, records));
}

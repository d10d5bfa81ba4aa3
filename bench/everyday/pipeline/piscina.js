// @ts-nocheck
// The same by piscina: a pool of two workers, and one of one.
import { openSync, writeSync } from "node:fs";
import { Piscina } from "piscina";
import { CHUNK_BYTES, LineReader, parse } from "../lines.js";

export async function pipeline(input, output) {
  const reader = new LineReader(input);
  const pool = (threads, name) =>
    new Piscina({ filename: import.meta.url, name, minThreads: threads, maxThreads: threads, workerData: output });
  const [parsers, writers] = [pool(2, "parseLines"), pool(1, "writeRecords")];
  // Two chunks of each worker are under way: it parses one while the next one is read.
  const feed = async () => {
    let chunk = new Uint8Array(CHUNK_BYTES);
    for (let bytes = reader.read(chunk); bytes > 0; bytes = reader.read(chunk)) {
      const { records, buffer } = await parsers.run(chunk.subarray(0, bytes), { transferList: [chunk.buffer] });
      chunk = new Uint8Array(buffer);
      await writers.run(records, { transferList: [records.buffer] });
    }
  };
  await Promise.all([1, 2, 3, 4].map(feed));
  await Promise.all([parsers.destroy(), writers.destroy()]);
}

export function parseLines(lines) {
  const value = { records: parse(lines), buffer: lines.buffer };
  const transferList = [value.records.buffer, value.buffer];
  return Piscina.move({ [Piscina.valueSymbol]: value, [Piscina.transferableSymbol]: transferList });
}

const file = Piscina.isWorkerThread && openSync(Piscina.workerData, "a");
export const writeRecords = (records) => void writeSync(file, records);

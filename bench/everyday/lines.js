// @ts-check
// What the programs of the pipeline have in common: the log, reading it in chunks of whole lines, and what a line becomes.
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

export const CHUNK_BYTES = 1024 * 1024;
/** Bytes of a record: u32 milliseconds since midnight, u32 status, u32 bytes, u32 microseconds. */
const RECORD_BYTES = 16;
/** No line is shorter. */
const LINE_BYTES_MIN = 64;
const NEWLINE = 10;
const SPACE = 32;
const ZERO = 48;

/** Writes a log of about so many bytes, always the same. @param {string} path @param {number} bytes */
export function writeLog(path, bytes) {
  const file = openSync(path, "w");
  let seed = 1;
  const random = (/** @type {number} */ below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const digits = (/** @type {number} */ value, /** @type {number} */ width) => String(value).padStart(width, "0");
  const agents = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "kube-probe/1.29", "okhttp/4.12.0"];
  const statuses = [200, 200, 200, 200, 204, 304, 404, 500];
  let block = "";
  while (block.length < CHUNK_BYTES) {
    const time = `${digits(random(24), 2)}:${digits(random(60), 2)}:${digits(random(60), 2)}.${digits(random(1000), 3)}`;
    const address = `10.${random(256)}.${random(256)}.${random(256)}`;
    const path = `/api/v1/accounts/${random(1e6)}/orders/${random(1e8)}`;
    const status = statuses[random(statuses.length)];
    block += `2026-11-24T${time}Z ${address} GET ${path} ${status} ${random(1e5)} ${random(1e6)} ${agents[random(4)]}\n`;
  }
  for (let written = 0; written < bytes; written += block.length) writeSync(file, block);
  closeSync(file);
}

/** Reads a file from its beginning to its end, in chunks of whole lines. */
export class LineReader {
  #file;
  #position = 0;

  /** @param {string} path */
  constructor(path) {
    this.#file = openSync(path, "r");
  }

  /** Reads the next lines into `chunk`. @param {Uint8Array} chunk @returns bytes of them; 0: the file is over */
  read(chunk) {
    const bytes = readSync(this.#file, chunk, 0, chunk.length, this.#position);
    const whole = chunk.subarray(0, bytes).lastIndexOf(NEWLINE) + 1;
    this.#position += whole;
    return whole;
  }
}

/** Bytes that the records of some lines take at most. @param {number} bytes of the lines */
export const recordBytesMax = (bytes) => Math.ceil(bytes / LINE_BYTES_MIN) * RECORD_BYTES;

/** The records of whole lines. @param {Uint8Array} lines @param {Uint8Array} [memory] for them; else it is new */
export function parse(lines, memory = new Uint8Array(recordBytesMax(lines.length))) {
  const records = new Uint32Array(memory.buffer, memory.byteOffset, memory.length >>> 2);
  let at = 0;
  let count = 0;
  const number = () => {
    let value = 0;
    for (let byte = /** @type {number} */ (lines[at]); byte !== SPACE; byte = /** @type {number} */ (lines[++at])) {
      value = value * 10 + byte - ZERO;
    }
    at++;
    return value;
  };
  const two = (/** @type {number} */ from) =>
    10 * /** @type {number} */ (lines[from]) + /** @type {number} */ (lines[from + 1]) - 11 * ZERO;
  while (at < lines.length) {
    const seconds = 3600 * two(at + 11) + 60 * two(at + 14) + two(at + 17);
    const milliseconds = 10 * two(at + 20) + /** @type {number} */ (lines[at + 22]) - ZERO;
    records[count] = seconds * 1000 + milliseconds;
    at += 25;
    for (let field = 0; field < 3; at++) if (lines[at] === SPACE) field++;
    records[count + 1] = number();
    records[count + 2] = number();
    records[count + 3] = number();
    at = lines.indexOf(NEWLINE, at) + 1;
    count += 4;
  }
  return memory.subarray(0, 4 * count);
}

/** What a file of records holds, whatever their order. @param {string} path */
export function summaryOf(path) {
  const file = readFileSync(path);
  const words = new Uint32Array(file.buffer, file.byteOffset, file.length >>> 2);
  let sum = 0;
  for (const word of words) sum = (sum + word) >>> 0;
  return `${file.length / RECORD_BYTES} records, sum ${sum}`;
}

// The lines of PMI-1, the text protocol between a launcher and the processes that it starts.
//
// A line is a list of fields, separated by spaces, and ends with a line feed:
//
//   cmd=put kvsname=kvs_7_0 key=address-0 value=MTI3LjAuMC4xOjcxMTc
//
// The first field is `cmd`. A name has letters, digits, "_", "." and "-". A value has printable ASCII characters without
// spaces. Requests of several lines begin with `mcmd`; this file knows only the first line of such a request.
import { PamiError } from "../../core/error.js";
import { quote } from "../text.js";

/** With which a process that has a job key begins a connection, in place of a line. */
export const MAGIC_TEXT = "PAMIRRV1";

/** Longest line without its line feed, in bytes: a put of the longest names and value has 1,384. */
export const LINE_MAX = 2048;
/** Longest value, in bytes. */
export const VALUE_MAX = 1024;
/** Longest key, in bytes. */
export const KEY_MAX = 64;
/** Longest name of a key-value space, in bytes. */
export const KVSNAME_MAX = 256;

const NAME = /^[\w.-]+$/;
const VALUE = /^[!-~]*$/;
const SPACE = 0x20;
const TILDE = 0x7e;
const LINE_FEED = 0x0a;

export interface PmiLine {
  /** The value of `cmd`, or of `mcmd` with `isMultiple`. */
  readonly cmd: string;
  /** Whether more lines of the same request follow, up to `endcmd`. */
  readonly isMultiple: boolean;
  /** All fields after the first field. */
  readonly fields: ReadonlyMap<string, string>;
}

/**
 * The line of a command, without line feed.
 * @throws PAMIR_PMI if a name or value can't be part of a line, or the value or the line is too long
 */
export function encodeLine(cmd: string, fields: Readonly<Record<string, string | number>> = {}): string {
  let line = `cmd=${checked("cmd", cmd)}`;
  for (const [name, value] of Object.entries(fields)) {
    if (!NAME.test(name)) throw new PamiError("PAMIR_PMI", `${quote(name)} can't be the name of a field of PMI-1`);
    line += ` ${name}=${checked(name, `${value}`)}`;
  }
  if (line.length > LINE_MAX) {
    throw new PamiError("PAMIR_PMI", `a line of PMI-1 has ${line.length} bytes, not at most ${LINE_MAX}`);
  }
  return line;
}

function checked(name: string, value: string): string {
  if (!VALUE.test(value)) {
    throw new PamiError("PAMIR_PMI", `${name} is ${quote(value)}: a value of PMI-1 is printable ASCII without spaces`);
  }
  if (value.length > VALUE_MAX) {
    throw new PamiError("PAMIR_PMI", `${name} has ${value.length} bytes; a value of PMI-1 has at most ${VALUE_MAX}`);
  }
  return value;
}

/**
 * The fields of a line.
 * @param line without line feed, one character for each byte
 * @throws PAMIR_PMI if the line is malformed, and no other error.
 */
export function parseLine(line: string): PmiLine {
  if (line.length > LINE_MAX) throw malformed(line, `it has ${line.length} bytes, not at most ${LINE_MAX}`);
  checkPrintable(line);
  const fields = new Map<string, string>();
  let first: string | undefined;
  let cmd = "";
  for (const field of line.split(" ")) {
    // Senders may separate fields by several spaces.
    if (field === "") continue;
    const end = field.indexOf("=");
    if (end < 0) throw malformed(line, `the field ${quote(field)} has no "="`);
    const name = field.slice(0, end);
    const value = field.slice(end + 1);
    if (!NAME.test(name)) throw malformed(line, `the field ${quote(field)} has no name`);
    if (value.length > VALUE_MAX) {
      throw malformed(line, `the value of ${name} has ${value.length} bytes, not at most ${VALUE_MAX}`);
    }
    if (first === undefined) {
      if (name !== "cmd" && name !== "mcmd") throw malformed(line, `it begins with ${quote(name)}, not with "cmd"`);
      if (value === "") throw malformed(line, `its ${name} is empty`);
      first = name;
      cmd = value;
    } else if (fields.has(name) || name === first) throw malformed(line, `it has the field ${quote(name)} twice`);
    else fields.set(name, value);
  }
  if (first === undefined) throw malformed(line, "it has no field");
  return { cmd, isMultiple: first === "mcmd", fields };
}

function checkPrintable(line: string): void {
  for (let i = 0; i < line.length; i++) {
    const byte = line.charCodeAt(i);
    if (byte < SPACE || byte > TILDE) throw malformed(line, `byte ${i} is ${byte}, not printable ASCII`);
  }
}

function malformed(line: string, why: string): PamiError {
  if (line.startsWith(MAGIC_TEXT)) return new PamiError("PAMIR_PMI", "it has a job key, and this process has none");
  return new PamiError("PAMIR_PMI", `malformed line of PMI-1: ${why}: ${quote(line)}`);
}

/** Text without characters that a line can't have, for the `msg` of an answer. */
export function messageOf(text: string): string {
  return text.replace(/[^!-~]+/g, "_").slice(0, VALUE_MAX);
}

/** How lines lie in a stream of bytes. An object serves one connection: one direction for reading, the other for writing. */
export interface Framing {
  /** Takes bytes as they come, and copies them. */
  push(bytes: Uint8Array): void;
  /**
   * The next whole line; undefined if more bytes are needed.
   * @throws PAMIR_PMI, PAMIR_KEY if no line can come of these bytes; then the connection is to be closed
   */
  next(): string | undefined;
  /** The bytes of a line. */
  frame(line: string): Uint8Array;
  /** Bytes that `push` brought and `next` has not taken. */
  readonly length: number;
}

/** Bytes that came and are not consumed. */
export class PmiReceived {
  #bytes = new Uint8Array(0);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** The bytes, valid until the next call. */
  get view(): Uint8Array {
    return this.#bytes.subarray(this.#start, this.#end);
  }

  push(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#bytes.length) {
      const larger = new Uint8Array(2 * (this.length + bytes.length));
      larger.set(this.view);
      this.#end = this.length;
      this.#start = 0;
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  consume(count: number): void {
    this.#start += count;
    if (this.#start < this.#end) return;
    this.#start = 0;
    this.#end = 0;
  }
}

/** One character for each byte, so that no byte gets lost before a line is checked. */
export function textOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** The bytes of a text of ASCII characters. */
export function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Lines in the form of PMI-1: readable, each with a line feed at its end. */
export class PlainFraming implements Framing {
  readonly #received = new PmiReceived();

  get length(): number {
    return this.#received.length;
  }

  push(bytes: Uint8Array): void {
    this.#received.push(bytes);
  }

  next(): string | undefined {
    const { view } = this.#received;
    const end = view.indexOf(LINE_FEED);
    if (end > LINE_MAX || (end < 0 && view.length > LINE_MAX)) {
      throw malformed(textOf(view.subarray(0, LINE_MAX)), `no line feed within ${LINE_MAX} bytes`);
    }
    const line = textOf(end < 0 ? view : view.subarray(0, end));
    if (end < 0) {
      // A peer that speaks another protocol may never send a line feed.
      checkPrintable(line);
      return undefined;
    }
    this.#received.consume(end + 1);
    return line;
  }

  frame(line: string): Uint8Array {
    return bytesOf(`${line}\n`);
  }
}

// What a program has thrown, which may be anything: read without running into its own code's errors, and in the form in
// which it goes to another task.
//
// In that form, JSON, an error has its texts, its fields that are plain data, its cause and the errors of an AggregateError.
// All of it is bounded, and what is left out is named. The other side believes nothing of it: see thrownIn().
import { decodeText, encodeText } from "../support/text.js";
import { partOf, RemoteError, type RemoteParts, show, textOf } from "./error.js";

/** Most characters of a message, and of a stack. */
const MESSAGE_MAX = 65_536;
const STACK_MAX = 16_384;
/** Most characters of an error with its causes, and of all fields of them. */
const TEXT_MAX = 131_072;
const FIELDS_MAX = 8192;
/** Most errors within one, the causes and the errors of an AggregateError together; most causes of causes. */
const ERRORS_MAX = 32;
const DEPTH_MAX = 8;
/** Most names of what is left out. */
const OMITTED_MAX = 16;
/** Most bytes of JSON: a character of TEXT_MAX and FIELDS_MAX takes up to 6. */
const BYTES_MAX = 1_048_576;
/** Characters of the text that stands for an object without a message. */
const PREVIEW_MAX = 200;

/** Parts of an error that are no fields, beside those that every object has. */
const OWN_PARTS = new Set(["name", "message", "stack", "code", "cause", "errors", "omitted"]);
const ABSENT = Symbol();

/** What stands for a cause, or for one of several errors: an error or plain data. */
type WireValue = { readonly error: WireError } | { readonly value: unknown };

/** An error as it travels. */
interface WireError {
  name: string;
  message: string;
  code?: string | number | undefined;
  stack?: string | undefined;
  fields?: Record<string, unknown>;
  cause?: WireValue;
  errors?: WireValue[];
  omitted?: string[];
}

/** The texts of what was thrown. */
export interface ThrownTexts {
  readonly name: string;
  readonly message: string;
  readonly code: string | number | undefined;
  readonly stack: string | undefined;
}

/** Reads name, message, code and stack of what was thrown. It throws nothing. */
export function textsOf(thrown: unknown): ThrownTexts {
  const name = partOf(thrown, "name");
  const code = partOf(thrown, "code");
  const stack = partOf(thrown, "stack");
  return {
    name: typeof name === "string" && name !== "" && typeof thrown === "object" ? name : "Error",
    message: messageOf(thrown),
    code: typeof code === "string" || typeof code === "number" ? code : undefined,
    stack: typeof stack === "string" ? stack : undefined,
  };
}

function messageOf(thrown: unknown): string {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return textOf(thrown);
  const message = partOf(thrown, "message");
  if (typeof message === "string") return message;
  const text = textOf(message, "");
  if (message !== undefined && text !== "" && !text.startsWith("[object ")) return text;
  const own = textOf(thrown, "");
  if (own !== "" && !own.startsWith("[object ")) return own;
  const fields = new Reader().fields(thrown);
  return fields === undefined ? `a thrown ${show(thrown)}` : cut(JSON.stringify(fields), PREVIEW_MAX);
}

/** The bytes by which what was thrown goes to another task. It throws nothing. */
export function thrownBytes(thrown: unknown): Uint8Array {
  try {
    return encodeText(JSON.stringify(new Reader().error(thrown, 0)));
  } catch {
    return encodeText(JSON.stringify({ name: "Error", message: "a thrown value that can't be read" }));
  }
}

/**
 * The error in bytes of another task. The bytes may be anything: this throws nothing, and no key of them reaches a prototype.
 * @param from the place that threw it, in words
 */
export function thrownIn(bytes: Uint8Array, from: string): RemoteError {
  try {
    if (bytes.length <= BYTES_MAX) return errorIn(JSON.parse(decodeText(bytes)), from, 0);
  } catch {}
  return new RemoteError({ name: "Error", message: `an error of ${bytes.length} bytes that makes no sense` }, from);
}

/** Whether a value is an error, of any realm. */
function isError(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return typeof partOf(value, "message") === "string" && typeof partOf(value, "name") === "string";
}

/** Reads one thrown value, with all that belongs to it, within the bounds. */
class Reader {
  #text = TEXT_MAX;
  #fields = FIELDS_MAX;
  #errors = ERRORS_MAX;
  #omitted: string[] = [];
  readonly #seen = new Set<unknown>();

  error(thrown: unknown, depth: number): WireError {
    this.#seen.add(thrown);
    const outer = this.#omitted;
    this.#omitted = [];
    const { name, message, code, stack } = textsOf(thrown);
    const wire: WireError = { name: this.#cut(name, PREVIEW_MAX), message: this.#cut(message, MESSAGE_MAX) };
    if (code !== undefined) wire.code = typeof code === "string" ? this.#cut(code, PREVIEW_MAX) : code;
    else if (partOf(thrown, "code") != null) this.#omit("code");
    if (stack !== undefined) wire.stack = this.#cut(stack, STACK_MAX);
    const fields = this.fields(thrown);
    if (fields !== undefined) wire.fields = fields;
    const cause = typeof thrown === "object" ? partOf(thrown, "cause") : undefined;
    if (cause !== undefined) {
      const carried = this.#value(cause, depth + 1, "cause");
      if (carried !== undefined) wire.cause = carried;
    }
    const errors = partOf(thrown, "errors");
    if (typeof thrown === "object" && isArray(errors)) wire.errors = this.#all(errors, depth + 1);
    // Of an error that is passed on, the names are passed on.
    const before = partOf(thrown, "constructor") === RemoteError ? partOf(thrown, "omitted") : undefined;
    if (isArray(before)) for (const name of before) this.#omit(textOf(name));
    if (this.#omitted.length > 0) wire.omitted = this.#omitted;
    this.#omitted = outer;
    return wire;
  }

  /** Own enumerable fields that are plain data; undefined: there is none. */
  fields(thrown: unknown): Record<string, unknown> | undefined {
    if (typeof thrown !== "object" || thrown === null) return undefined;
    const fields = this.#object(
      thrown,
      "",
      0,
      (key) => isPart(key) && !(key === "errors" && !isArray(partOf(thrown, key))),
    );
    return fields === ABSENT || Object.keys(fields as object).length === 0
      ? undefined
      : (fields as Record<string, unknown>);
  }

  /** A cause, or one of several errors. */
  #value(value: unknown, depth: number, name: string): WireValue | undefined {
    if (isError(value)) {
      if (depth <= DEPTH_MAX && this.#errors > 0 && this.#text > 0 && !this.#seen.has(value)) {
        this.#errors--;
        return { error: this.error(value, depth) };
      }
    } else {
      const plain = this.#plain(value, name, 1);
      return plain === ABSENT ? undefined : { value: plain };
    }
    this.#omit(name);
    return undefined;
  }

  #all(errors: readonly unknown[], depth: number): WireValue[] {
    const all: WireValue[] = [];
    const length = Math.min(Number(partOf(errors, "length")), ERRORS_MAX);
    for (let place = 0; place < length; place++) {
      const carried = this.#value(partOf(errors, `${place}`), depth, `errors.${place}`);
      if (carried !== undefined) all.push(carried);
    }
    const more = errors.length - length;
    if (more > 0) this.#omit(`${more} more errors`);
    return all;
  }

  #plain(value: unknown, path: string, depth: number): unknown {
    if (value === null || typeof value === "boolean") return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value === "string" && this.#take(value.length)) return value;
    if (typeof value !== "object" || depth > DEPTH_MAX) return this.#omit(path);
    try {
      if (isArray(value)) return this.#array(value, path, depth);
      if (isError(value)) {
        const { name, message } = textsOf(value);
        const fields = this.#object(value, path, depth, isPart);
        return this.#take(name.length + message.length) && fields !== ABSENT
          ? { name, message, ...(fields as object) }
          : this.#omit(path);
      }
      const prototype = Object.getPrototypeOf(value);
      // A plain object, of any realm.
      if (prototype === null || Object.getPrototypeOf(prototype) === null) {
        return this.#object(value, path, depth, (key) => key === "__proto__");
      }
    } catch {}
    return this.#omit(path);
  }

  #array(array: readonly unknown[], path: string, depth: number): unknown {
    if (!this.#take(array.length)) return this.#omit(path);
    return Array.from(array, (each, place) => {
      const plain = this.#plain(each, `${path}.${place}`, depth + 1);
      return plain === ABSENT ? null : plain;
    });
  }

  #object(value: object, path: string, depth: number, isLeftOut: (key: string) => boolean): unknown {
    const plain: Record<string, unknown> = {};
    const prefix = path === "" ? "" : `${path}.`;
    let keys: readonly string[];
    try {
      keys = Object.keys(value);
    } catch {
      return this.#omit(path || "fields");
    }
    for (const [place, key] of keys.entries()) {
      if (isLeftOut(key)) continue;
      if (!this.#take(key.length + 4)) {
        this.#omit(`${prefix}${cut(key, PREVIEW_MAX)}`);
        if (keys.length - place > 1) this.#omit(`${keys.length - place - 1} more fields`);
        break;
      }
      const read = fieldOf(value, key);
      if (read === undefined) continue;
      const field = read === ABSENT ? this.#omit(prefix + key) : this.#plain(read, prefix + key, depth + 1);
      if (field !== ABSENT) plain[key] = field;
    }
    return plain;
  }

  /** Counts characters of fields. False: there are none left for them. */
  #take(characters: number): boolean {
    if (characters > this.#fields) return false;
    this.#fields -= characters;
    return true;
  }

  #omit(path: string): typeof ABSENT {
    if (this.#omitted.length < OMITTED_MAX) this.#omitted.push(cut(path, PREVIEW_MAX));
    else this.#omitted[OMITTED_MAX - 1] = "and more";
    return ABSENT;
  }

  #cut(text: string, most: number): string {
    const left = cut(text, Math.min(most, this.#text));
    this.#text = Math.max(0, this.#text - left.length);
    return left;
  }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`;
}

/** As Array.isArray(), which throws for a revoked proxy. */
function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** Whether a key is a part of every error or object, and no field. */
function isPart(key: string): boolean {
  return OWN_PARTS.has(key) || key in RemoteError.prototype;
}

/** A field that there is; ABSENT if reading it throws. */
function fieldOf(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return ABSENT;
  }
}

function errorIn(given: unknown, from: string, depth: number): RemoteError {
  const { name, message, code, stack, fields, cause, errors, omitted } = recordOf(given);
  const text = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise);
  const parts: RemoteParts = {
    name: text(name, "Error"),
    message: text(message, ""),
    code: typeof code === "string" || typeof code === "number" ? code : undefined,
    stack: typeof stack === "string" ? stack : undefined,
    fields: fieldsIn(fields, 0, (key) => isPart(key) && key !== "errors"),
    ...(cause !== undefined && depth < DEPTH_MAX && { cause: valueIn(cause, from, depth + 1) }),
    ...(isArray(errors) &&
      depth < DEPTH_MAX && { errors: errors.slice(0, ERRORS_MAX).map((each) => valueIn(each, from, depth + 1)) }),
    ...(isArray(omitted) && { omitted: omitted.slice(0, OMITTED_MAX).filter((each) => typeof each === "string") }),
  };
  return new RemoteError(parts, from);
}

function valueIn(given: unknown, from: string, depth: number): unknown {
  const { error, value } = recordOf(given);
  return error === undefined ? plainIn(value, 0) : errorIn(error, from, depth);
}

function recordOf(given: unknown): Record<string, unknown> {
  const isRecord = typeof given === "object" && given !== null;
  // A copy without a prototype: what is absent is not looked for in one.
  return Object.assign(Object.create(null), isRecord ? given : undefined);
}

function plainIn(given: unknown, depth: number): unknown {
  if (typeof given !== "object" || given === null) return given;
  if (depth > 2 * DEPTH_MAX) return undefined;
  if (isArray(given)) return given.map((each) => plainIn(each, depth + 1));
  return fieldsIn(given, depth, (key) => key === "__proto__");
}

function fieldsIn(given: unknown, depth: number, isLeftOut: (key: string) => boolean): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (typeof given !== "object" || given === null) return fields;
  for (const [key, value] of Object.entries(given)) if (!isLeftOut(key)) fields[key] = plainIn(value, depth + 1);
  return fields;
}

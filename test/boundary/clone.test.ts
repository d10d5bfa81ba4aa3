// codecs.clone(): what it refuses and how it says so, what it keeps beyond structured clone, and lengths around its limits.
import { createContext, runInContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { Cloner } from "../../src/core/clone/clone.js";
import { stringsByBuffer, stringsByText } from "../../src/core/clone/strings.js";
import { codecs } from "../../src/core/message/codec.js";

type Resizable = new (
  length: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { readonly maxByteLength: number; resize(length: number): void };

const codec = codecs.clone();
/** A copy, of the type that a test expects. */
const copyOf = <T = unknown>(value: unknown): T => codec.decode(codec.encode(value)) as T;

describe("names the place of what can't be copied:", () => {
  class Job {
    run = (): void => {};
  }
  const shared = new Uint8Array(new SharedArrayBuffer(8));
  const detached = new ArrayBuffer(8);
  structuredClone(detached, { transfer: [detached] });
  it.each<[string, unknown, RegExp]>([
    ["a function", function named() {}, /^value can't be copied to another task: it is a function named$/],
    ["a method of an instance", { jobs: [new Job()] }, /^value\.jobs\[0\]\.run .*a function run$/],
    ["a symbol behind an odd key", { "a b": Symbol("x") }, /^value\["a b"\] .*a symbol$/],
    ["a value of a Map", new Map([["k", () => {}]]), /^value\.get\("k"\) .*a function/],
    ["a key of a Map", new Map([[Symbol.iterator, 1]]), /^value \(a key of a Map\) .*a symbol/],
    ["a member of a Set", { all: new Set([new WeakMap()]) }, /^value\.all \(a member of a Set\) .*a WeakMap$/],
    ["the cause of an error", new Error("x", { cause: Promise.resolve() }), /^value\.cause .*a Promise$/],
    ["a generator", [(function* () {})()], /^value\[0\] .*a Generator$/],
    ["an iterator", new Map().keys(), /a Map Iterator$/],
    ["an object of the host", { url: new URL("http://localhost/") }, /^value\.url .*a URL$/],
    ["a Blob", new Blob(["x"]), /a Blob$/],
    [
      "shared memory",
      { bytes: shared },
      /^value\.bytes .*shared memory: send a copy of its bytes, or a region's handle$/,
    ],
    ["a SharedArrayBuffer", [shared.buffer], /^value\[0\] .*shared memory/],
    ["detached memory", [detached], /^value\[0\] .*detached memory$/],
  ])("%s", (_, value, text) => {
    expect(() => codec.encode(value)).toThrow(
      expect.objectContaining({ code: "PAMIR_CLONE", message: expect.stringMatching(text) }),
    );
  });

  it("a nesting deeper than the stack, in both directions", () => {
    let value: unknown = 1;
    for (let depth = 0; depth < 1_000_000; depth++) value = [value];
    expect(() => codec.encode(value)).toThrow(expect.objectContaining({ code: "PAMIR_CLONE" }));
    // An array of one element, a million times.
    const hostile = new Uint8Array(2_000_001).fill(0x0e);
    for (let i = 1; i < hostile.length; i += 2) hostile[i] = 1;
    hostile[2_000_000] = 0x81;
    expect(() => codec.decode(hostile)).toThrow(expect.objectContaining({ code: "PAMIR_CLONE" }));
    expect(copyOf([1])).toEqual([1]);
  });

  it("what a getter throws comes through, and the next value is right", () => {
    const thrown = new Error("of a getter");
    const value = {
      get bad(): never {
        throw thrown;
      },
    };
    expect(() => codec.encode([{ a: 1 }, value])).toThrow(thrown);
    expect(copyOf([{ a: 1 }])).toEqual([{ a: 1 }]);
  });
});

describe("keeps of an error, more than structured clone:", () => {
  it("cause, errors, own fields and its own name", () => {
    const cause = new RangeError("inner");
    const error = Object.assign(new AggregateError([cause, "text"], "outer", { cause }), {
      code: "E_X",
      at: { line: 3 },
    });
    error.name = "ParseError";
    const copy = copyOf<AggregateError>(error);
    expect(copy).toBeInstanceOf(Error);
    expect(copy).toMatchObject({
      name: "ParseError",
      message: "outer",
      code: "E_X",
      at: { line: 3 },
      stack: error.stack,
    });
    expect(copy.cause).toBeInstanceOf(RangeError);
    expect(copy.errors).toEqual([copy.cause, "text"]);
    expect(copy.errors[0]).toBe(copy.cause);
    expect(Object.keys(copy).sort()).toEqual(["at", "code"]);
  });

  it("an error within itself", () => {
    const error: Error & { cause?: unknown } = new Error("loop");
    error.cause = { error };
    const copy = copyOf<{ cause: { error: unknown } }>(error);
    expect(copy.cause.error).toBe(copy);
  });

  it("a DOMException", () => {
    const copy = copyOf<DOMException>(new DOMException("stopped", "AbortError"));
    expect(copy).toBeInstanceOf(DOMException);
    expect([copy.name, copy.message, copy.code]).toEqual(["AbortError", "stopped", 20]);
  });
});

it("takes the objects of another realm", () => {
  const context = createContext();
  const value = runInContext(
    "[new Map([[1, new Set([2])]]), new RangeError('x'), { a: [/b/g] }, new Uint8Array(3), new Date(5)]",
    context,
  );
  expect(copyOf(value)).toStrictEqual([
    new Map([[1, new Set([2])]]),
    copyOf(new RangeError("x")),
    { a: [/b/g] },
    new Uint8Array(3),
    new Date(5),
  ]);
});

it("keeps views of one ArrayBuffer together, and only those", () => {
  const buffer = new ArrayBuffer(64);
  const [one, two] = copyOf<[Uint8Array, Float64Array]>([new Uint8Array(buffer, 8, 8), new Float64Array(buffer, 8, 1)]);
  one[0] = 7;
  expect(two.buffer).toBe(one.buffer);
  expect(new Uint8Array(two.buffer)[8]).toBe(7);
  // Alone, a view of a part brings that part: Node's Buffers are parts of 8 KiB.
  expect(copyOf<Uint8Array>(Buffer.from("four")).buffer.byteLength).toBe(4);
});

it("calls getters again where a view of a part turns out not to be the only one, and keeps what they give then", () => {
  const { buffer } = Uint8Array.of(0, 1, 2, 3);
  let asked = 0;
  const value = {
    get asked() {
      return ++asked;
    },
    views: [new Uint8Array(buffer, 1, 1), new Uint8Array(buffer, 2, 2)],
  };
  const copy = copyOf<typeof value>(value);
  expect(copy).toEqual({ asked: 2, views: [Uint8Array.of(1), Uint8Array.of(2, 3)] });
  expect(copy.views[0]?.buffer).toBe(copy.views[1]?.buffer);
});

it("keeps the limits of an ArrayBuffer that can be resized, and views that follow it", () => {
  const buffer = new (ArrayBuffer as Resizable)(8, { maxByteLength: 32 });
  const copy = copyOf<{ all: Uint8Array; part: Uint8Array; buffer: InstanceType<Resizable> }>({
    all: new Uint8Array(buffer),
    part: new Uint8Array(buffer, 2, 3),
    buffer,
  });
  expect(copy.buffer.maxByteLength).toBe(32);
  copy.buffer.resize(16);
  expect([copy.all.length, copy.part.length, copy.part.byteOffset]).toEqual([16, 3, 2]);
});

const strings = { Buffer: stringsByBuffer(), TextEncoder: stringsByText() };
describe.each(Object.entries(strings))("by %s", (_, kind) => {
  const cloner = new Cloner(kind);
  const units = ["x", "é", "☃", "\ud83d\ude00", "\ud800"];
  it.each([0, 1, 31, 32, 62, 63, 64, 127, 128, 129, 16_383, 16_384, 100_000])("strings of %i characters", (length) => {
    for (const unit of units) {
      const text = unit.repeat(length);
      expect(cloner.decode(cloner.encode(text))).toBe(text);
      expect(cloner.decode(cloner.encode({ [`${text}k`]: [text] }))).toEqual({ [`${text}k`]: [text] });
    }
  });

  it("units of two bytes begin at an even offset, wherever the string is", () => {
    // The lone surrogate keeps TextEncoder from UTF-8.
    for (const wide of ["\u6587\ud800", `${"\u6587".repeat(20_000)}\ud800`]) {
      for (const before of ["", "a", "ab"]) {
        const bytes = cloner.encode([before, wide]);
        expect(Buffer.from(bytes).indexOf("\u6587", "utf16le") % 2).toBe(0);
        expect(cloner.decode(bytes)).toEqual([before, wide]);
      }
    }
  });

  it("a count that takes more bytes than that of its characters", () => {
    // 127 characters are counted in one byte, their 128 bytes of UTF-8 in two.
    const text = `${"x".repeat(126)}é`;
    expect(cloner.decode(cloner.encode([text, "behind"]))).toEqual([text, "behind"]);
  });
});

it("arrays with names, holes and lengths around the limits", () => {
  const found = "abc".match(/b/);
  expect(copyOf(found)).toEqual(found);
  expect(copyOf(found)).toMatchObject({ index: 1, input: "abc" });
  const sparse: unknown[] = [];
  sparse[4_000_000_000] = "far";
  sparse[7] = "near";
  const copy = copyOf<unknown[]>(sparse);
  expect([copy.length, Object.keys(copy)]).toEqual([4_000_000_001, ["7", "4000000000"]]);
  for (const length of [16, 17, 1024, 1025]) {
    const long = Array.from({ length }, (_, i) => i);
    delete long[3];
    expect(copyOf(long)).toStrictEqual(long);
    expect(3 in copyOf<unknown[]>(long)).toBe(false);
  }
});

it("more objects than are searched one by one, each met twice", () => {
  for (const count of [47, 48, 49, 500]) {
    const objects = Array.from({ length: count }, (_, i) => ({ i }));
    const copy = copyOf<object[][]>([objects, [...objects].reverse()]);
    expect(copy[0]).toEqual(objects);
    expect(copy[1]?.reverse().every((object, i) => object === copy[0]?.[i])).toBe(true);
  }
});

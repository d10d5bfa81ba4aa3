// What was thrown, on its way to another task: anything may be thrown, and anything may come.
import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { partOf, RemoteError, show, textOf } from "../../src/core/error.js";
import { textsOf, thrownBytes, thrownIn } from "../../src/core/thrown.js";
import { encodeText } from "../../src/support/text.js";

const fail = (): never => {
  throw new Error("of the value's own code");
};
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const traps = () =>
  new Proxy(new Error("behind a proxy"), { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail });
const withGetters = () => {
  const error = new Error("hidden");
  for (const key of ["stack", "name", "message", "code", "cause", "errors", "status"])
    Object.defineProperty(error, key, { get: fail, enumerable: true });
  return error;
};
const circular = () => {
  const error = new Error("outer", { cause: new Error("inner") });
  (error.cause as Error).cause = error;
  return error;
};

/** What was thrown, and the text with which it arrives. */
const THROWN: Record<string, [make: () => unknown, message: string | RegExp]> = {
  undefined: [() => undefined, "undefined"],
  null: [() => null, "null"],
  "a string": [() => "text", "text"],
  "a number": [() => 5, "5"],
  "a bigint": [() => 5n, "5"],
  "a symbol": [() => Symbol("sign"), "Symbol(sign)"],
  "a function": [() => function named() {}, /named/],
  "an object without a prototype": [() => Object.assign(Object.create(null), { status: 500 }), '{"status":500}'],
  "an empty object without a prototype": [() => Object.create(null), "a thrown object"],
  "a plain object": [() => ({ status: 500 }), '{"status":500}'],
  "an object with a message": [() => ({ message: "own", status: 500 }), "own"],
  "an object with a text": [() => ({ toString: () => "its text" }), "its text"],
  "an error whose message is no string": [() => Object.assign(new Error(), { message: 10n }), "10"],
  "an error whose message is an object": [() => Object.assign(new Error(), { message: {} }), /Error|thrown/],
  "an error whose name is no string": [() => Object.assign(new Error("text"), { name: 7 }), "text"],
  "an error whose getters throw": [withGetters, "a thrown Error"],
  "a proxy whose traps throw": [traps, "a thrown object"],
  "a revoked proxy": [revoked, "a thrown object"],
  "a value whose toString throws": [() => ({ toString: fail }), "a thrown Object"],
  "a value whose toJSON throws": [() => Object.assign(new Error("text"), { toJSON: fail }), "text"],
  "a value whose toPrimitive throws": [() => ({ [Symbol.toPrimitive]: fail, name: 5 }), "a thrown Object"],
  "a constructor that throws": [() => Object.defineProperty({}, "constructor", { get: fail }), "a thrown object"],
  "a circular cause": [circular, "outer"],
  "an error of another realm": [() => runInNewContext("new TypeError('far')"), "far"],
  "a DOMException": [() => new DOMException("aborted", "AbortError"), "aborted"],
};

describe.each(Object.entries(THROWN))("%s", (_, [make, message]) => {
  it("arrives with a text", () => {
    const error = thrownIn(thrownBytes(make()), "task 1");
    expect(error).toBeInstanceOf(RemoteError);
    expect(error.message).toMatch(message);
    if (typeof message === "string") expect(error.message).toBe(message);
    expect(typeof error.name).toBe("string");
    expect(error.stack).toMatch(/at task 1$/);
    expect(inspect(error)).toContain("task 1");
  });

  it("has texts, and can be shown", () => {
    const { name, message: text, code, stack } = textsOf(make());
    expect([typeof name, typeof text]).toEqual(["string", "string"]);
    expect(["string", "number", "undefined"]).toContain(typeof code);
    expect(["string", "undefined"]).toContain(typeof stack);
    expect([typeof show(make()), typeof textOf(make())]).toEqual(["string", "string"]);
    expect(() => partOf(make(), "anything")).not.toThrow();
  });
});

const sent = (thrown: unknown): RemoteError => thrownIn(thrownBytes(thrown), "task 1");
const json = (value: unknown): RemoteError => thrownIn(encodeText(JSON.stringify(value)), "task 1");

describe("what an error has arrives with it", () => {
  it("name, code, stack and fields", () => {
    class HttpError extends Error {
      override readonly name = "HttpError";
      readonly code = "E_HTTP";
      readonly status = 503;
      readonly headers = { "retry-after": 5, list: [1, "two", null, true] };
    }
    const error = sent(new HttpError("busy"));
    expect({ ...error }).toEqual({
      name: "HttpError",
      code: "E_HTTP",
      status: 503,
      headers: { "retry-after": 5, list: [1, "two", null, true] },
    });
    expect(error.message).toBe("busy");
    expect(error.stack).toContain("thrown.test.ts");
    expect("omitted" in error).toBe(false);
    expect("cause" in error || "errors" in error).toBe(false);
  });

  it("a plain object's fields", () => {
    expect(sent({ status: 500, name: "Own" })).toMatchObject({ status: 500, name: "Own" });
  });

  it("causes, errors and plain data among them", () => {
    const cause = new TypeError("inner", { cause: { detail: [1] } });
    const error = sent(new AggregateError([new RangeError("a"), "b", { c: 3 }], "several", { cause }));
    expect(error.cause).toBeInstanceOf(RemoteError);
    expect(error.cause).toMatchObject({ name: "TypeError", message: "inner", cause: { detail: [1] } });
    const [first, ...others] = error.errors as unknown[];
    expect(first).toBeInstanceOf(RemoteError);
    expect([first, ...others]).toMatchObject([{ name: "RangeError", message: "a" }, "b", { c: 3 }]);
    expect(Object.keys(error)).not.toContain("errors");
  });

  it("errors by name, as validators have them", () => {
    const error = Object.assign(new Error("invalid"), { errors: { email: new TypeError("no address") } });
    expect(sent(error).errors).toEqual({ email: { name: "TypeError", message: "no address" } });
  });

  it("all of it again, when it is passed on", () => {
    const once = sent(
      Object.assign(new Error("text", { cause: new Error("why") }), { code: 5, status: 1, at: new Date() }),
    );
    const twice = sent(once);
    expect(twice).toMatchObject({ message: "text", code: 5, status: 1, cause: { message: "why" } });
    expect(twice.omitted).toEqual(["at"]);
  });
});

describe("what is left out is named", () => {
  it("fields that are no plain data, and unreadable ones", () => {
    const given = {
      big: 1n,
      date: new Date(),
      call: () => {},
      map: new Map(),
      sign: Symbol("s"),
      nan: Number.NaN,
      absent: undefined,
      deep: { list: [1, new Set()] },
      get secret() {
        return fail();
      },
      ok: 1,
    };
    const error = sent(Object.assign(Object.defineProperties(new Error("x"), Object.getOwnPropertyDescriptors(given))));
    expect(error).toMatchObject({ ok: 1, deep: { list: [1, null] } });
    expect(error.omitted).toEqual(["big", "date", "call", "map", "sign", "nan", "deep.list.1", "secret"]);
  });

  it("fields beyond 8,192 characters", () => {
    const error = sent(Object.assign(new Error("x"), { small: 1, large: "y".repeat(8192), last: 2 }));
    expect(error).toMatchObject({ small: 1, last: 2, omitted: ["large"] });
    const many = sent(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field${i}`, i])));
    expect(many.field0).toBe(0);
    expect(many.omitted?.at(-1)).toMatch(/^\d+ more fields$/);
  });

  it("more than 32 errors, and causes that follow 8 others", () => {
    const error = sent(new AggregateError(Array.from({ length: 40 }, (_, i) => new Error(`${i}`))));
    expect((error.errors as Error[]).map(({ message }) => message)).toEqual(
      Array.from({ length: 32 }, (_, i) => `${i}`),
    );
    expect(error.omitted).toEqual(["8 more errors"]);
    let chain: unknown = new Error("last");
    for (let i = 0; i < 20; i++) chain = new Error(`${i}`, { cause: chain });
    let [depth, at] = [0, sent(chain)];
    for (; at.cause !== undefined; at = at.cause as RemoteError) depth++;
    expect([depth, at.omitted]).toEqual([8, ["cause"]]);
    const both = sent(circular());
    expect(both).toMatchObject({ message: "outer", cause: { message: "inner", omitted: ["cause"] } });
  });

  it("the rest of a long text", () => {
    const error = sent(new Error("x".repeat(70_000)));
    expect(error.message).toBe(`${"x".repeat(65_536)}… (4464 more characters)`);
    expect(thrownBytes(new Error("\u0000".repeat(1_000_000))).length).toBeLessThan(1_048_576);
  });

  it("at most 16 names", () => {
    const error = sent(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`call${i}`, () => {}])));
    expect([error.omitted?.length, error.omitted?.[0], error.omitted?.[15]]).toEqual([16, "call0", "and more"]);
  });
});

describe("a peer that lies", () => {
  it.each([
    ["no JSON", encodeText("{")],
    ["nothing", new Uint8Array()],
    ["no text", Uint8Array.of(255, 254, 0)],
    ["too much", new Uint8Array(1_048_577)],
  ])("%s", (_, bytes) => {
    expect(thrownIn(bytes, "task 1")).toMatchObject({
      name: "Error",
      message: `an error of ${bytes.length} bytes that makes no sense`,
    });
  });

  it.each([null, 5, "text", [], {}, [[]], true])("%j in place of an error", (given) => {
    expect(json(given)).toMatchObject({ name: "Error", message: "", code: undefined });
  });

  it("parts of wrong types", () => {
    const error = json({
      name: 5,
      message: {},
      code: [],
      stack: 1,
      fields: "x",
      cause: 7,
      errors: { length: 1e9 },
      omitted: [1, "y", {}],
    });
    expect(error).toMatchObject({ name: "Error", message: "", code: undefined, cause: undefined, omitted: ["y"] });
    expect(`${error}`).toBe("Error");
  });

  it("fields that would replace parts, or reach a prototype", () => {
    const text =
      '{"name":"E","message":"m","__proto__":{"polluted":1},"fields":{"__proto__":{"polluted":1},"constructor":{"prototype":1},' +
      '"toString":5,"message":9,"stack":1,"hasOwnProperty":2,"fine":{"__proto__":{"polluted":1},"x":[{"__proto__":1,"y":2}]}},' +
      '"cause":{"value":{"__proto__":{"polluted":1},"z":3}}}';
    const error = thrownIn(encodeText(text), "task 1");
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect((error as { polluted?: unknown }).polluted).toBeUndefined();
    expect(`${error}`).toBe("E: m");
    expect({ ...error }).toEqual({ name: "E", code: undefined, fine: { x: [{ y: 2 }] } });
    expect(Object.keys(error.fine as object)).toEqual(["x"]);
    expect([Object.keys(error.cause as object), error.cause]).toEqual([["z"], { z: 3 }]);
  });

  it("depth, and numbers of errors", () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    expect(thrownIn(encodeText(`{"message":"deep","fields":{"x":${deep}}}`), "task 1").message).toBe("deep");
    const levels = 5000;
    const causes = `${'{"message":"m","cause":{"error":'.repeat(levels)}{}${"}}".repeat(levels)}`;
    let [depth, at] = [0, thrownIn(encodeText(causes), "task 1")];
    for (; at.cause !== undefined; at = at.cause as RemoteError) depth++;
    expect(depth).toBe(8);
    const errors = Array.from({ length: 1000 }, () => ({ value: 1 }));
    expect((json({ message: "m", errors }).errors as unknown[]).length).toBe(32);
  });
});

// What the other side of a pool may call of what is lent to it, if it makes up its messages: functions, and the methods of objects
// that proxy() keeps. What every object has of the language is none of those: by it, objects are changed and functions compiled.
import { describe, expect, it } from "vitest";
import { Loans, proxy } from "../../src/pool/exchange/lent.js";

const host = { call: () => Promise.reject(new Error("unused")), aborted: () => {}, returned: () => {} };

class Base {
  inherited(): string {
    return "inherited";
  }
}

class Derived extends Base {
  field = 1;
  method(): string {
    return "method";
  }
  override toString(): string {
    return "of its own";
  }
}

const OF_OBJECTS = [...Object.getOwnPropertyNames(Object.prototype), "__proto__", "none", ""].filter(
  (name) => name !== "toString",
);
const OF_FUNCTIONS = [...Object.getOwnPropertyNames(Function.prototype), ...OF_OBJECTS];
const OF_SIGNALS = ["addEventListener", "dispatchEvent", "throwIfAborted", "onabort"];

/** Lends one thing, and calls it as a message of the other side says. */
function called(what: object, name: string | null): unknown {
  const loans = new Loans(host);
  const before = loans.enter();
  const number = loans.numberOf(what);
  loans.leave(before);
  return loans.call(number as number, name, ["return 1", () => 1]);
}

const plain = (): object => ({ own: () => "own", value: 7, nested: {} });

describe("calls of what is lent", () => {
  it.each<[string, () => object, string | null, string]>([
    ["a function", () => () => "function", null, "function"],
    ["a function that is kept", () => proxy(() => "function"), null, "function"],
    ["an own method", () => proxy(plain()), "own", "own"],
    ["a method", () => proxy(new Derived()), "method", "method"],
    ["an inherited one", () => proxy(new Derived()), "inherited", "inherited"],
    ["one that the class has instead of the language", () => proxy(new Derived()), "toString", "of its own"],
    ["one of an object without a prototype", () => proxy(Object.assign(Object.create(null), plain())), "own", "own"],
  ])("%s is called", (_, what, name, answer) => {
    expect(called(what(), name)).toBe(answer);
  });

  it.each<[string, () => object, readonly (string | null)[]]>([
    ["a plain object", () => proxy(plain()), [...OF_OBJECTS, "toString", "value", "nested", null]],
    ["an instance", () => proxy(new Derived()), [...OF_OBJECTS, "field", null]],
    ["a function", () => () => "function", [...OF_FUNCTIONS, "toString"]],
    ["a function that is kept", () => proxy(() => "function"), [...OF_FUNCTIONS, "toString"]],
    ["a class that is kept", () => proxy(Derived), [...OF_FUNCTIONS, "toString"]],
    ["a signal", () => new AbortController().signal, [...OF_SIGNALS, ...OF_OBJECTS, "toString", null]],
  ])("of %s, what is no method is refused", (_, what, names) => {
    const one = what();
    const before = [Object.getPrototypeOf(one), Object.getOwnPropertyNames(one)];
    for (const name of names) {
      expect(() => called(one, name), String(name)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    }
    expect([Object.getPrototypeOf(one), Object.getOwnPropertyNames(one)]).toEqual(before);
  });

  it("a name that is no text is refused", () => {
    for (const name of [undefined, 7, {}, ["own"], Symbol.iterator]) {
      expect(() => called(proxy(plain()), name as unknown as string)).toThrow(
        expect.objectContaining({ code: "PAMIR_INVAL" }),
      );
    }
  });
});

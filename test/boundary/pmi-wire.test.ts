// Lines of PMI-1 at their limits, and malformed lines: named rows.
import { describe, expect, it } from "vitest";
import {
  encodeLine,
  LINE_MAX,
  messageOf,
  PlainFraming,
  parseLine,
  VALUE_MAX,
} from "../../src/bootstrap/pmi/pmi-wire.js";
import { PamiError } from "../../src/core/error.js";

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** The error of a call, which must be one. */
function errorOf(call: () => unknown): PamiError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(PamiError);
    return error as PamiError;
  }
  return expect.fail("it did not throw");
}

describe("encodeLine", () => {
  it("writes the fields in their order", () => {
    const fields = { kvsname: "kvs_7_0", key: "a-0", value: "x=y/1" };
    expect(encodeLine("put", fields)).toBe("cmd=put kvsname=kvs_7_0 key=a-0 value=x=y/1");
    expect(encodeLine("get_maxes")).toBe("cmd=get_maxes");
  });

  it.each([
    ["the longest value", "x".repeat(VALUE_MAX), undefined],
    ["one byte more", "x".repeat(VALUE_MAX + 1), /value has 1025 bytes; a value of PMI-1 has at most 1024/],
    ["an empty value", "", undefined],
    ["a space", "a b", /value is "a b": .* without spaces/],
    ["a line feed", "a\nb", /value is "a\\nb": .* without spaces/],
    ["a zero byte", "a\0", /printable ASCII/],
    ["DEL", "\x7f", /printable ASCII/],
    ["a letter beyond ASCII", "ä", /printable ASCII/],
  ])("%s as a value", (_, value, error) => {
    const encode = (): string => encodeLine("put", { value });
    if (error === undefined) expect(encode()).toBe(`cmd=put value=${value}`);
    else expect(errorOf(encode)).toMatchObject({ code: "PAMIR_PMI", message: expect.stringMatching(error) });
  });

  it.each(["", "a b", "a=b", "ü"])("refuses %j as the name of a field", (name) => {
    expect(errorOf(() => encodeLine("put", { [name]: 1 })).message).toMatch(/can't be the name of a field/);
  });

  it("refuses a line above its limit, and writes one of the limit", () => {
    const rest = LINE_MAX - VALUE_MAX - "cmd=put a= b=".length;
    const line = encodeLine("put", { a: "x".repeat(VALUE_MAX), b: "y".repeat(rest) });
    expect(line).toHaveLength(LINE_MAX);
    expect(parseLine(line).fields.get("b")).toHaveLength(rest);
    const longer = errorOf(() => encodeLine("put", { a: "x".repeat(VALUE_MAX), b: "y".repeat(rest + 1) }));
    expect(longer.message).toBe("a line of PMI-1 has 2049 bytes, not at most 2048");
  });
});

describe("parseLine", () => {
  it("reads what other implementations send", () => {
    const { cmd, isMultiple, fields } = parseLine("cmd=get_result rc=0 msg=success value=(vector,(0,2,2))");
    expect([cmd, isMultiple, [...fields]]).toEqual([
      "get_result",
      false,
      [
        ["rc", "0"],
        ["msg", "success"],
        ["value", "(vector,(0,2,2))"],
      ],
    ]);
    expect(parseLine("mcmd=spawn")).toMatchObject({ cmd: "spawn", isMultiple: true });
    expect([...parseLine("  cmd=a   b=1 c=  ").fields]).toEqual([
      ["b", "1"],
      ["c", ""],
    ]);
  });

  it.each([
    ["nothing", "", /it has no field/],
    ["spaces", "   ", /it has no field/],
    ["a word", "GET", /the field "GET" has no "="/],
    ["HTTP", "GET / HTTP/1.1", /the field "GET" has no "="/],
    ["another first field", "key=a cmd=put", /it begins with "key", not with "cmd"/],
    ["an empty command", "cmd=", /its cmd is empty/],
    ["a field without a name", "cmd=a =b", /the field "=b" has no name/],
    ["a name beyond its characters", "cmd=a b/c=d", /the field "b\/c=d" has no name/],
    ["a field twice", "cmd=a b=1 b=2", /it has the field "b" twice/],
    ["two commands", "cmd=a cmd=b", /it has the field "cmd" twice/],
    ["a carriage return", "cmd=a\r", /byte 5 is 13, not printable ASCII/],
    ["a tabulator", "cmd=a\tb=c", /byte 5 is 9/],
    ["a byte above ASCII", "cmd=\xff", /byte 4 is 255/],
    ["a value above its limit", `cmd=a b=${"x".repeat(1025)}`, /the value of b has 1025 bytes, not at most 1024/],
    ["a line above its limit", `cmd=a ${" ".repeat(2048)}`, /it has 2054 bytes, not at most 2048/],
  ])("%s", (_, line, why) => {
    const { code, message } = errorOf(() => parseLine(line));
    expect(code).toBe("PAMIR_PMI");
    expect(message).toMatch(/^malformed line of PMI-1: /);
    expect(message).toMatch(why);
    expect(message.length).toBeLessThan(300);
  });

  it("messageOf makes a value of any text", () => {
    const text = messageOf(`no such\nkey: ä ${"x".repeat(3000)}`);
    expect(parseLine(encodeLine("a", { msg: text })).fields.get("msg")).toBe(text);
    expect(text.slice(0, 12)).toBe("no_such_key:");
  });
});

describe("PlainFraming", () => {
  it("takes lines apart, whole or byte by byte", () => {
    const framing = new PlainFraming();
    for (const byte of bytes("cmd=a\ncm")) framing.push(Uint8Array.of(byte));
    expect([framing.next(), framing.next()]).toEqual(["cmd=a", undefined]);
    framing.push(bytes("d=b\n\n"));
    expect([framing.next(), framing.next(), framing.next(), framing.length]).toEqual(["cmd=b", "", undefined, 0]);
    expect(framing.frame("cmd=a")).toEqual(bytes("cmd=a\n"));
  });

  it("takes a line of the limit, and refuses one byte more as soon as it has come", () => {
    const framing = new PlainFraming();
    framing.push(bytes(`${"x".repeat(LINE_MAX)}\n`));
    expect(framing.next()).toHaveLength(LINE_MAX);
    framing.push(bytes("x".repeat(LINE_MAX)));
    expect(framing.next()).toBeUndefined();
    framing.push(bytes("x"));
    expect(errorOf(() => framing.next())).toMatchObject({
      code: "PAMIR_PMI",
      message: expect.stringMatching(/no line feed within 2048 bytes/),
    });
    const whole = new PlainFraming();
    whole.push(bytes(`${"x".repeat(LINE_MAX + 1)}\n`));
    expect(() => whole.next()).toThrow(/no line feed within 2048 bytes/);
  });
});

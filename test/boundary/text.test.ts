// Strings to UTF-8 and back: the same on hosts with Node's Buffer and on hosts that have TextDecoder alone.
import { describe, expect, it, vi } from "vitest";
import { Message } from "../../src/core/message/message.js";
import type * as Text from "../../src/support/text.js";

/** The module on a host with Buffer, or without. */
async function textOn(host: "Node" | "a browser"): Promise<typeof Text> {
  vi.resetModules();
  if (host === "a browser") vi.stubGlobal("Buffer", undefined);
  try {
    return await import("../../src/support/text.js");
  } finally {
    vi.unstubAllGlobals();
    vi.resetModules();
  }
}

const CASES: readonly [what: string, bytes: readonly number[], text: string][] = [
  ["nothing", [], ""],
  ["ASCII", [0x61, 0x00, 0x7f], "a\0\x7f"],
  ["two, three and four bytes", [0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80], "é€😀"],
  ["a byte order mark", [0xef, 0xbb, 0xbf, 0x61], "\uFEFFa"],
  ["a byte order mark alone", [0xef, 0xbb, 0xbf], "\uFEFF"],
  ["a byte that begins nothing", [0x61, 0xff, 0x62], "a\uFFFDb"],
  ["a rest without its beginning", [0x80, 0x80], "\uFFFD\uFFFD"],
  ["a beginning without its rest", [0xe2, 0x82], "\uFFFD"],
  ["an overlong form", [0xc0, 0x80], "\uFFFD\uFFFD"],
  ["a surrogate", [0xed, 0xa0, 0x80], "\uFFFD\uFFFD\uFFFD"],
  ["more than U+10FFFF", [0xf4, 0x90, 0x80, 0x80], "\uFFFD\uFFFD\uFFFD\uFFFD"],
];

describe.each(["Node", "a browser"] as const)("on %s", (host) => {
  it.each(CASES)("%s, in ordinary and in shared memory", async (_, bytes, text) => {
    const { decodeText, decodeRange } = await textOn(host);
    expect(decodeText(Uint8Array.from(bytes))).toBe(text);
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length + 16), 8);
    shared.set(bytes, 3);
    expect(decodeRange(shared, 3, 3 + bytes.length)).toBe(text);
  });

  it("a string comes back as it was, with its byte order mark", async () => {
    const { decodeText, encodeText } = await textOn(host);
    for (const text of ["", "\uFEFF", "\uFEFFa", "a\uFEFF", "é€😀"]) expect(decodeText(encodeText(text))).toBe(text);
  });
});

it("message.text() of more than a string may have is refused, with its length", () => {
  const bytes = new Uint8Array(2 ** 29);
  const message = new Message({ bytes, words: new Int32Array(bytes.buffer) }, Uint32Array.of(0), {} as never);
  message.set(0, 0, bytes.length, 0, true);
  expect(() => message.text()).toThrow(
    expect.objectContaining({
      code: "PAMIR_TOO_LARGE",
      message: "text() of 536870912 bytes, which are more than a string of this host may have",
    }),
  );
});

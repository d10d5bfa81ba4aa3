// Text of others for a terminal: nothing in it acts there, and nothing is invisible.
import { describe, expect, it } from "vitest";
import { quote } from "../../src/bootstrap/text.js";
import { printable, printableJson, printableStart } from "../../src/support/printable.js";

const HOSTILE: [text: string, shown: string][] = [
  ["\x1b]0;title\x07", "\\x1b]0;title\\x07"],
  ["\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"],
  ["\u009b31m", "\\x9b31m"],
  ["a\rb\bc\x7f\0", "a\\x0db\\x08c\\x7f\\x00"],
  ["\u202egnp.exe\u2066\u2069\u061c\u200f", "\\u202egnp.exe\\u2066\\u2069\\u061c\\u200f"],
  ["\u2028\u2029\ufeff\u00ad\u200b", "\\u2028\\u2029\\ufeff\\xad\\u200b"],
  ["\u{e0041}", "\\u{e0041}"],
  ["\ud800x", "\\ud800x"],
  ["größe 漢字 😀 é ﷺ", "größe 漢字 😀 é ﷺ"],
];

describe("printable text", () => {
  it.each(HOSTILE)("%j", (text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(printable(quote(text))).toBe(quote(text));
    const json = printableJson({ [text]: [text] });
    expect(printable(json, true)).toBe(json);
    expect(JSON.parse(json)).toEqual({ [text]: [text] });
  });

  it("keeps line ends and tabs where lines are expected, and no others", () => {
    expect(printable("a\n\tb\r\n", true)).toBe("a\n\tb\\x0d\n");
    expect(printable("a\n\tb")).toBe("a\\x0a\\x09b");
  });

  it("shows the start of a long text", () => {
    expect(printableStart("abc", 3)).toBe("abc");
    expect(printableStart("a\x1bcd", 2)).toBe("a\\x1b… (4 characters)");
  });
});

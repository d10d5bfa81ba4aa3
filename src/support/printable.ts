// Text of other processes, hosts and files, for a terminal: what would act on it, or be invisible there, is shown by escapes.

/** Control characters (C0, DEL, C1), those of bidirectional text and other invisible ones, and halves of pairs. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text in which each hidden character is an escape, as `\x1b`. @param hasLines whether line ends and tabs stay */
export function printable(text: string, hasLines = false): string {
  return text.replace(HIDDEN, (character) => {
    if (hasLines && (character === "\n" || character === "\t")) return character;
    const code = character.codePointAt(0) as number;
    const digits = code.toString(16);
    if (code > 0xffff) return `\\u{${digits}}`;
    return code > 0xff ? `\\u${digits.padStart(4, "0")}` : `\\x${digits.padStart(2, "0")}`;
  });
}

/** As `printable`, of the first characters. @param most characters that are shown */
export function printableStart(text: string, most: number): string {
  return text.length <= most ? printable(text) : `${printable(text.slice(0, most))}… (${text.length} characters)`;
}

/** JSON of which no character acts on a terminal; a parser gives the same value. */
export function printableJson(value: unknown): string {
  const inUnits = (text: string): string =>
    Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
  return JSON.stringify(value, null, 2).replace(HIDDEN, (character) =>
    character === "\n" ? "\n" : inUnits(character),
  );
}

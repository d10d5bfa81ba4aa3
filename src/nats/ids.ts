// Random names that a job uses once, in hexadecimal digits: of nodes, of questions, of epochs.

/** 16 digits, as randomId() gives them. */
const ID = /^[\da-f]{16}$/;
const ID_BYTES = 8;

export const isId = (value: unknown): value is string => typeof value === "string" && ID.test(value);

export function randomId(): string {
  return hexOf(crypto.getRandomValues(new Uint8Array(ID_BYTES)));
}

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

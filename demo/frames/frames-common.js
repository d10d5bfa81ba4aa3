// @ts-check
// What the page and its workers agree upon.

/** Task → page: there is a place for the payload. */
export const READY = 1;
/** Page → task: as many words as it was told to send, each its own number. */
export const PAYLOAD = 2;
/** Task → page: whether they are what they must be, a u8. */
export const CHECKED = 3;

/** @param {Uint8Array} bytes */
const wordsOf = ({ buffer, byteOffset, length }) => new Uint32Array(buffer, byteOffset, length / 4);

/** @param {Uint8Array} bytes */
export function fill(bytes) {
  const words = wordsOf(bytes);
  for (let i = 0; i < words.length; i++) words[i] = i;
}

/** @param {Uint8Array} bytes */
export function isFilled(bytes) {
  const words = wordsOf(bytes);
  let wrong = 0;
  for (let i = 0; i < words.length; i++) if (words[i] !== i) wrong++;
  return wrong === 0;
}

/** A copy of an array that has an element at an index: its length is a power of two, and not less than before. */
export function grown(words: Uint32Array<ArrayBuffer>, index: number): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(Math.max(words.length, 2 ** Math.ceil(Math.log2(index + 1))));
  longer.set(words);
  return longer;
}

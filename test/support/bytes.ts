// Bytes that tests send.

/** Bytes, each by its place. Uint8Array.from() goes through an iterator: it takes some twenty times as long. */
export function bytesFrom(length: number, byteAt: (place: number) => number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let place = 0; place < length; place++) bytes[place] = byteAt(place);
  return bytes;
}

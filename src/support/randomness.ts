// Random numbers: those of the host, and those that a seed repeats.

/** Numbers that are drawn in one call, which takes longer than to hand out all of them. */
const DRAWN = 256;

/** A source of u32s that no observer can predict. */
export function randomWords(): () => number {
  const words = new Uint32Array(DRAWN);
  let at = DRAWN;
  return () => {
    if (at === DRAWN) {
      crypto.getRandomValues(words);
      at = 0;
    }
    const word = words[at] as number;
    // What was handed out may be a part of a nonce or a secret.
    words[at++] = 0;
    return word;
  };
}

/** u32s that a seed repeats (mulberry32). They are no secret: for faults, not for nonces. */
export function seededWords(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return (word ^ (word >>> 14)) >>> 0;
  };
}

// Cryptographic random numbers of the host.

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

// Words by numbers that may be anything, such as endpoints and nodes. An open hash table with linear probing: an entry takes
// 11 to 21 bytes. In a Map it would take 28 to 56, and 16 more for each number or word that is no small integer.

/** An entry has two words: a number, and its word. */
const ENTRY_WORDS = 2;
const ENTRIES_MIN = 16;

/** Every u32 has a word, which is 0 until another one is set. Only words that are not 0 take memory. */
export class SparseWords {
  /** Entries. The word of an unused one is 0. At most three of four are in use, and mostly at least one of eight is. */
  #entries = new Uint32Array(ENTRY_WORDS * ENTRIES_MIN);
  #used = 0;

  /** The word of a number. */
  get(number: number): number {
    return this.#entries[this.#find(number) + 1] as number;
  }

  set(number: number, word: number): void {
    const at = this.#find(number);
    const before = this.#entries[at + 1] as number;
    if (word >>> 0 === 0) {
      if (before !== 0) this.#remove(at);
      return;
    }
    this.#entries[at] = number;
    this.#entries[at + 1] = word;
    if (before === 0) this.#count(this.#used + 1);
  }

  /** Adds 1 to the word of a number; after 2^32 - 1 comes 0. @returns the word before */
  increment(number: number): number {
    const at = this.#find(number);
    const word = this.#entries[at + 1] as number;
    if (word === 0 || word === 0xffffffff) this.set(number, word + 1);
    else this.#entries[at + 1] = word + 1;
    return word;
  }

  /** Words of memory. */
  get length(): number {
    return this.#entries.length;
  }

  /** Where the entry of a number is, or the unused one that it would take. */
  #find(number: number): number {
    const entries = this.#entries;
    const mask = entries.length - ENTRY_WORDS;
    const wanted = number >>> 0;
    let at = homeOf(wanted, mask);
    while (entries[at] !== wanted && entries[at + 1] !== 0) at = (at + ENTRY_WORDS) & mask;
    return at;
  }

  /** Frees an entry, and closes the gap: later entries move up, so that #find() reaches them without a gap. */
  #remove(at: number): void {
    const entries = this.#entries;
    const mask = entries.length - ENTRY_WORDS;
    let gap = at;
    for (let next = (at + ENTRY_WORDS) & mask; entries[next + 1] !== 0; next = (next + ENTRY_WORDS) & mask) {
      const home = homeOf(entries[next] as number, mask);
      // Not if the gap lies before its home.
      if (((next - home) & mask) < ((next - gap) & mask)) continue;
      entries.copyWithin(gap, next, next + ENTRY_WORDS);
      gap = next;
    }
    entries[gap + 1] = 0;
    this.#count(this.#used - 1);
  }

  /** Notes how many entries are in use, and makes room for more, or gives room back. */
  #count(used: number): void {
    this.#used = used;
    const all = this.#entries.length / ENTRY_WORDS;
    if (4 * used > 3 * all) this.#resize(2 * all);
    else if (8 * used < all && all > ENTRIES_MIN) this.#resize(all / 2);
  }

  #resize(all: number): void {
    const old = this.#entries;
    this.#entries = new Uint32Array(ENTRY_WORDS * all);
    for (let from = 0; from < old.length; from += ENTRY_WORDS) {
      if (old[from + 1] === 0) continue;
      const at = this.#find(old[from] as number);
      this.#entries[at] = old[from] as number;
      this.#entries[at + 1] = old[from + 1] as number;
    }
  }
}

/**
 * Where a number's entry is if no other one takes its place (Fibonacci hashing). Multiples of the golden ratio lie evenly on
 * a circle. So the endpoints of consecutive tasks hardly collide: 1.2 to 1.4 entries are read for one, and 2.4 at random.
 */
function homeOf(number: number, mask: number): number {
  return (Math.imul(number, 0x9e3779b1) >>> Math.clz32(mask)) & mask;
}

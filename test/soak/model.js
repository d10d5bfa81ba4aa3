// @ts-check
// What the soak compares with: contents that follow from seed, pair and number; what came of each pair; and the book, memory
// that all tasks of a round share, so that what a task has counted outlives it.

/** What a message is for. Each has its own numbers for each ordered pair of endpoints. */
export const DATA = 1;
export const STREAM = 2;
export const CALL = 3;
export const STREAM_CALL = 4;
export const REPLY = 5;
export const PUT = 6;
/** Offered, so that it can be given up. */
export const OFFER = 9;

/** What can be wrong, in the order of the summary. */
export const FAILURES = /** @type {const} */ ([
  "lost",
  "repeated",
  "reordered",
  "torn",
  "hung",
  "sums",
  "contents",
  "calls",
  "memory",
  "others",
]);
/** @typedef {(typeof FAILURES)[number]} Failure */
const COUNTERS = /** @type {const} */ ([...FAILURES, "operations", "messages", "kills"]);
/** @typedef {(typeof COUNTERS)[number]} Counter */

/** Faults that can be injected into what the model is given, and what it has to call them. */
export const FAULTS = /** @type {const} */ ({
  drop: "lost",
  repeat: "repeated",
  swap: "reordered",
  corrupt: "torn",
  sum: "sums",
  content: "contents",
  reply: "calls",
  silence: "hung",
});
/** @typedef {keyof typeof FAULTS} Fault */
/** The fault strikes once, the so-manieth time. */
const STRIKES_AT = 20;

/** Places of the flags. */
export const STOP = 0;
export const LIVE = 1;
export const QUIET = 2;
export const CHECKED = 3;
export const ALONE = 4;
export const LEAVE = 5;
export const STRUCK = 6;
/** From here on, by task: whether it is among those that are left at the end. */
const LEFT = 16;

/** Notes of each kind of failure. */
const NOTES = 4;
const NOTE_BYTES = 600;

/**
 * Words of each page of the book, by tasks and endpoints: `processes` and `broken` by task, `noted` by kind of failure, `committed` by
 * origin, target and whether it is the stream, `sums` by target, issued and done to the common word, then to the ticket.
 */
const PAGES = /** @type {const} */ ({
  flags: (/** @type {number} */ places) => LEFT + places,
  processes: (/** @type {number} */ places) => places,
  broken: (/** @type {number} */ places) => places,
  counts: () => COUNTERS.length,
  noted: () => FAILURES.length,
  notes: () => (FAILURES.length * NOTES * NOTE_BYTES) / 4,
  committed: (/** @type {number} */ _, /** @type {number} */ endpoints) => endpoints * endpoints * 2,
  sums: (/** @type {number} */ _, /** @type {number} */ endpoints) => endpoints * 4,
});
/** @typedef {Record<keyof typeof PAGES, Int32Array<SharedArrayBuffer>>} Pages */

export class Book {
  #isMute = false;

  /** @param {number} places @param {number} contexts */
  static bytes(places, contexts) {
    return 4 * Object.values(PAGES).reduce((sum, words) => sum + words(places, places * contexts), 0);
  }

  /** @param {SharedArrayBuffer} buffer zeroed before the first has it @param {number} places @param {number} contexts */
  constructor(buffer, places, contexts) {
    this.endpoints = places * contexts;
    let at = 0;
    const page = (/** @type {(typeof PAGES)[keyof typeof PAGES]} */ words) => {
      const made = new Int32Array(buffer, at, words(places, this.endpoints));
      at += made.byteLength;
      return made;
    };
    this.pages = /** @type {Pages} */ (
      Object.fromEntries(Object.entries(PAGES).map(([name, words]) => [name, page(words)]))
    );
  }

  /** @param {Counter} name */
  count(name, by = 1) {
    Atomics.add(this.pages.counts, COUNTERS.indexOf(name), by);
  }

  /** @param {Counter} name */
  counted(name) {
    return Atomics.load(this.pages.counts, COUNTERS.indexOf(name));
  }

  /** This thread was broken off in the midst of a step, so what fails in it from now on says nothing. */
  mute() {
    this.#isMute = true;
  }

  /** The same, and the others hear that this task's thread ends by whatever fails in it first. @param {number} task */
  breakOff(task) {
    this.mute();
    Atomics.store(this.pages.broken, task, 1);
  }

  /** @param {number} task */
  isBroken(task) {
    return Atomics.load(this.pages.broken, task) !== 0;
  }

  /** Something is wrong; the first of these are kept with their reasons. @param {Failure} name @param {string} why */
  fail(name, why, by = 1) {
    if (this.#isMute) return;
    this.count(name, by);
    const kind = FAILURES.indexOf(name);
    const place = Atomics.add(this.pages.noted, kind, 1);
    if (place >= NOTES) return;
    this.#note(kind * NOTES + place).set(new TextEncoder().encode(`${name}: ${why}`).subarray(0, NOTE_BYTES));
  }

  get hasFailed() {
    return FAILURES.some((name) => this.counted(name) > 0);
  }

  /** Why what is wrong is so. @returns {string[]} */
  get notes() {
    return Array.from({ length: FAILURES.length * NOTES }, (_, place) =>
      new TextDecoder().decode(this.#note(place).slice()).replace(/\0+$/, ""),
    ).filter((note) => note !== "");
  }

  /** @param {number} place */
  #note(place) {
    const { buffer, byteOffset } = this.pages.notes;
    return new Uint8Array(buffer, byteOffset + place * NOTE_BYTES, NOTE_BYTES);
  }

  /** A task runs, in this process. @param {number} task */
  begin(task) {
    Atomics.store(this.pages.processes, task, process.pid);
  }

  /** The process of a task that runs, or has run; 0: it has not begun. @param {number} task */
  processOf(task) {
    return Atomics.load(this.pages.processes, task);
  }

  /** @param {number} flag */
  flag(flag) {
    return Atomics.load(this.pages.flags, flag);
  }

  /** @param {number} flag */
  raise(flag, by = 1) {
    Atomics.add(this.pages.flags, flag, by);
  }

  /** This task is among those that are left at the end. @param {number} task */
  leave(task) {
    this.raise(LEFT + task);
    this.raise(LIVE);
  }

  /** @param {number} task */
  isLeft(task) {
    return this.flag(LEFT + task) === 1;
  }

  /** @param {number} from @param {number} to @param {number} kind */
  #place(from, to, kind) {
    return (from * this.endpoints + to) * 2 + (kind === STREAM ? 1 : 0);
  }

  /**
   * All messages below `count` are in the target's lane: they have to arrive, whatever becomes of their origin.
   * @param {number} from
   * @param {number} to
   * @param {number} kind
   * @param {number} count
   */
  commit(from, to, kind, count) {
    const { committed } = this.pages;
    const place = this.#place(from, to, kind);
    if (/** @type {number} */ (committed[place]) < count) Atomics.store(committed, place, count);
  }

  /** @param {number} from @param {number} to @param {number} kind */
  committed(from, to, kind) {
    return Atomics.load(this.pages.committed, this.#place(from, to, kind));
  }

  /** What is added to a word of a target: issued before it is, done after. @param {number} to @param {number} word */
  sum(to, word) {
    const { sums } = this.pages;
    const place = to * 4 + word * 2;
    return {
      issue: (/** @type {number} */ value) => void Atomics.add(sums, place, value),
      done: (/** @type {number} */ value) => void Atomics.add(sums, place + 1, value),
      least: () => Atomics.load(sums, place + 1),
      most: () => Atomics.load(sums, place),
    };
  }
}

/** Bytes from which all contents are taken. */
const POOL_BYTES = 2 ** 20;

/** @param {number} a @param {number} b */
const mix = (a, b) => {
  const hash = Math.imul(a ^ b ^ (b >>> 15), 0x2c1b3c6d);
  return Math.imul(hash ^ (hash >>> 12), 0x297a2d39) ^ (hash >>> 15);
};

/** Contents by seed, kind, pair and number. @param {number} seed @param {readonly number[]} sizes */
export function contentsOf(seed, sizes) {
  const words = new Uint32Array(POOL_BYTES / 4);
  for (let i = 0, x = seed | 1; i < words.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    words[i] = x;
  }
  const pool = new Uint8Array(words.buffer);
  const hashOf = (/** @type {number[]} */ ...key) => key.reduce(mix, seed) >>> 0;
  const take = (/** @type {number} */ hash, /** @type {number} */ bytes) => {
    const from = hash % (POOL_BYTES - bytes);
    return pool.subarray(from, from + bytes);
  };

  return {
    /** A message's own header and payload. @param {number} kind @param {number} from @param {number} to @param {number} number */
    message(kind, from, to, number) {
      const hash = hashOf(kind, from, to, number);
      const extra = hash % 3 === 0 ? mix(hash, 1) & 127 : 0;
      const header = new Uint8Array(8 + extra);
      new Int32Array(header.buffer, 0, 2).set([number, hash]);
      header.set(take(hash, extra), 8);
      const largest = /** @type {number} */ (sizes[(mix(hash, 2) >>> 8) % sizes.length]);
      const payload = take(
        mix(hash, 3) >>> 0,
        largest < 16 ? largest : largest - ((mix(hash, 4) >>> 8) % (largest >> 1)),
      );
      return { header, payload };
    },
    /** So many bytes that a put writes. @param {number} from @param {number} to @param {number} number @param {number} bytes */
    bytes: (from, to, number, bytes) => take(hashOf(PUT, from, to, number), bytes),
  };
}

/**
 * Strikes once where the fault is asked for; then the round is over, once what was held back by "swap" has come.
 * @param {Book} book
 * @param {Fault | undefined} fault
 */
export function strikerOf(book, fault) {
  let left = STRIKES_AT;
  return (/** @type {Fault} */ name) => {
    if (name !== fault || --left !== 0) return false;
    if (name !== "swap") book.raise(STRUCK);
    return true;
  };
}

/** What has come from one endpoint, of one kind. */
class Arrivals {
  /** Number of the message that is due. */
  next = 0;
  /** Numbers below that have not come. @type {Set<number>} */
  missing = new Set();
  /** Held back by the fault "swap". @type {number | undefined} */
  held = undefined;
}

/** What has come to one endpoint. */
export class Deliveries {
  /** @type {Map<string, Arrivals>} */
  #arrivals = new Map();

  /**
   * @param {Book} book
   * @param {string} self what this endpoint is called
   * @param {(fault: Fault) => boolean} strikes
   */
  constructor(book, self, strikes) {
    this.book = book;
    this.self = self;
    this.strikes = strikes;
  }

  /** @param {number} kind @param {number} from */
  #of(kind, from) {
    const key = `${kind} ${from}`;
    const known = this.#arrivals.get(key);
    if (known !== undefined) return known;
    const made = new Arrivals();
    this.#arrivals.set(key, made);
    return made;
  }

  /** A message has come. @param {number} kind @param {number} from @param {number} number */
  arrived(kind, from, number) {
    this.book.count("messages");
    if (this.strikes("drop")) return;
    const arrivals = this.#of(kind, from);
    if (this.strikes("swap")) {
      arrivals.held = number;
      return;
    }
    this.#arrived(kind, from, number);
    if (this.strikes("repeat")) this.#arrived(kind, from, number);
    if (arrivals.held === undefined) return;
    this.#arrived(kind, from, arrivals.held);
    arrivals.held = undefined;
    this.book.raise(STRUCK);
  }

  /** @param {number} kind @param {number} from @param {number} number */
  #arrived(kind, from, number) {
    const arrivals = this.#of(kind, from);
    const what = `message ${number} of kind ${kind} from ${from} to ${this.self}`;
    if (number >= arrivals.next) {
      this.due(kind, from, number);
      arrivals.next = number + 1;
    } else if (arrivals.missing.delete(number)) this.book.fail("reordered", `${what}, behind ${arrivals.next - 1}`);
    else this.book.fail("repeated", `${what}, where ${arrivals.next} is due`);
  }

  /** All messages below `count` should have come. @param {number} kind @param {number} from @param {number} count */
  due(kind, from, count) {
    const arrivals = this.#of(kind, from);
    for (; arrivals.next < count; arrivals.next++) arrivals.missing.add(arrivals.next);
  }

  /** Something that was sent behind `count` messages has come. @param {number} kind @param {number} from @param {number} count */
  behind(kind, from, count) {
    this.due(kind, from, count);
    const { next } = this.#of(kind, from);
    if (next > count)
      this.book.fail("reordered", `a call from ${from} to ${this.self} behind ${next} of kind ${kind}, not ${count}`);
  }

  /**
   * A call's number, which is higher than those before: those in between were given up.
   * @param {number} kind
   * @param {number} from
   * @param {number} number
   */
  called(kind, from, number) {
    const arrivals = this.#of(kind, from);
    if (number < arrivals.next)
      this.book.fail("repeated", `call ${number} from ${from} to ${this.self}, where ${arrivals.next} is due`);
    else arrivals.next = number + 1;
  }

  /** @param {number} kind @param {number} from */
  next(kind, from) {
    return this.#of(kind, from).next;
  }

  /** What is missing now is lost. @param {number} kind @param {number} from */
  close(kind, from) {
    const { missing } = this.#of(kind, from);
    if (missing.size === 0) return;
    const [first] = missing;
    this.book.fail(
      "lost",
      `message ${first} of kind ${kind} from ${from} to ${this.self}, ${missing.size} in all`,
      missing.size,
    );
    missing.clear();
  }

  /** Whether these are the bytes that were sent. @param {Uint8Array} came @param {Uint8Array} sent @param {Fault} fault */
  isSame(came, sent, fault = "corrupt") {
    if (came.length > 0 && this.strikes(fault)) {
      came = came.slice();
      came[came.length >> 1] = ~(/** @type {number} */ (came[came.length >> 1]));
    }
    return Buffer.compare(came, sent) === 0;
  }
}

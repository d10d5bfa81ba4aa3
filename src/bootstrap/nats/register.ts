// What the launchers of a job at a NATS server know together of later tasks and of ends: a set of facts that only grows. Each launcher
// has all of them, so that any of them can be the steward. They come in any order, and any of them may come twice.
//
// A fact is [kind, number, weight, ...values]. Of two facts with one kind and number, the heavier one holds.

export type Fact =
  /** A number is given: to an ID, for a rank (-1: its own), by a launcher with that seat (-1: none). */
  | readonly ["give", task: number, weight: number, id: string, rank: number, seat: number]
  /** The address of a later node. */
  | readonly ["at", node: number, weight: number, address: string]
  /** The process of a task has ended; by failure: 1. */
  | readonly ["gone", task: number, isFailure: number]
  /** A node has ended; by failure: 1. */
  | readonly ["ended", node: number, isFailure: number]
  /** A launcher is there: even; or has left: odd. Its number is that of its first task. */
  | readonly ["seat", seat: number, count: number];

type Kind = Fact[0];
type FactOf<K extends Kind> = Extract<Fact, readonly [K, ...unknown[]]>;

/** By kind: the types of what follows the weight. */
const VALUES: Readonly<Record<Kind, readonly string[]>> = {
  give: ["string", "number", "number"],
  at: ["string"],
  gone: [],
  ended: [],
  seat: [],
};

export class Register {
  readonly #facts = new Map<string, Fact>();
  #hash = 0;

  /** @returns whether the fact is new, or heavier than the one before */
  add(fact: Fact): boolean {
    const key = `${fact[0]} ${fact[1]}`;
    const known = this.#facts.get(key);
    if (known !== undefined && known[2] >= fact[2]) return false;
    this.#facts.set(key, fact);
    this.#hash ^= hashOf(fact) ^ (known === undefined ? 0 : hashOf(known));
    return true;
  }

  get<K extends Kind>(kind: K, number: number): FactOf<K> | undefined {
    return this.#facts.get(`${kind} ${number}`) as FactOf<K> | undefined;
  }

  of<K extends Kind>(kind: K): FactOf<K>[] {
    return this.all.filter((fact): fact is FactOf<K> => fact[0] === kind);
  }

  get all(): Fact[] {
    return [...this.#facts.values()];
  }

  /** Registers with the same text have the same facts. */
  get digest(): string {
    return `${this.#facts.size} ${this.#hash >>> 0}`;
  }

  /** The numbers that an ID was given, in ascending order: the first one counts, the others are wasted. */
  given(id: string): FactOf<"give">[] {
    return this.of("give")
      .filter((fact) => fact[3] === id)
      .sort((a, b) => a[1] - b[1]);
  }

  /** Numbers of tasks, or of nodes, in ascending order. */
  numbers(kind: "gone" | "ended"): number[] {
    return this.of(kind)
      .map((fact) => fact[1])
      .sort((a, b) => a - b);
  }
}

/** Whether a value is a fact: another version might say something else. */
export function isFact(value: unknown): value is Fact {
  if (!Array.isArray(value)) return false;
  const [kind, number, weight, ...rest] = value as unknown[];
  const types = VALUES[kind as Kind] as readonly string[] | undefined;
  if (types === undefined || rest.length !== types.length) return false;
  return [number, weight].every(Number.isSafeInteger) && rest.every((one, i) => typeof one === types[i]);
}

/** FNV-1a. */
function hashOf(fact: Fact): number {
  let hash = 0x811c9dc5;
  for (const char of JSON.stringify(fact)) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return hash;
}

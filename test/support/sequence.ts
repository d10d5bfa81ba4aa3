// Numbered messages: each one's length and bytes follow from its origin and number, so the receiver can check them.
import type { TakenEvent } from "./kernels.js";
import { randomOf } from "./random.js";

export interface Numbered {
  readonly meta: number;
  readonly bytes: Uint8Array;
}

/** Message `number` of an origin, with a body of up to `bytesMax`. */
export function numbered(origin: number, number: number, bytesMax: number): Numbered {
  const random = randomOf(origin * 1_000_003 + number);
  const bytes = new Uint8Array(random(bytesMax + 1));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random(256);
  return { meta: ((origin << 20) | (number & 0xfffff)) >>> 0, bytes };
}

/** Checks what arrives: each origin's messages whole, in order, none missing, none twice. */
export class Verifier {
  readonly #bytesMax: number;
  readonly #next = new Map<number, number>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** @throws if it is not the next message of its origin */
  accept({ origin, meta, bytes }: TakenEvent): void {
    const number = this.count(origin);
    const expected = numbered(origin, number, this.#bytesMax);
    if (meta !== expected.meta) throw new Error(`origin ${origin}: number ${meta & 0xfffff} came instead of ${number}`);
    if (Buffer.compare(Buffer.from(bytes), expected.bytes) !== 0) {
      throw new Error(`origin ${origin}: message ${number} is [${bytes}], not [${expected.bytes}]`);
    }
    this.#next.set(origin, number + 1);
  }

  /** Messages that have come from an origin. */
  count(origin: number): number {
    return this.#next.get(origin) ?? 0;
  }
}

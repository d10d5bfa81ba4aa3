// What was sent in a simulation, and what may have been delivered. An era of a stream ends when its origin reports the loss
// of the target, or restarts. A prefix of each era is delivered, to one incarnation of the target; of the last era,
// everything.
import type { Given } from "./nodes.js";

interface Place {
  readonly era: number;
  readonly index: number;
}

export class Sent {
  readonly #nodes: number;
  readonly #endpoints: number;
  /** Eras so far, by origin's node and target's. */
  readonly #eras: Int32Array;
  /** By stream and era: how many were sent. */
  readonly #counts = new Map<string, number[]>();
  /** By stream: where each content belongs, with its order number in front. */
  readonly #places = new Map<string, Map<string, Place>>();
  #serial = 0;

  constructor(nodes: number, endpoints: number) {
    this.#nodes = nodes;
    this.#endpoints = endpoints;
    this.#eras = new Int32Array(nodes * nodes);
  }

  /** A content that no other has. */
  next(bytes: number): Buffer {
    const serial = this.#serial++;
    const content = Buffer.alloc(Math.max(bytes, 8), serial & 0xff);
    content.write(`${serial} `);
    return content;
  }

  add(origin: number, target: number, content: Buffer): void {
    const key = `${origin}>${target}`;
    const pair = Math.floor(origin / this.#endpoints) * this.#nodes + Math.floor(target / this.#endpoints);
    const era = this.#eras[pair] as number;
    const counts = this.#counts.get(key) ?? [];
    const places = this.#places.get(key) ?? new Map<string, Place>();
    this.#counts.set(key, counts);
    this.#places.set(key, places);
    const index = counts[era] ?? 0;
    counts[era] = index + 1;
    places.set(`${index}:${content.toString("latin1")}`, { era, index });
  }

  /** A node has lost another. */
  cut(node: number, other: number): void {
    const pair = node * this.#nodes + other;
    this.#eras[pair] = (this.#eras[pair] as number) + 1;
  }

  /** A node restarts. */
  cutAll(node: number): void {
    for (let other = 0; other < this.#nodes; other++) this.cut(node, other);
  }

  /** @returns what is wrong with the delivered segments */
  compare(given: Given): string[] {
    const wrong: string[] = [];
    /** By stream and era: how many came. */
    const came = new Map<string, number[]>();
    for (const [name, contents] of given) {
      const [key = ""] = name.split("@");
      const places = this.#places.get(key);
      const counts = came.get(key) ?? [];
      came.set(key, counts);
      let last: Place = { era: -1, index: 0 };
      for (const [i, content] of contents.entries()) {
        const place = places?.get(content);
        const isNext = place?.era === last.era && place.index === last.index + 1;
        const isFirst = place !== undefined && place.era > last.era && place.index === 0;
        if (place === undefined || !(isNext || isFirst) || (isFirst && counts[place.era] !== undefined)) {
          const where = place === undefined ? "was never sent" : `is ${place.index} of era ${place.era}`;
          wrong.push(
            `stream ${name}: ${i}, ${content.slice(0, 20)}, ${where}, behind ${last.index} of era ${last.era}`,
          );
          break;
        }
        counts[place.era] = Math.max(counts[place.era] ?? 0, place.index + 1);
        last = place;
      }
    }
    for (const [key, counts] of this.#counts) {
      const [origin, target] = key.split(">").map((ordinal) => Math.floor(Number(ordinal) / this.#endpoints)) as [
        number,
        number,
      ];
      const era = this.#eras[origin * this.#nodes + target] as number;
      const [is, was] = [came.get(key)?.[era] ?? 0, counts[era] ?? 0];
      if (is !== was) wrong.push(`stream ${key}: ${is} of ${was} segments came, era ${era}`);
    }
    return wrong;
  }
}

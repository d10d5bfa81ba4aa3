// How the members of a geometry find each other. Each tells the first one its id of the geometry and where its block is. Once
// all have, the first one sends that table down a binomial tree. So a member needs 1 + log2 n messages' time, and learns in
// one message what all later ones need.
import { COLLECTIVE_CREATE, COLLECTIVE_REFUSED, COLLECTIVE_TABLE } from "../../assembly/layout.js";
import type { Endpoint } from "../core/endpoint.js";
import { nameOf } from "../core/endpoint.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { Channel } from "./channel.js";
import type { GeometryCore } from "./geometry-core.js";

/** What a member tells of itself: four words of the table. */
export interface Row {
  readonly id: number;
  readonly node: number;
  /** The region of its block; NONE: it has none. */
  readonly regionIndex: number;
  readonly regionGeneration: number;
}

const ROW_WORDS = 4;
/** Words of CREATE: the key, then a row. */
const KEY_WORDS = 4;
/** Lists with a member that has ended that are remembered. */
const HOPELESS_MAX = 64;

/** Names a list of members, and the user's id for it, in two hashes of 32 bits each. */
export function keyOf(endpoints: readonly Endpoint[], userId: number): Uint32Array {
  let low = 0x811c9dc5;
  let high = 0x9747b28c;
  for (const word of endpoints) {
    low = Math.imul(low ^ word, 0x01000193) ^ (low >>> 15);
    high = Math.imul(high ^ (word + 0x7f4a7c15), 0x85ebca6b) ^ (high >>> 13);
  }
  return Uint32Array.of(low, high, endpoints.length, userId);
}

/** A member that has come before this one has called createGeometry(). Only the first member has such. */
interface Comer {
  readonly origin: Endpoint;
  readonly key: Uint32Array;
  readonly row: Row;
}

/** A geometry that is being made. */
export class Creation {
  readonly key: Uint32Array;
  readonly endpoints: readonly Endpoint[];
  readonly rank: number;
  readonly own: Row;
  /** The rows of all members, once it is made. */
  table: readonly Row[] | undefined;
  /** The geometry, once it is made. */
  geometry: GeometryCore | undefined;
  /** Messages to it that have come before the table. */
  readonly early: Arrival[] = [];
  /** Why it is not made. */
  refusal: string | undefined;
  /** At the first member: what has come. */
  readonly #rows: (Row | undefined)[] = [];
  #missing: number;

  constructor(endpoints: readonly Endpoint[], userId: number, rank: number, own: Row) {
    this.key = keyOf(endpoints, userId);
    this.endpoints = endpoints;
    this.rank = rank;
    this.own = own;
    this.#missing = endpoints.length;
    if (rank === 0) this.take(0, own);
  }

  get isOver(): boolean {
    return this.geometry !== undefined || this.refusal !== undefined;
  }

  /** At the first member: whether a member has come. */
  has(rank: number): boolean {
    return this.#rows[rank] !== undefined;
  }

  rowOf(rank: number): Row | undefined {
    return this.#rows[rank];
  }

  take(rank: number, row: Row): void {
    this.#rows[rank] = row;
    if (--this.#missing === 0) this.table = this.#rows as Row[];
  }

  /** What is awaited, in words. */
  awaited(): string {
    const first = nameOf(this.endpoints[0] as Endpoint);
    if (this.rank !== 0) return `waits for the first member, ${first}, which waits for all`;
    const missing = this.endpoints.filter((_, rank) => !this.has(rank)).map((endpoint) => nameOf(endpoint));
    const named = missing.slice(0, 8).join("; ");
    return `waits for ${named}${missing.length > 8 ? ` and ${missing.length - 8} more` : ""}`;
  }
}

export class Creations {
  readonly #channel: Channel;
  readonly #made: (creation: Creation) => void;
  readonly #pending: Creation[] = [];
  readonly #comers: Comer[] = [];
  /** Keys of lists with a member that has ended, and why they are refused: to members that come later. */
  readonly #hopeless: { readonly key: Uint32Array; readonly why: string }[] = [];

  /** @param made called once a creation has its table */
  constructor(channel: Channel, made: (creation: Creation) => void) {
    this.#channel = channel;
    this.#made = made;
  }

  get pending(): readonly Creation[] {
    return this.#pending;
  }

  begin(creation: Creation): void {
    const { endpoints, rank, own, key } = creation;
    this.#pending.push(creation);
    if (rank !== 0) {
      const words = Uint32Array.of(...key, ...wordsOf(own));
      this.#send(COLLECTIVE_CREATE, endpoints[0] as Endpoint, 0, own.id, rank, new Uint8Array(words.buffer));
      return;
    }
    // Of one member, the first that it has begun is meant: a later one is for the next call with the same list.
    for (const comer of [...this.#comers]) {
      const comerRank = endpoints.indexOf(comer.origin);
      if (!isSame(comer.key, key) || comerRank < 0 || creation.has(comerRank)) continue;
      this.#comers.splice(this.#comers.indexOf(comer), 1);
      creation.take(comerRank, comer.row);
    }
    this.#tableIfWhole(creation);
  }

  /** A member tells this one, which is the first, of itself. */
  created(arrival: Arrival, id: number): void {
    const words = wordsIn(arrival);
    if (words.length !== KEY_WORDS + ROW_WORDS) return;
    const key = words.slice(0, KEY_WORDS);
    const row = { ...rowAt(words, KEY_WORDS), id };
    const creation = this.#pending.find((one) => {
      const rank = one.endpoints.indexOf(arrival.origin);
      return one.rank === 0 && isSame(one.key, key) && rank > 0 && !one.has(rank);
    });
    if (creation === undefined) {
      const hopeless = this.#hopeless.find((one) => isSame(one.key, key));
      if (hopeless !== undefined) {
        this.#send(COLLECTIVE_REFUSED, arrival.origin, id, 0, 0, new TextEncoder().encode(hopeless.why));
        return;
      }
      this.#comers.push({ origin: arrival.origin, key, row });
      return;
    }
    creation.take(creation.endpoints.indexOf(arrival.origin), row);
    this.#tableIfWhole(creation);
  }

  /** The table has come, to the geometry of this id. */
  tabled(arrival: Arrival, id: number): void {
    const creation = this.#pending.find((one) => one.own.id === id);
    const words = wordsIn(arrival);
    if (creation === undefined || words.length !== creation.endpoints.length * ROW_WORDS) return;
    creation.table = creation.endpoints.map((_, rank) => rowAt(words, rank * ROW_WORDS));
    this.#passOn(creation, COLLECTIVE_TABLE, arrival.payload.slice());
    this.#made(creation);
  }

  /** The first member has given up. */
  refused(arrival: Arrival, id: number): void {
    const creation = this.#pending.find((one) => one.own.id === id);
    if (creation !== undefined) creation.refusal = new TextDecoder().decode(arrival.payload.slice());
  }

  /** A member has ended, so no creation of this list can succeed. */
  abandon(creation: Creation, why: string): void {
    if (creation.rank === 0) {
      this.#hopeless.push({ key: creation.key, why });
      if (this.#hopeless.length > HOPELESS_MAX) this.#hopeless.shift();
    }
    this.giveUp(creation, why);
  }

  /** This member gives up, so the others that have come to the first one do, too. */
  giveUp(creation: Creation, why: string): void {
    this.remove(creation);
    if (creation.isOver) return;
    creation.refusal = why;
    const { endpoints, rank, own } = creation;
    const text = new TextEncoder().encode(why);
    if (rank !== 0) {
      this.#send(COLLECTIVE_REFUSED, endpoints[0] as Endpoint, 0, own.id, rank, text);
      return;
    }
    for (const [other, endpoint] of endpoints.entries()) {
      const row = other === 0 ? undefined : creation.rowOf(other);
      if (row !== undefined) this.#send(COLLECTIVE_REFUSED, endpoint, row.id, own.id, 0, text);
    }
  }

  /** Another member gives up before this one, the first, has sent the table. */
  withdrawn(arrival: Arrival, id: number): void {
    const creation = this.#pending.find((one) => {
      const rank = one.endpoints.indexOf(arrival.origin);
      return one.rank === 0 && rank > 0 && one.rowOf(rank)?.id === id;
    });
    const why = new TextDecoder().decode(arrival.payload.slice());
    if (creation !== undefined) this.giveUp(creation, `${nameOf(arrival.origin)} gave up: ${why}`);
    const place = this.#comers.findIndex((comer) => comer.origin === arrival.origin && comer.row.id === id);
    if (place >= 0) this.#comers.splice(place, 1);
  }

  remove(creation: Creation): void {
    const place = this.#pending.indexOf(creation);
    if (place >= 0) this.#pending.splice(place, 1);
  }

  #tableIfWhole(creation: Creation): void {
    if (creation.table === undefined) return;
    const words = Uint32Array.from(creation.table.flatMap(wordsOf));
    this.#passOn(creation, COLLECTIVE_TABLE, new Uint8Array(words.buffer));
    this.#made(creation);
  }

  /** Sends the table to this member's children in the binomial tree. */
  #passOn({ endpoints, rank, table = [], own }: Creation, kind: number, payload: Uint8Array): void {
    for (let distance = 1; distance < endpoints.length; distance *= 2) {
      const child = rank + distance;
      if (rank >= distance || child >= endpoints.length) continue;
      this.#send(kind, endpoints[child] as Endpoint, (table[child] as Row).id, own.id, rank, payload);
    }
  }

  #send(kind: number, to: Endpoint, toId: number, fromId: number, rank: number, payload: Uint8Array): void {
    this.#channel.address(kind, toId, fromId, rank).send(to, 0, 0, 0, payload);
  }
}

function wordsOf({ id, node, regionIndex, regionGeneration }: Row): number[] {
  return [id, node, regionIndex, regionGeneration];
}

function rowAt(words: Uint32Array, at: number): Row {
  return {
    id: words[at] as number,
    node: words[at + 1] as number,
    regionIndex: words[at + 2] as number,
    regionGeneration: words[at + 3] as number,
  };
}

/** The payload as words; none if it is not a whole number of them. */
function wordsIn({ payload, payloadBytes }: Arrival): Uint32Array {
  return payloadBytes % 4 === 0 ? new Uint32Array(payload.slice().buffer) : new Uint32Array(0);
}

function isSame(one: Uint32Array, other: Uint32Array): boolean {
  return one.every((word, at) => word === other[at]);
}

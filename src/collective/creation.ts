// How the members of a geometry find each other. Each member tells the first member its id of the geometry and the place of its
// block. Once all members have, the first member sends this table down a binomial tree. So the creation takes the time of 1 +
// log2 n messages, and one message brings a member the data for all later ones.
//
// Before the first member has sent the table, it can refuse: then no member has the geometry. Once a member of a begun list has
// ended, the first member refuses the list, so that no member waits for a call that the ended member never makes. After the
// first member has sent the table, the table may get lost with a member that ends. A member whose parent in the tree has ended
// asks the first member for the table. If the first member has ended, or closed the geometry, the asking member leaves: it
// tells all other members, and each operation fails for members that have the geometry. A member whose program gives the
// creation up leaves too, and still passes the table on.
import {
  COLLECTIVE_ASK,
  COLLECTIVE_CREATE,
  COLLECTIVE_LEFT,
  COLLECTIVE_REFUSED,
  COLLECTIVE_TABLE,
} from "../../assembly/layout.js";
import type { Endpoint } from "../core/endpoint.js";
import { nameOf } from "../core/endpoint.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { GeometryCore } from "./geometry-core.js";
import type { Channel } from "./schedule/channel.js";

/** A member's row: five words of the table. */
export interface Row {
  readonly id: number;
  readonly node: number;
  /** The region of the member's block; NONE: the member has no block. */
  readonly regionIndex: number;
  readonly regionGeneration: number;
  /** 1: the member is in debug mode; else 0. */
  readonly debug: number;
}

const ROW_WORDS = 5;
/** Words of CREATE: the key, then a row. */
const KEY_WORDS = 4;
/** Most members of one origin that wait for this member: a context has so many ids of geometries. */
export const COMERS_MAX = 65_536;
/** Creations that have come to nothing that are remembered, for members that are late. */
const REMEMBERED_MAX = 64;
/**
 * Tag of LEFT, REFUSED and ASK: a member has ended. With REFUSED the tag also says that other members may have the geometry.
 */
const FOR_GOOD = 1;

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

/** A member that has come before this member called createGeometry(). Only the first member keeps such members. */
interface Comer {
  readonly origin: Endpoint;
  readonly key: Uint32Array;
  readonly row: Row;
}

/** A member that has left, and the member's id of the geometry. */
interface Leaver {
  readonly origin: Endpoint;
  readonly id: number;
  readonly why: string;
}

/** A geometry that is being made. */
export class Creation {
  readonly key: Uint32Array;
  readonly endpoints: readonly Endpoint[];
  readonly rank: number;
  readonly own: Row;
  /** The rows of all members, once the geometry is made. */
  table: readonly Row[] | undefined;
  /** At the first member: the table as it was sent. */
  payload: Uint8Array | undefined;
  /** The geometry, once made. */
  geometry: GeometryCore | undefined;
  /**
   * Messages to the geometry that have come before the table. Members bound these messages: each member is at most
   * SYNCHRONIZING_INTERVAL operations ahead, has one vote, and fails an operation or closes once. Active messages count like
   * messages without a handler. Messages of a member beyond EARLY_BYTES_MAX are dropped.
   */
  readonly early: Arrival[] = [];
  /** Bytes of early messages, by member. */
  readonly earlyBytes = new Map<Endpoint, number>();
  /** Why the geometry is not made. */
  refusal: string | undefined;
  /** Called once the creation is over. */
  wake = (): void => {};
  /** At the first member: the rows that have come. */
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

  /** Rank of the member from which the table comes. */
  get parent(): number {
    return parentOf(this.rank);
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

  /** The awaited members, in words. */
  awaited(): string {
    const first = nameOf(this.endpoints[0] as Endpoint);
    if (this.rank !== 0) return `waits for the first member, ${first}, which waits for all`;
    const missing = this.endpoints.filter((_, rank) => !this.has(rank)).map((endpoint) => nameOf(endpoint));
    const named = missing.slice(0, 8).join("; ");
    return `waits for ${named}${missing.length > 8 ? ` and ${missing.length - 8} more` : ""}`;
  }
}

/** The calls of creations to the geometries of their context. */
export interface CreationHost {
  /** A creation has its table. */
  made(creation: Creation): void;
  /** A creation has failed. @param hasLeft other members may have the geometry, and read this member's block */
  unmade(creation: Creation, hasLeft: boolean): void;
  /** Has `endpointGone()` called. */
  watch(endpoint: Endpoint): void;
}

export class Creations {
  readonly #channel: Channel;
  readonly #host: CreationHost;
  /** At most as many as a context has ids. */
  readonly #pending: Creation[] = [];
  /**
   * Waiting members, bounded by their origins: each origin has at most COMERS_MAX, takes back members that it gives up (LEFT),
   * and is forgotten when it ends.
   */
  #comers: Comer[] = [];
  /** The number of waiting members of an origin. */
  readonly #comerCounts = new Map<Endpoint, number>();
  /** Lists that this member has begun as the first member. Such a list can't succeed after a member of it has ended. */
  readonly #lists: { readonly key: Uint32Array; readonly endpoints: readonly Endpoint[] }[] = [];
  /** Keys of lists with a member that has ended, and why members that come later are refused. */
  readonly #hopeless: { readonly key: Uint32Array; readonly why: string }[] = [];
  /** Creations that this member has left, and for which it passes a table on. */
  readonly #left: Creation[] = [];
  /** Members that have left geometries which this member had not begun. */
  readonly #leavers: Leaver[] = [];

  constructor(channel: Channel, host: CreationHost) {
    this.#channel = channel;
    this.#host = host;
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
    if (!this.#lists.some((list) => isSame(list.key, key))) keep(this.#lists, { key, endpoints });
    // A member's first begun creation is meant: a later creation is for the next call with the same list.
    for (const comer of [...this.#comers]) {
      const comerRank = endpoints.indexOf(comer.origin);
      if (!isSame(comer.key, key) || comerRank < 0 || creation.has(comerRank)) continue;
      this.#removeComer(comer);
      creation.take(comerRank, comer.row);
    }
    this.#tableIfWhole(creation);
  }

  /** At the first member: takes another member's row. False: the row is malformed, or its origin has sent too many. */
  created(arrival: Arrival, id: number): boolean {
    const words = wordsIn(arrival);
    if (words.length !== KEY_WORDS + ROW_WORDS) return false;
    const key = words.slice(0, KEY_WORDS);
    const row = { ...rowAt(words, KEY_WORDS), id };
    const creation = this.#pending.find((one) => {
      const rank = one.endpoints.indexOf(arrival.origin);
      return one.rank === 0 && isSame(one.key, key) && rank > 0 && !one.has(rank);
    });
    if (creation === undefined) {
      const hopeless = this.#hopeless.find((one) => isSame(one.key, key));
      if (hopeless !== undefined) {
        this.#refuse(arrival.origin, id, hopeless.why);
        return true;
      }
      const count = this.#comerCounts.get(arrival.origin) ?? 0;
      if (count >= COMERS_MAX) return false;
      this.#comerCounts.set(arrival.origin, count + 1);
      this.#comers.push({ origin: arrival.origin, key, row });
      this.#host.watch(arrival.origin);
      return true;
    }
    creation.take(creation.endpoints.indexOf(arrival.origin), row);
    this.#tableIfWhole(creation);
    return true;
  }

  #removeComer(comer: Comer): void {
    if (remove(this.#comers, comer))
      this.#comerCounts.set(comer.origin, (this.#comerCounts.get(comer.origin) as number) - 1);
  }

  /**
   * The table has come, for the geometry of this id. False: the table is malformed, or its sender is not this member's parent
   * or the first member.
   */
  tabled(arrival: Arrival, id: number): boolean {
    const hasId = (one: Creation): boolean => one.own.id === id;
    const creation = this.#pending.find(hasId) ?? this.#left.find(hasId);
    const words = wordsIn(arrival);
    if (creation === undefined) return true;
    const { endpoints, parent } = creation;
    const isOfRight = arrival.origin === endpoints[0] || arrival.origin === endpoints[parent];
    if (!isOfRight || words.length !== endpoints.length * ROW_WORDS) return false;
    creation.table = creation.endpoints.map((_, rank) => rowAt(words, rank * ROW_WORDS));
    this.#passOn(creation, arrival.payload.slice());
    if (remove(this.#pending, creation)) this.#host.made(creation);
    return true;
  }

  /** The first member has refused. False: the sender is not the first member. */
  refused(arrival: Arrival, id: number, tag: number): boolean {
    const creation = this.#pending.find((one) => one.own.id === id);
    if (creation === undefined) return true;
    if (arrival.origin !== creation.endpoints[0]) return false;
    const why = textIn(arrival);
    if (tag === FOR_GOOD) this.abandon(creation, why);
    else this.#end(creation, why, false);
    return true;
  }

  /** At the first member: another member asks for the table. @param table undefined: the table is not there, or not any more */
  asked(arrival: Arrival, id: number, tag: number, table: Uint8Array | undefined): void {
    const { origin } = arrival;
    const creation = this.#withMember(origin, id);
    if (table !== undefined) this.#send(COLLECTIVE_TABLE, origin, id, 0, 0, table);
    else if (creation !== undefined) this.#fail(creation, textIn(arrival), tag);
    else this.#send(COLLECTIVE_REFUSED, origin, id, 0, 0, arrival.payload.slice(), FOR_GOOD);
  }

  /**
   * This member gives up. The first member refuses the list for all members. Any other member leaves. @param tag FOR_GOOD, or 0
   */
  giveUp(creation: Creation, why: string, tag = 0): void {
    if (!this.#pending.includes(creation)) return;
    const { endpoints, rank, own } = creation;
    const text = new TextEncoder().encode(why);
    for (const [other, endpoint] of endpoints.entries()) {
      if (other === rank) continue;
      const row = creation.rowOf(other);
      if (row !== undefined) this.#send(COLLECTIVE_REFUSED, endpoint, row.id, own.id, 0, text);
      if (rank !== 0) this.#send(COLLECTIVE_LEFT, endpoint, 0, own.id, rank, text, tag);
    }
    if (rank !== 0) keep(this.#left, creation);
    this.#end(creation, why, rank !== 0);
  }

  /** An endpoint has ended, and all its messages are delivered. */
  endpointGone(endpoint: Endpoint): void {
    this.#comers = this.#comers.filter(({ origin }) => origin !== endpoint);
    this.#comerCounts.delete(endpoint);
    const why = `${nameOf(endpoint)} has ended`;
    for (const { key, endpoints } of this.#lists) if (endpoints.includes(endpoint)) this.#despair(key, why);
    for (const creation of [...this.#pending]) {
      const rank = creation.endpoints.indexOf(endpoint);
      if (rank === 0 || (rank > 0 && creation.rank === 0)) this.abandon(creation, why);
      else if (creation.parent === rank) {
        this.#ask(creation, why, FOR_GOOD);
      }
    }
  }

  /**
   * A member has closed the geometry of which a creation is a part. Either that member comes no more, or it has the new
   * geometry already, and the table is under way to this member. The first member knows which.
   */
  closedWhole(creation: Creation, endpoint: Endpoint, why: string): void {
    const rank = creation.endpoints.indexOf(endpoint);
    if (rank < 0) return;
    if (creation.rank !== 0) this.#ask(creation, why, 0);
    else if (!creation.has(rank)) this.giveUp(creation, why);
  }

  #ask({ endpoints, own, rank }: Creation, why: string, tag: number): void {
    this.#send(COLLECTIVE_ASK, endpoints[0] as Endpoint, 0, own.id, rank, new TextEncoder().encode(why), tag);
  }

  /** A member has ended before this member had the table: no creation of this list can succeed. */
  abandon(creation: Creation, why: string): void {
    if (creation.rank === 0) this.#despair(creation.key, why);
    this.giveUp(creation, why, FOR_GOOD);
  }

  /**
   * At the first member: no geometry of a list can be made any more. Members that wait for this member to begin the list hear
   * of the refusal.
   */
  #despair(key: Uint32Array, why: string): void {
    if (!this.#hopeless.some((one) => isSame(one.key, key))) keep(this.#hopeless, { key, why });
    for (const comer of [...this.#comers]) {
      if (!isSame(comer.key, key)) continue;
      this.#removeComer(comer);
      this.#refuse(comer.origin, comer.row.id, why);
    }
  }

  /** @param id the member's own id of the geometry that it has begun */
  #refuse(origin: Endpoint, id: number, why: string): void {
    this.#send(COLLECTIVE_REFUSED, origin, id, 0, 0, new TextEncoder().encode(why));
  }

  /** Another member has left. @param isKnown whether this member has the geometry */
  left(arrival: Arrival, id: number, tag: number, isKnown: boolean): void {
    const { origin } = arrival;
    const why = textIn(arrival);
    const comer = this.#comers.find((one) => one.origin === origin && one.row.id === id);
    if (comer !== undefined) this.#removeComer(comer);
    else if (!isKnown) keep(this.#leavers, { origin, id, why });
    const creation = this.#withMember(origin, id);
    if (creation === undefined) return;
    this.#fail(creation, why, tag);
  }

  #fail(creation: Creation, why: string, tag: number): void {
    if (tag === FOR_GOOD) this.abandon(creation, why);
    else this.giveUp(creation, why);
  }

  /** At the first member: the creation that has this id at a member which has come. */
  #withMember(endpoint: Endpoint, id: number): Creation | undefined {
    return this.#pending.find((one) => one.rowOf(one.endpoints.indexOf(endpoint))?.id === id);
  }

  /** Members that are in the table of a creation, and have left. */
  leaversIn({ endpoints, table = [] }: Creation): readonly Leaver[] {
    return this.#leavers.filter(({ origin, id }) => table[endpoints.indexOf(origin)]?.id === id);
  }

  #end(creation: Creation, why: string, hasLeft: boolean): void {
    remove(this.#pending, creation);
    creation.refusal = why;
    this.#host.unmade(creation, hasLeft);
    creation.wake();
  }

  #tableIfWhole(creation: Creation): void {
    if (creation.table === undefined) return;
    creation.payload = new Uint8Array(Uint32Array.from(creation.table.flatMap(wordsOf)).buffer);
    this.#passOn(creation, creation.payload);
    if (remove(this.#pending, creation)) this.#host.made(creation);
  }

  /** Sends the table to this member's children in the binomial tree. */
  #passOn({ endpoints, rank, table = [], own }: Creation, payload: Uint8Array): void {
    for (let distance = 1; distance < endpoints.length; distance *= 2) {
      const child = rank + distance;
      if (rank >= distance || child >= endpoints.length) continue;
      this.#send(COLLECTIVE_TABLE, endpoints[child] as Endpoint, (table[child] as Row).id, own.id, rank, payload);
    }
  }

  #send(kind: number, to: Endpoint, toId: number, fromId: number, rank: number, payload: Uint8Array, tag = 0): void {
    this.#channel.address(kind, toId, fromId, rank).send(to, 0, tag, 0, payload);
  }
}

function wordsOf({ id, node, regionIndex, regionGeneration, debug }: Row): number[] {
  return [id, node, regionIndex, regionGeneration, debug];
}

function rowAt(words: Uint32Array, at: number): Row {
  return {
    id: words[at] as number,
    node: words[at + 1] as number,
    regionIndex: words[at + 2] as number,
    regionGeneration: words[at + 3] as number,
    debug: words[at + 4] as number,
  };
}

/** The payload as words; no words if the payload is not a whole number of words. */
function wordsIn({ payload, payloadBytes }: Arrival): Uint32Array {
  return payloadBytes % 4 === 0 ? new Uint32Array(payload.slice().buffer) : new Uint32Array(0);
}

/** The payload as text. */
export function textIn({ payload }: Arrival): string {
  return new TextDecoder().decode(payload.slice());
}

/** Rank of the member from which the member of a rank gets the table. */
function parentOf(rank: number): number {
  return rank === 0 ? 0 : rank - 2 ** (31 - Math.clz32(rank));
}

function remove<Item>(list: Item[], item: Item): boolean {
  const place = list.indexOf(item);
  if (place >= 0) list.splice(place, 1);
  return place >= 0;
}

function keep<Item>(list: Item[], item: Item): void {
  list.push(item);
  if (list.length > REMEMBERED_MAX) list.shift();
}

function isSame(one: Uint32Array, other: Uint32Array): boolean {
  return one.every((word, at) => word === other[at]);
}

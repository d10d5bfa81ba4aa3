// Communicators: groups of ranks with a number of their own, and the geometry that does their collective operations.
import {
  type Callback,
  type Client,
  type CollectiveParameters,
  type CollectiveParametersOf,
  type CollectiveType,
  type Context,
  EAGAIN,
  type Endpoint,
  type Geometry,
  PamiError,
  type Result,
  SUCCESS,
} from "../index.js";
import { COMMS_MAX, type RankGroup } from "./engine.js";

/** What a task knows of all its communicators. */
export class Communicators {
  readonly client: Client;
  readonly context: Context;
  readonly world: Communicator;
  readonly self: Communicator;
  #next = 2;
  /** The last communicator that is made by a promise: they are made one behind the other, so that their numbers differ. */
  #last: Promise<unknown> = Promise.resolve();
  #underWay = 0;

  /** @param world the geometry of all ranks */
  constructor(client: Client, context: Context, world: Geometry) {
    this.client = client;
    this.context = context;
    this.world = new Communicator(this, 0, world.endpoints, world.rank, world);
    this.self = new Communicator(this, 1, [context.endpoint], 0, undefined);
  }

  /** The next number that no communicator of this task has had. */
  get next(): number {
    return this.#next;
  }

  /** The next number that none of the members has used. All of `parent` call it. */
  agree(parent: Communicator): number {
    if (this.#underWay > 0) {
      throw new PamiError("PAMIR_INVAL", "a communicator is being made by a promise: await it before the next is made");
    }
    const largest = Int32Array.of(this.#next);
    if (parent.size > 1) {
      parent.settle();
      const result = parent.geometry.allreduceSync({ send: null, receive: largest, operation: "max" });
      if (result !== SUCCESS) throw parent.failure("a new communicator");
    }
    return this.#take(largest);
  }

  /** As agree(), but does not block the thread. Only within inTurn(). */
  async agreeAsync(parent: Communicator): Promise<number> {
    const largest = Int32Array.of(this.#next);
    if (parent.size > 1) {
      const geometry = await parent.geometryAsync();
      await geometry.allreduce({ send: null, receive: largest, operation: "max" });
    }
    return this.#take(largest);
  }

  /** Makes a communicator once those before it are made. */
  inTurn<T>(make: () => Promise<T>): Promise<T> {
    this.#underWay++;
    const made = this.#last.then(make).finally(() => this.#underWay--);
    this.#last = made.catch(() => {});
    return made;
  }

  #take(largest: Int32Array): number {
    const number = largest[0] as number;
    this.#next = number + 1;
    return number;
  }

  /** A communicator of a geometry's members, which have agreed on its number. */
  make(number: number, geometry: Geometry): Communicator {
    this.#next = number + 1;
    return new Communicator(this, number, geometry.endpoints, geometry.rank, geometry);
  }
}

export class Communicator implements RankGroup {
  readonly number: number;
  readonly endpoints: readonly Endpoint[];
  readonly rank: number;
  readonly #all: Communicators;
  #geometry: Geometry | undefined;
  /** Whether MPIX_Comm_revoke() was called, here or at another member. */
  isRevoked = false;
  /** Whether this task waits in a collective operation of it. */
  isBusy = false;
  /** Ranks whose ends the program knows, and which MPI_ANY_SOURCE does not wait for any more. */
  readonly acknowledged = new Set<number>();
  /** Of the members that are left, once they had to decide something. */
  survivors: Geometry | undefined;
  /** Operations that wait for room: a geometry has at most 64 under way. */
  readonly #waiting: (() => Result)[] = [];
  /** Operations that were begun and are not over. */
  #underWay = 0;
  #isClosed = false;
  /** The geometry of one member, while it is made by a promise. */
  #making: Promise<Geometry> | undefined;

  constructor(
    all: Communicators,
    number: number,
    endpoints: readonly Endpoint[],
    rank: number,
    geometry: Geometry | undefined,
  ) {
    if (number >= COMMS_MAX) {
      const text = `the communicator would be number ${number}: a task makes at most ${COMMS_MAX}, freed ones included`;
      throw new PamiError("PAMIR_NO_MEMORY", text);
    }
    this.#all = all;
    this.number = number;
    this.endpoints = endpoints;
    this.rank = rank;
    this.#geometry = geometry;
  }

  get size(): number {
    return this.endpoints.length;
  }

  /** Its geometry. That of one member is made at its first use. */
  get geometry(): Geometry {
    this.#geometry ??= this.#all.client.createGeometrySync(this.endpoints);
    return this.#geometry;
  }

  /** Begins an operation behind those that were begun before. `onDone` gets its result while this task advances. */
  begin(type: CollectiveType, parameters: CollectiveParameters & { readonly onDone: Callback }): void {
    const { geometry } = this;
    const { onDone } = parameters;
    const all = {
      ...parameters,
      onDone: (cookie: unknown, result: Result): void => {
        onDone(cookie, result);
        this.#underWay--;
        while (this.#waiting.length > 0 && this.#waiting[0]?.() !== EAGAIN) this.#waiting.shift();
        if (this.#isClosed) this.close();
      },
    } as CollectiveParametersOf[CollectiveType];
    const start = (): Result => geometry.collective(type, all);
    this.#underWay++;
    if (this.#waiting.length > 0 || start() === EAGAIN) this.#waiting.push(start);
  }

  /** Advances until each operation is under way: a blocking one comes behind them. Blocks the thread. */
  settle(): void {
    if (this.#waiting.length > 0) this.#all.context.advanceUntil(() => this.#waiting.length === 0);
  }

  /** As `geometry`, but does not block the thread. */
  async geometryAsync(): Promise<Geometry> {
    if (this.#geometry !== undefined) return this.#geometry;
    this.#making ??= this.#all.client.createGeometry(this.endpoints);
    this.#geometry = await this.#making;
    return this.#geometry;
  }

  /** The geometry, if it is made. */
  get made(): Geometry | undefined {
    return this.#geometry;
  }

  /** Why the last collective operation has failed. */
  failure(call: string): Error {
    return this.geometry.lastError ?? new PamiError("PAMIR_SHUTDOWN", `${call} has failed`);
  }

  /** Makes a communicator of the same members. All of them call it. */
  duplicate(): Communicator {
    return this.#part(this.endpoints);
  }

  /**
   * Makes a communicator of some members; all members of this one call it.
   * @param members undefined: this task is in none of the new ones
   */
  create(members: readonly Endpoint[] | undefined): Communicator | undefined {
    if (members !== undefined) return this.#part(members);
    this.#all.agree(this);
    return undefined;
  }

  /** Makes a communicator of some members, which alone call it. */
  createGroup(members: readonly Endpoint[]): Communicator {
    const rank = members.indexOf(this.#all.context.endpoint);
    // The number is that of a communicator which is there only to agree on it.
    const geometry = members.length > 1 ? this.#all.client.createGeometrySync(members) : undefined;
    const number = this.#all.agree(new Communicator(this.#all, this.number, members, rank, geometry));
    return new Communicator(this.#all, number, members, rank, geometry);
  }

  /** Makes a communicator of the members with the same color. @param color from 0; undefined: none */
  split(color: number | undefined, key: number): Communicator | undefined {
    const all = new Int32Array(2 * this.size);
    all.set([color ?? -1, key], 2 * this.rank);
    if (this.size > 1) {
      const own = Int32Array.of(color ?? -1, key);
      this.settle();
      if (this.geometry.allgatherSync({ send: own, receive: all }) !== SUCCESS) throw this.failure("MPI_Comm_split");
    }
    return this.create(this.#withColor(color, all));
  }

  /** As duplicate(), but does not block the thread. */
  duplicateAsync(): Promise<Communicator> {
    return this.#all.inTurn(() => this.#partAsync(this.endpoints));
  }

  /** As create(), but does not block the thread. */
  createAsync(members: readonly Endpoint[] | undefined): Promise<Communicator | undefined> {
    return this.#all.inTurn(() => this.#createAsync(members));
  }

  /** As split(), but does not block the thread. */
  splitAsync(color: number | undefined, key: number): Promise<Communicator | undefined> {
    return this.#all.inTurn(async () => {
      const all = new Int32Array(2 * this.size);
      all.set([color ?? -1, key], 2 * this.rank);
      if (this.size > 1) {
        const geometry = await this.geometryAsync();
        await geometry.allgather({ send: Int32Array.of(color ?? -1, key), receive: all });
      }
      return this.#createAsync(this.#withColor(color, all));
    });
  }

  /** Members with a color, in the order of keys. @param all colors and keys, by rank */
  #withColor(color: number | undefined, all: Int32Array): Endpoint[] | undefined {
    if (color === undefined) return undefined;
    const ranks = Array.from(this.endpoints, (_, rank) => rank)
      .filter((rank) => all[2 * rank] === color)
      .sort((one, other) => (all[2 * one + 1] as number) - (all[2 * other + 1] as number) || one - other);
    return ranks.map((rank) => this.endpoints[rank] as Endpoint);
  }

  /** Gives its geometry back: behind the operations that were begun, unless it is revoked. */
  close(): void {
    this.#isClosed = true;
    if (this.#underWay > 0 && !this.isRevoked) return;
    this.survivors?.close();
    if (this.number > 0) this.#geometry?.close();
  }

  async #createAsync(members: readonly Endpoint[] | undefined): Promise<Communicator | undefined> {
    if (members !== undefined) return this.#partAsync(members);
    await this.#all.agreeAsync(this);
    return undefined;
  }

  #part(members: readonly Endpoint[]): Communicator {
    const number = this.#all.agree(this);
    const geometry = members.length > 1 ? this.#all.client.createGeometrySync(members) : undefined;
    return this.#of(number, members, geometry);
  }

  async #partAsync(members: readonly Endpoint[]): Promise<Communicator> {
    const number = await this.#all.agreeAsync(this);
    const geometry = members.length > 1 ? await this.#all.client.createGeometry(members) : undefined;
    return this.#of(number, members, geometry);
  }

  #of(number: number, members: readonly Endpoint[], geometry: Geometry | undefined): Communicator {
    return new Communicator(this.#all, number, members, members.indexOf(this.#all.context.endpoint), geometry);
  }
}

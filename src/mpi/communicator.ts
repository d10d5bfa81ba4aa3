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
import type { RankGroup } from "./engine.js";

/** What a task knows of all its communicators. */
export class Communicators {
  readonly client: Client;
  readonly context: Context;
  readonly world: Communicator;
  readonly self: Communicator;
  /** The next number that no communicator of this task has had. */
  #next = 2;

  /** @param world the geometry of all ranks */
  constructor(client: Client, context: Context, world: Geometry) {
    this.client = client;
    this.context = context;
    this.world = new Communicator(this, 0, world.endpoints, world.rank, world);
    this.self = new Communicator(this, 1, [context.endpoint], 0, undefined);
  }

  /** The next number that none of the members has used. All of `parent` call it. */
  agree(parent: Communicator): number {
    const largest = Int32Array.of(this.#next);
    if (parent.size > 1) {
      parent.settle();
      const result = parent.geometry.allreduceSync({ send: null, receive: largest, operation: "max" });
      if (result !== SUCCESS) throw parent.failure("a new communicator");
    }
    const number = largest[0] as number;
    this.#next = number + 1;
    return number;
  }
}

export class Communicator implements RankGroup {
  readonly number: number;
  readonly endpoints: readonly Endpoint[];
  readonly rank: number;
  readonly #all: Communicators;
  #geometry: Geometry | undefined;
  /** Operations that wait for room: a geometry has at most 64 under way. */
  readonly #waiting: (() => Result)[] = [];

  constructor(
    all: Communicators,
    number: number,
    endpoints: readonly Endpoint[],
    rank: number,
    geometry: Geometry | undefined,
  ) {
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
        while (this.#waiting.length > 0 && this.#waiting[0]?.() !== EAGAIN) this.#waiting.shift();
      },
    } as CollectiveParametersOf[CollectiveType];
    const start = (): Result => geometry.collective(type, all);
    if (this.#waiting.length > 0 || start() === EAGAIN) this.#waiting.push(start);
  }

  /** Advances until each operation is under way: a blocking one comes behind them. Blocks the thread. */
  settle(): void {
    if (this.#waiting.length > 0) this.#all.context.advanceUntil(() => this.#waiting.length === 0);
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
    if (color === undefined) return this.create(undefined);
    const ranks = Array.from(this.endpoints, (_, rank) => rank)
      .filter((rank) => all[2 * rank] === color)
      .sort((one, other) => (all[2 * one + 1] as number) - (all[2 * other + 1] as number) || one - other);
    return this.create(ranks.map((rank) => this.endpoints[rank] as Endpoint));
  }

  /** Gives its geometry back. */
  close(): void {
    if (this.number > 0) this.#geometry?.close();
  }

  #part(members: readonly Endpoint[]): Communicator {
    const number = this.#all.agree(this);
    const rank = members.indexOf(this.#all.context.endpoint);
    const geometry = members.length > 1 ? this.#all.client.createGeometrySync(members) : undefined;
    return new Communicator(this.#all, number, members, rank, geometry);
  }
}

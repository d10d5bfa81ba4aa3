// Groups: ordered lists of ranks, from which communicators are made.
import { type Endpoint, PamiError } from "../index.js";

/** An ordered list of ranks of the job, without communication. A communicator is made of one by `comm.create()`. */
export class CommGroup {
  /** @internal */
  readonly endpoints: readonly Endpoint[];
  /** Rank of this task in the group; undefined: it is not in the group. */
  readonly rank: number | undefined;
  readonly #own: Endpoint;

  /** @internal */
  constructor(endpoints: readonly Endpoint[], own: Endpoint) {
    const rank = endpoints.indexOf(own);
    this.endpoints = endpoints;
    this.#own = own;
    this.rank = rank < 0 ? undefined : rank;
  }

  /** Number of its ranks. */
  get size(): number {
    return this.endpoints.length;
  }

  /** Returns the group of these ranks, in this order. @throws PAMIR_INVAL for a rank that the group has not, or twice */
  incl(ranks: readonly number[]): CommGroup {
    this.#check("incl", ranks);
    return this.#of(ranks.map((rank) => this.endpoints[rank] as Endpoint));
  }

  /** Returns the group without these ranks. @throws as incl() */
  excl(ranks: readonly number[]): CommGroup {
    this.#check("excl", ranks);
    return this.#of(this.endpoints.filter((_, rank) => !ranks.includes(rank)));
  }

  /** Returns the ranks of this group, and behind them those of the other that this group has not. */
  union(other: CommGroup): CommGroup {
    return this.#of([...new Set([...this.endpoints, ...other.endpoints])]);
  }

  /** Returns the ranks of this group that the other has, too. */
  intersection(other: CommGroup): CommGroup {
    return this.#of(this.endpoints.filter((endpoint) => other.endpoints.includes(endpoint)));
  }

  /** Returns the ranks of this group that the other has not. */
  difference(other: CommGroup): CommGroup {
    return this.#of(this.endpoints.filter((endpoint) => !other.endpoints.includes(endpoint)));
  }

  /** Returns the ranks in another group of these ranks of this group; undefined: the other group has not got the rank. */
  translateRanks(ranks: readonly number[], other: CommGroup): (number | undefined)[] {
    this.#check("translateRanks", ranks, true);
    return ranks.map((rank) => {
      const found = other.endpoints.indexOf(this.endpoints[rank] as Endpoint);
      return found < 0 ? undefined : found;
    });
  }

  #of(endpoints: readonly Endpoint[]): CommGroup {
    return new CommGroup(endpoints, this.#own);
  }

  #check(call: string, ranks: readonly number[], mayRepeat = false): void {
    for (const [place, rank] of ranks.entries()) {
      if (!(Number.isInteger(rank) && rank >= 0 && rank < this.size))
        throw new PamiError("PAMIR_INVAL", `${call}(): rank ${String(rank)} is none of 0 to ${this.size - 1}`);
      if (!mayRepeat && ranks.indexOf(rank) !== place)
        throw new PamiError("PAMIR_INVAL", `${call}(): rank ${rank} is there twice`);
    }
  }
}

// Agreements of the members that are left on the members that have ended: this member's votes, and early votes of other
// members.
import { COLLECTIVE_VOTE } from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { Agreement } from "../agreement.js";
import type { Membership } from "./membership.js";
import type { Peers } from "./peers.js";

/** Early votes of each member that are kept: a member has one vote, and may send the decision after its vote. */
const VOTES_MAX = 2;

export interface NewsOfEnds {
  /** Whether the end of an endpoint that is gone is certain by now. */
  hasCertainlyEnded(endpoint: Endpoint): boolean;
  /** Whether the end is not certain, and a launcher will report once it is. */
  isEndAwaited(endpoint: Endpoint): boolean;
}

/** A vote for an agreement that has not begun here. */
interface EarlyVote {
  readonly number: number;
  readonly rank: number;
  readonly round: number;
  readonly payload: Uint8Array;
}

export class Votes {
  readonly #host: NewsOfEnds;
  readonly #membership: Membership;
  readonly #peers: Peers;
  /** Members that are gone, and among them the members whose end is certain. */
  readonly #ends: { readonly gone: ReadonlySet<number>; readonly certain: Set<number> };
  readonly #agreements: Agreement[] = [];
  /**
   * Each other member has at most one such vote: it votes in the first round, and goes on only with the votes of all members,
   * including this member.
   */
  readonly #early: EarlyVote[] = [];

  constructor(
    host: NewsOfEnds,
    membership: Membership,
    peers: Peers,
    ends: { readonly gone: ReadonlySet<number>; readonly certain: Set<number> },
  ) {
    this.#host = host;
    this.#membership = membership;
    this.#peers = peers;
    this.#ends = ends;
  }

  /** Begins an agreement on the members that have ended. All members that are left call it, equally often. */
  agree(isGood: boolean): Agreement {
    const number = this.#agreements.length;
    const { rank, endpoints } = this.#membership;
    this.#learnEnds();
    const agreement = new Agreement(rank, endpoints.length, this.#ends, isGood, (to, round, payload) => {
      this.#peers.send(COLLECTIVE_VOTE, to, number, round, 0, payload);
    });
    this.#agreements.push(agreement);
    return agreement;
  }

  /** The members are watched. */
  begin(agreement: Agreement): void {
    agreement.begin();
    for (const { number, rank, round, payload } of this.#early.splice(0)) this.came(number, rank, round, payload);
  }

  /** Of ends that were not certain, the node may have learned more. */
  #learnEnds(): void {
    const { gone, certain } = this.#ends;
    for (const rank of gone) {
      if (this.#host.hasCertainlyEnded(this.#membership.endpoints[rank] as Endpoint)) certain.add(rank);
    }
  }

  /** See GeometryCore.isSettled(). */
  isSettled(agreement: Agreement): boolean {
    this.#learnEnds();
    agreement.learn(this.#ends.certain);
    const { endpoints } = this.#membership;
    return agreement.mayGoOn || !agreement.silent.some((rank) => this.#host.isEndAwaited(endpoints[rank] as Endpoint));
  }

  /** A vote has come. */
  came(number: number, rank: number, round: number, payload: Uint8Array): void {
    const agreement = this.#agreements[number];
    if (agreement !== undefined) {
      agreement.came(rank, round, payload);
      return;
    }
    const isKept = this.#early.some((vote) => vote.rank === rank && vote.number === number && vote.round === round);
    if (!isKept && this.#early.length < VOTES_MAX * this.#membership.endpoints.length)
      this.#early.push({ number, rank, round, payload });
  }

  /** A member is gone. */
  gone(): void {
    for (const agreement of this.#agreements) if (!agreement.isOver) agreement.gone();
  }
}

// How the members that are left agree on which members have ended, although further members may end meanwhile: flooding
// consensus with early decision. The algorithm relies on each member hearing of each end, sooner or later. An end need not be
// certain: silent members may go on, and agree without this one. So each vote says which ends are certain, and `mayGoOn` is
// true for at most one part of the members.
//
// In each round, a member tells all other members which members it takes for ended, and waits for their votes. If all votes of
// a round are equal, the member has decided, and sends the decision. Otherwise it adds the ends that it has heard of, and
// begins the next round. A member that hears a decision adopts it and passes it on. Two members can't decide differently: a
// member that has decided votes no more, and all members left know a decision before they can go on without that member.

/** Sends a vote. @param round DECIDED: the vote is the decision */
export type SendVote = (rank: number, round: number, payload: Uint8Array) => void;

const DECIDED = 0xffffffff;
/** Flag of a rank in a vote: the end of this member is certain. */
const CERTAIN = 0x8000_0000;

/** A vote: members that have ended, and whether something has worked at all members so far. */
interface Vote {
  readonly ended: ReadonlySet<number>;
  /** Ended members whose end is certain. */
  readonly certain: ReadonlySet<number>;
  readonly isGood: boolean;
}

/** A member's knowledge of the ends of other members. Both sets grow. */
export interface KnownEnds {
  readonly gone: ReadonlySet<number>;
  /** Ended members whose end is certain: the rest is only silent. */
  readonly certain: ReadonlySet<number>;
}

export class Agreement {
  /** By the decision: the members that have ended, and among them the members whose end is certain. */
  ended: ReadonlySet<number> = new Set();
  certain: ReadonlySet<number> = new Set();
  /** Whether all members that are left have said so. */
  isGood: boolean;
  isOver = false;
  readonly #rank: number;
  readonly #size: number;
  readonly #send: SendVote;
  readonly #known: KnownEnds;
  #round = 0;
  #own: Vote;
  /** Votes by round, then by rank. */
  readonly #votes = new Map<number, Map<number, Vote>>();

  /** @param known call gone() once a set has grown */
  constructor(rank: number, size: number, known: KnownEnds, isGood: boolean, send: SendVote) {
    this.#rank = rank;
    this.#size = size;
    this.#known = known;
    this.#send = send;
    this.isGood = isGood;
    this.#own = { ended: new Set(known.gone), certain: new Set(known.certain), isGood };
  }

  begin(): void {
    this.#tellAll(this.#round, this.#own);
    this.#look();
  }

  /** A vote has come. */
  came(rank: number, round: number, payload: Uint8Array): void {
    if (this.isOver) {
      // The other member has not heard of the decision yet, or would wait for this member's vote.
      if (round !== DECIDED) this.#send(rank, DECIDED, encoded(this));
      return;
    }
    const vote = decoded(payload, this.#size);
    if (round === DECIDED) {
      this.#decide(vote);
      return;
    }
    // Each round but two tells of another end.
    if (round > this.#size + 2) return;
    let votes = this.#votes.get(round);
    if (votes === undefined) {
      votes = new Map();
      this.#votes.set(round, votes);
    }
    votes.set(rank, vote);
    this.#look();
  }

  /** A member has ended. */
  gone(): void {
    this.#look();
  }

  /** Ranks whose votes are awaited. */
  awaited(): number[] {
    const votes = this.#votes.get(this.#round);
    const ranks = Array.from({ length: this.#size }, (_, rank) => rank);
    return ranks.filter((rank) => this.#counts(rank) && !votes?.has(rank));
  }

  /** Once the agreement is over: members that count as ended because they are silent. */
  get silent(): number[] {
    return [...this.ended].filter((rank) => !this.certain.has(rank)).sort((one, other) => one - other);
  }

  /** The agreement is over, and more ends have become certain since: each member learns of these ends. The decision stays. */
  learn(certain: ReadonlySet<number>): void {
    this.certain = new Set([...this.ended].filter((rank) => this.certain.has(rank) || certain.has(rank)));
  }

  /**
   * Whether the members that are left may go on. If some members are silent, the rest must be more than half of all members, or
   * half of all with rank 0. So no two parts that have lost each other go on. Members that have ended for certain also count in
   * the total: a part that goes on may have lost them since.
   */
  get mayGoOn(): boolean {
    if (this.ended.has(this.#rank)) return false;
    if (this.certain.size === this.ended.size) return true;
    const left = this.#size - this.ended.size;
    return 2 * left > this.#size || (2 * left === this.#size && !this.ended.has(0));
  }

  /** Whether the vote of a member is needed. */
  #counts(rank: number): boolean {
    return rank !== this.#rank && !this.#known.gone.has(rank) && !this.#own.ended.has(rank);
  }

  #look(): void {
    while (!this.isOver && this.awaited().length === 0) {
      const votes = [...(this.#votes.get(this.#round)?.values() ?? [])];
      const ended = new Set([...this.#own.ended, ...this.#known.gone, ...votes.flatMap((vote) => [...vote.ended])]);
      const certain = new Set([
        ...this.#own.certain,
        ...this.#known.certain,
        ...votes.flatMap((vote) => [...vote.certain]),
      ]);
      const isGood = this.#own.isGood && votes.every((vote) => vote.isGood);
      const next = { ended, certain, isGood };
      if (votes.every((vote) => isSame(vote, next)) && isSame(this.#own, next)) {
        this.#decide(next);
        return;
      }
      this.#votes.delete(this.#round);
      this.#own = next;
      this.#round++;
      this.#tellAll(this.#round, next);
    }
  }

  #decide(vote: Vote): void {
    this.ended = vote.ended;
    this.certain = vote.certain;
    this.isGood = vote.isGood;
    this.isOver = true;
    this.#tellAll(DECIDED, vote);
  }

  #tellAll(round: number, vote: Vote): void {
    const payload = encoded(vote);
    for (let rank = 0; rank < this.#size; rank++) {
      // A member that only other members have lost waits for this member, and learns that the rest goes on without it.
      const isLost = this.#known.gone.has(rank) || (round !== DECIDED && vote.ended.has(rank));
      if (rank !== this.#rank && !isLost) this.#send(rank, round, payload);
    }
  }
}

function encoded({ ended, certain, isGood }: Vote): Uint8Array {
  const ranks = [...ended].sort((one, other) => one - other);
  const words = ranks.map((rank) => (certain.has(rank) ? rank | CERTAIN : rank) >>> 0);
  return new Uint8Array(Uint32Array.of(Number(isGood), ...words).buffer);
}

function decoded(payload: Uint8Array, size: number): Vote {
  const words = new Uint32Array(payload.slice(0, payload.length & ~3).buffer);
  const given = [...words.subarray(1)].filter((word) => (word & ~CERTAIN) >>> 0 < size);
  const certain = given.filter((word) => (word & CERTAIN) !== 0);
  const ranksOf = (some: number[]): Set<number> => new Set(some.map((word) => word & ~CERTAIN));
  return { isGood: words[0] === 1, ended: ranksOf(given), certain: ranksOf(certain) };
}

function isSame(one: Vote, other: Vote): boolean {
  const isSameSize = one.ended.size === other.ended.size && one.certain.size === other.certain.size;
  if (one.isGood !== other.isGood || !isSameSize) return false;
  return (
    [...one.ended].every((rank) => other.ended.has(rank)) && [...one.certain].every((rank) => other.certain.has(rank))
  );
}

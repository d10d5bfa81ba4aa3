// How the members that are left agree on which ones have ended, although others may end meanwhile: flooding consensus with early
// decision. It relies on each member hearing of each end, sooner or later, and never of one that is none.
//
// In each round, a member tells all others which ones it takes for ended, and waits for their votes. If all votes of a round are
// equal, it has decided, and says so; else it adds what it has heard, and begins the next round. A member that hears a decision
// adopts it and passes it on. Two members can't decide differently: one that has decided votes no more, and a decision is known
// to all that are left before they can go on without that member.

/** Sends a vote. @param round DECIDED: it is the decision */
export type SendVote = (rank: number, round: number, payload: Uint8Array) => void;

const DECIDED = 0xffffffff;

/** A vote: members that have ended, and whether something has worked at all members so far. */
interface Vote {
  readonly ended: ReadonlySet<number>;
  readonly isGood: boolean;
}

export class Agreement {
  /** Members that have ended, by the decision. */
  ended: ReadonlySet<number> = new Set();
  /** Whether all members that are left have said so. */
  isGood: boolean;
  isOver = false;
  readonly #rank: number;
  readonly #size: number;
  readonly #send: SendVote;
  /** Members that are known to have ended. */
  readonly #gone: ReadonlySet<number>;
  #round = 0;
  #own: Vote;
  /** Votes by round, then by rank. */
  readonly #votes = new Map<number, Map<number, Vote>>();

  /** @param gone the members known to have ended; it grows. Call gone() when it has */
  constructor(rank: number, size: number, gone: ReadonlySet<number>, isGood: boolean, send: SendVote) {
    this.#rank = rank;
    this.#size = size;
    this.#gone = gone;
    this.#send = send;
    this.isGood = isGood;
    this.#own = { ended: new Set(gone), isGood };
  }

  begin(): void {
    this.#tellAll(this.#round, this.#own);
    this.#look();
  }

  /** A vote has come. */
  came(rank: number, round: number, payload: Uint8Array): void {
    if (this.isOver) {
      // The other one has not heard of the decision yet, or would wait for this member's vote.
      if (round !== DECIDED) this.#send(rank, DECIDED, encoded({ ended: this.ended, isGood: this.isGood }));
      return;
    }
    const vote = decoded(payload, this.#size);
    if (round === DECIDED) {
      this.#decide(vote);
      return;
    }
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

  /** Whether the vote of a member is needed. */
  #counts(rank: number): boolean {
    return rank !== this.#rank && !this.#gone.has(rank) && !this.#own.ended.has(rank);
  }

  #look(): void {
    while (!this.isOver && this.awaited().length === 0) {
      const votes = [...(this.#votes.get(this.#round)?.values() ?? [])];
      const ended = new Set([...this.#own.ended, ...this.#gone, ...votes.flatMap((vote) => [...vote.ended])]);
      const isGood = this.#own.isGood && votes.every((vote) => vote.isGood);
      const next = { ended, isGood };
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

  #decide({ ended, isGood }: Vote): void {
    this.ended = ended;
    this.isGood = isGood;
    this.isOver = true;
    this.#tellAll(DECIDED, { ended, isGood });
  }

  #tellAll(round: number, vote: Vote): void {
    const payload = encoded(vote);
    for (let rank = 0; rank < this.#size; rank++) {
      if (rank !== this.#rank && !this.#gone.has(rank) && !vote.ended.has(rank)) this.#send(rank, round, payload);
    }
  }
}

function encoded({ ended, isGood }: Vote): Uint8Array {
  return new Uint8Array(Uint32Array.of(Number(isGood), ...[...ended].sort((one, other) => one - other)).buffer);
}

function decoded(payload: Uint8Array, size: number): Vote {
  const words = new Uint32Array(payload.slice(0, payload.length & ~3).buffer);
  return { isGood: words[0] === 1, ended: new Set([...words.subarray(1)].filter((rank) => rank < size)) };
}

function isSame(one: Vote, other: Vote): boolean {
  if (one.isGood !== other.isGood || one.ended.size !== other.ended.size) return false;
  return [...one.ended].every((rank) => other.ended.has(rank));
}

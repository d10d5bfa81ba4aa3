// How the members that are left agree on those that have ended: any of them may end meanwhile, at any step, and messages of one
// that ends may be lost from any of them on.
import fc from "fast-check";
import { expect, it } from "vitest";
import { Agreement } from "../../src/collective/agreement.js";
import { scaled } from "../support/effort.js";
import { replayNote, SEED } from "../support/seed.js";

/** A vote under way; or the news that its origin has ended, behind all that it has sent. */
type News = { readonly round: number; readonly payload: Uint8Array } | "end";

class Member {
  readonly rank: number;
  readonly isGood: boolean;
  readonly gone = new Set<number>();
  /** From each other member, in the order sent. */
  readonly inbox: News[][];
  agreement: Agreement | undefined;
  isAlive = true;

  constructor(rank: number, isGood: boolean, size: number) {
    this.rank = rank;
    this.isGood = isGood;
    this.inbox = Array.from({ length: size }, () => []);
  }
}

class Crowd {
  readonly members: readonly Member[];
  readonly #draw: (below: number) => number;

  constructor(isGood: readonly boolean[], draw: (below: number) => number) {
    this.members = isGood.map((one, rank) => new Member(rank, one, isGood.length));
    this.#draw = draw;
  }

  get living(): Member[] {
    return this.members.filter(({ isAlive }) => isAlive);
  }

  begin(member: Member): void {
    const { rank, isGood, gone } = member;
    const send = (to: number, round: number, payload: Uint8Array): void => {
      if (member.isAlive) this.members[to]?.inbox[rank]?.push({ round, payload });
    };
    member.agreement = new Agreement(rank, this.members.length, gone, isGood, send);
    member.agreement.begin();
  }

  end(member: Member): void {
    member.isAlive = false;
    for (const { inbox } of this.members) {
      const sent = inbox[member.rank] as News[];
      sent.length = this.#draw(sent.length + 1);
      sent.push("end");
    }
  }

  /** What may happen next. A member hears of an end before it begins, too; of a vote not. */
  steps(): (() => void)[] {
    return this.living.flatMap((member) => [
      ...(member.agreement === undefined ? [() => this.begin(member)] : []),
      ...member.inbox.flatMap((sent, from) => {
        const [first] = sent;
        const isReady = first === "end" || (first !== undefined && member.agreement !== undefined);
        return isReady ? [() => this.hear(member, from)] : [];
      }),
    ]);
  }

  hear({ inbox, gone, agreement }: Member, from: number): void {
    const news = inbox[from]?.shift() as News;
    if (news !== "end") agreement?.came(from, news.round, news.payload);
    else {
      gone.add(from);
      if (agreement?.isOver === false) agreement.gone();
    }
  }
}

const crowds = fc.integer({ min: 1, max: 6 }).chain((size) =>
  fc.record({
    isGood: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
    // At most all but one end: after so many steps each.
    ends: fc.uniqueArray(fc.record({ rank: fc.nat(size - 1), after: fc.nat(size * size * 6) }), {
      selector: ({ rank }) => rank,
      maxLength: size - 1,
    }),
    draws: fc.infiniteStream(fc.nat(2 ** 30)),
  }),
);

it(`all that are left decide, and all decide the same (${replayNote()})`, () => {
  fc.assert(
    fc.property(crowds, ({ isGood, ends, draws }) => {
      const draw = (below: number): number => (draws.next().value as number) % below;
      const crowd = new Crowd(isGood, draw);
      for (let step = 0; ; step++) {
        for (const { rank, after } of ends) if (after === step) crowd.end(crowd.members[rank] as Member);
        const steps = crowd.steps();
        if (steps.length === 0 && ends.every(({ after }) => after <= step)) break;
        if (steps.length > 0) steps[draw(steps.length)]?.();
      }
      const decisions = crowd.living.map(({ agreement }) => {
        expect(agreement?.isOver).toBe(true);
        return { ended: [...(agreement?.ended ?? [])].sort(), isGood: agreement?.isGood };
      });
      expect(new Set(decisions.map((one) => JSON.stringify(one))).size).toBe(1);
      const [{ ended, isGood: good }] = decisions as [{ ended: number[]; isGood: boolean }];
      // No member is taken for ended that lives; and it is good only where all that are left say so.
      for (const rank of ended) expect(crowd.members[rank]?.isAlive).toBe(false);
      if (good) expect(crowd.living.every((member) => member.isGood)).toBe(true);
      else expect(isGood.includes(false)).toBe(true);
    }),
    { seed: SEED | 0, numRuns: scaled(1000) },
  );
});

// How the members that are left agree on those that have ended: any of them may end meanwhile, at any step, and messages of one
// that ends may be lost from any of them on.
import fc from "fast-check";
import { expect, it } from "vitest";
import { Agreement } from "../../src/collective/agreement.js";
import { scaled } from "../support/effort.js";
import { replayNote, SEED } from "../support/seed.js";

/** A vote under way; or the news that its origin has ended, or that nothing is heard of it, behind all that comes from it. */
type News = { readonly round: number; readonly payload: Uint8Array } | "end" | "silence";

class Member {
  readonly rank: number;
  readonly isGood: boolean;
  readonly gone = new Set<number>();
  readonly certain = new Set<number>();
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
  readonly #isCut = new Set<string>();

  constructor(isGood: readonly boolean[], draw: (below: number) => number) {
    this.members = isGood.map((one, rank) => new Member(rank, one, isGood.length));
    this.#draw = draw;
  }

  get living(): Member[] {
    return this.members.filter(({ isAlive }) => isAlive);
  }

  begin(member: Member): void {
    const { rank, isGood, gone, certain } = member;
    const send = (to: number, round: number, payload: Uint8Array): void => {
      if (!member.isAlive || this.#isCut.has(`${rank} ${to}`)) return;
      this.members[to]?.inbox[rank]?.push({ round, payload });
    };
    member.agreement = new Agreement(rank, this.members.length, { gone, certain }, isGood, send);
    member.agreement.begin();
  }

  end(member: Member): void {
    member.isAlive = false;
    for (const { inbox, rank } of this.members) {
      // Where it is cut off, only its silence is heard; at times a member learns of its end all the same.
      if (this.#isCut.has(`${member.rank} ${rank}`) && this.#draw(2) === 0) continue;
      const sent = inbox[member.rank] as News[];
      sent.length = this.#draw(sent.length + 1);
      sent.push("end");
    }
  }

  /** No message goes between two members any more, in either direction, once some of those under way have come. */
  cut(one: Member, other: Member): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      if (this.#isCut.has(`${from.rank} ${to.rank}`)) continue;
      this.#isCut.add(`${from.rank} ${to.rank}`);
      const sent = to.inbox[from.rank] as News[];
      sent.length = this.#draw(sent.length + 1);
      sent.push("silence");
    }
  }

  /** What may happen next. A member hears of an end before it begins, too; of a vote not. */
  steps(): (() => void)[] {
    return this.living.flatMap((member) => [
      ...(member.agreement === undefined ? [() => this.begin(member)] : []),
      ...member.inbox.flatMap((sent, from) => {
        const [first] = sent;
        const isReady = typeof first === "string" || (first !== undefined && member.agreement !== undefined);
        return isReady ? [() => this.hear(member, from)] : [];
      }),
    ]);
  }

  hear({ inbox, gone, certain, agreement }: Member, from: number): void {
    const news = inbox[from]?.shift() as News;
    if (typeof news !== "string") agreement?.came(from, news.round, news.payload);
    else {
      gone.add(from);
      if (news === "end") certain.add(from);
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

/** The ways in which a network breaks: into two parts, or between any two members. */
const breaks = fc.integer({ min: 2, max: 6 }).chain((size) =>
  fc.record({
    size: fc.constant(size),
    parts: fc.array(fc.nat(2), { minLength: size, maxLength: size }),
    pairs: fc.array(fc.record({ one: fc.nat(size - 1), other: fc.nat(size - 1), after: fc.nat(size * size * 4) })),
    after: fc.nat(size * size * 4),
    isWhole: fc.boolean(),
    ends: fc.uniqueArray(fc.record({ rank: fc.nat(size - 1), after: fc.nat(size * size * 6) }), {
      selector: ({ rank }) => rank,
      maxLength: size - 1,
    }),
    draws: fc.infiniteStream(fc.nat(2 ** 30)),
  }),
);

it(`where a network breaks, all decide, and at most one part may go on (${replayNote()})`, () => {
  let both = 0;
  fc.assert(
    fc.property(breaks, ({ size, parts: drawn, pairs, after, isWhole, ends, draws }) => {
      const draw = (below: number): number => (draws.next().value as number) % below;
      const crowd = new Crowd(Array(size).fill(true), draw);
      const at = (rank: number): Member => crowd.members[rank] as Member;
      const cuts = isWhole
        ? drawn.flatMap((one, rank) =>
            drawn.flatMap((two, other) => (one !== two && rank < other ? [{ one: rank, other, after }] : [])),
          )
        : pairs.filter(({ one, other }) => one !== other);
      const last = Math.max(0, ...cuts.map((cut) => cut.after), ...ends.map((end) => end.after));
      for (let step = 0; ; step++) {
        for (const { one, other, after } of cuts) if (after === step) crowd.cut(at(one), at(other));
        for (const { rank, after } of ends) if (after === step) crowd.end(at(rank));
        const steps = crowd.steps();
        if (steps.length === 0 && step >= last) break;
        if (steps.length > 0) steps[draw(steps.length)]?.();
      }
      const going = crowd.living.filter(({ agreement }) => {
        expect(agreement?.isOver).toBe(true);
        return agreement?.mayGoOn;
      });
      // One that has decided earlier may count members that the others have lost since: it needs them to go on.
      const parts = going.map(({ agreement }) => crowd.members.filter(({ rank }) => !agreement?.ended.has(rank)));
      for (const one of parts)
        for (const other of parts) expect(one.some((member) => other.includes(member))).toBe(true);
      for (const { rank, agreement } of going) expect(agreement?.ended.has(rank)).toBe(false);
      if (going.length > 0 && going.length < crowd.living.length) both++;
    }),
    { seed: SEED | 0, numRuns: scaled(500) },
  );
  // Some go on, and others do not: the draws are no empty ones.
  expect(both).toBeGreaterThan(scaled(500) / 100);
});

it.each([
  ["two of four, with the lowest", [0, 1], [], true],
  ["two of four, without the lowest", [2, 3], [], false],
  ["three of four", [1, 2, 3], [], true],
  ["one of four", [0], [], false],
  ["the last of four, where two have ended for certain", [3], [0, 1], false],
  ["the first of four, where two have ended for certain", [0], [2, 3], false],
  ["two of four with the lowest, where one has ended for certain", [0, 3], [2], true],
  ["the last of four, where the others have ended for certain", [3], [0, 1, 2], true],
])("%s: may they go on?", (_, left, certain, mayGoOn) => {
  const gone = new Set([0, 1, 2, 3].filter((rank) => !left.includes(rank)));
  const members = left.map((rank) => {
    const votes: [number, number, Uint8Array][] = [];
    const known = { gone, certain: new Set(certain) };
    const agreement = new Agreement(rank, 4, known, true, (...vote) => void votes.push(vote));
    return { rank, agreement, votes };
  });
  for (const { agreement } of members) agreement.begin();
  for (const { rank, votes } of members)
    for (const [to, round, payload] of votes)
      members.find((member) => member.rank === to)?.agreement.came(rank, round, payload);
  for (const { agreement } of members) expect([agreement.isOver, agreement.mayGoOn]).toEqual([true, mayGoOn]);
});

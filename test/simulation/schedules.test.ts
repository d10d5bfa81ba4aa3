// Algorithms of collective operations, run as schedules: each gives what it should, in any order of messages; and what is
// broken on purpose is found.
import { describe, expect, it } from "vitest";
import { nodesKeepOrder } from "../../src/collective/algorithms/leaders.js";
import type { Local, Round, Schedule, Transfer } from "../../src/collective/schedule/schedule.js";
import { byEffort, EFFORT, SEED } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";
import {
  ALGORITHMS,
  type Algorithm,
  check,
  isReduction,
  isRooted,
  isScan,
  operationOf,
  operatorsFor,
  orderOf,
  type Plan,
  planOf,
  titleOf,
  VARIANTS,
  worksFor,
} from "./collectives.js";
import { AFFINE, BRACKETS, SUM } from "./operators.js";
import { Fault, type Operator, simulate } from "./schedules.js";

const BYTES = [0, 1, 7, 8, 1000];
const SIZES = [
  ...Array.from({ length: 17 }, (_, i) => i + 1),
  ...byEffort({ quick: [], normal: [32], deep: [31, 48, 64] }),
];

/** In test:deep all of up to 17 members. */
function rootsOf(algorithm: Algorithm, size: number, random: (below: number) => number): readonly number[] {
  if (!isRooted(algorithm)) return [0];
  return EFFORT === "deep" && size <= 17 ? Array.from({ length: size }, (_, rank) => rank) : [0, random(size)];
}

function runAll(algorithm: Algorithm, plan: Plan, random: (below: number) => number): void {
  for (const operator of operatorsFor(algorithm, plan)) {
    const isInPlace = algorithm.isInPlace === true && random(2) === 0;
    check(operationOf(plan, algorithm, operator, isInPlace, random), algorithm, operator, random);
  }
}

it.each([...ALGORITHMS, ...VARIANTS].map((algorithm) => [titleOf(algorithm), algorithm] as const))(
  `%s gives the result of a plain model, to 1 to 17 members and more (${replayNote()})`,
  (_, algorithm) => {
    for (const size of SIZES) {
      const random = randomOf(SEED + size);
      for (const bytes of BYTES) {
        for (const root of rootsOf(algorithm, size, random)) {
          const plan = planOf(size, root, bytes, random);
          if (worksFor(algorithm, plan)) runAll(algorithm, plan, random);
        }
      }
    }
  },
);

describe("the order of a reduction", () => {
  const reductions = ALGORITHMS.filter((algorithm) => isReduction(algorithm) && !isScan(algorithm));

  it("is that of order.ts for each algorithm but ringAllreduce", () => {
    const plan = { ...planOf(6, 0, 80, randomOf(SEED)), nodeOf: [0, 0, 0, 0, 1, 1] };
    const others = reductions.filter((algorithm) => orderOf(algorithm, plan) !== "ordered");
    expect(others.map(({ name }) => name)).toEqual(["ringAllreduce"]);
  });

  it("is another one in ringAllreduce, also where operands do not commute", () => {
    const ring = { ...named("ringAllreduce"), order: () => "ordered" as const };
    for (const { 8: operator } of [AFFINE, BRACKETS]) {
      for (let size = 2; size <= 9; size++) {
        const random = randomOf(SEED + size);
        const run = operationOf(planOf(size, 0, 8 * size, random), ring, operator, false, random);
        expect(() => check(run, ring, operator, random), `${size} members`).toThrow(/^result/);
      }
    }
  });

  it("is kept by partial sums of nodes where nodesKeepOrder() says so, and only there", () => {
    const leaders = { ...named("leadersAllreduce"), order: () => "ordered" as const };
    const keeps = (nodeOf: readonly number[]): boolean => {
      const random = randomOf(SEED);
      const plan = { ...planOf(nodeOf.length, 0, 16, random), nodeOf };
      return found(leaders, plan, (schedule) => schedule, SEED, true, BRACKETS[8]) === "";
    };
    // Bit i says whether the member behind i is on the next node.
    for (let size = 1; size <= byEffort({ quick: 6, normal: 7, deep: 12 }); size++) {
      for (let cuts = 0; cuts < 2 ** (size - 1); cuts++) {
        let node = 0;
        const nodeOf = Array.from({ length: size }, (_, rank) => (node += ((cuts << 1) >> rank) & 1));
        expect(keeps(nodeOf), `nodes ${nodeOf}`).toBe(nodesKeepOrder(nodeOf));
      }
    }
    for (const nodeOf of [
      [0, 1, 0, 1],
      [0, 1, 1, 0],
      [0, 1, 0],
    ])
      expect(nodesKeepOrder(nodeOf)).toBe(keeps(nodeOf));
  });

  it.each([1, 2, 4, 8, 16, 32])("is kept by partial sums of any number of nodes with %d members each", (each) => {
    for (let nodes = 1; nodes <= 33; nodes++) {
      expect(nodesKeepOrder(Array.from({ length: nodes * each }, (_, rank) => Math.floor(rank / each)))).toBe(true);
    }
  });

  it("of a scan depends on a member's rank, not on the number of members", () => {
    for (const scan of ALGORITHMS.filter(isScan)) {
      const [operator, random] = [BRACKETS[8], randomOf(SEED)];
      const operands = Array.from({ length: 17 }, () => Uint8Array.from({ length: 24 }, () => random(256)));
      const results = Array.from({ length: 17 }, (_, i) => {
        const run = operationOf(planOf(i + 1, 0, 24, random), scan, operator, false, random);
        for (const [rank, { send, receive }] of run.members.entries()) {
          send.set(operands[rank] as Uint8Array);
          receive.fill(0);
        }
        simulate(run.members, operator, random);
        return run.members.map(({ receive }) => receive);
      });
      const most = results[16] as Uint8Array[];
      for (const fewer of results) expect(fewer).toEqual(most.slice(0, fewer.length));
    }
  });
});

it("no message has a tag of the barrier that comes before some operations", () => {
  const plan = planOf(12, 0, 96, randomOf(SEED));
  for (const algorithm of [...ALGORITHMS, ...VARIANTS].filter((one) => worksFor(one, plan))) {
    for (const { schedule } of operationOf(plan, algorithm, SUM[8], false, randomOf(SEED)).members) {
      const tags = schedule.rounds.flatMap(({ sends, receives }) => [...sends, ...receives].map(({ tag }) => tag));
      expect(tags.filter((tag) => tag >= 2 ** 20 && tag < 2 ** 21)).toEqual([]);
      expect(Math.max(0, ...tags)).toBeLessThan(2 ** 32);
    }
  }
});

/** A schedule with one of its rounds changed. */
function changed(schedule: Schedule, number: number, change: (round: Round) => Partial<Round>): Schedule {
  const rounds = schedule.rounds.map((round, i) => (i === number ? { ...round, ...change(round) } : round));
  return { ...schedule, rounds };
}

/**
 * The schedule without one step, for each step of it. What one phase copies out of scratch memory, the next one may copy to the
 * same place: such a copy is missed by nothing.
 */
function withoutAStep(schedule: Schedule, hasPhases: boolean): { what: string; schedule: Schedule }[] {
  const isNeeded = (step: Transfer | Local): boolean => !(hasPhases && "kind" in step && step.kind === "copy");
  return schedule.rounds.flatMap((round, number) =>
    (["sends", "receives", "locals"] as const).flatMap((side) => {
      const steps: readonly (Transfer | Local)[] = round[side];
      return steps.filter(isNeeded).map((step) => ({
        what: `round ${number} without ${JSON.stringify(step)}`,
        schedule: changed(schedule, number, () => ({ [side]: steps.filter((other) => other !== step) })),
      }));
    }),
  );
}

/** Runs an operation whose schedules are broken. @returns what is found, "" for nothing */
function found(
  algorithm: Algorithm,
  plan: Plan,
  broken: (schedule: Schedule, rank: number) => Schedule,
  seed: number,
  isInspected = true,
  operator = operatorsFor(algorithm, plan)[0] as Operator,
): string {
  const random = randomOf(seed);
  const operation = operationOf(plan, algorithm, operator, false, random);
  const members = operation.members.map((member, rank) => ({ ...member, schedule: broken(member.schedule, rank) }));
  try {
    check({ ...operation, members }, algorithm, operator, random, isInspected);
    return "";
  } catch (error) {
    return error instanceof Fault ? error.kind : (/^\w+/.exec((error as Error).message)?.[0] as string);
  }
}

const named = (name: string): Algorithm => ALGORITHMS.find((one) => one.name === name) as Algorithm;

describe("what is broken is found", () => {
  it.each([...ALGORITHMS, ...VARIANTS].map((algorithm) => [titleOf(algorithm), algorithm] as const))(
    `a step that is left out: a contribution, a message, a copy; %s (${replayNote()})`,
    (_, algorithm) => {
      for (let size = 1; size <= byEffort({ quick: 4, normal: 6, deep: 9 }); size++) {
        const plan = planOf(size, size >> 1, 64, randomOf(SEED + size));
        if (!worksFor(algorithm, plan)) continue;
        for (let rank = 0; rank < size; rank++) {
          const whole = operationOf(plan, algorithm, SUM[8], false, randomOf(SEED)).members[rank]?.schedule as Schedule;
          for (const { what, schedule } of withoutAStep(whole, /^(leaders|operands)/.test(algorithm.name))) {
            const result = found(algorithm, plan, (one, other) => (other === rank ? schedule : one), SEED + rank);
            expect(result, `${size} members, rank ${rank}, ${what}`).not.toBe("");
          }
        }
      }
    },
  );

  it("a tag that is used again one round too early", () => {
    const early = (one: Transfer): Transfer => ({ ...one, tag: one.tag > 1 ? one.tag - 1 : one.tag });
    const broken = (schedule: Schedule): Schedule => ({
      ...schedule,
      rounds: schedule.rounds.map((round) => ({
        ...round,
        sends: round.sends.map(early),
        receives: round.receives.map(early),
      })),
    });
    for (const name of ["ringAllgather", "ringAllreduce"]) {
      const plan = planOf(5, 0, 40, randomOf(SEED));
      const even = { ...plan, counts: plan.counts.map((row) => row.map(() => 8)) };
      expect(found(named(name), even, broken, SEED)).toBe("tag");
      // By itself, too: some order of messages gives another result.
      const results = Array.from({ length: 20 }, (_, i) => found(named(name), even, broken, SEED + i, false));
      expect(results).toContain("result");
    }
  });

  it("bytes that are sent a round before they are there", () => {
    const merged = (schedule: Schedule): Schedule => {
      const rounds = [...schedule.rounds];
      const last = rounds.findLastIndex(({ sends }) => sends.length > 0);
      const [before, round] = rounds.splice(last - 1, 2, { sends: [], receives: [], locals: [] }) as [Round, Round];
      rounds[last - 1] = {
        sends: [...before.sends, ...round.sends],
        receives: [...before.receives, ...round.receives],
        locals: [...before.locals, ...round.locals],
      };
      return { ...schedule, rounds };
    };
    const plan = planOf(8, 0, 64, randomOf(SEED));
    // Of blocks without bytes, nothing is sent: nothing is broken, either.
    const full = { ...plan, counts: plan.counts.map((row) => row.map((count) => count || 8)) };
    for (const name of [
      "bruckAllgather",
      "ringAllgather",
      "doublingAllreduce",
      "rabenseifnerAllreduce",
      "bruckAlltoall",
    ]) {
      expect(found(named(name), full, merged, SEED), name).toMatch(/overlap|result/);
    }
  });

  it("a receive into bytes that are being sent", () => {
    const broken = (schedule: Schedule): Schedule =>
      changed(schedule, 1, ({ sends, receives }) => ({
        receives: receives.map((one, i) => ({ ...one, span: sends[i]?.span ?? one.span })),
      }));
    const plan = planOf(4, 0, 64, randomOf(SEED));
    expect(found(named("doublingAllreduce"), plan, broken, SEED)).toBe("overlap");
    const results = Array.from({ length: 20 }, (_, i) =>
      found(named("doublingAllreduce"), plan, broken, SEED + i, false),
    );
    expect(results).toContain("result");
  });

  it("scratch memory that is too small, and lengths that differ", () => {
    const plan = planOf(4, 0, 64, randomOf(SEED));
    const smaller = (schedule: Schedule): Schedule => ({ ...schedule, scratchBytes: schedule.scratchBytes - 8 });
    const shorter = (schedule: Schedule, rank: number): Schedule =>
      changed(schedule, 1, ({ receives }) => ({
        receives: receives.map((one) => (rank > 0 ? one : { ...one, span: { ...one.span, bytes: 56 } })),
      }));
    expect(found(named("doublingAllreduce"), plan, smaller, SEED)).toBe("bounds");
    expect(found(named("doublingAllreduce"), plan, shorter, SEED)).toBe("lengths");
  });
});

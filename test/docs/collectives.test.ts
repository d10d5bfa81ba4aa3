// docs/collectives.md: what its table says of each algorithm is counted in the schedules of all members.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { powerBelow } from "../../src/collective/schedule/shape.js";
import { ALGORITHMS as OFFERED } from "../../src/collective/select.js";
import { ALGORITHMS, type Algorithm, type Plan, shapeOf, titleOf, worksFor } from "../simulation/collectives.js";
import { byEffort } from "../support/effort.js";
import { evaluated } from "../support/formulas.js";

const page = readFileSync("docs/collectives.md", "utf8");

/** The rows of the table, by the algorithm: its formulas. */
const rows = new Map(
  [...page.matchAll(/^\| `(\w+)` \((\w+)\) +\|(.*)\|$/gm)].map(([, name, kind, cells]) => [
    `${name} (${kind})`,
    (cells as string).split("|").map((cell) => cell.trim()),
  ]),
);

const SIZES = byEffort({
  quick: [2, 3, 8, 13],
  normal: [2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33, 64],
  deep: [...Array.from({ length: 64 }, (_, i) => i + 2), 127, 128, 129, 255, 256, 257],
});

const LARGEST = byEffort({ quick: 128, normal: 256, deep: 1024 });

/** The value of a formula of the table. */
function costOf(formula: string, { size: n, bytes: m, nodeOf }: Plan): number {
  const p = powerBelow(n);
  const k = new Set(nodeOf).size;
  const q = powerBelow(k);
  return evaluated(formula, { n, m, p, r: n - p, k, q, s: k - q, c: n / k });
}

/** What the schedules of all members do, in the order of the table's columns. */
function counted(algorithm: Algorithm, plan: Plan): number[] {
  const tags = new Set<number>();
  let [messages, bytes, mostSent, mostLocal] = [0, 0, 0, 0];
  // In an all-to-all, each member does as much as any other. The schedules of all 1,024 have ten million steps.
  const each = algorithm.kind === "alltoall" && plan.size > 512 ? 64 : 1;
  for (let rank = 0; rank < plan.size; rank += each) {
    const { rounds } = algorithm.make(shapeOf(plan, algorithm, rank));
    let [sent, local] = [0, 0];
    for (const round of rounds) {
      for (const { span, tag } of round.sends) {
        tags.add(tag);
        messages += each;
        sent += span.bytes;
      }
      for (const one of round.locals) local += (one.kind === "copy" ? one.to : one.out).bytes;
    }
    bytes += each * sent;
    mostSent = Math.max(mostSent, sent);
    mostLocal = Math.max(mostLocal, local);
  }
  return [tags.size, messages, bytes, mostSent, mostLocal];
}

/** A plan whose vectors can be cut evenly; members follow each other on nodes of up to eight. */
function evenPlan(size: number): Plan {
  const bytes = 8 * size * powerBelow(size);
  const counts = Array.from({ length: size }, () => new Array<number>(size).fill(bytes));
  const perNode = [8, 7, 6, 5, 4, 3, 2, 1].find((each) => size % each === 0) as number;
  const nodeOf = counts.map((_, rank) => Math.floor(rank / perNode));
  return { size, root: 0, bytes, counts, gap: 0, elementBytes: 8, nodeOf };
}

const COLUMNS = ["rounds", "messages", "bytes", "bytes, one", "local, one"];

it("lists the algorithms over messages that a caller can choose", () => {
  const choices = [...page.matchAll(/^\| `(\w+)` +\| `([\w-]+)` +\| `(\w+)` +\|$/gm)];
  const listed = choices.map(([, type, name]) => `${type} ${name}`);
  const offered = Object.entries(OFFERED).flatMap(([type, algorithms]) =>
    algorithms.filter(({ schedule }) => schedule !== undefined).map(({ name }) => `${type} ${name}`),
  );
  expect(listed.sort()).toEqual(offered.sort());
  const known = ALGORITHMS.map(({ name }) => name);
  expect(choices.map(([, , , name]) => name as string).filter((name) => !known.includes(name))).toEqual([]);
});

it("has a row for each algorithm", () => {
  expect([...rows.keys()].sort()).toEqual(ALGORITHMS.map(titleOf).sort());
});

it.each(ALGORITHMS.map((algorithm) => [titleOf(algorithm), algorithm] as const))(
  `%s costs what the table says, for 2 to ${LARGEST} members`,
  (title, algorithm) => {
    const formulas = rows.get(title)?.slice(0, COLUMNS.length) as string[];
    for (const size of [...SIZES, LARGEST]) {
      const plan = evenPlan(size);
      if (!worksFor(algorithm, plan)) continue;
      for (const [i, value] of counted(algorithm, plan).entries()) {
        const formula = formulas[i] as string;
        const what = `${COLUMNS[i]} of ${size} members: ${formula}`;
        const should = costOf(formula, plan);
        if (formula.startsWith("≤")) expect(value, what).toBeLessThanOrEqual(should);
        else expect(value, what).toBeCloseTo(should, 3);
      }
    }
  },
);

it("each source of the table is named below it, and each that is named is used", () => {
  const used = new Set([...rows.values()].flatMap((cells) => cells.at(-1)?.match(/\[\^\w+\]/g) ?? []));
  const given = [...page.matchAll(/^(\[\^\w+\]):/gm)].map(([, name]) => name as string);
  expect([...used].sort()).toEqual(given.sort());
});

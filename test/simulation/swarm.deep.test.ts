// As swarm.test.ts, many more, and larger ones. PAMIR_SEED=…: the first seed.
import { expect, it } from "vitest";
import { SEED } from "../support/seed.js";
import { swarm } from "./swarm.js";
import { whole } from "./whole.js";

/** `PAMIR_SIMULATIONS=…`: 3,000 take some 3 minutes. */
const COUNT = Number(process.env.PAMIR_SIMULATIONS ?? 3000);
const NODES = 40;

function sweep(
  count: number,
  replay: string,
  run: (seed: number) => Pick<ReturnType<typeof swarm>, "drawn" | "wrong">,
  first = SEED,
): void {
  console.log(`${count} simulations from seed ${first}`);
  for (let seed = first; seed < first + count; seed++) {
    const { wrong, drawn } = run(seed);
    expect(wrong, `replay: npm run sim -- --seed ${seed}${replay}: ${JSON.stringify(drawn)}`).toEqual([]);
  }
}

const PARTS = 10;

it.each(Array.from({ length: PARTS }, (_, part) => part))(
  "S8 D8 each stream comes once and in order, and all is quiet in the end: part %i",
  (part) => {
    const count = Math.ceil(COUNT / PARTS);
    sweep(count, "", (seed) => swarm(seed), SEED + part * count);
  },
);

it(`S8 D8 the same with ${NODES} nodes`, () => {
  sweep(Math.ceil(COUNT / 150), ` --nodes ${NODES}`, (seed) => swarm(seed, NODES, NODES));
});

it("the whole API over networks", () => {
  sweep(Math.ceil(COUNT / 20), "", (seed) => whole(seed));
});

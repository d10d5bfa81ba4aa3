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
): void {
  console.log(`${count} simulations from PAMIR_SEED=${SEED}`);
  for (let seed = SEED; seed < SEED + count; seed++) {
    const { wrong, drawn } = run(seed);
    expect(wrong, `replay: npm run sim -- --seed ${seed}${replay}: ${JSON.stringify(drawn)}`).toEqual([]);
  }
}

it("S8 D8 each stream comes once and in order, and all is quiet in the end", () => {
  sweep(COUNT, "", (seed) => swarm(seed));
});

it(`S8 D8 the same with ${NODES} nodes`, () => {
  sweep(Math.ceil(COUNT / 150), ` --nodes ${NODES}`, (seed) => swarm(seed, NODES, NODES));
});

it("the whole API over networks", () => {
  sweep(Math.ceil(COUNT / 20), "", (seed) => whole(seed));
});

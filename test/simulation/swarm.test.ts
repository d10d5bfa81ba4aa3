// Simulations of which each seed draws another kind: nodes, topology, faults, tuning, traffic. `npm run sim` replays one.
import { expect, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { swarm } from "./swarm.js";

const COUNT = byEffort({ quick: 10, normal: 20, deep: 500 });

it(`S8 D8 each stream is delivered once and in order, and all becomes quiet: ${COUNT} simulations (PAMIR_SEED=${SEED})`, {
  // Virtual time is as long on each machine; of a core's it is 27 s, and several times that where others want it.
  timeout: 600_000,
}, () => {
  for (let seed = SEED; seed < SEED + COUNT; seed++) {
    const { wrong, drawn } = swarm(seed);
    expect(wrong, `replay: npm run sim -- --seed ${seed}: ${JSON.stringify(drawn)}`).toEqual([]);
  }
});

import { expect, it } from "vitest";
import { swarm } from "./swarm.js";

it("swarm", { timeout: 100000 }, () => {
  const first = Number(process.env.PAMIR_FIRST ?? 1);
  const bad: string[] = [];
  let worst = 0;
  for (let seed = first; seed < first + Number(process.env.PAMIR_COUNT ?? 50); seed++) {
    let out: ReturnType<typeof swarm>;
    try {
      out = swarm(seed);
    } catch (error) {
      bad.push(`${seed}: ${error instanceof Error ? error.stack : error}`);
      continue;
    }
    worst = Math.max(worst, out.quietAfter);
    if (out.wrong.length > 0) bad.push(`${seed}: ${out.wrong.slice(0, 3).join("\n   ")}\n   ${out.text}`);
  }
  console.log("worst quiet", worst / 1e6, bad.length);
  expect(bad.slice(0, 6).join("\n")).toBe("");
});

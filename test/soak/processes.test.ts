// The soak over processes that share a memory, and over nodes that are joined by UDP or NATS; some of the processes are killed.
import { describe, expect, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { drawRound } from "./draw.js";
import { NATS_SERVER } from "./servers.js";
import { expectClean } from "./support.js";

const seed = SEED >>> 1;
const LIMITS = { kernels: ["wasm", "ts"], tasks: [2, 4], milliseconds: 2000, patience: 60_000 } as const;
const WAYS = [
  ["--processes", { ...LIMITS, processes: true }, byEffort({ quick: 1, normal: 2, deep: 20 })],
  // It takes 10 s until a node that ended without a word is given up.
  ["--link udp", { ...LIMITS, link: "udp" }, byEffort({ quick: 0, normal: 1, deep: 10 })],
  // Where servers are away, it takes up to 40 s.
  [
    "--link nats",
    { ...LIMITS, link: "nats" },
    NATS_SERVER === undefined ? 0 : byEffort({ quick: 0, normal: 1, deep: 6 }),
  ],
] as const;

describe.skipIf(process.platform !== "linux")(`npm run soak -- --seed ${seed}`, () => {
  it("--processes --only collectives: results, or SHUTDOWN, while processes are killed", { timeout: 900_000 }, () => {
    const minutes = byEffort({ quick: "0.05", normal: "0.1", deep: "1.5" });
    const options = ["--minutes", minutes, "--seed", `${seed}`, "--seconds", "2"];
    const { operations, kills } = expectClean(["--processes", "--only", "collectives", ...options]);
    expect(kills).toBeGreaterThan(0);
    // 50 to 500 in these seconds; 16 at a load of 17.
    expect(operations).toBeGreaterThan(5);
  });

  it.each(WAYS)(
    "%s: nothing is lost before a death, repeated or out of order",
    { timeout: 900_000 },
    (way, limits, count) => {
      // At least every second death is by SIGKILL.
      const rounds = Array.from({ length: 100 }, (_, number) => number)
        .filter((number) => drawRound(seed, number, limits).kills > 0)
        .slice(0, count);
      for (const round of rounds) {
        const options = ["--only", "traffic", "--seed", `${seed}`, "--round", `${round}`, "--seconds", "2"];
        const { operations, kills } = expectClean([...way.split(" "), ...options]);
        expect(kills).toBeGreaterThan(0);
        expect(operations).toBeGreaterThan(20);
      }
    },
  );
});

// What the configurations of Vitest have in common.
import { readdirSync } from "node:fs";
import type { InlineConfig } from "vitest/node";
import { chooseSeed } from "../../scripts/seed.mjs";
import { EFFORT } from "./effort.js";
import { ProgressReporter } from "./reporter.js";
import { hasFile } from "./shard.js";

/** Test files that this run leaves out as they are: those of deeper runs, and of other shards. */
export const leftOut = readdirSync("test", { recursive: true, encoding: "utf8" })
  .map((path) => `test/${path.replaceAll("\\", "/")}`)
  .filter((path) => path.endsWith(".test.ts"))
  .filter((path) => !hasFile(path) || (EFFORT !== "deep" && path.endsWith(".deep.test.ts")));

/** The seed of this run, for the threads that tests run in. */
export const seed = chooseSeed();

/** @param report where a machine that counts wants its report in JSON */
export function reportersFor(report: string | undefined): NonNullable<InlineConfig["reporters"]> {
  const told = ["default", new ProgressReporter(seed)];
  return report === undefined ? told : [...told, ["json", { outputFile: report }]];
}

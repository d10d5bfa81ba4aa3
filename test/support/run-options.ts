// What the configurations of Vitest have in common.
import { readdirSync } from "node:fs";
import type { InlineConfig } from "vitest/node";
import { chooseSeed } from "../../scripts/seed.mjs";
import { EFFORT, sample } from "./effort.js";
import { ProgressReporter } from "./reporter.js";
import { hasFile } from "./shard.js";

/** Files of one folder that test:quick takes: to start a file takes as long as many of its tests. */
const QUICK_FILES = 5;

const all = readdirSync("test", { recursive: true, encoding: "utf8" })
  .map((path) => `test/${path.replaceAll("\\", "/")}`)
  .filter((path) => path.endsWith(".test.ts"))
  .sort();

/** The files of this run. */
function chosenFiles(): readonly string[] {
  const files = all.filter((path) => hasFile(path) && (EFFORT === "deep" || !path.endsWith(".deep.test.ts")));
  if (EFFORT !== "quick") return files;
  const folders = new Map<string, string[]>();
  for (const path of files) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    folders.set(folder, [...(folders.get(folder) ?? []), path]);
  }
  return [...folders].flatMap(([folder, paths]) => sample(paths, QUICK_FILES, folder));
}

const chosen = new Set(chosenFiles());
/** Test files that this run leaves out as they are: those of deeper runs, of other shards, and of test:quick most of a folder. */
export const leftOut = all.filter((path) => !chosen.has(path));

/** Node loads the sources, by native-runner.mjs, and not Vite: that takes twice the processor time. */
export const NATIVE = {
  experimental: { viteModuleRunner: false, nodeLoader: false },
  runner: "./test/support/native-runner.mjs",
};

/** The seed of this run, for the threads that tests run in. */
export const seed = chooseSeed();

/** @param report where a machine that counts wants its report in JSON */
export function reportersFor(report: string | undefined): NonNullable<InlineConfig["reporters"]> {
  const told = ["default", new ProgressReporter(seed)];
  return report === undefined ? told : [...told, ["json", { outputFile: report }]];
}

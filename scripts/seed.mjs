// The seed of a run of the tests: PAMIR_SEED, or one that belongs to the count of commits. So a run of one commit can be
// repeated, and each commit tries another part of what is drawn at random.
import { spawnSync } from "node:child_process";

const root = new URL("..", import.meta.url);

/** Commits behind this one; 0 where there is no git. */
export function commitCount() {
  const { status, stdout } = spawnSync("git", ["rev-list", "--count", "HEAD"], { cwd: root, encoding: "utf8" });
  return status === 0 ? Number(stdout) : 0;
}

/** The seed, from 0 to 2^31 - 1, as an environment variable has it. */
export function chooseSeed() {
  const { PAMIR_SEED: given } = process.env;
  // Simulations go on from their seed by ones, so those of the next commit lie far away.
  return given ?? String(Math.imul(commitCount() + 1, 0x9e3779b1) >>> 1);
}

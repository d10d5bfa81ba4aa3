// @ts-check
// Runs one of the pipelines of the folder, and says what came out.
import { rmSync } from "node:fs";
import { summaryOf } from "./lines.js";

/**
 * The time begins before the workers are started and ends after they have ended.
 * @param {{ by: string, input: string, bytes: number, clock?: "processor" }} options whether the processor time of all threads
 *   counts
 * @returns bytes per second
 */
export async function run({ by, input, bytes, clock }) {
  const { pipeline } = await import(`./pipeline/${by}.js`);
  const output = `${input}.${by}`;
  const start = performance.now();
  const usage = process.cpuUsage();
  await pipeline(input, output);
  const { user, system } = process.cpuUsage(usage);
  const seconds = clock === "processor" ? (user + system) / 1e6 : (performance.now() - start) / 1000;
  const summary = summaryOf(output);
  rmSync(output);
  return { figure: bytes / seconds, summary };
}

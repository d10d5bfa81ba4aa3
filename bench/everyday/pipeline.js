// @ts-check
// Runs one of the pipelines of the folder, and says what came out.
import { rmSync } from "node:fs";
import { summaryOf } from "./lines.js";

/**
 * The time begins before the workers are started and ends after they have ended.
 * @param {{ by: string, input: string, bytes: number }} options @returns bytes per second
 */
export async function run({ by, input, bytes }) {
  const { pipeline } = await import(`./pipeline/${by}.js`);
  const output = `${input}.${by}`;
  const start = performance.now();
  await pipeline(input, output);
  const seconds = (performance.now() - start) / 1000;
  const summary = summaryOf(output);
  rmSync(output);
  return { figure: bytes / seconds, summary };
}

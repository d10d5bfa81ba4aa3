// `pamir perf`.
import { conduct } from "./perf/conduct.js";
import { parsePerf, perfHelp } from "./perf/options.js";
import { jsonOf, reportOf, textOf } from "./perf/report.js";

const VOID = 3;

/** Runs the command; its exit code. */
export async function perf(args: string[]): Promise<number> {
  const options = parsePerf(args);
  if (options === "help") {
    process.stdout.write(perfHelp());
    return 0;
  }
  const outcome = await conduct(options, progress);
  const report = reportOf(outcome);
  process.stdout.write(options.json ? jsonOf(report, options.goals) : textOf(report, options.goals));
  for (const { system, reason, failed } of outcome.skipped) {
    if (failed && system.startsWith("pamir")) {
      process.stderr.write(`pamir: ${system} failed: ${reason}\n`);
      return 1;
    }
  }
  return report.void ? VOID : 0;
}

/** What is being measured, on a terminal only. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

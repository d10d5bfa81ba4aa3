// `pamir perf`.

import { say, UsageError } from "../../src/cli/usage.js";
import { printable } from "../../src/support/printable.js";
import { conduct } from "./conduct.js";
import { parsePerf, perfHelp } from "./options.js";
import { jsonOf, reportOf, textOf } from "./report.js";

const VOID = 3;

/** Runs the command; its exit code. */
export async function perf(args: string[]): Promise<number> {
  const options = parsePerf(args);
  if (options === "help") {
    process.stdout.write(perfHelp());
    return 0;
  }
  // In a folder that is gone, this throws: tasks would.
  process.cwd();
  const outcome = await conduct(options, progressTo(process.stderr));
  // The JSON object has the reasons.
  if (!options.json && outcome.cells.length === 0 && outcome.skipped.every(({ failed }) => failed !== true)) {
    const why = outcome.skipped.map(({ system, reason }) => `${system}: ${reason}`).join("; ");
    throw new UsageError(`nothing was measured: ${why}`);
  }
  const report = reportOf(outcome);
  process.stdout.write(options.json ? jsonOf(report, options.goals) : printable(textOf(report, options.goals), true));
  for (const { system, reason, failed } of outcome.skipped) {
    if (failed && system.startsWith("pamir")) {
      say(`pamir: ${system} failed: ${reason}`);
      return 1;
    }
  }
  return report.void ? VOID : 0;
}

/** What is being measured: on a terminal one line that changes, elsewhere one for each test and size. */
function progressTo(stream: { readonly isTTY?: boolean; write(text: string): unknown }): (text: string) => void {
  let shown = "";
  return (text) => {
    if (stream.isTTY === true) stream.write(`\r\u001b[K${text}`);
    const [what = ""] = text.split(", ");
    if (stream.isTTY === true || what === shown || what === "") return;
    shown = what;
    stream.write(`pamir perf: measures ${what}\n`);
  };
}

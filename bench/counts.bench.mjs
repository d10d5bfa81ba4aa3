// What one operation makes each of two threads do: functions of pamir that it enters, calls into a kernel, promises. A
// program that has just begun is interpreted, and pays for each. Usage: npm run bench -- counts [--functions | --json]
import { Table } from "console-table-printer";
import { countAll } from "./counts/count.js";

const short = (/** @type {number} */ value) => Number(value.toFixed(1));
const rows = await countAll();
const table = new Table({ shouldDisableColors: true });
for (const { what, caller, callee } of rows) {
  for (const [side, counts] of Object.entries({ caller, ...(callee && { callee }) })) {
    table.addRow({
      what: side === "caller" ? what : "",
      side,
      "functions entered": short(counts.entered),
      "kernel calls": short(counts.kernel),
      promises: short(counts.promises),
    });
  }
}
if (process.argv.includes("--json")) console.log(JSON.stringify(rows));
else table.printTable();
if (process.argv.includes("--functions")) {
  for (const { what, caller, callee } of rows) {
    for (const [side, { functions }] of Object.entries({ caller, ...(callee && { callee }) })) {
      const names = Object.entries(functions).sort((a, b) => b[1] - a[1]);
      console.log(`${what}, ${side}: ${names.map(([name, count]) => `${name} ${short(count)}`).join(", ")}`);
    }
  }
}

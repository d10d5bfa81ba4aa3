// Writes so many numbered lines of x, and notes each in a file. "polite" waits while the output takes no more; "hasty" does not.
import { once } from "node:events";
import { appendFileSync } from "node:fs";

const [manner, lines, file, length = "65000"] = process.argv.slice(2);
const filling = "x".repeat(Number(length));
for (let line = 0; line < Number(lines); line++) {
  const isTaken = process.stdout.write(`${line} ${filling}\n`);
  appendFileSync(file, ".");
  if (manner === "polite" && !isTaken) await once(process.stdout, "drain");
}

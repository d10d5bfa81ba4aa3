// Labels the output of tasks: each line begins with the number of its task, so that lines of several tasks can be told apart.
import type { Readable, Writable } from "node:stream";

/** How lines are labeled: with the task's number, or in a color of the task. */
export type Labels = "plain" | "color";

/** Foreground colors of a terminal, without black, white and red. */
const COLORS = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94] as const;
/** Characters of a line without an end, after which it is written as one. */
const LINE_MAX = 65_536;

function labelOf(task: number, labels: Labels): string {
  const color = COLORS[task % COLORS.length] as number;
  return labels === "color" ? `\u001b[${color}m[${task}]\u001b[0m ` : `[${task}] `;
}

/** Writes what comes from a task's stream to another one, line by line. The last line gets an end if it has none. */
export function labelLines(task: number, labels: Labels, from: Readable, to: Writable): void {
  const label = labelOf(task, labels);
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() as string;
    if (rest.length > LINE_MAX) {
      lines.push(rest);
      rest = "";
    }
    // One write for all of them, so that no other process writes between.
    if (lines.length > 0) to.write(lines.map((line) => `${label}${line}\n`).join(""));
  });
  from.on("end", () => {
    if (rest !== "") to.write(`${label}${rest}\n`);
    rest = "";
  });
}

// Values in the texts of errors. The values come from other programs, so their length is bounded.
import { printable } from "../support/printable.js";

/** Longest value that an error shows whole, in characters. */
const SHOWN_MAX = 80;
/** Most runs of ranks that an error lists. */
const RUNS_MAX = 12;

/** A value in quotes, with escapes; a long one is cut. */
export function quote(value: string): string {
  if (value.length <= SHOWN_MAX) return printable(JSON.stringify(value));
  return `${printable(JSON.stringify(value.slice(0, SHOWN_MAX)))}… (${value.length} characters)`;
}

/** Ranks in runs: "1,3-5,9". @param ranks in ascending order */
export function runsOf(ranks: readonly number[]): string {
  const runs: string[] = [];
  let shown = 0;
  while (shown < ranks.length && runs.length < RUNS_MAX) {
    const first = ranks[shown] as number;
    let last = first;
    while (ranks[shown + 1] === last + 1) {
      last++;
      shown++;
    }
    shown++;
    runs.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return runs.join(",") + (shown < ranks.length ? `,and-${ranks.length - shown}-more` : "");
}

/** "rank 3" or "ranks 3, 5-9". @param runs from `runsOf` */
export function ranksText(runs: string): string {
  const list = runs.replace(/and-(\d+)-more$/, "and $1 more").replaceAll(",", ", ");
  return `${/^\d+$/.test(runs) ? "rank" : "ranks"} ${list}`;
}

/** Milliseconds as text: "60 s", "0.25 s". */
export function secondsText(milliseconds: number): string {
  return `${Math.round(milliseconds / 10) / 100} s`;
}

/** The text of an unknown error, for the text of another. */
export function reasonText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The text of an error with its code, for other processes. */
export function whyOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? `${reasonText(error)} (${code})` : reasonText(error);
}

// @ts-check
// How a run has ended, in a sentence.

/** @param {number} milliseconds */
export const secondsText = (milliseconds) => `${(milliseconds / 1000).toPrecision(milliseconds < 1000 ? 2 : 3)} s`;

/** @param {number} tasks */
export const ranksText = (tasks) => (tasks === 1 ? "1 rank" : `${tasks} ranks`);

/**
 * @param {import("../../dist/c.js").ProgramJobEnd} end
 * @param {{ name: string, milliseconds: number }} run
 */
export function endText({ code, ranks }, { name, milliseconds }) {
  const after = `after ${secondsText(milliseconds)}`;
  if (code === 0) return `${name}: ${ranksText(ranks.length)} ended with code 0 ${after}.`;
  const isEnded = (/** @type {(typeof ranks)[number]} */ rank) =>
    rank.error?.message.startsWith("the rank was ended: ");
  const first = ranks.find((rank) => rank.code === code && !isEnded(rank)) ?? ranks.find((rank) => rank.code === code);
  const why = first?.error?.message ?? `it has exited with code ${code}`;
  // A rank that has left by exit(0) is no failure of its own.
  const awaited = ranks[Number(/task (\d+) has ended \(MPIX_ERR_PROC_FAILED\)/.exec(why)?.[1] ?? -1)];
  const left =
    awaited === undefined ? "" : ` It waited for rank ${awaited.rank}, which has ended with code ${awaited.code}.`;
  const others = ranks.some((rank) => rank !== first && isEnded(rank)) ? " So the other ranks were ended." : "";
  return `${name} ended with code ${code} ${after}. Rank ${first?.rank}: ${why}.${left}${others}`;
}

// Slurm's compressed lists.

/** Longest list that is looked at, in characters. */
const LIST_MAX = 64 * 1024;

/**
 * The first host of a node list: "node[08-11,20],other" gives "node08".
 * @returns undefined if the list is malformed
 */
export function firstHostOf(list: string): string | undefined {
  if (list.length > LIST_MAX) return undefined;
  // A name has fixed parts and lists of numbers in brackets; the first number of each list makes the first name.
  const [name] = /^(?:[\w.-]|\[\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\])+(?=,|$)/.exec(list) ?? [];
  const host = name?.replace(/\[(\d+)(?!\d)[^\][]*\]/g, "$1");
  return host === undefined || host.startsWith("-") ? undefined : host;
}

/**
 * The number at a place of a list with repetitions: "4(x2),3" stands for 4, 4, 3.
 * @returns undefined if the list is malformed, or has no such place
 */
export function countAt(list: string, place: number): number | undefined {
  if (list.length > LIST_MAX) return undefined;
  let first = 0;
  for (const part of list.split(",")) {
    const [, count, times = "1"] = /^([1-9]\d{0,8})(?:\(x([1-9]\d{0,8})\))?$/.exec(part) ?? [];
    if (count === undefined) return undefined;
    first += Number(times);
    if (place < first) return Number(count);
  }
  return undefined;
}

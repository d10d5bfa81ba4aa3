// What a name that is unknown may have been meant to be.

/** Edits that a name may be away from: one in three of its characters. */
const CHARACTERS_PER_EDIT = 3;
/** Characters of a beginning that says which name is meant. */
const BEGINNING_MIN = 3;
/** Characters of the longest key that is compared: the work grows with both lengths. */
const KEY_MAX = 64;

/**
 * Says which names there are instead of an unknown one: `there is no "heapByte": did you mean heapBytes? There are …`.
 * @param key the unknown name, as an error shows it
 */
export function noSuchKey(key: string, shown: string, known: readonly string[]): string {
  const near = nearestOf(key, known);
  const all = known.join(", ");
  return near === undefined
    ? `there is no ${shown}, but ${all}`
    : `there is no ${shown}: did you mean ${near}? There are ${all}`;
}

/** The name that is nearest to an unknown one: by edits, letters in either case alike, or one that begins with it. */
export function nearestOf(key: string, known: readonly string[]): string | undefined {
  const lower = key.toLowerCase();
  let best: string | undefined;
  let least = Math.max(1, Math.floor(key.length / CHARACTERS_PER_EDIT)) + 1;
  if (key.length > KEY_MAX || key.length < 2) return undefined;
  for (const name of known) {
    const edits = editsBetween(lower, name.toLowerCase());
    if (edits < least) [best, least] = [name, edits];
  }
  return best ?? known.find((name) => isBeginning(lower, name.toLowerCase()) || isBeginning(name.toLowerCase(), lower));
}

function isBeginning(one: string, other: string): boolean {
  return one.length >= BEGINNING_MIN && other.startsWith(one);
}

/** Insertions, deletions, substitutions and swaps of neighbors that make one text of another: optimal string alignment. */
function editsBetween(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + Number(!isSame));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        edits = Math.min(edits, at(before, j - 2) + 1);
      }
      row.push(edits);
    }
    [before, last] = [last, row];
  }
  return at(last, other.length);
}

function at(row: readonly number[], place: number): number {
  return row[place] as number;
}

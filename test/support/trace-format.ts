// A checker of traces, by what Chrome's trace viewer and Perfetto take: which fields each kind of event has, arrows and fences
// that have both ends, arrows that lie on slices.

interface Parsed {
  readonly [field: string]: unknown;
}

const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isWhole = (value: unknown): boolean => Number.isInteger(value);
const isText = (value: unknown): boolean => typeof value === "string" && value !== "";

/** Fields that a kind of event needs, beside those of all. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  X: { dur: (value) => isNumber(value) && (value as number) > 0, cat: isText },
  s: { id: isWhole, cat: isText },
  f: { id: isWhole, cat: isText, bp: (value) => value === "e" },
  b: { id: isWhole, cat: isText },
  e: { id: isWhole, cat: isText },
  i: { s: (value) => value === "t", cat: isText },
  M: { args: (value) => isText((value as { name?: unknown } | undefined)?.name) },
};
const COMMON = {
  name: isText,
  ts: (value: unknown) => isNumber(value) && (value as number) >= 0,
  pid: isWhole,
  tid: isWhole,
};

function faultsOfFields(event: Parsed, place: number): string[] {
  const own = FIELDS[String(event.ph)];
  if (own === undefined) return [`event ${place}: no kind ${JSON.stringify(event.ph)}`];
  return Object.entries({ ...COMMON, ...own })
    .filter(([field, isRight]) => !isRight(event[field]))
    .map(([field]) => `event ${place} (${event.ph}): ${field} is ${JSON.stringify(event[field])}`);
}

/** Each event of one kind has one of another kind with its id; each kind has an id once. */
function faultsOfPairs(events: readonly Parsed[], from: string, to: string, mayBeOpen: boolean): string[] {
  const idsOf = (kind: string): unknown[] => events.filter(({ ph }) => ph === kind).map(({ id }) => id);
  const [begins, ends] = [new Set(idsOf(from)), new Set(idsOf(to))];
  const faults = mayBeOpen ? [] : [...begins].filter((id) => !ends.has(id)).map((id) => `${from} ${id} has no ${to}`);
  faults.push(...[...ends].filter((id) => !begins.has(id)).map((id) => `${to} ${id} has no ${from}`));
  if (begins.size < idsOf(from).length) faults.push(`an id of ${from} is there twice`);
  if (ends.size < idsOf(to).length) faults.push(`an id of ${to} is there twice`);
  return faults;
}

/** Each end of an arrow lies at the begin of a slice of its task: viewers bind it to that one. */
function faultsOfArrows(events: readonly Parsed[]): string[] {
  const slices = new Set(events.filter(({ ph }) => ph === "X").map(({ tid, ts }) => `${tid} ${ts}`));
  return events
    .filter(({ ph, tid, ts }) => (ph === "s" || ph === "f") && !slices.has(`${tid} ${ts}`))
    .map(({ ph, id }) => `${ph} ${id} lies on no slice`);
}

/** All that is wrong with the JSON text of a trace; none: []. */
export function faultsOfTrace(text: string): string[] {
  const { traceEvents, displayTimeUnit } = JSON.parse(text) as { traceEvents: Parsed[]; displayTimeUnit: unknown };
  return [
    ...(displayTimeUnit === "ns" ? [] : [`displayTimeUnit is ${JSON.stringify(displayTimeUnit)}`]),
    ...traceEvents.flatMap(faultsOfFields),
    ...faultsOfPairs(traceEvents, "s", "f", false),
    ...faultsOfPairs(traceEvents, "b", "e", true),
    ...faultsOfArrows(traceEvents),
  ];
}

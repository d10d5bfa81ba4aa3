// By what the packets of a node go to the others, as tables of `pamir top` and `pamir info --job`.
import { Table } from "console-table-printer";
import { printableStart } from "../../support/printable.js";
import type { NodeWay, Seen } from "./answer.js";

/** Most characters of a name, an address, or a list of nodes. */
const NAME_MAX = 40;
const right = "right" as const;
const left = "left" as const;

const number = (value: number): string => Math.round(value).toLocaleString("en-US");
const shown = (text: string): string => printableStart(text, NAME_MAX);

/** Numbers in runs: "1-3, 7". @param numbers in ascending order */
function runsOf(numbers: readonly number[]): string {
  const runs: [first: number, last: number][] = [];
  for (const one of numbers) {
    const run = runs.at(-1);
    if (run?.[1] === one - 1) run[1] = one;
    else runs.push([one, one]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

/** A time as people say it: "12 s", "5 min", "3 h". */
function ageText(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

const timesText = (count: number): string => (count === 1 ? "once" : `${number(count)} times`);

/** The name of a way: what has ended, or is not used, has none. */
function byOf({ by, hasEnded }: NodeWay): string {
  return hasEnded ? "has ended" : (by ?? "not used yet");
}

/**
 * A table with a row for each node and way, and lines about ways that broke. Empty: no node has others.
 * @param before earlier answers, for rates
 */
export function waysText(nodes: readonly Seen[], before: readonly Seen[]): string[] {
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "node", alignment: right },
      ...["to", "by", "through", "for"].map((name) => ({ name, alignment: left })),
      ...["sent", "received"].map((name) => ({ name, alignment: right })),
    ],
  });
  const breaks: string[] = [];
  for (const one of nodes) {
    const was = before.find(({ socket }) => socket === one.socket);
    for (const row of rowsOf(one, was)) table.addRow(row);
    for (const way of one.ways?.traffic ?? [])
      if (way.breaks > 0) breaks.push(`node ${one.place?.node}: ${shown(way.by)} broke ${timesText(way.breaks)}`);
  }
  return table.table.rows.length === 0 ? [] : [table.render(), ...breaks];
}

function rowsOf(seen: Seen, was: Seen | undefined): Record<string, string | number>[] {
  const { ways, place: own, at } = seen;
  if (ways === undefined || own === undefined) return [];
  const { node } = own;
  if (!ways.isKnown) return [{ node, by: shown(ways.link), through: "its agent is busy" }];
  const groups = new Map<string, NodeWay[]>();
  for (const way of ways.ways) groups.set(byOf(way), [...(groups.get(byOf(way)) ?? []), way]);
  const elapsed = was === undefined ? Number.NaN : (at - was.at) / 1000;
  const rates = new Map<string, { sent: string; received: string }>();
  for (const { by, sent, received } of ways.traffic) {
    const earlier = was?.ways?.traffic.find((one) => one.by === by);
    if (earlier === undefined) continue;
    const rate = {
      sent: number((sent - earlier.sent) / elapsed),
      received: number((received - earlier.received) / elapsed),
    };
    rates.set(by, rate);
    // Some packets take a way that is given up, or that no node's packets have taken for good.
    if (sent + received > earlier.sent + earlier.received && !groups.has(by)) groups.set(by, []);
  }
  return [...groups].map(([by, members]) => {
    const places = new Set(members.map((way) => way.at ?? ""));
    const ages = members.flatMap(({ age }) => age ?? []);
    const server = ways.traffic.find((one) => one.by === by)?.at;
    return {
      node,
      to: shown(runsOf(members.map((way) => way.node))),
      by: shown(by),
      through: shown(server ?? (places.size === 1 ? ([...places][0] as string) : "")),
      for: ages.length === 0 ? "" : ageText(Math.min(...ages)),
      ...rates.get(by),
    };
  });
}

/** All nodes of a job that have answered: what each of them is, and a line for each other node. */
export function jobWays(nodes: readonly Seen[]): string {
  return nodes.map(nodeWays).join("\n");
}

function nodeWays({ pid, place: own, ways, dump }: Seen): string {
  const tasks = runsOf(dump.tasks.map(({ task }) => task).filter((task) => isOwn(task, own)));
  const lines = [`node ${own?.node ?? 0}, process ${pid}: tasks ${tasks}, by shared memory`];
  const line = (name: string, text: string): void => void lines.push(`  ${name.padEnd(10)} ${text}`);
  if (ways === undefined) return `${lines[0]}\n`;
  if (!ways.isKnown) line("others", `by ${shown(ways.link)}; its agent is busy`);
  for (const way of ways.ways) {
    const { node, at, age } = way;
    const where = at === undefined || way.hasEnded ? "" : `, through ${shown(at)}`;
    const time = age === undefined || way.hasEnded ? "" : `, for ${ageText(age)}`;
    line(
      `node ${node}`,
      `${way.by === undefined || way.hasEnded ? byOf(way) : `by ${shown(byOf(way))}`}${where}${time}`,
    );
  }
  for (const { by, sent, received, breaks } of ways.traffic)
    line(
      "packets",
      `by ${shown(by)}: ${number(sent)} sent, ${number(received)} received; it broke ${timesText(breaks)}`,
    );
  return `${lines.join("\n")}\n`;
}

function isOwn(task: number, own: Seen["place"]): boolean {
  return own === undefined || Math.floor(task / own.tasksPerNode) === own.node;
}

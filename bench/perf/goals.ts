// The ratios that matter, each with its goal. A ratio is formed run by run, between runs with the same hand-off around
// them, and the median is what counts.
import { type Cell, median, PAIR_SPREAD, type Run } from "./conduct.js";

export interface Ratio {
  readonly what: string;
  readonly ratio: number;
  readonly min: number;
  readonly max: number;
  /** `≤ 1.6`, say; null: reported without a goal. */
  readonly goal: string | null;
  readonly hoped: string | null;
  readonly met: boolean | null;
  /** Which of the two is better; null: the row compares no two systems. */
  readonly ahead: "pamir" | "the other" | null;
}

interface Goal {
  readonly what: string;
  /** Test, system and bytes of the numerator, and of what it is compared with. */
  readonly of: readonly [test: string, system: string, bytes: number];
  readonly to: readonly [test: string, system: string, bytes: number];
  /** `less`: at most `goal` is wanted; `more`: at least. */
  readonly better: "less" | "more";
  readonly goal?: number;
  readonly hoped?: number;
}

const OURS = "pamir-wasm";
const PROCESSES = "pamir-processes";

function against(
  test: string,
  system: string,
  bytes: number,
  better: Goal["better"],
  goal?: number,
  hoped?: number,
  ours = OURS,
): Goal {
  const limits = { ...(goal === undefined ? {} : { goal }), ...(hoped === undefined ? {} : { hoped }) };
  const size = bytes > 0 ? ` ${bytes} B` : "";
  const name = ours === OURS ? "" : ` of ${ours}`;
  return {
    what: `${test}${size}${name} against ${system}`,
    of: [test, ours, bytes],
    to: [test, system, bytes],
    better,
    ...limits,
  };
}

const RNDV_SIZES = [1048576, 16777216, 268435456, 1073741824];
const BANDWIDTH_SIZES = [1024, 3904, 65536, 1048576];

/** Two tasks in processes that share memory, and how soon such tasks talk. */
const PROCESS_GOALS: readonly Goal[] = [
  against("am_lat", OURS, 8, "less", 1.1, 1, PROCESSES),
  against("am_rate", OURS, 8, "more", 0.91, 1, PROCESSES),
  ...[65536, 1048576].flatMap((bytes) => [
    against("am_bw", OURS, bytes, "more", 0.91, 1, PROCESSES),
    against("put_bw", OURS, bytes, "more", 0.91, 1, PROCESSES),
  ]),
  against("am_lat", "openmpi", 8, "less", 0.6, 0.45, PROCESSES),
  against("wake_lat", "waitnotify", 8, "less", 0.7, 0.35, PROCESSES),
  against("wake_lat", "futex", 8, "less", undefined, undefined, PROCESSES),
  against("start", "node", 0, "less", 2, 1.3, PROCESSES),
];

/** Two nodes on loopback, beside bare sockets. Unsealed, the goals for messages of 64 bytes are the same. */
const LINK_GOALS: readonly Goal[] = [
  against("am_lat", "dgram", 64, "less", 1.3, 1.1, "pamir-udp-inline"),
  against("am_rate", "dgram", 64, "more", undefined, undefined, "pamir-udp-inline"),
  against("am_bw", "tcp", 1048576, "more", undefined, undefined, "pamir-udp-inline"),
  ...["pamir-udp", "pamir-udp-open"].flatMap((ours) => [
    against("am_lat", "dgram", 64, "less", 3, 1.5, ours),
    against("am_rate", "dgram", 64, "more", 10, 30, ours),
  ]),
  against("am_bw", "tcp", 1048576, "more", 0.3, 0.7, "pamir-udp"),
  against("am_bw", "tcp", 1048576, "more", 0.5, 1, "pamir-udp-open"),
  ...["pamir-udp", "pamir-udp-open", "pamir-udp-inline"].map(
    (ours): Goal => ({
      what: `put_bw 1048576 B of ${ours} against am_bw of tcp`,
      of: ["put_bw", ours, 1048576],
      to: ["am_bw", "tcp", 1048576],
      better: "more",
    }),
  ),
  ...["am_bw", "put_bw"].map((test) => ({
    ...against(test, "pamir-udp", 1048576, "more", 0.8, 0.95, "pamir-udp-lossy"),
    what: `${test} 1048576 B with 1 % of packets lost against none`,
  })),
];

const GOALS: readonly Goal[] = [
  { ...against("am_lat", "handoff", 8, "less", 1.6, 1.3), what: "am_lat 8 B against the hand-off" },
  ...["openmpi", "mpich", "ucx", "ucx-uct"].map((system) => against("am_lat", system, 8, "less", 1, 0.5)),
  against("am_rate", "openmpi", 8, "more", 1.8, 3),
  ...["mpich", "ucx", "ucx-uct", "ring", "ringbuf.js", "postMessage"].map((name) =>
    against("am_rate", name, 8, "more"),
  ),
  ...BANDWIDTH_SIZES.flatMap((bytes) => [
    bytes < 65536
      ? against("am_bw", "openmpi", bytes, "more", 2, 3)
      : against("am_bw", "openmpi", bytes, "more", ...(bytes === 65536 ? [1, 1.5] : [])),
    ...(bytes <= 65536
      ? [against("am_bw", "ring", bytes, "more", 0.7, 0.9)]
      : [against("am_bw", "ring", bytes, "more")]),
  ]),
  {
    what: "am_fan 8 B, three to one, against one pair",
    of: ["am_fan", OURS, 8],
    to: ["am_rate", OURS, 8],
    better: "more",
    goal: 0.5,
    hoped: 0.8,
  },
  against("wake_lat", "waitnotify", 8, "less", 1.15, 1.05),
  against("wake_lat", "futex", 8, "less"),
  against("idle", "wasmcall", 0, "less", 4, 2),
  ...(["put_bw", "get_bw"] as const).flatMap((test) => [
    against(test, "memcpy", 65536, "more", 0.92, 0.97),
    against(test, "memcpy", 1048576, "more", 0.97, 0.99),
  ]),
  {
    what: "put_lat 8 B with onLocal against am_lat",
    of: ["put_lat", OURS, 8],
    to: ["am_lat", OURS, 8],
    better: "less",
    goal: 0.5,
    hoped: 0.25,
  },
  against("rmw_lat", "wasmcall", 0, "less", 4, 2),
  against("put_touch_bw", "ring", 4096, "more"),
  ...[65536, 1048576].map((bytes) => against("put_touch_bw", "ring", bytes, "more", 0.8, 0.95)),
  ...RNDV_SIZES.map((bytes) => against("rndv_bw", "memcpy", bytes, "more", 0.85, 0.95)),
  against("rndv_bw", "openmpi", 1048576, "more", 1, 2),
  against("rndv_bw", "openmpi", 16777216, "more", 1, 2),
  ...(["fence_one", "fence_other"] as const).map(
    (one): Goal => ({
      what: `fence_many against ${one}`,
      of: ["fence_many", OURS, 8],
      to: [one, OURS, 8],
      better: "less",
      goal: 1.5,
      hoped: 1,
    }),
  ),
  against("barrier", "openmpi", 0, "less", 0.9, 0.5),
  against("allreduce", "openmpi", 8, "less", 1.1, 0.7),
  against("allreduce", "openmpi", 1048576, "less", 0.5, 0.33),
  ...["broadcast", "allgather", "alltoall"].map((test) => against(test, "openmpi", 65536, "less", 0.6, 0.35)),
  ...["barrier", "allreduce"].map((test) => against(test, "mpich", test === "barrier" ? 0 : 8, "less")),
  ...PROCESS_GOALS,
  ...LINK_GOALS,
  against("put_lat", "pamir-ts", 8, "less"),
  against("rmw_lat", "pamir-ts", 0, "less"),
  against("put_touch_bw", "pamir-ts", 65536, "more"),
  against("am_lat", "pamir-ts", 8, "less"),
  against("am_rate", "pamir-ts", 8, "more"),
  ...BANDWIDTH_SIZES.map((bytes) => against("am_bw", "pamir-ts", bytes, "more")),
];

/** The figure that a cell's test is about, of one run. */
export function figureOf({ test }: Cell, run: Run, bytes: number): number {
  if (test.figure === "latency") return run.p50_ns ?? Number.NaN;
  return (run.messages_per_s ?? Number.NaN) * (test.figure === "bandwidth" ? bytes : 1);
}

/** Members of the collective operations that the goals are for. */
const PAIR = 2;

/** Those ratios for which both sides were measured. @param tasks members of the collective operations */
export function ratiosOf(cells: readonly Cell[], tasks = PAIR): Ratio[] {
  const ratios = (tasks === PAIR ? GOALS : GOALS.map(withoutGoal)).flatMap((goal) => {
    const find = (place: Goal["of"]) => cells.find((cell) => isCell(place, cell));
    const ours = find(goal.of);
    const theirs = find(goal.to);
    if (ours === undefined || theirs === undefined) return [];
    const toHandoff = goal.to[1] === "handoff";
    const pairs = toHandoff ? ours.runs.map((run) => [run, run] as const) : pairsOf(ours.runs, theirs.runs);
    const quotients = pairs.map(([run, other]) => {
      const limit = toHandoff ? other.handoff_ns : figureOf(theirs, other, theirs.bytes);
      return figureOf(ours, run, ours.bytes) / limit;
    });
    return [rate(goal, quotients)];
  });
  return [...ratios, ...lost(cells), ...collections(cells)];
}

function withoutGoal({ what, of, to, better }: Goal): Goal {
  return { what, of, to, better };
}

/** The ratios without a row of their own in which the other system is ahead. */
function lost(cells: readonly Cell[]): Ratio[] {
  const ratios: Ratio[] = [];
  for (const ours of cells) {
    if (!ours.system.startsWith("pamir")) continue;
    for (const theirs of cells) {
      const { test, system, bytes } = theirs;
      if (system.startsWith("pamir") || test !== ours.test || bytes !== ours.bytes) continue;
      if (GOALS.some(({ of, to }) => isCell(of, ours) && isCell(to, theirs))) continue;
      const goal = against(
        test.name,
        system,
        bytes,
        test.figure === "latency" ? "less" : "more",
        undefined,
        undefined,
        ours.system,
      );
      const quotients = pairsOf(ours.runs, theirs.runs).map(
        ([run, other]) => figureOf(ours, run, bytes) / figureOf(theirs, other, bytes),
      );
      const ratio = rate(goal, quotients);
      if (ratio.ahead === "the other") ratios.push(ratio);
    }
  }
  return ratios;
}

function isCell([test, system, bytes]: Goal["of"], cell: Cell): boolean {
  return cell.test.name === test && cell.system === system && cell.bytes === bytes;
}

/** Each of our runs with one of theirs around which the hand-off was nearly the same: the run beside it, else the
 *  likest. Pairs that differ too much are dropped, unless nothing else is left. */
function pairsOf(ours: readonly Run[], theirs: readonly Run[]): (readonly [Run, Run])[] {
  const spread = (a: Run, b: Run) => Math.max(a.handoff_ns, b.handoff_ns) / Math.min(a.handoff_ns, b.handoff_ns);
  const pairs = ours.map((run, i) => {
    const beside = theirs[i];
    if (beside !== undefined && spread(run, beside) <= PAIR_SPREAD) return [run, beside] as const;
    return [run, theirs.reduce((best, other) => (spread(run, other) < spread(run, best) ? other : best))] as const;
  });
  const alike = pairs.filter(([run, other]) => spread(run, other) <= PAIR_SPREAD);
  return alike.length > 0 ? alike : pairs;
}

function rate({ what, to, better, goal, hoped }: Goal, quotients: readonly number[]): Ratio {
  const ratio = median(quotients);
  const others = !to[1].startsWith("pamir");
  const sign = better === "less" ? "≤" : "≥";
  const met = goal === undefined ? null : better === "less" ? ratio <= goal : ratio >= goal;
  const text = (limit: number | undefined) => (limit === undefined ? null : `${sign} ${limit}`);
  return {
    what,
    ratio,
    min: Math.min(...quotients),
    max: Math.max(...quotients),
    goal: text(goal),
    hoped: text(hoped),
    met,
    ahead: others ? ((better === "less" ? ratio < 1 : ratio > 1) ? "pamir" : "the other") : null,
  };
}

/** Garbage collections in ten million messages: not a ratio, but in the same table. */
function collections(cells: readonly Cell[]): Ratio[] {
  const cell = cells.find(({ test, system }) => test.name === "am_rate" && system === OURS);
  if (cell === undefined) return [];
  const counts = cell.runs.map(({ gcs = Number.NaN, messages = Number.NaN }) => (gcs / messages) * 1e7);
  const worst = Math.max(...counts);
  return [
    {
      what: "garbage collections in 10 million messages",
      ratio: median(counts),
      min: Math.min(...counts),
      max: worst,
      goal: "0",
      hoped: null,
      met: worst === 0,
      ahead: null,
    },
  ];
}

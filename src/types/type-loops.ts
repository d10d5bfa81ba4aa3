// The loops of a transfer type: what a description comes to, in as few loops as can be, and what is known of it. Pure
// functions; assembly/layout/type.ts has the words that the kernels read.
import * as L from "../../assembly/layout.js";

/** A LOOP entry with its body. */
export interface Loop {
  readonly offset: number;
  readonly count: number;
  readonly stride: number;
  /** Of data in the body. */
  readonly bytes: number;
  /** The body; undefined: `bytes` contiguous bytes. */
  readonly inner: readonly Loop[] | undefined;
}

/** Contiguous bytes. */
export interface TypeRun {
  readonly offset: number;
  readonly bytes: number;
}

/** Most runs that are looked at one by one for overlaps. */
const RUNS_MAX = 65536;

/** The same data in the same order, in fewer loops. */
export function simplified(loops: readonly Loop[]): readonly Loop[] {
  return joined(joined(loops.flatMap(flattened), asRun), asStrided);
}

/** A loop without bodies that are loops of one turn, or go on where the turn before ended. */
function flattened(loop: Loop): readonly Loop[] {
  const { offset, count, stride, bytes, inner } = loop;
  if (inner === undefined) return [stride === bytes ? run(offset, bytes * count) : loop];
  if (count === 1) return inner.map((one) => ({ ...one, offset: offset + one.offset }));
  const [only] = inner;
  if (only === undefined || inner.length > 1) return [loop];
  const moved = { offset: offset + only.offset, bytes: only.bytes, inner: only.inner };
  if (only.count === 1) return flattened({ ...moved, count, stride });
  if (stride === only.count * only.stride) return [{ ...moved, count: count * only.count, stride: only.stride }];
  return [loop];
}

function run(offset: number, bytes: number): Loop {
  return { offset, count: 1, stride: bytes, bytes, inner: undefined };
}

/** Joins neighbors as far as `join` can. */
function joined(loops: readonly Loop[], join: (a: Loop, b: Loop) => Loop | undefined): readonly Loop[] {
  const list: Loop[] = [];
  for (const loop of loops) {
    const last = list.at(-1);
    const both = last && join(last, loop);
    if (both === undefined) list.push(loop);
    else list[list.length - 1] = both;
  }
  return list;
}

/** Two runs as one, if the second begins where the first ends. */
function asRun(a: Loop, b: Loop): Loop | undefined {
  const isOne = a.count === 1 && b.count === 1 && a.inner === undefined && b.inner === undefined;
  return isOne && a.offset + a.bytes === b.offset ? run(a.offset, a.bytes + b.bytes) : undefined;
}

/** Runs at equal distances as one loop. */
function asStrided(a: Loop, b: Loop): Loop | undefined {
  if (a.inner !== undefined || b.inner !== undefined || b.count !== 1 || a.bytes !== b.bytes) return undefined;
  const stride = a.count === 1 ? b.offset - a.offset : a.stride;
  const isNext = stride >= a.bytes && b.offset === a.offset + a.count * stride;
  return isNext ? { ...a, count: a.count + 1, stride } : undefined;
}

/** Sum of a number of each loop. */
function sum(loops: readonly Loop[], of: (loop: Loop) => number): number {
  return loops.reduce((all, loop) => all + of(loop), 0);
}

/** Bytes of data. */
export function dataBytes(loops: readonly Loop[]): number {
  return sum(loops, ({ count, bytes }) => count * bytes);
}

/** Number of contiguous runs. */
export function runCount(loops: readonly Loop[]): number {
  return sum(loops, ({ count, inner }) => count * (inner === undefined ? 1 : runCount(inner)));
}

/** Number of LOOP entries. */
export function loopCount(loops: readonly Loop[]): number {
  return sum(loops, ({ inner }) => 1 + (inner === undefined ? 0 : loopCount(inner)));
}

/** Loops within each other. */
export function depthOf(loops: readonly Loop[]): number {
  return loops.reduce((most, { inner }) => Math.max(most, 1 + (inner === undefined ? 0 : depthOf(inner))), 0);
}

/** Where the data ends. */
export function endOf(loops: readonly Loop[]): number {
  return loops.reduce((end, loop) => Math.max(end, loop.offset + (loop.count - 1) * loop.stride + bodyEnd(loop)), 0);
}

function bodyEnd({ bytes, inner }: Loop): number {
  return inner === undefined ? bytes : endOf(inner);
}

/** Where the data begins. */
function beginOf(loops: readonly Loop[]): number {
  return loops.reduce(
    (begin, { offset, inner }) => Math.min(begin, offset + (inner === undefined ? 0 : beginOf(inner))),
    Number.POSITIVE_INFINITY,
  );
}

/** Calls `visit` for each run, in order. */
function eachRun(loops: readonly Loop[], base: number, visit: (offset: number, bytes: number) => void): void {
  for (const { offset, count, stride, bytes, inner } of loops) {
    for (let time = 0; time < count; time++) {
      const place = base + offset + time * stride;
      if (inner === undefined) visit(place, bytes);
      else eachRun(inner, place, visit);
    }
  }
}

/** The runs of the first `bytes` bytes of data of elements, in order; those that touch are one. */
export function runsOf(loops: readonly Loop[], extent: number, bytes: number): readonly TypeRun[] {
  const runs: TypeRun[] = [];
  for (let element = 0, left = bytes; left > 0; element++) {
    eachRun(loops, element * extent, (offset, all) => {
      const taken = Math.min(all, left);
      if (taken === 0) return;
      left -= taken;
      const last = runs.at(-1);
      if (last !== undefined && last.offset + last.bytes === offset) {
        runs[runs.length - 1] = { offset: last.offset, bytes: last.bytes + taken };
      } else runs.push({ offset, bytes: taken });
    });
  }
  return runs;
}

/** Whether two runs have a byte in common; undefined: there are too many to know. */
export function haveOverlap(loops: readonly Loop[]): boolean | undefined {
  if (areApart(loops)) return false;
  if (runCount(loops) > RUNS_MAX) return undefined;
  const runs: TypeRun[] = [];
  eachRun(loops, 0, (offset, bytes) => runs.push({ offset, bytes }));
  runs.sort((a, b) => a.offset - b.offset);
  return runs.some(
    ({ offset }, i) => i > 0 && offset < (runs[i - 1] as TypeRun).offset + (runs[i - 1] as TypeRun).bytes,
  );
}

/** Whether the loops show that no runs overlap: each turn lies behind the one before, and each loop apart from the others. */
function areApart(loops: readonly Loop[]): boolean {
  const turnsAreApart = loops.every((loop) => {
    const { count, stride, inner } = loop;
    const begin = inner === undefined ? 0 : beginOf(inner);
    return (count === 1 || stride >= bodyEnd(loop) - begin) && (inner === undefined || areApart(inner));
  });
  if (!turnsAreApart) return false;
  const spans = loops.map((loop) => [beginOf([loop]), endOf([loop])] as const).sort(([a], [b]) => a - b);
  return spans.every(([begin], i) => i === 0 || begin >= (spans[i - 1] as readonly [number, number])[1]);
}

/** The words of the LAYOUT. */
export function layoutWords(loops: readonly Loop[], extent: number): Int32Array<ArrayBuffer> {
  const words = new Int32Array((L.LAYOUT_SIZE + loopCount(loops) * L.LOOP_SIZE) / 4);
  words[L.LAYOUT_BYTES_OFFSET / 4] = dataBytes(loops);
  words[L.LAYOUT_EXTENT_OFFSET / 4] = extent;
  words[L.LAYOUT_LOOPS_OFFSET / 4] = loopCount(loops);
  writeLoops(words, L.LAYOUT_SIZE / 4, loops);
  return words;
}

/** Writes entries. @returns the place behind them */
function writeLoops(words: Int32Array, at: number, loops: readonly Loop[]): number {
  for (const { offset, count, stride, bytes, inner } of loops) {
    words[at + L.LOOP_OFFSET_OFFSET / 4] = offset;
    words[at + L.LOOP_COUNT_OFFSET / 4] = count;
    words[at + L.LOOP_STRIDE_OFFSET / 4] = stride;
    words[at + L.LOOP_BYTES_OFFSET / 4] = bytes;
    words[at + L.LOOP_INNER_OFFSET / 4] = inner === undefined ? 0 : loopCount(inner);
    const body = at + L.LOOP_SIZE / 4;
    at = inner === undefined ? body : writeLoops(words, body, inner);
  }
  return at;
}

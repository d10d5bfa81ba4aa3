// Twin of assembly/collective/pack.ts; see the comments there. The elements, and what is packed, may be in any memory here, so
// that views of ordinary buffers are packed too.
import * as L from "../../../../assembly/layout.js";
import { copyInto } from "../../../support/copy.js";
import type { Memory } from "../../kernel.js";

/** Words of a LOOP entry. */
const LOOP_WORDS = L.LOOP_SIZE / 4;
/** Runs up to this length are moved byte by byte: views of both sides take longer. */
const SHORT_RUN = 64;

export function twinPack({ words, bytes: memory }: Memory) {
  function pack(layout: number, to: number, elements: number, from: number, bytes: number): void {
    movePacked(words, layout >>> 2, memory, to >>> 0, memory, elements >>> 0, from >>> 0, bytes >>> 0, true);
  }

  function unpack(layout: number, from: number, elements: number, first: number, bytes: number): void {
    movePacked(words, layout >>> 2, memory, from >>> 0, memory, elements >>> 0, first >>> 0, bytes >>> 0, false);
  }

  return { pack, unpack };
}

/** What of the stream is left to do. */
interface Rest {
  readonly words: Int32Array;
  readonly packed: Uint8Array;
  /** The next packed byte. */
  at: number;
  readonly elements: Uint8Array;
  skip: number;
  left: number;
  readonly isPacking: boolean;
}

/**
 * Moves `bytes` bytes of the stream, from its byte `first` on.
 * @param layout place in `words` of a LAYOUT
 * @param at place of the first of them in `packed`
 * @param base place of element 0 in `elements`
 */
export function movePacked(
  words: Int32Array,
  layout: number,
  packed: Uint8Array,
  at: number,
  elements: Uint8Array,
  base: number,
  first: number,
  bytes: number,
  isPacking: boolean,
): void {
  const size = (words[layout + L.LAYOUT_BYTES_OFFSET / 4] as number) >>> 0;
  const extent = (words[layout + L.LAYOUT_EXTENT_OFFSET / 4] as number) >>> 0;
  const loops = layout + L.LAYOUT_SIZE / 4;
  const end = loops + (words[layout + L.LAYOUT_LOOPS_OFFSET / 4] as number) * LOOP_WORDS;
  const rest: Rest = { words, packed, at, elements, skip: first % size, left: bytes, isPacking };
  for (let element = Math.floor(first / size); rest.left > 0; element++) {
    walk(rest, loops, end, base + element * extent);
  }
}

function walk(rest: Rest, from: number, end: number, base: number): void {
  const { words } = rest;
  for (let loop = from; loop < end && rest.left > 0; ) {
    const bytes = (words[loop + L.LOOP_BYTES_OFFSET / 4] as number) >>> 0;
    const count = (words[loop + L.LOOP_COUNT_OFFSET / 4] as number) >>> 0;
    const inner = words[loop + L.LOOP_INNER_OFFSET / 4] as number;
    const body = loop + LOOP_WORDS;
    const next = body + inner * LOOP_WORDS;
    let time = Math.floor(rest.skip / bytes);
    if (time >= count) rest.skip -= count * bytes;
    else {
      rest.skip -= time * bytes;
      const stride = (words[loop + L.LOOP_STRIDE_OFFSET / 4] as number) >>> 0;
      let place = base + ((words[loop + L.LOOP_OFFSET_OFFSET / 4] as number) >>> 0) + time * stride;
      if (inner === 0) run(rest, place, bytes, count - time, stride);
      else {
        for (; time < count && rest.left > 0; time++) {
          walk(rest, body, next, place);
          place += stride;
        }
      }
    }
    loop = next;
  }
}

function run(rest: Rest, place: number, bytes: number, count: number, stride: number): void {
  if (rest.skip > 0) {
    const part = Math.min(bytes - rest.skip, rest.left);
    copy(rest, place + rest.skip, part);
    rest.skip = 0;
    count--;
    place += stride;
  }
  const whole = Math.min(count, Math.floor(rest.left / bytes));
  if (whole > 0) {
    const { packed, at, elements } = rest;
    if (rest.isPacking) copyRuns(packed, at, elements, place, bytes, whole, bytes, stride);
    else copyRuns(elements, place, packed, at, bytes, whole, stride, bytes);
    rest.at += whole * bytes;
    rest.left -= whole * bytes;
  }
  if (rest.left > 0 && whole < count) copy(rest, place + whole * stride, rest.left);
}

function copy(rest: Rest, place: number, bytes: number): void {
  const { packed, at, elements } = rest;
  if (rest.isPacking) copyInto(packed, at, elements.subarray(place, place + bytes));
  else copyInto(elements, place, packed.subarray(at, at + bytes));
  rest.at += bytes;
  rest.left -= bytes;
}

function copyRuns(
  target: Uint8Array,
  to: number,
  source: Uint8Array,
  from: number,
  bytes: number,
  count: number,
  toStride: number,
  fromStride: number,
): void {
  if (bytes > SHORT_RUN) {
    for (; count > 0; count--, to += toStride, from += fromStride)
      copyInto(target, to, source.subarray(from, from + bytes));
    return;
  }
  const targetAt = target.byteOffset + to;
  const sourceAt = source.byteOffset + from;
  if (count >= 16 && ((bytes | toStride | fromStride | targetAt | sourceAt) & 3) === 0) {
    // Views of the words of all runs, from the first to the last.
    const [t, f] = [toStride >>> 2, fromStride >>> 2];
    const wide = bytes >>> 2;
    const targetWords = new Int32Array(target.buffer, targetAt, (count - 1) * t + wide);
    const sourceWords = new Int32Array(source.buffer, sourceAt, (count - 1) * f + wide);
    for (let i = 0, a = 0, b = 0; i < count; i++, a += t, b += f) {
      for (let word = 0; word < wide; word++) targetWords[a + word] = sourceWords[b + word] as number;
    }
    return;
  }
  for (; count > 0; count--, to += toStride, from += fromStride) {
    for (let i = 0; i < bytes; i++) target[to + i] = source[from + i] as number;
  }
}

// Packs and unpacks what a LAYOUT describes (assembly/layout/type.ts). Packed, the data of element 0 comes first, in the order
// of its loops, then that of element 1, and so on: the stream. A call does any part of it.
import {
  LAYOUT_BYTES_OFFSET,
  LAYOUT_EXTENT_OFFSET,
  LAYOUT_LOOPS_OFFSET,
  LAYOUT_SIZE,
  LOOP_BYTES_OFFSET,
  LOOP_COUNT_OFFSET,
  LOOP_INNER_OFFSET,
  LOOP_OFFSET_OFFSET,
  LOOP_SIZE,
  LOOP_STRIDE_OFFSET,
} from "../layout";

/** Runs up to this length are moved by vectors of 16 bytes. A call of memory.copy takes as long as some of these. */
const SHORT_RUN: u32 = 96;
/** Runs that are moved piece by piece: few enough that their lines stay in the first-level cache. */
const BATCH: u32 = 16;

// What of the stream is left to do. Each thread has its own instance of the module, and so of these.
/** Pointer to the next packed byte. */
let packed: usize = 0;
/** Bytes of the stream that come before those to be moved. */
let skip: u32 = 0;
/** Bytes to be moved. */
let left: u32 = 0;
let isPacking: bool = false;

/**
 * Packs `bytes` bytes of the stream, from its byte `from` on.
 * @param layout pointer to a LAYOUT
 * @param to pointer to the packed bytes
 * @param elements pointer to where element 0 begins; it has no byte in common with the packed ones
 */
export function pack(layout: usize, to: usize, elements: usize, from: u32, bytes: u32): void {
  isPacking = true;
  move(layout, to, elements, from, bytes);
}

/** As pack(), in the other direction. @param from pointer to the packed bytes @param first the first of them in the stream */
export function unpack(layout: usize, from: usize, elements: usize, first: u32, bytes: u32): void {
  isPacking = false;
  move(layout, from, elements, first, bytes);
}

function move(layout: usize, stream: usize, elements: usize, first: u32, bytes: u32): void {
  const size = load<u32>(layout, LAYOUT_BYTES_OFFSET);
  const extent = load<u32>(layout, LAYOUT_EXTENT_OFFSET);
  const loops = layout + LAYOUT_SIZE;
  const end = loops + load<u32>(layout, LAYOUT_LOOPS_OFFSET) * LOOP_SIZE;
  packed = stream;
  skip = first % size;
  left = bytes;
  for (let element = first / size; left != 0; element++) walk(loops, end, elements + <usize>element * extent);
}

/**
 * Does the loops from one entry to another, as far as there is something left. Each loop at least doubles its body's data, so
 * fewer than 32 are within each other.
 */
function walk(from: usize, end: usize, base: usize): void {
  for (let loop = from; loop < end && left != 0; ) {
    const bytes = load<u32>(loop, LOOP_BYTES_OFFSET);
    const count = load<u32>(loop, LOOP_COUNT_OFFSET);
    const inner = load<u32>(loop, LOOP_INNER_OFFSET);
    const body = loop + LOOP_SIZE;
    const next = body + <usize>inner * LOOP_SIZE;
    let time = skip / bytes;
    if (time >= count) skip -= count * bytes;
    else {
      skip -= time * bytes;
      const stride = load<u32>(loop, LOOP_STRIDE_OFFSET);
      let place = base + load<u32>(loop, LOOP_OFFSET_OFFSET) + time * stride;
      if (inner == 0) run(place, bytes, count - time, stride);
      else {
        for (; time < count && left != 0; time++) {
          walk(body, next, place);
          place += stride;
        }
      }
    }
    loop = next;
  }
}

/** Moves runs of contiguous bytes: the first from `skip` on, the last as far as there is something left. */
function run(place: usize, bytes: u32, count: u32, stride: u32): void {
  if (skip != 0) {
    const part = bytes - skip < left ? bytes - skip : left;
    copy(place + skip, part);
    skip = 0;
    count--;
    place += stride;
  }
  const whole = left / bytes < count ? left / bytes : count;
  if (whole != 0) {
    if (isPacking) copyRuns(packed, place, bytes, whole, bytes, stride);
    else copyRuns(place, packed, bytes, whole, stride, bytes);
    packed += <usize>whole * bytes;
    left -= whole * bytes;
  }
  if (left != 0 && whole < count) copy(place + <usize>whole * stride, left);
}

/** Moves some contiguous bytes. */
function copy(place: usize, bytes: u32): void {
  if (isPacking) memory.copy(packed, place, bytes);
  else memory.copy(place, packed, bytes);
  packed += bytes;
  left -= bytes;
}

/** Copies runs of equal length. A stride is the distance from one run to the next. */
function copyRuns(to: usize, from: usize, bytes: u32, count: u32, toStride: usize, fromStride: usize): void {
  if (bytes == 8) copy8(to, from, count, toStride, fromStride);
  else if (bytes == 4) copy4(to, from, count, toStride, fromStride);
  else if (bytes == 16) copy16(to, from, count, toStride, fromStride);
  else if (bytes == 2) copy2(to, from, count, toStride, fromStride);
  else if (bytes == 1) copy1(to, from, count, toStride, fromStride);
  else if (bytes <= SHORT_RUN) {
    while (count != 0) {
      const some = count < BATCH ? count : BATCH;
      copyPieces(to, from, bytes, some, toStride, fromStride);
      to += some * toStride;
      from += some * fromStride;
      count -= some;
    }
  } else {
    for (; count != 0; count--) {
      memory.copy(to, from, bytes);
      to += toStride;
      from += fromStride;
    }
  }
}

/** Copies the first 16 bytes of all runs, then the next, and so on: no run has branches of its own. */
function copyPieces(to: usize, from: usize, bytes: u32, count: u32, toStride: usize, fromStride: usize): void {
  let at: usize = 0;
  for (const most = bytes & ~15; at < most; at += 16) copy16(to + at, from + at, count, toStride, fromStride);
  if ((bytes & 8) != 0) {
    copy8(to + at, from + at, count, toStride, fromStride);
    at += 8;
  }
  if ((bytes & 4) != 0) {
    copy4(to + at, from + at, count, toStride, fromStride);
    at += 4;
  }
  if ((bytes & 2) != 0) {
    copy2(to + at, from + at, count, toStride, fromStride);
    at += 2;
  }
  if ((bytes & 1) != 0) copy1(to + at, from + at, count, toStride, fromStride);
}

function copy16(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
  Runs.copy<v128>(to, from, count, toStride, fromStride);
}

function copy8(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
  Runs.copy<u64>(to, from, count, toStride, fromStride);
}

function copy4(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
  Runs.copy<u32>(to, from, count, toStride, fromStride);
}

function copy2(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
  Runs.copy<u16>(to, from, count, toStride, fromStride);
}

function copy1(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
  Runs.copy<u8>(to, from, count, toStride, fromStride);
}

/** Compiled once for each length of a run. */
abstract class Runs {
  @inline
  static copy<T>(to: usize, from: usize, count: u32, toStride: usize, fromStride: usize): void {
    // Four loads before their stores: those from far apart wait for memory at the same time.
    for (; count >= 4; count -= 4) {
      const a = load<T>(from);
      const b = load<T>(from + fromStride);
      const c = load<T>(from + 2 * fromStride);
      const d = load<T>(from + 3 * fromStride);
      store<T>(to, a);
      store<T>(to + toStride, b);
      store<T>(to + 2 * toStride, c);
      store<T>(to + 3 * toStride, d);
      from += 4 * fromStride;
      to += 4 * toStride;
    }
    for (; count != 0; count--) {
      store<T>(to, load<T>(from));
      from += fromStride;
      to += toStride;
    }
  }
}

// Cuts long reductions over messages into segments, one after the other, so that partial results take bounded memory.
import { EAGER_BYTES } from "./channel.js";
import { type Schedule, ScheduleBuilder, span } from "./schedule.js";
import type { ReductionShape } from "./shape.js";

/** Bytes of a segment, at least: with its partial results, it stays in a core's second-level cache or near it. */
export const SEGMENT_BYTES = 1024 * 1024;
/** Tags of a schedule in phases (algorithms/leaders.ts) are below 8 phases. So many segments have tags of their own. */
const PHASES = 8;
const SEGMENTS_MAX = 500;

/** Bytes of the segments of a vector: whole elements. */
export function segmentOf(bytes: number, elementBytes: number): number {
  const least = Math.max(SEGMENT_BYTES, bytes / SEGMENTS_MAX);
  return Math.min(bytes, Math.ceil(least / elementBytes) * elementBytes);
}

/** Bytes of the segments of blocks, of which `size` lie in scratch memory: whole elements. */
export function blockSegment(counts: readonly number[], elementBytes: number): number {
  const longest = Math.max(...counts);
  const least = Math.max(SEGMENT_BYTES / counts.length, EAGER_BYTES, longest / SEGMENTS_MAX);
  return Math.max(1, Math.ceil(least / elementBytes)) * elementBytes;
}

/**
 * The schedules of a vector's segments, in sequence.
 * @param make makes that of a vector
 */
export function inSegments<Shape extends Omit<ReductionShape, "root">>(
  shape: Shape,
  make: (shape: Shape) => Schedule,
): Schedule {
  const { bytes, elementBytes, size } = shape;
  const segment = segmentOf(bytes, elementBytes);
  if (segment === bytes) return make(shape);
  const builder = new ScheduleBuilder();
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  for (let from = 0, phase = PHASES; from < bytes; from += segment, phase += PHASES) {
    const length = Math.min(segment, bytes - from);
    const buffers = { send: span("send", from, length), receive: span("receive", from, length) };
    builder.add(make({ ...shape, bytes: length }), phase, ranks, buffers);
  }
  return builder.build();
}

// Each member has a block for each member.
import { part, type Schedule, ScheduleBuilder, span } from "../schedule/schedule.js";
import type { Shape, UniformShape } from "../schedule/shape.js";

export interface ExchangeShape extends Shape {
  readonly sendCounts: readonly number[];
  readonly sendOffsets: readonly number[];
  readonly receiveCounts: readonly number[];
  readonly receiveOffsets: readonly number[];
}

/** Transfers that go on at the same time in a pairwise exchange. */
const WIDTH = 8;

/** Pairwise exchange: n - 1 messages from each member, straight between their places, WIDTH in a round. */
export function pairwiseAlltoall(shape: ExchangeShape): Schedule {
  const { rank, size } = shape;
  const builder = new ScheduleBuilder();
  const from = (member: number) =>
    span("send", shape.sendOffsets[member] as number, shape.sendCounts[member] as number);
  const to = (member: number) =>
    span("receive", shape.receiveOffsets[member] as number, shape.receiveCounts[member] as number);
  builder.copy(from(rank), to(rank));
  for (let distance = 1; distance < size; distance++) {
    const next = (rank + distance) % size;
    const before = (rank - distance + size) % size;
    builder.send(next, from(next)).receive(before, to(before));
    if (distance % WIDTH === 0) builder.round();
  }
  return builder.build();
}

/**
 * Bruck's algorithm: ceil(log2 n) rounds, in each of which a member sends about half of its blocks, so that a block travels
 * several times. For short blocks.
 */
export function bruckAlltoall({ rank, size, bytes }: UniformShape): Schedule {
  const builder = new ScheduleBuilder();
  const blocks = builder.scratch(size * bytes);
  const out = builder.scratch(Math.ceil(size / 2) * bytes);
  const into = builder.scratch(Math.ceil(size / 2) * bytes);
  const at = (index: number) => part(blocks, index * bytes, bytes);
  // Block i is for the member i further on.
  for (let index = 0; index < size; index++) {
    builder.copy(span("send", ((rank + index) % size) * bytes, bytes), at(index));
  }
  builder.round();
  for (let distance = 1; distance < size; distance *= 2) {
    const moved = Array.from({ length: size }, (_, index) => index).filter((index) => (index & distance) !== 0);
    for (const [place, index] of moved.entries()) builder.copy(at(index), part(out, place * bytes, bytes));
    builder.round();
    const bytesMoved = moved.length * bytes;
    builder.send((rank + distance) % size, part(out, 0, bytesMoved));
    builder.receive((rank - distance + size) % size, part(into, 0, bytesMoved));
    for (const [place, index] of moved.entries()) builder.copy(part(into, place * bytes, bytes), at(index));
    builder.round();
  }
  // Block i now came from the member i before.
  for (let index = 0; index < size; index++) {
    builder.copy(at(index), span("receive", ((rank - index + size) % size) * bytes, bytes));
  }
  return builder.build();
}

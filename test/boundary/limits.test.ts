// The limits of a context and of a batch: named rows.
import { describe, expect, it } from "vitest";
import {
  CONTEXT_READY_OFFSET,
  ENDPOINT_COUNT_MAX,
  EVENT_COUNT_MAX,
  EVENT_LANE_MAX,
  PAGE_SIZE,
  RECORD_LENGTH_MASK,
} from "../../assembly/layout.js";
import { endpointsFit } from "../../src/memory/map.js";
import { type Build, makeRig } from "../support/kernels.js";

it.each([
  [ENDPOINT_COUNT_MAX, 1, true],
  [1, ENDPOINT_COUNT_MAX, true],
  [ENDPOINT_COUNT_MAX / 4, 4, true],
  [ENDPOINT_COUNT_MAX / 4 + 1, 4, false],
  [ENDPOINT_COUNT_MAX + 1, 1, false],
])("%d tasks of %d contexts: their endpoints fit is %s", (tasks, contexts, fit) => {
  expect(endpointsFit({ tasks, contexts, laneBytes: 64, heapBytes: 0 })).toBe(fit);
});

describe.each<Build>(["wasm", "debug", "twin"])("%s", (producer) => {
  it.each([
    ["one less than a lane may give", EVENT_LANE_MAX - 1, [EVENT_LANE_MAX - 1]],
    ["as many as a lane may give", EVENT_LANE_MAX, [EVENT_LANE_MAX]],
    ["one more", EVENT_LANE_MAX + 1, [EVENT_LANE_MAX, 1]],
    ["twice as many and one", 2 * EVENT_LANE_MAX + 1, [EVENT_LANE_MAX, EVENT_LANE_MAX, 1]],
  ])("batches of one lane with %s records", (_, records, batches) => {
    const rig = makeRig({ producer });
    const lane = rig.open(1, 0, 16384);
    for (let i = 0; i < records; i++) rig.producer.laneSendWords(lane, 0, i, 0, 0);
    for (const batch of batches) expect(rig.take()).toHaveLength(batch);
    expect(rig.take()).toEqual([]);
  });

  it("a batch holds EVENT_COUNT_MAX events and not one more, whatever else is there", () => {
    const rig = makeRig({ producer, tasks: 12, contexts: 1 });
    for (let origin = 0; origin < 12; origin++) {
      const lane = rig.open(origin, 0, 1024);
      for (let i = 0; i < 50; i++) rig.producer.laneSendWords(lane, 0, i, 0, 0);
    }
    const lengths: number[] = [];
    for (let events = rig.take(); events.length > 0; events = rig.take()) lengths.push(events.length);
    expect(lengths).toEqual([EVENT_COUNT_MAX, EVENT_COUNT_MAX, 12 * 50 - 2 * EVENT_COUNT_MAX]);
  });

  it("the first and the last endpoint of 1,023, in a word of ready bits that is not full", () => {
    const rig = makeRig({ producer, tasks: 33, contexts: 31, heapBytes: 8 * PAGE_SIZE, slot: 1 });
    const last = 33 * 31 - 1;
    const [first, end] = [rig.open(0, last, 64, 48), rig.open(last, last, 64, 48)];
    rig.send(end, [2]);
    rig.send(first, [1]);
    expect(rig.bits(rig.context(last) + CONTEXT_READY_OFFSET)).toEqual([0, last]);
    expect(rig.take(last).map(({ origin, bytes }) => [origin, bytes])).toEqual([
      [0, [1]],
      [last, [2]],
    ]);
  });

  it("every ready bit of ENDPOINT_COUNT_MAX is seen", () => {
    const rig = makeRig({ producer, tasks: ENDPOINT_COUNT_MAX / 8, contexts: 8, heapBytes: 64 * PAGE_SIZE, slot: 1 });
    for (const origin of [0, 31, 32, 33, 511, 512, 1022, 1023]) {
      rig.send(rig.open(origin, 0, 64, 48), [1]);
      expect(rig.take().map((event) => event.origin)).toEqual([origin]);
    }
  });

  it("a body longer than 64 KiB keeps all bits of its length", () => {
    const rig = makeRig({ producer, heapBytes: 128 * PAGE_SIZE });
    const lane = rig.open(1, 0, 262144, 131072);
    const length = 70_001;
    expect(length).toBeLessThan(RECORD_LENGTH_MASK);
    const body = rig.producer.laneReserve(lane, length);
    rig.write(body + length - 1, [7]);
    rig.producer.laneCommit(lane, 0, length, 0);
    const [event] = rig.take();
    expect(event?.length).toBe(length);
    expect(event?.bytes[length - 1]).toBe(7);
  });
});

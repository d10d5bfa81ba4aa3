// One lane where it is at its limits: wrapping positions, full and empty rings, smallest ring, largest record.
import { describe, expect, it } from "vitest";
import {
  KIND_MESSAGE,
  LANE_BYTES_MIN,
  LANE_CONTROL_SIZE,
  LANE_HEAD_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_TAIL_OFFSET,
} from "../../assembly/layout.js";
import { seqAdd } from "../../assembly/seq.js";
import { type Build, makeRig } from "../support/kernels.js";
import { numbered, Verifier } from "../support/sequence.js";

const STARTS: [name: string, start: number][] = [
  ["0", 0],
  ["64 before 2^31", 2 ** 31 - 64],
  ["16 before 2^31", 2 ** 31 - 16],
  ["2^31", 2 ** 31],
  ["16 behind 2^31", 2 ** 31 + 16],
  ["a ring before the wrap", 2 ** 32 - 256],
  ["64 before the wrap", 2 ** 32 - 64],
  ["16 before the wrap", 2 ** 32 - 16],
];

describe.each<Build>(["wasm", "debug", "twin"])("%s", (producer) => {
  it.each(STARTS)("positions that begin at %s", (_, start) => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(start, 1, 0, 256, 128);
    const verifier = new Verifier(100);
    const position = (offset: number): number => rig.word(lane + offset);
    let sent = 0;
    let bytes = 0;
    for (let pass = 0; pass < 40; pass++) {
      expect(rig.producer.laneRoom(lane)).toBe(128 - 8);
      for (let i = 0; i <= pass % 4; i++) {
        const message = numbered(1, sent, 100);
        if (!rig.send(lane, message.bytes, message.meta)) break;
        bytes += Math.ceil((message.bytes.length + 8) / 16) * 16;
        sent++;
      }
      expect(position(LANE_TAIL_OFFSET)).toBe(seqAdd(start, bytes));
      expect(rig.consumer.peek(rig.context(0))).toBe(1);
      for (const event of rig.take()) verifier.accept(event);
      expect(verifier.count(1)).toBe(sent);
      rig.settle();
      expect(position(LANE_NEXT_OFFSET)).toBe(position(LANE_TAIL_OFFSET));
      expect(position(LANE_HEAD_OFFSET)).toBe(position(LANE_TAIL_OFFSET));
      expect(rig.tailWord(lane)).toBe(0);
    }
  });

  it.each(STARTS)("a full ring whose positions begin at %s", (_, start) => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(start, 1, 0, 256, 128);
    for (let pass = 0; pass < 3; pass++) {
      let sent = 0;
      while (rig.producer.laneSendWords(lane, 4, sent, sent, 0) === 1) sent++;
      expect(sent).toBe(15); // one granule of 16 stays free
      expect(rig.producer.laneRoom(lane)).toBe(0);
      expect(rig.word(lane + LANE_TAIL_OFFSET)).toBe(seqAdd(rig.word(lane + LANE_HEAD_OFFSET), 240));
      expect(rig.take().map(({ meta }) => meta)).toEqual([...Array(15).keys()]);
      expect(rig.take()).toEqual([]);
    }
  });

  it.each(STARTS)("pausing in a ring whose positions begin at %s", (_, start) => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(start, 1, 0, 256, 128);
    for (let pass = 0; pass < 20; pass++) {
      for (let i = 0; i < 7; i++) expect(rig.send(lane, Array(i).fill(pass), i)).toBe(true);
      rig.consumer.lanePause(lane, rig.advance()[pass % 7]?.body as number);
      rig.release();
      rig.consumer.laneResume(rig.context(0), 1);
      expect(rig.take().map(({ meta }) => meta)).toEqual([...Array(7).keys()].slice(pass % 7));
      rig.settle();
    }
  });

  it("the smallest ring: three of the smallest records, or one of 40 bytes", () => {
    const rig = makeRig({ producer });
    const lane = rig.open(1, 0, LANE_BYTES_MIN, 48);
    for (let pass = 0; pass < 20; pass++) {
      expect(rig.producer.laneRoom(lane)).toBe(40);
      for (let i = 0; i < 3; i++) expect(rig.producer.laneSendWords(lane, 8, i, pass, i)).toBe(1);
      expect(rig.producer.laneSendWords(lane, 0, 0, 0, 0)).toBe(0);
      expect(rig.take().map(({ meta }) => meta)).toEqual([0, 1, 2]);
      expect(rig.send(lane, Array(40).fill(pass), 9)).toBe(true);
      expect(rig.send(lane, [])).toBe(false);
      expect(rig.take().map(({ bytes }) => bytes)).toEqual([Array(40).fill(pass)]);
      rig.send(lane, Array(16).fill(pass), 5); // so that the next pass begins elsewhere
      expect(rig.take()).toHaveLength(1);
      rig.settle();
      expect(rig.tailWord(lane)).toBe(0);
    }
  });

  it("the largest record, at every granule of the ring: it runs on into the overhang, and touches nothing behind", () => {
    const rig = makeRig({ producer });
    const [capacity, recordMax] = [256, 240];
    const lane = rig.openAt(0, 1, 0, capacity, recordMax);
    const behind = lane + LANE_CONTROL_SIZE + capacity + recordMax;
    rig.write(behind, Array(64).fill(0xaa));
    const body = Array.from({ length: recordMax - 8 }, (_, i) => i);
    const offsets = new Set<number>();
    for (let pass = 0; pass < 2 * 16; pass++) {
      expect(rig.producer.laneRoom(lane)).toBe(recordMax - 8);
      expect(rig.send(lane, body, pass)).toBe(true);
      expect(rig.producer.laneRoom(lane)).toBe(0);
      const [event, ...more] = rig.take();
      expect(event).toMatchObject({ meta: pass, length: recordMax - 8, bytes: body });
      expect(more).toEqual([]);
      offsets.add((event?.body as number) - lane - LANE_CONTROL_SIZE - 8);
      expect(rig.tailWord(lane)).toBe(0);
    }
    expect([...offsets].sort((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => 16 * i));
    expect(rig.read(behind, 64)).toEqual(Array(64).fill(0xaa));
  });

  it("a record behind one that ran into the overhang begins at its end, modulo the ring", () => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(240, 1, 0, 256, 128);
    rig.send(lane, Array(50).fill(1), 1); // 64 bytes from 240 on
    rig.send(lane, Array(8).fill(2), 2);
    const events = rig.take();
    expect(events.map(({ body }) => body - lane - LANE_CONTROL_SIZE)).toEqual([240 + 8, 48 + 8]);
    expect(events.map(({ bytes }) => bytes)).toEqual([Array(50).fill(1), Array(8).fill(2)]);
  });

  it("an abandoned and a shortened record that ran into the overhang leave it clean", () => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(240, 1, 0, 256, 128);
    for (const committed of [-1, 0, 5, 30]) {
      const body = rig.producer.laneReserve(lane, 120);
      rig.write(body, Array(120).fill(0xee));
      if (committed < 0) rig.producer.laneAbort(lane);
      else rig.producer.laneCommit(lane, KIND_MESSAGE, committed, 0);
      expect(rig.tailWord(lane)).toBe(0);
      expect(rig.take()).toHaveLength(committed < 0 ? 0 : 1);
    }
  });

  it.each([
    ["nothing", 0, 0],
    ["nothing, by laneReserve", 0, 1],
    ["8 bytes: the most of laneSendWords, and the last that fit into one granule", 8, 0],
    ["9 bytes: the first that need two", 9, 1],
    ["8 bytes, by laneReserve", 8, 1],
  ])("a body of %s", (_, length, reserved) => {
    const rig = makeRig({ producer });
    const lane = rig.openAt(2 ** 32 - 16, 1, 0, 64, 48);
    for (let pass = 0; pass < 9; pass++) {
      if (reserved === 1) rig.send(lane, Array(length).fill(0), pass);
      else expect(rig.producer.laneSendWords(lane, length, pass, 1, 2)).toBe(1);
      expect(rig.take()).toMatchObject([{ meta: pass, length }]);
      expect(rig.take()).toEqual([]);
    }
  });
});

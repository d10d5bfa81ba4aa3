// The model of the space-time strip against plain lists: what is found, counted and binned by halving is what a look at each
// event finds; ranges stay within what there is.
import fc from "fast-check";
import type { TraceEvent } from "pamir";
import { expect, it } from "vitest";
import { StripModel } from "../../demo/strip/model.js";
import { SPAN_MIN, TimeRange, ticksOf, timeText } from "../../demo/strip/time-range.js";
import { Track } from "../../demo/strip/track.js";
import { assertProperty } from "../support/seed.js";

const DETAILS = { label: 0, other: 0, count: 1, bytes: 2 };

/** Events one after another: the pause before each, and how long it lasts. */
const events = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 15 })), { maxLength: 80 });

/** Without overlaps, as handlers and sleeps are. */
function placed(given: readonly (readonly [number, number])[]): { begin: number; end: number }[] {
  let time = 0;
  return given.map(([pause, lasts]) => {
    const begin = time + pause;
    time = begin + lasts;
    return { begin, end: time };
  });
}

function trackOf(list: readonly { begin: number; end: number }[]): Track {
  const track = new Track();
  for (const { begin, end } of list) track.add(begin, end, DETAILS);
  track.seal();
  return track;
}

it("a track finds and bins what its list has", () => {
  assertProperty(
    fc.property(events, fc.integer({ min: -5, max: 400 }), fc.integer({ min: 1, max: 90 }), (given, from, columns) => {
      const list = placed(given);
      const track = trackOf(list);
      expect(track.from(from)).toBe(list.filter(({ begin }) => begin < from).length);
      const lasting = list.findIndex(({ end }) => end > from);
      expect(track.lasting(from)).toBe(lasting < 0 ? list.length : lasting);
      const to = from + 2 * columns;
      const { counts, shares } = track.bins(from, to, columns);
      for (let column = 0; column < columns; column++) {
        const [left, right] = [from + 2 * column, from + 2 * column + 2];
        expect(counts[column]).toBe(list.filter(({ begin }) => begin >= left && begin < right).length);
        const taken = list.reduce(
          (sum, { begin, end }) => sum + Math.max(0, Math.min(end, right) - Math.max(begin, left)),
          0,
        );
        expect(shares[column]).toBeCloseTo(taken / 2, 5);
      }
    }),
  );
});

it("each message whose handler has run has an arrow between its ends, whatever the order of the lanes", () => {
  const messages = fc.array(fc.record({ from: fc.nat(3), to: fc.nat(3), takes: fc.nat(5), isHandled: fc.boolean() }), {
    maxLength: 40,
  });
  assertProperty(
    fc.property(messages, (sent) => {
      const lanes: TraceEvent[][] = [[], [], [], []];
      for (const [id, { from, to, takes, isHandled }] of sent.entries()) {
        const args = { from: `${from}.0`, to: `${to}.0`, count: id, bytes: id };
        const at = { pid: 1, id, name: "message", cat: "message" };
        const [left, right] = [id * 10, id * 10 + takes];
        lanes[from]!.push({ ph: "X", name: "send id 1", cat: "send", ts: left, dur: 1, pid: 1, tid: from, args });
        lanes[from]!.push({ ...at, ph: "s", ts: left, tid: from });
        if (!isHandled) continue;
        lanes[to]!.push({ ph: "X", name: "id 1", cat: "handler", ts: right, dur: 1, pid: 1, tid: to, args });
        lanes[to]!.push({ ...at, ph: "f", bp: "e", ts: right, tid: to });
      }
      const model = new StripModel({ traceEvents: lanes.flat(), origin: 2 }, 1);
      const found = model.lanes.flatMap(({ task, tracks: { send } }) =>
        Array.from({ length: send.size }, (_, place) => place)
          .filter((place) => send.peerLane(place) >= 0)
          .map((place) => {
            const { task: to, tracks } = model.lanes[send.peerLane(place)]!;
            const peer = send.peer(place);
            expect(tracks.handler.peer(peer)).toBe(place);
            // An origin of a millisecond later moves all times.
            const [left, right] = [send.begin[place]! - 1000, tracks.handler.begin[peer]! - 1000];
            return { id: send.details(place).count, from: task, to, left, right };
          }),
      );
      const expected = [...sent.entries()]
        .filter(([, { isHandled }]) => isHandled)
        .map(([id, { from, to, takes }]) => ({ id, from, to, left: id * 10, right: id * 10 + takes }));
      expect(found.sort((one, other) => one.id - other.id)).toEqual(expected);
      expect(model.arrows).toBe(expected.length);
    }),
  );
});

it("a range that is scrubbed and zoomed stays within what there is, and zooms around its place", () => {
  const move = fc.oneof(
    fc.record({ scrub: fc.double({ min: -3, max: 3, noNaN: true }) }),
    fc.record({
      zoom: fc.double({ min: 0.01, max: 100, noNaN: true }),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  );
  assertProperty(
    fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
      const range = new TimeRange();
      range.limit(1e6, 5e6);
      range.fit();
      for (const each of moves) {
        if ("scrub" in each) range.scrub(each.scrub);
        else range.zoom(each.zoom, each.at);
        expect(range.from).toBeGreaterThanOrEqual(1e6 - 1e-6);
        expect(range.to).toBeLessThanOrEqual(5e6 + 1e-6);
        expect(range.span).toBeGreaterThanOrEqual(SPAN_MIN - 1e-6);
        const { step, times } = ticksOf(range, 8);
        expect(times.length).toBeLessThanOrEqual(9);
        expect(new Set(times.map((time) => timeText(time, step))).size).toBe(times.length);
      }
    }),
  );
});

it("a task whose end others tell of, ends there; a fence that is open lasts to the end", () => {
  const common = { pid: 1, ts: 0 };
  const traceEvents: TraceEvent[] = [
    { ...common, ph: "b", name: "fence", cat: "fence", ts: 5, tid: 0, id: 1 },
    { ...common, ph: "b", name: "fence", cat: "fence", ts: 6, tid: 0, id: 2 },
    { ...common, ph: "e", name: "fence", cat: "fence", ts: 8, tid: 0, id: 1 },
    { ...common, ph: "i", s: "t", name: "task 3 has ended", cat: "death", ts: 20, tid: 0 },
    { ...common, ph: "X", name: "asleep in progress()", cat: "park", ts: 1, dur: 2, tid: 3 },
  ];
  const model = new StripModel({ traceEvents, origin: 0 });
  expect(model.laneOf(3)).toMatchObject({ ended: 20, first: 1, last: 3 });
  const { fence } = model.laneOf(0)!.tracks;
  expect([...fence.end.subarray(0, fence.size)]).toEqual([8, 20]);
  expect(model).toMatchObject({ begin: 1, end: 20, events: 4, arrows: 0 });
});

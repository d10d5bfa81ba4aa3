// The delay-based congestion controller, one decision per round trip.
import { describe, expect, it } from "vitest";
import { DelayController } from "../../src/session/pace/congestion.js";
import { RttEstimator } from "../../src/session/pace/round-trip.js";
import { SESSION_WINDOW } from "../../src/session/responder.js";

const INITIAL = 16;
const MIN_RTT = 1000;

/** A controller whose round trips took so long, the shortest one 1,000 µs. */
function controller(smoothed = MIN_RTT): DelayController {
  const rtt = new RttEstimator();
  rtt.addSample(MIN_RTT);
  for (let i = 0; i < 200; i++) rtt.addSample(smoothed);
  return new DelayController(rtt, 0);
}

describe("DelayController", () => {
  it.each([
    ["a full window is acknowledged: it grows by half", { acked: INITIAL, lost: 0 }, INITIAL * 1.5],
    ["half of it was used: likewise", { acked: INITIAL / 2, lost: 0 }, INITIAL * 1.5],
    ["RFC 9002, 7.8: less than half of it was used: it stays", { acked: INITIAL / 2 - 1, lost: 0 }, INITIAL],
    ["packets in flight count as used", { acked: 1, lost: 0, inFlight: INITIAL / 2 - 1 }, INITIAL * 1.5],
    ["one in ten was lost: chance, it grows", { acked: 9, lost: 1 }, INITIAL * 1.5],
    ["more were lost: it is halved", { acked: 17, lost: 2 }, INITIAL / 2],
    ["the round trip is half longer, and 5 ms: no congestion yet", { acked: INITIAL, lost: 0, smoothed: 6499 }, 24],
    [
      "longer than that: of so few packets that is no sign, it grows",
      { acked: INITIAL, lost: 0, smoothed: 16_000 },
      24,
    ],
    ["lost and delayed: it is halved once", { acked: 2, lost: 2, smoothed: 16_000 }, INITIAL / 2],
  ] as [string, { acked: number; lost: number; inFlight?: number; smoothed?: number }, number][])(
    "%s",
    (_, { acked, lost, inFlight = 0, smoothed = MIN_RTT }, window) => {
      const congestion = controller(smoothed);
      congestion.onLost(lost);
      congestion.onAcknowledged(acked, 1, 16, inFlight);
      expect(congestion.window).toBeCloseTo(window, 3);
    },
  );

  it.each([
    ["a quarter longer than is allowed: it shrinks by as much", 8125, 3, 54 * 0.8],
    ["ten times as long: it is halved at the most", 16_000, 3, 27],
    ["it does not fall below the first window", 16_000, 1, INITIAL],
  ])("the round trip becomes longer, %s", (_, smoothed, growths, window) => {
    const rtt = new RttEstimator();
    rtt.addSample(MIN_RTT);
    const congestion = new DelayController(rtt, 0);
    let sent = INITIAL;
    const pass = (): number => {
      const { window } = congestion;
      congestion.onAcknowledged(window, sent, sent + window, 0);
      sent += Math.ceil(window) + 1;
      return congestion.window;
    };
    for (let i = 0; i < growths; i++) pass();
    for (let i = 0; i < 200; i++) rtt.addSample(smoothed);
    expect(pass()).toBeCloseTo(window, 2);
  });

  it("round trips stay long, whatever the window, after a loss: it grows to the first one again, and stays near it", () => {
    const congestion = controller(16_000);
    for (let i = 0; i < 4; i++) congestion.onProbeTimeout();
    const windows: number[] = [];
    for (let round = 1; round < 12; round++) {
      congestion.onAcknowledged(congestion.window, 100 * round, 100 * round, 0);
      windows.push(congestion.window);
    }
    expect(windows.slice(0, 3)).toEqual([3, 4.5, 6.75]);
    expect(Math.min(...windows.slice(5))).toBeGreaterThan(INITIAL / 2);
    expect(Math.max(...windows)).toBeLessThanOrEqual(INITIAL * 1.5);
  });

  it("round trips stay long, whatever the window, in samples of their own: after eight, the path has got longer", () => {
    const rtt = new RttEstimator();
    rtt.addSample(MIN_RTT);
    const congestion = new DelayController(rtt, 0);
    for (let i = 0; i < 200; i++) rtt.addSample(40_000);
    const windows: number[] = [];
    for (let round = 1; round <= 20; round++) {
      congestion.onAcknowledged(congestion.window, 100 * round, 100 * round, 0);
      windows.push(congestion.window);
      rtt.addSample(40_000);
    }
    expect(Math.max(...windows.slice(0, 8))).toBe(INITIAL * 1.5);
    expect(rtt.min).toBe(40_000);
    expect(windows.at(-1)).toBeGreaterThan(INITIAL * 10);
  });

  it("decides once per round trip: next when a later transmission than those so far is acknowledged", () => {
    const congestion = controller();
    congestion.onAcknowledged(INITIAL, 8, 16, 0);
    expect(congestion.window).toBe(24);
    // RFC 9002, 7.3.2: further losses of the same round trip do not shrink it again, or here, before it is over.
    congestion.onLost(20);
    congestion.onAcknowledged(8, 16, 32, 0);
    expect(congestion.window).toBe(24);
    congestion.onAcknowledged(8, 17, 32, 0);
    expect(congestion.window).toBe(12);
    // And what was counted then is not counted again.
    congestion.onAcknowledged(12, 33, 48, 0);
    expect(congestion.window).toBe(18);
  });

  it("one lost packet of a short round trip is chance; a second one among twenty packets is not, nor after them", () => {
    const congestion = controller();
    let sent = 16;
    const pass = (acked: number, lost: number): number => {
      congestion.onLost(lost);
      congestion.onAcknowledged(acked, sent, sent + 16, Math.ceil(congestion.window));
      sent += 17;
      return congestion.window;
    };
    expect(pass(4, 1)).toBe(24);
    expect(pass(6, 0)).toBe(36);
    // Two of 16.
    expect(pass(4, 1)).toBe(18);
    // The count began anew: one of 24, then one of 5.
    expect([pass(4, 1), pass(19, 0), pass(4, 1)]).toEqual([27, 40.5, 60.75]);
  });

  it("a probe timeout halves it; RFC 9002, 7.2: it never falls below two packets", () => {
    const congestion = controller();
    for (const window of [8, 4, 2, 2]) {
      congestion.onProbeTimeout();
      expect(congestion.window).toBe(window);
    }
    for (let round = 1; round < 5; round++) {
      congestion.onLost(2);
      congestion.onAcknowledged(0, 100 * round, 100 * round, 0);
      expect(congestion.window).toBe(2);
    }
  });

  it("a round trip with a loss leaves room for as many packets as may follow a lost one twice", () => {
    const congestion = controller();
    let sent = 16;
    const pass = (lost: number): number => {
      const window = Math.ceil(congestion.window);
      congestion.onLost(lost);
      congestion.onAcknowledged(window, sent, sent + window, 0);
      sent += window + 1;
      return congestion.window;
    };
    while (pass(0) < SESSION_WINDOW);
    expect(pass(1)).toBe(SESSION_WINDOW / 2);
    expect(pass(0)).toBe((SESSION_WINDOW / 2) * 1.5);
  });

  it("transmission numbers are compared around 2^32", () => {
    const congestion = new DelayController(new RttEstimator(), 2 ** 32 - 1);
    congestion.onAcknowledged(0, 2 ** 32 - 2, 2 ** 32 - 1, INITIAL);
    expect(congestion.window).toBe(INITIAL);
    congestion.onAcknowledged(0, 0, 5, INITIAL);
    expect(congestion.window).toBe(INITIAL * 1.5);
  });
});

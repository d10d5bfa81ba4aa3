// Loss detection, rule by rule: those of RFC 9002, section 6, and where it waits for reordered packets.
import { describe, expect, it } from "vitest";
import { type Acknowledgment, LossDetector, type SentPacket } from "../../src/session/pace/loss.js";
import { RttEstimator } from "../../src/session/pace/round-trip.js";
import { ACK_DELAY_MAX } from "../../src/session/responder.js";
import { Packet } from "../../src/session/wire/packet.js";

const INITIAL_PTO = 20_000;
const RTT = 10_000;

/** A detector, and what its session does: it numbers packets and transmissions, and keeps the numbers that have come. */
class Harness {
  readonly rtt = new RttEstimator();
  readonly reordering = { reorderingDelay: 0 };
  readonly loss: LossDetector;
  readonly packets: SentPacket[] = [];
  readonly #came = new Set<number>();
  #sent = 0;

  constructor(handshake = 0) {
    this.loss = new LossDetector(this.rtt, this.reordering, handshake);
  }

  /** Sends new packets, numbered from 1. */
  send(count: number, now: number): void {
    for (let i = 0; i < count; i++) {
      const number = this.packets.length + 1;
      const suspectedAt = Number.POSITIVE_INFINITY;
      const one = { packet: new Packet(64), number, sent: 0, timeSent: 0, transmissions: 0, suspectedAt };
      this.packets.push(one);
      this.loss.onSent(one, ++this.#sent, now);
    }
  }

  /** Sends a packet again. */
  again(number: number, now: number): void {
    this.loss.onSent(this.packets[number - 1] as SentPacket, ++this.#sent, now);
  }

  /** Packets come, the last of them by this transmission, and are acknowledged. @returns the newly acknowledged numbers */
  acknowledge(numbers: readonly number[], now: number, echo = numbers.at(-1) as number, isSpurious = false): number[] {
    for (const number of numbers) this.#came.add(number);
    let cumulative = 1;
    while (this.#came.has(cumulative)) cumulative++;
    const mask = new Int32Array(2);
    for (const number of this.#came) {
      const bit = number - cumulative - 1;
      if (bit >= 0) mask[bit >>> 5] = (mask[bit >>> 5] as number) | (1 << (bit & 31));
    }
    const ack: Acknowledgment = { cumulative, echo, delay: 0, limit: 1000, duplicates: 0, mask };
    return this.loss.onAcknowledged(ack, isSpurious, now).map(({ number }) => number);
  }

  /** The packets that are lost by now. */
  lost(now: number): number[] {
    this.loss.detect(now);
    const lost: number[] = [];
    for (let one = this.loss.nextLost(); one !== undefined; one = this.loss.nextLost()) lost.push(one.number);
    return lost;
  }
}

describe("packet threshold (RFC 9002, 6.1.1)", () => {
  it.each([
    [2, []],
    [3, []],
    [4, [1]],
    [5, [1, 2]],
    [8, [1, 2, 3, 4, 5]],
  ])("of 8 packets, number %d alone is acknowledged: lost are %j", (number, lost) => {
    const session = new Harness();
    session.send(8, 0);
    expect(session.acknowledge([number], RTT)).toEqual([number]);
    expect(session.lost(RTT)).toEqual(lost);
    expect(session.loss.inFlight).toBe(7);
    expect(session.lost(RTT)).toEqual([]);
  });

  it("counts transmissions: a packet that was sent again is lost again only by those sent after that", () => {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([4], RTT);
    expect(session.lost(RTT)).toEqual([1]);
    session.again(1, RTT); // transmission 5
    session.send(3, RTT); // 6, 7, 8
    session.acknowledge([2, 3, 5, 6], 2 * RTT, 7);
    expect(session.lost(2 * RTT)).toEqual([]);
    session.acknowledge([7], 2 * RTT, 8);
    expect(session.lost(2 * RTT)).toEqual([1]);
  });

  it("a lost packet that comes before it is sent again is not sent again", () => {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([4], RTT);
    expect(session.loss.detect(RTT)).toBe(1);
    expect(session.loss.hasLost).toBe(true);
    expect(session.acknowledge([1], RTT)).toEqual([1]);
    expect(session.loss.nextLost()).toBeUndefined();
    expect(session.loss.hasLost).toBe(false);
  });

  it("an acknowledgment twice acknowledges nothing anew", () => {
    const session = new Harness();
    session.send(3, 0);
    expect(session.acknowledge([1, 3], RTT)).toEqual([1, 3]);
    expect(session.acknowledge([3], RTT)).toEqual([]);
    expect([...session.loss.packetsInFlight()].map(({ number }) => number)).toEqual([2]);
  });
});

describe("reordering delay", () => {
  /** A detector that has seen a packet come 1,000 µs after it became a suspect. */
  function reordered(): Harness {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([2, 3, 4], RTT);
    session.loss.detect(RTT);
    session.acknowledge([1], RTT + 1000);
    return session;
  }

  it("is a quarter longer than a suspect needed, less what one packet makes it shrink", () => {
    expect(reordered().reordering.reorderingDelay).toBeCloseTo(1250 * (1 - 1 / 2048), 9);
  });

  it("a suspect is lost when it is over, and not if it comes before", () => {
    const session = reordered();
    const delay = Math.floor(session.reordering.reorderingDelay * (1 - 1 / 2048));
    const now = 5 * RTT;
    session.send(5, now);
    session.acknowledge([9], now + RTT);
    expect(session.lost(now + RTT)).toEqual([]);
    expect(session.loss.lossTime).toBe(now + RTT + delay);
    session.acknowledge([5], now + RTT + 1, 9);
    const lossTime = session.loss.lossTime;
    expect(session.lost(lossTime - 1)).toEqual([]);
    expect(session.lost(lossTime)).toEqual([6]);
    expect(session.loss.lossTime).toBe(Number.POSITIVE_INFINITY);
  });

  it("is at most four round trips", () => {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([2, 3, 4], RTT);
    session.loss.detect(RTT);
    session.acknowledge([1], 100 * RTT, 1);
    expect(session.reordering.reorderingDelay).toBeCloseTo(4 * RTT * (1 - 1 / 2048), 9);
  });

  it("a spurious retransmission makes it a quarter longer than a round trip, at the least", () => {
    const session = new Harness();
    session.send(1, 0);
    session.acknowledge([1], RTT, 1, true);
    expect(session.reordering.reorderingDelay).toBeCloseTo(1.25 * RTT * (1 - 1 / 2048), 9);
  });

  it("shrinks to the half within some 1,400 packets", () => {
    const session = new Harness();
    session.reordering.reorderingDelay = 1000;
    for (let number = 1; number <= 1419; number++) {
      session.send(1, 0);
      session.acknowledge([number], RTT);
    }
    expect(session.reordering.reorderingDelay).toBeGreaterThan(499);
    expect(session.reordering.reorderingDelay).toBeLessThan(501);
  });

  it("tells nothing where a packet was sent again: which transmission came is unknown", () => {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([2, 3, 4], RTT);
    expect(session.lost(RTT)).toEqual([1]);
    session.again(1, RTT);
    session.acknowledge([1], 2 * RTT, 5);
    expect(session.reordering.reorderingDelay).toBe(0);
  });

  it("unless the latest one cannot have come yet", () => {
    const session = new Harness();
    session.send(4, 0);
    session.acknowledge([2, 3, 4], RTT);
    expect(session.lost(RTT)).toEqual([1]);
    session.again(1, RTT);
    session.acknowledge([1], RTT + RTT / 2 - 1, 1);
    expect(session.reordering.reorderingDelay).toBeGreaterThan(RTT / 2);
  });
});

describe("round-trip samples (RFC 9002, 5.1)", () => {
  it("come from the packet that the acknowledgment names, without the acknowledgment delay", () => {
    const session = new Harness();
    session.send(2, 0);
    session.acknowledge([1, 2], RTT, 2);
    expect(session.rtt.smoothed).toBe(RTT);
  });

  it("an acknowledgment delay that is longer than the packet was in flight gives none", () => {
    const session = new Harness();
    session.send(1, 0);
    const ack = { cumulative: 2, echo: 1, delay: RTT + 1, limit: 10, duplicates: 0, mask: new Int32Array(0) };
    expect(session.loss.onAcknowledged(ack, false, RTT)).toHaveLength(1);
    expect(session.rtt.smoothed).toBe(0);
  });

  it("a packet that others overtook gives none", () => {
    const session = new Harness();
    session.send(2, 0);
    session.acknowledge([2], RTT);
    session.acknowledge([1], 9 * RTT);
    expect([session.rtt.smoothed, session.rtt.min]).toEqual([RTT, RTT]);
  });
});

describe("probe timeout (RFC 9002, 6.2)", () => {
  it("none is set while nothing is in flight", () => {
    const session = new Harness();
    expect(session.loss.deadline).toBe(Number.POSITIVE_INFINITY);
    expect(session.loss.onProbeTimeout()).toBeUndefined();
    session.send(1, 0);
    session.acknowledge([1], RTT);
    expect(session.loss.deadline).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    [0, INITIAL_PTO],
    [1000, INITIAL_PTO],
    [40_000, 120_000],
    [800_000, 1_000_000],
  ])("before the first sample: after a handshake of %i µs, it is %i", (handshake, timeout) => {
    const session = new Harness(handshake);
    session.send(1, 7);
    expect(session.loss.deadline).toBe(7 + timeout);
  });

  it("6.2.2: without a sample it is the initial one, from the first packet on", () => {
    const session = new Harness();
    session.send(1, 7);
    session.send(1, 5000);
    expect(session.loss.deadline).toBe(7 + INITIAL_PTO);
  });

  it("6.2.1: smoothed + 4 × variation + the acknowledgment delay, from the last acknowledgment on", () => {
    const session = new Harness();
    session.send(2, 0);
    session.acknowledge([1], RTT);
    expect(session.loss.deadline).toBe(RTT + RTT + 4 * (RTT / 2) + ACK_DELAY_MAX);
  });

  it("is a millisecond at the least: short round trips do not make it hasty", () => {
    const session = new Harness();
    session.send(2, 0);
    session.acknowledge([1], 10);
    expect(session.loss.deadline).toBe(10 + 1000);
  });

  it("6.2.1: doubles with each probe, up to a second", () => {
    const session = new Harness();
    session.send(2, 0);
    for (const timeout of [2, 4, 8, 16, 32].map((times) => INITIAL_PTO * times)) {
      const now = session.loss.deadline;
      session.loss.onProbeTimeout();
      session.again(1, now);
      expect(session.loss.deadline).toBe(now + timeout);
    }
    for (let probe = 0; probe < 3; probe++) {
      const now = session.loss.deadline;
      session.loss.onProbeTimeout();
      session.again(1, now);
      expect(session.loss.deadline).toBe(now + 1_000_000);
    }
  });

  it("after a handshake of five seconds it doubles beyond a second, since an answer may take as long", () => {
    const session = new Harness(5_000_000);
    session.send(2, 0);
    for (const timeout of [2, 4, 8, 15, 15]) {
      const now = session.loss.deadline;
      session.loss.onProbeTimeout();
      session.again(1, now);
      expect(session.loss.deadline).toBe(now + timeout * 1_000_000);
    }
  });

  it("6.2.1: is longer than the round trip, however long that is; only its doubling has a bound", () => {
    const session = new Harness(2_000_000);
    session.send(2, 0);
    session.acknowledge([1], 2_000_000);
    const timeout = 2_000_000 + 4 * 1_000_000 + ACK_DELAY_MAX;
    expect(session.loss.deadline).toBe(2_000_000 + timeout);
    const now = session.loss.deadline;
    session.loss.onProbeTimeout();
    session.again(1, now);
    expect(session.loss.deadline).toBe(now + timeout);
  });

  it("6.2.1: an acknowledgment ends the doubling", () => {
    const session = new Harness();
    session.send(2, 0);
    session.loss.onProbeTimeout();
    session.again(1, INITIAL_PTO); // transmission 3
    session.send(1, INITIAL_PTO); // 4
    const now = INITIAL_PTO + RTT;
    expect(session.acknowledge([3], now, 4)).toEqual([3]);
    expect(session.loss.deadline).toBe(now + RTT + 4 * (RTT / 2) + ACK_DELAY_MAX);
  });

  it("6.2.4: probes with the oldest packet, and declares none lost", () => {
    const session = new Harness();
    session.send(5, 0);
    session.acknowledge([1], RTT);
    expect(session.loss.onProbeTimeout()?.number).toBe(2);
    expect(session.lost(100 * RTT)).toEqual([]);
    expect(session.loss.inFlight).toBe(4);
  });
});

// Congestion control of a session: how many packets may be in flight. Sessions know only the interface, so that a link of
// another kind can come with another algorithm.
import { seqDelta } from "../../../assembly/seq.js";
import { SESSION_WINDOW } from "../responder.js";
import type { RttEstimator } from "./round-trip.js";

export interface CongestionController {
  /** Packets that may be in flight; the session rounds it up. */
  readonly window: number;
  /** Packets were declared lost. */
  onLost(packets: number): void;
  /**
   * An acknowledgment came. The round-trip estimator knows its sample already, and onLost() the losses that it showed.
   * @param packets newly acknowledged packets
   * @param echo number of the transmission that came last, as the acknowledgment states it
   * @param lastSent number of the last transmission so far
   * @param inFlight packets that are still in flight
   */
  onAcknowledged(packets: number, echo: number, lastSent: number, inFlight: number): void;
  /** A probe timeout has expired: no acknowledgment came. */
  onProbeTimeout(): void;
}

/** Makes the controller of a session. @param lastSent transmissions of the session so far: its connect packets */
export type MakeController = (rtt: RttEstimator, lastSent: number) => CongestionController;

/** Packets of the first window, and of the smallest. */
const INITIAL_WINDOW = 16;
const WINDOW_MIN = 2;
/**
 * Delay does not shrink a smaller window: it comes from others then, or from threads that wait for a processor. On a busy
 * machine, with round trips of 75 instead of 42 ms, sessions kept a window of 2 packets, and 1 MiB took 27 s.
 */
const DELAYED_WINDOW_MIN = INITIAL_WINDOW;
/** Queueing delay that counts as congestion, as a part of the shortest round trip. */
const DELAY_ALLOWED = 0.5;
/**
 * Microseconds of delay that never count as congestion: a peer's thread takes that long to run and to handle what has come,
 * and on a busy machine it waits for a processor. With 100, the window on loopback stayed at 2 packets; with 1000, at 7 to 13,
 * and most of the time the session waited for it. RFC 8289 allows as much.
 */
const DELAY_SLACK = 5000;
/**
 * Round trips with delay in a row, with hardly more than the smallest window that delay leaves. The delay is then no queue of
 * this session: the path has got longer. A session that began with 1 ms kept 16 packets for each round trip of 40 ms.
 */
const LONGER_ROUNDS = 8;
/**
 * The window of a round trip with losses, at the most. No packet may be SESSION_WINDOW behind a lost one: with half as many in
 * flight, the lost one comes again before the session has to stop.
 */
const LOSSY_WINDOW_MAX = SESSION_WINDOW / 2;
/** The part of the packets that may be lost by chance, without congestion, and of how many at the least. */
const LOSS_ALLOWED = 0.1;
const LOSS_SAMPLE = 20;

/**
 * A delay-based controller. Once per round trip, the window grows by half if packets filled at least half of it, or shrinks
 * in proportion if the round-trip time shows queueing, but not below the first window. Losses shrink it only if they are
 * frequent: random loss of 1 % does not slow a session down. One lost packet shows nothing: of a round of five, it is a fifth.
 */
export class DelayController implements CongestionController {
  readonly #rtt: RttEstimator;
  #window = INITIAL_WINDOW;
  /** Packets acknowledged and lost since the last change of the window. */
  #acked = 0;
  #lost = 0;
  /** Packets of the last round trips, LOSS_SAMPLE at the least, and those of them that were lost. */
  #sample = 0;
  #sampleLost = 0;
  /** Round trips with delay in a row, although the window was small. */
  #delayed = 0;
  /** The next change is due when this transmission, or a later one, is acknowledged. */
  #roundEnd: number;

  constructor(rtt: RttEstimator, lastSent: number) {
    this.#rtt = rtt;
    this.#roundEnd = lastSent;
  }

  get window(): number {
    return this.#window;
  }

  onLost(packets: number): void {
    this.#lost += packets;
  }

  onAcknowledged(packets: number, echo: number, lastSent: number, inFlight: number): void {
    this.#acked += packets;
    if (seqDelta(echo, this.#roundEnd) < 0) return;
    const { min, smoothed } = this.#rtt;
    const delayMax = min * (1 + DELAY_ALLOWED) + DELAY_SLACK;
    const isLossy = this.#isLossy();
    this.#noteDelay(smoothed > delayMax && this.#window < 2 * DELAYED_WINDOW_MIN);
    const isDelayed = smoothed > delayMax && this.#window > DELAYED_WINDOW_MIN;
    if (isLossy) this.#window = Math.max(WINDOW_MIN, this.#window / 2);
    else if (isDelayed) this.#window = Math.max(DELAYED_WINDOW_MIN, this.#window * Math.max(0.5, delayMax / smoothed));
    else if (inFlight + this.#acked >= this.#window / 2) this.#window *= 1.5;
    if (this.#lost > 0) this.#window = Math.min(this.#window, LOSSY_WINDOW_MAX);
    this.#acked = 0;
    this.#lost = 0;
    this.#roundEnd = lastSent + 1;
  }

  /** A round trip is over. @param isDelayed whether it had delay, although the window was small */
  #noteDelay(isDelayed: boolean): void {
    if (!isDelayed) this.#delayed = 0;
    else if (this.#delayed++ === 0) this.#rtt.startOver();
    else if (this.#delayed > LONGER_ROUNDS) {
      this.#rtt.renew();
      this.#delayed = 0;
    }
  }

  /** Whether more packets of the sample are lost than by chance. */
  #isLossy(): boolean {
    this.#sample += this.#acked + this.#lost;
    this.#sampleLost += this.#lost;
    const isLossy = this.#sampleLost > 1 && this.#sampleLost > LOSS_ALLOWED * this.#sample;
    if (isLossy || this.#sample >= LOSS_SAMPLE) {
      this.#sample = 0;
      this.#sampleLost = 0;
    }
    return isLossy;
  }

  onProbeTimeout(): void {
    this.#window = Math.max(WINDOW_MIN, this.#window / 2);
  }
}

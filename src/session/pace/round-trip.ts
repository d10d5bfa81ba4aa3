// The round-trip time of a session, estimated as in RFC 9002, section 5. Times are in microseconds.
//
// An acknowledgment states how long the target held it back, and each sample has that subtracted. So unlike min_rtt there,
// the minimum here excludes the acknowledgment delay.

export class RttEstimator {
  #smoothed = 0;
  #variation = 0;
  #min = Number.POSITIVE_INFINITY;
  /** The smallest sample since startOver(). */
  #recent = Number.POSITIVE_INFINITY;

  /** Smoothed round-trip time; 0: there is no sample yet. */
  get smoothed(): number {
    return this.#smoothed;
  }

  /** Mean deviation of the samples. */
  get variation(): number {
    return this.#variation;
  }

  /** The smallest sample, or that since renew(); Infinity: there is none yet. */
  get min(): number {
    return this.#min;
  }

  /** @param time from sending a packet to its acknowledgment, without the acknowledgment delay */
  addSample(time: number): void {
    const sample = Math.max(1, time);
    this.#min = Math.min(this.#min, sample);
    this.#recent = Math.min(this.#recent, sample);
    if (this.#smoothed === 0) {
      this.#smoothed = sample;
      this.#variation = sample / 2;
      return;
    }
    this.#variation += (Math.abs(sample - this.#smoothed) - this.#variation) / 4;
    this.#smoothed += (sample - this.#smoothed) / 8;
  }

  /** Begins to look for the smallest sample anew. */
  startOver(): void {
    this.#recent = Number.POSITIVE_INFINITY;
  }

  /** The path has got longer: the smallest sample since startOver() counts from now on, if there is one. */
  renew(): void {
    if (this.#recent !== Number.POSITIVE_INFINITY) this.#min = this.#recent;
  }
}

// @ts-check
// The events of one kind in one lane, by begin, in typed arrays: a picture looks at what it draws, not at each event. Times are
// microseconds.

/** An event has this many integers: label, other endpoint, count, bytes, lane of the other end of its arrow, its place there. */
const FIELDS = 6;
const PEER_LANE = 4;
const PEER = 5;

/** @typedef {{ label: number, other: number, count: number, bytes: number }} Details */

export class Track {
  size = 0;
  begin = new Float64Array(16);
  end = new Float64Array(16);
  /** Where the arrow of an event ends; its own end without one. */
  arrival = new Float64Array(16);
  #fields = new Int32Array(16 * FIELDS);
  /** Latest end of the events up to each one: what still lasts at a time is found by halving. */
  #reach = new Float64Array(0);
  #arrivalReach = new Float64Array(0);
  /** Sum of the durations before each event. */
  #busy = new Float64Array(0);

  /**
   * Adds an event behind the others.
   * @param {number} begin @param {number} end @param {Details} details
   * @returns {number} its place
   */
  add(begin, end, { label, other, count, bytes }) {
    const place = this.size++;
    if (place === this.begin.length) this.#grow();
    this.begin[place] = place === 0 ? begin : Math.max(begin, this.begin[place - 1]);
    this.end[place] = Math.max(end, this.begin[place]);
    this.arrival[place] = this.end[place];
    this.#fields.set([label, other, count, bytes, -1, -1], place * FIELDS);
    return place;
  }

  #grow() {
    const room = this.begin.length * 2;
    const larger = (/** @type {Float64Array} */ old) => {
      const made = new Float64Array(room);
      made.set(old);
      return made;
    };
    this.begin = larger(this.begin);
    this.end = larger(this.end);
    this.arrival = larger(this.arrival);
    const fields = new Int32Array(room * FIELDS);
    fields.set(this.#fields);
    this.#fields = fields;
  }

  /** All events are here: prepares what is asked later. */
  seal() {
    const { size, begin, end, arrival } = this;
    this.#reach = new Float64Array(size);
    this.#arrivalReach = new Float64Array(size);
    this.#busy = new Float64Array(size + 1);
    let [reach, arrivals] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let place = 0; place < size; place++) {
      reach = Math.max(reach, end[place]);
      arrivals = Math.max(arrivals, arrival[place]);
      this.#reach[place] = reach;
      this.#arrivalReach[place] = arrivals;
      this.#busy[place + 1] = this.#busy[place] + end[place] - begin[place];
    }
  }

  /** @param {number} place @returns {Details} */
  details(place) {
    const [label, other, count, bytes] = this.#fields.subarray(place * FIELDS, place * FIELDS + PEER_LANE);
    return { label, other, count: count >>> 0, bytes: bytes >>> 0 };
  }

  /** Joins an event to the other end of its arrow. @param {number} place @param {number} lane @param {number} peer */
  join(place, lane, peer) {
    this.#fields[place * FIELDS + PEER_LANE] = lane;
    this.#fields[place * FIELDS + PEER] = peer;
  }

  /** Lane of the other end; -1: it has none. @param {number} place */
  peerLane(place) {
    return this.#fields[place * FIELDS + PEER_LANE];
  }

  /** Place of the other end in its lane. @param {number} place */
  peer(place) {
    return this.#fields[place * FIELDS + PEER];
  }

  /** The first event that begins at a time or later, of those from a place on. @param {number} time @param {number} [from] */
  from(time, from = 0) {
    return firstOf(this.begin, time, from, this.size, false);
  }

  /** The first event that has not ended at a time. @param {number} time */
  lasting(time) {
    return firstOf(this.#reach, time, 0, this.size, true);
  }

  /** The first event whose arrow has not arrived at a time. @param {number} time */
  underWay(time) {
    return firstOf(this.#arrivalReach, time, 0, this.size, true);
  }

  /**
   * Time that events take up before a time. Where events overlap, it is too long.
   * @param {number} time @param {number} place of the first event that begins at that time or later
   */
  busyBefore(time, place) {
    return this.#busy[place] - (place === 0 ? 0 : Math.max(0, this.end[place - 1] - time));
  }

  /**
   * Counts by column of a picture: how many events begin in it, and which share of it they take up.
   * @param {number} from @param {number} to @param {number} columns
   */
  bins(from, to, columns) {
    const counts = new Uint32Array(columns);
    const shares = new Float32Array(columns);
    const width = (to - from) / columns;
    let place = this.from(from);
    let busy = this.busyBefore(from, place);
    for (let column = 0; column < columns; column++) {
      const time = from + width * (column + 1);
      const next = this.from(time, place);
      const after = this.busyBefore(time, next);
      counts[column] = next - place;
      shares[column] = Math.min(1, Math.max(0, (after - busy) / width));
      place = next;
      busy = after;
    }
    return { counts, shares };
  }
}

/**
 * The first place whose value is at least (or, strictly, more than) a limit. Steps double from the start: neighbors are near.
 * @param {Float64Array} values that never fall
 * @param {number} limit @param {number} start @param {number} end @param {boolean} strictly
 */
function firstOf(values, limit, start, end, strictly) {
  const isBefore = (/** @type {number} */ place) => (strictly ? values[place] <= limit : values[place] < limit);
  let step = 1;
  let low = start;
  while (low + step <= end && isBefore(low + step - 1)) {
    low += step;
    step *= 2;
  }
  let high = Math.min(end, low + step);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

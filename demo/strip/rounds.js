// @ts-check
// The rounds of an allreduce in a tree, from the messages of its trace: up to one task, which has the sum then, and down again.

/** @typedef {import("./model.js").StripModel} StripModel @typedef {import("./canvas-view.js").Arrow} Arrow */
/** @typedef {{ arrows: Arrow[], texts: string[] }} Round */
/** What a message carries: of its round, a sum of so many numbers. @typedef {{ lane: number, round: number, count: number, sum: number }} Sent */
/** An end of an arrow, in the order of its task. @typedef {{ id: number, isSend: boolean }} Point */

/** @param {Pick<import("pamir").Trace, "traceEvents">} trace @param {StripModel} model of it */
function pointsOf({ traceEvents }, { lanes }) {
  /** @type {Point[][]} */
  const points = lanes.map(() => []);
  /** @type {Map<number, Arrow>} */
  const arrows = new Map();
  const sends = lanes.map(() => 0);
  for (const { ph, cat, tid, id = 0 } of traceEvents) {
    const lane = lanes.findIndex(({ task }) => task === tid);
    if (ph === "X" && cat === "send") sends[lane]++;
    if (ph === "s") arrows.set(id, { lane, place: sends[lane] - 1 });
    if (ph === "s" || ph === "f") points[lane].push({ id, isSend: ph === "s" });
  }
  return { points, arrows };
}

/** Replays what the tasks did. */
class Replay {
  /** @type {Round[]} */
  rounds = [];
  /** What the last message has brought. */
  sum = 0;
  /** @type {Map<number, Sent>} */
  #sent = new Map();

  /** @param {StripModel} model @param {Map<number, Arrow>} arrows */
  constructor(model, arrows) {
    this.lanes = model.lanes;
    this.arrows = arrows;
    // Each task begins with its own number.
    this.have = this.lanes.map(({ task }, lane) => ({ lane, round: 0, count: 1, sum: task }));
  }

  /** @param {number} lane @param {Point} point @returns {boolean} false: what it takes has not been sent */
  go(lane, { id, isSend }) {
    const has = this.have[lane];
    const message = this.#sent.get(id);
    if (isSend) {
      // Of the round behind the last one in which the task took part.
      has.round++;
      this.#sent.set(id, { ...has });
    } else if (message !== undefined) this.#take(lane, message, /** @type {Arrow} */ (this.arrows.get(id)));
    return isSend || message !== undefined;
  }

  /** @param {number} lane @param {Sent} message @param {Arrow} arrow */
  #take(lane, message, arrow) {
    const { lanes, rounds } = this;
    const has = this.have[lane];
    const isWhole = message.count === lanes.length;
    has.count = isWhole ? message.count : has.count + message.count;
    has.sum = isWhole ? message.sum : has.sum + message.sum;
    has.round = Math.max(has.round, message.round);
    this.sum = message.sum;
    const [from, to] = [lanes[message.lane].name, lanes[lane].name];
    const part = message.count === 1 ? `its number, ${message.sum},` : `its sum of ${message.count}, ${message.sum},`;
    const text = isWhole
      ? `${from} sends the sum of all, ${message.sum}, to ${to}.`
      : `${from} sends ${part} to ${to}, which has ${has.sum} now.`;
    rounds[message.round - 1] ??= { arrows: [], texts: [] };
    rounds[message.round - 1].arrows.push(arrow);
    rounds[message.round - 1].texts.push(text);
  }
}

/**
 * The rounds of a trace. Clocks don't matter: a message is taken once it has been sent, and a task does one thing after the other.
 * @param {Pick<import("pamir").Trace, "traceEvents">} trace @param {StripModel} model of it
 */
export function roundsOf(trace, model) {
  const { points, arrows } = pointsOf(trace, model);
  const replay = new Replay(model, arrows);
  for (let isGoingOn = true; isGoingOn; ) {
    isGoingOn = false;
    for (const [lane, queue] of points.entries()) {
      while (queue.length > 0 && replay.go(lane, queue[0])) {
        queue.shift();
        isGoingOn = true;
      }
    }
  }
  return { rounds: replay.rounds, sum: replay.sum };
}

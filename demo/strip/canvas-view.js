// @ts-check
// Draws lanes, bars and arrows. Where many events share a pixel, it draws how much of it they take up, and some of the arrows:
// what a picture costs depends on its width, not on the number of events.
import { KINDS } from "./model.js";
import { ticksOf, timeText } from "./time-range.js";

/** @typedef {import("./model.js").StripModel} StripModel @typedef {import("./model.js").Lane} Lane @typedef {import("./model.js").Kind} Kind */
/** @typedef {import("./time-range.js").TimeRange} TimeRange */
/** @typedef {{ lane: number, place: number }} Arrow a send */
/** @typedef {{ lane: number, place: number, x0: number, y0: number, x1: number, y1: number }} Drawn an arrow, in CSS pixels */

const AXIS = 24;
const LANE = 58;
const LANE_SMALL = 46;
/** Arrows of a lane that are all drawn; of more, two of each so many pixels. */
const ARROWS_ALL = 400;
const ARROW_PIXELS = 8;
/** Up to so many arrows in the picture, each has a head. */
const HEADS = 160;
/** Shades of a column that events share. */
const SHADES = 6;

/** Height of each kind of event, and the distance of its top from the middle of its lane. @type {Record<Kind, [number, number]>} */
const SHAPES = {
  park: [4, 15],
  fence: [3, -18],
  handler: [16, -8],
  transfer: [7, 8],
  send: [8, -15],
  death: [30, -15],
};

export class CanvasView {
  /** The arrows of the last picture. @type {Drawn[]} */
  arrows = [];
  /** Lanes of the last picture, as places in the model. @type {number[]} */
  #lanes = [];
  #width = 0;
  #laneHeight = LANE;
  #ratio = 1;
  /** @type {Record<string, string>} */
  #colors = {};

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  }

  /** Reads the colors again: the scheme has changed. */
  restyle() {
    const style = getComputedStyle(this.canvas);
    const names = [...KINDS, "arrow", "chosen", "ink", "dim", "line", "lane"];
    this.#colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--strip-${name}`).trim()]));
    this.#font = `12px ${style.fontFamily}`;
  }
  #font = "12px sans-serif";

  /** Middle of the lane at a row. @param {number} row */
  #middle(row) {
    return AXIS + (row + 0.5) * this.#laneHeight;
  }

  /** Fits the canvas to its element and to the lanes. @param {number} rows */
  #resize(rows) {
    const { canvas } = this;
    this.#width = canvas.clientWidth;
    this.#laneHeight = this.#width < 600 ? LANE_SMALL : LANE;
    this.#ratio = Math.min(2, devicePixelRatio);
    const height = AXIS + Math.max(1, rows) * this.#laneHeight;
    const [wide, high] = [Math.round(this.#width * this.#ratio), Math.round(height * this.#ratio)];
    if (canvas.width !== wide) canvas.width = wide;
    if (canvas.height !== high) {
      canvas.height = high;
      canvas.style.height = `${height}px`;
    }
  }

  /**
   * @param {StripModel} model
   * @param {TimeRange} range
   * @param {{ lanes: number[], chosen: Arrow | undefined, steps: readonly Arrow[] }} shown places of the lanes in the model;
   *   arrows that stand out
   */
  draw(model, range, { lanes, chosen, steps }) {
    this.#resize(lanes.length);
    this.#lanes = lanes;
    const { context } = this;
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.clearRect(0, 0, this.#width, this.canvas.height);
    this.#drawLanes(model, range);
    this.#drawAxis(range);
    for (const kind of KINDS)
      for (const [row, place] of lanes.entries()) this.#drawTrack(model.lanes[place], kind, row, range);
    this.#drawArrows(model, range);
    for (const step of steps) this.#drawArrow(model, range, step, "chosen", 1.5);
    if (chosen !== undefined) this.#drawArrow(model, range, chosen, "chosen", 3);
    this.#drawNames(model);
  }

  /** @param {number} time @param {TimeRange} range */
  #x(time, { from, span }) {
    return ((time - from) / span) * this.#width;
  }

  /** @param {StripModel} model @param {TimeRange} range */
  #drawLanes({ lanes }, range) {
    const { context } = this;
    for (const [row, place] of this.#lanes.entries()) {
      const lane = lanes[place];
      const top = AXIS + row * this.#laneHeight + 3;
      const from = Math.max(0, this.#x(lane.first, range));
      const to = Math.min(this.#width, this.#x(Math.min(lane.ended, range.to), range));
      context.fillStyle = this.#colors.lane;
      context.fillRect(from, top, Math.max(0, to - from), this.#laneHeight - 6);
      if (lane.ended > range.to || lane.ended < range.from) continue;
      context.fillStyle = this.#colors.death;
      context.fillRect(to - 3, top, 3, this.#laneHeight - 6);
    }
  }

  /** @param {TimeRange} range */
  #drawAxis(range) {
    const { context } = this;
    const { step, times } = ticksOf(range, Math.floor(this.#width / 120));
    context.font = this.#font;
    context.fillStyle = this.#colors.dim;
    context.textBaseline = "middle";
    for (const time of times) {
      const x = Math.round(this.#x(time, range));
      const text = timeText(time, step);
      const left = Math.min(x + 4, this.#width - context.measureText(text).width - 2);
      context.fillText(text, Math.max(2, left), AXIS / 2);
      context.globalAlpha = 0.35;
      context.fillRect(x, 2, 1, this.canvas.height);
      context.globalAlpha = 1;
    }
  }

  /** @param {StripModel} model */
  #drawNames({ lanes }) {
    const { context } = this;
    context.font = this.#font;
    context.textBaseline = "middle";
    for (const [row, place] of this.#lanes.entries()) {
      const lane = lanes[place];
      const text = Number.isFinite(lane.ended) ? `${lane.name}, ended` : lane.name;
      const top = AXIS + row * this.#laneHeight + 4;
      context.fillStyle = this.#colors.lane;
      context.fillRect(2, top, context.measureText(text).width + 8, 15);
      context.fillStyle = this.#colors.ink;
      context.fillText(text, 6, top + 8);
    }
  }

  /** @param {Lane} lane @param {Kind} kind @param {number} row @param {TimeRange} range */
  #drawTrack(lane, kind, row, range) {
    const track = lane.tracks[kind];
    const first = track.lasting(range.from);
    const last = track.from(range.to);
    if (first >= last) return;
    const { context } = this;
    const [height, offset] = SHAPES[kind];
    const top = this.#middle(row) + offset;
    context.fillStyle = this.#colors[kind];
    if (last - first > 2 * this.#width) {
      this.#drawBins(track.bins(range.from, range.to, Math.ceil(this.#width)), top, height);
      return;
    }
    for (let place = first; place < last; place++) {
      const x = Math.max(-1, this.#x(track.begin[place], range));
      const end = Math.min(this.#width + 1, this.#x(track.end[place], range));
      context.fillRect(x, top, Math.max(1.5, end - x), height);
    }
  }

  /** @param {{ counts: Uint32Array, shares: Float32Array }} bins @param {number} top @param {number} height */
  #drawBins({ counts, shares }, top, height) {
    const { context } = this;
    for (let shade = 1; shade <= SHADES; shade++) {
      context.globalAlpha = 0.25 + (0.75 * shade) / SHADES;
      context.beginPath();
      for (let x = 0; x < counts.length; x++) {
        // What is shorter than a pixel is seen, too.
        const share = Math.max(shares[x], counts[x] > 0 ? 1 / SHADES : 0);
        if (Math.ceil(share * SHADES) === shade) context.rect(x, top, 1, height);
      }
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** The arrows that the picture has room for. @param {StripModel} model @param {TimeRange} range @returns {Arrow[]} */
  #arrowsIn(model, range) {
    /** @type {Arrow[]} */
    const found = [];
    for (const lane of this.#lanes) {
      const sends = model.lanes[lane].tracks.send;
      const first = sends.underWay(range.from);
      const last = sends.from(range.to);
      if (last - first <= ARROWS_ALL) {
        for (let place = first; place < last; place++) if (sends.peerLane(place) >= 0) found.push({ lane, place });
        continue;
      }
      let before = -1;
      for (let x = 0; x < this.#width; x += ARROW_PIXELS) {
        const at = Math.max(before + 1, sends.from(range.from + (x / this.#width) * range.span));
        for (let place = at; place < Math.min(at + 2, last); place++) {
          if (sends.peerLane(place) >= 0) found.push({ lane, place });
          before = place;
        }
      }
    }
    return found;
  }

  /** Where an arrow lies; undefined: one of its lanes is not shown. @param {StripModel} model @param {TimeRange} range @param {Arrow} arrow @returns {Drawn | undefined} */
  #place(model, range, { lane, place }) {
    const sends = model.lanes[lane].tracks.send;
    const [from, to] = [this.#lanes.indexOf(lane), this.#lanes.indexOf(sends.peerLane(place))];
    if (from < 0 || to < 0) return undefined;
    const arrives = model.lanes[sends.peerLane(place)].tracks.handler.begin[sends.peer(place)];
    const [x0, x1] = [this.#x(sends.begin[place], range), this.#x(arrives, range)];
    return { lane, place, x0, y0: this.#middle(from) - 8, x1, y1: this.#middle(to) + (from === to ? 8 : 0) };
  }

  /** @param {StripModel} model @param {TimeRange} range */
  #drawArrows(model, range) {
    const { context } = this;
    const placed = this.#arrowsIn(model, range).map((arrow) => this.#place(model, range, arrow));
    this.arrows = /** @type {Drawn[]} */ (placed.filter((arrow) => arrow !== undefined));
    const hasHeads = this.arrows.length <= HEADS;
    context.strokeStyle = this.#colors.arrow;
    context.lineWidth = 1;
    context.globalAlpha = hasHeads ? 0.9 : 0.45;
    context.beginPath();
    for (const arrow of this.arrows) this.#trace(arrow, hasHeads);
    context.stroke();
    context.globalAlpha = 1;
  }

  /** @param {StripModel} model @param {TimeRange} range @param {Arrow} arrow @param {string} color @param {number} width */
  #drawArrow(model, range, arrow, color, width) {
    const placed = this.#place(model, range, arrow);
    if (placed === undefined) return;
    const { context } = this;
    context.strokeStyle = this.#colors[color];
    context.lineWidth = width;
    context.beginPath();
    this.#trace(placed, true);
    context.stroke();
  }

  /** @param {Drawn} arrow @param {boolean} hasHead */
  #trace({ x0, y0, x1, y1 }, hasHead) {
    const { context } = this;
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    if (!hasHead) return;
    const angle = Math.atan2(y1 - y0, x1 - x0);
    for (const turn of [-0.4, 0.4]) {
      context.moveTo(x1, y1);
      context.lineTo(x1 - 8 * Math.cos(angle + turn), y1 - 8 * Math.sin(angle + turn));
    }
  }

  /** The drawn arrow nearest to a point, within some pixels. @param {number} x @param {number} y @returns {Drawn | undefined} */
  arrowAt(x, y) {
    let nearest = 10;
    let found;
    for (const arrow of this.arrows) {
      const distance = distanceOf(arrow, x, y);
      if (distance >= nearest) continue;
      nearest = distance;
      found = arrow;
    }
    return found;
  }
}

/** From a point to an arrow. @param {Drawn} arrow @param {number} x @param {number} y */
function distanceOf({ x0, y0, x1, y1 }, x, y) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const along = Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}

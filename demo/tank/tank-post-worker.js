// @ts-check
// The same tank by postMessage, a worker of it: border rows go to the neighbors' workers by transfer, heights to the page.
import { Gauge } from "./gauge.js";
import { ownRows } from "./tank-rows.js";
import { push, stepRows } from "./water.js";

/** ms of steps in one event, where no neighbor makes this worker wait. */
const SLICE_MS = 4;
const TURNS = 16;

/** @type {import("./water.js").Rows} */
let rows;
let size = 0;
let step = 0;
let stop = -1;
let isPaused = false;
let isProbing = false;
let messages = 0;
/** Above and below. @type {(MessagePort | undefined)[]} */
let ports = [];
/** Rows that have come, in order, and rows to send: a buffer that came goes back. @type {Float32Array[][]} */
const come = [[], []];
/** @type {Float32Array[][]} */
const spare = [[], []];
/** Waits for a ball. */
let caught = () => {};
const gauge = new Gauge();
/** Gives other events their turn. */
const { port1: again, port2: self1 } = new MessageChannel();
again.onmessage = () => go();

/** @param {number} side */
function hand(side) {
  const port = ports[side];
  if (port === undefined) return;
  const row = spare[side].pop() ?? new Float32Array(size);
  row.set(rows.heights[step & 1][side === 0 ? 1 : rows.count]);
  messages++;
  port.postMessage(row, [row.buffer]);
}

const isReady = () =>
  !isPaused && !isProbing && step !== stop && ports.every((port, side) => port === undefined || come[side].length > 0);

function go() {
  const start = performance.now();
  while (isReady()) {
    const now = rows.heights[step & 1];
    for (const side of [0, 1]) {
      const row = come[side].shift();
      if (row === undefined) continue;
      now[side === 0 ? 0 : rows.count + 1] = row;
    }
    const began = performance.now();
    stepRows(rows, step);
    for (const side of [0, 1]) {
      if (ports[side] !== undefined) spare[side].push(now[side === 0 ? 0 : rows.count + 1]);
    }
    step++;
    for (const side of [0, 1]) hand(side);
    const end = performance.now();
    gauge.computed += end - began;
    gauge.steps++;
    if (gauge.isDue) report();
    if (end - start > SLICE_MS) {
      self1.postMessage(null);
      return;
    }
  }
}

async function report() {
  if (ports[0] === undefined && ports[1] !== undefined) await probe(ports[1]);
  postMessage({ report: gauge.report(messages) });
}

/** How long a hand-off takes. @param {MessagePort} port */
async function probe(port) {
  isProbing = true;
  const turn = () =>
    /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        caught = resolve;
        messages++;
        port.postMessage(0);
      })
    );
  await turn();
  const start = performance.now();
  let turns = 0;
  for (; turns < TURNS && (turns === 0 || performance.now() - start < 4); turns++) await turn();
  gauge.handedOff(performance.now() - start, turns);
  isProbing = false;
  self1.postMessage(null);
}

/**
 * @param {{ size: number, first: number, count: number, stop: number, pace: import("./water.js").Pace, isPaused: boolean }} given
 * @param {(MessagePort | undefined)[]} channels above, below
 */
function begin(given, channels) {
  ({ size, stop, isPaused } = given);
  ports = channels;
  const still = [new Float32Array(size), new Float32Array(size)];
  const heights = new Float32Array(2 * given.count * size);
  rows = ownRows(heights, size, { ...given, halo: (_, side) => still[side] });
  for (const [side, port] of ports.entries()) {
    if (port === undefined) continue;
    port.onmessage = ({ data }) => {
      if (data === 0) {
        messages++;
        port.postMessage(1);
      } else if (data === 1) caught();
      else {
        come[side].push(data);
        go();
      }
    };
  }
  for (const side of [0, 1]) hand(side);
  gauge.reset();
  go();
}

/** The heights go to the page in the buffer that it sent. @param {Float32Array | undefined} frame */
function show(frame = new Float32Array(rows.count * size)) {
  const own = rows.heights[step & 1];
  for (let y = 0; y < rows.count; y++) frame.set(own[y + 1], y * size);
  postMessage({ frame, step }, { transfer: [frame.buffer] });
}

self.onmessage = ({ data }) => {
  if (data.begin !== undefined) begin(data.begin, [data.up, data.down]);
  else if ("frame" in data) show(data.frame);
  else if (data.push !== undefined) push(rows, step & 1, data.push);
  else if (data.isPaused !== undefined) {
    ({ isPaused } = data);
    gauge.reset();
    go();
  }
};

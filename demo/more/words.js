// @ts-check
// What a bridge, a task of the page with the tank, and a page that has joined say to each other, over pamir/web.

/** To the page that has joined: a part of a plan, and behind it its rows; a row beside its own; an end of the steps. */
export const BEGIN = 1;
export const ROWS = 2;
export const HALO = 3;
export const STOP = 4;
export const PAUSE = 5;
export const PING = 6;
export const BYE = 7;
/** To the bridge: the page is there, has made a step, has stopped behind its rows, shows some of them, answers, leaves. */
export const HELLO = 10;
export const BORDER = 11;
export const STOPPED = 12;
export const STRIPE = 13;
export const PONG = 14;
export const LANE = 15;
export const LEAVE = 16;
/** Both ways: the water is lifted. */
export const PUSH = 20;

/** Kinds of rows: heights and speeds of a step, and heights of the step before it. */
export const HEIGHTS = 0;
export const SPEEDS = 1;
export const BEFORE = 2;

/** Heights in a stripe are 16 bits: a unit of height has so many parts. */
export const PARTS = 2 ** 14;
/** Bytes of rows in one message: what comes behind it is not held up for long. */
const BLOCK_BYTES = 2 ** 15;

/** @typedef {{ epoch: number, kind: number, row: number, step: number }} Block */

/** Milliseconds on a clock that all threads of this machine share. */
export const clock = () => performance.timeOrigin + performance.now();

/**
 * Sends rows, a block after the other.
 * @param {(header: Int32Array, payload: Float32Array) => void} send
 * @param {Float32Array[]} rows
 * @param {Omit<Block, "row">} what
 */
export function sendRows(send, rows, { epoch, kind, step }) {
  const size = rows[0]?.length ?? 1;
  const most = Math.max(1, Math.floor(BLOCK_BYTES / (4 * size)));
  for (let row = 0; row < rows.length; row += most) {
    const block = rows.slice(row, row + most);
    const payload = new Float32Array(block.length * size);
    for (const [at, each] of block.entries()) payload.set(each, at * size);
    send(Int32Array.of(epoch, kind, row, step), payload);
  }
}

/** The integers of a message's header. @param {import("pamir").Message} message @returns {number[]} */
export const headerOf = ({ bytes, headerOffset, headerBytes }) =>
  Array.from(new Int32Array(bytes.buffer, bytes.byteOffset + headerOffset, headerBytes / 4));

/**
 * The payload of a message, in place.
 * @template {Float32ArrayConstructor | Int16ArrayConstructor | Float64ArrayConstructor} View
 * @param {View} View @param {import("pamir").Message} message @returns {InstanceType<View>}
 */
export const payloadOf = (View, { bytes, payloadOffset, payloadBytes }) =>
  /** @type {InstanceType<View>} */ (
    new View(bytes.buffer, bytes.byteOffset + payloadOffset, payloadBytes / View.BYTES_PER_ELEMENT)
  );

// @ts-check
// Strips of a picture, as a worker draws them for a page's canvas: RGBA, a color that changes with each frame.

export const WIDTH = 1280;
export const STRIPS = 8;
export const STRIP_ROWS = 90;

/** The pixel of a frame's strip, as 32 bits of RGBA. @param {number} frame @param {number} strip */
export const pixelOf = (frame, strip) => (0xff000000 | ((frame * 31 + strip * 7) & 0xffffff)) >>> 0;

/** @param {Uint32Array} pixels @param {number} frame @param {number} strip */
export function drawInto(pixels, frame, strip) {
  pixels.fill(pixelOf(frame, strip));
}

/** @param {number} frame @param {number} strip */
export function drawStrip(frame, strip) {
  const pixels = new Uint32Array(WIDTH * STRIP_ROWS);
  drawInto(pixels, frame, strip);
  return new Uint8ClampedArray(pixels.buffer);
}

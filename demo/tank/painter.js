// @ts-check
// The picture of the water: light from the upper left falls on its slopes, and crests are paler than troughs.

/** Points of the picture at most, in each direction. */
const PICTURE = 512;
const SHADES = 4096;
const MIDDLE = SHADES / 2;
/** ms of one frame for the picture: where it takes longer, the rest of its rows is drawn in the next frames. */
const BUDGET_MS = 1.5;
/** Rows between two looks at the clock. */
const STRETCH = 32;
/** Shades a unit of slope, and of height. */
const SLOPE = 15_000;
const HEIGHT = 1800;

/** @typedef {[at: number, red: number, green: number, blue: number]} Color */
/** From the dark side of a wave to the light one. @type {Record<"light" | "dark", Color[]>} */
const COLORS = {
  dark: [
    [0, 2, 8, 20],
    [0.3, 5, 32, 54],
    [0.5, 10, 62, 84],
    [0.62, 22, 120, 132],
    [0.78, 96, 205, 190],
    [1, 240, 255, 246],
  ],
  light: [
    [0, 12, 66, 92],
    [0.3, 54, 136, 158],
    [0.5, 136, 200, 208],
    [0.64, 190, 229, 228],
    [0.8, 233, 247, 240],
    [1, 255, 255, 255],
  ],
};

/** @param {"light" | "dark"} scheme */
function shadesOf(scheme) {
  const colors = COLORS[scheme];
  const shades = new Uint8ClampedArray(4 * SHADES);
  for (let shade = 0; shade < SHADES; shade++) {
    // Steep at still water, flat at both ends: small waves are seen, and large ones have no edges.
    const at = 0.5 + 0.5 * Math.tanh((2.2 * (shade - MIDDLE)) / MIDDLE);
    const next = Math.max(
      1,
      colors.findIndex(([end]) => end >= at),
    );
    const [low, high] = [colors[next - 1], colors[next]];
    const part = (at - low[0]) / (high[0] - low[0]);
    for (let i = 0; i < 3; i++) shades[4 * shade + i] = low[i + 1] + part * (high[i + 1] - low[i + 1]);
    shades[4 * shade + 3] = 255;
  }
  return new Uint32Array(shades.buffer);
}

export class Painter {
  /** The row that is drawn next. */
  #next = 0;

  /** @param {HTMLCanvasElement} canvas @param {number} size of the tank @param {number} [rows] of it that are drawn */
  constructor(canvas, size, rows = size) {
    this.step = Math.max(1, size / PICTURE);
    const side = Math.floor(size / this.step);
    // Points that are closer together differ less: the same wave looks the same in each tank.
    this.steepness = side / PICTURE;
    [canvas.width, canvas.height] = [side, Math.max(1, Math.floor(rows / this.step))];
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.image = this.context.createImageData(canvas.width, canvas.height);
    this.points = new Uint32Array(this.image.data.buffer);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const choose = () => shadesOf(dark.matches ? "dark" : "light");
    this.shades = choose();
    dark.addEventListener("change", () => {
      this.shades = choose();
    });
    // Still water, until the workers are there.
    this.points.fill(this.shades[MIDDLE]);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Draws straight from the rows, wherever they lie. @param {Float32Array[]} rows */
  draw(rows) {
    const { step, points, shades } = this;
    const { width, height } = this.image;
    const slope = SLOPE * this.steepness;
    const end = performance.now() + BUDGET_MS;
    for (let drawn = 0; drawn < height; drawn++) {
      if (drawn % STRETCH === STRETCH - 1 && performance.now() > end) break;
      const y = this.#next;
      this.#next = (y + 1) % height;
      const row = rows[y * step];
      const above = rows[y > 0 ? (y - 1) * step : 0];
      if (row === undefined || above === undefined) continue;
      shade(points.subarray(y * width, (y + 1) * width), { row, above, step, slope, shades });
    }
    this.context.putImageData(this.image, 0, 0);
  }
}

/**
 * @param {Uint32Array} points of a row
 * @param {{ row: Float32Array, above: Float32Array, step: number, slope: number, shades: Uint32Array }} from
 */
function shade(points, { row, above, step, slope, shades }) {
  let left = row[0];
  for (let x = 0, at = 0; x < points.length; x++, at += step) {
    const here = row[at];
    const light = MIDDLE + slope * (here + here - left - above[at]) + HEIGHT * here;
    points[x] = shades[light < 0 ? 0 : light >= SHADES ? SHADES - 1 : light | 0];
    left = here;
  }
}

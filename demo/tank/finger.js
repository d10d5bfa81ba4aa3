// @ts-check
// Painting: by pointer, finger or keys. What is painted lifts the water.

/** Parts of the tank: radius of a finger, and a key's way. */
const RADIUS = 1 / 45;
const WAY = 1 / 24;
const HEIGHT = 0.16;
const SPLASH = 1;

const KEYS = /** @type {Record<string, [number, number]>} */ ({
  ArrowUp: [0, -WAY],
  ArrowDown: [0, WAY],
  ArrowLeft: [-WAY, 0],
  ArrowRight: [WAY, 0],
});

export class Finger {
  x = 0.5;
  y = 0.5;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} mark shows where the keys are
   * @param {number} size
   * @param {(where: import("./water.js").Lift) => void} push
   */
  constructor(canvas, mark, size, push) {
    this.canvas = canvas;
    this.mark = mark;
    this.size = size;
    this.push = push;
    let isDown = false;
    canvas.addEventListener("pointerdown", (event) => {
      isDown = true;
      canvas.setPointerCapture(event.pointerId);
      this.#toPointer(event);
      this.#lift(SPLASH / 2);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!isDown) return;
      this.#toPointer(event);
      this.#lift(HEIGHT);
    });
    for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) {
      canvas.addEventListener(end, () => {
        isDown = false;
      });
    }
    canvas.addEventListener("keydown", (event) => this.#key(event));
    this.#show();
  }

  /** @param {PointerEvent} event */
  #toPointer({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    this.#to((clientX - left) / width, (clientY - top) / height);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const way = KEYS[event.key];
    if (way === undefined && event.key !== " ") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (way === undefined) this.#lift(SPLASH);
    else {
      this.#to(this.x + way[0], this.y + way[1]);
      this.#lift(2 * HEIGHT);
    }
  }

  /** @param {number} x @param {number} y */
  #to(x, y) {
    this.x = Math.min(1, Math.max(0, x));
    this.y = Math.min(1, Math.max(0, y));
    this.#show();
  }

  #show() {
    this.mark.style.left = `${100 * this.x}%`;
    this.mark.style.top = `${100 * this.y}%`;
  }

  /** @param {number} height */
  #lift(height) {
    const { size } = this;
    this.push({ x: Math.round(this.x * size), y: Math.round(this.y * size), radius: size * RADIUS, height });
  }
}

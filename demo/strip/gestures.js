// @ts-check
// Pointers, the wheel and keys on the picture.

/**
 * @typedef {object} Gestures
 * @property {(share: number) => void} scrub by a share of the picture's width
 * @property {(factor: number, at: number) => void} zoom around a place, from 0 to 1
 * @property {(x: number, y: number) => void} press in CSS pixels
 * @property {(key: string) => boolean} key whether it has a meaning
 */

/** A pointer that moves less has clicked. */
const CLICK_PIXELS = 5;

/** @param {HTMLElement} picture @param {Gestures} gestures */
export function listen(picture, { scrub, zoom, press, key }) {
  /** @type {Map<number, PointerEvent>} */
  const down = new Map();
  let moved = 0;
  const placeOf = (/** @type {{ clientX: number, clientY: number }} */ event) => {
    const { left, top, width } = picture.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top, width };
  };
  picture.addEventListener("pointerdown", (event) => {
    if (down.size === 0) moved = 0;
    down.set(event.pointerId, event);
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (before === undefined) return;
    const { width } = placeOf(event);
    const other = [...down.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    const by = event.clientX - before.clientX;
    moved += Math.abs(by) + Math.abs(event.clientY - before.clientY);
    down.set(event.pointerId, event);
    if (other === undefined) {
      if (moved >= CLICK_PIXELS) scrub(-by / width);
      return;
    }
    moved = CLICK_PIXELS;
    const apart = (/** @type {PointerEvent} */ one) => Math.max(8, Math.abs(one.clientX - other.clientX));
    zoom(apart(before) / apart(event), placeOf(other).x / width);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId) || event.type === "pointercancel") return;
    const { x, y } = placeOf(event);
    if (down.size === 0 && moved < CLICK_PIXELS) press(x, y);
  };
  picture.addEventListener("pointerup", up);
  picture.addEventListener("pointercancel", up);
  picture.addEventListener(
    "wheel",
    (event) => {
      // Else the page could not be scrolled past the picture. A pinch on a touch pad has the control key.
      if (!event.ctrlKey && document.activeElement !== picture) return;
      event.preventDefault();
      const { x, width } = placeOf(event);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) scrub(event.deltaX / width);
      else zoom(Math.exp(event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), x / width);
    },
    { passive: false },
  );
  picture.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (key(event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key)) event.preventDefault();
  });
}

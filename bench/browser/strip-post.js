// @ts-check
// Gives strips to a page by postMessage, which transfers them.
import { drawStrip } from "./strip.js";

self.onmessage = ({ data: { frame, strip } }) => {
  const pixels = drawStrip(frame, strip);
  postMessage({ strip, pixels }, { transfer: [pixels.buffer] });
};

// @ts-check
// The same by postMessage: two workers with a channel between them. A block is copied, as the structured clone does it.
import { BARRIERS, BLOCK_BYTES, WARM_BARRIERS } from "./sizes.js";

/** @param {{ data: { port: MessagePort, leads: boolean, milliseconds: number } }} event */
self.onmessage = ({ data: { port, leads, milliseconds } }) => void measure(port, leads, milliseconds);

/** @type {(port: MessagePort, leads: boolean, milliseconds: number) => Promise<void>} */
async function measure(port, leads, milliseconds) {
  /** @type {unknown[]} */
  const come = [];
  let wake = () => {};
  port.onmessage = ({ data }) => {
    come.push(data);
    wake();
  };
  const next = async () => {
    while (come.length === 0) {
      await /** @type {Promise<void>} */ (
        new Promise((resolve) => {
          wake = resolve;
        })
      );
    }
    return come.shift();
  };
  let bytesPerSecond = 0;
  if (leads) {
    const block = new Uint8Array(BLOCK_BYTES);
    const start = performance.now();
    let blocks = 0;
    for (; performance.now() - start < milliseconds; blocks++) {
      port.postMessage(block);
      await next();
    }
    bytesPerSecond = (1000 * blocks * BLOCK_BYTES) / (performance.now() - start);
    port.postMessage("over");
  } else while ((await next()) !== "over") port.postMessage(0);
  let start = 0;
  for (let i = -WARM_BARRIERS; i < BARRIERS; i++) {
    if (i === 0) start = performance.now();
    port.postMessage(0);
    await next();
  }
  if (leads) postMessage({ bytesPerSecond, barrierUs: (1000 * (performance.now() - start)) / BARRIERS });
}

// @ts-check
// The same race by postMessage: two workers with a channel between them.
import { BALL, ITEM } from "./ids.js";

const WINDOW = 64;

/** @param {{ data: { port: MessagePort, leads: boolean, milliseconds: number } }} event */
self.onmessage = ({ data: { port, leads, milliseconds } }) => {
  if (leads) void lead(port, milliseconds);
  else answer(port);
};

/** @param {MessagePort} port */
function answer(port) {
  let items = 0;
  port.onmessage = ({ data }) => {
    if (data?.[0] === BALL) port.postMessage(data);
    else if (++items % WINDOW === 0) port.postMessage(null);
  };
}

/** @type {(port: MessagePort, milliseconds: number) => Promise<void>} */
async function lead(port, milliseconds) {
  /** @type {() => void} */
  let caught = () => {};
  port.onmessage = () => caught();
  const next = () =>
    /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        caught = resolve;
      })
    );
  const ball = Uint8Array.of(BALL, 0, 0, 0, 0, 0, 0, 0);
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const latencies = [];
    const report = performance.now() + 40;
    while (performance.now() < report) {
      const start = performance.now();
      port.postMessage(ball);
      await next();
      latencies.push(((performance.now() - start) * 1e6) / 2);
    }
    postMessage({ latencies: Float32Array.from(latencies) });
  }
  const item = Uint8Array.of(ITEM, 0, 0, 0, 0, 0, 0, 0);
  for (let part = 0; part < 5; part++) {
    const start = performance.now();
    let windows = 0;
    while (performance.now() - start < milliseconds / 5) {
      for (let i = 0; i < WINDOW; i++) port.postMessage(item);
      await next();
      windows++;
    }
    postMessage({ rate: (windows * WINDOW * 1000) / (performance.now() - start) });
  }
  postMessage({ done: true });
}

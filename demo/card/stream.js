// @ts-check
import { SUCCESS } from "pamir";
import { ANSWER, ITEM } from "./ids.js";

const WINDOW = 64;

/**
 * One way: windows of 64 messages of 8 bytes, an answer to each. Task 1 calls what is returned: messages a second, in so
 * many milliseconds.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {import("pamir").Endpoint} peer
 */
export function stream(client, context, peer) {
  const item = new Uint8Array(8);
  let items = 0;
  let answers = 0;
  context.dispatch(ITEM, () => {
    if (++items % WINDOW === 0) context.sendImmediate(peer, ANSWER);
  });
  context.dispatch(ANSWER, () => {
    answers++;
  });
  return async (/** @type {number} */ milliseconds) => {
    const start = performance.now();
    let windows = 0;
    while (performance.now() - start < milliseconds) {
      const wanted = answers + 1;
      for (let i = 0; i < WINDOW; i++) {
        // There is room for a window: each is answered.
        if (context.sendImmediate(peer, ITEM, null, item) !== SUCCESS) throw new Error("no room for a window");
      }
      if (client.capabilities.blockingWaits) context.advanceUntil(() => answers === wanted);
      else while (answers < wanted) await context.progress();
      windows++;
    }
    return (windows * WINDOW * 1000) / (performance.now() - start);
  };
}

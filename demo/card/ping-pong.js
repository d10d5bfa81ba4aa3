// @ts-check
import { BALL } from "./ids.js";

/**
 * Two tasks hand 8 bytes to each other. Task 1 calls what is returned: half a round trip in ns, the mean of `turns`.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {import("pamir").Endpoint} peer
 */
export function pingPong(client, context, peer) {
  const ball = new Uint8Array(8);
  let caught = 0;
  context.dispatch(BALL, () => {
    caught++;
    if (client.task === 2) context.sendImmediate(peer, BALL, null, ball);
  });
  return async (/** @type {number} */ turns) => {
    const start = performance.now();
    for (let turn = 1; turn <= turns; turn++) {
      const wanted = caught + 1;
      context.sendImmediate(peer, BALL, null, ball);
      if (client.capabilities.blockingWaits) context.advanceUntil(() => caught === wanted);
      else while (caught < wanted) await context.progress();
    }
    return ((performance.now() - start) * 1e6) / (2 * turns);
  };
}

// Waiting for packets between real sockets of this thread.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Waits until nothing has come or gone for a while. `counts` gives what has been sent and received so far. */
export function settler(counts: () => { readonly sent: number; readonly received: number }): () => Promise<void> {
  /** Packets that were sent and did not come. */
  let lost = 0;
  return async () => {
    for (let turns = 0; turns < 4; turns++) await nextTurn();
    let [before, since, quiet] = [-1, 0, 0];
    const underWay = (): number => counts().sent - counts().received;
    // Both a time and turns: this process may not run for a while.
    while (underWay() !== lost && (quiet < 100 || performance.now() - since < 40)) {
      await nextTurn();
      quiet++;
      // As many may come as are sent.
      const now = counts().sent + counts().received;
      if (now !== before) [before, since, quiet] = [now, performance.now(), 0];
    }
    lost = underWay();
    for (let turns = 0; turns < 4; turns++) await nextTurn();
  };
}

// @ts-check
// The other side of the tests of the engine thread.
import { busy } from "./busy.js";
import { DATA, OTHER, PATIENCE, QUIT, RESULT, raise, runScenario, until } from "./support.js";

await runScenario({
  /**
   * Does everything to task 0, as often as it is told to: on each of its contexts, to that one's of the same number, or to
   * its `peer`.
   */
  busy(client, { seed, contexts: count = 1, peer, counts, flags }) {
    const contexts = Array.from({ length: count }, () => client.createContext());
    const [first] = /** @type {[import("pamir").Context]} */ (contexts);
    const to = (/** @type {number} */ i) => client.endpoint(0, peer === "task" ? client.task - 1 : (peer ?? i));
    const sides = contexts.map((context, i) => busy(client, context, to(i), seed + i));
    let [rounds, done, running] = [0, 0, true];
    first.dispatch(DATA, () => {
      rounds++;
    });
    first.dispatch(QUIT, () => {
      running = false;
    });
    /** @param {unknown} value */
    const tell = (value) => {
      let isSent = false;
      const payload = new TextEncoder().encode(JSON.stringify(value));
      const onLocal = () => {
        isSent = true;
      };
      first.send({ to: to(0), dispatch: RESULT, payload, onLocal });
      until(first, () => isSent);
    };
    /** @param {() => boolean} condition */
    const wait = (condition) => {
      // Who sleeps does so in one of them.
      if (count === 1) until(first, condition);
      else for (const end = performance.now() + PATIENCE; !condition() && performance.now() < end; ) client.advance();
    };
    raise(flags, 10);
    for (;;) {
      wait(() => rounds > done || !running);
      if (!running) break;
      for (const side of sides) side.begin(counts[done]);
      wait(() => sides.every((side) => side.isOver()));
      done++;
      for (const side of sides) side.checkWords();
      tell(sides.map(({ seen }) => seen));
    }
    for (const side of sides) side.close();
    client.close();
  },

  /** Puts eight bytes into task 0's region when it is told so, behind some that are not done in the call, and says when. */
  brief(client, { flags }) {
    const context = client.createContext();
    const local = client.createRegion(8192);
    let running = true;
    context.dispatch(QUIT, () => {
      running = false;
    });
    context.dispatch(OTHER, ({ payload }) => {
      const [remote = 0] = new Float64Array(payload.slice().buffer);
      const to = client.endpoint(0);
      context.put({ to, local, remote, bytes: 5000 });
      context.put({ to, local, remote, bytes: 8, onRemote: () => context.sendImmediate(to, RESULT) });
    });
    raise(flags, 10);
    until(context, () => !running, 2 ** 31);
  },
});

// @ts-check
// A task of which one context closes and another goes on.
import { SUCCESS } from "pamir";
import { churn } from "./churn.js";
import { DATA, OTHER, QUIT, RESULT, runScenario } from "./support.js";

await runScenario({
  /** Context 1 sends its last words when it is told to, and closes: in the handler, or in a turn of its own. */
  doomed(client, { words, bytes = 0, inHandler = true }) {
    const context = client.createContext();
    const doomed = client.createContext({ pendingBytes: 2 ** 20 });
    let running = true;
    let isTold = false;
    context.dispatch(QUIT, () => {
      running = false;
    });
    context.dispatch(OTHER, ({ origin }) => {
      const region = client.createRegion(64);
      region.bytes.fill(0);
      context.sendImmediate(origin, RESULT, null, new Float64Array([region.handle]));
    });
    doomed.dispatch(DATA, () => new Promise(() => {}));
    doomed.dispatch(OTHER, ({ origin }) => {
      for (let i = 0; i < words; i++) {
        const result = doomed.sendImmediate(origin, DATA, Int32Array.of(i));
        if (result !== SUCCESS) throw new Error(`word ${i} came to ${result}`);
      }
      // More than any lane holds: it breaks off.
      if (bytes > 0) doomed.send({ to: origin, dispatch: OTHER, payload: new Uint8Array(bytes), onLocal: () => {} });
      isTold = true;
      if (inHandler) doomed.close();
    });
    context.advanceUntil(() => {
      if (!doomed.closed) doomed.advance();
      if (isTold) doomed.close();
      return !running;
    });
  },

  /** Contexts come and go at random; then it goes on with what is for its first one. */
  churn(client, { flags, seeds, most }) {
    const { context, seen } = churn(client, flags, seeds[client.task], most);
    if (seen.wrong > 0) throw new Error(`task ${client.task}: ${seen.wrong} wrong, ${seen.why}`);
    context.advanceUntil(() => false);
  },
});

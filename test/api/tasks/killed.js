// @ts-check
// Tasks in the midst of chaos: some are killed, others go on.
import { Script } from "node:vm";
import { chaos, STOP } from "./chaos.js";
import { runScenario } from "./support.js";

/** @type {Record<string, () => void>} */
const DEATHS = {
  throw() {
    throw new Error("dies");
  },
  exit() {
    process.exit(9);
  },
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
};

await runScenario({
  /** Lives until it is killed, in the way and at the time that it is given. */
  async victim(client, { seed, how, lifetime, flags }) {
    const context = client.createContext();
    const { step } = chaos(client, context, seed);
    const forever = () => {
      for (let i = 0; ; i++) {
        step(Atomics.load(flags, 1));
        if (i % 3 === 0) context.advance();
      }
    };
    if (how === "parked" || how === "asleep") {
      const end = performance.now() + lifetime;
      while (performance.now() < end) {
        step(Atomics.load(flags, 1));
        context.advance();
      }
      // Until it is terminated.
      if (how === "parked") context.advanceUntil(() => false);
      for (;;) await context.progress();
    }
    Object.assign(globalThis, { forever });
    // A timeout of the vm ends this thread's execution between any two steps of JavaScript, inside of pamir too.
    try {
      new Script("forever()").runInThisContext({ timeout: how === "terminate" ? 60_000 : lifetime });
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    }
    DEATHS[how]?.();
  },

  /** Goes on until it is told to stop, awake, parked, and asleep; then tells what it has seen. */
  async survivor(client, { seed, flags }) {
    const context = client.createContext();
    const { step, seen, finish, leave } = chaos(client, context, seed);
    let isStopped = false;
    context.dispatch(STOP, () => {
      isStopped = true;
    });
    for (let i = 0; !isStopped; i++) {
      step(Atomics.load(flags, 1));
      if (i % 2000 === 0) context.advanceUntil(() => false, { timeout: 3 });
      else if (i % 500 === 0) await context.progress({ timeout: 3 }).catch(() => {});
      else if (i % 3 === 0) context.advance();
    }
    await finish();
    // The other one may have sent something still.
    const until = performance.now() + 200;
    while (performance.now() < until) await context.progress({ timeout: 20 }).catch(() => {});
    await leave();
    const payload = new TextEncoder().encode(JSON.stringify(seen));
    context.send({ to: client.endpoint(0), dispatch: STOP, payload });
    await client.close({ drain: true });
  },
});

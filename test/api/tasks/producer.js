// @ts-check
// A task that sends a number of messages, and ends in its way. Of several tasks, each has its own.
import { SUCCESS } from "pamir";
import { COUNT, DATA, OTHER, QUIT, runScenario } from "./support.js";

await runScenario({
  async send(client, { ends, count, bytes }) {
    const context = client.createContext();
    let isToEnd = false;
    context.dispatch(QUIT, () => {
      isToEnd = true;
    });
    for (let i = 0; i < count; i++) {
      const payload = new Uint8Array(bytes).fill(client.task);
      // Of which one is larger than a lane, and goes by another way.
      const result = context.sendSync({ to: 0, dispatch: DATA, payload: i === 1 ? new Uint8Array(200_000) : payload });
      if (result !== SUCCESS) throw new Error(`message ${i} came to ${result}`);
    }
    const how = ends[client.task];
    if (how === "close") return client.close({ drain: true });
    await context.drain();
    if (how === "context") context.close();
    if (how === "return") return;
    if (how === "exit") process.exit(3);
    if (how === "throw") throw new RangeError("in the middle of it");
    // The others go on.
    const last = client.createContext();
    while (!isToEnd) await last.progress();
  },

  /** Sends each message's first word back, and rests now and then. */
  async echo(client, { count }) {
    const context = client.createContext();
    let echoed = 0;
    for await (const { origin, payload } of context.messages(DATA)) {
      await context.sendWhenRoom({ to: origin, dispatch: DATA, payload: payload.subarray(0, 4) });
      if (echoed++ % 32 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      if (echoed === count) break;
    }
    await client.close({ drain: true });
  },

  /** Has three handlers, and says so when it is told to. */
  async ready(client) {
    const context = client.createContext();
    context.dispatch(COUNT, () => Uint8Array.of(7));
    context.dispatch(OTHER, () => undefined);
    context.dispatch(QUIT, () => context.ready());
    while (!context.closed) await context.progress();
  },

  /** Reads nothing, and ends. */
  deaf(client) {
    client.createContext();
    setTimeout(() => process.exit(3), 300);
  },
});

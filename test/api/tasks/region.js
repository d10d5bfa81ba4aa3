// @ts-check
// The other side of the tests of one-sided operations: owns a region, and does to it what it is told.
import { DATA, OTHER, QUIT, report, runScenario, until } from "./support.js";

await runScenario({
  /** Tells the handle of its region; then 1: closes it, 2: closes it and makes another one, 3: tells what it holds. */
  own(client, { bytes, fill = 0 }) {
    const context = client.createContext();
    let region = client.createRegion(bytes);
    region.bytes.fill(fill);
    let order = 0;
    let running = true;
    context.dispatch(OTHER, (message) => {
      order = message.getUint8(0);
    });
    context.dispatch(QUIT, () => {
      running = false;
    });
    report(client, context, region.handle);
    for (;;) {
      until(context, () => order !== 0 || !running, 2 ** 31);
      if (!running) return;
      const told = order;
      order = 0;
      if (told < 3) region.close();
      if (told === 2) {
        region = client.createRegion(bytes);
        region.bytes.fill(fill);
      }
      report(client, context, told === 3 ? [...region.bytes] : region.handle);
    }
  },

  /** Told a handle of task 0, changes words of that region `rounds` times each, and says so. */
  add(client, { rounds }) {
    const context = client.createContext();
    const to = client.endpoint(0);
    let remote = -1;
    context.dispatch(DATA, (message) => {
      remote = new Float64Array(message.payload.slice().buffer)[0] ?? -1;
    });
    until(context, () => remote >= 0);
    for (let i = 0; i < rounds; i++) {
      context.rmw({ to, remote, operation: "add", value: 1 });
      context.rmw({ to, remote, remoteOffset: 8, operation: "add", type: "i64", value: 2 ** 31 });
      context.rmw({ to, remote, remoteOffset: 16, operation: "xor", value: 1 << (i & 31) });
    }
    report(client, context, "done");
  },

  /** Ends at once, with a region that is open. */
  die(client, { bytes }) {
    const context = client.createContext();
    report(client, context, client.createRegion(bytes).handle);
    process.exit(0);
  },
});

// @ts-check
// Owns a region, tells its handle and where it lies, and sleeps: what happens to the region, others do.
import { report, runScenario } from "./support.js";

await runScenario({
  keep(client, { bytes }) {
    const context = client.createContext();
    const region = client.createRegion(bytes);
    report(client, context, { handle: region.handle, offset: region.bytes.byteOffset });
    context.advanceUntil(() => false);
  },
});

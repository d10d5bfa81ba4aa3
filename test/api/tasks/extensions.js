// @ts-check
// Tasks that use what is built upon geometries.
import { count, exchangeUntilDeath, rotate, scatterUpdates } from "../../conformance/tasks/members.js";
import { PATIENCE, runScenario } from "./support.js";

const OPTIONS = { timeout: PATIENCE };

await runScenario({
  all: async (client) => {
    const world = await client.world(OPTIONS);
    await rotate(world);
    await count(world, false);
    await count(world, true);
    await scatterUpdates(world);
    await world.barrier(OPTIONS);
  },
  dies: async (client) => {
    await exchangeUntilDeath(await client.world(OPTIONS));
  },
});

// @ts-check
// Tasks that begin active messages of geometries, and answer those of others.
import { askAcross, askInTurn } from "../../conformance/tasks/members.js";
import { PATIENCE, runScenario } from "./support.js";

await runScenario({
  active: async (client) => {
    const contexts = [client.createContext(), client.createContext()];
    await askInTurn(await client.world({ timeout: PATIENCE }));
    await askAcross(client, contexts);
  },
});

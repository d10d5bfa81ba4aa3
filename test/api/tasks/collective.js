// @ts-check
// Members of a geometry: each runs the cases of the job, sends what it has got to task 0, and ends.
import { guarded, parametersOf } from "../../conformance/tasks/collective-case.js";
import { PATIENCE, RESULT, runScenario, until } from "./support.js";

await runScenario({
  async cases(client, { cases, members }) {
    const context = client.createContext();
    const geometry = await client.createGeometry(members, { timeout: PATIENCE });
    const { rank, size } = geometry;
    for (const one of cases) {
      const memory = guarded(one, client);
      const { parameters, received } = parametersOf(one, rank, size, memory.take);
      const call = /** @type {any} */ (geometry)[`${one.type}Sync`];
      const options = { timeout: PATIENCE };
      const result = one.type === "barrier" ? geometry.barrierSync(options) : call.call(geometry, parameters, options);
      let isSent = false;
      context.send({
        to: client.endpoint(0),
        dispatch: RESULT,
        header: Int32Array.of(rank, result, Number(memory.isWhole())),
        payload: received?.bytes.slice() ?? new Uint8Array(0),
        onLocal: () => {
          isSent = true;
        },
      });
      until(context, () => isSent);
      memory.close();
    }
  },
});

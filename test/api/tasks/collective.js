// @ts-check
// Members of a geometry: each runs the cases of the job, sends what it has got to task 0, and ends.
import { guarded, parametersOf } from "../../conformance/tasks/collective-case.js";
import { makeBlocking } from "../../conformance/tasks/members.js";
import { Traffic } from "../../conformance/tasks/traffic.js";
import { randomFrom } from "./random.js";
import { DATA, PATIENCE, RESULT, report, runScenario, until } from "./support.js";

await runScenario({
  async makes(client) {
    const context = client.createContext();
    report(client, context, await makeBlocking(client));
  },
  async cases(client, { cases, members, seed }) {
    const context = client.createContext();
    const endpoints = members.map((/** @type {number} */ task) => client.endpoint(task));
    const rank = members.indexOf(client.task);
    const traffic = new Traffic(context, DATA, endpoints, rank);
    const { below } = randomFrom(seed + rank);
    const geometry = await client.createGeometry(members, { timeout: PATIENCE });
    const { size } = geometry;
    for (const [place, one] of cases.entries()) {
      // Behind the last case, it ends at once.
      if (place < cases.length - 1) traffic.send(below);
      else {
        until(context, () => traffic.isOver());
        if (traffic.wrong.length > 0) throw new Error(traffic.wrong.join("\n"));
      }
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

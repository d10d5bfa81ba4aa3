// Active messages of geometries between threads, processes and nodes; geometries of several contexts of each task, with ids.
import { expect, it } from "vitest";
import { askAcross, askInTurn } from "../conformance/tasks/members.js";
import { LINKED_VARIANTS, PATIENCE, withJob } from "./support.js";

it.each(LINKED_VARIANTS)("$name: each member begins active messages, blocking and not", (variant) =>
  withJob(variant, { tasks: 3, contexts: 2, module: "active.js", scenario: "active" }, async (given) => {
    const { client, context } = given;
    const contexts = [context, client.createContext()];
    expect(await askInTurn(await client.world({ timeout: PATIENCE }))).toEqual({ heard: 22, gathered: [0, 1, 2] });
    const sums = [7, 7, 8, 8].map((id) => [15, 6 * id]);
    expect(await askAcross(client, contexts)).toEqual(sums);
    client.close();
    expect((await given.job.exited).map(({ code }) => code)).toEqual([0, 0]);
  }),
);

// Geometries that are made by calls that block: all members are threads or processes of their own.
import type { Message } from "pamir";
import { describe, expect, it } from "vitest";
import { makeBlocking } from "../conformance/tasks/members.js";
import { contextsOf, geometryOf } from "../support/collective-rig.js";
import { LINKED_VARIANTS, PATIENCE, RESULT, thrownBy, until, withJob } from "./support.js";

const CHOSEN = LINKED_VARIANTS.filter(({ memoryBase }) => memoryBase === undefined);
const TASKS = 4;

it.each(CHOSEN.map((variant) => [variant.name, variant] as const))(
  "%s: createGeometrySync, splitSync and shrinkSync give what their promises do",
  (_, variant) =>
    withJob(variant, { tasks: TASKS, module: "collective.js", scenario: "makes" }, async ({ client, context }) => {
      const told: { rank: number }[] = [];
      context.dispatch(RESULT, (message: Message) => {
        told.push(JSON.parse(new TextDecoder().decode(message.payload)));
      });
      const own = await makeBlocking(client);
      until(context, () => told.length === TASKS - 1);
      // This thread may have the code of geometries from another test.
      const all = [...told, { ...own, refused: "PAMIR_WOULD_BLOCK" }].sort((one, other) => one.rank - other.rank);
      const made = { refused: "PAMIR_WOULD_BLOCK", none: true };
      expect(all).toEqual([
        { ...made, rank: 0, half: [2, 0], left: 3 },
        { ...made, rank: 1, half: [3, 1], left: 3 },
        { ...made, rank: 2, half: [2, 0], left: 3 },
        { ...made, rank: 3, half: [3, 1], left: 0 },
      ]);
    }),
);

describe("a blocking call that gives up", () => {
  it("names who is awaited, throws what handlers threw after it, and shrink() goes on from there", async () => {
    const given = await contextsOf(3, "wasm");
    try {
      const [one, two, three] = await geometryOf(given);
      if (one === undefined || two === undefined || three === undefined) throw new Error("three members");
      const [first, second] = given.members;
      const late = { timeout: 20 };
      first?.context.dispatch(1, () => {
        throw new RangeError("thrown by a handler");
      });
      second?.context.sendImmediate(one.endpoint(0), 1, null, null);
      expect(thrownBy(() => one.splitSync(0, 0, late))).toMatchObject({
        code: "PAMIR_TIMEDOUT",
        text: expect.stringMatching(/^splitSync\(\) of rank 0 still waits for rank [12] \(.*\)/),
      });
      expect(() => first?.context.advance()).toThrow("thrown by a handler");
      const members = [one.endpoint(0), one.endpoint(1)];
      const made = () => first?.client.createGeometrySync(members, { context: first.context, ...late });
      expect(thrownBy(made)).toMatchObject({
        code: "PAMIR_TIMEDOUT",
        text: expect.stringMatching(/^createGeometrySync\(\) waits for /),
      });
      three.close();
      expect(thrownBy(() => one.shrinkSync(late))).toMatchObject({
        code: "PAMIR_TIMEDOUT",
        text: expect.stringMatching(/^shrinkSync\(\) of rank 0 still waits for rank 1 /),
      });
      const left = await Promise.all([one, two].map((each) => each.shrink({ timeout: PATIENCE })));
      expect(left.map(({ size, rank }) => [size, rank])).toEqual([
        [2, 0],
        [2, 1],
      ]);
    } finally {
      await given.close();
    }
  });
});

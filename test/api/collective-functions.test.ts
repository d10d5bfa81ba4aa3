// Functions of the user's that throw: the operation fails at all members, wherever they are, and the next one works.
import { expect, it } from "vitest";
import { type CollectiveType, ERROR, type Geometry, type UserOperation } from "../../src/index.js";
import { geometryOf, settled } from "../support/collective-rig.js";
import { portsOf, RIGS } from "../support/collective-rigs.js";
import { PATIENCE } from "./support.js";

const OPTIONS = { timeout: PATIENCE };
/** In a slot; in a message; in one that waits for its receiver. */
const LENGTHS = [1, 40, 5000];
const TYPES = ["reduce", "allreduce", "scan", "reduceScatter"] as const satisfies readonly CollectiveType[];

interface Reductions {
  readonly [type: string]: (parameters: object, options: object) => Promise<unknown>;
}

it.each(RIGS)(
  "%s, %i members: fail for all, or for none, and the error is the cause where it was thrown",
  async (_, size, rig) => {
    const given = await rig(size);
    try {
      const geometries = await geometryOf(given);
      let throws = 0;
      for (const type of TYPES) {
        const names = (geometries[0] as Geometry).algorithms(type).filter(({ always }) => always);
        for (const { name: algorithm } of names) {
          for (const length of LENGTHS) {
            for (const odd of [0, 1, size - 1]) {
              const thrown = new Map<number, Error>();
              const begin = (geometry: Geometry): Promise<unknown> => {
                const { rank } = geometry;
                const combine = (left: Int32Array, right: Int32Array, out: Int32Array): void => {
                  if (rank === odd) {
                    const error = new RangeError(`no sum at rank ${rank}`);
                    thrown.set(rank, error);
                    throw error;
                  }
                  for (let at = 0; at < out.length; at++) out[at] = (left[at] as number) + (right[at] as number);
                };
                const operation: UserOperation<Int32Array> = { combine, commutative: length === 40 };
                const send = new Int32Array(type === "reduceScatter" ? size * length : length);
                const root = type === "reduce" ? { root: size - 1 } : {};
                const reductions = geometry as unknown as Reductions;
                return (reductions[type] as Reductions[string]).call(
                  geometry,
                  { send, operation, algorithm, ...root },
                  OPTIONS,
                );
              };
              const results = await settled(given, geometries.map(begin));
              const what = `${type} by ${algorithm}, ${length} elements, rank ${odd} throws`;
              if (thrown.size === 0) {
                // Its function was not called.
                expect(
                  results.map(({ status }) => status),
                  what,
                ).not.toContain("rejected");
                continue;
              }
              throws++;
              for (const [rank, result] of results.entries()) {
                expect(result.status, `${what}: rank ${rank}`).toBe("rejected");
                const { reason } = result as PromiseRejectedResult;
                expect(reason, what).toMatchObject({ code: "PAMIR_COLLECTIVE" });
                expect(reason.cause, `${what}: rank ${rank}`).toBe(thrown.get(rank));
                if (rank === odd) expect(reason.message).toContain("RangeError: no sum");
              }
            }
          }
        }
      }
      expect(throws).toBeGreaterThan(TYPES.length);
      const sums = await settled(
        given,
        geometries.map((geometry) => geometry.allreduce({ send: Int32Array.of(1), operation: "sum" }, OPTIONS)),
      );
      for (const result of sums) expect(result).toEqual({ status: "fulfilled", value: Int32Array.of(size) });
    } finally {
      await given.close();
    }
  },
);

it("onDone gets ERROR everywhere", async () => {
  const given = portsOf(3);
  try {
    const geometries = await geometryOf(given);
    const results = await settled(
      given,
      geometries.map(
        (geometry) =>
          new Promise((onDone) => {
            const combine = (): void => {
              throw new Error("no");
            };
            const both = { send: Int32Array.of(1), receive: new Int32Array(1) };
            geometry.collective("scan", { ...both, operation: { combine }, onDone: (_, result) => onDone(result) });
          }),
      ),
    );
    expect(results.map((result) => result.status === "fulfilled" && result.value)).toEqual([ERROR, ERROR, ERROR]);
  } finally {
    await given.close();
  }
});

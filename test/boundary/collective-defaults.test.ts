// Where the default algorithm of a collective operation changes: at each limit, one byte or member below it, and one above.
import { describe, expect, it } from "vitest";
import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import type { GeometryCore } from "../../src/collective/geometry-core.js";
import type { Reducer } from "../../src/collective/operation.js";
import type { CollectiveType } from "../../src/collective/operations.js";
import { type CollectiveRequest, defaultAlgorithm } from "../../src/collective/select.js";
import { FLAT_MEMBERS } from "../../src/collective/shared/shared-steps.js";
import * as limits from "../../src/collective/tuning.js";

/** Where the members are. */
const PLACES = {
  "one memory": { isShared: true },
  nodes: {},
  /** Some members share a node, and partial sums of nodes keep the order of a reduction, or do not. */
  "two levels in order": { hasLevels: true, keepsOrder: true },
  "two levels": { hasLevels: true },
} as const;
type Place = keyof typeof PLACES;

/** The default for a reduction whose order matters, or another operation. */
function defaultOf(type: CollectiveType, bytes: number, size: number, place: Place, isUser = false): string {
  const reducer: Partial<Reducer> = { isUser };
  const request: Partial<CollectiveRequest> = { type, bytes, reducer: reducer as Reducer, isOrdered: true };
  const none = { isShared: false, hasLevels: false, keepsOrder: false };
  const geometry = { ...none, ...PLACES[place], size, shared: { size } } as Partial<GeometryCore>;
  return defaultAlgorithm(request as CollectiveRequest, geometry as GeometryCore).name;
}

type InBytes = Exclude<keyof typeof limits, "ALLTOALL_MEMBERS" | "BROADCAST_MEMBERS">;

const ROWS: readonly [InBytes, CollectiveType, size: number, Place, upTo: string, above: string][] = [
  ["BROADCAST_SHORT", "broadcast", limits.BROADCAST_MEMBERS, "nodes", "binomial", "binomial"],
  ["BROADCAST_SHORT", "broadcast", 5, "nodes", "binomial", "scatter-ring"],
  ["BROADCAST_SHORT", "broadcast", 5, "two levels", "leaders", "scatter-ring"],
  ["REDUCE_SHORT", "reduce", 2, "nodes", "binomial", "rabenseifner"],
  ["REDUCE_SHORT", "reduce", 4, "two levels", "binomial", "rabenseifner"],
  ["REDUCE_SHORT", "reduce", 4, "two levels in order", "leaders", "leaders"],
  ["ALLREDUCE_SHORT", "allreduce", 2, "nodes", "recursive-doubling", "rabenseifner"],
  ["ALLREDUCE_SHORT", "allreduce", 4, "two levels", "recursive-doubling", "rabenseifner"],
  ["ALLREDUCE_SHORT", "allreduce", 4, "two levels in order", "leaders", "leaders"],
  ["OPERANDS_SHORT", "reduce", 4, "two levels", "leaders-operands", "binomial"],
  ["OPERANDS_SHORT", "reduce", 4, "two levels in order", "leaders", "leaders"],
  ["OPERANDS_SHORT", "allreduce", 4, "two levels", "leaders-operands", "recursive-doubling"],
  ["OPERANDS_SHORT", "allreduce", 4, "two levels in order", "leaders", "leaders"],
  ["REDUCE_SCATTER_SHORT", "reduceScatter", 3, "nodes", "halving", "pairwise"],
  ["GATHER_SHORT", "gather", 3, "nodes", "binomial", "linear"],
  ["GATHER_SHORT", "scatter", 3, "nodes", "binomial", "linear"],
  ["ALLGATHER_SHORT", "allgather", 3, "nodes", "bruck", "ring"],
  ["ALLGATHER_SHORT", "allgather", 4, "nodes", "recursive-doubling", "ring"],
  ["ALLGATHER_SHORT", "allgather", 4, "two levels", "leaders", "ring"],
  ["ALLTOALL_SHORT", "alltoall", limits.ALLTOALL_MEMBERS, "nodes", "bruck", "pairwise"],
  ["FLAT_SHORT", "reduce", 3, "one memory", "flat", "slices"],
  ["FLAT_SHORT", "allreduce", FLAT_MEMBERS, "one memory", "flat", "slices"],
];

describe("the default changes at a limit in bytes", () => {
  it.each(ROWS)("%s: %s of %i members, %s: %s, above %s", (name, type, size, place, upTo, above) => {
    const { [name]: limit } = limits;
    const found = [limit - 1, limit, limit + 1].map((bytes) => defaultOf(type, bytes, size, place));
    expect(found).toEqual([upTo, upTo, above]);
  });

  it("each limit has a row", () => {
    const inBytes = Object.keys(limits).filter((name) => !name.endsWith("_MEMBERS"));
    expect(new Set(ROWS.map(([name]) => name))).toEqual(new Set(inBytes));
  });

  it("what is reduced flat fits into slots", () => {
    expect(limits.FLAT_SHORT).toBeLessThanOrEqual(MEMBER_INLINE_BYTES);
  });
});

describe("the default changes at a number of members", () => {
  it("ALLTOALL_MEMBERS: pairwise below, bruck from it on", () => {
    const { ALLTOALL_MEMBERS: limit } = limits;
    const found = [limit - 1, limit, limit + 1].map((size) => defaultOf("alltoall", 8, size, "nodes"));
    expect(found).toEqual(["pairwise", "bruck", "bruck"]);
  });

  it("BROADCAST_MEMBERS: binomial up to it, scatter-ring above, of many bytes", () => {
    const { BROADCAST_MEMBERS: limit, BROADCAST_SHORT } = limits;
    const sizes = [limit - 1, limit, limit + 1];
    const found = sizes.map((size) => defaultOf("broadcast", BROADCAST_SHORT + 1, size, "nodes"));
    expect(found).toEqual(["binomial", "binomial", "scatter-ring"]);
  });

  it.each(["reduce", "allreduce"] as const)("FLAT_MEMBERS: flat up to it, slices above: %s", (type) => {
    const sizes = [FLAT_MEMBERS - 1, FLAT_MEMBERS, FLAT_MEMBERS + 1];
    expect(sizes.map((size) => defaultOf(type, 8, size, "one memory"))).toEqual(["flat", "flat", "slices"]);
  });
});

it("a function of the user's is never called by each member for all: slices, also of few bytes", () => {
  expect(defaultOf("allreduce", 8, 2, "one memory", true)).toBe("slices");
});

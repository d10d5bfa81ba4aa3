// Geometries made of others, and several of the same members: who is in them, in which order.
import { describe, expect, it } from "vitest";
import type { Geometry } from "../../src/index.js";
import { contextsOf, geometryOf, type Member, type Members, settled } from "../support/collective-rig.js";
import { nodesOf, portsOf } from "../support/collective-rigs.js";
import { byEffort } from "../support/effort.js";
import { type Mortal, MortalJob } from "../support/mortal-members.js";
import { SEED } from "../support/seed.js";
import { PATIENCE, rejectionOf } from "./support.js";

const OPTIONS = { timeout: PATIENCE };

async function withMembers(given: Members, body: (geometries: Geometry[]) => Promise<void>): Promise<void> {
  try {
    await body(await geometryOf(given));
  } finally {
    await given.close();
  }
}

function valuesOf<T>(results: readonly PromiseSettledResult<T>[]): T[] {
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

function errorsOf(results: readonly PromiseSettledResult<unknown>[]): unknown[] {
  return results.map((result) => (result.status === "rejected" ? result.reason.code : result.value));
}

/** What each member's new geometry is: its rank, and the ranks that its members had. */
function shape(geometries: readonly Geometry[], made: readonly (Geometry | undefined)[]): unknown[] {
  const { endpoints } = geometries[0] as Geometry;
  return made.map((one) => one && [one.rank, one.endpoints.map((endpoint) => endpoints.indexOf(endpoint))]);
}

/** Each geometry works by itself: the sum of the old ranks of its members. */
async function expectSums(
  given: Members,
  geometries: readonly Geometry[],
  made: readonly (Geometry | undefined)[],
): Promise<void> {
  const { endpoints } = geometries[0] as Geometry;
  const there = made.flatMap((one) => one ?? []);
  const sums = await settled(
    given,
    there.map((one) => {
      const send = Int32Array.of(endpoints.indexOf(one.endpoints[one.rank] as number));
      return one.allreduce({ send, operation: "sum" }, OPTIONS);
    }),
  );
  const expected = there.map((one) =>
    Int32Array.of(one.endpoints.reduce((sum, endpoint) => sum + endpoints.indexOf(endpoint), 0)),
  );
  expect(valuesOf(sums)).toEqual(expected);
}

describe.each([
  ["contexts", (size: number) => contextsOf(size, "wasm")],
  ["ports", async (size: number) => portsOf(size)],
] as const)("split(), %s", (_, rig) => {
  it("equal keys keep the order of ranks, others change it; without a color, a member is in none", async () => {
    const given = await rig(6);
    await withMembers(given, async (geometries) => {
      const split = async (colorOf: (rank: number) => number | undefined, keyOf: (rank: number) => number) => {
        const calls = geometries.map((one) => one.split(colorOf(one.rank) as number, keyOf(one.rank), OPTIONS));
        const made: (Geometry | undefined)[] = valuesOf(await settled(given, calls));
        await expectSums(given, geometries, made);
        return shape(geometries, made);
      };
      expect(
        await split(
          (rank) => rank % 2,
          () => 7,
        ),
      ).toEqual([
        [0, [0, 2, 4]],
        [0, [1, 3, 5]],
        [1, [0, 2, 4]],
        [1, [1, 3, 5]],
        [2, [0, 2, 4]],
        [2, [1, 3, 5]],
      ]);
      expect(
        await split(
          () => 0,
          (rank) => -rank,
        ),
      ).toEqual([5, 4, 3, 2, 1, 0].map((rank) => [rank, [5, 4, 3, 2, 1, 0]]));
      expect(
        await split(
          (rank) => (rank < 4 ? undefined : 2 ** 31 - 1),
          (rank) => rank % 2,
        ),
      ).toEqual([...[0, 1, 2, 3].map(() => undefined), [0, [4, 5]], [1, [4, 5]]]);
      expect(
        await split(
          (rank) => rank,
          () => 0,
        ),
      ).toEqual([0, 1, 2, 3, 4, 5].map((rank) => [0, [rank]]));
      // Some keys are equal.
      expect(
        await split(
          () => 0,
          (rank) => (rank === 3 ? -1 : rank >> 2),
        ),
      ).toEqual([1, 2, 3, 0, 4, 5].map((rank) => [rank, [3, 0, 1, 2, 4, 5]]));
    });
  });
});

describe.each(["one memory", "ports"] as const)("a member ends during split(), %s", (carrier) => {
  it.each([0, 1, 2])(
    "rank %i: the others have a geometry that works or an error, and none waits for ever",
    async (rank) => {
      for (let end = 0; ; end += 7) {
        const job = new MortalJob(3, carrier);
        try {
          const endpoints = job.members.map(({ endpoint }) => endpoint);
          const made = await job.outcomes((member) => member.geometry(endpoints));
          const of = (member: Mortal): Geometry => made.get(member) as Geometry;
          const odd = job.members[rank] as Mortal;
          odd.end = odd.calls + end;
          const outcomes = await job.outcomes((member) => of(member).split(0));
          const hasEnded = odd.isDead;
          if (!odd.isDead) job.kill(odd);
          for (const [member, outcome] of outcomes) {
            if (member === odd) continue;
            if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN" });
            else expect(outcome.endpoints).toEqual(endpoints);
          }
          // The others go on without it.
          const left = await job.outcomes((member) => of(member).shrink());
          for (const geometry of left.values()) expect((geometry as Geometry).size).toBe(2);
          const halves = await job.outcomes((member) => (left.get(member) as Geometry).split(0, -member.number));
          for (const geometry of halves.values()) expect((geometry as Geometry).size).toBe(2);
          if (!hasEnded) return;
        } finally {
          await job.close();
        }
      }
    },
    60_000,
  );
});

describe("splitByNode()", () => {
  it.each([
    [3, 7],
    [4, 6],
    [1, 3],
  ])("nodes of up to %i tasks, %i members", async (tasksPerNode, size) => {
    const given = nodesOf(size, { tasksPerNode });
    await withMembers(given, async (geometries) => {
      const made = valuesOf(
        await settled(
          given,
          geometries.map((one) => one.splitByNode(OPTIONS)),
        ),
      );
      const ranks = geometries.map(({ rank }) => rank);
      expect(shape(geometries, made)).toEqual(
        ranks.map((rank) => {
          const first = rank - (rank % tasksPerNode);
          return [rank - first, ranks.slice(first, first + tasksPerNode)];
        }),
      );
      await expectSums(given, geometries, made);
    });
  });

  it("of members that share a memory is all of them", async () => {
    const given = await contextsOf(3, "wasm");
    await withMembers(given, async (geometries) => {
      const made = valuesOf(
        await settled(
          given,
          geometries.map((one) => one.splitByNode(OPTIONS)),
        ),
      );
      expect(shape(geometries, made)).toEqual([0, 1, 2].map((rank) => [rank, [0, 1, 2]]));
    });
  });

  it("keeps the order of ranks of a geometry that goes round the nodes", async () => {
    const given = nodesOf(4, { tasksPerNode: 2 });
    try {
      const geometries = await geometryOf(given, [3, 0, 2, 1]);
      const made = valuesOf(
        await settled(
          given,
          geometries.map((one) => one.splitByNode(OPTIONS)),
        ),
      );
      expect(shape(geometries, made)).toEqual([
        [0, [0, 2]],
        [0, [1, 3]],
        [1, [0, 2]],
        [1, [1, 3]],
      ]);
    } finally {
      await given.close();
    }
  });
});

describe.each([
  ["contexts", async () => contextsOf(4, "wasm")],
  ["ports", async () => portsOf(4)],
  ["nodes", async () => nodesOf(4)],
] as const)("a member closes the geometry instead of coming to what is made of it, %s", (_, rig) => {
  const members = [0, 1, 2, 3];

  it.each(members.flatMap((odd) => ["before", "after"].map((when) => [odd, when] as const)))(
    "rank %i, %s the others have come: they get SHUTDOWN from split(), and from shrink() a geometry without it",
    async (odd, when) => {
      const given = await rig();
      await withMembers(given, async (geometries) => {
        const others = geometries.filter(({ rank }) => rank !== odd);
        const one = geometries[odd] as Geometry;
        const close = (): void => one.close();
        if (when === "before") close();
        const own = one.closed ? [] : [one.allgather({ send: Int32Array.of(0, 0) }, OPTIONS).then(close)];
        const ends = await settled<unknown>(given, [...others.map((other) => other.split(0, 0, OPTIONS)), ...own]);
        expect(errorsOf(ends.slice(0, 3))).toEqual(members.slice(1).map(() => "PAMIR_SHUTDOWN"));
        const left = valuesOf(
          await settled(
            given,
            others.map((other) => other.shrink(OPTIONS)),
          ),
        );
        expect(shape(geometries, left)).toEqual(
          members.slice(1).map((_, i) => [i, members.filter((rank) => rank !== odd)]),
        );
        await expectSums(given, geometries, left);
      });
    },
  );

  it.each(members)("rank %i begins shrink(), gives up, and closes: the others go on without it", async (odd) => {
    const given = await rig();
    await withMembers(given, async (geometries) => {
      const others = geometries.filter(({ rank }) => rank !== odd);
      const one = geometries[odd] as Geometry;
      expect(await rejectionOf(one.shrink({ timeout: 5 }))).toMatchObject({ code: "PAMIR_TIMEDOUT" });
      one.close();
      const calls = others.map((other) => other.shrink(OPTIONS));
      const made = valuesOf(await settled(given, calls));
      expect(shape(geometries, made)).toEqual(
        members.slice(1).map((_, i) => [i, members.filter((rank) => rank !== odd)]),
      );
      await expectSums(given, geometries, made);
    });
  });
});

describe("splitByNode(), two nodes of three tasks", () => {
  it.each([3, 4, 5])(
    "rank %i closes the geometry instead of coming: its node gets SHUTDOWN, the other one its geometry",
    async (odd) => {
      const given = nodesOf(6, { tasksPerNode: 3 });
      await withMembers(given, async (geometries) => {
        const calls = geometries.map(async (one) => {
          if (one.rank !== odd) return one.splitByNode(OPTIONS);
          one.close();
          return undefined;
        });
        const ends = await settled(given, calls);
        const made = ends.slice(0, 3).map((end) => (end.status === "fulfilled" ? end.value : undefined));
        expect(shape(geometries, made)).toEqual([0, 1, 2].map((rank) => [rank, [0, 1, 2]]));
        const awaiting = ends.slice(3).filter((_, i) => i + 3 !== odd);
        expect(errorsOf(awaiting)).toEqual(["PAMIR_SHUTDOWN", "PAMIR_SHUTDOWN"]);
      });
    },
  );

  it.each(Array.from({ length: byEffort({ quick: 4, normal: 8, deep: 64 }) }, (_, i) => i))(
    "a member closes the old geometry as soon as it has the new one: all have that, order %i",
    async (order) => {
      const given = nodesOf(6, { tasksPerNode: 3, seed: SEED + order });
      await withMembers(given, async (geometries) => {
        const calls = geometries.map(async (one) => {
          const made = await (order % 2 === 0 ? one.splitByNode(OPTIONS) : one.split(one.rank % 2, 0, OPTIONS));
          one.close();
          return made;
        });
        await expectSums(given, geometries, valuesOf(await settled(given, calls)));
      });
    },
  );
});

it.each([
  ["contexts", async () => contextsOf(3, "wasm")],
  ["ports", async () => portsOf(3)],
] as const)("a shrink() whose wait is over goes on in the next call, %s", async (_, rig) => {
  const given = await rig();
  await withMembers(given, async (geometries) => {
    const [first, ...others] = geometries as [Geometry, ...Geometry[]];
    expect(await rejectionOf(first.shrink({ timeout: 5 }))).toMatchObject({ code: "PAMIR_TIMEDOUT" });
    const begun = others.map((one) => one.shrink(OPTIONS));
    const made = valuesOf(await settled(given, [first.shrink(OPTIONS), ...begun]));
    expect(shape(geometries, made)).toEqual([0, 1, 2].map((rank) => [rank, [0, 1, 2]]));
    await expectSums(given, geometries, made);
    // The next one begins anew.
    await expectSums(
      given,
      geometries,
      valuesOf(
        await settled(
          given,
          geometries.map((one) => one.shrink(OPTIONS)),
        ),
      ),
    );
  });
});

describe.each([
  ["gives shrink() up, and closes", true],
  ["closes while it waits in shrink()", false],
] as const)("a member %s, at any moment: what it has made of it closes, too", (_, givesUp) => {
  /** Advances of one member after another: between the second one and the fourth, it may have made the new geometry alone. */
  const moments = [0, 1, 2, 3, 4, 5, 6, 7];

  it.each([0, 1, 2])("rank %i", async (odd) => {
    const results = new Set<string>();
    for (const moment of moments) {
      const given = await contextsOf(3, "wasm");
      await withMembers(given, async (geometries) => {
        const one = geometries[odd] as Geometry;
        const others = geometries.filter(({ rank }) => rank !== odd);
        const ends = new AbortController();
        const own = one.shrink({ ...OPTIONS, signal: ends.signal }).then(
          (made) => made,
          ({ code }) => String(code),
        );
        const calls = others.map((other) => other.shrink(OPTIONS));
        for (let round = 0; round < moment; round++) {
          given.members[round % 3]?.context.advance();
          await new Promise((resolve) => setImmediate(resolve));
        }
        if (givesUp) ends.abort();
        if (givesUp) await own;
        one.close();
        const [came, ...made] = valuesOf(await settled<Geometry | string>(given, [own, ...calls]));
        results.add(typeof came === "string" ? came : "made");
        if (typeof came === "object") came.close();
        // No member waits for one that does not come.
        const barriers = (made as Geometry[]).map((each) => each.barrier(OPTIONS));
        const codes = errorsOf(await settled(given, barriers));
        const isWhole = made.every((each) => (each as Geometry).size === 3);
        expect({ moment, codes }).toEqual({ moment, codes: codes.map(() => (isWhole ? "PAMIR_SHUTDOWN" : undefined)) });
      });
    }
    expect(results).toEqual(new Set([givesUp ? "PAMIR_CANCELED" : "PAMIR_CLOSED", "made"]));
  });
});

it("a geometry that is closed is not split, and the error names the call", async () => {
  const given = await contextsOf(1, "wasm");
  await withMembers(given, async ([geometry]) => {
    const one = geometry as Geometry;
    one.close();
    expect(await rejectionOf(one.split(0))).toMatchObject({
      code: "PAMIR_CLOSED",
      text: "split() of a geometry that is closed",
    });
    expect(await rejectionOf(one.splitByNode())).toMatchObject({
      code: "PAMIR_CLOSED",
      text: "splitByNode() of a geometry that is closed",
    });
  });
});

it("a range has each step-th task, up to its bound", async () => {
  const given = portsOf(6);
  try {
    for (const [range, tasks] of [
      [{ from: 0, to: 5, step: 2 }, [0, 2, 4]],
      [{ from: 1, to: 5, step: 2 }, [1, 3, 5]],
      [{ from: 1, to: 5, step: 3 }, [1, 4]],
      [{ from: 2, to: 4 }, [2, 3, 4]],
      [{ from: 5, to: 5, step: 6 }, [5]],
    ] as const) {
      const members = tasks.map((task) => given.members[task] as Member);
      const calls = members.map(({ client }) => client.createGeometry(range, OPTIONS));
      const made = valuesOf(await settled(given, calls));
      expect(made.map(({ rank, endpoints }) => [rank, endpoints])).toEqual(tasks.map((_, rank) => [rank, tasks]));
    }
    const [{ client }] = given.members as [Member];
    const outside = await rejectionOf(client.createGeometry({ from: 1, to: 5, step: 2 }, OPTIONS));
    expect(outside).toMatchObject({ code: "PAMIR_INVAL", text: expect.stringContaining("is among") });
  } finally {
    await given.close();
  }
});

it.each(["contexts", "ports"])(
  "%s: two geometries of the same members are told apart by id, in whatever order made",
  async (rig) => {
    const given = rig === "ports" ? portsOf(3) : await contextsOf(3, "wasm");
    try {
      const endpoints = given.members.map(({ context }) => context.endpoint);
      const ids = [
        [1, 2, 3],
        [3, 1, 2],
        [2, 3, 1],
      ];
      const calls = given.members.flatMap(({ client, context }, member) =>
        (ids[member] as number[]).map(async (id) => ({
          id,
          geometry: await client.createGeometry(endpoints, { context, id, ...OPTIONS }),
        })),
      );
      const made = valuesOf(await settled(given, calls));
      // All at once: what comes of one id is not another one's.
      const sums = await settled(
        given,
        made.map(async ({ id, geometry }) => {
          const [sum] = await geometry.allreduce({ send: Int32Array.of(10 ** id), operation: "sum" }, OPTIONS);
          return [id, sum];
        }),
      );
      expect(valuesOf(sums)).toEqual(made.map(({ id }) => [id, 3 * 10 ** id]));
    } finally {
      await given.close();
    }
  },
);

// Members that close, end or never come, and geometries that are made and closed many times.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { CANCELED, SUCCESS } from "../../src/core/result.js";
import type { Geometry } from "../../src/index.js";
import {
  contextsOf,
  geometryOf,
  type Member,
  type Members,
  settled,
  tasksOf,
  until,
} from "../support/collective-rig.js";
import { byEffort } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { portsJob } from "../support/ports-job.js";
import { PATIENCE, rejectionOf } from "./support.js";

const LIMITS = { tasks: 3, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 23, regions: 64, fifos: 2, slots: 8 };
const OPTIONS = { timeout: PATIENCE };

const RIGS: readonly (readonly [string, () => Promise<Members>])[] = [
  ["contexts of one task", () => contextsOf(3, "wasm")],
  ["ports", async () => tasksOf(portsJob(LIMITS, ["wasm", "ts"]))],
  ["nodes", async () => tasksOf(new NetworkedJob({ seed: 1, limits: LIMITS, kernels: ["ts"], isFaithful: true }))],
];

async function withRig(
  rig: () => Promise<Members>,
  body: (given: Members, geometries: readonly Geometry[]) => Promise<void>,
): Promise<void> {
  const given = await rig();
  try {
    await body(given, await geometryOf(given));
  } finally {
    await given.close();
  }
}

/** Code of what a promise comes to, while all members advance. */
async function codeOf(given: Members, promise: Promise<unknown>): Promise<string> {
  const [result] = await settled(given, [promise]);
  return result?.status === "rejected" ? (result.reason as { code: string }).code : "SUCCESS";
}

type Waits = (geometry: Geometry) => Promise<unknown>;

/** Operations for which the first member needs the last. */
const WAITS: readonly (readonly [string, Waits])[] = [
  ["barrier", (geometry) => geometry.barrier(OPTIONS)],
  ["gather", (geometry) => geometry.gather({ send: Int32Array.of(1) }, OPTIONS)],
  ["broadcast", (geometry) => geometry.broadcast({ buffer: new Int32Array(1), root: 2 }, OPTIONS)],
  ["long broadcast", (geometry) => geometry.broadcast({ buffer: new Int32Array(10_000), root: 2 }, OPTIONS)],
  ["allreduce", (geometry) => geometry.allreduce({ send: Float64Array.of(1), operation: "sum" }, OPTIONS)],
  ["alltoall", (geometry) => geometry.alltoall({ send: Float64Array.of(1, 2, 3) }, OPTIONS)],
];

describe.each(RIGS)("%s", (_, rig) => {
  it.each(WAITS)("%s: a waiting member hears that one has closed the geometry", (__, begin) =>
    withRig(rig, async (given, [first, second, third]) => {
      const waiting = begin(first as Geometry);
      third?.close();
      expect(await codeOf(given, waiting)).toBe("PAMIR_SHUTDOWN");
      // What begins later fails too, also at a member that had nothing under way.
      await codeOf(given, begin(second as Geometry));
      expect(await codeOf(given, (second as Geometry).barrier(OPTIONS))).toBe("PAMIR_SHUTDOWN");
    }),
  );

  it.each(WAITS)("%s: a waiting member hears that one's context has closed, and the others go on", (__, begin) =>
    withRig(rig, async (given, geometries) => {
      const waiting = begin(geometries[0] as Geometry);
      given.members[2]?.context.close();
      expect(await codeOf(given, waiting)).toBe("PAMIR_SHUTDOWN");
      const [again] = await settled(given, [geometryOf(given, [0, 1])]);
      expect(again?.status).toBe("fulfilled");
      const survivors = again?.status === "fulfilled" ? again.value : [];
      const sums = survivors.map((geometry) =>
        geometry.allreduce({ send: Int32Array.of(2), operation: "sum" }, OPTIONS),
      );
      expect(await settled(given, sums)).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
    }),
  );

  it.each([
    ["gather", 5000],
    ["allreduce", 5000],
    ["allreduce", 2],
  ] as const)("%s of %i elements: to the others, a member that closes in its midst has ended", (type, length) =>
    withRig(rig, async (given, geometries) => {
      const [first, second, third] = geometries as [Geometry, Geometry, Geometry];
      const begin = (geometry: Geometry): Promise<unknown> => {
        const send = new Int32Array(length);
        return type === "gather"
          ? geometry.gather({ send }, OPTIONS)
          : geometry.allreduce({ send, operation: "sum" }, OPTIONS);
      };
      const closing = begin(third);
      third.close();
      // What a member has given before it closed may do for the others.
      const [closed, ...others] = await settled(given, [closing, begin(first), begin(second)]);
      expect(closed).toMatchObject({ status: "rejected", reason: { code: "PAMIR_CLOSED" } });
      for (const other of others) {
        if (other.status === "rejected") expect(other.reason).toMatchObject({ code: "PAMIR_SHUTDOWN" });
      }
      const later = [first, second].map((geometry) => geometry.barrier(OPTIONS));
      const broken = { status: "rejected", reason: { code: "PAMIR_SHUTDOWN" } };
      expect(await settled(given, later)).toMatchObject([broken, broken]);
    }),
  );

  it("a member that closes right after its last operation disturbs no other", () =>
    withRig(rig, async (given, geometries) => {
      const types: readonly ((geometry: Geometry) => Promise<unknown>)[] = [
        (geometry) => geometry.scan({ send: Int32Array.of(geometry.rank), operation: "sum" }, OPTIONS),
        (geometry) => geometry.allgather({ send: new Int8Array(500).fill(geometry.rank) }, OPTIONS),
        (geometry) => geometry.barrier(OPTIONS),
      ];
      // All of them end with the member that goes at once.
      const all = geometries.map(async (geometry) => {
        for (const type of types) await type(geometry);
        geometry.close();
      });
      expect(await settled(given, all)).toMatchObject(geometries.map(() => ({ status: "fulfilled" })));
    }));

  it("a geometry with a member that has ended is refused, again and again", () =>
    withRig(rig, async (given) => {
      const endpoints = given.members.map(({ context }) => context.endpoint);
      given.members[2]?.context.close();
      for (let time = 0; time < 2; time++) {
        const made = given.members
          .slice(0, 2)
          .map(({ client, context }) => client.createGeometry(endpoints, { context, timeout: PATIENCE }));
        for (const result of await settled(given, made)) {
          expect(result).toMatchObject({ status: "rejected", reason: { code: "PAMIR_SHUTDOWN" } });
        }
      }
    }));

  it("what is under way at a member that closes is canceled", () =>
    withRig(rig, async (given, [first]) => {
      const results: unknown[] = [];
      const onDone = (cookie: unknown, result: unknown): void => void results.push([cookie, result]);
      for (const cookie of [1, 2, 3]) {
        expect((first as Geometry).collective("barrier", { onDone, cookie })).toBe(SUCCESS);
      }
      first?.close();
      await until(given, () => results.length === 3);
      expect(results).toEqual([1, 2, 3].map((cookie) => [cookie, CANCELED]));
    }));

  it("geometries that are made and closed leave no memory behind, and their ids are used again", async () => {
    const given = await rig();
    try {
      const free = (): number => given.members[0]?.client.dump().heap.free as number;
      const rounds = byEffort({ quick: 150, normal: 300, deep: 300 });
      let before = 0;
      for (let round = 0; round < rounds; round++) {
        const geometries = await geometryOf(given);
        if (round % 10 === 0) {
          const sums = geometries.map((geometry) =>
            geometry.allreduce({ send: new Float32Array(100), operation: "sum" }, OPTIONS),
          );
          await settled(given, sums);
        }
        for (const geometry of geometries) geometry.close();
        if (round === 20) before = await settledFree(given, free);
      }
      expect(await settledFree(given, free)).toBe(before);
    } finally {
      await given.close();
    }
  });
});

/** Bytes of JavaScript that are in use. */
function usedBytes(collect: () => void): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Geometries after each of which what is in use is counted. */
const STRETCH = 1000;

/** In npm test one rig has so many geometries, the others some hundreds, above. */
const GROWTH_RIGS = RIGS.slice(0, byEffort({ quick: 1, normal: 1, deep: RIGS.length }));

it.each(GROWTH_RIGS)("10,000 geometries that are made, used and closed leave nothing behind: %s", async (what, rig) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const given = await rig();
  const mayBlock = what === "contexts of one task";
  try {
    const free = (): number => given.members[0]?.client.dump().heap.free as number;
    const used: number[] = [];
    let before = 0;
    for (let round = 0; round <= 10 * STRETCH; round++) {
      const geometries = await geometryOf(given, [0, 1], round % 3);
      const [first, second] = geometries as [Geometry, Geometry];
      if (mayBlock) {
        first.collective("barrier", {});
        expect(second.barrierSync(OPTIONS)).toBe(SUCCESS);
      } else {
        const barriers = await settled(given, [first.barrier(OPTIONS), second.barrier(OPTIONS)]);
        expect(barriers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
      }
      if (round % 50 === 0) {
        await settled(
          given,
          geometries.map((geometry) => geometry.allreduce({ send: new Float32Array(100), operation: "sum" }, OPTIONS)),
        );
      }
      // Each of them closes first, in turn, or sees the other one's close before its own.
      geometries[round & 1]?.close();
      if (round % 4 < 2) for (const { context } of given.members) context.advance();
      geometries[~round & 1]?.close();
      if (round === STRETCH) before = await settledFree(given, free);
      if (round % STRETCH === 0) used.push(usedBytes(collect));
    }
    expect(await settledFree(given, free)).toBe(before);
    // The median, since code comes and goes, too. A GeometryCore alone has more bytes.
    const grown = used.slice(1).map((bytes, place) => bytes - (used[place] as number));
    expect(grown.sort((one, other) => one - other)[grown.length >> 1]).toBeLessThan(STRETCH * 100);
  } finally {
    await given.close();
  }
});

/** Free bytes once all have dealt with all that there is. */
async function settledFree(given: Members, free: () => number): Promise<number> {
  let rounds = 0;
  await until(given, () => ++rounds > 40);
  return free();
}

it("a barrier that begins in a callback leaves the result of the one before alone", () =>
  withRig(RIGS[0]?.[1] as () => Promise<Members>, async (given, [first, ...others]) => {
    let next: Promise<void> | undefined;
    const onDone = (): void => {
      next ??= (first as Geometry).barrier(OPTIONS);
    };
    (first as Geometry).collective("barrier", { onDone });
    const second = (first as Geometry).barrier(OPTIONS);
    for (const geometry of others) for (let count = 0; count < 2; count++) geometry.collective("barrier", {});
    // The third barrier is still under way: it needs the others.
    expect(await codeOf(given, second)).toBe("SUCCESS");
    for (const geometry of others) geometry.collective("barrier", {});
    expect(await codeOf(given, next as Promise<void>)).toBe("SUCCESS");
  }));

it("a member that gives up does not hold the others", () =>
  withRig(RIGS[0]?.[1] as () => Promise<Members>, async (given) => {
    const endpoints = given.members.map(({ context }) => context.endpoint);
    const [one, two] = given.members;
    const soon = one?.client.createGeometry(endpoints, { context: one.context, id: 9, timeout: 50 });
    const late = two?.client.createGeometry(endpoints, { context: two.context, id: 9, timeout: PATIENCE });
    const errors = await Promise.all([soon, late].map((made) => rejectionOf(made as Promise<unknown>)));
    expect(errors.map(({ code }) => code)).toEqual(["PAMIR_TIMEDOUT", "PAMIR_SHUTDOWN"]);
    expect(errors[1]?.text).toContain("context 2 of task 0");
  }));

it("a wait that is aborted in the round that makes its geometry leaves none open", () =>
  withRig(RIGS[0]?.[1] as () => Promise<Members>, async (given, geometries) => {
    const [one, two] = given.members as [Member, Member];
    const endpoints = given.members.slice(0, 2).map(({ context }) => context.endpoint);
    const controller = new AbortController();
    one.context.dispatch(7, () => controller.abort());
    const make = ({ client, context }: Member, signal?: AbortSignal): Promise<Geometry> =>
      client.createGeometry(endpoints, { context, signal, timeout: PATIENCE });
    // It advances for the wait that is aborted.
    const leading = geometries[0]?.barrier(OPTIONS);
    const canceled = rejectionOf(make(one, controller.signal));
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Right behind the message that makes the geometry: the first round of this wait does posted work.
    two.context.post(() => void two.context.sendImmediate(one.context.endpoint, 7));
    const geometry = await make(two);
    expect((await canceled).code).toBe("PAMIR_CANCELED");
    expect((await rejectionOf(geometry.barrier({ timeout: PATIENCE }))).code).toBe("PAMIR_SHUTDOWN");
    geometry.close();
    await Promise.all([leading, ...geometries.slice(1).map((other) => other.barrier(OPTIONS))]);
  }));

// Long arrays of members that share a memory, some of them ordinary ones: they go by windows, segment by segment.
import { expect, it } from "vitest";
import { COPY_BYTES } from "../../src/collective/scratch.js";
import { ERROR, SUCCESS } from "../../src/index.js";
import { contextsOf, geometryOf, until } from "../support/collective-rig.js";
import { MortalJob } from "../support/mortal-members.js";

const LENGTH = COPY_BYTES / 4 + 1001;

/** Begins an operation at all members. @returns their results */
async function results(
  size: number,
  begin: (rank: number, array: (length: number) => Int32Array) => readonly [string, object],
): Promise<number[]> {
  const given = await contextsOf(size, "wasm");
  try {
    const geometries = await geometryOf(given);
    const found: number[] = [];
    for (const geometry of geometries) {
      const { client } = given.members[geometry.rank] as (typeof given.members)[0];
      // Of each second member, arrays lie in the job's memory.
      const array = (length: number): Int32Array => {
        if (geometry.rank % 2 === 0) return new Int32Array(length);
        const { bytes } = client.createRegion(4 * length);
        return new Int32Array(bytes.buffer, bytes.byteOffset, length);
      };
      const [type, parameters] = begin(geometry.rank, array);
      const onDone = (_: unknown, result: number): void => {
        found[geometry.rank] = result;
      };
      geometry.collective(type as never, { ...parameters, onDone } as never);
    }
    await until(given, () => found.filter((one) => one !== undefined).length === size);
    return found;
  } finally {
    await given.close();
  }
}

const SIZES = [2, 3, 5];

it.each(SIZES.flatMap((size) => [true, false].map((inPlace) => [size, inPlace] as const)))(
  "allreduce of %i members, in place: %s",
  async (size, inPlace) => {
    const receives: Int32Array[] = [];
    const came = await results(size, (rank, array) => {
      const receive = array(LENGTH);
      receives[rank] = receive;
      const send = inPlace ? receive : array(LENGTH);
      for (let i = 0; i < LENGTH; i++) send[i] = i * (rank + 1);
      return ["allreduce", { send: inPlace ? null : send, receive, operation: "sum" }];
    });
    expect(came).toEqual(came.map(() => SUCCESS));
    const factor = (size * (size + 1)) / 2;
    for (const receive of receives) expect(receive.findIndex((value, i) => value !== i * factor)).toBe(-1);
  },
);

it.each(SIZES)("reduceScatter of %i members, in place, with blocks of all lengths", async (size) => {
  const counts = Array.from({ length: size }, (_, rank) => (rank === 0 ? 7 : Math.floor(LENGTH / (size - 1)) + rank));
  const offsets = counts.map((_, rank) => counts.slice(0, rank).reduce((sum, count) => sum + count, 0));
  const whole = counts.reduce((sum, count) => sum + count, 0);
  const receives: Int32Array[] = [];
  const came = await results(size, (rank, array) => {
    const receive = array(whole);
    receives[rank] = receive;
    for (let i = 0; i < whole; i++) receive[i] = i * (rank + 1);
    return ["reduceScatter", { send: null, receive, counts, operation: "sum" }];
  });
  expect(came).toEqual(came.map(() => SUCCESS));
  const factor = (size * (size + 1)) / 2;
  for (const [rank, receive] of receives.entries()) {
    const own = receive.subarray(0, counts[rank]);
    expect(own.findIndex((value, i) => value !== (i + (offsets[rank] as number)) * factor)).toBe(-1);
  }
});

it.each([2, 3])("allgather of %i members", async (size) => {
  const receives: Int32Array[] = [];
  const came = await results(size, (rank, array) => {
    const receive = array(size * LENGTH);
    receives[rank] = receive;
    const send = array(LENGTH);
    for (let i = 0; i < LENGTH; i++) send[i] = i * size + rank;
    return ["allgather", { send, receive }];
  });
  expect(came).toEqual(came.map(() => SUCCESS));
  const at = (i: number): number => (i % LENGTH) * size + Math.floor(i / LENGTH);
  for (const receive of receives) expect(receive.findIndex((value, i) => value !== at(i))).toBe(-1);
});

it.each(SIZES)("a function that throws at the last element fails the operation at all %i members", async (size) => {
  const combine = (left: Int32Array, right: Int32Array, out: Int32Array): void => {
    if (left.includes(-1)) throw new Error("no sum");
    for (let i = 0; i < out.length; i++) out[i] = (left[i] as number) + (right[i] as number);
  };
  const came = await results(size, (rank, array) => {
    const send = array(LENGTH);
    if (rank === 0) send[LENGTH - 1] = -1;
    return ["allreduce", { send, receive: array(LENGTH), operation: { combine } }];
  });
  expect(came).toEqual(came.map(() => ERROR));
});

it("a member that ends among segments ends the operation for the others, and their memory comes back", async () => {
  // At call 110 of the kernel, all segments are taken.
  for (const step of [3, 10, 20, 30, 40, 50, 60, 70]) {
    const job = new MortalJob(3, "one memory", { heapBytes: 2 ** 26 });
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const geometries = await job.outcomes((member) => member.geometry(endpoints));
      const victim = job.members[1] as (typeof job.members)[0];
      victim.end = victim.calls + step;
      const outcomes = await job.outcomes(async (member) => {
        const geometry = geometries.get(member);
        if (geometry === undefined || geometry instanceof Error) throw new Error("no geometry");
        const parameters = { send: null, receive: new Int32Array(LENGTH), operation: "sum" as const };
        await geometry.allreduce(parameters);
      });
      expect(victim.isDead, `step ${step}`).toBe(true);
      expect(outcomes.size, `step ${step}`).toBe(2);
      for (const error of outcomes.values()) expect(error, `step ${step}`).toMatchObject({ code: "PAMIR_SHUTDOWN" });
      for (const [{ isDead }, geometry] of geometries) if (!isDead && !(geometry instanceof Error)) geometry.close();
      for (let round = 0; round < 2; round++) {
        await job.quiet();
        for (const { task } of job.living) task.reclaim();
      }
      const idle = 8 * 2 ** 20;
      for (const [, , bytes] of job.regionBytes()) expect(bytes, `step ${step}`).toBeLessThan(idle);
    } finally {
      await job.close();
    }
  }
});

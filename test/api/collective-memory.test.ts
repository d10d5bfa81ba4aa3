// Long arrays: they go in fragments and segments, so that what an operation takes beside them is bounded.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { launch } from "pamir";
import { expect, it } from "vitest";
import { COLLECTIVE_TYPES } from "../../src/collective/operations.js";
import { FRAGMENT_BYTES, FRAGMENTS_AHEAD } from "../../src/collective/schedule/channel.js";
import { SEGMENT_BYTES } from "../../src/collective/schedule/segments.js";
import { COPY_BYTES } from "../../src/collective/scratch.js";
import type { Client, CollectiveType, Geometry } from "../../src/index.js";
import { hugeCase } from "../support/collective-draws.js";
import { geometryOf, type Members, runCase, settled } from "../support/collective-rig.js";
import { portsOf, RIGS } from "../support/collective-rigs.js";
import { hashOf } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { PATIENCE } from "./support.js";

const OPTIONS = { timeout: PATIENCE };
const MIB = 2 ** 20;
const TYPES = COLLECTIVE_TYPES.filter((type) => type !== "barrier");

const isOfNodes = (name: string): boolean => name.startsWith("two nodes");
const FEW = RIGS.filter(([name, size]) => size <= 3 || isOfNodes(name));

it.each(FEW)(
  `%s, %i members: arrays of several fragments and segments (${replayNote()})`,
  { timeout: 300_000 },
  async (name, size, rig) => {
    const given = await rig(size);
    try {
      const geometries = await geometryOf(given);
      const random = randomOf(SEED ^ hashOf(`long ${name} ${size}`));
      // Longer than copies in one memory; no multiple of a fragment or segment.
      const bytes = name === "contexts" ? COPY_BYTES + 3000 : 2 * SEGMENT_BYTES + 3000;
      for (const type of TYPES) {
        const one = hugeCase(random, { size, forms: ["callback", "promise"] }, type, bytes);
        const problems = await runCase(one, given, geometries);
        if (problems.length > 0) expect.fail(`${JSON.stringify(one)}\n${problems.join("\n")}`);
      }
    } finally {
      await given.close();
    }
  },
);

/** Takes all of the heap that regions may take. @returns gives it back */
function filled(clients: ReadonlySet<Client>): () => void {
  const regions: { close(): void }[] = [];
  for (const client of clients) {
    for (let bytes = 2 ** 24; bytes >= 4096; bytes /= 2) {
      try {
        for (;;) regions.push(client.createRegion(bytes));
      } catch (error) {
        expect((error as { code?: string }).code).toBe("PAMIR_NO_MEMORY");
      }
    }
  }
  return () => {
    for (const region of regions) region.close();
  };
}

it.each(FEW)(
  `%s, %i members: a heap that is full of regions delays nothing for ever (${replayNote()})`,
  { timeout: 300_000 },
  async (name, size, rig) => {
    const given = await rig(size);
    try {
      const geometries = await geometryOf(given);
      const random = randomOf(SEED ^ hashOf(`full ${name} ${size}`));
      const empty = filled(new Set(given.members.map(({ client }) => client)));
      for (const type of TYPES) {
        const bytes = [5000, 40_000, 1.5 * FRAGMENT_BYTES][random(3)];
        const one = hugeCase(random, { size, forms: ["callback", "promise"] }, type, bytes);
        const problems = await runCase(one, given, geometries);
        if (problems.length > 0) expect.fail(`${JSON.stringify(one)}\n${problems.join("\n")}`);
      }
      empty();
    } finally {
      await given.close();
    }
  },
);

/** Contexts of one task: all that is taken is this thread's, or the job's. */
async function countedContexts(size: number): Promise<{ given: Members; taken: () => number }> {
  const job = await launch(null, { tasks: 1, join: true, contexts: size, heapBytes: 512 * MIB });
  const client = job.client as unknown as Client;
  const members = Array.from({ length: size }, () => ({ client, context: client.createContext() }));
  const taken = (): number => {
    const { bytes, free } = job.dump().heap;
    return bytes - free + process.memoryUsage().arrayBuffers;
  };
  return { given: { members, turn: async () => undefined, close: async () => void (await job.terminate()) }, taken };
}

/** 36 MiB, of which 2 and 3 members have as much each. */
const LENGTH = (36 * MIB) / 8;

/** The parameters of a member, and the bytes of its arrays. @param array an ordinary one, or one in a region */
type Make = (geometry: Geometry, array: (length: number) => Float64Array) => object;

const operation = "sum";
const CALLS: readonly (readonly [CollectiveType, string, Make])[] = [
  ["broadcast", "", (_, array) => ({ buffer: array(LENGTH) })],
  ["reduce", "", ({ rank }, array) => ({ send: array(LENGTH), receive: rank === 0 ? array(LENGTH) : null, operation })],
  ["allreduce", "in place", (_, array) => ({ send: null, receive: array(LENGTH), operation })],
  ["allreduce", "", (_, array) => ({ send: array(LENGTH), receive: array(LENGTH), operation })],
  ["scan", "in place", (_, array) => ({ send: null, receive: array(LENGTH), operation })],
  ["reduceScatter", "in place", (_, array) => ({ send: null, receive: array(LENGTH), operation })],
  [
    "reduceScatter",
    "",
    ({ size }, array) => ({ send: array(size * (LENGTH / 4)), receive: array(LENGTH / 4), operation }),
  ],
  [
    "gather",
    "",
    ({ rank, size }, array) => ({ send: array(LENGTH / 2), receive: rank === 0 ? array((size * LENGTH) / 2) : null }),
  ],
  [
    "scatter",
    "",
    ({ rank, size }, array) => ({ send: rank === 0 ? array((size * LENGTH) / 2) : null, receive: array(LENGTH / 2) }),
  ],
  ["allgather", "", ({ size }, array) => ({ send: array(LENGTH / 4), receive: array((size * LENGTH) / 4) })],
  ["alltoall", "", ({ size }, array) => ({ send: array((size * LENGTH) / 4), receive: array((size * LENGTH) / 4) })],
];
const PLACES = ["ordinary arrays", "regions"] as const;

it.each(CALLS.flatMap(([type, how, make]) => PLACES.map((place) => [type, how, place, make] as const)))(
  "%s %s of %s takes at most 0.3 of its arrays",
  { timeout: 300_000 },
  async (type, _, place, make) => {
    for (const size of [2, 3]) {
      const { given, taken } = await countedContexts(size);
      try {
        const geometries = await geometryOf(given);
        const [{ client }] = given.members as [Members["members"][0]];
        let bytes = 0;
        const array = (length: number): Float64Array => {
          bytes += 8 * length;
          if (place === "ordinary arrays") return new Float64Array(length).fill(1);
          const region = client.createRegion(8 * length);
          return new Float64Array(region.bytes.buffer, region.bytes.byteOffset, length).fill(1);
        };
        const parameters = geometries.map((geometry) => make(geometry, array));
        const before = taken();
        let peak = 0;
        const turn = async (): Promise<void> => {
          peak = Math.max(peak, taken() - before);
        };
        const begun = geometries.map(
          (geometry) =>
            new Promise((resolve) => {
              const onDone = (_cookie: unknown, result: unknown): void => resolve(result);
              geometry.collective(type, { ...(parameters[geometry.rank] as object), onDone } as never);
            }),
        );
        const results = await settled({ ...given, turn }, begun);
        expect(results.map((result) => result.status === "fulfilled" && result.value)).toEqual(begun.map(() => 0));
        expect(peak / bytes, `${size} members`).toBeLessThan(0.3);
      } finally {
        await given.close();
      }
    }
  },
);

it("a long transfer has few fragments on their way", async () => {
  const given = portsOf(2);
  try {
    const geometries = await geometryOf(given);
    const length = 16 * MIB;
    const buffers = geometries.map(({ rank }) => new Uint8Array(length).fill(7 * (1 - rank)));
    // When a collector of garbage comes is the host's to say. A second collection waits for the sweeper of the first: a thread
    // that a busy machine delays, which left up to 7 MiB of dead arrays in the count.
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const taken = (): number => {
      gc();
      gc();
      return process.memoryUsage().arrayBuffers;
    };
    const before = taken();
    let peak = 0;
    let turns = 0;
    const turn = async (): Promise<void> => {
      if (turns++ % 8 === 0) peak = Math.max(peak, taken() - before);
      await given.turn();
    };
    const begun = geometries.map((geometry) =>
      geometry.broadcast({ buffer: buffers[geometry.rank] as Uint8Array }, OPTIONS),
    );
    await settled({ ...given, turn }, begun);
    expect(buffers[1]?.every((byte) => byte === 7)).toBe(true);
    expect(turns).toBeGreaterThan(16);
    // Each fragment at its origin, in frames, and at its target.
    expect(peak).toBeLessThan(4 * FRAGMENTS_AHEAD * FRAGMENT_BYTES);
  } finally {
    await given.close();
  }
});

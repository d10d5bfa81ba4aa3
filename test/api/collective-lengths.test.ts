// Without debug mode: what a member sends is longer or shorter than what its receiver awaits. All members hear both lengths, none
// waits for ever, and the next operation works.
import { describe, expect, it } from "vitest";
import { EAGER_BYTES, FRAGMENT_BYTES } from "../../src/collective/schedule/channel.js";
import type { Geometry } from "../../src/index.js";
import { type Carrier, type Mortal, MortalJob } from "../support/mortal-members.js";

type Begin = (geometry: Geometry, sent: number, awaited: number) => Promise<unknown>;

/** Rank 0 sends `sent` bytes to rank 1, which awaits other ones. All other blocks are of 8 bytes. */
const CALLS: Readonly<Record<string, Begin>> = {
  scatterv: (geometry, sent, awaited) => {
    const { rank, size } = geometry;
    const counts = Array.from({ length: size }, (_, other) => (other === 1 ? sent : 8));
    const receive = new Uint8Array(rank === 1 ? awaited : 8);
    if (rank !== 0) return geometry.scatterv({ send: null, receive, root: 0 });
    return geometry.scatterv({ send: new Uint8Array(sent + 8 * (size - 1)), receive, counts, root: 0 });
  },
  gatherv: (geometry, sent, awaited) => {
    const { rank, size } = geometry;
    const send = new Uint8Array(rank === 0 ? sent : 8);
    if (rank !== 1) return geometry.gatherv({ send, root: 1 });
    const counts = Array.from({ length: size }, (_, other) => (other === 0 ? awaited : 8));
    return geometry.gatherv({ send, receive: new Uint8Array(awaited + 8 * (size - 1)), counts, root: 1 });
  },
  alltoallv: (geometry, sent, awaited) => {
    const { rank, size } = geometry;
    const sendCounts = Array.from({ length: size }, (_, other) => (rank === 0 && other === 1 ? sent : 8));
    const receiveCounts = Array.from({ length: size }, (_, other) => (rank === 1 && other === 0 ? awaited : 8));
    const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
    const [send, receive] = [new Uint8Array(sumOf(sendCounts)), new Uint8Array(sumOf(receiveCounts))];
    return geometry.alltoallv({ send, receive, sendCounts, receiveCounts });
  },
  broadcast: (geometry, sent, awaited) =>
    geometry.broadcast({ buffer: new Uint8Array(geometry.rank === 1 ? awaited : sent), root: 0 }),
};

/** [sent, awaited] */
const LENGTHS: readonly (readonly [number, number])[] = [
  [EAGER_BYTES + 1, EAGER_BYTES],
  [EAGER_BYTES, EAGER_BYTES + 1],
  [100_000, 8],
  [8, 100_000],
  [3 * FRAGMENT_BYTES, 100],
  [3 * FRAGMENT_BYTES, 3 * FRAGMENT_BYTES - 8],
  [EAGER_BYTES + 1, 0],
  [0, EAGER_BYTES + 1],
  [100, 0],
];

async function run(carrier: Carrier, size: number, begin: Begin, isMessages: boolean): Promise<void> {
  const job = new MortalJob(size, carrier, { heapBytes: 2 ** 25 });
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const geometries = await job.outcomes((member) => member.geometry(endpoints));
    const of = (member: Mortal): Geometry => geometries.get(member) as Geometry;
    for (const [sent, awaited] of LENGTHS) {
      // Who comes last changes: each member may be the one that is awaited.
      for (const last of [0, 1]) {
        let rounds = 0;
        let come = (): void => {};
        const late = new Promise<void>((resolve) => (come = resolve));
        job.order = () => {
          if (++rounds === 10) come();
          return job.members;
        };
        const outcomes = await job.outcomes(async (member) => {
          const geometry = of(member);
          if (geometry.rank === last) await late;
          await begin(geometry, sent, awaited);
        });
        const errors = [...outcomes.values()].filter((outcome) => outcome instanceof Error);
        const what = `${sent} bytes sent, ${awaited} awaited, rank ${last} last`;
        // Of fewer bytes than EAGER_BYTES, the sender is through at once; and who awaits none is, too.
        if (awaited > 0 || sent > EAGER_BYTES || last > 0) expect(errors.length, what).toBeGreaterThan(0);
        for (const error of errors) {
          expect(error, what).toMatchObject({ code: "PAMIR_COLLECTIVE" });
          if (!isMessages) continue;
          expect((error as Error).message, what).toMatch(new RegExp(`\\b${sent}\\b`));
          expect((error as Error).message, what).toMatch(new RegExp(`\\b${awaited}\\b`));
        }
        const after = await job.outcomes(async (member) => {
          const [sum] = await of(member).allreduce({ send: Int32Array.of(1), operation: "sum" });
          expect(sum).toBe(size);
        });
        expect([...after.values()], what).toEqual(job.members.map(() => undefined));
      }
    }
  } finally {
    await job.close();
  }
}

describe.each(["one memory", "ports"] as const)("%s: lengths differ", (carrier) => {
  it.each(Object.keys(CALLS).flatMap((name) => [2, 3].map((size) => [name, size] as const)))(
    "%s of %i members ends for all",
    (name, size) => run(carrier, size, CALLS[name] as Begin, carrier === "ports"),
  );
});

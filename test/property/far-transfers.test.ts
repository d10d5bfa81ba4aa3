// Random one-sided operations to tasks of other nodes, over wires that lose, repeat and delay packets, against a plain model:
// one operation after the other, each at once.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ERROR, type Result, SUCCESS } from "../../src/core/result.js";
import { scaled } from "../support/effort.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { replayNote, SEED } from "../support/seed.js";

/** Bytes of each region: few, so that operations meet. */
const BYTES = 96;
/** Regions of each task, and pieces of a type. */
const REGIONS = 2;
const PIECES = 5;

const offset = fc.integer({ min: 0, max: BYTES - 8 });
/** Some end beyond the remote region, and none beyond the local one. */
const transfer = fc.record({
  call: fc.constantFrom("put" as const, "get" as const),
  to: fc.integer({ min: 0, max: 2 }),
  region: fc.nat(REGIONS - 1),
  localOffset: offset,
  remoteOffset: offset,
  bytes: fc.oneof({ weight: 6, arbitrary: fc.nat(8) }, fc.nat(40)),
  isTyped: fc.boolean(),
});
const operation = fc.oneof(
  { weight: 8, arbitrary: transfer },
  {
    weight: 1,
    arbitrary: fc.record({
      call: fc.constant("rmw" as const),
      to: fc.nat(2),
      region: fc.nat(REGIONS - 1),
      word: fc.nat(9),
    }),
  },
  { weight: 1, arbitrary: fc.record({ call: fc.constant("fence" as const), to: fc.nat(2) }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Runs of the same operation come often: they share frames. */
const program = fc
  .array(fc.tuple(operation, fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 12 }))), {
    minLength: 1,
    maxLength: 14,
  })
  .map((all) =>
    all.flatMap(([one, times]) =>
      Array.from({ length: times }, (_, i): Operation => {
        if (one.call === "rmw" || one.call === "fence") return one;
        return {
          ...one,
          localOffset: (one.localOffset + 5 * i) % BYTES,
          remoteOffset: (one.remoteOffset + 3 * i) % BYTES,
        };
      }),
    ),
  );

const network = fc.record({
  seed: fc.nat(),
  loss: fc.constantFrom(0, 0.05),
  duplicate: fc.constantFrom(0, 0.05),
  reorder: fc.constantFrom(0, 0.1),
  packetBytes: fc.constantFrom(256, 1452),
  slots: fc.constantFrom(4, 8, 64),
  isFaithful: fc.boolean(),
});

/** The pieces of a type, from an offset of a region on: each byte's place. */
const placesOf = (from: number, bytes: number, isTyped: boolean): number[] =>
  Array.from({ length: bytes }, (_, i) => from + (isTyped ? 7 * Math.floor(i / 3) + (i % 3) : i));

describe("operations to tasks of other nodes", () => {
  it(`have the results and leave the bytes of a model, in which each is done at once (${replayNote()})`, async () => {
    await fc.assert(
      fc.asyncProperty(program, network, async (operations, { seed, packetBytes, slots, isFaithful, ...faults }) => {
        const limits = { tasks: 3, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 21, regions: 8, fifos: 1, slots };
        const lossy = { ...faults, reorderMicroseconds: 300 };
        const job = new NetworkedJob({
          seed,
          limits,
          kernels: ["wasm", "ts"],
          packetBytes,
          isFaithful,
          ...(isFaithful ? {} : { faults: lossy }),
        });
        const contexts = job.tasks.map(({ client }) => client.createContext());
        const [context] = contexts;
        const [here] = job.tasks as [Networked];
        if (context === undefined) throw new Error("no context");
        const type = (await here.client.createType()).addSimple(3, 0, PIECES, 7).complete({ extent: 7 * PIECES });
        const regions = job.tasks.map(({ client }) =>
          Array.from({ length: REGIONS }, () => client.createRegion(BYTES)),
        );
        const local = here.client.createRegion(BYTES);
        const model = {
          local: new Uint8Array(BYTES),
          remote: regions.map((all) => all.map(() => new Uint8Array(BYTES))),
        };
        for (let i = 0; i < BYTES; i++) local.bytes[i] = model.local[i] = i + 1;
        const [told, wanted]: [number, Result][][] = [[], []] as [[number, Result][], [number, Result][]];
        const onDone = (which: unknown, result: Result): void => void told.push([which as number, result]);
        let failed = false;
        for (const [cookie, one] of operations.entries()) {
          const to = (contexts[one.to] as (typeof contexts)[0]).endpoint;
          if (one.call === "fence") {
            expect(context.fence(to, onDone, cookie)).toBe(SUCCESS);
            wanted.push([cookie, failed ? ERROR : SUCCESS]);
            failed = false;
            continue;
          }
          const remote = regions[one.to]?.[one.region];
          const theirs = model.remote[one.to]?.[one.region];
          if (remote === undefined || theirs === undefined) throw new Error("no region");
          if (one.call === "rmw") {
            const place = { to, remote: remote.handle, remoteOffset: 4 * one.word, onDone, cookie };
            const result = { result: local, resultOffset: 8 };
            expect(context.rmw({ ...place, operation: "fetch-add", value: 0x01020304, ...result })).toBe(SUCCESS);
            const [word, old] = [new DataView(theirs.buffer), new DataView(model.local.buffer)];
            old.setInt32(8, word.getInt32(4 * one.word, true), true);
            word.setInt32(4 * one.word, (word.getInt32(4 * one.word, true) + 0x01020304) | 0, true);
            wanted.push([cookie, SUCCESS]);
            continue;
          }
          const { call, localOffset, remoteOffset, isTyped } = one;
          const bytes = Math.min(one.bytes, BYTES - localOffset);
          const far = placesOf(remoteOffset, bytes, isTyped);
          const isRight = far.every((at) => at < BYTES) && remoteOffset <= BYTES;
          // Within this node, what is wrong throws; and a type is moved at once, not behind what is before.
          if (one.to === 0 && (!isRight || isTyped)) continue;
          const kind = isTyped ? { remoteType: type } : {};
          const place = {
            to,
            local,
            localOffset,
            remote: remote.handle,
            remoteOffset,
            bytes,
            onRemote: onDone,
            cookie,
          };
          expect(context[call]({ ...place, ...kind })).toBe(SUCCESS);
          for (const [i, at] of far.entries()) {
            // Runs that are in the region are moved.
            const run = isTyped ? far.slice(i - (i % 3), i - (i % 3) + 3) : far;
            if (run.some((each) => each >= BYTES)) continue;
            if (call === "put") theirs[at] = model.local[localOffset + i] as number;
            else model.local[localOffset + i] = theirs[at] as number;
          }
          if (!isRight) failed = true;
          wanted.push([cookie, isRight ? SUCCESS : ERROR]);
        }
        for (let turns = 0; told.length < wanted.length; turns++) {
          if (turns > 20_000) throw new Error(`${told.length} of ${wanted.length} were told`);
          for (const each of contexts) each.advance();
          await job.turn();
        }
        expect(told).toEqual(wanted);
        expect([...local.bytes]).toEqual([...model.local]);
        for (const [task, all] of regions.entries()) {
          for (const [which, { bytes }] of all.entries()) {
            const wanted = model.remote[task]?.[which] as Uint8Array;
            expect([task, which, ...bytes]).toEqual([task, which, ...wanted]);
          }
        }
        expect(job.tasks.map(({ frames }) => frames.wrong)).toEqual([0, 0, 0]);
        for (const { client } of job.tasks) client.close();
      }),
      { seed: SEED, numRuns: scaled(150) },
    );
  });
});

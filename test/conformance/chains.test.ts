// Self-pacing transfers between tasks that share no memory: descriptors are the payload of frames. The names begin with the
// element of the mechanism that they prove. The test says which frame arrives, and when.
import { describe, expect, it } from "vitest";
import {
  AWAY_YES,
  BLOCK_RGET_FIFOS_OFFSET,
  CHAIN_BEGIN,
  CHAIN_MOVE,
  CHAIN_OVER,
  CHAIN_SHIP,
  CHAIN_STOP,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_RGET,
  DESCRIPTOR_WORDS,
  DISPATCH_ID_PULL,
  DISPATCH_ID_PULLED,
  META_DISPATCH_MASK,
  PAGE_SIZE,
  RGET_FIFO_AWAY_OFFSET,
  RGET_FIFO_DEPTH_OFFSET,
  RGET_FIFO_GENERATION_OFFSET,
  RGET_FIFO_SLOTS,
  RTS_BLOCK_GENERATION_OFFSET,
  RTS_BLOCK_INDEX_OFFSET,
  RTS_FIFO_OFFSET,
  RTS_PLACE_OFFSET,
  RTS_SIZE,
} from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { Handler } from "../../src/core/message/dispatch.js";
import type { ReceiveOptions } from "../../src/core/message/pacing.js";
import { CANCELED, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Context, ContextOptions } from "../../src/pami/context.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { scaled, stepsOf } from "../support/effort.js";
import { type Posted, postedJob } from "../support/posted.js";
import { randomOf } from "../support/random.js";
import { recordsIn } from "../support/record.js";
import { replayNote, SEED } from "../support/seed.js";

const KIB = 1024;
const DATA = 1;
const SMALL = 2;
const LIMITS = {
  tasks: 3,
  contexts: 2,
  laneBytes: 2 * KIB,
  heapBytes: 2 ** 22,
  regions: 16,
  fifos: 1,
  slots: 4,
};
/** Bytes around a destination that nobody may write. */
const MARGIN = 64;
const NAMES: Record<number, string> = {
  [DESCRIPTOR_RGET]: "RGET",
  [DESCRIPTOR_FETCH]: "FETCH",
  [DESCRIPTOR_REFILL]: "REFILL",
  [DESCRIPTOR_MOVE]: "MOVE",
  [DESCRIPTOR_NOTICE]: "NOTICE",
};

interface Way {
  readonly name: string;
  readonly fromRegion: boolean;
  readonly intoRegion: boolean;
}
const WAYS: readonly Way[] = [
  { name: "region to region", fromRegion: true, intoRegion: true },
  { name: "region to ordinary memory", fromRegion: true, intoRegion: false },
  { name: "ordinary memory to region", fromRegion: false, intoRegion: true },
  { name: "ordinary memory to ordinary memory", fromRegion: false, intoRegion: false },
];

interface Asked extends ReceiveOptions {
  readonly way?: Way;
  readonly bytes: number;
  readonly options?: ContextOptions;
  /** Of the origin. */
  readonly sendSignal?: AbortSignal;
  /** What the target's handler does, where it takes nothing. */
  readonly handler?: Handler;
  /** How often an advance() throws what that does. */
  readonly throws?: number;
}

/** A payload from task 0 to task 1, and what came of it. */
function transfer(kernels: readonly KernelName[], asked: Asked, limits = LIMITS) {
  const { way = WAYS[0] as Way, bytes, options, sendSignal, handler, throws = 0, ...receive } = asked;
  const job = postedJob(limits, kernels);
  const [one, two] = job.tasks as [(typeof job.tasks)[0], (typeof job.tasks)[0]];
  const [origin, target] = [one.client.createContext(), two.client.createContext(options)];
  const payload = way.fromRegion ? one.client.createRegion(bytes).bytes : new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) payload[i] = (i * 7 + (i >>> 8)) & 255;
  const expected = payload.slice();
  const room = bytes + 2 * MARGIN;
  const around = way.intoRegion ? two.client.createRegion(room).bytes : new Uint8Array(room);
  around.fill(0xee);
  const destination = around.subarray(MARGIN, MARGIN + bytes);
  const told: { local: Result[]; remote: Result[]; received: Result[] } = { local: [], remote: [], received: [] };
  const take: Handler = (message) => {
    message.receive(destination, (_, result) => void told.received.push(result), undefined, receive);
  };
  target.dispatch(DATA, handler ?? take);
  const result = origin.send({
    to: target.endpoint,
    dispatch: DATA,
    payload,
    rendezvous: true,
    onLocal: (_, result) => {
      told.local.push(result);
      payload.fill(0);
    },
    onRemote: (_, result) => void told.remote.push(result),
    ...(sendSignal && { signal: sendSignal }),
  });
  expect(result).toBe(SUCCESS);
  const contexts = [origin, target];
  let thrown = 0;
  /** One step: what was posted goes out, one frame arrives, or all look. Whether anything happened. */
  async function step(): Promise<boolean> {
    await undefined;
    if (job.deliver()) return true;
    let events = 0;
    for (const context of contexts) {
      try {
        if (!context.closed) events += context.advance();
      } catch (error) {
        if (thrown++ === throws) throw error;
        events++;
      }
    }
    await undefined;
    return events > 0 || job.under.length > 0;
  }
  /** Until nothing happens any more; how many steps that took. */
  async function settle(): Promise<number> {
    let steps = 0;
    for (let idle = 0; idle < 3; steps++) idle = (await step()) ? 0 : idle + 1;
    return steps;
  }
  const isWhole = (): boolean => destination.every((byte, i) => byte === expected[i]);
  const isUntouchedAround = (): boolean =>
    [...around.subarray(0, MARGIN), ...around.subarray(MARGIN + bytes)].every((byte) => byte === 0xee);
  /** Transfers that a task has still. */
  const left = (task: number): number =>
    (job.tasks[task] as (typeof job.tasks)[0]).client
      .dump()
      .tasks.flatMap(({ contexts }) => contexts.flatMap(({ transfers }) => transfers)).length;
  const close = (): void => {
    for (const { client } of job.tasks) client.close();
  };
  return { job, origin, target, told, step, settle, isWhole, isUntouchedAround, left, close, destination, payload };
}

/** What a frame of a chain says, in words. */
function said({ frame }: Posted): string {
  if (!("chain" in frame)) return "";
  const words = frame.words.subarray(4);
  if (frame.chain === CHAIN_BEGIN) return `BEGIN ${(words.length - 4) / DESCRIPTOR_WORDS}`;
  if (frame.chain === CHAIN_OVER) return `OVER ${words[0]}`;
  if (frame.chain === CHAIN_STOP) return "STOP";
  if (frame.chain === CHAIN_MOVE) return `bytes ${frame.data?.length ?? "none"}, ${words[4]} over`;
  expect(frame.chain).toBe(CHAIN_SHIP);
  const kinds = Array.from(
    { length: words.length / DESCRIPTOR_WORDS },
    (_, i) => words[i * DESCRIPTOR_WORDS] as number,
  );
  return kinds.map((kind) => NAMES[kind]).join(" ");
}

/** How many messages to a dispatch id there are in frames. */
function countOf(all: readonly Posted[], id: number): number {
  const records = all.flatMap(({ frame }) => ("records" in frame ? (recordsIn(frame.records) ?? []) : []));
  return records.filter(({ meta }) => (meta & META_DISPATCH_MASK) === id).length;
}

/** The descriptors of link i of n at depth d. */
function linkOf(i: number, n: number, d: number): string {
  const parts = [i + d < n && "RGET", i + 2 * d < n && "REFILL", "MOVE", i + 1 === n && "NOTICE"];
  return parts.filter(Boolean).join(" ");
}

const KERNELS: readonly (readonly KernelName[])[] = [["wasm"], ["ts"], ["wasm", "ts"]];

describe.each(KERNELS.map((kernels) => ({ kernels })))("$kernels", ({ kernels }) => {
  it.each([1, 2, 3, 100].flatMap((n) => [1, 2, 4].map((depth) => ({ n, depth }))))(
    "P1 P2 P3 P4 P5 P8 the descriptors that cross, for $n fragments at depth $depth",
    async ({ n, depth }) => {
      const fragment = 128;
      const { job, settle, told, isWhole, close } = transfer(kernels, { bytes: n * fragment - 1, fragment, depth });
      await settle();
      const sayings = (from: number): string[] =>
        job.arrived.filter((posted) => posted.from === from && "chain" in posted.frame).map(said);
      const links = Array.from({ length: n }, (_, i) => i);
      expect(sayings(1)).toEqual([
        `BEGIN ${Math.max(0, Math.min(depth, n - depth))}`,
        ...links.map((i) => linkOf(i, n, depth)),
        "OVER 0",
      ]);
      expect(sayings(0)).toEqual(
        links.flatMap((i) => {
          const bytes = i + 1 < n ? fragment : fragment - 1;
          return [...(i + depth < n ? ["FETCH"] : []), `bytes ${bytes}, ${bytes} over`];
        }),
      );
      expect([told, isWhole()]).toEqual([{ local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] }, true]);
      expect(job.wrong).toEqual([]);
      close();
    },
  );

  it.each(WAYS)("P6 P7 P8 what comes is what was sent, and all are told once: $name", async (way) => {
    for (const bytes of [1, 7, 64, 1000, 65_536, 262_145, 700_001]) {
      for (const pace of [{}, { fragment: 64 * KIB, depth: 1 }, { fragment: 300_000, depth: 4 }]) {
        const one = transfer(kernels, { way, bytes, ...pace });
        await one.settle();
        expect([bytes, one.told]).toEqual([bytes, { local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] }]);
        expect([one.isWhole(), one.isUntouchedAround(), one.left(0), one.left(1)]).toEqual([true, true, 0, 0]);
        expect(one.job.wrong).toEqual([]);
        one.close();
      }
    }
  });

  it("P8 C10 onRemote says that all is there: not before it has been heard", async () => {
    const { job, step, told, settle, origin, close } = transfer(kernels, { bytes: 1000, fragment: 500 });
    const isLast = ({ frame }: Posted) => "chain" in frame && frame.chain === CHAIN_MOVE;
    while (job.under.filter(isLast).length + job.arrived.filter(isLast).length < 2) expect(await step()).toBe(true);
    // All is on its way; nobody has heard of it.
    for (let i = 0; i < 10; i++) origin.advance();
    expect(told.remote).toEqual([]);
    await settle();
    expect(told.remote).toEqual([SUCCESS]);
    close();
  });

  it("P10 once its origin has heard that its target gives it up, not a byte more is sent", async () => {
    const abort = new AbortController();
    const { job, step, told, settle, close } = transfer(kernels, {
      bytes: 100_000,
      fragment: 1000,
      signal: abort.signal,
    });
    const isOf = (chain: number) => (posted: Posted) => "chain" in posted.frame && posted.frame.chain === chain;
    while (job.arrived.filter(isOf(CHAIN_MOVE)).length < 20) expect(await step()).toBe(true);
    abort.abort();
    while (!job.arrived.some(isOf(CHAIN_STOP))) expect(await step()).toBe(true);
    const under = job.under.filter(isOf(CHAIN_MOVE)).length;
    const before = job.arrived.length;
    await settle();
    const after = job.arrived.slice(before).filter(isOf(CHAIN_MOVE)).slice(under);
    expect(after.map(said)).toEqual(after.map(() => "bytes none, 1000 over"));
    expect(after.length).toBeGreaterThan(50);
    expect([told.received, told.local]).toEqual([[CANCELED], [CANCELED]]);
    close();
  });

  it("what is for no rget FIFO is written nowhere: more than an rget FIFO holds, or a region that looks like one", async () => {
    const { job, close } = transfer(kernels, { bytes: 50_000, fragment: 1000 });
    const two = job.tasks[1] as (typeof job.tasks)[0];
    const region = two.client.createRegion(4 * KIB);
    const words = new Int32Array(region.bytes.buffer, region.bytes.byteOffset, KIB);
    const at = (offset: number) => (BLOCK_RGET_FIFOS_OFFSET + offset) >>> 2;
    words[at(RGET_FIFO_GENERATION_OFFSET)] = 1;
    words[at(RGET_FIFO_AWAY_OFFSET)] = AWAY_YES;
    words[at(RGET_FIFO_DEPTH_OFFSET)] = 1;
    const before = words.slice();
    const place = [region.index, region.generation, BLOCK_RGET_FIFOS_OFFSET, 1];
    const slots = (count: number) => new Array<number>(count * DESCRIPTOR_WORDS).fill(0);
    const ship = (to: number, rgetFifo: readonly number[], count: number) => {
      const frame = { chain: CHAIN_SHIP, words: Int32Array.from([...rgetFifo, ...slots(count)]), data: undefined };
      return job.forge({ from: 1 - to, to, frame });
    };
    expect([ship(1, place, 1), words]).toEqual([false, before]);
    // The origin's rget FIFO, as its RTS says.
    await undefined;
    const { frame } = job.under[0] as Posted & { frame: { records: Uint8Array } };
    const body = recordsIn(frame.records)?.[0]?.body as Uint8Array;
    const rts = new Int32Array(body.slice().buffer, 0, RTS_SIZE >>> 2);
    const offered = [RTS_BLOCK_INDEX_OFFSET, RTS_BLOCK_GENERATION_OFFSET, RTS_PLACE_OFFSET, RTS_FIFO_OFFSET];
    const rgetFifo = offered.map((offset) => rts[offset >>> 2] as number);
    expect([ship(0, rgetFifo, RGET_FIFO_SLOTS + 1), ship(0, rgetFifo, RGET_FIFO_SLOTS), ship(0, rgetFifo, 1)]).toEqual([
      false,
      true,
      false,
    ]);
    close();
  });

  it.each([1, 2, 4])(
    "P9 a target that does not advance: at depth %i its origin has so many fragments to send, then no more than one more",
    async (depth) => {
      const fragment = 10 * KIB;
      const { job, origin, target, told, isWhole, settle, close } = transfer(kernels, {
        bytes: 50 * fragment,
        fragment,
        depth,
      });
      // The target looks until it has read the offer, and shipped all the first links.
      const links = ({ from, frame }: Posted) => from === 1 && "chain" in frame && frame.chain === CHAIN_SHIP;
      for (let i = 0; i < 10 && job.under.filter(links).length < depth; i++) {
        await undefined;
        if (i === 0) job.deliver();
        target.advance();
      }
      let most = 0;
      for (let i = 0; i < 100; i++) {
        origin.advance();
        await undefined;
        while (job.deliver());
      }
      const moved = job.arrived.reduce((sum, { frame }) => sum + ("chain" in frame ? (frame.data?.length ?? 0) : 0), 0);
      expect(moved).toBe(depth * fragment);
      // And while it goes on, what is under way is bounded.
      for (let i = 0; told.received.length === 0 && i < 10_000; i++) {
        target.advance();
        origin.advance();
        await undefined;
        const under = job.under.reduce((sum, { frame }) => sum + ("chain" in frame ? (frame.data?.length ?? 0) : 0), 0);
        most = Math.max(most, under);
        job.deliver();
      }
      expect(most).toBeLessThanOrEqual((depth + 1) * fragment);
      await settle();
      expect([isWhole(), told.local]).toEqual([true, [SUCCESS]]);
      close();
    },
  );

  it("P10 bytes for the rget FIFO of an origin are written nowhere, though it was a target's before", async () => {
    const { job, origin, target, settle, told, destination, isUntouchedAround, close } = transfer(kernels, {
      bytes: 5000,
    });
    await settle();
    expect(told.received).toEqual([SUCCESS]);
    const isMove = ({ frame }: Posted) => "chain" in frame && frame.chain === CHAIN_MOVE;
    const { from, to, frame } = job.arrived.find(isMove) as Posted;
    destination.fill(7);
    target.send({
      to: origin.endpoint,
      dispatch: DATA,
      payload: new Uint8Array(5000),
      rendezvous: true,
      onLocal: () => {},
    });
    // In the place of the one before, which was open and closed; and no fragment is over by it.
    const words = (frame as { words: Int32Array }).words.slice();
    words[3] = (words[3] as number) + 2;
    words[8] = 0;
    const data = new Uint8Array(5000).fill(3);
    expect(job.forge({ from, to, frame: { chain: CHAIN_MOVE, words, data } })).toBe(false);
    expect([destination.every((byte) => byte === 7), isUntouchedAround()]).toEqual([true, true]);
    close();
  });

  it("P10 what is given up once all of it has come is there", async () => {
    const abort = new AbortController();
    const { job, target, settle, step, told, isWhole, close } = transfer(kernels, {
      way: WAYS[3] as Way,
      bytes: 5000,
      signal: abort.signal,
    });
    while (countOf(job.arrived, DISPATCH_ID_PULLED) === 0) expect(await step()).toBe(true);
    // The target reads it, and has not told of it.
    while (!isWhole()) target.advance();
    abort.abort();
    await settle();
    expect([told, isWhole()]).toEqual([{ local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] }, true]);
    close();
  });

  it("P9 one advance() sends 256 KiB at the most, of however many transfers", async () => {
    const job = postedJob({ ...LIMITS, heapBytes: 2 ** 23 }, kernels);
    const [one, two] = job.tasks as [(typeof job.tasks)[0], (typeof job.tasks)[0]];
    const [origin, target] = [one.client.createContext(), two.client.createContext()];
    let over = 0;
    target.dispatch(DATA, (message) => {
      message.receive(two.client.createRegion(message.payloadBytes).bytes, () => void over++, undefined, {
        fragment: 100_000,
      });
    });
    for (let i = 0; i < 4; i++) {
      const payload = new Uint8Array(400_000);
      origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
    }
    let most = 0;
    for (let turn = 0; over < 4 && turn < 1000; turn++) {
      target.advance();
      await job.turn();
      origin.advance();
      const sent = job.under.reduce((sum, { frame }) => sum + ("chain" in frame ? (frame.data?.length ?? 0) : 0), 0);
      most = Math.max(most, sent);
      await job.turn();
    }
    expect(over).toBe(4);
    expect(most).toBeLessThanOrEqual(256 * KIB);
    expect(most).toBeGreaterThan(100_000);
    for (const { client } of job.tasks) client.close();
  });

  it("P9 a transfer whose target does not advance holds up nobody else", async () => {
    const { job, origin, close } = transfer(kernels, { bytes: 200_000, fragment: 1000 });
    const other = (job.tasks[2] as (typeof job.tasks)[0]).client.createContext();
    let came = 0;
    other.dispatch(SMALL, () => void came++);
    for (let i = 0; i < 20; i++) {
      expect(origin.sendImmediate(other.endpoint, SMALL, null, Uint8Array.of(1))).toBe(SUCCESS);
      await job.turn();
      origin.advance();
      other.advance();
    }
    expect(came).toBe(20);
    close();
  });

  it.each<[string, Handler, number, Result]>([
    ["discarded", (message) => message.discard(), 0, SUCCESS],
    ["received into less", (message) => message.receive(new Uint8Array(4999)), 1, ERROR],
    ["not answered", () => {}, 1, ERROR],
  ])("P10 what is %s is not moved, and its origin is told", async (_, handler, throws, result) => {
    const { told, origin, settle, left, job, close } = transfer(kernels, { bytes: 5000, handler, throws });
    await settle();
    expect(told).toEqual({ local: [result], remote: [result], received: [] });
    expect([left(0), left(1), origin.drained, job.wrong]).toEqual([0, 0, true, []]);
    close();
  });

  const ENDS = ["dies", "leaves", "closes its context"] as const;
  it.each(WAYS.flatMap((way) => ["origin", "target"].flatMap((role) => ENDS.map((how) => ({ way, role, how })))))(
    "P10 the $role $how at each step: the other is told, keeps nothing, and goes on: $way.name",
    async ({ way, role, how }) => {
      const asked = { way, bytes: 40 * KIB, fragment: way.fromRegion ? 10 * KIB : 64 * KIB, depth: 2 };
      const whole = transfer(kernels, asked);
      const steps = await whole.settle();
      whole.close();
      for (const at of stepsOf(steps)) {
        const one = transfer(kernels, asked);
        const { job, origin, target, told } = one;
        for (let i = 0; i < at; i++) await one.step();
        const [ended, other, task] = role === "origin" ? [origin, target, 0] : [target, origin, 1];
        const before = { ...told };
        if (how === "dies") job.end(task);
        else if (how === "leaves") (job.tasks[task] as (typeof job.tasks)[0]).client.close();
        else ended.close();
        await one.settle();
        const results = role === "origin" ? told.received : told.local;
        // A receiver that had not heard of it has nothing to be told of.
        const mayBeNone = role === "origin" && before.received.length === 0;
        expect(results.length === 1 || (mayBeNone && results.length === 0)).toBe(true);
        for (const result of results) expect([SUCCESS, SHUTDOWN]).toContain(result);
        // The origin's are both told when it has heard that all is there.
        if ([...results, ...told.remote].includes(SUCCESS)) expect([at, one.isWhole()]).toEqual([at, true]);
        expect([one.isUntouchedAround(), one.left(role === "origin" ? 1 : 0), job.wrong]).toEqual([true, 0, []]);
        // It goes on, with the third.
        const third = (job.tasks[2] as (typeof job.tasks)[0]).client.createContext();
        let came = 0;
        third.dispatch(DATA, (message) => message.receive(new Uint8Array(20_000), () => void came++));
        other.send({
          to: third.endpoint,
          dispatch: DATA,
          payload: new Uint8Array(20_000),
          rendezvous: true,
          onLocal: () => {},
        });
        for (let i = 0; came === 0 && i < 100; i++) {
          await job.turn();
          for (const context of [other, third]) context.advance();
        }
        expect(came).toBe(1);
        for (const [number, { client }] of job.tasks.entries())
          if (how === "closes its context" || number !== task) client.close();
      }
    },
  );

  it.each(WAYS.flatMap((way) => ["origin", "target"].map((role) => ({ way, role }))))(
    "P10 the $role gives it up at each step: both are told CANCELED, or all is there: $way.name",
    async ({ way, role }) => {
      const asked = { way, bytes: 40 * KIB, fragment: way.fromRegion ? 10 * KIB : 64 * KIB, depth: 2 };
      const whole = transfer(kernels, asked);
      const steps = await whole.settle();
      whole.close();
      let canceled = 0;
      for (const at of stepsOf(steps)) {
        const abort = new AbortController();
        const one = transfer(kernels, {
          ...asked,
          ...(role === "origin" ? { sendSignal: abort.signal } : { signal: abort.signal }),
        });
        for (let i = 0; i < at; i++) await one.step();
        abort.abort();
        const atEnd = { received: one.told.received.length };
        const seen = one.destination.slice();
        await one.settle();
        const { local, remote, received } = one.told;
        expect([local.length, remote.length, received.length]).toEqual([1, 1, 1]);
        if (received[0] === SUCCESS) expect(one.isWhole()).toBe(true);
        else {
          canceled++;
          expect([received, local, atEnd.received]).toEqual([[CANCELED], [CANCELED], 0]);
          // Whoever gives up what comes to him gets not a byte more.
          if (role === "target" && at > 2) expect(one.destination).toEqual(seen);
        }
        expect([one.isUntouchedAround(), one.left(0), one.left(1), one.job.wrong]).toEqual([true, 0, 0, []]);
        one.close();
      }
      expect(canceled).toBeGreaterThan(2);
    },
  );

  it.each(WAYS)("no memory for a chain: slices are asked for, eight at a time: $name", async (way) => {
    const bytes = 600_000;
    const one = transfer(kernels, { way, bytes });
    const { client } = one.job.tasks[1] as (typeof one.job.tasks)[0];
    // The offer comes; then there is not a page left.
    await undefined;
    one.job.deliver();
    for (let pages = 1024; pages > 0; ) {
      try {
        client.createRegion(pages * PAGE_SIZE);
      } catch {
        pages >>= 1;
      }
    }
    let most = 0;
    for (let idle = 0; idle < 3; ) {
      idle = (await one.step()) ? 0 : idle + 1;
      most = Math.max(most, countOf(one.job.under, DISPATCH_ID_PULL));
    }
    expect(one.told).toEqual({ local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] });
    expect([one.isWhole(), one.isUntouchedAround(), one.left(0), one.left(1), most]).toEqual([true, true, 0, 0, 8]);
    expect([countOf(one.job.arrived, DISPATCH_ID_PULLED), one.job.wrong]).toEqual([10, []]);
    one.close();
  });

  it.each([0, 1, 2, 3])(
    `whatever the other side says of a transfer: no byte beside the destination, and others go on (${replayNote()} + %i)`,
    async (more) => {
      const random = randomOf(SEED + more);
      for (let round = 0; round < scaled(60); round++) {
        const way = WAYS[random(4)] as Way;
        const one = transfer(kernels, {
          way,
          bytes: 1 + random(20_000),
          fragment: 64 << random(7),
          depth: 1 + random(4),
        });
        const { job } = one;
        for (let step = 0; step < 300; step++) {
          await one.step();
          const like = [...job.arrived, ...job.under].filter(({ frame }) => "chain" in frame);
          const posted = like[random(like.length || 1)];
          if (posted === undefined || random(2) === 0) continue;
          const { frame, from, to } = posted as Posted & { frame: Extract<Frame, { chain: number }> };
          const words = frame.words.slice(0, random(4) === 0 ? random(frame.words.length + 1) : undefined);
          for (let changes = random(3); changes > 0 && words.length > 0; changes--) {
            const value = [random(2 ** 32), random(16), -1, 2 ** 31 - 1, (words[0] as number) + 1][random(5)] as number;
            words[random(words.length)] = value;
          }
          const chain = random(4) === 0 ? random(9) : frame.chain;
          const bytes = random(6) === 0 ? new Uint8Array(random(500)) : frame.data?.slice();
          job.forge({ from, to, frame: { chain, words, data: bytes } });
        }
        expect(one.isUntouchedAround()).toBe(true);
        // And both go on with the third.
        const third = (job.tasks[2] as (typeof job.tasks)[0]).client.createContext();
        let came = 0;
        third.dispatch(DATA, (message) => message.receive(new Uint8Array(20_000), () => void came++));
        for (const context of [one.origin, one.target]) {
          const payload = new Uint8Array(20_000);
          context.send({ to: third.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
        }
        for (let i = 0; came < 2 && i < 200; i++) {
          await job.turn();
          for (const context of [one.origin, one.target, third]) context.advance();
        }
        expect(came).toBe(2);
        one.close();
      }
    },
  );

  it.each([0, 1, 2])(
    `P5 chains in all directions among four tasks, through the smallest FIFOs (${replayNote()} + %i)`,
    async (more) => {
      const random = randomOf(SEED + more);
      const count = 120;
      // A region for each that one task may be asked to receive, since some seeds have them all go on at once.
      const limits = { ...LIMITS, tasks: 4, contexts: 1, laneBytes: 64, heapBytes: 2 ** 23, regions: count };
      const job = postedJob(limits, kernels);
      const contexts = job.tasks.map(({ client }) => client.createContext());
      const over = { local: 0, received: 0, wrong: 0 };
      for (const [task, context] of contexts.entries()) {
        const { client } = job.tasks[task] as (typeof job.tasks)[0];
        context.dispatch(DATA, (message) => {
          const [value] = message.header.slice() as unknown as [number];
          // Where there is no memory to offer it from, it comes whole.
          if (message.immediate) {
            over.received++;
            if (message.payload.slice().some((byte) => byte !== value)) over.wrong++;
            return;
          }
          const inRegion = random(2) === 0;
          const region = inRegion ? client.createRegion(message.payloadBytes) : undefined;
          const into = region?.bytes ?? new Uint8Array(message.payloadBytes);
          const done = (_: unknown, result: Result): void => {
            over.received++;
            if (result !== SUCCESS || into.some((byte) => byte !== value)) over.wrong++;
            region?.close();
          };
          message.receive(into, done, undefined, { fragment: 64 << random(12), depth: 1 + random(4) });
        });
      }
      let sent = 0;
      for (let i = 0; sent < count || over.received < count || over.local < count; i++) {
        expect(i).toBeLessThan(1e6);
        const from = contexts[random(4)] as Context;
        if (sent < count && random(4) === 0) {
          const value = random(256);
          const payload = new Uint8Array(1 + random(60_000)).fill(value);
          const to = (contexts[random(4)] as Context).endpoint;
          const onLocal = (): void => void over.local++;
          const given = { to, dispatch: DATA, header: Uint8Array.of(value), payload, rendezvous: true, onLocal };
          if (from.send(given) === SUCCESS) sent++;
        }
        if (random(3) === 0) from.advance();
        else {
          await undefined;
          job.deliver();
        }
      }
      expect([over, job.wrong]).toEqual([{ local: count, received: count, wrong: 0 }, []]);
      for (const { client } of job.tasks) client.close();
    },
  );
});

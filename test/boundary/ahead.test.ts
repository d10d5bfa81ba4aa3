// Transfers between nodes that are on their way at once: how few frames and packets they take, and that their order, results
// and ends are those of one after the other.
import { describe, expect, it } from "vitest";
import { DESCRIPTOR_BYTES_OFFSET, SLICE_BYTES, TRANSFER_DONE, TRANSFER_REMOTE_BOUNDS } from "../../assembly/layout.js";
import { ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { AHEAD_BYTES, AHEAD_BYTES_GET, RUNS_MAX } from "../../src/transport/net/remote-rma.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { postedJob } from "../support/posted.js";
import { replayNote, SEED } from "../support/seed.js";

const SLOTS = 64;
/** Of operations of which not all goes ahead. */
const LONG_BYTES = 1.5 * AHEAD_BYTES;
const LIMITS = { tasks: 2, contexts: 1, laneBytes: 4096, heapBytes: 8 * 2 ** 20, regions: 16, fifos: 1, slots: SLOTS };

describe("a column of 3,000 pieces of 8 bytes in another node", () => {
  const ROWS = 3000;
  const STRIDE = 24;

  it.each(["put", "get"] as const)(
    `%s takes one exchange for all that is in a FIFO (${replayNote()})`,
    async (call) => {
      const job = new NetworkedJob({ seed: SEED, limits: LIMITS, kernels: ["wasm", "ts"] });
      const [here, there] = job.tasks as [Networked, Networked];
      const [context, other] = [here.client.createContext(), there.client.createContext()];
      const results: Result[] = [];
      const until = async (count: number): Promise<void> => {
        for (let turns = 0; results.length < count; turns++) {
          if (turns > 1000) throw new Error("it does not come about");
          for (const one of [context, other]) one.advance();
          await job.turn();
        }
      };
      const type = (await here.client.createType()).addSimple(8, 0, ROWS, STRIDE).complete();
      const local = here.client.createRegion(8 * ROWS);
      const remote = there.client.createRegion(STRIDE * ROWS);
      const [mine, theirs] = call === "put" ? [local, remote] : [remote, local];
      for (let i = 0; i < mine.length; i++) mine.bytes[i] = (i * 7 + (i >>> 8)) & 255;
      const onRemote = (_: unknown, result: Result): void => void results.push(result);
      const place = { to: other.endpoint, local, remote: remote.handle, onRemote };
      // The sessions begin.
      expect(context.get({ ...place, bytes: 0 })).toBe(SUCCESS);
      await until(1);
      const { sent, bytes } = job.network.counts;
      expect(context[call]({ ...place, remoteType: type, bytes: 8 * ROWS })).toBe(SUCCESS);
      await until(2);
      expect(results).toEqual([SUCCESS, SUCCESS]);
      for (let i = 0; i < ROWS; i++) {
        const [packed, spread] = [8 * i, STRIDE * i];
        const [from, to] = call === "put" ? [packed, spread] : [spread, packed];
        expect(theirs.bytes.subarray(to, to + 8)).toEqual(mine.bytes.subarray(from, from + 8));
      }
      // Requests, answers, and an acknowledgment of each. A completion has a slot, too.
      const exchanges = Math.ceil((ROWS + 1) / (SLOTS - 1));
      expect(job.network.counts.sent - sent).toBeLessThanOrEqual(4 * exchanges + 4);
      // 8 bytes of data, 8 in the request and 4 in the answer.
      expect(job.network.counts.bytes - bytes).toBeLessThan(20 * ROWS + 250 * exchanges);
      for (const { client } of job.tasks) client.close();
    },
  );
});

/** Two tasks whose frames wait until the test lets them arrive. */
function pairOf(slots = SLOTS) {
  const job = postedJob({ ...LIMITS, slots }, ["wasm", "ts"]);
  const [here, there] = job.tasks as [(typeof job.tasks)[0], (typeof job.tasks)[0]];
  const [context, other] = [here.client.createContext(), there.client.createContext()] as [Context, Context];
  const local = here.client.createRegion(4096);
  const remote = there.client.createRegion(4096);
  /** Of each operation, in the order in which they were told. */
  const told: [number, Result][] = [];
  const onRemote = (which: unknown, result: Result): void => void told.push([which as number, result]);
  const place = { to: other.endpoint, local, remote: remote.handle, bytes: 8, onRemote };
  const asked = (): (Frame & { ask: number })[] =>
    job.under.map(({ frame }) => frame).filter((frame) => "ask" in frame) as (Frame & { ask: number })[];
  /** How many operations each frame asks for that is under way. */
  const counts = (): number[] => asked().map((frame) => ("more" in frame ? 1 + frame.more.length / 2 : 0));
  const finish = async (count: number): Promise<void> => {
    for (let turns = 0; told.length < count; turns++) {
      if (turns > 100) throw new Error(`${told.length} of ${count} were told`);
      for (const one of [context, other]) one.advance();
      await job.turn();
    }
  };
  const close = (): void => {
    for (const { client } of job.tasks) client.close();
  };
  return { job, here, there, context, other, local, remote, told, place, asked, counts, finish, close };
}

const done = (count: number): [number, Result][] => Array.from({ length: count }, (_, i) => [i, SUCCESS]);

describe("operations behind each other", () => {
  it("puts to one region share a frame; another region and another kind begin another one", async () => {
    const { job, there, context, told, place, counts, finish, close } = pairOf();
    const second = there.client.createRegion(64);
    for (let i = 0; i < 5; i++) context.put({ ...place, cookie: i });
    for (let i = 5; i < 8; i++) context.put({ ...place, remote: second.handle, cookie: i });
    for (let i = 8; i < 11; i++) context.get({ ...place, localOffset: 64, cookie: i });
    context.put({ ...place, localOffset: 64, cookie: 11 });
    context.advance();
    // The gets wait for the puts, and the last put for the gets.
    expect(counts()).toEqual([5, 3]);
    await finish(12);
    expect(told).toEqual(done(12));
    const frames = job.arrived.map(({ frame }) => frame).filter((frame) => "ask" in frame);
    expect(frames.map((frame) => 1 + ("more" in frame ? frame.more.length / 2 : 0))).toEqual([5, 3, 3, 1]);
    close();
  });

  it("a put behind a get sends what that brings, and an rmw behind a put changes what that wrote", async () => {
    const { context, local, remote, told, place, finish, close } = pairOf();
    remote.bytes.fill(3, 0, 8);
    local.bytes.fill(4, 64, 72);
    context.get({ ...place, cookie: 0 });
    context.put({ ...place, remoteOffset: 8, cookie: 1 });
    context.put({ ...place, localOffset: 64, remoteOffset: 16, cookie: 2 });
    const word = { to: place.to, remote: place.remote, remoteOffset: 16, operation: "fetch-add", value: 1 } as const;
    context.rmw({ ...word, result: local, resultOffset: 128, onDone: place.onRemote, cookie: 3 });
    context.put({ ...place, localOffset: 128, bytes: 4, remoteOffset: 32, cookie: 4 });
    await finish(5);
    expect(told).toEqual(done(5));
    expect([...remote.bytes.subarray(0, 24)]).toEqual([...new Array(16).fill(3), 5, 4, 4, 4, 4, 4, 4, 4]);
    expect([...remote.bytes.subarray(32, 36)]).toEqual([4, 4, 4, 4]);
    close();
  });

  it.each([
    [RUNS_MAX - 1, [RUNS_MAX - 1]],
    [RUNS_MAX, [RUNS_MAX]],
    [RUNS_MAX + 1, [RUNS_MAX, 1]],
    [300, [RUNS_MAX, RUNS_MAX, RUNS_MAX, RUNS_MAX, 44]],
  ])("%i gets: frames of %j at first", async (count, frames) => {
    const { context, told, place, counts, finish, close } = pairOf(1024);
    for (let i = 0; i < count; i++) context.get({ ...place, cookie: i });
    context.advance();
    expect(counts()).toEqual(frames);
    await finish(count);
    expect(told).toEqual(done(count));
    close();
  });

  it("of several, all bytes together are a slice at the most; a longer one goes alone, in parts", async () => {
    const { here, there, context, told, place, counts, finish, close } = pairOf();
    const [large, far] = [here.client.createRegion(3 * SLICE_BYTES), there.client.createRegion(3 * SLICE_BYTES)];
    for (let i = 0; i < large.length; i++) large.bytes[i] = (i * 5 + (i >>> 9)) & 255;
    const sizes = [SLICE_BYTES - 8, 8, 1, SLICE_BYTES, 0, SLICE_BYTES + 1, 0, 2 * SLICE_BYTES, 7];
    const at = (i: number) => ({ localOffset: i, remoteOffset: 3 * i, local: large, remote: far.handle });
    const wanted = new Uint8Array(far.length);
    for (const [i, bytes] of sizes.entries()) {
      expect(context.put({ ...place, ...at(i), bytes, cookie: i })).toBe(SUCCESS);
      wanted.set(large.bytes.subarray(i, i + bytes), 3 * i);
    }
    context.advance();
    expect(counts()).toEqual([2, 1, 2, 1, 1, 1, 1, 1, 1]);
    await finish(sizes.length);
    expect(told).toEqual(done(sizes.length));
    expect(Buffer.compare(far.bytes, wanted)).toBe(0);
    close();
  });

  it("one that is beyond the region fails alone, at the beginning, in the middle and at the end", async () => {
    for (const call of ["put", "get"] as const) {
      const { job, context, local, remote, told, place, finish, close } = pairOf();
      const [mine, theirs] = call === "put" ? [local, remote] : [remote, local];
      for (let i = 0; i < 12; i++) mine.bytes.fill(i + 1, 8 * i, 8 * i + 8);
      const isWrong = (i: number): boolean => [0, 5, 11].includes(i);
      for (let i = 0; i < 12; i++) {
        const remoteOffset = isWrong(i) ? 4090 + i : 8 * i;
        context[call]({ ...place, localOffset: 8 * i, remoteOffset, cookie: i });
      }
      await finish(12);
      expect(told).toEqual(done(12).map(([i]) => [i, isWrong(i) ? ERROR : SUCCESS]));
      for (let i = 0; i < 12; i++) expect(theirs.bytes[8 * i]).toBe(isWrong(i) ? 0 : i + 1);
      expect(job.wrong).toEqual([]);
      close();
    }
  });

  it("fences between them end in their turn, and those without a callback before them", async () => {
    const { context, told, place, counts, finish, close } = pairOf();
    const { onRemote, ...quiet } = place;
    for (let i = 0; i < 3; i++) {
      for (let times = 0; times < 5; times++) context.put(quiet);
      if (i === 1) context.put({ ...quiet, remoteOffset: 4096 });
      expect(context.fence(place.to, onRemote, i)).toBe(SUCCESS);
    }
    context.advance();
    expect(counts()).toEqual([16]);
    await finish(3);
    expect(told).toEqual([
      [0, SUCCESS],
      [1, ERROR],
      [2, SUCCESS],
    ]);
    close();
  });

  it("the local region is closed meanwhile: those behind the first one fail, and what is answered harms nothing", async () => {
    for (const call of ["put", "get"] as const) {
      const { job, here, context, told, place, counts, finish, close } = pairOf();
      const doomed = here.client.createRegion(64);
      for (let i = 0; i < 6; i++) context[call]({ ...place, local: doomed, cookie: i });
      context.advance();
      expect(counts()).toEqual([6]);
      doomed.close();
      await finish(6);
      const first = call === "put" ? SUCCESS : ERROR;
      expect(told).toEqual(done(6).map(([i]) => [i, i === 0 ? first : ERROR]));
      // The slots of the FIFO serve others.
      for (let i = 6; i < 200; i++) {
        while (context[call]({ ...place, cookie: i }) !== SUCCESS) context.advance();
      }
      await finish(200);
      expect(told.slice(6).every(([i, result], at) => i === at + 6 && result === SUCCESS)).toBe(true);
      expect(job.wrong).toEqual([]);
      close();
    }
  });

  it.each<[string, Partial<{ data: Uint8Array | undefined; results: number[] }>]>([
    ["too few bytes", { data: new Uint8Array(23) }],
    ["too many bytes", { data: new Uint8Array(25) }],
    ["no bytes", { data: undefined }],
    ["too many results", { results: [TRANSFER_DONE, TRANSFER_DONE, TRANSFER_DONE, TRANSFER_DONE] }],
    ["too few results", { results: [TRANSFER_DONE, TRANSFER_DONE] }],
    ["no result", { results: [] }],
    ["the bytes of one that has failed", { results: [TRANSFER_DONE, TRANSFER_REMOTE_BOUNDS, TRANSFER_DONE] }],
  ])("an answer with %s is wrong: nothing is written, and what it answers has failed", async (_, wrong) => {
    const { job, context, local, told, place, asked, finish, close } = pairOf();
    for (let i = 0; i < 3; i++) context.get({ ...place, localOffset: 8 * i, cookie: i });
    context.advance();
    const ask = asked()[0]?.ask as number;
    const [{ from, to }] = job.under.splice(0) as [(typeof job.under)[0]];
    const answer = { answer: ask, results: [TRANSFER_DONE], data: new Uint8Array(24).fill(9), ...wrong };
    expect(job.forge({ from: to, to: from, frame: answer })).toBe(false);
    // It has ended: the same answer is to nothing.
    expect(job.forge({ from: to, to: from, frame: { ...answer, results: [TRANSFER_DONE] } })).toBe(false);
    context.get({ ...place, localOffset: 24, cookie: 3 });
    await finish(4);
    expect(told).toEqual(done(4).map(([i]) => [i, i < 3 ? ERROR : SUCCESS]));
    expect(local.bytes.subarray(0, 32).every((byte) => byte === 0)).toBe(true);
    close();
  });

  it("an answer that comes before that of an earlier frame is wrong, and changes nothing", async () => {
    const { job, context, local, remote, told, place, asked, finish, close } = pairOf(1024);
    remote.bytes.fill(5, 0, 8);
    for (let i = 0; i < 2 * RUNS_MAX; i++) context.get({ ...place, cookie: i });
    context.advance();
    const [, second] = asked();
    const { from, to } = job.under[1] as (typeof job.under)[0];
    const answer = { answer: second?.ask as number, results: [TRANSFER_DONE], data: new Uint8Array(8 * RUNS_MAX) };
    expect(job.forge({ from: to, to: from, frame: answer })).toBe(false);
    await finish(2 * RUNS_MAX);
    expect(told).toEqual(done(2 * RUNS_MAX));
    expect(local.bytes[0]).toBe(5);
    expect(job.wrong).toEqual([]);
    close();
  });

  it("so many bytes are ahead, whatever their sizes", async () => {
    for (const call of ["put", "get"] as const) {
      const { here, there, context, told, place, asked, job, finish, close } = pairOf(1024);
      const [large, far] = [here.client.createRegion(SLICE_BYTES), there.client.createRegion(SLICE_BYTES)];
      const at = { ...place, local: large, remote: far.handle };
      const sizes = Array.from({ length: 60 }, (_, i) => (i * 7919 * 31) % SLICE_BYTES);
      for (const [i, bytes] of sizes.entries()) expect(context[call]({ ...at, bytes, cookie: i })).toBe(SUCCESS);
      context.advance();
      const most = call === "put" ? AHEAD_BYTES : AHEAD_BYTES_GET;
      const ahead = (): number =>
        asked().reduce((sum, frame) => {
          if (!("descriptor" in frame)) return sum;
          const first = Math.min(frame.descriptor[DESCRIPTOR_BYTES_OFFSET >>> 2] as number, SLICE_BYTES);
          return sum + [...frame.more].reduce((all, word, i) => (i % 2 === 0 ? all + word : all), first);
        }, 0);
      expect(ahead()).toBeGreaterThanOrEqual(most);
      for (let turns = 0; told.length < sizes.length && turns < 1000; turns++) {
        expect(ahead()).toBeLessThan(most + SLICE_BYTES);
        job.deliver();
        for (const { agent } of job.tasks) agent.turn();
        context.advance();
      }
      await finish(sizes.length);
      expect(told).toEqual(done(sizes.length));
      close();
    }
  });

  it("small ones that come while a frame is away wait, and share the next one", async () => {
    const { job, here, context, told, place, counts, finish, close } = pairOf();
    for (let i = 0; i < 10; i++) {
      context.put({ ...place, cookie: i });
      context.advance();
      here.agent.turn();
    }
    expect(counts()).toEqual([1]);
    await finish(10);
    const frames = job.arrived.map(({ frame }) => frame).filter((frame) => "ask" in frame);
    expect(frames.map((frame) => 1 + ("more" in frame ? frame.more.length / 2 : 0))).toEqual([1, 9]);
    expect(told).toEqual(done(10));
    close();
  });

  it("rmws go one by one, with and without an old value; one behind a put that has failed changes nothing", async () => {
    const { context, local, remote, told, place, counts, finish, close } = pairOf();
    const word = { to: place.to, remote: place.remote, type: "i32", onDone: place.onRemote } as const;
    new Int32Array(remote.bytes.buffer, remote.bytes.byteOffset, 1)[0] = 7;
    context.put({ ...place, remoteOffset: 64, cookie: 0 });
    context.rmw({ ...word, operation: "add", value: 1, cookie: 1 });
    context.rmw({ ...word, operation: "fetch-add", value: 1, result: local, resultOffset: 64, cookie: 2 });
    context.rmw({ ...word, operation: "add", value: 1, cookie: 3 });
    const notify = { remote: place.remote, offset: 128 };
    context.put({ ...place, remoteOffset: 4096, notify, cookie: 4 });
    context.put({ ...place, remoteOffset: 64, notify, cookie: 5 });
    context.advance();
    expect(counts()).toEqual([1]);
    await finish(6);
    expect(told).toEqual(done(6).map(([i]) => [i, i === 4 ? ERROR : SUCCESS]));
    const words = (of: typeof local): Int32Array => new Int32Array(of.bytes.buffer, of.bytes.byteOffset, 64);
    expect([words(remote)[0], words(local)[16], words(remote)[32]]).toEqual([10, 8, 1]);
    close();
  });

  it("one that fails is passed by none: what is behind it lands behind it", async () => {
    const { here, there, context, told, place, finish, close } = pairOf(1024);
    const far = there.client.createRegion(SLICE_BYTES);
    const large = here.client.createRegion(SLICE_BYTES);
    const at = { ...place, remote: far.handle, local: large };
    // Each frame ends with bytes beyond the region, and all others overwrite the same place.
    for (let i = 0; i < 300; i++) {
      large.bytes[i] = i & 255;
      context.put({ ...at, localOffset: i, remoteOffset: i % 3 === 2 ? SLICE_BYTES : 0, bytes: 1, cookie: i });
    }
    await finish(300);
    expect(told).toEqual(done(300).map(([i]) => [i, i % 3 === 2 ? ERROR : SUCCESS]));
    expect(far.bytes[0]).toBe(298 & 255);
    close();
  });

  it("the target closes its region in the middle of a long one: that and those behind it fail, each once", async () => {
    for (const call of ["put", "get"] as const) {
      const { job, here, there, context, told, place, finish, close } = pairOf();
      const [large, far] = [here.client.createRegion(LONG_BYTES), there.client.createRegion(LONG_BYTES)];
      const at = { ...place, local: large, remote: far.handle, bytes: LONG_BYTES };
      for (let i = 0; i < 3; i++) context[call]({ ...at, cookie: i });
      context.advance();
      for (let frames = 0; frames < 3; frames++) job.deliver();
      far.close();
      await finish(3);
      expect(told).toEqual(done(3).map(([i]) => [i, ERROR]));
      // Once a part has failed, no more of its operation are asked for.
      const parts = job.arrived.filter(({ frame }) => "ask" in frame).length;
      expect(parts).toBeLessThanOrEqual(3 + (3 * AHEAD_BYTES) / SLICE_BYTES);
      context[call]({ ...place, cookie: 3 });
      await finish(4);
      expect(told[3]).toEqual([3, SUCCESS]);
      expect(job.wrong).toEqual([]);
      close();
    }
  });

  it("the origin closes its region in the middle of a long one, and the slots serve others meanwhile", async () => {
    for (const call of ["put", "get"] as const) {
      const { job, here, there, context, told, place, finish, close } = pairOf();
      const [large, far] = [here.client.createRegion(8 * SLICE_BYTES), there.client.createRegion(8 * SLICE_BYTES)];
      for (let i = 0; i < 3; i++)
        context[call]({ ...place, local: large, remote: far.handle, bytes: 8 * SLICE_BYTES, cookie: i });
      context.advance();
      job.deliver();
      large.close();
      for (let i = 3; i < 200; i++) {
        while (context[call]({ ...place, cookie: i }) !== SUCCESS) {
          context.advance();
          job.deliver();
        }
      }
      await finish(200);
      // All of the first put was on its way.
      const first = call === "put" ? SUCCESS : ERROR;
      expect(told).toEqual(done(200).map(([i]) => [i, i === 0 ? first : i < 3 ? ERROR : SUCCESS]));
      expect(job.wrong).toEqual([]);
      close();
    }
  });

  it("their target ends: all of them end with SHUTDOWN, and later answers are to nothing", async () => {
    const { job, here, context, other, told, place, counts, close } = pairOf();
    for (let i = 0; i < 100; i++) expect(context.put({ ...place, cookie: i })).toBe(SUCCESS);
    context.advance();
    expect(counts().reduce((sum, count) => sum + count, 0)).toBe(SLOTS / 2);
    job.deliver();
    const late = job.under.find(({ frame }) => "answer" in frame) as (typeof job.under)[0];
    job.end(1);
    for (let turns = 0; told.length < 100 && turns < 1000; turns++) {
      here.agent.turn();
      context.advance();
    }
    expect(told).toEqual(done(100).map(([i]) => [i, SHUTDOWN]));
    expect(context.put(place)).toBe(SHUTDOWN);
    job.forge(late);
    expect(told.length).toBe(100);
    expect(context.drained).toBe(true);
    expect(other.closed).toBe(false);
    close();
  });
});

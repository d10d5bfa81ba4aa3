// A member of the job that has the key, and lies in what its frames carry: calls, offers, regions, geometries. Each lie is a
// message or frame in the right form. What belongs to others stays right, no task throws, and what is kept is bounded.
import { describe, expect, it } from "vitest";
import {
  BLOCK_RGET_FIFOS_OFFSET,
  CHAIN_BEGIN,
  RGET_FIFO_CHAIN_GENERATION_OFFSET as CHAIN_GENERATION,
  RGET_FIFO_CHAIN_INDEX_OFFSET as CHAIN_INDEX,
  CHAIN_SHIP,
  COLLECTIVE_ACTIVE,
  COLLECTIVE_ASK,
  COLLECTIVE_CLOSED,
  COLLECTIVE_DATA,
  COLLECTIVE_EXTENSION,
  COLLECTIVE_FAILED,
  COLLECTIVE_LEFT,
  COLLECTIVE_READY,
  COLLECTIVE_REFUSED,
  COLLECTIVE_TABLE,
  COLLECTIVE_VOTE,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_GET,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_PUT,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_RMW,
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  DISPATCH_ID_ABORT,
  DISPATCH_ID_CALL,
  DISPATCH_ID_COLLECTIVE,
  DISPATCH_ID_NOTICE,
  DISPATCH_ID_PULL,
  DISPATCH_ID_PULLED,
  DISPATCH_ID_REPLY,
  KIND_FIRST,
  KIND_MESSAGE,
  RGET_FIFO_SIZE,
  RGET_FIFO_STATUS_OFFSET,
  RMW_SET,
} from "../../assembly/layout.js";
import { COMERS_MAX, Creation, Creations } from "../../src/collective/creation.js";
import type { Channel } from "../../src/collective/schedule/channel.js";
import { HandlerTable } from "../../src/core/message/dispatch.js";
import type { Message } from "../../src/core/message/message.js";
import { SUCCESS } from "../../src/core/result.js";
import type { Geometry } from "../../src/index.js";
import { KEPT_BYTES_MAX, LateHandler } from "../../src/protocol/late-handler.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { DATA, HONEST, HOSTILE, hostileJob, LIMITS, record, records, TARGET } from "../support/hostile-job.js";
import { SEED } from "../support/seed.js";

// Loaded on demand: no turn of virtual time waits for that.
await import("../../src/pami/make-geometry.js");

const CALLED = 5;
const REPLY = Uint8Array.of(1, 2, 3);
const bytesOf = (...words: readonly number[]): number[] => [...new Uint8Array(Uint32Array.from(words).buffer)];
const space = (bytes: number): number[] => new Array<number>((8 - (bytes % 8)) % 8).fill(0);

/** A whole message to a dispatch id of pamir's own. */
function own(id: number, header: readonly number[], payload: readonly number[] = []): Frame {
  const body = payload.length === 0 ? header : [...header, ...space(header.length), ...payload];
  return records(record(KIND_MESSAGE, header.length, body, body.length, id));
}

const started = async (condition: () => boolean, settle: () => Promise<void>): Promise<void> => {
  for (let tries = 0; tries < 200 && !condition(); tries++) {
    await settle();
    await new Promise(setImmediate);
  }
  expect(condition()).toBe(true);
};

describe("lies about calls", () => {
  it("a reply to a call that another task was asked is dropped: the caller gets that task's reply", async () => {
    const { context, other, post, settle, close } = hostileJob(SEED);
    let answer = (_: Uint8Array): void => {};
    other.dispatch(CALLED, () => new Promise<Uint8Array>((resolve) => (answer = resolve)));
    const reply = context.call(other.endpoint, CALLED);
    let came: Uint8Array | undefined;
    void reply.then((bytes) => (came = bytes));
    for (let i = 0; i < 5; i++) {
      await settle();
      other.advance();
    }
    for (const status of [0, 1]) await post(own(DISPATCH_ID_REPLY, bytesOf(1, status), [9, 9]));
    expect(came).toBeUndefined();
    answer(REPLY);
    await started(
      () => came !== undefined,
      async () => {
        other.advance();
        await settle();
      },
    );
    expect(came).toEqual(REPLY);
    close();
  });

  it("an abort of another task's call is dropped: its signal stays as it is", async () => {
    const { context, other, post, settle, close } = hostileJob(SEED);
    let signal: { readonly aborted: boolean } | undefined;
    let answer = (_: Uint8Array): void => {};
    context.dispatch(CALLED, (message) => {
      signal = message.signal;
      return new Promise<Uint8Array>((resolve) => (answer = resolve));
    });
    let came: Uint8Array | undefined;
    void other.call(context.endpoint, CALLED).then((bytes) => (came = bytes));
    await started(() => signal !== undefined, settle);
    for (const why of [0, 1, 2, 3, 0xffffffff]) await post(own(DISPATCH_ID_ABORT, bytesOf(1, why)));
    expect(signal?.aborted).toBe(false);
    answer(REPLY);
    await started(
      () => came !== undefined,
      async () => {
        await settle();
        other.advance();
      },
    );
    expect(came).toEqual(REPLY);
    close();
  });

  it.each<[string, number, number]>([
    ["a call", DISPATCH_ID_CALL, 8],
    ["a reply", DISPATCH_ID_REPLY, 8],
    ["an abort", DISPATCH_ID_ABORT, 8],
    ["a pull", DISPATCH_ID_PULL, 24],
    ["what was pulled", DISPATCH_ID_PULLED, 24],
    ["a notice", DISPATCH_ID_NOTICE, 20],
    ["a message of a geometry", DISPATCH_ID_COLLECTIVE, 28],
  ])("%s whose header is too short is dropped and counted, whole or in packets", async (_, id, least) => {
    const { target, came, post, close } = hostileJob(SEED);
    let wrong = 0;
    for (const bytes of [0, 1, least - 4, least - 1]) {
      const header = new Array<number>(bytes).fill(1);
      await post(own(id, header));
      await post(own(id, header, [1, 2, 3, 4]));
      await post(
        records(
          record(KIND_FIRST, bytes, [4, 0, 0, 0, 0, 0, 0, 0, ...header, ...space(bytes), 1, 2, 3, 4], undefined, id),
        ),
      );
      wrong += 3;
      expect(target.frames.wrong).toBe(wrong);
    }
    await post(records(record(KIND_MESSAGE, 0, [1, 2])));
    expect(came).toEqual([[HOSTILE, 2]]);
    close();
  });

  it("dispatch ids of pamir's own that nothing serves are dropped", async () => {
    const { came, post, close } = hostileJob(SEED);
    for (const id of [DISPATCH_ID_ABORT + 1, 5000, 8191, 8192 + DATA, 0xffff]) await post(own(id, bytesOf(1, 2, 3, 4)));
    expect(came.filter(([, bytes]) => bytes > 0)).toEqual([]);
    await post(records(record(KIND_MESSAGE, 0, [1, 2])));
    expect(came.at(-1)).toEqual([HOSTILE, 2]);
    close();
  });
});

/** A put, get or rmw of the liar's on a region of the target's node. */
function asks(kind: number, index: number, generation: number, offset: number, code: number, data?: Uint8Array): Frame {
  const descriptor = new Int32Array(DESCRIPTOR_WORDS);
  descriptor[DESCRIPTOR_KIND_OFFSET >>> 2] = kind;
  descriptor[DESCRIPTOR_BYTES_OFFSET >>> 2] = code;
  descriptor[DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2] = index;
  descriptor[DESCRIPTOR_REMOTE_GENERATION_OFFSET >>> 2] = generation;
  descriptor[DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2] = offset;
  descriptor[DESCRIPTOR_VALUE_OFFSET >>> 2] = 0x41414141;
  return { ask: 1, descriptor, moved: 0, more: [], data };
}

/** The place of an rget FIFO, as an offer or a BEGIN names it. */
interface Place {
  readonly index: number;
  readonly generation: number;
  readonly offset: number;
  readonly fifo: number;
}

/** A transfer with the target under way, whose frames the liar may replace. @param isOffered by the target; else by the liar */
async function transfer(isOffered: boolean) {
  const rig = hostileJob(SEED, { ...LIMITS, regions: 16 });
  const { target, hostile, context, settle } = rig;
  const liar = hostile.client.createContext();
  const [region, landing] = [target.client.createRegion(2 ** 18), hostile.client.createRegion(2 ** 18)];
  region.bytes.fill(1);
  const chains: { words: Int32Array; chain: number }[] = [];
  /** What the target's agent says of its rget FIFO. */
  let place: Place | undefined;
  const { onFrame } = hostile.frames;
  hostile.frames.onFrame = (from, to, frame) => {
    if ("chain" in frame && frame.chain === CHAIN_BEGIN) {
      const [index = 0, generation = 0, offset = 0, fifo = 0] = frame.words.subarray(4);
      place ??= { index, generation, offset, fifo };
    }
    return onFrame(from, to, frame);
  };
  const { send } = hostile.frames;
  const isHeld = { value: false };
  hostile.frames.send = (from, to, frame) => {
    if ("chain" in frame) {
      chains.push({ chain: frame.chain, words: frame.words.slice() });
      const [index = 0, generation = 0, offset = 0, fifo = 0] = frame.words;
      place ??= { index, generation, offset, fifo };
      if (isHeld.value) return;
    }
    send.call(hostile.frames, from, to, frame);
  };
  const receive = (into: Uint8Array) => (message: { receive(to: Uint8Array): void }) => message.receive(into);
  const offer = { dispatch: CALLED, rendezvous: true, onLocal: () => {}, onRemote: () => {} };
  isHeld.value = true;
  if (isOffered) {
    liar.dispatch(CALLED, receive(landing.bytes));
    context.send({ ...offer, to: liar.endpoint, payload: region.bytes });
  } else {
    context.dispatch(CALLED, receive(region.bytes));
    landing.bytes.fill(7);
    liar.send({ ...offer, to: context.endpoint, payload: landing.bytes });
  }
  for (let i = 0; i < 20 && place === undefined; i++) {
    liar.advance();
    await settle();
  }
  expect(place).toBeDefined();
  isHeld.value = false;
  return { ...rig, liar, region, landing, chains, place: place as unknown as Place };
}

describe("lies about regions", () => {
  it.each([true, false])(
    "what pamir keeps in a region of its own is neither read nor changed (offered: %s)",
    async (isOffered) => {
      const { target, context, other, came, post, settle, close, place } = await transfer(isOffered);
      const { index, generation } = place;
      const { kernel, map, memory } = target;
      const pointer = kernel.placeOf(map.job, index, generation, 0, 4096);
      expect(pointer).toBeGreaterThan(0);
      const before = memory.words.slice(pointer >>> 2, (pointer >>> 2) + 1024);
      const status = BLOCK_RGET_FIFOS_OFFSET + 5 * RGET_FIFO_SIZE + RGET_FIFO_STATUS_OFFSET;
      await post(asks(DESCRIPTOR_PUT, index, generation, status, 4, Uint8Array.of(64, 0, 0, 0)));
      await post(asks(DESCRIPTOR_RMW, index, generation, status, RMW_SET));
      await post(asks(DESCRIPTOR_PUT, index, generation, 0, 4, Uint8Array.of(64, 0, 0, 0)));
      expect(memory.words.slice(pointer >>> 2, (pointer >>> 2) + 1024)).toEqual(before);
      await post(asks(DESCRIPTOR_GET, index, generation, 0, 64));
      expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
      await settle();
      expect(came).toEqual([[HONEST, 1]]);
      close();
    },
  );

  it.each([-1, 1, 2, 4, 63, 64, 65, 4096, 2 ** 20, 0x7fffffff, 0xffffffff])(
    "links of another place than those of the transfer, %i bytes off, are not sent: nothing throws",
    async (by) => {
      const { target, context, other, came, chains, place, post, settle, close } = await transfer(false);
      const shipped = chains.find(({ chain }) => chain === CHAIN_SHIP)?.words ?? new Int32Array(0);
      const words = new Int32Array(4 + DESCRIPTOR_WORDS);
      words.set([place.index, place.generation, place.offset, place.fifo]);
      const fetch = shipped.slice(4).findIndex((word, i) => i % DESCRIPTOR_WORDS === 0 && word === DESCRIPTOR_FETCH);
      const from = fetch < 0 ? undefined : shipped.slice(4 + fetch, 4 + fetch + DESCRIPTOR_WORDS);
      const { kernel, map, memory } = target;
      const at = kernel.placeOf(map.job, place.index, place.generation, place.offset, RGET_FIFO_SIZE) >>> 2;
      if (from !== undefined) words.set(from, 4);
      else {
        words[4 + (DESCRIPTOR_KIND_OFFSET >>> 2)] = DESCRIPTOR_FETCH;
        words[4 + (DESCRIPTOR_BYTES_OFFSET >>> 2)] = 2;
        words[4 + (DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2)] = memory.words[at + (CHAIN_INDEX >>> 2)] as number;
        words[4 + (DESCRIPTOR_REMOTE_GENERATION_OFFSET >>> 2)] = memory.words[at + (CHAIN_GENERATION >>> 2)] as number;
      }
      const offset = 4 + (DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2);
      words[offset] = (words[offset] as number) + by;
      for (let i = 0; i < 3; i++) await post({ chain: CHAIN_SHIP, words, data: undefined });
      expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
      await settle();
      expect(came).toEqual([[HONEST, 1]]);
      close();
    },
  );

  it.each([0, 1, 3, 7])("the origin ships no request that the target has not given: number %i", async (number) => {
    const { context, other, came, place, post, settle, close } = await transfer(true);
    const begin = new Int32Array(8);
    begin.set([place.index, place.generation, place.offset, place.fifo, 3, 1, 128, 1]);
    await post({ chain: CHAIN_BEGIN, words: begin, data: undefined });
    const words = new Int32Array(4 + DESCRIPTOR_WORDS);
    words.set([place.index, place.generation, place.offset, place.fifo]);
    words[4 + (DESCRIPTOR_KIND_OFFSET >>> 2)] = DESCRIPTOR_RGET;
    words[4 + (DESCRIPTOR_VALUE_OFFSET >>> 2)] = number;
    for (let i = 0; i < 3; i++) await post({ chain: CHAIN_SHIP, words, data: undefined });
    expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
    await settle();
    expect(came).toEqual([[HONEST, 1]]);
    close();
  });
});

/** A message of a geometry, by the words of its header. */
function collective(
  kind: number,
  { to = 0x10000, from = 0x10000, rank = 0, number = 1, tag = 0, signature = 0 },
  payload: readonly number[] = [],
): Frame {
  return own(DISPATCH_ID_COLLECTIVE, bytesOf(kind, to, from, rank, number, tag, signature), payload);
}

/** A job in which members of geometries advance until something has happened. */
function membersJob() {
  const rig = hostileJob(SEED, { ...LIMITS, heapBytes: 2 ** 23 });
  const { job, hostile, settle, context, other } = rig;
  const liar = hostile.client.createContext();
  const turn = async (): Promise<void> => {
    for (const one of [context, liar, other]) one.advance();
    await job.turn();
    await new Promise((resolve) => setTimeout(resolve));
  };
  const all = async <T>(promises: readonly Promise<T>[]): Promise<PromiseSettledResult<T>[]> => {
    let results: PromiseSettledResult<T>[] | undefined;
    void Promise.allSettled(promises).then((settled) => (results = settled));
    for (let turns = 0; turns < 500 && results === undefined; turns++) await turn();
    expect(results).toBeDefined();
    return results as unknown as PromiseSettledResult<T>[];
  };
  const values = async <T>(promises: readonly Promise<T>[]): Promise<T[]> =>
    (await all(promises)).map((one) => {
      if (one.status === "rejected") throw one.reason;
      return one.value;
    });
  const make = (members: readonly number[]) =>
    values(members.map((task) => job.tasks[task]?.client.createGeometry(members) as Promise<Geometry>));
  return { ...rig, liar, turn, all, values, make, settle };
}

describe("lies about geometries", () => {
  it.each<[string, Frame]>([
    ["a table", collective(COLLECTIVE_TABLE, {}, bytesOf(1, 0, 0xffffffff, 0, 0, 7, 2, 0xffffffff, 0, 0))],
    ["a refusal", collective(COLLECTIVE_REFUSED, { tag: 0 }, [65])],
    ["a refusal for good", collective(COLLECTIVE_REFUSED, { tag: 1 }, [65])],
    ["a member's end", collective(COLLECTIVE_LEFT, { tag: 1 }, [65])],
    ["a question", collective(COLLECTIVE_ASK, { tag: 1 }, [65])],
    ["a close", collective(COLLECTIVE_CLOSED, {})],
    ["data", collective(COLLECTIVE_DATA, {}, [1, 2, 3, 4])],
    ["a failure", collective(COLLECTIVE_FAILED, {}, [65])],
    ["a failure with success", collective(COLLECTIVE_FAILED, { tag: 0 }, [65])],
    ["a vote", collective(COLLECTIVE_VOTE, { number: 0, tag: 0xffffffff }, bytesOf(1, 0, 1))],
  ])("%s of a task that is no member is dropped, before the geometry is made and after it", async (_, lie) => {
    const { job, make, values, post, turn, close } = membersJob();
    const members = [HONEST, TARGET];
    const first = job.tasks[TARGET]?.client.createGeometry(members) as Promise<Geometry>;
    for (let i = 0; i < 5; i++) await turn();
    for (let i = 0; i < 2; i++) await post(lie);
    const second = job.tasks[HONEST]?.client.createGeometry(members) as Promise<Geometry>;
    const geometries = await values([first, second]);
    const sum = async (some: readonly Geometry[]): Promise<number[]> => {
      const sums = some.map((one) => one.allreduce({ operation: "sum", send: Int32Array.of(one.rank + 1) }));
      for (let i = 0; i < 3; i++) await post(lie);
      return (await values(sums)).map(([value]) => value as number);
    };
    expect(await sum(geometries)).toEqual([3, 3]);
    await post(lie);
    expect(await sum(geometries)).toEqual([3, 3]);
    expect(await sum(await make(members))).toEqual([3, 3]);
    close();
  });

  it("of messages to a context that has no geometries, a bounded part is kept for each task; others are kept, too", () => {
    const handlers = new HandlerTable((_, handler) => handler);
    const late = new LateHandler(handlers, DISPATCH_ID_COLLECTIVE);
    const [payload, header] = [new Uint8Array(16_000), new Uint8Array(28)];
    const from = (task: number): Message =>
      ({ task, origin: task, payloadBytes: payload.length, header, copy: () => payload }) as unknown as Message;
    for (let i = 0; i < 4096; i++) handlers.all[DISPATCH_ID_COLLECTIVE]?.(from(HOSTILE));
    handlers.all[DISPATCH_ID_COLLECTIVE]?.(from(HONEST));
    const came: number[] = [];
    late.set(({ origin }) => void came.push(origin));
    expect([came.at(-1), came.length]).toEqual([HONEST, 1 + Math.floor(KEPT_BYTES_MAX / (payload.length + 64))]);
    expect(handlers.malformed).toBe(4096 + 1 - came.length);
  });

  it("a task that says of 10^5 geometries that it makes them is heard of 65,536: others are heard, too", () => {
    const sent: number[] = [];
    const channel = { address: (kind: number) => ({ send: () => void sent.push(kind) }) } as unknown as Channel;
    const made: Creation[] = [];
    const creations = new Creations(channel, { made: (one) => void made.push(one), unmade: () => {}, watch: () => {} });
    const arrivalOf = (origin: number, key: Uint32Array, id: number) => {
      const payload = new Uint8Array(Uint32Array.of(...key, id, 0, 0xffffffff, 0, 0).buffer);
      return { origin, payload, payloadBytes: payload.length, headerWord: () => 0 };
    };
    let taken = 0;
    for (let id = 0; id < 100_000; id++)
      if (creations.created(arrivalOf(HOSTILE, Uint32Array.of(id, 0, 2, 0), id), id)) taken++;
    expect(taken).toBe(COMERS_MAX);
    const row = { id: 1, node: 0, regionIndex: 0xffffffff, regionGeneration: 0, debug: 0 };
    const creation = new Creation([TARGET, HONEST], 0, 0, row);
    expect(creations.created(arrivalOf(HONEST, creation.key, 7), 7)).toBe(true);
    creations.begin(creation);
    expect(made).toEqual([creation]);
    // One that has ended is forgotten.
    creations.endpointGone(HOSTILE);
    expect(creations.created(arrivalOf(HOSTILE, Uint32Array.of(1, 0, 2, 0), 1), 1)).toBe(true);
  });

  it("a receiver that lets more come than there is gets no more: nothing hangs", async () => {
    const { make, all, post, close } = membersJob();
    const geometries = await make([TARGET, HOSTILE]);
    const data = new Uint8Array(100_000).fill(7);
    const sent = (geometries[0] as Geometry).broadcast({ buffer: data });
    for (const tag of [0, 1])
      await post(collective(COLLECTIVE_READY, { rank: 1, tag, signature: 0 }, doubles(data.length, 1e15)));
    const got = new Uint8Array(data.length);
    await all([sent, (geometries[1] as Geometry).broadcast({ buffer: got })]);
    close();
  });

  const active = (words: readonly number[], fields: object = {}): Frame =>
    collective(COLLECTIVE_ACTIVE, { rank: 1, signature: 1, ...fields }, bytesOf(...words));

  it.each<[string, Frame]>([
    ["nothing", active([])],
    ["a prefix that is cut short", active([0, 1, 0])],
    ["an unknown type", active([4, 1, 0, 1])],
    ["a header beyond its end", active([0, 1, 0xffffffff, 1])],
    ["very many members", active([2, 1, 0, 0xffffffff])],
    ["no members", active([2, 1, 0, 0])],
    ["blocks that are cut short", active([1, 1, 0, 1])],
    ["a block beyond its end", active([1, 1, 0, 1, 100])],
    ["a root that is no member", active([0, 1, 0, 1], { signature: 99 })],
    ["a root without a sign", active([0, 1, 0, 1], { signature: 0xffffffff })],
    ["this member as the root", active([0, 1, 0, 1], { signature: 0 })],
    ["a root that goes by another member", active([0, 1, 0, 1], { signature: 2 })],
    ["an answer that nobody awaits", active([1, 2, 3], { tag: 1, number: 9 })],
  ])("an active message of %s is dropped: the geometry's others come", async (_, lie) => {
    const { make, values, post, close } = membersJob();
    const geometries = await make([TARGET, HOSTILE, HONEST]);
    const [own] = geometries as [Geometry];
    const came: number[] = [];
    own.dispatch(1, ({ payload }) => void came.push(payload.length));
    (geometries[1] as Geometry).dispatch(1, () => {});
    await post(lie);
    await values([(geometries[2] as Geometry).amBroadcast({ dispatch: 1, payload: new Uint8Array(12) })]);
    await values(geometries.map((one) => one.barrier()));
    expect(came).toEqual([12]);
    close();
  });

  it("two answers of one member stand for one: the root waits for the other member's", async () => {
    const { make, values, post, turn, close } = membersJob();
    const geometries = await make([TARGET, HOSTILE, HONEST]);
    let over = false;
    const gathered = (geometries[0] as Geometry).amGather({ dispatch: 1, send: Uint8Array.of(1) });
    void gathered.then(() => (over = true));
    const answer = collective(COLLECTIVE_ACTIVE, { rank: 1, tag: 1, signature: 0 }, [...bytesOf(1), 2]);
    for (let i = 0; i < 3; i++) await post(answer);
    for (let i = 0; i < 5; i++) await turn();
    expect(over).toBe(false);
    (geometries[2] as Geometry).dispatch(1, () => Uint8Array.of(3));
    expect((await values([gathered]))[0]).toEqual(Uint8Array.of(1, 2, 3));
    close();
  });

  it.each<[string, object, readonly number[]]>([
    ["of a task that is no member", { rank: 2, tag: 0, signature: 1 }, new Array<number>(8).fill(9)],
    ["of a rank that there is not", { rank: 0xffffffff, tag: 0, signature: 1 }, new Array<number>(8).fill(9)],
    ["of another exchange", { rank: 1, tag: 1, signature: 7 }, new Array<number>(8).fill(9)],
    ["of another length", { rank: 1, tag: 1, signature: 1 }, new Array<number>(15).fill(9)],
    ["of far too many cells", { rank: 1, tag: 1, signature: 1 }, new Array<number>(20_000).fill(9)],
    ["of a direction that there is not", { rank: 1, tag: 99, signature: 1 }, new Array<number>(8).fill(9)],
    ["to no grid", { rank: 1, number: 77, tag: 1, signature: 1 }, new Array<number>(8).fill(9)],
  ])("cells of a grid %s are dropped, early or late: the honest members' come", async (_, fields, payload) => {
    const { make, values, post, turn, close } = membersJob();
    const geometries = await make([TARGET, HOSTILE]);
    const lie = collective(COLLECTIVE_EXTENSION, { number: 0, ...fields }, payload);
    const grid = (one: Geometry) => one.createGrid({ size: [8], type: Float64Array });
    const first = grid(geometries[0] as Geometry);
    for (let i = 0; i < 40; i++) await post(lie);
    const grids = await values([first, grid(geometries[1] as Geometry)]);
    for (const [rank, one] of grids.entries()) (one.fields[0] as Float64Array).fill(rank + 1);
    await post(lie);
    for (let round = 0; round < 3; round++) {
      await values(grids.map((one) => one.exchange()));
      await post(lie);
      await turn();
    }
    expect(grids.map((one) => [...(one.fields[0] as Float64Array)])).toEqual([
      [1, 1, 1, 1, 1, 2],
      [1, 2, 2, 2, 2, 2],
    ]);
    close();
  });

  it("an answer in a wrong form fails the call, and names the member", async () => {
    const { make, all, post, close } = membersJob();
    const geometries = await make([TARGET, HOSTILE]);
    const gathered = (geometries[0] as Geometry).amGather({ dispatch: 1, send: Uint8Array.of(1) });
    await post(collective(COLLECTIVE_ACTIVE, { rank: 1, tag: 1, signature: 0 }, [1, 2, 3]));
    expect(await all([gathered])).toMatchObject([
      {
        status: "rejected",
        reason: { code: "PAMIR_COLLECTIVE", message: expect.stringContaining("rank 1 has sent 3 bytes") },
      },
    ]);
    close();
  });
});

const doubles = (...values: readonly number[]): number[] => [...new Uint8Array(Float64Array.from(values).buffer)];

// The engine thread turn by turn: the tasks are this thread's, and so is the engine, so that a test decides how far it gets.
// The names begin with the element of the mechanism that they prove.
import { describe, expect, it } from "vitest";
import {
  BLOCK_RGET_FIFOS_OFFSET,
  CONTEXT_RGET_FIFOS_OFFSET,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_SIZE,
  INJECTION_HEAD_OFFSET,
  INJECTION_MASK_OFFSET,
  RGET_FIFO_BIT_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_GENERATION_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_SLOTS,
  RGET_FIFO_SLOTS_OFFSET,
  RGET_FIFO_STATUS_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  SLICE_BYTES,
  TASK_DEAD,
  TASK_STATE_OFFSET,
  TASK_UP,
  TRANSFER_BROKEN,
} from "../../assembly/layout.js";
import { contextOf, taskOf } from "../../src/core/endpoint.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import {
  type Callback,
  type Client,
  type Context,
  ERROR,
  type MemRegion,
  type Result,
  SHUTDOWN,
  SUCCESS,
  TIMEDOUT,
} from "../../src/index.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { contextBlock, engineSlot, injectionFifo, ordinalOf } from "../../src/memory/map.js";
import { byEffort, SEED } from "../support/effort.js";
import { type EngineJob, engineJob } from "../support/engine.js";
import { PATIENCE, pattern, sameBytes } from "./support.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const KERNELS: readonly KernelName[] = ["wasm", "ts"];

/** Waits until something is so that another thread does, while nobody here advances. */
function watch(condition: () => boolean): void {
  const nap = new Int32Array(new SharedArrayBuffer(4));
  for (const end = performance.now() + PATIENCE; !condition(); Atomics.wait(nap, 0, 0, 1)) {
    if (performance.now() > end) throw new Error(`not yet: ${condition}`);
  }
}

/** Advances these in turn until the condition holds. */
function step(contexts: readonly Context[], condition: () => boolean, most = 1000): void {
  for (let steps = 0; !condition(); steps++) {
    if (steps > most) throw new Error(`after ${most} steps not yet: ${condition}`);
    for (const context of contexts) context.advance();
  }
}

/** What callbacks were told. */
function listener(): { readonly told: Result[]; readonly hear: Callback } {
  const told: Result[] = [];
  return { told, hear: (_, result) => void told.push(result) };
}

// --- Everything at once ------------------------------------------------------------------------------------------------

/** What has been issued, and what came of it. */
class Log {
  /** By name: what its callbacks were told. */
  readonly results = new Map<string, Result[]>();
  readonly wrong: string[] = [];
  readonly #expected = new Map<string, number>();
  /** By side: names of what is called back in the order of the calls. */
  readonly #order: string[][] = [[], []];

  /**
   * A callback, to be called with its name as the cookie, and once.
   * @param isThere what holds where it gets SUCCESS
   * @param side who has it called back in the order of the calls
   */
  hears(name: string, isThere: () => boolean, side?: number): Callback {
    this.#expected.set(name, (this.#expected.get(name) ?? 0) + 1);
    const order = side === undefined ? undefined : (this.#order[side] as string[]);
    order?.push(name);
    return (cookie, result) => {
      const came = this.results.get(name) ?? [];
      came.push(result);
      this.results.set(name, came);
      const next = order?.shift();
      if (cookie !== name) this.wrong.push(`${name}: cookie ${cookie}`);
      if (next !== undefined && next !== name) this.wrong.push(`${name}: it was ${next}'s turn`);
      if (result !== SUCCESS && result !== ERROR) this.wrong.push(`${name}: result ${result}`);
      if (result === SUCCESS && !isThere()) this.wrong.push(`${name}: not there`);
      if (came.length > (this.#expected.get(name) as number)) this.wrong.push(`${name}: once more`);
    };
  }

  /** What has not been called back. */
  get missing(): string[] {
    const names = [...this.#expected].filter(([name, count]) => (this.results.get(name)?.length ?? 0) < count);
    return names.map(([name]) => name);
  }

  get errors(): string[] {
    return [...this.results].filter(([, results]) => results.includes(ERROR)).map(([name]) => name);
  }
}

const AREA = 5 * MIB;
const CONTENTS = [pattern(AREA, 1), pattern(AREA, 2)];

/** One of two tasks that do everything to each other. */
interface Side {
  readonly task: number;
  readonly context: Context;
  readonly from: MemRegion;
  readonly into: MemRegion;
  /** What others add to, and behind it what was there before. */
  readonly words: MemRegion;
}

function sideOf(client: Client, context: Context): Side {
  const [from, into, words] = [client.createRegion(AREA), client.createRegion(AREA), client.createRegion(16)];
  from.bytes.set(CONTENTS[client.task] as Uint8Array);
  into.bytes.fill(0);
  words.bytes.fill(0);
  return { task: client.task, context, from, into, words };
}

/** A payload that one side offers to the other. */
interface Offering {
  readonly name: string;
  readonly dispatch: number;
  /** Its content: so many bytes of the offering side's `from`. */
  readonly at: number;
  readonly bytes: number;
  readonly fromRegion: boolean;
  /** Where in the other's `into`; undefined: it goes to ordinary memory. */
  readonly to: number | undefined;
  readonly fragment?: number;
}
const OFFERINGS: readonly Offering[] = [
  { name: "region to region", dispatch: 1, at: 5, bytes: 900_000, fromRegion: true, to: 2_400_001, fragment: 65_536 },
  { name: "short fragments", dispatch: 2, at: 7, bytes: 6400, fromRegion: true, to: 3_950_000, fragment: 64 },
  { name: "staged to region", dispatch: 3, at: 0, bytes: 500_000, fromRegion: false, to: 3_400_003 },
  { name: "region to memory", dispatch: 4, at: 99, bytes: 700_000, fromRegion: true, to: undefined },
  { name: "staged to memory", dispatch: 5, at: 3, bytes: 400_000, fromRegion: false, to: undefined },
];
/** Whose handler comes only at the end. */
const UNTAKEN: Offering = { name: "untaken", dispatch: 6, at: 9, bytes: 300_000, fromRegion: true, to: 4_200_000 };

/** Has a side take what the other one offers. */
function take(side: Side, other: Side, { name, dispatch, at, bytes, to, fragment }: Offering, log: () => Log): void {
  side.context.dispatch(dispatch, (message) => {
    const destination = to === undefined ? new Uint8Array(bytes) : side.into.bytes.subarray(to, to + bytes);
    destination.fill(0);
    const isThere = () => sameBytes(destination, other.from.bytes.subarray(at, at + bytes));
    const key = `${side.task} receives ${name}`;
    message.receive(destination, log().hears(key, isThere), key, { fragment });
  });
}

/** Issues one operation of each kind, most of them long. */
function issue({ task, context, from, into, words }: Side, other: Side, log: Log): void {
  const to = other.context.endpoint;
  const put = (name: string, localOffset: number, remoteOffset: number, bytes: number, called: string[]) => {
    const place = other.into.bytes.subarray(remoteOffset, remoteOffset + bytes);
    place.fill(0);
    const isThere = () => sameBytes(place, from.bytes.subarray(localOffset, localOffset + bytes));
    const cookie = `${task} puts ${name}`;
    const callbacks = Object.fromEntries(
      called.map((each) => [each, log.hears(cookie, each === "onRemote" ? isThere : () => true, task)]),
    );
    const where = { to, local: from, localOffset, remote: other.into.handle, remoteOffset, bytes, cookie };
    expect(context.put({ ...where, ...callbacks })).toBe(SUCCESS);
    return isThere;
  };
  const puts = [
    put("long", 0, 0, 700_000, ["onLocal", "onRemote"]),
    put("a word", 1, 700_000, 8, ["onRemote"]),
    put("quietly", 3, 710_000, 5000, []),
  ];
  const fence = `${task} fences`;
  context.fence(
    to,
    log.hears(fence, () => puts.every((isThere) => isThere()), task),
    fence,
  );
  const get = `${task} gets`;
  const place = into.bytes.subarray(2_000_000, 2_300_000);
  place.fill(0);
  const isGot = () => sameBytes(place, other.from.bytes.subarray(100, 300_100));
  const where = { localOffset: 2_000_000, remote: other.from.handle, remoteOffset: 100, bytes: 300_000 };
  context.get({ to, local: into, ...where, onLocal: log.hears(get, isGot, task), cookie: get });
  const rmw = `${task} adds`;
  const theirs = new DataView(other.words.bytes.buffer, other.words.bytes.byteOffset);
  const ours = new DataView(words.bytes.buffer, words.bytes.byteOffset);
  const old = theirs.getInt32(0, true);
  const isAdded = () => ours.getInt32(8, true) === old && theirs.getInt32(0, true) === old + 1;
  const change = {
    remote: other.words.handle,
    operation: "fetch-add",
    value: 1,
    result: words,
    resultOffset: 8,
  } as const;
  context.rmw({ to, ...change, onDone: log.hears(rmw, isAdded, task), cookie: rmw });
  // More than there are slots.
  for (let i = 0; i < 20; i++) put(`part ${i}`, 50 * i, 800_000 + 100 * i, 100, ["onRemote"]);
  for (const { name, dispatch, at, bytes, fromRegion } of [...OFFERINGS, UNTAKEN]) {
    const payload = fromRegion ? from.bytes.subarray(at, at + bytes) : from.bytes.slice(at, at + bytes);
    const cookie = `${task} offers ${name}`;
    const onLocal = log.hears(cookie, () => true);
    expect(context.send({ to, dispatch, payload, rendezvous: true, onLocal, cookie })).toBe(SUCCESS);
  }
}

describe.each(KERNELS)("turn by turn: %s", (name) => {
  /** A job in which each of two tasks has a context that does everything to the other's, and one that only looks on. */
  function everything(job: EngineJob) {
    const others = job.clients.map((client) => client.createContext());
    const all = job.free();
    const sides = job.clients.map((client) => sideOf(client, client.createContext())) as [Side, Side];
    const [a, b] = sides;
    let log = new Log();
    for (const [side, other] of [
      [a, b],
      [b, a],
    ] as const) {
      for (const each of OFFERINGS) take(side, other, each, () => log);
    }
    const contexts = [...others, a.context, b.context];
    return {
      a,
      b,
      contexts,
      begin: () => {
        log = new Log();
        issue(a, b, log);
        issue(b, a, log);
        return log;
      },
      takeAll: () => {
        take(a, b, UNTAKEN, () => log);
        take(b, a, UNTAKEN, () => log);
      },
      /** Closes all, and fails unless all memory has come back. */
      end: () => {
        for (const { context, from, into, words } of sides) {
          context.close();
          for (const region of [from, into, words]) region.close();
        }
        // Closed regions give their memory to the next one: one page of each task is in use.
        const isFree = () => {
          for (const client of job.clients) client.createRegion(1).close();
          return job.free() === all;
        };
        step(others, isFree);
      },
    };
  }

  it("P10 it ends between any two turns: all is called back once, nothing is said to be there that is not, and all goes on", () => {
    const [slots, fifos] = name === "ts" ? [4, 1] : [64, 4];
    let broken = 0;
    // In test:deep after each turn; else after a part of them, another with each seed.
    const stride = byEffort({ quick: 8, normal: 3, deep: 1 });
    for (let [turns, isOver] = [Math.abs(SEED) % stride, false]; !isOver; turns += stride) {
      const job = engineJob(name, { slots, fifos });
      const { a, b, contexts, begin, takeAll, end } = everything(job);
      const log = begin();
      for (let turn = 0; turn < turns; turn++) {
        for (const context of contexts) context.advance();
        job.serve();
      }
      const isUntaken = (missing: string[]) =>
        missing.length === 2 && missing.every((each) => each.endsWith("untaken"));
      // Until it is through with everything.
      isOver = isUntaken(log.missing);
      job.end();
      // Either may be the first who hears of it.
      const first = turns % 2 === 0 ? a.context : b.context;
      for (let i = 0; i < turns % 5; i++) first.advance();
      for (let i = 0; i < 3; i++) for (const context of contexts) context.advance();
      step(contexts, () => isUntaken(log.missing));
      expect(log.wrong).toEqual([]);
      if (log.errors.length > 0) broken++;

      // What had not begun was nobody's to end.
      takeAll();
      step(contexts, () => log.missing.length === 0);
      expect([log.wrong, log.errors.filter((each) => each.endsWith("untaken"))]).toEqual([[], []]);
      // Now each is its own engine.
      for (let round = 0; round < 2; round++) {
        const next = begin();
        step(contexts, () => next.missing.length === 0);
        // The first fences tell what became of what was behind the last ones.
        const errors = next.errors.filter((each) => round > 0 || !each.endsWith("fences"));
        expect([next.wrong, errors]).toEqual([[], []]);
      }
      for (let i = 0; i < 3; i++) expect(contexts.map((context) => context.advance())).toEqual(contexts.map(() => 0));
      end();
    }
    expect(broken).toBeGreaterThan(Math.floor(10 / stride));
  });

  it.each([0, 1, 2, 3])(
    "P11 it is never there, which is known after all has begun and %i advances: nothing comes to an error",
    (before) => {
      for (let after = 0; after < 8; after++) {
        const job = engineJob(name, { slots: 4, fifos: 1 });
        const { a, b, contexts, begin, takeAll, end } = everything(job);
        const log = begin();
        for (let i = 0; i < before; i++) for (const context of contexts) context.advance();
        job.end();
        // Whoever hears of it first is alone with it for a while.
        const first = after % 2 === 0 ? a.context : b.context;
        for (let i = 0; i < after >>> 1; i++) first.advance();
        takeAll();
        step(contexts, () => log.missing.length === 0);
        expect([log.wrong, log.errors]).toEqual([[], []]);
        end();
      }
    },
  );

  /** Rget FIFOs of a context that are in use. */
  function rgetFifosOf({ kernel, map }: EngineJob, { endpoint }: Context): number[] {
    const ordinal = ordinalOf(map, taskOf(endpoint), contextOf(endpoint));
    const first = kernel.loadWord(contextBlock(map, ordinal) + CONTEXT_RGET_FIFOS_OFFSET);
    const all = Array.from({ length: RGET_FIFO_COUNT }, (_, i) => first + BLOCK_RGET_FIFOS_OFFSET + i * RGET_FIFO_SIZE);
    return all.filter((rgetFifo) => (kernel.loadWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET) & 1) === 1);
  }

  /** An offer of which its target has no engine move anything; it has said so, and the origin's engine is not there yet. */
  function answered(job: EngineJob, answer: "discards" | "copies" | "refuses") {
    const [origin, target] = job.clients.map((client) => client.createContext()) as [Context, Context];
    const payload = (job.clients[0] as Client).createRegion(MIB).bytes;
    payload.set(pattern(MIB));
    const [sent, received] = [listener(), listener()];
    target.dispatch(1, (message) => {
      if (answer === "discards") message.discard();
      else if (answer === "refuses") throw new Error("no");
      else message.receive(new Uint8Array(MIB), received.hear);
    });
    const offer = () =>
      origin.send({ to: target.endpoint, dispatch: 1, payload, rendezvous: true, onLocal: sent.hear });
    offer();
    if (answer === "refuses") expect(() => target.advance()).toThrow("no");
    for (let i = 0; i < 10; i++) target.advance();
    return { origin, target, sent, received, offer };
  }

  it.each(["discards", "copies"] as const)(
    "P10 it ends before it has told the origin that its target %s the payload: the origin is told ERROR",
    (answer) => {
      const job = engineJob(name);
      const { origin, target, sent, received, offer } = answered(job, answer);
      const [rgetFifo = 0] = rgetFifosOf(job, origin);
      const isLeft = () =>
        job.kernel.loadWord(rgetFifo + RGET_FIFO_HEAD_OFFSET) !== job.kernel.loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET);
      expect(isLeft()).toBe(true);
      job.serve();
      expect(isLeft()).toBe(false);
      // As if it had ended within that turn, behind the last descriptor.
      const status = job.kernel.loadWord(rgetFifo + RGET_FIFO_STATUS_OFFSET);
      expect(job.kernel.loadWord(status)).not.toBe(0);
      job.kernel.storeWord(status, 0);
      job.end();
      step([origin, target], () => sent.told.length === 1);
      expect([sent.told, received.told]).toEqual([[ERROR], answer === "copies" ? [SUCCESS] : []]);
      offer();
      step([origin, target], () => sent.told.length === 2);
      expect(sent.told[1]).toBe(SUCCESS);
    },
  );

  it.each([0, 1, 2, 3, 4])(
    "P10 it ends before it has said how far it is in an injection FIFO: what is called back is so once, in order; %i were",
    (taken) => {
      const job = engineJob(name, { fifos: 1, slots: 16 });
      const [client] = job.clients as [Client];
      const context = client.createContext();
      const [from, into] = [client.createRegion(MIB), client.createRegion(MIB)];
      from.bytes.set(pattern(MIB));
      const log: [unknown, Result][] = [];
      const onRemote: Callback = (cookie, result) => void log.push([cookie, result]);
      const put = (cookie: number, bytes: number) =>
        context.put({ to: context.endpoint, local: from, remote: into.handle, bytes, onRemote, cookie });
      for (const [cookie, bytes] of [600_000, 8, 8, 8].entries()) expect(put(cookie, bytes)).toBe(SUCCESS);
      while (job.isCalled()) job.serve();
      // As if it had ended within its last turn: bits are set behind what it says, and not all of them.
      const fifo = injectionFifo(job.map, 0, 0);
      expect(job.kernel.loadWord(fifo + INJECTION_HEAD_OFFSET)).toBe(8);
      job.kernel.storeWord(fifo + INJECTION_HEAD_OFFSET, 0);
      for (let i = taken; i < 4; i++) job.kernel.clearBits(fifo + INJECTION_MASK_OFFSET, 1 << (2 * i + 1));
      context.advance();
      expect(log.length).toBe(taken);
      job.end();
      context.advance();
      step([context], () => log.length === 4);
      expect(log).toEqual([0, 1, 2, 3].map((i) => [i, i < taken ? SUCCESS : ERROR]));
      // Around the ring, each in its turn and when it is there.
      for (let cookie = 4; cookie < 30; cookie++) {
        into.bytes.fill(0);
        put(cookie, 600_000);
        step([context], () => log.length > cookie);
        expect(log[cookie]).toEqual([cookie, SUCCESS]);
        expect(sameBytes(into.bytes.subarray(0, 600_000), from.bytes.subarray(0, 600_000))).toBe(true);
      }
      expect(context.advance()).toBe(0);
    },
  );

  it("P10 it ends before it has said in which words of many there are bits: what is called back is so once, in order", () => {
    const slots = 1024;
    const job = engineJob(name, { fifos: 1, slots });
    const [client] = job.clients as [Client];
    const context = client.createContext();
    const [from, into] = [client.createRegion(MIB), client.createRegion(MIB)];
    const log: [unknown, Result][] = [];
    const onRemote: Callback = (cookie, result) => void log.push([cookie, result]);
    const put = { to: context.endpoint, local: from, remote: into.handle };
    for (let cookie = 0; cookie < 4; cookie++) {
      context.put({ ...put, bytes: 600_000, onRemote, cookie });
      // Words without any bit: they are passed over by the bits above them.
      for (let i = 0; i < 70; i++) context.put({ ...put, bytes: 8 });
    }
    while (job.isCalled()) job.serve();
    const fifo = injectionFifo(job.map, 0, 0);
    job.kernel.storeWord(fifo + INJECTION_HEAD_OFFSET, 0);
    job.kernel.storeWord(fifo + INJECTION_MASK_OFFSET + slots / 8, 0);
    context.advance();
    expect(log).toEqual([[0, SUCCESS]]);
    job.end();
    step([context], () => log.length === 4);
    expect(log.slice(1)).toEqual([1, 2, 3].map((i) => [i, ERROR]));
    for (let i = 0; i < 3; i++) expect(context.advance()).toBe(0);
  });

  /** An offer of a region that its target has: the engine thread has moved all, and each side may have been told of it. */
  function moved(job: EngineJob) {
    const [origin, target] = job.clients.map((client) => client.createContext()) as [Context, Context];
    const [from, into] = job.clients.map((client) => client.createRegion(MIB)) as [MemRegion, MemRegion];
    from.bytes.set(pattern(MIB));
    const [sent, received] = [listener(), listener()];
    target.dispatch(1, (message) => message.receive(into.bytes, received.hear));
    const offer = () =>
      origin.send({ to: target.endpoint, dispatch: 1, payload: from.bytes, rendezvous: true, onLocal: sent.hear });
    offer();
    target.advance();
    const statusOf = (context: Context) => {
      const [rgetFifo = 0] = rgetFifosOf(job, context);
      return job.kernel.loadWord(rgetFifo + RGET_FIFO_STATUS_OFFSET);
    };
    const status = { origin: statusOf(origin), target: statusOf(target) };
    while (job.isCalled()) job.serve();
    expect(sameBytes(into.bytes, from.bytes)).toBe(true);
    return { origin, target, sent, received, status, offer };
  }

  it.each([
    ["target", "late"],
    ["origin", "late"],
    // Where it was not the engine thread: who moves dies with it.
    ["origin", "never"],
  ])(
    "P10 all is moved, of which only the %s is told by now, that closes: the other, which is told %s, knows it too",
    (first, when) => {
      const job = engineJob(name);
      const { origin, target, sent, received, status } = moved(job);
      const [closing, other] = first === "origin" ? [origin, target] : [target, origin];
      const [done, late] = first === "origin" ? [sent, received] : [received, sent];
      // As if it stood still within that turn, between telling the one and the other.
      const word = first === "origin" ? status.target : status.origin;
      const bits = job.kernel.loadWord(word);
      expect(bits).not.toBe(0);
      job.kernel.storeWord(word, 0);
      step([closing], () => done.told.length === 1);
      closing.close();
      other.advance();
      if (when === "late") job.kernel.storeWord(word, bits);
      job.serve();
      step([other], () => late.told.length === 1);
      expect([done.told, late.told]).toEqual([[SUCCESS], [SUCCESS]]);
      for (let i = 0; i < 3; i++) expect(other.advance()).toBe(0);
    },
  );

  it.each(["discards", "copies", "refuses"] as const)(
    "P10 its target %s the payload and closes before the engine has told the origin: what came of it is told",
    (answer) => {
      const job = engineJob(name);
      const { origin, target, sent, received } = answered(job, answer);
      target.close();
      origin.advance();
      job.serve();
      step([origin], () => sent.told.length === 1);
      expect([sent.told, received.told]).toEqual([
        [answer === "refuses" ? ERROR : SUCCESS],
        answer === "copies" ? [SUCCESS] : [],
      ]);
      for (let i = 0; i < 3; i++) expect(origin.advance()).toBe(0);
    },
  );

  it("P10 it ends before it has told either side that all is moved: both are told ERROR", () => {
    const job = engineJob(name);
    const { origin, target, sent, received, status, offer } = moved(job);
    for (const word of [status.origin, status.target]) {
      expect(job.kernel.loadWord(word)).not.toBe(0);
      job.kernel.storeWord(word, 0);
    }
    job.end();
    step([origin, target], () => sent.told.length === 1 && received.told.length === 1);
    expect([sent.told, received.told]).toEqual([[ERROR], [ERROR]]);
    offer();
    step([origin, target], () => sent.told.length === 2 && received.told.length === 2);
    expect([sent.told[1], received.told[1]]).toEqual([SUCCESS, SUCCESS]);
  });

  it("P10 what was broken off is so once: what either side says of it late is not taken for the next transfer's", () => {
    const job = engineJob(name);
    const [origin, target] = job.clients.map((client) => client.createContext()) as [Context, Context];
    const [from, into] = job.clients.map((client) => client.createRegion(MIB)) as [MemRegion, MemRegion];
    from.bytes.set(pattern(MIB));
    const [sent, received] = [listener(), listener()];
    const options = { fragment: 65_536 };
    target.dispatch(1, (message) => message.receive(into.bytes, received.hear, undefined, options));
    const offer = () =>
      origin.send({ to: target.endpoint, dispatch: 1, payload: from.bytes, rendezvous: true, onLocal: sent.hear });
    offer();
    target.advance();
    for (let i = 0; i < 2; i++) job.serve();
    const [[ours = 0], [theirs = 0]] = [rgetFifosOf(job, origin), rgetFifosOf(job, target)];
    job.end();
    // The origin hears of it later, so that both break it off.
    step([target], () => received.told.length === 1);
    step([origin], () => sent.told.length === 1);
    expect([sent.told, received.told]).toEqual([[ERROR], [ERROR]]);
    // As chainNotice() and chainBreak() say it, had they been in the midst of that: it is over before their context
    // acknowledges the notice of the break.
    const { kernel } = job;
    const tail = kernel.loadWord(ours + RGET_FIFO_TAIL_OFFSET);
    const slot = ours + RGET_FIFO_SLOTS_OFFSET + (tail & (RGET_FIFO_SLOTS - 1)) * DESCRIPTOR_SIZE;
    kernel.storeWord(slot + DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_NOTICE);
    kernel.storeWord(slot + DESCRIPTOR_BYTES_OFFSET, TRANSFER_BROKEN);
    kernel.storeWord(ours + RGET_FIFO_TAIL_OFFSET, tail + 1);
    kernel.storeWord(theirs + RGET_FIFO_WRONG_OFFSET, TRANSFER_BROKEN);
    kernel.storeWord(theirs + RGET_FIFO_LEFT_OFFSET, 0);
    kernel.storeWord(kernel.loadWord(theirs + RGET_FIFO_STATUS_OFFSET), kernel.loadWord(theirs + RGET_FIFO_BIT_OFFSET));
    // The first while its origin's rget FIFO is not free yet; then the rget FIFOs that were broken off are used again.
    for (let count = 2; count < 12; count++) {
      into.bytes.fill(0);
      offer();
      step([origin, target], () => sent.told.length === count && received.told.length === count);
      expect([sent.told.at(-1), received.told.at(-1)]).toEqual([SUCCESS, SUCCESS]);
      expect(sameBytes(into.bytes, from.bytes)).toBe(true);
    }
  });

  it.each([2, 3, 4])(
    "P10 an rget FIFO that was broken off is free before its owner has heard of the engine's end: nothing is left in it; %i turns",
    (turns) => {
      const job = engineJob(name);
      const [x, y] = job.clients.map((client) => client.createContext()) as [Context, Context];
      const region = (task: number): MemRegion => (job.clients[task] as Client).createRegion(MIB);
      const [first, second] = [
        { from: region(0), into: region(1), sent: listener(), received: listener() },
        { from: region(1), into: region(0), sent: listener(), received: listener() },
      ];
      first.from.bytes.set(pattern(MIB, 1));
      second.from.bytes.set(pattern(MIB, 2));
      const pace = { fragment: 65_536, depth: 4 };
      y.dispatch(1, (message) => message.receive(first.into.bytes, first.received.hear, undefined, pace));
      x.dispatch(1, (message) => message.receive(second.into.bytes, second.received.hear, undefined, pace));
      y.dispatch(2, () => {
        y.send({
          to: x.endpoint,
          dispatch: 1,
          payload: second.from.bytes,
          rendezvous: true,
          onLocal: second.sent.hear,
        });
      });
      x.send({ to: y.endpoint, dispatch: 1, payload: first.from.bytes, rendezvous: true, onLocal: first.sent.hear });
      y.advance();
      for (let i = 0; i < turns; i++) job.serve();
      const rgetFifos = rgetFifosOf(job, y);
      job.end();
      step([x], () => first.sent.told.length === 1);
      x.sendImmediate(y.endpoint, 2, null, Uint8Array.of(1));
      // It is told by the rget FIFO's bit that this was broken off; the handler has another one begin there; then it hears
      // why.
      y.advance();
      expect(rgetFifosOf(job, y)).toEqual(rgetFifos);
      // The new target writes its chain before the new origin looks at what is in its rget FIFO.
      x.advance();
      const before = first.into.bytes.slice();
      step([y, x], () => [first, second].every(({ sent, received }) => sent.told.length + received.told.length === 2));
      expect([first.sent.told, first.received.told]).toEqual([[ERROR], [ERROR]]);
      expect([second.sent.told, second.received.told]).toEqual([[SUCCESS], [SUCCESS]]);
      expect([sameBytes(second.into.bytes, second.from.bytes), sameBytes(first.into.bytes, before)]).toEqual([
        true,
        true,
      ]);
    },
  );

  it("P10 what the engine has told a target is not taken back by an origin that it has not told", () => {
    const job = engineJob(name);
    const { origin, target, sent, received, status } = moved(job);
    // The target's rget FIFO may be another transfer's by now, for all that the origin knows.
    job.kernel.storeWord(status.origin, 0);
    job.end();
    step([origin], () => sent.told.length === 1);
    step([target], () => received.told.length === 1);
    expect([sent.told, received.told]).toEqual([[ERROR], [SUCCESS]]);
  });

  /** Whether a context that waits for something else sleeps, rather than spin. */
  function doesSleep(job: EngineJob, context: Context): boolean {
    const sleeps = () =>
      (job.clients[taskOf(context.endpoint)] as Client).dump().tasks[taskOf(context.endpoint)]?.sleeps ?? 0;
    const before = sleeps();
    expect(context.advanceUntil(() => false, { timeout: 20 })).toBe(TIMEDOUT);
    return sleeps() > before;
  }

  it("P10 a side that was given up, and told in the engine's turn after that, sleeps until the engine has seen it", () => {
    const job = engineJob(name);
    const { kernel } = job;
    const { origin, target, sent } = answered(job, "copies");
    const [rgetFifo = 0] = rgetFifosOf(job, origin);
    target.close();
    // There is an engine thread, and it is in the midst of something.
    kernel.storeWord(engineSlot(job.map) + TASK_STATE_OFFSET, TASK_UP);
    origin.advance();
    kernel.storeWord(
      kernel.loadWord(rgetFifo + RGET_FIFO_STATUS_OFFSET),
      kernel.loadWord(rgetFifo + RGET_FIFO_BIT_OFFSET),
    );
    expect([doesSleep(job, origin), sent.told]).toEqual([true, []]);
    job.serve();
    step([origin], () => sent.told.length === 1);
    expect(sent.told).toEqual([SUCCESS]);
  });

  it("P10 who has not been told yet that the engine thread has ended sleeps, whatever is left to do", () => {
    const job = engineJob(name);
    const { kernel } = job;
    const { origin, sent } = answered(job, "copies");
    const state = engineSlot(job.map) + TASK_STATE_OFFSET;
    kernel.storeWord(state, TASK_DEAD);
    expect([doesSleep(job, origin), sent.told]).toEqual([true, []]);
    kernel.storeWord(state, TASK_UP);
    job.end();
    step([origin], () => sent.told.length === 1);
  });

  it("P10 an origin that closes while its target copies the last of it: what it writes there then is not taken for the payload", () => {
    const job = engineJob(name);
    const { kernel } = job;
    const [origin, target] = job.clients.map((client) => client.createContext()) as [Context, Context];
    const [sent, received] = [listener(), listener()];
    target.dispatch(1, (message) => message.receive(new Uint8Array(MIB), received.hear));
    origin.send({
      to: target.endpoint,
      dispatch: 1,
      payload: (job.clients[0] as Client).createRegion(MIB).bytes,
      rendezvous: true,
      onLocal: sent.hear,
    });
    const chainNotice = kernel.chainNotice.bind(kernel);
    kernel.chainNotice = (...args) => {
      origin.close();
      return chainNotice(...args);
    };
    step([target], () => received.told.length === 1);
    expect([sent.told, received.told]).toEqual([[], [SHUTDOWN]]);
  });

  it("P11 what is short waits for a slice of each that is long, whosever it is", () => {
    const job = engineJob(name, { heapBytes: 64 * MIB });
    const [first, second] = job.clients as [Client, Client];
    const long = first.createContext();
    const short = [first.createContext(), second.createContext()];
    const [from, into] = [first.createRegion(8 * MIB), second.createRegion(8 * MIB)];
    const own = second.createRegion(8192);
    const log: string[] = [];
    const to = short[1]?.endpoint as Context["endpoint"];
    long.put({ to, local: from, remote: into.handle, onRemote: () => log.push("long") });
    for (const [number, context] of short.entries()) {
      const local = number === 0 ? from : own;
      // What is behind something is not done in the call.
      const remote = { to, local, remote: into.handle };
      context.put({ ...remote, bytes: 5000 });
      context.put({ ...remote, bytes: 8, onRemote: () => log.push(`short ${number}`) });
    }
    let turns = 0;
    for (; log.length < 2; turns++) {
      job.serve();
      for (const context of [long, ...short]) context.advance();
    }
    expect(log.toSorted()).toEqual(["short 0", "short 1"]);
    expect(turns).toBeLessThanOrEqual(3);
    for (; log.length < 3; turns++) {
      job.serve();
      long.advance();
    }
    expect(turns).toBeGreaterThanOrEqual((8 * MIB) / SLICE_BYTES);
  });

  it.each(["by hand", "a thread"])(
    "P11 the calls of the kernel on both threads, and their events, do not count fragments: 65,536 bytes in one, or in 1,024; %s",
    async (how) => {
      const calls = new Map<string, number>();
      const job = engineJob(name, {}, (kernel) => counted(kernel, calls));
      const [origin, target] = job.clients.map((client) => client.createContext()) as [Context, Context];
      const [from, into] = job.clients.map((client) => client.createRegion(65_536)) as [MemRegion, MemRegion];
      from.bytes.set(pattern(65_536));
      const thread = how === "a thread" ? await job.start() : undefined;
      let fragment = 0;
      const [sent, received] = [listener(), listener()];
      target.dispatch(1, (message) => message.receive(into.bytes, received.hear, undefined, { fragment }));
      const run = (bytes: number) => {
        fragment = bytes;
        into.bytes.fill(0);
        calls.clear();
        origin.send({ to: target.endpoint, dispatch: 1, payload: from.bytes, rendezvous: true, onLocal: sent.hear });
        let events = target.advance();
        if (thread === undefined) while (job.isCalled()) job.serve();
        // Once it sleeps, it is through with all; about to, it may find one thing more.
        else watch(() => sameBytes(into.bytes, from.bytes) && !job.isCalled() && job.isAsleep());
        expect(sameBytes(into.bytes, from.bytes)).toBe(true);
        for (let i = 0; i < 3; i++) events += origin.advance() + target.advance();
        return { events, calls: Object.fromEntries([...calls].sort()) };
      };
      // The first one makes its lane, and what is there for transfers: links for so many fragments.
      run(64);
      const [one, many] = [run(65_536), run(64)];
      expect(many).toEqual(one);
      expect(one.calls).toMatchObject({ chainWrite: 1, engineCall: 1 });
      expect([sent.told, received.told]).toEqual([
        [SUCCESS, SUCCESS, SUCCESS],
        [SUCCESS, SUCCESS, SUCCESS],
      ]);
      await thread?.stop();
    },
  );
});

/** A kernel that counts what is called. */
function counted(kernel: Kernel, calls: Map<string, number>): Kernel {
  return new Proxy(kernel, {
    get: (target, name: keyof Kernel) => {
      const called = target[name] as unknown;
      if (typeof called !== "function") return called;
      return (...parameters: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1);
        return called.apply(target, parameters);
      };
    },
  });
}

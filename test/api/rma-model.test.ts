// One-sided operations in any sequence, through the public API, against plain arrays that are changed at each call. Each
// endpoint has a zone of its own in every region: only what goes to one endpoint is in the order of the calls.
import fc from "fast-check";
import {
  type Client,
  type Context,
  EAGAIN,
  type Endpoint,
  ERROR,
  type MemRegion,
  PamiError,
  type Result,
  type RmwOperation,
  type RmwType,
  SUCCESS,
  type TransferParameters,
} from "pamir";
import { describe, expect, it } from "vitest";
import { fraction, share } from "../support/arbitraries.js";
import { assertProperty } from "../support/seed.js";
import { ENGINE_VARIANTS, PATIENCE, pattern, RESULT, sameBytes, thrownBy, until, withJob } from "./support.js";

const SLICE = 262_144;
const SHORT = 4096;
const ZONE = 2 * SLICE;
/** Two of this task, then two of the other. */
const ENDPOINTS = 4;
const REGION_BYTES = ENDPOINTS * ZONE;
/** Two of this task, one of the other. */
const SPACES = 3;
const PEER = 2;
/** Words for rmws, and behind them places for what they fetch, at the beginning of a zone: even ones of 32 bits. */
const WORDS = 8;
/** Rounds after which everything is done, whatever it was; an engine thread has its own time. */
const ROUNDS = 2000;

// --- Steps -------------------------------------------------------------------------------------------------------------

interface Transfer {
  readonly what: "transfer";
  readonly call: "put" | "get";
  readonly endpoint: number;
  /** Index of the local region, and of the remote one if it is this task's. */
  readonly local: number;
  readonly remote: number;
  readonly bytes: number;
  readonly from: number;
  /** Fraction of the zone; or bytes from the local place, for ranges that overlap. */
  readonly to: number;
  readonly shift: number | undefined;
  /** One side is the region that is closed now and then; only written, so that nothing depends on it. */
  readonly doomed: boolean;
  readonly callbacks: readonly ("onLocal" | "onRemote")[];
  /** The local bytes are overwritten once they may be. */
  readonly scribble: boolean;
  /** What its first callback does. */
  readonly inside: readonly Step[];
  readonly throws: boolean;
}

interface Rmw {
  readonly what: "rmw";
  readonly endpoint: number;
  readonly remote: number;
  readonly word: number;
  readonly operation: RmwOperation;
  readonly unsigned: boolean;
  readonly value: bigint;
  /** Whether a compare finds what it looks for. */
  readonly hit: boolean;
  readonly result: number;
  readonly place: number;
  /** Operands are words of a region. */
  readonly fromRegion: boolean;
  readonly callback: boolean;
}

type Step =
  | Transfer
  | Rmw
  | { readonly what: "fence"; readonly endpoint: number; readonly inside: readonly Step[] }
  | { readonly what: "fenceAll" }
  | { readonly what: "advance"; readonly count: number }
  | { readonly what: "store"; readonly endpoint: number; readonly space: number; readonly at: number }
  | { readonly what: "close" }
  | { readonly what: "drain" };

const endpoint = fc.nat(ENDPOINTS - 1);
const own = fc.nat(1);
const size = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0, 1, 7, 8, 16, 63, 64, 65, SHORT, SHORT + 1) },
  { weight: 2, arbitrary: fc.nat(300) },
  { weight: 3, arbitrary: fc.constantFrom(SLICE - 1, SLICE, SLICE + 1, SLICE + 65, ZONE) },
  { weight: 1, arbitrary: fc.nat(ZONE) },
);
const names: RmwOperation[] = (["set", "add", "or", "and", "xor"] as const).flatMap((name) => [
  name,
  `fetch-${name}` as const,
  `compare-${name}` as const,
  `fetch-compare-${name}` as const,
]);

const rmw = fc.record({
  what: fc.constant("rmw" as const),
  endpoint,
  remote: own,
  word: fc.nat(WORDS - 1),
  operation: fc.constantFrom(...names),
  unsigned: fc.boolean(),
  value: fc.oneof(
    fc.constantFrom(0n, 1n, -1n, 2n ** 31n, 2n ** 32n, -(2n ** 63n)),
    fc.bigInt({ min: 0n, max: 2n ** 64n }),
  ),
  hit: fc.boolean(),
  result: own,
  place: fc.nat(WORDS - 1),
  fromRegion: fc.boolean(),
  callback: fc.boolean(),
});

const transferOf = (inside: fc.Arbitrary<readonly Step[]>): fc.Arbitrary<Transfer> =>
  fc.record({
    what: fc.constant("transfer" as const),
    call: fc.constantFrom("put" as const, "get" as const),
    endpoint,
    local: own,
    remote: own,
    bytes: size,
    from: fraction,
    to: fraction,
    shift: fc.option(fc.integer({ min: -70, max: 70 }), { nil: undefined, freq: 2 }),
    doomed: fc.constantFrom(false, false, false, true),
    callbacks: fc.constantFrom([], [], ["onLocal"] as const, ["onRemote"] as const, ["onLocal", "onRemote"] as const),
    scribble: fc.boolean(),
    inside,
    throws: fc.constantFrom(false, false, false, false, false, true),
  });

const simple: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: transferOf(fc.constant([])) },
  { weight: 2, arbitrary: rmw },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("fence" as const), endpoint, inside: fc.constant([]) }) },
  { weight: 1, arbitrary: fc.constantFrom({ what: "fenceAll" as const }, { what: "close" as const }) },
);
const inside = fc.oneof(fc.constant([]), fc.array(simple, { maxLength: 8 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: transferOf(inside) },
  { weight: 5, arbitrary: rmw },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("fence" as const), endpoint, inside }) },
  { weight: 1, arbitrary: fc.constantFrom({ what: "fenceAll" as const }, { what: "close" as const }) },
  { weight: 1, arbitrary: fc.constant({ what: "drain" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant("advance" as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant("store" as const), endpoint, space: own, at: fc.nat(ZONE - 64) }),
  },
);

// --- The model ---------------------------------------------------------------------------------------------------------

/** Bytes of a region: `to` is the first behind them. */
interface Range {
  readonly space: number;
  readonly from: number;
  readonly to: number;
}

/** An operation that may not be done yet. */
interface Open {
  readonly number: number;
  readonly isRmw: boolean;
  readonly reads: readonly Range[];
  readonly writes: readonly Range[];
  /** It touches the region that is closed now and then. */
  readonly doomed: boolean;
  /** That region was closed before this was known to be done: it may have been refused. */
  mayFail: boolean;
}

/** A callback that has to come. */
interface Due {
  readonly number: number;
  readonly name: string;
}

interface World {
  readonly hasThread: boolean;
  readonly client: Client;
  readonly context: Context;
  readonly regions: readonly [MemRegion, MemRegion];
  readonly operands: MemRegion;
  readonly endpoints: readonly Endpoint[];
  readonly peerHandle: number;
  /** The regions' bytes as they are. */
  readonly memory: readonly Uint8Array[];
  /** The bytes as they have to be once everything is done. */
  readonly expected: readonly Uint8Array[];
}

const overlaps = (a: Range, b: Range): boolean => a.space === b.space && a.from < b.to && b.from < a.to;
const touches = ({ reads, writes }: Open): Range[] => [...reads, ...writes];

/** What is left of a range without the others. */
function without(range: Range, others: readonly Range[]): Range[] {
  let left = [range];
  for (const other of others) {
    left = left.flatMap((part) =>
      overlaps(part, other)
        ? [
            { ...part, to: other.from },
            { ...part, from: other.to },
          ].filter(({ from, to }) => from < to)
        : [part],
    );
  }
  return left;
}

class Run {
  readonly #world: World;
  #number = 0;
  /** By endpoint: what may not be done yet, and which callbacks have to come, in the order of the calls. */
  readonly #open: Open[][] = Array.from({ length: ENDPOINTS }, () => []);
  readonly #due: Due[][] = Array.from({ length: ENDPOINTS }, () => []);
  readonly #fenceAlls: Due[] = [];
  /** Transfers whose callback said that they were refused. */
  readonly #failed: { readonly number: number; readonly endpoint: number }[] = [];
  /** Whether anything can have been refused since the run began. */
  #mayHaveFailed = false;
  #lastFence = 0;
  #doomed: MemRegion | undefined;
  #advancing = false;
  #called = 0;
  #thrown: unknown[] = [];
  /** What was found wrong within a callback. */
  #wrong: unknown;
  #over = false;

  constructor(world: World) {
    this.#world = world;
  }

  play(steps: readonly Step[]): void {
    try {
      for (const each of steps) this.#do(each);
      this.#finish();
    } finally {
      this.#over = true;
      this.#doomed?.close();
    }
  }

  #do(each: Step): void {
    if (each.what === "transfer") this.#transfer(each);
    else if (each.what === "rmw") this.#rmw(each);
    else if (each.what === "fence") this.#fence(each.endpoint, each.inside);
    else if (each.what === "fenceAll") this.#fenceAll();
    else if (each.what === "close") this.#close();
    else if (each.what === "store") this.#store(each.endpoint, each.space, each.at);
    else if (each.what === "advance") for (let i = 0; i < each.count; i++) this.#advance();
    else this.#drain();
  }

  get #isIdle(): boolean {
    return this.#fenceAlls.length === 0 && this.#due.every(isEmpty) && this.#open.every(isEmpty);
  }

  #transfer(given: Transfer): void {
    const { call, endpoint, local, callbacks, scribble, throws } = given;
    const { client, context, regions, endpoints, peerHandle, expected } = this.#world;
    // A region that is to be closed is written, at the local or at the remote end.
    const doomed = given.doomed && (endpoint < 2 || call === "get") ? this.#doomedRegion(client) : undefined;
    const zone = endpoint * ZONE;
    const remote = endpoint < 2 ? given.remote : PEER;
    const bytes = given.bytes;
    const from = share(given.from, ZONE - bytes);
    const to = Math.min(
      Math.max(given.shift === undefined ? share(given.to, ZONE - bytes) : from + given.shift, 0),
      ZONE - bytes,
    );
    const localRange = { space: local, from: zone + from, to: zone + from + bytes };
    const remoteRange = { space: remote, from: zone + to, to: zone + to + bytes };
    const [source, target] = call === "put" ? [localRange, remoteRange] : [remoteRange, localRange];
    const number = ++this.#number;
    const open: Open = {
      number,
      isRmw: false,
      reads: [source],
      writes: doomed === undefined ? [target] : [],
      doomed: doomed !== undefined,
      mayFail: false,
    };
    // Transfers and rmws are unordered.
    if (this.#open[endpoint].some((other) => other.isRmw && this.#meet(other, open))) return;
    const isFirst = this.#isIdle;
    const handle = remote === PEER ? peerHandle : regions[given.remote].handle;
    const parameters: TransferParameters = {
      to: endpoints[endpoint],
      local: doomed !== undefined && call === "get" ? doomed : regions[local],
      localOffset: doomed !== undefined && call === "get" ? from : localRange.from,
      remote: doomed !== undefined && call === "put" ? doomed.handle : handle,
      remoteOffset: doomed !== undefined && call === "put" ? to : remoteRange.from,
      bytes,
      cookie: number,
    };
    let isFirstCallback = true;
    for (const name of callbacks) {
      parameters[name] = this.#callback(endpoint, number, name, (result) => {
        if (result !== SUCCESS) this.#refused(open, endpoint, result);
        // The local bytes of a put may be used again before the others are there.
        const isThere = call === "get" || name === "onRemote";
        this.#confirm(endpoint, isThere ? number : number - 1);
        if (scribble && call === "put" && result === SUCCESS && name === "onLocal") this.#scribble(endpoint, open);
        if (isFirstCallback) for (const each of given.inside) this.#do(each);
        isFirstCallback = false;
        if (throws) this.#throw(number);
      });
    }
    const result = context[call](parameters);
    if (result !== SUCCESS) {
      this.#refusedCall(result, isFirst);
      return;
    }
    if (doomed === undefined) {
      const moved = expected[source.space].slice(source.from, source.to);
      expected[target.space].set(moved, target.from);
    }
    this.#open[endpoint].push(open);
    for (const name of callbacks) this.#due[endpoint].push({ number, name });
    // Short, without callbacks, and nothing is unfinished: it is there.
    if (isFirst && bytes <= (this.#world.hasThread ? SHORT : SLICE) && callbacks.length === 0)
      this.#confirm(endpoint, number);
  }

  #rmw(given: Rmw): void {
    const { endpoint, word, operation, callback } = given;
    const { context, regions, endpoints, peerHandle, expected, memory, operands } = this.#world;
    const space = endpoint < 2 ? given.remote : PEER;
    const isWide = word % 2 === 1;
    const bits = isWide ? 64 : 32;
    const at = endpoint * ZONE + word * 8;
    const resultAt = endpoint * ZONE + (WORDS + given.place) * 8;
    const target = { space, from: at, to: at + bits / 8 };
    const place = { space: given.result, from: resultAt, to: resultAt + bits / 8 };
    const fetches = operation.startsWith("fetch");
    const number = ++this.#number;
    const open: Open = {
      number,
      isRmw: true,
      reads: [target],
      writes: fetches ? [target, place] : [target],
      doomed: false,
      mayFail: false,
    };
    if (this.#open[endpoint].some((other) => this.#meet(other, open))) return;
    const type = `${given.unsigned ? "u" : "i"}${bits}` as RmwType;
    const fit = (value: bigint): bigint => (given.unsigned ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value));
    const old = readWord(expected[space], at, isWide);
    const value = fit(given.value);
    const test = fit(given.hit ? old : old + 1n);
    const words = operands.bytes;
    if (given.fromRegion) {
      writeWord(words, 0, isWide, value);
      writeWord(words, 8, isWide, test);
    }
    const isFirst = this.#isIdle;
    const result = context.rmw({
      to: endpoints[endpoint],
      remote: space === PEER ? peerHandle : regions[given.remote].handle,
      remoteOffset: at,
      operation,
      type,
      value: given.fromRegion ? { region: operands } : value,
      ...(operation.includes("compare") ? { test: given.fromRegion ? { region: operands, offset: 8 } : test } : {}),
      ...(fetches ? { result: regions[given.result], resultOffset: resultAt } : {}),
      onDone: callback
        ? this.#callback(endpoint, number, "onDone", (came) => {
            expect(came).toBe(SUCCESS);
            this.#confirmRmw(endpoint, number);
          })
        : undefined,
      cookie: number,
    });
    words.fill(0); // they were read before it returned
    if (result !== SUCCESS) {
      this.#refusedCall(result, isFirst);
      return;
    }
    if (!operation.includes("compare") || given.hit) {
      writeWord(expected[space], at, isWide, combine(operation.split("-").at(-1) as string, old, value));
    }
    if (fetches) writeWord(expected[given.result], resultAt, isWide, old);
    this.#open[endpoint].push(open);
    if (callback) this.#due[endpoint].push({ number, name: "onDone" });
    else {
      // Done when it returns, whatever is before it.
      for (const range of open.writes) this.#check([range], memory, `rmw ${number}`);
      this.#confirmRmw(endpoint, number);
    }
  }

  #fence(endpoint: number, inside: readonly Step[]): void {
    const { context, endpoints } = this.#world;
    const number = ++this.#number;
    const isFirst = this.#isIdle;
    const since = this.#lastFence;
    const done = this.#callback(endpoint, number, "fence", (result) => {
      this.#confirm(endpoint, number);
      this.#fenceResult(result, since, number, [endpoint]);
      for (const each of inside) this.#do(each);
    });
    const result = context.fence(endpoints[endpoint], done, number);
    if (result !== SUCCESS) {
      this.#refusedCall(result, isFirst);
      return;
    }
    this.#lastFence = number;
    this.#due[endpoint].push({ number, name: "fence" });
  }

  #fenceAll(): void {
    const number = ++this.#number;
    const since = this.#lastFence;
    const all = Array.from({ length: ENDPOINTS }, (_, i) => i);
    const result = this.#world.context.fenceAll((cookie, came) => {
      this.#guard(cookie, number, () => {
        expect(this.#fenceAlls.shift()?.number).toBe(number);
        // Nothing before it is still to come, at any endpoint.
        expect(this.#due.flat().filter((due) => due.number < number)).toEqual([]);
        for (const each of all) this.#confirm(each, number);
        this.#fenceResult(came, since, number, all);
      });
    }, number);
    expect(result).toBe(SUCCESS);
    this.#lastFence = number;
    this.#fenceAlls.push({ number, name: "fenceAll" });
  }

  /** Closes the region that is there for it; what names it from now on is refused in the call. */
  #close(): void {
    const region = this.#doomed;
    if (region === undefined) return;
    this.#doomed = undefined;
    region.close();
    for (const open of this.#open.flat()) {
      if (!open.doomed) continue;
      open.mayFail = true;
      this.#mayHaveFailed = true;
    }
    const { context, endpoints, regions } = this.#world;
    const put = { to: endpoints[0], local: regions[0], remote: region.handle, bytes: 8, onLocal: () => {} };
    expect(thrownBy(() => context.put(put)).code).toBe("PAMIR_STALE");
    const get = { to: endpoints[1], local: region, remote: regions[0].handle, bytes: 8, onLocal: () => {} };
    expect(thrownBy(() => context.get(get)).code).toBe("PAMIR_CLOSED");
  }

  /** The task writes bytes of its own that nobody is at. */
  #store(endpoint: number, space: number, at: number): void {
    if (this.#open[endpoint].length > 0) return;
    const { memory, expected } = this.#world;
    const bytes = pattern(64, ++this.#number);
    for (const side of [memory, expected]) side[space].set(bytes, endpoint * ZONE + at);
  }

  #advance(): number {
    this.#advancing = true;
    this.#called = 0;
    this.#thrown = [];
    let events = -1;
    let thrown: unknown[] = [];
    try {
      events = this.#world.context.advance();
    } catch (error) {
      thrown = error instanceof AggregateError ? error.errors : [error];
    } finally {
      this.#advancing = false;
    }
    if (this.#wrong !== undefined) throw this.#wrong;
    expect(thrown).toEqual(this.#thrown);
    // A fenceAll is several events.
    if (thrown.length === 0) expect(events).toBeGreaterThanOrEqual(this.#called);
    return events;
  }

  /** Every callback that has to come does. */
  #drain(): void {
    const end = performance.now() + PATIENCE;
    for (let round = 0; round < ROUNDS || (this.#world.hasThread && performance.now() < end); round++) {
      if (this.#fenceAlls.length === 0 && this.#due.every(isEmpty)) return;
      this.#advance();
    }
    throw new Error(`still to come after ${ROUNDS} rounds: ${JSON.stringify([this.#due, this.#fenceAlls])}`);
  }

  #finish(): void {
    this.#drain();
    this.#fenceAll();
    this.#drain();
    const { memory, expected } = this.#world;
    for (let space = 0; space < SPACES; space++) this.#check([{ space, from: 0, to: REGION_BYTES }], memory, "the end");
    expect(expected.length).toBe(SPACES);
    expect(this.#isIdle).toBe(true);
    for (let i = 0; i < 3; i++) expect(this.#advance()).toBe(0);
  }

  /** A callback of a call: it comes once, in its turn, in an advance(). */
  #callback(endpoint: number, number: number, name: string, then: (result: Result) => void) {
    return (cookie: unknown, result: Result): void =>
      this.#guard(cookie, number, () => {
        const due = this.#due[endpoint].shift();
        if (due?.number !== number || due.name !== name) {
          throw new Error(`${name} of call ${number} came, not ${due?.name} of call ${due?.number}`);
        }
        then(result);
      });
  }

  /** Runs what a callback does; what is found wrong is told by the advance() around it. */
  #guard(cookie: unknown, number: number, body: () => void): void {
    if (this.#over || this.#wrong !== undefined) return;
    this.#called++;
    const before = this.#thrown.length;
    try {
      if (!this.#advancing) throw new Error(`a callback of call ${number} came outside of advance()`);
      expect(cookie).toBe(number);
      body();
    } catch (error) {
      if (this.#thrown.length > before && this.#thrown.at(-1) === error) throw error;
      this.#wrong = error;
    }
  }

  #throw(number: number): never {
    const error = new Error(`thrown by call ${number}`);
    this.#thrown.push(error);
    throw error;
  }

  /** Whether two operations may not be under way at once, as far as they are unordered. */
  #meet(a: Open, b: Open): boolean {
    return (
      a.writes.some((range) => touches(b).some((other) => overlaps(range, other))) ||
      b.writes.some((range) => touches(a).some((other) => overlaps(range, other)))
    );
  }

  /** EAGAIN is for those who have something under way. */
  #refusedCall(result: Result, isFirst: boolean): void {
    expect(result).toBe(EAGAIN);
    expect(isFirst).toBe(false);
  }

  #refused(open: Open, endpoint: number, result: Result): void {
    expect(result).toBe(ERROR);
    expect(open.mayFail).toBe(true);
    this.#failed.push({ number: open.number, endpoint });
  }

  /** ERROR only if something can have been refused; and if it is known that something was, and no fence in between. */
  #fenceResult(result: Result, since: number, number: number, endpoints: readonly number[]): void {
    if (result !== SUCCESS) {
      expect(result).toBe(ERROR);
      expect(this.#mayHaveFailed).toBe(true);
    }
    const isKnown = this.#failed.some(
      (failed) => failed.number > since && failed.number < number && endpoints.includes(failed.endpoint),
    );
    if (isKnown) expect(result).toBe(ERROR);
  }

  /** Transfers up to a number are done: their bytes are there, but for those that something later writes. */
  #confirm(endpoint: number, number: number): void {
    const all = this.#open[endpoint];
    const isDone = (open: Open): boolean => !open.isRmw && open.number <= number;
    for (const [i, open] of all.entries()) {
      if (!isDone(open)) continue;
      const later = all.slice(i + 1).flatMap(({ writes }) => writes);
      for (const range of open.writes) this.#check(without(range, later), this.#world.memory, `call ${open.number}`);
    }
    this.#open[endpoint] = all.filter((open) => !isDone(open));
  }

  #confirmRmw(endpoint: number, number: number): void {
    this.#open[endpoint] = this.#open[endpoint].filter((open) => open.number !== number);
  }

  #check(ranges: readonly Range[], memory: readonly Uint8Array[], what: string): void {
    for (const { space, from, to } of ranges) {
      const [is, must] = [memory[space].subarray(from, to), this.#world.expected[space].subarray(from, to)];
      if (sameBytes(is, must)) continue;
      const first = is.findIndex((byte, i) => byte !== must[i]);
      throw new Error(
        `${what}: byte ${from + first} of region ${space} is ${is[first]}, not ${must[first]} (${from} to ${to})`,
      );
    }
  }

  /** Overwrites the local bytes of a put, unless anybody else is at them. */
  #scribble(endpoint: number, open: Open): void {
    const [source] = open.reads;
    const others = this.#open[endpoint].filter(({ number }) => number !== open.number).flatMap(touches);
    if ([...others, ...open.writes].some((other) => overlaps(other, source))) return;
    for (const side of [this.#world.memory, this.#world.expected])
      side[source.space].fill(0xa5, source.from, source.to);
  }

  #doomedRegion(client: Client): MemRegion | undefined {
    if (this.#doomed !== undefined) return this.#doomed;
    try {
      this.#doomed = client.createRegion(ZONE);
    } catch (error) {
      // Those that were closed before are not yet given back.
      if (!(error instanceof PamiError) || error.code !== "PAMIR_NO_MEMORY") throw error;
    }
    return this.#doomed;
  }
}

const isEmpty = ({ length }: readonly unknown[]): boolean => length === 0;

function readWord(bytes: Uint8Array, at: number, isWide: boolean): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  return isWide ? view.getBigInt64(0, true) : BigInt(view.getInt32(0, true));
}

function writeWord(bytes: Uint8Array, at: number, isWide: boolean, value: bigint): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  if (isWide) view.setBigInt64(0, BigInt.asIntN(64, value), true);
  else view.setInt32(0, Number(BigInt.asIntN(32, value)), true);
}

function combine(operation: string, old: bigint, value: bigint): bigint {
  if (operation === "add") return old + value;
  if (operation === "or") return old | value;
  if (operation === "and") return old & value;
  return operation === "xor" ? old ^ value : value;
}

/** Everything is done, whatever the callbacks throw. */
function settle({ context, hasThread }: World): void {
  let isDone = false;
  context.fenceAll(() => {
    isDone = true;
  });
  const end = performance.now() + PATIENCE;
  for (let round = 0; !isDone && (round < ROUNDS || (hasThread && performance.now() < end)); round++) {
    try {
      context.advance();
    } catch {
      // Of a run that failed.
    }
  }
}

/** How many puts are accepted without an advance() in between, from when nothing is under way. */
function acceptedByIdle(world: World): number {
  const { context, endpoints, regions } = world;
  settle(world);
  let called = 0;
  const put = {
    to: endpoints[0],
    local: regions[0],
    remote: regions[0].handle,
    bytes: 8,
    onLocal: () => void called++,
  };
  // The one before them has taken all slots before its own along.
  context.put({ ...put, bytes: ZONE });
  until(context, () => called === 1);
  let accepted = 0;
  while (context.put(put) === SUCCESS) accepted++;
  expect(called).toBe(1);
  until(context, () => called === 1 + accepted);
  return accepted;
}

// --- Tests -------------------------------------------------------------------------------------------------------------

describe.each(ENGINE_VARIANTS)("$name", (variant) => {
  it.each([
    { slots: 4, fifos: 1, pendingBytes: 4 * 64 },
    { slots: 4, fifos: 4, pendingBytes: 0 },
    { slots: 8, fifos: 3, pendingBytes: 1024 ** 2 },
    { slots: 64, fifos: 2, pendingBytes: 64 },
  ])(
    "whatever is called, in any order: memory and callbacks are those of plain arrays ($slots slots, $fifos FIFOs, $pendingBytes bytes pending)",
    ({ slots, fifos, pendingBytes }) =>
      withJob(
        variant,
        {
          module: "keeper.js",
          scenario: "keep",
          args: { bytes: REGION_BYTES },
          context: { pendingBytes },
          contexts: 2,
          heapBytes: 12 * 1024 ** 2,
          slots,
          fifos,
        },
        ({ client, context }) => {
          let peer: { handle: number; offset: number } | undefined;
          context.dispatch(RESULT, (message) => {
            peer = JSON.parse(new TextDecoder().decode(message.payload.slice()));
          });
          until(context, () => peer !== undefined);
          const { handle, offset } = peer as unknown as { handle: number; offset: number };
          const regions = [client.createRegion(REGION_BYTES), client.createRegion(REGION_BYTES)] as const;
          const memory = [
            regions[0].bytes,
            regions[1].bytes,
            new Uint8Array(client.bytes.buffer, offset, REGION_BYTES),
          ];
          memory.forEach((bytes, space) => void bytes.set(pattern(REGION_BYTES, space + 1)));
          const world: World = {
            hasThread: variant.engine === "thread",
            client,
            context,
            regions: [...regions],
            operands: client.createRegion(16),
            endpoints: [client.endpoint(0), client.endpoint(0, 1), client.endpoint(1), client.endpoint(1, 1)],
            peerHandle: handle,
            memory,
            expected: memory.map((bytes) => new Uint8Array(bytes)),
          };
          const property = fc.property(fc.array(step, { maxLength: 100, size: "max" }), (steps) => {
            // What a run that failed has left behind is none of the next one's.
            settle(world);
            memory.forEach((bytes, space) => void world.expected[space].set(bytes));
            new Run(world).play(steps);
          });
          const before = acceptedByIdle(world);
          assertProperty(property, 60);
          // No slot and no place in the pending queue is lost.
          expect(acceptedByIdle(world)).toBe(before);
        },
      ),
  );
});

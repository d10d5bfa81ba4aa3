// The parts of a context under random operations: what each has to do (`busy`), and the counter that they share. After each
// step the two agree. At the end both are 0, each callback has run once, and messages came in the order in which they were sent.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PamiError } from "../../src/core/error.js";
import type { Message } from "../../src/core/message/message.js";
import type { Activity, ProgressSource } from "../../src/core/progress.js";
import type { MemRegion } from "../../src/core/region.js";
import { type Callback, EAGAIN, ENOMEM, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import { busyParts, CoresJob } from "../support/cores.js";
import { assertProperty } from "../support/seed.js";

const TASKS = 3;
const CONTEXTS = 2;
const KIB = 1024;
/** Dispatch ids: two with a handler from the start, one that gets it later, one that is a stream. */
const PLAIN = 1;
const OTHER = 2;
const LATE = 3;
const STREAM = 4;
const IDS = [PLAIN, PLAIN, OTHER, LATE, STREAM] as const;
const SIZES = [4, 8, 60, 3000, 5000, 15_000, 20_000, 100_000] as const;
/** Rounds in which everything that was begun comes to its end. */
const ROUNDS = 300;

const KINDS = [
  "advance",
  "advance",
  "advance",
  "sendImmediate",
  "sendImmediate",
  "send",
  "send",
  "burst",
  "offer",
  "gift",
  "abort",
  "reserve",
  "commit",
  "whenRoom",
  "forgetRoom",
  "put",
  "get",
  "rmw",
  "fence",
  "post",
  "source",
  "dispatch",
  "take",
  "purge",
  "resume",
  "serve",
] as const;
/** Once in a while something ends. */
const ENDS = ["close", "leave", "die", "endEngine"] as const;

interface Step {
  readonly kind: (typeof KINDS)[number] | (typeof ENDS)[number];
  readonly from: number;
  readonly to: number;
  readonly size: number;
  readonly choice: number;
}

const stepOf = (kind: fc.Arbitrary<Step["kind"]>): fc.Arbitrary<Step> =>
  fc.record({
    kind,
    from: fc.nat(TASKS * CONTEXTS - 1),
    to: fc.nat(TASKS * CONTEXTS - 1),
    size: fc.nat(SIZES.length - 1),
    choice: fc.nat(63),
  });

/** A protocol of the test's: it has something to do a number of times. */
class Source implements ProgressSource {
  busy = 0;
  rounds = 0;
  readonly ends: number[] = [];
  closes = 0;
  engineEnds = 0;
  readonly #activity: Activity;

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  get hasWork(): boolean {
    return this.busy > 0;
  }

  get isDrained(): boolean {
    return this.busy === 0;
  }

  count(change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
  }

  advance(): number {
    expect(this.busy).toBeGreaterThan(0);
    this.rounds++;
    this.count(-1);
    if (this.rounds % 5 === 0) throw new Thrown();
    return 1;
  }

  ended(ordinal: number): void {
    this.ends.push(ordinal);
  }

  engineEnded(): void {
    this.engineEnds++;
  }

  holds(): boolean {
    return false;
  }

  forget(): void {}

  close(): void {
    this.closes++;
  }
}

/** An operation with a callback. */
interface Issued {
  readonly core: ContextCore;
  readonly name: string;
  told: number;
  result: Result | undefined;
}

/** What is thrown on purpose. */
class Thrown extends Error {}

class Life {
  readonly #job: CoresJob;
  readonly #cores: ContextCore[] = [];
  readonly #sources: Source[] = [];
  readonly #regions: MemRegion[];
  readonly #issued: Issued[] = [];
  /** Numbers of messages by pair and dispatch id: those that were accepted, and those that came. */
  readonly #sent = new Map<string, number[]>();
  readonly #came = new Map<string, number[]>();
  /** Messages that may have been given up. */
  readonly #doubtful = new Set<number>();
  readonly #over = new Set<number>();
  readonly #signals: AbortController[] = [];
  readonly #wishes: { core: ContextCore; to: number; callback: Callback; issued: Issued }[] = [];
  /** Open reservations by pair, with the number of their message. */
  readonly #reserved = new Map<string, { id: number; bytes: number; body: number; number: number }>();
  readonly #late = new Set<number>();
  #next = 1;
  #hasEngine: boolean;
  #added = 0;
  #hasEnds = false;

  constructor(kernel: "wasm" | "ts", hasEngine: boolean) {
    this.#hasEngine = hasEngine;
    const limits = { tasks: TASKS, contexts: CONTEXTS, engine: hasEngine, slots: 4, fifos: 2, regions: 128 };
    this.#job = CoresJob.shared(kernel === "wasm" ? ["wasm", "ts"] : ["ts"], { ...limits, heapBytes: 6 * KIB * KIB });
    if (hasEngine) this.#job.serve();
    for (let task = 0; task < TASKS; task++) {
      for (let index = 0; index < CONTEXTS; index++) this.#open(task);
    }
    this.#regions = Array.from({ length: TASKS }, (_, task) => this.#job.task(task).regions.create(64 * KIB));
    for (const region of this.#regions) region.bytes.fill(0);
  }

  #open(task: number): void {
    const core = this.#job.open(task, { pendingBytes: 150_000, unexpectedBytes: 30_000, fragment: 8192 });
    const number = this.#cores.length;
    for (const id of [PLAIN, OTHER]) core.receiver.dispatch(id, (message) => this.#take(number, id, message), {});
    core.receiver.unexpected.open(STREAM);
    const source = core.add((activity) => new Source(activity));
    this.#cores.push(core);
    this.#sources.push(source);
  }

  #taskOf(number: number): number {
    return Math.floor(number / CONTEXTS);
  }

  #core(number: number): ContextCore {
    return this.#cores[number] as ContextCore;
  }

  #hasEnded(number: number): boolean {
    return this.#over.has(this.#taskOf(number)) || this.#core(number).isClosed;
  }

  run(steps: readonly Step[]): void {
    for (const step of steps) {
      this.#act(step);
      this.#check();
    }
    this.#finish();
  }

  /** The parts and their counter agree. */
  #check(): void {
    for (const [number, core] of this.#cores.entries()) {
      if (this.#hasEnded(number)) continue;
      const { completions, work, sender, receiver, rma, rendezvous } = core;
      const parts = [sender, receiver.unexpected, rma.fifos, rendezvous].map(({ busy }) => busy);
      const all = [...parts, completions.length, work.length, (this.#sources[number] as Source).busy];
      const { busy } = this.#job.activityOf(core);
      // An expect() of each would take most of the time.
      if (all.some((part) => part < 0) || all.reduce((sum, part) => sum + part, 0) !== busy)
        throw new Error(`context ${number}: its parts have ${all} to do, its counter says ${busy}`);
      if (core.drained && !(this.#sources[number] as Source).isDrained)
        throw new Error(`context ${number} is drained, and its source is not`);
    }
  }

  #advance(number: number): void {
    if (this.#hasEnded(number)) return;
    const core = this.#core(number);
    try {
      if (core.advance(1) > 0 || core.isClosed) return;
      // The last look before a thread sleeps: what it does not see, another round does not find either.
      if (core.hasWork() || core.isRestless()) return;
      const missed = core.advance(1);
      if (missed > 0) throw new Error(`context ${number} would have slept through ${missed} events`);
    } catch (error) {
      for (const one of error instanceof AggregateError ? error.errors : [error]) {
        if (!(one instanceof Thrown)) throw one;
      }
    }
  }

  #issue(core: ContextCore, name: string): { issued: Issued; callback: Callback } {
    const issued: Issued = { core, name, told: 0, result: undefined };
    const callback: Callback = (_, result) => {
      issued.told++;
      issued.result = result;
      if (issued.told > 1) throw new Error(`${name} told ${issued.told} times`);
    };
    return { issued, callback };
  }

  #header(id: number, number: number): Uint8Array {
    return new Uint8Array(new Uint32Array([number, id]).buffer);
  }

  #accept(from: number, to: number, id: number, number: number): void {
    const key = `${from}>${to}:${id}`;
    this.#sent.set(key, [...(this.#sent.get(key) ?? []), number]);
  }

  #heard(from: number, to: number, header: Uint8Array): number {
    const [number, id] = new Uint32Array(header.slice().buffer) as unknown as [number, number];
    const key = `${from}>${to}:${id}`;
    this.#came.set(key, [...(this.#came.get(key) ?? []), number]);
    return number;
  }

  #originOf(endpoint: number): number {
    return this.#cores.findIndex((core) => core.endpoint === endpoint);
  }

  #take(to: number, id: number, message: Message): void {
    const number = this.#heard(this.#originOf(message.origin), to, message.header);
    expect(message.dispatch).toBe(id);
    if (message.immediate) {
      const { payload } = message;
      if (payload.length > 0) expect([payload[0], payload.at(-1)]).toEqual([number & 255, number & 255]);
      if (number % 29 === 0 && payload.length > 0) {
        try {
          message.keep().close();
        } catch (error) {
          expect(error).toMatchObject({ code: "PAMIR_NO_MEMORY" });
        }
      }
    } else {
      const core = this.#core(to);
      const { issued, callback } = this.#issue(core, `receive ${number}`);
      if (number % 3 === 0) message.discard();
      else {
        const region = this.#regions[this.#taskOf(to)] as MemRegion;
        const isInto = number % 3 === 1 && message.payloadBytes <= region.length;
        message.receive(isInto ? region.bytes : new Uint8Array(message.payloadBytes), callback);
        if (number % 11 !== 0) this.#issued.push(issued);
      }
    }
    if (number % 11 === 0) throw new Thrown();
  }

  #act({ kind, from, to, size, choice }: Step): void {
    if (this.#hasEnded(from)) return;
    const core = this.#core(from);
    const target = this.#core(to).endpoint;
    const id = IDS[choice % IDS.length] as number;
    const bytes = SIZES[size] as number;
    const queue = (choice & 8) === 0;
    switch (kind) {
      case "advance":
        this.#advance(from);
        break;
      case "sendImmediate":
        this.#sendImmediate(from, to, id, Math.min(bytes, 3000), queue);
        break;
      case "burst":
        for (let i = 0; i < 40; i++) this.#sendImmediate(from, to, id, 60, queue);
        break;
      case "send":
        this.#send(from, to, id, new Uint8Array(bytes), queue, (choice & 16) !== 0, false);
        break;
      case "offer": {
        const region = this.#regions[this.#taskOf(from)] as MemRegion;
        const isIn = (choice & 16) !== 0 && bytes <= region.length;
        const payload = isIn ? region.bytes.subarray(0, bytes) : new Uint8Array(bytes);
        this.#send(from, to, PLAIN + (choice % 4), payload, queue, true, true, (choice & 32) !== 0);
        break;
      }
      case "gift":
        this.#give(from, to, id, bytes, queue);
        break;
      case "abort":
        this.#signals.shift()?.abort();
        break;
      case "reserve":
        this.#reserve(from, to, id, Math.min(bytes, 4000));
        break;
      case "commit":
        this.#commit(from, to, choice);
        break;
      case "whenRoom": {
        const { issued, callback } = this.#issue(core, `whenRoom ${bytes}`);
        core.sender.whenRoom(target, bytes, callback, undefined);
        this.#issued.push(issued);
        this.#wishes.push({ core, to: target, callback, issued });
        break;
      }
      case "forgetRoom": {
        const wish = this.#wishes.find((one) => one.core === core && one.to === target);
        if (wish === undefined) break;
        core.sender.forgetRoom(target, wish.callback);
        this.#wishes.splice(this.#wishes.indexOf(wish), 1);
        // It has been told, or is not told any more.
        this.#issued.splice(this.#issued.indexOf(wish.issued), 1);
        break;
      }
      case "put":
      case "get":
        this.#transfer(kind, from, to, choice, Math.min(bytes, 20_000));
        break;
      case "rmw":
        this.#rmw(from, to, choice);
        break;
      case "fence": {
        const { issued, callback } = this.#issue(core, "fence");
        const isAll = (choice & 1) === 0;
        const result = isAll ? core.rma.fenceAll(callback, 0) : core.rma.fence(target, callback, 0);
        expect([SUCCESS, EAGAIN]).toContain(result);
        if (result === SUCCESS) this.#issued.push(issued);
        break;
      }
      case "post": {
        let left = choice % 4;
        core.work.push(() => (left-- > 0 ? EAGAIN : SUCCESS));
        break;
      }
      case "source":
        (this.#sources[from] as Source).count(1);
        this.#added++;
        break;
      case "dispatch":
        this.#setLate(from);
        break;
      case "take":
        this.#takeStream(from);
        break;
      case "purge":
        if (from === to) break;
        try {
          expect([SUCCESS, EAGAIN]).toContain(core.sender.purge([target], core.endpoint));
        } catch (error) {
          expect(error).toMatchObject({ code: "PAMIR_INVAL" });
        }
        break;
      case "resume":
        if (from !== to)
          expect([SUCCESS, EAGAIN, SHUTDOWN, ENOMEM]).toContain(core.sender.resume([target], core.endpoint));
        break;
      case "serve":
        if (this.#hasEngine) this.#job.serve();
        break;
      case "close":
        this.#hasEnds = true;
        core.close();
        break;
      case "leave":
      case "die":
        this.#end(kind, this.#taskOf(from));
        break;
      case "endEngine":
        if (this.#hasEngine) this.#job.endEngine();
        this.#hasEngine = false;
        break;
    }
  }

  #end(kind: "leave" | "die", task: number): void {
    // One goes on, so that something is left to look at.
    if (this.#over.size >= TASKS - 1) return;
    this.#hasEnds = true;
    this.#over.add(task);
    if (kind === "leave") this.#job.leave(task);
    else this.#job.die(task);
  }

  #sendImmediate(from: number, to: number, id: number, bytes: number, queue: boolean): void {
    const { sender } = this.#core(from);
    const number = this.#next++;
    const payload = new Uint8Array(bytes).fill(number);
    const result = sender.sendImmediate(this.#core(to).endpoint, id, this.#header(id, number), payload, queue);
    expect([SUCCESS, EAGAIN, SHUTDOWN, ENOMEM]).toContain(result);
    if (result === SHUTDOWN) expect(this.#hasEnded(to)).toBe(true);
    if (result === SUCCESS) this.#accept(from, to, id, number);
  }

  #send(
    from: number,
    to: number,
    id: number,
    payload: Uint8Array,
    queue: boolean,
    hasCallbacks: boolean,
    rendezvous: boolean,
    hasSignal = false,
    transfer = false,
  ): Result {
    const core = this.#core(from);
    const number = this.#next++;
    payload.fill(number);
    const local = this.#issue(core, `onLocal ${number}`);
    const remote = this.#issue(core, `onRemote ${number}`);
    const signal = hasSignal ? new AbortController() : undefined;
    if (signal !== undefined) this.#signals.push(signal);
    const callbacks = hasCallbacks ? { onLocal: local.callback, onRemote: remote.callback } : {};
    const result = core.sender.send({
      to: this.#core(to).endpoint,
      dispatch: id,
      header: this.#header(id, number),
      payload,
      queue,
      rendezvous,
      transfer,
      signal: signal?.signal,
      ...callbacks,
    });
    expect([SUCCESS, EAGAIN, SHUTDOWN, ENOMEM]).toContain(result);
    // An offer, or a payload of a region that is written over, may come as something else.
    if (rendezvous) this.#doubtful.add(number);
    if (result === SUCCESS || (result === SHUTDOWN && hasCallbacks)) {
      if (hasCallbacks) this.#issued.push(local.issued, remote.issued);
    }
    if (result === SUCCESS) this.#accept(from, to, id, number);
    return result;
  }

  #give(from: number, to: number, id: number, bytes: number, queue: boolean): void {
    let region: MemRegion;
    try {
      region = this.#job.task(this.#taskOf(from)).regions.create(bytes);
    } catch (error) {
      expect(error).toMatchObject({ code: "PAMIR_NO_MEMORY" });
      return;
    }
    const result = this.#send(from, to, id, region.bytes, queue, bytes % 8 === 0, false, false, true);
    expect(region.closed).toBe(result === SUCCESS);
    if (!region.closed) region.close();
  }

  #reserve(from: number, to: number, id: number, bytes: number): void {
    const key = `${from}>${to}`;
    const { sender } = this.#core(from);
    const target = this.#core(to).endpoint;
    if (this.#reserved.has(key)) {
      expect(() => sender.reserve(target, id, bytes, 8)).toThrow(PamiError);
      return;
    }
    const body = sender.reserve(target, id, bytes, 8);
    if (body <= 0) {
      expect([-EAGAIN, -SHUTDOWN, -ENOMEM]).toContain(body);
      return;
    }
    const number = this.#next++;
    this.#reserved.set(key, { id, bytes, body, number });
    // It has its place from now on: what is sent meanwhile comes behind it.
    this.#accept(from, to, id, number);
    expect(() => sender.reserve(target, id, bytes, 8)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
  }

  #commit(from: number, to: number, choice: number): void {
    const key = `${from}>${to}`;
    const reserved = this.#reserved.get(key);
    const { sender } = this.#core(from);
    const target = this.#core(to).endpoint;
    if (reserved === undefined) {
      expect(() => sender.commit(target, undefined)).toThrow(PamiError);
      expect(() => sender.abort(target)).toThrow(PamiError);
      return;
    }
    this.#reserved.delete(key);
    const { id, bytes, body, number } = reserved;
    const { memory } = this.#job.task(this.#taskOf(from));
    memory.bytes.set(this.#header(id, number), body);
    memory.bytes.fill(number, body + 8, body + 8 + bytes);
    if (choice % 4 === 0) {
      sender.abort(target);
      this.#doubtful.add(number);
      return;
    }
    sender.commit(target, choice % 2 === 0 ? undefined : bytes >>> 1);
  }

  #transfer(call: "put" | "get", from: number, to: number, choice: number, bytes: number): void {
    const core = this.#core(from);
    const local = this.#issue(core, `${call} onLocal`);
    const remote = this.#issue(core, `${call} onRemote`);
    const hasCallbacks = (choice & 1) === 0;
    const result = this.#guarded(to, () =>
      core.rma.transfer(call, {
        to: this.#core(to).endpoint,
        local: this.#regions[this.#taskOf(from)] as MemRegion,
        localOffset: 32 * KIB,
        remote: (this.#regions[this.#taskOf(to)] as MemRegion).handle,
        remoteOffset: 32 * KIB,
        bytes,
        ...(hasCallbacks ? { onLocal: local.callback, onRemote: remote.callback } : {}),
      }),
    );
    if (result === SUCCESS && hasCallbacks) this.#issued.push(local.issued, remote.issued);
  }

  #rmw(from: number, to: number, choice: number): void {
    const core = this.#core(from);
    const done = this.#issue(core, "rmw");
    const result = this.#guarded(to, () =>
      core.rma.rmw({
        to: this.#core(to).endpoint,
        remote: (this.#regions[this.#taskOf(to)] as MemRegion).handle,
        remoteOffset: 64 * KIB - 8,
        operation: "add",
        value: 1,
        ...((choice & 1) === 0 ? { onDone: done.callback } : {}),
      }),
    );
    if (result === SUCCESS && (choice & 1) === 0) this.#issued.push(done.issued);
  }

  /** A one-sided operation: to a task that has ended it may be refused, for its region is gone. */
  #guarded(to: number, operation: () => Result): Result {
    try {
      const result = operation();
      expect([SUCCESS, EAGAIN, SHUTDOWN]).toContain(result);
      return result;
    } catch (error) {
      expect(error).toMatchObject({ code: "PAMIR_STALE" });
      expect(this.#over.has(this.#taskOf(to))).toBe(true);
      return SHUTDOWN;
    }
  }

  #setLate(number: number): void {
    if (this.#late.has(number) || this.#hasEnded(number)) return;
    this.#late.add(number);
    this.#core(number).receiver.dispatch(LATE, (message) => this.#take(number, LATE, message), {});
  }

  #takeStream(number: number): void {
    const { receiver } = this.#core(number);
    while (receiver.unexpected.hasNext(STREAM)) {
      const taken = receiver.unexpected.take(STREAM);
      if (taken === undefined) break;
      this.#heard(this.#originOf(taken.origin), number, taken.header);
    }
  }

  #finish(): void {
    for (const key of [...this.#reserved.keys()]) {
      const [from, to] = key.split(">").map(Number) as [number, number];
      if (!this.#hasEnded(from)) this.#commit(from, to, 2);
    }
    for (const number of this.#cores.keys()) this.#setLate(number);
    let idle = 0;
    for (let round = 0; round < ROUNDS && idle < 5; round++) {
      if (this.#hasEngine) this.#job.serve();
      for (const number of this.#cores.keys()) {
        this.#advance(number);
        if (!this.#hasEnded(number)) this.#takeStream(number);
        this.#check();
      }
      const isOver = this.#cores.every(
        (core, number) => this.#hasEnded(number) || (this.#job.activityOf(core).busy === 0 && !core.hasWork()),
      );
      idle = isOver ? idle + 1 : 0;
    }
    this.#judge();
  }

  #judge(): void {
    for (const [number, core] of this.#cores.entries()) {
      const source = this.#sources[number] as Source;
      expect(source.closes).toBe(core.isClosed ? 1 : 0);
      if (this.#hasEnded(number)) continue;
      expect({ number, busy: busyParts(core), activity: this.#job.activityOf(core).busy }).toEqual({
        number,
        busy: 0,
        activity: 0,
      });
      expect(core.drained).toBe(true);
      expect(core.receiver.unexpected.bytes).toBe(0);
      expect(core.receiver.paused.origins.size).toBe(0);
      for (const other of this.#cores.keys()) {
        if (this.#hasEnded(other)) expect(source.ends).toContain(this.#core(other).ordinal);
      }
    }
    for (const { core, name, told } of this.#issued) {
      if (this.#hasEnded(this.#cores.indexOf(core))) continue;
      expect(`${name}: ${told}`).toBe(`${name}: 1`);
    }
    for (const [key, sent] of this.#sent) {
      const came = this.#came.get(key) ?? [];
      const [from, to] = key.split(/[>:]/).map(Number) as [number, number];
      const places = came.map((number) => sent.indexOf(number));
      expect(places.every((place, i) => place >= 0 && (i === 0 || place > (places[i - 1] as number)))).toBe(true);
      if (this.#hasEnded(from) || this.#hasEnded(to)) continue;
      const missing = sent.filter((number) => !came.includes(number) && !this.#doubtful.has(number));
      expect({ key, missing }).toEqual({ key, missing: [] });
    }
    if (!this.#hasEnds) {
      expect(this.#sources.reduce((sum, { rounds }) => sum + rounds, 0)).toBe(this.#added);
      for (const { ends } of this.#sources) expect(ends).toEqual([]);
    }
    void this.#job.close();
  }
}

describe.each(["wasm", "ts"] as const)("the parts of a context and their counter agree: %s", (kernel) => {
  const steps = (kinds: fc.Arbitrary<Step["kind"]>) =>
    fc.array(stepOf(kinds), { minLength: 1, maxLength: 250, size: "max" });
  const all = fc.constantFrom<Step["kind"][]>(...KINDS);
  const withEnds = fc.oneof({ weight: 30, arbitrary: all }, { weight: 1, arbitrary: fc.constantFrom(...ENDS) });

  it.each([
    ["each context its own engine, nothing ends", all, false],
    ["each context its own engine, contexts and tasks end", withEnds, false],
    ["an engine thread, nothing ends", all, true],
    ["an engine thread, and that, contexts and tasks end", withEnds, true],
  ] as const)("%s", (_, kinds, hasEngine) => {
    assertProperty(
      fc.property(steps(kinds as fc.Arbitrary<Step["kind"]>), (all) => new Life(kernel, hasEngine).run(all)),
      40,
    );
  });
});

// One-sided operations of one context without a client: more operations than slots, the limit of those that wait, the
// descriptor that is staged for the next one, and every way to end. The engine is this context's own, or a thread that is the
// test's to run.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DESCRIPTOR_SIZE, SHORT_BYTES } from "../../assembly/layout.js";
import type { MemRegion } from "../../src/core/region.js";
import { type Callback, EAGAIN, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import { ordinalOf } from "../../src/memory/map.js";
import { Rma } from "../../src/protocol/rma/rma.js";
import { bytesFrom } from "../support/bytes.js";
import { at, baseOf, CoresJob, type PartsBase } from "../support/cores.js";
import { assertProperty } from "../support/seed.js";

const SLOTS = 4;
/** Bytes that are not moved at once by the caller where there is an engine thread. */
const LONG = SHORT_BYTES + 904;
const REGION = 64 * 1024;
const ENDLESS = 2 ** 20;

interface Told {
  readonly name: unknown;
  readonly result: Result;
}

describe.each([
  ["wasm", false],
  ["ts", false],
  ["wasm", true],
  ["ts", true],
] as const)("%s, an engine thread: %s", (kernel, hasThread) => {
  let job: CoresJob;
  let parts: PartsBase;
  let rma: Rma;
  let local: MemRegion;
  let remote: MemRegion;
  let told: Told[];
  let notices: number[];

  beforeEach(() => {
    job = CoresJob.shared([kernel], { engine: hasThread, slots: SLOTS, fifos: 2, regions: 16 });
    if (hasThread) job.serve();
    parts = baseOf(job.task(0), 0);
    job.open(1);
    local = job.task(0).regions.create(REGION);
    remote = job.task(1).regions.create(REGION);
    local.bytes.set(bytesFrom(REGION, (i) => i * 3 + (i >>> 8)));
    remote.bytes.fill(0);
    told = [];
    notices = [];
    make(ENDLESS);
  });

  afterEach(() => job.close());

  function make(waitingMax: number): void {
    rma = new Rma({ ...parts.base, tell: (_, id) => void notices.push(id) }, waitingMax);
  }

  const tell: Callback = (name, result) => void told.push({ name, result });
  const to = at(1);

  /** One round, as the core of a context does it. Returns what callbacks have thrown. */
  function round(): unknown[] {
    const errors: unknown[] = [];
    const { completions } = parts.base;
    if (rma.fifos.busy > 0) rma.fifos.advance();
    completions.run(errors);
    return errors;
  }

  /** Rounds, and turns of the engine thread, until nothing is left. */
  function finish(serves = hasThread): void {
    for (let rounds = 0; parts.base.activity.busy > 0 && rounds < 200; rounds++) {
      if (serves) job.serve();
      expect(round()).toEqual([]);
      expectAgreement();
    }
    expect([rma.fifos.busy, parts.base.completions.length, parts.base.activity.busy]).toEqual([0, 0, 0]);
  }

  const expectAgreement = (): void =>
    expect(rma.fifos.busy + parts.base.completions.length).toBe(parts.base.activity.busy);

  const put = (name: unknown, bytes = LONG, more: object = {}): Result =>
    rma.transfer("put", { to, local, remote: remote.handle, bytes, onLocal: tell, cookie: name, ...more });

  const names = (): unknown[] => told.map(({ name }) => name);
  const all = (result: Result): boolean => told.every((one) => one.result === result);

  it("completes many more operations than there are slots, each once and in order", () => {
    const expected: number[] = [];
    for (let i = 0; i < 60; i++) {
      const bytes = [8, LONG, 0, 300, SHORT_BYTES, SHORT_BYTES + 1][i % 6] as number;
      expect(put(i, bytes)).toBe(SUCCESS);
      expected.push(i);
      expectAgreement();
      if (i % 20 === 19) round();
    }
    finish();
    expect(names()).toEqual(expected);
    expect(all(SUCCESS)).toBe(true);
    expect(Buffer.compare(remote.bytes.subarray(0, LONG), local.bytes.subarray(0, LONG))).toBe(0);
  });

  it("keeps puts, gets, rmws and fences to one endpoint in order", () => {
    const back = job.task(0).regions.create(REGION);
    for (let i = 0; i < 30; i += 5) {
      expect(put(i)).toBe(SUCCESS);
      const get = { to, local: back, remote: remote.handle, bytes: LONG, onLocal: tell, cookie: i + 1 };
      expect(rma.transfer("get", get)).toBe(SUCCESS);
      expect(rma.fence(to, tell, i + 2)).toBe(SUCCESS);
      const word = { to, remote: remote.handle, remoteOffset: REGION - 4, operation: "add", value: 1 } as const;
      expect(rma.rmw({ ...word, onDone: tell, cookie: i + 3 })).toBe(SUCCESS);
      expect(put(i + 4, 8, { onLocal: undefined, onRemote: tell })).toBe(SUCCESS);
      expectAgreement();
    }
    finish();
    expect(names()).toEqual(Array.from({ length: 30 }, (_, i) => i));
    expect(all(SUCCESS)).toBe(true);
    expect(Buffer.compare(back.bytes.subarray(0, LONG), local.bytes.subarray(0, LONG))).toBe(0);
    expect(new Int32Array(remote.bytes.buffer, remote.bytes.byteOffset + REGION - 4, 1)[0]).toBe(6);
  });

  it("runs what callbacks issue in later rounds, one after the other", () => {
    const seen: number[] = [];
    const next: Callback = (number) => {
      seen.push(number as number);
      if (seen.length < 5) put(seen.length, LONG, { onLocal: next });
    };
    put(0, LONG, { onLocal: next });
    for (let rounds = 0; seen.length < 5 && rounds < 100; rounds++) {
      if (hasThread) job.serve();
      const before = seen.length;
      round();
      expect(seen.length - before).toBeLessThanOrEqual(1);
    }
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    finish();
  });

  it("goes on behind a callback that throws, whose error is the round's", () => {
    const errors: unknown[] = [];
    for (let i = 0; i < 8; i++) {
      put(i, LONG, {
        onLocal: (name: unknown) => {
          told.push({ name, result: SUCCESS });
          throw name;
        },
      });
    }
    for (let rounds = 0; parts.base.activity.busy > 0 && rounds < 100; rounds++) {
      if (hasThread) job.serve();
      errors.push(...round());
    }
    expect(errors).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    finish();
  });

  it("counts a callback as due no more while it runs, but what it issues; that comes in the next round", () => {
    const seen: unknown[] = [];
    const { completions } = parts.base;
    const onLocal: Callback = (name) => {
      if (name === 1) put("issued", 8, { onLocal });
      seen.push([name, completions.due]);
      if (name === 2) throw new Error("2");
    };
    for (let i = 0; i < 3; i++) expect(put(i, 8, { onLocal })).toBe(SUCCESS);
    expect(round()).toEqual([new Error("2")]);
    expect(seen.splice(0)).toEqual([
      [0, 2],
      [1, 2],
      [2, 1],
    ]);
    finish();
    expect(seen).toEqual([["issued", 0]]);
  });

  it("calls nothing once it is stopped", () => {
    for (let i = 0; i < 12; i++) put(i);
    parts.base.completions.stop();
    for (let rounds = 0; rounds < 20; rounds++) {
      if (hasThread) job.serve();
      round();
    }
    expect(told).toEqual([]);
  });

  it("refuses operations to a task that has ended; those under way come to their end", () => {
    for (let i = 0; i < 10; i++) expect(put(i)).toBe(SUCCESS);
    const before = told.length;
    job.die(1);
    const ordinal = ordinalOf(job.map, 1, 0);
    // A context that has closed is not its task's end.
    rma.fifos.ended(ordinal, false);
    expect(put("in time", 0)).toBe(SUCCESS);
    rma.fifos.ended(ordinal, true);
    expect(put("late")).toBe(SHUTDOWN);
    expect(put("late", 8)).toBe(SHUTDOWN);
    const word = { to, remote: remote.handle, operation: "add", value: 1 } as const;
    expect(rma.rmw(word)).toBe(SHUTDOWN);
    expectAgreement();
    finish();
    expect(names().slice(before)).toEqual([...Array.from({ length: 10 }, (_, i) => i), "in time"]);
    const results = told.map(({ result }) => result);
    expect(results.every((result) => result === SUCCESS || result === SHUTDOWN)).toBe(true);
    // Once one finds the task ended, so do those behind it.
    expect(results).toEqual(results.toSorted((a, b) => a - b));
    if (hasThread) expect(results.at(-1)).toBe(SHUTDOWN);
  });

  it("a fence of all endpoints has its place however little may wait, and tells the worst result once", () => {
    make(0);
    for (let i = 0; i < 4; i++) put(i);
    for (let i = 0; i < 3; i++) expect(rma.fenceAll(tell, `fence ${i}`)).toBe(SUCCESS);
    expectAgreement();
    finish();
    expect(names().filter((name) => typeof name === "string")).toEqual(["fence 0", "fence 1", "fence 2"]);
    expect(all(SUCCESS)).toBe(true);
  });

  it("tells of a put by a message, once it is there, in the order of the puts", () => {
    for (let i = 0; i < 10; i++) expect(put(i, i % 2 === 0 ? 8 : LONG, { notify: i })).toBe(SUCCESS);
    expectAgreement();
    finish();
    expect(notices).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(names()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it("what it refuses leaves nothing behind: no callback, nothing to do, and the next operation is right", () => {
    const closed = job.task(0).regions.create(100);
    closed.close();
    const handle = remote.handle;
    const wrong: [code: string, operation: () => unknown][] = [
      ["PAMIR_BOUNDS", () => put("wrong", REGION + 1)],
      ["PAMIR_BOUNDS", () => put("wrong", 8, { remoteOffset: REGION - 7 })],
      ["PAMIR_BOUNDS", () => put("wrong", LONG, { localOffset: REGION - LONG + 1 })],
      ["PAMIR_CLOSED", () => put("wrong", 8, { local: closed })],
      ["PAMIR_STALE", () => put("wrong", 8, { remote: handle + 2 ** 20 })],
      ["PAMIR_INVAL", () => put("wrong", 8, { remote: local.handle })],
      ["PAMIR_INVAL", () => put("wrong", 8, { remote: Number.NaN })],
      ["PAMIR_INVAL", () => put("wrong", 8, { to: 9 })],
      ["PAMIR_INVAL", () => put("wrong", 8, { local: {} })],
      ["PAMIR_INVAL", () => put("wrong", -1)],
      ["PAMIR_INVAL", () => put("wrong", 8, { localOffset: 0.5 })],
      ["PAMIR_INVAL", () => put("wrong", 8, { onLocal: 5 })],
      ["PAMIR_INVAL", () => put("wrong", 8, { notify: -1 })],
      ["PAMIR_STALE", () => put("wrong", 8, { notify: { remote: handle + 2 ** 20 } })],
      ["PAMIR_BOUNDS", () => put("wrong", 8, { notify: { remote: handle, offset: REGION } })],
      ["PAMIR_INVAL", () => put("wrong", 8, { notify: { remote: handle, offset: 2 } })],
      ["PAMIR_INVAL", () => rma.rmw({ to, remote: handle, remoteOffset: 2, operation: "add", value: 1 })],
      ["PAMIR_INVAL", () => rma.rmw({ to, remote: handle, operation: "add", value: 2 ** 40 })],
      ["PAMIR_INVAL", () => rma.rmw({ to, remote: handle, operation: "fetchAdd" as "add", value: 1 })],
      ["PAMIR_INVAL", () => rma.fence(to, 5 as unknown as Callback, 0)],
    ];
    for (const [i, [code, operation]] of wrong.entries()) {
      expect(operation, `${i}`).toThrow(expect.objectContaining({ code }));
      expect(parts.base.activity.busy).toBe(0);
      remote.bytes.fill(0);
      expect(put(i, 40 + i, { localOffset: i, remoteOffset: 3 * i })).toBe(SUCCESS);
      finish();
      const found = remote.bytes.subarray(3 * i, 40 + 4 * i);
      expect(Buffer.compare(found, local.bytes.subarray(i, 40 + 2 * i))).toBe(0);
      expect(remote.bytes[40 + 4 * i]).toBe(0);
    }
    expect(names()).toEqual(wrong.map((_, i) => i));
  });

  it("a region that is opened anew in the place of another is named by its own handle", () => {
    const before = remote.handle;
    expect(put(0, 8)).toBe(SUCCESS);
    remote.close();
    expect(() => put(1, 8, { remote: before })).toThrow(expect.objectContaining({ code: "PAMIR_STALE" }));
    finish();
    // Its entry is used again once every context has passed a round.
    for (let rounds = 0; rounds < 40; rounds++) {
      job.advance();
      job.task(1).regions.reclaim();
    }
    const fresh = Array.from({ length: 4 }, () => job.task(1).regions.create(REGION));
    for (const region of fresh) region.bytes.fill(0);
    expect(() => put(2, 8, { remote: before })).toThrow(expect.objectContaining({ code: "PAMIR_STALE" }));
    for (const [i, region] of fresh.entries()) {
      expect(put(i, 16, { remote: region.handle, localOffset: 7 * i })).toBe(SUCCESS);
    }
    finish();
    for (const [i, region] of fresh.entries()) {
      expect([...region.bytes.subarray(0, 16)]).toEqual([...local.bytes.subarray(7 * i, 7 * i + 16)]);
    }
  });

  it("stages the descriptor of every operation right, whatever came before it, also refusals", () => {
    const regions = [remote, job.task(1).regions.create(REGION), job.task(1).regions.create(REGION)];
    const locals = [local, job.task(0).regions.create(REGION)];
    (locals[1] as MemRegion).bytes.set(bytesFrom(REGION, (i) => i * 7 + 1));
    job.open(1);
    const models = regions.map(() => new Uint8Array(REGION));
    /** Each endpoint has a half of its own: operations to different ones have no order. */
    const half = REGION / 2;
    const step = fc.record({
      kind: fc.constantFrom("put", "put", "put", "add", "wrong", "fence", "round", "serve", "notify"),
      endpoint: fc.nat(1),
      region: fc.nat(2),
      local: fc.nat(1),
      bytes: fc.constantFrom(0, 1, 8, 300, SHORT_BYTES, LONG),
      offset: fc.nat(2000),
      quiet: fc.boolean(),
    });
    assertProperty(
      fc.property(fc.array(step, { minLength: 1, maxLength: 80, size: "max" }), (steps) => {
        told = [];
        for (const [i, region] of regions.entries()) {
          region.bytes.fill(0);
          models[i]?.fill(0);
        }
        let issued = 0;
        for (const { kind, endpoint, region, local: own, bytes, offset, quiet } of steps) {
          const target = at(1, endpoint);
          const from = locals[own] as MemRegion;
          const into = regions[region] as MemRegion;
          const model = models[region] as Uint8Array;
          const base = endpoint * half;
          const callback = quiet ? {} : { onLocal: tell, cookie: issued };
          const place = { to: target, local: from, localOffset: offset, remote: into.handle };
          if (kind === "put" || kind === "notify") {
            // The last words of each half are for others.
            const notify = kind === "notify" ? { notify: { remote: into.handle, offset: base + half - 8 } } : {};
            const result = rma.transfer("put", {
              ...place,
              remoteOffset: base + offset,
              bytes,
              ...callback,
              ...notify,
            });
            expect(result).toBe(SUCCESS);
            model.set(from.bytes.subarray(offset, offset + bytes), base + offset);
            if (kind === "notify") addTo(model, base + half - 8);
            if (!quiet) issued++;
          } else if (kind === "add") {
            const word = { to: target, remote: into.handle, remoteOffset: base + half - 4, operation: "add" } as const;
            const done = quiet ? {} : { onDone: tell, cookie: issued };
            expect(rma.rmw({ ...word, value: 1, ...done })).toBe(SUCCESS);
            addTo(model, base + half - 4);
            if (!quiet) issued++;
          } else if (kind === "wrong") {
            expect(() => rma.transfer("put", { ...place, remoteOffset: REGION - 3, bytes: 8, ...callback })).toThrow();
          } else if (kind === "fence") {
            expect(rma.fence(target, tell, issued++)).toBe(SUCCESS);
          } else if (kind === "serve" && hasThread) job.serve();
          else round();
          expectAgreement();
        }
        finish();
        // What has no callback is behind a fence.
        expect(rma.fenceAll(tell, issued++)).toBe(SUCCESS);
        finish();
        expect(told.length).toBe(issued);
        expect(all(SUCCESS)).toBe(true);
        for (const [i, region] of regions.entries()) {
          expect(Buffer.compare(region.bytes, models[i] as Uint8Array)).toBe(0);
        }
      }),
      40,
    );
  });

  if (!hasThread) return;

  /** How many puts are accepted while the engine thread does nothing. */
  function acceptAll(): number {
    let accepted = 0;
    while (accepted < 50 && put(accepted) === SUCCESS) accepted++;
    return accepted;
  }

  it.each([
    ["of 0 bytes", 0, 0],
    ["one below a descriptor", DESCRIPTOR_SIZE - 1, 0],
    ["of one descriptor", DESCRIPTOR_SIZE, 1],
    ["one below three descriptors", 3 * DESCRIPTOR_SIZE - 1, 2],
    ["of three descriptors", 3 * DESCRIPTOR_SIZE, 3],
  ])("a limit %s: so many wait behind those that have slots", (_, waitingMax, waiting) => {
    make(waitingMax);
    // Each takes a slot, and one for its completion.
    expect(acceptAll()).toBe(SLOTS / 2 + waiting);
    const { busy } = rma.fifos;
    expect(put("refused")).toBe(EAGAIN);
    expect(rma.fence(to, tell, "refused")).toBe(EAGAIN);
    expect(rma.fifos.busy).toBe(busy);
    expectAgreement();
    finish();
    expect(names()).toEqual(Array.from({ length: SLOTS / 2 + waiting }, (_, i) => i));
    // The same number again: what waited has given its place back.
    told = [];
    expect(acceptAll()).toBe(SLOTS / 2 + waiting);
    finish();
  });

  it.each([true, false])("the engine thread ends; what it had begun is no more: %s", async (hadBegun) => {
    if (!hadBegun) {
      await job.close();
      job = CoresJob.shared([kernel], { engine: true, slots: SLOTS, fifos: 2, regions: 16 });
      parts = baseOf(job.task(0), 0);
      job.open(1);
      local = job.task(0).regions.create(REGION);
      remote = job.task(1).regions.create(REGION);
      make(ENDLESS);
    }
    for (let i = 0; i < 10; i++) expect(put(i)).toBe(SUCCESS);
    job.endEngine();
    expect(parts.base.engine.hasEnded()).toBe(true);
    rma.fifos.engineEnded(hadBegun);
    expectAgreement();
    finish(false);
    expect(names()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const failed = told.filter(({ result }) => result === ERROR).length;
    expect(failed).toBe(hadBegun ? SLOTS / 2 : 0);
    expect(told.slice(failed).every(({ result }) => result === SUCCESS)).toBe(true);
    // From now on the context is its own engine.
    expect(put("behind")).toBe(SUCCESS);
    finish(false);
    expect(told.at(-1)).toEqual({ name: "behind", result: SUCCESS });
  });

  it("has nothing to do while all that is left is the thread's", () => {
    put(0);
    expect(rma.fifos.hasWork).toBe(true);
    round();
    expect(rma.fifos.busy).toBeGreaterThan(0);
    expect(rma.fifos.hasWork).toBe(false);
    job.serve();
    expect(rma.fifos.hasWork).toBe(true);
    finish();
    expect(rma.fifos.hasWork).toBe(false);
  });
});

/** Adds 1 to a word. */
function addTo(bytes: Uint8Array, offset: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setInt32(offset, view.getInt32(offset, true) + 1, true);
}

// A context closes while its task goes on: whoever deals with it learns it, and loses nothing that it had sent.
import { type Context, type Job, launch, type Result, SHUTDOWN, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import { POOL_SIZE } from "../../assembly/layout.js";
import {
  chooseSeed,
  DATA,
  ENGINE_VARIANTS,
  expectFree,
  kernelsOf,
  OTHER,
  PATIENCE,
  processesOf,
  QUIT,
  RESULT,
  rejectionOf,
  until,
  VARIANTS,
  withJob,
} from "./support.js";
import { churn } from "./tasks/churn.js";
import { makeFlags } from "./tasks/flags.js";

const module = "closing.js";
const scenario = "doomed";

/** Free bytes of the heap, once whoever advances has dealt with all that there is. */
function freeOf(job: Job, ...contexts: Context[]): number {
  for (let i = 0; i < 10; i++) for (const context of contexts) context.advance();
  return job.dump().heap.free;
}

describe.each(ENGINE_VARIANTS)("a context closes: $name", (variant) => {
  it.each([true, false])("what it sent is delivered, then all to it comes to SHUTDOWN; in a handler: %s", (inHandler) =>
    withJob(
      variant,
      { module, scenario, laneBytes: 4096, args: { words: 30, inHandler } },
      async ({ job, client, context }) => {
        const [task, doomed] = [client.endpoint(1), client.endpoint(1, 1)];
        const came: number[] = [];
        const ended: unknown[] = [];
        const results: Result[] = [];
        let handle = 0;
        context.dispatch(DATA, ({ header }) => came.push(header[0] as number));
        context.dispatch(RESULT, ({ payload }) => {
          handle = new Float64Array(payload.slice().buffer)[0] as number;
        });
        context.sendImmediate(task, OTHER);
        until(context, () => handle !== 0);
        const free = freeOf(job, context);

        context.whenEnded(doomed, (cookie, result) => ended.push([cookie, result, came.length]), "it");
        const called = rejectionOf(context.call(doomed, DATA, null, { timeout: PATIENCE }));
        await context.progress({ timeout: 50 }).catch(() => {}); // the call is out
        context.sendImmediate(doomed, OTHER);
        // More than the lane holds: some of it is still here when it closes.
        let waiting = 0;
        const onRemote = (_: unknown, result: Result) => {
          waiting--;
          results.push(result);
        };
        for (let i = 0; i < 40; i++, waiting++) {
          if (context.send({ to: doomed, dispatch: 4000, payload: new Uint8Array(400), onRemote }) === SHUTDOWN) break;
        }
        context.whenRoom(doomed, 2000, onRemote);
        waiting++;
        until(context, () => ended.length === 1 && waiting === 0);
        expect(ended).toEqual([["it", SHUTDOWN, 30]]);
        expect(came).toEqual(Array.from({ length: 30 }, (_, i) => i));
        const first = results.indexOf(SHUTDOWN);
        expect(results.slice(first < 0 ? 0 : first).every((result) => result === SHUTDOWN)).toBe(first >= 0);
        expect((await called).code).toBe("PAMIR_SHUTDOWN");

        expect(context.sendImmediate(doomed, DATA)).toBe(SHUTDOWN);
        expect(context.send({ to: doomed, dispatch: DATA, payload: new Uint8Array(3e6), onLocal: () => {} })).toBe(
          SHUTDOWN,
        );
        expect(context.reserve(doomed, DATA, 8)).toBe(-SHUTDOWN);
        expect(context.room(doomed)).toBe(0);
        expect(context.resume([doomed])).toBe(SHUTDOWN);
        expect((await rejectionOf(context.call(doomed, DATA))).code).toBe("PAMIR_SHUTDOWN");
        expect((await rejectionOf(context.whenRoom(doomed, 8, { timeout: PATIENCE }))).code).toBe("PAMIR_SHUTDOWN");
        await context.whenEnded(doomed, { timeout: PATIENCE });
        // Another context learns it too, though it never dealt with it, and was made later.
        const other = client.createContext();
        await other.whenEnded(doomed, { timeout: PATIENCE });
        expect(other.sendImmediate(doomed, DATA)).toBe(SHUTDOWN);
        expectFree(variant, job, [context, other], free);

        // Regions are the task's, which goes on.
        const local = client.createRegion(64);
        local.bytes.fill(9);
        expect(context.put({ to: doomed, local, remote: handle })).toBe(SUCCESS);
        expect(context.rmw({ to: doomed, remote: handle, operation: "fetch-add", value: 1, result: local })).toBe(
          SUCCESS,
        );
        expect(context.get({ to: doomed, local, remote: handle })).toBe(SUCCESS);
        await context.flush({ timeout: PATIENCE });
        expect([...local.bytes.subarray(0, 5)]).toEqual([10, 9, 9, 9, 9]);
        local.close();
        handle = 0;
        context.sendImmediate(task, OTHER);
        until(context, () => handle !== 0);
        context.sendImmediate(task, QUIT);
        expect((await job.exited)[0]).toMatchObject({ task: 1, code: 0, cause: "exit" });
      },
    ),
  );

  it("one that is not there yet keeps what comes for it, whoever else closes", () =>
    withJob(variant, { tasks: 1, contexts: 3 }, ({ client, context }) => {
      const gone = client.createContext();
      const later = client.endpoint(0, 2);
      let ended = 0;
      context.whenEnded(gone.endpoint, () => ended++);
      context.whenEnded(later, () => ended++);
      for (const to of [gone.endpoint, later]) expect(context.sendImmediate(to, DATA, Int32Array.of(7))).toBe(SUCCESS);
      gone.close();
      until(context, () => ended === 1);
      expect(context.sendImmediate(later, DATA, Int32Array.of(8))).toBe(SUCCESS);
      const made = client.createContext();
      expect(made.endpoint).toBe(later);
      const came: number[] = [];
      made.dispatch(DATA, ({ header }) => came.push(header[0] as number));
      until(made, () => came.length === 2);
      expect([came, ended]).toEqual([[7, 8], 1]);
      expect(() => client.createContext()).toThrow("limit is 3");
    }));

  it("a message in packets breaks off: its receiver is told, with SHUTDOWN", () =>
    withJob(variant, { module, scenario, args: { words: 5, bytes: 3e6 } }, ({ job, client, context }) => {
      const results: Result[] = [];
      let came = 0;
      let ended = 0;
      context.dispatch(DATA, () => came++);
      context.dispatch(
        OTHER,
        (message) => {
          message.receive(new Uint8Array(message.payloadBytes), (_, result) => results.push(result));
        },
        { delivery: "early" },
      );
      context.whenEnded(client.endpoint(1, 1), () => ended++);
      context.sendImmediate(client.endpoint(1, 1), OTHER);
      // Nothing is taken before it has closed: it can't send more than its lane holds.
      const stateOf = () => job.dump().tasks[1]?.contexts.find((dump) => dump.context === 1)?.state;
      for (const end = performance.now() + PATIENCE; stateOf() !== "closed" && performance.now() < end; );
      until(context, () => ended === 1 && results.length === 1);
      expect([came, results]).toEqual([5, [SHUTDOWN]]);
    }));

  it("its lane is full, so that it can't say that it ends: all is delivered, and the memory comes back", () =>
    withJob(variant, { tasks: 1, laneBytes: 1024, context: { unexpectedBytes: 20 } }, ({ job, client, context }) => {
      const all = freeOf(job, context);
      const gone = client.createContext();
      let sent = 0;
      while (gone.sendImmediate(context.endpoint, DATA, Int32Array.of(sent), null, false) === SUCCESS) sent++;
      gone.close();
      const came: number[] = [];
      let ended = 0;
      context.whenEnded(gone.endpoint, () => ended++);
      until(context, () => context.advance() === 0);
      expect(ended).toBe(0); // most of its words are in the lane, and wait for their handler
      context.dispatch(DATA, (message) => came.push(message.header[0] as number));
      until(context, () => ended === 1);
      expect(came).toEqual(Array.from({ length: sent }, (_, i) => i & 255));
      expectFree(variant, job, [context], all);
    }));

  it.each([
    { name: "the one that has not read closes first", order: [1, 0] },
    { name: "the one that has sent closes first", order: [0, 1] },
  ])("both ends of a lane close: $name; the memory comes back", ({ order }) =>
    withJob(variant, { tasks: 1 }, ({ job, client, context }) => {
      const all = freeOf(job, context);
      const pair = [client.createContext(), client.createContext()] as [Context, Context];
      for (const from of pair) for (const to of pair) expect(from.sendImmediate(to.endpoint, DATA)).toBe(SUCCESS);
      for (const to of pair) context.sendImmediate(to.endpoint, DATA);
      for (const place of order) pair[place as 0 | 1].close();
      expectFree(variant, job, [context], all);
      expect(context.sendImmediate(pair[0].endpoint, DATA)).toBe(SHUTDOWN);
      expect(job.dump().stuck).toEqual([]);
    }),
  );

  it("the last one of its task, with a lane to itself: nothing of it stays", () =>
    withJob(variant, { tasks: 1 }, ({ job, client, context }) => {
      const all = freeOf(job, context);
      const other = client.createContext();
      context.sendImmediate(context.endpoint, DATA);
      other.sendImmediate(context.endpoint, DATA);
      other.close();
      context.close();
      expect(job.dump().heap.free).toBe(all);
      // The next one of the task goes on.
      const next = client.createContext();
      expect(next.sendImmediate(context.endpoint, DATA)).toBe(SHUTDOWN);
      expectFree(variant, job, [next], all);
    }));

  it("what the dead had sent to one that closes unread is free again", () =>
    withJob(variant, { module, scenario, args: { words: 30 } }, async ({ job, client, context }) => {
      const deaf = client.createContext();
      expect(deaf.sendImmediate(client.endpoint(1, 1), OTHER)).toBe(SUCCESS);
      let ended = 0;
      context.whenEnded(client.endpoint(1, 1), () => ended++);
      until(context, () => ended === 1);
      await job.terminate(1);
      const before = freeOf(job, context);
      deaf.close();
      const { bytes } = job.dump().heap;
      expect(before).toBeLessThan(bytes);
      expectFree(variant, job, [context], bytes);
    }));

  it("while a reservation to it is open: the space is nobody else's until that is ended", () =>
    withJob(variant, { tasks: 1 }, ({ job, client, context }) => {
      const all = freeOf(job, context);
      for (const end of ["commit", "abort"] as const) {
        const gone = client.createContext();
        const offset = context.reserve(gone.endpoint, DATA, 64);
        expect(offset).toBeGreaterThan(0);
        gone.close();
        expect(freeOf(job, context)).toBeLessThan(all);
        client.bytes.fill(1, offset, offset + 64);
        context[end](gone.endpoint);
        expectFree(variant, job, [context], all);
        expect(context.reserve(gone.endpoint, DATA, 64)).toBe(-SHUTDOWN);
      }
    }));
});

describe("contexts come and go under traffic of all sizes between three tasks", () => {
  const seed = chooseSeed();
  const variants = VARIANTS.filter(({ memoryBase }) => memoryBase === undefined);
  it.each(variants)(`nothing is lost, mixed up or kept: $name (PAMIR_SEED=${seed})`, async (variant) => {
    const inProcesses = processesOf(variant, 3);
    const { flags, place } = await makeFlags(inProcesses.processes !== undefined);
    const most = 40;
    const job = await launch(new URL("tasks/closing.js", import.meta.url), {
      tasks: 3,
      contexts: most,
      kernel: kernelsOf(variant, 3),
      join: true,
      laneBytes: 2048,
      heapBytes: 2 ** 25,
      ...inProcesses,
      args: { scenario: "churn", flags: place, seeds: [seed, seed + 1, seed + 2], most },
    });
    try {
      const { context, seen } = churn(job.client, flags, seed, most);
      expect(seen).toMatchObject({ wrong: 0, why: "" });
      expect(Math.min(seen.messages, seen.closed, seen.shutdowns)).toBeGreaterThan(10);
      // Only the first contexts are left, and they have given up their lanes: no page is used but those of the pools.
      const used = () => {
        const { bytes, free, pooled } = job.dump().heap;
        return bytes - free - pooled;
      };
      for (const end = Date.now() + PATIENCE; used() > 3 * POOL_SIZE && Date.now() < end; ) context.advance();
      expect(used()).toBeLessThanOrEqual(3 * POOL_SIZE);
      expect(job.dump().tasks.map(({ state }) => state)).toEqual(["up", "up", "up"]);
    } finally {
      await job.terminate();
    }
  });
});

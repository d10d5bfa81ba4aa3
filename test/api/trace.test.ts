// What a trace tells: each kind of event, arrows from sends to their handlers, the last events where the ring is full; and
// that the code that runs where nothing is traced knows nothing of it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { EAGAIN, type Job, launch, SUCCESS, type Trace, type TraceEvent } from "pamir";
import { describe, expect, inject, it } from "vitest";
import { faultsOfTrace } from "../support/trace-format.js";
import { DATA, ECHO, OTHER, PATIENCE, REPLY_WHOLE, thrownBy, until, VARIANTS, withJob } from "./support.js";

const eventsOf = (job: Job): readonly TraceEvent[] => job.trace().traceEvents;

/** The arrows that are whole: both ends, by number. */
function arrowsOf(events: readonly TraceEvent[]): { from: TraceEvent; to: TraceEvent }[] {
  const begins = new Map(events.filter(({ ph }) => ph === "s").map((event) => [event.id, event]));
  return events.flatMap((to) => {
    const from = to.ph === "f" ? begins.get(to.id) : undefined;
    return from === undefined ? [] : [{ from, to }];
  });
}

/** The slice on which an end of an arrow lies. */
const sliceAt = (events: readonly TraceEvent[], { ts, tid }: TraceEvent): TraceEvent | undefined =>
  events.find((event) => event.ph === "X" && event.tid === tid && event.ts === ts && event.cat !== "park");

describe.each(VARIANTS)("$name", (variant) => {
  it("an arrow goes from each send to its handler, whatever way it was sent, in order", () =>
    withJob(variant, { scenario: "echo", trace: true }, ({ job, client, context }) => {
      const to = client.endpoint(1);
      let replies = 0;
      context.dispatch(REPLY_WHOLE, () => {
        replies++;
      });
      const bytes = new Uint8Array(8);
      for (let i = 0; i < 5; i++) expect(context.sendImmediate(to, ECHO, null, bytes)).toBe(SUCCESS);
      expect(context.send({ to, dispatch: ECHO, payload: new Uint8Array(1000) })).toBe(SUCCESS);
      const offset = context.reserve(to, ECHO, 40);
      client.bytes.fill(0, offset, offset + 40);
      context.commit(to, 16);
      until(context, () => replies === 7);
      // A send is recorded behind it: the last reply's may be about to.
      const end = performance.now() + PATIENCE;
      while (arrowsOf(eventsOf(job)).length < 14 && performance.now() < end);
      const events = eventsOf(job);
      const arrows = arrowsOf(events);
      expect(arrows).toHaveLength(14);
      const sizes = arrows.map(({ from, to }) => [sliceAt(events, from)?.args, sliceAt(events, to)?.args]);
      const there = sizes.filter(([args]) => args?.from === "0.0");
      expect(there.map(([sent]) => sent?.bytes)).toEqual([8, 8, 8, 8, 8, 1000, 16]);
      for (const [sent, handled] of sizes) expect(handled).toEqual(sent);
      expect(there.map(([sent]) => sent?.count)).toEqual([0, 1, 2, 3, 4, 5, 6]);
      const tasks = events.filter(({ ph }) => ph === "M").map(({ tid, args }) => [tid, args?.name]);
      expect(tasks).toEqual([
        [0, "task 0"],
        [1, "task 1"],
      ]);
    }));

  it("what was refused leaves nothing, and the counts go on as if it had not been", () =>
    withJob(variant, { tasks: 1, laneBytes: 1024, trace: true }, ({ job, context }) => {
      const to = context.endpoint;
      const bytes = new Uint8Array(100);
      let handled = 0;
      context.dispatch(DATA, () => {
        handled++;
      });
      let sent = 0;
      while (context.sendImmediate(to, DATA, null, bytes, false) === SUCCESS) sent++;
      expect(context.send({ to, dispatch: DATA, payload: bytes, queue: false })).toBe(EAGAIN);
      expect(thrownBy(() => context.sendImmediate(to, DATA, null, new Uint8Array(5000))).code).toBe("PAMIR_TOO_LARGE");
      until(context, () => handled === sent);
      expect(context.sendImmediate(to, DATA, null, bytes)).toBe(SUCCESS);
      until(context, () => handled === sent + 1);
      const arrows = arrowsOf(eventsOf(job));
      expect(arrows).toHaveLength(sent + 1);
      expect(eventsOf(job).filter(({ cat }) => cat === "send")).toHaveLength(sent + 1);
    }));

  it("messages that waited for a handler, or for a loop, have their arrows too", () =>
    withJob(variant, { tasks: 1, trace: true }, async ({ job, context }) => {
      const to = context.endpoint;
      for (const id of [DATA, OTHER, DATA, OTHER]) context.sendImmediate(to, id, null, new Uint8Array(id));
      context.advance();
      context.dispatch(OTHER, () => {});
      context.advance();
      let taken = 0;
      for await (const _ of context.messages(DATA, { timeout: PATIENCE })) if (++taken === 2) break;
      const arrows = arrowsOf(eventsOf(job));
      expect(arrows).toHaveLength(4);
      const events = eventsOf(job);
      for (const { from, to } of arrows) expect(sliceAt(events, to)?.args).toEqual(sliceAt(events, from)?.args);
    }));

  it("the message that tells of a put has its arrow, and counts like those that are sent", () =>
    withJob(variant, { tasks: 1, trace: true }, ({ job, client, context }) => {
      const to = context.endpoint;
      const [local, remote] = [client.createRegion(64), client.createRegion(64)];
      let handled = 0;
      context.dispatch(DATA, () => {
        handled++;
      });
      context.put({ to, local, remote: remote.handle, notify: DATA });
      context.sendImmediate(to, DATA);
      until(context, () => handled === 2);
      const events = eventsOf(job);
      const ends = arrowsOf(events).map(({ from, to }) => [sliceAt(events, from)?.args, sliceAt(events, to)?.args]);
      expect(ends.map(([sent]) => [sent?.count, sent?.bytes])).toEqual([
        [0, 16],
        [1, 0],
      ]);
      for (const [sent, handled] of ends) expect(handled).toEqual(sent);
    }));

  it("calls and replies have arrows by their number", () =>
    withJob(variant, { tasks: 1, trace: true }, async ({ job, context }) => {
      context.dispatch(DATA, () => new Uint8Array(3));
      await Promise.all([1, 2, 3].map(() => context.call(context.endpoint, DATA, null, { timeout: PATIENCE })));
      const events = eventsOf(job);
      const arrows = arrowsOf(events);
      const names = arrows.map(({ from, to }) => [sliceAt(events, from)?.name, sliceAt(events, to)?.name]);
      expect(names.filter(([name]) => name === "send call")).toEqual(new Array(3).fill(["send call", "call"]));
      expect(names.filter(([name]) => name === "send reply")).toEqual(new Array(3).fill(["send reply", "reply"]));
    }));

  it("a handler lasts as long as it did, a sleep has its name, a put, a get, an rmw and a fence are there", () =>
    withJob(variant, { tasks: 1, trace: true }, async ({ job, client, context }) => {
      const to = context.endpoint;
      const slow = 20;
      context.dispatch(DATA, () => {
        const start = performance.now();
        while (performance.now() < start + slow);
      });
      // A thread that gets the core late may find its time over before it sleeps.
      while (job.dump().tasks[0]?.sleeps === 0)
        await expect(context.progress({ timeout: 5 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
      const start = performance.now();
      context.sendImmediate(to, DATA);
      context.advance();
      const whole = performance.now() - start;
      const [local, remote] = [client.createRegion(64), client.createRegion(64)];
      context.put({ to, local, remote: remote.handle, bytes: 48 });
      context.get({ to, local, remote: remote.handle, bytes: 32 });
      context.rmw({ to, remote: remote.handle, operation: "add", value: 1 });
      await context.flush({ timeout: PATIENCE });
      context.sendImmediate(to, OTHER);
      context.advance();
      const events = eventsOf(job);
      const handler = events.find(({ cat }) => cat === "handler");
      expect(handler?.dur).toBeGreaterThanOrEqual(slow * 1000);
      expect(handler?.dur).toBeLessThan(whole * 1000);
      const asleep = events.find(({ cat }) => cat === "park");
      expect(asleep).toMatchObject({ name: "asleep in progress()", ph: "X" });
      const transfers = events.filter(({ cat }) => cat === "transfer").map(({ name, args }) => [name, args?.bytes]);
      expect(transfers).toEqual([
        ["put", 48],
        ["get", 32],
        ["rmw", 0],
      ]);
      const fences = events.filter(({ cat }) => cat === "fence");
      expect(fences.map(({ ph, id, args }) => [ph, id, args?.to])).toEqual([
        ["b", fences[0]?.id, "all"],
        ["e", fences[0]?.id, "all"],
      ]);
    }));

  it("a death is told by those who learn of it", () =>
    withJob(variant, { module: "sleeper.js", trace: true }, async ({ job, client, context }) => {
      void job.terminate(1);
      await context.whenEnded(client.endpoint(1), { timeout: PATIENCE });
      expect(eventsOf(job).filter(({ cat }) => cat === "death")).toEqual([
        expect.objectContaining({ ph: "i", tid: 0, name: "task 1 has ended" }),
      ]);
    }));

  it("a full ring has the last events; times never go back", () =>
    withJob(variant, { tasks: 1, trace: { events: 64 } }, ({ job, context }) => {
      let handled = 0;
      context.dispatch(DATA, () => {
        handled++;
      });
      for (let i = 0; i < 1000; i++) {
        context.sendImmediate(context.endpoint, DATA);
        context.advance();
      }
      expect(handled).toBe(1000);
      const events = eventsOf(job);
      const counts = events.filter(({ cat }) => cat === "handler").map(({ args }) => args?.count as number);
      expect(counts.at(-1)).toBe(999);
      expect(counts).toEqual(counts.map((_, place) => 1000 - counts.length + place));
      expect(counts.length).toBeGreaterThan(5);
      const times = events.filter(({ ph }) => ph === "X").map(({ ts }) => ts);
      expect([...times].sort((a, b) => a - b)).toEqual(times);
    }));
});

describe("how it is asked for", () => {
  const [plain] = VARIANTS;

  it("its text keeps to the format: no arrow lacks an end, where the ring begins within messages too", () =>
    withJob(plain, { tasks: 1, trace: { events: 128 } }, async ({ job, context }) => {
      const to = context.endpoint;
      context.dispatch(DATA, () => {});
      for (let round = 0; round < 50; round++) {
        for (let i = 0; i < 30; i++) context.sendImmediate(to, DATA);
        const flushed = context.flush({ timeout: PATIENCE });
        context.advance();
        // The last round's messages have no handlers yet.
        if (round < 49) while (context.advance() > 0);
        expect(faultsOfTrace(String(job.trace()))).toEqual([]);
        expect(faultsOfTrace(String(job.trace({ events: 40 })))).toEqual([]);
        await flushed;
      }
      expect(arrowsOf(eventsOf(job)).length).toBeGreaterThan(10);
    }));

  it.each([1, 2, 3, 63, 64, 65, 127, 128, 1000])("the last %i entries are the end of the whole trace", (events) =>
    withJob(plain, { tasks: 1, trace: { events: 128 } }, ({ job, context }) => {
      context.dispatch(DATA, () => {});
      for (let sent = 0; sent < 300; sent++) {
        context.sendImmediate(context.endpoint, DATA);
        if (sent % 50 > 40) context.advance();
      }
      while (context.advance() > 0);
      const kept = ({ origin, traceEvents }: Trace) =>
        traceEvents
          .filter(({ cat }) => cat === "send" || cat === "handler")
          .map(({ name, ts, args }) => [name, args?.count, Math.round(origin * 1e3 + ts)]);
      const [all, some] = [kept(job.trace()), kept(job.trace({ events }))];
      expect(some).toEqual(all.slice(all.length - some.length));
      // On a busy machine each event has a reading of the clock before it, and the last of a round one behind it.
      expect(some.length).toBeGreaterThanOrEqual(Math.min(all.length, Math.floor(events / 3)));
      expect(some.length).toBeLessThanOrEqual(events);
    }),
  );

  it("traces of one job lie on one axis by their origins", () =>
    withJob(plain, { tasks: 1, trace: { events: 64 } }, ({ job, context }) => {
      expect(job.trace().origin).toBe(0);
      context.dispatch(DATA, () => {});
      const handled = ({ origin, traceEvents }: Trace) =>
        new Map(
          traceEvents
            .filter(({ cat }) => cat === "handler")
            .map(({ ts, args }) => [args?.count, origin + ts / 1000] as const),
        );
      const turn = () => {
        context.sendImmediate(context.endpoint, DATA);
        context.advance();
        return job.trace();
      };
      let before = turn();
      let moved = 0;
      for (let i = 0; i < 100; i++) {
        const after = turn();
        if (after.origin > before.origin) moved++;
        const old = handled(before);
        for (const [count, time] of handled(after)) expect(time).toBeCloseTo(old.get(count) ?? time, 2);
        before = after;
      }
      expect(moved).toBeGreaterThan(10);
    }));

  it.each([
    { events: 0, says: "events is 0, not an integer from 1 to 16777216" },
    { events: 1.5, says: "events is 1.5, not an integer from 1 to 16777216" },
  ])("trace({ events: $events }) is refused", ({ events, says }) =>
    withJob(plain, { tasks: 1, trace: true }, async ({ job }) => {
      expect(thrownBy(() => job.trace({ events }))).toEqual({ code: "PAMIR_INVAL", text: says });
      await expect(job.traceAll({ events })).rejects.toMatchObject({ code: "PAMIR_INVAL", message: says });
    }),
  );

  it("its text is the JSON of its parts", () =>
    withJob(plain, { tasks: 1, trace: true }, ({ job, context }) => {
      context.sendImmediate(context.endpoint, DATA);
      context.advance();
      const { toString: _, ...parts } = job.trace();
      expect(JSON.parse(String(job.trace()))).toEqual(parts);
    }));

  it("without trace there is none", () =>
    withJob(plain, { tasks: 1 }, ({ job }) => {
      expect(thrownBy(() => job.trace())).toEqual({
        code: "PAMIR_INVAL",
        text: "trace() of a job that was launched without trace",
      });
    }));

  it.each([
    { trace: "yes", says: 'trace is "yes", not a boolean, nor { events }' },
    { trace: { events: 63 }, says: "trace.events is 63, not an integer from 64 to 16777216" },
    { trace: { events: 100 }, says: "trace.events is 100, not a power of two" },
  ])("$trace is refused", async ({ trace, says }) => {
    const made = launch(null, { tasks: 1, join: true, trace: trace as never });
    await expect(made).rejects.toMatchObject({ code: "PAMIR_INVAL", message: says });
  });

  it("PAMIR_TRACE writes a file for each job of a process", () => {
    const folder = mkdtempSync(join(inject("folder"), "trace-"));
    try {
      const program = fileURLToPath(new URL("tasks/two-jobs.js", import.meta.url));
      const env = { ...process.env, PAMIR_TRACE: join(folder, "out.json") };
      const { status, stderr } = spawnSync(process.execPath, [program], { encoding: "utf8", env, timeout: PATIENCE });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(readdirSync(folder).sort()).toEqual(["out-2.json", "out.json"]);
      for (const name of readdirSync(folder)) {
        const { traceEvents } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { traceEvents: TraceEvent[] };
        expect(arrowsOf(traceEvents)).toHaveLength(20);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("where nothing is traced, no code that runs often knows of traces: in the kernels, contexts, senders and receivers", () => {
    // Printed anew, a line for each statement: what is published has only as many lines as it needs.
    const dist = new URL("../../dist/", import.meta.url);
    const files = readdirSync(dist).filter((name) => /^(index|protocol|chunk-.*)\.js$/.test(name));
    const library = files.map((name) => transformSync(readFileSync(new URL(name, dist), "utf8")).code).join("\n");
    const wat = readFileSync(new URL("../../dist/pamir.wat", import.meta.url), "utf8");
    expect(wat).toContain('(export "advance"');
    expect(wat).not.toMatch(/trace/i);
    /** A class's text, or that of one of its methods. */
    const classOf = (name: string): string => {
      const text = new RegExp(`\\nvar ${name} = class[^\\n]*\\{\\n[\\s\\S]*?\\n\\};`).exec(library)?.[0];
      if (text === undefined) throw new Error(`no class ${name} in the library`);
      return text;
    };
    const known = /trac(?:e|ed|er|ing)\b|debug/i;
    const receiving = ["Receiver", "Incoming", "Dispatcher", "DispatchIds", "Arrivals", "PayloadBuffer"];
    const queues = ["UnexpectedQueue", "PausedOrigins", "EndedOrigins", "CompletionQueue"];
    for (const name of ["Sender", "Peer", "ShmLanes", "Rma", "Message", ...receiving, ...queues]) {
      expect(classOf(name), name).not.toMatch(known);
    }
    const hot = {
      Context: ["sendImmediate", "send", "reserve", "commit", "put", "get", "rmw", "fence", "advance"],
      ContextCore: ["advance", "#advanceBusily", "#afterRound", "hasWork"],
    };
    for (const [owner, names] of Object.entries(hot)) {
      const text = classOf(owner);
      for (const name of names) {
        const method = new RegExp(`\\n {2}${name}\\([^)]*\\) \\{\\n[\\s\\S]*?\\n {2}\\}`).exec(text)?.[0];
        expect(method, name).toBeDefined();
        expect(method, name).not.toMatch(known);
      }
    }
    expect(classOf("TracedSender")).toMatch(known);
  });
});

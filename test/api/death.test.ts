// Death: whoever is left learns of it, loses nothing that was sent, and goes on.
import { EAGAIN, launch, RECV_IMMEDIATE_MAX, type Result, SHUTDOWN, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import {
  awaitFlag,
  chooseSeed,
  DATA,
  ENGINE_VARIANTS,
  expectFree,
  OTHER,
  openGate,
  PATIENCE,
  QUIT,
  RESULT,
  randomFrom,
  rejectionOf,
  until,
  VARIANTS,
  type Variant,
  withJob as withLivingJob,
} from "./support.js";

/** Tasks die here on purpose: of that nothing is to be printed. */
const withJob: typeof withLivingJob = (variant, request, body) =>
  withLivingJob(variant, { onError: "ignore", ...request }, body);

const module = "mortal.js";
/** Pages of the largest lane: a ring of 256 KiB, room for one record more, its control block. */
const LANE_MOST = 344_064;

interface Death {
  readonly how: string;
  readonly code: number;
  readonly cause: string;
  readonly error?: string;
  readonly errorCode?: string;
  readonly stack?: string;
}

const DEATHS: readonly Death[] = [
  { how: "throw", code: 1, cause: "error", error: "RangeError: thrown in a handler", stack: "mortal.js" },
  { how: "exit", code: 3, cause: "exit" },
  { how: "rejection", code: 1, cause: "error", error: "Error: nobody handled this", stack: "mortal.js" },
  { how: "memory", code: 1, cause: "memory", errorCode: "ERR_WORKER_OUT_OF_MEMORY", error: "memory" },
  { how: "return", code: 0, cause: "exit" },
  { how: "close", code: 0, cause: "exit" },
  { how: "leave", code: 0, cause: "exit" },
];

function deathSuite(variant: Variant): void {
  for (const death of DEATHS) {
    it(`a task that ends by ${death.how}: those who are left learn it, job.exited tells how`, () =>
      withJob(
        variant,
        {
          module,
          scenario: "mortal",
          tasks: 3,
          laneBytes: 1024,
          args: { how: death.how },
          ...(death.how === "memory" ? { workerOptions: { resourceLimits: { maxOldGenerationSizeMb: 24 } } } : {}),
        },
        async ({ job, client, context, flags }) => {
          const [victim, witness] = [client.endpoint(1), client.endpoint(2)];
          let alive = 0;
          const numbers: number[] = [];
          const results: unknown[] = [];
          let report: unknown;
          context.dispatch(DATA, (message) => numbers.push(message.header[0] as number));
          context.dispatch(OTHER, () => alive++);
          context.dispatch(RESULT, ({ payload }) => {
            report = JSON.parse(new TextDecoder().decode(payload.slice()));
          });
          context.sendImmediate(witness, OTHER);
          until(context, () => alive === 1);
          const free = job.dump().heap.free;

          context.sendImmediate(victim, OTHER);
          // More than the lane holds: some of it is still here when the victim is gone.
          let waiting = 0;
          for (let i = 0; i < 40; i++) {
            const done = (cookie: unknown, result: Result) => {
              waiting--;
              results.push([cookie, result]);
            };
            const result = context.send({
              to: victim,
              dispatch: 4000,
              payload: new Uint8Array(400),
              onRemote: done,
              cookie: i,
            });
            if (result === SUCCESS || result === SHUTDOWN) waiting++;
            else expect(result).toBe(EAGAIN);
          }
          until(context, () => waiting === 0 && numbers.length === 3);
          expect(numbers).toEqual([0, 1, 2]);
          // Whatever was accepted comes to a result, in the order sent: SUCCESS and then, from some point on, SHUTDOWN.
          expect(results.map((entry) => (entry as [number])[0])).toEqual(Array.from({ length: 40 }, (_, i) => i));

          until(context, () => context.sendImmediate(victim, DATA) === SHUTDOWN);
          expect(context.send({ to: victim, dispatch: DATA, payload: new Uint8Array(3e6), onLocal: () => {} })).toBe(
            SHUTDOWN,
          );
          expect(context.reserve(victim, DATA, 8)).toBe(-SHUTDOWN);
          expect(context.room(victim)).toBe(0);
          const told: Result[] = [];
          context.whenRoom(victim, 8, (_, result) => told.push(result));
          context.send({ to: victim, dispatch: DATA, onLocal: (_, result) => told.push(result) });
          while (context.advance() > 0);
          expect(told).toEqual([SHUTDOWN, SHUTDOWN]);
          const room = rejectionOf(context.whenRoom(victim, 8));
          context.advance();
          expect((await room).code).toBe("PAMIR_SHUTDOWN");

          // The others go on, and the memory that served the dead is free again.
          context.sendImmediate(witness, OTHER);
          until(context, () => alive === 2);
          // A send may find that it has ended before all are told of that.
          await context.whenEnded(victim, { timeout: PATIENCE });
          expectFree(variant, job, [context], free);
          if (death.how === "leave") expect(job.dump().tasks[1]?.state).toBe("closed");
          openGate(flags, 5);
          context.sendImmediate(witness, QUIT);
          until(context, () => report !== undefined);
          const exits = await job.exited;
          expect(exits.map(({ task, code, cause }) => [task, code, cause])).toEqual([
            [1, death.code, death.cause],
            [2, 0, "exit"],
          ]);
          expect(exits[0]?.error ?? "").toContain(death.error ?? "");
          if (death.error === undefined) expect(exits[0]?.error).toBeUndefined();
          if (death.errorCode !== undefined) expect(exits[0]?.errorCode).toBe(death.errorCode);
          if (death.stack !== undefined) expect(exits[0]?.stack).toContain(death.stack);
          expect(job.dump().tasks.map(({ state }) => state)).toEqual(["up", "dead", "dead"]);
        },
      ));
  }

  it.each(["throw", "exit"])(
    "a task that holds a reservation ends by %s: what it committed comes, its lane goes",
    (how) =>
      withJob(
        variant,
        { module, scenario: "mortal", tasks: 3, laneBytes: 1024, args: { how, reserves: true } },
        async ({ job, client, context }) => {
          const [victim, witness] = [client.endpoint(1), client.endpoint(2)];
          let alive = 0;
          const numbers: number[] = [];
          context.dispatch(DATA, (message) => numbers.push(message.header[0] as number));
          context.dispatch(OTHER, () => alive++);
          context.sendImmediate(witness, OTHER);
          until(context, () => alive === 1);
          const { free } = job.dump().heap;
          context.sendImmediate(victim, OTHER);
          await context.whenEnded(victim, { timeout: PATIENCE });
          expect(numbers).toEqual([0, 1, 2]);
          expectFree(variant, job, [context], free);
          context.sendImmediate(witness, OTHER);
          until(context, () => alive === 2);
          context.sendImmediate(witness, QUIT);
          expect((await job.exited).map(({ task }) => task)).toEqual([1, 2]);
          expect(numbers).toEqual([0, 1, 2]);
        },
      ),
  );

  it("a task that throws while loading, with messages on their way to it", () =>
    withJob(variant, { module: "throws-at-load.js" }, async ({ job, client, context }) => {
      const results: Result[] = [];
      const parameters = { to: client.endpoint(1), dispatch: DATA, payload: new Uint8Array(200_000) };
      const sent = context.send({ ...parameters, onRemote: (_, result) => results.push(result), onLocal: () => {} });
      expect([SUCCESS, SHUTDOWN]).toContain(sent);
      until(context, () => results.length === 1);
      until(context, () => context.sendImmediate(client.endpoint(1), DATA) === SHUTDOWN);
      const [exit] = await job.exited;
      expect(exit).toMatchObject({ task: 1, code: 1, cause: "error", error: "TypeError: thrown while loading" });
      expect(exit?.stack).toContain("throws-at-load.js");
    }));

  it("what was committed before is delivered, and a message that was not finished comes to SHUTDOWN", () =>
    withJob(
      variant,
      { module, scenario: "testament", args: { small: 300, bytes: 3e6 } },
      async ({ job, context, flags }) => {
        const free = job.dump().heap.free;
        const numbers: number[] = [];
        const results: Result[] = [];
        context.dispatch(DATA, (message) =>
          numbers.push(new DataView(message.header.slice().buffer).getInt32(0, true)),
        );
        context.dispatch(
          OTHER,
          (message) => {
            expect(message.payloadBytes).toBeGreaterThan(RECV_IMMEDIATE_MAX);
            message.receive(new Uint8Array(message.payloadBytes), (_, result) => results.push(result));
          },
          { delivery: "early" },
        );
        openGate(flags, 0);
        await job.exited;
        until(context, () => results.length === 1);
        expect(numbers).toEqual(Array.from({ length: 300 }, (_, i) => i));
        expect(results).toEqual([SHUTDOWN]);
        expectFree(variant, job, [context], free);
      },
    ));

  it("who was held back behind a message that is never finished goes on when its origin has ended", () =>
    withJob(
      variant,
      {
        module,
        scenario: "testament",
        args: { small: 0, bytes: 3e6, lingers: true },
        context: { unexpectedBytes: 3e6 },
      },
      async ({ job, client, context, flags }) => {
        const laneFrom = (task: number) =>
          job.dump().tasks[0]?.contexts[0]?.lanes.find(({ origin }) => origin[0] === task);
        let heard = 0;
        context.dispatch(DATA, () => heard++);
        openGate(flags, 0);
        // Nothing is taken before it has no room for the rest, and it does not advance any more.
        for (const end = performance.now() + PATIENCE; laneFrom(1)?.roomWanted !== true && performance.now() < end; );
        // Its beginning fills the unexpected queue.
        expect(context.advance()).toBeGreaterThan(0);
        context.sendImmediate(client.endpoint(0), OTHER, null, new Uint8Array(8));
        context.sendImmediate(client.endpoint(0), DATA);
        context.advance();
        expect([heard, laneFrom(0)?.paused]).toEqual([0, true]);
        openGate(flags, 1);
        until(context, () => heard === 1);
      },
    ));

  it("who was held back with a message that no queue takes, and did not finish it, has ended all the same", () =>
    withJob(
      variant,
      {
        module,
        scenario: "testament",
        args: { small: 3, bytes: 3e6, lingers: true },
        context: { unexpectedBytes: 300 },
      },
      async ({ job, client, context, flags }) => {
        const { free } = job.dump().heap;
        let heard = 0;
        context.dispatch(DATA, () => heard++);
        openGate(flags, 0);
        const lane = () => job.dump().tasks[0]?.contexts[0]?.lanes[0];
        until(context, () => lane()?.paused === true);
        expect([heard, job.dump().tasks[0]?.contexts[0]?.unexpectedBytes]).toEqual([3, 0]);
        openGate(flags, 1);
        await context.whenEnded(client.endpoint(1), { timeout: PATIENCE });
        expectFree(variant, job, [context], free);
        expect(job.dump().tasks[0]?.contexts[0]?.unexpectedBytes).toBe(0);
      },
    ));

  it.each(["close", "exit"])("the rest of its memory comes back behind messages that were held back: %s", (how) =>
    withJob(
      variant,
      { module, scenario: "hoard", args: { count: 50, how }, laneBytes: 16_384, context: { unexpectedBytes: 300 } },
      async ({ job, context, flags }) => {
        openGate(flags, 0);
        await job.exited;
        for (let i = 0; i < 10; i++) context.advance();
        const { free: before, bytes } = job.dump().heap;
        let count = 0;
        context.dispatch(DATA, () => count++);
        until(context, () => count === 50);
        while (context.advance() > 0);
        expect(before).toBeLessThan(bytes);
        expectFree(variant, job, [context], bytes);
      },
    ),
  );

  it("what waited for the dead counts no more: as much may wait for another", () =>
    withJob(
      variant,
      { module: "sleeper.js", tasks: 3, laneBytes: 2048, context: { pendingBytes: 20_000 } },
      async ({ job, client, context }) => {
        // To contexts that are never made.
        const fill = (task: number): number => {
          const parameters = { to: client.endpoint(task, 1), dispatch: DATA, payload: new Uint8Array(500) };
          let accepted = 0;
          // Also what waits for a larger lane.
          for (let i = 0; i < 20; i++) {
            while (context.send(parameters) === SUCCESS) accepted++;
            context.advance();
          }
          return accepted;
        };
        const first = fill(1);
        expect(first).toBeGreaterThan(40);
        void job.terminate(1);
        await context.whenEnded(client.endpoint(1, 1), { timeout: PATIENCE });
        expect(fill(2)).toBe(first);
      },
    ));

  it("job.terminate() ends tasks that are asleep; the caller's client is closed", () =>
    withJob(variant, { module: "sleeper.js", tasks: 3 }, async ({ job, client, context }) => {
      const exits = await job.terminate();
      expect(exits.map(({ task, cause }) => [task, cause])).toEqual([
        [1, "terminated"],
        [2, "terminated"],
      ]);
      expect(await job.exited).toEqual(exits);
      expect(context.closed).toBe(true);
      expect(() => client.createContext()).toThrow("closed");
    }));
}

for (const variant of ENGINE_VARIANTS) describe(`death: ${variant.name}`, () => deathSuite(variant));

describe("job.terminate() of tasks that have hardly begun", () => {
  const url = new URL("tasks/beginner.js", import.meta.url);

  // Node 20 aborts the process where a worker is terminated just as it begins to run such a module.
  it("waits until they have attached", async () => {
    for (let round = 0; round < 10; round++) {
      const flags = new Int32Array(new SharedArrayBuffer(4));
      const workerOptions = { workerData: { flags, attaches: true } };
      const start = performance.now();
      const job = await launch(url, { tasks: 2, heapBytes: 2 ** 20, workerOptions });
      const exits = await job.terminate();
      // For a second, which a busy machine may take to start them.
      if (performance.now() - start < 1000) expect(flags[0]).toBe(2);
      expect(exits.map(({ cause }) => cause)).toEqual(["terminated", "terminated"]);
    }
  });

  it("ends those that never attach", async () => {
    const flags = new Int32Array(new SharedArrayBuffer(4));
    const job = await launch(url, { tasks: 1, workerOptions: { workerData: { flags, attaches: false } } });
    const [exit] = await job.terminate();
    expect(exit?.cause).toBe("terminated");
  });
});

describe("20 kills at random moments, under traffic", () => {
  const seed = chooseSeed();
  const random = randomFrom(seed);
  // Sizes that make lanes full, replace them and come in packets.
  const menus = [[8], [8, 100, 900], [8, 30_000], [8, 5000, 200_000]];
  for (const variant of [VARIANTS[0], VARIANTS[1], VARIANTS[2], VARIANTS[4]] as Variant[]) {
    const sizes = menus.pop() as number[];
    const lifetimes = Array.from({ length: 7 }, () => 1 + random.below(60));
    it(`five kills with ${variant.name}, sizes ${sizes} (PAMIR_SEED=${seed})`, () => {
      const request = {
        module,
        scenario: "traffic",
        tasks: 7,
        laneBytes: 4096,
        args: { lifetimes, sizes },
        heapBytes: 2 ** 25,
      };
      return withJob(variant, request, ({ job, client, context, flags }) => {
        const next = new Map<number, number>();
        let wrong = 0;
        let broken = 0;
        let alive = 0;
        let report: unknown;
        context.dispatch(DATA, (message) => {
          const number = new DataView(message.header.slice().buffer).getInt32(0, true);
          if (number !== (next.get(message.origin) ?? 0)) wrong++;
          next.set(message.origin, number + 1);
          const check = (bytes: Uint8Array) => {
            if (bytes.some((byte) => byte !== (number & 255))) wrong++;
          };
          if (message.immediate) check(message.payload);
          else {
            const bytes = new Uint8Array(message.payloadBytes);
            message.receive(bytes, (_, result) => (result === SUCCESS ? check(bytes) : broken++));
          }
        });
        context.dispatch(OTHER, () => alive++);
        context.dispatch(RESULT, ({ payload }) => {
          report = JSON.parse(new TextDecoder().decode(payload.slice()));
        });
        context.sendImmediate(client.endpoint(1), OTHER);
        until(context, () => alive === 1);
        const { free } = job.dump().heap;
        awaitFlag(flags, 2, 5);
        openGate(flags, 0);
        const victims = [2, 3, 4, 5, 6].map((task) => client.endpoint(task));
        const dead = () => job.dump().tasks.filter(({ state }) => state === "dead").length;
        until(context, () => dead() === 5);
        for (const victim of victims) until(context, () => context.sendImmediate(victim, DATA) === SHUTDOWN);
        context.sendImmediate(client.endpoint(1), OTHER);
        until(context, () => alive === 2);
        // The lanes of the dead are given back once they are read. A task that is killed while it opens a lane, before
        // anybody knows of it, takes that one with it.
        const lanesOfDead = () =>
          job
            .dump()
            .tasks.some(({ contexts }) => contexts.some(({ lanes }) => lanes.some(({ origin }) => origin[0] > 1)));
        const most = victims.length * LANE_MOST;
        const held = () => free - job.dump().heap.free;
        // The other survivor gives them back, and only then all other memory of the dead. This survivor hears of neither.
        const isOver = () => !lanesOfDead() && held() <= most;
        for (const end = Date.now() + PATIENCE; !isOver() && Date.now() < end; ) context.advance();
        expect(lanesOfDead()).toBe(false);
        expect(held()).toBeLessThanOrEqual(most);
        context.sendImmediate(client.endpoint(1), QUIT);
        until(context, () => report !== undefined);
        expect({ seed, wrong, others: (report as { wrong: number }).wrong }).toEqual({ seed, wrong: 0, others: 0 });
        expect(broken).toBeLessThanOrEqual(5);
        expect([...next.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
      });
    });
  }
});

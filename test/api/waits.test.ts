// Waiting: nobody who sleeps is forgotten, and each wait ends in the way that its caller asked for.
import {
  type Context,
  EAGAIN,
  type Endpoint,
  INTERRUPTED,
  type MemRegion,
  type ProgressOptions,
  SUCCESS,
  TIMEDOUT,
} from "pamir";
import { describe, expect, it } from "vitest";
import {
  awaitFlag,
  countedSignal,
  DATA,
  ECHO,
  ENGINE_VARIANTS,
  OTHER,
  openGate,
  PATIENCE,
  progress,
  REPLY_WHOLE,
  rejectionOf,
  type TestJob,
  thrownBy,
  until,
  type Variant,
  withJob,
} from "./support.js";

/** How MPI and geometries wait. */
interface InternalContext {
  readonly host: { until(condition: () => boolean, options: { timeout: number }): Promise<void> };
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const words = ({ bytes }: MemRegion) => new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);

function waitSuite(variant: Variant): void {
  const ROUND_TRIPS = 2000;
  const LOCKS = 300;
  const module = "waiter.js";

  it("what is there at the first look of a blocking wait is no won spin", () =>
    withJob(variant, { tasks: 1 }, ({ client, context }) => {
      let came = 0;
      context.dispatch(DATA, () => {
        came++;
      });
      for (let i = 1; i <= 20; i++) {
        expect(context.sendImmediate(client.endpoint(0), DATA, null, new Uint8Array(8))).toBe(SUCCESS);
        expect(context.advanceUntil(() => came === i)).toBe(SUCCESS);
      }
      // Of 20 events at the second look, each is.
      const before = client.dump().tasks[0]?.spinsWon;
      for (let i = 0; i < 20; i++) {
        let looks = 0;
        expect(context.advanceUntil(() => ++looks > 2)).toBe(SUCCESS);
      }
      expect([before, client.dump().tasks[0]?.spinsWon]).toEqual([0, 20]);
    }));

  // The last look before the sleep asks the condition, too; which of its calls that is differs.
  it.each([
    [
      "blocks",
      async (context: Context, isOver: () => boolean, timeout: number) =>
        void context.advanceUntil(isOver, { timeout }),
    ],
    [
      "does not block",
      (context: Context, isOver: () => boolean, timeout: number) =>
        (context as unknown as InternalContext).host.until(isOver, { timeout }).catch(() => {}),
    ],
  ])("what a condition begins before a sleep is done before it: a wait that %s", (_, wait) =>
    withJob(variant, { tasks: 1, context: { spin: 0 } }, async ({ client, context }) => {
      const region = client.createRegion(8);
      const timeout = 1000;
      /** Begins a put at a look, whose callback ends the wait. @returns when, in milliseconds, it has begun and the wait has ended */
      const beginAt = async (look: number): Promise<{ begun: number; ended: number }> => {
        const start = performance.now();
        let looks = 0;
        let begun = Number.NaN;
        let isDone = false;
        const onLocal = (): void => {
          isDone = true;
        };
        await wait(
          context,
          () => {
            if (++looks === look) {
              begun = performance.now() - start;
              const put = { to: context.endpoint, local: region, remote: region.handle, bytes: 8, onLocal };
              expect(context.put(put)).toBe(SUCCESS);
            }
            return isDone;
          },
          timeout,
        );
        return { begun, ended: performance.now() - start };
      };
      for (let look = 1; ; look++) {
        const { begun, ended } = await beginAt(look);
        // So late, or never, comes the look behind the sleep.
        if (!(begun < timeout / 2)) {
          expect(look).toBeGreaterThan(2);
          break;
        }
        expect([look, ended < timeout]).toEqual([look, true]);
      }
    }),
  );

  describe("park and wake", () => {
    for (const [mine, theirs] of [
      ["blocking", "blocking"],
      ["async", "blocking"],
      ["blocking", "async"],
      ["async", "async"],
    ] as const) {
      it(`${ROUND_TRIPS} round trips, ${mine} here and ${theirs} there, each parked at once`, () =>
        withJob(
          variant,
          { module, scenario: `pong-${theirs}`, args: { count: ROUND_TRIPS }, context: { spin: 0 } },
          async ({ job, client, context }) => {
            let replies = 0;
            context.dispatch(REPLY_WHOLE, (message) => {
              expect(message.getInt32(0)).toBe(replies);
              replies++;
            });
            for (let i = 0; i < ROUND_TRIPS; i++) {
              expect(context.sendImmediate(client.endpoint(1), ECHO, null, Int32Array.of(i))).toBe(SUCCESS);
              if (mine === "blocking") until(context, () => replies > i);
              else while (replies <= i) await progress(context);
            }
            expect(replies).toBe(ROUND_TRIPS);
            expect((await job.exited).map(({ code, error }) => [code, error])).toEqual([[0, undefined]]);
          },
        ));
    }

    it("a sleeper is woken by room", () =>
      withJob(
        variant,
        { module, scenario: "slow", laneBytes: 1024, context: { spin: 0 } },
        ({ client, context, flags }) => {
          const to = client.endpoint(1);
          for (let round = 0; round < 20; round++) {
            while (context.sendImmediate(to, DATA, null, new Uint8Array(200), false) === SUCCESS);
            let told = 0;
            context.whenRoom(to, 900, () => told++);
            Atomics.add(flags, 0, 1);
            Atomics.notify(flags, 0);
            until(context, () => told === 1);
          }
        },
      ));

    describe("a progress() that sleeps sees what other code of its thread begins", () => {
      const SENT = 50;
      it.each<[string, (context: Context, me: Endpoint, region: MemRegion, done: () => void) => unknown]>([
        ["a put", (context, to, local, onLocal) => context.put({ ...place(to, local), onLocal })],
        [
          "a large put",
          (context, to, local, onRemote) => context.put({ ...place(to, local), bytes: 2 ** 20, onRemote }),
        ],
        ["a get", (context, to, local, onLocal) => context.get({ ...place(to, local), onLocal })],
        [
          "an rmw",
          (context, to, { handle: remote }, onDone) => context.rmw({ to, remote, operation: "add", value: 1, onDone }),
        ],
        ["a fence", (context, to, _, done) => context.fence(to, done)],
        ["a message with a callback", (context, to, _, onLocal) => context.send({ to, dispatch: DATA, onLocal })],
        ["work", (context, _to, _region, done) => context.post(done)],
        ["a callback for room", (context, to, _, done) => context.whenRoom(to, 8, done)],
        [
          "messages without room",
          (context, to, _, done) => {
            let came = 0;
            context.dispatch(OTHER, () => {
              if (++came === SENT) done();
            });
            for (let i = 0; i < SENT; i++) context.sendImmediate(to, OTHER, null, new Uint8Array(200));
          },
        ],
      ])("%s", (_, begin) =>
        withJob(variant, { tasks: 1, laneBytes: 1024, context: { spin: 0 } }, async ({ client, context }) => {
          const region = client.createRegion(2 ** 22);
          context.dispatch(DATA, () => {});
          let isDone = false;
          const loop = (async () => {
            while (!isDone) await progress(context);
          })();
          await pause(20);
          begin(context, client.endpoint(0), region, () => {
            isDone = true;
          });
          await loop;
        }),
      );
      const place = (to: Endpoint, local: MemRegion) => ({
        to,
        local,
        remote: local.handle,
        remoteOffset: 2 ** 21,
        bytes: 8,
      });
    });

    it("advanceUntil() asks once more when it is about to sleep: what comes from then on rings", () =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, ({ context }) => {
        // First of all, behind the round, and before the sleep.
        let asked = 0;
        expect(context.advanceUntil(() => ++asked > 2, { timeout: PATIENCE })).toBe(SUCCESS);
        expect(asked).toBe(3);
      }));

    /** Asks that a wait with `spin: 0` comes to without a ring: first of all, behind the round, before the sleep. */
    const ASKS = [1, 2, 3];

    it.each(ASKS)("advanceUntil() ends at the first true, ask %i: a lock by compare-set is taken once", (nth) =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, ({ client, context }) => {
        const [lock, old] = [client.createRegion(4), client.createRegion(4)];
        const [lockWord, oldWord] = [words(lock), words(old)];
        lockWord[0] = 1;
        let asked = 0;
        const isLocked = () => {
          if (++asked === nth) lockWord[0] = 0;
          context.rmw({
            to: context.endpoint,
            remote: lock.handle,
            operation: "fetch-compare-set",
            test: 0,
            value: 1,
            result: old,
          });
          return oldWord[0] === 0;
        };
        expect(context.advanceUntil(isLocked, { timeout: PATIENCE })).toBe(SUCCESS);
        expect([asked, lockWord[0]]).toEqual([nth, 1]);
      }),
    );

    it.each(ASKS)("advanceUntil() ends at the first true, ask %i: a send in a condition goes out once", (nth) =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, ({ context }) => {
        let came = 0;
        context.dispatch(DATA, () => came++);
        let asked = 0;
        const isSent = () => ++asked >= nth && context.sendImmediate(context.endpoint, DATA) === SUCCESS;
        expect(context.advanceUntil(isSent, { timeout: PATIENCE })).toBe(SUCCESS);
        for (let i = 0; i < 10; i++) context.advance();
        expect([asked, came]).toEqual([nth, 1]);
      }),
    );

    it("a post from a timer wakes a pending progress()", () =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, async ({ context }) => {
        let ran = 0;
        setTimeout(() => context.post(() => void ran++), 10);
        expect(await progress(context)).toBe(1);
        expect(ran).toBe(1);
      }));

    it("work that waits for a timer does not keep the timer from running", () =>
      withJob(variant, { tasks: 1 }, async ({ context }) => {
        let timer = false;
        let done = 0;
        setTimeout(() => {
          timer = true;
        }, 10);
        context.post(() => {
          if (!timer) return EAGAIN;
          done++;
          return SUCCESS;
        });
        expect(await progress(context)).toBe(1);
        expect(done).toBe(1);
      }));

    it("a blocking wait within a progress() leaves that awake for what comes later", () =>
      withJob(variant, { module, scenario: "later", context: { spin: 0 } }, async ({ client, context, flags }) => {
        const other = client.createContext({ spin: 0 });
        let first = 0;
        let second = 0;
        context.dispatch(DATA, () => first++);
        other.dispatch(OTHER, () => second++);
        const sleeping = progress(context);
        await pause(20);
        // One that times out rings for nobody, one that succeeds rings for all.
        expect(other.advanceUntil(() => false, { timeout: 1 })).toBe(TIMEDOUT);
        openGate(flags, 2);
        expect(await sleeping).toBeGreaterThan(0);
        expect(first).toBe(1);
        const again = progress(context);
        await pause(20);
        openGate(flags, 3);
        until(other, () => second === 1);
        openGate(flags, 4);
        expect(await again).toBeGreaterThan(0);
        expect(first).toBe(2);
      }));

    it("a progress() that timed out leaves nothing that takes a later wake-up", () =>
      withJob(variant, { module, scenario: "later", context: { spin: 0 } }, async ({ context, flags }) => {
        let first = 0;
        context.dispatch(DATA, () => first++);
        for (let i = 0; i < 5; i++) {
          expect((await rejectionOf(context.progress({ timeout: 1 }))).code).toBe("PAMIR_TIMEDOUT");
        }
        setTimeout(() => openGate(flags, 2), 0);
        await pause(5);
        until(context, () => first === 1);
      }));

    it("several contexts of one thread wait at the same time", () =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, async ({ client, context }) => {
        const contexts = [context, client.createContext({ spin: 0 }), client.createContext({ spin: 0 })];
        const seen: number[] = [];
        for (const each of contexts) each.dispatch(DATA, () => seen.push(each.index));
        const waits = contexts.map((each) => progress(each));
        for (const index of [2, 0, 1]) {
          await pause(5);
          context.sendImmediate(client.endpoint(0, index), DATA);
          expect(await waits[index]).toBeGreaterThan(0);
        }
        expect(seen).toEqual([2, 0, 1]);
      }));
  });

  describe("advanceUntil", () => {
    it("comes to SUCCESS, TIMEDOUT or INTERRUPTED", () =>
      withJob(variant, { tasks: 1 }, ({ job, context }) => {
        expect(context.advanceUntil(() => true)).toBe(SUCCESS);
        expect(context.advanceUntil(() => false, { timeout: 0 })).toBe(TIMEDOUT);
        const before = performance.now();
        expect(context.advanceUntil(() => false, { timeout: 30 })).toBe(TIMEDOUT);
        expect(performance.now() - before).toBeGreaterThanOrEqual(29);
        job.interrupt(0);
        expect(context.advanceUntil(() => false, { timeout: PATIENCE })).toBe(INTERRUPTED);
        // One interrupt ends one wait.
        expect(context.advanceUntil(() => false, { timeout: 1 })).toBe(TIMEDOUT);
      }));

    it("is ended by an interrupt that a plain advance() has seen before", () =>
      withJob(variant, { tasks: 1 }, ({ job, context }) => {
        job.interrupt(0);
        context.advance();
        context.advance();
        expect(context.advanceUntil(() => false, { timeout: 1000 })).toBe(INTERRUPTED);
        expect(context.advanceUntil(() => false, { timeout: 1 })).toBe(TIMEDOUT);
      }));

    it("in a task is ended by job.interrupt, awake and asleep", () =>
      withJob(variant, { module, scenario: "interrupted" }, async ({ job, context, flags }) => {
        const results: number[] = [];
        context.dispatch(REPLY_WHOLE, (message) => results.push(message.getInt32(0)));
        for (let round = 1; round <= 20; round++) {
          awaitFlag(flags, 1, round);
          if (round % 2 === 0) await pause(2);
          job.interrupt(1);
          until(context, () => results.length === round);
        }
        expect(results).toEqual(new Array(20).fill(INTERRUPTED));
        expect(thrownBy(() => job.interrupt(2)).text).toBe("task is 2, not an integer from 0 to 1");
      }));

    it("throws what a handler throws, and ends when the context is closed in one", () =>
      withJob(variant, { tasks: 1 }, ({ context }) => {
        context.dispatch(DATA, () => {
          throw new Error("handler");
        });
        context.dispatch(OTHER, () => context.close());
        context.sendImmediate(context.endpoint, DATA);
        expect(() => context.advanceUntil(() => false, { timeout: PATIENCE })).toThrow("handler");
        context.sendImmediate(context.endpoint, OTHER);
        expect(context.advanceUntil(() => false, { timeout: PATIENCE })).toBe(INTERRUPTED);
        expect(context.closed).toBe(true);
      }));
  });

  describe("put and rmw with notify, waitWord", () => {
    const BYTES = 300 * 1024;

    for (const how of ["waitWord", "waitWordSync"] as const) {
      it(`a put that changes a word wakes ${how}(), and its bytes are there`, () =>
        withJob(variant, { module, scenario: "putter", context: { spin: 0 } }, async ({ client, context, flags }) => {
          const [data, word] = [client.createRegion(BYTES), client.createRegion(8)];
          word.bytes.fill(0);
          const handles = Float64Array.of(data.handle, word.handle);
          context.sendImmediate(client.endpoint(1), DATA, null, handles);
          for (let round = 1; round <= 30; round++) {
            openGate(flags, round);
            // Now before the put, and now behind it.
            if (round % 3 === 0) await pause(1);
            if (how === "waitWord") {
              expect(await context.waitWord(word, 4, (value) => value >= round, { timeout: PATIENCE })).toBe(round);
            } else {
              expect(context.waitWordSync(word, 4, (value) => value >= round, { timeout: PATIENCE })).toBe(SUCCESS);
            }
            const bytes = round % 2 === 0 ? BYTES : 100;
            expect([data.bytes[0], data.bytes[bytes - 1]]).toEqual([round, round]);
          }
        }));
    }

    it("a put with a dispatch id runs its handler behind the bytes, in the order of the puts", () =>
      withJob(variant, { module, scenario: "teller" }, async ({ job, client, context }) => {
        const data = client.createRegion(BYTES);
        const seen: number[][] = [];
        context.dispatch(OTHER, (message) => {
          const { payload } = message;
          const [offset = 0, bytes = 0] = [message.getInt32(0), message.getInt32(4)];
          const handle = new Float64Array(payload.slice().buffer)[1];
          seen.push([offset, bytes, data.bytes[offset] as number, data.bytes[offset + bytes - 1] as number]);
          expect(handle).toBe(data.handle);
        });
        context.sendImmediate(client.endpoint(1), DATA, null, Float64Array.of(data.handle));
        until(context, () => seen.length === 6);
        expect(seen).toEqual([
          [0, 16, 1, 1],
          [16, BYTES - 64, 2, 2],
          [0, 16, 3, 3],
          [16, 16, 4, 4],
          [BYTES - 32, 32, 5, 5],
          [BYTES - 8, 4, 6, 0],
        ]);
        expect((await job.exited).map(({ code, error }) => [code, error])).toEqual([[0, undefined]]);
      }));

    it("an rmw with notify: true wakes waitWord() of its word", () =>
      withJob(variant, { module, scenario: "adder", context: { spin: 0 } }, async ({ client, context }) => {
        const word = client.createRegion(4);
        word.bytes.fill(0);
        context.sendImmediate(client.endpoint(1), DATA, null, Float64Array.of(word.handle));
        for (let round = 1; round <= 200; round++) {
          const wait = context.waitWord(word, 0, (value) => value === round, { timeout: PATIENCE });
          expect(await wait).toBe(round);
          words(word)[0] = 0;
          context.sendImmediate(client.endpoint(1), OTHER, null, Int32Array.of(round + 1));
        }
      }));

    it("two tasks take turns by a lock that wakes", () =>
      withJob(variant, { module, scenario: "lock", args: { count: LOCKS } }, async ({ job, client, context }) => {
        const region = client.createRegion(12);
        const result = client.createRegion(4);
        const all = words(region);
        all.fill(0);
        context.sendImmediate(client.endpoint(1), DATA, null, Float64Array.of(region.handle));
        const [own, there] = [context.endpoint, client.endpoint(1)];
        let answer = 0;
        context.dispatch(OTHER, (message) => {
          answer = message.getInt32(0);
        });
        until(context, () => answer !== 0);
        for (let i = 0; i < LOCKS; i++) {
          const lock = { to: own, remote: region.handle, operation: "fetch-compare-set", value: 1, result } as const;
          until(context, () => {
            context.rmw({ ...lock, test: 0 });
            return words(result)[0] === 0;
          });
          all[1] = (all[1] as number) + 1;
          context.rmw({ to: own, remote: region.handle, operation: "set", value: 0 });
          // A task that waits for the lock sleeps: a message would do as well.
          context.sendImmediate(there, OTHER);
        }
        expect((await job.exited).map(({ code, error }) => [code, error])).toEqual([[0, undefined]]);
        expect(all[1]).toBe(2 * LOCKS);
      }));

    it("bad arguments are refused, and nothing is moved", () =>
      withJob(variant, { tasks: 1 }, async ({ client, context }) => {
        const [local, remote] = [client.createRegion(64), client.createRegion(64)];
        local.bytes.fill(1);
        remote.bytes.fill(0);
        const base = { to: context.endpoint, local, remote: remote.handle };
        const word = { remote: remote.handle };
        // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
        const put = (notify: any) => thrownBy(() => context.put({ ...base, notify }));
        expect(put(4096).text).toBe("notify is 4096, not an integer from 0 to 4095");
        expect(put("x")).toMatchObject({
          code: "PAMIR_INVAL",
          text: 'notify of a put is "x", no dispatch id and no word',
        });
        expect(put({ ...word, offset: 64 }).code).toBe("PAMIR_BOUNDS");
        expect(put({ ...word, offset: 2 }).code).toBe("PAMIR_INVAL");
        expect(put({ ...word, operation: "fetch-add" }).code).toBe("PAMIR_INVAL");
        expect(put({ ...word, value: 2 ** 40 }).code).toBe("PAMIR_INVAL");
        expect(put({ remote: 1 }).code).toBe("PAMIR_STALE");
        expect(put({ remote: -1 }).code).toBe("PAMIR_INVAL");
        // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
        expect(thrownBy(() => context.get({ ...base, notify: 1 } as any)).code).toBe("PAMIR_INVAL");
        const gone = client.createRegion(4);
        gone.close();
        expect(put({ remote: gone.handle }).code).toBe("PAMIR_STALE");
        expect(remote.bytes).toEqual(new Uint8Array(64));
        expect((await rejectionOf(context.waitWord(gone, 0, () => true))).code).toBe("PAMIR_CLOSED");
        expect((await rejectionOf(context.waitWord(local, 62, () => true))).code).toBe("PAMIR_INVAL");
        expect((await rejectionOf(context.waitWord(local, 64, () => true))).code).toBe("PAMIR_BOUNDS");
        expect((await rejectionOf(context.waitWord(local, 0, () => false, { timeout: 5 }))).code).toBe(
          "PAMIR_TIMEDOUT",
        );
        expect(context.waitWordSync(local, 0, () => false, { timeout: 5 })).toBe(TIMEDOUT);
      }));

    it("the word of a put that was refused meanwhile stays as it is", () =>
      withJob(variant, { tasks: 1, context: { spin: 0 } }, async ({ client, context }) => {
        const big = 1024 * 1024;
        const [local, remote, word] = [client.createRegion(big), client.createRegion(big), client.createRegion(4)];
        word.bytes.fill(0);
        const results: number[] = [];
        const onRemote = (_: unknown, result: number) => results.push(result);
        const base = { to: context.endpoint, local, notify: { remote: word.handle } };
        // The first holds the FIFO up, so that the second has not begun when its region closes.
        context.put({ ...base, remote: remote.handle, onRemote });
        const other = client.createRegion(big);
        context.put({ ...base, remote: other.handle, onRemote });
        other.close();
        until(context, () => results.length === 2);
        await context.drain();
        expect([results[0], words(word)[0]]).toEqual([SUCCESS, results[1] === SUCCESS ? 2 : 1]);
        if (variant.engine === undefined) expect(results[1]).not.toBe(SUCCESS);
      }));
  });

  describe("progress", () => {
    it("ends with the timeout, the signal, an interrupt or close(), and leaves no listener behind", () =>
      withJob(variant, { tasks: 1 }, async ({ job, client, context }) => {
        const controller = new AbortController();
        const { signal, listeners } = countedSignal(controller);

        expect(await rejectionOf(context.progress({ timeout: 5, signal }))).toMatchObject({
          code: "PAMIR_TIMEDOUT",
          text: "progress() of context 0 of task 0: not over after 5 ms",
        });
        expect(listeners()).toBe(0);

        context.post(() => {});
        expect(await context.progress({ timeout: PATIENCE, signal })).toBe(1);
        expect(listeners()).toBe(0);

        setTimeout(() => job.interrupt(0), 5);
        const interrupted = rejectionOf(context.progress({ timeout: PATIENCE, signal }));
        expect(listeners()).toBe(1);
        expect((await interrupted).code).toBe("PAMIR_INTERRUPTED");
        expect(listeners()).toBe(0);

        const reason = new Error("enough");
        setTimeout(() => controller.abort(reason), 5);
        const canceled = await rejectionOf(context.progress({ timeout: PATIENCE, signal }));
        expect([canceled.code, canceled.cause]).toEqual(["PAMIR_CANCELED", reason]);
        expect((await rejectionOf(context.progress({ signal }))).code).toBe("PAMIR_CANCELED");
        expect(listeners()).toBe(0);

        const other = client.createContext();
        setTimeout(() => other.close(), 5);
        expect((await rejectionOf(other.progress({ timeout: PATIENCE }))).code).toBe("PAMIR_CLOSED");
        expect((await rejectionOf(other.progress())).code).toBe("PAMIR_CLOSED");
      }));

    /** Every other wait, where nothing comes that would end it. */
    const waits: [string, (given: TestJob, options: ProgressOptions) => Promise<unknown>][] = [
      ["drain", ({ context }, options) => context.drain(options)],
      ["whenRoom", ({ client, context }, options) => context.whenRoom(client.endpoint(1, 1), 900, options)],
      ["call", ({ client, context }, options) => context.call(client.endpoint(1), DATA, null, options)],
      ["messages", ({ context }, options) => context.messages(OTHER, options).next()],
    ];
    it.each(waits)("as do %s", (_name, wait) =>
      withJob(variant, { module: "sleeper.js", laneBytes: 1024, context: { spin: 0 } }, async (given) => {
        const { job, client, context } = given;
        const controller = new AbortController();
        const { signal, listeners } = countedSignal(controller);
        // To a context that is never made: what waits for room there waits for ever.
        const parameters = { to: client.endpoint(1, 1), dispatch: DATA, payload: new Uint8Array(900) };
        while (context.send(parameters) === SUCCESS);

        const codes: string[] = [];
        const end = async (options: ProgressOptions, how?: () => void): Promise<void> => {
          const ended = rejectionOf(wait(given, options));
          if (how !== undefined) setTimeout(how, 5);
          codes.push((await ended).code);
          expect(listeners()).toBe(0);
        };
        await end({ timeout: 5, signal });
        await end({ timeout: PATIENCE, signal }, () => job.interrupt(0));
        await end({ timeout: PATIENCE, signal }, () => controller.abort());
        await end({ signal });
        await end({ timeout: PATIENCE }, () => context.close());
        await end({});
        const thrice = ["PAMIR_CANCELED", "PAMIR_CANCELED", "PAMIR_CLOSED", "PAMIR_CLOSED"];
        expect(codes).toEqual(["PAMIR_TIMEDOUT", "PAMIR_INTERRUPTED", ...thrice]);
      }),
    );

    it("as does flush", () =>
      withJob(variant, { tasks: 1, heapBytes: 2 ** 26 }, async ({ client, context }) => {
        const { signal, listeners } = countedSignal(new AbortController());
        const [local, remote] = [client.createRegion(2 ** 24), client.createRegion(2 ** 24)];
        // So many that an engine thread is not through with them when this thread gets its core back.
        const put = () => {
          for (let i = 0; i < 8; i++)
            context.put({ to: context.endpoint, local, remote: remote.handle, onLocal: () => {} });
        };
        put();
        expect((await rejectionOf(context.flush({ timeout: 0, signal }))).code).toBe("PAMIR_TIMEDOUT");
        put();
        await context.flush({ signal });
        put();
        expect((await rejectionOf(context.flush({ signal: AbortSignal.abort() }))).code).toBe("PAMIR_CANCELED");
        const closed = rejectionOf(context.flush({ signal }));
        context.close();
        expect((await closed).code).toBe("PAMIR_CLOSED");
        expect(listeners()).toBe(0);
      }));

    it("another wait ends while progress() begins: what goes on behind that one is not missed", () =>
      withJob(variant, { module: "peer.js", scenario: "answer" }, async ({ client, context }) => {
        for (let round = 0; round < 50; round++) {
          let isDone = false;
          void (async () => {
            await (round % 2 === 0
              ? context.call(client.endpoint(1), DATA, Uint8Array.of(1))
              : context.whenRoom(client.endpoint(1), 100));
            for (let i = 0; i < round; i++) await undefined;
            isDone = true;
          })();
          while (!isDone) await context.progress({ timeout: PATIENCE });
        }
        expect(
          (await rejectionOf(context.progress({ timeout: 5 }).then(() => context.progress({ timeout: 5 })))).code,
        ).toBe("PAMIR_TIMEDOUT");
        context.sendImmediate(client.endpoint(1), OTHER);
      }));

    it("may begin in a handler", () =>
      withJob(variant, { tasks: 1 }, async ({ context }) => {
        const begun: Promise<unknown>[] = [];
        context.dispatch(DATA, () => {
          begun.push(context.flush(), context.whenRoom(context.endpoint, 100), context.drain());
        });
        context.sendImmediate(context.endpoint, DATA);
        until(context, () => begun.length === 3);
        await Promise.all(begun);
      }));

    it("throws what a handler throws, once the round is finished", () =>
      withJob(variant, { tasks: 1 }, async ({ context }) => {
        let seen = 0;
        context.dispatch(DATA, () => {
          seen++;
          throw new Error(`handler ${seen}`);
        });
        for (let i = 0; i < 2; i++) context.sendImmediate(context.endpoint, DATA);
        await expect(context.progress({ timeout: PATIENCE })).rejects.toThrow("2 errors, the first: Error: handler 1");
        expect(seen).toBe(2);
      }));

    it("waits for whenRoom", () =>
      withJob(variant, { module, scenario: "slow", laneBytes: 1024 }, async ({ client, context, flags }) => {
        const to = client.endpoint(1);
        while (context.sendImmediate(to, DATA, null, new Uint8Array(200), false) === SUCCESS);
        const room = context.whenRoom(to, 800);
        let settled = false;
        void room.then(() => {
          settled = true;
        });
        Atomics.add(flags, 0, 1);
        Atomics.notify(flags, 0);
        while (!settled) await progress(context).then(() => pause(0));
        await room;
        expect(context.room(to)).toBeGreaterThanOrEqual(800);
      }));
  });
}

for (const variant of ENGINE_VARIANTS) describe(`waits: ${variant.name}`, () => waitSuite(variant));

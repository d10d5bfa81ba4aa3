// What holds for every job, whatever carries its bytes: memory that all tasks share, or messages. Waits never block, so
// that the suite runs on a page too. Where a transport can't do something, its capabilities say so.
import {
  type Client,
  type Context,
  type Endpoint,
  ERROR,
  info,
  type Job,
  type KernelName,
  type LaunchOptions,
  launch,
  type Message,
  type RmwOperation,
  type RmwType,
  SHUTDOWN,
  SUCCESS,
  type TaskExit,
} from "pamir";
import { describe, expect, it } from "vitest";
import { COLLECTIVE_TYPES } from "../../src/collective/operations.js";
import { drawCase } from "../support/collective-draws.js";
import { problemOf } from "../support/collective-model.js";
import { hashOf, SEED, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { lengthsOf, partOf } from "./tasks/collective-case.js";
import {
  ANSWER,
  AWAIT_END,
  AWAIT_WORD,
  CALL_BACK,
  CASE,
  CLOSE,
  DO,
  ECHO,
  FAIL,
  FORWARD,
  GEOMETRY,
  HOLD,
  LARGE,
  LAST_WORDS,
  LATER,
  NOTED,
  NOTIFIED,
  OPEN,
  PUT_BACK,
  READ,
  REGION,
  RELEASE,
  STREAM,
  SUM,
  THROW,
  TOGETHER,
  WATCH,
} from "./tasks/ids.js";

/** Longer than workers need to begin, also where others want the cores. */
const TIMEOUT = { timeout: 60_000 };
const MIB = 1024 ** 2;

/** What the suite takes of a job. Some launchers have neither interrupts nor traces. */
export type SuiteJob = Pick<Job, "client" | "exited"> &
  Partial<Pick<Job, "interrupt" | "trace">> & { terminate(): Promise<unknown> };
export type SuiteLaunch = (entry: URL, options: LaunchOptions) => Promise<SuiteJob>;

interface Given {
  readonly job: SuiteJob;
  readonly client: Client;
  readonly context: Context;
}

export interface ApiSuite {
  readonly name: string;
  readonly kernels: readonly KernelName[];
  /** Who moves what is long (default: each task). */
  readonly engine?: "thread";
  /** As where Atomics.waitAsync is missing, in all tasks. */
  readonly noWaitAsync?: boolean;
  /** Tasks of the largest job (default 200). */
  readonly many?: number;
  /** Starts the jobs (default: pamir's). */
  readonly launch?: SuiteLaunch;
}

/** Of jobs whose tasks die on purpose. */
const DEATH = { onError: "ignore" } as const;

async function until(context: Context, condition: () => boolean): Promise<void> {
  while (!condition()) await context.progress(TIMEOUT);
}

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

/** Whether one-sided operations on regions of an endpoint's task throw at once if a handle or bounds are wrong. */
function isChecked(client: Client, to: Endpoint): boolean {
  return client.capabilities.checksRemoteHandles || client.localTasks.includes(client.taskOf(to));
}

/** Word of a message's header. */
function headerWord({ header }: Message, place: number): number {
  return new Int32Array(header.slice().buffer)[place] as number;
}

/** Bytes that tell which message they are of. */
function pattern(bytes: number, seed: number): Uint8Array {
  const made = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) made[i] = (i * 31 + seed * 7) & 255;
  return made;
}

function isPattern(bytes: Uint8Array, seed: number): boolean {
  return bytes.every((byte, i) => byte === ((i * 31 + seed * 7) & 255));
}

export function apiSuite(suite: ApiSuite): void {
  const { name, kernels, engine, noWaitAsync = false, many = 200, launch: start = launch } = suite;
  const { waitAsync } = Atomics;
  /** A job of which this thread is task 0. */
  async function withJob(
    tasks: number,
    body: (given: Given) => Promise<void>,
    options: LaunchOptions = {},
  ): Promise<void> {
    const entry = new URL("./tasks/peer.js", import.meta.url);
    const kernel = Array.from({ length: tasks }, (_, task) => kernels[task % kernels.length] as KernelName);
    if (noWaitAsync) Object.assign(Atomics, { waitAsync: undefined });
    const job = await start(entry, {
      tasks,
      kernel,
      join: true,
      engine,
      heapBytes: 16 * MIB,
      args: { noWaitAsync },
      ...options,
    });
    try {
      await body({ job, client: job.client, context: job.client.createContext() });
    } finally {
      await job.terminate();
      Object.assign(Atomics, { waitAsync });
    }
  }

  /** A region of task 1, and one as large of this task. */
  async function regions({ client, context }: Given, bytes: number) {
    let remote = -1;
    context.dispatch(ANSWER, (message) => {
      remote = new Float64Array(message.payload.slice().buffer)[0] as number;
    });
    const to = client.endpoint(1);
    context.sendImmediate(to, REGION, Int32Array.of(bytes));
    await until(context, () => remote >= 0);
    let content: Uint8Array | undefined;
    context.dispatch(LARGE, (message) => {
      const into = new Uint8Array(message.payloadBytes);
      const came = () => {
        content = into;
      };
      if (message.immediate) {
        into.set(message.payload);
        came();
      } else message.receive(into, came);
    });
    /** What the owner sees in its region. */
    const read = async (): Promise<Uint8Array> => {
      content = undefined;
      expect(context.sendImmediate(to, READ)).toBe(SUCCESS);
      await until(context, () => content !== undefined);
      return content as unknown as Uint8Array;
    };
    return { to, remote, read, local: client.createRegion(bytes) };
  }

  describe(`${name}: messages`, () => {
    it("come whole and in order, of any size, from several tasks", () =>
      withJob(3, async ({ client, context }) => {
        const count = 600;
        const sizes = [0, 8, 100, 4000, 30_000];
        const sizeOf = (number: number) => sizes[(number * 7) % 5] as number;
        const next = [0, 0, 0];
        let wrong = 0;
        context.dispatch(ANSWER, (message) => {
          const number = headerWord(message, 0);
          const from = headerWord(message, 1);
          if (number !== next[from]++ || message.payloadBytes !== sizeOf(number)) wrong++;
          if (!isPattern(message.payload, number)) wrong++;
        });
        for (let i = 0; i < count; i++) {
          for (const task of [1, 2]) {
            const to = client.endpoint(task);
            const message = { to, dispatch: ECHO, header: Int32Array.of(i, task), payload: pattern(sizeOf(i), i) };
            expect(context.send(message)).toBe(SUCCESS);
            // What the tasks answer has to have room in their pending queues.
            await until(context, () => (next[task] as number) > i - 30);
          }
        }
        await until(context, () => next[1] === count && next[2] === count);
        expect(wrong).toBe(0);
      }));

    it.each([
      [20_000, "whole"],
      [69_633, "whole"],
      [69_633, "early"],
      [MIB + 3, "whole"],
      [MIB + 3, "early"],
    ] as const)("of %i bytes come %s, there and back", (bytes, delivery) =>
      withJob(2, async ({ client, context }) => {
        const log: string[] = [];
        let came: Uint8Array | undefined;
        context.dispatch(
          LARGE,
          (message) => {
            expect(message.immediate).toBe(delivery === "whole");
            expect([...new Int32Array(message.header.slice().buffer)]).toEqual([bytes]);
            if (message.immediate) expect(isPattern(message.payload, 5)).toBe(true);
            const into = new Uint8Array(message.payloadBytes);
            message.receive(into, () => {
              came = into;
            });
          },
          { delivery },
        );
        const called = (cookie: unknown, result: number) => void log.push(`${cookie} ${result}`);
        const payload = pattern(bytes, 5);
        const header = Int32Array.of(bytes);
        const rest = { onLocal: called, onRemote: called, cookie: "called" };
        expect(context.send({ to: client.endpoint(1), dispatch: LARGE, header, payload, ...rest })).toBe(SUCCESS);
        await until(context, () => came !== undefined);
        expect(isPattern(came as unknown as Uint8Array, 5)).toBe(true);
        expect(log).toEqual(["called 0", "called 0"]);
      }),
    );

    // The last one: a byte order mark, and bytes that are no UTF-8. Long ones come in a buffer.
    it.each([
      ["", ""],
      ["of a few bytes", "hé €uro 😀"],
      ["that is long", "Nanga Parbat, 8126 m – ".repeat(4000)],
      ["that begins with U+FEFF", "\uFEFFa\uFFFD", Uint8Array.of(0xef, 0xbb, 0xbf, 0x61, 0xff)],
    ])("as text: one %s", (_, text, payload = new TextEncoder().encode(text)) =>
      withJob(2, async ({ client, context }) => {
        const came: string[] = [];
        const at = (message: Message) => void came.push(message.text());
        context.dispatch(ANSWER, at);
        context.dispatch(LARGE, at);
        // To this task, and there and back: the header's length moves the payload.
        for (let bytes = 0; bytes < 3; bytes++) {
          expect(context.send({ to: 0, dispatch: ANSWER, header: new Uint8Array(bytes), payload })).toBe(SUCCESS);
        }
        expect(context.send({ to: client.endpoint(1), dispatch: LARGE, payload })).toBe(SUCCESS);
        await until(context, () => came.length === 4);
        expect(came).toEqual([text, text, text, text]);
      }),
    );

    it("to a task that does not read: EAGAIN, then room; nothing is lost", () =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        let next = 0;
        let wrong = 0;
        context.dispatch(ANSWER, (message) => {
          if (headerWord(message, 0) !== next++) wrong++;
        });
        context.sendImmediate(to, ECHO, Int32Array.of(0));
        await until(context, () => next === 1);
        context.sendImmediate(to, HOLD, Int32Array.of(300));
        let sent = 1;
        const payload = new Uint8Array(1000);
        while (context.sendImmediate(to, ECHO, Int32Array.of(sent), payload, false) === SUCCESS) {
          if (++sent > 2000) throw new Error("the FIFO has no end");
        }
        let isTold = false;
        void context.whenRoom(to, 2000).then(() => {
          isTold = true;
        });
        await until(context, () => isTold);
        expect(context.room(to)).toBeGreaterThanOrEqual(2000);
        expect(context.sendImmediate(to, ECHO, Int32Array.of(sent++), payload)).toBe(SUCCESS);
        await until(context, () => next === sent);
        expect(wrong).toBe(0);
      }));

    it("written in place by reserve() and commit(); abort() sends nothing", () =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        const came: number[] = [];
        context.dispatch(ANSWER, (message) => {
          came.push(message.payloadBytes, message.payload[99] as number);
        });
        const aborted = context.reserve(to, ECHO, 500);
        expect(aborted).toBeGreaterThan(0);
        context.abort(to);
        const offset = context.reserve(to, ECHO, 200);
        client.bytes.fill(9, offset, offset + 200);
        context.commit(to, 100);
        await until(context, () => came.length === 2);
        expect(came).toEqual([100, 9]);
      }));

    it("that come before their handler wait for it", () =>
      withJob(2, async ({ client, context }) => {
        for (let i = 0; i < 10; i++) context.sendImmediate(client.endpoint(1), ECHO, Int32Array.of(i));
        expect(await codeOf(context.progress({ timeout: 50 }).then(() => context.progress({ timeout: 200 })))).not.toBe(
          "PAMIR_CLOSED",
        );
        const came: number[] = [];
        context.dispatch(ANSWER, (message) => {
          came.push(headerWord(message, 0));
        });
        await until(context, () => came.length === 10);
        expect(came).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      }));

    it("whose payload's buffer is transferred before it has gone come to ERROR, and what is behind them comes", () =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        const results: number[] = [];
        const onLocal = (_: unknown, result: number) => void results.push(result);
        // It has no handler, and is too large to be kept without one: only a part of it goes.
        const payload = new Uint8Array(6 * MIB);
        expect(context.send({ to, dispatch: 3000, payload, onLocal, onRemote: onLocal })).toBe(SUCCESS);
        structuredClone(payload.buffer, { transfer: [payload.buffer] });
        const behind = context.call(to, 3000, pattern(100, 1), TIMEOUT);
        // By a lane of its own: nothing more is read of the other.
        const other = client.createContext();
        expect(other.sendImmediate(to, LATER, Int32Array.of(3000))).toBe(SUCCESS);
        expect(isPattern(await behind, 1)).toBe(true);
        await until(context, () => results.length === 2);
        expect(results).toEqual([ERROR, ERROR]);
      }));

    it("go from task to task, and to the task itself", () =>
      withJob(4, async ({ client, context }) => {
        const came: number[] = [];
        context.dispatch(ANSWER, (message) => {
          came.push(message.payload[0] as number);
        });
        for (const by of [1, 2, 3]) {
          for (const to of [1, 2, 3]) {
            context.sendImmediate(client.endpoint(by), FORWARD, Int32Array.of(to), Uint8Array.of(10 * by + to));
          }
        }
        context.sendImmediate(context.endpoint, ANSWER, null, Uint8Array.of(99));
        await until(context, () => came.length === 10);
        expect(came.toSorted((a, b) => a - b)).toEqual([11, 12, 13, 21, 22, 23, 31, 32, 33, 99]);
      }));

    it("go on after purge()", () =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        let came = 0;
        context.dispatch(ANSWER, () => {
          came++;
        });
        for (let i = 1; i <= 5; i++) {
          while (context.sendImmediate(to, ECHO, Int32Array.of(i)) !== SUCCESS) await context.progress(TIMEOUT);
          await until(context, () => came === i);
          expect(context.purge([to])).toBe(SUCCESS);
        }
      }));
  });

  describe(`${name}: one-sided`, () => {
    it.each([0, 1, 8, 1000, 262_144, 600_001])("put and get of %i bytes", (bytes) =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to, remote, read, local } = await regions(given, bytes + 64);
        local.bytes.set(pattern(bytes + 64, 3));
        const log: string[] = [];
        const callbacks = {
          onLocal: (cookie: unknown, result: number) => void log.push(`local ${cookie} ${result}`),
          onRemote: (cookie: unknown, result: number) => void log.push(`remote ${cookie} ${result}`),
          cookie: 7,
        };
        const place = { to, remote, bytes, localOffset: 8, remoteOffset: 24 };
        expect(context.put({ ...place, local, ...callbacks })).toBe(SUCCESS);
        await context.flush(TIMEOUT);
        await until(context, () => log.length === 2);
        expect(log).toEqual(["local 7 0", "remote 7 0"]);
        const theirs = await read();
        const wanted = new Uint8Array(bytes + 64);
        wanted.set(pattern(bytes + 64, 3).subarray(8, 8 + bytes), 24);
        expect(theirs.every((byte, i) => byte === wanted[i])).toBe(true);
        const back = client.createRegion(bytes + 64);
        back.bytes.fill(1);
        let done = false;
        const onLocal = () => {
          expect(back.bytes.subarray(8, 8 + bytes).every((byte, i) => byte === wanted[24 + i])).toBe(true);
          done = true;
        };
        expect(context.get({ ...place, local: back, onLocal })).toBe(SUCCESS);
        await until(context, () => done);
        expect([back.bytes[7], back.bytes[8 + bytes]]).toEqual([1, 1]);
      }),
    );

    it("rmw: every operation and type, as a model has it", () =>
      withJob(2, async (given) => {
        const { context } = given;
        const { to, remote, read, local } = await regions(given, 64);
        const mask = { i32: 2n ** 32n - 1n, u32: 2n ** 32n - 1n, i64: 2n ** 64n - 1n, u64: 2n ** 64n - 1n };
        const words = new BigUint64Array(local.bytes.buffer, local.bytes.byteOffset, 8);
        let model = 0n;
        let number = 1;
        for (const type of ["i32", "u32", "i64", "u64"] as const satisfies RmwType[]) {
          for (const what of ["set", "add", "or", "and", "xor"] as const) {
            for (const form of ["", "fetch-", "compare-", "fetch-compare-"] as const) {
              const operation = `${form}${what}` as RmwOperation;
              const compares = form.includes("compare");
              const value = BigInt(number++ * 11);
              const test = number % 2 === 0 ? model & mask[type] : 1n;
              const of = (bits: bigint) => (type[0] === "i" ? BigInt.asIntN(Number(type.slice(1)), bits) : bits);
              words[0] = 0n;
              let done = false;
              const result = context.rmw({
                to,
                remote,
                operation,
                type,
                value: of(value),
                ...(compares && { test: of(test) }),
                ...(form.startsWith("fetch") && { result: local }),
                onDone: (_, code) => {
                  expect(code).toBe(SUCCESS);
                  done = true;
                },
              });
              expect(result).toBe(SUCCESS);
              await until(context, () => done);
              const old = model & mask[type];
              if (form.startsWith("fetch")) expect((words[0] as bigint) & mask[type]).toBe(old);
              if (compares && old !== test) continue;
              const made =
                what === "set"
                  ? value
                  : what === "add"
                    ? old + value
                    : what === "or"
                      ? old | value
                      : what === "and"
                        ? old & value
                        : old ^ value;
              model = (model & ~mask[type]) | (made & mask[type]);
            }
          }
        }
        expect(new BigUint64Array((await read()).buffer)[0]).toBe(model);
      }));

    it("a message behind a fence finds what was put before it", () =>
      withJob(2, async (given) => {
        const { context } = given;
        const { to, remote, read, local } = await regions(given, 80_000);
        for (let round = 1; round <= 10; round++) {
          for (let part = 0; part < 10; part++) {
            local.bytes.fill(round, 8000 * part, 8000 * (part + 1));
            const place = { localOffset: 8000 * part, remoteOffset: 8000 * part, bytes: 8000 };
            expect(context.put({ to, local, remote, ...place })).toBe(SUCCESS);
          }
          let fenced: number | undefined;
          context.fence(to, (_, result) => {
            fenced = result;
          });
          await until(context, () => fenced !== undefined);
          expect(fenced).toBe(SUCCESS);
          expect((await read()).every((byte) => byte === round)).toBe(true);
        }
      }));

    it("what is out of bounds, stale or misaligned is refused, and nothing else", () =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to, remote, read, local } = await regions(given, 1000);
        const own = client.createRegion(1000);
        own.bytes.fill(1);
        expect(() => context.put({ to, local: own, remote, localOffset: 999, bytes: 2 })).toThrowError(
          expect.objectContaining({ code: "PAMIR_BOUNDS" }),
        );
        const refused: [string, () => number][] = [
          ["PAMIR_BOUNDS", () => context.put({ to, local, remote, remoteOffset: 1, onRemote })],
          ["PAMIR_STALE", () => context.put({ to, local, remote: remote + 2 ** 21, onRemote })],
          [
            "PAMIR_BOUNDS",
            () => context.get({ to, local: own, remote, remoteOffset: 999, bytes: 2, onLocal: onRemote }),
          ],
          [
            "PAMIR_BOUNDS",
            () => context.rmw({ to, remote, remoteOffset: 1000, operation: "add", value: 1, onDone: onRemote }),
          ],
        ];
        let result: number | undefined;
        const onRemote = (_: unknown, code: number) => {
          result = code;
        };
        for (const [code, operation] of refused) {
          if (isChecked(client, to)) {
            expect(operation).toThrowError(expect.objectContaining({ code }));
            continue;
          }
          result = undefined;
          expect(operation()).toBe(SUCCESS);
          await until(context, () => result !== undefined);
          expect(result).toBe(ERROR);
          expect(await codeOf(context.flush(TIMEOUT))).toBe("PAMIR_STALE");
        }
        expect(() => context.rmw({ to, remote, remoteOffset: 2, operation: "add", value: 1 })).toThrowError(
          expect.objectContaining({ code: "PAMIR_INVAL" }),
        );
        await context.flush(TIMEOUT);
        expect((await read()).every((byte) => byte === 0)).toBe(true);
        expect(own.bytes.every((byte) => byte === 1)).toBe(true);
      }));
  });

  describe(`${name}: types`, () => {
    /** A column of pieces of 24 bytes, one in each row of 64. */
    async function columnOf(client: Client, rows: number) {
      const type = (await client.createType()).addSimple(24, 8, rows, 64).complete();
      return { type, offsets: Array.from({ length: 24 * rows }, (_, i) => 8 + 64 * Math.floor(i / 24) + (i % 24)) };
    }

    /** Bytes of 0xee, but for a pattern's at these offsets. */
    function heldAt(offsets: readonly number[], length: number, content: Uint8Array): Uint8Array {
      const bytes = new Uint8Array(length).fill(0xee);
      for (const offset of offsets) bytes[offset] = content[offset] as number;
      return bytes;
    }

    it.each([
      [10, "whole", false],
      [700, "whole", false],
      [700, "early", true],
      [20_000, "whole", true],
      [20_000, "early", false],
    ] as const)(
      "a column of %i pieces goes out packed, and its echo into a column (%s; offered: %s)",
      (...[rows, delivery, rendezvous]) =>
        withJob(2, async ({ client, context }) => {
          const { type, offsets } = await columnOf(client, rows);
          const bytes = 64 * rows;
          const region = client.createRegion(bytes);
          let into: Uint8Array = region.bytes;
          const log: string[] = [];
          const told = (what: string) => (cookie: unknown, result: number) =>
            void log.push(`${what} ${cookie} ${result}`);
          context.dispatch(
            LARGE,
            (message) => {
              expect(message.payloadBytes).toBe(24 * rows);
              message.receive(into, told("received"), 2, { type });
            },
            { delivery },
          );
          for (const target of [region.bytes, new Uint8Array(bytes)]) {
            into = target;
            target.fill(0xee);
            log.length = 0;
            const payload = pattern(bytes, 5);
            const callbacks = { onLocal: told("local"), onRemote: told("remote"), cookie: 1, rendezvous };
            expect(context.send({ to: client.endpoint(1), dispatch: LARGE, payload, type, ...callbacks })).toBe(
              SUCCESS,
            );
            // The caller's bytes are its own again.
            payload.fill(1);
            await until(context, () => log.length === 3);
            expect(log.toSorted()).toEqual(["local 1 0", "received 2 0", "remote 1 0"]);
            const wanted = heldAt(offsets, bytes, pattern(bytes, 5));
            expect(target.every((byte, i) => byte === wanted[i])).toBe(true);
          }
        }),
    );

    it.each([1, 50, 3000])("put and get between columns of %i pieces, or a column and contiguous bytes", (rows) =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { type, offsets } = await columnOf(client, rows);
        const [data, bytes] = [24 * rows, 64 * rows + 100];
        const { to, remote, read, local } = await regions(given, bytes);
        local.bytes.set(pattern(bytes, 3));
        const log: string[] = [];
        const told = (what: string) => (cookie: unknown, result: number) =>
          void log.push(`${what} ${cookie} ${result}`);
        const callbacks = () => ({ onLocal: told("local"), onRemote: told("remote"), cookie: 7 });
        const isTold = async () => {
          await until(context, () => log.length === 2);
          expect(log.splice(0)).toEqual(["local 7 0", "remote 7 0"]);
        };
        const wanted = new Uint8Array(bytes);
        const same = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((byte, i) => byte === b[i]);

        const place = { to, local, remote, localOffset: 16, remoteOffset: 40 };
        expect(context.put({ ...place, localType: type, remoteType: type, ...callbacks() })).toBe(SUCCESS);
        await context.flush(TIMEOUT);
        await isTold();
        for (const offset of offsets) wanted[40 + offset] = local.bytes[16 + offset] as number;
        expect(same(await read(), wanted)).toBe(true);

        expect(context.put({ ...place, localType: type, remoteOffset: 4, ...callbacks() })).toBe(SUCCESS);
        await isTold();
        offsets.forEach((offset, i) => {
          wanted[4 + i] = local.bytes[16 + offset] as number;
        });
        expect(same(await read(), wanted)).toBe(true);

        expect(context.put({ ...place, localOffset: 3, remoteType: type, bytes: data, ...callbacks() })).toBe(SUCCESS);
        await isTold();
        offsets.forEach((offset, i) => {
          wanted[40 + offset] = local.bytes[3 + i] as number;
        });
        expect(same(await read(), wanted)).toBe(true);

        const back = client.createRegion(bytes);
        back.bytes.fill(0xee);
        const mine = new Uint8Array(bytes).fill(0xee);
        const there = { ...place, local: back };
        expect(context.get({ ...there, localType: type, remoteType: type, ...callbacks() })).toBe(SUCCESS);
        await isTold();
        for (const offset of offsets) mine[16 + offset] = wanted[40 + offset] as number;
        expect(same(back.bytes, mine)).toBe(true);

        // Without callbacks: a fence knows.
        expect(context.get({ ...there, localType: type, remoteOffset: 5 })).toBe(SUCCESS);
        await context.flush(TIMEOUT);
        offsets.forEach((offset, i) => {
          mine[16 + offset] = wanted[5 + i] as number;
        });
        expect(same(back.bytes, mine)).toBe(true);

        expect(context.get({ ...there, localOffset: 1, remoteType: type })).toBe(SUCCESS);
        await context.flush(TIMEOUT);
        offsets.forEach((offset, i) => {
          mine[1 + i] = wanted[40 + offset] as number;
        });
        expect(same(back.bytes, mine)).toBe(true);
      }),
    );

    it("a put of a part of its elements tells of all its bytes, behind them", () =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to, remote, read, local } = await regions(given, 20_000);
        local.bytes.set(pattern(20_000, 9));
        // Two elements and a part of the third.
        const type = (await client.createType()).addSimple(10, 0, 50, 40).complete({ extent: 2000 });
        const bytes = 1234;
        const noted: number[][] = [];
        context.dispatch(NOTED, (message) => void noted.push([...new Int32Array(message.header.slice().buffer)]));
        const place = { to, local, remote, remoteOffset: 8, remoteType: type, bytes };
        expect(context.put({ ...place, notify: NOTIFIED })).toBe(SUCCESS);
        await until(context, () => noted.length === 1);
        expect(noted[0]?.slice(0, 2)).toEqual([8, bytes]);
        const wanted = new Uint8Array(20_000);
        for (let i = 0; i < bytes; i++) {
          const [element, at] = [Math.floor(i / 500), i % 500];
          wanted[8 + 2000 * element + 40 * Math.floor(at / 10) + (at % 10)] = local.bytes[i] as number;
        }
        const theirs = await read();
        expect(theirs.every((byte, i) => byte === wanted[i])).toBe(true);
        const word = { remote, offset: 16_000, operation: "set", value: 77 } as const;
        const waited = context.call(to, AWAIT_WORD, null, { ...TIMEOUT, header: Int32Array.of(16_000, 77) });
        local.bytes.fill(3);
        expect(context.put({ ...place, notify: word })).toBe(SUCCESS);
        const seen = await waited;
        expect([seen[8], seen[8 + 2000], seen[17], seen[18]]).toEqual([3, 3, 3, 0]);
      }));

    it("debug mode knows the parameters of types, and of what they come down to", () =>
      withJob(
        2,
        async (given) => {
          const { client, context } = given;
          const { to, remote, local } = await regions(given, 4000);
          const { type } = await columnOf(client, 50);
          const place = { to, local, remote, localType: type, remoteType: type };
          expect(context.put(place)).toBe(SUCCESS);
          expect(context.get(place)).toBe(SUCCESS);
          await context.flush(TIMEOUT);
          expect(context.send({ to, dispatch: HOLD, payload: new Uint8Array(4000), type, count: 1 })).toBe(SUCCESS);
        },
        { debug: true },
      ));

    it("a put of more runs than the pending queue takes is accepted whole, and a fence waits for all of them", () =>
      withJob(2, async (given) => {
        const { client } = given;
        const { to, remote, read, local } = await regions(given, 30_000);
        local.bytes.set(pattern(30_000, 4));
        const type = (await client.createType()).addSimple(4, 0, 3000, 8).complete();
        const tight = client.createContext({ pendingBytes: 100 });
        expect(tight.put({ to, local, remote, remoteType: type, remoteOffset: 16 })).toBe(SUCCESS);
        await tight.flush(TIMEOUT);
        const wanted = new Uint8Array(30_000);
        for (let i = 0; i < 12_000; i++) wanted[16 + 8 * (i >>> 2) + (i & 3)] = local.bytes[i] as number;
        const theirs = await read();
        expect(theirs.every((byte, i) => byte === wanted[i])).toBe(true);
      }));

    it("elements that reach beyond a region are refused, and what is wrong is not begun", () =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to, remote, read, local } = await regions(given, 1000);
        local.bytes.fill(1);
        const type = (await client.createType()).addSimple(8, 0, 16, 64).complete();
        const place = { to, local, remote };
        expect(() => context.put({ ...place, localType: type, localOffset: 33 })).toThrowError(
          expect.objectContaining({ code: "PAMIR_BOUNDS" }),
        );
        const wrong = { ...place, localType: type, notify: -1 };
        expect(() => context.put(wrong)).toThrowError(expect.objectContaining({ code: "PAMIR_INVAL" }));
        expect((await read()).every((byte) => byte === 0)).toBe(true);
        let result: number | undefined;
        const onRemote = (_: unknown, code: number) => {
          result = code;
        };
        // Of the second type, only what comes first is beyond.
        const backwards = (await client.createType()).addIndexed(8, [960, 480, 0]).complete();
        for (const remoteType of [type, backwards]) {
          const beyond = () => context.put({ ...place, remoteType, remoteOffset: 33, onRemote });
          if (isChecked(client, to)) {
            expect(beyond).toThrowError(expect.objectContaining({ code: "PAMIR_BOUNDS" }));
            continue;
          }
          result = undefined;
          expect(beyond()).toBe(SUCCESS);
          await until(context, () => result !== undefined);
          expect(result).toBe(ERROR);
          expect(await codeOf(context.flush(TIMEOUT))).toBe("PAMIR_STALE");
        }
      }));
  });

  describe(`${name}: notified`, () => {
    /** What task 1's region has, once its word at an offset has a value. */
    const awaited = (context: Context, to: number, offset: number, value: number): Promise<Uint8Array> =>
      context.call(to, AWAIT_WORD, null, { ...TIMEOUT, header: Int32Array.of(offset, value) });

    it.each([0, 8, 5000, 262_144, 600_001])("a put of %i bytes, by a word: the bytes are there before it", (bytes) =>
      withJob(2, async (given) => {
        const { context } = given;
        const { to, remote, local } = await regions(given, bytes + 67);
        local.bytes.set(pattern(bytes + 67, 3));
        const offset = (bytes + 63) & ~3;
        const place = { to, local, remote, bytes };
        for (const [value, word] of [
          [1, { remote, offset }],
          [7, { remote, offset, operation: "add", value: 6 }],
          [-2, { remote, offset, operation: "set", value: -2 }],
        ] as const) {
          local.bytes[0] = value;
          const waited = awaited(context, to, offset, value);
          expect(context.put({ ...place, notify: word })).toBe(SUCCESS);
          const wanted = local.bytes.slice(0, bytes);
          expect((await waited).subarray(0, bytes).every((byte, i) => byte === wanted[i])).toBe(true);
        }
      }),
    );

    it("puts and rmws, by messages: in order, behind their bytes, each once", () =>
      withJob(2, async (given) => {
        const { context } = given;
        const { to, remote, local } = await regions(given, 700_000);
        const noted: number[][] = [];
        context.dispatch(NOTED, (message) => {
          const handle = new Float64Array(message.payload.slice().buffer)[0] as number;
          noted.push([...new Int32Array(message.header.slice().buffer), handle]);
        });
        const wanted: number[][] = [];
        const sizes = [8, 300_000, 1, 4096, 20_000, 100];
        let at = 0;
        for (const [place, bytes] of sizes.entries()) {
          const offset = at;
          at += (bytes + 7) & ~7;
          local.bytes.fill(place + 1, offset, offset + bytes);
          const rest = { localOffset: offset, remoteOffset: offset, bytes, notify: NOTIFIED };
          expect(context.put({ to, local, remote, ...rest })).toBe(SUCCESS);
          wanted.push([offset, bytes, place + 1, place + 1, remote]);
          const word = { remoteOffset: at, operation: "set", value: 0x01010101 * (place + 65) } as const;
          expect(context.rmw({ to, remote, ...word, notify: NOTIFIED })).toBe(SUCCESS);
          wanted.push([at, 4, place + 65, place + 65, remote]);
          at += 8;
        }
        await until(context, () => noted.length === wanted.length);
        expect(noted).toEqual(wanted);
        // What comes behind them, of an answer too, finds no more of them.
        await context.flush(TIMEOUT);
        await context.call(to, CALL_BACK, null, TIMEOUT);
        expect(noted.length).toBe(wanted.length);
      }));

    it("an rmw ends the wait for its own word, or for another", () =>
      withJob(2, async (given) => {
        const { context } = given;
        const { to, remote } = await regions(given, 64);
        const own = awaited(context, to, 8, 5);
        expect(context.rmw({ to, remote, remoteOffset: 8, operation: "add", value: 5, notify: true })).toBe(SUCCESS);
        expect((await own)[8]).toBe(5);
        const other = awaited(context, to, 32, 1);
        const wide = { remoteOffset: 16, operation: "add", type: "u64", value: 2n ** 40n } as const;
        expect(context.rmw({ to, remote, ...wide, notify: { remote, offset: 32 } })).toBe(SUCCESS);
        expect([...(await other).subarray(16, 24)]).toEqual([0, 0, 0, 0, 0, 1, 0, 0]);
      }));

    it("this task waits for words of its own, by waitWordSync() too where it may block", () =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to } = await regions(given, 64);
        const own = client.createRegion(64);
        own.bytes.fill(9);
        const ask = (value: number): void => {
          const handle = new Float64Array([own.handle]);
          expect(context.sendImmediate(to, PUT_BACK, Int32Array.of(40, value), handle)).toBe(SUCCESS);
        };
        ask(3);
        expect(await context.waitWord(own, 40, (word) => word === 3, TIMEOUT)).toBe(3);
        expect([own.bytes[0], own.bytes[39], own.bytes[44]]).toEqual([0, 0, 9]);
        expect(await codeOf(context.waitWord(own, 40, (word) => word === 4, { timeout: 20 }))).toBe("PAMIR_TIMEDOUT");
        ask(4);
        const wait = () => context.waitWordSync(own, 40, (word) => word === 4, TIMEOUT);
        if (client.capabilities.blockingWaits) expect(wait()).toBe(SUCCESS);
        else expect(wait).toThrow(/Cross-Origin-Opener-Policy|must not block|shares? no memory/);
        expect(await context.waitWord(own, 40, (word) => word === 4, TIMEOUT)).toBe(4);
      }));

    it("a put that is refused changes no word, and tells nobody", () =>
      withJob(2, async (given) => {
        const { client, context } = given;
        const { to, remote, read, local } = await regions(given, 64);
        const stale = remote + 2 ** 21;
        let noted = 0;
        context.dispatch(NOTED, () => void noted++);
        for (const notify of [NOTIFIED, { remote, offset: 60 }] as const) {
          let result: number | undefined;
          const onRemote = (_: unknown, code: number) => {
            result = code;
          };
          const put = () => context.put({ to, local, remote: stale, bytes: 8, notify, onRemote });
          if (isChecked(client, to)) {
            expect(put).toThrowError(expect.objectContaining({ code: "PAMIR_STALE" }));
            continue;
          }
          expect(put()).toBe(SUCCESS);
          await until(context, () => result !== undefined);
          expect(result).toBe(ERROR);
          expect(await codeOf(context.flush(TIMEOUT))).toBe("PAMIR_STALE");
        }
        // Behind it, one that is right.
        expect(context.put({ to, local, remote, bytes: 8, notify: NOTIFIED })).toBe(SUCCESS);
        await until(context, () => noted > 0);
        expect(noted).toBe(1);
        expect((await read()).every((byte) => byte === 0)).toBe(true);
      }));
  });

  describe(`${name}: calls and streams`, () => {
    it.each([0, 1, 8, 5000, 69_000, 69_633, MIB + 3])("a request of %i bytes, and its reply", (bytes) =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        for (const header of [undefined, Uint8Array.of(1, 2, 3), new Uint8Array(60_000).fill(7)]) {
          const reply = await context.call(to, CALL_BACK, pattern(bytes, 3), { ...TIMEOUT, header });
          const headerBytes = header?.length ?? 0;
          expect(reply.length).toBe(headerBytes + bytes);
          expect(reply.subarray(0, headerBytes).every((byte, i) => byte === header?.[i])).toBe(true);
          expect(isPattern(reply.subarray(headerBytes).reverse(), 3)).toBe(true);
        }
      }),
    );

    it("values there and back; who answers sooner is there sooner", () =>
      withJob(3, async ({ client, context }) => {
        const order: number[] = [];
        // Who is asked first answers when it is told to: after any time the other's thread may still wait for a core.
        const slow = context
          .call(client.endpoint(1), SUM, { numbers: [1, 2], held: true }, TIMEOUT)
          .finally(() => order.push(1));
        const fast = context.call(client.endpoint(2), SUM, { numbers: [3, 4] }, TIMEOUT).finally(() => order.push(2));
        await fast;
        expect(context.sendImmediate(client.endpoint(1), RELEASE)).toBe(SUCCESS);
        expect(await Promise.all([slow, fast])).toEqual([
          { sum: 3, task: 1 },
          { sum: 7, task: 2 },
        ]);
        expect(order).toEqual([2, 1]);
      }));

    it("of the task itself, in a handler too", () =>
      withJob(1, async ({ context }) => {
        context.dispatch(SUM, ({ numbers }) => ({ sum: numbers.length, task: 0 }));
        const asked: Promise<unknown>[] = [];
        context.dispatch(ECHO, () => void asked.push(context.call(context.endpoint, SUM, { numbers: [5] }, TIMEOUT)));
        context.sendImmediate(context.endpoint, ECHO);
        await until(context, () => asked.length === 1);
        expect(await asked[0]).toEqual({ sum: 1, task: 0 });
      }));

    it("more at once than there is room for: each gets its own reply", () =>
      withJob(3, async ({ client, context }) => {
        const calls = Array.from({ length: 600 }, async (_, number) => {
          const payload = pattern(number % 7 === 0 ? 30_000 : 1000, number);
          const reply = await context.call(client.endpoint(1 + (number % 2)), CALL_BACK, payload, TIMEOUT);
          return isPattern(reply.reverse(), number);
        });
        expect((await Promise.all(calls)).every(Boolean)).toBe(true);
      }));

    it("an error comes with its name, code and stack", () =>
      withJob(2, async ({ client, context }) => {
        for (const how of ["at once", "async"]) {
          const error = await context.call(client.endpoint(1), FAIL, how, TIMEOUT).then(
            () => undefined,
            (reason: Error) => reason,
          );
          expect(error).toMatchObject({ name: "RangeError", message: `failed: ${how}`, code: "E_FAILED" });
          expect(error?.stack).toMatch(/peer.*context 0 of task 1/s);
        }
        const wrong = context.call(client.endpoint(1), ECHO, null, TIMEOUT);
        expect((await wrong).length).toBe(0);
      }));

    it("before the handler is there: it waits for it", () =>
      withJob(2, async ({ client, context }) => {
        const to = client.endpoint(1);
        const first = context.call(to, 3000, Uint8Array.of(1), TIMEOUT);
        const second = context.call(to, 3000, new Uint8Array(100), TIMEOUT);
        context.sendImmediate(to, LATER, Int32Array.of(3000));
        expect((await first)[0]).toBe(1);
        expect((await second).length).toBe(100);
      }));

    it("end by time, by signal, by interrupt, with the context, and with the target", () =>
      withJob(3, async ({ job, client, context }) => {
        const never = (task: number, options: object) =>
          codeOf(context.call(client.endpoint(task), FAIL, "never", options));
        expect(await never(1, { timeout: 20 })).toBe("PAMIR_TIMEDOUT");
        expect(await never(1, { signal: AbortSignal.timeout(20) })).toBe("PAMIR_CANCELED");
        expect(await never(1, { signal: AbortSignal.abort() })).toBe("PAMIR_CANCELED");
        if (job.interrupt !== undefined) {
          const interrupted = never(1, TIMEOUT);
          setTimeout(() => job.interrupt?.(0), 20);
          expect(await interrupted).toBe("PAMIR_INTERRUPTED");
        }
        // The longer one is not held up by the shorter, nor the other way round.
        const [longer, shorter] = [never(1, { timeout: 60 }), never(2, { timeout: 10 })];
        expect(await shorter).toBe("PAMIR_TIMEDOUT");
        const dying = codeOf(context.call(client.endpoint(1), FAIL, "die", TIMEOUT));
        // Who is not told of a death sees it by what it has to say.
        const say = (): void => void context.sendImmediate(client.endpoint(1), ECHO);
        const saying = client.capabilities.failureDetection ? undefined : setInterval(say, 20);
        const ends = await Promise.all([dying, longer]);
        clearInterval(saying);
        expect(ends).toContain("PAMIR_SHUTDOWN");
        expect(await never(1, TIMEOUT)).toBe("PAMIR_SHUTDOWN");
        expect(await context.call(client.endpoint(2), SUM, { numbers: [1] }, TIMEOUT)).toEqual({ sum: 1, task: 2 });
        const closed = never(2, TIMEOUT);
        context.close();
        expect(await closed).toBe("PAMIR_CLOSED");
      }));

    it.each([
      ["what comes", 0],
      ["what comes, and what is offered", 400],
    ])("a stream: %s, in order, however slowly it is read", (_, offers) =>
      withJob(
        2,
        async ({ client, context }) => {
          const count = 3000;
          context.sendImmediate(client.endpoint(1), STREAM, Int32Array.of(count, offers));
          // Until the queue of what is not read is full: 1 MiB.
          const held = () => client.dump().tasks[0]?.contexts[0]?.unexpectedBytes ?? 0;
          while (held() < MIB - 600) await codeOf(context.progress({ timeout: 20 }));
          let next = 0;
          for await (const { origin, header, payload, reply } of context.messages(STREAM, TIMEOUT)) {
            expect([origin, payload.length, reply]).toEqual([client.endpoint(1), 500, undefined]);
            expect(new Int32Array(header.slice().buffer)[0]).toBe(next++);
            if (next % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
            if (next === count) break;
          }
          const again = context.messages(STREAM, { timeout: 20 });
          expect(await codeOf(again.next())).toBe("PAMIR_TIMEDOUT");
        },
        { laneBytes: 1024 },
      ),
    );

    it("a stream of calls: each is answered where it is read", () =>
      withJob(1, async ({ context }) => {
        const sums = [1, 2, 3].map((number) => context.call(context.endpoint, SUM, { numbers: [number] }, TIMEOUT));
        let answered = 0;
        for await (const { payload, reply } of context.messages(SUM, TIMEOUT)) {
          expect(() => context.dispatch(SUM.id, () => {})).toThrow("a stream");
          reply?.({ sum: payload.numbers[0] as number, task: 9 });
          if (++answered === 3) break;
        }
        expect(await Promise.all(sums)).toEqual([1, 2, 3].map((sum) => ({ sum, task: 9 })));
      }));
  });

  describe(`${name}: collective operations`, () => {
    /** A geometry of so many tasks, which the others make as well. */
    async function geometryOf({ client, context }: Given, size: number) {
      const others = Array.from({ length: size - 1 }, (_, i) => client.endpoint(1 + i));
      const header = Int32Array.of(size);
      const theirs = others.map((to) => context.call(to, GEOMETRY, null, { ...TIMEOUT, header }));
      const [geometry] = await Promise.all([client.createGeometry({ from: 0, to: size - 1 }, TIMEOUT), ...theirs]);
      return { geometry, others };
    }

    it.each([2, 3, 5])("%i members: each type gives what a sequential program gives", (size) =>
      withJob(size, async (given) => {
        const { client, context } = given;
        const { geometry, others } = await geometryOf(given, size);
        const random = randomOf(SEED ^ hashOf(`${name} ${size}`));
        const draw = { size, forms: ["promise"] as const, most: 100_000 };
        for (const type of Array.from({ length: scaled(2) }, () => COLLECTIVE_TYPES).flat()) {
          const one = drawCase(random, draw, geometry.algorithms.bind(geometry), type);
          const theirs = others.map((to) => context.call(to, CASE, one, TIMEOUT));
          const [{ problem, bytes }, ...got] = await Promise.all([
            partOf(one, geometry, client, TIMEOUT.timeout),
            ...theirs,
          ]);
          expect(problem).toBeUndefined();
          for (const [rank, result] of [bytes as Uint8Array, ...got].entries()) {
            if (lengthsOf(one, rank, size).receive === undefined) continue;
            const wrong = problemOf(one, rank, size, result);
            if (wrong !== undefined) expect.fail(`rank ${rank}: ${wrong}\n${JSON.stringify(one)}`);
          }
        }
      }),
    );

    it.each([
      ["halve", [[2, 0], [1], [2, 0]]],
      ["rotate", [0, 0, 0]],
      ["count", [0, 0, 0]],
      ["countStriped", [0, 0, 0]],
      ["askInTurn", [0, 1, 2].map(() => ({ heard: 22, gathered: [0, 1, 2] }))],
      ["scatterUpdates", [0, 0, 0]],
    ] as const)("what members do together: %s", (what, results) =>
      withJob(3, async (given) => {
        const { geometry, others } = await geometryOf(given, 3);
        const theirs = others.map((to) => given.context.call(to, DO, what, TIMEOUT));
        expect(await Promise.all([TOGETHER[what](geometry), ...theirs])).toEqual(results);
      }),
    );
  });

  describe(`${name}: waits and ends`, () => {
    it("progress() ends by time, signal and interrupt", () =>
      withJob(2, async ({ job, context }) => {
        expect(await codeOf(context.progress({ timeout: 20 }))).toBe("PAMIR_TIMEDOUT");
        expect(await codeOf(context.progress({ signal: AbortSignal.timeout(20) }))).toBe("PAMIR_CANCELED");
        if (job.interrupt !== undefined) {
          setTimeout(() => job.interrupt?.(0), 20);
          expect(await codeOf(context.progress(TIMEOUT))).toBe("PAMIR_INTERRUPTED");
        }
        let posted = false;
        setTimeout(
          () =>
            context.post(() => {
              posted = true;
              return SUCCESS;
            }),
          20,
        );
        await until(context, () => posted);
      }));

    it("advanceUntil() works, or says why not", () =>
      withJob(1, async ({ client, context }) => {
        const wait = () => context.advanceUntil(() => true);
        if (client.capabilities.blockingWaits) expect(wait()).toBe(SUCCESS);
        else expect(wait).toThrow(/Cross-Origin-Opener-Policy|must not block|shares? no memory/);
      }));

    it("a task closes: what it sent before is delivered, then all to it is SHUTDOWN", () =>
      withJob(3, async ({ job, client, context }) => {
        const to = client.endpoint(1);
        const came: number[] = [];
        context.dispatch(ANSWER, (message) => {
          const number = headerWord(message, 0);
          if (number >= 0) came.push(number);
        });
        const local = client.createRegion(8);
        context.sendImmediate(to, CLOSE);
        await until(context, () => came.length === 100);
        expect(came).toEqual(Array.from({ length: 100 }, (_, i) => i));
        const start = performance.now();
        // It has said its last word, but may not have closed yet: whatever of these is answered is not what is looked for.
        while (
          context.sendImmediate(to, ECHO, Int32Array.of(-1)) !== SHUTDOWN &&
          performance.now() - start < TIMEOUT.timeout
        ) {
          await context.progress({ timeout: 20 }).catch(() => {});
        }
        expect(context.sendImmediate(to, ECHO)).toBe(SHUTDOWN);
        expect(context.put({ to, local, remote: client.task === 0 ? 2 ** 20 + 1024 : 0 })).toBe(SHUTDOWN);
        const room = codeOf(context.whenRoom(to, 8));
        context.advance();
        expect(await room).toBe("PAMIR_SHUTDOWN");
        // The other one goes on.
        context.sendImmediate(client.endpoint(2), ECHO, Int32Array.of(7));
        await until(context, () => came.includes(7) && came.length === 101);
        context.sendImmediate(client.endpoint(2), CLOSE);
        expect((await job.exited).map(({ task, code, cause }) => [task, code, cause])).toEqual([
          [1, 0, "exit"],
          [2, 0, "exit"],
        ]);
      }));

    it("a context closes, its task goes on: what it sent before is delivered, then all to it is SHUTDOWN", () =>
      withJob(4, async ({ job, client, context }) => {
        const [first, second] = [client.endpoint(1), client.endpoint(1, 1)];
        const came: number[] = [];
        const ended: number[] = [];
        context.dispatch(ANSWER, (message) => {
          came.push(headerWord(message, 0));
        });
        // Who has nothing else to do with it hears of it too.
        const elsewhere = context.call(client.endpoint(2), AWAIT_END, null, TIMEOUT);
        context.whenEnded(second, () => ended.push(came.length));
        context.sendImmediate(first, OPEN);
        const never = codeOf(context.call(second, FAIL, "never", TIMEOUT));
        await codeOf(context.progress({ timeout: 50 })); // the call is out
        context.sendImmediate(second, CLOSE);
        await until(context, () => ended.length === 1);
        expect(ended).toEqual([100]);
        expect(came).toEqual(Array.from({ length: 100 }, (_, i) => i));
        expect(await never).toBe("PAMIR_SHUTDOWN");
        expect((await elsewhere)[0]).toBe(1);
        expect(context.sendImmediate(second, ECHO)).toBe(SHUTDOWN);
        expect(context.send({ to: second, dispatch: LARGE, payload: new Uint8Array(MIB), onLocal: () => {} })).toBe(
          SHUTDOWN,
        );
        expect(context.reserve(second, ECHO, 8)).toBe(-SHUTDOWN);
        expect(await codeOf(context.call(second, CALL_BACK, null, TIMEOUT))).toBe("PAMIR_SHUTDOWN");
        expect(await codeOf(context.whenRoom(second, 8, TIMEOUT))).toBe("PAMIR_SHUTDOWN");
        // Who hears of it only now.
        expect((await context.call(client.endpoint(3), AWAIT_END, null, TIMEOUT))[0]).toBe(1);
        // An endpoint that is not there yet keeps what comes for it; the task goes on.
        expect(context.sendImmediate(client.endpoint(1, 2), ECHO)).toBe(SUCCESS);
        context.sendImmediate(first, ECHO, Int32Array.of(7));
        await until(context, () => came.length === 101);
        // One of this task, to another of it.
        const own = client.createContext();
        expect(context.sendImmediate(own.endpoint, ECHO)).toBe(SUCCESS);
        own.close();
        await context.whenEnded(own.endpoint, TIMEOUT);
        expect(context.sendImmediate(own.endpoint, ECHO)).toBe(SHUTDOWN);
        for (const task of [1, 2, 3]) context.sendImmediate(client.endpoint(task), CLOSE);
        expect((await job.exited).map(({ task, code, cause }) => [task, code, cause])).toEqual([
          [1, 0, "exit"],
          [2, 0, "exit"],
          [3, 0, "exit"],
        ]);
      }));

    it("the caller leaves: the others hear of it", () =>
      withJob(3, async ({ job, client, context }) => {
        let came = 0;
        context.dispatch(ANSWER, () => {
          came++;
        });
        for (const task of [1, 2]) context.sendImmediate(client.endpoint(task), WATCH);
        await until(context, () => came > 5);
        client.close();
        expect((await job.exited).map(({ task, code, cause }) => [task, code, cause])).toEqual([
          [1, 0, "exit"],
          [2, 0, "exit"],
        ]);
      }));

    it("a task throws: transfers to it come to an end, and the job says why", () =>
      withJob(
        2,
        async (given) => {
          const { job, context } = given;
          const { to, remote, local } = await regions(given, 500_000);
          const results: number[] = [];
          const called = (_: unknown, result: number) => void results.push(result);
          context.sendImmediate(to, THROW);
          let issued = 0;
          for (; issued < 20; issued++) {
            if (context.put({ to, local, remote, onRemote: called }) !== SUCCESS) break;
          }
          await until(context, () => results.length === issued);
          expect(results.every((result) => [SUCCESS, SHUTDOWN].includes(result as never))).toBe(true);
          const [exit] = await job.exited;
          expect(exit).toMatchObject({ task: 1, cause: "error", error: "RangeError: thrown in a task" });
          while (context.sendImmediate(to, ECHO) !== SHUTDOWN) await context.progress({ timeout: 20 }).catch(() => {});
          const error = await context.call(to, ECHO).catch((reason) => reason);
          expect(error.code).toBe("PAMIR_SHUTDOWN");
          // Of other nodes, only the thread that has launched them knows why.
          const told = { name: "RangeError", message: "thrown in a task", stack: expect.stringContaining("at task 1") };
          if (given.client.capabilities.failureDetection) expect(error.cause).toMatchObject(told);
          else expect([undefined, told.message]).toContain(error.cause?.message);
        },
        DEATH,
      ));

    it("a task dies behind what it sent: that is delivered, or its end is missing", () =>
      withJob(
        2,
        async ({ job, client, context }) => {
          const to = client.endpoint(1);
          const came: number[] = [];
          context.dispatch(ANSWER, (message) => {
            const number = headerWord(message, 0);
            if (number >= 0) came.push(number);
          });
          context.sendImmediate(to, LAST_WORDS);
          // Whatever of these is answered is not what is looked for.
          while (context.sendImmediate(to, ECHO, Int32Array.of(-1)) !== SHUTDOWN)
            await context.progress({ timeout: 20 }).catch(() => {});
          while (context.advance() > 0);
          expect((await job.exited)[0]).toMatchObject({ task: 1, error: "RangeError: thrown behind a message" });
          expect(came).toEqual(Array.from({ length: came.length }, (_, i) => i));
          if (client.capabilities.deliversAfterDeath) expect(came.length).toBe(100);
        },
        DEATH,
      ));

    it("it can be seen: a dump in every task, and a trace with arrows for the messages of tasks whose memory is here", () =>
      withJob(
        2,
        async ({ job, client, context }) => {
          let came = 0;
          context.dispatch(ANSWER, () => {
            came++;
          });
          for (let i = 0; i < 5; i++) context.sendImmediate(client.endpoint(1), ECHO, Int32Array.of(i));
          await until(context, () => came === 5);
          context.sendImmediate(context.endpoint, 77, null, new Uint8Array(16));
          await context.progress(TIMEOUT);
          const own = client.dump().tasks[0]?.contexts[0];
          expect(own).toMatchObject({ state: "open", messages: 6, unexpectedBytes: 16 });
          expect(own?.lanes.map(({ origin, messages }) => [origin[0], messages])).toEqual([
            [0, 1],
            [1, 5],
          ]);
          const trace = job.trace?.bind(job);
          if (trace === undefined) return;
          const isShared = client.localTasks.length === client.size;
          const counts = (): number[] => {
            const { traceEvents } = trace();
            const count = (is: (event: (typeof traceEvents)[number]) => boolean) => traceEvents.filter(is).length;
            return [
              count(({ ph, cat }) => ph === "X" && cat === "send"),
              count(({ ph, cat }) => ph === "X" && cat === "handler"),
              count(({ ph }) => ph === "s"),
              count(({ ph }) => ph === "f"),
            ];
          };
          // Six sends and five handlers of this task's; of the other one's five of each. An arrow has both of its ends.
          const wanted = isShared ? [11, 10, 10, 10] : [6, 5, 0, 0];
          const end = performance.now() + TIMEOUT.timeout;
          while (`${counts()}` !== `${wanted}` && performance.now() < end);
          expect(counts()).toEqual(wanted);
        },
        { trace: true },
      ));

    it(`${many} tasks answer`, { timeout: 240_000 }, () => {
      const exits: TaskExit[] = [];
      return withJob(
        many,
        async ({ client, context }) => {
          const came = new Set<number>();
          context.dispatch(ANSWER, (message) => {
            came.add(headerWord(message, 0));
          });
          for (let task = 1; task < many; task++) {
            expect(context.sendImmediate(client.endpoint(task), ECHO, Int32Array.of(task))).toBe(SUCCESS);
          }
          const missing = () => Array.from({ length: many - 1 }, (_, i) => i + 1).filter((task) => !came.has(task));
          while (came.size < many - 1) {
            await context.progress({ timeout: 100_000 }).catch((cause) => {
              const first = client.dump().tasks[missing()[0] as number];
              throw new Error(`no answer of ${missing()}: ${JSON.stringify({ exits, first })}`, { cause });
            });
            expect(exits).toEqual([]);
          }
        },
        {
          laneBytes: 1024,
          onExit: (exit) => void exits.push(exit),
          // Each has a memory of its own then, and Chromium gives 124 WebAssembly.Memory: the others have a plain buffer.
          ...(info().mode === "messages" && { kernel: undefined }),
        },
      );
    });
  });
}

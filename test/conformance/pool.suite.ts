// Pools of a page: Web Workers whose functions are called by name. The same on a page that is isolated, and on one that is not.
import { connect, move, type Pool, type PoolOptions, pool, proxy } from "pamir/pool";
import { afterEach, describe, expect, it } from "vitest";
import type { api } from "../browser/isolated/tasks/pool-worker.js";

type Api = typeof api;
const ENTRY = new URL("../browser/isolated/tasks/pool-worker.js", import.meta.url);
const WAYS: [name: string, entry: URL | (() => Worker)][] = [
  ["a URL", ENTRY],
  [
    "a function that makes a worker",
    () => new Worker(new URL("../browser/isolated/tasks/pool-worker.js", import.meta.url), { type: "module" }),
  ],
];
const endOf = (promise: Promise<unknown>): Promise<unknown> => promise.catch(({ code }: { code: string }) => code);

export function poolSuite(): void {
  const open: Pool<Api>[] = [];
  afterEach(async () => {
    for (const workers of open.splice(0)) await workers.terminate();
  });

  async function start(entry: URL | (() => Worker), options: PoolOptions = {}): Promise<Pool<Api>> {
    const workers = await pool<Api>(entry, { workers: 2, heapBytes: 2 ** 24, ...options });
    open.push(workers);
    return workers;
  }

  describe.each(WAYS)("a pool of workers by %s", (_, entry) => {
    it("calls functions by name, with any values", async () => {
      const workers = await start(entry);
      const shared = { name: "shared ü😀\ud800" };
      const cyclic: unknown[] = [shared];
      cyclic.push(cyclic);
      // biome-ignore lint/suspicious/noSparseArray: a hole is what is sent
      const rest = [new Map([[shared, new Set([shared])]]), new Date(7), /a/g, 5n, [1, , 3], -0, Number.NaN, undefined];
      const value = { cyclic, rest, bytes: new Float64Array([1, 2]), error: new RangeError("r", { cause: [1] }) };
      const got = (await workers.same(value)) as typeof value;
      expect(got).toEqual(structuredClone(value));
      expect(got.cyclic[1]).toBe(got.cyclic);
      const large = new Uint8Array(1_000_000).map((_, i) => i);
      const back = (await workers.same(large)) as Uint8Array;
      expect(back.every((byte, i) => byte === (i & 0xff))).toBe(true);
      const squares = await Promise.all(Array.from({ length: 200 }, (_, i) => workers.square(i)));
      expect(squares).toEqual(Array.from({ length: 200 }, (_, i) => i ** 2));
      // The second worker may still be starting.
      await workers.warmUp();
      expect(await workers.all.square(3)).toEqual([9, 9]);
    });

    it("rejects, streams, calls back, passes signals on, times out, replaces a worker that does not end", async () => {
      const workers = await start(entry, { workers: 1 });
      await expect(workers.fail()).rejects.toMatchObject({ name: "RangeError", message: "on purpose", detail: 7 });
      await expect(workers.same({ page: [document] })).rejects.toMatchObject({
        code: "PAMIR_CLONE",
        message: expect.stringMatching(
          /^argument 1: value\.page\[0\] can't be copied to another task: it is a HTMLDocument$/,
        ),
      });
      let sum = 0;
      for await (const number of workers.numbers.stream(1000)) sum += number;
      expect(sum).toBe(499_500);
      for await (const number of workers.numbers.stream(1e9)) if (number === 300) break;
      expect(await workers.stopped()).toBe(2);
      expect(await workers.sumOf(4, async (i) => i * 10)).toBe(60);
      const counter = (await workers.counter(1)) as unknown as { add(by: number): Promise<number> };
      expect([await counter.add(2), await counter.add(3)]).toEqual([3, 6]);
      expect(
        await workers.sumOf(
          2,
          proxy(async () => 1),
        ),
      ).toBe(2);
      const controller = new AbortController();
      const reason = workers.reasonOf(controller.signal);
      controller.abort(new Map([[1, 2]]));
      expect(await reason).toEqual(new Map([[1, 2]]));
      expect(await endOf(workers.with({ timeout: 20 }).untilAborted())).toBe("PAMIR_TIMEDOUT");
      expect(await workers.stopped()).toBe(3);
      // Of a pool of its own: on a busy machine, a worker that ends its calls may take as long.
      const killing = await start(entry, { workers: 1, killAfter: 1000 });
      await killing.note(7, null);
      expect(await endOf(killing.with({ timeout: 50 }).spin())).toBe("PAMIR_TIMEDOUT");
      // The next one has noted nothing.
      expect(await killing.order()).toEqual([]);
      await workers.close();
      expect(await endOf(workers.square(1))).toBe("PAMIR_CLOSED");
    });
  });

  it("moves buffers, canvases, pictures, ports and streams, in order, there and back", async () => {
    const workers = await start(ENTRY, { workers: 1, concurrency: 50 });
    const bytes = new Uint8Array(3_000_000);
    const back = await workers.back(move(bytes));
    expect([bytes.length, back.length, back[2_999_999]]).toEqual([0, 3_000_000, 5]);
    const canvas = new OffscreenCanvas(3, 2);
    const picture = await workers.draw(move(canvas), "rgb(1, 2, 3)");
    const shown = new OffscreenCanvas(3, 2).getContext("2d") as OffscreenCanvasRenderingContext2D;
    shown.drawImage(picture, 0, 0);
    expect([...shown.getImageData(2, 1, 1, 1).data]).toEqual([1, 2, 3, 255]);
    const { port1, port2 } = new MessageChannel();
    const answer = new Promise((resolve) => {
      port1.onmessage = ({ data }) => resolve(data);
    });
    await workers.speak(move({ port: port2, text: "to" }, [port2]));
    expect(await answer).toBe("to!");
    const names = Array.from({ length: 50 }, (_, i) => i);
    await Promise.all(names.map((i) => workers.note(i, i % 2 === 0 ? move(new ArrayBuffer(1000)) : i)));
    expect(await workers.order()).toEqual(names);
    const got: unknown[] = [];
    for await (const value of workers.frames.stream(100, 1000))
      got.push(value instanceof Uint8Array ? value[999] : value);
    expect(got).toEqual(Array.from({ length: 100 }, (_, i) => i));
    let given: Uint8Array | undefined;
    const callback = async (moved: Uint8Array): Promise<Uint8Array> => {
      given = moved.fill(9);
      return move(moved);
    };
    expect(await workers.callback(callback)).toEqual([9, 0]);
    expect(given?.length).toBe(0);
  });

  it("refuses what can't be moved, and drops what comes for a call that was given up", async () => {
    const workers = await start(ENTRY, { workers: 1 });
    const buffer = new ArrayBuffer(8);
    const refused: [() => Promise<unknown>, RegExp][] = [
      [() => workers.same(move({})), /Object/],
      [() => workers.same(move(document.createElement("canvas"))), /HTMLCanvasElement/],
      [() => workers.same({ inner: move(buffer) }), /part of another value/],
      [() => workers.note(move(buffer) as never, move(buffer)), /twice/],
    ];
    for (const [call, text] of refused) {
      await expect(call()).rejects.toMatchObject({ code: "PAMIR_CLONE", message: expect.stringMatching(text) });
    }
    expect(buffer.byteLength).toBe(8);
    for (let i = 0; i < 3; i++) expect(await endOf(workers.with({ timeout: 1 }).late(300))).toBe("PAMIR_TIMEDOUT");
    expect((await workers.late(7)).byteLength).toBe(7);
  });

  it("moves to a worker that the page has started", async () => {
    const url = new URL("../browser/isolated/tasks/pool-served.js", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    const remote = await connect<Api>(worker);
    const bytes = new Uint8Array(1000);
    expect((await remote.back(move(bytes)))[0]).toBe(5);
    expect(bytes.length).toBe(0);
    await remote.close();
    worker.terminate();
  });

  it("a page's own thread is refused what would block it", async () => {
    const workers = await start(ENTRY, { workers: 1 });
    expect(() => workers.sync.square(2)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^PAMIR_(WOULD_BLOCK|NOT_ISOLATED)$/) }),
    );
    expect(await workers.square(2)).toBe(4);
    expect(workers.stats).toMatchObject({ running: 0, queued: 0 });
  });

  it("a worker of the page has a pool of its own, and blocks for a result where memory is shared", async () => {
    const url = new URL("../browser/isolated/tasks/pool-caller.js", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    const answer = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
    });
    worker.terminate();
    expect(answer).toEqual(
      crossOriginIsolated
        ? [144, 25, 100, "PAMIR_WOULD_BLOCK", 100]
        : ["PAMIR_NOT_ISOLATED", 25, "PAMIR_NOT_ISOLATED", "PAMIR_NOT_ISOLATED", 100],
    );
  });

  it("a worker whose module is missing is an error that names it", async () => {
    const missing = pool<Api>(new URL("./absent-pool-worker.js", import.meta.url), { workers: 1, onError: "ignore" });
    await expect(missing).rejects.toMatchObject({
      code: "PAMIR_SHUTDOWN",
      message: expect.stringContaining("absent-pool-worker.js"),
    });
  });

  it("processes are refused", async () => {
    await expect(pool<Api>(ENTRY, { workers: 1, processes: true })).rejects.toMatchObject({
      code: expect.stringMatching(/^PAMIR_(NO_PROCESSES|INVAL)$/),
    });
  });
}

// move() of pamir/pool: what is transferred instead of copied, as arguments, results, values of streams.
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { connect, move, type PoolOptions } from "pamir/pool";
import { describe, expect, it } from "vitest";
import { starter } from "./pools.js";
import { run } from "./run-program.js";
import type { api } from "./tasks/move-worker.js";

type Api = typeof api;
const ENTRY = new URL("./tasks/move-worker.js", import.meta.url);
const { start } = starter<Api>(ENTRY, { workers: 1, onError: "ignore" });

/** How a call ends: its error's code and text. */
const endOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => ["no error", value],
    ({ code, message }: { code?: string; message: string }) => [code, message],
  );
const heard = (port: MessagePort): Promise<unknown> => new Promise((resolve) => port.once("message", resolve));

const WAYS: [name: string, options: PoolOptions][] = [
  ["threads, wasm", { kernel: "wasm" }],
  ["threads, twin", { kernel: "ts" }],
];
if (process.platform === "linux") WAYS.push(["processes", { processes: true }]);

describe.each(WAYS)("move() in a pool of %s", (_, options) => {
  it("takes buffers and views there and back, and detaches them", async () => {
    const workers = await start(options);
    const view = new Uint8Array(new ArrayBuffer(3_000_000), 8, 2_000_000).fill(7);
    const back = await workers.back(move(view));
    expect([view.length, view.buffer.byteLength]).toEqual([0, 0]);
    expect([back.length, back[0], back[1_999_999]]).toEqual([2_000_000, 8, 7]);
    const buffer = new ArrayBuffer(100_000);
    expect(((await workers.same(move(buffer))) as ArrayBuffer).byteLength).toBe(100_000);
    expect(buffer.byteLength).toBe(0);
    // A single argument that is an array is one argument.
    const [a, b] = [new ArrayBuffer(8), new ArrayBuffer(16)];
    const pair = (await workers.same(move([a, b], [a, b]))) as ArrayBuffer[];
    expect(pair.map(({ byteLength }) => byteLength)).toEqual([8, 16]);
    // Beside what is copied, and more than one.
    const [c, d] = [new Uint8Array(50_000), new Uint16Array(3)];
    const copied = new Uint8Array(50_000).fill(1);
    expect(await workers.kinds(1, move(c), copied, move(d), [])).toEqual([
      "Number",
      "Uint8Array",
      "Uint8Array",
      "Uint16Array",
      "Array",
    ]);
    expect([c.length, d.length, copied.length]).toEqual([0, 0, 50_000]);
    expect(workers.sync.back(move(new Uint8Array(70_000))).length).toBe(70_000);
  });

  it("takes values of streams, arguments and results of callbacks", async () => {
    const workers = await start(options);
    const got: unknown[] = [];
    for await (const value of workers.frames.stream(200, 10_000)) {
      got.push(value instanceof Uint8Array ? [value.length, value[9_999]] : value);
    }
    expect(got).toEqual(Array.from({ length: 200 }, (_, i) => (i % 3 === 2 ? { i } : [10_000, i])));
    let given: Uint8Array | undefined;
    const callback = async (bytes: Uint8Array): Promise<Uint8Array> => {
      given = bytes.fill(4);
      return move(bytes);
    };
    expect(await workers.callback(callback, 100_000)).toEqual([0, 4, 100_000]);
    expect(given?.length).toBe(0);
  });

  it("copies what a list leaves out, and transfers what the value lacks; a buffer stays resizable", async () => {
    const workers = await start(options);
    const [listed, copied, lacking] = [new ArrayBuffer(8), new ArrayBuffer(16), new ArrayBuffer(32)];
    const back = (await workers.same(move({ listed, copied }, [listed, lacking]))) as Record<string, ArrayBuffer>;
    expect(Object.values(back).map(({ byteLength }) => byteLength)).toEqual([8, 16]);
    expect([listed, copied, lacking].map(({ byteLength }) => byteLength)).toEqual([0, 16, 0]);
    const resizable = new (ArrayBuffer as new (bytes: number, options: object) => ArrayBuffer)(8, {
      maxByteLength: 16,
    });
    expect(await workers.same(move(resizable))).toMatchObject({ byteLength: 8, maxByteLength: 16 });
    expect(await workers.same(move(undefined, []))).toBe(undefined);
  });

  it("keeps the order of calls", async () => {
    const workers = await start({ ...options, concurrency: 100 });
    const names = Array.from({ length: 60 }, (_, i) => `call ${i}`);
    const calls = names.map((name, i) => workers.note(name, i % 2 === 0 ? move(new ArrayBuffer(1000)) : i));
    await Promise.all(calls);
    expect(await workers.order()).toEqual(names);
  });

  it("refuses what can't be moved, and detaches nothing then", async () => {
    const workers = await start(options);
    const buffer = new ArrayBuffer(8);
    const shared = new SharedArrayBuffer(8);
    const detached = new ArrayBuffer(8);
    structuredClone(detached, { transfer: [detached] });
    const cases: [() => Promise<unknown>, RegExp][] = [
      [() => workers.kinds(move(shared)), /SharedArrayBuffer/],
      [() => workers.kinds(move(new Uint8Array(shared))), /SharedArrayBuffer/],
      [() => workers.kinds(move(buffer), move(detached)), /detached/],
      [() => workers.kinds(move(buffer), move(buffer)), /the same ArrayBuffer .* twice/],
      [() => workers.kinds(move(buffer), move(new Uint8Array(buffer))), /the same ArrayBuffer .* twice/],
      [() => workers.kinds(move([buffer], [buffer, buffer])), /the same ArrayBuffer .* twice/],
      [() => workers.kinds({ deep: [move(buffer)] }), /part of another value/],
      [() => workers.kinds([move(buffer)]), /part of another value/],
      [() => workers.kinds(move(buffer), { deep: move(new ArrayBuffer(8)) }), /part of another value/],
      [() => workers.kinds(move(buffer), move({})), /Object/],
      [() => workers.kinds(move(buffer), move(new Map())), /Map/],
      [() => workers.kinds(move(buffer), Symbol("s")), /symbol/],
      [() => workers.kinds(move({ run: () => 1, buffer }, [buffer])), /run|=>|function/],
      [() => workers.all.kinds(move(buffer)), /one worker/],
      [() => workers.nested(), /part of another value/],
      [() => workers.notTransferable(), /Object/],
    ];
    for (const [call, text] of cases) {
      expect(await endOf(call())).toEqual(["PAMIR_CLONE", expect.stringMatching(text)]);
    }
    expect(buffer.byteLength).toBe(8);
    expect(((await workers.twice()) as ArrayBuffer).byteLength).toBe(8);
    expect(await endOf(workers.twice())).toEqual(["PAMIR_CLONE", expect.stringContaining("detached")]);
    // The same value again: it is gone.
    const moved = move(buffer);
    expect(await workers.kinds(moved)).toEqual(["ArrayBuffer"]);
    expect(await endOf(workers.kinds(moved))).toEqual(["PAMIR_CLONE", expect.stringContaining("moved before")]);
    expect(await workers.kinds(1)).toEqual(["Number"]);
  });

  it("a call that is not sent keeps what it was to move; one that was sent is not begun again", async () => {
    const workers = await start(options);
    const buffer = new ArrayBuffer(8);
    const controller = new AbortController();
    const sleeping = workers.late(20, 8);
    const waiting = workers.with({ signal: controller.signal }).kinds(move(buffer));
    controller.abort();
    expect(await endOf(waiting)).toEqual(["PAMIR_CANCELED", expect.anything()]);
    await sleeping;
    expect(await endOf(workers.with({ signal: controller.signal }).kinds(move(buffer)))).toEqual([
      "PAMIR_CANCELED",
      expect.anything(),
    ]);
    expect(buffer.byteLength).toBe(8);
    const died = workers.with({ retries: 3 }).die(move(buffer));
    expect(await endOf(died)).toEqual(["PAMIR_SHUTDOWN", expect.stringContaining("retries")]);
    expect(buffer.byteLength).toBe(0);
    // A call that waits for a worker, while that one is replaced, still has it.
    const other = new ArrayBuffer(8);
    const [, kinds] = await Promise.all([endOf(workers.die(1)), workers.with({ retries: 1 }).kinds(move(other))]);
    expect(kinds).toEqual(["ArrayBuffer"]);
    await workers.close();
    const last = new ArrayBuffer(8);
    expect(await endOf(workers.kinds(move(last)))).toEqual(["PAMIR_CLOSED", expect.anything()]);
    expect(last.byteLength).toBe(8);
  });

  it("drops what comes for a call that was given up", async () => {
    const workers = await start(options);
    for (let i = 0; i < 3; i++) {
      expect(await endOf(workers.with({ timeout: 1 }).givenUp(1000 + i))).toEqual([
        "PAMIR_TIMEDOUT",
        expect.anything(),
      ]);
    }
    expect(((await workers.late(0, 7)) as ArrayBuffer).byteLength).toBe(7);
    expect((await workers.back(move(new Uint8Array(9)))).length).toBe(9);
  });
});

describe("move() of what can only be transferred", () => {
  it("takes ports and streams to threads, within a value with a list too", async () => {
    const workers = await start();
    const { port1, port2 } = new MessageChannel();
    const answer = heard(port1);
    await workers.speak(move({ port: port2, text: "to" }, [port2]));
    expect(await answer).toBe("to!");
    const port = (await workers.openPort()) as unknown as MessagePort;
    port.postMessage("back");
    expect(await heard(port)).toBe("back?");
    port.close();
    const stream = (await workers.pass(move(new Blob(["streamed"]).stream()))) as ReadableStream<Uint8Array>;
    expect(await new Response(stream).text()).toBe("streamed");
  });

  it("is refused by processes, by name", async () => {
    if (process.platform !== "linux") return;
    const workers = await start({ processes: true });
    const { port1, port2 } = new MessageChannel();
    const buffer = new ArrayBuffer(8);
    expect(await endOf(workers.kinds(move(buffer), move(port2)))).toEqual([
      "PAMIR_CLONE",
      expect.stringContaining("MessagePort"),
    ]);
    expect(buffer.byteLength).toBe(8);
    port1.close();
  });

  it("works with connect() of a worker that the program has started", async () => {
    const worker = new Worker(new URL("./tasks/move-served.js", import.meta.url));
    const remote = await connect<Api>(worker);
    const bytes = new Uint8Array(100_000);
    expect((await remote.back(move(bytes))).length).toBe(100_000);
    expect(bytes.length).toBe(0);
    expect(remote.sync.back(move(new Uint8Array(9))).length).toBe(9);
    expect(await remote.kinds(move(new MessageChannel().port1))).toEqual(["EventTarget"]);
    await remote.close();
    await worker.terminate();
  });
});

describe("move() leaves no port behind, and the program ends by itself", () => {
  it.each(["left", "closed", "terminated", "died", "given up", "recycled"])("%s", async (how) => {
    expect(await run([], [how], {}, "move.js")).toEqual({ out: "0\n", err: "", code: 0 });
  });
});

describe("bad input of move()", () => {
  it.each([
    ["a number", () => move(5), /not number/],
    ["null", () => move(null), /not null/],
    ["a function", () => move(() => 1), /not function/],
    [
      "a list that is no array",
      () => move({}, new ArrayBuffer(8) as never),
      /array of what is transferred, not object/,
    ],
    ["null as a list", () => move({}, null as never), /not null/],
    ["a list with a number", () => move({}, [5] as never), /number/],
    ["a list with undefined", () => move({}, [undefined] as never), /undefined/],
    ["what it has given", () => move(move(new ArrayBuffer(8))), /what move\(\) has given/],
  ])("%s", (_, call, text) => {
    expect(call).toThrow(expect.objectContaining({ code: "PAMIR_INVAL", message: expect.stringMatching(text) }));
  });
});

// Programs for piscina: each runs over piscina itself, and over pamir/piscina.
import { Piscina as Ours } from "pamir/piscina";
import { Piscina as Theirs } from "piscina";
import { afterEach, describe, expect, it } from "vitest";

const filename = new URL("./tasks/piscina-worker.cjs", import.meta.url).href;
const open: { destroy(): Promise<void> }[] = [];

afterEach(async () => {
  for (const pool of open.splice(0)) await pool.destroy();
});

describe.each([
  ["piscina", Theirs as unknown as typeof Ours],
  ["pamir/piscina", Ours],
])("%s", (_, Piscina) => {
  const make = (options: ConstructorParameters<typeof Ours>[0] = {}): Ours => {
    const pool = new Piscina({ filename, minThreads: 1, maxThreads: 1, ...options });
    open.push(pool);
    return pool;
  };

  it("runs the default export, and others by name", async () => {
    const pool = make();
    expect(await pool.run({ a: 4, b: 6 })).toBe(10);
    const value = new Map([["rows", [1, undefined, new Date(7)]]]);
    expect(await pool.run(value, { name: "same" })).toEqual(value);
    await expect(pool.run(1, { name: "fail" })).rejects.toThrow(new RangeError("on purpose"));
    await expect(pool.run(1, { name: "none" })).rejects.toThrow(/^No handler function exported from /);
    expect(pool.completed).toBe(4);
  });

  it("transfers what a list or move() names, shares shared memory, and refuses functions", async () => {
    const pool = make({ name: "same" });
    const bytes = new Uint8Array(100).fill(7);
    expect(await pool.run(bytes, { transferList: [bytes.buffer] })).toEqual(new Uint8Array(100).fill(7));
    expect(bytes.length).toBe(0);
    const others = new Uint8Array(100).fill(8);
    expect(await pool.run(Piscina.move(others))).toEqual(new Uint8Array(100).fill(8));
    expect(others.length).toBe(0);
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const same = (await pool.run(shared)) as Int32Array;
    same[0] = 5;
    expect(shared[0]).toBe(5);
    await expect(pool.run(() => {})).rejects.toMatchObject({ name: "DataCloneError" });
  });

  it("aborts a task that runs and one that waits, and bounds the queue", async () => {
    const pool = make({ maxQueue: 1 });
    const running = new AbortController();
    const first = pool.run(1, { name: "never", signal: running.signal });
    const second = pool.run({ a: 1, b: 2 });
    await expect(pool.run({ a: 1, b: 3 })).rejects.toThrow("Task queue is at limit");
    running.abort("because");
    await expect(first).rejects.toMatchObject({ name: "AbortError", cause: "because" });
    expect(await second).toBe(3);
  });

  it("rejects the tasks of a worker that exits, and replaces the worker", async () => {
    const pool = make();
    await expect(pool.run(1, { name: "exit" })).rejects.toThrow("worker exited with code: 3");
    expect(await pool.run({ a: 1, b: 2 })).toBe(3);
    const lost = pool.run(1, { name: "never" });
    const end = pool.destroy();
    await expect(lost).rejects.toThrow("Terminating worker thread");
    await end;
    expect(pool.threads).toEqual([]);
  });
});

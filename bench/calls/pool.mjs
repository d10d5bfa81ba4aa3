// @ts-check
// Functions of a worker by name, with any value: pamir/pool beside Comlink, piscina, postMessage() and synckit. One worker each.
// Ratios of one run; the rounds alternate.
import { Worker } from "node:worker_threads";
import * as Comlink from "comlink";
// @ts-expect-error: comes without types
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import { Table } from "console-table-printer";
import { Piscina as OurPiscina } from "pamir/piscina";
import { move, pool } from "pamir/pool";
import { Piscina } from "piscina";
import { createSyncFn } from "synckit";

const file = (/** @type {string} */ name) => new URL(`${name}.js`, import.meta.url);

/** A document of 1.5 KB. */
const DOCUMENT = {
  id: 4711,
  name: "Ada Lovelace",
  mail: "ada@example.org",
  tags: ["analyst", "poet", "countess"],
  address: { street: "St James's Square 12", city: "London", country: "GB", postal: "SW1Y 4JH" },
  orders: Array.from({ length: 12 }, (_, i) => ({
    sku: `sku-${1000 + i}`,
    count: i + 1,
    price: 12.5 * i,
    paid: i % 2 === 0,
  })),
  notes: "A document as programs send it: some texts, some numbers, a list of objects of the same shape. ".repeat(6),
};

/** Calls by postMessage(), as a program writes them: numbers, and a map of promises. @param {Worker} worker */
function byMessages(worker) {
  /** @type {Map<number, (value: any) => void>} */
  const waiting = new Map();
  let next = 0;
  worker.on("message", ({ number, value }) => {
    waiting.get(number)?.(value);
    waiting.delete(number);
  });
  return (/** @type {any} */ value, isMoved = false) =>
    new Promise((resolve) => {
      waiting.set(next, resolve);
      worker.postMessage({ number: next++, value, isMoved }, isMoved ? [value.buffer] : undefined);
    });
}

/** @param {number[]} list */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;

/**
 * Prints a table, and returns its rows, with µs.
 * @param {boolean} quick
 * @param {(pair: { what: string, name: string, key?: string }) => boolean} [isWanted] which rows; by default those whose text
 *   has the environment's PAIR
 */
export async function comparePools(
  quick,
  isWanted = ({ what, name }) => `${what} ${name}`.includes(process.env.PAIR ?? ""),
) {
  const rounds = quick ? 1 : 7;
  /** @type {import("pamir/pool").Pool<typeof import("./pool-worker.js")["api"]>} */
  const workers = await pool(file("pool-worker"), { workers: 1, concurrency: 64, heapBytes: 2 ** 31 });
  const comlinkWorker = new Worker(file("comlink-worker"));
  const comlink = /** @type {any} */ (Comlink.wrap(nodeEndpoint(comlinkWorker)));
  const piscina = new Piscina({
    filename: file("functions").href,
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 64,
  });
  const alone = { filename: file("functions").href, name: "square", minThreads: 1, maxThreads: 1 };
  const [ourPiscina, theirPiscina] = [new OurPiscina(alone), new Piscina(alone)];
  const messageWorker = new Worker(file("message-worker"));
  const post = byMessages(messageWorker);
  const squareSync = createSyncFn(file("synckit-worker").pathname);

  const one = { calls: quick ? 50 : 5000, atOnce: 1 };
  const many = { calls: quick ? 100 : 5000, atOnce: 50 };
  const few = { calls: quick ? 2 : 40, atOnce: 1 };
  const text = "Ein Text. ".repeat(100_000);
  const wide = "文字".repeat(250_000);
  const bytes = new Uint8Array(256 * 1024).fill(7);
  const most = new Uint8Array(300e6).fill(7);
  /** What is moved there and back is the same memory each time. */
  const frames = { ours: new Uint8Array(4 * 2 ** 20), theirs: new Uint8Array(4 * 2 ** 20) };
  const mebibyte = new Uint8Array(2 ** 20).fill(7);
  /**
   * Documents show the rows with a `key`: the first word of their figures' ids.
   * @type {{ what: string, key?: string, ours: (i: number) => any, theirs: (i: number) => any, name: string, goal: number | undefined, of: { calls: number, atOnce: number } }[]}
   */
  const pairs = [
    {
      what: "square(12), awaited",
      key: "call",
      ours: (i) => workers.square(i),
      theirs: (i) => comlink.square(i),
      name: "Comlink",
      goal: 12,
      of: one,
    },
    {
      what: "square(12), awaited",
      key: "call",
      ours: (i) => workers.square(i),
      theirs: (i) => piscina.run(i, { name: "square" }),
      name: "piscina",
      goal: 12,
      of: one,
    },
    {
      what: "square(12), awaited",
      key: "call",
      ours: (i) => workers.square(i),
      theirs: (i) => post(i),
      name: "postMessage",
      goal: undefined,
      of: one,
    },
    {
      what: "square(12), awaited, pamir/piscina",
      key: "piscina-call",
      ours: (i) => ourPiscina.run(i),
      theirs: (i) => theirPiscina.run(i),
      name: "piscina",
      goal: undefined,
      of: one,
    },
    {
      what: "square(12), 50 at once, pamir/piscina",
      ours: (i) => ourPiscina.run(i),
      theirs: (i) => theirPiscina.run(i),
      name: "piscina",
      goal: undefined,
      of: many,
    },
    {
      what: "square(12), 50 at once",
      ours: (i) => workers.square(i),
      theirs: (i) => comlink.square(i),
      name: "Comlink",
      goal: undefined,
      of: many,
    },
    {
      what: "square(12), 50 at once",
      ours: (i) => workers.square(i),
      theirs: (i) => piscina.run(i, { name: "square" }),
      name: "piscina",
      goal: undefined,
      of: many,
    },
    {
      what: "document of 1.5 KB, awaited",
      ours: () => workers.echo(DOCUMENT),
      theirs: () => post(DOCUMENT),
      name: "postMessage",
      goal: undefined,
      of: { ...one, calls: one.calls / 5 },
    },
    {
      what: "document of 1.5 KB, 50 at once",
      ours: () => workers.echo(DOCUMENT),
      theirs: () => post(DOCUMENT),
      name: "postMessage",
      goal: 1.5,
      of: many,
    },
    {
      what: "string of 1 MB",
      ours: () => workers.echo(text),
      theirs: () => post(text),
      name: "postMessage",
      goal: 1,
      of: few,
    },
    {
      what: "string of 1 MB, 2-byte characters",
      ours: () => workers.echo(wide),
      theirs: () => post(wide),
      name: "postMessage",
      goal: 1,
      of: few,
    },
    {
      what: "256 KiB of bytes",
      ours: () => workers.echo(bytes),
      theirs: () => post(bytes),
      name: "postMessage",
      goal: 3,
      of: { calls: quick ? 5 : 200, atOnce: 1 },
    },
    {
      what: "1 MiB of bytes, recycled by the function",
      key: "recycle",
      ours: () => workers.sizeRecycled(mebibyte),
      theirs: () => workers.size(mebibyte),
      name: "without",
      goal: undefined,
      of: { calls: quick ? 5 : 200, atOnce: 1 },
    },
    {
      what: "4 MiB moved there and back",
      ours: async () => {
        frames.ours = /** @type {Uint8Array<ArrayBuffer>} */ (await workers.back(move(frames.ours)));
      },
      theirs: async () => {
        frames.theirs = /** @type {Uint8Array<ArrayBuffer>} */ (await post(frames.theirs, true));
      },
      name: "postMessage, transfer list",
      goal: undefined,
      of: { ...one, calls: one.calls / 5 },
    },
    {
      what: "300 MB of bytes",
      ours: () => workers.echo(most),
      theirs: () => post(most),
      name: "postMessage",
      goal: 1,
      of: { calls: 1, atOnce: 1 },
    },
    {
      what: "square(12), blocking",
      ours: (i) => workers.sync.square(i),
      theirs: (i) => squareSync(i),
      name: "synckit",
      goal: 10,
      of: { ...one, calls: one.calls / 5 },
    },
  ];
  const table = new Table();
  /** @type {{ key: string | undefined, name: string, ours: number, theirs: number }[]} */
  const rows = [];
  for (const { what, key, ours, theirs, name, goal, of } of pairs) {
    if (!isWanted({ what, name, ...(key !== undefined && { key }) })) continue;
    const times = { ours: /** @type {number[]} */ ([]), theirs: /** @type {number[]} */ ([]) };
    for (let round = -1; round < (of.calls === 1 ? Math.min(3, rounds) : rounds); round++) {
      const [own, other] = [await timeOf(ours, of), await timeOf(theirs, of)];
      if (round < 0) continue; // warm
      times.ours.push(own);
      times.theirs.push(other);
    }
    const ratios = times.theirs.map((time, i) => time / (times.ours[i] ?? Number.NaN));
    rows.push({ key, name, ours: median(times.ours), theirs: median(times.theirs) });
    table.addRow({
      what,
      "pamir/pool": `${median(times.ours).toPrecision(3)} µs`,
      theirs: `${name}: ${median(times.theirs).toPrecision(3)} µs`,
      ratio: median(ratios).toPrecision(3),
      "lowest to highest": `${Math.min(...ratios).toPrecision(3)} – ${Math.max(...ratios).toPrecision(3)}`,
      goal: goal === undefined ? "" : `≥ ${goal}`,
    });
  }
  console.log("Functions by name: pamir/pool; ratio: how many times as long the other takes");
  table.printTable();
  await workers.close();
  await comlinkWorker.terminate();
  await messageWorker.terminate();
  for (const one of [piscina, ourPiscina, theirPiscina]) await one.destroy();
  return rows;
}

/** µs of one call. @param {(i: number) => any} call @param {{ calls: number, atOnce: number }} of */
async function timeOf(call, { calls, atOnce }) {
  const start = performance.now();
  if (atOnce === 1) for (let i = 0; i < calls; i++) await call(i);
  else for (let i = 0; i < calls; i += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, j) => call(i + j)));
  return ((performance.now() - start) * 1000) / calls;
}

// @ts-check
// A call and its reply: context.call beside Comlink, piscina and workerpool, and Comlink over pamir beside Comlink over a
// MessagePort. One call after the other; then one now and then, when both sides are asleep. Ratios of one run; the
// rounds alternate.
import { Worker } from "node:worker_threads";
import * as Comlink from "comlink";
// @ts-expect-error: comes without types
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import { Table } from "console-table-printer";
import { launch } from "pamir";
import { portTo } from "pamir/port";
import { Piscina } from "piscina";
import workerpool from "workerpool";
import { CAME, CODEC, PORT, SQUARE, WENT } from "./ids.js";

/** Milliseconds in which everybody falls asleep. */
const PAUSE = 3;

/** @param {number[]} list */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

const file = (/** @type {string} */ name) => new URL(`${name}.js`, import.meta.url);
/** A job of this thread and one that answers. @param {"blocks" | "awaits" | "comlink"} how */
async function start(how) {
  const job = await launch(file("task"), { tasks: 2, join: true, args: how });
  return { job, context: job.client.createContext(), to: job.client.endpoint(1) };
}
/**
 * Prints a table, and returns its rows: how many times as long the other takes, in each round.
 * @param {boolean} quick
 */
export async function compareCalls(quick) {
  const rounds = quick ? 1 : 7;
  const calls = quick ? 200 : 20_000;
  const sleeps = quick ? 5 : 100;
  const [blocking, awaiting, comlink] = [await start("blocks"), await start("awaits"), await start("comlink")];
  const worker = new Worker(file("comlink-worker"));
  const overPort = Comlink.wrap(nodeEndpoint(worker));
  const overPamir = Comlink.wrap(/** @type {any} */ (portTo(comlink.context, comlink.to, { id: PORT, codec: CODEC })));
  const piscina = new Piscina({ filename: file("piscina-worker").href, minThreads: 1, maxThreads: 1 });
  const pool = workerpool.pool(file("workerpool-worker").pathname, {
    minWorkers: 1,
    maxWorkers: 1,
    workerType: "thread",
  });
  const words = new Int32Array(new SharedArrayBuffer(256));
  const bare = new Worker(file("bare-worker"), { workerData: words });

  /** No call at all: what it takes to wake each other. */
  async function handOff() {
    const { async, value } = Atomics.waitAsync(words, CAME, Atomics.load(words, CAME));
    Atomics.add(words, WENT, 1);
    Atomics.notify(words, WENT);
    if (async) await value;
    return 49;
  }

  /** @type {Record<string, (number: number) => PromiseLike<unknown>>} */
  const systems = {
    "pamir, callee blocks": (number) => blocking.context.call(blocking.to, SQUARE, { number }),
    "pamir, nobody blocks": (number) => awaiting.context.call(awaiting.to, SQUARE, { number }),
    "Comlink over pamir": (number) => /** @type {any} */ (overPamir).square(number),
    "Comlink over a MessagePort": (number) => /** @type {any} */ (overPort).square(number),
    piscina: (number) => piscina.run({ number }),
    workerpool: (number) => pool.exec("square", [{ number }]),
    "bare Atomics.waitAsync": handOff,
  };

  /** µs of one call, one after the other. @param {(number: number) => PromiseLike<unknown>} call */
  async function spinning(call) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) await call(i);
    return ((performance.now() - start) * 1000) / calls;
  }

  /** µs of one call when both sides sleep. @param {(number: number) => PromiseLike<unknown>} call */
  async function parked(call) {
    const times = [];
    for (let i = 0; i < sleeps; i++) {
      await pause();
      const start = performance.now();
      await call(i);
      times.push((performance.now() - start) * 1000);
    }
    return median(times);
  }

  /** @type {Record<string, { spinning: number[], parked: number[] }>} */
  const times = {};
  for (const [name, call] of Object.entries(systems)) {
    times[name] = { spinning: [], parked: [] };
    if ((await call(7)) !== 49) throw new Error(`${name} gave ${await call(7)}`);
    await spinning(call); // warm
  }
  for (let round = 0; round < rounds; round++) {
    for (const how of /** @type {const} */ (["spinning", "parked"])) {
      for (const [name, call] of Object.entries(systems)) {
        times[name]?.[how].push(await (how === "spinning" ? spinning : parked)(call));
      }
    }
  }
  for (const { job } of [blocking, awaiting, comlink]) await job.terminate();
  await worker.terminate();
  await bare.terminate();
  await piscina.destroy();
  await pool.terminate();

  /** @param {string} ours @param {string} theirs @param {"spinning" | "parked"} how */
  function ratios(ours, theirs, how) {
    const own = times[ours]?.[how] ?? [];
    return (times[theirs]?.[how] ?? []).map((time, i) => time / (own[i] ?? Number.NaN));
  }

  console.log(`Node ${process.version}, medians of ${rounds} rounds; ratio: how many times as long the other takes`);
  const table = new Table();
  /** @type {{ how: string, ours: string, theirs: string, ratios: number[] }[]} */
  const rows = [];
  const pairs = [
    ...["Comlink over a MessagePort", "piscina", "workerpool"].flatMap((theirs) => [
      { ours: "pamir, callee blocks", theirs, how: "spinning", goal: 20 },
      { ours: "pamir, nobody blocks", theirs, how: "spinning", goal: 20 },
      { ours: "pamir, callee blocks", theirs, how: "parked", goal: 2 },
      { ours: "pamir, nobody blocks", theirs, how: "parked", goal: 2 },
    ]),
    { ours: "Comlink over pamir", theirs: "Comlink over a MessagePort", how: "spinning", goal: 2 },
    { ours: "Comlink over pamir", theirs: "Comlink over a MessagePort", how: "parked", goal: 1 },
    { ours: "pamir, nobody blocks", theirs: "bare Atomics.waitAsync", how: "parked", goal: undefined },
    { ours: "Comlink over pamir", theirs: "bare Atomics.waitAsync", how: "parked", goal: undefined },
  ];
  for (const { ours, theirs, how, goal } of pairs) {
    const kind = /** @type {"spinning" | "parked"} */ (how);
    const list = ratios(ours, theirs, kind);
    rows.push({ how, ours, theirs, ratios: list });
    table.addRow({
      how,
      ours: `${ours}: ${median(times[ours]?.[kind] ?? []).toPrecision(3)} µs`,
      theirs: `${theirs}: ${median(times[theirs]?.[kind] ?? []).toPrecision(3)} µs`,
      ratio: median(list).toPrecision(3),
      "lowest to highest": `${Math.min(...list).toPrecision(3)} – ${Math.max(...list).toPrecision(3)}`,
      goal: goal === undefined ? "the floor" : `≥ ${goal}`,
    });
  }
  table.printTable();
  return rows;
}

// @ts-check
// What each operation makes two threads do, as counts. They are the same on a busy machine, and on one that is cold.

import { codecs, dispatchId, launch, SUCCESS } from "pamir";
import { begin, end, lap } from "./counting.js";
import { AGAIN, ALLREDUCE, BARRIER, BEGIN, CALL, END, PUT, SEND } from "./ids.js";

/** @typedef {import("./counting.js").Counts} Counts */
/** @typedef {{ what: string, caller: Counts, callee?: Counts }} Row */

/** Milliseconds in which both sides fall asleep. */
const PAUSE = 5;
const TIMES = 20;
/** Messages that are sent in one turn, and puts. */
const BURST = 100;

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

/** @returns {Promise<Row[]>} */
export async function countAll() {
  const job = await launch(new URL("task.js", import.meta.url), { tasks: 2, join: true });
  const { client } = job;
  const context = client.createContext();
  const world = await client.world();
  const to = client.endpoint(1);
  const json = (/** @type {number} */ id) => dispatchId(id, codecs.json(), codecs.json());
  const request = new Uint8Array(8);
  const remote = Number(await context.call(to, json(PUT), 0));
  const local = client.createRegion(64);

  /**
   * @param {string} what @param {number} times @param {() => Promise<void>} work
   * @param {0 | 1} each 1: the other side counts each call by itself
   * @returns {Promise<Row>}
   */
  const count = async (what, times, work, each = 0) => {
    await context.call(to, json(BEGIN), each);
    await pause();
    begin();
    await work();
    const caller = end(times);
    const callee = /** @type {Counts} */ (/** @type {unknown} */ (await context.call(to, json(END), times)));
    return { what, caller, callee };
  };
  /** @param {string} what @param {number} times @param {() => Promise<void>} work @returns {Promise<Row>} */
  const countOwn = async (what, times, work) => {
    begin();
    await work();
    return { what, caller: end(times) };
  };
  const rows = [
    await count(
      "a call, both asleep",
      TIMES,
      async () => {
        for (let i = 0; i < TIMES; i++) {
          await pause();
          await context.call(to, CALL, request);
          lap();
        }
      },
      1,
    ),
    await count("a message, awake", BURST, async () => {
      for (let i = 0; i < BURST; i++) context.sendImmediate(to, SEND, null, request);
      await context.call(to, CALL, request);
    }),
    await count("a put of 64 bytes", BURST, async () => {
      for (let i = 0; i < BURST; i++) {
        if (context.put({ to, local, remote, bytes: 64 }) !== SUCCESS) throw new Error("no room for a put");
      }
    }),
  ];
  await context.call(to, json(ALLREDUCE), TIMES);
  rows.push(
    await count("an allreduce of 8 bytes, both asleep", TIMES, async () => {
      for (let i = 0; i < TIMES; i++) {
        await pause();
        await world.allreduce({ send: Float64Array.of(1), operation: "sum" });
        lap();
      }
    }),
  );
  // The other member has arrived, and sleeps: it does not count its own work.
  const again = { send: Float64Array.of(1), receive: new Float64Array(1), operation: /** @type {const} */ ("sum") };
  for (const [what, id, operate] of /** @type {const} */ ([
    ["a barrier that blocks, the other is there", BARRIER, () => world.barrierSync()],
    ["an allreduce that blocks, again, the other is there", AGAIN, () => world.allreduceSync(again)],
  ])) {
    await context.call(to, json(id), TIMES + 1);
    operate();
    rows.push(
      await countOwn(what, TIMES, async () => {
        for (let i = 0; i < TIMES; i++) {
          await pause();
          operate();
          lap();
        }
      }),
    );
  }
  await job.terminate();
  return rows;
}

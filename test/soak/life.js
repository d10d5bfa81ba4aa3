// @ts-check
// The life of a task: it goes on until the round is over, or it ends in the midst of it as its fate wants.
import { Script } from "node:vm";
import { mapShared } from "../api/tasks/flags.js";
import { randomFrom } from "../api/tasks/random.js";
import { fateOf } from "./draw.js";
import { ALONE, Book, CHECKED, LEAVE, LIVE, QUIET, STOP } from "./model.js";
import { trafficOf } from "./traffic.js";

/**
 * The book is a memory of this process, or the place of one that processes share.
 * @typedef {{ round: import("./draw.js").Round, pages: SharedArrayBuffer | SharedPlace, places: number, seat?: number }} Args
 * @typedef {import("../api/tasks/flags.js").SharedPlace} SharedPlace
 */

/** What a wait in between may end with. */
const ENDINGS = new Set(["PAMIR_TIMEDOUT", "PAMIR_INTERRUPTED"]);
/** Sums behind a barrier that is awaited. */
const BLOCKING = 16;
/** Milliseconds in which a dump is made. */
const DUMP_MS = 1000;

/** @param {import("pamir").Context} context @param {number} timeout */
async function progress(context, timeout) {
  await context.progress({ timeout }).catch((error) => {
    if (!ENDINGS.has(error.code)) throw error;
  });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** @param {import("pamir").Client} client @param {Args} args */
async function beginning(client, { round, pages, places, seat = client.task }) {
  const buffer = pages instanceof SharedArrayBuffer ? pages : await mapShared(pages);
  const book = new Book(buffer, places, round.contexts);
  book.begin(client.task);
  const { below } = randomFrom(round.seed ^ (client.task * 31 + 17));
  const all = Array.from({ length: round.contexts }, (_, index) => trafficOf(client, round, book, { seat, index }));
  const one = () => /** @type {(typeof all)[number]} */ (all[below(all.length)]);
  return { client, round, book, below, all, one, asleep: new Int32Array(new SharedArrayBuffer(4)) };
}
/** @typedef {Awaited<ReturnType<typeof beginning>>} Task */

/** Operations, in bursts, with all that a thread may do in between. @param {Task} task @param {() => boolean} isOver */
async function traffic({ client, round, book, below, all, one, asleep }, isOver) {
  for (const { listen } of all) listen();
  while (!isOver()) {
    for (let left = 1 + below(48); left > 0; left--) one().operate();
    try {
      const kind = below(40);
      if (kind < 20) client.advance();
      else if (kind < 32) for (const { context } of all) context.advance(1 + below(4));
      else if (kind < 34) one().context.advanceUntil(() => false, { timeout: below(4) });
      else if (kind < 36) await progress(one().context, below(5));
      else if (kind < 39) await turn();
      // Does not advance, and does not hear anything.
      else if (round.slow) Atomics.wait(asleep, 0, 0, below(40));
    } catch (error) {
      book.fail("others", `between operations of task ${client.task}: ${error}`);
      await turn();
    }
  }
}

/**
 * Advances until the condition holds; what does not come to it hangs.
 * @param {Task} task
 * @param {() => boolean} condition
 * @param {string} what
 */
async function until({ round, book, all, below }, condition, what) {
  const end = performance.now() + round.patience;
  for (let i = 0; !condition() && book.counted("hung") === 0; i++) {
    if (performance.now() > end) book.fail("hung", `${what}: ${all.map(({ underWay }) => underWay()).join("; ")}`);
    for (const { context } of all) context.advance();
    const { context } = /** @type {(typeof all)[number]} */ (all[i % all.length]);
    if (below(4) === 0) await progress(context, 3);
    else await turn();
  }
  // Whoever watches has time for a dump of the job as it is.
  if (book.counted("hung") > 0) await new Promise((resolve) => setTimeout(resolve, DUMP_MS));
}

/** Barriers and sums of all tasks that go on, one behind the other, until one of them has stopped. @param {Task} task */
async function meet({ client, round, book, all }) {
  const [{ context }] = /** @type {[(typeof all)[number]]} */ (/** @type {unknown} */ (all));
  const members = Array.from({ length: round.survivors }, (_, member) => client.endpoint(member));
  const options = { timeout: round.patience };
  const geometry = await client.createGeometry(members, { context, id: 1, ...options });
  const { rank, size } = geometry;
  const check = (/** @type {number | undefined} */ sum, /** @type {number} */ factor, /** @type {string} */ what) => {
    const should = (factor * size * (size + 1)) / 2;
    if (sum !== should) book.fail("contents", `${what} member ${rank}: a sum is ${sum}, not ${should}`);
  };
  for (let turn = 1, isOver = false; !isOver; turn++) {
    await geometry.barrier(options);
    // The event loop turns seldom: most of them block the thread, which hears its traffic meanwhile.
    for (let i = 1; i <= BLOCKING; i++) {
      const receive = new Int32Array(1);
      const result = geometry.allreduceSync(
        { send: Int32Array.of(i * (rank + 1)), receive, operation: "sum" },
        options,
      );
      check(receive[0], i, `result ${result} of`);
      if (i % 4 === 0) geometry.barrierSync(options);
      book.count("operations");
    }
    const send = Int32Array.of(turn * (rank + 1), Number(book.flag(STOP) !== 0));
    const [sum, stopped = 0] = await geometry.allreduce({ send, operation: "sum" }, options);
    check(sum, turn, "turn of");
    book.count("operations", 2);
    isOver = stopped > 0;
  }
  geometry.close();
}

/** Goes on until all have stopped; all that was sent has come, and all memory comes back. @param {import("pamir").Client} client @param {Args} args */
export async function survive(client, args) {
  const task = await beginning(client, args);
  const { book, all } = task;
  const everybody = () => book.flag(LIVE);
  const meetings = args.round.meets ? meet(task) : undefined;
  meetings?.catch((error) => book.fail("others", `barriers of task ${client.task}: ${error}`));
  await traffic(task, () => book.flag(STOP) !== 0);
  await meetings;
  const every = (/** @type {(of: Task["all"][number]) => boolean} */ condition) => all.map(condition).every(Boolean);
  await until(task, () => every(({ settle }) => settle()), "to end what is under way");
  // Nobody has begun anything since: what was sent is on its way.
  book.raise(QUIET);
  await until(task, () => book.flag(QUIET) === everybody(), "for the others to be quiet");
  await until(
    task,
    () => every(({ announce }) => announce()) && every(({ settle }) => settle()),
    "for the last of each",
  );
  const end = performance.now() + task.round.patience / 2;
  await until(task, () => every(({ hasAll }) => hasAll()) || performance.now() > end, "for the streams");
  for (const { check } of all) check();
  book.raise(CHECKED);
  await until(task, () => book.flag(CHECKED) === everybody(), "for the others to have checked");
  await until(task, () => every(({ release }) => release()), "to purge");
  await Promise.all(all.map(({ left }) => left()));
  if (client.task === 0) {
    const others = Array.from({ length: client.size - 1 }, (_, other) => other + 1);
    const ended = new Set();
    for (const { context } of all) {
      for (const other of others)
        context.whenEnded(client.endpoint(other), () => ended.add(`${context.index} ${other}`));
    }
    await until(task, () => ended.size === all.length * others.length, "for the others to leave");
    // What a context keeps for transfers goes with it.
    const last = client.createContext();
    for (const { context } of all) context.close();
    // Closed regions give their memory to the next one, once every context has passed an advance().
    last.advance();
    client.createRegion(1).close();
    book.raise(ALONE);
    while (book.flag(LEAVE) === 0) await progress(last, 20);
  }
  await leave(client);
}

/** Leaves the job once all is out, however often that is interrupted. @param {import("pamir").Client} client */
async function leave(client) {
  while (!client.closed) {
    await client.close({ drain: true }).catch((error) => {
      if (!ENDINGS.has(error.code)) throw error;
    });
  }
}

/** @type {Partial<Record<import("./draw.js").End, () => void>>} */
const DEATHS = {
  throw() {
    throw new Error("dies");
  },
  exit() {
    process.exit(9);
  },
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
};

/** @param {import("pamir").Client} client @param {Args} args */
export async function die(client, args) {
  const task = await beginning(client, args);
  const { round, book, all, one, asleep } = task;
  const { how, lifetime } = fateOf(round, client.task);
  const end = performance.now() + lifetime;
  const over = DEATHS[how];
  if (over !== undefined || how === "terminate" || how === "killed") {
    const forever = () => {
      for (let i = 0; ; i++) {
        one().operate();
        if (i % 3 === 0) client.advance();
      }
    };
    if (lifetime % 2 === 0) await traffic(task, () => performance.now() > end - lifetime / 2);
    Object.assign(globalThis, { forever });
    // Whoever terminates or kills it does so in the midst of this. A timeout of the vm ends this thread's execution between any two steps of JavaScript, inside of pamir too.
    try {
      new Script("forever()").runInThisContext({ timeout: over === undefined ? 2 * round.patience : lifetime });
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      // Perhaps within a round of a context: its waits, which go on until the thread has ended, reject.
      book.breakOff(client.task);
    }
    over?.();
  }
  await traffic(task, () => performance.now() > end);
  if (how === "parked") one().context.advanceUntil(() => false);
  if (how === "blocked") Atomics.wait(asleep, 0, 0);
  if (how === "asleep") for (;;) await progress(one().context, 2 * round.patience);
  if (how === "drained") {
    await until(task, () => all.map(({ settle }) => settle()).every(Boolean), "to drain");
    for (const { allOut } of all) allOut();
    await leave(client);
  }
  // Also where something is under way.
  client.close();
  process.exit(0);
}

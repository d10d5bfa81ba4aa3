// @ts-check
// Contexts that come and go in the midst of traffic between all of them; context 0 of each task stays. Tasks do this, and
// the test in its own thread.
import { EAGAIN, ENOMEM, SHUTDOWN, SUCCESS } from "pamir";
import { randomFrom } from "./random.js";
import { DATA, PATIENCE, raise } from "./support.js";

const SIZES = [0, 8, 8, 8, 100, 500, 5000, 80_000];
/** Contexts that a task has open at once. */
const OPEN_MAX = 4;
const STEPS = 12_000;
/** Places of the flags: how far the tasks are; from MADE on, how many contexts each has made. */
const [STARTED, FINISHED, PURGED, MADE] = [0, 1, 2, 4];

/**
 * @param {import("pamir").Client} client
 * @param {Int32Array<SharedArrayBuffer>} flags
 * @param {number} seed
 * @param {number} most contexts that it makes
 */
export function churn(client, flags, seed, most) {
  const random = randomFrom(seed);
  const tasks = client.size;
  const seen = { messages: 0, closed: 0, shutdowns: 0, wrong: 0, why: "" };
  /** @type {{ context: import("pamir").Context, sent: Map<number, number>, pending: number }[]} */
  const open = [];
  /** @param {string} why */
  const wrong = (why) => {
    seen.wrong++;
    if (seen.why === "") seen.why = why;
  };

  function make() {
    const context = client.createContext({ spin: 0 });
    const { endpoint, index } = context;
    /** Numbers of the next message from each endpoint, and those that have ended. */
    const [expected, gone] = [new Map(), new Set()];
    context.dispatch(DATA, (message) => {
      const { origin, payloadBytes } = message;
      const number = new DataView(message.header.slice().buffer).getInt32(0, true);
      const next = expected.get(origin) ?? 0;
      if (number !== next) wrong(`${endpoint}: message ${number} of ${origin}, not ${next}`);
      if (gone.has(origin)) wrong(`${endpoint}: a message of ${origin} behind its end`);
      if (next === 0) context.whenEnded(origin, () => gone.add(origin));
      expected.set(origin, number + 1);
      seen.messages++;
      const check = (/** @type {Uint8Array} */ bytes) => {
        if (bytes.some((byte) => byte !== (number & 255))) wrong(`${endpoint}: bytes of ${number} of ${origin}`);
      };
      if (message.immediate) check(message.payload);
      else {
        const into = new Uint8Array(payloadBytes);
        message.receive(into, (_, result) => (result === SUCCESS ? check(into) : undefined));
      }
      if (index > 0 && random.below(300) === 0) close(context);
    });
    open.push({ context, sent: new Map(), pending: 0 });
    Atomics.add(flags, MADE + client.task, 1);
  }

  /** @param {import("pamir").Context} context */
  function close(context) {
    context.close();
    seen.closed++;
    open.splice(
      open.findIndex((one) => one.context === context),
      1,
    );
  }

  const any = () => /** @type {typeof open[number]} */ (open[random.below(open.length)]);

  function send() {
    const from = any();
    const task = random.below(tasks);
    const made = Atomics.load(flags, MADE + task);
    // Mostly to those that are open, or were just now.
    const recent = Math.max(0, made - 1 - random.below(2 * OPEN_MAX));
    const to = client.endpoint(task, random.below(4) === 0 ? 0 : recent);
    if (to === from.context.endpoint) return;
    const number = from.sent.get(to) ?? 0;
    const size = /** @type {number} */ (SIZES[random.below(SIZES.length)]);
    const result = from.context.send({
      to,
      dispatch: DATA,
      header: Int32Array.of(number),
      payload: new Uint8Array(size).fill(number),
      onRemote: (_, came) => {
        from.pending--;
        if (came === SHUTDOWN) seen.shutdowns++;
        else if (came !== SUCCESS) wrong(`onRemote ${came}`);
      },
    });
    if (result === SUCCESS) from.sent.set(to, number + 1);
    if (result === SUCCESS || result === SHUTDOWN) from.pending++;
    else if (result !== EAGAIN && result !== ENOMEM) wrong(`send ${result}`);
  }

  make();
  const control = any();
  const { context } = control;
  /** Until all tasks are so far. Nobody rings for a flag. @param {() => boolean} condition */
  const advanceUntil = (condition) => {
    for (const end = performance.now() + PATIENCE; !condition(); ) {
      if (performance.now() > end) throw new Error(`task ${client.task}: ${condition} does not come`);
      context.advance();
    }
  };
  raise(flags, STARTED);
  advanceUntil(() => Atomics.load(flags, STARTED) >= tasks);
  let made = 1;
  for (let step = 0; step < STEPS; step++) {
    const what = random.below(300);
    if (what < 120) send();
    else if (what < 298) any().context.advance();
    else if (what === 298 && open.length < OPEN_MAX && made++ < most) make();
    else if (what === 299 && open.length > 1) close(/** @type {typeof open[number]} */ (open[open.length - 1]).context);
  }
  for (const { context: one } of open.slice(1)) close(one);
  raise(flags, FINISHED);

  advanceUntil(() => Atomics.load(flags, FINISHED) >= tasks);
  // All that has closed has ended for this one, and all that it sent has come to something.
  let left = 0;
  for (let task = 0; task < tasks; task++) {
    for (let index = 1; index < Atomics.load(flags, MADE + task); index++, left++) {
      context.whenEnded(client.endpoint(task, index), () => left--);
    }
  }
  advanceUntil(() => left === 0 && control.pending === 0);
  const others = Array.from({ length: tasks }, (_, task) => client.endpoint(task));
  advanceUntil(() => context.purge(others.filter((to) => to !== context.endpoint)) === SUCCESS);
  raise(flags, PURGED);
  advanceUntil(() => Atomics.load(flags, PURGED) >= tasks);
  return { context, seen };
}

// @ts-check
// A task of the tank: it has some rows. The page is task 0.
import { attach, codecs, dispatchId, SUCCESS } from "pamir";
import { Gauge } from "./gauge.js";
import { Halos } from "./halos.js";
import * as ids from "./layout.js";
import { Probe } from "./probe.js";
import { ownRows, pageOffset, sharedRows, toOneStep } from "./tank-rows.js";
import { push, stepRows } from "./water.js";

/** @typedef {import("./layout.js").Plan} Plan */
/** Between two pictures, where the page does not share this memory. */
const FRAME_MS = 16;

const client = await attach();
const { size, stop } = /** @type {{ size: number, stop: number }} */ (client.args);
const context = client.createContext();
const page = client.endpoint(0);
const isShared = client.localTasks.includes(0);
const halos = new Halos(client, context, size);
const gauge = new Gauge();
const json = /** @type {import("pamir").Codec<any>} */ (codecs.json());
const told = (/** @type {number} */ id) => dispatchId(id, json);

/** @type {Plan | undefined} */
let plan;
/** @type {import("./water.js").Rows} */
let rows;
/** @type {ReturnType<typeof ids.viewsOf>} */
let views;
/** Of the own rows, where the page does not share this memory. @type {import("pamir").MemRegion | undefined} */
let heights;
let place = -1;
let step = 0;
let isPaused = false;
let isOver = false;
let hasGoneOn = false;
let drawn = 0;
const watched = new Set();

/** @param {number} id @param {unknown} value */
function tell(id, value) {
  context.send({ to: page, dispatch: told(id), payload: value });
}

/** Waits in the way of this thread. @param {() => boolean} condition @returns {boolean | Promise<boolean>} whether to go on */
function until(condition) {
  if (client.capabilities.blockingWaits) return context.advanceUntil(condition) === SUCCESS;
  // A notification wakes this task: the condition is looked at, whichever counter it has changed.
  return context.waitWord(halos.region, 0, condition).then(() => true);
}

const probe = new Probe(client, context, gauge, until);

/** Goes no further in a plan with a task that has ended. @param {number} task */
function hear(task) {
  tell(ids.HEARD, { task });
  if (plan?.members.includes(task)) plan = undefined;
}

context.dispatch(told(ids.PLAN), (/** @type {Plan} */ given) => {
  place = given.members.indexOf(client.task);
  isOver = place < 0;
  if (isOver) return;
  const [first, end] = [given.firsts[place], given.firsts[place + 1]];
  const halo = (/** @type {number} */ plane, /** @type {number} */ side) => halos.rows[2 * side + plane];
  if (isShared) {
    views ??= ids.viewsOf(client.bytes.buffer, given.offset, size);
    rows = sharedRows(views, { first, count: end - first, pace: given.pace, halo });
  } else {
    heights?.close();
    heights = client.createRegion(8 * (end - first) * size);
    heights.bytes.fill(0);
    rows = ownRows(heights.view(Float32Array), size, { first, count: end - first, pace: given.pace, halo });
  }
  halos.begin(given, place);
  for (const task of given.members) {
    if (task === client.task || watched.has(task)) continue;
    watched.add(task);
    context.whenEnded(client.endpoint(task), () => hear(task));
  }
  step = given.step;
  hasGoneOn = false;
  plan = given;
  gauge.reset();
  halos.put(step, rows.heights[step & 1]);
});
context.dispatch(told(ids.STOP), (/** @type {{ epoch: number }} */ { epoch }) => {
  plan = undefined;
  tell(ids.STOPPED, { epoch });
});
context.dispatch(told(ids.CATCH_UP), (/** @type {import("./layout.js").CatchUp} */ given) => {
  views ??= ids.viewsOf(client.bytes.buffer, given.offset, size);
  tell(ids.CAUGHT_UP, { epoch: given.epoch, step: toOneStep(views, given) });
});
context.dispatch(told(ids.PUSH), (/** @type {import("./water.js").Lift} */ where) => {
  if (plan === undefined) return;
  push(rows, step & 1, where);
  if (!isShared) show(true);
});
context.dispatch(told(ids.PAUSE), (/** @type {{ isPaused: boolean }} */ given) => {
  isPaused = given.isPaused;
  gauge.reset();
  if (!isShared) show(true);
});

/** Where the page does not share this memory: it gets the heights by a put. @param {boolean} isDue */
function show(isDue) {
  if (plan === undefined || heights === undefined || (!isDue && performance.now() - drawn < FRAME_MS)) return;
  drawn = performance.now();
  const plane = step & 1;
  const bytes = 4 * rows.count * size;
  context.put({
    to: page,
    local: heights,
    localOffset: plane * bytes,
    remote: plan.region,
    remoteOffset: pageOffset(rows, plane),
    bytes,
    notify: { remote: plan.region, offset: 4 * place, operation: "set", value: step },
  });
}

/** One step, if the halos of the last one are there. @returns {Promise<boolean>} whether to go on */
async function go() {
  const isReady = () => isOver || (plan !== undefined && !isPaused && step !== stop && halos.have(step));
  // A task that never waits hears of nothing else.
  context.advance();
  let goesOn = until(isReady);
  if (typeof goesOn !== "boolean") goesOn = await goesOn;
  if (!goesOn || isOver || !isReady() || plan === undefined) return goesOn && !isOver;
  const start = performance.now();
  stepRows(rows, step);
  gauge.computed += performance.now() - start;
  gauge.steps++;
  step++;
  if (isShared) Atomics.store(views.steps, place, step);
  // The step is published first: a task that ends in between has not held up a neighbor for nothing.
  if (!halos.put(step, rows.heights[step & 1])) context.advance();
  if (!hasGoneOn) {
    hasGoneOn = true;
    tell(ids.GOES_ON, { epoch: plan.epoch });
  }
  if (!isShared) show(step === stop || isPaused);
  if (gauge.isDue) {
    const peer = plan.members[1];
    if (place === 0 && plan.workers > 1) await probe.measure(peer, () => plan === undefined || isOver);
    tell(ids.REPORT, { task: client.task, ...gauge.report(halos.puts + probe.balls) });
  }
  return true;
}

tell(ids.HERE, { halo: halos.region.handle });
while (await go());
if (isOver) await client.close({ drain: true });
else self.close();

// @ts-check
// π as the integral of 4 / (1 + x²), by tasks that fetch their next piece of work when they have time: the caller joins
// as task 0, deals out the pieces and adds up the answers. Shows: join, request and answer, back-pressure for nothing.
import { isMainThread } from "node:worker_threads";
import { attach, launch, SUCCESS } from "pamir";

const REQUEST = 1; // worker → dealer; payload: f64 sum of the last piece, f64 number of pieces done
const PIECE = 2; // dealer → worker; payload: f64 first step, f64 steps; 0 steps: no more work
const STEPS = 20_000_000;
const PIECE_STEPS = 250_000;

/** @param {import("pamir").Message} message @returns {Float64Array} */
const numbers = (message) => new Float64Array(message.payload.slice().buffer);

/** The dealer. */
async function deal() {
  const tasks = 4;
  const job = await launch(new URL(import.meta.url), { tasks, join: true });
  const { client } = job;
  const context = client.createContext();
  let next = 0;
  let sum = 0;
  let working = tasks - 1;
  context.dispatch(REQUEST, (message) => {
    sum += numbers(message)[0] ?? Number.NaN;
    const steps = Math.min(PIECE_STEPS, STEPS - next);
    if (steps === 0) working--;
    context.sendImmediate(message.origin, PIECE, null, new Float64Array([next, steps]));
    next += steps;
  });
  const result = context.advanceUntil(() => working === 0, { timeout: 60_000 });
  client.close();
  await job.exited;
  const pi = sum / STEPS;
  console.log(`π ≈ ${pi.toFixed(12)}, off by ${Math.abs(pi - Math.PI).toExponential(1)}`);
  process.exitCode = result === SUCCESS && Math.abs(pi - Math.PI) < 1e-10 ? 0 : 1;
}

/** A worker. */
async function work() {
  const client = await attach();
  const context = client.createContext();
  const dealer = client.endpoint(0);
  let more = true;
  context.dispatch(PIECE, (message) => {
    const [first = 0, steps = 0] = numbers(message);
    more = steps > 0;
    if (!more) return;
    let sum = 0;
    for (let i = first; i < first + steps; i++) sum += 4 / (1 + ((i + 0.5) / STEPS) ** 2);
    context.sendImmediate(dealer, REQUEST, null, new Float64Array([sum]));
  });
  context.sendImmediate(dealer, REQUEST, null, new Float64Array([0]));
  context.advanceUntil(() => !more);
}

await (isMainThread ? deal() : work());

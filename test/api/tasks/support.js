// @ts-check
// What the task modules of the tests have in common.
import { attach, SUCCESS } from "pamir";
import { findFlags, LOOK_MS } from "./flags.js";

export const ECHO = 1;
export const REPLY_WHOLE = 2;
export const REPLY_PARTS = 3;
export const QUIT = 4;
export const RESULT = 5;
export const ASK = 6;
export const COUNT = 7;
export const DATA = 10;
export const OTHER = 11;
/** As in support.ts: a hang ends with an error in `job.exited`. */
export const PATIENCE = 60_000;

/**
 * @typedef {{ scenario: string, flags: Int32Array<SharedArrayBuffer>, [name: string]: any }} Args
 * @typedef {(client: import("pamir").Client, args: Args) => void | Promise<void>} Scenario
 */

/**
 * Attaches and runs the scenario that the job asks for.
 * @param {Record<string, Scenario>} scenarios
 */
export async function runScenario(scenarios) {
  const client = await attach();
  const given = /** @type {Args} */ (client.args);
  const args = given.flags === undefined ? given : { ...given, flags: await findFlags(given.flags) };
  const scenario = scenarios[args.scenario];
  if (scenario === undefined) throw new Error(`no scenario ${args.scenario}`);
  await scenario(client, args);
}

/**
 * @param {import("pamir").Context} context
 * @param {() => boolean} condition
 * @param {number} [timeout]
 */
export function until(context, condition, timeout = PATIENCE) {
  const start = performance.now();
  const result = context.advanceUntil(condition, { timeout });
  if (result !== SUCCESS) throw new Error(`the wait came to ${result}: ${condition}`);
  if (performance.now() - start >= timeout) throw new Error(`nobody woke the wait for ${condition}`);
}

/**
 * @param {import("pamir").Context} context
 */
export async function progress(context) {
  const start = performance.now();
  await context.progress({ timeout: PATIENCE });
  if (performance.now() - start >= PATIENCE) throw new Error("nobody woke progress()");
}

/**
 * Sends a JSON value to task 0.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {unknown} value
 */
export function report(client, context, value) {
  let sent = false;
  const result = context.send({
    to: client.endpoint(0),
    dispatch: RESULT,
    payload: new TextEncoder().encode(JSON.stringify(value)),
    onLocal: () => {
      sent = true;
    },
  });
  if (result !== SUCCESS) throw new Error(`report came to ${result}`);
  until(context, () => sent);
}

/**
 * Blocks without advancing until the test opens the gate.
 * @param {Int32Array<SharedArrayBuffer>} flags
 * @param {number} gate
 */
export function waitGate(flags, gate) {
  const end = performance.now() + PATIENCE;
  while (Atomics.load(flags, gate) === 0) {
    if (performance.now() >= end) throw new Error(`gate ${gate} stays closed`);
    Atomics.wait(flags, gate, 0, LOOK_MS);
  }
}

/**
 * @param {Int32Array<SharedArrayBuffer>} flags
 * @param {number} place
 */
export function raise(flags, place, by = 1) {
  Atomics.add(flags, place, by);
  Atomics.notify(flags, place);
}

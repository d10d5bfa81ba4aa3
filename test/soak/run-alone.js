// @ts-check
// Runs a round in a process of its own, again if Node aborts that: the soak, and the tests with many kills.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { FAILURES } from "./model.js";

/** @typedef {import("./round.js").Outcome} Outcome */
/** @typedef {import("./draw.js").Round | import("./collectives/draw.js").CollectiveRound} AnyRound */

/**
 * Node 20 aborts the process, once in some 1,000 kills, where a worker ends while V8 compiles for it on another thread:
 * that says nothing of pamir, and the round is run again.
 */
const NODE_ABORTS = /NodePlatform::ForIsolate.*Assertion failed/s;
/** How often it is. */
const TRIES = 3;

/**
 * @param {AnyRound} round
 * @param {() => void} onAbort called when Node has aborted it, and it is run again
 * @returns {Promise<Outcome>}
 */
export async function runAlone(round, onAbort) {
  let outcome = await runOnce(round);
  for (let tries = 1; outcome === undefined && tries < TRIES; tries++) {
    onAbort();
    outcome = await runOnce(round);
  }
  return outcome ?? without(false, `Node aborted ${TRIES} times`);
}

/** undefined: Node has aborted the process. @param {AnyRound} round @returns {Promise<Outcome | undefined>} */
function runOnce(round) {
  return new Promise((resolve) => {
    const stdio = /** @type {const} */ (["ignore", "inherit", "pipe", "ipc"]);
    const alone = fileURLToPath(new URL("alone.mjs", import.meta.url));
    const child = fork(alone, { stdio: [...stdio], execArgv: [] });
    let errors = "";
    child.stderr?.on("data", (text) => {
      errors += text;
      process.stderr.write(text);
    });
    /** @type {Outcome | undefined} */
    let outcome;
    let isKilled = false;
    // Longer than the round's own watchdog, which may be blocked.
    const timer = setTimeout(
      () => {
        isKilled = child.kill("SIGKILL");
      },
      round.milliseconds + 10 * round.patience,
    );
    child.on("message", (message) => {
      outcome = /** @type {Outcome} */ (message);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (signal === "SIGABRT" && NODE_ABORTS.test(errors)) return resolve(undefined);
      resolve(outcome ?? without(isKilled, `the process of the round ended by itself: code ${code}, signal ${signal}`));
    });
    child.send(round);
  });
}

/** The outcome of a round that told none. @param {boolean} isKilled @param {string} why @returns {Outcome} */
export function without(isKilled, why) {
  const none = /** @type {Outcome["failures"]} */ (Object.fromEntries(FAILURES.map((failure) => [failure, 0])));
  const failures = isKilled ? { ...none, hung: 1 } : { ...none, others: 1 };
  const notes = [isKilled ? "hung: the thread that launched the job" : `others: ${why}`];
  return { operations: 0, messages: 0, kills: 0, failures, notes, dump: "" };
}

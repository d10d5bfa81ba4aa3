// @ts-check
// 8 bytes there and back between two tasks that block: both wait by advanceUntil(), or by a loop of advance().
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { repeatBlocking } from "./meter.js";

const BALL = 1;
/** Round trips between two looks at the clock. */
const BATCH = 100;

/**
 * A side: there() sends a ball, back() waits for one.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Endpoint} to
 * @param {"advanceUntil" | "advance"} wait
 */
function side(client, to, wait) {
  const context = client.createContext();
  const ball = new Uint8Array(8);
  let came = 0;
  context.dispatch(BALL, () => {
    came++;
  });
  const isBack = () => came > 0;
  return {
    there: () => context.sendImmediate(to, BALL, null, ball),
    back() {
      if (wait === "advanceUntil") context.advanceUntil(isBack);
      else while (came === 0) context.advance();
      came--;
    },
  };
}

/** @param {{ wait: "advanceUntil" | "advance", seconds: number }} options @returns µs there and back */
export async function run({ wait, seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true, args: wait });
  const { there, back } = side(job.client, job.client.endpoint(1), wait);
  const time = repeatBlocking(seconds, () => {
    for (let i = 0; i < BATCH; i++) {
      there();
      back();
    }
  });
  await job.terminate();
  return { figure: (time * 1e6) / BATCH };
}

if (!isMainThread) {
  const client = await attach();
  const wait = /** @type {"advanceUntil" | "advance"} */ (client.args);
  const { there, back } = side(client, client.endpoint(0), wait);
  for (;;) {
    back();
    there();
  }
}

// @ts-check
// A buffer goes to a worker and back: filled by the sender, summed by the receiver, one way and the other.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { fill, repeat, sumOf } from "./meter.js";

const GIVE = 1;

/**
 * Sends what a region holds to `to`, and calls `taken` with the bytes of what comes.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Endpoint} to
 * @param {number} bytes
 * @param {(bytes: Uint8Array) => void} taken
 */
function giver(client, to, bytes, taken) {
  const context = client.createContext();
  const [ours, theirs] = [client.createRegion(bytes), client.createRegion(bytes)];
  context.dispatch(GIVE, (message) => message.receive(theirs.bytes, () => taken(theirs.bytes)));
  const give = () => context.send({ to, dispatch: GIVE, payload: ours.bytes, rendezvous: true, onLocal: () => {} });
  return { context, bytes: ours.bytes, give };
}

/** @param {{ bytes: number, seconds: number }} options @returns bytes per second, each way counted */
export async function run({ bytes, seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true, args: bytes });
  let sum = 0;
  let back = false;
  const given = giver(job.client, job.client.endpoint(1), bytes, (region) => {
    sum = sumOf(region);
    back = true;
  });
  let value = 0;
  const time = await repeat(seconds, async () => {
    fill(given.bytes, ++value & 127);
    back = false;
    given.give();
    while (!back) await given.context.progress();
  });
  await job.terminate();
  if (sum === 0) throw new Error("the sum is 0");
  return { figure: (2 * bytes) / time };
}

if (!isMainThread) {
  const client = await attach();
  const bytes = /** @type {number} */ (client.args);
  const given = giver(client, client.endpoint(0), bytes, (region) => {
    fill(given.bytes, (sumOf(region) & 127) | 1);
    given.give();
  });
  while (!given.context.closed) await given.context.progress();
}

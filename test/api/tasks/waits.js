// @ts-check
// Waits for what never comes, in one of the ways there are, until it is interrupted; then it closes its client.
import { attach, SUCCESS } from "pamir";
import { DATA, OTHER } from "./support.js";

const client = await attach();
const { how } = /** @type {{ how: string }} */ (client.args);
const context = client.createContext();
const to = client.endpoint(0);

/** Sends until the lane is full, and a little more. */
function fill() {
  while (context.sendImmediate(to, DATA, null, new Uint8Array(100), false) === SUCCESS);
}

/** @type {Record<string, () => unknown>} */
const WAYS = {
  advanceUntil: () => context.advanceUntil(() => false),
  progress: () => context.progress(),
  messages: () => context.messages(DATA).next(),
  whenRoom() {
    fill();
    return context.whenRoom(to, 100);
  },
  whenEnded: () => context.whenEnded(to),
  drain() {
    fill();
    context.sendImmediate(to, DATA, null, new Uint8Array(100));
    return context.drain();
  },
  call: () => context.call(to, OTHER),
  /** 100 messages, of which some have no room in a lane that is large enough to stay, and three calls. */
  async holds() {
    const calls = [1, 2, 3].map(() => context.call(to, OTHER));
    for (let i = 0; i < 100; i++) context.sendImmediate(to, DATA, null, new Uint8Array(8));
    await Promise.all(calls);
    for (;;) await context.progress();
  },
  /** Floods the second context of task 0. */
  async floods() {
    for (let i = 0; i < 20; i++) context.sendImmediate(client.endpoint(0, 1), DATA, null, new Uint8Array(100));
    for (;;) await context.progress(); // until it is terminated
  },
};

const wait = WAYS[how];
if (wait === undefined) throw new Error(`no way to wait: ${how}`);
try {
  await wait();
} catch (error) {
  if (/** @type {{ code?: string }} */ (error).code !== "PAMIR_INTERRUPTED") throw error;
}
client.close();

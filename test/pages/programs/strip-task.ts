// A task of the page with a strip: rounds of halos by put and notify, messages to the neighbors, a sum up and down a tree, a fence.
import { attach } from "pamir";
import { HALO, KILL, STEP, UP } from "./strip-ids.js";

const client = await attach();
const context = client.createContext();
const peers = client.size - 1;
const own = client.task - 1;
const [left, right] = [(own + peers - 1) % peers, (own + 1) % peers].map((peer) => client.endpoint(peer + 1));
const edge = client.createRegion(256);
let isKilled = false;
let [halos, sums] = [0, 0];
context.dispatch(HALO, () => void halos++);
context.dispatch(STEP, () => {});
context.dispatch(UP, () => void sums++);
context.dispatch(KILL, () => {
  isKilled = true;
});
const { rounds } = client.args as { rounds: number };
const { blockingWaits } = client.capabilities;
const pause = blockingWaits ? new Int32Array(new SharedArrayBuffer(4)) : undefined;

for (let round = 0; round < rounds && !isKilled; round++) {
  for (const to of [left, right]) {
    context.sendImmediate(to, HALO, null, new Uint8Array(edge.length));
    context.sendImmediate(to, STEP);
  }
  if (own > 0) context.sendImmediate(client.endpoint(((own - 1) >> 1) + 1), UP);
  context.put({ to: client.endpoint(client.task), local: edge, remote: edge.handle });
  context.fence(client.endpoint(client.task), () => {});
  const end = performance.now() + 5;
  if (pause !== undefined) {
    while (performance.now() < end) {
      context.advance();
      Atomics.wait(pause, 0, 0, 1);
    }
  } else await context.progress({ timeout: 5 }).catch(() => 0);
}
if (isKilled) self.close();
await new Promise(() => {});

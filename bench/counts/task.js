// @ts-check
// The other side: answers calls, reduces with task 0, is written to, is sent to; and counts its own work meanwhile.

import { attach, codecs, dispatchId } from "pamir";
import { begin, end } from "./counting.js";
import { ALLREDUCE, BEGIN, CALL, END, PUT, SEND } from "./ids.js";

const client = await attach();
const context = client.createContext();
const region = client.createRegion(64);
context.dispatch(CALL, () => region.bytes.subarray(0, 8));
context.dispatch(SEND, () => {});
context.dispatch(dispatchId(BEGIN, codecs.json(), codecs.json()), () => {
  begin();
  return 0;
});
context.dispatch(dispatchId(END, codecs.json(), codecs.json()), (times) => end(Number(times)));
context.dispatch(dispatchId(PUT, codecs.json(), codecs.json()), () => region.handle);
const world = await client.world();
let rounds = 0;
context.dispatch(dispatchId(ALLREDUCE, codecs.json(), codecs.json()), (times) => {
  rounds = Number(times);
  return 0;
});
for (;;) {
  await context.progress();
  for (; rounds > 0; rounds--) await world.allreduce({ send: Float64Array.of(1), operation: "sum" });
}

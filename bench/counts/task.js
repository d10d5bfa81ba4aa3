// @ts-check
// The other side: answers calls, reduces with task 0, is written to, is sent to; and counts its own work meanwhile.

import { attach, codecs, dispatchId } from "pamir";
import { begin, end, lap } from "./counting.js";
import { AGAIN, ALLREDUCE, BARRIER, BEGIN, CALL, END, PUT, SEND } from "./ids.js";

const client = await attach();
const context = client.createContext();
const region = client.createRegion(64);
/** Whether each call is counted by itself. */
let isEach = false;
context.dispatch(CALL, () => {
  if (isEach) lap();
  return region.bytes.subarray(0, 8);
});
context.dispatch(SEND, () => {});
context.dispatch(dispatchId(BEGIN, codecs.json(), codecs.json()), (each) => {
  isEach = each === 1;
  begin();
  return 0;
});
context.dispatch(dispatchId(END, codecs.json(), codecs.json()), (times) => end(Number(times)));
context.dispatch(dispatchId(PUT, codecs.json(), codecs.json()), () => region.handle);
const world = await client.world();
const again = { send: Float64Array.of(1), receive: new Float64Array(1), operation: /** @type {const} */ ("sum") };
/** @type {Record<number, () => unknown>} */
const OPERATIONS = {
  [ALLREDUCE]: () => world.allreduce({ send: Float64Array.of(1), operation: "sum" }),
  [BARRIER]: () => world.barrierSync(),
  [AGAIN]: () => world.allreduceSync(again),
};
/** What is still to be done: a handler may run while an operation waits. @type {(() => unknown)[]} */
const due = [];
for (const [id, operation] of Object.entries(OPERATIONS)) {
  context.dispatch(dispatchId(Number(id), codecs.json(), codecs.json()), (times) => {
    for (let i = 0; i < Number(times); i++) due.push(operation);
    return 0;
  });
}
for (;;) {
  await context.progress();
  for (let operate = due.shift(); operate !== undefined; operate = due.shift()) await operate();
}

// @ts-check
// The task to which the page sends.
import { attach, SUCCESS } from "pamir";
import { CHECKED, isFilled, PAYLOAD, READY } from "./frames-common.js";

const client = await attach();
const context = client.createContext();
const { bytes: destination } = client.createRegion(/** @type {number} */ (client.args));
destination.fill(0);
let result = -1;
context.dispatch(PAYLOAD, (message) => {
  message.receive(destination, (_, came) => {
    result = came;
  });
});
context.sendImmediate(client.endpoint(0), READY);
context.advanceUntil(() => result >= 0);
const isRight = result === SUCCESS && isFilled(destination);
context.sendImmediate(client.endpoint(0), CHECKED, null, Uint8Array.of(Number(isRight)));
await client.close({ drain: true });

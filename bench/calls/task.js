// @ts-check
// Answers calls, blocked while it waits or not, or exposes the same by Comlink over pamir, as its job says.
import * as Comlink from "comlink";
import { attach } from "pamir";
import { portTo } from "pamir/port";
import { CODEC, PORT, SQUARE } from "./ids.js";
import { square } from "./square.js";

const client = await attach();
const context = client.createContext();
context.dispatch(SQUARE, ({ number }) => square(number));
if (client.args === "blocks") context.advanceUntil(() => false);
else if (client.args === "comlink") {
  const port = portTo(context, client.endpoint(0), { id: PORT, codec: CODEC });
  Comlink.expose({ square }, /** @type {any} */ (port));
} else while (!context.closed) await context.progress();

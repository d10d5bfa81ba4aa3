// @ts-check
// A task of a round, in its worker.
import { attach } from "pamir";
import { die, survive } from "./life.js";

const client = await attach();
const args = /** @type {import("./life.js").Args} */ (client.args);
if (client.task < args.round.survivors) await survive(client, args);
else await die(client, args);

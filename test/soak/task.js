// @ts-check
// A task of a round, in its worker.
import { attach } from "pamir";
import { die, survive } from "./life.js";

const client = await attach();
const { round } = /** @type {import("./life.js").Args} */ (client.args);
if (client.task < round.survivors) await survive(client);
else await die(client);

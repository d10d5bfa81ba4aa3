// @ts-check
// A task of a round over a link, in its process.
import { attach } from "pamir";
import { die, survive } from "./life.js";

const args = /** @type {import("./life.js").Args} */ (JSON.parse(/** @type {string} */ (process.env.PAMIR_SOAK)));
const client = await attach();
if (client.task < args.round.survivors) await survive(client, args);
else await die(client, args);

// @ts-check
// A task of a round of collective operations, in its worker.
import { attach } from "pamir";
import { live } from "./life.js";

const client = await attach();
await live(client, /** @type {import("./life.js").Args} */ (client.args));

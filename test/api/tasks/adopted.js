// @ts-check
// A worker of somebody else, which runs a scenario of the tests of the engine thread once it is adopted.
import { parentPort } from "node:worker_threads";
import { attach } from "pamir";

await attach(/** @type {import("node:worker_threads").MessagePort} */ (parentPort));
await import("./engine.js");

// @ts-check
import { parentPort } from "node:worker_threads";
import * as Comlink from "comlink";
// @ts-expect-error: comes without types
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import { square } from "./square.js";

Comlink.expose({ square }, nodeEndpoint(/** @type {any} */ (parentPort)));

// @ts-check
// The functions of move-worker.js in a worker that the program has started.
import { parentPort } from "node:worker_threads";
import { serve } from "pamir/pool";
import { api } from "./move-functions.js";

serve(api, { port: parentPort ?? undefined });

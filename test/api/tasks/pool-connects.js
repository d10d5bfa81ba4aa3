// @ts-check
// A program that connects to a worker which does not keep it running, and ends the connection.
import { Worker } from "node:worker_threads";
import { connect } from "pamir/pool";

const worker = new Worker(new URL("./pool-connected.js", import.meta.url));
const connection = await connect(worker);
worker.unref();
await connection.close();
console.log("closed");

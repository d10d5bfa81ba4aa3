// @ts-check
// Says that it has begun; attaches or not; then there is no end of it.
import { workerData } from "node:worker_threads";
import { attach } from "pamir";

const { flags, attaches } = workerData;
Atomics.add(flags, 0, 1);
if (attaches) await attach();
await new Promise(() => setInterval(() => {}, 1000));

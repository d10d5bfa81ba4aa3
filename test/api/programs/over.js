// @ts-check
// A job whose only task has ended, with a place left for another: nothing runs, and its caller awaits that it is over.
import { launch } from "pamir";

const task = new URL("../tasks/sleeper.js", import.meta.url);
const job = await launch(task, { tasks: 2, spare: 1, join: true, heapBytes: 2 ** 22 });
await job.terminate(1);
const exits = await job.terminate();
console.log(`over: ${exits.length}`);

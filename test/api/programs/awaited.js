// @ts-check
// A job in which nobody runs but the caller, while more tasks could come, is ended as argv says, and that is awaited.
import { launch } from "pamir";

const job = await launch(null, { tasks: 1, join: true, maxTasks: 2, heapBytes: 2 ** 22 });
if (process.argv[2] === "terminate") await job.terminate();
else {
  job.client.close();
  await job.exited;
}
console.log("over");

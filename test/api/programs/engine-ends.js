// @ts-check
// Jobs that end while their engine thread starts, and loads koffi.
import { setTimeout as sleep } from "node:timers/promises";
import { launch } from "pamir";

const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
  const job = await launch(null, { tasks: 1, join: true, processes: 1, engine: "thread" });
  await sleep((40 * round) / rounds);
  await job.terminate();
}
console.log(`${rounds} jobs have ended`);

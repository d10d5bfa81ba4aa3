// @ts-check
// A process of a job at a NATS server that names the job itself: { nats, job, nodes, spare, later } as JSON; null: a launcher does. Its
// steps, in this order: "ended N" awaits the end of task N; "add N,M" awaits these tasks, which add up their numbers; "block FILE"
// blocks its thread until the file is there; "say TEXT".
import { existsSync } from "node:fs";
import { attach } from "pamir";

const [given = "", ...steps] = process.argv.slice(2);
const PATIENCE = { timeout: 100_000 };
try {
  const client = await attach(JSON.parse(given) ?? undefined);
  const context = client.createContext();
  console.log(`task ${client.task} is there`);
  for (const step of steps) {
    const [what, argument = ""] = step.split(" ");
    if (what === "ended") await context.whenEnded(Number(argument), PATIENCE);
    else if (what === "add") {
      const members = argument.split(",").map(Number);
      for (const one of members) await context.whenStarted(one, PATIENCE);
      const geometry = await client.createGeometry(members, { ...PATIENCE, context });
      const sum = await geometry.allreduce({ send: Int32Array.of(client.task), operation: "sum" }, PATIENCE);
      console.log(`sum of ${members}: ${sum[0]}`);
    } else if (what === "block") {
      const word = new Int32Array(new SharedArrayBuffer(4));
      while (!existsSync(argument)) Atomics.wait(word, 0, 0, 10);
    } else if (what === "say") console.log(argument);
  }
  client.close();
} catch (error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  console.log(`${code}: ${message}`);
}

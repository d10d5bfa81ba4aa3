// @ts-check
// A process that names its job itself: { nats, job, nodes } as JSON. All say what they have summed up. "open" leaves the client open.
import { attach } from "pamir";

const [given = "", end] = process.argv.slice(2);
try {
  const client = await attach(JSON.parse(given));
  const world = await client.world({ timeout: 60_000 });
  const sum = await world.allreduce({ send: Int32Array.of(client.task), operation: "sum" }, { timeout: 60_000 });
  console.log(`${client.size} tasks, sum ${sum[0]}`);
  if (end !== "open") client.close();
} catch (error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  console.log(`${code}: ${message}`);
}

// @ts-check
// Task 0 writes as fast as its output takes it, without an end. On its host, task 1 says what it hears of task 3, which exits.
import { once } from "node:events";
import { attach } from "pamir";

const MESSAGES = 100;
const client = await attach();
const context = client.createContext();
let heard = 0;
context.dispatch(1, () => {
  heard++;
});
if (client.task === 0) {
  const line = `${"x".repeat(65_000)}\n`;
  for (;;) if (!process.stdout.write(line)) await once(process.stdout, "drain");
} else if (client.task === 1) {
  while (heard < MESSAGES) await context.progress();
  console.error(`heard ${heard} messages of task 3`);
} else if (client.task === 3) {
  // By then, nothing more is taken of task 0.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  for (let i = 0; i < MESSAGES; i++) context.sendImmediate(client.endpoint(1), 1);
  await context.drain();
  process.exit(9);
}
client.close();

// A worker that the program has started, and connects to.
import { parentPort } from "node:worker_threads";
import { serve } from "pamir/pool";

async function* hanging() {
  yield 1;
  await new Promise(() => {});
}

serve({ one: () => 1, hanging }, { port: parentPort ?? undefined });

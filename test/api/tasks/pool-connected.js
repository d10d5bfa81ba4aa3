// A worker that the program has started, and connects to.
import { parentPort } from "node:worker_threads";
import { serve } from "pamir/pool";

serve({ one: () => 1 }, { port: parentPort ?? undefined });

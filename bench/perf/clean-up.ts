// Cleans up behind a measurement: once it is over, and also if SIGINT or SIGTERM ends this process meanwhile.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const pending = new Set<() => void>();

/** @param act must not wait for anything: behind it, a signal ends this process */
export async function cleaned<T>(run: () => Promise<T>, act: () => void): Promise<T> {
  if (pending.size === 0) for (const signal of SIGNALS) process.on(signal, endBySignal);
  pending.add(act);
  try {
    return await run();
  } finally {
    act();
    pending.delete(act);
    if (pending.size === 0) for (const signal of SIGNALS) process.removeListener(signal, endBySignal);
  }
}

/** Runs something with a folder for its files. */
export function withFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "pamir-perf-"));
  return cleaned(
    () => run(folder),
    // Again where a process that is about to end has just written another file.
    () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }),
  );
}

/** The last begun is cleaned up first: processes end before their folder goes. */
function endBySignal(signal: NodeJS.Signals): void {
  for (const act of [...pending].reverse()) act();
  for (const one of SIGNALS) process.removeListener(one, endBySignal);
  process.kill(process.pid, signal);
}

// attach() in the main thread of a process that `pamir run --processes` has started for one task. This way of joining needs no messages:
// the process inherits the memory, and a variable has the other data.
import type { Writable } from "node:stream";
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory } from "../../kernel/open.js";
import { readMap } from "../../memory/map.js";
import { noProcesses, openFfi } from "../../process/ffi.js";
import { LONG_SLEEP_MS } from "../../process/futex.js";
import { mapProcessMemory } from "../../process/mapping.js";
import { futexWithBells } from "../../process/pipe-bell.js";
import { nodeModule } from "../../support/host.js";
import { EXIT_PIPE } from "../process/exit-code.js";
import { recordOwnProcess } from "../process/process-record.js";
import { recordErrors } from "../process/record-errors.js";
import { LAUNCHED, type LaunchedTask } from "../start-message.js";
import type { Joined } from "./join.js";

/** Ends this process without Node's error once its output has no reader. Its launcher sees the exit code alone. */
function endWithReader(output: Writable): void {
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (output.listenerCount("error") > 1) return;
    if (error.code !== "EPIPE") throw error;
    process.exit(EXIT_PIPE);
  });
}

/** @throws PAMIR_NO_PROCESSES, PAMIR_NO_WORKERS */
export async function joinLaunched(text: string): Promise<Joined> {
  // Processes that this process starts are no tasks.
  delete process.env[LAUNCHED];
  const { start, memory: setup, launcher, isDetached } = JSON.parse(text) as LaunchedTask;
  if (!isDetached) openFfi(setup.ffi).dieWithParent();
  if (!isDetached && process.ppid !== launcher.pid)
    throw noProcesses(`process ${launcher.pid}, which started this one, has ended`);
  const { shared, futex } = mapProcessMemory(setup, start.job);
  (nodeModule("fs") as typeof import("node:fs")).closeSync(setup.descriptor);
  const memory = openMemory(shared, futexWithBells(futex, shared, LONG_SLEEP_MS));
  let endWatch: (() => void) | undefined;
  if (isDetached) {
    recordOwnProcess(sharedAtomics(memory), readMap(memory, start.job), start.task, launcher);
    const { startWatch } = await import("../process/start-watch.js");
    endWatch = await startWatch({ shared, futex, job: start.job }, { processes: [], launcher });
    endWithReader(process.stdout);
    endWithReader(process.stderr);
  }
  const forget = recordErrors(memory, start.job, start.task);
  const onLeave = (): void => {
    endWatch?.();
    forget();
  };
  return { start: { ...start, memory: shared, futex }, memory, lookAtSlots: undefined, onLeave, agent: undefined };
}

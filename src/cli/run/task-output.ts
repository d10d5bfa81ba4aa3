// Loaded by Node before the program of a task that is a process's main thread (`--require`, by NODE_OPTIONS, so that the
// task's process.execArgv has only the user's options). Node writes to a pipe or socket asynchronously once that is full, and
// process.exit() drops what is left: 300 short lines fill the socket that stands for a pipe. Here a write returns once the
// system has all of it. It also hides the variables of the task's job.
import { isMainThread } from "node:worker_threads";

type Name = "stdout" | "stderr";

/** Sets a stream of the process to writes that block. Its handle is of Node's own. Files and terminals have such writes anyway. */
function block(name: Name): void {
  const property = Object.getOwnPropertyDescriptor(process, name);
  if (property?.get === undefined) return;
  Object.defineProperty(process, name, {
    ...property,
    // Only once the program asks for the stream: what Node loads for it takes 2 ms.
    get() {
      Object.defineProperty(process, name, property);
      const stream = process[name] as unknown as { _handle?: { setBlocking?(isBlocking: boolean): void } };
      stream._handle?.setBlocking?.(true);
      return stream;
    },
  });
}

/** Variables by which attach() in this process finds its job. */
const OWN = ["PAMIR_LAUNCHED", "PMI_FD", "PAMIR_KEY_FD", "PAMIR_LATER", "PAMIR_NODES", "PAMIR_NATS_EPOCH"];

/** Hides them until attach(), which removes them: a process that the task has started before would take itself for the task. */
function hideOwn(): void {
  const { env } = process;
  const hidden = OWN.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  for (const name of OWN) delete env[name];
  const known = process as unknown as Record<symbol, () => void>;
  // The name stands in src/start/attach.ts, too.
  known[Symbol.for("pamir.task")] = () => {
    for (const [name, value] of hidden.splice(0)) env[name] = value;
  };
}

if (isMainThread) {
  // Processes that the task starts are ordinary ones. What follows this file's option is the user's.
  const rest = process.env.NODE_OPTIONS?.replace(/^--require "(?:[^"\\]|\\.)*" ?/, "");
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
  hideOwn();
  block("stdout");
  block("stderr");
}

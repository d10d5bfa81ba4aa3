// Loaded by Node before the program of a task that is a process's main thread (`--require`, by NODE_OPTIONS, so that the
// task's process.execArgv has only the user's options). Node writes to a pipe or socket asynchronously once that is full, and
// process.exit() drops what is left: 300 short lines fill the socket that stands for a pipe. Here a write returns once the
// system has all of it.
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

if (isMainThread) {
  // Processes that the task starts are ordinary ones. What follows this file's option is the user's.
  const rest = process.env.NODE_OPTIONS?.replace(/^--require "(?:[^"\\]|\\.)*" ?/, "");
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
  block("stdout");
  block("stderr");
}

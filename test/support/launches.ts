// launch() in other surroundings: on a system where processes share no memory, and with processes of two versions of Node.
import type { WorkerOptions } from "node:worker_threads";
import type { launch } from "pamir";

/** Path of a Node of another version. */
export const OTHER_NODE = process.env.PAMIR_OTHER_NODE;

/** Joins processes by a link, since this system seems not to share memory between them. */
export const linked =
  (by: typeof launch): typeof launch =>
  async (entry, options) => {
    const { platform } = process;
    Object.defineProperty(process, "platform", { value: "freebsd" });
    try {
      return await by(entry, options);
    } finally {
      Object.defineProperty(process, "platform", { value: platform });
    }
  };

/** Goes before the code of a job's monitor, which starts the processes: the first, third, … run the other Node. */
const IN_TURNS = `{
  const children = process.getBuiltinModule("node:child_process");
  const { spawn } = children;
  let started = 0;
  children.spawn = (program, ...given) =>
    spawn(program === process.execPath && started++ % 2 === 0 ? ${JSON.stringify(OTHER_NODE)} : program, ...given);
}
`;

/** Starts every other process by OTHER_NODE. */
export const mixed =
  (by: typeof launch): typeof launch =>
  async (entry, options) => {
    const threads = process.getBuiltinModule("node:worker_threads");
    const { Worker } = threads;
    threads.Worker = class extends Worker {
      constructor(source: string | URL, options: WorkerOptions = {}) {
        super(options.name === "pamir monitor" ? IN_TURNS + source : source, options);
      }
    };
    try {
      return await by(entry, options);
    } finally {
      threads.Worker = Worker;
    }
  };

// @ts-check
// Loaded into a launcher: kills it before it starts the process of this number, from 1, or just after that; or sends it another
// signal then.
const processes = require("node:child_process");

const [number, when, signal = "SIGKILL"] = (process.env.PAMIR_DIES ?? "").split(" ");
const spawn = /** @type {(...given: unknown[]) => unknown} */ (processes.spawn);
let started = 0;
Object.assign(processes, {
  /** @param {unknown[]} given */
  spawn(...given) {
    const isLast = ++started === Number(number);
    if (isLast && when === "before") process.kill(process.pid, signal);
    const child = spawn(...given);
    if (isLast) process.kill(process.pid, signal);
    return child;
  },
});

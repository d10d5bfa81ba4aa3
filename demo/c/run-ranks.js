// Runs a program as so many ranks, each a worker. The promise resolves with their exit codes.
import { launchProgram } from "pamir/c";

export function runRanks(program, { tasks, name, args, onLine, signal }) {
  return launchProgram(new URL("./rank-task.js", import.meta.url), {
    program, // where the binary lies, or its bytes
    tasks,
    name,
    args,
    onLine, // called with each line: { rank, stream, text }
    signal, // aborting it ends all ranks, also one that loops for ever
  });
}

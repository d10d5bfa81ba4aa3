// @ts-check
// A program for `pamir run` whose tasks handle the signal of their first argument. It says so by a pipe's end of its own output.
import { spawn } from "node:child_process";
import { attach } from "pamir";

const [signal, what] = process.argv.slice(2);
const client = await attach();
if (what === "child") {
  // Beside the task: `sleep` holds no output, and leads no group.
  const { pid } = spawn("sleep", ["1000"], { stdio: "ignore" });
  console.log(JSON.stringify({ task: client.task, pid }));
} else {
  process.on(/** @type {NodeJS.Signals} */ (signal), () => {
    console.log(`saves by ${signal}`);
    // As if it saved: the launcher gives it the time.
    setTimeout(() => process.exit(0), 300);
  });
  console.log(JSON.stringify({ task: client.task, pid: process.pid }));
}
setInterval(() => {}, 1000);

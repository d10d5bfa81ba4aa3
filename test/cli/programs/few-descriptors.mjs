// Launches two processes from a process that has few descriptors left: as many as its argument says.
import { closeSync, openSync } from "node:fs";
import { launch } from "../../../dist/index.js";

const opened = [];
try {
  for (;;) opened.push(openSync("/dev/null", "r"));
} catch {
  // This process has no more.
}
for (const descriptor of opened.splice(0, Number(process.argv[2]))) closeSync(descriptor);
const job = await launch(new URL("plain.js", import.meta.url), {
  tasks: 2,
  processes: 2,
  onExit() {},
  onError: "ignore",
});
const exits = await job.exited;
console.log(JSON.stringify(exits.flatMap(({ error }) => error ?? [])));

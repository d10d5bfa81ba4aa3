// @ts-check
// A program for `pamir run`: says what it was given, and then does what its first argument says, in task 1.
import { spawnSync } from "node:child_process";
import { writeSync } from "node:fs";
import { attach } from "pamir";

const [what] = process.argv.slice(2);

/** Blocks its thread for ever, and leaves the core to others. */
const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);

if (what === "never" || (what === "stuck" && process.env.PMI_RANK === "1")) {
  console.log(JSON.stringify({ pid: process.pid }));
  block();
}
if (what === "half" && process.env.PMI_RANK === "1") {
  // It begins to attach by descriptor 4 of its process, and goes no further.
  writeSync(4, "cmd=init pmi_version=1 pmi_subversion=1\n");
  block();
}
const client = await attach();
const context = client.createContext();
let came = 0;
context.dispatch(1, () => {
  came++;
});
let heard = 0;
context.dispatch(2, () => {
  heard++;
});
for (let to = 0; to < client.size; to++) {
  await context.sendWhenRoom({ to, dispatch: 1, payload: new Int32Array([client.task]) });
}
await context.progress({ timeout: 60_000 });
while (came < client.size) await context.progress({ timeout: 60_000 });
// What task 1 has sent would go with it, as far as it has not arrived.
if (client.size > 1) context.sendImmediate(1, 2, null, new Int32Array(1));
while (client.task === 1 && heard < client.size) await context.progress({ timeout: 60_000 });
// Before the test hears of this task, and sends it a signal.
if (process.env.PAMIR_X === "stubborn" && client.task === 1) process.on("SIGTERM", () => {});
console.log(
  JSON.stringify({ task: client.task, pid: process.pid, args: process.argv.slice(2), x: process.env.PAMIR_X }),
);
if (what === "exit" && client.task === 1) process.exit(7);
if (what === "flood" && client.task === 1) {
  process.stdout.write(Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join(""), () => process.exit(7));
  await new Promise(() => {});
}
if (what === "throw" && client.task === 1) throw new RangeError("on purpose");
if (what === "kill" && client.task === 1) process.kill(process.pid, "SIGKILL");
if (what === "block" && client.task === 1) spawnSync("sleep", ["100"], { stdio: "ignore" });
// Its child ignores the signals that end a job.
const ignoring = ["-c", 'trap "" HUP INT TERM; exec sleep 100'];
if (what === "stubborn block" && client.task === 1) spawnSync("sh", ignoring, { stdio: "ignore" });
if (what === "hang" || what === "block" || what === "stubborn block") context.advanceUntil(() => false);
if (what === "halves") process.stdout.write("no end of line");
await context.drain();
client.close();

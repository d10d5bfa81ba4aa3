// @ts-check
// A program for `pamir run`: task 1 prints lines and a part of one, and ends, while a child of it goes on and holds its output.
// The other tasks go on.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { attach } from "pamir";

const [how, group, lines] = process.argv.slice(2);
const client = await attach();
if (client.task === 1) {
  const child = spawn("sleep", ["1000"], { stdio: ["ignore", "inherit", "inherit"], detached: group === "other" });
  await once(child, "spawn");
  const text = Array.from({ length: Number(lines) }, (_, i) => `line ${i}\n`).join("");
  await new Promise((resolve) => process.stdout.write(`${text}no end`, resolve));
  if (how === "exit") process.exit(3);
  process.kill(process.pid, how);
}
setInterval(() => {}, 1000);

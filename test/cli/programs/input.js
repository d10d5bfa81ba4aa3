// @ts-check
// A program for `pamir run` whose tasks read standard input, or not, as its first argument says.
import { setTimeout } from "node:timers/promises";
import { attach } from "pamir";

const [what, again] = process.argv.slice(2);
const client = await attach();
// For `pamir run --restart`.
if (again === "again" && client.task === 0) process.exit(5);
const { stdin } = process;
if (what === "count") {
  let bytes = 0;
  let sum = 0;
  for await (const piece of stdin) {
    bytes += piece.length;
    for (const byte of piece) sum = (sum * 31 + byte) % 65_521;
    // Slower than what comes.
    if (bytes < 200_000) await setTimeout(1);
  }
  console.log(`${bytes} bytes, ${sum}`);
} else if (what === "first") {
  for await (const piece of stdin) {
    console.log(`got ${piece}`);
    break;
  }
} else if (what === "pause") {
  stdin.setEncoding("utf8").on("data", (text) => {
    console.log(`got ${text}`);
    stdin.pause();
  });
  if (client.task !== 0) console.log("nothing");
} else console.log(`not read by ${client.task}`);
client.close();

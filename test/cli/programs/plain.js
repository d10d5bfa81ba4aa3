// @ts-check
// A program for `pamir run` that does not attach: says where it is, and what comes by its standard input; or, if it is told to
// count, how many bytes come after a while.
import { setTimeout } from "node:timers/promises";

if (process.argv[2] === "count") {
  if (process.env.PMI_RANK !== "1") {
    await setTimeout(200);
    let bytes = 0;
    for await (const part of process.stdin) bytes += part.length;
    console.log(`${bytes} bytes`);
  }
} else {
  console.log(`in ${process.cwd()}, NAME=${process.env.NAME}`);
  process.stdin.on("data", (text) => console.log(`got ${text}`)).on("end", () => console.log("end"));
}

// Writes 300 lines to each output, then one of 1,000,000 characters, and ends at once in a manner. It never attaches.
const [manner] = process.argv.slice(2);
for (let line = 0; line < 300; line++) {
  console.log(`out ${line}`);
  console.error(`err ${line}`);
}
console.log("x".repeat(1_000_000));
if (manner === "throw") throw new Error("the last word");
if (manner === "abort") process.abort();
if (manner === "kill") process.kill(process.pid, "SIGKILL");
process.exit(0);

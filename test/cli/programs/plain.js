// @ts-check
// A program for `pamir run` that does not attach: says where it is, and what comes by its standard input.
console.log(`in ${process.cwd()}, NAME=${process.env.NAME}`);
process.stdin.on("data", (text) => console.log(`got ${text}`)).on("end", () => console.log("end"));

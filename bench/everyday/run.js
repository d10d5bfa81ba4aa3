// @ts-check
// Runs one program of this folder in a process of its own and prints its result as JSON.
//   node bench/everyday/run.js NAME OPTIONS
import { argv } from "node:process";

const [, , name, options = "{}"] = argv;
const { run } = await import(`./${name}.js`);
console.log(JSON.stringify(await run(JSON.parse(options))));
process.exit();

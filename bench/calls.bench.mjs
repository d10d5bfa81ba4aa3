// @ts-check
// Calls beside those of other packages: by numbers and ports (calls/direct.mjs), then by name, with any value (calls/pool.mjs).
//   node bench/calls.bench.mjs [--quick]
import { compareCalls } from "./calls/direct.mjs";
import { comparePools } from "./calls/pool.mjs";

const quick = process.argv.includes("--quick");
await compareCalls(quick);
await comparePools(quick);

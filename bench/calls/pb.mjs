import { comparePools } from "/work/t/pool/bench/calls/pool.mjs";

await comparePools(process.argv.includes("--quick"));
process.exit();

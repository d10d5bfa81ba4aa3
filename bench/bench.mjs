// npm run bench -- [NAME] [OPTION]…: one benchmark by name, or all of `pamir perf`, the kernels and sizes (run.mjs).
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SUFFIX = ".bench.mjs";
const folder = fileURLToPath(new URL(".", import.meta.url));
const names = readdirSync(folder)
  .filter((file) => file.endsWith(SUFFIX))
  .map((file) => file.slice(0, -SUFFIX.length))
  .sort();

const [name] = process.argv.slice(2);
if (name === "--help" || name === "-h") {
  console.log(
    "npm run bench -- [NAME] [OPTION]…: one benchmark, or without a name all of pamir perf, the kernels and sizes\n",
  );
  for (const each of names) {
    // Its comment at the head says what it measures.
    const head = readFileSync(`${folder}${each}${SUFFIX}`, "utf8").match(/^(\/\/ (?!@ts-check).*\n)+/m)?.[0] ?? "";
    const [line] = head
      .replaceAll("\n// ", " ")
      .replace("// ", "")
      .replace(/^npm run \S+ -- .*?: /, "")
      .split(/[.:;](?:\s|$)/);
    console.log(`  ${each.padEnd(12)} ${line}`);
  }
} else if (name === undefined || name.startsWith("-")) {
  await import("./run.mjs");
} else if (names.includes(name)) {
  // As if it had been called itself.
  process.argv.splice(1, 2, `${folder}${name}${SUFFIX}`);
  await import(`./${name}${SUFFIX}`);
} else {
  console.error(
    `there is no benchmark ${JSON.stringify(name)}: ${names.join(", ")}; without a name, all of pamir perf`,
  );
  process.exitCode = 2;
}

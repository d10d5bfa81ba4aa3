// @ts-check
// A program whose task says with what it was started, and what processes and threads see that it starts.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { attach, launch } from "pamir";

const [role, ...how] = process.argv.slice(2);
const own = fileURLToPath(import.meta.url);

/** @param {string} when @returns {string} what a process with the same options says */
function child(when) {
  const { stdout } = spawnSync(process.execPath, [...process.execArgv, own, "child"], { encoding: "utf8" });
  return `${when} ${stdout.trim()}`;
}

if (role === "child") {
  const code = await attach().then(
    () => "attached",
    (/** @type {{ code: string }} */ { code }) => code,
  );
  console.log(JSON.stringify([code, process.execArgv]));
  process.exit();
} else if (role === "launch") {
  const processes = how[0] === "threads" ? undefined : Number(how[0]);
  const job = await launch(new URL(import.meta.url), {
    tasks: 2,
    processes,
    workerOptions: { argv: ["task", "more"] },
  });
  await job.exited;
} else {
  const before = child("before");
  const client = await attach();
  if (client.task === 0) {
    const { execArgv, argv, argv0 } = process;
    console.log(JSON.stringify({ execArgv, argv: argv.slice(1), argv0 }));
    console.log(before);
    console.log(child("after"));
    const worker = new Worker('console.log("thread", JSON.stringify(process.execArgv))', { eval: true });
    await new Promise((resolve) => worker.once("exit", resolve));
  }
  client.close();
}

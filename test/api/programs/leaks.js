// @ts-check
// A task of a linked job that has a key, and writes down all that a program, its children and its reports can show: the tests look
// for the key in it.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { inspect } from "node:util";
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
context.dispatch(1, () => {
  throw new Error("refused");
});
const other = (client.task + 1) % client.size;
const said = [];
const patience = { timeout: 60_000 };
said.push(
  await context.call(other, 1, null, patience).catch((error) => inspect(error, { showHidden: true, depth: 9 })),
);
said.push(inspect(client, { showHidden: true, depth: 9 }), inspect(context, { showHidden: true, depth: 9 }));
said.push(inspect(client.dump(), { depth: 9 }));
said.push(JSON.stringify(process.report.getReport()));
said.push(inspect([process.env, process.argv, process.execArgv]));
const shown =
  "process.stdout.write(JSON.stringify([process.env, process.argv, process.execArgv, process.report.getReport()]))";
said.push(spawnSync(process.execPath, ["-e", shown], { encoding: "utf8" }).stdout);
for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
  for (const file of ["cmdline", "environ"]) {
    try {
      said.push(readFileSync(`/proc/${pid}/${file}`, "latin1"));
    } catch {
      // It has ended, or belongs to another user.
    }
  }
}
process.stdout.write(`${said.join("\n")}\n`);
await context.call(other, 1, null, patience).catch(() => {});
client.close();

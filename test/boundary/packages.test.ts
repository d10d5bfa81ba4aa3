// Where the optional packages are looked up: beside pamir, and beside the program. Other users may write to the current folder,
// or to a folder above it: what they put there must not run.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, inject, it } from "vitest";

const root = realpathSync(mkdtempSync(join(inject("folder"), "packages-")));
/** Notes that a planted package was loaded. */
const marker = join(root, "loaded");
/** Where other users may write, and a folder below it. */
const shared = join(root, "shared");
const below = join(shared, "below/deeper");
const app = join(root, "app");
const cli = join(root, "package/dist/cli.js");

/** Imports an entry of the package's copy, which has no package beside it. */
const importOf = (entry: string): string =>
  `import(${JSON.stringify(pathToFileURL(join(root, "package/dist", entry)).href)})`;
/** A program that looks for ws. */
const SERVES = `${importOf("web.js")}.then(({ host }) => host({ listen: "ws://127.0.0.1:0/", insecure: true }))
  .then((hosted) => hosted.close(), (error) => console.log(error.message))`;
/** A program that looks for koffi. */
const STARTS = `${importOf("index.js")}
  .then(({ launch }) => launch(new URL("data:text/javascript,"), { tasks: 1, processes: 1, onError: "ignore" }))`;

function plant(folder: string, code: string): void {
  for (const name of ["koffi", "ws"]) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "index.js"), code);
  }
}

function run(args: readonly string[], input = ""): { stdout: string; stderr: string } {
  const { stdout, stderr, signal } = spawnSync(process.execPath, args, {
    cwd: below,
    input,
    encoding: "utf8",
    timeout: 60_000,
  });
  expect(signal, `${args.join(" ")} ends by itself: ${stdout}${stderr}`).toBe(null);
  return { stdout, stderr };
}

beforeAll(() => {
  for (const part of ["dist", "package.json"]) cpSync(part, join(root, "package", part), { recursive: true });
  mkdirSync(below, { recursive: true });
  for (const folder of [shared, below])
    plant(folder, `require("node:fs").appendFileSync(${JSON.stringify(marker)}, __filename);`);
  const koffi = JSON.stringify(fileURLToPath(import.meta.resolve("koffi")));
  plant(app, `console.log("loads", __filename);\nmodule.exports = require(${koffi});`);
  for (const name of ["data.txt", "data.js"]) writeFileSync(join(below, name), "data");
  for (const folder of [root, app]) writeFileSync(join(folder, "idle.js"), "");
  writeFileSync(join(app, "index.js"), SERVES);
  symlinkSync(join(app, "index.js"), join(below, "link.js"));
  const file = 'require("node:path").join(__dirname, "index.js")';
  writeFileSync(join(app, "thread.js"), `new (require("node:worker_threads").Worker)(${file});`);
});

describe("what other users put into the current folder, or above it, is not run by", () => {
  const data = join(below, "data.txt");
  const script = join(below, "data.js");
  const koffiMissing = /the package koffi is not installed/;
  const wsMissing = /the package ws is not installed/;
  const workerOf = (code: string, isCode: boolean): string =>
    `new (require("node:worker_threads").Worker)(${code}, { argv: [${JSON.stringify(data)}], eval: ${isCode} })`;

  it.each<[name: string, said: RegExp, args: string[], input?: string]>([
    ["pamir info", /koffi +not installed\n +ws +not installed/, [cli, "info"]],
    ["pamir run --processes", koffiMissing, [cli, "run", "-n", "1", "--processes", "1", join(root, "idle.js")]],
    ["launch() in node --eval, told a path there", koffiMissing, ["--eval", STARTS, script]],
    ["launch() in a program from standard input", koffiMissing, ["-", script], STARTS],
    ["host() in node --print, told a path there", wsMissing, ["--print", SERVES, script]],
    ["host() in a module from standard input", wsMissing, ["--input-type=module", "-", data], SERVES],
    ["host() in a worker of code", wsMissing, ["--eval", workerOf(JSON.stringify(SERVES), true), data]],
    [
      "host() in a worker of a data URL",
      wsMissing,
      ["--eval", workerOf(`new URL(${JSON.stringify(`data:text/javascript,${SERVES}`)})`, false), data],
    ],
  ])("%s", (_, said, args, input) => {
    const { stdout, stderr } = run(args, input);
    expect(stdout + stderr).toMatch(said);
    expect(existsSync(marker)).toBe(false);
  });
});

describe("a package beside the program is found, whatever the current folder is:", () => {
  it.each<[name: string, args: string[]]>([
    ["a file", [join(app, "index.js")]],
    ["a file without its extension", [join(app, "index")]],
    ["a folder", [app]],
    ["a symbolic link", [join(below, "link.js")]],
    ["the file of a worker", [join(app, "thread.js")]],
  ])("%s", (_, args) => {
    expect(run(args).stdout).toContain(`loads ${join(app, "node_modules/ws/index.js")}\n`);
    expect(existsSync(marker)).toBe(false);
  });

  it.runIf(process.platform === "linux")("the module that pamir run starts", () => {
    const { stdout, stderr } = run([cli, "run", "-n", "1", "--processes", "1", join(app, "idle.js")]);
    expect({ stdout, stderr }).toEqual({
      stdout: expect.stringContaining(`loads ${join(app, "node_modules/koffi/index.js")}\n`),
      stderr: "",
    });
  });
});

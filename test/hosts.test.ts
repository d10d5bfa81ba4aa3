// The hosts of the README's table, beside the Node that runs this: the README's example, and what the table promises, from
// the package as npm installs it. A host that is not there is not run, and said so; `npm run test:hosts` installs them all.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { freePort } from "./support/free-port.js";

/** The first program of that name, on the PATH or in the folder that `npm run test:hosts` made. */
function find(name: string): string | undefined {
  const { PAMIR_HOSTS, PATH = "" } = process.env;
  const folders = PAMIR_HOSTS === undefined ? PATH.split(delimiter) : [PAMIR_HOSTS];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

const HOSTS = [
  { name: "this Node", program: process.execPath, args: [] },
  { name: "Node 26", program: find("node26"), args: [] },
  // Not more permissions than it needs, and none that it would ask a user for.
  { name: "Deno", program: find("deno"), args: ["run", "--no-prompt", "--allow-read"] },
  { name: "Bun", program: find("bun"), args: [] },
];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(inject("folder"), "hosts-"));
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder]);
  const installed = join(folder, "node_modules", "pamir");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, packed.toString().trim()), "-C", installed, "--strip-components=1"]);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const [, example = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("README.md", "utf8")) ?? [];
  writeFileSync(join(folder, "readme.js"), example);
  for (const name of ["smoke.js", "processes.js"]) cpSync(`test/hosts/${name}`, join(folder, name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(program: string, args: readonly string[]): { status: number | null; lines: string[]; stderr: string } {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    encoding: "utf8",
    timeout: 100_000,
    env: { ...process.env, NO_COLOR: "1" },
  });
  return { status, lines: stdout.trimEnd().split("\n").sort(), stderr };
}

describe.each(HOSTS)("$name", ({ name, program, args }) => {
  if (program === undefined) {
    const isRequired = process.env.PAMIR_REQUIRE_ALL === "1";
    it.skipIf(!isRequired)("is here", () => expect.fail(`${name} is not here`));
    if (!isRequired) console.log(`not run: the README's example on ${name}, which is not here (npm run test:hosts)`);
    return;
  }

  it("runs the README's example, and says nothing else", () => {
    const lines = ["144", "499500 bytes"];
    expect(run(program, [...args, "readme.js"])).toEqual({ status: 0, lines, stderr: "" });
  });

  it("keeps what the table promises", () => {
    const { status, lines, stderr } = run(program, [...args, "smoke.js"]);
    const others = stderr.split("\n").filter((line) => /TypeError|NotCapable/.test(line));
    expect({ status, others }).toEqual({ status: 0, others: [] });
    expect(lines.filter((line) => !line.startsWith("ok: "))).toEqual([]);
    expect(lines).toHaveLength(8);
  });

  // Deno clones 1 MiB a second at most: the example gives that up after 20 s. Of 2 MiB the receiver has checked the words
  // before the sender's next frame, and answers twice at once.
  it.each(["2", "64"])("ends examples/frames.js of %s MiB", (mebibytes) => {
    const { status, lines } = run(program, [...args, "node_modules/pamir/examples/frames.js", mebibytes]);
    expect(status).toBe(0);
    for (const way of ["engine inline ", "engine thread ", "postMessage (clone) "]) {
      expect(lines.filter((line) => line.startsWith(way))).toHaveLength(1);
    }
  });
});

it.each(HOSTS.filter(({ name, program }) => name === "Node 26" && program !== undefined))(
  "$name: pamir stream finds files to stream",
  { timeout: 100_000 },
  ({ program = "" }) => {
    const { status, lines, stderr } = run(program, ["node_modules/pamir/dist/cli.js", "stream", "--quick"]);
    expect({ status, said: lines.join(" "), stderr }).toEqual({
      status: 0,
      said: expect.stringContaining("every SHA-256 equals that of the file"),
      stderr: expect.not.stringContaining("Error"),
    });
  },
);

describe("processes of Node 26 without koffi", () => {
  const newer = find("node26");
  if (newer === undefined || process.platform !== "linux") return;

  it.each([
    ["share a memory by node:ffi", [], false],
    ["are nodes if node:ffi is switched off, and say so", ["--no-experimental-ffi"], true],
  ])("%s", (_, options, areNodes) => {
    const cli = "node_modules/pamir/dist/cli.js";
    const { status, lines, stderr } = run(newer, [
      ...options,
      cli,
      "run",
      "-n",
      "4",
      "--processes",
      "2",
      "processes.js",
    ]);
    expect({ status, lines }).toEqual({
      status: 0,
      lines: [0, 1, 2, 3].map((task) => `[${task}] heard all 4, blocked and not`),
    });
    expect(stderr.includes("PAMIR_LINK")).toBe(areNodes);
  });
});

describe("processes of different versions of Node in one memory", () => {
  const newer = find("node26");
  if (newer === undefined || process.platform !== "linux") {
    const isRequired = process.env.PAMIR_REQUIRE_ALL === "1";
    it.skipIf(!isRequired)("are here", () => expect.fail("Node 26 is not here"));
    if (!isRequired) console.log("not run: processes of this Node and of Node 26 in one memory (npm run test:hosts)");
    return;
  }

  it.each([
    ["this Node makes the memory", [process.execPath, newer, process.execPath]],
    ["Node 26 makes the memory", [newer, process.execPath, newer]],
  ])("%s: all talk to each other, blocked or not, and leave", { timeout: 60_000 }, async (_, programs) => {
    const rendezvous = `127.0.0.1:${await freePort()}`;
    const given = { PAMIR_RENDEZVOUS: rendezvous, PAMIR_SIZE: `${programs.length}`, PAMIR_INSECURE: "1" };
    const all = programs.map(async (program, rank) => {
      const env = { ...process.env, ...given, PAMIR_RANK: `${rank}` };
      const child = spawn(program, ["test/api/programs/joined.js"], { env, timeout: 50_000 });
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
      return { code, err, said: JSON.parse(out || "{}") as object };
    });
    // Each gets the sum of all numbers.
    expect(await Promise.all(all)).toEqual(
      programs.map((_, task) => ({
        code: 0,
        err: "",
        said: expect.objectContaining({ task, size: 3, local: [0, 1, 2], sum: 3 }),
      })),
    );
  });
});

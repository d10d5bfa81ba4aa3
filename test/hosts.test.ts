// The hosts of the README's table, beside the Node that runs this: the README's example, and what the table promises, from
// the package as npm installs it. A host that is not there is not run, and said so; `npm run test:hosts` installs them all.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

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
  folder = mkdtempSync(join(tmpdir(), "pamir-hosts-"));
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder]);
  const installed = join(folder, "node_modules", "pamir");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, packed.toString().trim()), "-C", installed, "--strip-components=1"]);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const [, example = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("README.md", "utf8")) ?? [];
  writeFileSync(join(folder, "readme.js"), example);
  cpSync("test/hosts/smoke.js", join(folder, "smoke.js"));
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
    const lines = ["task 0 hears 43", "task 1 hears 42"];
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

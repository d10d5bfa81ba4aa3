// docs/machines.md: its files are written as they stand there, and each of its commands is run. Hosts are this one, by a real sshd;
// pods and services are processes with the variables that the files give them.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { cli, withoutWaits } from "../support/run-command.js";
import { SLURM, Slurm } from "../support/slurm.js";
import { find, SSHD, Sshd, script } from "../support/ssh.js";

const page = readFileSync("docs/machines.md", "utf8");
const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
  language: language as string,
  text: text as string,
}));
/** Files by the name in their first line; that line belongs to the page alone where "#!" has to come first. */
const files = new Map(
  blocks.flatMap(({ text }) => {
    const [, name, rest] = /^(?:\/\/|#) ([\w@]+\.\w+)\n([\s\S]*)$/.exec(text) ?? [];
    return name === undefined ? [] : [[name, rest as string] as const];
  }),
);
/** The lines of the sh blocks. */
const commands = blocks.flatMap(({ language, text }) => (language === "sh" ? text.trim().split("\n") : []));
const fileOf = (name: string): string => files.get(name) ?? expect.fail(`${name} is not in the page`);

/** The js block under a heading of the page. */
function recipe(heading: string): string {
  const section = page.split(`## ${heading}\n`)[1] ?? expect.fail(heading);
  return /```js\n([\s\S]*?)^```$/m.exec(section)?.[1] as string;
}

// In a folder of the project, so that the program finds the package by its name.
const folder = mkdtempSync(resolve(".tmp-machines-"));
const isRoot = process.getuid?.() === 0;
const env: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PAMIR|PMI|PMIX|MPI|OMPI|SLURM|RANK|WORLD|JOB_)/.test(name)),
  ),
  // What the machine of the test asks for: more tasks than processors, and root.
  OMPI_MCA_rmaps_base_oversubscribe: "1",
  SLURM_OVERCOMMIT: "1",
  SBATCH_OVERCOMMIT: "1",
  ...(isRoot && { OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1" }),
};
let sshd: Sshd | undefined;
let slurm: Slurm | undefined;

beforeAll(async () => {
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "hello.js"), recipe("The program"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  script(bin, "npx", `[ "$1" = pamir ] || exit 2\nshift\nexec "${process.execPath}" "${cli}" "$@"`);
  const mpirun = find("mpirun.openmpi");
  if (mpirun !== undefined) script(bin, "mpirun", `exec ${mpirun} "$@"`);
  if (SSHD !== undefined) {
    sshd = await Sshd.start();
    script(bin, "ssh", `exec ${sshd.rsh.replace(/^ssh/, find("ssh") as string)} "$@"`);
  }
  env.PATH = [bin, process.env.PATH].join(delimiter);
  if (SLURM !== undefined) {
    mkdirSync(join(folder, "slurm"));
    slurm = await Slurm.start(join(folder, "slurm"), env);
    env.SLURM_CONF = slurm.conf;
  }
});
afterAll(async () => {
  await sshd?.stop();
  await slurm?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The lines that the program prints, without labels, sorted. */
const linesOf = (output: string): string[] =>
  output
    .split("\n")
    .map((line) => line.replace(/^\[\d+\] /, ""))
    .filter((line) => line.startsWith("task "))
    .sort();
const right = (size: number): string[] =>
  Array.from({ length: size }, (_, task) => `task ${task} of ${size} heard from ${size}`);

/** What a command needs, by its first words. */
const NEEDS: readonly (readonly [RegExp, string | undefined])[] = [
  [/^npx pamir run --host/, SSHD],
  [/^mpiexec/, find("mpiexec.hydra")],
  [/^mpirun/, find("mpirun.openmpi")],
  [/^sbatch/, SLURM],
];
const isRequired = process.env.PAMIR_REQUIRE_LAUNCHERS === "1";

describe.skipIf(process.platform !== "linux")("docs/machines.md", { timeout: 300_000 }, () => {
  it("has a row for each variable that attach() reads, and for each option of PAMIR_OPTIONS", () => {
    const sources = [
      "bootstrap/environment",
      "bootstrap/key",
      "start/join/join-options",
      "start/join/introduce",
      "start/join/join",
      "start/join/by-launcher",
    ];
    const words = sources.flatMap((name) => readFileSync(`src/${name}.ts`, "utf8").match(/\bPAMIR_[A-Z_]+/g) ?? []);
    const errors = readFileSync("docs/errors.md", "utf8");
    // The code of the warning has a sentence there, not a heading.
    const variables = words.filter((word) => word !== "PAMIR_LINK" && !errors.includes(`### ${word}\n`));
    const [, keys = ""] =
      /const KEYS[^=]*= \{([^}]*)\}/.exec(readFileSync("src/start/join/join-options.ts", "utf8")) ?? [];
    const names = new Set([...variables, ...(keys.match(/\w+(?=: true)/g) ?? [])]);
    const rows = page.split("\n").filter((line) => line.startsWith("| `"));
    expect([...names].filter((name) => !rows.some((row) => row.includes(`\`${name}\``)))).toEqual([]);
    expect(names.size).toBeGreaterThan(20);
  });

  it("has the files and commands that are tested here", () => {
    expect([...files.keys()]).toEqual([
      "hello.js",
      "hosts.txt",
      "pamir.sbatch",
      "job.yaml",
      "pamir@.service",
      "server.js",
      "page.js",
    ]);
    expect(commands.length).toBeGreaterThan(8);
  });

  for (const command of commands) {
    const needs = NEEDS.find(([pattern]) => pattern.test(command));
    const isAbsent = needs !== undefined && needs[1] === undefined;
    if (isAbsent && !isRequired) console.log(`not run: ${command}: it is not installed`);
    it.skipIf(isAbsent && !isRequired)(command, () => {
      // A run may have this test alone.
      if (command.startsWith("mpirun")) writeFileSync(join(folder, "job.key"), randomBytes(32), { mode: 0o600 });
      const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8" });
      expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
      if (command.startsWith("(umask")) {
        expect(statSync(join(folder, "job.key"))).toMatchObject({ size: 32, mode: 0o100600 });
        return;
      }
      const output = command.startsWith("sbatch") ? readFileSync(join(folder, "pamir.out"), "utf8") : stdout;
      expect(linesOf(output)).toEqual(right(command.includes("--ppn 1") ? 2 : 4));
    });
  }

  /** Starts a process for each environment. */
  async function start(envs: readonly object[]): Promise<string[]> {
    const outputs = envs.map(async (one) => {
      const child = spawn(process.execPath, ["hello.js"], { cwd: folder, env: { ...env, ...one }, timeout: 100_000 });
      let [output, errors] = ["", ""];
      child.stdout.on("data", (text) => {
        output += text;
      });
      child.stderr.on("data", (text) => {
        errors += text;
      });
      await new Promise((done) => child.on("close", done));
      return withoutWaits(errors) === "" ? output : `${output}task error: ${errors}\n`;
    });
    return linesOf((await Promise.all(outputs)).join(""));
  }

  it("Kubernetes: pods with the variables of job.yaml", async () => {
    const yaml = fileOf("job.yaml");
    const variables = Object.fromEntries(
      [...yaml.matchAll(/\{ name: (PAMIR_\w+), value: "([^"]+)" \}/g)].map(([, name, value]) => [
        name,
        value as string,
      ]),
    );
    const size = Number(/completions: (\d+)/.exec(yaml)?.[1]);
    const [, job] = /name: (\w+) \}\nspec:\n {2}completionMode: Indexed/.exec(yaml) ?? [];
    const [, service] = /subdomain: (\w+)/.exec(yaml) ?? [];
    expect(variables.PAMIR_SIZE).toBe(`${size}`);
    expect(variables.PAMIR_RENDEZVOUS).toMatch(new RegExp(`^${job}-0\\.${service}:\\d+$`));
    expect(yaml).toContain(`metadata: { name: ${service} }`);
    const key = join(folder, "pod.key");
    writeFileSync(key, randomBytes(32), { mode: 0o400 });
    expect(yaml).toContain("defaultMode: 0400");
    const port = await freePort();
    const pods = Array.from({ length: size }, (_, index) => ({
      ...variables,
      PAMIR_RENDEZVOUS: `localhost:${port}`,
      PAMIR_KEY_FILE: key,
      JOB_COMPLETION_INDEX: `${index}`,
      HOSTNAME: `${job}-${index}`,
      PAMIR_NODE: `${index}`,
    }));
    expect(await start(pods)).toEqual(right(size));
  });

  it("systemd: services with the variables of pamir@.service, which systemd finds right", async () => {
    const unit = fileOf("pamir@.service");
    const port = await freePort();
    const services = [0, 1].map((instance) => {
      const words = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, text]) => (text as string).split(" "));
      const variables = Object.fromEntries(
        words.map(
          (word) => word.replaceAll("%i", `${instance}`).replaceAll("%d", folder).split("=") as [string, string],
        ),
      );
      expect(variables.PAMIR_KEY_FILE).toBe(join(folder, "job.key"));
      return { ...variables, PAMIR_RENDEZVOUS: `localhost:${port}`, PAMIR_NODE: `${instance}` };
    });
    writeFileSync(join(folder, "job.key"), randomBytes(32), { mode: 0o600 });
    expect(await start(services)).toEqual(right(2));
    const verify = find("systemd-analyze");
    if (verify === undefined) return;
    const path = join(folder, "pamir@0.service");
    // The program and its folder are those of the page's reader.
    writeFileSync(path, unit.replace("/usr/bin/node", "/bin/true").replace("/srv/hello", "/"));
    const { stdout, stderr } = spawnSync(verify, ["verify", path], { encoding: "utf8" });
    expect(`${stdout}${stderr}`.split("\n").filter((line) => line.includes("pamir@0.service"))).toEqual([]);
  });
});

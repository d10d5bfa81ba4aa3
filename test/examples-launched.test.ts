// Programs of examples/ under the launchers of processes: the answers are those of threads. A launcher that is not installed is not
// run, and said so; PAMIR_REQUIRE_LAUNCHERS=1 makes that a failure.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { freePort } from "./support/free-port.js";
import { linesOf, newJob, startLauncher } from "./support/nats-launcher.js";
import { NATS_SERVER, NatsServer } from "./support/nats-server.js";
import { cli, withoutWaits } from "./support/run-command.js";
import { find, SSHD, Sshd } from "./support/ssh.js";

const folder = mkdtempSync(join(inject("folder"), "launched-"));
const keyFile = join(folder, "key");
writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
let sshd: Sshd | undefined;
beforeAll(async () => {
  if (SSHD !== undefined) sshd = await Sshd.start();
});
afterAll(async () => {
  await sshd?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What no process of a test inherits: this test may itself run under a launcher. */
const cleanEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(PAMIR|PMI|PMIX|MPI|OMPI|SLURM|RANK|WORLD|JOB_)/.test(name)),
);

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function launched(command: string, args: readonly string[], env: object = {}): Ended {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    timeout: 100_000,
    env: { ...cleanEnv, ...env },
  });
  return { status, stdout, stderr: withoutWaits(stderr) };
}

/** The pods of an Indexed Job: each is a node, and the first of them is found by a name. */
async function pods(tasks: number, program: string): Promise<Ended> {
  const port = await freePort();
  const ends = Array.from({ length: tasks }, async (_, index) => {
    const env = {
      ...cleanEnv,
      JOB_COMPLETION_INDEX: `${index}`,
      HOSTNAME: `work-${index}`,
      PAMIR_SIZE: `${tasks}`,
      PAMIR_RENDEZVOUS: `localhost:${port}`,
      PAMIR_KEY_FILE: keyFile,
      PAMIR_NODE: `${index}`,
    };
    const child = spawn(process.execPath, [program], { env, timeout: 100_000 });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (text) => {
      stdout += text;
    });
    child.stderr.on("data", (text) => {
      stderr += text;
    });
    const status = await new Promise<number | null>((done) => child.on("close", done));
    return { status, stdout, stderr: withoutWaits(stderr) };
  });
  const all = await Promise.all(ends);
  return {
    status: all.find(({ status }) => status !== 0)?.status ?? 0,
    stdout: all.map(({ stdout }) => stdout).join(""),
    stderr: all.map(({ stderr }) => stderr).join(""),
  };
}

const HYDRA = find("mpiexec.hydra");
const OPEN_MPI = find("mpirun.openmpi");
const isRoot = process.getuid?.() === 0;

interface Way {
  readonly name: string;
  /** What has to be installed; undefined: it is not. */
  readonly needs: string | undefined;
  readonly run: (tasks: number, program: string) => Ended | Promise<Ended>;
}

const WAYS: readonly Way[] = [
  {
    name: "mpiexec.hydra, PMI_FD",
    needs: HYDRA,
    run: (tasks, program) => launched(HYDRA as string, ["-n", `${tasks}`, process.execPath, program]),
  },
  {
    name: "mpiexec.hydra, PMI_PORT",
    needs: HYDRA,
    run: (tasks, program) => launched(HYDRA as string, ["-pmi-port", "-n", `${tasks}`, process.execPath, program]),
  },
  {
    name: "mpirun of Open MPI",
    needs: OPEN_MPI,
    run(tasks, program) {
      const flags = ["--oversubscribe", ...(isRoot ? ["--allow-run-as-root"] : [])];
      const args = [...flags, "-n", `${tasks}`, process.execPath, program];
      return launched(OPEN_MPI as string, args, { PAMIR_KEY_FILE: keyFile });
    },
  },
  {
    name: "pamir run --hosts, by ssh",
    needs: SSHD,
    run(tasks, program) {
      const hosts = `one:${tasks / 2},two:${tasks / 2}`;
      return launched(process.execPath, [
        cli,
        "run",
        "--hosts",
        hosts,
        "--rsh",
        sshd?.rsh as string,
        "--no-labels",
        program,
      ]);
    },
  },
  { name: "a simulated Indexed Job of Kubernetes", needs: "nothing", run: pods },
];

/** A program, and what task 0 or the last one prints. */
const PROGRAMS: readonly (readonly [string, string])[] = [
  ["p2p.js", "corner: 41958 as it must be, \\d+ MFlop/s"],
  ["stencil.js", "norm: 42 as it must be, \\d+ MFlop/s"],
  ["transpose.js", "sum of errors: 0 as it must be, \\d+ MB/s"],
  ["nstream.js", "checksum: 336000000 as it must be, \\d+ MB/s"],
  ["stream.js", "4194304 bytes to each: every SHA-256 is right, \\d+ MB/s"],
];
/** Numbers of tasks: each program has another one in each way. */
const SIZES = [2, 4, 6, 8, 16];
/** A pipeline hands on 20,000 rows: through 16 processes on two cores, that took 13 s of processor time. */
const PIPELINE_SIZES = [2, 4, 3, 6, 4];

const isRequired = process.env.PAMIR_REQUIRE_LAUNCHERS === "1";
for (const [place, { name, needs, run }] of WAYS.entries()) {
  if (process.platform !== "linux") continue;
  if (needs === undefined && !isRequired) {
    console.log(`not run: examples under ${name}, which is not installed`);
    continue;
  }
  describe(name, { timeout: 120_000 }, () => {
    it.skipIf(needs !== undefined)("is installed", () => expect.fail(`${name} is not installed`));
    const rows = PROGRAMS.map(([file, line], i) => {
      const sizes = file === "p2p.js" ? PIPELINE_SIZES : SIZES;
      return [file, sizes[(place + i) % sizes.length] as number, line] as const;
    });
    it.skipIf(needs === undefined).each(rows)("%s, %d tasks", async (file, tasks, line) => {
      const { status, stdout, stderr } = await run(tasks, resolve("examples", file));
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(new RegExp(`^tasks: ${tasks}, ${line}\\n$`));
    });
  });
}

/** Programs between nodes at a NATS server: messages that await each other, long arrays, many short updates. */
const NODES_PROGRAMS: typeof PROGRAMS = [
  ...PROGRAMS.filter(([file]) => file === "stencil.js" || file === "transpose.js"),
  ["random.js", "wrong words: 0 as it must be, [\\d.]+ million updates/s"],
];
/** By what packets go. */
const NATS_WAYS: readonly (readonly [string, Record<string, string>])[] = [
  ["through the server", { PAMIR_NATS_DIRECT: "0" }],
  ["the short way", {}],
];

describe.skipIf(NATS_SERVER === undefined)("pamir run --nats", { timeout: 120_000 }, async () => {
  const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
  afterAll(() => server?.close());
  // Each program has two nodes in one way, and four in the other.
  const rows = NODES_PROGRAMS.flatMap(([file, line], i) =>
    NATS_WAYS.map(([way, env], place) => ({ file, line, nodes: (place + i) % 2 === 0 ? 2 : 4, way, env })),
  );
  it.each(rows)("$file, $nodes nodes, $way", async ({ file, line, nodes, env }) => {
    const job = newJob();
    // Of two nodes, each has two tasks, so that messages also stay in a memory.
    const args = ["--nodes", `${nodes}`, "-n", "4", "--no-labels", resolve("examples", file)];
    const all = Array.from({ length: nodes }, () => startLauncher(server?.url as string, job, args, env));
    const ended = await Promise.all(all.map((one) => one.ended));
    expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
    expect(linesOf(...ended.map(({ out }) => out)).join("\n")).toMatch(new RegExp(`^tasks: 4, ${line}$`));
  });
});

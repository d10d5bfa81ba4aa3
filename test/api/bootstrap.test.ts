// Processes find each other under real launchers, and under simulated ones: N processes exchange their addresses, and each
// prints what it got. A launcher that is not installed is not run, and said so; PAMIR_REQUIRE_LAUNCHERS=1 makes that a failure.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { delimiter, join } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { makeKey } from "../../src/bootstrap/key.js";
import { StreamLines } from "../../src/bootstrap/lines.js";
import { PmiServer } from "../../src/bootstrap/pmi/pmi-server.js";
import { PlainFraming } from "../../src/bootstrap/pmi/pmi-wire.js";
import { bundle } from "../support/bundle.js";
import { freePort } from "../support/free-port.js";
import { SLURM, Slurm } from "../support/slurm.js";
import { script } from "../support/ssh.js";

const isRequired = process.env.PAMIR_REQUIRE_LAUNCHERS === "1";
const find = (name: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));

const HYDRA = find("mpiexec.hydra");
const OPEN_MPI = find("mpirun.openmpi");
const MPICC = find("mpicc.mpich");

/** A suite over a program that may be absent. */
function describeWith(what: string, program: string | undefined, suite: (program: string) => void): void {
  if (program !== undefined) {
    describe(what, () => suite(program));
    return;
  }
  if (!isRequired) console.log(`not run: the bootstrap under ${what}, which is not installed`);
  describe.skipIf(!isRequired)(what, () => it("is installed", () => expect.fail(`${what} is not installed`)));
}

interface Said {
  readonly rank: number;
  readonly code?: string;
  readonly message?: string;
  readonly [name: string]: unknown;
}

let program: string;
/** A program that calls attach(). */
const attaching = fileURLToPath(new URL("programs/joined.js", import.meta.url));
const folder = mkdtempSync(join(inject("folder"), "bootstrap-"));
/** What no process of a test inherits: this test may itself run under a launcher. */
const cleanEnv = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(PAMIR|PMI|PMIX|MPI|OMPI|SLURM|RANK|WORLD|LOCAL|MASTER|TORCH)/.test(name),
  ),
);
const children = new Set<ChildProcess>();

beforeAll(async () => {
  program = (await bundle(new URL("programs/bootstrap.ts", import.meta.url))).pathname;
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

function keyFile(): string {
  const path = join(folder, `key-${Math.trunc(performance.now() * 1000)}`);
  writeFileSync(path, makeKey());
  chmodSync(path, 0o600);
  return path;
}

/** The lines of JSON of some processes, by rank. */
function linesOf(output: string): Said[] {
  const lines = output.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as Said).sort((a, b) => a.rank - b.rank);
}

/** What the processes of a launcher print. */
function launch(launcher: string, args: readonly string[], env: object = {}): Said[] {
  const { status, stdout, stderr } = spawnSync(launcher, args, {
    encoding: "utf8",
    timeout: 100_000,
    env: { ...cleanEnv, ...env },
  });
  expect({ status, stderr, stdout: status === 0 ? "" : stdout }).toEqual({ status: 0, stderr: "", stdout: "" });
  return linesOf(stdout);
}

/** Starts a process of its own for each environment. @returns what all of them print */
async function start(
  envs: readonly object[],
  options: object = {},
  stdio: readonly ("pipe" | "ignore")[] = [],
): Promise<Said[]> {
  const outputs = envs.map((env) => startOne(env, options, stdio).output);
  return (await Promise.all(outputs)).flatMap(linesOf).sort((a, b) => a.rank - b.rank);
}

function startOne(env: object, options: object, stdio: readonly ("pipe" | "ignore")[] = []) {
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit", ...stdio],
    env: { ...cleanEnv, ...env },
  });
  children.add(child);
  const output = (async () => {
    let text = "";
    for await (const part of child.stdout as AsyncIterable<Buffer>) text += part;
    return text;
  })();
  return { child, output };
}

/** All processes got all addresses and long values, the same key or none, and hand on no variable of the key, and no descriptor that they have. */
function expectRight(said: readonly Said[], size: number, launcher: string, hasKey: boolean): void {
  const addresses = Array.from({ length: size }, (_, rank) => `192.0.2.${rank}:${7000 + rank}`);
  const fingerprint = hasKey ? expect.stringMatching(/^[\da-f]{16}$/) : null;
  const right = { size, launcher, addresses, longRight: size, isMissing: true, fingerprint, inherited: [] };
  expect(said).toEqual(Array.from({ length: size }, (_, rank) => expect.objectContaining({ rank, ...right })));
  expect(new Set(said.map((one) => one.fingerprint)).size).toBe(1);
}

describeWith("Hydra (mpiexec.hydra)", HYDRA, (hydra) => {
  it.each([
    ["PMI_FD", [], 2],
    ["PMI_FD", [], 6],
    ["PMI_PORT", ["-pmi-port"], 3],
    ["PMI_PORT", ["-pmi-port"], 5],
  ] as const)("by %s: %j, %d processes; rank 0 makes the key", (_, flags, size) => {
    const said = launch(hydra, [...flags, "-n", `${size}`, process.execPath, program, '{"longValue":3000}']);
    expectRight(said, size, "pmi", true);
    expect(said.map(({ localRank, localSize }) => [localRank, localSize])).toEqual(
      said.map(({ rank }) => [rank, size]),
    );
  });

  it("a key file that all have is used, and never sent", () => {
    const args = ["-n", "3", process.execPath, program, "{}"];
    expectRight(launch(hydra, args, { PAMIR_KEY_FILE: keyFile() }), 3, "pmi", true);
  });

  it("the longest value, by both ways", () => {
    for (const flags of [[], ["-pmi-port"]]) {
      const args = [...flags, "-n", "2", process.execPath, program, '{"longValue":65536}'];
      expectRight(launch(hydra, args), 2, "pmi", true);
    }
  });
});

describeWith("Open MPI (mpirun.openmpi)", OPEN_MPI, (mpirun) => {
  const flags = [...(process.getuid?.() === 0 ? ["--allow-run-as-root"] : []), "--oversubscribe"];

  it("on one host, by a port that follows from the job", () => {
    const args = [...flags, "-n", "3", process.execPath, program, '{"longValue":3000}'];
    const said = launch(mpirun, args, { PAMIR_KEY_FILE: keyFile() });
    expectRight(said, 3, "openmpi", true);
    expect(said.map(({ localRank, localSize }) => [localRank, localSize])).toEqual(said.map(({ rank }) => [rank, 3]));
  });

  it("by a rendezvous that the user names, without a key if asked for", async () => {
    const rendezvous = `127.0.0.1:${await freePort()}`;
    const args = [...flags, "-n", "2", "-x", "PAMIR_RENDEZVOUS", process.execPath, program, '{"insecure":true}'];
    expectRight(launch(mpirun, args, { PAMIR_RENDEZVOUS: rendezvous }), 2, "openmpi", false);
  });

  /** Arguments for two hosts of two processes. Both are this machine: the remote shell runs its command here. */
  function onHosts(noted: string, ...more: string[]): string[] {
    const lines = [`echo "$*" >> ${noted}`, 'while :; do case "$1" in -*) shift ;; *) break ;; esac; done'];
    // Each host has a temporary folder: the daemons of two hosts that begin at once made the same one, and one failed.
    const own = [`export TMPDIR=${folder}/host-$1`, 'mkdir -p "$TMPDIR"'];
    const shell = script(folder, "agent", [...lines, ...own, "shift", 'exec sh -c "$*"'].join("\n"));
    // Open MPI 4.1 places a map of the machine by chance: two of its daemons on one machine crashed, 1 in 6 times.
    const noMap = ["--mca", "rtc", "^hwloc"];
    const hosts = [...noMap, "--mca", "plm_rsh_agent", shell, "-H", "one:2,two:2", "-n", "4", "-x", "PAMIR_KEY_FILE"];
    return [...flags, ...hosts, ...more, process.execPath, program, '{"longValue":3000}'];
  }

  it("on two hosts, which its remote shell reaches, by a rendezvous", async () => {
    const noted = join(folder, "agent-noted");
    const env = { PAMIR_KEY_FILE: keyFile(), PAMIR_RENDEZVOUS: `127.0.0.1:${await freePort()}` };
    const said = launch(mpirun, onHosts(noted, "-x", "PAMIR_RENDEZVOUS"), env);
    expectRight(said, 4, "openmpi", true);
    const places = said.map(({ localRank, localSize }) => [localRank, localSize]);
    expect(places.sort()).toEqual([0, 0, 1, 1].map((rank) => [rank, 2]));
    const reached = readFileSync(noted, "utf8").trim().split("\n");
    expect(reached.map((line) => line.split(" ")[0]).sort()).toEqual(["one", "two"]);
  });

  it("on two hosts without a rendezvous: the error names the variable", () => {
    const env = { ...cleanEnv, PAMIR_KEY_FILE: keyFile() };
    const { status, stdout } = spawnSync(mpirun, onHosts(join(folder, "agent-alone")), {
      encoding: "utf8",
      timeout: 100_000,
      env,
    });
    const text =
      "the variable PAMIR_RENDEZVOUS is not set; with Open MPI, it has to be host:port on the host of rank 0";
    expect(linesOf(stdout)[0]).toMatchObject({ code: "PAMIR_LAUNCHER", message: expect.stringContaining(text) });
    expect(status).not.toBe(0);
  });
});

describeWith("Slurm (slurmctld, slurmd, srun)", SLURM, () => {
  let slurm: Slurm | undefined;

  beforeAll(async () => {
    slurm = await Slurm.start(folder, cleanEnv);
  });
  afterAll(() => slurm?.stop());

  function run(size: number, mpi: string, env: object = {}): Said[] {
    const args = [
      `--mpi=${mpi}`,
      "--quiet",
      "--overcommit",
      "-n",
      `${size}`,
      process.execPath,
      program,
      '{"longValue":3000}',
    ];
    return launch(find("srun") as string, args, { ...env, SLURM_CONF: slurm?.conf });
  }

  it("by its PMI-1, also with a key file", () => {
    for (const env of [{}, { PAMIR_KEY_FILE: keyFile() }]) {
      const said = run(3, "pmi2", env);
      expectRight(said, 3, "pmi", true);
      expect(said.map(({ localRank, localSize }) => [localRank, localSize])).toEqual(said.map(({ rank }) => [rank, 3]));
    }
  });

  it("one never comes: the other says that it waits, for how many, and how long", () => {
    const only = 'test "$SLURM_PROCID" = 1 && exec sleep 60; exec "$0" "$1"';
    const command = ["sh", "-c", only, process.execPath, attaching];
    const flags = ["--mpi=pmi2", "--quiet", "--overcommit", "--kill-on-bad-exit=1", "-n", "2"];
    const { status, stderr } = spawnSync(find("srun") as string, [...flags, ...command], {
      encoding: "utf8",
      timeout: 100_000,
      env: { ...cleanEnv, SLURM_CONF: slurm?.conf, PAMIR_START_TIMEOUT: "7" },
    });
    expect(status).toBeGreaterThan(0);
    expect(stderr).toMatch(
      /^pamir: for [56] of 7 s, attach\(\) waits for a barrier of 2 processes at the PMI server at /m,
    );
    expect(stderr).toContain("PAMIR_TIMEDOUT");
  });

  it("by a rendezvous on the first host of the step", () => {
    const said = run(4, "none", { PAMIR_KEY_FILE: keyFile() });
    expectRight(said, 4, "slurm", true);
    expect(said.map(({ localRank, localSize }) => [localRank, localSize])).toEqual(said.map(({ rank }) => [rank, 4]));
  });
});

describe("simulated launchers", () => {
  const ranks = (size: number): number[] => Array.from({ length: size }, (_, rank) => rank);

  it("a Kubernetes Indexed Job, whose pods start in any order", async () => {
    const PAMIR_RENDEZVOUS = `localhost:${await freePort()}`;
    const common = { PAMIR_SIZE: "4", PAMIR_RENDEZVOUS, PAMIR_KEY_FILE: keyFile() };
    const envs = [2, 3, 1, 0].map((rank) => ({ ...common, JOB_COMPLETION_INDEX: `${rank}`, HOSTNAME: `work-${rank}` }));
    expectRight(await start(envs, { longValue: 3000 }), 4, "kubernetes", true);
  });

  it("torchrun's variables", async () => {
    const common = {
      WORLD_SIZE: "3",
      LOCAL_WORLD_SIZE: "3",
      MASTER_ADDR: "127.0.0.1",
      MASTER_PORT: `${await freePort()}`,
    };
    const envs = ranks(3).map((rank) => ({
      ...common,
      RANK: `${rank}`,
      LOCAL_RANK: `${rank}`,
      PAMIR_KEY_FILE: keyFile(),
    }));
    // Each has another key.
    const short = { timeout: 2000 };
    for (const { code } of await start(envs.slice(0, 2), short)) expect(code).toBe("PAMIR_TIMEDOUT");
    const PAMIR_KEY_FILE = keyFile();
    expectRight(await start(envs.map((env) => ({ ...env, PAMIR_KEY_FILE }))), 3, "torchrun", true);
  });

  it("Slurm's variables without PMI: host and port follow from the step", async () => {
    const common = {
      SLURM_JOB_ID: `${process.pid}`,
      SLURM_STEP_ID: `${await freePort()}`,
      SLURM_NTASKS: "3",
      SLURM_STEP_NODELIST: "localhost",
      SLURM_STEP_TASKS_PER_NODE: "3",
      SLURM_NODEID: "0",
      PAMIR_KEY_FILE: keyFile(),
    };
    const envs = ranks(3).map((rank) => ({ ...common, SLURM_PROCID: `${rank}`, SLURM_LOCALID: `${rank}` }));
    expectRight(await start(envs), 3, "slurm", true);
  });

  it("explicit variables, and one process alone", async () => {
    const common = { PAMIR_SIZE: "2", PAMIR_RENDEZVOUS: `127.0.0.1:${await freePort()}`, PAMIR_JOB: "a" };
    const envs = ranks(2).map((rank) => ({ ...common, PAMIR_RANK: `${rank}` }));
    expectRight(await start(envs, { insecure: true }), 2, "pamir", false);
    expectRight(await start([{ PAMIR_RANK: "0", PAMIR_SIZE: "1" }]), 1, "pamir", false);
  });

  it("nothing that a process can start from is an error that lists what is looked for", async () => {
    expect(await start([{}])).toEqual([
      {
        code: "PAMIR_LAUNCHER",
        message: expect.stringMatching(/^no launcher started this process: none of PAMIR_NODES, PAMIR_RANK, PMI_FD/),
      },
    ]);
    expect(await start([{ PMI_FD: "77", PMI_RANK: "0", PMI_SIZE: "1" }])).toEqual([
      { code: "PAMIR_LAUNCHER", message: expect.stringMatching(/^PMI_FD is 77, which is no open socket/) },
    ]);
    expect(await start([{ PAMIR_RANK: "0", PAMIR_SIZE: "2", PAMIR_RENDEZVOUS: "127.0.0.1:7117" }])).toEqual([
      { code: "PAMIR_KEY", message: expect.stringMatching(/needs a job key/) },
    ]);
  });
});

/** pamir's own PMI server, and how processes of this test reach it. */
class Served {
  readonly lost: [number, string][] = [];
  readonly server: PmiServer;

  constructor(size: number) {
    const values = { PMI_process_mapping: `(vector,(0,1,${size}))` };
    const onLost = (rank: number, why: string): void => void this.lost.push([rank, why]);
    this.server = new PmiServer({ size, kvsname: "kvs_test_0", values, onLost });
  }

  /** Serves a child by a socket that it inherits as descriptor 3. */
  byDescriptor(child: ChildProcess, rank: number): void {
    this.server.serve(new StreamLines(child.stdio[3] as Duplex, new PlainFraming()), rank);
  }

  /** Serves whatever connects to a port. @returns the port, and what closes it */
  async byPort(): Promise<[number, () => void]> {
    const listener = createServer((socket: Socket) => this.server.serve(new StreamLines(socket, new PlainFraming())));
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    return [(listener.address() as { port: number }).port, () => listener.close()];
  }
}

describe("pamir's PMI server", () => {
  it("serves its children by inherited descriptors", async () => {
    const served = new Served(4);
    const started = [0, 1, 2, 3].map((rank) => {
      const one = startOne({ PMI_FD: "3", PMI_RANK: `${rank}`, PMI_SIZE: "4" }, { longValue: 3000 }, ["pipe"]);
      served.byDescriptor(one.child, rank);
      return one.output;
    });
    expectRight(
      (await Promise.all(started)).flatMap(linesOf).sort((a, b) => a.rank - b.rank),
      4,
      "pmi",
      true,
    );
    expect([served.lost, served.server.done]).toEqual([[], 4]);
  });

  it("serves its children by a port", async () => {
    const served = new Served(3);
    const [port, close] = await served.byPort();
    const envs = [0, 1, 2].map((rank) => ({ PMI_PORT: `127.0.0.1:${port}`, PMI_ID: `${rank}` }));
    expectRight(await start(envs, { longValue: 3000 }), 3, "pmi", true);
    expect([served.lost, served.server.done]).toEqual([[], 3]);
    close();
  });

  it("a child that is killed is named to the others, which wait for it", async () => {
    const served = new Served(3);
    const started = [0, 1].map((rank) => {
      const one = startOne({ PMI_FD: "3", PMI_RANK: `${rank}`, PMI_SIZE: "3" }, {}, ["pipe"]);
      served.byDescriptor(one.child, rank);
      return one.output;
    });
    // It has begun, then it is killed.
    const third = spawn(
      process.execPath,
      ["-e", 'fs.writeSync(3, "cmd=init pmi_version=1 pmi_subversion=1\\n"); setInterval(() => {}, 1e6)'],
      {
        stdio: ["ignore", "inherit", "inherit", "pipe"],
      },
    );
    children.add(third);
    served.byDescriptor(third, 2);
    (third.stdio[3] as Duplex).once("data", () => third.kill("SIGKILL"));
    for (const { code, message } of (await Promise.all(started)).flatMap(linesOf)) {
      expect([code, message]).toEqual([
        "PAMIR_BOOTSTRAP",
        expect.stringMatching(
          /^the barrier failed: rank 2 (ended its connection|was cut off \(the connection broke.*\)) before it finalized$/,
        ),
      ]);
    }
    expect(served.lost.map(([rank]) => rank)).toEqual(expect.arrayContaining([2]));
  });
});

describeWith("programs of MPI under pamir's PMI server (mpicc.mpich)", MPICC, (mpicc) => {
  let ring: string;
  beforeAll(() => {
    ring = join(folder, "mpi-ring");
    execFileSync(mpicc, ["-O1", "-o", ring, join("test", "api", "programs", "mpi-ring.c")]);
  });

  it.each(["PMI_FD", "PMI_PORT"])("start by %s, and are refused further processes", async (way) => {
    const size = 3;
    const served = new Served(size);
    const [port, close] = await served.byPort();
    const outputs = [0, 1, 2].map(async (rank) => {
      const own =
        way === "PMI_FD"
          ? { PMI_FD: "3", PMI_RANK: `${rank}`, PMI_SIZE: `${size}` }
          : { PMI_PORT: `127.0.0.1:${port}`, PMI_ID: `${rank}` };
      const child = spawn(ring, [], { stdio: ["ignore", "pipe", "pipe", "pipe"], env: { ...cleanEnv, ...own } });
      children.add(child);
      if (way === "PMI_FD") served.byDescriptor(child, rank);
      let text = "";
      for await (const part of child.stdout as AsyncIterable<Buffer>) text += part;
      return text;
    });
    const right = [0, 1, 2].map(
      (rank) => `rank ${rank} of 3, sum 3, token ${(rank + 2) % 3}, refused ${rank === 0 ? 1 : 0}\n`,
    );
    expect(await Promise.all(outputs)).toEqual(right);
    expect(served.lost).toEqual([]);
    close();
  });
});

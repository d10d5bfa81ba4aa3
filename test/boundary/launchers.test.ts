// What the environments of launchers say, and nonsense in each variable: named rows.
import { describe, expect, it } from "vitest";
import type { Bootstrap, BootstrapSetup } from "../../src/bootstrap/bootstrap.js";
import { type Environment, type Launcher, natsNodesOf, startTimeoutOf } from "../../src/bootstrap/environment.js";
import { findLauncher, LAUNCHERS, type LauncherRow } from "../../src/bootstrap/launchers.js";
import { openBootstrap } from "../../src/bootstrap/open.js";
import { PamiError } from "../../src/core/error.js";

// As the launchers set them; those of Hydra and Open MPI were copied from processes that they had started.
const NATS = { PAMIR_NATS: "nats://a", PAMIR_NODES: "2" };
const PAMIR = {
  PAMIR_RANK: "1",
  PAMIR_SIZE: "4",
  PAMIR_RENDEZVOUS: "head:7117",
  PAMIR_LOCAL_RANK: "1",
  PAMIR_LOCAL_SIZE: "2",
};
const HYDRA_FD = { PMI_FD: "8", PMI_RANK: "1", PMI_SIZE: "3", MPI_LOCALRANKID: "1", MPI_LOCALNRANKS: "3" };
const HYDRA_PORT = { PMI_PORT: "vm:41241", PMI_ID: "2", MPI_LOCALRANKID: "0", MPI_LOCALNRANKS: "2" };
const OPEN_MPI = {
  OMPI_COMM_WORLD_RANK: "1",
  OMPI_COMM_WORLD_SIZE: "2",
  OMPI_COMM_WORLD_LOCAL_RANK: "1",
  OMPI_COMM_WORLD_LOCAL_SIZE: "2",
  PMIX_NAMESPACE: "968687617",
  PMIX_RANK: "1",
};
const TORCHRUN = {
  RANK: "3",
  WORLD_SIZE: "4",
  LOCAL_RANK: "1",
  LOCAL_WORLD_SIZE: "2",
  MASTER_ADDR: "node-0",
  MASTER_PORT: "29500",
  TORCHELASTIC_RUN_ID: "run 7",
};
const SLURM = {
  SLURM_JOB_ID: "4711",
  SLURM_STEP_ID: "0",
  SLURM_PROCID: "5",
  SLURM_NTASKS: "7",
  SLURM_STEP_NUM_TASKS: "7",
  SLURM_LOCALID: "1",
  SLURM_NODEID: "1",
  SLURM_STEP_TASKS_PER_NODE: "4,3",
  SLURM_STEP_NODELIST: "node[08-09]",
};
const KUBERNETES = {
  JOB_COMPLETION_INDEX: "2",
  PAMIR_SIZE: "3",
  PAMIR_RENDEZVOUS: "work-0.work:7117",
  HOSTNAME: "work-2",
};

const NONE = {
  localRank: undefined,
  localSize: undefined,
  job: undefined,
  pmi: undefined,
  coordinator: undefined,
  bind: undefined,
};

function find(env: Environment) {
  const found = findLauncher(env);
  return found === undefined ? expect.fail("no launcher") : found.launcher;
}

function errorOf(env: Environment): string {
  try {
    findLauncher(env);
  } catch (error) {
    expect(error).toBeInstanceOf(PamiError);
    expect(error).toMatchObject({ code: "PAMIR_LAUNCHER" });
    return (error as PamiError).message;
  }
  return expect.fail("it did not throw");
}

describe("findLauncher", () => {
  it("finds none in an environment of others", () => {
    expect(findLauncher({})).toBeUndefined();
    expect(findLauncher({ HOSTNAME: "a", PAMIR_SIZE: "4", PAMIR_RENDEZVOUS: "nonsense" })).toBeUndefined();
    expect(findLauncher({ PAMIR_NATS: "nats://a", PAMIR_JOB: "j" })).toBeUndefined();
    // A batch script of Slurm is no step, and has these.
    expect(findLauncher({ SLURM_JOB_ID: "4711", SLURM_PROCID: "0", SLURM_NTASKS: "4" })).toBeUndefined();
    expect(findLauncher({ RANK: "1" })).toBeUndefined();
  });

  it.each<[string, Environment, object]>([
    [
      "explicit variables",
      PAMIR,
      { launcher: "pamir", rank: 1, size: 4, localRank: 1, localSize: 2, coordinator: { host: "head", port: 7117 } },
    ],
    ["explicit variables, one process", { PAMIR_RANK: "0", PAMIR_SIZE: "1" }, { launcher: "pamir", rank: 0, size: 1 }],
    [
      "IPv6, a local address and a name of the job",
      { PAMIR_RANK: "0", PAMIR_SIZE: "2", PAMIR_RENDEZVOUS: "[2001:db8::1]:1", PAMIR_BIND: "::", PAMIR_JOB: "j-1" },
      { launcher: "pamir", rank: 0, size: 2, coordinator: { host: "2001:db8::1", port: 1 }, bind: "::", job: "j-1" },
    ],
    [
      "a NATS server, whose bootstrap tells the rank",
      { PAMIR_NATS: "nats://a", PAMIR_NODES: "3", PAMIR_JOB: "j" },
      { launcher: "nats", rank: undefined, size: 3, job: "j" },
    ],
    [
      "a NATS server, and later if the job has begun",
      { PAMIR_NATS: "nats://a", PAMIR_NODES: "3,later", PAMIR_SPARE: "2" },
      { launcher: "nats", rank: undefined, size: 3 },
    ],
    [
      "a NATS server, later",
      { PAMIR_NATS: "nats://a", PAMIR_NODES: "later", PAMIR_SPARE: "x" },
      { launcher: "nats", rank: undefined, size: undefined },
    ],
    [
      "a NATS server, where the nodes have met",
      { ...PAMIR, PAMIR_NATS: "nats://a", PAMIR_NODES: "2", PAMIR_NATS_EPOCH: "0011223344556677" },
      { launcher: "nats", rank: 1, size: 4, localRank: 1, localSize: 2 },
    ],
    ["Hydra, PMI_FD", HYDRA_FD, { launcher: "pmi", rank: 1, size: 3, localRank: 1, localSize: 3, pmi: { fd: 8 } }],
    [
      "Hydra, PMI_PORT: the server tells the size",
      HYDRA_PORT,
      {
        launcher: "pmi",
        rank: 2,
        size: undefined,
        localRank: 0,
        localSize: 2,
        pmi: { address: { host: "vm", port: 41241 }, id: "2" },
      },
    ],
    [
      "both PMI variables: PMI_FD counts",
      { ...HYDRA_PORT, ...HYDRA_FD },
      { launcher: "pmi", rank: 1, size: 3, localRank: 1, localSize: 3, pmi: { fd: 8 } },
    ],
    [
      "Slurm with --mpi=pmi2",
      { ...SLURM, PMI_FD: "5", PMI_RANK: "5", PMI_SIZE: "7" },
      { launcher: "pmi", rank: 5, size: 7, localRank: 1, localSize: 3, pmi: { fd: 5 } },
    ],
    [
      "Open MPI on one host: loopback",
      OPEN_MPI,
      {
        launcher: "openmpi",
        rank: 1,
        size: 2,
        localRank: 1,
        localSize: 2,
        job: "968687617",
        coordinator: { host: "127.0.0.1", port: 65193 },
      },
    ],
    [
      "Open MPI on several hosts",
      { ...OPEN_MPI, OMPI_COMM_WORLD_SIZE: "4", PAMIR_RENDEZVOUS: "192.0.2.1:7117" },
      {
        launcher: "openmpi",
        rank: 1,
        size: 4,
        localRank: 1,
        localSize: 2,
        job: "968687617",
        coordinator: { host: "192.0.2.1", port: 7117 },
      },
    ],
    [
      "torchrun",
      TORCHRUN,
      {
        launcher: "torchrun",
        rank: 3,
        size: 4,
        localRank: 1,
        localSize: 2,
        job: "run_7",
        coordinator: { host: "node-0", port: 29500 },
      },
    ],
    [
      "torchrun with IPv6",
      { RANK: "0", WORLD_SIZE: "2", MASTER_ADDR: "fd00::2", MASTER_PORT: "1" },
      { launcher: "torchrun", rank: 0, size: 2, coordinator: { host: "fd00::2", port: 1 } },
    ],
    [
      "torchrun, whose own store has the port",
      { ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: "True", PAMIR_RENDEZVOUS: "node-0:7117" },
      {
        launcher: "torchrun",
        rank: 3,
        size: 4,
        localRank: 1,
        localSize: 2,
        job: "run_7",
        coordinator: { host: "node-0", port: 7117 },
      },
    ],
    [
      "Slurm",
      SLURM,
      {
        launcher: "slurm",
        rank: 5,
        size: 7,
        localRank: 1,
        localSize: 3,
        job: "4711.0.0",
        coordinator: { host: "node08", port: 61474 },
      },
    ],
    [
      "Slurm: an older one, whose job is the step",
      {
        SLURM_JOB_ID: "4711",
        SLURM_STEP_ID: "0",
        SLURM_PROCID: "5",
        SLURM_NTASKS: "7",
        SLURM_JOB_NODELIST: "a,b",
        SLURM_RESTART_COUNT: "2",
      },
      { launcher: "slurm", rank: 5, size: 7, job: "4711.0.2", coordinator: { host: "a", port: 64764 } },
    ],
    [
      "Kubernetes",
      KUBERNETES,
      { launcher: "kubernetes", rank: 2, size: 3, coordinator: { host: "work-0.work", port: 7117 } },
    ],
  ])("%s", (_, env, expected) => {
    expect(find(env)).toEqual({ ...NONE, ...expected });
  });

  it("takes the first of the list, and looks at no variable of the others", () => {
    const all = [PAMIR, HYDRA_FD, OPEN_MPI, TORCHRUN, SLURM, KUBERNETES] as Environment[];
    const names = ["pamir", "pmi", "openmpi", "torchrun", "slurm", "kubernetes"];
    const nonsense = (env: Environment): Environment =>
      Object.fromEntries(
        Object.keys(env)
          .filter((name) => !name.startsWith("PAMIR_"))
          .map((name) => [name, "nonsense"]),
      );
    for (const [i, name] of names.entries()) {
      const later = all.slice(i + 1).map(nonsense);
      expect(find(Object.assign({}, ...later, all[i])).launcher).toBe(name);
    }
  });

  it("two jobs of Slurm, and two steps of one job, get different ports", () => {
    const ports = new Set<number | undefined>();
    for (let step = 0; step < 20; step++) ports.add(find({ ...SLURM, SLURM_STEP_ID: `${step}` }).coordinator?.port);
    expect(ports.size).toBeGreaterThan(15);
    for (const port of ports) expect(port).toBeGreaterThan(61_439);
  });
});

describe("a bootstrap of its own is a file and a row", () => {
  /** It gives out ranks, and reads a variable of its own. */
  const rowOf = (isServed: boolean) => {
    const said: string[] = [];
    const values = new Map<string, Uint8Array>();
    const open = async (launcher: Launcher, { env, key }: BootstrapSetup): Promise<Bootstrap> => {
      said.push(`${launcher.launcher} ${launcher.rank} ${launcher.coordinator} ${env.OWN_URL} ${key?.length}`);
      return {
        rank: 0,
        size: 3,
        localRank: undefined,
        localSize: undefined,
        put: async (name, value) => void values.set(name, value),
        get: async (name) => values.get(name),
        barrier: async () => void said.push("barrier"),
        close: async () => {},
        fail: async (why) => void said.push(`fail: ${why}`),
      };
    };
    const names = { rank: "", size: "OWN_SIZE", localRank: "", localSize: "" };
    const row: LauncherRow = {
      name: "own",
      detected: ["OWN_URL"],
      find: ({ OWN_URL }) =>
        OWN_URL === undefined
          ? undefined
          : { names, rank: undefined, size: 3, localRank: undefined, localSize: undefined },
      way: { isServed, meets: () => "own", open },
    };
    return { said, rows: [row, ...LAUNCHERS] };
  };

  it.each([
    { isServed: true, said: ["own undefined undefined a undefined", "barrier"], bytes: 32 },
    // Where other programs could read what the processes store, no key is made there.
    { isServed: false, said: ["own undefined undefined a undefined"], bytes: undefined },
  ])("its rank comes from the bootstrap; with a server of the launcher's: $isServed", async (expected) => {
    const { said, rows } = rowOf(expected.isServed);
    const { bootstrap, launcher, key } = await openBootstrap({ OWN_URL: "a" }, {}, rows);
    expect([bootstrap.rank, bootstrap.size, launcher.rank, key?.length]).toEqual([0, 3, undefined, expected.bytes]);
    expect(said).toEqual(expected.said);
  });

  it.each([true, false])("hears why a process can't begin, with a server of the launcher's: %s", async (isServed) => {
    const { said, rows } = rowOf(isServed);
    const env = { OWN_URL: "a", PAMIR_KEY_FD: "x" };
    await expect(openBootstrap(env, {}, rows)).rejects.toThrow(/PAMIR_KEY_FD/);
    expect(said.filter((one) => /^fail: .*PAMIR_KEY_FD/.test(one))).toHaveLength(isServed ? 1 : 0);
  });

  it("an error names its variable, and the text of pamir info its meeting", async () => {
    const { rows } = rowOf(false);
    await expect(openBootstrap({}, {}, rows)).rejects.toThrow(
      /: none of OWN_URL, PAMIR_NODES, PAMIR_RANK, PMI_FD, .* is set$/,
    );
    const meets = (env: Environment): string | undefined => {
      const { launcher, way } = findLauncher(env, rows) ?? expect.fail("no launcher");
      return way.meets(launcher);
    };
    expect([{ OWN_URL: "a" }, HYDRA_FD, HYDRA_PORT, PAMIR, { PAMIR_RANK: "0", PAMIR_SIZE: "1" }].map(meets)).toEqual([
      "own",
      "PMI, descriptor 8",
      "PMI, vm:41241",
      "rendezvous, head:7117",
      undefined,
    ]);
  });
});

/** Each variable of an environment, and what is wrong in it. */
const NONSENSE: readonly (readonly [Environment, string, readonly string[]])[] = [
  [PAMIR, "PAMIR_RANK", ["", "-1", "1.5", "one", "65536", "4", "01", " 1", "1e2"]],
  [PAMIR, "PAMIR_SIZE", ["", "0", "65537", "four", "1", "-4"]],
  [PAMIR, "PAMIR_LOCAL_RANK", ["", "x", "2"]],
  [PAMIR, "PAMIR_LOCAL_SIZE", ["", "0", "1"]],
  [NATS, "PAMIR_NODES", ["", "0", "65537", "x,later", "0,later", ",later", "later,4"]],
  [
    PAMIR,
    "PAMIR_RENDEZVOUS",
    ["", "head", "head:", ":7117", "head:0", "head:65536", "a b:1", "::1:7117", "[head]:1", "-a:1"],
  ],
  [PAMIR, "PAMIR_BIND", ["", "a b", "a/b"]],
  [PAMIR, "PAMIR_JOB", ["", "a b", "ä", "x".repeat(257)]],
  [HYDRA_FD, "PMI_FD", ["", "-1", "x", "2147483648"]],
  [HYDRA_FD, "PMI_RANK", ["", "x", "3"]],
  [HYDRA_FD, "PMI_SIZE", ["", "0", "x"]],
  [HYDRA_FD, "MPI_LOCALRANKID", ["", "x", "3"]],
  [HYDRA_FD, "MPI_LOCALNRANKS", ["", "x", "1"]],
  [HYDRA_PORT, "PMI_PORT", ["", "vm", "vm:x", "vm:70000"]],
  [HYDRA_PORT, "PMI_ID", ["", "x", "-1"]],
  [OPEN_MPI, "OMPI_COMM_WORLD_RANK", ["", "x", "2"]],
  [OPEN_MPI, "OMPI_COMM_WORLD_SIZE", ["", "x", "0"]],
  [OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK", ["", "x", "2"]],
  [OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE", ["", "x", "1"]],
  [TORCHRUN, "RANK", ["", "x", "4"]],
  [TORCHRUN, "WORLD_SIZE", ["", "x", "0"]],
  [TORCHRUN, "LOCAL_RANK", ["", "x", "2"]],
  [TORCHRUN, "LOCAL_WORLD_SIZE", ["", "x", "1"]],
  [TORCHRUN, "MASTER_ADDR", ["", "a b", "a/b", "x:y"]],
  [TORCHRUN, "MASTER_PORT", ["", "x", "0", "65536"]],
  [SLURM, "SLURM_PROCID", ["", "x", "7"]],
  [SLURM, "SLURM_STEP_NUM_TASKS", ["", "x", "0"]],
  [SLURM, "SLURM_LOCALID", ["", "x", "3"]],
  [SLURM, "SLURM_NODEID", ["", "x", "2"]],
  [SLURM, "SLURM_STEP_TASKS_PER_NODE", ["", "4(x", "x", "4(x2", "0,3", "1"]],
  [SLURM, "SLURM_STEP_NODELIST", ["", "[", "node[", "node[1", "node[x]", "-oProxy", ","]],
  [KUBERNETES, "JOB_COMPLETION_INDEX", ["", "x", "3"]],
  [KUBERNETES, "PAMIR_SIZE", ["", "x", "0"]],
  [KUBERNETES, "PAMIR_RENDEZVOUS", ["", "work-0.work"]],
];

describe("PAMIR_START_TIMEOUT", () => {
  it.each([
    [undefined, undefined],
    ["1", 1000],
    ["2000000", 2_000_000_000],
  ])("%s: %s ms", (PAMIR_START_TIMEOUT, milliseconds) => {
    expect(startTimeoutOf({ PAMIR_START_TIMEOUT })).toBe(milliseconds);
  });

  it.each(["", "0", "2000001", "1.5", "-1", "soon", "1e2"])("nonsense: %j", (PAMIR_START_TIMEOUT) => {
    const text = `the variable PAMIR_START_TIMEOUT is "${PAMIR_START_TIMEOUT}", not an integer from 1 to 2000000`;
    expect(() => startTimeoutOf({ PAMIR_START_TIMEOUT })).toThrow(
      expect.objectContaining({ code: "PAMIR_LAUNCHER", message: text }),
    );
  });
});

describe("nonsense", () => {
  it.each(["", "-1", "x", "65535"])("PAMIR_SPARE is %j", (PAMIR_SPARE) => {
    expect(() => natsNodesOf({ ...NATS, PAMIR_SPARE })).toThrow(
      /^the variable PAMIR_SPARE is .* an integer from 0 to 65534$/,
    );
  });

  it.each(NONSENSE)("%# in %o: %s", (env, name, values) => {
    for (const value of values) {
      const message = errorOf({ ...env, [name]: value });
      // Of a number that is too large for another, both are named.
      expect(message, value).toContain(name);
      expect(message, value).toContain(value.slice(0, 80));
      expect(message.length).toBeLessThan(400);
    }
  });

  it.each<[Environment, string, RegExp]>([
    [PAMIR, "PAMIR_SIZE", /PAMIR_SIZE is not set; with PAMIR_RANK, it has to be an integer from 1 to 65536/],
    [PAMIR, "PAMIR_RENDEZVOUS", /PAMIR_RENDEZVOUS is not set; with PAMIR_RANK, it has to be host:port/],
    [HYDRA_FD, "PMI_RANK", /PMI_RANK is not set/],
    [HYDRA_FD, "PMI_SIZE", /PMI_SIZE is not set/],
    [HYDRA_PORT, "PMI_ID", /PMI_ID is not set; with PMI_PORT/],
    [OPEN_MPI, "OMPI_COMM_WORLD_SIZE", /OMPI_COMM_WORLD_SIZE is not set/],
    [OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE", /PAMIR_RENDEZVOUS is not set; with Open MPI/],
    [OPEN_MPI, "PMIX_NAMESPACE", /PAMIR_RENDEZVOUS is not set; with Open MPI, .*mpirun -x PAMIR_RENDEZVOUS/],
    [TORCHRUN, "MASTER_ADDR", /MASTER_ADDR is not set/],
    [TORCHRUN, "MASTER_PORT", /MASTER_PORT is not set/],
    [SLURM, "SLURM_PROCID", /SLURM_PROCID is not set/],
    [SLURM, "SLURM_STEP_NODELIST", /SLURM_STEP_NODELIST is not set/],
    [KUBERNETES, "PAMIR_SIZE", /PAMIR_SIZE is not set; .*\.spec\.completions/],
    [KUBERNETES, "PAMIR_RENDEZVOUS", /PAMIR_RENDEZVOUS is not set; .*work-0\.SERVICE:PORT/],
  ])("%o without %s", (env, name, why) => {
    expect(errorOf({ ...env, [name]: undefined })).toMatch(why);
  });

  it("says that the store of torchrun has the port", () => {
    const env = { ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: "True" };
    expect(errorOf(env)).toMatch(/PAMIR_RENDEZVOUS is not set; .*torchrun's own store/);
  });

  it("cuts a long value", () => {
    const message = errorOf({ ...PAMIR, PAMIR_RENDEZVOUS: "x".repeat(100_000) });
    expect(message).toMatch(/x{80}"… \(100000 characters\)/);
    expect(message.length).toBeLessThan(400);
  });
});

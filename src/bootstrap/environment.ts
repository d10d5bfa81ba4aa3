// Which launcher started this process, and the values of its variables. A pure function of the environment.
//
// The first row of launchers.ts whose detecting variables are set decides. So a variable that the user sets wins, then a launcher that
// serves PMI-1, then the launcher that is nearest to the process: torchrun runs inside of Slurm steps and Kubernetes pods,
// mpirun inside of Slurm allocations.
//
//  launcher    detected by           rank                     size                      local rank and size
//  pamir       PAMIR_RANK            PAMIR_RANK               PAMIR_SIZE                PAMIR_LOCAL_RANK, …_LOCAL_SIZE
//  nats        PAMIR_NODES           by the server, or        PAMIR_NODES, or           none
//              and PAMIR_NATS        PAMIR_RANK               PAMIR_SIZE
//                                                             (PAMIR_NODES=later: both by the server)
//  pmi         PMI_FD                PMI_RANK                 PMI_SIZE                  MPI_LOCALRANKID, MPI_LOCALNRANKS
//  pmi         PMI_PORT              PMI_RANK, else PMI_ID    PMI_SIZE, else server     MPI_LOCALRANKID, MPI_LOCALNRANKS
//  openmpi     OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_RANK     OMPI_COMM_WORLD_SIZE      OMPI_COMM_WORLD_LOCAL_RANK, …_SIZE
//  torchrun    RANK and WORLD_SIZE   RANK                     WORLD_SIZE                LOCAL_RANK, LOCAL_WORLD_SIZE
//  slurm       SLURM_STEP_ID         SLURM_PROCID             SLURM_STEP_NUM_TASKS,     SLURM_LOCALID,
//                                                             else SLURM_NTASKS         SLURM_STEP_TASKS_PER_NODE
//  kubernetes  JOB_COMPLETION_INDEX  JOB_COMPLETION_INDEX     PAMIR_SIZE                none
//
// With PMI of Slurm (srun --mpi=pmi2), local rank and size come from Slurm's variables.
//
// Without PMI the processes need an address where rank 0 listens. PAMIR_RENDEZVOUS=host:port gives this address under every
// launcher. Without that variable the address is
//  openmpi     loopback, if all processes are on one host: the port follows from PMIX_NAMESPACE
//  torchrun    MASTER_ADDR:MASTER_PORT, unless torchrun's own store listens there
//  slurm       the first host of SLURM_STEP_NODELIST: the port follows from job and step
//  others      an error
// PAMIR_BIND is the local address at which rank 0 listens, if it is not the host of the rendezvous. PAMIR_JOB is a name that
// all processes of a job share: processes of other names are refused. PAMIR_START_TIMEOUT is how many seconds each wait for
// other processes takes at most, under every launcher.
import { PamiError } from "../core/error.js";
import { type HostPort, parseAddress } from "./address.js";
import { messageOf } from "./pmi/pmi-wire.js";
import { countAt, firstHostOf } from "./slurm.js";
import { quote } from "./text.js";

/** Variables and their values. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How a PMI server is reached: by an inherited descriptor, or at an address, where a process says its id. */
export type PmiWay = { readonly fd: number } | { readonly address: HostPort; readonly id: string };

/** The launcher's data in the environment. */
export interface Launcher {
  /** As `pamir info` names it. */
  readonly launcher: string;
  /** undefined: the bootstrap tells it. */
  readonly rank: number | undefined;
  /** Processes of the job; undefined: the bootstrap tells it. */
  readonly size: number | undefined;
  /** Place among the processes of this host, and how many they are, if the launcher says. */
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
  /** The launcher's name for the job, the same in all its processes. */
  readonly job: string | undefined;
  readonly pmi: PmiWay | undefined;
  /** Where rank 0 listens; undefined with PMI, and for a job of one process. */
  readonly coordinator: HostPort | undefined;
  /** Local address at which rank 0 listens, if it is not the coordinator's host. */
  readonly bind: string | undefined;
}

/** PAMIR_NODES of a process that comes later to a job at a NATS server. */
export const NODES_LATER = "later";
/** PAMIR_NODES of a process that takes part in the start, or comes later if the job has begun. */
export const nodesOrLater = (nodes: number): string => `${nodes},${NODES_LATER}`;
/** Most processes of a job. */
export const PROCESS_COUNT_MAX = 65_536;
/** Ports that follow from a job's name: above the ports that Linux gives to outgoing connections, 32,768 to 60,999. */
const DERIVED_PORT_FIRST = 61_440;
const DERIVED_PORT_COUNT = 4096;
const JOB_LENGTH_MAX = 256;
/** Seconds: timers take 2^31 milliseconds at most. */
export const START_TIMEOUT_MAX = 2_000_000;

/** Checks what a finder has found, and adds what the user's variables say. @throws PAMIR_LAUNCHER */
export function launcherOf(name: string, found: Found, env: Environment): Launcher {
  const { names, rank, size, localRank, localSize, pmi, coordinate } = found;
  if (size !== undefined && rank !== undefined && rank >= size) {
    throw new PamiError("PAMIR_LAUNCHER", `${names.rank} is ${rank}, not less than ${names.size}, which is ${size}`);
  }
  if (localRank !== undefined && localSize !== undefined && localRank >= localSize) {
    const limit = `not less than ${names.localSize}, which is ${localSize}`;
    throw new PamiError("PAMIR_LAUNCHER", `${names.localRank} is ${localRank}, ${limit}`);
  }
  const isAlone = size === 1;
  const coordinator = coordinate === undefined || isAlone ? undefined : (rendezvousOf(env) ?? coordinate());
  return {
    launcher: name,
    rank,
    size,
    localRank,
    localSize,
    job: jobOf(env) ?? found.job,
    pmi,
    coordinator,
    bind: coordinator === undefined ? undefined : bindOf(env),
  };
}

/** The data in one launcher's variables. */
export interface Found {
  /** The variables that the numbers come from. */
  readonly names: { rank: string; size: string; localRank: string; localSize: string };
  /** undefined: the bootstrap tells it. */
  readonly rank: number | undefined;
  readonly size: number | undefined;
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
  readonly job?: string | undefined;
  readonly pmi?: PmiWay;
  /** For a rendezvous: the address of rank 0, where PAMIR_RENDEZVOUS does not say it. */
  readonly coordinate?: () => HostPort;
}

/** Where Slurm says the place on a host. */
const SLURM_LOCAL = { localRank: "SLURM_LOCALID", localSize: "SLURM_STEP_TASKS_PER_NODE" };

export function findPamir(env: Environment): Found | undefined {
  if (env.PAMIR_RANK === undefined) return undefined;
  const names = {
    rank: "PAMIR_RANK",
    size: "PAMIR_SIZE",
    localRank: "PAMIR_LOCAL_RANK",
    localSize: "PAMIR_LOCAL_SIZE",
  };
  return {
    ...numbersOf(env, names),
    coordinate: () => missing("PAMIR_RENDEZVOUS", "host:port, where rank 0 is to listen", "PAMIR_RANK"),
  };
}

/** At a NATS server. Under `pamir run --nats` the nodes have met; elsewhere each process is a node, and has no rank so far. */
export function findNats(env: Environment): Found | undefined {
  if (env.PAMIR_NODES === undefined || env.PAMIR_NATS === undefined) return undefined;
  const names = {
    rank: "PAMIR_RANK",
    size: "PAMIR_NODES",
    localRank: "PAMIR_LOCAL_RANK",
    localSize: "PAMIR_LOCAL_SIZE",
  };
  if (env.PAMIR_NATS_EPOCH !== undefined) return numbersOf(env, { ...names, size: "PAMIR_SIZE" }) as Found;
  return { names, rank: undefined, size: natsNodesOf(env).nodes, localRank: undefined, localSize: undefined };
}

/** What a process that meets at a NATS server without a launcher knows of its job. */
export interface NatsNodes {
  /** Processes with which the job begins; undefined: the job has begun. */
  readonly nodes: number | undefined;
  /** Whether this process comes later, if the job has begun. */
  readonly isLater: boolean;
  /** Tasks that may come later. */
  readonly spare: number;
}

/** @throws PAMIR_LAUNCHER PAMIR_NODES or PAMIR_SPARE makes no sense */
export function natsNodesOf(env: Environment): NatsNodes {
  const { PAMIR_NODES = "" } = env;
  if (PAMIR_NODES === NODES_LATER) return { nodes: undefined, isLater: true, spare: 0 };
  const begins = /^([1-9]\d*),later$/.exec(PAMIR_NODES)?.[1];
  const isLater = begins !== undefined;
  const nodes = integerOf(isLater ? { PAMIR_NODES: begins } : env, "PAMIR_NODES", 1, PROCESS_COUNT_MAX);
  // A launcher has numbers of its own for later tasks.
  const hasLauncher = env.PAMIR_NATS_EPOCH !== undefined;
  const spare = hasLauncher ? undefined : optionalOf(env, "PAMIR_SPARE", 0, PROCESS_COUNT_MAX - nodes);
  return { nodes, isLater, spare: spare ?? 0 };
}

export function findPmi(env: Environment): Found | undefined {
  const { PMI_FD, PMI_PORT, PMI_ID } = env;
  if (PMI_FD === undefined && PMI_PORT === undefined) return undefined;
  const isSlurm = env.MPI_LOCALRANKID === undefined && env.SLURM_STEP_ID !== undefined;
  const local = isSlurm ? SLURM_LOCAL : { localRank: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS" };
  const names = { rank: "PMI_RANK", size: "PMI_SIZE", ...local };
  // MPICH's own client looks at PMI_FD first, too.
  if (PMI_FD !== undefined) {
    return { ...numbersOf(env, names), pmi: { fd: integerOf(env, "PMI_FD", 0, 0x7fffffff) } };
  }
  const address = parseAddress(PMI_PORT as string);
  if (address === undefined) throw nonsense(env, "PMI_PORT", "host:port");
  if (PMI_ID === undefined) return missing("PMI_ID", "the number of this process", "PMI_PORT");
  const id = integerOf(env, "PMI_ID", 0, PROCESS_COUNT_MAX - 1);
  return {
    names: env.PMI_RANK === undefined ? { ...names, rank: "PMI_ID" } : names,
    rank: optionalOf(env, "PMI_RANK", 0, PROCESS_COUNT_MAX - 1) ?? id,
    size: optionalOf(env, "PMI_SIZE", 1, PROCESS_COUNT_MAX),
    ...localOf(env, names),
    pmi: { address, id: `${id}` },
  };
}

export function findOpenMpi(env: Environment): Found | undefined {
  if (env.OMPI_COMM_WORLD_RANK === undefined) return undefined;
  const names = {
    rank: "OMPI_COMM_WORLD_RANK",
    size: "OMPI_COMM_WORLD_SIZE",
    localRank: "OMPI_COMM_WORLD_LOCAL_RANK",
    localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
  };
  const numbers = numbersOf(env, names);
  const job = env.PMIX_NAMESPACE;
  return {
    ...numbers,
    job: nameOf(job),
    coordinate() {
      if (job !== undefined && numbers.localSize === numbers.size) return { host: "127.0.0.1", port: portOf(job) };
      return missing("PAMIR_RENDEZVOUS", "host:port on the host of rank 0 (mpirun -x PAMIR_RENDEZVOUS=…)", "Open MPI");
    },
  };
}

export function findTorchrun(env: Environment): Found | undefined {
  if (env.RANK === undefined || env.WORLD_SIZE === undefined) return undefined;
  const names = { rank: "RANK", size: "WORLD_SIZE", localRank: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE" };
  return {
    ...numbersOf(env, names),
    job: nameOf(env.TORCHELASTIC_RUN_ID),
    coordinate() {
      const { MASTER_ADDR, MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE } = env;
      if (TORCHELASTIC_USE_AGENT_STORE === "True") {
        return missing("PAMIR_RENDEZVOUS", "host:port: at MASTER_PORT, torchrun's own store listens", "torchrun");
      }
      if (MASTER_ADDR === undefined) return missing("MASTER_ADDR", "the host of rank 0", "RANK and WORLD_SIZE");
      if (MASTER_PORT === undefined) return missing("MASTER_PORT", "a port", "RANK and WORLD_SIZE");
      const port = integerOf(env, "MASTER_PORT", 1, 65_535);
      const host = MASTER_ADDR.includes(":") ? `[${MASTER_ADDR}]` : MASTER_ADDR;
      const address = parseAddress(`${host}:${port}`);
      if (address === undefined) throw nonsense(env, "MASTER_ADDR", "a host");
      return address;
    },
  };
}

export function findSlurm(env: Environment): Found | undefined {
  // A batch script has SLURM_PROCID, too; only the processes of a step have a step.
  if (env.SLURM_STEP_ID === undefined) return undefined;
  const size = env.SLURM_STEP_NUM_TASKS === undefined ? "SLURM_NTASKS" : "SLURM_STEP_NUM_TASKS";
  const names = { rank: "SLURM_PROCID", size, ...SLURM_LOCAL };
  const { SLURM_JOB_ID = "", SLURM_STEP_ID, SLURM_RESTART_COUNT = "0" } = env;
  const job = `${SLURM_JOB_ID}.${SLURM_STEP_ID}.${SLURM_RESTART_COUNT}`;
  return {
    names,
    rank: neededOf(env, names.rank, 0, PROCESS_COUNT_MAX - 1, "SLURM_STEP_ID"),
    size: neededOf(env, names.size, 1, PROCESS_COUNT_MAX, "SLURM_STEP_ID"),
    ...localOf(env, names),
    job: nameOf(job),
    coordinate() {
      const name = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"].find((one) => env[one] !== undefined);
      if (name === undefined) return missing("SLURM_STEP_NODELIST", "the hosts of the step", "SLURM_STEP_ID");
      const host = firstHostOf(env[name] as string);
      if (host === undefined) throw nonsense(env, name, "a list of hosts such as node[01-04]");
      return { host, port: portOf(job) };
    },
  };
}

/** Slurm lists the tasks of all nodes. */
function slurmLocalSize(env: Environment): number | undefined {
  const name = SLURM_LOCAL.localSize;
  const list = env[name];
  const node = optionalOf(env, "SLURM_NODEID", 0, PROCESS_COUNT_MAX - 1);
  if (list === undefined || node === undefined) return undefined;
  const count = countAt(list, node);
  if (count === undefined) throw nonsense(env, name, `a list such as 4(x2),3 with a place for SLURM_NODEID ${node}`);
  return count;
}

export function findKubernetes(env: Environment): Found | undefined {
  const rank = "JOB_COMPLETION_INDEX";
  if (env[rank] === undefined) return undefined;
  return {
    names: { rank, size: "PAMIR_SIZE", localRank: "", localSize: "" },
    rank: integerOf(env, rank, 0, PROCESS_COUNT_MAX - 1),
    size: neededOf(env, "PAMIR_SIZE", 1, PROCESS_COUNT_MAX, `${rank} (as .spec.completions of the Job)`),
    localRank: undefined,
    localSize: undefined,
    coordinate() {
      const pod = /^[\w.-]+(?=-\d+$)/.exec(env.HOSTNAME ?? "")?.[0] ?? "JOB";
      const what = `host:port of the pod with index 0: ${pod}-0.SERVICE:PORT, by a headless service`;
      return missing("PAMIR_RENDEZVOUS", what, rank);
    },
  };
}

type Names = Found["names"];

function numbersOf(
  env: Environment,
  names: Names,
): Pick<Found, "names" | "localRank" | "localSize"> & { rank: number; size: number } {
  return {
    names,
    rank: neededOf(env, names.rank, 0, PROCESS_COUNT_MAX - 1, names.size),
    size: neededOf(env, names.size, 1, PROCESS_COUNT_MAX, names.rank),
    ...localOf(env, names),
  };
}

function localOf(env: Environment, names: Names): Pick<Found, "localRank" | "localSize"> {
  return {
    localRank: optionalOf(env, names.localRank, 0, PROCESS_COUNT_MAX - 1),
    localSize:
      names.localSize === SLURM_LOCAL.localSize
        ? slurmLocalSize(env)
        : optionalOf(env, names.localSize, 1, PROCESS_COUNT_MAX),
  };
}

function rendezvousOf(env: Environment): HostPort | undefined {
  if (env.PAMIR_RENDEZVOUS === undefined) return undefined;
  const address = parseAddress(env.PAMIR_RENDEZVOUS);
  if (address === undefined) throw nonsense(env, "PAMIR_RENDEZVOUS", "host:port, or [address]:port with IPv6");
  return address;
}

function bindOf(env: Environment): string | undefined {
  const { PAMIR_BIND } = env;
  if (PAMIR_BIND === undefined) return undefined;
  // A different port makes no sense here: the other processes know the rendezvous's port.
  if (!/^[\w.:%-]{1,253}$/.test(PAMIR_BIND))
    throw nonsense(env, "PAMIR_BIND", "an address of this host, without a port");
  return PAMIR_BIND;
}

function jobOf(env: Environment): string | undefined {
  const { PAMIR_JOB } = env;
  if (PAMIR_JOB === undefined) return undefined;
  if (!/^[!-~]+$/.test(PAMIR_JOB) || PAMIR_JOB.length > JOB_LENGTH_MAX) {
    throw nonsense(env, "PAMIR_JOB", `1 to ${JOB_LENGTH_MAX} characters of printable ASCII without spaces`);
  }
  return PAMIR_JOB;
}

/** Milliseconds of each wait for other processes, if PAMIR_START_TIMEOUT sets them, in seconds. @throws PAMIR_LAUNCHER */
export function startTimeoutOf(env: Environment): number | undefined {
  const seconds = optionalOf(env, "PAMIR_START_TIMEOUT", 1, START_TIMEOUT_MAX);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** A launcher's name for a job, in characters that a line of PMI-1 can have. */
function nameOf(job: string | undefined): string | undefined {
  return job === undefined || job === "" ? undefined : messageOf(job).slice(0, JOB_LENGTH_MAX);
}

/** A port that follows from a name (FNV-1a). */
function portOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return DERIVED_PORT_FIRST + ((hash >>> 0) % DERIVED_PORT_COUNT);
}

function neededOf(env: Environment, name: string, least: number, most: number, because: string): number {
  return env[name] === undefined
    ? missing(name, `an integer from ${least} to ${most}`, because)
    : integerOf(env, name, least, most);
}

function optionalOf(env: Environment, name: string, least: number, most: number): number | undefined {
  return env[name] === undefined ? undefined : integerOf(env, name, least, most);
}

function integerOf(env: Environment, name: string, least: number, most: number): number {
  const text = env[name] as string;
  const number = /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw nonsense(env, name, `an integer from ${least} to ${most}`);
}

function nonsense(env: Environment, name: string, right: string): PamiError {
  return new PamiError("PAMIR_LAUNCHER", `the variable ${name} is ${quote(env[name] as string)}, not ${right}`);
}

function missing(name: string, right: string, because: string): never {
  throw new PamiError("PAMIR_LAUNCHER", `the variable ${name} is not set; with ${because}, it has to be ${right}`);
}

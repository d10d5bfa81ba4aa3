// A cluster of Slurm that has this host alone, without its usual authentication by a service of the system.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, hostname, userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.js";
import { find } from "./ssh.js";

/** Undefined: Slurm is not installed. */
export const SLURM = find("srun") && find("slurmd") && find("slurmctld");

/** Milliseconds for its start, which takes 3,000 on a quiet machine and 9,000 where 20 threads want two cores. */
const READY_MS = 90_000;

export class Slurm {
  /** For SLURM_CONF. */
  readonly conf: string;
  readonly #daemons: readonly ChildProcess[];

  private constructor(conf: string, daemons: readonly ChildProcess[]) {
    this.conf = conf;
    this.#daemons = daemons;
  }

  /** @param folder for its state @param env of the daemons */
  static async start(folder: string, env: NodeJS.ProcessEnv): Promise<Slurm> {
    const conf = join(folder, "slurm.conf");
    const host = hostname().split(".")[0];
    const user = userInfo().username;
    for (const name of ["state", "spool"]) mkdirSync(join(folder, name));
    const first = await freePort(2);
    const settings = {
      ClusterName: "test",
      SlurmctldHost: `${host}(127.0.0.1)`,
      SlurmctldPort: first,
      SlurmdPort: first + 1,
      SlurmUser: user,
      SlurmdUser: user,
      AuthType: "auth/none",
      CredType: "cred/none",
      StateSaveLocation: join(folder, "state"),
      SlurmdSpoolDir: join(folder, "spool"),
      SlurmctldPidFile: join(folder, "slurmctld.pid"),
      SlurmdPidFile: join(folder, "slurmd.pid"),
      ProctrackType: "proctrack/linuxproc",
      TaskPlugin: "task/none",
      SwitchType: "switch/none",
      SchedulerType: "sched/builtin",
      SelectType: "select/linear",
      JobAcctGatherType: "jobacct_gather/none",
      AccountingStorageType: "accounting_storage/none",
      ReturnToService: 2,
      NodeName: `${host} NodeAddr=127.0.0.1 CPUs=${availableParallelism()}`,
      PartitionName: `test Nodes=${host} Default=YES MaxTime=INFINITE State=UP`,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(conf, lines.join(""));
    const log = join(folder, "slurm.log");
    const output = openSync(log, "a");
    const daemons = ["slurmctld", "slurmd"].map((name) =>
      spawn(find(name) as string, ["-D", "-f", conf], { stdio: ["ignore", output, output], env }),
    );
    closeSync(output);
    const slurm = new Slurm(conf, daemons);
    const state = (): string =>
      spawnSync("sinfo", ["-h", "-o", "%T"], { encoding: "utf8", env: { ...env, SLURM_CONF: conf } }).stdout;
    // sinfo takes 9 s to find no daemon: a look at the daemons themselves comes first.
    const hasEnded = (): boolean =>
      daemons.some(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null);
    for (const end = performance.now() + READY_MS; state() !== "idle\n"; ) {
      if (hasEnded() || performance.now() > end) {
        await slurm.stop();
        throw new Error(`Slurm does not start: ${readFileSync(log, "utf8")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return slurm;
  }

  async stop(): Promise<void> {
    for (const daemon of this.#daemons) {
      daemon.kill("SIGTERM");
      if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit");
    }
  }
}

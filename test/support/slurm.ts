// A cluster of Slurm that has this host alone, without its usual authentication by a service of the system.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, hostname, userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.js";
import { find } from "./ssh.js";

/** Undefined: Slurm is not installed. */
export const SLURM = find("srun") && find("slurmd") && find("slurmctld");

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
    const settings = {
      ClusterName: "test",
      SlurmctldHost: `${host}(127.0.0.1)`,
      SlurmctldPort: await freePort(),
      SlurmdPort: await freePort(),
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
    const daemons = ["slurmctld", "slurmd"].map((name) =>
      spawn(find(name) as string, ["-D", "-f", conf], { stdio: "ignore", env }),
    );
    const isReady = (): boolean =>
      spawnSync("sinfo", ["-h", "-o", "%T"], { encoding: "utf8", env: { ...env, SLURM_CONF: conf } }).stdout ===
      "idle\n";
    for (let tries = 0; tries < 300 && !isReady(); tries++) await new Promise((resolve) => setTimeout(resolve, 100));
    return new Slurm(conf, daemons);
  }

  async stop(): Promise<void> {
    for (const daemon of this.#daemons) {
      daemon.kill("SIGTERM");
      if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit");
    }
  }
}

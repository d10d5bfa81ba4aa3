// How many cores a process may use: quotas of containers, in files as hosts have them.
import { describe, expect, it } from "vitest";
import { cpuQuota } from "../../src/support/node/cores.js";

interface Host {
  readonly name: string;
  readonly files: Record<string, string>;
  readonly quota: number;
}

const NONE = Number.POSITIVE_INFINITY;
const CGROUP = "/proc/self/cgroup";
const HYBRID = "12:pids:/a/b\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a/b\n0::/a/b\n";

const HOSTS: readonly Host[] = [
  { name: "no cgroups at all", files: {}, quota: NONE },
  { name: "version 2, no quota", files: { [CGROUP]: "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n" }, quota: NONE },
  {
    name: "version 2, a container with half a core",
    files: { [CGROUP]: "0::/\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n" },
    quota: 0.5,
  },
  {
    name: "version 2, its own group has more than the one above",
    files: {
      [CGROUP]: "0::/user.slice/job.scope\n",
      "/sys/fs/cgroup/user.slice/job.scope/cpu.max": "400000 100000\n",
      "/sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
    },
    quota: 1.5,
  },
  {
    name: "version 1, a container: the host's path is not mounted",
    files: {
      [CGROUP]: "4:cpuacct,cpu:/docker/0123\n2:memory:/docker/0123\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
    quota: 2,
  },
  {
    name: "version 1 under another name",
    files: {
      [CGROUP]: HYBRID,
      "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "25000\n",
      "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "50000\n",
    },
    quota: 0.5,
  },
  {
    name: "version 1, none",
    files: {
      [CGROUP]: HYBRID,
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
    quota: NONE,
  },
  {
    name: "a quota of another controller's group",
    files: {
      [CGROUP]: "4:cpuset:/a\n",
      "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100",
      "/sys/fs/cgroup/a/cpu.max": "1 2",
    },
    quota: NONE,
  },
  {
    name: "files that say nothing",
    files: { [CGROUP]: "0::/\nnonsense\n::\n", "/sys/fs/cgroup/cpu.max": "\n" },
    quota: NONE,
  },
];

describe("CPU quota", () => {
  it.each(HOSTS)("$name: $quota", ({ files, quota }) => {
    expect(cpuQuota((path) => files[path])).toBe(quota);
  });

  it("asks for no file outside of the cgroup mounts, whatever a path says", () => {
    const asked: string[] = [];
    cpuQuota((path) => {
      asked.push(path);
      return path === CGROUP ? "0::/../../../etc\n" : undefined;
    });
    expect(asked.filter((path) => path !== CGROUP && !/^\/sys\/fs\/cgroup(?!.*\.\.)/.test(path))).toEqual([]);
  });
});

// Two network namespaces, as two hosts: a cable between them that can be cut, lose packets, and carry only so much. Root makes
// them where the other namespaces are; other users make them in a namespace of their own, where the system allows that.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** How to run a command as the root of new namespaces; empty: this user is root. */
const UNSHARED = process.getuid?.() === 0 ? [] : ["unshare", "--user", "--map-root-user", "--mount", "--net"];
/** `ip netns` keeps its names in a folder of /run, which only the system's root may write. */
const OWN_FOLDER = "mount -t tmpfs pamir /run && mkdir /run/netns";

/** Why this machine has no two hosts; empty: it has. */
export function whyNoHosts(): string {
  if (process.platform !== "linux") return "this is not Linux";
  const name = `pamir-${process.pid}-probe`;
  const probe = `ip netns add ${name} && ip netns del ${name}`;
  const script = UNSHARED.length > 0 ? `${OWN_FOLDER} && ${probe}` : probe;
  const [command, ...args] = [...UNSHARED, "sh", "-c", script];
  const { status, error, stderr } = spawnSync(command as string, args, { encoding: "utf8" });
  return status === 0 ? "" : `ip netns add: ${error?.message ?? stderr.trim()}`;
}

/** What becomes of a packet: as the verdicts of linux/pkt_cls.h. */
const [PASS, DROP] = [2 ** 32 - 1, 2];
/** Instructions of a packet filter of the kernel (linux/filter.h): code, jump if true, jump if false, operand. */
type Filter = readonly (readonly [number, number, number, number])[];

/** Drops one of so many packets, at random. */
export const oneOf = (count: number): Filter => [
  [0x20, 0, 0, 0xfffff038], // the word at SKF_AD_OFF + SKF_AD_RANDOM
  [0x94, 0, 0, count], // its remainder
  [0x35, 0, 1, 1],
  [0x06, 0, 0, PASS],
  [0x06, 0, 0, DROP],
];
/** Drops packets of IP that have more bytes. */
export const longerThan = (bytes: number): Filter => [
  [0x80, 0, 0, 0], // the length of the frame
  [0x25, 1, 0, bytes + 14],
  [0x06, 0, 0, PASS],
  [0x06, 0, 0, DROP],
];
/** Drops packets of UDP, as a firewall does. */
export const UDP: Filter = [
  [0x28, 0, 0, 12], // what the frame carries
  [0x15, 0, 3, 0x0800], // IPv4
  [0x30, 0, 0, 23], // the protocol in it
  [0x15, 0, 1, 17],
  [0x06, 0, 0, DROP],
  [0x06, 0, 0, PASS],
];
/** Drops all packets. */
export const ALL: Filter = [[0x06, 0, 0, DROP]];

/** One of the two. */
export type End = 0 | 1;

export class TwoHosts {
  /** Their addresses. */
  readonly addresses = ["10.83.71.1", "10.83.71.2"] as const;
  readonly #names: readonly [string, string];
  readonly #devices: readonly [string, string];
  /** Keeps the namespaces of a user who is not root. */
  readonly #keeper: ChildProcess | undefined;
  readonly #filtered = new Set<End>();

  private constructor(keeper: ChildProcess | undefined) {
    this.#keeper = keeper;
    this.#names = [`${this.prefix}a`, `${this.prefix}b`];
    this.#devices = [`pm${process.pid % 1e6}a`, `pm${process.pid % 1e6}b`];
  }

  /** Their names are this, and a or b. */
  get prefix(): string {
    return `pamir-${process.pid}-`;
  }

  static async start(): Promise<TwoHosts> {
    let keeper: ChildProcess | undefined;
    if (UNSHARED.length > 0) {
      const [command, ...args] = [...UNSHARED, "sh", "-c", `${OWN_FOLDER} && echo kept && exec cat`];
      keeper = spawn(command as string, args, { stdio: ["pipe", "pipe", "inherit"] });
      await new Promise((resolve) => keeper?.stdout?.once("data", resolve));
    }
    const hosts = new TwoHosts(keeper);
    hosts.#removeOld();
    const [names, devices] = [hosts.#names, hosts.#devices];
    for (const name of names) hosts.#ip("netns", "add", name);
    hosts.#ip(
      "link",
      "add",
      devices[0],
      "netns",
      names[0],
      "type",
      "veth",
      "peer",
      "name",
      devices[1],
      "netns",
      names[1],
    );
    for (const end of [0, 1] as const) {
      hosts.#ip("-n", names[end], "addr", "add", `${hosts.addresses[end]}/24`, "dev", devices[end]);
      for (const device of ["lo", devices[end]]) hosts.#ip("-n", names[end], "link", "set", device, "up");
    }
    hosts.cable("up");
    return hosts;
  }

  /** The words of a command that runs another one on a host. The process has the number of that one. */
  on(end: End): string[] {
    return [...this.#inside(), "ip", "netns", "exec", this.#names[end]];
  }

  /** The output of a command on a host. */
  run(end: End, ...command: string[]): string {
    const [first, ...rest] = [...this.on(end), ...command];
    return execFileSync(first as string, rest, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Plugs one end of the cable in, or out. Returns once both hosts know that it is in: until then, Node has no address. */
  cable(state: "up" | "down"): void {
    this.#ip("-n", this.#names[1], "link", "set", this.#devices[1], state);
    for (const end of state === "up" ? ([0, 1] as const) : []) while (this.#read(end, "operstate") !== "up");
  }

  /** Bytes of the largest packet of IP that the cable carries. */
  setMtu(bytes: number): void {
    for (const end of [0, 1] as const)
      this.#ip("-n", this.#names[end], "link", "set", this.#devices[end], "mtu", `${bytes}`);
  }

  /** Bytes that a host has received by the cable. */
  received(end: End): number {
    return Number(this.#read(end, "statistics/rx_bytes"));
  }

  /** Filters what comes to a host; undefined: nothing. */
  filter(end: End, filter: Filter | undefined): void {
    if (this.#filtered.delete(end)) this.#tc(end, "qdisc", "del", "ingress");
    if (filter === undefined) return;
    this.#filtered.add(end);
    this.#tc(end, "qdisc", "add", "ingress");
    const bytecode = [filter.length, ...filter.map((instruction) => instruction.join(" "))].join(",");
    this.#tc(end, "filter", "add", "ingress", "bpf", "direct-action", "bytecode", bytecode);
  }

  /** What a host sends goes through a queue: so many megabits a second, of so many milliseconds. */
  narrow(end: End, rate: number, milliseconds: number): void {
    const queue = ["tbf", "rate", `${rate}mbit`, "burst", "16kb", "latency", `${milliseconds}ms`];
    this.#tc(end, "qdisc", "add", "root", ...queue);
  }

  /** Ends the queue. @returns how many packets found it full */
  widen(end: End): number {
    const text = this.#tc(end, "-s", "qdisc", "show");
    this.#tc(end, "qdisc", "del", "root");
    return Number(/dropped (\d+)/.exec(text)?.[1]);
  }

  /** Ends both hosts, and the cable with them. */
  close(): void {
    for (const name of this.#names) this.#ip("netns", "del", name);
    this.#keeper?.stdin?.end();
  }

  /** Removes those of runs that were killed. */
  #removeOld(): void {
    const [command, ...args] = [...this.#inside(), "ip", "netns", "list"];
    const names = execFileSync(command as string, args, { encoding: "utf8" });
    for (const [name, pid] of names.matchAll(/^pamir-(\d+)-\w+/gm))
      if (!existsSync(`/proc/${pid}`)) this.#ip("netns", "del", name);
  }

  /** What the system says of an end of the cable. */
  #read(end: End, file: string): string {
    return this.run(end, "cat", `/sys/class/net/${this.#devices[end]}/${file}`).trim();
  }

  #inside(): string[] {
    const pid = this.#keeper?.pid;
    return pid === undefined ? [] : ["nsenter", "-t", `${pid}`, "-U", "-m", "-n", "--preserve-credentials"];
  }

  #ip(...args: string[]): void {
    const [command, ...rest] = [...this.#inside(), "ip", ...args];
    execFileSync(command as string, rest, { stdio: ["ignore", "ignore", "pipe"] });
  }

  /** tc, whose device stands behind the verb. */
  #tc(end: End, ...args: string[]): string {
    const verb = args.findIndex((word) => ["add", "del", "show"].includes(word)) + 1;
    return this.run(end, "tc", ...args.slice(0, verb), "dev", this.#devices[end], ...args.slice(verb));
  }
}

// Nodes of a job in two network namespaces, with a cable between them that can be cut, and with packets that are lost.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { SEED } from "../support/effort.js";

const program = fileURLToPath(new URL("programs/bulk.js", import.meta.url));
const NAMES = ["a", "b"].map((end) => `pamir-${process.pid}-${end}`) as [string, string];
const CABLES = ["a", "b"].map((end) => `pm${process.pid % 1e6}${end}`) as [string, string];
const HOSTS = ["10.83.71.1", "10.83.71.2"] as const;
/** In its own namespace, the port is free. */
const PORT = 7117;

const ip = (...args: string[]): void => void execFileSync("ip", args, { stdio: ["ignore", "ignore", "pipe"] });

/** Why the tests are not run; empty: they are. */
function whyNot(): string {
  if (process.platform !== "linux") return "this is not Linux";
  const name = `${NAMES[0]}-probe`;
  const { status, error, stderr } = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (status !== 0) return `ip netns add: ${error?.message ?? stderr.trim()}`;
  ip("netns", "del", name);
  return "";
}
const why = whyNot();
if (why !== "") console.log(`not run: nodes in network namespaces (${why})`);

const FAULTS = { loss: 0.01, duplicate: 0.01, reorder: 0.02, delay: 20, seed: SEED };

interface Said {
  readonly task: number;
  readonly done: number;
  readonly wrong: readonly string[];
  readonly isOver: boolean;
}

describe.skipIf(why !== "")("nodes in two network namespaces", { timeout: 90_000 }, () => {
  const folder = mkdtempSync(join(inject("folder"), "namespaces-"));
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const children = new Set<ChildProcess>();

  beforeAll(() => {
    for (const name of NAMES) ip("netns", "add", name);
    ip("link", "add", CABLES[0], "netns", NAMES[0], "type", "veth", "peer", "name", CABLES[1], "netns", NAMES[1]);
    for (const [end, name] of NAMES.entries()) {
      ip("-n", name, "addr", "add", `${HOSTS[end]}/24`, "dev", CABLES[end] as string);
      for (const device of ["lo", CABLES[end] as string]) ip("-n", name, "link", "set", device, "up");
    }
  });
  afterEach(() => {
    for (const child of children) child.kill("SIGKILL");
    children.clear();
    cable("up");
  });
  afterAll(() => {
    // The cable goes with its ends.
    for (const name of NAMES) ip("netns", "del", name);
    rmSync(folder, { recursive: true, force: true });
  });

  const cable = (state: "up" | "down"): void => ip("-n", NAMES[1], "link", "set", CABLES[1], state);

  /** A process in each namespace. */
  function start(rounds: number, options: object) {
    const nodes = NAMES.map((name, rank) => {
      const child = spawn("ip", ["netns", "exec", name, process.execPath, program, `${rounds}`], {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env.PATH,
          PAMIR_RANK: `${rank}`,
          PAMIR_SIZE: "2",
          PAMIR_NODE: name,
          PAMIR_BIND_HOST: HOSTS[rank],
          PAMIR_RENDEZVOUS: `${HOSTS[0]}:${PORT}`,
          PAMIR_KEY_FILE: keyFile,
          PAMIR_OPTIONS: JSON.stringify(options),
        },
      });
      children.add(child);
      let [output, errors] = ["", ""];
      let noteStart = (): void => {};
      const underWay = new Promise<void>((resolve) => {
        noteStart = resolve;
      });
      child.stdout.on("data", (text) => {
        output += text;
        if (output.includes("under way")) noteStart();
      });
      child.stderr.on("data", (text) => {
        errors += text;
      });
      const ended = new Promise<{ code: number | string | null; errors: string; said: Said | undefined }>((resolve) =>
        child.on("close", (code, signal) => {
          noteStart();
          const line = output.split("\n").find((one) => one.startsWith("{"));
          resolve({ code: code ?? signal, errors, said: line === undefined ? undefined : (JSON.parse(line) as Said) });
        }),
      );
      return { child, underWay, ended };
    });
    return {
      children: nodes.map(({ child }) => child) as [ChildProcess, ChildProcess],
      underWay: Promise.all(nodes.map((node) => node.underWay)),
      ended: Promise.all(nodes.map((node) => node.ended)),
    };
  }

  const rightOf = (rounds: number): object[] =>
    [0, 1].map((task) => ({ code: 0, errors: "", said: expect.objectContaining({ task, done: rounds, wrong: [] }) }));
  /** Rounds that are not over before a test interferes, but for the slowest machines. */
  const MANY = 1000;

  it.each(["udp", "websocket"])("messages, offers, puts, gets and rmws by %s, where packets are lost", async (link) => {
    expect(await start(3, { link, impairments: FAULTS }).ended).toEqual(rightOf(3));
  });

  it.each(["udp", "websocket"])(
    "a node is killed in mid-transfer, %s: the other one ends its operations",
    async (link) => {
      const { children, underWay, ended } = start(MANY, { link, silence: 1500 });
      await underWay;
      children[1].kill("SIGKILL");
      const [first, second] = await ended;
      expect(first).toMatchObject({ code: 0, errors: "", said: { task: 0, wrong: [], isOver: true } });
      expect(second).toMatchObject({ code: "SIGKILL" });
    },
  );

  it("a node is stopped in mid-transfer, and goes on before the silence is over: nothing is lost", async () => {
    const { children, underWay, ended } = start(20, { silence: 60_000 });
    await underWay;
    children[1].kill("SIGSTOP");
    await delay(1500);
    children[1].kill("SIGCONT");
    expect(await ended).toEqual(rightOf(20));
  });

  it.each(["udp", "websocket"])("the cable is cut in mid-transfer, and mended, %s: nothing is lost", async (link) => {
    const { underWay, ended } = start(8, { link, impairments: FAULTS, silence: 60_000 });
    await underWay;
    for (let cut = 0; cut < 2; cut++) {
      cable("down");
      await delay(1000);
      cable("up");
      await delay(200);
    }
    expect(await ended).toEqual(rightOf(8));
  });

  it("the cable is cut for longer than the silence: each node gives the other one up, and both end", async () => {
    const { underWay, ended } = start(MANY, { silence: 1500 });
    await underWay;
    cable("down");
    const ends = await ended;
    for (const [task, end] of ends.entries())
      expect(end).toMatchObject({ code: 0, errors: "", said: { task, wrong: [], isOver: true } });
  });

  it("a path of a smaller MTU: with packetBytes, IP fragments nothing", async () => {
    const setMtu = (bytes: number): void => {
      for (const [end, name] of NAMES.entries())
        ip("-n", name, "link", "set", CABLES[end] as string, "mtu", `${bytes}`);
    };
    const fragments = (): number => {
      const text = execFileSync("ip", ["netns", "exec", NAMES[0], "cat", "/proc/net/snmp"], { encoding: "utf8" });
      const [names, values] = text.split("\n").flatMap((line) => (line.startsWith("Ip:") ? [line.split(" ")] : []));
      return Number(values?.[names?.indexOf("FragCreates") ?? -1]);
    };
    setMtu(1280);
    try {
      const before = fragments();
      expect(await start(2, { packetBytes: 1232 }).ended).toEqual(rightOf(2));
      expect(fragments()).toBe(before);
      expect(await start(2, {}).ended).toEqual(rightOf(2));
      expect(fragments()).toBeGreaterThan(before);
    } finally {
      setMtu(1500);
    }
  });

  it("both nodes are killed and started again, at the same addresses: the new job is whole", async () => {
    const { children, underWay, ended } = start(MANY, {});
    await underWay;
    for (const child of children) child.kill("SIGKILL");
    await ended;
    expect(await start(2, {}).ended).toEqual(rightOf(2));
  });
});

// Nodes of a job on two hosts, which are network namespaces: with a cable between them that can be cut, and loses packets.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { cli, withoutWaits } from "../support/run-command.js";
import { script } from "../support/ssh.js";
import { ALL, type End, longerThan, oneOf, TwoHosts, whyNoHosts } from "../support/two-hosts.js";

const program = fileURLToPath(new URL("programs/bulk.js", import.meta.url));
const parts = fileURLToPath(new URL("../cli/programs/parts.js", import.meta.url));
/** On its own host, the port is free. */
const PORT = 7117;
const ENDS = [0, 1] as const;
const LINKS = ["udp", "websocket"] as const;

const isRequired = process.env.PAMIR_REQUIRE_NAMESPACES === "1";
const why = whyNoHosts();
if (why !== "" && !isRequired) console.log(`not run: nodes in network namespaces (${why})`);
describe.skipIf(!isRequired)("network namespaces", () => it("can be made", () => expect(why).toBe("")));

const FAULTS = { loss: 0.01, duplicate: 0.01, reorder: 0.02, delay: 20, seed: SEED };

interface Said {
  readonly task: number;
  readonly done: number;
  readonly wrong: readonly string[];
  readonly isOver: boolean;
}

describe.skipIf(why !== "")("nodes in two network namespaces", { timeout: 200_000 }, () => {
  const folder = mkdtempSync(join(inject("folder"), "namespaces-"));
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const children = new Set<ChildProcess>();

  let hosts: TwoHosts;

  beforeAll(async () => {
    hosts = await TwoHosts.start();
  });
  afterEach(() => {
    for (const child of children) child.kill("SIGKILL");
    children.clear();
    hosts.cable("up");
    for (const end of ENDS) hosts.filter(end, undefined);
  });
  afterAll(() => {
    hosts?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A process on each host. */
  function start(rounds: number, options: object, env: (end: End) => object = () => ({}), module = program) {
    const nodes = ENDS.map((rank) => {
      const [command, ...args] = [...hosts.on(rank), process.execPath, module, `${rounds}`];
      const child = spawn(command as string, args, {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env.PATH,
          PAMIR_RANK: `${rank}`,
          PAMIR_SIZE: "2",
          PAMIR_NODE: `${rank}`,
          PAMIR_RENDEZVOUS: `${hosts.addresses[0]}:${PORT}`,
          PAMIR_KEY_FILE: keyFile,
          PAMIR_OPTIONS: JSON.stringify(options),
          ...env(rank),
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
  /** The ends of nodes, without what the one whose cable was pulled out has said of that. */
  const withoutUnsent = <One extends { readonly errors: string }>(ends: readonly One[]): One[] =>
    ends.map((end) => ({
      ...end,
      errors: end.errors.replace(/^pamir: node 1 can't send to node 0 at udp:\S+ \(PAMIR_UNSENT\): .*\n/, ""),
    }));
  /** Rounds that are not over before a test interferes, but for the slowest machines. */
  const MANY = 1000;

  it.each(LINKS)("messages, offers, puts, gets and rmws by %s, where packets are lost", async (link) => {
    expect(await start(3, { link, impairments: FAULTS }).ended).toEqual(rightOf(3));
  });

  it.each(LINKS)("the same where the system loses them, %s", async (link) => {
    for (const end of ENDS) hosts.filter(end, oneOf(100));
    expect(await start(3, { link, impairments: { delay: 20 } }).ended).toEqual(rightOf(3));
  });

  it.each(LINKS)("the same through a narrow queue, which overflows, %s", async (link) => {
    for (const end of ENDS) hosts.narrow(end, 20, 3);
    const ends = await start(3, { link }).ended;
    expect(hosts.widen(0) + hosts.widen(1)).toBeGreaterThan(0);
    expect(ends).toEqual(rightOf(3));
  });

  it("a path that drops packets of more than 1,280 bytes, without a word: packetBytes of 1,232 suit it, at the address of PAMIR_BIND_HOST", async () => {
    for (const end of ENDS) hosts.filter(end, longerThan(1280));
    const nodes = start(3, { packetBytes: 1232 }, (end) => ({ PAMIR_BIND_HOST: hosts.addresses[end] }));
    expect(await nodes.ended).toEqual(rightOf(3));
  });

  it.each(LINKS)("a node is killed in mid-transfer, %s: the other one ends its operations", async (link) => {
    const { children, underWay, ended } = start(MANY, { link, silence: 1500 });
    await underWay;
    children[1].kill("SIGKILL");
    const [first, second] = await ended;
    expect(first).toMatchObject({ code: 0, errors: "", said: { task: 0, wrong: [], isOver: true } });
    expect(second).toMatchObject({ code: "SIGKILL" });
  });

  it("the cable is cut: after shrink() the part with rank 0 goes on, and the other one gets PAMIR_MINORITY", async () => {
    const { underWay, ended } = start(0, { silence: 3000 }, undefined, parts);
    await underWay;
    hosts.cable("down");
    expect((await ended).map(({ said }) => said)).toEqual([
      { task: 0, size: 1, codes: [] },
      { task: 1, size: 2, codes: ["PAMIR_MINORITY"] },
    ]);
  });

  /** Milliseconds for which a node is stopped. */
  const STOPPED = byEffort({ quick: 1500, normal: 1500, deep: 15_000 });

  it.each(LINKS)(
    "a node is stopped in mid-transfer, and goes on before the silence is over, %s: nothing is lost",
    async (link) => {
      const { children, underWay, ended } = start(20, { link, silence: 60_000 });
      await underWay;
      children[1].kill("SIGSTOP");
      await delay(STOPPED);
      children[1].kill("SIGCONT");
      expect(await ended).toEqual(rightOf(20));
    },
  );

  it.each(LINKS)(
    "a node is stopped for longer than the silence, %s: both give each other up, and end",
    async (link) => {
      const { children, underWay, ended } = start(MANY, { link, silence: STOPPED / 3 });
      await underWay;
      children[1].kill("SIGSTOP");
      await delay(STOPPED);
      children[1].kill("SIGCONT");
      for (const [task, end] of (await ended).entries())
        expect(end).toMatchObject({ code: 0, errors: "", said: { task, wrong: [], isOver: true } });
    },
  );

  it.each(LINKS)("the cable is cut in mid-transfer, and mended, %s: nothing is lost", async (link) => {
    const { underWay, ended } = start(5, { link, impairments: FAULTS, silence: 60_000 });
    await underWay;
    for (let cut = 0; cut < 2; cut++) {
      hosts.cable("down");
      await delay(1000);
      hosts.cable("up");
      await delay(200);
    }
    expect(withoutUnsent(await ended)).toEqual(rightOf(5));
  });

  it.each(LINKS)("the cable is cut for long, %s: the nodes go on once it is mended", async (link) => {
    const { underWay, ended } = start(5, { link, silence: 60_000 });
    await underWay;
    hosts.cable("down");
    await delay(byEffort({ quick: 2000, normal: 2000, deep: 15_000 }));
    hosts.cable("up");
    expect(withoutUnsent(await ended)).toEqual(rightOf(5));
  });

  it("no route leads to the other host any more: the node says so within 2 s, once, and goes on once there is one again", async () => {
    const { children, underWay, ended } = start(20, { link: "udp", silence: 60_000 });
    await underWay;
    let said = "";
    const told = new Promise<void>((resolve) =>
      children[0].stderr?.on("data", (text) => {
        said += text;
        if (said.includes("\n")) resolve();
      }),
    );
    const other = `${hosts.addresses[1]}/32`;
    hosts.run(0, "ip", "route", "add", "unreachable", other);
    await told;
    await delay(700);
    hosts.run(0, "ip", "route", "del", "unreachable", other);
    const [first, second] = await ended;
    expect(first?.errors).toMatch(
      /^pamir: node 0 can't send to node 1 at udp:10\.83\.71\.2:\d+ \(PAMIR_UNSENT\): the system refuses its packets \(EHOSTUNREACH: no route leads to that host\); unless that changes, its tasks count as ended after 60000 ms\n$/,
    );
    expect([{ ...first, errors: "" }, second]).toEqual(rightOf(20));
  });

  it("the cable is cut for longer than the silence: each node gives the other one up, and both end", async () => {
    const { underWay, ended } = start(MANY, { silence: 1500 });
    await underWay;
    hosts.cable("down");
    const ends = withoutUnsent(await ended);
    for (const [task, end] of ends.entries())
      expect(end).toMatchObject({ code: 0, errors: "", said: { task, wrong: [], isOver: true } });
  });

  it("one direction of the cable loses all packets, then again none: nothing is lost", async () => {
    const { underWay, ended } = start(20, { silence: 60_000 });
    await underWay;
    for (const end of ENDS) {
      hosts.filter(end, ALL);
      await delay(1000);
      hosts.filter(end, undefined);
    }
    expect(await ended).toEqual(rightOf(20));
  });

  it("one direction of the cable loses all packets for longer than the silence: each node gives the other one up", async () => {
    const { underWay, ended } = start(MANY, { silence: 1500 });
    await underWay;
    hosts.filter(1, ALL);
    for (const [task, end] of (await ended).entries())
      expect(end).toMatchObject({ code: 0, errors: "", said: { task, wrong: [], isOver: true } });
  });

  it("a path of a smaller MTU: with packetBytes, IP fragments nothing", async () => {
    const fragments = (): number => {
      const text = hosts.run(0, "cat", "/proc/net/snmp");
      const [names, values] = text.split("\n").flatMap((line) => (line.startsWith("Ip:") ? [line.split(" ")] : []));
      return Number(values?.[names?.indexOf("FragCreates") ?? -1]);
    };
    hosts.setMtu(1280);
    try {
      const before = fragments();
      expect(await start(2, { packetBytes: 1232 }).ended).toEqual(rightOf(2));
      expect(fragments()).toBe(before);
      expect(await start(2, {}).ended).toEqual(rightOf(2));
      expect(fragments()).toBeGreaterThan(before);
    } finally {
      hosts.setMtu(1500);
    }
  });

  it("both nodes are killed and started again, at the same addresses: the new job is whole", async () => {
    const { children, underWay, ended } = start(MANY, {});
    await underWay;
    for (const child of children) child.kill("SIGKILL");
    await ended;
    expect(await start(2, {}).ended).toEqual(rightOf(2));
  });

  /** Runs a program by `pamir run` from the first host, with two tasks on each. Control goes by pipes, as with ssh. */
  function runOnBoth(file: string, ...options: string[]) {
    const rsh = script(folder, "rsh", `host=$1; shift; exec ip netns exec ${hosts.prefix}$host sh -c "$1"`);
    const args = [cli, "run", "--hosts", "a:2,b:2", "--rsh", rsh, ...options, "--no-labels", resolve(file)];
    const [command, ...rest] = [...hosts.on(0), process.execPath, ...args];
    const { status, stdout, stderr } = spawnSync(command as string, rest, { encoding: "utf8", timeout: 100_000 });
    return { status, stdout, stderr: withoutWaits(stderr) };
  }

  it.each([
    ["p2p.js", "corner: 41958"],
    ["stencil.js", "norm: 42"],
    ["transpose.js", "sum of errors: 0"],
    ["nstream.js", "checksum: 336000000"],
  ])("pamir run --hosts, examples/%s: the right answer, over the cable", (file, answer) => {
    const before = ENDS.map((end) => hosts.received(end));
    const { status, stdout, stderr } = runOnBoth(`examples/${file}`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(`tasks: 4, ${answer} as it must be, `);
    for (const end of ENDS) expect(hosts.received(end) - (before[end] as number)).toBeGreaterThan(1000);
  });

  it("pamir run --hosts --restart: tasks that are killed on a host go on there", () => {
    const { status, stdout, stderr } = runOnBoth("test/cli/programs/replaced.js", "--restart", "1");
    expect(stderr.match(/goes on as/g)).toHaveLength(2);
    expect([status, stdout]).toEqual([0, '{"ended":"PAMIR_SHUTDOWN","ranks":[2,3],"between":5}\n']);
  });
});

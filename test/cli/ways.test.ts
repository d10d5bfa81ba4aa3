// By what the packets of nodes go, as `pamir top` and `pamir info --job` show it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { isAnswer, type Seen } from "../../src/cli/top/answer.js";
import { jobWays, waysText } from "../../src/cli/top/ways.js";
import { type Launched, newJob, said, startLauncher } from "../support/nats-launcher.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { cli } from "../support/run-command.js";

const programOf = (name: string): string => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
const TRAFFIC = programOf("nats-traffic");
const BLOCKED = programOf("blocked");
const PATIENCE = 60_000;

let running: ChildProcess[] = [];
afterEach(async () => {
  const alive = running.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  const gone = alive.map((child) => new Promise((resolve) => child.once("exit", resolve)));
  for (const child of alive) child.kill("SIGTERM");
  running = [];
  await Promise.all(gone);
});

function pamir(...args: string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { encoding: "utf8", timeout: PATIENCE });
  return stdout + stderr;
}

/** What a command says, once it says this. */
async function until(what: RegExp, ...args: string[]): Promise<string> {
  for (const end = performance.now() + PATIENCE; ; ) {
    const shown = pamir(...args);
    if (what.test(shown)) return shown;
    if (performance.now() > end) throw new Error(`not ${what}: ${shown}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Cells of the table about ways. */
function rowsOf(shown: string): string[][] {
  const table = shown.slice(shown.indexOf("│ node │ to "));
  const rows = table.split("\n").filter((line) => line.startsWith("│"));
  return rows.slice(1).map((row) =>
    row
      .split("│")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

describe.skipIf(NATS_SERVER === undefined)("nodes at a NATS server", { timeout: 180_000 }, () => {
  async function started(server: NatsServer, job: string, env: Record<string, string>): Promise<Launched[]> {
    const args = ["--nodes", "2", "-n", "4", "--top", TRAFFIC, "1000000", "5"];
    const nodes = [0, 1].map(() => startLauncher(server.url, job, args, env));
    running.push(...nodes.map(({ child }) => child));
    await Promise.all(nodes.map(({ child }) => said(child, "begins")));
    return nodes;
  }

  it("through the server; while that is gone; and again, as top, info and its JSON say", async () => {
    const server = await NatsServer.start();
    try {
      const job = newJob();
      const [first] = await started(server, job, { PAMIR_NATS_DIRECT: "0" });
      const at = server.url.replace("nats://", "");
      const pid = String(first?.child.pid);
      const rows = rowsOf(await until(/│ nats +│ 127[\s\S]*│ nats +│ 127/, "top", pid, "--once", "--interval", "500"));
      expect(rows.map((row) => row.slice(0, 4))).toEqual([
        ["0", "1", "nats", at],
        ["1", "0", "nats", at],
      ]);
      for (const row of rows)
        expect(row.slice(4)).toEqual([
          expect.stringMatching(/^\d+ s$/),
          expect.stringMatching(/\d/),
          expect.stringMatching(/\d/),
        ]);
      await server.kill();
      await until(/by nats, through no server, for \d+ s\n/, "info", "--job", job);
      await server.again();
      const shown = await until(/it broke once\n[\s\S]*it broke once\n/, "info", "--job", job);
      expect(shown).toMatch(
        /^node 0, process \d+: tasks 0-1, by shared memory\n {2}node 1 {5}by nats, through [\d.:]+, for \d+ s\n/,
      );
      expect(shown).toMatch(/\nnode 1, process \d+: tasks 2-3, by shared memory\n {2}node 0 {5}by nats, /);
      await until(/\nnode 0: nats broke once\nnode 1: nats broke once\n/, "top", pid, "--once");
      const json = JSON.parse(await until(/"isKnown": true[\s\S]*"isKnown": true/, "info", "--job", job, "--json"));
      expect(json.map(({ node }: { node: number }) => node)).toEqual([0, 1]);
      expect(json[1].ways.ways).toMatchObject([{ node: 0, by: "nats", at, hasEnded: false }]);
    } finally {
      await server.close();
    }
  });

  it("the short way, since it was found", async () => {
    const server = await NatsServer.start();
    try {
      const job = newJob();
      await started(server, job, {});
      const shown = await until(
        /by nats short way[\s\S]*node 1,[\s\S]*by nats short way, through/,
        "info",
        "--job",
        job,
      );
      expect(shown).toMatch(/\n {2}node 1 {5}by nats short way, through 127\.0\.0\.1:\d+, for \d+ s\n/);
      expect(shown).toMatch(/\n {2}packets {4}by nats short way: [\d,]+ sent, [\d,]+ received; it broke 0 times\n/);
    } finally {
      await server.close();
    }
  });
});

describe("nodes by UDP", { timeout: 120_000 }, () => {
  it.each([
    ["agents of their own", {}, /│ +1 │ 0 +│ udp │ 127\.0\.0\.1:\d+ +│/],
    [
      "an agent on a thread that blocks",
      { PAMIR_OPTIONS: '{"agent":"inline"}' },
      /│ +1 │ +│ udp │ its agent is busy +│/,
    ],
  ])("%s", async (_, env, row) => {
    const child = spawn(process.execPath, [cli, "run", "--top", "--nodes", "2", "-n", "2", BLOCKED], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "ignore"],
    });
    running.push(child);
    await until(row, "top", String(child.pid), "--once", "--interval", "100");
  });

  it("no job of that name: how it opts in", () => {
    expect(pamir("info", "--job", "of-no-name")).toBe(
      'pamir: no node of a job named "of-no-name" answers here: it opts in by --top, or PAMIR_TOP=1\n',
    );
  });
});

describe("the text", () => {
  const dump = { heap: { bytes: 1, free: 1 }, stuck: [], tasks: [] };
  const placed = { place: { job: 1, node: 0, tasksPerNode: 1, parent: 1, nodes: [] }, pid: 7, program: ["a"], dump };
  const traffic = (by: string, sent: number, received: number, breaks = 0) => ({ by, sent, received, breaks });
  const seenAt = (at: number, ways: object) => ({ ...placed, ways, socket: "one", at }) as unknown as Seen;
  const direct = (node: number, age: number) => ({
    node,
    by: "nats short way",
    at: `10.0.0.${node}:9`,
    age,
    hasEnded: false,
  });
  const ways = [
    ...[1, 2, 3].map((node) => direct(node, 1000 * node)),
    { node: 4, by: "nats", at: "10.0.0.9:4222", age: 7_300_000, hasEnded: false },
    { node: 5, hasEnded: false },
    { node: 6, by: "nats", at: "10.0.0.9:4222", hasEnded: true },
    { node: 7, by: "nats", at: "10.0.0.9:4222", age: 130_000, hasEnded: false },
  ];
  const known = { link: "nats", isKnown: true, ways };

  it("puts the nodes of a way together, with the packets of a second and the latest change", () => {
    const before = seenAt(1000, { ...known, traffic: [traffic("nats", 10, 0), traffic("nats short way", 100, 4)] });
    const now = seenAt(3000, {
      ...known,
      traffic: [traffic("nats", 10, 30, 2), traffic("nats short way", 4100, 4, 1)],
    });
    const [table, ...breaks] = waysText([now], [before]);
    expect(rowsOf(table as string)).toEqual([
      ["0", "1-3", "nats short way", "", "1 s", "2,000", "0"],
      ["0", "4, 7", "nats", "10.0.0.9:4222", "2 min", "0", "15"],
      ["0", "5", "not used yet", "", "", "", ""],
      ["0", "6", "has ended", "10.0.0.9:4222", "", "", ""],
    ]);
    expect(breaks).toEqual(["node 0: nats broke 2 times", "node 0: nats short way broke once"]);
    // A terminal of 80 columns shows it.
    expect(Math.max(...(table as string).split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    const text = jobWays([now]);
    expect(text).toContain("\n  node 3     by nats short way, through 10.0.0.3:9, for 3 s\n");
    expect(text).toContain(
      "\n  node 4     by nats, through 10.0.0.9:4222, for 2 h\n  node 5     not used yet\n  node 6     has ended\n",
    );
  });

  it("says nothing where no node has others, and what is known where an agent is busy", () => {
    expect(waysText([{ ...placed, socket: "one", at: 1 } as unknown as Seen], [])).toEqual([]);
    const busy = seenAt(1, { link: "udp", isKnown: false, ways: [], traffic: [] });
    expect(jobWays([busy])).toContain("\n  others     by udp; its agent is busy\n");
  });

  it("shows a row for packets of a way by which no node's packets go any more", () => {
    const of = (at: number, sent: number) =>
      seenAt(at, {
        link: "nats",
        isKnown: true,
        ways: [direct(1, 0)],
        traffic: [{ ...traffic("nats", sent, 0), at: "a:1" }],
      });
    expect(rowsOf(waysText([of(2000, 5)], [of(1000, 1)])[0] as string)[1]).toEqual([
      "0",
      "",
      "nats",
      "a:1",
      "",
      "4",
      "0",
    ]);
    expect(rowsOf(waysText([of(2000, 5)], [of(1000, 5)])[0] as string)).toHaveLength(1);
  });

  it.each<[string, object]>([
    ["a way without a node", { ...known, ways: [{ by: "nats" }], traffic: [] }],
    ["a way by a number", { ...known, ways: [{ node: 1, by: 1, hasEnded: false }], traffic: [] }],
    ["packets that are a text", { ...known, traffic: [{ by: "nats", sent: "1", received: 1, breaks: 0 }] }],
  ])("takes no answer that has %s", (_, wrong) => {
    expect(isAnswer({ ...placed, ways: wrong })).toBe(false);
    expect(isAnswer({ ...placed, ways: { ...known, traffic: [] } })).toBe(true);
  });
});

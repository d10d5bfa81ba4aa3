// `pamir run --nats`: launchers that meet at a server, in any order, and what goes wrong there.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { keyFile, linesOf, newJob, said, startLauncher } from "../support/nats-launcher.js";
import { NATS_SERVER, NatsServer, natsCluster } from "../support/nats-server.js";
import { app, run, tasksOf } from "../support/run-command.js";

const programOf = (name: string): string => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
const TRAFFIC = programOf("nats-traffic");
const CUT_OFF = programOf("cut-off");

describe.skipIf(NATS_SERVER === undefined)("one server", { timeout: 120_000, concurrent: true }, async () => {
  const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
  afterAll(() => server?.close());
  const url = server?.url ?? "";

  it("two launchers, one later: four tasks, whose messages come once and in order", async () => {
    const args = ["--nodes", "2", "-n", "4", TRAFFIC, "300"];
    const job = newJob();
    const first = startLauncher(url, job, args);
    await delay(1500);
    const second = startLauncher(url, job, args);
    const [one, other] = await Promise.all([first.ended, second.ended]);
    expect([one.status, other.status, one.err, other.err]).toEqual([0, 0, "", ""]);
    const labels = [0, 1, 2, 3];
    const wanted = labels.flatMap((task) => [`[${task}] all came`, `[${task}] begins`]);
    expect(linesOf(one.out, other.out)).toEqual(wanted);
  });

  it("processes by their environment alone, without a key where that is allowed, over UDP", async () => {
    const env = {
      ...process.env,
      PAMIR_NATS: url,
      PAMIR_JOB: newJob(),
      PAMIR_NODES: "3",
      PAMIR_INSECURE: "1",
      PAMIR_OPTIONS: '{"link":"udp"}',
    };
    const ended = await Promise.all(
      ["a", "b", "c"].map(async (node) => {
        const child = spawn(process.execPath, [TRAFFIC, "100"], {
          env: { ...env, PAMIR_NODE: node },
          timeout: 110_000,
        });
        const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
        return { out, err };
      }),
    );
    expect(ended).toEqual(ended.map(() => ({ out: "begins\nall came\n", err: "" })));
  });

  it("eight launchers at once become one job", async () => {
    const job = newJob();
    const all = Array.from({ length: 8 }, () => startLauncher(url, job, ["--nodes", "8", "-n", "8", app]));
    const ended = await Promise.all(all.map((one) => one.ended));
    expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
    const tasks = ended.map(({ out }) => Number(/^\[(\d+)\]/.exec(out)?.[1])).sort();
    expect(tasks).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it("a task that is killed: its launcher tells the others, which shrink and go on", async () => {
    const job = newJob();
    const args = ["--nodes", "2", "-n", "4", "-x", 'PAMIR_OPTIONS={"silence":60000}', CUT_OFF, "shrink", "kill"];
    const ended = await Promise.all([startLauncher(url, job, args).ended, startLauncher(url, job, args).ended]);
    const goesOn = linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("goes on with 2"));
    expect(goesOn.length).toBe(2);
    const [first, second] = ended.map(({ status }) => status as number).sort((one, other) => one - other);
    expect(first).toBe(0);
    // Of the killed task, or of its sibling, which is a minority: a busy launcher hears of both at once, in any order.
    expect([137, 1]).toContain(second);
  });

  it("a launcher that is killed, and so its tasks: the server says that nothing listens there", async () => {
    const job = newJob();
    // No silence tells of it within this test.
    const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":600000}', programOf("awaits-end")];
    const nodes = [startLauncher(url, job, args), startLauncher(url, job, args)];
    const told = await Promise.all(nodes.map(({ child }) => said(child, "begins")));
    const last = told.findIndex((text) => text.includes("[1] begins"));
    nodes[last]?.child.kill("SIGKILL");
    const other = await nodes[1 - last]?.ended;
    expect(other).toEqual({ status: 0, out: "[0] begins\n[0] task 1 has ended\n", err: "" });
  });

  it("nodes that were started differently are refused, and say how", async () => {
    const job = newJob();
    const timeout = ["--start-timeout", "15"];
    const first = startLauncher(url, job, ["--nodes", "2", "-n", "2", ...timeout, app]);
    await said(first.child, "waits for the other nodes; there are 1 of 2", "stderr");
    const other = await startLauncher(url, job, ["--nodes", "3", "-n", "3", ...timeout, app]).ended;
    expect(other.status).toBe(2);
    expect(other.err).toMatch(/: the number of nodes is "3" on ".*", and "2" on ".*" \(PAMIR_BOOTSTRAP\)\n$/);
    const missing = await first.ended;
    expect(missing.status).toBe(2);
    expect(missing.err).toMatch(
      /2 nodes did not meet within 15 s; there are 1 of 2 nodes of job .* \(PAMIR_TIMEDOUT\)\n$/,
    );
  });

  it("jobs of one name with different keys do not mix, and say so", async () => {
    const job = newJob();
    const args = ["--nodes", "2", "-n", "2", "--start-timeout", "15", app];
    const ended = await Promise.all([
      startLauncher(url, job, args).ended,
      startLauncher(url, job, args, { PAMIR_KEY_FILE: keyFile(2) }).ended,
    ]);
    for (const { status, err } of ended) {
      expect(status).toBe(2);
      expect(err).toContain(`pamir run: a job named ${job} with another key meets at the same server`);
    }
  });

  it("a launcher that is ended while it waits for the others", async () => {
    const one = startLauncher(url, newJob(), ["--nodes", "2", "-n", "2", app]);
    await said(one.child, "waits for the other nodes", "stderr");
    one.child.kill("SIGTERM");
    expect(await one.ended).toEqual({ status: 143, out: "", err: "" });
  });

  it("programs in C are ranks of one job, and a failure ends the job", async () => {
    const [job, failing] = [newJob(), newJob()];
    const args = ["--nodes", "2", "-n", "4"];
    const hello = [0, 1].map(() => startLauncher(url, job, [...args, join("test/c/built", "hello.wasm")]));
    const lines = linesOf(...(await Promise.all(hello.map(({ ended }) => ended))).map(({ out }) => out));
    expect(lines).toEqual([0, 1, 2, 3].map((rank) => `[${rank}] rank ${rank} of 4, sum 6`));
    const ends = [0, 1].map(() => startLauncher(url, failing, [...args, join("test/c/built", "ends.wasm"), "rank"]));
    const ended = await Promise.all(ends.map(({ ended }) => ended));
    // The other node's ranks end by themselves, or with the job.
    expect(ended.map(({ status }) => status)).toContain(6);
    expect(ended.map(({ err }) => err).join("")).toContain("rank 77 is none of 0 to 3 (MPI_ERR_RANK)");
  });

  it("a node too many gets none of the others' numbers", async () => {
    const job = newJob();
    const args = ["--nodes", "2", "-n", "2", "--start-timeout", "20", app];
    const ended = await Promise.all([0, 1, 2].map(() => startLauncher(url, job, args).ended));
    expect(ended.map(({ status }) => status).sort()).toEqual([0, 0, 2]);
    expect(ended.map(({ err }) => err).join("")).toMatch(
      /^pamir: job \S+: (all of its nodes are there|2 nodes did not meet)/,
    );
  });

  it("a node that is stopped for five seconds goes on", async () => {
    const job = newJob();
    const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":30000}', TRAFFIC, "1500"];
    const nodes = [startLauncher(url, job, args), startLauncher(url, job, args)];
    await Promise.all(nodes.map(({ child }) => said(child, "begins")));
    const [first] = nodes.flatMap(({ child }) => tasksOf(child.pid as number));
    if (first === undefined) throw new Error("no task");
    process.kill(first, "SIGSTOP");
    await delay(5000);
    process.kill(first, "SIGCONT");
    const ended = await Promise.all(nodes.map((one) => one.ended));
    expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
    expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came")).length).toBe(2);
  });
});

describe.skipIf(NATS_SERVER === undefined)("three servers of a cluster", { timeout: 120_000, concurrent: true }, () => {
  /** Runs traffic between two nodes at different servers, and does something to the servers meanwhile. */
  async function disturbed(count: number, disturb: (servers: readonly NatsServer[]) => Promise<void>): Promise<void> {
    const servers = await natsCluster(3);
    try {
      const job = newJob();
      const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":60000}', TRAFFIC, `${count}`];
      const urls = servers.map(({ url }) => url);
      // The first one of the list is not always the one that a client takes: it draws lots.
      const nodes = [startLauncher(urls[0] as string, job, args), startLauncher(urls[1] as string, job, args)];
      await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      await disturb(servers);
      const ended = await Promise.all(nodes.map((one) => one.ended));
      expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
      expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came")).length).toBe(2);
    } finally {
      await Promise.all(servers.map((server) => server.close()));
    }
  }

  it("the one that a node is connected to is killed, and started again, twice", () =>
    disturbed(3000, async (servers) => {
      for (const server of [servers[0], servers[1]] as NatsServer[]) {
        await delay(300);
        await server.kill();
        await delay(300);
        await server.again();
      }
    }));

  it("all are gone for five seconds, and come back", () =>
    disturbed(3000, async (servers) => {
      await delay(300);
      await Promise.all(servers.map((server) => server.kill()));
      await delay(5000);
      await Promise.all(servers.map((server) => server.again()));
    }));
});

describe.skipIf(NATS_SERVER === undefined)("a server with little room for slow readers", { timeout: 120_000 }, () => {
  it("cuts off a node that is stopped: it connects again, and nothing is lost or comes twice", async () => {
    const server = await NatsServer.start({ config: 'max_pending: 1MB\nwrite_deadline: "2s"' });
    const job = newJob();
    const sender = await connectNats(natsPlace({ nats: server.url, job }), { name: "test" });
    try {
      const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":60000}', TRAFFIC, "3000"];
      // The subject of node 1, to which node 0 sends.
      const subject = new Promise<string>((resolve) =>
        sender.subscribe(`pamir.${job}.n.1.*`, { callback: (_, message) => resolve(message.subject) }),
      );
      const nodes = [0, 1].map(() => startLauncher(server.url, job, args, { PAMIR_NATS_DIRECT: "0" }));
      const told = await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      const at = told.findIndex((text) => text.includes("[1]"));
      const [task] = tasksOf(nodes[at]?.child.pid as number);
      if (task === undefined) throw new Error("no task");
      process.kill(task, "SIGSTOP");
      // What node 0 may send until node 1 answers is not enough: the system's buffers have room for it.
      while (!server.log.includes("Slow Consumer")) {
        for (let i = 0; i < 16; i++) sender.publish(await subject, new Uint8Array(60_000));
        await sender.flush();
      }
      process.kill(task, "SIGCONT");
      const ended = await Promise.all(nodes.map((one) => one.ended));
      expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
      expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came"))).toHaveLength(2);
      expect(server.log).toMatch(new RegExp(`pamir ${job} node 1.*Slow Consumer`));
    } finally {
      await sender.close();
      await server.close();
    }
  });
});

describe.skipIf(NATS_SERVER === undefined)("servers that refuse", { concurrent: true }, () => {
  async function refusedBy(config: string, env: Record<string, string> = {}, user = ""): Promise<string> {
    const server = await NatsServer.start({ config });
    try {
      const url = server.url.replace("nats://", `nats://${user}`);
      const { status, err } = await startLauncher(url, newJob(), ["--nodes", "2", "--start-timeout", "60", app], env)
        .ended;
      expect(status).toBe(2);
      return err;
    } finally {
      await server.close();
    }
  }

  it("a user that is none, or none at all", async () => {
    const config = 'authorization { user: "me", password: "secret" }';
    for (const user of ["", "me:wrong@"]) {
      const text = await refusedBy(config, {}, user);
      expect(text).toMatch(
        /: the server refuses this process's user, token or credentials: PAMIR_NATS and PAMIR_NATS_CREDS \(PAMIR_NATS\)\n$/,
      );
      expect(text).not.toContain("wrong");
    }
  });

  it("messages that are too short for packets", async () => {
    const server = await NatsServer.start({ config: "max_payload: 1024" });
    try {
      const job = newJob();
      const args = ["--nodes", "2", "-n", "2", app];
      const ended = await Promise.all([
        startLauncher(server.url, job, args).ended,
        startLauncher(server.url, job, args).ended,
      ]);
      const text = ended.map(({ err }) => err).join("");
      expect(text).toMatch(/the NATS server .* takes messages of 1024 bytes \(max_payload\), less than at least 1232/);
    } finally {
      await server.close();
    }
  });

  it.each([
    ["a program that answers otherwise", "HTTP/1.1 400 Bad Request\r\n\r\n", /another program than NATS answers there/],
    [
      "a program that says nothing",
      "",
      /a program that has said nothing for \d+ ms listens there, where NATS begins with INFO/,
    ],
  ])("%s", async (_, greets, wanted) => {
    const server = createServer((socket) => socket.on("error", () => {}).write(greets));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { status, err } = await startLauncher(`nats://127.0.0.1:${port}`, newJob(), [
      "--nodes",
      "2",
      "--start-timeout",
      "3",
      app,
    ]).ended;
    server.close();
    expect([status, err]).toEqual([2, expect.stringMatching(wanted)]);
  });
});

describe("wrong input", () => {
  it.each([
    [["--nodes", "2", "--hosts", "a,b"], "--hosts does not go with --nats: each machine starts pamir run itself"],
    [["--nodes", "2", "--processes", "2"], "--processes does not go with --nats"],
    [[], "--nats takes --nodes: the number of machines that start pamir run; or --later, where the job has begun"],
    [["--later", "--spare", "2"], "--spare does not go with --later without --nodes: the job has its numbers"],
    [["--nodes", "2", "--restart", "1", "--on-error", "abort"], "--restart does not go with --on-error abort"],
    [["--nodes", "2", "-n", "3"], "--tasks is 3, not a multiple of --nodes, which is 2"],
  ])("%j", (more, wanted) => {
    const { status, stderr } = run("--nats", "nats://127.0.0.1:1", "--job", "a", ...more, app);
    expect([status, stderr]).toEqual([2, `pamir: ${wanted}\n`]);
  });

  it("a job without a name, or without --nats", () => {
    expect(run("--nats", "nats://127.0.0.1:1", "--nodes", "2", app).stderr).toContain("--nats takes --job");
    expect(run("--job", "a", app).stderr).toContain("--job does not go with jobs without a NATS server");
  });
});

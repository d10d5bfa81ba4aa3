// pamir top: what it shows of a job that opted in, of one node or several, that it works while the launching thread is blocked, and that others
// are not seen.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { info } from "pamir";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import { ask, type JobsLook } from "../../src/cli/top/look.js";
import { textOf } from "../../src/cli/top/text.js";
import { printable } from "../../src/support/printable.js";
import { app, PATIENCE } from "../support/run-command.js";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const program = fileURLToPath(new URL("tasks/watched.js", import.meta.url));
const elsewhere = fileURLToPath(new URL("programs/elsewhere.js", import.meta.url));

function top(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [cli, "top", ...args], { encoding: "utf8", timeout: PATIENCE });
}

const running: ChildProcess[] = [];

/** Names of the sockets of a process's jobs. */
function socketsOf(pid: number): string[] {
  const folder = info().sockets as string;
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(`pamir-${pid}-`)) : [];
}

/** Starts the program; resolves once its tasks are up and, where it opts in, its monitor answers, which may be later. */
async function start(env: NodeJS.ProcessEnv, ...args: string[]): Promise<number> {
  const child = spawn(process.execPath, [program, ...args], { env: { ...process.env, ...env } });
  running.push(child);
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const pid = child.pid as number;
  const optsIn = env.PAMIR_TOP !== undefined || args.includes("top");
  const answers = async (): Promise<boolean> => {
    const [socket] = socketsOf(pid);
    return socket !== undefined && typeof (await ask(join(info().sockets as string, socket))) === "object";
  };
  for (const end = performance.now() + PATIENCE; optsIn && performance.now() < end && !(await answers()); ) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return pid;
}

/** Ends a process, which may have ended by itself. */
async function end(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await gone;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((child) => end(child)));
});

describe("pamir top", () => {
  it("shows each task: what it waits in, messages a second, what lies unasked for; its launching thread is blocked", async () => {
    const pid = await start({}, "top");
    const look = (): string[][] => {
      const { status, stdout, stderr } = top(String(pid), "--once", "--interval", "300");
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(new RegExp(`^${pid} {2}.*watched\\.js top\\nheap [\\d,]+ of [\\d,]+ bytes in use\\n`));
      const rows = stdout.split("\n").filter((line) => /^│ +\d/.test(line));
      return rows.map((row) => row.split("│").map((cell) => cell.trim()));
    };
    // Both looks come within 300 ms: on a busy machine, no task may have run between them.
    const isUnderWay = (all: string[][]): boolean => all.slice(1).every((row) => row[4] !== "0");
    let cells = look();
    for (const end = performance.now() + PATIENCE; !isUnderWay(cells) && performance.now() < end; ) cells = look();
    expect(cells.map((row) => row[1])).toEqual(["0", "1", "2"]);
    const orAwake = expect.stringMatching(/^(0: progress\(\))?$/);
    expect(cells.map((row) => row[3])).toEqual(["0: advanceUntil()", orAwake, orAwake]);
    // Tasks 1 and 2 play ping-pong, task 0 has sent to an id that nobody handles.
    expect(cells.slice(1).map((row) => Number(row[4]?.replaceAll(",", "")) > 0)).toEqual([true, true]);
    expect(cells[0]?.[4]).toBe("0");
    expect(cells[1]?.[10]).toBe("640");
    // Spins won and lost: numbers, also where there are none.
    for (const row of cells)
      expect([row[6], row[7]]).toEqual([expect.stringMatching(/^\d/), expect.stringMatching(/^\d/)]);
  });

  it("counts on where a counter wraps, from 0 where a context has come, and not at all where its task has ended", () => {
    const context = (index: number, messages: number) => ({
      ...{ context: index, messages, state: "open", lanes: [], waits: [] },
      ...{ pending: { bytes: 0 }, unexpectedBytes: 0, calls: 0 },
    });
    const task = (number: number, contexts: object[], sleeps: number, state = "up") => ({
      ...{ task: number, state, parked: true, since: 0, sleeps, spinsWon: 0, spinsLost: 0 },
      contexts,
    });
    const look = (at: number, tasks: object[]) => {
      const dump = { heap: { bytes: 0, free: 0 }, stuck: [], tasks };
      return {
        seen: [{ socket: "one", at, pid: 1, program: ["program"], dump }],
        silent: new Set(),
      } as unknown as JobsLook;
    };
    const before = look(1000, [
      task(0, [context(0, 2 ** 32 - 500)], 2 ** 32 - 1),
      task(1, [context(0, 7_000_000)], 3),
      task(2, [context(0, 100), context(1, 4_000_000)], 0),
      task(3, [], 0, "absent"),
    ]);
    const after = look(3000, [
      task(0, [context(0, 1500)], 3),
      task(1, [], 5, "dead"),
      task(2, [context(0, 300), context(2, 40)], 0),
      task(3, [context(0, 60)], 0),
      // Spawned since.
      task(4, [context(0, 90)], 0),
    ]);
    const rows = textOf(after, before)
      .split("\n")
      .filter((line) => /^│ +\d/.test(line));
    const cells = rows.map((row) => row.split("│").map((cell) => cell.trim()));
    expect(cells.map((row) => [row[1], row[2], row[4], row[5]])).toEqual([
      ["0", "asleep", "1,000", "2"],
      ["1", "dead", "", ""],
      ["2", "asleep", "120", "0"],
      ["3", "asleep", "30", "0"],
      ["4", "asleep", "", ""],
    ]);
  });

  it("--json: the dump, in an array", async () => {
    const pid = await start({ PAMIR_TOP: "1" });
    const { status, stdout } = top("--json", "--interval", "100", String(pid));
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({
        pid,
        program: [process.execPath, program],
        dump: expect.objectContaining({
          tasks: [0, 1, 2].map((task) => expect.objectContaining({ task, state: "up" })),
        }),
      }),
    ]);
  });

  it("sees nobody who did not opt in; says how to", async () => {
    const pid = await start({ PAMIR_TOP: undefined });
    expect(top(String(pid))).toEqual(
      expect.objectContaining({
        status: 1,
        stdout: "",
        stderr: `pamir: no job of process ${pid} has opted in: launch(…, { top: true }), or PAMIR_TOP=1\n`,
      }),
    );
  });

  it("a job that can't be seen goes on, and says why", async () => {
    const env = { ...process.env, TMPDIR: "/dev/null" };
    const child = spawn(process.execPath, [program, "top"], { env });
    running.push(child);
    let said = "";
    child.stderr.on("data", (part) => {
      said += part;
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    for (const end = performance.now() + PATIENCE; said === "" && performance.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(said).toMatch(/^pamir: top can't see this job: .*ENOTDIR/);
    expect(child.exitCode).toBeNull();
  });

  it.skipIf(process.platform === "win32").each<[name: string, make: (folder: string) => void]>([
    ["a link to a folder of this user", (folder) => symlinkSync(mkdtempSync(join(inject("folder"), "top-")), folder)],
    ["open to others", (folder) => mkdirSync(folder, { mode: 0o755 })],
    ["a file", (folder) => writeFileSync(folder, "")],
  ])("neither shows nor is shown jobs where the folder of the sockets is %s", async (_, make) => {
    const TMPDIR = mkdtempSync(join(inject("folder"), "top-"));
    const folder = join(TMPDIR, `pamir-${process.geteuid?.()}`);
    make(folder);
    const env = { ...process.env, TMPDIR };
    const child = spawn(process.execPath, [program, "top"], { env });
    running.push(child);
    const said = await new Promise((resolve) => child.stderr.once("data", (part) => resolve(String(part))));
    expect(said).toContain(`pamir: top can't see this job: `);
    expect(said).toContain(folder);
    const { status, stdout, stderr } = spawnSync(process.execPath, [cli, "top"], { env, encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(
      /^pamir: .* (is a symbolic link|has mode 0755: .*|is no folder)\. What answers there may be no job/,
    );
  });

  it("shows what a job says by escapes where it would act on the terminal, also in --json", async () => {
    const words = ["\x1b]0;title\x07\x1b[2J", "\u009b31m", "\u202egnp.exe", "x".repeat(2000)];
    const pid = await start({}, "top", ...words);
    const { stdout } = top(String(pid), "--once", "--interval", "100");
    expect(printable(stdout, true)).toBe(stdout);
    expect(stdout).toContain("watched.js top \\x1b]0;title\\x07\\x1b[2J \\x9b31m \\u202egnp.exe xxx");
    expect(stdout).toMatch(/xxx… \(\d+ characters\)\n/);
    const { stdout: json } = top(String(pid), "--json", "--interval", "100");
    expect(printable(json, true)).toBe(json);
    expect(JSON.parse(json)[0].program.slice(-4)).toEqual(words);
  });

  it("info() does without an entry in the password file", () => {
    const userInfo = vi.spyOn(process.getBuiltinModule("node:os"), "userInfo").mockImplementation(() => {
      throw new Error("no such user");
    });
    expect(info().sockets).toContain("pamir-");
    userInfo.mockRestore();
  });

  it("forgets the socket of a process that was killed", async () => {
    const pid = await start({}, "top");
    expect(socketsOf(pid)).toHaveLength(1);
    await end(running.pop() as ChildProcess);
    expect(top(String(pid)).status).toBe(1);
    expect(socketsOf(pid)).toEqual([]);
  });

  it.skipIf(process.platform === "win32")("keeps that of a process which goes on, and may not listen yet", async () => {
    const folder = info().sockets as string;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const socket = join(folder, `pamir-${process.pid}-${2 ** 31 - 1}.sock`);
    // It refuses connections, as one does between bind() and listen(): what listened there was killed.
    const server = `require("node:net").createServer().listen(${JSON.stringify(socket)})`;
    spawnSync(process.execPath, ["-e", `${server}.on("listening", () => process.kill(process.pid, "SIGKILL"))`]);
    try {
      expect(await ask(socket)).toBeUndefined();
      expect(existsSync(socket)).toBe(true);
    } finally {
      rmSync(socket, { force: true });
    }
  });

  it("ends when the jobs have", async () => {
    const pid = await start({}, "top");
    const shown = spawn(process.execPath, [cli, "top", String(pid), "--interval", "100"]);
    let text = "";
    shown.stdout.on("data", (part) => {
      text += part;
    });
    const over = new Promise((resolve) => shown.once("close", resolve));
    while (!text.includes("heap")) await new Promise((resolve) => setTimeout(resolve, 20));
    running.pop()?.kill("SIGKILL");
    expect(await over).toBe(0);
    expect(text).toMatch(/all jobs are over\n$/);
  });

  it("does not wait for ever for one that answers nothing, nor takes other files for sockets", async () => {
    const folder = info().sockets as string;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Of no process, and of this run alone: others of this machine may do the same.
    const pid = 2 ** 31 - 1 - process.pid;
    const silent = createServer(() => {}).listen(join(folder, `pamir-${pid}-1.sock`));
    const stray = join(folder, "pamir-notes.txt");
    writeFileSync(stray, "");
    try {
      expect(top(String(pid)).status).toBe(1);
      expect(existsSync(stray)).toBe(true);
    } finally {
      silent.close();
    }
  });

  describe("takes of an answer", () => {
    const limits = { silence: 60_000, total: 60_000, bytes: 10_000 };
    const head = "HTTP/1.0 200 OK\r\n\r\n";
    const right = {
      pid: 1,
      program: ["a"],
      dump: { heap: { bytes: 1, free: 1 }, stuck: [], tasks: [] },
    };
    let served = 0;
    /** What is made of what a socket says. */
    async function asked(says: (socket: Socket) => void, limited = limits): Promise<unknown> {
      const path = join(inject("folder"), `answers-${served++}.sock`);
      const server = createServer((socket) => {
        socket.on("error", () => {});
        says(socket);
      }).listen(path);
      try {
        return await ask(path, limited);
      } finally {
        server.close();
      }
    }

    it("no more than so many bytes", async () => {
      const endless = (socket: Socket): void => {
        socket.write(head);
        const more = (): void => void socket.write(" ".repeat(10_000), (error) => error ?? more());
        more();
      };
      expect(await asked(endless)).toBeUndefined();
    });

    it("no more than so much time, though it comes byte by byte", async () => {
      const slow = (socket: Socket): void => {
        socket.write(head);
        const timer = setInterval(() => socket.write(" "), 5);
        socket.on("close", () => clearInterval(timer));
      };
      expect(await asked(slow, { ...limits, total: 100 })).toBe("silent");
      expect(await asked(() => {}, { ...limits, silence: 100 })).toBe("silent");
    });

    it.each<[name: string, answer: unknown]>([
      ["null", null],
      ["a list", []],
      ["an object without a dump", { pid: 1, program: [] }],
      ["a program that is no list", { ...right, program: "a" }],
      ["a number that is a text", { ...right, pid: "1" }],
      ["a task without contexts", { ...right, dump: { ...right.dump, tasks: [{ task: 0 }] } }],
      ["lines that are objects", { ...right, dump: { ...right.dump, stuck: [{}] } }],
      ["a place without nodes", { ...right, place: { job: 1, node: 0, tasksPerNode: 1, parent: 1 } }],
    ])("nothing where it is %s", async (_, answer) => {
      expect(await asked((socket) => socket.end(`${head}${JSON.stringify(answer)}`))).toBeUndefined();
    });

    it("what is right, and no socket's name from it", async () => {
      const answer = { ...right, socket: "/elsewhere" };
      expect(await asked((socket) => socket.end(`${head}${JSON.stringify(answer)}`))).toMatchObject({
        ...right,
        socket: expect.stringContaining(inject("folder")),
      });
      expect(await asked((socket) => socket.end("SSH-2.0-x\r\n"))).toBeUndefined();
      expect(await asked((socket) => socket.end(`${head}{"pid": 1`))).toBeUndefined();
    });
  });

  it.each([
    [["x"], 'PID is "x": a whole number from 1 to 2147483647'],
    [["1", "2"], "top takes one PID, not 2"],
    [["--interval", "99"], '--interval is "99": a whole number from 100 to 60000'],
  ])("%j is wrong input", (args, says) => {
    expect(top(...args)).toMatchObject({ status: 2, stdout: "", stderr: `pamir: ${says}\n` });
  });

  it.skipIf(process.platform !== "linux").each([
    ["--nodes", [0, 0, 1, 1], {}],
    ["--processes", [0, 1, 2, 3], { NODE_OPTIONS: `--import ${elsewhere}` }],
  ])(
    "pamir run %s: shows the tasks of all nodes, and names those that do not answer or have ended",
    async (option, nodes, env) => {
      const args = ["run", "--top", option, "2", "-n", "4", app, "hang"];
      const child = spawn(process.execPath, [cli, ...args], {
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "ignore"],
      });
      const look = (): string => top(String(child.pid), "--once", "--interval", "100").stdout;
      const last = nodes.at(-1);
      try {
        let shown = "";
        // A node that starts has a line before it answers, which says that it has no socket.
        while (!nodes.every((node) => new RegExp(`^node ${node}, process \\d+: heap`, "m").test(shown))) shown = look();
        expect(shown).toMatch(/^\d+ {2}\S+.*\nnode 0, process \d+: heap [\d,]+ of [\d,]+ bytes in use\nnode 1, /);
        expect(shown).toMatch(/\n│ node │ task │ state /);
        const rows = [...shown.matchAll(/^│ +(\d+) │ +(\d+) │ \w+/gm)];
        expect(rows.map(([, node, task]) => [Number(node), Number(task)])).toEqual(
          nodes.map((node, task) => [node, task]),
        );
        const pid = Number(new RegExp(`^node ${last}, process (\\d+): heap`, "m").exec(shown)?.[1]);
        process.kill(pid, "SIGSTOP");
        shown = look();
        expect(shown).toContain(`\nnode ${last}, process ${pid}: it does not answer\n`);
        expect(shown).toMatch(/^node 0, process \d+: heap/m);
        process.kill(pid, "SIGKILL");
        while (shown.includes("does not answer")) shown = look();
        expect(shown).toContain(
          `\nnode ${last}, process ${pid}: it has ended, or has no socket in ${info().sockets}\n`,
        );
      } finally {
        await end(child, "SIGTERM");
      }
    },
  );

  it("has help", () => {
    const { status, stdout } = top("--help");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^pamir top: .*\n\nUsage: pamir top/);
  });
});

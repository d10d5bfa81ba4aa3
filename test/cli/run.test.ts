// `pamir run` as a user has it: threads and processes, output with labels, exit codes, signals, wrong input.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, vi } from "vitest";
import { PERMISSION } from "../api/run-program.js";
import { byEffort, sample } from "../support/effort.js";
import { expectIdle } from "../support/idle.js";
import {
  app,
  cli,
  isGone,
  kill,
  killAllWith,
  PATIENCE,
  processesWith,
  run,
  saidBy,
  whenTaken,
} from "../support/run-command.js";

const WAYS: readonly (readonly string[])[] =
  process.platform === "linux" ? [[], ["--processes", "1"], ["--processes", "3"]] : [[]];

/** util-linux has a program that gives others a terminal. */
const HAS_TERMINAL = spawnSync("script", ["-qec", "true", "/dev/null"]).status === 0;

/** Whether each task is the main thread of a process of its own: Node itself prints its error. */
const isMainThread = (way: readonly string[]): boolean => way[1] === "3";

const drawn = sample(WAYS, byEffort({ quick: 1, normal: 2, deep: WAYS.length }), "pamir run");
describe.each(drawn.map((way) => [way.join(" ") || "threads", way] as const))("pamir run, %s", (_, way) => {
  it("runs the tasks, with their arguments, variables and labels", () => {
    const { status, stdout, stderr } = run("-n", "3", ...way, "-x", "PAMIR_X=a=b", app, "-n", "--x", "");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const said = saidBy(stdout);
    expect(said.map(({ task, args, x }) => ({ task, args, x }))).toEqual(
      [0, 1, 2].map((task) => ({ task, args: ["-n", "--x", ""], x: "a=b" })),
    );
    expect(new Set(said.map(({ pid }) => pid)).size).toBe(way.length === 0 ? 1 : Number(way[1]));
  });

  it("--trace writes its file where pamir run was started, not in the folder of --cwd", () => {
    const folder = mkdtempSync(join(inject("folder"), "trace-"));
    const args = [cli, "run", "-n", "3", ...way, "--trace", "trace.json", "--cwd", "/", app];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", timeout: 60_000 });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const { traceEvents } = JSON.parse(readFileSync(join(folder, "trace.json"), "utf8"));
    expect(traceEvents.length).toBeGreaterThan(2);
    rmSync(folder, { recursive: true });
  });

  it("its exit code is that of the first task that failed", () => {
    const { status, stdout, stderr } = run("--tasks=3", ...way, app, "exit");
    expect(saidBy(stdout)).toHaveLength(3);
    expect({ status, stderr }).toEqual({ status: 7, stderr: "pamir: task 1 exited with code 7\n" });
  });

  it("an error: its text and stack, and exit code 1", () => {
    const { status, stderr } = run("-n3", ...way, app, "throw");
    expect(status).toBe(1);
    const [first, at] = isMainThread(way)
      ? ["\\[1\\] file:.*app\\.js:\\d+", "\\[1\\]     at .*app\\.js"]
      : ["pamir: task 1 failed:", " {4}at .*app\\.js"];
    expect(stderr).toMatch(new RegExp(`^${first}\\n(.|\\n)*RangeError: on purpose\\n${at}`));
    if (isMainThread(way)) expect(stderr).toMatch(/\npamir: task 1 exited with code 1\n$/);
  });

  it("--on-error abort ends the tasks that go on; --timeout ends all", () => {
    const aborted = run("-n", "3", ...way, "--on-error", "abort", app, "exit");
    expect(aborted.status).toBe(7);
    const late = run("-n", "3", ...way, "--timeout", "0.5", app, "hang");
    expect(late.status).toBe(124);
    expect(late.stderr).toContain("has not ended after 0.5 s");
  });

  it.each(["SIGINT", "SIGTERM"] as const)("%s ends all", async (signal) => {
    const child = spawn(process.execPath, [cli, "run", "-n", "3", ...way, app, "hang"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let stdout = "";
    const closed = new Promise<number | null>((resolve) => child.on("close", resolve));
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (text) => {
        stdout += text;
        if (stdout.split("\n").length > 3) resolve();
      });
    });
    child.kill(signal);
    expect(await closed).toBe(signal === "SIGINT" ? 130 : 143);
    for (const { pid } of saidBy(stdout)) expect(isGone(pid)).toBe(true);
  });
});

it.each([
  ["threads", []],
  ["threads of a process", ["--processes", "1"]],
  ["threads of a process, no labels", ["--processes", "1", "--no-labels"]],
  ["threads of a process, detached", ["--processes", "1", "--detach"]],
  ["processes", ["--processes", "2"]],
  ["processes, no labels", ["--processes", "2", "--no-labels"]],
  ["processes, detached", ["--processes", "2", "--detach"]],
  ["nodes", ["--nodes", "2"]],
])(
  "%s: nobody reads the output any more, as behind `| head -1`: the job ends, without Node's error",
  async (_, way) => {
    const file = fileURLToPath(new URL("programs/talks.js", import.meta.url));
    const child = spawn(process.execPath, [cli, "run", "-n", "2", ...way, file], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    await once(child.stdout, "data");
    child.stdout.destroy();
    expect(await once(child, "close")).toEqual([141, null]);
    expect(said).not.toMatch(/EPIPE|Error/);
  },
);

it.skipIf(process.platform !== "linux").each([
  ["threads", []],
  ["threads of a process", ["--processes", "1"]],
  ["nodes", ["--nodes", "2"]],
])("%s: the output can't be written: the job ends, and says why", (_, way) => {
  const file = join(inject("folder"), "talks-on.mjs");
  writeFileSync(file, 'setInterval(() => process.stdout.write("on and on\\n"), 1);\n');
  const full = openSync("/dev/full", "w");
  const { status, stderr } = spawnSync(process.execPath, [cli, "run", "-n", "2", ...way, file], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
    timeout: 60_000,
  });
  closeSync(full);
  expect({ status, stderr: stderr.split("\n")[0] }).toEqual({
    status: 1,
    stderr: "pamir run: the output can't be written: ENOSPC: no space left on device, write",
  });
});

describe.runIf(HAS_TERMINAL)("pamir run on a terminal", () => {
  it.each([
    ["threads", "-n 2"],
    ["--processes", "-n 2 --processes 2"],
    ["--nodes", "-n 2 --nodes 1"],
  ])("%s: labels have the colors of their tasks", (_, options) => {
    const command = `"${process.execPath}" "${cli}" run ${options} "${app}"`;
    // Variables such as CI, NO_COLOR and TMUX change what Node says of a terminal.
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, TERM: "xterm-256color" };
    const { stdout } = spawnSync("script", ["-qec", command, "/dev/null"], { encoding: "utf8", env, timeout: 60_000 });
    for (const [task, color] of [36, 33].entries()) {
      expect(stdout).toContain(`\u001b[${color}m[${task}]\u001b[0m {"task":${task},`);
    }
  });

  it.each(["-n 2", "-n 2 --processes 2", "-n 2 --nodes 2"])("%s: no colors in a file beside it", (options) => {
    const [file, errors] = ["writes-errors.mjs", "errors.txt"].map((name) => join(inject("folder"), name)) as [
      string,
      string,
    ];
    writeFileSync(file, "console.log('on the terminal');\nconsole.error('in the file');\n");
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, TERM: "xterm-256color" };
    for (const [to, shown, hidden] of [
      ["2>", "on the terminal", "in the file"],
      ["1>", "in the file", "on the terminal"],
    ] as const) {
      const command = `"${process.execPath}" "${cli}" run ${options} "${file}" ${to} "${errors}"`;
      const { stdout } = spawnSync("script", ["-qec", command, "/dev/null"], {
        encoding: "utf8",
        env,
        timeout: 60_000,
      });
      for (const label of ["\u001b[36m[0]\u001b[0m", "\u001b[33m[1]\u001b[0m"])
        expect(stdout).toContain(`${label} ${shown}`);
      expect(readFileSync(errors, "utf8").split("\n").sort()).toEqual(["", `[0] ${hidden}`, `[1] ${hidden}`]);
    }
  });

  it.each([
    ["-n 2 --processes 2 --no-labels", "", [true, true]],
    ["-n 2 --nodes 2 --no-labels", "", [true, true]],
    ["-n 2 --nodes 2 --no-labels", "| cat", [undefined, true]],
    ["-n 2 --nodes 2", "", [undefined, undefined]],
  ])("%s %s: whether the tasks see the terminal as standard output, and as error", (options, more, seen) => {
    const file = join(inject("folder"), "sees-terminal.mjs");
    writeFileSync(
      file,
      "console.log(JSON.stringify([process.stdout, process.stderr].map(({ isTTY }) => String(isTTY))));\n",
    );
    const command = `"${process.execPath}" "${cli}" run ${options} "${file}" ${more}`;
    const { stdout, status } = spawnSync("script", ["-qec", command, "/dev/null"], {
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(status).toBe(0);
    expect(stdout.split(JSON.stringify(seen.map(String)))).toHaveLength(3);
  });
});

it.runIf(process.platform === "linux")(
  "a second signal ends threads at once, also one that blocks outside of JavaScript",
  async () => {
    const mark = `${process.pid}-${performance.now()}`;
    const args = [cli, "run", "-n", "2", "-x", `PAMIR_MARK=${mark}`, app, "stubborn block"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    const closed = new Promise<unknown>((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
    const blocking = (): number[] => processesWith("PAMIR_MARK", mark);
    try {
      // Once it sleeps, it ignores the signals.
      const names = () => blocking().map((pid) => readFileSync(`/proc/${pid}/comm`, "latin1"));
      await vi.waitFor(() => expect(names()).toEqual(["sleep\n"]), PATIENCE);
      child.kill("SIGINT");
      await whenTaken(child.pid as number, "SIGINT");
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(child.exitCode).toBe(null);
      child.kill("SIGINT");
      // A shell shows 130.
      expect(await closed).toBe("SIGINT");
      await vi.waitFor(() => expect(blocking()).toEqual([]), PATIENCE);
    } finally {
      child.kill("SIGKILL");
      for (const pid of blocking()) kill(pid);
    }
  },
);

describe.each(WAYS.map((way) => [way.join(" ") || "threads", way] as const))("standard input, %s", (_, way) => {
  const program = fileURLToPath(new URL("programs/input.js", import.meta.url));
  /** Runs three tasks, with an input that ends or stays open. */
  async function fed(what: string, input: Uint8Array | string, ends: boolean) {
    const child = spawn(process.execPath, [cli, "run", "-n", "3", ...way, program, what]);
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
    });
    child.stderr.pipe(process.stderr);
    // A job may end before it has read all.
    child.stdin.on("error", () => {});
    child.stdin.write(input);
    if (ends) child.stdin.end();
    const [code] = await once(child, "close");
    return { code, lines: said.trimEnd().split("\n").sort() };
  }

  it("goes to task 0, whole and at its pace; to others, nothing", async () => {
    const bytes = Uint8Array.from({ length: 1_000_003 }, (_, i) => (i * 7 + (i >>> 8)) & 255);
    const sum = bytes.reduce((all, byte) => (all * 31 + byte) % 65_521, 0);
    const lines = [`[0] 1000003 bytes, ${sum}`, "[1] 0 bytes, 0", "[2] 0 bytes, 0"];
    expect(await fed("count", bytes, true)).toEqual({ code: 0, lines });
    expect(await fed("count", "", true)).toEqual({ code: 0, lines: [0, 1, 2].map((task) => `[${task}] 0 bytes, 0`) });
  });

  it("keeps no job from its end that reads none of it, or only the first piece", async () => {
    expect(await fed("none", "abc", false)).toEqual({
      code: 0,
      lines: [0, 1, 2].map((task) => `[${task}] not read by ${task}`),
    });
    expect(await fed("first", "abc", false)).toEqual({ code: 0, lines: ["[0] got abc"] });
    // In a main thread, it is Node that reads: there, a paused socket keeps the process.
    if (isMainThread(way)) return;
    expect(await fed("pause", "abc", false)).toEqual({
      code: 0,
      lines: ["[0] got abc", "[1] nothing", "[2] nothing"],
    });
  });
});

describe.runIf(process.platform === "linux")("pamir run --detach", () => {
  const programOf = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url));
  /** The launcher, with a mark that all processes of its job inherit. */
  function detached(args: readonly string[], mark: string, options: readonly string[] = [], env: object = {}) {
    const command = [...options, cli, "run", "--detach", ...args];
    // Standard error, too, is held by each process until it ends.
    return spawn(process.execPath, command, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PAMIR_MARK: mark, ...env },
    });
  }
  const markOf = () => `${process.pid}-${performance.now()}`;
  const killAll = (mark: string) => killAllWith("PAMIR_MARK", mark);

  /** So many processes of tasks, which have said their pids, are there, and sleep. */
  async function expectToGoOn(said: string, processes: number): Promise<void> {
    const pids = [...new Set([...said.matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)))];
    expect(pids).toHaveLength(processes);
    await expectIdle(pids, 8);
    expect(pids.map(isGone)).toEqual(pids.map(() => false));
  }

  it.each([["8"], ["4"]])(
    "the tasks of --processes %s go on if the launcher is killed, and sleep as before",
    async (processes) => {
      const mark = markOf();
      const child = detached(["-n", "8", "--processes", processes, app, "hang"], mark, ["--no-memory-reducer"]);
      try {
        let stdout = "";
        child.stdout.on("data", (text) => {
          stdout += text;
          if (stdout.trim().split("\n").length === 8) child.kill("SIGKILL");
        });
        await once(child, "exit");
        await expectToGoOn(stdout, Number(processes));
      } finally {
        killAll(mark);
      }
    },
  );

  it.each(["4", "2"])("--processes %s: the tasks go on if the terminal is closed", async (processes) => {
    const mark = markOf();
    const args = [cli, "run", "--detach", "-n", "4", "--processes", processes, app, "hang"];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, PAMIR_MARK: mark },
      detached: true,
    });
    try {
      let stdout = "";
      child.stdout.on("data", (text) => {
        stdout += text;
        // To the whole group.
        if (stdout.trim().split("\n").length === 4) process.kill(-(child.pid as number), "SIGHUP");
      });
      await once(child, "exit");
      await expectToGoOn(stdout, Number(processes));
    } finally {
      killAll(mark);
    }
  });

  it.each([
    ["4", 200],
    ["2", 200],
    ["4", 0],
    ["2", 0],
  ])("--processes %s: two signals, %d ms apart, end processes that are stopped, too", async (processes, apart) => {
    const mark = markOf();
    const child = detached(["-n", "4", "--processes", processes, app, "hang"], mark);
    try {
      let stdout = "";
      child.stderr.pipe(process.stderr);
      await new Promise<void>((resolve) => {
        child.stdout.on("data", (text) => {
          stdout += text;
          if (stdout.trim().split("\n").length === 4) resolve();
        });
      });
      const pids = [...new Set([...stdout.matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)))];
      const exit = once(child, "exit");
      for (const pid of pids) process.kill(pid, "SIGSTOP");
      // Two of the same would count as one, if they came before the first is handled.
      child.kill("SIGTERM");
      if (apart > 0) {
        await whenTaken(child.pid as number, "SIGTERM");
        await new Promise((resolve) => setTimeout(resolve, apart));
      }
      child.kill("SIGINT");
      expect((await exit)[0]).toSatisfy((code) => code === 143 || (apart === 0 && code === 130));
      await vi.waitFor(() => expect(pids.filter((pid) => !isGone(pid))).toEqual([]), PATIENCE);
    } finally {
      killAll(mark);
    }
  });

  it.each([
    ["a process each, progress()", 1, "progress", []],
    ["a process each, blocking", 1, "blocking", []],
    ["two tasks a process, progress()", 2, "progress", []],
    ["two tasks a process, blocking", 2, "blocking", []],
    ["with an engine thread", 1, "progress", ["--engine", "thread"]],
  ] as const)(
    "the launcher is killed, then one process after the other: those left learn of each end, and have all memory: %s",
    async (_, size, waits, options) => {
      const mark = markOf();
      const dying = [1, 0, 2];
      const args = ["-n", `${4 * size}`, "--processes", "4", ...options, programOf("survivors.js")];
      const child = detached([...args, `${size}`, dying.join(), waits], mark);
      try {
        let stderr = "";
        child.stderr.on("data", (text) => {
          stderr += text;
        });
        const closed = once(child, "close");
        const pids: number[] = [];
        const heard: number[][] = dying.map(() => []);
        const last: { owners: number[]; pidfds: number }[] = [];
        for await (const line of createInterface(child.stdout)) {
          const { task, pid, holds, heard: stage, failed, owners, pidfds } = JSON.parse(line);
          if (pid !== undefined) pids[Math.floor(task / size)] = pid;
          else if (holds !== undefined) {
            // All tasks are up, and this one has the heap's lock.
            if (child.exitCode === null && child.signalCode === null) {
              child.kill("SIGKILL");
              await once(child, "exit");
            }
            process.kill(pids[Math.floor(holds / size)] as number, "SIGKILL");
          } else if (stage !== undefined) {
            heard[stage]?.push(task);
            expect(failed).toEqual(new Array(size).fill("PAMIR_SHUTDOWN"));
          } else last.push({ owners, pidfds });
        }
        await closed;
        const groups = [0, 1, 2, 3].map((group) => Array.from({ length: size }, (_, i) => group * size + i));
        const left = dying.map((_, stage) =>
          groups.filter((_, group) => !dying.slice(0, stage + 1).includes(group)).flat(),
        );
        expect(heard.map((tasks) => tasks.sort((a, b) => a - b))).toEqual(left);
        expect(stderr).toBe("");
        expect(last).toHaveLength(size);
        for (const { owners, pidfds } of last) {
          expect(owners.filter((owner) => !groups[3]?.includes(owner))).toEqual([]);
          expect(pidfds).toBe(0);
        }
        // The system closes the output of a process before it has ended it.
        await vi.waitFor(() => expect(pids.filter((pid) => !isGone(pid))).toEqual([]), PATIENCE);
      } finally {
        killAll(mark);
      }
    },
  );

  it.each(["4", "2"])(
    "--processes %s: the error of a task is printed, also without the launcher",
    async (processes) => {
      const mark = markOf();
      const child = detached(["-n", "4", "--processes", processes, programOf("roll-call.js"), "throw"], mark);
      try {
        let [stdout, stderr] = ["", ""];
        child.stderr.on("data", (text) => {
          stderr += text;
        });
        child.stdout.on("data", (text) => {
          stdout += text;
          if (stdout.trim().split("\n").length === 4) child.kill("SIGKILL");
        });
        await once(child, "close");
        for (let task = 0; task < 4; task++) expect(stderr).toContain(`RangeError: task ${task}, on purpose\n    at `);
      } finally {
        killAll(mark);
      }
    },
  );

  // A process that was started, but not noted by then, comes or not. One of two tasks has not been told them by then.
  it.each([
    ["4", "2 before", 1, 1],
    ["4", "3 before", 2, 2],
    ["4", "3 after", 2, 3],
    ["2", "2 before", 2, 2],
    ["2", "2 after", 2, 2],
  ] as const)(
    "--processes %s: the launcher dies as it starts process %s: no task waits for one that never comes",
    async (processes, dies, least, most) => {
      const mark = markOf();
      const args = ["-n", "4", "--processes", processes, programOf("roll-call.js")];
      const NODE_OPTIONS = `--require ${programOf("dies-starting.cjs")}`;
      const child = detached(args, mark, [], { NODE_OPTIONS, PAMIR_DIES: dies });
      try {
        let [stdout, stderr] = ["", ""];
        child.stderr.on("data", (text) => {
          stderr += text;
        });
        child.stdout.on("data", (text) => {
          stdout += text;
        });
        await once(child, "close");
        expect(child.signalCode).toBe("SIGKILL");
        const lines = stdout.trim().split("\n");
        for (const line of lines) expect(JSON.parse(line)).toMatchObject({ known: 4 });
        expect(lines.length).toBeGreaterThanOrEqual(least);
        expect(lines.length).toBeLessThanOrEqual(most);
        if (least === most) expect(stderr).toBe("");
        else if (lines.length < most) expect(stderr).toMatch(/which started this one for task 2, had ended before/);
      } finally {
        killAll(mark);
      }
    },
  );
});

describe.runIf(process.platform === "linux")("pamir run, a process for each task", () => {
  const way = ["-n", "3", "--processes", "3", app];

  it("a process that is killed ends its task alone", () => {
    const { status, stdout, stderr } = run(...way, "kill");
    const killed = saidBy(stdout)[1]?.pid;
    expect({ status, stderr }).toEqual({
      status: 137,
      stderr: `pamir: task 1 is lost: its process ${killed} was killed by SIGKILL\n`,
    });
  });

  it("all that a task prints comes before the line that reports its end", () => {
    const folder = mkdtempSync(join(inject("folder"), "run-"));
    const file = openSync(join(folder, "output"), "w+");
    try {
      const { status } = spawnSync(process.execPath, [cli, "run", ...way, "flood"], { stdio: ["ignore", file, file] });
      const lines = readFileSync(join(folder, "output"), "utf8").trim().split("\n");
      expect(lines.filter((line) => line.startsWith("[1] line "))).toHaveLength(20_000);
      expect([status, lines.at(-1)]).toEqual([7, "pamir: task 1 exited with code 7"]);
    } finally {
      closeSync(file);
      rmSync(folder, { recursive: true });
    }
  });

  it.each([
    ["threads", []],
    ["processes", ["--processes", "2"]],
    ["processes of two tasks", ["--processes", "1"]],
    ["nodes", ["--nodes", "2"]],
  ])("a program that does not attach may run a job of its own: %s", (_, inner) => {
    const command = JSON.stringify([cli, "run", "-n", "2", ...inner, app]);
    const file = join(inject("folder"), "driver.mjs");
    const spawnText = `spawnSync(process.execPath, ${command}, { stdio: "inherit" })`;
    writeFileSync(file, `import { spawnSync } from "node:child_process";\nprocess.exitCode = ${spawnText}.status;\n`);
    const { status, stdout, stderr } = run("-n", "1", "--no-labels", "--processes", "1", file);
    expect({ status, stderr, tasks: saidBy(stdout).length }).toEqual({ status: 0, stderr: "", tasks: 2 });
  });

  it.each(["hang", "never"])(
    "all processes end if the launcher is killed, also those that never attach: %s",
    async (how) => {
      const child = spawn(process.execPath, [cli, "run", ...way, how], { stdio: ["ignore", "pipe", "inherit"] });
      let stdout = "";
      child.stdout.on("data", (text) => {
        stdout += text;
        if (stdout.split("\n").length > 3) child.kill("SIGKILL");
      });
      // Each process holds the write end of the pipe until it ends.
      await once(child, "close");
      const pids = [...stdout.matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid));
      expect(pids).toHaveLength(3);
      await vi.waitFor(() => expect(pids.every((pid) => isGone(pid))).toBe(true), PATIENCE);
    },
  );
});

it.runIf(process.platform === "linux").each(["2", "1"])(
  "--processes %s: the launcher is killed, and its guard and the processes are stopped: the system ends them",
  async (processes) => {
    const mark = `${process.pid}-${performance.now()}`;
    const args = [cli, "run", "-n", "2", "--processes", processes, app, "hang"];
    const child = spawn(process.execPath, args, {
      // No end of a process of its session wakes those that are stopped.
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, PAMIR_MARK: mark },
    });
    const started = (): number[] => processesWith("PAMIR_MARK", mark).filter((pid) => pid !== child.pid);
    try {
      let stdout = "";
      for await (const text of child.stdout) {
        stdout += text;
        if (stdout.split("\n").length > 2) break;
      }
      const tasks = new Set(saidBy(stdout).map(({ pid }) => pid));
      expect(tasks.size).toBe(Number(processes));
      for (const pid of started()) process.kill(pid, "SIGSTOP");
      child.kill("SIGKILL");
      await vi.waitFor(() => expect(started().filter((pid) => tasks.has(pid))).toEqual([]), PATIENCE);
    } finally {
      for (const pid of [child.pid as number, ...started()]) kill(pid);
    }
  },
);

describe("pamir run", () => {
  it("--processes, a task for each: the launcher needs no thread for that, which node --permission forbids", () => {
    const allowed = [
      PERMISSION,
      "--no-warnings",
      ...["fs-read=*", "child-process", "addons"].map((what) => `--allow-${what}`),
    ];
    const args = [...allowed, cli, "run", "-n", "2", "--processes", "2", app];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect({ status, stderr, tasks: saidBy(stdout).length }).toEqual({ status: 0, stderr: "", tasks: 2 });
  });

  it("--processes on a system where they share no memory: a link joins them, and a warning says why", () => {
    const elsewhere = fileURLToPath(new URL("programs/elsewhere.js", import.meta.url));
    const env = { ...process.env, NODE_OPTIONS: `--import ${elsewhere}` };
    const { status, stdout, stderr } = spawnSync(process.execPath, [cli, "run", "-n3", "--processes", "2", app], {
      encoding: "utf8",
      timeout: 60_000,
      env,
    });
    const pids = saidBy(stdout).map(({ pid }) => pid);
    expect({ status, tasks: pids.length, processes: new Set(pids).size }).toEqual({
      status: 0,
      tasks: 3,
      processes: 2,
    });
    expect(stderr).toMatch(/\[PAMIR_LINK\] Warning: processes can't share memory here: this is freebsd/);
    expect(stderr.split("PAMIR_LINK")).toHaveLength(2);
  });

  it("a job whose monitor ends has failed", () => {
    const first = join(inject("folder"), "monitor-ends.cjs");
    const test = 'require("node:worker_threads").workerData?.orders';
    writeFileSync(first, `if (${test}) setTimeout(() => { throw new Error("on purpose"); }, 500);\n`);
    const args = [cli, "run", "-n", "2", app, "hang"];
    const env = { ...process.env, NODE_OPTIONS: `--require ${first}` };
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 60_000, env });
    expect(stderr).toMatch(/^pamir: task 0 is lost: Error: on purpose\n/);
    expect(status).toBe(1);
  });

  it("a task's exit code of which the system takes nothing is a failure, too", () => {
    const file = join(inject("folder"), "exits.mjs");
    writeFileSync(file, "process.exit(256);\n");
    expect(run("-n", "1", file)).toMatchObject({ status: 1, stderr: "pamir: task 0 exited with code 256\n" });
  });

  it("without labels; a last line without an end gets one with labels", () => {
    expect(run("-n", "1", "--no-labels", app).stdout).toMatch(/^\{/);
    expect(run("-n", "1", app, "halves").stdout).toMatch(/\n\[0\] no end of line\n$/);
  });

  it("--help", () => {
    expect(run("--help")).toMatchObject({ status: 0, stdout: expect.stringContaining("--processes P") });
  });

  describe.each([
    ["threads", []],
    ["processes", ["--processes", "2"]],
    ["nodes", ["--nodes", "2"]],
  ])("%s", (_, way) => {
    it.each([
      ["text.js", "this is no JavaScript\n", /SyntaxError: Unexpected identifier/],
      ["brace.mjs", "export const broken = {;\n", /SyntaxError: Unexpected token/],
      ["text.txt", "text\n", /ERR_UNKNOWN_FILE_EXTENSION/],
      ["binary.js", "\x7fELF\x01\x00\x02", /SyntaxError: Invalid or unexpected token/],
      ["data.json", "{}\n", /\.json file/],
      ["addon.node", "\x7fELF", /\.node file/],
    ])("a file that is no program: %s", (name, text, why) => {
      const file = join(inject("folder"), name);
      writeFileSync(file, text);
      const { status, stderr } = run("-n", "2", ...way, file);
      const last = stderr.trim().split("\n").at(-1);
      expect(last).toMatch(/^pamir: the task module .* is no program: .* \(PAMIR_ENTRY\)$/);
      expect(last).toMatch(why);
      expect(status).toBe(2);
    });

    it.skipIf(process.platform === "win32")("a symbolic link that leads to itself", () => {
      const file = join(inject("folder"), "endless.js");
      rmSync(file, { force: true });
      symlinkSync(file, file);
      const { status, stderr } = run("-n", "2", ...way, file);
      expect(stderr).toMatch(/^pamir: the task module .*endless.js can't be read: ELOOP: .* \(PAMIR_ENTRY\)\n$/);
      expect(status).toBe(2);
    });

    it.skipIf(process.platform === "win32")("a folder that is gone", () => {
      const folder = mkdtempSync(join(inject("folder"), "gone-"));
      const command = `cd "${folder}" && rmdir "${folder}" && "${process.execPath}" "${cli}" run -n 2 ${way.join(" ")}`;
      const { status, stderr } = spawnSync("sh", ["-c", `${command} "${app}"`], { encoding: "utf8", timeout: 60_000 });
      expect(stderr).toMatch(/^pamir: the current folder does not exist any more: .* \(ENOENT\)\n$/);
      expect(status).toBe(2);
    });

    it("a program that fails with exit code 1 is one", () => {
      const file = join(inject("folder"), "throws.mjs");
      writeFileSync(file, 'throw new SyntaxError("of its own");\n');
      const { status, stderr } = run("-n", "2", ...way, file);
      expect(stderr).not.toContain("PAMIR_ENTRY");
      expect(status).toBe(1);
    });
  });

  it.each([
    [[], /a program is missing/],
    [["-n", "0", app], /--tasks is "0", not an integer from 1/],
    [["-n", "-3", app], /Option '-n' has no value, but an argument that begins with a dash/],
    [["-n", "2.5", app], /--tasks is "2.5"/],
    [["-n", "3", "--processes", "4", app], /processes is 4, not an integer from 1 to 3/],
    [["--kernel", "c", app], /--kernel is "c", not "wasm" or "ts"/],
    [["--on-error", "cry", app], /--on-error is "cry"/],
    [["--detach", app], /--detach takes --processes/],
    [["--timeout", "soon", app], /--timeout is "soon"/],
    [["-x", "=v", app], /^pamir: -x "=v": the variable has no name, as in NAME=VALUE$/m],
    [["-x", "", app], /^pamir: -x "": the variable has no name, as in NAME=VALUE$/m],
    [["-x", "PAMIR_IS_NOT_SET", app], /-x PAMIR_IS_NOT_SET: the variable is not set/],
    [["--cwd", "/nonexistent", app], /--cwd \/nonexistent: ENOENT/],
    [["--trace", "/nonexistent/trace.json", app], /--trace \/nonexistent\/trace.json: ENOENT/],
    [["--nonsense", app], /Unknown option '--nonsense'/],
    [["test"], /the task module .*test is no file \(PAMIR_ENTRY\)/],
    [["-n", "2", "--processes", "2", "test"], /the task module .*test is no file \(PAMIR_ENTRY\)/],
    [["/nonexistent.js"], /the task module \/nonexistent.js does not exist \(PAMIR_ENTRY\)/],
    [["https://example.org/a.js"], /the task module https:\/\/example.org\/a.js is a URL: .* \(PAMIR_ENTRY\)/],
    [
      ["file:///nonexistent.js"],
      /the task module file:\/\/\/nonexistent.js is a URL: .*path of a file \(PAMIR_ENTRY\)/,
    ],
  ] as const)("wrong input: %j", (args, text) => {
    const { status, stderr } = run(...args);
    expect(stderr).toMatch(text);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });
});

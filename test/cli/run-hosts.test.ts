// `pamir run --nodes`: processes in several nodes, as a user has them.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { app, cli, isGone, run, saidBy } from "../support/run-command.js";

const isLinux = process.platform === "linux";
const started = new Set<ChildProcess>();
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started.clear();
});

/** Starts `pamir run` with a program whose tasks hang, once all of them have said their numbers. */
async function hanging(tasks: number, ...args: string[]) {
  const child = spawn(process.execPath, [cli, "run", "-n", `${tasks}`, ...args, app, "hang"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.add(child);
  const closed = new Promise<number | string | null>((resolve) =>
    child.on("close", (code, signal) => resolve(code ?? signal)),
  );
  let stdout = "";
  await new Promise<void>((resolve) => {
    child.stdout.on("data", (text) => {
      stdout += text;
      if (stdout.split("\n").length > tasks) resolve();
    });
  });
  return { child, closed, pids: saidBy(stdout).map(({ pid }) => pid) };
}

/** Resolves once these processes have ended; the test's time limit fails otherwise. */
async function allGone(pids: readonly number[]): Promise<void> {
  while (!pids.every(isGone)) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe.skipIf(!isLinux)("pamir run --nodes", { timeout: 60_000 }, () => {
  it.each([1, 2, 4])("4 tasks in %d nodes, with their arguments, variables and labels", (nodes) => {
    const { status, stdout, stderr } = run("-n", "4", "--nodes", `${nodes}`, "-x", "PAMIR_X=a=b", app, "-n", "--x", "");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const said = saidBy(stdout);
    expect(said.map(({ task, args, x }) => ({ task, args, x }))).toEqual(
      [0, 1, 2, 3].map((task) => ({ task, args: ["-n", "--x", ""], x: "a=b" })),
    );
    expect(new Set(said.map(({ pid }) => pid)).size).toBe(4);
  });

  it("a program that does not attach; standard input goes to task 0 alone", () => {
    const args = [cli, "run", "-n", "2", "--nodes", "2", "--cwd", "/", "-x", "NAME=1"];
    const { status, stdout, stderr } = spawnSync(process.execPath, [...args, app.replace("app.js", "plain.js")], {
      input: "words",
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.trim().split("\n").sort();
    expect(lines).toEqual(["[0] end", "[0] got words", "[0] in /, NAME=1", "[1] end", "[1] in /, NAME=1"]);
  });

  it("its exit code is that of the first task that failed, also by a signal", () => {
    expect(run("-n", "2", "--nodes", "2", app, "exit")).toMatchObject({
      status: 7,
      stderr: "pamir: task 1 exited with code 7\n",
    });
    expect(run("-n", "2", "--nodes", "2", app, "kill")).toMatchObject({
      status: 128 + 9,
      stderr: "pamir: task 1 was ended by SIGKILL\n",
    });
  });

  it("--on-error abort ends the tasks that go on; --timeout ends all", () => {
    const aborted = run("-n", "2", "--nodes", "2", "--on-error", "abort", app, "exit");
    expect(aborted).toMatchObject({ status: 7, stderr: "pamir: task 1 exited with code 7, the job ends\n" });
    const late = run("-n", "2", "--nodes", "2", "--timeout", "0.5", app, "hang");
    expect(late.status).toBe(124);
    expect(late.stderr).toContain("has not ended after 0.5 s");
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGKILL", "SIGKILL"],
  ] as const)("%s ends all, also tasks that block", async (signal, code) => {
    const { child, closed, pids } = await hanging(2, "--nodes", "2");
    child.kill(signal);
    expect(await closed).toBe(code);
    await allGone(pids);
  });

  it("the second signal ends a task that ignores the first", async () => {
    const { child, closed, pids } = await hanging(2, "--nodes", "1", "-x", "PAMIR_X=stubborn");
    child.kill("SIGTERM");
    // The first signal has arrived once the other task has ended.
    while (!pids.some(isGone)) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGINT");
    expect(await closed).toBe(143);
    await allGone(pids);
  });

  it("no process has the job key in its environment or on its command line", async () => {
    const { child, closed, pids } = await hanging(2, "--nodes", "2");
    for (const pid of pids) {
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
      expect(environment).toMatch(/PAMIR_KEY_FD=\d+\0/);
      expect(environment + readFileSync(`/proc/${pid}/cmdline`, "latin1")).not.toMatch(/[\da-f]{64}/i);
    }
    child.kill("SIGTERM");
    await closed;
  });
});

describe("pamir run, wrong input", () => {
  it.each([
    [["--nodes", "0", app], /--nodes is "0", not an integer from 1/],
    [["-n", "3", "--nodes", "2", app], /--tasks is 3, not a multiple of --nodes, which is 2/],
    [["--nodes", "2", "--processes", "2", app], /--processes does not go with --nodes/],
    [["--nodes", "2", "--kernel", "ts", app], /--kernel does not go with --nodes/],
    [["--nodes", "2", "/nonexistent.js"], /the task module \/nonexistent.js does not exist/],
    [["--nodes", "2", "--cwd", "/nonexistent", app], /--cwd \/nonexistent: ENOENT/],
  ] as const)("%j", (args, text) => {
    const { status, stderr } = run(...args);
    expect(stderr).toMatch(text);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });
});

// Signals to `pamir run`: what its tasks and the processes that they have started get, and what is left.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, vi } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { cli, isGone, PATIENCE, processesWith, withoutWaits } from "../support/run-command.js";
import { LOCAL_SHELL, script } from "../support/ssh.js";

const saves = fileURLToPath(new URL("programs/saves.js", import.meta.url));
const CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
type EndSignal = keyof typeof CODES;

/** A job of two tasks that have attached. */
async function started(way: readonly string[], ...args: readonly string[]) {
  const child = spawn(process.execPath, [cli, "run", "-n", "2", ...way, saves, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  child.stderr.setEncoding("utf8").on("data", (text) => {
    said.stderr += text;
  });
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text) => {
      said.stdout += text;
      if (said.stdout.split("{").length > 2) resolve();
    });
  });
  const closed = once(child, "close");
  const pids = [...said.stdout.matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid));
  return { child, said, closed, pids };
}

describe.runIf(process.platform === "linux")("pamir run", () => {
  const rsh = script(mkdtempSync(join(inject("folder"), "signals-")), "rsh", LOCAL_SHELL);
  const own: readonly (readonly [string, readonly string[]])[] = [
    ["processes", ["--processes", "2"]],
    ["processes, no labels", ["--processes", "2", "--no-labels"]],
    ["processes, detached", ["--processes", "2", "--detach"]],
    ["nodes", ["--nodes", "2"]],
    ["hosts", ["--hosts", "a:1,b:1", "--rsh", rsh]],
  ];
  const ends = own.flatMap(([name, way]) =>
    (Object.keys(CODES) as EndSignal[])
      // With --detach, the tasks outlive the terminal.
      .filter((signal) => signal !== "SIGHUP" || !name.includes("detached"))
      .map((signal) => [name, signal, way] as const),
  );

  it.each(sample(ends, byEffort({ quick: 2, normal: 5, deep: ends.length }), "signals of the end"))(
    "%s: tasks handle %s, and end in peace",
    async (_, signal, way) => {
      const { child, said, closed } = await started(way, signal);
      child.kill(signal);
      expect(await closed).toEqual([CODES[signal], null]);
      expect(said.stdout.match(/saves by \w+/g)).toEqual([`saves by ${signal}`, `saves by ${signal}`]);
      expect(withoutWaits(said.stderr)).toBe("");
    },
  );

  it.each(sample(own, byEffort({ quick: 1, normal: 2, deep: own.length }), "ways of ends by a failure"))(
    "%s: --on-error abort asks the others by SIGTERM, and the code is that of the task that failed",
    async (_, way) => {
      const { said, closed, pids } = await started([...way, "--on-error", "abort"], "SIGTERM");
      process.kill(pids[0] as number, "SIGKILL");
      expect(await closed).toEqual([137, null]);
      expect(said.stdout.match(/saves by \w+/g)).toEqual(["saves by SIGTERM"]);
      expect(said.stderr).toContain("the job ends");
    },
  );

  const passed = own.flatMap(([name, way]) =>
    (["SIGUSR1", "SIGUSR2"] as const).map((one) => [name, one, way] as const),
  );
  it.each(sample(passed, byEffort({ quick: 1, normal: 3, deep: passed.length }), "signals that are passed on"))(
    "%s: %s is passed on to the tasks",
    async (_, signal, way) => {
      const { child, said, closed } = await started(way, signal);
      child.kill(signal);
      // The job goes on without a failure until its tasks end.
      expect(await closed).toEqual([0, null]);
      expect(said.stdout.match(/saves by \w+/g)).toEqual([`saves by ${signal}`, `saves by ${signal}`]);
      expect(withoutWaits(said.stderr)).toBe("");
    },
  );

  const threads = [
    ["threads", []],
    ["threads of a process", ["--processes", "1"]],
    ["processes", ["--processes", "2"]],
    ["nodes", ["--nodes", "2"]],
  ] as const;
  const children = threads.flatMap(([name, way]) =>
    (["SIGTERM", "SIGINT"] as const).map((signal) => [name, signal, way] as const),
  );
  it.each(sample(children, byEffort({ quick: 1, normal: 4, deep: children.length }), "children of tasks"))(
    "%s: %s leaves no process behind that a task has started",
    async (_, signal, way) => {
      const { child, closed, pids } = await started(way, signal, "child");
      child.kill(signal);
      expect(await closed).toEqual([CODES[signal], null]);
      await vi.waitFor(() => expect(pids.filter((pid) => !isGone(pid))).toEqual([]), PATIENCE);
    },
  );
});

it.skipIf(process.platform !== "linux").each([
  ["processes", ["--processes", "2"]],
  ["processes, detached", ["--processes", "2", "--detach"]],
  ["nodes", ["--nodes", "2"]],
] as const)("%s: SIGTERM while the tasks are being started ends all of them", (_, way) => {
  const mark = `${process.pid}-${performance.now()}`;
  const dies = fileURLToPath(new URL("programs/dies-starting.cjs", import.meta.url));
  const app = fileURLToPath(new URL("programs/app.js", import.meta.url));
  const env = { ...process.env, PAMIR_DIES: "1 after SIGTERM" };
  const args = ["--require", dies, cli, "run", "-n", "2", ...way, "-x", `PAMIR_MARK=${mark}`, app, "hang"];
  const { status, signal } = spawnSync(process.execPath, args, { env, timeout: PATIENCE, stdio: "ignore" });
  expect([status, signal]).toEqual([143, null]);
  expect(processesWith("PAMIR_MARK", mark)).toEqual([]);
});

// What a job does to the process that it runs in; each in a process of its own.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { PATIENCE } from "./support.js";

interface Ended {
  readonly output: string;
  /** Exit code; null: it was still alive some time after it was ready, and was killed. */
  readonly code: number | null;
}

/** Runs a program; one that is still alive `graceMs` after it printed its first line is killed. */
function run(program: string, parameters: readonly string[], graceMs: number): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const file = fileURLToPath(new URL(`programs/${program}`, import.meta.url));
    const child = spawn(process.execPath, [file, ...parameters], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    child.stdout.on("data", (text) => {
      output += text;
      timer ??= setTimeout(() => child.kill("SIGKILL"), graceMs);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ output, code });
    });
  });
}

describe("a job and its process", () => {
  it.each(["wasm", "ts"])(
    "four tasks that are asleep take less than a hundredth of a core, kernel %s",
    async (kernel) => {
      // Other processes may disturb a run (they never make it cheaper): the best of three.
      const shares: number[] = [];
      for (let i = 0; i < 3 && (shares.length === 0 || Math.min(...shares) >= 0.01); i++) {
        const { output, code } = await run("idle.js", [kernel], PATIENCE);
        const { share, parked } = JSON.parse(output) as { share: number; parked: boolean };
        expect([code, parked]).toEqual([0, true]);
        shares.push(share);
      }
      expect(Math.min(...shares)).toBeLessThan(0.01);
    },
  );

  it.each([
    [[], false],
    [["job"], false],
    [["client"], false],
    [["job", "client"], true],
    [["job", "client", "job again"], false],
    [["job", "client", "client again"], false],
    [["alone"], false],
    [["alone", "job"], true],
  ] as const)("unreferenced: %j; the process ends by itself: %s", async (unreferenced, ends) => {
    // One that ends has done so in a few milliseconds; the time is only for those that must not.
    const { output, code } = await run("alive.js", unreferenced, ends ? PATIENCE : 700);
    expect({ output, code }).toEqual({ output: "ready\n", code: ends ? 0 : null });
  });

  it.each(["terminate", "close"])("the end of a job that may have more tasks can be awaited, by %s", async (how) => {
    expect(await run("awaited.js", [how], PATIENCE)).toEqual({ output: "over\n", code: 0 });
  });

  it.each(["all", "one", "connect"])(
    "terminate() of an unreferenced job is over before the process: %s",
    async (how) => {
      expect(await run("ended.js", [how], PATIENCE)).toEqual({ output: "over\n", code: 0 });
    },
  );
});

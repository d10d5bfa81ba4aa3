// Tasks that lose the link of their node, which lies in the process of the node's first task, or that hear nothing of others.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { run } from "../support/run-command.js";

const parts = fileURLToPath(new URL("programs/parts.js", import.meta.url));
const elastic = fileURLToPath(new URL("programs/elastic.js", import.meta.url));
const stopped = fileURLToPath(new URL("programs/stopped.js", import.meta.url));
const program = fileURLToPath(new URL("programs/cut-off.js", import.meta.url));

describe.skipIf(process.platform !== "linux").each(["kill", "exit"])("by %s", { timeout: 120_000 }, (how) => {
  it("the process with a node's link dies: its siblings end with PAMIR_MINORITY, and the other node goes on", () => {
    const { stdout, stderr, status } = run("-n", "4", "--nodes", "2", program, "shrink", how);
    expect(stdout.trim().split("\n").sort()).toEqual(["[0] goes on with 2", "[1] goes on with 2"]);
    expect(stderr).toContain("shrink() of rank 3: 1 of 4 members is left, ended: 1; nothing is heard of ranks 0, 1,");
    expect(/ code: '(\w+)'/.exec(stderr)?.[1]).toBe("PAMIR_MINORITY");
    expect(stderr).toContain("pamir: task 3 exited with code 1");
    expect(status).not.toBe(0);
  });

  it("tasks that are cut off hear of the end of tasks to which they have never spoken", () => {
    const { stdout } = run("-n", "8", "--nodes", "2", program, "ends", how);
    const said = [5, 6, 7].map((task) => `[${task}] all have ended`);
    expect(stdout.trim().split("\n").sort()).toEqual(said);
  });
});

it.skipIf(process.platform !== "linux").each([undefined, "inline"])(
  "one of three nodes hears nothing of two: PAMIR_MINORITY, until their processes have ended; agent: %s",
  { timeout: 120_000 },
  (agent) => {
    const options = `PAMIR_OPTIONS=${JSON.stringify({ silence: 3000, agent })}`;
    const { stdout } = run("-n", "3", "--nodes", "3", "-x", options, parts, "stop");
    expect(stdout).toBe('[2] {"task":2,"size":1,"codes":["PAMIR_MINORITY"]}\n');
  },
);

it.skipIf(process.platform !== "linux").each([undefined, "inline"])(
  "two of four nodes are stopped while the others go on, finish and end: PAMIR_MINORITY, once they run again; agent: %s",
  { timeout: 120_000 },
  (agent) => {
    const options = `PAMIR_OPTIONS=${JSON.stringify({ silence: 3000, agent })}`;
    const { stdout } = run("-n", "4", "--nodes", "4", "-x", options, stopped);
    expect(stdout.trim().split("\n").sort()).toEqual([
      "[0] goes on with 2",
      "[1] goes on with 2",
      "[2] PAMIR_MINORITY",
      "[3] PAMIR_MINORITY",
    ]);
  },
);

it.skipIf(process.platform !== "linux").each([["by a link", ["--no-addons"]] as const, ["in one memory", []] as const])(
  "an elastic job, %s: a task that has come later goes on alone, for the ends of the others are certain",
  { timeout: 120_000 },
  (_, options) => {
    const { stdout } = spawnSync(process.execPath, [...options, elastic], { encoding: "utf8", timeout: 110_000 });
    expect(stdout).toBe("goes on with 1\n");
  },
);

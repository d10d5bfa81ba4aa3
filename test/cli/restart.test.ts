// `pamir run --restart`: a task that fails goes on with a new number and its old rank, as a thread, a process, a node of this
// machine, and a node of another host. Other hosts are this one, by a remote shell that runs its command here.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, inject, it } from "vitest";
import { app, cli, isGone, processesWith, run } from "../support/run-command.js";
import { LOCAL_SHELL, script } from "../support/ssh.js";

const isLinux = process.platform === "linux";
const folder = mkdtempSync(join(inject("folder"), "restart-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const rsh = script(folder, "rsh", LOCAL_SHELL);
const again = fileURLToPath(new URL("programs/again.js", import.meta.url));
const input = fileURLToPath(new URL("programs/input.js", import.meta.url));
const turns = fileURLToPath(new URL("programs/turns.js", import.meta.url));
const replaced = fileURLToPath(new URL("programs/replaced.js", import.meta.url));

/** Runs two tasks. Where they are processes, they can end by a signal. */
const WAYS: readonly (readonly [name: string, options: readonly string[], how: "throw" | "kill"])[] = [
  ["threads", ["-n", "2"], "throw"],
  ["--processes 1", ["-n", "2", "--processes", "1"], "throw"],
  ["--processes 2", ["-n", "2", "--processes", "2"], "throw"],
  ["--nodes 1", ["-n", "2", "--nodes", "1"], "kill"],
  ["--nodes 2", ["-n", "2", "--nodes", "2"], "throw"],
  ["--nodes 2, a signal", ["-n", "2", "--nodes", "2"], "kill"],
  ["--hosts a:2", ["--hosts", "a:2", "--rsh", rsh], "throw"],
  ["--hosts a,b", ["--hosts", "a,b", "--rsh", rsh], "kill"],
];

describe.each(isLinux ? WAYS : WAYS.slice(0, 1))("pamir run --restart, %s", (name, way, how) => {
  it("a task that fails goes on with a new number and its old rank; the others hear of it; nothing stays behind", () => {
    const mark = `${process.pid}-${performance.now()}`;
    const { status, stdout, stderr } = run(...way, "--restart", "3", "-x", `PAMIR_MARK=${mark}`, again, "2", how);
    expect(stderr.match(/^pamir run: .*$/gm)).toEqual([
      "pamir run: rank 1 goes on as task 2 (restart 1 of 3)",
      "pamir run: rank 1 goes on as task 3 (restart 2 of 3)",
    ]);
    expect([status, stdout]).toEqual([0, '[0] {"told":[2,3],"reply":[3,1],"size":4}\n']);
    if (isLinux) expect(processesWith("PAMIR_MARK", mark)).toEqual([]);
  });

  it("not more often than --restart and --spare say: then the failure is the job's", () => {
    for (const options of [
      ["--restart", "1"],
      ["--restart", "9", "--spare", "1"],
    ]) {
      const { status, stderr } = run(...way, ...options, "--timeout", "60", again, "9", "exit", "leave");
      expect(stderr.match(/goes on as/g)).toHaveLength(1);
      expect(status).toBe(5);
    }
  });

  // A launcher has sent it to the first rank 0 of another host.
  it.skipIf(way.includes("--hosts"))("a new rank 0 reads standard input", () => {
    const args = [cli, "run", ...way, "--restart", "1", "--timeout", "60", input, "count", "again"];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8", input: "a", timeout: 110_000 });
    // Where rank 0 has its node's link, rank 1 is cut off: before or after its line it may be started again.
    const isCutOff = name === "--nodes 1" || name === "--hosts a:2";
    const rankOne = isCutOff ? /^(?:\[1\] 0 bytes, 0\n)?(?:\[3\] 0 bytes, 0\n)?$/ : /^\[1\] 0 bytes, 0\n$/;
    expect(stdout).toContain("[2] 1 bytes, 97\n");
    const others = stdout.replace("[2] 1 bytes, 97\n", "").split("\n").sort().slice(1);
    expect(others).not.toHaveLength(0);
    expect(others.map((line) => `${line}\n`).join("")).toMatch(rankOne);
    expect(status).toBe(0);
  });
});

describe.runIf(isLinux)("pamir run --restart, nodes", () => {
  it.each([
    ["--nodes", ["-n", "4", "--nodes", "2"]],
    ["--hosts", ["--hosts", "a:2,b:2", "--rsh", rsh]],
  ])("%s: a node whose first process is killed goes on as two nodes, and its calls end with SHUTDOWN", (_, way) => {
    const { status, stdout, stderr } = run(...way, "--restart", "1", replaced);
    expect(stderr.match(/^pamir run: .*$/gm)?.sort()).toEqual([
      "pamir run: rank 2 goes on as task 4 (restart 1 of 1)",
      "pamir run: rank 3 goes on as task 5 (restart 1 of 1)",
    ]);
    expect([status, stdout]).toEqual([0, '[0] {"ended":"PAMIR_SHUTDOWN","ranks":[2,3],"between":5}\n']);
  });

  it.each(WAYS.filter(([, , how]) => how === "kill").map(([name, way]) => [name, way] as const))(
    "%s: both ends of a stream are killed in turn, and go on: nothing is lost or comes twice between those that live",
    (_, way) => {
      const { status, stdout, stderr } = run(...way, "--restart", "1", turns);
      expect(stderr.match(/^pamir run: .*$/gm)).toEqual([
        "pamir run: rank 1 goes on as task 2 (restart 1 of 1)",
        "pamir run: rank 0 goes on as task 3 (restart 1 of 1)",
      ]);
      expect([status, stdout]).toEqual([
        0,
        '[0] {"task":0,"delivered":[2000,0]}\n[2] {"task":2,"rank":1,"delivered":[2000,0]}\n',
      ]);
    },
  );

  it("processes that share no memory, too: a link joins them", () => {
    const args = ["--no-addons", cli, "run", "-n", "2", "--processes", "2", "--restart", "3", again, "2", "exit"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 110_000 });
    expect(stderr).toContain("a link on loopback joins them instead");
    expect([status, stdout]).toEqual([0, '[0] {"told":[2,3],"reply":[3,1],"size":4}\n']);
  });

  it("over WebSockets, too", () => {
    const way = ["-n", "2", "--nodes", "2", "-x", 'PAMIR_OPTIONS={"link":"websocket"}'];
    const { status, stdout } = run(...way, "--restart", "3", again, "2", "kill");
    expect([status, stdout]).toEqual([0, '[0] {"told":[2,3],"reply":[3,1],"size":4}\n']);
  });

  it("a task that fails before all have attached is not started again", () => {
    const { status, stderr } = run("-n", "2", "--nodes", "2", "--restart", "3", app.replace("app.js", "early.js"));
    expect(stderr).toMatch(/^pamir: task 1 exited with code 5\npamir run: task 1 is not started again: not all tasks/m);
    expect(stderr).not.toContain("goes on as");
    expect(status).toBe(5);
  });

  it("a remote shell that fails at the restart is named, and the failure is the job's", () => {
    const once = script(folder, "once", `test -e ${folder}/two && exit 9\ntouch ${folder}/two\n${LOCAL_SHELL}`);
    const options = ["--hosts", "localhost,two", "--rsh", once, "--restart", "3"];
    const { status, stderr } = run(...options, again, "9", "exit", "leave");
    expect(stderr).toMatch(/^pamir run: host two: .*once ended with exit code 9$/m);
    expect(status).toBe(5);
  });

  it("a signal ends the wait for a host at a restart, and nothing stays behind", async () => {
    const mark = `${process.pid}-${performance.now()}`;
    const stuck = script(folder, "stuck", `test -e ${folder}/b && exec sleep 1000\ntouch ${folder}/b\n${LOCAL_SHELL}`);
    const options = ["--hosts", "localhost,b", "--rsh", stuck, "--restart", "3", "-x", `PAMIR_MARK=${mark}`];
    const child = spawn(process.execPath, [cli, "run", ...options, again, "9", "exit"], {
      env: { ...process.env, PAMIR_MARK: mark },
    });
    const closed = new Promise((resolve) => child.on("close", resolve));
    await new Promise<void>((resolve) => {
      let text = "";
      child.stderr.on("data", (bytes) => {
        text += bytes;
        if (text.includes("goes on as")) resolve();
      });
    });
    child.kill("SIGTERM");
    expect(await closed).toBe(143);
    expect(isGone(child.pid as number)).toBe(true);
    while (processesWith("PAMIR_MARK", mark).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

// Of the ways that share memory, whose endpoints are limited; the text of a job that has no room comes before it starts.
describe("pamir run --restart, more often than the job has numbers", () => {
  const ways = isLinux ? [[], ["--processes", "1"], ["--processes", "2"]] : [[]];
  it.each(ways.map((way) => [way.join(" ") || "threads", way] as const))(
    "%s: the default of --spare fits",
    (_, way) => {
      const { status, stdout } = run("-n", "2", ...way, "--restart", "1000", again, "1", "exit");
      expect([status, stdout]).toEqual([0, '[0] {"told":[2],"reply":[2,1],"size":3}\n']);
    },
  );

  it.runIf(isLinux)("nodes: the default of --spare fits", () => {
    const { status, stdout } = run("-n", "2", "--nodes", "2", "--restart", "40000", again, "1", "exit");
    expect([status, stdout]).toEqual([0, '[0] {"told":[2],"reply":[2,1],"size":3}\n']);
  });
});

describe("pamir run --restart, wrong input", () => {
  it.each([
    [
      ["-n", "2", "--restart", "2", "--spare", "255", app],
      /2 tasks and 255 more numbers .*\(--spare\) .*more than 256/,
    ],
    [["-n", "256", "--restart", "2", app], /256 tasks and 1 more number for restarts .*more than 256: .*4 contexts/],
    [["-n", "257", "--restart", "2", app], /257 tasks with 4 contexts are 1028 endpoints, the limit is 1024/],
    [["--spare", "2", app], /--spare takes --restart/],
    [["--nodes", "2", "--spare", "2", app], /--spare takes --restart/],
    [["--restart", "2", "--on-error", "abort", app], /--restart does not go with --on-error abort/],
    [["--hosts", "a", "--restart", "2", "--on-error", "abort", app], /--restart does not go with --on-error abort/],
    [["--nodes", "2", "--restart", "x", app], /--restart is "x", not an integer from 1/],
    [["-n", "2", "--nodes", "2", "--restart", "9", "--spare", "65535", app], /65535 more numbers .*more than 65536/],
    [["--nodes", "2", "--detach", app], /--detach does not go with --nodes/],
  ] as const)("%j", (args, text) => {
    const { status, stderr } = run(...args);
    expect(stderr).toMatch(text);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });
});

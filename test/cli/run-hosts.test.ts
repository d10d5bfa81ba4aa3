// `pamir run --nodes` and `--hosts`: processes in several nodes, as a user has them. Other hosts are this one, by a remote shell
// that runs its command here, and by a real sshd on loopback.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { PERMISSION } from "../api/run-program.js";
import { app, cli, isGone, processesWith, run, saidBy, withoutWaits } from "../support/run-command.js";
import { LOCAL_SHELL, SSHD, Sshd, script } from "../support/ssh.js";

const isLinux = process.platform === "linux";
const isRequired = process.env.PAMIR_REQUIRE_LAUNCHERS === "1";
if (isLinux && SSHD === undefined && !isRequired)
  console.log("not run: pamir run --hosts by ssh, which is not installed");
const folder = mkdtempSync(join(inject("folder"), "hosts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const rsh = script(folder, "rsh", LOCAL_SHELL);
const plain = app.replace("app.js", "plain.js");
const shape = app.replace("app.js", "shape.js");
const started = new Set<ChildProcess>();
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started.clear();
});

/** Resolves once these processes have ended; the test's time limit fails otherwise. */
async function allGone(pids: readonly number[]): Promise<void> {
  while (!pids.every(isGone)) await new Promise((resolve) => setTimeout(resolve, 20));
}

/**
 * How a process ends, if that is before the 5 s are over in which tasks may end after SIGTERM. A busy machine may take as long for
 * an end that waits for nothing: the best of some attempts.
 */
async function withoutGrace<End>(attempt: () => Promise<{ readonly closed: Promise<End> }>): Promise<End | "late"> {
  for (let left = 4; ; left--) {
    const { closed } = await attempt();
    const how = await Promise.race([closed, new Promise<"late">((resolve) => setTimeout(resolve, 4000, "late"))]);
    if (how !== "late" || left === 0) return how;
    await closed;
  }
}

/** Starts `pamir run` with a program whose tasks hang, once all of them have said their numbers. */
async function hanging(tasks: number, ...args: string[]) {
  const child = spawn(process.execPath, [cli, "run", ...args, app, "hang"], { stdio: ["ignore", "pipe", "inherit"] });
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

let sshd: Sshd | undefined;
beforeAll(async () => {
  if (isLinux && SSHD !== undefined) sshd = await Sshd.start();
});
afterAll(() => sshd?.stop());

describe.skipIf(!isRequired)("ssh and sshd", () => it("are installed", () => expect(SSHD).toBeDefined()));

/** How tasks get to nodes: options for a number of tasks and of nodes. */
const WAYS: readonly (readonly [name: string, options: (tasks: number, nodes: number) => string[]])[] = [
  ["--nodes", (tasks, nodes) => ["-n", `${tasks}`, "--nodes", `${nodes}`]],
  ["--hosts, a remote shell here", (tasks, nodes) => [...hostsOf(tasks, nodes), "--rsh", rsh]],
  ["--hosts, localhost and ssh", (tasks, nodes) => [...hostsOf(tasks, nodes, "localhost"), "--rsh", sshd?.rsh ?? ""]],
];

/** The hosts are "two", "one" and others, of equally many tasks. @param last the last one */
function hostsOf(tasks: number, nodes: number, last = "one"): string[] {
  const names = ["two", "one", "three", "four"].slice(0, nodes);
  if (nodes > 1) names[nodes - 1] = last;
  return ["--hosts", names.map((name) => `${name}:${tasks / nodes}`).join(",")];
}

const installed = WAYS.filter(([name]) => SSHD !== undefined || !name.includes("ssh"));
describe.skipIf(!isLinux).each(installed)("pamir run %s", (_, options) => {
  it.each([
    [1, 4],
    [2, 4],
    [2, 2],
  ])("%d nodes, %d tasks: they get arguments, variables and labels", (nodes, tasks) => {
    const { status, stdout, stderr } = run(
      ...options(tasks, nodes),
      "-x",
      "PAMIR_X=a=b",
      app,
      "-n",
      "--x",
      "",
      "a 'b\n",
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const said = saidBy(stdout);
    expect(said.map(({ task, args, x }) => ({ task, args, x }))).toEqual(
      Array.from({ length: tasks }, (_, task) => ({ task, args: ["-n", "--x", "", "a 'b\n"], x: "a=b" })),
    );
    expect(new Set(said.map(({ pid }) => pid)).size).toBe(tasks);
  });

  it("a program that does not attach; standard input goes to task 0 alone", () => {
    const args = [cli, "run", ...options(2, 2), "--cwd", "/", "-x", "NAME=1", plain];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { input: "words", encoding: "utf8" });
    expect({ status, stderr: withoutWaits(stderr) }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.trim().split("\n").sort();
    expect(lines).toEqual(["[0] end", "[0] got words", "[0] in /, NAME=1", "[1] end", "[1] in /, NAME=1"]);
  });

  it("large input comes whole, also if task 0 reads it late", () => {
    const input = "0123456789abcde\n".repeat(2 ** 18);
    const args = [cli, "run", ...options(2, 2), "--no-labels", plain, "count"];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { input, encoding: "utf8" });
    expect({ status, stderr: withoutWaits(stderr), stdout: stdout.trim() }).toEqual({
      status: 0,
      stderr: "",
      stdout: `${input.length} bytes`,
    });
  });

  it("its exit code is that of the first task that failed, also by a signal", () => {
    expect(run(...options(2, 2), app, "exit")).toMatchObject({
      status: 7,
      stderr: "pamir: task 1 exited with code 7\n",
    });
    expect(run(...options(2, 2), app, "kill")).toMatchObject({
      status: 128 + 9,
      stderr: "pamir: task 1 was ended by SIGKILL\n",
    });
  });

  it("--on-error abort ends the tasks that go on; --timeout ends all", () => {
    const aborted = run(...options(2, 2), "--on-error", "abort", app, "exit");
    expect(aborted).toMatchObject({ status: 7, stderr: "pamir: task 1 exited with code 7, the job ends\n" });
    const late = run(...options(2, 2), "--timeout", "0.5", app, "hang");
    expect(late.status).toBe(124);
    expect(late.stderr).toContain("has not ended after 0.5 s");
  });

  it("a task that never attaches: after --start-timeout the job ends, and names it", () => {
    const { status, stdout, stderr } = run(...options(4, 2), "--start-timeout", "10", app, "stuck");
    expect(stderr).toBe("pamir run: task 1 did not attach within 10 s (--start-timeout): the job ends\n");
    expect(status).toBe(124);
    expect(isGone((JSON.parse(stdout.replace("[1] ", "")) as { pid: number }).pid)).toBe(true);
  });

  it("PAMIR_START_TIMEOUT is the default of --start-timeout; the tasks wait longer than that, whatever -x says", () => {
    const ofTasks = ["-x", "PAMIR_START_TIMEOUT=1"];
    const command = [cli, "run", ...options(4, 2), ...ofTasks, app, "stuck"];
    const given = (PAMIR_START_TIMEOUT: string) =>
      spawnSync(process.execPath, command, {
        encoding: "utf8",
        timeout: 60_000,
        env: { ...process.env, PAMIR_START_TIMEOUT },
      });
    const late = given("10");
    expect(withoutWaits(late.stderr)).toBe(
      "pamir run: task 1 did not attach within 10 s (--start-timeout): the job ends\n",
    );
    expect(late.status).toBe(124);
    const wrong = given("soon");
    expect(wrong.stderr).toMatch(/^pamir: PAMIR_START_TIMEOUT is "soon", not a number of seconds up to 2,000,000\n$/);
    expect(wrong.status).toBe(2);
  });

  it("--kernel, --contexts and --heap-bytes reach the tasks, beside what PAMIR_OPTIONS says", () => {
    const given = ["--kernel", "ts", "--contexts", "3", "--heap-bytes", `${2 ** 22}`];
    const { status, stdout } = run(...options(2, 2), ...given, "-x", 'PAMIR_OPTIONS={"regions":9}', shape);
    const said = '{"kernel":"ts","contexts":3,"heapMib":4,"regions":9}';
    expect({ status, lines: stdout.trim().split("\n").sort() }).toEqual({
      status: 0,
      lines: [`[0] ${said}`, `[1] ${said}`],
    });
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGKILL", "SIGKILL"],
  ] as const)("%s ends all, also tasks that block; no process stays behind", async (signal, code) => {
    const mark = `${process.pid}-${performance.now()}`;
    process.env.PAMIR_MARK = mark;
    const { child, closed, pids } = await hanging(2, ...options(2, 2), "-x", `PAMIR_MARK=${mark}`).finally(() => {
      delete process.env.PAMIR_MARK;
    });
    expect(processesWith("PAMIR_MARK", mark).length).toBeGreaterThan(2);
    child.kill(signal);
    expect(await closed).toBe(code);
    await allGone(pids);
    while (processesWith("PAMIR_MARK", mark).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  it("the second signal ends a task that ignores the first", async () => {
    const { child, closed, pids } = await hanging(2, ...options(2, 1), "-x", "PAMIR_X=stubborn");
    child.kill("SIGTERM");
    // The first signal has arrived once the other task has ended.
    while (!pids.some(isGone)) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGINT");
    expect(await closed).toBe(143);
    await allGone(pids);
  });

  it("no process has the job key in its environment or on its command line", async () => {
    const mark = `${process.pid}-${performance.now()}`;
    const { child, closed, pids } = await hanging(2, ...options(2, 2), "-x", `PAMIR_MARK=${mark}`);
    for (const pid of pids) expect(readFileSync(`/proc/${pid}/environ`, "latin1")).toMatch(/PAMIR_KEY_FD=\d+\0/);
    for (const pid of processesWith("PAMIR_MARK", mark)) {
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
      expect(environment + readFileSync(`/proc/${pid}/cmdline`, "latin1")).not.toMatch(/[\da-f]{64}/i);
    }
    child.kill("SIGTERM");
    await closed;
  });
});

it.runIf(isLinux).each([
  ["before attach()", "stuck"],
  ["within attach()", "half"],
])("pamir run --nodes names a task that stops %s, while others wait for it", (_, what) => {
  const args = [cli, "run", "-n", "2", "--nodes", "2", "--start-timeout", "12", app, what];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 110_000 });
  // It is the first of them where the others have attached within 5 s.
  expect(stderr).toMatch(/^pamir run: for \d+ s, the others wait for task 1 to attach$/m);
  expect(status).toBe(124);
});

describe.skipIf(!isLinux)("pamir run --hosts", () => {
  it("hosts with different numbers of tasks; a host file in both spellings; --ppn", () => {
    const file = join(folder, "hostfile");
    writeFileSync(file, "# two hosts\na slots=3 # three\nb:2\n");
    const sizes = [
      ["--hosts", "a:2,b"],
      ["--hostfile", file],
      ["--hostfile", file, "--ppn", "1"],
      ["--hosts=a:2,b:2", "-n3"],
    ];
    expect(sizes.map((hosts) => saidBy(run(...hosts, "--rsh", rsh, app).stdout).map(({ task }) => task))).toEqual([
      [0, 1, 2],
      [0, 1, 2, 3, 4],
      [0, 1],
      [0, 1, 2],
    ]);
  });

  it("a host file of MPICH: the fields binding= and ifname= are ignored, with a warning", () => {
    const file = join(folder, "mpich");
    writeFileSync(file, "a:2 binding=user:0,2 ifname=eth0\n");
    const { status, stdout, stderr } = run("--hostfile", file, "--rsh", rsh, app);
    expect({ status, tasks: saidBy(stdout).length }).toEqual({ status: 0, tasks: 2 });
    const ignored = ["binding=user:0,2", "ifname=eth0"].map(
      (field) => `pamir run: ${file}, line 1: the field "${field}" is ignored\n`,
    );
    expect(stderr).toBe(ignored.join(""));
  });

  it("a connection that breaks: its tasks are lost, and end", async () => {
    const breaking = script(folder, "breaking", `shift; echo $$ > ${folder}/shell; exec sh -c "$1"`);
    const { closed, pids } = await hanging(2, "--hosts", "a,localhost", "--rsh", breaking, "--on-error", "abort");
    process.kill(Number(readFileSync(join(folder, "shell"), "utf8")), "SIGKILL");
    expect(await closed).toBe(1);
    await allGone(pids);
  });

  it.each([
    ["/nonexistent/rsh", /^pamir: host a: \/nonexistent\/rsh can't be started: .*ENOENT/],
    ["false", /^pamir: host a: \S*false ended with exit code 1$/],
    ["echo", /^pamir: host a: \S*echo ended with exit code 0$/],
    ["script: echo no way >&2; exit 255", /^pamir: host a: .*script ended with exit code 255; no way$/],
    [
      "script: echo pamir node, frames 0, version 9.9.9; cat >/dev/null",
      /^pamir: host a: it has pamir 9\.9\.9, which can't/,
    ],
    ["script: head -c 100000 /dev/zero", /^pamir: host a: 65536 bytes came, and no line of a pamir node$/],
  ])("a remote shell that fails: %s", (given, text) => {
    const [, lines] = /^script: (.*)$/.exec(given) ?? [];
    const shell = lines === undefined ? given : script(folder, "script", lines);
    const { status, stdout, stderr } = run("--hosts", "a,localhost", "--rsh", shell, app);
    expect(stderr.trim()).toMatch(text);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  });

  it("a host that does not resolve, and one that refuses the key", () => {
    if (sshd === undefined) return;
    const { status, stderr } = run("--hosts", "no-such-host.invalid", "--rsh", sshd.rsh, app);
    expect(stderr).toMatch(
      /^pamir: host no-such-host\.invalid: \S*ssh ended with exit code 255; ssh: Could not resolve/,
    );
    expect(status).toBe(2);
    const refused = run("--hosts", "one", "--rsh", `${sshd.rsh} -o PreferredAuthentications=password`, app);
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringMatching(/host one: .*Permission denied/) });
  });

  it("a host that never answers is named, with what was tried, and nothing of it stays behind", () => {
    const shell = script(folder, "silent", `echo $$ > ${folder}/silent-shell; exec sleep 1000`);
    const { status, stderr } = run("--hosts", "localhost,far", "--rsh", `${shell} -x`, "--start-timeout", "10", app);
    expect(stderr.trim()).toBe(`pamir: no answer from host far: tried by ${shell} -x, for 10 s (--start-timeout)`);
    expect(status).toBe(2);
    expect(isGone(Number(readFileSync(join(folder, "silent-shell"), "utf8")))).toBe(true);
  });

  it("this host needs no remote shell: none is named", () => {
    const { status, stderr } = run("--hosts", "localhost", "--rsh", "false", "--start-timeout", "0.001", app);
    const tried = `tried by ${process.execPath}, for 0.001 s (--start-timeout)`;
    expect(stderr.trim()).toBe(`pamir: no answer from host localhost: ${tried}`);
    expect(status).toBe(2);
  });

  it("while a host is awaited, it is named every five seconds; a signal ends the wait", async () => {
    const shell = script(folder, "waiting", `echo $$ > ${folder}/waiting-shell; exec sleep 1000`);
    const attempt = async () => {
      const child = spawn(process.execPath, [cli, "run", "--hosts", "localhost,far", "--rsh", shell, app]);
      started.add(child);
      const closed = new Promise((resolve) => child.on("close", resolve));
      let text = "";
      // A busy machine may not have heard of localhost within the first five seconds.
      await new Promise<void>((resolve) => {
        child.stderr.on("data", (bytes) => {
          text += bytes;
          if (/waits for host far to answer\n$/.test(text)) resolve();
        });
      });
      expect(text).toMatch(/^(?:pamir run: for \d*[05] s, this job waits for .* to answer\n)+$/);
      child.kill("SIGTERM");
      return { closed };
    };
    expect(await withoutGrace(attempt)).toBe(143);
    expect(isGone(Number(readFileSync(join(folder, "waiting-shell"), "utf8")))).toBe(true);
  });

  it.each([
    ["answers", "exit 1", "a,b", /^pamir: host [ab]: .*faulty ended with exit code 1\n$/],
    // Its starter can't start the tasks, while the one of the other host does so.
    [
      "starts its tasks",
      '[ "$1" = few ] && ulimit -n 40; exec sh -c "$2"',
      "one,few:30",
      /^pamir: host few: task \d+ can't be started: .*\(PAMIR_DESCRIPTORS\)\n$/,
    ],
  ])(
    "after a host that never %s, pamir run waits for nothing, also if its input is open",
    async (_, lines, to, text) => {
      const shell = script(folder, "faulty", lines);
      let stderr = "";
      const attempt = async () => {
        // The pipe of its standard input stays open.
        const child = spawn(process.execPath, [cli, "run", "--hosts", to, "--rsh", shell, app, "hang"]);
        started.add(child);
        const closed = new Promise((resolve) => child.on("close", resolve));
        stderr = "";
        await new Promise<void>((resolve) => {
          child.stderr.on("data", (bytes) => {
            stderr += bytes;
            if (withoutWaits(stderr).endsWith("\n")) resolve();
          });
        });
        return { closed };
      };
      expect(await withoutGrace(attempt)).toBe(2);
      expect(withoutWaits(stderr)).toMatch(text);
    },
  );

  it("a host that is lost before the others are ready is named at once", () => {
    const gone = join(folder, "dies-gone");
    const shell = script(
      folder,
      "dies",
      `if [ "$1" = dies ]; then timeout -s KILL 2 sh -c "$2"; touch ${gone}; exit 3; fi
       until [ -e ${gone} ]; do sleep 0.1; done; sleep 0.5; exec sh -c "$2"`,
    );
    const { status, stdout, stderr } = run("--hosts", "dies,slow", "--rsh", shell, "--start-timeout", "30", app);
    // sh may say that it was killed, too.
    expect(stderr).toMatch(/^pamir: host dies: .*dies ended with exit code 3(; Killed)?\n$/);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  });

  it("what is wrong on a host: the program, the folder, its pamir", () => {
    expect(run("--hosts", "a", "--rsh", rsh, "/nonexistent.js")).toMatchObject({
      status: 2,
      stderr: "pamir: host a: the task module /nonexistent.js does not exist (PAMIR_ENTRY)\n",
    });
    expect(run("--hosts", "a", "--rsh", rsh, "--cwd", "/nonexistent", app)).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^pamir: host a: --cwd \/nonexistent: ENOENT/),
    });
    expect(run("--hosts", "a", "--rsh", rsh, "--remote-pamir", "/nonexistent/pamir", app)).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(
        /^pamir: host a: .*rsh ended with exit code 127; .*nonexistent\/pamir: not found\n$/,
      ),
    });
  });
});

const isBefore24 = Number(process.versions.node.split(".")[0]) < 24;

describe.skipIf(!isLinux)("pamir run, too few descriptors", () => {
  it.each([
    [40, "-n 30 --nodes 2", /^pamir: task \d+ can't be started: /],
    [40, "--hosts localhost:30", /^pamir: host localhost: task \d+ can't be started: /],
    [40, `--hosts a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r --rsh ${rsh}`, /^pamir: [a-r]: .*rsh can't be started: /],
    [40, "-n 30 --processes 30", /^pamir: task \d+ is lost, the job ends: its process can't be started: /],
    [40, "-n 30 --processes 29", /^pamir: task \d+ is lost, the job ends: its process can't be started: /],
    [32, "-n 8", /^pamir: task \d+ failed, the job ends: the thread can't be started: /],
  ] as const)("%i, %s: all tasks end, and one line says why", async (most, options, text) => {
    const mark = `${process.pid}-${performance.now()}`;
    // Tasks that had attached would say, too, that others have ended.
    const line = `ulimit -n ${most}; exec "$0" "${cli}" run ${options} -x PAMIR_MARK=${mark} "${app}" never`;
    const { status, stderr } = spawnSync("sh", ["-c", line, process.execPath], { encoding: "utf8", timeout: 110_000 });
    const code = "PAMIR_DESCRIPTORS";
    const why = `all ${most} descriptors that this process may have are in use: raise ulimit -n, or start fewer`;
    const what = options === "-n 8" ? "tasks" : "processes";
    expect(withoutWaits(stderr).replace(text, "")).toBe(`${why} ${what} (${code})\n`);
    expect(status).toBe(2);
    while (processesWith("PAMIR_MARK", mark).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

// How many descriptors Node has open differs between builds of it, by up to 6: the job runs, or says what it needs, or begins
// and says in a line for each task, or for the job, that there is none left.
it
  .runIf(isLinux && isBefore24)
  .each(
    ["-n 2", "-n 2 --processes 1", "-n 2 --processes 2", "-n 2 --processes 2 --detach", "-n 2 --nodes 2"].flatMap(
      (way) => [20, 22, 23, 24, 25, 26, 27, 28, 32, 36].map((most) => [way, most] as const),
    ),
  )("pamir run %s, with %i descriptors: runs, or says in lines why not", (options, most) => {
  const line = `ulimit -n ${most}; exec "$0" "${cli}" run ${options} "${app}"`;
  const { status, stdout, ...ended } = spawnSync("sh", ["-c", line, process.execPath], {
    encoding: "utf8",
    timeout: 110_000,
  });
  const stderr = withoutWaits(ended.stderr);
  if (status === 0) {
    expect(most).toBeGreaterThan(22);
    expect(stdout.match(/"task":/g)).toHaveLength(2);
    expect(stderr).toBe("");
    return;
  }
  const needs = `this process may have ${most} descriptors \\(ulimit -n\\): pamir run needs \\d+ at least, and some more for each task`;
  const all = `all ${most} descriptors that this process may have are in use: raise ulimit -n, or start fewer (?:processes|tasks)`;
  const none = `\\w+ fails: this process has no descriptor left, raise ulimit -n`;
  const said = new RegExp(`^pamir: (?:${needs}|(?:task \\d .*: )?(?:${all}|${none})) \\(PAMIR_DESCRIPTORS\\)\n$`);
  const texts = stderr.split(/^(?=pamir: )/m);
  // A task that has begun may need one that has not, and say so with a stack.
  const others = texts.filter((text) => !said.test(text));
  expect(others.length).toBeLessThan(texts.length);
  for (const text of others) expect(text).toMatch(/^pamir: task \d failed:\nPamiError: .*\(PAMIR_DESCRIPTORS\)\n/);
  expect(status).toBe(2);
});

// Which part finds none depends on the number: the monitor's thread, koffi, a process.
it.runIf(isLinux).each([3, 4, 5, 6, 7, 8, 10])("launch() with %i free descriptors says what is short", (free) => {
  const few = app.replace("app.js", "few-descriptors.mjs");
  const line = `ulimit -n 45; exec "$0" "${few}" ${free}`;
  const { stdout, stderr } = spawnSync("sh", ["-c", line, process.execPath], { encoding: "utf8", timeout: 110_000 });
  expect(stderr).toBe("");
  const errors = JSON.parse(stdout) as string[];
  expect(errors.length).toBeGreaterThan(0);
  for (const error of errors) expect(error).toMatch(/raise ulimit -n.* \(PAMIR_DESCRIPTORS\)$/);
});

/** Runs a command as a user who has no other processes: root has no limit of them. */
const asNobody = ["--reuid=54321", "--clear-groups"];
const hasOtherUsers = isLinux && spawnSync("setpriv", [...asNobody, "prlimit", process.execPath, cli]).status === 2;

describe.runIf(hasOtherUsers)("pamir run, too few processes", () => {
  it.each([
    ["-n 30 --nodes 2", /^pamir: task \d+ can't be started: /],
    ["--hosts localhost:30", /^pamir: host localhost: task \d+ can't be started: /],
    ["-n 30 --processes 30", /^pamir: task \d+ is lost, the job ends: its process can't be started: /],
    ["-n 30 --processes 29", /^pamir: task \d+ is lost, the job ends: its process can't be started: /],
  ] as const)("%s: the text names the limit", (options, text) => {
    const command = ["prlimit", "--nproc=25", process.execPath, cli, "run", ...options.split(" "), app, "hang"];
    const { status, stderr } = spawnSync("setpriv", [...asNobody, ...command], { encoding: "utf8", timeout: 110_000 });
    const [line = ""] = stderr.split("\n").filter((one) => text.test(one));
    expect(line.replace(text, "")).toBe(
      "the system starts no more processes: a user may have 25 processes and threads (ulimit -u), and a cgroup may allow fewer: raise that, or start fewer processes (PAMIR_NO_PROCESSES)",
    );
    expect(status).toBe(2);
  });
});

it.runIf(hasOtherUsers).each([
  ["threads", "-n 2"],
  ["processes", "-n 2 --processes 2"],
  ["nodes", "-n 2 --nodes 2"],
  ["hosts", "--hosts localhost:2"],
])("pamir run, %s: a program that the user may not read", (_, options) => {
  const open = mkdtempSync(join(tmpdir(), "pamir-unreadable-"));
  try {
    chmodSync(open, 0o755);
    const file = join(open, "secret.js");
    writeFileSync(file, "");
    chmodSync(file, 0);
    const command = [process.execPath, cli, "run", ...options.split(" "), file];
    const { status, stderr } = spawnSync("setpriv", [...asNobody, ...command], { encoding: "utf8", timeout: 110_000 });
    expect(withoutWaits(stderr)).toMatch(
      /^pamir: .*the task module .*secret.js can't be read: EACCES: .* \(PAMIR_ENTRY\)\n$/,
    );
    expect(status).toBe(2);
  } finally {
    rmSync(open, { recursive: true });
  }
});

// From Node 24 on, V8 reserves less where the system refuses so much.
it.runIf(isLinux && isBefore24).each([
  ["-n 2 --processes 2", 6_000_000],
  ["-n 2 --nodes 1", 6_000_000],
  ["-n 2 --nodes 2", 20_000_000],
  ["-n 2 --nodes 2", 23_000_000],
  ["-n 2 --nodes 2 --kernel ts", 2_000_000],
  [`--hosts localhost:1,other:1 --rsh ${rsh}`, 20_000_000],
])("pamir run %s, too few addresses: the text names the limit, once", (options, kibibytes) => {
  const line = `ulimit -v ${kibibytes}; exec "$0" "${cli}" run ${options} "${app}"`;
  const { status, stderr } = spawnSync("sh", ["-c", line, process.execPath], { encoding: "utf8", timeout: 110_000 });
  expect(withoutWaits(stderr)).toMatch(
    /^pamir: (?:host \w+: )?this host refuses .*10 GiB of addresses .*\(see ulimit -v\): raise it (?:to at least|by) \d{7,}.* \(PAMIR_MEMORY\)\n$/,
  );
  expect(status).toBe(2);
});

it.runIf(isLinux && isBefore24).each(["-n 2 --nodes 2", "-n 4 --nodes 2 --top"])(
  "pamir run %s, with the addresses that docs/sizing.md asks for",
  (options) => {
    const [limit] = /ulimit -v \d+/.exec(readFileSync("docs/sizing.md", "utf8")) as RegExpExecArray;
    const line = `${limit}; exec "$0" "${cli}" run ${options} "${app}"`;
    const { status, stderr } = spawnSync("sh", ["-c", line, process.execPath], { encoding: "utf8", timeout: 110_000 });
    expect({ status, stderr: withoutWaits(stderr) }).toEqual({ status: 0, stderr: "" });
  },
);

describe.runIf(isLinux)("without WebAssembly, by node --jitless", () => {
  /** Runs it, and leaves V8's own warnings out. */
  function jitless(...args: string[]) {
    const command = ["--jitless", cli, "run", ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8", timeout: 110_000 });
    return { status, stdout, stderr: withoutWaits(stderr).replace(/^.*Warning: disabling flag .*\n/gm, "") };
  }

  it.each([
    ["-n 2 --nodes 2", /^$/],
    ["-n 2 --nodes 1", /this Node has no WebAssembly \(as with --jitless\); a link joins them instead/],
    ["-n 2 --processes 2", /this Node has no WebAssembly \(as with --jitless\); a link .*joins them instead/],
  ])("pamir run %s: the tasks run the kernels in TypeScript", (options, said) => {
    const { status, stdout, stderr } = jitless(...options.split(" "), app);
    expect(stderr).toMatch(said);
    expect(status).toBe(0);
    expect(saidBy(stdout).map(({ task }) => task)).toEqual([0, 1]);
  });

  it("pamir run --nodes 2 --kernel wasm is refused", () => {
    const { status, stderr } = jitless("-n", "2", "--nodes", "2", "--kernel", "wasm", app);
    expect(stderr).toBe('pamir: kernel: "wasm", but this host does not compile WebAssembly (PAMIR_NO_WASM)\n');
    expect(status).toBe(2);
  });
});

describe("pamir run, wrong input", () => {
  it.each([
    [["--nodes", "0", app], /--nodes is "0", not an integer from 1/],
    [["-n", "3", "--nodes", "2", app], /--tasks is 3, not a multiple of --nodes, which is 2/],
    [["-n", "70000", "--nodes", "2", app], /--tasks is 70000: a launcher starts at most 1024 tasks on a host/],
    [
      ["--hosts", "a,b:1025", "--rsh", "false", app],
      /host b gets 1025 tasks: a launcher starts at most 1024 on a host/,
    ],
    [["--nodes", "2", "--processes", "2", app], /--processes does not go with --nodes/],
    [["--nodes", "2", "--engine", "thread", app], /--engine does not go with --nodes/],
    [["--nodes", "2", "--kernel", "c", app], /--kernel is "c", not "wasm" or "ts"/],
    [["--nodes", "2", "--contexts", "2", "-x", "PAMIR_OPTIONS={", app], /PAMIR_OPTIONS is "\{", not JSON/],
    [["--nodes", "2", "-x", "PAMIR_BIND_HOST=0.0.0.0", app], /PAMIR_BIND_HOST is "0.0.0.0".*\(PAMIR_ADDRESS\)/],
    [["--nodes", "2", "-x", "PAMIR_BIND_HOST=a host", app], /PAMIR_BIND_HOST is "a host", not an address/],
    [["--nodes", "2", "-x", "PAMIR_OPTIONS={", app], /PAMIR_OPTIONS is "\{", not JSON.*\(PAMIR_INVAL\)/],
    [
      ["--nodes", "2", "-x", 'PAMIR_OPTIONS={"context":2}', app],
      /PAMIR_OPTIONS: there is no "context".*\(PAMIR_INVAL\)/,
    ],
    [
      ["-n", "6", "--nodes", "3", "-x", 'PAMIR_OPTIONS={"port":65534}', app],
      /port of PAMIR_OPTIONS is 65534, so node 2 would have port 65536: the last is 65535 \(PAMIR_INVAL\)/,
    ],
    [
      ["--hosts", "a:2,b:3", "--rsh", "false", "-x", 'PAMIR_OPTIONS={"port":65532}', app],
      /port of PAMIR_OPTIONS is 65532, so node 4 would have port 65536/,
    ],
    [["--nodes", "2", "--contexts", "1000", app], /contexts is 1000, not an integer from 1 to 127 \(PAMIR_INVAL\)/],
    [["--nodes", "2", "--heap-bytes", "5", app], /heapBytes is 5, not an integer from 4096/],
    [["--nodes", "2", "--heap-bytes", "5000", app], /heapBytes is 5000: one lane of .*\(PAMIR_MEMORY\)/],
    [["--hosts", "a:2", "--contexts", "1000", app], /contexts is 1000/],
    [["--nodes", "2", "test"], /the task module .*test is no file \(PAMIR_ENTRY\)/],
    [["--nodes", "2", "--rsh", "ssh", app], /--rsh does not go with .*--hosts or --hostfile is missing/],
    [["--ppn", "2", app], /--ppn does not go with/],
    [["--start-timeout", "2", app], /--start-timeout does not go with threads/],
    [["--processes", "2", "--start-timeout", "2", app], /--start-timeout does not go with .*--processes/],
    [["--hosts", "a", "--nodes", "2", app], /--nodes does not go with --hosts/],
    [["--hosts", "a", "--trace", "x", app], /--trace does not go with --hosts/],
    [["--hosts", "a", "--hostfile", "b", app], /--hosts does not go with --hostfile/],
    [["--hosts", "a:x", app], /--hosts, entry 1: slots is "x", not an integer from 1 to 65536 \(PAMIR_HOSTS\)/],
    [["--hosts", "a:2,b", "-n", "4", app], /4 tasks don't fit: 2 hosts have 3 slots/],
    [["--hosts", "a", "--rsh", " ", app], /--rsh is empty/],
    [["--hosts", "a", "--remote-pamir", " ", app], /--remote-pamir is empty/],
    [["--hosts", "a", "--start-timeout", "x", app], /--start-timeout is "x", not a number of seconds/],
    [["--hostfile", "/nonexistent", app], /--hostfile \/nonexistent: ENOENT/],
    [["--hostfile", "FILE", app], /hostfile, line 2: the field "slot=2" is none of slots=, max_slots= \(PAMIR_HOSTS\)/],
    [["--nodes", "2", "/nonexistent.js"], /the task module \/nonexistent.js does not exist/],
    [["--nodes", "2", "--cwd", "/nonexistent", app], /--cwd \/nonexistent: ENOENT/],
  ] as const)("%j", (args, text) => {
    const file = join(folder, "wrong-hostfile");
    writeFileSync(file, "a slots=2\nb slot=2\n");
    const { status, stderr } = run(...args.map((arg) => (arg === "FILE" ? file : arg)));
    expect(stderr).toMatch(text);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });

  it.each([
    ["--nodes", "1"],
    ["--hosts", "localhost"],
  ])("%s %s, where no process may be started", (...way) => {
    const allowed = [PERMISSION, "--allow-fs-read=*", "--allow-worker"];
    const { status, stderr } = spawnSync(process.execPath, [...allowed, cli, "run", ...way, app], { encoding: "utf8" });
    expect(stderr).toMatch(/^pamir: .*--allow-child-process.*\(PAMIR_NO_PROCESSES\)$/m);
    expect(status).toBe(2);
  });
});

it("options of the command come before those of PAMIR_OPTIONS, and both hold", () => {
  const given = ["--contexts", "3", "-x", 'PAMIR_OPTIONS={"kernel":"ts","contexts":9}'];
  const { status, stdout } = run("-n", "1", "--nodes", "1", ...given, "--no-labels", shape);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ kernel: "ts", contexts: 3 });
});

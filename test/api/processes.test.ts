// Jobs whose tasks run in processes that share a memory: how processes end, stop and go on, and what they leave behind.
import { type ChildProcess, execFileSync, type StdioOptions, spawn, spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import { INTERRUPTED, type Job, launch, type MemRegion, type PamiError, type Result, SHUTDOWN, SUCCESS } from "pamir";
import { afterAll, describe, expect, inject, it } from "vitest";
import { JOB_HEAP_LOCK_OFFSET, MAP_BASE } from "../../assembly/layout.js";
import { byEffort } from "../support/effort.js";
import { expectIdle } from "../support/idle.js";
import { mixed, OTHER_NODE } from "../support/launches.js";
import { CROWD, endOf, leaveAll, stateOf, untilTraffic, withCrowd } from "./crowd.js";
import { allowing, copyOfPackage, run } from "./run-program.js";
import {
  chooseSeed,
  countedSignal,
  DATA,
  ECHO,
  OTHER,
  PATIENCE,
  randomFrom,
  rejectionOf,
  thrownBy,
  until,
} from "./support.js";

const IS_HERE = process.platform === "linux";
/** Descriptors of the memories of this process's jobs. */
function memoryFiles(): number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith("/memfd:pamir");
      } catch {
        return false; // readdir's own
      }
    });
}

/** The memory of this process's only job, as a file. */
function memoryFile(): number {
  const [file, more] = memoryFiles();
  if (file === undefined || more !== undefined) throw new Error("there is not one job with processes");
  return file;
}

/** The task that holds the heap's lock; 0: none. Task 0 counts as none too. */
function holderOfHeap(file: number): number {
  const word = new Int32Array(1);
  readSync(file, word, 0, 4, MAP_BASE + JOB_HEAP_LOCK_OFFSET);
  return Math.max(0, (word[0] as number) - 1);
}

async function untilState(pid: number, state: string): Promise<void> {
  for (const end = performance.now() + PATIENCE; stateOf(pid) !== state && performance.now() < end; ) await sleep(1);
  expect(stateOf(pid)).toBe(state);
}

/** A fcntl() that does not seal a memory, since it is a file that has a name, and duplicates descriptors. */
const FCNTL = "(fd, call) => (call === 1030 ? require('node:fs').openSync('/proc/self/fd/' + fd, 'r+') : 0)";

const KILLED = /^its process \d+ was killed by SIGKILL$/;
const SIZES = [8, 100, 700, 20_000];

/** A region, once no other task holds the heap's lock. */
function createRegion(job: Job): MemRegion {
  for (const end = performance.now() + PATIENCE; ; ) {
    try {
      return job.client.createRegion(1);
    } catch (error) {
      if ((error as PamiError).code !== "PAMIR_BUSY" || performance.now() > end) throw error;
    }
  }
}

/** The processes with a mark in their environment that run. */
function marked(mark: string): number[] {
  const has = (pid: string): boolean => {
    try {
      return stateOf(Number(pid)) !== "Z" && readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark);
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && has(name))
    .map(Number)
    .sort();
}

/** Starts a program of this folder. */
function start(options: readonly string[], parameters: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const program = fileURLToPath(new URL("programs/processes.js", import.meta.url));
  const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
  return spawn(process.execPath, [...options, program, ...parameters], { stdio, env: { ...process.env, ...env } });
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  for await (const line of createInterface(stdout as Readable)) return line;
  throw new Error("the program has printed nothing");
}

/** Whether this user may mount a file system. */
function mayMount(): boolean {
  const folder = mkdtempSync(join(inject("folder"), "mount-"));
  try {
    const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "pamir", folder]).status === 0;
    return isMounted && spawnSync("umount", [folder]).status === 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function suite(): void {
  describe.each(["wasm", "ts"] as const)("processes that end, kernel %s", (kernel) => {
    it("SIGKILL in mid-traffic: its two tasks end with the error, all memory comes back, the others go on", () =>
      withCrowd({ kernel }, async (crowd) => {
        const { job, context, to, ask, processOf, signal } = crowd;
        const { pid, area } = await processOf(1);
        expect((await processOf(2)).pid).toBe(pid);
        expect((await processOf(3)).pid).not.toBe(pid);
        for (let task = 1; task < 5; task++) await ask(task, "traffic", { size: 5, sizes: SIZES });
        for (let i = 0; i < 200; i++) context.advanceUntil(() => false, { timeout: 1 });

        // Under way to the dead: large messages, transfers, a call.
        const told: Result[] = [];
        const moved: Result[] = [];
        const onRemote = (_: unknown, result: Result): void => void told.push(result);
        const onMoved = (_: unknown, result: Result): void => void moved.push(result);
        const local = job.client.createRegion(4096);
        signal(pid, "SIGKILL");
        const large = { dispatch: DATA, header: Int32Array.of(0), payload: new Uint8Array(3e6), onLocal: () => {} };
        const sent = [1, 2].map((task) => context.send({ ...large, to: to(task), onRemote }));
        const transfers = [
          context.put({ to: to(1), local, remote: area, onRemote: onMoved }),
          context.get({ to: to(1), local, remote: area, onLocal: onMoved }),
        ];
        const call = rejectionOf(context.call(to(1), ECHO));
        await Promise.all([1, 2].map((task) => context.whenEnded(to(task), { timeout: PATIENCE })));
        const begun = (results: Result[]) => results.filter((result) => result === SUCCESS).length;
        for (const result of [...sent, ...transfers]) expect([SUCCESS, SHUTDOWN]).toContain(result);
        until(context, () => told.length === begun(sent) && moved.length === begun(transfers));
        expect(told.every((result) => result === SHUTDOWN)).toBe(true);
        expect(context.sendImmediate(to(2), OTHER)).toBe(SHUTDOWN);
        const error = { code: "PAMIR_SHUTDOWN", cause: { message: expect.stringMatching(KILLED) } };
        expect(await call).toMatchObject(error);
        expect(await rejectionOf(context.whenRoom(to(2), 8))).toMatchObject(error);

        await untilTraffic(crowd, [3, 4]);
        local.close();
        const exits = await leaveAll(crowd, [3, 4]);
        expect(exits.map(({ task, code, cause }) => [task, code, cause])).toEqual([
          [1, 137, "process"],
          [2, 137, "process"],
          [3, 0, "exit"],
          [4, 0, "exit"],
        ]);
      }));

    it("SIGKILL while a task of it holds the heap's lock; as long as it is stopped, the others go on", () =>
      withCrowd({ kernel }, async (crowd) => {
        const { job, context, to, ask, processOf, signal } = crowd;
        const { pid } = await processOf(1);
        await processOf(3);
        const file = memoryFile();
        const { float } = randomFrom(chooseSeed());
        await ask(1, "churn", { size: 3, regions: 1000 });

        async function stopInLock(): Promise<void> {
          for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
            signal(pid, "SIGSTOP");
            await untilState(pid, "T");
            if (holderOfHeap(file) === 1) return;
            signal(pid, "SIGCONT");
            await sleep(float());
          }
          throw new Error("task 1 was never stopped while it held the lock");
        }

        await stopInLock();
        expect(thrownBy(() => job.client.createRegion(1)).code).toBe("PAMIR_BUSY");
        const reply = await context.call(to(3), ECHO, Uint8Array.of(7), { timeout: PATIENCE });
        expect([...reply]).toEqual([7, 3]);
        signal(pid, "SIGCONT");
        createRegion(job).close();
        await stopInLock();
        signal(pid, "SIGKILL");
        await context.whenEnded(to(1), { timeout: PATIENCE });
        job.client.createRegion(1).close();
        await leaveAll(crowd, [3, 4]);
      }));

    it(`SIGKILL at random moments of what takes the heap's lock (PAMIR_SEED=${chooseSeed()})`, () => {
      const rounds = byEffort({ quick: 2, normal: 3, deep: 100 });
      const { below } = randomFrom(chooseSeed());
      const options = { kernel, tasks: 3, processes: 1, maxTasks: 3 + rounds, regions: 256 } as const;
      return withCrowd(options, async (crowd) => {
        const { job, context, to, ask, processOf, signal } = crowd;
        for (const task of [1, 2]) await ask(task, "churn", { size: 3, regions: 20 });
        for (let round = 0; round < rounds; round++) {
          const victim = job.spawn();
          const { pid } = await processOf(victim);
          await ask(victim, "churn", { size: 3, regions: 100 });
          await sleep(below(20));
          signal(pid, "SIGKILL");
          await context.whenEnded(to(victim), { timeout: PATIENCE });
          createRegion(job).close();
        }
        const exits = await leaveAll(crowd, [1, 2]);
        expect(exits.map(({ cause }) => cause)).toEqual(["exit", "exit", ...new Array(rounds).fill("process")]);
      });
    });
  });

  describe("processes that end", () => {
    it.each([
      ["throw", "error", "RangeError: thrown by the task"],
      ["exit", "exit", undefined],
      ["memory", "memory", expect.stringContaining("resourceLimits")],
    ] as const)("a task that ends by %s: the other task of its process goes on", (how, cause, error) =>
      withCrowd({ workerOptions: { resourceLimits: { maxOldGenerationSizeMb: 24 } } }, async (crowd) => {
        const { context, to, ask, processOf } = crowd;
        const { pid } = await processOf(2);
        await ask(1, how).catch((error) => expect(error.code).toBe("PAMIR_SHUTDOWN"));
        await context.whenEnded(to(1), { timeout: PATIENCE });
        expect((await processOf(2)).pid).toBe(pid);
        const exits = await leaveAll(crowd, [2, 3, 4]);
        expect(exits[0]).toMatchObject({ task: 1, cause, error });
        expect(exits.slice(1).map((exit) => exit.cause)).toEqual(["exit", "exit", "exit"]);
      }),
    );

    it.each([
      ["abort", "SIGABRT"],
      ["foreign", "SIGSEGV"],
      ["fatal", "SIG(ABRT|TRAP|ILL)"],
    ])("a process that ends by %s: its tasks end, the others go on, all memory comes back", async (how, signal) => {
      const files = () => readdirSync("/dev/shm").filter((name) => /pamir/.test(name));
      const before = files();
      const { out, code } = await run([], ["ends", how]);
      const error = expect.stringMatching(new RegExp(`^its process \\d+ was killed by ${signal}$`));
      expect(JSON.parse(out)).toEqual({
        reply: [7, 4],
        exits: [
          [1, "process", error],
          [2, "process", error],
          [3, "exit", null],
          [4, "exit", null],
        ],
        freed: true,
        left: 0,
      });
      expect([code, files()]).toEqual([0, before]);
    });

    it.each(["blocking", "progress"])("SIGKILL while its tasks are asleep (%s), and hold reservations", (waits) =>
      withCrowd({ args: { waits } }, async (crowd) => {
        const { job, context, to, ask, processOf, signal } = crowd;
        const { pid } = await processOf(1);
        await ask(1, "reserve", { targets: [to(0), to(3)] });
        const isAsleep = () => [1, 2].every((task) => job.dump().tasks[task]?.parked === true);
        for (const end = performance.now() + PATIENCE; !isAsleep() && performance.now() < end; ) await sleep(1);
        expect(isAsleep()).toBe(true);
        signal(pid, "SIGKILL");
        for (const task of [1, 2]) await context.whenEnded(to(task), { timeout: PATIENCE });
        for (const task of [3, 4]) await processOf(task);
        await leaveAll(crowd, [3, 4]);
      }),
    );

    it("the launcher is killed: no process, descriptor or file is left", async () => {
      const mark = `pamir-test-${process.pid}-${performance.now()}`;
      const folder = mkdtempSync(join(inject("folder"), "processes-"));
      const shared = readdirSync("/dev/shm");
      const child = start([], ["stay"], { PAMIR_TEST_MARK: mark, TMPDIR: folder });
      try {
        const pids = JSON.parse(await firstLine(child)) as number[];
        expect(new Set(pids).size).toBe(6);
        expect(marked(mark)).toEqual([...new Set([child.pid, ...pids])].sort());
        child.kill("SIGKILL");
        for (const end = performance.now() + PATIENCE; marked(mark).length > 0 && performance.now() < end; )
          await sleep(1);
        expect(marked(mark)).toEqual([]);
        expect(readdirSync(folder)).toEqual([]);
        expect(readdirSync("/dev/shm").filter((name) => /pamir/.test(name) && !shared.includes(name))).toEqual([]);
      } finally {
        child.kill("SIGKILL");
        rmSync(folder, { recursive: true, force: true });
      }
    });

    it.each(["blocking", "progress"])("an unreferenced job (%s): the launcher ends, and so do they", async (waits) => {
      const { out, code } = await run([], ["unref", waits]);
      expect(code).toBe(0);
      for (const pid of JSON.parse(out) as number[]) expect(["Z", undefined]).toContain(await endOf(pid));
    });

    it("a worker that launches a job is terminated, or ends: no process and no descriptor is left, nor a warning", async () => {
      const left = "[2,0,0]\n";
      expect(await run([], ["thread"])).toEqual({ out: left + left, err: "", code: 0 });
    });

    it("an interrupt from the terminal ends no task of a program that goes on", async () => {
      const { out, code } = await run([], ["interrupt"], { detached: true });
      expect([JSON.parse(out), code]).toEqual([[7, 1], 0]);
    });

    it("all that tasks print before they end comes out", async () => {
      const { out, code } = await run([], ["print"]);
      const lines = [1, 2].flatMap((task) => Array.from({ length: 1000 }, (_, i) => `line ${i} of task ${task}`));
      expect([out.trim().split("\n").sort(), code]).toEqual([lines.sort(), 0]);
    });

    it("a job may end while its engine thread starts: the program goes on", async () => {
      const rounds = byEffort({ quick: 20, normal: 40, deep: 160 });
      const ended = await run([], [`${rounds}`], {}, "engine-ends.js");
      expect(ended).toEqual({ out: `${rounds} jobs have ended\n`, err: "", code: 0 });
    });
  });

  describe("processes that are stopped", () => {
    it("the others go on; after SIGCONT it goes on too, and nothing is lost", () =>
      withCrowd({}, async (crowd) => {
        const { ask, processOf, countOf, signal } = crowd;
        const { pid } = await processOf(1);
        const tasks = [1, 2, 3, 4];
        for (const task of tasks) await ask(task, "traffic", { size: 5, sizes: SIZES });
        await untilTraffic(crowd, tasks);
        signal(pid, "SIGSTOP");
        await untilState(pid, "T");
        await untilTraffic(crowd, [3, 4]);
        signal(pid, "SIGCONT");
        await untilTraffic(crowd, tasks);
        for (const task of tasks) await ask(task, "rest");
        const lost = async () => {
          const counts = await Promise.all(tasks.map(countOf));
          return counts.flatMap(({ sent }, from) =>
            sent.flatMap(([to, number]) => {
              const come = counts[to - 1]?.received.find(([origin]) => origin === from + 1)?.[1] ?? 0;
              return to === 0 || come === number ? [] : [`${come} of ${number} from ${from + 1} to ${to}`];
            }),
          );
        };
        // As long as some come: a busy machine takes long for what has piled up.
        let missing = "";
        for (let end = performance.now() + PATIENCE; performance.now() < end; await sleep(20)) {
          const now = (await lost()).join();
          if (now === "") break;
          if (now !== missing) end = performance.now() + PATIENCE;
          missing = now;
        }
        expect(await lost()).toEqual([]);
        expect((await Promise.all(tasks.map(countOf))).map(({ wrong }) => wrong)).toEqual([0, 0, 0, 0]);
        await leaveAll(crowd, tasks);
      }));

    it("job.terminate() ends its tasks", () =>
      withCrowd({}, async ({ job, context, to, processOf, signal }) => {
        const { pid } = await processOf(1);
        await processOf(3);
        signal(pid, "SIGSTOP");
        await untilState(pid, "T");
        const ends = [job.terminate(1), job.terminate(2)];
        await context.whenEnded(to(2), { timeout: PATIENCE });
        expect((await Promise.all(ends)).map(({ cause }) => cause)).toEqual(["terminated", "terminated"]);
        await processOf(3);
        await endOf(pid);
      }));
  });

  it.runIf(OTHER_NODE !== undefined)("of two versions of Node share a memory, whichever is killed", () =>
    withCrowd(
      {},
      async (crowd) => {
        const { context, to, processOf, signal } = crowd;
        const others = await Promise.all([1, 3].map(async (task) => (await processOf(task)).pid));
        const programs = [OTHER_NODE as string, process.execPath].map((path) => realpathSync(path));
        expect(others.map((pid) => readlinkSync(`/proc/${pid}/exe`))).toEqual(programs);
        signal(others[0] as number, "SIGKILL");
        for (const task of [1, 2]) await context.whenEnded(to(task), { timeout: PATIENCE });
        await leaveAll(crowd, [3, 4]);
      },
      mixed(launch),
    ),
  );

  describe("the API of a job with processes", () => {
    it("terminate(task) ends that task only; to call terminate() twice takes no longer", async () => {
      /** Milliseconds of so many calls at once. */
      const took = async (calls: number): Promise<number> => {
        let milliseconds = 0;
        await withCrowd({ tasks: 3, processes: 1 }, async ({ job, processOf }) => {
          await processOf(1);
          expect((await job.terminate(1)).cause).toBe("terminated");
          await processOf(2);
          const start = performance.now();
          await Promise.all(Array.from({ length: calls }, () => job.terminate()));
          milliseconds = performance.now() - start;
        });
        return milliseconds;
      };
      let [once, twice] = [await took(1), await took(2)];
      for (let i = 0; i < 2 && twice > 3 * once; i++)
        [once, twice] = [Math.max(once, await took(1)), Math.min(twice, await took(2))];
      expect(twice).toBeLessThan(3 * once);
    });

    it("spawn(), adopt(), maxTasks, interrupt(), trace(), dump(), top", () =>
      withCrowd({ tasks: 3, maxTasks: 5, trace: true, top: true }, async ({ job, context, to, processOf }) => {
        const pids = [process.pid];
        for (const task of [1, 2]) pids.push((await processOf(task)).pid);
        expect(thrownBy(() => job.spawn({ args: { memory: new SharedArrayBuffer(4) } })).code).toBe("PAMIR_INVAL");
        expect(job.spawn()).toBe(3);
        pids.push((await processOf(3)).pid);
        expect(new Set(pids).size).toBe(4);
        expect(pids.map((pid) => stateOf(pid) !== undefined)).toEqual([true, true, true, true]);
        const worker = new Worker(new URL("tasks/joiner.js", import.meta.url), { workerData: { joins: "parentPort" } });
        expect(job.adopt(worker)).toBe(4);
        expect([...(await context.call(to(4), DATA, Uint8Array.of(7), { timeout: PATIENCE }))]).toEqual([7, 4, 5]);
        expect(thrownBy(() => job.spawn()).code).toBe("PAMIR_INVAL");
        expect(job.client.localTasks).toEqual([0, 1, 2, 3, 4]);

        job.interrupt(0);
        expect(context.advanceUntil(() => false, { timeout: PATIENCE })).toBe(INTERRUPTED);
        const dump = job.dump();
        expect(dump.tasks.map(({ state }) => state)).toEqual(["up", "up", "up", "up", "up"]);
        const traced = new Set(job.trace().traceEvents.map(({ tid }) => tid));
        expect([...traced].sort()).toEqual([0, 1, 2, 3, 4]);
        const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
        const shown = spawnSync(process.execPath, [cli, "top", String(process.pid), "--json", "--once"], {
          encoding: "utf8",
        });
        expect(JSON.parse(shown.stdout)).toMatchObject([{ pid: process.pid }]);
        await job.terminate();
      }));

    it("an AbortSignal terminates it, and keeps no listener", async () => {
      const controller = new AbortController();
      const { signal, listeners } = countedSignal(controller);
      await withCrowd({ signal }, async ({ job, processOf }) => {
        await processOf(1);
        controller.abort();
        expect((await job.exited).map(({ cause }) => cause)).toEqual(new Array(4).fill("terminated"));
      });
      expect(listeners()).toBe(0);
    });

    it("jobs that are over hold no descriptor, and no listener", async () => {
      const held = () => [memoryFiles().length, readdirSync("/proc/self/fd").length, process.listenerCount("exit")];
      const before = held();
      for (let i = 0; i < 2; i++) {
        await withCrowd({ tasks: 2, processes: 1 }, async ({ processOf }) => {
          await processOf(1);
          expect(held()[0]).toBe(1);
        });
      }
      // What threads that have ended held is closed by and by.
      const isMore = () => held().map((count, i) => count > (before[i] as number));
      await expect.poll(isMore, { timeout: PATIENCE }).toEqual([false, false, false]);
    });

    it("the memory has no name, and no process can change its size", () =>
      withCrowd({}, async ({ job, ask }) => {
        for (const task of [1, 3]) {
          expect(await ask(task, "maps")).toEqual(["/memfd:pamir (deleted)"]);
          const path = `/proc/${process.pid}/fd/${memoryFile()}`;
          for (const bytes of [0, 4096, 2 ** 30]) expect(await ask(task, "truncate", { path, bytes })).toBe("EPERM");
        }
        const states = () => job.dump().tasks.map(({ state }) => state);
        await expect.poll(states, { timeout: PATIENCE }).toEqual(new Array(5).fill("up"));
      }));

    it.each([
      [
        "throw",
        "launch",
        "report",
        1,
        /^pamir: task 1 failed:\nRangeError: thrown by the task\n {4}at .*failing\.js:\d+/,
      ],
      ["exit", "launch", "report", 3, /^pamir: task 1 exited with code 3\n$/],
      ["exitCode", "launch", "report", 4, /^pamir: task 1 exited with code 4\n$/],
      ["null", "launch", "report", 1, /^pamir: task 1 failed: null\n$/],
      ["code", "launch", "report", 1, /^pamir: task 1 failed:\nError: a long code\n/],
      ["throw", "launch", "ignore", 0, /^$/],
      ["throw", "abort", "abort", 1, /^pamir: task 1 failed, the job ends:\nRangeError/],
      ["sleep", "terminateOne", "report", 0, /^$/],
    ] as const)("a task that fails: %s, %s, onError %s", async (how, does, onError, code, err) => {
      const options = JSON.stringify({ processes: 2, tasks: 3, onError });
      const ended = await run([], [how, does, options], {}, "failing.js");
      expect(ended.code).toBe(code);
      expect(ended.err).toMatch(err);
    });
  });

  describe("a job with processes that can't be launched", () => {
    it.each([
      [["fs-read=*", "worker", "child-process", "addons"], "", ""],
      [
        ["fs-read=*", "worker", "addons"],
        "PAMIR_NO_PROCESSES",
        "node --permission takes --allow-child-process for them",
      ],
      [["fs-read=*", "child-process", "addons"], "PAMIR_NO_WORKERS", "node --permission takes --allow-worker for that"],
    ] as const)("node --permission, allowed: %j %s", async (allowed, code, text) => {
      const { out } = await run(allowing(...allowed), ["call"]);
      if (code === "")
        expect(JSON.parse(out)).toEqual([
          [7, 1],
          [7, 2],
        ]);
      else expect(JSON.parse(out)).toEqual([code, expect.stringContaining(text)]);
    });

    // A file system of 4 MB stands for a machine that has so much memory left.
    it.runIf(mayMount()).each([
      ["pages come by their address", {}],
      ["pages come by a descriptor, as before Linux 5.14", { madvise: "() => -1" }],
    ])(
      "a shortage of memory is an error, for each call that needs more; no process ends by SIGBUS: %s",
      async (_, calls) => {
        const copy = copyOfPackage("shortage-");
        const mount = join(copy.folder, "memory");
        mkdirSync(mount);
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "pamir", mount]);
        try {
          const file = JSON.stringify(join(mount, "memory"));
          // Nobody can seal a file that has a name.
          copy.replaceCalls({
            memfd_create: `() => require("node:fs").openSync(${file}, "w+")`,
            fcntl: FCNTL,
            ...calls,
          });
          const { out, code } = await run([], ["shortage"], { cwd: copy.folder }, copy.program);
          const [error, regions, reply] = JSON.parse(out);
          expect([error, reply, code]).toEqual(["PAMIR_NO_MEMORY", [7, 2], 0]);
          expect(regions).toBeGreaterThan(4);
          expect(regions).toBeLessThan(16);
          execFileSync("umount", [mount]);
          execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "pamir", mount]);
          const small = await run([], ["shortage"], { cwd: copy.folder }, copy.program);
          expect([JSON.parse(small.out)[0], small.code]).toEqual(["PAMIR_MEMORY", 0]);
          expect(JSON.parse(small.out)[1]).toMatch(/ENOMEM/);
        } finally {
          execFileSync("umount", [mount]);
          copy.remove();
        }
      },
    );

    it("a system that provides no pages beforehand: launch() fails with ENOMEM", async () => {
      const copy = copyOfPackage("no-pages-");
      try {
        copy.replaceCalls({ madvise: "() => -1", fallocate: "() => -1" });
        const { out, code } = await run([], ["call"], { cwd: copy.folder }, copy.program);
        expect(JSON.parse(out)).toEqual(["PAMIR_MEMORY", expect.stringMatching(/no memory for the \d+ bytes.*ENOMEM/)]);
        expect(code).toBe(0);
      } finally {
        copy.remove();
      }
    });

    const { port1, port2 } = new MessageChannel();
    afterAll(() => {
      port1.close();
      port2.close();
    });
    it.each<[string, object, RegExp]>([
      ["no process", { processes: 0 }, /^processes is 0, the limits are 1 and 2$|processes is 0/],
      ["half a process", { processes: 1.5 }, /processes is 1\.5/],
      ["more processes than tasks", { processes: 3 }, /processes is 3/],
      ["more than tasks besides the caller", { processes: 2, join: true }, /processes is 2/],
      ["no number", { processes: "2" }, /processes is "2"/],
      ["shared memory", { args: { memory: new SharedArrayBuffer(4) } }, /SharedArrayBuffer.*could not be cloned/],
      ["a function", { args: { call() {} } }, /call.*could not be cloned/s],
      ["a port", { args: port1 }, /args or workerOptions can't be sent to a process/],
      ["a worker's option", { workerOptions: { env: () => {} } }, /args or workerOptions can't be sent to a process/],
    ])("%s", async (_, options, text) => {
      const rejection = await rejectionOf(launch(CROWD, { tasks: 2, processes: 1, ...options }));
      expect(rejection.code).toBe("PAMIR_INVAL");
      expect(rejection.text).toMatch(text);
      expect(memoryFiles()).toEqual([]);
    });
  });

  const SENDER = "for (const sent of [null, 'up', {}]) process.send?.(sent)";
  it.each([
    ["a value behind its option", ["--inspect-port", "0"], {}],
    ["a debugger", ["--inspect=127.0.0.1:0"], {}],
    // As node --watch sets it: Node sends a parent the modules that it loads.
    ["node --watch", [], { WATCH_REPORT_DEPENDENCIES: "1" }],
    ["a module that sends a parent what it likes", ["--import", `data:text/javascript,${encodeURI(SENDER)}`], {}],
  ])("options of Node that are not for every process, or in its way: %s", async (_, options, env) => {
    const { out, code } = await run(options, ["call"], { env: { ...process.env, ...env } });
    expect([out, code]).toEqual(["[[7,1],[7,2]]\n", 0]);
  });

  it.each(["before", "after"])("the current folder goes %s the start of the program: an error with a code", (when) => {
    const folder = mkdtempSync(join(inject("folder"), "gone-"));
    const program = join(inject("folder"), `gone-${when}.mjs`);
    const index = new URL("../../dist/index.js", import.meta.url);
    const remove = when === "after" ? `process.getBuiltinModule("node:fs").rmdirSync(process.cwd());` : "";
    writeFileSync(
      program,
      `import { launch } from "${index}";\n${remove}
      await launch(import.meta.url, { tasks: 2, processes: 2 }).catch(({ code, message }) => console.log(code, message));`,
    );
    const command = `cd "${folder}"; ${when === "before" ? `rmdir "${folder}";` : ""} exec "$0" "${program}"`;
    const { stdout, stderr, status } = spawnSync("sh", ["-c", command, process.execPath], { encoding: "utf8" });
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(stdout).toMatch(/^PAMIR_NO_PROCESSES .* the current folder does not exist any more/);
  });

  it.each(["blocking", "progress"])(
    "eight processes asleep (%s) take less than 20 ms of a core in 10 s, and wake less than once a second each",
    async (waits) => {
      // V8's memory reducer works for some seconds in an idle process, and would be measured too.
      const child = start(["--no-memory-reducer"], ["idle", waits]);
      try {
        const pids = [child.pid as number, ...(JSON.parse(await firstLine(child)) as number[])];
        await expectIdle(pids);
      } finally {
        child.kill("SIGKILL");
      }
    },
  );
}

if (IS_HERE) suite();
else it("processes share a memory on Linux alone", () => expect(process.platform).not.toBe("linux"));

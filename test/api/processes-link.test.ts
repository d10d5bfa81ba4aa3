// Jobs with processes where these share no memory: a link on loopback joins them. The calls are the same, and a process that
// dies takes nobody with it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { INTERRUPTED, info, launch, SHUTDOWN, SUCCESS } from "pamir";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { CROWD, endOf, untilTraffic, withCrowd } from "./crowd.js";
import { allowing, copyOfPackage, run } from "./run-program.js";
import { DATA, ECHO, PATIENCE, QUIT, rejectionOf, thrownBy, until } from "./support.js";

const ELSEWHERE = `this is freebsd on ${process.arch}, and it takes Linux on x64 or arm64`;

describe("processes that share no memory", () => {
  const copy = copyOfPackage("link-");
  const { platform } = process;
  afterAll(copy.remove);

  const loader = fileURLToPath(new URL("../cli/programs/elsewhere.js", import.meta.url));
  const permissions = allowing("fs-read=*", "worker", "child-process", "net").filter(
    (option) => option !== "--allow-net" || process.allowedNodeEnvironmentFlags.has(option),
  );
  const withoutFfi = ["--no-experimental-ffi"].filter((option) => process.allowedNodeEnvironmentFlags.has(option));
  const FORBIDDEN = "node --permission takes --allow-addons for koffi, and no --no-addons";
  it.each([
    [
      "koffi is absent",
      withoutFfi,
      "the package koffi is not installed (npm install koffi), and this Node has no node:ffi",
      "",
    ],
    ["another system", ["--import", loader], ELSEWHERE, "getpid"],
    ["add-ons are turned off", ["--no-addons"], FORBIDDEN, "getpid"],
    ["koffi is forbidden", permissions, FORBIDDEN, "getpid"],
    ["memfd_create() is refused", [], "memfd_create fails with errno 38", "memfd_create"],
    ["mmap() is refused", [], "mmap of 65536 bytes fails with errno 38", "mmap"],
  ])("%s: the tasks talk, a warning says so once, and info() why", async (_, options, why, broken) => {
    if (broken !== "") copy.replaceCalls({ [broken]: "() => -1" }, 38);
    const { out, err } = await run(options, ["linked"], { cwd: copy.folder }, copy.program);
    const text = `processes can't share memory here: ${why}`;
    const pairs = [1, 2].map((task) => [7, task]);
    expect(JSON.parse(out)).toEqual({ found: [...pairs, ...pairs], processes: "link", why: text });
    if (options !== permissions) expect(err.split("[PAMIR_LINK]")).toHaveLength(2);
  });

  it("no process can join its node: launch() rejects, and all processes end", async () => {
    const noThreads = fileURLToPath(new URL("../cli/programs/no-threads.js", import.meta.url));
    copy.replaceCalls({ memfd_create: "() => -1" }, 38);
    const { out, err } = await run(["--import", noThreads], ["call"], { cwd: copy.folder }, copy.program);
    const why = "the processes of the other tasks have ended before their nodes were joined";
    expect(JSON.parse(out)).toEqual(["PAMIR_BOOTSTRAP", expect.stringMatching(`${why}|exited with code 1`)]);
    expect(err).toMatch(/pamir: task [12] is lost: the system starts no thread \(EAGAIN\)/);
  });

  it("no file may be as large as the memory (ulimit -f): the same", async () => {
    const shell = ["-c", 'ulimit -f 400; exec "$0" "$@"', process.execPath];
    const program = fileURLToPath(new URL("programs/processes.js", import.meta.url));
    const { stdout, stderr } = spawnSync("/bin/sh", [...shell, program, "linked"], {
      encoding: "utf8",
      timeout: 100_000,
    });
    expect(JSON.parse(stdout)).toMatchObject({
      processes: "link",
      why: expect.stringMatching(/^processes can't share memory here: ftruncate to \d+ bytes fails with errno 27$/),
    });
    expect(stderr.split("[PAMIR_LINK]")).toHaveLength(2);
  });

  describe("a job", () => {
    beforeAll(() => void Object.defineProperty(process, "platform", { value: "freebsd" }));
    afterAll(() => void Object.defineProperty(process, "platform", { value: platform }));

    it("by a link that launch() names: each process opens its own", async () => {
      const folder = mkdtempSync(join(inject("folder"), "unix-"));
      vi.stubEnv("TMPDIR", folder);
      vi.stubEnv("PAMIR_LINK_MODULE", fileURLToPath(new URL("../support/unix-link.mjs", import.meta.url)));
      try {
        await withCrowd({ link: "unix" }, async ({ ask }) => {
          expect(await ask(3, "process")).toMatchObject({ pid: expect.any(Number) });
          // A socket of each task, also of the launching thread.
          expect(readdirSync(folder).filter((name) => name.startsWith("unix-link-"))).toHaveLength(5);
        });
      } finally {
        vi.unstubAllEnvs();
      }
    });

    it("by WebSockets: the launching thread finds the package for all", () =>
      withCrowd({ link: "websocket" }, async ({ ask }) => {
        for (const task of [1, 4]) expect(await ask(task, "process")).toMatchObject({ pid: expect.any(Number) });
      }));

    it("by no link of an unknown name, also where none is needed", async () => {
      for (const system of ["freebsd", platform]) {
        Object.defineProperty(process, "platform", { value: system });
        const why = /^link of launch\(\) is "tcp", not "udp" or "websocket" or "nats": PAMIR_LINK_MODULE names/;
        const launching = launch(null, { tasks: 1, join: true, processes: 1, heapBytes: 2 ** 21, link: "tcp" });
        await expect(launching).rejects.toThrow(why);
      }
      Object.defineProperty(process, "platform", { value: "freebsd" });
    });

    it("of the caller alone: nothing is to be joined", async () => {
      for (let i = 0; i < 5; i++) {
        const job = await launch(null, { tasks: 1, join: true, processes: 1, heapBytes: 2 ** 21 });
        expect(job.client.size).toBe(1);
        await job.terminate();
      }
    });

    it("SIGKILL in mid-traffic: its two tasks end at once, the others go on", () =>
      withCrowd({}, async (crowd) => {
        const { job, context, to, ask, processOf, signal } = crowd;
        const { pid } = await processOf(1);
        expect((await processOf(2)).pid).toBe(pid);
        expect((await processOf(3)).pid).not.toBe(pid);
        for (let task = 1; task < 5; task++) await ask(task, "traffic", { size: 5, sizes: [8, 700] });
        await untilTraffic(crowd, [1, 2, 3, 4]);
        signal(pid, "SIGKILL");
        for (const task of [1, 2]) await context.whenEnded(to(task), { timeout: PATIENCE });
        expect(context.sendImmediate(to(2), DATA)).toBe(SHUTDOWN);
        await untilTraffic(crowd, [3, 4]);
        for (const task of [3, 4]) until(context, () => context.sendImmediate(to(task), QUIT) === SUCCESS);
        job.client.close();
        expect((await job.exited).map(({ task, cause }) => [task, cause])).toEqual([
          [1, "process"],
          [2, "process"],
          [3, "exit"],
          [4, "exit"],
        ]);
        expect(await endOf(pid)).toBeUndefined();
      }));

    it("terminate(task), interrupt(), an error, dumpAll() and traceAll()", () =>
      withCrowd({ tasks: 4, trace: { events: 1024 } }, async ({ job, context, to, ask }) => {
        for (let task = 1; task < 4; task++) {
          expect([...(await context.call(to(task), ECHO, Uint8Array.of(7)))]).toEqual([7, task]);
        }
        expect((await job.terminate(1)).cause).toBe("terminated");
        await context.whenEnded(to(1), { timeout: PATIENCE });
        await ask(2, "throw");
        await context.whenEnded(to(2), { timeout: PATIENCE });
        // The other tasks may know it earlier than the launching thread.
        expect((await job.terminate(2)).cause).toBe("error");
        job.interrupt(0);
        expect(context.advanceUntil(() => false, { timeout: PATIENCE })).toBe(INTERRUPTED);
        job.interrupt(3);
        const dumps = await job.dumpAll({ timeout: PATIENCE });
        expect(dumps.map(({ tasks, state }) => [tasks, state])).toEqual([
          [[0], "answered"],
          [[1], "ended"],
          [[2], "ended"],
          [[3], "answered"],
        ]);
        const events = (await job.traceAll({ timeout: PATIENCE })).traceEvents;
        for (const task of [0, 3]) expect(events.filter(({ tid }) => tid === task).length).toBeGreaterThan(1);
        const exits = await job.terminate();
        expect(exits.map(({ cause, error }) => [cause, error])).toEqual([
          ["terminated", undefined],
          ["error", "RangeError: thrown by the task"],
          ["terminated", undefined],
        ]);
      }));

    it("without a caller that joins; processes of one task, and of several", async () => {
      const entry = new URL("tasks/ring.js", import.meta.url);
      for (const processes of [1, 2, 3]) {
        const job = await launch(entry, { tasks: 3, processes });
        expect((await job.exited).map(({ code, cause }) => [code, cause])).toEqual(new Array(3).fill([0, "exit"]));
      }
    });

    it("tasks that come later: each in a process of its own, also in the place of one that was killed", () =>
      withCrowd({ tasks: 3, processes: 2, maxTasks: 5 }, async (crowd) => {
        const { job, context, to, processOf, signal } = crowd;
        expect(job.spawn()).toBe(3);
        // This message waits for its task.
        expect([...(await context.call(to(3), ECHO, Uint8Array.of(7), { timeout: PATIENCE }))]).toEqual([7, 3]);
        const { pid } = await processOf(3);
        expect(new Set([pid, (await processOf(1)).pid, (await processOf(2)).pid]).size).toBe(3);
        signal(pid, "SIGKILL");
        await context.whenEnded(to(3), { timeout: PATIENCE });
        expect(context.sendImmediate(to(3), DATA)).toBe(SHUTDOWN);
        expect(job.spawn({ rank: 3 })).toBe(4);
        expect([...(await context.call(to(4), ECHO, Uint8Array.of(8), { timeout: PATIENCE }))]).toEqual([8, 4]);
        expect(thrownBy(() => job.spawn()).code).toBe("PAMIR_INVAL");
        const dumps = await job.dumpAll({ timeout: PATIENCE });
        expect(dumps.map(({ state }) => state)).toEqual(["answered", "answered", "answered", "ended", "answered"]);
        expect((await job.terminate(4)).cause).toBe("terminated");
        expect((await job.terminate()).map(({ task, cause }) => [task, cause])).toEqual([
          [1, "terminated"],
          [2, "terminated"],
          [3, "process"],
          [4, "terminated"],
        ]);
      }));

    it("a job that begins with the caller alone; adopt() is refused", () =>
      withCrowd({ tasks: 1, processes: 1, maxTasks: 3 }, async ({ job, context, to, ask }) => {
        expect([job.spawn(), job.spawn()]).toEqual([1, 2]);
        for (const task of [1, 2]) expect(await ask(task, "process")).toMatchObject({ pid: expect.any(Number) });
        await context.whenStarted(2, { timeout: PATIENCE });
        expect(job.client.size).toBe(3);
        for (const task of [1, 2]) until(context, () => context.sendImmediate(to(task), QUIT) === SUCCESS);
        for (const task of [1, 2]) await context.whenEnded(to(task), { timeout: PATIENCE });
        job.client.close();
        expect((await job.exited).map(({ code, cause }) => [code, cause])).toEqual(new Array(2).fill([0, "exit"]));
        await withCrowd({ tasks: 1, processes: 1, maxTasks: 2 }, async ({ job: other }) => {
          const { port1 } = new MessageChannel();
          expect(thrownBy(() => other.adopt(port1)).code).toBe("PAMIR_NO_PROCESSES");
          port1.close();
        });
      }));

    it("without a caller that joins: a task that comes before the others are up", async () => {
      const job = await launch(new URL("tasks/met.js", import.meta.url), { tasks: 2, processes: 2, maxTasks: 3 });
      expect(job.spawn()).toBe(2);
      expect((await job.exited).map(({ code, cause }) => [code, cause])).toEqual(new Array(3).fill([0, "exit"]));
    });

    it("args that can't be copied", async () => {
      const shared = { tasks: 2, processes: 2, args: new SharedArrayBuffer(4) };
      expect((await rejectionOf(launch(CROWD, shared))).code).toBe("PAMIR_INVAL");
      await withCrowd({ tasks: 2, processes: 1, maxTasks: 3 }, async ({ job }) => {
        expect(thrownBy(() => job.spawn({ args: shared.args })).code).toBe("PAMIR_INVAL");
        expect(info()).toMatchObject({ processes: "link", why: expect.stringContaining(ELSEWHERE) });
      });
    });
  });
});

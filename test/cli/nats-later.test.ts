// Tasks that come later to a job at a NATS server: by `pamir run --later`, by attach(), and in place of those that have failed.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, describe, expect, inject, it } from "vitest";
import { SealedMessages } from "../../src/bootstrap/nats/sealed-messages.js";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import {
  keyFile,
  type Launched,
  linesOf,
  newJob,
  said,
  startLauncher,
  startProgram,
} from "../support/nats-launcher.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { app, cli, processesWith, tasksOf } from "../support/run-command.js";

const programOf = (name: string): string => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
const LATER = programOf("nats-later");
const AGAIN = programOf("again");
/** No silence tells of an end within these tests. */
const SILENT = ["-x", 'PAMIR_OPTIONS={"silence":600000}'];

describe.skipIf(NATS_SERVER === undefined)(
  "tasks that come later",
  { timeout: 120_000, concurrent: true },
  async () => {
    const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
    afterAll(() => server?.close());
    const url = server?.url ?? "";

    /** Starts as many launchers, each with a task. Resolves once their tasks have met. */
    async function begin(job: string, count: number, args: readonly string[]): Promise<Launched[]> {
      const options = ["--nodes", `${count}`, "-n", `${count}`, ...args];
      const nodes = Array.from({ length: count }, () => startLauncher(url, job, options));
      await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      return nodes;
    }

    const endsOf = (nodes: readonly Launched[]) => Promise.all(nodes.map(({ ended }) => ended));
    const good = (nodes: readonly unknown[]) => nodes.map(() => [0, ""]);
    const how = (ends: readonly { status: number | null; err: string }[]) =>
      ends.map(({ status, err }) => [status, err]);

    it("a launcher with two tasks, then a process without one: all add up", async () => {
      const job = newJob();
      const nodes = await begin(job, 2, ["--spare", "3", ...SILENT, LATER, "2", "2,3,4"]);
      const later = startLauncher(url, job, ["--later", "-n", "2", LATER, "2", "2,3,4"]);
      await said(later.child, "2 is there");
      const env = { PAMIR_KEY_FILE: keyFile(), PAMIR_START_TIMEOUT: "60" };
      const last = startProgram([LATER, "2", "2,3,4", "", url, job], env);
      const ends = await endsOf([...nodes, later, last]);
      expect(how(ends)).toEqual(good(ends));
    });

    it("a later task whose number is lower than that of one that is there knows of that one", async () => {
      const job = newJob();
      const folder = mkdtempSync(join(inject("folder"), "nats-later-"));
      const [held, mark] = [join(folder, "held.mjs"), join(folder, "mark")];
      const text = `import { existsSync } from "node:fs";
      console.log("has a number");
      while (!existsSync(${JSON.stringify(mark)})) await new Promise((done) => setTimeout(done, 50));
      await import(${JSON.stringify(pathToFileURL(LATER).href)});`;
      writeFileSync(held, text);
      const nodes = await begin(job, 2, ["--spare", "2", ...SILENT, LATER, "2", "2,3"]);
      const first = startLauncher(url, job, ["--later", held, "2", "2,3"]);
      await said(first.child, "has a number");
      const second = startLauncher(url, job, ["--later", LATER, "2", "2,3"]);
      await said(second.child, "3 is there");
      writeFileSync(mark, "");
      const ends = await endsOf([...nodes, first, second]);
      expect(how(ends)).toEqual(good(ends));
      expect(linesOf(...ends.map(({ out }) => out)).filter((line) => line.includes("4 with 3")).length).toBe(4);
    });

    it("a job that begins with one task grows", async () => {
      const job = newJob();
      const nodes = await begin(job, 1, ["--spare", "1", ...SILENT, LATER, "1", "1"]);
      const later = startLauncher(url, job, ["--later", LATER, "1", "1"]);
      const ends = await endsOf([...nodes, later]);
      expect(how(ends)).toEqual(good(ends));
      expect(linesOf(...ends.map(({ out }) => out))).toContain("[1] 2 with 1");
    });

    it("one of four launchers is killed: the others shrink and go on, and a later one takes part", async () => {
      const job = newJob();
      const options = ["--nodes", "4", "-n", "4", "--spare", "1", ...SILENT, LATER, "4", "4", "3"];
      const nodes = Array.from({ length: 4 }, () => startLauncher(url, job, options));
      const told = await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      const lost = told.findIndex((text) => text.includes("[3]"));
      const others = nodes.filter((_, i) => i !== lost);
      const shrunk = Promise.all(others.map(({ child }) => said(child, "goes on with 3")));
      nodes[lost]?.child.kill("SIGKILL");
      await shrunk;
      const later = startLauncher(url, job, ["--later", LATER, "4", "4", "3"]);
      const ends = await endsOf([...others, later]);
      expect(how(ends)).toEqual(good(ends));
      expect(linesOf(...ends.map(({ out }) => out)).filter((line) => line.includes("4 with 4")).length).toBe(4);
    });

    it("the steward is killed: another launcher gives the next numbers", async () => {
      const job = newJob();
      const options = ["--nodes", "3", "-n", "3", "--spare", "2", ...SILENT, LATER, "3", "3,4", "0"];
      const nodes = Array.from({ length: 3 }, () => startLauncher(url, job, options));
      const told = await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      const steward = told.findIndex((text) => text.includes("[0]"));
      const others = nodes.filter((_, i) => i !== steward);
      nodes[steward]?.child.kill("SIGKILL");
      const one = startLauncher(url, job, ["--later", LATER, "3", "3,4", "0"]);
      await said(one.child, "3 is there");
      const other = startLauncher(url, job, ["--later", LATER, "3", "3,4", "0"]);
      const ends = await endsOf([...others, one, other]);
      expect(how(ends)).toEqual(good(ends));
      expect(linesOf(...ends.map(({ out }) => out)).filter((line) => line.includes("4 with 4")).length).toBe(4);
    });

    it("a launcher that starts again by one command takes part again, though no launcher of the start is left", async () => {
      const job = newJob();
      const command = ["--nodes", "2", "-n", "2", "--spare", "2", "--later", ...SILENT];
      const rest = programOf("rests");
      const nodes = [startLauncher(url, job, [...command, rest]), startLauncher(url, job, [...command, rest])];
      await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      for (const turn of [0, 1]) {
        nodes[turn]?.child.kill("SIGKILL");
        const again = startLauncher(url, job, [...command, rest]);
        nodes.push(again);
        expect(await said(again.child, "begins")).toContain(`[${turn + 2}] begins`);
      }
      for (const { child } of nodes) child.kill("SIGKILL");
      await endsOf(nodes);
    });

    it("a task that fails goes on with a new number and its old rank, at its own launcher", async () => {
      const job = newJob();
      const mark = `${process.pid}-${performance.now()}`;
      const args = ["--nodes", "2", "-n", "2", "--restart", "3", "-x", `PAMIR_MARK=${mark}`, AGAIN, "2", "kill"];
      const ends = await endsOf([startLauncher(url, job, args), startLauncher(url, job, args)]);
      expect(ends.map(({ status }) => status)).toEqual([0, 0]);
      expect(ends.map(({ out }) => out).join("")).toBe('[0] {"told":[2,3],"reply":[3,1],"size":4}\n');
      expect(ends.flatMap(({ err }) => err.match(/^pamir run: .*$/gm) ?? [])).toEqual([
        "pamir run: rank 1 goes on as task 2 (restart 1 of 3)",
        "pamir run: rank 1 goes on as task 3 (restart 2 of 3)",
      ]);
      expect(processesWith("PAMIR_MARK", mark)).toEqual([]);
    });

    it("a node of two tasks whose first process is killed goes on as two nodes", async () => {
      const job = newJob();
      const args = ["--nodes", "2", "-n", "4", "--restart", "1", ...SILENT, programOf("replaced")];
      const ends = await endsOf([startLauncher(url, job, args), startLauncher(url, job, args)]);
      expect(ends.map(({ status }) => status)).toEqual([0, 0]);
      expect(ends.map(({ out }) => out).join("")).toBe('[0] {"ended":"PAMIR_SHUTDOWN","ranks":[2,3],"between":5}\n');
    });

    it("without a number left, or without any, a comer is refused", async () => {
      const [job, none] = [newJob(), newJob()];
      const nodes = await begin(job, 2, ["--spare", "1", programOf("rests")]);
      const fixed = await begin(none, 2, [programOf("rests")]);
      const first = startLauncher(url, job, ["--later", programOf("rests")]);
      await said(first.child, "begins");
      const second = await startLauncher(url, job, ["--later", app]).ended;
      expect(how([second])).toEqual([
        [
          2,
          `pamir: job ${job}: all of its 1 numbers for later tasks are taken (--spare, spare of attach()) (PAMIR_BOOTSTRAP)\n`,
        ],
      ]);
      const twice = await startLauncher(url, job, ["--nodes", "2", "-n", "2", "--spare", "1", app]).ended;
      expect([twice.status, twice.err]).toEqual([2, expect.stringContaining("all of its nodes are there")]);
      const refused = await startLauncher(url, none, ["--later", "--start-timeout", "8", app]).ended;
      expect(refused.status).toBe(2);
      expect(refused.err).toMatch(
        /no task could come within 8 s; awaited was a steward of the job: .* \(PAMIR_TIMEDOUT\)/,
      );
      const key = await startLauncher(url, job, ["--later", "--start-timeout", "20", app], {
        PAMIR_KEY_FILE: keyFile(2),
      }).ended;
      expect(key.err).toContain(`a job named ${job} is there with another key than this task`);
      for (const args of [["--later"], ["--nodes", "1", "--spare", "1"], ["--nodes", "1", "--restart", "1"]]) {
        const command = [cli, "run", "--nats", url, "--job", job, ...args, "-n", "1", app];
        const { status, err } = await startProgram(command, { PAMIR_INSECURE: "1" }).ended;
        expect([status, err]).toEqual([2, expect.stringMatching(/without a key: .* PAMIR_KEY_FILE/)]);
      }
      const all = [...nodes, ...fixed, first];
      for (const { child } of all) child.kill("SIGKILL");
      await endsOf(all);
    });

    it("a launcher with more tasks than numbers are left takes none of them", async () => {
      const job = newJob();
      const nodes = await begin(job, 1, ["--spare", "2", programOf("rests")]);
      const many = await startLauncher(url, job, ["--later", "-n", "3", app]).ended;
      expect(how([many])).toEqual([
        [
          2,
          `pamir: job ${job}: 2 of its 2 numbers for later tasks are left (--spare), and a launcher with 3 tasks needs as many: give it fewer (-n) (PAMIR_BOOTSTRAP)\n`,
        ],
      ]);
      const fitting = startLauncher(url, job, ["--later", "-n", "2", programOf("rests")]);
      expect(await said(fitting.child, "begins")).toMatch(/\[[12]\] begins/);
      for (const { child } of [...nodes, fitting]) child.kill("SIGKILL");
      await endsOf([...nodes, fitting]);
    });

    it("a launcher without its --cwd takes no number", async () => {
      const job = newJob();
      const nodes = await begin(job, 1, ["--spare", "1", programOf("rests")]);
      const wrong = await startLauncher(url, job, ["--later", "--cwd", "/nowhere", app]).ended;
      expect([wrong.status, wrong.err]).toEqual([2, expect.stringContaining("/nowhere")]);
      const right = startLauncher(url, job, ["--later", programOf("rests")]);
      expect(await said(right.child, "begins")).toContain("[1] begins");
      for (const { child } of [...nodes, right]) child.kill("SIGKILL");
      await endsOf([...nodes, right]);
    });

    it("a launcher that is asked to end tells the others of its tasks", async () => {
      const job = newJob();
      const connection = await connectNats(natsPlace({ nats: url, job }), { name: "test" });
      const facts: unknown[] = [];
      connection.subscribe(`pamir.${job}.l.*`, {
        callback: (_, { subject, data }) => {
          const messages = new SealedMessages(readFileSync(keyFile()), `${job} ${subject.split(".").at(-1)}`);
          facts.push(...((messages.open(data) as { add?: unknown[] } | undefined)?.add ?? []));
        },
      });
      const nodes = await begin(job, 2, [...SILENT, programOf("rests")]);
      for (const { child } of nodes) child.kill("SIGTERM");
      await endsOf(nodes);
      await connection.close();
      for (const number of [0, 1])
        for (const kind of ["gone", "ended"]) expect(facts).toContainEqual([kind, number, 1]);
    });

    /** The path of a program whose task of this rank does something instead of its attach(). */
    function attachesBut(name: string, rank: string, code: string): string {
      const path = join(mkdtempSync(join(inject("folder"), "nats-later-")), `${name}.mjs`);
      const text = `console.log("is there");
      if (process.env.PAMIR_RANK === ${JSON.stringify(rank)}) ${code}
      const { attach } = await import(${JSON.stringify(import.meta.resolve("pamir"))});
      await attach();`;
      writeFileSync(path, text);
      return path;
    }
    const TWO = ["--nodes", "2", "-n", "2", "--start-timeout", "60"];

    it.each(["0", "1"])("task %s fails before its attach(): that of the others fails at once", async (rank) => {
      const job = newJob();
      const args = [...TWO, attachesBut("fails", rank, "process.exit(7)")];
      const ends = await endsOf([startLauncher(url, job, args), startLauncher(url, job, args)]);
      const err = ends.map((one) => one.err).join("");
      expect(err).toContain(`rank ${rank} `);
      expect(err).toContain("its process exited with code 7");
      expect(ends.map(({ status }) => status).sort()).toEqual([1, 7]);
    });

    it.each(["0", "1"])("so it does where the launcher of task %s is asked to end before", async (rank) => {
      const job = newJob();
      const args = [...TWO, attachesBut("waits", rank, "await new Promise((done) => setTimeout(done, 100_000));")];
      const nodes = [startLauncher(url, job, args), startLauncher(url, job, args)];
      const told = await Promise.all(nodes.map(({ child }) => said(child, "is there")));
      const last = told.findIndex((text) => text.includes(`[${rank}]`));
      nodes[last]?.child.kill("SIGTERM");
      const ends = await endsOf([nodes[last] as Launched, nodes[1 - last] as Launched]);
      expect(ends.map(({ status }) => status)).toEqual([143, 1]);
      expect(ends[1]?.err).toMatch(new RegExp(`PamiError: .*rank ${rank}\\b.*: its process was ended by SIGTERM`));
    });

    it("a launcher with a wrong --cwd ends before it meets the others, which go on with another one", async () => {
      const job = newJob();
      const first = startLauncher(url, job, [...TWO, app]);
      const [wrong] = await endsOf([startLauncher(url, job, [...TWO, "--cwd", "/of/no/machine", app])]);
      expect(wrong?.status).toBe(2);
      expect(wrong?.err).toContain("/of/no/machine");
      const ends = await endsOf([first, startLauncher(url, job, [...TWO, app])]);
      expect(ends.map(({ status }) => status)).toEqual([0, 0]);
    });

    it("a task that fails in mid-job: its launcher waits for nothing where the tasks have met", async () => {
      const job = newJob();
      const nodes = await begin(job, 2, [...SILENT, programOf("awaits-end")]);
      const connection = await connectNats(natsPlace({ nats: url, job }), { name: "test" });
      const met: string[] = [];
      connection.subscribe(`pamir.${job}.b.>`, { callback: (_, { subject }) => void met.push(subject) });
      await connection.flush();
      const tasks = nodes.flatMap(({ child }) => tasksOf(child.pid as number));
      // Stopped first: neither may hear of the other's end.
      for (const signal of ["SIGSTOP", "SIGKILL"]) for (const task of tasks) process.kill(task, signal);
      const ends = await endsOf(nodes);
      await connection.close();
      expect([ends.map(({ status }) => status), met]).toEqual([[137, 137], []]);
    });
  },
);

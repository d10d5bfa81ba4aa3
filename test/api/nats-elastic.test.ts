// Jobs without launchers which tasks join later: attach({ nats, job, nodes, spare }), and attach({ nats, job, later: true }).
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, inject, it } from "vitest";
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

const program = fileURLToPath(new URL("programs/nats-elastic.js", import.meta.url));
const SEALED = { PAMIR_KEY_FILE: keyFile(), PAMIR_START_TIMEOUT: "60" };
/** No silence tells of an end within these tests. */
const OPTIONS = { silence: 600_000 };

const HOW = [
  ["the processes of a machine are one node", {}, {}],
  ["each process is a node", {}, { own: true }],
  ["agents work on the tasks' threads", { agent: "inline" }, {}],
  ["packets go through the server", {}, { own: true, PAMIR_NATS_DIRECT: "0" }],
  ["UDP is the link", { link: "udp" }, { own: true }],
] as const;

describe.skipIf(NATS_SERVER === undefined)(
  "a job that names itself, and takes later tasks",
  { timeout: 120_000, concurrent: true },
  async () => {
    const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
    afterAll(() => server?.close());

    /** Starts processes, each with steps. */
    const starts =
      (job: string, options: object = {}, env: { own?: boolean } & Record<string, unknown> = {}) =>
      (given: object, ...steps: string[]): Launched => {
        const { own, ...variables } = env;
        const place = { nats: server?.url, job, ...given };
        return startProgram([program, JSON.stringify(place), ...steps], {
          ...SEALED,
          PAMIR_OPTIONS: JSON.stringify({ ...OPTIONS, ...options }),
          ...(own ? { PAMIR_NODE: `${++nodes}` } : {}),
          ...variables,
        });
      };
    let nodes = 0;

    const ends = async (...all: readonly Launched[]): Promise<string[]> => {
      const ended = await Promise.all(all.map((one) => one.ended));
      const said = ended.map(({ status, err }) => [
        status,
        err.replace(/^pamir: for .* attach\(\) waits for .*\n/gm, ""),
      ]);
      expect(said).toEqual(all.map(() => [0, ""]));
      return linesOf(...ended.map(({ out }) => out)).filter((line) => !line.endsWith("is there"));
    };

    it.each(HOW)("tasks come one after the other: all add up; %s", async (_, options, env) => {
      const start = starts(newJob(), options, env);
      const steps = ["add 0,1,2", "add 0,1,2,3"];
      const first = [0, 1].map(() => start({ nodes: 2, spare: 2 }, ...steps));
      const two = start({ later: true }, ...steps);
      await said(two.child, "task 2 is there");
      const three = start({ later: true }, "add 0,1,2,3");
      const lines = await ends(...first, two, three);
      expect(lines).toEqual([...Array(4).fill("sum of 0,1,2,3: 6"), ...Array(3).fill("sum of 0,1,2: 3")]);
    });

    it("a launcher comes later, too", async () => {
      const job = newJob();
      const start = starts(job);
      const steps = ["add 0,1,2,3"];
      const first = [0, 1].map(() => start({ nodes: 2, spare: 2 }, ...steps));
      const later = startLauncher(server?.url ?? "", job, [
        "--later",
        "-n",
        "2",
        "--no-labels",
        program,
        "null",
        ...steps,
      ]);
      expect(await ends(...first, later)).toEqual(Array(4).fill("sum of 0,1,2,3: 6"));
    });

    it("a task comes while the threads of all others are blocked", async () => {
      const start = starts(newJob(), {}, { own: true });
      const mark = join(mkdtempSync(join(inject("folder"), "nats-elastic-")), "mark");
      const first = [0, 1].map(() => start({ nodes: 2, spare: 1 }, "say blocks", `block ${mark}`, "add 0,1,2"));
      await Promise.all(first.map(({ child }) => said(child, "blocks")));
      const later = start({ later: true }, "add 0,1,2");
      await said(later.child, "task 2 is there");
      writeFileSync(mark, "");
      const lines = await ends(...first, later);
      expect(lines).toEqual(["blocks", "blocks", ...Array(3).fill("sum of 0,1,2: 3")]);
    });

    it("the steward is killed: another process gives the next number", async () => {
      const start = starts(newJob(), {}, { own: true });
      const first = [0, 1, 2].map(() => start({ nodes: 3, spare: 2 }, "add 0,1,2", "ended 0", "add 1,2,3"));
      const told = await Promise.all(first.map(({ child }) => said(child, "is there")));
      const lost = told.findIndex((text) => text.includes("task 0"));
      const summed = Promise.all(first.map(({ child }) => said(child, "sum of")));
      await summed;
      first[lost]?.child.kill("SIGKILL");
      const others = first.filter((_, i) => i !== lost);
      const later = start({ later: true }, "add 1,2,3");
      const lines = await ends(...others, later);
      expect(lines).toEqual([...Array(2).fill("sum of 0,1,2: 3"), ...Array(3).fill("sum of 1,2,3: 6")]);
    });

    it("all that have begun it leave: those that came later give the next number", async () => {
      const start = starts(newJob());
      const first = start({ nodes: 1, spare: 2 }, "add 0,1");
      const one = start({ later: true }, "add 0,1", "ended 0", "add 1,2");
      expect(await ends(first)).toEqual(["sum of 0,1: 1"]);
      const two = start({ later: true }, "add 1,2");
      expect(await ends(one, two)).toEqual(["sum of 0,1: 1", "sum of 1,2: 3", "sum of 1,2: 3"]);
    });

    it("a process that starts again by the same call comes later", async () => {
      const start = starts(newJob(), {}, { own: true });
      const given = { nodes: 2, spare: 1, later: true };
      const first = [0, 1].map(() => start(given, "add 0,1", "ended 0", "add 1,2"));
      const summed = await Promise.all(first.map(({ child }) => said(child, "sum of")));
      const lost = summed.findIndex((text) => text.includes("task 0"));
      first[lost]?.child.kill("SIGKILL");
      const again = start(given, "add 1,2");
      expect(await ends(first[1 - lost] as Launched, again)).toEqual([
        "sum of 0,1: 1",
        "sum of 1,2: 3",
        "sum of 1,2: 3",
      ]);
    });

    it("says what is wrong: too many, another number of later tasks, no key", async () => {
      const job = newJob();
      const start = starts(job);
      const mark = join(mkdtempSync(join(inject("folder"), "nats-elastic-")), "mark");
      const first = start({ nodes: 1, spare: 1 }, "say runs", "add 0,1", `block ${mark}`);
      await said(first.child, "runs");
      const one = start({ later: true }, "add 0,1");
      await ends(one);
      expect(await ends(start({ later: true }))).toEqual([
        `PAMIR_BOOTSTRAP: job ${job}: all of its 1 numbers for later tasks are taken (--spare, spare of attach())`,
      ]);
      writeFileSync(mark, "");
      await ends(first);
      const open = starts(job, {}, { PAMIR_KEY_FILE: undefined, PAMIR_INSECURE: "1" });
      for (const given of [{ nodes: 2, spare: 1 }, { later: true }, { nodes: 2, later: true }])
        expect(await ends(open(given))).toEqual([
          expect.stringMatching(
            /^PAMIR_KEY: job .* without a key: tasks that come later take a job key, .*PAMIR_KEY_FILE$/,
          ),
        ]);
      const other = starts(newJob());
      const differing = [1, 2].map((spare) => other({ nodes: 2, spare }));
      // The other one waits on.
      const { out } = await Promise.race(differing.map(({ ended }) => ended));
      expect(out).toMatch(/^PAMIR_BOOTSTRAP: .*the number of later tasks \(.*spare of attach\(\)\).*\n$/);
      for (const { child } of differing) child.kill();
    });
  },
);

// Vitest's runner with a choice of the tests before they run. What is left out does not count as skipped: the tests that
// are skipped say so themselves. How many were left out is told by reporter.ts.
import { type RunnerTask, type RunnerTestFile, TestRunner, type TestRunnerConfig } from "vitest";
import { type Effort, sample } from "./effort.js";
import { hasTest } from "./shard.js";

declare module "vitest" {
  interface TaskMeta {
    /** Of a file: tests that this run leaves out. */
    leftOut?: number;
  }
}

const ALL = Number.POSITIVE_INFINITY;

/**
 * Files whose tests start processes, compilers or many threads, or go on for seconds: of these, a run takes so many. The first
 * row that fits holds. All suites together take two cores about eight minutes.
 */
const DEAR: readonly { readonly file: RegExp; readonly quick: number; readonly normal: number }[] = [
  { file: /^test\/interleaving\/interleaving/, quick: ALL, normal: 44 },
  {
    file: /^test\/(api\/(namespaces|nats-namespaces)|cli\/(nats|nats-later|cut-off)\.test|simulation\/scale|cjs-bundles)/,
    quick: 1,
    normal: 1,
  },
  {
    file: /^test\/(api\/(links|joined|restart|processes-link|agent-thread|close)|docs\/machines)/,
    quick: 2,
    normal: 2,
  },
  { file: /^test\/hosts/, quick: 1, normal: ALL },
  { file: /^test\/(interleaving|property)\/.*mutants/, quick: 1, normal: 1 },
  { file: /^test\/soak\//, quick: 1, normal: 1 },
  { file: /^test\/cli\//, quick: 2, normal: 2 },
  { file: /^test\/property\/(agent|packets)/, quick: 1, normal: 1 },
  { file: /^test\/types/, quick: 1, normal: 1 },
  { file: /^test\/examples/, quick: 2, normal: 2 },
  { file: /^test\/(api|simulation\/geometries)/, quick: 2, normal: 2 },
  { file: /^test\/conformance\/(api|network)/, quick: 3, normal: 3 },
  { file: /^test\/conformance\/(processes|collectives)/, quick: 3, normal: 4 },
  { file: /^test\/conformance\/chains/, quick: 15, normal: 15 },
  { file: /^test\/c\/(mpi-failures|examples|builds|cc|pami)\.test/, quick: 1, normal: 1 },
  { file: /^test\/c\/mpi\.test/, quick: 2, normal: 4 },
  { file: /^test\/docs\/(cluster|collectives|tutorial)/, quick: 2, normal: 2 },
  { file: /^test\/simulation\/(moves|schedules|refusals|authentication|inputs|sim)\.test/, quick: 3, normal: 5 },
  { file: /^test\/(differential\/chain|property\/parts)\.test/, quick: 1, normal: 2 },
  { file: /^test\/property\/(hostile|liars)|^test\/differential\/(sealing|pack)\.test/, quick: 5, normal: 5 },
  {
    file: /^test\/boundary\/(nats-|shared-wakes|broken-off|udp-link|websocket-link|far-lanes|ahead|recycle|packages)/,
    quick: 2,
    normal: 4,
  },
  { file: /^test\/docs\/blocks/, quick: 3, normal: 6 },
  {
    file: /^test\/pages\/(demo|bundles|lifecycle|frames|.*firefox|nats|more|clumsy|c-faults|tank-hidden|strip|c-page|node)\./,
    quick: 1,
    normal: 1,
  },
  { file: /^test\/pages\/api\.test/, quick: 1, normal: 3 },
  { file: /^test\/pages\//, quick: 1, normal: 2 },
];

/** Variants are tests of one title in several suites of a file. Of each test, a run takes so many; of a file, so many tests. */
const LIMITS = {
  quick: { variants: 1, tests: (file: string) => DEAR.find((one) => one.file.test(file))?.quick ?? 20 },
  normal: { variants: 1, tests: (file: string) => DEAR.find((one) => one.file.test(file))?.normal ?? ALL },
  deep: { variants: ALL, tests: () => ALL },
};
/** A person who runs some files by Vitest's own command wants all of them. */
const limits = LIMITS[(process.env.PAMIR_EFFORT ?? "deep") as Effort];

/** One suite for the same tests: of each of them, a run takes one file. */
const KERNELS = ["wasm", "debug", "twin", "mixed", "straddle"].map((name) => `test/conformance/kernel.${name}.test.ts`);

/** Suites that Chromium runs, too, each of which starts a Firefox: a run takes three of them. */
const FIREFOX = ["api-firefox", "c-firefox", "c-page-firefox", "firefox", "nats-firefox", "strip-firefox"].map(
  (name) => `test/pages/${name}.test.ts`,
);

/** Whether a test is this file's to run, where others have the same. */
function isTurnOf(file: string, name: string): boolean {
  if (limits.variants === ALL) return true;
  if (FIREFOX.includes(file)) return sample(FIREFOX, 3, "Firefox").includes(file);
  return !KERNELS.includes(file) || sample(KERNELS, 1, name).includes(file);
}

type Collected = (files: RunnerTestFile[]) => unknown;

interface Found {
  readonly task: RunnerTask;
  /** The titles that lead to it, and its own. */
  readonly path: string;
  /** Its title, and which of that title it is in its suite: it has this in common with its variants, in other suites. */
  readonly name: string;
}

/** The tests below a suite. */
function testsIn(tasks: readonly RunnerTask[], above = ""): Found[] {
  const times = new Map<string, number>();
  return tasks.flatMap((task) => {
    const title = task.name.replace(/PAMIR_SEED=-?\d+/, "");
    const path = `${above} > ${title}`;
    if (task.type === "suite") return testsIn(task.tasks, path);
    const time = times.get(title) ?? 0;
    times.set(title, time + 1);
    return [{ task, path: `${path} ${time}`, name: `${title} ${time}` }];
  });
}

/** The tests of a file that this run takes. */
function chosen(file: RunnerTestFile): Set<RunnerTask> {
  const variants = new Map<string, Found[]>();
  for (const one of testsIn(file.tasks)) variants.set(one.name, [...(variants.get(one.name) ?? []), one]);
  const drawn = [...variants].flatMap(([name, all]) =>
    isTurnOf(file.name, name) ? sample(all, limits.variants, `${file.name} ${name}`) : [],
  );
  return new Set(
    sample(drawn, limits.tests(file.name), file.name).flatMap(({ task, path }) =>
      hasTest(file.name, path) ? [task] : [],
    ),
  );
}

/** Takes out what is not chosen, and suites that have nothing left. */
function keep(tasks: RunnerTask[], wanted: ReadonlySet<RunnerTask>): RunnerTask[] {
  return tasks.filter((task) => {
    if (task.type !== "suite") return wanted.has(task);
    task.tasks = keep(task.tasks, wanted);
    return task.tasks.length > 0;
  });
}

export default class ChoosingRunner extends TestRunner {
  constructor(config: TestRunnerConfig) {
    super(config as ConstructorParameters<typeof TestRunner>[0]);
    // Vitest puts a function of its own here, which tells the reporters what a file has: the choice has to come before it.
    let next: Collected | undefined;
    Object.defineProperty(this, "onCollected", {
      configurable: true,
      get: (): Collected | undefined => next,
      set(told: Collected) {
        next = (files) => {
          for (const file of files) {
            const count = testsIn(file.tasks).length;
            const wanted = chosen(file);
            file.tasks = keep(file.tasks, wanted);
            file.meta.leftOut = count - wanted.size;
          }
          return told(files);
        };
      },
    });
  }
}

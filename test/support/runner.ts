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

/**
 * Variants are tests of one title in several suites of a file. Of each test, a run takes so many; of a file, so many tests.
 * The tests of the API start threads: each of them takes as long as dozens of others.
 */
const LIMITS = {
  quick: {
    variants: () => 1,
    tests: (file: string) => (isDear(file) ? 5 : isExplored(file) ? Number.POSITIVE_INFINITY : 20),
  },
  normal: { variants: (file: string) => (isCheap(file) ? 2 : 1), tests: () => Number.POSITIVE_INFINITY },
  deep: { variants: () => Number.POSITIVE_INFINITY, tests: () => Number.POSITIVE_INFINITY },
};
/** A person who runs some files by Vitest's own command wants all of them. */
const limits = LIMITS[(process.env.PAMIR_EFFORT ?? "deep") as Effort];
const isExplored = (file: string): boolean => file.startsWith("test/interleaving/");
const isCheap = (file: string): boolean => /^test\/(boundary|conformance|differential)\//.test(file);
const isDear = (file: string): boolean => /^test\/(api|cli|soak)\//.test(file);

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
  const each = limits.variants(file.name);
  const drawn = [...variants].flatMap(([name, all]) => sample(all, each, `${file.name} ${name}`));
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

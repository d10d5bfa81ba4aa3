// What a run of the tests says besides Vitest's own reporter: the seed at the start, a line every ten seconds that says
// what runs, and in the end how many variants of tests this run has left out.
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** Vitest prints a file when it is through, and some take longer than a minute. */
const EVERY_MS = 9000;

export class ProgressReporter implements Reporter {
  readonly #seed: string;
  readonly #running = new Map<TestCase, number>();
  #files = 0;
  #filesDone = 0;
  #testsDone = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(seed: string) {
    this.#seed = seed;
  }

  onTestRunStart(files: readonly unknown[]): void {
    this.#files = files.length;
    console.log(`Seed ${this.#seed}: the same tests again by PAMIR_SEED=${this.#seed}`);
    this.#timer = setInterval(() => this.#tell(), EVERY_MS);
  }

  onTestCaseReady(test: TestCase): void {
    this.#running.set(test, performance.now());
  }

  onTestCaseResult(test: TestCase): void {
    this.#running.delete(test);
    this.#testsDone++;
  }

  onTestModuleEnd(module: TestModule): void {
    this.#filesDone++;
    for (const test of this.#running.keys()) if (test.module === module) this.#running.delete(test);
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    clearInterval(this.#timer);
    const leftOut = modules.reduce((sum, module) => sum + (module.meta().leftOut ?? 0), 0);
    if (leftOut > 0) console.log(`Not part of this run: ${leftOut} variants of its tests, see test/README.md`);
  }

  #tell(): void {
    const now = performance.now();
    // Vitest sends what happened in bundles: a short test's end may come before its start, or without it.
    for (const test of this.#running.keys()) if (test.result().state !== "pending") this.#running.delete(test);
    const running = [...this.#running].map(
      ([{ module, name }, since]) => `${module.relativeModuleId}: ${name} (${Math.round((now - since) / 1000)} s)`,
    );
    const what = running.length > 0 ? `; running: ${running.join(", ")}` : "";
    console.log(`${this.#filesDone} of ${this.#files} files, ${this.#testsDone} tests${what}`);
  }
}

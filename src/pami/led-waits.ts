// The waits of one context for its geometries. One of them advances, and the others sleep until they are woken: so an event costs
// the same, however many promises wait.
import { nameOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import { hearAbort } from "../support/abort.js";
import { after } from "../support/timers.js";
import type { GeometryContext } from "./context.js";
import type { ProgressOptions } from "./waits.js";

/** What is waited for. */
export interface LedOperation {
  readonly isOver: boolean;
  /** Called once it is over. */
  wake(): void;
}

type Host = Pick<GeometryContext, "task" | "core" | "until">;

export class LedWaits {
  readonly #host: Host;
  /** In the order of the waits. */
  readonly #all = new Set<LedOperation>();
  /** Whether one of the waits advances. */
  #isLed = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Resolves once it is over. Advances meanwhile, if no other wait does.
   * @param keepsErrors as that of GeometryContext.until
   * @throws as `progress()`
   */
  async until(awaited: LedOperation, options: ProgressOptions, keepsErrors = false): Promise<void> {
    const { task, core, until } = this.#host;
    const { timeout = Number.POSITIVE_INFINITY, signal } = options;
    const { clock, interruptsTaken, observers, parker } = task;
    const end = clock.now() + timeout;
    const what = `collective() of ${nameOf(core.endpoint)}`;
    let isLate = false;
    let hasSlept = false;
    const isOver = (): boolean => awaited.isOver;
    // Another wait takes the interrupt that ends this one, too.
    const isInterrupted = (): boolean =>
      task.interrupts !== interruptsTaken || task.interruptsTaken !== interruptsTaken;
    const isStopped = (): boolean => isLate || core.isClosed || signal?.aborted === true || isInterrupted();
    const wake = (): void => awaited.wake();
    const timeUp = (): void => {
      isLate = true;
      awaited.wake();
    };
    const forget = after(timeout, timeUp);
    const unheard = hearAbort(signal, wake);
    this.#all.add(awaited);
    let leads = false;
    try {
      // In debug mode, each wait that lasts is reported.
      while (this.#isLed && !observers.isStrict && !awaited.isOver && !isStopped()) {
        // The wait that advances may sleep already, and does not know what this one's operation has found or sent.
        if (!hasSlept && (core.isRestless() || core.hasWork())) parker.ring();
        hasSlept = true;
        await new Promise<void>((resolve) => {
          awaited.wake = resolve;
        });
      }
      if (!awaited.isOver && task.interruptsTaken !== interruptsTaken) {
        throw new PamiError("PAMIR_INTERRUPTED", `${what} was interrupted`);
      }
      leads = !this.#isLed;
      this.#isLed = true;
      // If it is over, this ends at once, and a progress() of this context, too.
      const left = hasSlept ? { signal, timeout: Math.max(0, end - clock.now()) } : options;
      await until(isOver, left, keepsErrors);
    } catch (error) {
      if (!hasSlept || !(error instanceof PamiError) || error.code !== "PAMIR_TIMEDOUT") throw error;
      throw new PamiError("PAMIR_TIMEDOUT", `${what}: not over after ${timeout} ms`);
    } finally {
      forget();
      unheard();
      this.#all.delete(awaited);
      if (leads) this.#isLed = false;
      // The oldest of the others goes on.
      if (!this.#isLed) this.#all.values().next().value?.wake();
    }
  }
}

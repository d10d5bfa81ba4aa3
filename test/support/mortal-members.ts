// Members of geometries, each a task of its own, all on this thread and advanced in turn. A task can end at any call of its
// kernel: what it has not done by then, it never does. So a test ends one at each step of what it tests.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Endpoint } from "../../src/core/endpoint.js";
import { PamiError } from "../../src/core/error.js";
import type { Geometry } from "../../src/index.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import type { Limits } from "../../src/memory/map.js";
import { dumpJob } from "../../src/observe/dump.js";
import { Context } from "../../src/pami/context.js";
import { makeGeometry } from "../../src/pami/make-geometry.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import type { Task } from "../../src/protocol/task.js";
import { systemClock } from "../../src/support/clock.js";
import { CoresJob } from "./cores.js";
import { portsJob } from "./ports-job.js";

/** Rounds within which all is to be over. Nothing takes a tenth of it. */
const ROUNDS_MAX = 3000;
/** Rounds after which the event loop has a turn. */
const TURN_ROUNDS = 50;
/** Rounds after which nothing is left to do. */
const ROUNDS_QUIET = 30;

export type Carrier = "one memory" | "ports";

/** Resolves once what members load has been loaded: the imports that began before this one, too. */
async function loaded(): Promise<void> {
  await import("../../src/types/type.js");
  await import("../../src/pami/extensions/extensions.js");
  await nextTurn();
}

/** A wait that the rig ends. */
interface Waiting {
  readonly condition: () => boolean;
  readonly resolve: () => void;
  readonly isLate: () => boolean;
  readonly reject: (error: Error) => void;
}

/** One task, and its context. */
export class Mortal {
  readonly number: number;
  /** Calls of the kernel so far, and the call instead of which it ends. */
  calls = 0;
  end = Number.POSITIVE_INFINITY;
  isDead = false;
  /** Whether its kernel is in use to announce an end. */
  isUndertaker = false;
  task!: Task;
  core!: ContextCore;
  context!: Context;
  readonly #waiting: Waiting[] = [];

  constructor(number: number) {
    this.number = number;
  }

  get endpoint(): Endpoint {
    return this.core.endpoint;
  }

  /** The kernel as this task has it. */
  around(kernel: Kernel): Kernel {
    const calls = new Map<string | symbol, unknown>();
    const get = (target: Kernel, name: string | symbol): unknown => {
      const value = target[name as keyof Kernel] as unknown;
      if (typeof value !== "function") return value;
      let call = calls.get(name);
      if (call === undefined) {
        call = (...given: unknown[]): unknown => {
          if (this.isUndertaker) return (value as (...all: unknown[]) => unknown).apply(target, given);
          this.isDead ||= this.calls++ >= this.end;
          // The agent may ring before it has seen the end.
          if (this.isDead && name !== "ring") throw new Error(`${String(name)}() of a task that has ended`);
          return (value as (...all: unknown[]) => unknown).apply(target, given);
        };
        calls.set(name, call);
      }
      return call;
    };
    return new Proxy(kernel, { get });
  }

  /** Makes a geometry, as client.createGeometry() does. @param rounds after which it gives up */
  geometry(endpoints: readonly Endpoint[], id = 0, rounds = Number.POSITIVE_INFINITY): Promise<Geometry> {
    const { task, core } = this;
    const host = {
      task,
      core,
      spin: () => false,
      advanceUntil: () => {
        throw new Error("a member of these tests does not block");
      },
      until: (condition: () => boolean) => {
        let left = rounds;
        rounds = Number.POSITIVE_INFINITY;
        return new Promise<void>((resolve, reject) => {
          this.#waiting.push({ condition, resolve, isLate: () => left-- <= 0, reject });
        });
      },
    };
    // Its own waits, and all else that its context does.
    const get = (context: Context, name: keyof Context): unknown => {
      if (name === "host") return host;
      const value = context[name] as unknown;
      return typeof value === "function" ? value.bind(context) : value;
    };
    const context = new Proxy(this.context, { get } as ProxyHandler<Context>);
    return makeGeometry("createGeometry", task, [context], endpoints, { id });
  }

  /** Waits until it has advanced so many times. */
  pause(looks: number): Promise<void> {
    let left = looks;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ condition: () => left-- <= 0, resolve, isLate: () => false, reject });
    });
  }

  step(): void {
    if (this.isDead || this.core.isClosed) return;
    try {
      this.core.advance(1);
    } catch (error) {
      if (!this.isDead) throw error;
    }
    this.look();
  }

  /** Ends the waits whose conditions hold. */
  look(): void {
    for (const waiting of this.#waiting.splice(0)) {
      try {
        if (waiting.condition()) waiting.resolve();
        else if (waiting.isLate()) waiting.reject(new PamiError("PAMIR_TIMEDOUT", "the wait took too many rounds"));
        else this.#waiting.push(waiting);
      } catch (error) {
        waiting.reject(error as Error);
      }
    }
  }
}

export class MortalJob {
  readonly members: readonly Mortal[];
  readonly #job: CoresJob;
  readonly #carrier: Carrier;
  readonly #buried = new Set<Mortal>();

  /** @param isStrict whether the tasks are in debug mode, without its warnings */
  constructor(size: number, carrier: Carrier, limits: Partial<Limits> = {}, isStrict = false) {
    const members = Array.from({ length: size }, (_, number) => new Mortal(number));
    const around = (kernel: Kernel, number: number): Kernel => (members[number] as Mortal).around(kernel);
    const all: Limits = {
      tasks: size,
      contexts: 2,
      laneBytes: 4096,
      heapBytes: 2 ** 24,
      regions: 64,
      fifos: 2,
      slots: 8,
      ...limits,
    };
    this.#carrier = carrier;
    const debug = isStrict ? { slow: Number.POSITIVE_INFINITY, wait: Number.POSITIVE_INFINITY } : undefined;
    this.#job =
      carrier === "one memory"
        ? CoresJob.shared(["wasm", "ts"], all, around, isStrict)
        : CoresJob.apart(portsJob(all, ["wasm", "ts"], around, debug));
    this.members = members;
    for (const member of members) {
      member.task = this.#job.task(member.number);
      member.core = this.#job.open(member.number, {}, (task, index, { pendingBytes, unexpectedBytes }, closed) => {
        member.context = new Context(task, index, { pendingBytes, unexpectedBytes }, closed);
        return member.context.host.core;
      });
      // A member goes on in rounds alone: a turn of the event loop would let one go on that has ended, and write.
      member.task.parker.turn = () => undefined;
    }
  }

  get living(): Mortal[] {
    return this.members.filter(({ isDead }) => !isDead);
  }

  /** A task ends now. */
  kill(member: Mortal): void {
    member.isDead = true;
    this.#bury();
  }

  /** Which members advance in a round, in which order. */
  order: () => readonly Mortal[] = () => this.members;

  /** Each member that lives advances once, or as `order` says. */
  async round(): Promise<void> {
    for (const member of this.order()) {
      member.step();
      // What waits have ended goes on, and may come to its end at a call of the kernel.
      for (let count = 0; count < 20; count++) await undefined;
      member.look();
      this.#bury();
    }
    if (this.#carrier === "one memory") return;
    for (const { task } of this.living) task.remote?.turn();
    await nextTurn();
  }

  /** What the members that live come to. Throws if it takes too long. */
  async outcomes<T>(run: (member: Mortal) => Promise<T>, members = this.living): Promise<Map<Mortal, T | Error>> {
    const found = new Map<Mortal, T | Error>();
    for (const member of members) {
      const failed = (error: unknown): void => void found.set(member, error as Error);
      try {
        run(member).then((value) => found.set(member, value), failed);
      } catch (error) {
        failed(error);
      }
    }
    this.#bury();
    for (let round = 0; members.some((member) => !member.isDead && !found.has(member)); round++) {
      if (round === ROUNDS_MAX) {
        const late = members.filter((member) => !member.isDead && !found.has(member));
        throw new Error(`members ${late.map(({ number }) => number)} wait for ever`);
      }
      // A member may load code, which Node's loader has in a thread of its own: it answers one import behind the other.
      if (round % TURN_ROUNDS === TURN_ROUNDS - 1) await loaded();
      await this.round();
    }
    for (const member of members) if (member.isDead) found.delete(member);
    return found;
  }

  async quiet(): Promise<void> {
    for (let round = 0; round < ROUNDS_QUIET; round++) await this.round();
  }

  /** Bytes of regions, those of idle buffers apart, by the task that made them. */
  regionBytes(): number[][] {
    const found: number[][] = [];
    for (const { task, number } of this.#carrier === "one memory" ? this.living.slice(0, 1) : this.living) {
      const { map, memory, kernel } = task;
      for (const { task: owner, regions } of dumpJob(map, memory, kernel, systemClock).heap.owners) {
        if (regions > 0) found.push([number, owner, regions]);
      }
    }
    return found;
  }

  async close(): Promise<void> {
    this.#bury();
    for (const member of this.members) member.end = Number.POSITIVE_INFINITY;
    await this.#job.close();
  }

  #bury(): void {
    for (const member of this.members) {
      if (!member.isDead || this.#buried.has(member)) continue;
      this.#buried.add(member);
      for (const other of this.members) other.isUndertaker = true;
      this.#job.die(member.number);
      for (const other of this.members) other.isUndertaker = false;
    }
  }
}

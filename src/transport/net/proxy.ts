// Between tasks that share no memory: each has one of its own, laid out for all tasks, and in it a relay that stands for
// all the others. Contexts, lanes and the engine are those of shared memory.
//
//   memory of task 0                                          memory of task 1
//   context 0.0 ─► lane ─► block of 1.0 ─► relay ══ courier: records ══► relay ─► lane ─► block of 1.0 ─► context 1.0
//   injection FIFO of 0.0 ──────────────► relay ══ courier: descriptor ► relay ─► performs it on a region of task 1
//
// Records go as they are: those that were committed since, in one letter for each pair of contexts (egress.ts, ingress.ts).
// A pair that is held back holds up no other. What goes by injection FIFOs is in remote-rma.ts, and by windows in remote-rendezvous.ts.
//
// What comes may be wrong (a network is not trusted): a letter that is, is dropped and told of to the courier.

import {
  INJECTION_STAGED_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  TRANSFER_DONE,
  TRANSFER_LATER,
} from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, type MemoryMap, ordinalOf } from "../../memory/map.js";
import { endpointCount, taskAt } from "../../node/address.js";
import type { Remote, Workspace } from "../transport.js";
import { DESK_BYTES } from "./bounce.js";
import { Departures } from "./egress.js";
import type { Courier, Letter } from "./frames.js";
import { Arrivals } from "./ingress.js";
import { Chains } from "./remote-rendezvous.js";
import { Errands } from "./remote-rma.js";

/** What a relay needs of whoever starts tasks. */
export interface RelayHost {
  /** Marks a task as ended in this memory, and tells its contexts. */
  markDead(task: number): void;
  /** Marks a context of another task as closed in this memory, and tells this task's contexts. */
  retire(ordinal: number): void;
  /** Ends this task's waits. */
  interrupt(): void;
}

export class Relay implements Remote {
  /** The kernels for this task's client: what goes to another task goes through the relay. */
  readonly kernel: Kernel;
  readonly rendezvous: Chains;
  readonly workspaceBytes = DESK_BYTES;
  readonly #inner: Kernel;
  readonly #map: MemoryMap;
  /** The task in whose memory it is. */
  readonly task: number;
  readonly #endpoints: number;
  readonly #host: RelayHost;
  readonly #courier: Courier;
  readonly #errands: Errands;
  readonly #departures: Departures;
  readonly #arrivals: Arrivals;
  readonly #ended = new Set<number>();
  #wake = (): void => {};
  #closed = false;

  constructor(inner: Kernel, memory: Memory, map: MemoryMap, task: number, courier: Courier, host: RelayHost) {
    this.#inner = inner;
    this.#map = map;
    this.task = task;
    this.#endpoints = endpointCount(map);
    this.#host = host;
    this.#courier = courier;
    courier.hear = (from, to, letter) => this.#hear(from, to, letter);
    const hasEnded = (task: number) => this.#ended.has(task);
    const post = (from: number, to: number, letter: Letter): void => {
      if (!hasEnded(this.#taskOf(to))) courier.post(from, to, letter);
    };
    const errands = new Errands(inner, memory, map, task, hasEnded, post);
    this.#errands = errands;
    const chains = new Chains(inner, memory, map, task, post, () => courier.flush());
    this.rendezvous = chains;
    const departures = new Departures(inner, memory, map, task, courier, hasEnded, () => this.#wake());
    this.#departures = departures;
    const arrivals = new Arrivals(inner, memory, map, courier, {
      end: (ended) => this.#end(ended),
      retire: (ordinal) => host.retire(ordinal),
    });
    this.#arrivals = arrivals;
    const turn = (): void => {
      departures.turn();
      if (!this.#closed) arrivals.deliver();
    };
    const isHere = (ordinal: number): boolean => this.#taskOf(ordinal) === task;
    const ordinalIn = (context: number): number => (context - map.contextsBase) / map.contextSize;
    this.kernel = {
      ...callable(inner),
      laneSendWords: (lane, bytes, meta, a, b) => {
        const result = inner.laneSendWords(lane, bytes, meta, a, b);
        departures.sent(lane);
        return result;
      },
      laneCommit: (lane, kind, bytes, meta) => {
        inner.laneCommit(lane, kind, bytes, meta);
        departures.sent(lane);
      },
      laneReplace: (job, lane, capacity, recordMax) => {
        const fresh = inner.laneReplace(job, lane, capacity, recordMax);
        if (fresh !== OPEN_NO_MEMORY && fresh !== OPEN_BUSY) departures.sent(lane);
        return fresh;
      },
      // While this thread looks, nothing comes: one round is as good as many.
      advance: (context) => {
        turn();
        return inner.advance(context, 1);
      },
      release: (context) => {
        inner.release(context);
        if (!this.#closed) arrivals.deliver();
      },
      peek: (context) => {
        inner.peek(context); // frees what was handled
        turn();
        return inner.peek(context);
      },
      perform: (job, descriptor, most) =>
        most === 0 && errands.isAway(descriptor) ? errands.check(descriptor) : inner.perform(job, descriptor, most),
      submit: (job, fifo, hasCallback) => {
        const staged = fifo + INJECTION_STAGED_OFFSET;
        if (!errands.isAway(staged)) return inner.submit(job, fifo, hasCallback);
        const result = errands.check(staged);
        return result === TRANSFER_DONE ? TRANSFER_LATER : result;
      },
      engineRun: (job, fifo, most) => {
        const left = errands.engineRun(job, fifo, most);
        courier.flush();
        return left;
      },
      chainWrite: (job, window) => (chains.isAway(window) ? chains.write(window) : inner.chainWrite(job, window)),
      windowClear: (window) => (chains.isAway(window) ? chains.clear(window) : inner.windowClear(window)),
      chainNotice: (job, index, generation, offset, own, origin, result) => {
        if (isHere(origin)) return inner.chainNotice(job, index, generation, offset, own, origin, result);
        return chains.notice([index, generation, offset, own], origin, result);
      },
      chainRun: (job, context, most) => inner.chainRun(job, context, most) + chains.run(ordinalIn(context), most),
      chainLeft: (context) => inner.chainLeft(context) || Number(chains.hasWork(ordinalIn(context))),
      engineCall: (job, ordinal) => {
        if (isHere(ordinal)) inner.engineCall(job, ordinal);
        else chains.stop(ordinal);
        this.#wake();
      },
    };
  }

  /**
   * This task's client is there.
   * @param workspace region of it, of `workspaceBytes`, that nothing else uses
   * @param wake wakes what waits on this thread
   */
  serve(workspace: Workspace, wake: () => void): void {
    this.#errands.desk = workspace;
    this.rendezvous.desk = workspace;
    this.#wake = wake;
  }

  /** A letter has come. */
  #hear(from: number, to: number, letter: Letter): boolean {
    const task = this.#taskOf(from);
    if (this.#closed || this.#ended.has(task)) return true;
    const isRight = this.#file(task, from, to, letter);
    this.#arrivals.deliver();
    this.#courier.flush();
    this.#wake();
    return isRight;
  }

  #file(task: number, from: number, to: number, letter: Letter): boolean {
    if ("records" in letter) return this.#arrivals.file(task, from, to, letter.records);
    if ("ask" in letter) return this.#errands.answer(from, to, letter);
    if ("answer" in letter) return this.#errands.answered(task, letter.answer, letter.result, letter.data);
    if ("chain" in letter) return this.rendezvous.hear(from, to, letter);
    if ("credit" in letter) return this.#departures.credited(to, from, letter.credit);
    this.#arrivals.ends(task, from, letter.end === "task");
    return true;
  }

  /**
   * Another task has ended.
   * @param hasLeft whether it closed its client: then what it sent before is still delivered
   */
  ended(task: number, hasLeft: boolean): void {
    if (this.#ended.has(task)) return;
    if (this.#closed) {
      this.#courier.drop(task);
      return;
    }
    // What it says last comes by its own port.
    if (hasLeft && this.#courier.hears(task)) return;
    this.#end(task);
  }

  #end(task: number): void {
    this.#ended.add(task);
    this.#courier.drop(task);
    this.#arrivals.forget(task);
    this.#errands.ended(task);
    this.#host.markDead(task);
    this.#wake();
  }

  /** As of the courier. */
  get failureDetection(): boolean {
    return this.#courier.failureDetection;
  }

  /** Ends the wait in which this task is. */
  interrupt(): void {
    this.#host.interrupt();
    this.#wake();
  }

  /** A context of this task has closed: all others are told, behind what it has sent. */
  closeContext(ordinal: number): void {
    this.#departures.flushAll();
    // What came for it goes nowhere, and where it had no room to say that it ends, nobody else frees its lane.
    this.#arrivals.reclaim(ordinal);
    for (let other = 0; other < this.#endpoints; other++) {
      const block = contextBlock(this.#map, other);
      const isAway = this.#taskOf(other) !== this.task;
      if (isAway && this.#inner.laneOf(block, ordinal) !== 0) this.#inner.laneSwitch(this.#map.job, block, ordinal, 0);
    }
    for (let other = 0; other < this.#endpoints; other++) {
      const task = this.#taskOf(other);
      if (task !== this.task && !this.#ended.has(task)) this.#courier.post(ordinal, other, { end: "context" });
    }
    this.#courier.flush();
  }

  /** This task leaves the job: what it has sent goes out, and nothing is taken in any more. */
  close(): void {
    const { contexts } = this.#map;
    this.#departures.flushAll();
    this.#closed = true;
    this.#departures.close();
    // To each context that may wait for it, from each that may have spoken to it: behind all that was said.
    for (const task of this.#courier.posted) {
      for (let from = 0; from < contexts; from++) {
        for (let to = 0; to < contexts; to++) {
          const [origin, target] = [ordinalOf(this.#map, this.task, from), ordinalOf(this.#map, task, to)];
          this.#courier.post(origin, target, { end: "task" });
        }
      }
    }
    this.#courier.leave();
    this.#courier.flush();
  }

  #taskOf(ordinal: number): number {
    return taskAt(this.#map, ordinal);
  }
}

/** A kernel's functions as properties, whatever they are methods of. */
function callable(kernel: Kernel): Kernel {
  const all: Record<string, unknown> = {};
  for (let holder: object = kernel; holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    const isClass = Object.hasOwn(holder, "constructor");
    for (const name of Object.getOwnPropertyNames(holder)) {
      const value = (kernel as unknown as Record<string, unknown>)[name];
      if (name !== "constructor") all[name] = isClass ? (value as () => void).bind(kernel) : value;
    }
  }
  return all as unknown as Kernel;
}

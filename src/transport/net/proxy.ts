// Between tasks that share no memory: each has one of its own, laid out for all tasks, and in it a proxy that stands for
// all the others. Contexts, lanes and the engine are those of shared memory.
//
//   memory of task 0                                          memory of task 1
//   context 0.0 ─► lane ─► block of 1.0 ─► proxy ══ pipe: records ══► proxy ─► lane ─► block of 1.0 ─► context 1.0
//   injection FIFO of 0.0 ──────────────► proxy ══ pipe: descriptor ► proxy ─► performs it on a region of task 1
//
// Records that were committed since go in one frame for each pair of contexts (egress.ts, ingress.ts).
// A pair that is held back holds up no other. What goes by injection FIFOs is in remote-rma.ts, and by windows in
// remote-rendezvous.ts.
//
// What comes may be wrong (a network is not trusted): a wrong frame is dropped, and the pipe is told.

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
import { Egress } from "./egress.js";
import type { Frame, Pipe } from "./frames.js";
import { Ingress } from "./ingress.js";
import { RemoteRendezvous } from "./remote-rendezvous.js";
import { RemoteRma } from "./remote-rma.js";
import { WORKSPACE_BYTES } from "./workspace.js";

/** What a proxy needs of its node. */
export interface ProxyHost {
  /** Marks a task as ended in this memory, and tells its contexts. */
  markDead(task: number): void;
  /** Marks a context of another task as closed in this memory, and tells this task's contexts. */
  retire(ordinal: number): void;
  /** Ends this task's waits. */
  interrupt(): void;
}

export class NetProxy implements Remote {
  /** The kernels for this task's client: what goes to another task goes through the proxy. */
  readonly kernel: Kernel;
  readonly rendezvous: RemoteRendezvous;
  readonly workspaceBytes = WORKSPACE_BYTES;
  readonly #inner: Kernel;
  readonly #map: MemoryMap;
  /** The task in whose memory it is. */
  readonly task: number;
  readonly #endpoints: number;
  readonly #host: ProxyHost;
  readonly #pipe: Pipe;
  readonly #remoteRma: RemoteRma;
  readonly #egress: Egress;
  readonly #ingress: Ingress;
  readonly #ended = new Set<number>();
  /** By task: the streams, from a context to a context, in which something was said to it. */
  readonly #streams = new Map<number, Set<number>>();
  #wake = (): void => {};
  #closed = false;

  constructor(inner: Kernel, memory: Memory, map: MemoryMap, task: number, pipe: Pipe, host: ProxyHost) {
    this.#inner = inner;
    this.#map = map;
    this.task = task;
    this.#endpoints = endpointCount(map);
    this.#host = host;
    this.#pipe = pipe;
    pipe.onFrame = (from, to, frame) => this.#onFrame(from, to, frame);
    const hasEnded = (task: number) => this.#ended.has(task);
    const send = (from: number, to: number, frame: Frame): void => {
      if (!hasEnded(this.#taskOf(to))) this.#send(from, to, frame);
    };
    const tracked = {
      send: (from: number, to: number, frame: Frame) => this.#send(from, to, frame),
      flush: () => pipe.flush(),
    };
    const remoteRma = new RemoteRma(inner, memory, map, task, hasEnded, send);
    this.#remoteRma = remoteRma;
    const rendezvous = new RemoteRendezvous(inner, memory, map, task, send, () => pipe.flush());
    this.rendezvous = rendezvous;
    const egress = new Egress(inner, memory, map, task, tracked, hasEnded, () => this.#wake());
    this.#egress = egress;
    const ingress = new Ingress(inner, memory, map, tracked, {
      end: (ended) => this.#end(ended),
      retire: (ordinal) => host.retire(ordinal),
    });
    this.#ingress = ingress;
    const turn = (): void => {
      egress.turn();
      if (!this.#closed) ingress.deliver();
    };
    const isHere = (ordinal: number): boolean => this.#taskOf(ordinal) === task;
    const ordinalIn = (context: number): number => (context - map.contextsBase) / map.contextSize;
    this.kernel = {
      ...callable(inner),
      laneSendWords: (lane, bytes, meta, a, b) => {
        const result = inner.laneSendWords(lane, bytes, meta, a, b);
        egress.sent(lane);
        return result;
      },
      laneCommit: (lane, kind, bytes, meta) => {
        inner.laneCommit(lane, kind, bytes, meta);
        egress.sent(lane);
      },
      laneReplace: (job, lane, capacity, recordMax) => {
        const fresh = inner.laneReplace(job, lane, capacity, recordMax);
        if (fresh !== OPEN_NO_MEMORY && fresh !== OPEN_BUSY) egress.sent(lane);
        return fresh;
      },
      // While this thread looks, nothing comes: one round is as good as many.
      advance: (context) => {
        turn();
        return inner.advance(context, 1);
      },
      release: (context) => {
        inner.release(context);
        if (!this.#closed) ingress.deliver();
      },
      peek: (context) => {
        inner.peek(context); // frees what was handled
        turn();
        return inner.peek(context);
      },
      perform: (job, descriptor, most) =>
        most === 0 && remoteRma.isAway(descriptor) ? remoteRma.check(descriptor) : inner.perform(job, descriptor, most),
      submit: (job, fifo, hasCallback) => {
        const staged = fifo + INJECTION_STAGED_OFFSET;
        if (!remoteRma.isAway(staged)) return inner.submit(job, fifo, hasCallback);
        const result = remoteRma.check(staged);
        return result === TRANSFER_DONE ? TRANSFER_LATER : result;
      },
      engineRun: (job, fifo, most) => {
        const left = remoteRma.engineRun(job, fifo, most);
        pipe.flush();
        return left;
      },
      chainWrite: (job, window) =>
        rendezvous.isAway(window) ? rendezvous.write(window) : inner.chainWrite(job, window),
      windowClear: (window) => (rendezvous.isAway(window) ? rendezvous.clear(window) : inner.windowClear(window)),
      chainNotice: (job, index, generation, offset, own, origin, result) => {
        if (isHere(origin)) return inner.chainNotice(job, index, generation, offset, own, origin, result);
        return rendezvous.notice([index, generation, offset, own], origin, result);
      },
      chainRun: (job, context, most) => inner.chainRun(job, context, most) + rendezvous.run(ordinalIn(context), most),
      chainLeft: (context) => inner.chainLeft(context) || Number(rendezvous.hasWork(ordinalIn(context))),
      engineCall: (job, ordinal) => {
        if (isHere(ordinal)) inner.engineCall(job, ordinal);
        else rendezvous.stop(ordinal);
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
    this.#remoteRma.workspace = workspace;
    this.rendezvous.workspace = workspace;
    this.#wake = wake;
  }

  /** A frame has come. */
  #onFrame(from: number, to: number, frame: Frame): boolean {
    const task = this.#taskOf(from);
    if (this.#closed || this.#ended.has(task)) return true;
    const isRight = this.#file(task, from, to, frame);
    this.#ingress.deliver();
    this.#pipe.flush();
    this.#wake();
    return isRight;
  }

  #file(task: number, from: number, to: number, frame: Frame): boolean {
    if ("records" in frame) return this.#ingress.file(task, from, to, frame.records);
    if ("ask" in frame) return this.#remoteRma.answer(from, to, frame);
    if ("answer" in frame) return this.#remoteRma.answered(task, frame.answer, frame.result, frame.data);
    if ("chain" in frame) return this.rendezvous.onFrame(from, to, frame);
    if ("credit" in frame) return this.#egress.credited(to, from, frame.credit);
    return this.#ingress.ends(task, from, frame.end === "task", frame.streams);
  }

  /**
   * Another task has ended.
   * @param hasLeft whether it closed its client: then what it sent before is still delivered
   */
  ended(task: number, hasLeft: boolean): void {
    if (this.#ended.has(task)) return;
    if (this.#closed) {
      this.#pipe.drop(task);
      return;
    }
    // What it says last comes by its own port.
    if (hasLeft && this.#pipe.receivesFrom(task)) return;
    this.#end(task);
  }

  #end(task: number): void {
    this.#ended.add(task);
    this.#streams.delete(task);
    this.#pipe.drop(task);
    this.#ingress.forget(task);
    this.#remoteRma.ended(task);
    this.#host.markDead(task);
    this.#wake();
  }

  /** As of the pipe. */
  get failureDetection(): boolean {
    return this.#pipe.failureDetection;
  }

  /** Ends the wait in which this task is. */
  interrupt(): void {
    this.#host.interrupt();
    this.#wake();
  }

  /** A context of this task has closed: all others are told, behind what it has sent. */
  closeContext(ordinal: number): void {
    this.#egress.flushAll();
    // What came for it goes nowhere, and where it had no room to say that it ends, nobody else frees its lane.
    this.#ingress.reclaim(ordinal);
    for (let other = 0; other < this.#endpoints; other++) {
      const block = contextBlock(this.#map, other);
      const isAway = this.#taskOf(other) !== this.task;
      if (isAway && this.#inner.laneOf(block, ordinal) !== 0) this.#inner.laneSwitch(this.#map.job, block, ordinal, 0);
    }
    for (let task = 0; task < this.#map.tasks; task++) {
      if (task !== this.task && !this.#ended.has(task)) this.#tellOfEnd("context", ordinal, task);
    }
    this.#pipe.flush();
  }

  /** This task leaves the job: what it has sent goes out, and nothing is taken in any more. */
  close(): void {
    this.#egress.flushAll();
    this.#closed = true;
    this.#egress.close();
    // To each task that may wait for it.
    const first = ordinalOf(this.#map, this.task, 0);
    for (const task of this.#pipe.talkedTo) this.#tellOfEnd("task", first, task);
    this.#pipe.leave();
    this.#pipe.flush();
  }

  /** Sends a frame, and notes the stream in which it goes. */
  #send(from: number, to: number, frame: Frame): void {
    const task = this.#taskOf(to);
    const streams = this.#streams.get(task) ?? new Set();
    this.#streams.set(task, streams.add(from * this.#endpoints + to));
    this.#pipe.send(from, to, frame);
  }

  /** Tells a task of an end, behind all that was said to it: in each stream of the context, or of any context. */
  #tellOfEnd(end: "context" | "task", origin: number, task: number): void {
    const isOf = (stream: number) => end === "task" || Math.floor(stream / this.#endpoints) === origin;
    const used = [...(this.#streams.get(task) ?? [])].filter(isOf);
    const said = used.length > 0 ? used : [origin * this.#endpoints + ordinalOf(this.#map, task, 0)];
    for (const stream of said) {
      this.#send(Math.floor(stream / this.#endpoints), stream % this.#endpoints, { end, streams: said.length });
    }
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

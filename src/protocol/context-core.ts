// The core of a context, below its API: the progress engine, and the protocols that it advances.
//
// A round looks, in this order, at progress sources, due callbacks, unexpected messages that have a handler now, lanes, sends
// that waited for room, and posted work. All but the lanes share one busy counter: at 0 a round is one call of the kernel. A
// new protocol is a ProgressSource that add() registers.
import {
  ADVANCE_EVENTS_MASK,
  ADVANCE_NOTICE,
  CONTEXT_CALLS_OFFSET,
  CONTEXT_CLOSED,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  DISPATCH_ID_COLLECTIVE,
  TRACE_DEATH,
} from "../../assembly/layout.js";
import type { CompletionQueue } from "../core/completion.js";
import { type Endpoint, endpointOf, nameOf, taskOf } from "../core/endpoint.js";
import { PamiError, textOf } from "../core/error.js";
import { HandlerTable } from "../core/message/dispatch.js";
import type { Pacing } from "../core/message/pacing.js";
import { Activity, type ProgressSource } from "../core/progress.js";
import { type Callback, SHUTDOWN } from "../core/result.js";
import type { WorkQueue } from "../core/work.js";
import type { Kernel } from "../kernel/kernel.js";
import { contextBlock, isClosed, ordinalOf } from "../memory/map.js";
import { endpointCount, taskAt } from "../node/address.js";
import { ContextEngine } from "../node/engine.js";
import type { Lanes, RemoteAgent } from "../transport/transport.js";
import type { Tell } from "./base.js";
import { type CallHost, Calls } from "./call.js";
import type { EndedOrigins } from "./eager/ended-origins.js";
import type { Receiver } from "./eager/receiver.js";
import type { Sender } from "./eager/sender.js";
import type { UnexpectedQueue } from "./eager/unexpected.js";
import { LateHandler } from "./late-handler.js";
import type { ObservedParts } from "./observers.js";
import { Rendezvous } from "./rendezvous/rendezvous.js";
import type { Rma } from "./rma/rma.js";
import type { Task } from "./task.js";

/** Limits and pace of a context. */
export interface CoreOptions extends Pacing {
  /** Bytes that the pending queue may copy. */
  readonly pendingBytes: number;
  /** Bytes of messages without a handler that are kept. */
  readonly unexpectedBytes: number;
}

/** The callbacks of a context to its owner. */
export interface CoreOwner {
  /** Calls are pending, so the owner has to advance. `isSooner`: a call has an earlier deadline than all others. */
  advanceSoon(isSooner: boolean): void;
  /** A task has ended. */
  taskEnded(task: number): void;
  /** The context has closed, and reads and writes nothing any more. */
  closed(): void;
}

/** What callbacks have thrown, as one error. Of a task that has ended, others see the text alone. */
export function asOne(errors: readonly unknown[]): unknown {
  const [first] = errors;
  return errors.length > 1 ? new AggregateError(errors, `${errors.length} errors, the first: ${textOf(first)}`) : first;
}

/** The node's agent, if it has no thread of its own: each round gives the agent one turn. */
class InlineAgent implements ProgressSource {
  readonly busy = 1;
  readonly #remote: RemoteAgent;

  constructor(remote: RemoteAgent, activity: Activity) {
    this.#remote = remote;
    activity.add(1);
  }

  get hasWork(): boolean {
    return this.#remote.hasWork;
  }

  advance(): number {
    this.#remote.turn();
    return 0;
  }
}

export class ContextCore {
  readonly endpoint: Endpoint;
  readonly ordinal: number;
  /** Pointer to the context's block. */
  readonly block: number;
  readonly completions: CompletionQueue;
  /** Where a protocol registers the handlers of its dispatch ids. */
  readonly handlers: HandlerTable;
  readonly work: WorkQueue;
  readonly sender: Sender;
  readonly receiver: Receiver;
  readonly rma: Rma;
  readonly rendezvous: Rendezvous;
  readonly calls: Calls;
  /** Messages of collective operations: see collective/. */
  readonly collective: LateHandler;
  readonly parts: ObservedParts;
  /** Whether a round is under way: handlers and callbacks may be running. */
  isAdvancing = false;
  isClosed = false;
  /** Events processed so far, modulo 2^32. */
  events = 0;
  /** The work of the context's sources. */
  readonly activity: Activity;
  readonly #sources: ProgressSource[] = [];
  readonly #task: Task;
  readonly #owner: CoreOwner;
  readonly #engine: ContextEngine;
  /** Parts of the receiver. Fields, which each round reads. */
  readonly #unexpected: UnexpectedQueue;
  readonly #endedOrigins: EndedOrigins;
  readonly #kernel: Kernel;
  /** The node's agent, if it runs on this thread. */
  readonly #remote: RemoteAgent | undefined;
  readonly #lanes: Lanes;
  /** Callbacks for the ends of endpoints. */
  #watchers: { readonly to: Endpoint; readonly callback: Callback; readonly cookie: unknown }[] = [];
  /** Tasks whose end was reported. */
  readonly #endedSeen: Uint8Array;
  /** Errors that handlers and callbacks threw in the current round; empty between rounds. */
  readonly #errors: unknown[] = [];
  /** Whether rounds keep errors of handlers for throwKept(), instead of throwing them. */
  keepsErrors = false;
  readonly #kept: unknown[] = [];

  /** @throws PAMIR_INVAL for a wrong pace */
  constructor(task: Task, index: number, options: CoreOptions, owner: CoreOwner) {
    const { kernel, memory, map, addresses, clock, regions, transport } = task;
    const { pendingBytes } = options;
    const ordinal = ordinalOf(map, task.slot, index);
    const block = contextBlock(map, ordinal);
    const engine = new ContextEngine(kernel, map, ordinal);
    const lanes = transport.lanes(ordinal);
    const activity = new Activity(task.parker);
    this.activity = activity;
    this.endpoint = endpointOf(task.number, index);
    const parts = task.observers.parts(this.endpoint);
    const completions = parts.completions(activity);
    const { buffers, remote } = transport;
    const posted = remote && (() => remote.posted());
    const tell: Tell = (to, id, header, payload) => {
      this.sender.sendOwn(to, id, header, payload, undefined);
    };
    const handlers = new HandlerTable(parts.ownHandler);
    const base = {
      kernel,
      memory,
      map,
      addresses,
      clock,
      ordinal,
      block,
      engine,
      lanes,
      buffers,
      completions,
      handlers,
      posted,
      tell,
      activity,
    };
    this.ordinal = ordinal;
    this.block = block;
    this.parts = parts;
    this.#task = task;
    this.#owner = owner;
    this.#engine = engine;
    this.#kernel = kernel;
    this.#remote = remote;
    this.#lanes = lanes;
    this.#endedSeen = new Uint8Array(map.tasks);
    this.completions = completions;
    this.handlers = handlers;
    this.work = parts.work(activity);
    if (remote !== undefined) this.add((counter) => new InlineAgent(remote, counter));
    this.rma = parts.rma(base, pendingBytes);
    this.add(() => this.rma.fifos);
    this.rendezvous = this.add(() => new Rendezvous(base, regions, options));
    this.sender = parts.sender(base, this.rendezvous.sender, regions, pendingBytes);
    const callHost: CallHost = {
      checkJson: task.observers.checkJson,
      sender: this.sender,
      memory,
      countWord: (block + CONTEXT_CALLS_OFFSET) >>> 2,
      owner,
      keepsCall: (origin, number) => this.receiver.unexpected.hasCall(origin, number),
      isGone: (to) => this.receiver.ended.isGone(to),
      rejectEnded: (call, text) => {
        const reject = (): void => call.reject(task.shutdownError(text, call.to));
        // No event tells the program of the end while its thread is blocked.
        if (call.blocks) reject();
        else task.onceTold(call.to, reject);
      },
    };
    this.calls = new Calls(callHost, handlers);
    this.collective = new LateHandler(handlers, DISPATCH_ID_COLLECTIVE);
    this.receiver = parts.receiver({
      ...base,
      ...options,
      rendezvous: this.rendezvous.receiver,
      regions,
      endpointGone: (to) => this.#endpointGone(to),
      isAdvancing: () => this.isAdvancing,
    });
    this.#unexpected = this.receiver.unexpected;
    this.#endedOrigins = this.receiver.ended;
    // SYNC context-state (open): stored before the context looks at any region; pairs with the look of a task that frees a
    // region.
    kernel.storeWord(block + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
    task.refresh();
    for (let other = 0; other < map.tasks; other++) if (task.hasEnded(other)) this.#taskEnded(other);
  }

  /**
   * Adds a protocol that each round advances from now on.
   * @param make gets the counter in which the protocol counts each change of its `busy`
   */
  add<Source extends ProgressSource>(make: (activity: Activity) => Source): Source {
    const source = make(this.activity);
    this.#sources.push(source);
    return source;
  }

  /**
   * One round, which looks for messages up to `max` times, or once if other work is due. Must not be called within a round, nor
   * on a closed context.
   * @returns events
   * @throws what handlers and callbacks have thrown
   */
  advance(max: number): number {
    this.isAdvancing = true;
    if (this.activity.busy !== 0) return this.#advanceBusily();
    const errors = this.#errors;
    const found = this.receiver.advance(max, errors);
    // A batch may have emptied the lane of a task that has ended. A handler may have closed this context.
    const unusual =
      found > ADVANCE_EVENTS_MASK ||
      errors.length > 0 ||
      (found !== 0 && (this.#endedOrigins.hasOrphans || this.isClosed));
    if (unusual) return this.#afterRound(found, 0, errors);
    this.isAdvancing = false;
    if (found !== 0) this.events = (this.events + found) | 0;
    return found;
  }

  #advanceBusily(): number {
    const errors = this.#errors;
    // The sources pass on callbacks of operations that were issued before this round. Operations that callbacks issue come
    // in a later round. Mostly, only callbacks are due.
    let events = this.activity.busy > this.completions.length ? this.#advanceSources(errors) : 0;
    if (this.completions.length > 0) events += this.completions.run(errors);
    if (this.#unexpected.busy > 0) events += this.receiver.deliverUnexpected(errors);
    const found = this.isClosed ? 0 : this.receiver.advance(1, errors);
    if (this.sender.busy > 0 && !this.isClosed) events += this.sender.flush();
    if (this.work.length > 0 && !this.isClosed) events += this.work.run(errors);
    if (found > ADVANCE_EVENTS_MASK || errors.length > 0 || this.isClosed || this.#endedOrigins.hasOrphans) {
      return this.#afterRound(found, events, errors);
    }
    this.isAdvancing = false;
    this.events = (this.events + found + events) | 0;
    return found + events;
  }

  #advanceSources(errors: unknown[]): number {
    let events = 0;
    for (const source of this.#sources) {
      if (source.busy === 0) continue;
      try {
        events += source.advance();
      } catch (error) {
        errors.push(error);
      }
    }
    return events;
  }

  #afterRound(found: number, others: number, errors: unknown[]): number {
    let events = (found & ADVANCE_EVENTS_MASK) + others;
    // An interrupt also moves the notice. An interrupt is no event, but ends the waits.
    if ((found & ADVANCE_NOTICE) !== 0) events += this.#noticed();
    if (this.#endedOrigins.hasOrphans && !this.isClosed) this.#endedOrigins.reclaim();
    this.isAdvancing = false;
    this.events = (this.events + events) | 0;
    if (this.isClosed) this.#end();
    if (errors.length > 0) {
      const thrown = errors.splice(0);
      if (!this.keepsErrors) throw asOne(thrown);
      this.#kept.push(...thrown);
    }
    return events;
  }

  /**
   * A wait that has kept errors is over: the next round throws these errors. @throws the kept errors at once if the context is
   * closed
   */
  throwKept(): void {
    const kept = this.#kept.splice(0);
    if (kept.length === 0) return;
    if (this.isClosed) throw asOne(kept);
    for (const error of kept) {
      this.work.push(() => {
        throw error;
      });
    }
    this.#task.parker.ring();
  }

  /** Whether an advance would do something. */
  hasWork(): boolean {
    return (this.activity.busy !== 0 && this.hasOwnWork()) || this.#kernel.peek(this.block) !== 0;
  }

  /** Arms the task's bell, then looks as hasWork() does. Not on a closed context: its lanes may be freed. */
  lastLook(): boolean {
    return this.#kernel.lastLook(this.block) !== 0 || (this.activity.busy !== 0 && this.hasOwnWork());
  }

  /**
   * The first part of lastLook(): whether messages are there. What a wait's condition begins behind it is work of this thread, for
   * which no task rings: so `activity.busy` and hasOwnWork() are looked at behind the condition.
   */
  arm(): boolean {
    return this.#kernel.lastLook(this.block) !== 0;
  }

  /** Whether an advance would do something besides taking messages. Asked if `activity.busy` is not 0. */
  hasOwnWork(): boolean {
    if (this.completions.length > 0 || this.work.fresh || this.#unexpected.hasWork) return true;
    return this.#sources.some((source) => source.hasWork) || this.sender.hasRoom();
  }

  /** Whether the context awaits something for which no task rings the bell. */
  readonly isRestless = (): boolean => {
    if (this.#remote?.isRestless === true) return true;
    const { waiting } = this.sender;
    const isSoon = waiting.retrySoon;
    if (waiting.busy === 0) waiting.retrySoon = false;
    return isSoon || (this.activity.busy !== 0 && this.work.length > 0);
  };

  /** Whether all sent messages are out, and all their callbacks have run. */
  get drained(): boolean {
    const isOut = this.sender.busy === 0 && this.#sources.every(({ isDrained }) => isDrained !== false);
    return isOut && this.completions.due === 0;
  }

  /** The task table has changed, or a context has closed: handles the endpoints that have ended since. Returns how many. */
  #noticed(): number {
    let count = 0;
    const { map, kernel } = this.#task;
    const notice = this.#task.refresh();
    const ended: number[] = [];
    for (let task = 0; task < map.tasks; task++) if (this.#task.hasEnded(task)) ended.push(task);
    if (this.#engine.hasEnded()) {
      const hadBegun = this.#engine.hadBegun();
      for (const source of this.#sources) source.engineEnded?.(hadBegun);
    }
    this.#task.lookAtSlots?.(this, this.#task);
    for (const { to } of this.#watchers) if (this.#isUnreachable(to)) this.#endpointGone(to);
    // Once the notice is acknowledged, the regions of ended tasks may be used again.
    for (const task of ended) {
      this.#taskEnded(task);
      if (this.#endedSeen[task] === 0) this.#tellOfEnd(task);
    }
    this.#endedOrigins.acknowledgeNotice(notice, ended);
    for (let ordinal = 0; ordinal < endpointCount(map); ordinal++) {
      const hasTaskEnded = this.#task.hasEnded(taskAt(map, ordinal));
      const hasEnded = hasTaskEnded || isClosed(kernel, map, ordinal);
      if (!hasEnded || this.#endedOrigins.has(ordinal)) continue;
      count++;
      this.sender.targetEnded(ordinal);
      this.#sourcesEnded(ordinal, hasTaskEnded);
      this.#endedOrigins.add(ordinal);
    }
    this.#endedOrigins.reclaim();
    return count;
  }

  /** Drops the state for an ordinal of another node. False: an operation with its endpoint is under way. */
  release(ordinal: number): boolean {
    if (this.receiver.holds(ordinal) || this.#sources.some((source) => source.holds?.(ordinal))) return false;
    if (!this.sender.release(ordinal)) return false;
    // The next one-sided operation looks up the slot, and finds the slot leaving.
    this.rma.fifos.forget(ordinal);
    return true;
  }

  /** The slot of a task of another node is free: forgets the task. */
  forgetSlot(slot: number): void {
    const { map } = this.#task;
    this.#endedSeen[slot] = 0;
    for (let index = 0; index < map.contexts; index++) {
      const ordinal = ordinalOf(map, slot, index);
      this.sender.forget(ordinal);
      this.#endedOrigins.forget(ordinal);
      for (const source of this.#sources) source.forget?.(ordinal);
    }
  }

  /** A task has ended, and so have all its endpoints. */
  #taskEnded(task: number): void {
    const { map } = this.#task;
    for (let index = 0; index < map.contexts; index++) this.#sourcesEnded(ordinalOf(map, task, index), true);
  }

  #sourcesEnded(ordinal: number, isTaskOver: boolean): void {
    for (const source of this.#sources) source.ended?.(ordinal, isTaskOver);
  }

  /** Reports to the tracer and the owner that a task has ended. */
  #tellOfEnd(task: number): void {
    this.#endedSeen[task] = 1;
    const number = this.#task.addresses.numberOf(task);
    const { observers, clock } = this.#task;
    observers.witness.tracer?.instant(TRACE_DEATH, number, clock.now());
    this.#owner.taskEnded(number);
  }

  /** Calls `callback` with SHUTDOWN once an endpoint has ended, and all its messages are delivered. */
  watch(to: Endpoint, callback: Callback, cookie: unknown): void {
    if (this.#isUnreachable(to) || this.#endedOrigins.isGone(to)) this.completions.push(callback, cookie, SHUTDOWN);
    else this.#watchers.push({ to, callback, cookie });
  }

  /**
   * Whether no message can reach an endpoint any more. Binds a slot for it if one is free, so that its node reports its end.
   */
  #isUnreachable(to: Endpoint): boolean {
    const { addresses, slot } = this.#task;
    return addresses.bind(taskOf(to), slot) < 0 && addresses.refusal() === SHUTDOWN;
  }

  /** Takes back all that watch() has of a callback. */
  unwatch(callback: Callback): void {
    this.#watchers = this.#watchers.filter((watcher) => watcher.callback !== callback);
  }

  /** An endpoint has ended, and all its messages are delivered. */
  #endpointGone(to: Endpoint): void {
    this.calls.targetEnded(to);
    this.calls.originEnded(to);
    const told = this.#watchers.filter((watcher) => watcher.to === to);
    if (told.length === 0) return;
    this.#watchers = this.#watchers.filter((watcher) => watcher.to !== to);
    for (const { callback, cookie } of told) this.completions.push(callback, cookie, SHUTDOWN);
  }

  /** Closes the context; within a round, at its end. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.receiver.paused.stop();
    this.completions.stop();
    if (!this.isAdvancing) this.#end();
  }

  /** Gives up the lanes. No handler may run any more: the other tasks free the lanes once they have the notice. */
  #end(): void {
    this.sender.close();
    for (const source of this.#sources) source.close?.();
    this.#task.kernel.storeWord(this.block + CONTEXT_STATE_OFFSET, CONTEXT_CLOSED);
    // Frees the lanes that no other task frees: from this context to itself, and from contexts of its task that closed before.
    this.#lanes.reclaim(this.ordinal);
    this.#owner.closed();
    this.calls.close(
      this.endpoint,
      () => new PamiError("PAMIR_CLOSED", `call() of ${nameOf(this.endpoint)}: the context was closed`),
    );
    this.#task.parker.ring();
  }
}

// The agent works for a node besides the node's tasks. It is the engine of all their injection FIFOs and rget FIFOs, and
// carries records and descriptors to tasks of other nodes. Contexts and kernels are the same as with shared memory.
//
//   memory of node A                                              memory of node B
//   context 0.0 ─► lane ─► block of 2.0 ─► agent ══ pipe: records ═══► agent ─► lane ─► block of 2.0 ─► context 2.0
//   injection FIFO of 0.0 ───────────────► agent ══ pipe: descriptor ► agent ─► does it on a region of task 2
//
// Records that were committed since go in one frame for each pair of contexts (egress.ts, ingress.ts). A pair that is held back
// delays no other pair. remote-rma.ts handles descriptors of injection FIFOs, and remote-rendezvous.ts handles descriptors of
// rget FIFOs.
//
// The agent runs on a thread of its own, or inline, within each advance() of the node's contexts: see turn().
//
// Frames may be wrong, because a network is not trusted. The agent drops a wrong frame, and tells the pipe.

import * as L from "../../../assembly/layout.js";
import { contextOf, type Endpoint, endpointOf, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, engineSlot, isClosed, type MemoryMap, ordinalOf, taskSlot } from "../../memory/map.js";
import { SlotTable, taskAt, UNBOUND } from "../../node/address.js";
import { announceClose, announceStart, interruptTask, markDead } from "../../node/liveness.js";
import type { RemoteAgent } from "../transport.js";
import { Bells } from "./bells.js";
import { Egress } from "./egress.js";
import type { Frame, Pipe } from "./frames.js";
import { Ingress } from "./ingress.js";
import type { NetParts } from "./net-parts.js";
import { Purge } from "./purge.js";
import { RemoteRendezvous } from "./remote-rendezvous.js";
import { RemoteRma } from "./remote-rma.js";

/**
 * Bytes of records of a batch after which the agent rings the tasks, so that they take these records while the agent goes on.
 */
const RING_BYTES = 131_072;
/** The most turns in which an agent sends the last records of tasks that go on. */
const LAST_TURNS = 100;

export class Agent implements RemoteAgent {
  readonly addresses: SlotTable;
  /** Its host sets it. */
  receive: RemoteAgent["receive"];
  /**
   * Whether confirm() follows each end, sooner or later: a launcher reports the ends of processes. The agent's host sets it.
   */
  isTold = false;
  readonly #kernel: Kernel;
  readonly #map: MemoryMap;
  readonly #pipe: Pipe;
  readonly #rma: RemoteRma;
  readonly #rendezvous: RemoteRendezvous;
  readonly #egress: Egress;
  readonly #ingress: Ingress;
  readonly #purge: Purge;
  readonly #bells: Bells;
  /** By task of another node: the number of the last frame to or from it. */
  readonly #uses = new Map<number, number>();
  #frames = 0;
  /** Tasks of other nodes that have ended, and contexts of theirs that have closed. */
  readonly #ended = new Set<number>();
  readonly #retired = new Set<Endpoint>();
  /** Ended tasks of other nodes whose end is certain. The rest of `#ended` is only silent, and may go on. */
  readonly #certain = new Set<number>();
  /** Tasks of other nodes that have ended, and have no slot by which this node's contexts could be told. */
  readonly #unannounced = new Set<number>();
  /** Nodes that know of this node, and wait for ends. */
  readonly #greeters = new Set<number>();
  /** By node, then by own endpoint: the streams to that node in which a frame was sent. A node is named by its first task. */
  readonly #streams = new Map<number, Map<Endpoint, Set<Endpoint>>>();
  /** Nodes with which a frame was exchanged: these nodes know of all ends here. */
  readonly #met = new Set<number>();
  /**
   * By endpoint of a closed context of this node: the nodes that were told. A task that has ended stands under context 0.
   */
  readonly #told = new Map<Endpoint, Set<number>>();
  /** Own tasks that have ended, by slot, and their contexts that have closed, by ordinal. */
  readonly #endedHere = new Set<number>();
  readonly #closedHere = new Set<number>();
  /** Own tasks, by slot, that go on after the process of this agent has ended. */
  readonly #cutOff = new Set<number>();
  /** By slot of an own task that goes on: wakes the waits of this thread. */
  readonly #wakes = new Map<number, () => void>();
  /** Whether a batch of frames is coming, and bytes of its records since the tasks were rung. */
  #isBatch = false;
  #unrung = 0;
  #noticeSeen = -1;
  #bindsSeen = 0;
  #isPosted = false;
  #hasLeft = false;

  /** The calling thread is the node's engine from now on. @param isInline within each advance() of the node's contexts */
  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, pipe: Pipe, isInline: boolean) {
    this.#kernel = kernel;
    this.#map = map;
    this.#pipe = pipe;
    const addresses = new SlotTable(kernel, memory, map);
    this.addresses = addresses;
    pipe.onFrame = (from, to, frame) => this.#onFrame(from, to, frame);
    const send = (from: Endpoint, to: Endpoint, frame: Frame): void => this.#send(from, to, frame);
    const parts: NetParts = { kernel, memory, map, addresses };
    this.#rma = new RemoteRma(parts, send);
    this.#rendezvous = new RemoteRendezvous(parts, send);
    this.#egress = new Egress(parts, pipe, (from, to) => this.#noteStream(from, to));
    this.#bells = new Bells(kernel, map);
    this.#ingress = new Ingress(parts, send, {
      bind: (task) => this.#bind(task),
      end: (task) => this.#end(task),
      retire: (endpoint) => this.#retire(endpoint),
      hold: (slot) => this.#bells.hold(slot),
    });
    if (isInline) memory.words[(engineSlot(map) + L.TASK_INLINE_OFFSET) >>> 2] = 1;
    this.#purge = new Purge(parts, {
      isBusy: (slot, hasAny) => this.#isBusy(slot, hasAny),
      closeLanes: (slot) => this.#ordinalsOf(slot).every((ordinal) => this.#ingress.close(ordinal)),
      lastUse: (task) => this.#uses.get(task) ?? 0,
      forget: (slot, task) => this.#forget(slot, task),
    });
    // SYNC task-state (up): pairs with hasEngineThread().
    kernel.exchangeIf(engineSlot(map) + L.TASK_STATE_OFFSET, L.TASK_ABSENT, L.TASK_UP);
  }

  /**
   * A task of this node has created its client, or the agent's thread runs.
   * @param slot of the task, or of the engine
   * @param wake wakes the waits of the task's thread, if the agent is on the same thread
   */
  serve(slot: number, wake: () => void): void {
    this.#wakes.set(slot, wake);
  }

  #wake(): void {
    for (const wake of this.#wakes.values()) wake();
  }

  /** As of the pipe. */
  get failureDetection(): boolean {
    return this.#pipe.failureDetection;
  }

  /** One turn, in which every queue advances as far as its limits allow. Returns whether the turn did any work. */
  turn(): boolean {
    if (this.#hasLeft) return false;
    let isAny = this.#look();
    this.#kernel.engineServe(this.#map.job);
    if (this.#rma.turn()) isAny = true;
    for (let ordinal = 0; ordinal < this.#own; ordinal++) this.#rendezvous.run(ordinal, L.SLICE_BYTES);
    if (this.#egress.turn()) isAny = true;
    // After sending: a node that got a frame needs no greeting.
    this.#lookAtSlots();
    if (this.#ingress.deliver()) isAny = true;
    this.#announce();
    if (this.#purge.turn()) isAny = true;
    this.#pipe.flush();
    if (this.#endedHere.size === this.#map.locals) this.#leave();
    if (!this.#isBatch) this.#bells.ring();
    if (isAny) this.#wake();
    return isAny;
  }

  /** Whether turn() would do something. */
  get hasWork(): boolean {
    if (this.#hasLeft) return false;
    if (this.#kernel.loadWord(engineSlot(this.#map) + L.TASK_NOTICE_OFFSET) !== this.#noticeSeen) return true;
    for (let ordinal = 0; ordinal < this.#own; ordinal++) if (this.#rendezvous.hasWork(ordinal)) return true;
    return this.#isDue || this.#egress.hasWork || this.#ingress.hasWork;
  }

  /** Whether the agent awaits an event for which no thread rings: then it tries again after RESTLESS_MS. */
  get isRestless(): boolean {
    return !this.#hasLeft && this.#ingress.isRestless;
  }

  /** Whether the engine is to look at a context. */
  get #isDue(): boolean {
    for (let ordinal = 0; ordinal < this.#own; ordinal += 32) {
      // SYNC engine-call (look): pairs with engineCall().
      if (this.#kernel.loadWord(this.#map.job + L.JOB_DUE_OFFSET + (ordinal >>> 3)) !== 0) return true;
    }
    return false;
  }

  /** A record was committed on this thread: sends the record, or wakes its target, even if no context advances. */
  posted(): void {
    if (this.#isPosted) return;
    this.#isPosted = true;
    queueMicrotask(() => {
      this.#isPosted = false;
      this.turn();
      // Messages within the node ring no bell that a wait of this thread hears.
      this.#wake();
    });
  }

  /** Ordinals of this node's own contexts are below this number. */
  get #own(): number {
    return this.#map.locals * this.#map.contexts;
  }

  // ── Incoming frames ───────────────────────────────────────────────────────────────────────────────────────────

  /** A frame has come. */
  #onFrame(from: Endpoint, to: Endpoint, frame: Frame): boolean {
    const task = taskOf(from);
    // Once all own tasks have left, only ends matter: a node that has ended acknowledges nothing.
    if (this.#ended.has(task) || (this.#hasLeft && !("end" in frame))) return true;
    const { contexts, jobTasks } = this.#map;
    const ordinal = this.addresses.ordinalOf(to);
    const isTo = ordinal >= 0 && ordinal < this.#own && contextOf(to) < contexts;
    const isFrom = task < jobTasks && contextOf(from) < contexts && this.#isElsewhere(task);
    if (isFrom) {
      this.#uses.set(task, ++this.#frames);
      this.hasStarted(task);
    }
    if (isTo && isFrom) this.#meet(this.#pipe.firstTaskOf(task));
    const isRight = isTo && isFrom && this.#take(task, from, to, ordinal, frame);
    this.#ingress.deliver();
    this.#ingress.keep();
    if ("records" in frame) this.#unrung += frame.records.length;
    if (!this.#isBatch || this.#unrung >= RING_BYTES) this.#ringAll();
    return isRight;
  }

  /**
   * A task of another node is there. The first frame of its node reports a task that comes later, or this agent's host does.
   */
  hasStarted(task: number): void {
    const at = this.#map.job + L.JOB_STARTED_OFFSET;
    let known = this.#kernel.loadWord(at);
    if (task < known) return;
    while (task >= known) {
      const seen = this.#kernel.exchangeIf(at, known, task + 1);
      // Another thread may have counted a task, too.
      known = seen === known ? task + 1 : seen;
    }
    announceStart(this.#kernel, this.#map);
  }

  /** This node comes later than other nodes: makes itself known to the node of a task. */
  greet(task: number): void {
    // That node may have come later, too, with a greater number, and needs not answer.
    this.hasStarted(task);
    this.#send(this.addresses.endpointAt(ordinalOf(this.#map, 0, 0)), endpointOf(task, 0), { credit: 0 });
  }

  #ringAll(): void {
    this.#unrung = 0;
    this.#bells.ring();
    this.#wake();
  }

  /** Frames come together from now on: endBatch() rings the tasks once for all frames. */
  beginBatch(): void {
    this.#isBatch = true;
  }

  endBatch(): void {
    this.#isBatch = false;
    this.#ringAll();
  }

  #isElsewhere(task: number): boolean {
    const slot = this.addresses.slotOf(task);
    return slot < 0 || slot >= this.#map.locals;
  }

  #take(task: number, from: Endpoint, to: Endpoint, ordinal: number, frame: Frame): boolean {
    if ("records" in frame) {
      const isRight = this.#ingress.file(from, to, frame.records);
      if (this.#hasEnded(ordinal)) this.#tellLate(to, task);
      return isRight;
    }
    if ("ask" in frame) return this.#rma.answer(from, to, frame);
    if ("answer" in frame) return this.#rma.answered(task, frame.answer, frame.results, frame.data);
    if ("chain" in frame) return this.#rendezvous.onFrame(from, ordinal, frame);
    if ("credit" in frame) {
      if (frame.credit === 0) {
        this.#greeters.add(this.#pipe.firstTaskOf(task));
        if (this.#hasEnded(ordinal)) this.#tellLate(to, task);
        return true;
      }
      return this.#egress.credited(to, from, frame.credit);
    }
    if (frame.end === "task") this.confirm(task);
    return this.#ingress.ends(from, frame.end !== "context", frame.streams);
  }

  /** The slot of a task of another node; binds a slot if the task has none. */
  #bind(task: number): number {
    const isNew = this.addresses.slotOf(task) < 0;
    const mayBind = !isNew || !this.#purge.isTurnOfTasks;
    const slot = mayBind ? this.addresses.bind(task, this.#map.tasks) : UNBOUND;
    if (slot < 0) {
      // The thread that holds the lock rings once it releases the lock.
      if (!mayBind || !this.addresses.isLocked) this.#purge.isWanted = true;
      return UNBOUND;
    }
    if (isNew) this.#purge.took(slot, task);
    this.#lookAtSlots();
    return this.addresses.isSlotLeaving(ordinalOf(this.#map, slot, 0)) ? UNBOUND : slot;
  }

  // ── Slots that are given back ─────────────────────────────────────────────────────────────────────────────────

  #ordinalsOf(slot: number): number[] {
    return Array.from({ length: this.#map.contexts }, (_, context) => ordinalOf(this.#map, slot, context));
  }

  /** Whether an operation with the task in a slot is under way. @param hasAny whether records that may go at once count */
  #isBusy(slot: number, hasAny: boolean): boolean {
    const task = this.addresses.numberOf(slot);
    if (this.#rma.isBusy(task) || this.#ingress.isBusy(task)) return true;
    return this.#ordinalsOf(slot).some((ordinal) => {
      if (this.#egress.isBusy(ordinal, hasAny)) return true;
      for (let own = 0; own < this.#own; own++) if (this.#rendezvous.isBusy(own, ordinal)) return true;
      return false;
    });
  }

  /** A slot stands for another task from now on. */
  #forget(slot: number, task: number): void {
    this.#ingress.settle(task);
    this.#ingress.prune(task);
    for (const ordinal of this.#ordinalsOf(slot)) {
      this.#egress.forget(ordinal);
      this.#ingress.release(ordinal);
    }
    this.#uses.delete(task);
  }

  // ── Ends of other nodes' tasks ────────────────────────────────────────────────────────────────────────────────

  /**
   * A task of another node has ended.
   * @param hasLeft whether the task closed its client: then its earlier frames are still delivered
   * @param isCertain false: the task is only silent, and may go on
   */
  ended(task: number, hasLeft: boolean, isCertain = true): void {
    if (isCertain) this.confirm(task);
    if (this.#ended.has(task)) return;
    if (this.#hasLeft) {
      this.#pipe.drop(task);
      return;
    }
    // The task's last frames come through its own port, and its end behind them.
    if (hasLeft && this.#pipe.receivesFrom(task)) return;
    this.#end(task);
  }

  /** A task of another node that has ended, or is about to, does so for certain. The order of both news is all the same. */
  confirm(task: number): void {
    if (this.#certain.has(task)) return;
    this.#certain.add(task);
    const slot = this.addresses.slotOf(task);
    if (slot < this.#map.locals || !this.#ended.has(task)) return;
    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_CERTAIN_OFFSET, L.END_CERTAIN);
    // A shrink() may wait for a certain end.
    announceStart(this.#kernel, this.#map);
    this.#wake();
  }

  #end(task: number): void {
    const isKnown = this.#hasStream(task);
    this.#ended.add(task);
    this.#forgetStreams(task);
    if (this.#pipe.drop(task)) this.#greeters.delete(this.#pipe.firstTaskOf(task));
    this.#ingress.forget(task);
    this.#egress.ended(task);
    const slot = this.addresses.slotOf(task);
    if (slot >= this.#map.locals) this.#markEnded(slot);
    // A context may wait for a reply, or for this end.
    else if (isKnown) this.#unannounced.add(task);
    this.#wake();
  }

  /** Binds slots for tasks that have ended without a slot, so that this node's contexts learn of the end. */
  #announce(): void {
    for (const task of this.#unannounced) if (this.#bind(task) >= 0) this.#unannounced.delete(task);
  }

  /** The task in a slot has ended: notifies this node's contexts. */
  #markEnded(slot: number): void {
    for (let context = 0; context < this.#map.contexts; context++) {
      this.#egress.forget(ordinalOf(this.#map, slot, context));
    }
    // A slot may have been bound, and a transfer begun, after the end was heard.
    const task = this.addresses.numberOf(slot);
    this.#rma.ended(task);
    const silent = this.isTold ? L.END_AWAITED : L.END_SILENT;
    const known = this.#certain.has(task) ? L.END_CERTAIN : silent;
    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_CERTAIN_OFFSET, known);
    markDead(this.#kernel, this.#map, slot);
  }

  /** A context of another node has closed. */
  #retire(endpoint: Endpoint): void {
    this.#retired.add(endpoint);
    const ordinal = this.addresses.ordinalOf(endpoint);
    if (ordinal >= 0) announceClose(this.#kernel, this.#map, ordinal);
  }

  /** Ends the current wait of an own task, by its slot. */
  interrupt(slot: number): void {
    interruptTask(this.#kernel, this.#map, slot);
    this.#wake();
  }

  // ── Ends of our own, and new slots ────────────────────────────────────────────────────────────────────────────

  /** Looks for changes in the node's tables. Returns whether an own task or context has ended. */
  #look(): boolean {
    // SYNC notice (acknowledge): read before the tables, so that a change in between is noticed again.
    const notice = this.#kernel.loadWord(engineSlot(this.#map) + L.TASK_NOTICE_OFFSET);
    if (notice === this.#noticeSeen) return false;
    this.#noticeSeen = notice;
    let isAny = false;
    for (let slot = 0; slot < this.#map.locals; slot++) {
      // SYNC task-state (look): pairs with the task's own store and with the monitor's.
      const hasEnded = this.#kernel.loadWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED;
      if (hasEnded && !this.#endedHere.has(slot)) {
        this.#taskEnded(slot);
        isAny = true;
      }
      for (let context = 0; context < this.#map.contexts && !hasEnded; context++) {
        const ordinal = ordinalOf(this.#map, slot, context);
        if (this.#closedHere.has(ordinal) || !this.#hasEnded(ordinal)) continue;
        this.#contextClosed(ordinal);
        isAny = true;
      }
    }
    if (isAny) this.#purge.ended();
    return isAny;
  }

  /** Handles newly bound slots of tasks of other nodes: these tasks may have ended, and their nodes may not know this node. */
  #lookAtSlots(): void {
    const binds = this.#kernel.loadWord(this.#map.job + L.JOB_BINDS_OFFSET); // SYNC endpoint (look)
    if (binds === this.#bindsSeen) return;
    this.#bindsSeen = binds;
    const { tasks, locals, contexts } = this.#map;
    for (let slot = locals; slot < tasks; slot++) {
      const task = this.addresses.numberOf(slot);
      if (task === UNBOUND) continue;
      if (this.#ended.has(task)) {
        if (this.#kernel.loadWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET) < L.TASK_CLOSED)
          this.#markEnded(slot);
        continue;
      }
      for (let context = 0; context < contexts; context++) {
        const ordinal = ordinalOf(this.#map, slot, context);
        const isKnown = isClosed(this.#kernel, this.#map, ordinal);
        const isRetired = this.#retired.has(this.addresses.endpointAt(ordinal));
        if (isRetired && !isKnown) announceClose(this.#kernel, this.#map, ordinal);
      }
      if (this.#hasStream(task) || this.#pipe.receivesFrom(task)) continue;
      // Opens a stream, so that this node also gets the stream's END. Not from an ended task: its frames would be dropped.
      let own = 0;
      while (own < locals - 1 && this.#endedHere.has(own)) own++;
      this.#send(this.addresses.endpointAt(ordinalOf(this.#map, own, 0)), endpointOf(task, 0), { credit: 0 });
    }
  }

  /** Whether an own context has closed, or its task has ended. */
  #hasEnded(ordinal: number): boolean {
    const slot = taskSlot(this.#map, taskAt(this.#map, ordinal));
    if (this.#kernel.loadWord(slot + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) return true;
    return this.#kernel.loadWord(contextBlock(this.#map, ordinal) + L.CONTEXT_STATE_OFFSET) === L.CONTEXT_CLOSED;
  }

  /** A context of this node has closed: tells other nodes, after all frames of the context. */
  #contextClosed(ordinal: number): void {
    this.#letGo(ordinal);
    const endpoint = this.addresses.endpointAt(ordinal);
    this.#told.set(endpoint, new Set());
    for (const node of this.#known()) this.#tellOnce(endpoint, node);
  }

  /** An own task has ended: tells other nodes, after all frames of the task. */
  #taskEnded(slot: number): void {
    this.#wakes.delete(slot);
    for (let context = 0; context < this.#map.contexts; context++) this.#letGo(ordinalOf(this.#map, slot, context));
    // The engine may have acknowledged the end before, so that other tasks have found the task's memory in use.
    announceStart(this.#kernel, this.#map);
    this.#tellOfTask(slot);
  }

  /** Tells other nodes that an own task has ended. */
  #tellOfTask(slot: number): void {
    this.#endedHere.add(slot);
    const endpoint = this.addresses.endpointAt(ordinalOf(this.#map, slot, 0));
    for (let context = 1; context < this.#map.contexts; context++) {
      this.#told.delete(this.addresses.endpointAt(ordinalOf(this.#map, slot, context)));
    }
    this.#told.set(endpoint, new Set());
    for (const node of [...this.#pipe.talkedTo, ...this.#greeters]) this.#tellOnce(endpoint, node);
  }

  /** Nodes that know this node, and nodes that this node knows. */
  #known(): Set<number> {
    const known = new Set([...this.#streams.keys(), ...this.#pipe.talkedTo, ...this.#greeters]);
    for (let slot = this.#map.locals; slot < this.#map.tasks; slot++) {
      const task = this.addresses.numberOf(slot);
      if (task !== UNBOUND && !this.#ended.has(task)) known.add(this.#pipe.firstTaskOf(task));
    }
    return known;
  }

  /** Whether a frame was sent to a task. */
  #hasStream(task: number): boolean {
    for (const targets of this.#streams.get(this.#pipe.firstTaskOf(task))?.values() ?? []) {
      for (const to of targets) if (taskOf(to) === task) return true;
    }
    return false;
  }

  /** A task has ended: sends the task no more frames. */
  #forgetStreams(task: number): void {
    const node = this.#pipe.firstTaskOf(task);
    const streams = this.#streams.get(node);
    if (streams === undefined) return;
    for (const [from, targets] of streams) {
      for (const to of targets) if (taskOf(to) === task) targets.delete(to);
      if (targets.size === 0) streams.delete(from);
    }
    if (streams.size === 0) this.#streams.delete(node);
  }

  /** A context of this node has closed: sends its committed records, and takes back the lanes to and from the context. */
  #letGo(ordinal: number): void {
    this.#closedHere.add(ordinal);
    this.#egress.flushAllOf(ordinal);
    // Records for the context are dropped. If a lane had no room for the switch record, no other thread frees that lane.
    this.#ingress.reclaim(ordinal);
    for (let other = this.#own; other < this.#map.tasks * this.#map.contexts; other++) {
      const block = contextBlock(this.#map, other);
      if (this.#kernel.laneOf(block, ordinal) !== 0) this.#kernel.laneSwitch(this.#map.job, block, ordinal, 0);
    }
  }

  /** Tells a node of an end, behind all frames to it: in each stream of the context, or of any context of its task. */
  #tellOfEnd(end: "context" | "task" | "cutOff", own: Endpoint, node: number): void {
    const said: [Endpoint, Endpoint][] = [];
    for (const [from, targets] of this.#streams.get(node) ?? []) {
      if (end === "context" ? from !== own : taskOf(from) !== taskOf(own)) continue;
      for (const to of targets) said.push([from, to]);
    }
    if (said.length === 0) said.push([own, endpointOf(node, 0)]);
    for (const [from, to] of said) this.#send(from, to, { end, streams: said.length });
  }

  /** A task sends to a context that has closed. */
  #tellLate(to: Endpoint, task: number): void {
    const hasEnded = this.#endedHere.has(this.addresses.slotOf(taskOf(to)));
    this.#tellOnce(hasEnded ? endpointOf(taskOf(to), 0) : to, this.#pipe.firstTaskOf(task));
  }

  /** Tells a node of an end, unless `#told` says that the node knows. */
  #tellOnce(own: Endpoint, node: number): void {
    const told = this.#told.get(own);
    if (told === undefined || told.has(node)) return;
    told.add(node);
    const slot = this.addresses.slotOf(taskOf(own));
    const whole = this.#cutOff.has(slot) ? "cutOff" : "task";
    this.#tellOfEnd(this.#endedHere.has(slot) ? whole : "context", own, node);
  }

  /** Exchanges the first frame with a node: tells it of all earlier ends, for which its contexts may wait. */
  #meet(node: number): void {
    if (this.#met.has(node)) return;
    this.#met.add(node);
    for (const own of this.#told.keys()) this.#tellOnce(own, node);
  }

  /** A task of this node has left. */
  close(): void {
    this.turn();
  }

  /**
   * The agent ends, and the process of the node's first task with it. For other nodes, tasks that go on end too, after all
   * frames that they have sent.
   */
  end(): void {
    for (let turn = 0; turn < LAST_TURNS && this.turn(); turn++);
    if (this.#hasLeft) return;
    for (let slot = 0; slot < this.#map.locals; slot++) {
      if (this.#endedHere.has(slot)) continue;
      if (slot > 0) this.#cutOff.add(slot);
      for (const ordinal of this.#ordinalsOf(slot)) this.#egress.flushAllOf(ordinal);
      this.#tellOfTask(slot);
    }
    this.#leave();
  }

  /** Whether all tasks of this node have left. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** All tasks have left: sends their last frames, and takes no more frames. */
  #leave(): void {
    this.#hasLeft = true;
    this.#pipe.leave();
    this.#pipe.flush();
  }

  /** Sends a frame, and notes its stream. The node of a task that has ended still gets ENDs, for its other tasks. */
  #send(from: Endpoint, to: Endpoint, frame: Frame): void {
    if (this.#noteStream(from, to) || "end" in frame) this.#pipe.send(from, to, frame);
  }

  /** Notes a stream in which a frame goes. False: its target has ended. */
  #noteStream(from: Endpoint, to: Endpoint): boolean {
    const task = taskOf(to);
    if (this.#ended.has(task)) return false;
    const node = this.#pipe.firstTaskOf(task);
    let streams = this.#streams.get(node);
    if (streams === undefined) {
      streams = new Map();
      this.#streams.set(node, streams);
      this.#meet(node);
    }
    const targets = streams.get(from);
    if (targets === undefined) streams.set(from, new Set([to]));
    else targets.add(to);
    this.#uses.set(task, ++this.#frames);
    return true;
  }
}

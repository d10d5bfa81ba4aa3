// One-sided operations of one context: put, get, rmw and fence, as descriptors in its injection FIFOs. Behind each operation
// with a callback there is a completion descriptor, whose bit in the completion mask says that the operation is done. An
// operation that is done at once, with nothing before it, needs no completion descriptor and no bit: its callbacks only become
// due.
import * as L from "../../../assembly/layout.js";
import type { Keys } from "../../core/check.js";
import type { CompletionQueue } from "../../core/completion.js";
import { checkEndpoint, contextOf, type Endpoint, taskOf } from "../../core/endpoint.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import type { Activity, ProgressSource } from "../../core/progress.js";
import { generationOf, indexOf, MemRegion, type RegionHandle } from "../../core/region.js";
import { type Callback, EAGAIN, type Result, resultOf, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { TransferType } from "../../core/transfer-type.js";
import type { Kernel } from "../../kernel/kernel.js";
import { injectionFifo, type MemoryMap } from "../../memory/map.js";
import { type SlotTable, taskAt } from "../../node/address.js";
import type { ContextEngine } from "../../node/engine.js";
import { Queue } from "../../support/queue.js";
import type { ContextParts } from "../base.js";
import { checkOperand, highOf, lowOf, type RmwOperation, type RmwType, rmwBytes, rmwCode } from "./rmw.js";

/** Parameters of `put` and `get`, which read them before they return, so that one object can serve every call. */
export interface TransferParameters {
  /** Endpoint of a context of the task that owns the remote region. */
  to: Endpoint;
  /** Region of this task. */
  local: MemRegion;
  /** Byte offset in the local region (default 0). */
  localOffset?: number;
  /** Handle of a region of the target's task. */
  remote: RegionHandle;
  /** Byte offset in the remote region (default 0). */
  remoteOffset?: number;
  /** Number of bytes, from 0 (default: the rest of the local region). */
  bytes?: number;
  /** Called in a later `advance()`, when the local bytes may be reused (put) or have arrived (get). */
  onLocal?: Callback | undefined;
  /** Called in a later `advance()`, when the bytes are visible at the target. */
  onRemote?: Callback | undefined;
  /** Value that the callbacks get. */
  cookie?: unknown;
  /**
   * Type of the elements in the local region, from `localOffset` on. `bytes` then counts data alone (default: one element), and
   * further elements follow at the type's extent. Within one memory the calling thread moves all data before the call returns.
   */
  localType?: TransferType | undefined;
  /** Type of the elements in the remote region. For another node, a type has at most 16,384 contiguous runs. */
  remoteType?: TransferType | undefined;
}

/** An i32 word of a region of the target's task. A put changes it atomically after its bytes. */
export interface NotifyWord {
  /** Handle of the region. */
  readonly remote: RegionHandle;
  /** Byte offset of the word in the region, a multiple of 4 (default 0). */
  readonly offset?: number;
  /** Operation on the word (default "add"). */
  readonly operation?: "set" | "add" | "or" | "and" | "xor";
  /** Operand, an i32 (default 1). */
  readonly value?: number;
}

/** Parameters of `put`, which reads them before it returns. */
export interface PutParameters extends TransferParameters {
  /**
   * Notification of the target once the bytes are there, which wakes a sleeping target. With a dispatch id, the context `to`
   * gets a message of 16 bytes: remote offset and number of bytes as i32, and the handle as f64. Or a word that `waitWord()` of
   * the target reads. Notifications to one endpoint come in the order of the puts and rmws.
   */
  notify?: number | NotifyWord | undefined;
}

/** An operand in a word of a region of this task: a 64-bit value without a BigInt. */
export interface RegionWord {
  /** Region of this task. */
  readonly region: MemRegion;
  /** Byte offset of the word, a multiple of its size (default 0). */
  readonly offset?: number;
}

type Operand = number | bigint | RegionWord;

/** Parameters of `rmw`, which reads them before it returns. */
export interface RmwParameters {
  /** Endpoint of a context of the task that owns the region. */
  to: Endpoint;
  /** Handle of a region of the target's task. */
  remote: RegionHandle;
  /** Byte offset of the word in the region, a multiple of its size (default 0). */
  remoteOffset?: number;
  /** Operation on the word. */
  operation: RmwOperation;
  /** Type of the word (default i32). Always use the same width for a word. */
  type?: RmwType;
  /** Operand. For a 64-bit word, a number may be up to 2^53 in size. */
  value: Operand;
  /** For a compare: the operation is done only if the word equals this value. */
  test?: Operand;
  /** For a fetch: region of this task that gets the old value. */
  result?: MemRegion;
  /** Byte offset in `result`, a multiple of the word's size (default 0). */
  resultOffset?: number;
  /** Called in a later `advance()`, when the operation is done and the old value is in `result`. */
  onDone?: Callback | undefined;
  /** `true` wakes the target's task, for example in a `waitWord()` of this word. Other values work as for a put. */
  notify?: boolean | number | NotifyWord | undefined;
  /** Value that `onDone` gets. */
  cookie?: unknown;
}

export const TRANSFER_KEYS: Keys<TransferParameters> = {
  to: true,
  local: true,
  localOffset: true,
  remote: true,
  remoteOffset: true,
  bytes: true,
  onLocal: true,
  onRemote: true,
  cookie: true,
  localType: true,
  remoteType: true,
};
export const PUT_KEYS: Keys<PutParameters> = { ...TRANSFER_KEYS, notify: true };
export const RMW_KEYS: Keys<RmwParameters> = {
  notify: true,
  to: true,
  remote: true,
  remoteOffset: true,
  operation: true,
  type: true,
  value: true,
  test: true,
  result: true,
  resultOffset: true,
  onDone: true,
  cookie: true,
};

const SLOT_MASK = 2 ** L.COMPLETION_RESULT_SHIFT - 1;
/** Equals no value of a caller. */
const NO_REGION = {};
/** Bytes of the message that notifies the target of a put or rmw. */
const NOTICE_BYTES = 16;
/** Not a TRANSFER_…: the pending queue has no space. */
const WAITING_FULL = -1;

/** An operation that waits for room in its FIFO, or behind another waiting operation. */
interface Waiting {
  /** The descriptor. */
  readonly words: Int32Array;
  readonly onLocal: Callback | undefined;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
}

/** One injection FIFO, and the pending callback list beside it: one place for each slot. */
interface Fifo {
  /** The FIFO's bit in the set of active FIFOs. */
  readonly bit: number;
  readonly pointer: number;
  /** Index of the first word of the staged descriptor. */
  readonly staged: number;
  readonly callbacks: (Callback | undefined)[];
  readonly cookies: unknown[];
  /** Completion descriptors whose callback has not run. */
  pending: number;
  /** Whether the engine has something left to process. */
  left: boolean;
  /**
   * Whether this thread can't process the rest of the FIFO: another task has to answer, or the engine thread has to process
   * descriptors.
   */
  isBlocked: boolean;
  /** Slots that the engine thread had processed at the last look. */
  seen: number;
  /** Whether an advance() would find nothing to do: all operations left are on their way. */
  isIdle: boolean;
  readonly waiting: Queue<Waiting>;
}

export class Rma implements ProgressSource {
  /** Operations that are not over, which `advance()` has to look after. 0: there is nothing to scan (C7). */
  busy = 0;
  /** For a typed transfer of several operations: the offset and bytes in the notification, instead of the last operation's. */
  noticed: { readonly offset: number; readonly bytes: number } | undefined;
  /** Whether operations wait for room without a limit: all of a typed transfer wait, or none. */
  isUnbounded = false;
  readonly #activity: Activity;
  readonly #kernel: Kernel;
  readonly #words: Int32Array;
  readonly #engine: ContextEngine;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  /** Slot of the context's task. */
  readonly #slot: number;
  readonly #job: number;
  readonly #fifos: readonly Fifo[];
  /** Bit i: FIFO i has something pending, left or waiting. */
  #active = 0;
  readonly #slotMask: number;
  readonly #waitingMax: number;
  /** Callbacks that are due. An operation is done at once only while no more callbacks are due than a FIFO has slots. */
  readonly #completions: CompletionQueue;
  /** Tasks that have ended. */
  readonly #endedTasks: Uint8Array;
  #waitingBytes = 0;
  /** The last endpoint and handle, which most programs use again and again. Their target and region are staged in #aimed. */
  #to = -1;
  /** NaN, which equals nothing: nothing is staged. */
  #handle: RegionHandle = Number.NaN;
  #aimed: Fifo;
  #owner = 0;
  #index = L.NONE;
  #generation = 0;
  /** The region of this task that is staged there, or NO_REGION; pointer to its first byte. */
  #local: unknown = NO_REGION;
  #localAt = 0;
  /** The last operation and type of an rmw, and their code. */
  #operation: RmwOperation | undefined;
  #type: RmwType | undefined;
  #code = 0;
  /** Whether the operation has one operand, an i32. */
  #isPlain = false;
  readonly #tell: (to: Endpoint, dispatch: number, payload: Uint8Array) => void;

  /**
   * @param waitingMax bytes of descriptors that may wait for room
   * @param tell sends a message, which is copied, and waits if there is no room
   */
  constructor(
    { kernel, memory, map, addresses, ordinal, engine, completions, activity }: ContextParts,
    waitingMax: number,
    tell: (to: Endpoint, dispatch: number, payload: Uint8Array) => void,
  ) {
    this.#activity = activity;
    this.#engine = engine;
    this.#tell = tell;
    this.#kernel = kernel;
    this.#words = memory.words;
    this.#completions = completions;
    this.#map = map;
    this.#addresses = addresses;
    this.#slot = taskAt(map, ordinal);
    this.#job = map.job;
    this.#waitingMax = waitingMax;
    this.#slotMask = map.slots - 1;
    this.#endedTasks = new Uint8Array(map.tasks);
    this.#fifos = Array.from({ length: map.fifos }, (_, fifo) => ({
      bit: 1 << fifo,
      pointer: injectionFifo(map, ordinal, fifo),
      staged: (injectionFifo(map, ordinal, fifo) + L.INJECTION_STAGED_OFFSET) >>> 2,
      callbacks: Array.from({ length: map.slots }, () => undefined),
      cookies: Array.from({ length: map.slots }, () => undefined),
      pending: 0,
      left: false,
      isBlocked: false,
      seen: 0,
      isIdle: false,
      waiting: new Queue<Waiting>(),
    }));
    this.#aimed = this.#fifos[0] as Fifo;
  }

  #changeBusy(change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
  }

  /** Whether an advance would make progress. Not if only other threads can process the operations left. */
  get hasWork(): boolean {
    return this.busy > 0 && this.#fifos.some((fifo) => (this.#active & fifo.bit) !== 0 && this.#wouldGoOn(fifo));
  }

  #wouldGoOn(fifo: Fifo): boolean {
    if (!fifo.isIdle) return true;
    if (this.#engine.isOwn) return false;
    const { seen } = fifo;
    return this.#leftElsewhere(fifo) === 0 || fifo.seen !== seen;
  }

  /** See `Context.put` and `Context.get`. */
  transfer(call: "put" | "get", parameters: PutParameters): Result {
    const {
      to,
      local,
      localOffset = 0,
      remote,
      remoteOffset = 0,
      bytes,
      onLocal,
      onRemote,
      cookie,
      notify,
    } = parameters;
    const isAimed = notify === undefined || this.checkNotify(call, to, notify);
    if (!isAimed || ((to !== this.#to || remote !== this.#handle) && !this.#aim(to, remote)))
      return this.#addresses.refusal();
    if (local !== this.#local) this.#stageLocal("local", local);
    const size = bytes === undefined ? local.length - Number(localOffset) : bytes;
    if (
      typeof localOffset !== "number" ||
      typeof remoteOffset !== "number" ||
      typeof size !== "number" ||
      localOffset !== localOffset >>> 0 ||
      remoteOffset !== remoteOffset >>> 0 ||
      size !== size >>> 0
    ) {
      refuseTransfer(call, parameters);
    }
    if (this.#endedTasks[this.#owner] !== 0) return SHUTDOWN;
    const fifo = this.#aimed;
    const isClear = (this.#active & fifo.bit) === 0 && this.#completions.due <= this.#slotMask;
    const isShort = size <= L.SHORT_BYTES && notify === undefined;
    if (isClear && isShort && localOffset + size <= local.length && !local.closed) {
      const hasCallback = onLocal !== undefined || onRemote !== undefined;
      if (hasCallback) checkCallbacks(onLocal, onRemote);
      const from = this.#localAt + localOffset;
      if (this.#kernel.moveNow(this.#job, this.#index, this.#generation, remoteOffset, from, size, call === "put")) {
        if (hasCallback) this.#count(onLocal, onRemote, cookie);
        return SUCCESS;
      }
    }
    const words = this.#words;
    const at = fifo.staged;
    words[at] = call === "put" ? L.DESCRIPTOR_PUT : L.DESCRIPTOR_GET;
    words[at + 1] = size;
    words[at + 4] = localOffset;
    words[at + 7] = remoteOffset;
    const wrong =
      notify === undefined
        ? this.#submit(fifo, onLocal, onRemote, cookie)
        : this.#submitNotified(fifo, notify, to, remote, size, onLocal, onRemote, cookie);
    if (wrong === L.TRANSFER_DONE) return SUCCESS;
    if (wrong > L.TRANSFER_DONE) this.#refuse(call, wrong, size, local.length, localOffset, remoteOffset);
    return EAGAIN;
  }

  /** See `Context.rmw`. */
  rmw(parameters: RmwParameters): Result {
    const { to, remote, remoteOffset = 0, operation, type = "i32", value, test, onDone, cookie } = parameters;
    const { result, resultOffset = 0, notify } = parameters;
    // The commonest notification is a flag of the operation itself.
    const isTold = notify !== undefined && typeof notify !== "boolean";
    const isAimed = !isTold || this.checkNotify("rmw", to, notify);
    if (!isAimed || ((to !== this.#to || remote !== this.#handle) && !this.#aim(to, remote)))
      return this.#addresses.refusal();
    if (operation !== this.#operation || type !== this.#type) this.#lookUpOperation(operation, type);
    const code = this.#code;
    const fetches = (code & L.RMW_FETCH) !== 0;
    if (fetches && result !== undefined && result !== this.#local) this.#stageLocal("result", result);
    if (
      fetches !== (result !== undefined) ||
      typeof resultOffset !== "number" ||
      typeof remoteOffset !== "number" ||
      resultOffset !== resultOffset >>> 0 ||
      remoteOffset !== remoteOffset >>> 0
    ) {
      refuseRmw(parameters, fetches);
    }
    if (this.#endedTasks[this.#owner] !== 0) return SHUTDOWN;
    const fifo = this.#aimed;
    const words = this.#words;
    const at = fifo.staged;
    // The case of most programs, without a BigInt.
    const isWord = typeof value === "number" && value === (value | 0);
    const isPlain = this.#isPlain && isWord && test === undefined;
    // Without a callback, an rmw waits for nothing, and needs no descriptor unless an argument is wrong.
    const isQuick = isPlain && onDone === undefined && notify === undefined;
    if (isQuick && this.#changes(remoteOffset, code, value, result, resultOffset)) return SUCCESS;
    if (isPlain) words[at + 8] = value;
    else this.#stageOperands(at, operation, type, value, test, (code & L.RMW_COMPARE) !== 0);
    words[at] = L.DESCRIPTOR_RMW;
    words[at + 1] = notify === true ? code | L.RMW_NOTIFY : code;
    words[at + 4] = resultOffset;
    words[at + 7] = remoteOffset;
    const wrong = isTold
      ? this.#submitNotified(fifo, notify, to, remote, (code & L.RMW_WIDE) !== 0 ? 8 : 4, onDone, undefined, cookie)
      : this.#submit(fifo, onDone, undefined, cookie);
    if (wrong === L.TRANSFER_DONE) return SUCCESS;
    if (wrong > L.TRANSFER_DONE) {
      const size = (code & L.RMW_WIDE) !== 0 ? 8 : 4;
      this.#refuse("rmw", wrong, size, result?.length ?? 0, resultOffset, remoteOffset);
    }
    return EAGAIN;
  }

  /** Changes a word at once. False: an argument is wrong, and nothing is done. */
  #changes(offset: number, code: number, value: number, result: MemRegion | undefined, resultOffset: number): boolean {
    let at = 0;
    if (result !== undefined) {
      if (result.closed || (resultOffset & 3) !== 0 || resultOffset + 4 > result.length) return false;
      at = this.#localAt + resultOffset;
    }
    return this.#kernel.changeNow(this.#job, this.#index, this.#generation, offset, code, value, at) !== 0;
  }

  /** See `Context.fence`. */
  fence(to: Endpoint, onDone: Callback, cookie: unknown): Result {
    if (typeof onDone !== "function") throw new PamiError("PAMIR_INVAL", `done is ${show(onDone)}, not a function`);
    return this.#fence(this.#fifoOf(to), onDone, cookie);
  }

  /** See `Context.fenceAll`. */
  fenceAll(onDone: Callback, cookie: unknown): Result {
    if (typeof onDone !== "function") throw new PamiError("PAMIR_INVAL", `done is ${show(onDone)}, not a function`);
    let left = this.#fifos.length;
    let worst: Result = SUCCESS;
    const one: Callback = (_, result) => {
      if (result !== SUCCESS) worst = result;
      if (--left === 0) onDone(cookie, worst);
    };
    // A fence always has space to wait: it is one descriptor, and there is one for each FIFO.
    for (const fifo of this.#fifos) this.#fence(fifo, one, undefined, true);
    return SUCCESS;
  }

  /** Whether no operation is under way or waits. */
  get isDrained(): boolean {
    return this.busy === 0;
  }

  /** Runs the engine for the operations left, injects waiting operations, and passes on due callbacks, which are the events. */
  advance(): number {
    for (let bits = this.#active; bits !== 0; bits &= bits - 1) {
      const fifo = this.#fifos[31 - Math.clz32(bits & -bits)] as Fifo;
      const { pending } = fifo;
      this.#run(fifo);
      if (fifo.waiting.length > 0) this.#flush(fifo);
      fifo.isIdle = fifo.isBlocked;
      for (let due = pending; due > 0; due--) {
        const taken = this.#kernel.completionTake(fifo.pointer);
        if (taken === L.NONE) {
          if (fifo.isBlocked) this.#kernel.pause(L.ENGINE_PAUSE);
          break;
        }
        fifo.isIdle = false;
        this.#complete(fifo, taken);
      }
      if (fifo.pending === 0 && !fifo.left && fifo.waiting.length === 0) this.#active &= ~fifo.bit;
    }
    return 0;
  }

  /** A task has ended: no operation to it begins. Operations under way or waiting end with SHUTDOWN in their turn. */
  ended(ordinal: number, isTaskOver: boolean): void {
    if (isTaskOver) this.#endedTasks[taskAt(this.#map, ordinal)] = 1;
  }

  /** There is nothing to give up: the FIFOs belong to the context's block. */
  close(): void {}

  /** The engine thread has ended: its operations end too, unless the thread had begun none. */
  engineEnded(hadBegun: boolean): void {
    for (const fifo of this.#fifos) {
      // Even if all completions are taken: the thread may have ended before it stored its head.
      if (hadBegun) {
        this.#kernel.engineGiveUp(this.#job, fifo.pointer);
        this.#leave(fifo, false);
      }
      fifo.isBlocked = false;
      fifo.isIdle = false;
    }
  }

  /** Whether an operation with an endpoint may be under way: true if there is any operation. */
  holds(): boolean {
    return this.busy > 0;
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(ordinal: number): void {
    this.#endedTasks[taskAt(this.#map, ordinal)] = 0;
    this.#handle = Number.NaN;
  }

  #fifoOf(to: Endpoint): Fifo {
    const { jobTasks, contexts } = this.#map;
    checkEndpoint(to, jobTasks, contexts);
    // Each target is pinned to one FIFO, so that operations to it stay in order.
    return this.#fifos[(taskOf(to) + contextOf(to)) % this.#fifos.length] as Fifo;
  }

  #lookUpOperation(operation: RmwOperation, type: RmwType): void {
    const code = rmwCode(operation, type);
    this.#operation = operation;
    this.#type = type;
    this.#code = code;
    this.#isPlain = type === "i32" && (code & L.RMW_COMPARE) === 0;
  }

  /** Stages value and test of an rmw of any type. */
  #stageOperands(
    at: number,
    operation: RmwOperation,
    type: RmwType,
    value: Operand,
    test: Operand | undefined,
    compares: boolean,
  ): void {
    if (compares && test === undefined) throw new PamiError("PAMIR_INVAL", `rmw ${operation} needs a test`);
    this.#stageOperand("value", at + 8, value, type);
    if (test !== undefined) this.#stageOperand("test", at + 10, test, type);
  }

  #stageOperand(name: string, at: number, value: Operand, type: RmwType): void {
    const words = this.#words;
    if (typeof value !== "object" || value === null) {
      checkOperand(name, value, type);
      words[at] = lowOf(value);
      words[at + 1] = highOf(value);
      return;
    }
    const { region, offset = 0 } = value;
    this.checkOwn(`${name}.region of an rmw`, region);
    if (region.closed) throw new PamiError("PAMIR_CLOSED", `rmw: the region of its ${name} is closed`);
    const size = rmwBytes(type);
    if (!isWord(offset)) checkWord("rmw", `${name}.offset`, offset);
    if (offset % size !== 0) {
      throw new PamiError("PAMIR_INVAL", `${name}.offset of an rmw is ${offset}, not a multiple of ${size}`);
    }
    if (offset + size > region.length) {
      throw new PamiError(
        "PAMIR_BOUNDS",
        `rmw: a ${name} of ${size} bytes at offset ${offset} of a region of ${region.length}`,
      );
    }
    const word = (region.bytes.byteOffset + offset) >>> 2;
    words[at] = words[word] as number;
    if (size === 8) words[at + 1] = words[word + 1] as number;
  }

  /**
   * Looks up an endpoint and a handle, and stages their region, for this transfer and later transfers with the same endpoint
   * and handle. False: the endpoint has no slot now.
   * @param begun whether a transfer to the endpoint is under way, which keeps its slot
   */
  #aim(to: Endpoint, handle: RegionHandle, begun = false): boolean {
    const fifo = this.#fifoOf(to);
    const given = indexOf(handle);
    if (given === L.NONE) throw new PamiError("PAMIR_INVAL", `remote is ${show(handle)}, not a region's handle`);
    const { regions, locals } = this.#map;
    const [addresses, task] = [this.#addresses, taskOf(to)];
    const slot = begun ? addresses.slotOf(task) : addresses.reach(task, this.#slot);
    if (slot < 0) return false;
    // A handle has the index within its owner's node. Here the index is that of the owner's slot.
    const isRemote = slot >= locals;
    const index = isRemote ? slot * regions + (given % regions) : given;
    const owner = Math.floor(index / regions);
    if (owner !== slot) {
      const named = addresses.numberOf(owner);
      const other = named < 0 ? addresses.first + owner : named;
      throw new PamiError("PAMIR_INVAL", `remote is a region of task ${other}, not of task ${task}`);
    }
    this.#to = to;
    this.#handle = handle;
    this.#aimed = fifo;
    this.#owner = owner;
    this.#index = index;
    this.#generation = generationOf(handle);
    this.#words[fifo.staged + 5] = index;
    this.#words[fifo.staged + 6] = this.#generation;
    this.#local = NO_REGION;
    return true;
  }

  /** Throws unless the value is a region of this job. */
  checkOwn(name: string, region: unknown): asserts region is MemRegion {
    if (!(region instanceof MemRegion))
      throw new PamiError("PAMIR_INVAL", `${name} is ${show(region)}, not a MemRegion`);
    if (region.bytes.buffer !== this.#words.buffer) {
      throw new PamiError("PAMIR_INVAL", `${name} is a region of another job`);
    }
  }

  /** Stages a region of this task, for this operation and later operations that name the same region. */
  #stageLocal(name: string, local: unknown): void {
    this.checkOwn(name, local);
    local.expose();
    const at = this.#aimed.staged;
    this.#words[at + 2] = local.index;
    this.#words[at + 3] = local.generation;
    this.#local = local;
    this.#localAt = local.bytes.byteOffset;
  }

  #refuse(
    call: string,
    wrong: number,
    bytes: number,
    localLength: number,
    localOffset: number,
    remoteOffset: number,
  ): never {
    if (wrong === L.TRANSFER_INVALID) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${call} of a word of ${bytes} bytes at offset ${remoteOffset}, result at ${localOffset}: not multiples of ${bytes}`,
      );
    }
    if (wrong === L.TRANSFER_LOCAL_CLOSED) throw new PamiError("PAMIR_CLOSED", `${call}: the local region is closed`);
    if (wrong === L.TRANSFER_LOCAL_BOUNDS) {
      throw new PamiError(
        "PAMIR_BOUNDS",
        `${call} of ${bytes} bytes at offset ${localOffset} of a local region of ${localLength}`,
      );
    }
    if (wrong === L.TRANSFER_REMOTE_BOUNDS) {
      throw new PamiError("PAMIR_BOUNDS", `${call} of ${bytes} bytes at offset ${remoteOffset} of the remote region`);
    }
    throw new PamiError("PAMIR_STALE", `${call}: handle ${this.#handle} names no open region`);
  }

  /**
   * Does the operation that is staged in a FIFO, injects it, or makes it wait.
   * @returns TRANSFER_…: the operation's error; WAITING_FULL: the operation can't even wait
   */
  #submit(fifo: Fifo, onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): number {
    const hasCallback = onLocal !== undefined || onRemote !== undefined;
    if (hasCallback) checkCallbacks(onLocal, onRemote);
    // An rmw without a callback waits for nothing.
    const mayBeDone = hasCallback
      ? fifo.waiting.length === 0 && this.#completions.due <= this.#slotMask
      : fifo.waiting.length === 0 || this.#words[fifo.staged] === L.DESCRIPTOR_RMW;
    const result = mayBeDone ? this.#kernel.submit(this.#map.job, fifo.pointer, hasCallback) : this.#look(fifo);
    if (result === L.TRANSFER_LATER) return this.#inject(fifo, onLocal, onRemote, cookie);
    if (hasCallback && result === L.TRANSFER_DONE) this.#count(onLocal, onRemote, cookie);
    return result;
  }

  /** Throws unless `notify` is valid for a put or rmw to `to`. False: the endpoint has no slot now. */
  checkNotify(call: string, to: Endpoint, notify: unknown): boolean {
    if (call === "get") throw new PamiError("PAMIR_INVAL", "get has no notify: its bytes come to this task");
    if (typeof notify === "number") {
      if (notify !== (notify & L.DISPATCH_ID_MAX)) checkInteger("notify", notify, 0, L.DISPATCH_ID_MAX);
      return true;
    }
    if (typeof notify !== "object" || notify === null) {
      throw new PamiError("PAMIR_INVAL", `notify of a ${call} is ${show(notify)}, no dispatch id and no word`);
    }
    const fifo = this.#fifoOf(to);
    if (!this.#stageWord(fifo, to, notify as NotifyWord)) return false;
    const wrong = this.#look(fifo);
    if (wrong === L.TRANSFER_LATER) return true;
    const { remote, offset = 0 } = notify as NotifyWord;
    if (wrong === L.TRANSFER_REMOTE_BOUNDS) {
      throw new PamiError("PAMIR_BOUNDS", `${call}: no word at offset ${offset} of the region of its notify`);
    }
    if (wrong === L.TRANSFER_INVALID) {
      throw new PamiError("PAMIR_INVAL", `notify.offset of a ${call} is ${offset}, not a multiple of 4`);
    }
    throw new PamiError("PAMIR_STALE", `${call}: handle ${remote} of its notify names no open region`);
  }

  /**
   * Stages the change of the word that notifies of a put or rmw. The change overwrites the operation that was staged in the
   * FIFO. False: the endpoint has no slot now.
   */
  #stageWord(fifo: Fifo, to: Endpoint, word: NotifyWord, begun = false): boolean {
    const { remote, offset = 0, operation = "add", value = 1 } = word;
    if (!this.#aim(to, remote, begun)) return false;
    this.#handle = Number.NaN;
    if (!isWord(offset)) checkWord("notify", "offset", offset);
    checkOperand("value of notify", value, "i32");
    const code = rmwCode(operation, "i32");
    if ((code & (L.RMW_FETCH | L.RMW_COMPARE)) !== 0) {
      throw new PamiError("PAMIR_INVAL", `operation of a notify is ${show(operation)}: not set, add, or, and, xor`);
    }
    const words = this.#words;
    const at = fifo.staged;
    words[at] = L.DESCRIPTOR_RMW;
    words[at + 1] = code | L.RMW_NOTIFY | L.RMW_BEHIND;
    words[at + 7] = offset;
    words[at + 8] = lowOf(value);
    return true;
  }

  /**
   * Like #submit(), for a put or rmw of so many bytes that notifies the target when it is done.
   * @param onDone onLocal, or an rmw's onDone
   */
  #submitNotified(
    fifo: Fifo,
    notify: number | NotifyWord,
    to: Endpoint,
    remote: RegionHandle,
    bytes: number,
    onDone: Callback | undefined,
    onRemote: Callback | undefined,
    cookie: unknown,
  ): number {
    checkCallbacks(onDone, onRemote);
    const isMessage = typeof notify === "number";
    const { noticed } = this;
    const offset = noticed?.offset ?? (this.#words[fifo.staged + 7] as number);
    bytes = noticed?.bytes ?? bytes;
    // An rmw also goes behind all earlier operations, which keeps notifications in order.
    const mayBeDone = fifo.waiting.length === 0 && this.#completions.due <= this.#slotMask;
    const result = mayBeDone ? this.#kernel.submit(this.#map.job, fifo.pointer, true) : this.#look(fifo);
    if (result === L.TRANSFER_DONE) {
      if (onDone !== undefined || onRemote !== undefined) this.#count(onDone, onRemote, cookie);
      if (isMessage) this.#tell(to, notify, noticeOf(offset, bytes, remote));
      else {
        this.#stageWord(fifo, to, notify, true);
        this.#kernel.perform(this.#map.job, fifo.pointer + L.INJECTION_STAGED_OFFSET, L.SLICE_BYTES);
      }
      return result;
    }
    if (result !== L.TRANSFER_LATER) return result;
    if (!isMessage) {
      const injected = this.#inject(fifo, onDone, onRemote, cookie);
      if (injected !== L.TRANSFER_DONE) return injected;
      this.#stageWord(fifo, to, notify, true);
      return this.#inject(fifo, undefined, undefined, undefined, true);
    }
    const told: Callback = (_, came) => {
      if (came === SUCCESS) this.#tell(to, notify, noticeOf(offset, bytes, remote));
      onRemote?.(cookie, came);
    };
    return this.#inject(fifo, onDone, told, cookie);
  }

  /** Checks the staged operation: TRANSFER_LATER, or its error. */
  #look(fifo: Fifo): number {
    const result = this.#kernel.perform(this.#map.job, fifo.pointer + L.INJECTION_STAGED_OFFSET, 0);
    return result === L.TRANSFER_DONE ? L.TRANSFER_LATER : result;
  }

  /** The staged operation is done without a completion descriptor: its callbacks are due (C7). */
  #count(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): void {
    if (onLocal !== undefined) this.#completions.push(onLocal, cookie, SUCCESS);
    if (onRemote !== undefined) this.#completions.push(onRemote, cookie, SUCCESS);
  }

  /** Injects the staged operation, and gives the engine a turn. Without room, the operation waits. */
  #inject(
    fifo: Fifo,
    onLocal: Callback | undefined,
    onRemote: Callback | undefined,
    cookie: unknown,
    always = false,
  ): number {
    if (fifo.waiting.length > 0 || !this.#injected(fifo, onLocal, onRemote, cookie)) {
      return this.#wait(fifo, onLocal, onRemote, cookie, always);
    }
    if (this.#engine.isOwn) this.#run(fifo);
    return L.TRANSFER_DONE;
  }

  /** Injects the staged operation and lists its callbacks, if there is room. Returns whether there was room. */
  #injected(fifo: Fifo, onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): boolean {
    // A fence is itself a completion: its callback is listed at its own slot.
    const isFence = this.#words[fifo.staged] === L.DESCRIPTOR_FENCE;
    const completions = (onLocal === undefined || isFence ? 0 : 1) + (onRemote === undefined ? 0 : 1);
    const slot = this.#kernel.inject(fifo.pointer, completions);
    if (slot === L.NONE) return false;
    let next = isFence ? slot : slot + 1;
    if (onLocal !== undefined) this.#list(fifo, next++, onLocal, cookie);
    if (onRemote !== undefined) this.#list(fifo, next, onRemote, cookie);
    this.#leave(fifo, true);
    fifo.isIdle = false;
    if (!this.#engine.isOwn) this.#engine.call();
    return true;
  }

  /** Notes whether the engine has something left in a FIFO. */
  #leave(fifo: Fifo, left: boolean): void {
    if (left === fifo.left) return;
    this.#changeBusy(left ? 1 : -1);
    this.#active |= fifo.bit;
    fifo.left = left;
  }

  /** Enters a callback in the pending callback list. `place` is not yet reduced modulo the number of slots. */
  #list(fifo: Fifo, place: number, callback: Callback, cookie: unknown): void {
    const slot = place & this.#slotMask;
    fifo.callbacks[slot] = callback;
    fifo.cookies[slot] = cookie;
    fifo.pending++;
    this.#active |= fifo.bit;
    this.#changeBusy(1);
  }

  /** One turn of the engine, or a look at the engine thread's progress. Returns whether another turn would do more. */
  #run(fifo: Fifo): boolean {
    if (!fifo.left) return false;
    // Completions show the progress of operations with callbacks. Each look at the head takes a cache line from the engine
    // thread.
    if (!this.#engine.isOwn && fifo.pending > 0) {
      fifo.isBlocked = true;
      return false;
    }
    const left = this.#engine.isOwn
      ? this.#kernel.engineRun(this.#map.job, fifo.pointer, L.SLICE_BYTES)
      : -this.#leftElsewhere(fifo);
    fifo.isBlocked = left < 0;
    this.#leave(fifo, left !== 0);
    return left > 0;
  }

  /** Slots that the engine thread has not processed. */
  #leftElsewhere(fifo: Fifo): number {
    const tail = this.#words[(fifo.pointer + L.INJECTION_TAIL_OFFSET) >>> 2] as number;
    // Slots whose completions are taken are processed, even if the engine thread has not yet stored its head.
    if (this.#words[(fifo.pointer + L.INJECTION_OLDEST_OFFSET) >>> 2] === tail) return 0;
    // SYNC processed (look): pairs with engineRun().
    fifo.seen = this.#kernel.loadWord(fifo.pointer + L.INJECTION_HEAD_OFFSET);
    return (tail - fifo.seen) | 0;
  }

  /** The callback of a slot is due. */
  #complete(fifo: Fifo, taken: number): void {
    const slot = taken & SLOT_MASK;
    const callback = fifo.callbacks[slot] as Callback;
    const cookie = fifo.cookies[slot];
    fifo.callbacks[slot] = undefined;
    fifo.cookies[slot] = undefined;
    fifo.pending--;
    this.#changeBusy(-1);
    // The last callback shall find the context drained, but the engine thread may not yet have stored its head.
    if (fifo.pending === 0 && !this.#engine.isOwn) this.#run(fifo);
    this.#completions.push(callback, cookie, resultOf(taken >>> L.COMPLETION_RESULT_SHIFT));
  }

  #fence(fifo: Fifo, onDone: Callback, cookie: unknown, always = false): Result {
    this.#words[fifo.staged] = L.DESCRIPTOR_FENCE;
    if (fifo.waiting.length === 0 && this.#completions.due <= this.#slotMask) {
      if (this.#kernel.submit(this.#map.job, fifo.pointer, true) === L.TRANSFER_DONE) {
        this.#count(onDone, undefined, cookie);
        return SUCCESS;
      }
    }
    return this.#inject(fifo, onDone, undefined, cookie, always) === L.TRANSFER_DONE ? SUCCESS : EAGAIN;
  }

  /** Puts the staged operation into the pending queue, from which it is injected as soon as there is room (C8). */
  #wait(
    fifo: Fifo,
    onLocal: Callback | undefined,
    onRemote: Callback | undefined,
    cookie: unknown,
    always: boolean,
  ): number {
    if (!always && !this.isUnbounded && this.#waitingBytes + L.DESCRIPTOR_SIZE > this.#waitingMax) return WAITING_FULL;
    this.#waitingBytes += L.DESCRIPTOR_SIZE;
    const words = this.#words.slice(fifo.staged, fifo.staged + L.DESCRIPTOR_WORDS);
    fifo.waiting.push({ words, onLocal, onRemote, cookie });
    this.#active |= fifo.bit;
    this.#changeBusy(1);
    return L.TRANSFER_DONE;
  }

  /** Injects waiting operations, in order, as far as there is room. */
  #flush(fifo: Fifo): void {
    for (let next = fifo.waiting.first; next !== undefined; next = fifo.waiting.first) {
      const { words, onLocal, onRemote, cookie } = next;
      this.#words.set(words, fifo.staged);
      this.#handle = Number.NaN; // the staged handle is overwritten
      if (!this.#injected(fifo, onLocal, onRemote, cookie)) return;
      fifo.waiting.shift();
      this.#waitingBytes -= L.DESCRIPTOR_SIZE;
      this.#changeBusy(-1);
      if (this.#engine.isOwn) this.#run(fifo);
    }
  }
}

/** The message that notifies a target of a put or rmw. */
function noticeOf(offset: number, bytes: number, handle: RegionHandle): Uint8Array {
  const words = new Int32Array([offset, bytes, 0, 0]);
  new Float64Array(words.buffer)[1] = handle;
  return new Uint8Array(words.buffer, 0, NOTICE_BYTES);
}

/** @throws PAMIR_INVAL */
export function checkCallbacks(onLocal: unknown, onRemote: unknown): void {
  if (onLocal !== undefined && typeof onLocal !== "function") {
    throw new PamiError("PAMIR_INVAL", `onLocal, or onDone, is ${show(onLocal)}, not a function`);
  }
  if (onRemote !== undefined && typeof onRemote !== "function") {
    throw new PamiError("PAMIR_INVAL", `onRemote is ${show(onRemote)}, not a function`);
  }
}

/** Throws the error of a transfer that shows without looking at the regions. */
function refuseTransfer(call: string, { local, localOffset = 0, remoteOffset = 0, bytes }: TransferParameters): never {
  if (!isWord(localOffset)) checkWord(call, "localOffset", localOffset);
  if (!isWord(remoteOffset)) checkWord(call, "remoteOffset", remoteOffset);
  if (bytes !== undefined) checkWord(call, "bytes", bytes);
  throw new PamiError("PAMIR_BOUNDS", `${call} at offset ${localOffset} of a local region of ${local.length}`);
}

/** Throws the error of an rmw that shows without looking at the regions. */
function refuseRmw(parameters: RmwParameters, fetches: boolean): never {
  const { operation, result, resultOffset = 0, remoteOffset = 0 } = parameters;
  if (fetches !== (result !== undefined)) {
    throw new PamiError("PAMIR_INVAL", `rmw ${operation} ${fetches ? "needs a result" : "has no result"}`);
  }
  if (!isWord(resultOffset)) checkWord("rmw", "resultOffset", resultOffset);
  checkWord("rmw", "remoteOffset", remoteOffset);
}

function isWord(value: unknown): boolean {
  return typeof value === "number" && value === value >>> 0;
}

/** Throws: a byte count or offset is no u32. */
function checkWord(call: string, name: string, value: unknown): never {
  throw new PamiError("PAMIR_INVAL", `${name} of a ${call} is ${show(value)}, not an integer from 0 to 4294967295`);
}

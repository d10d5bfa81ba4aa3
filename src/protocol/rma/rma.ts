// One-sided operations of one context: put, get, rmw and fence. Each call checks its arguments, and decides whether the
// operation is done at once, without a descriptor, or goes to the injection FIFO of its target.
import * as L from "../../../assembly/layout.js";
import { checkFunction } from "../../core/check.js";
import type { CompletionQueue } from "../../core/completion.js";
import type { Endpoint } from "../../core/endpoint.js";
import type { MemRegion } from "../../core/region.js";
import { type Callback, EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel } from "../../kernel/kernel.js";
import type { SlotTable } from "../../node/address.js";
import type { ContextParts } from "../base.js";
import { InjectionFifos } from "./injection-fifos.js";
import { Notification } from "./notification.js";
import type { PutParameters, RmwParameters } from "./parameters.js";
import type { PendingSpace } from "./pending-queue.js";
import { checkCallbacks, refuse, refuseRmw, refuseTransfer } from "./refusals.js";
import { RmwOperands } from "./rmw-operands.js";
import type { StagedTarget } from "./staged-target.js";

export class Rma {
  /** The progress source of the operations. */
  readonly fifos: InjectionFifos;
  readonly notices: Notification;
  readonly pending: PendingSpace;
  readonly #kernel: Kernel;
  readonly #words: Int32Array;
  readonly #addresses: SlotTable;
  readonly #job: number;
  readonly #completions: CompletionQueue;
  /** Slots of a FIFO. An operation is done at once only while fewer callbacks are due. */
  readonly #slots: number;
  readonly #target: StagedTarget;
  readonly #operands: RmwOperands;

  /** @param waitingMax bytes of descriptors that may wait for room */
  constructor(parts: ContextParts, waitingMax: number) {
    const { kernel, memory, map, addresses, completions } = parts;
    this.pending = { bytes: waitingMax, isUnbounded: false };
    this.fifos = new InjectionFifos(parts, this.pending);
    this.#target = this.fifos.target;
    this.notices = new Notification(parts, this.#target);
    this.#kernel = kernel;
    this.#words = memory.words;
    this.#addresses = addresses;
    this.#job = map.job;
    this.#completions = completions;
    this.#slots = map.slots;
    this.#operands = new RmwOperands(memory.words);
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
    const target = this.#target;
    const isAimed = notify === undefined || this.notices.check(call, to, notify);
    if (!isAimed || ((to !== target.to || remote !== target.handle) && !target.aim(to, remote)))
      return this.#addresses.refusal();
    if (local !== target.local) target.stageLocal("local", local);
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
    if (this.fifos.hasEnded[target.owner] !== 0) return SHUTDOWN;
    const { fifo } = target;
    const isClear = fifo.busy === 0 && this.#completions.due < this.#slots;
    const isShort = size <= L.SHORT_BYTES && notify === undefined;
    if (isClear && isShort && localOffset + size <= local.length && !local.closed) {
      const hasCallback = onLocal !== undefined || onRemote !== undefined;
      if (hasCallback) checkCallbacks(onLocal, onRemote);
      const from = target.pointer + localOffset;
      const isPut = call === "put";
      if (this.#kernel.moveNow(this.#job, target.index, target.generation, remoteOffset, from, size, isPut)) {
        if (hasCallback) this.#completions.pushDone(onLocal, onRemote, cookie);
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
        ? fifo.submit(onLocal, onRemote, cookie)
        : this.notices.submit(notify, size, onLocal, onRemote, cookie);
    if (wrong === L.TRANSFER_DONE) return SUCCESS;
    if (wrong > L.TRANSFER_DONE) refuse(call, wrong, size, [local.length, localOffset], parameters);
    return EAGAIN;
  }

  /** See `Context.rmw`. */
  rmw(parameters: RmwParameters): Result {
    const { to, remote, remoteOffset = 0, operation, type = "i32", value, test, onDone, cookie } = parameters;
    const { result, resultOffset = 0, notify } = parameters;
    const target = this.#target;
    // The commonest notification is a flag of the operation itself.
    const isTold = notify !== undefined && typeof notify !== "boolean";
    const isAimed = !isTold || this.notices.check("rmw", to, notify);
    if (!isAimed || ((to !== target.to || remote !== target.handle) && !target.aim(to, remote)))
      return this.#addresses.refusal();
    const operands = this.#operands;
    if (operation !== operands.operation || type !== operands.type) operands.lookUp(operation, type);
    const { code } = operands;
    const fetches = (code & L.RMW_FETCH) !== 0;
    if (fetches && result !== undefined && result !== target.local) target.stageLocal("result", result);
    if (
      fetches !== (result !== undefined) ||
      typeof resultOffset !== "number" ||
      typeof remoteOffset !== "number" ||
      resultOffset !== resultOffset >>> 0 ||
      remoteOffset !== remoteOffset >>> 0
    ) {
      refuseRmw(parameters, fetches);
    }
    if (this.fifos.hasEnded[target.owner] !== 0) return SHUTDOWN;
    const { fifo } = target;
    const words = this.#words;
    const at = fifo.staged;
    // The case of most programs, without a BigInt.
    const isWord = typeof value === "number" && value === (value | 0);
    const isPlain = operands.isPlain && isWord && test === undefined;
    // Without a callback, an rmw waits for nothing, and needs no descriptor unless an argument is wrong.
    const isQuick = isPlain && onDone === undefined && notify === undefined;
    if (isQuick && this.#changes(remoteOffset, code, value, result, resultOffset)) return SUCCESS;
    if (isPlain) words[at + 8] = value;
    else operands.stage(at, value, test);
    words[at] = L.DESCRIPTOR_RMW;
    words[at + 1] = notify === true ? code | L.RMW_NOTIFY : code;
    words[at + 4] = resultOffset;
    words[at + 7] = remoteOffset;
    const bytes = (code & L.RMW_WIDE) !== 0 ? 8 : 4;
    const wrong = isTold
      ? this.notices.submit(notify, bytes, onDone, undefined, cookie)
      : fifo.submit(onDone, undefined, cookie);
    if (wrong === L.TRANSFER_DONE) return SUCCESS;
    if (wrong > L.TRANSFER_DONE) refuse("rmw", wrong, bytes, [result?.length ?? 0, resultOffset], parameters);
    return EAGAIN;
  }

  /** Changes a word at once. False: an argument is wrong, and nothing is done. */
  #changes(offset: number, code: number, value: number, result: MemRegion | undefined, resultOffset: number): boolean {
    const target = this.#target;
    let at = 0;
    if (result !== undefined) {
      if (result.closed || (resultOffset & 3) !== 0 || resultOffset + 4 > result.length) return false;
      at = target.pointer + resultOffset;
    }
    return this.#kernel.changeNow(this.#job, target.index, target.generation, offset, code, value, at) !== 0;
  }

  /** See `Context.fence`. */
  fence(to: Endpoint, onDone: Callback, cookie: unknown): Result {
    checkFunction("done", onDone);
    return this.#target.fifoOf(to).fence(onDone, cookie) === L.TRANSFER_DONE ? SUCCESS : EAGAIN;
  }

  /** See `Context.fenceAll`. */
  fenceAll(onDone: Callback, cookie: unknown): Result {
    checkFunction("done", onDone);
    const { all } = this.fifos;
    let left = all.length;
    let worst: Result = SUCCESS;
    const one: Callback = (_, result) => {
      if (result !== SUCCESS) worst = result;
      if (--left === 0) onDone(cookie, worst);
    };
    // A fence always has space to wait: it is one descriptor, and there is one for each FIFO.
    for (const fifo of all) fifo.fence(one, undefined, true);
    return SUCCESS;
  }
}

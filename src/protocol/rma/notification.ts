// How a put or rmw notifies its target once the operation is done: by a message to a dispatch id, or by the change of a word.
// Both come behind the operation, and in the order of the operations to one endpoint.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import type { RegionHandle } from "../../core/region.js";
import { type Callback, SUCCESS } from "../../core/result.js";
import type { ContextParts } from "../base.js";
import type { NotifyWord } from "./parameters.js";
import { checkCallbacks, checkWord, isWord, refuse } from "./refusals.js";
import { checkOperand, lowOf, rmwCode } from "./rmw.js";
import type { StagedTarget } from "./staged-target.js";

/** Bytes of the message that notifies the target of a put or rmw. */
const NOTICE_BYTES = 16;

const NO_HEADER = new Uint8Array(0);

export class Notification {
  /** For a typed transfer of several operations: the offset and bytes in the notification, instead of the last operation's. */
  noticed: { readonly offset: number; readonly bytes: number } | undefined;
  readonly #parts: ContextParts;
  readonly #target: StagedTarget;

  constructor(parts: ContextParts, target: StagedTarget) {
    this.#parts = parts;
    this.#target = target;
  }

  /** Throws unless `notify` is valid for a put or rmw to `to`. False: the endpoint has no slot now. */
  check(call: string, to: Endpoint, notify: unknown): boolean {
    if (call === "get") throw new PamiError("PAMIR_INVAL", "get has no notify: its bytes come to this task");
    if (typeof notify === "number") {
      if (notify !== (notify & L.DISPATCH_ID_MAX)) checkInteger("notify", notify, 0, L.DISPATCH_ID_MAX);
      return true;
    }
    if (typeof notify !== "object" || notify === null) {
      throw new PamiError("PAMIR_INVAL", `notify of a ${call} is ${show(notify)}, no dispatch id and no word`);
    }
    if (!this.#stageWord(to, notify as NotifyWord)) return false;
    const wrong = this.#target.fifo.look();
    if (wrong === L.TRANSFER_LATER) return true;
    const { remote, offset = 0 } = notify as NotifyWord;
    refuse(`notify of a ${call}`, wrong, 4, [0, 0], { remote, remoteOffset: offset });
  }

  /**
   * Stages the change of the word that notifies of a put or rmw. The change overwrites the operation that was staged in the
   * FIFO. False: the endpoint has no slot now.
   */
  #stageWord(to: Endpoint, word: NotifyWord, begun = false): boolean {
    const { remote, offset = 0, operation = "add", value = 1 } = word;
    const target = this.#target;
    if (!target.aim(to, remote, begun)) return false;
    target.drop();
    if (!isWord(offset)) checkWord("notify", "offset", offset);
    checkOperand("value of notify", value, "i32");
    const code = rmwCode(operation, "i32");
    if ((code & (L.RMW_FETCH | L.RMW_COMPARE)) !== 0) {
      throw new PamiError("PAMIR_INVAL", `operation of a notify is ${show(operation)}: not set, add, or, and, xor`);
    }
    const { words } = this.#parts.memory;
    const at = target.fifo.staged;
    words[at] = L.DESCRIPTOR_RMW;
    words[at + 1] = code | L.RMW_NOTIFY | L.RMW_BEHIND;
    words[at + 7] = offset;
    words[at + 8] = lowOf(value);
    return true;
  }

  /**
   * As InjectionFifo.submit(), for the staged put or rmw of so many bytes, which notifies the target when it is done.
   * @param onDone onLocal, or an rmw's onDone
   */
  submit(
    notify: number | NotifyWord,
    bytes: number,
    onDone: Callback | undefined,
    onRemote: Callback | undefined,
    cookie: unknown,
  ): number {
    checkCallbacks(onDone, onRemote);
    const { fifo, to, handle } = this.#target;
    const { noticed } = this;
    const { memory, completions, tell } = this.#parts;
    const offset = noticed?.offset ?? (memory.words[fifo.staged + 7] as number);
    const size = noticed?.bytes ?? bytes;
    // An rmw also goes behind all earlier operations, which keeps notifications in order.
    const result = fifo.submitNow();
    if (result === L.TRANSFER_DONE) {
      completions.pushDone(onDone, onRemote, cookie);
      if (typeof notify === "number") tell(to, notify, NO_HEADER, noticeOf(offset, size, handle));
      else {
        this.#stageWord(to, notify, true);
        fifo.perform(L.SLICE_BYTES);
      }
      return result;
    }
    if (result !== L.TRANSFER_LATER) return result;
    if (typeof notify !== "number") {
      const injected = fifo.inject(onDone, onRemote, cookie);
      if (injected !== L.TRANSFER_DONE) return injected;
      this.#stageWord(to, notify, true);
      return fifo.inject(undefined, undefined, undefined, true);
    }
    const told: Callback = (_, came) => {
      if (came === SUCCESS) tell(to, notify, NO_HEADER, noticeOf(offset, size, handle));
      onRemote?.(cookie, came);
    };
    return fifo.inject(onDone, told, cookie);
  }
}

/** The message that notifies a target of a put or rmw. */
function noticeOf(offset: number, bytes: number, handle: RegionHandle): Uint8Array {
  const words = new Int32Array([offset, bytes, 0, 0]);
  new Float64Array(words.buffer)[1] = handle;
  return new Uint8Array(words.buffer, 0, NOTICE_BYTES);
}

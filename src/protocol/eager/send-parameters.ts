// The parameters of a send.
import type { Keys } from "../../core/check.js";
import type { Endpoint } from "../../core/endpoint.js";
import type { DispatchId } from "../../core/message/codec.js";
import type { Callback } from "../../core/result.js";
import type { TransferType } from "../../core/transfer-type.js";
import type { AbortSignalLike } from "../../support/like.js";

/** Parameters of `context.send`, which reads them before it returns, so that one object can serve every call. */
export interface SendParameters {
  /** Target endpoint. */
  to: Endpoint;
  /** Dispatch id at the target. */
  dispatch: number;
  /** Header of at most 65,535 bytes. The caller may reuse it when `send` returns. */
  header?: ArrayBufferView | null | undefined;
  /**
   * Payload of any size. The caller may reuse it at `onLocal`, or without `onLocal` when `send` returns. If the payload's
   * buffer is detached (transferred) or shrunk before all bytes were sent, the message is broken off: both callbacks get ERROR,
   * no handler gets the message, and a `receive()` that has begun ends with ERROR.
   */
  payload?: ArrayBufferView | null | undefined;
  /** Called in a later `advance()`, when the caller may reuse `payload`. */
  onLocal?: Callback | undefined;
  /** Called in a later `advance()`, when the message is in the target's reception FIFO, but not yet dispatched. */
  onRemote?: Callback | undefined;
  /** Value that both callbacks get. */
  cookie?: unknown;
  /** `false`: without room, return EAGAIN instead of using the pending queue (default true). */
  queue?: boolean | undefined;
  /**
   * `true` offers the payload: the payload stays in place until the target's handler chooses a destination by `receive()`, and
   * then moves there directly. Needs `onLocal`. Without memory for the transfer, the payload is sent as with `false`.
   */
  rendezvous?: boolean | undefined;
  /**
   * `true` gives away the whole region that holds the payload, without a copy. Once the send is accepted (SUCCESS), the
   * region is closed here and belongs to the target. Its handler reads the payload in place, and may `keep()` it. The
   * region's `handle` must never have been read, and no one-sided operation may have named the region. To a task that shares
   * no memory, the payload is copied.
   */
  transfer?: boolean | undefined;
  /**
   * Aborting the signal gives up an offered payload: the callbacks of the send get CANCELED, unless the whole payload has
   * arrived.
   */
  signal?: AbortSignalLike | undefined;
  /**
   * Type of the elements in `payload`, from its begin on. Only the data of the elements is sent, packed before `send` returns:
   * the caller may then reuse the payload. Not with `transfer`.
   */
  type?: TransferType | undefined;
  /** With a `type`: number of elements (default 1). */
  count?: number | undefined;
}

/** Parameters of `context.send` to a typed dispatch id. */
export interface TypedSendParameters<Request, Reply = void>
  extends Omit<SendParameters, "dispatch" | "payload" | "type" | "count"> {
  /** Dispatch id at the target. */
  dispatch: DispatchId<Request, Reply>;
  /** Value that the dispatch id's `request` codec encodes before `send` returns. */
  payload: Request;
}

export const SEND_KEYS: Keys<SendParameters> = {
  to: true,
  dispatch: true,
  header: true,
  payload: true,
  onLocal: true,
  onRemote: true,
  cookie: true,
  queue: true,
  rendezvous: true,
  transfer: true,
  signal: true,
  type: true,
  count: true,
};

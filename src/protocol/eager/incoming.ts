// The record at hand: which message it begins, and where the parts of the message lie.
import * as L from "../../../assembly/layout.js";
import { bodyBytes, headerSpace } from "../../core/message/message.js";
import type { PayloadOffer } from "../rendezvous/receiver.js";

/** One object for each context, filled anew for each record that begins a message and takes no short path. */
export class Incoming {
  /** Ordinal of the endpoint that sent the message. */
  origin = 0;
  meta = 0;
  /** Dispatch id of the handler; for a call, `meta` has DISPATCH_ID_CALL instead. */
  id = 0;
  isCall = false;
  /** Pointers to the record's body, and to the header in the body. */
  body = 0;
  header = 0;
  headerBytes = 0;
  payloadBytes = 0;
  /** Bytes of header and payload that the record has, and that come through the lane in all. */
  here = 0;
  end = 0;
  /** Pointer to a payload in a buffer; 0: the payload lies behind the header, or is not here. */
  place = 0;
  /** The offered payload, if any. */
  request: PayloadOffer | undefined;

  /** Reads a record of KIND_MESSAGE, KIND_FIRST, KIND_BUFFER, or of KIND_RTS with its `request`. */
  read(words: Int32Array, kind: number, meta: number, body: number, length: number): void {
    const word = (pointer: number): number => (words[pointer >>> 2] as number) >>> 0;
    const inBuffer = kind === L.KIND_BUFFER;
    const isOffer = kind === L.KIND_RTS;
    let prefix = 0;
    if (kind === L.KIND_FIRST) prefix = L.FIRST_PREFIX_SIZE;
    else if (inBuffer) prefix = L.BUFFER_SIZE;
    else if (isOffer) prefix = L.RTS_SIZE;
    const id = meta & L.META_DISPATCH_MASK;
    const headerBytes = meta >>> L.META_HEADER_SHIFT;
    const here = length - prefix;
    // The first word of a FIRST record, and of an RTS, is the length of the payload.
    let payloadBytes = Math.max(0, length - headerSpace(headerBytes));
    if (prefix > 0) payloadBytes = word(inBuffer ? body + L.BUFFER_BYTES_OFFSET : body);
    this.meta = meta;
    // No call is offered.
    this.isCall = id === L.DISPATCH_ID_CALL && !isOffer;
    this.id = this.isCall ? word(body + prefix + 4) & L.DISPATCH_ID_MAX : id;
    this.body = body;
    this.header = body + prefix;
    this.headerBytes = headerBytes;
    this.payloadBytes = payloadBytes;
    this.here = here;
    this.end = inBuffer || isOffer ? here : bodyBytes(headerBytes, payloadBytes);
    this.place = inBuffer ? word(body + L.BUFFER_PLACE_OFFSET) : 0;
  }
}

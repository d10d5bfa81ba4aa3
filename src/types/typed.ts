// Typed transfers: what send(), put(), get() and receive() do with a type. Data is packed into the job's memory once, and goes
// from there as any other payload does. Within one memory, a put or get moves it from place to place at once.
import { HEADER_BYTES_MAX, RECV_IMMEDIATE_MAX } from "../../assembly/layout.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { bodyBytes, type Message } from "../core/message/message.js";
import type { ReceiveOptions } from "../core/message/pacing.js";
import { generationOf, indexOf, type MemRegion } from "../core/region.js";
import { type Callback, ERROR, type Result, SUCCESS } from "../core/result.js";
import { type Carrier, carrierOf } from "../core/transfer-type.js";
import { isRemote, UNBOUND } from "../node/address.js";
import type { SendParameters } from "../protocol/eager/send-parameters.js";
import type { PutParameters } from "../protocol/rma/parameters.js";
import { checkCallbacks } from "../protocol/rma/refusals.js";
import type { Rma } from "../protocol/rma/rma.js";
import type { Mover } from "./mover.js";
import { runCount, runsOf } from "./type-loops.js";
import { BYTES_MAX, checkElements, checkTarget, countBytes, spanFor, type TypeShape, viewBytes } from "./type-shape.js";

/** The calls of a context that typed transfers come down to. */
interface Calls {
  send(parameters: SendParameters): Result;
  put(parameters: PutParameters): Result;
  get(parameters: PutParameters): Result;
}

/** Most runs of the remote side of a put or get to another node: each is a descriptor, and takes 64 bytes while it waits. */
const AWAY_RUNS_MAX = 16_384;

/** A complete type. @param name what it is called in an error @throws PAMIR_INVAL */
export function shapeOf(name: string, type: unknown): TypeShape {
  const carrier = carrierOf(name, type);
  if (!(carrier instanceof TypedCarrier)) {
    throw new PamiError("PAMIR_INVAL", `${name} is ${show(type)}, not a type of createType()`);
  }
  return carrier.shape(name);
}

export class TypedCarrier implements Carrier {
  readonly #mover: Mover;
  readonly #shape: (name: string) => TypeShape;

  /** @param shape the type, once it is complete; throws PAMIR_INVAL before */
  constructor(mover: Mover, shape: (name: string) => TypeShape) {
    this.#mover = mover;
    this.#shape = shape;
  }

  shape(name: string): TypeShape {
    return this.#shape(name);
  }

  send(given: SendParameters, context: Calls): Result {
    const shape = this.shape("type of send()");
    const { type: _, count = 1, ...parameters } = given;
    const bytes = countBytes("send", shape, count);
    const elements = viewBytes("payload of send()", parameters.payload ?? new Uint8Array());
    checkElements("send", shape, bytes, elements.length);
    if (parameters.transfer !== undefined && parameters.transfer !== false) {
      throw new PamiError("PAMIR_INVAL", "transfer of a payload with a type: it is packed, and its region stays here");
    }
    if (shape.isContiguous) return context.send({ ...parameters, payload: elements.subarray(0, bytes) });
    const { header, onLocal } = parameters;
    const headerBytes = header?.byteLength ?? 0;
    const { staging } = this.#mover;
    // Sent at once, or copied by the pending queue. With onLocal the queue would not copy.
    const isSmall = bytes <= staging.length && bodyBytes(headerBytes, bytes) <= RECV_IMMEDIATE_MAX;
    if (isSmall && onLocal === undefined && parameters.rendezvous !== true) {
      const payload = staging.subarray(0, bytes);
      this.#mover.move(shape, payload, elements, 0, bytes, true);
      return context.send({ ...parameters, payload });
    }
    if (headerBytes > HEADER_BYTES_MAX) return context.send({ ...parameters, payload: undefined });
    return this.#sendPacked(shape, elements, bytes, parameters, context);
  }

  /** Packs into a region of its own, which goes to the target as it is. */
  #sendPacked(
    shape: TypeShape,
    elements: Uint8Array,
    bytes: number,
    parameters: SendParameters,
    context: Calls,
  ): Result {
    const { onLocal, rendezvous } = parameters;
    const isOffered = rendezvous === true;
    const region = this.#regionIfAny(bytes);
    const payload = region?.bytes ?? new Uint8Array(bytes);
    this.#mover.move(shape, payload, elements, 0, bytes, true);
    const isGiven = region !== undefined && !isOffered;
    // Without onLocal, the pending queue would copy what is already a copy.
    const told: Callback = (cookie, result) => {
      region?.close();
      onLocal?.(cookie, result);
    };
    let result: Result | undefined;
    try {
      // An offered payload without onLocal is refused.
      const ending = isGiven || (isOffered && onLocal === undefined) ? onLocal : told;
      result = context.send({ ...parameters, payload, transfer: isGiven, onLocal: ending });
      return result;
    } finally {
      if (result !== SUCCESS) region?.close();
    }
  }

  receive(
    message: Message,
    destination: ArrayBufferView,
    onComplete: Callback | undefined,
    cookie: unknown,
    options: ReceiveOptions,
  ): void {
    const shape = this.shape("type of receive()");
    checkTarget("type of receive()", shape);
    const elements = viewBytes("destination of receive()", destination);
    const { payloadBytes } = message;
    checkElements("receive", shape, payloadBytes, elements.length);
    const { type: _, ...rest } = options;
    if (shape.isContiguous) {
      message.receive(elements, onComplete, cookie, rest);
      return;
    }
    if (message.immediate) {
      this.#mover.move(shape, message.payload, elements, 0, payloadBytes, false);
      if (onComplete !== undefined) message.complete(onComplete, cookie);
      return;
    }
    const region = payloadBytes > 0 ? this.#regionIfAny(payloadBytes) : undefined;
    const packed = region?.bytes ?? new Uint8Array(payloadBytes);
    const owner = this.#mover.task.regions.stateOf(elements);
    const landed: Callback = (given, result) => {
      try {
        // The destination may have been detached meanwhile, or its region closed.
        const isThere = owner?.closed !== true && spanFor(shape, payloadBytes) <= elements.byteLength;
        if (result === SUCCESS && isThere) this.#mover.move(shape, packed, elements, 0, payloadBytes, false);
        onComplete?.(given, result === SUCCESS && !isThere ? ERROR : result);
      } finally {
        region?.close();
      }
    };
    message.receive(packed, landed, cookie, rest);
  }

  transfer(call: "put" | "get", given: PutParameters, context: Calls, rma: Rma): Result {
    const { localType, remoteType, ...parameters } = given;
    const local = localType === undefined ? undefined : shapeOf(`localType of a ${call}`, localType);
    const remote = remoteType === undefined ? undefined : shapeOf(`remoteType of a ${call}`, remoteType);
    const into = call === "put" ? remote : local;
    if (into !== undefined) checkTarget(`${call === "put" ? "remoteType" : "localType"} of a ${call}`, into);
    const { bytes = ((local ?? remote) as TypeShape).bytes, localOffset = 0, remoteOffset = 0 } = parameters;
    checkInteger(`bytes of a ${call}`, bytes, 0, BYTES_MAX);
    checkInteger(`localOffset of a ${call}`, localOffset, 0, BYTES_MAX);
    checkInteger(`remoteOffset of a ${call}`, remoteOffset, 0, BYTES_MAX);
    const { to, local: region, remote: handle, notify, onLocal, onRemote } = parameters;
    checkCallbacks(onLocal, onRemote);
    if (notify !== undefined && !rma.notices.check(call, to, notify)) return this.#mover.task.addresses.refusal();
    // Checks the endpoint and both regions, and tells whether the target goes on.
    const begun = context[call]({ to, local: region, remote: handle, bytes: 0 });
    if (begun !== SUCCESS) return begun;
    const localSpan = spanFor(local, bytes);
    if (localOffset + localSpan > region.length) {
      throw new PamiError(
        "PAMIR_BOUNDS",
        `${call}: the elements take ${localSpan} bytes from offset ${localOffset} of a local region of ${region.length}`,
      );
    }
    const elements = region.bytes.subarray(localOffset, localOffset + localSpan);
    const transfer: Typed = {
      call,
      local,
      remote,
      bytes,
      localOffset,
      remoteOffset,
      elements,
      parameters,
      context,
      rma,
    };
    const { addresses, map } = this.#mover.task;
    const ordinal = addresses.ordinalOf(to);
    const isHere = ordinal !== UNBOUND && !isRemote(map, ordinal);
    return isHere ? this.#transferNow(transfer) : this.#transferAway(transfer);
  }

  /** Moves the data within this memory. Callbacks and notifications are those of a transfer of no bytes behind it. */
  #transferNow(transfer: Typed): Result {
    const { call, local, remote, bytes, remoteOffset, elements, parameters, context, rma } = transfer;
    const { kernel, map, memory } = this.#mover.task;
    const { remote: handle, notify, onLocal, onRemote } = parameters;
    const span = spanFor(remote, bytes);
    const place = kernel.placeOf(map.job, indexOf(handle), generationOf(handle), remoteOffset, span);
    if (place === 0) {
      throw new PamiError(
        "PAMIR_BOUNDS",
        `${call}: the elements take ${span} bytes from offset ${remoteOffset} of the remote region, and it ends before`,
      );
    }
    const there = memory.bytes.subarray(place, place + span);
    if (call === "put") this.#mover.convert(local, elements, remote, there, bytes);
    else this.#mover.convert(remote, there, local, elements, bytes);
    if (notify === undefined && onLocal === undefined && onRemote === undefined) return SUCCESS;
    rma.notices.noticed = { offset: remoteOffset, bytes };
    try {
      return context[call]({ ...parameters, localOffset: 0, bytes: 0 });
    } finally {
      rma.notices.noticed = undefined;
    }
  }

  /** One transfer for each run of the remote side, which its node's engine carries. */
  #transferAway(transfer: Typed): Result {
    const { call, local, remote, bytes, localOffset, remoteOffset, elements, parameters, context, rma } = transfer;
    const elementsOfRemote = remote === undefined ? 0 : Math.ceil(bytes / remote.bytes);
    const count = remote === undefined || remote.isContiguous ? 1 : elementsOfRemote * runCount(remote.loops);
    if (count > AWAY_RUNS_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `${call} to another node: the remote elements have ${count} runs, the limit is ${AWAY_RUNS_MAX}: send() them`,
      );
    }
    const isStaged = local !== undefined && !local.isContiguous && bytes > 0;
    const stage = isStaged ? this.#mover.task.regions.create(bytes) : undefined;
    if (stage !== undefined && call === "put")
      this.#mover.move(local as TypeShape, stage.bytes, elements, 0, bytes, true);
    const { onLocal, onRemote, cookie, notify, to, local: region, remote: handle } = parameters;
    const landed: Callback = (given, result) => {
      const isClosed = call === "get" && region.closed;
      if (result === SUCCESS && call === "get" && !isClosed) {
        this.#mover.move(local as TypeShape, stage?.bytes as Uint8Array, elements, 0, bytes, false);
      }
      stage?.close();
      onLocal?.(given, result === SUCCESS && isClosed ? ERROR : result);
    };
    const callbacks = { onLocal: stage === undefined ? onLocal : landed, onRemote, cookie };
    // In debug mode, a get has no such parameter.
    const ending = notify === undefined ? callbacks : { ...callbacks, notify };
    const [from, base] = stage === undefined ? [region, localOffset] : [stage, 0];
    const pieces = piecesOf(remote, bytes);
    let result: Result | undefined;
    rma.notices.noticed = { offset: remoteOffset, bytes };
    try {
      for (let i = 0; i < pieces.length; i++) {
        const { at, offset, bytes: size } = pieces[i] as Piece;
        const place = { localOffset: base + at, remoteOffset: remoteOffset + offset, bytes: size };
        const last = i === pieces.length - 1 ? ending : undefined;
        // Once the first is accepted, the others are, so that a later fence has them all before it.
        rma.pending.isUnbounded = i > 0;
        result = context[call]({ to, local: from, remote: handle, ...place, ...last });
        if (result !== SUCCESS) break;
      }
      return result as Result;
    } finally {
      rma.notices.noticed = undefined;
      rma.pending.isUnbounded = false;
      if (result !== SUCCESS) stage?.close();
    }
  }

  /** A region of this task, if there is memory for it. */
  #regionIfAny(bytes: number): MemRegion | undefined {
    try {
      return this.#mover.task.regions.create(bytes);
    } catch (error) {
      const code = error instanceof PamiError ? error.code : "";
      if (code === "PAMIR_NO_MEMORY" || code === "PAMIR_BUSY") return undefined;
      throw error;
    }
  }
}

/** A put or get that has been checked. */
interface Typed {
  readonly call: "put" | "get";
  readonly local: TypeShape | undefined;
  readonly remote: TypeShape | undefined;
  readonly bytes: number;
  readonly localOffset: number;
  readonly remoteOffset: number;
  /** Of the local region, from `localOffset` on. */
  readonly elements: Uint8Array;
  readonly parameters: PutParameters;
  readonly context: Calls;
  readonly rma: Rma;
}

/** A run of the remote side: its place there, and in the stream. */
interface Piece {
  readonly offset: number;
  readonly at: number;
  readonly bytes: number;
}

/**
 * The runs of the remote side. The one that ends behind all others comes last: if a run is not within the region, that one is
 * not, and its callbacks tell so.
 */
function piecesOf(remote: TypeShape | undefined, bytes: number): readonly Piece[] {
  if (remote === undefined || bytes === 0) return [{ offset: 0, at: 0, bytes }];
  let at = 0;
  const pieces = runsOf(remote.loops, remote.extent, bytes).map((run) => {
    const piece = { offset: run.offset, at, bytes: run.bytes };
    at += run.bytes;
    return piece;
  });
  const end = (piece: Piece): number => piece.offset + piece.bytes;
  const last = pieces.reduce((most, piece) => (end(piece) > end(most) ? piece : most));
  return [...pieces.filter((piece) => piece !== last), last];
}

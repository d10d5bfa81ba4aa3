// Runs a schedule: posts the transfers of a round, and goes on to the next round when all transfers are over. Messages that
// come before their round wait here, as copies: only short messages, since a long transfer begins once its receiver is ready.
//
// A long transfer goes in fragments. The receiver's READY says how many bytes it awaits, and how many of them may come now; a
// further READY follows each fragment. So a transfer of any length has two fragments on their way. A sender without a READY
// says how many bytes it has. A receiver that awaits a short transfer, or none, sends no READY, and fails with both lengths.
import { COLLECTIVE_DATA, COLLECTIVE_READY } from "../../../assembly/layout.js";
import { textOf } from "../../core/error.js";
import { ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Arrival } from "../../protocol/late-handler.js";
import { copyInto, copyIntoIfThere } from "../../support/copy.js";
import { CollectiveOperation, type OperationBuffers } from "../operation.js";
import type { Piece, Scratch } from "../scratch.js";
import { EAGER_BYTES, FRAGMENT_BYTES, FRAGMENTS_AHEAD } from "./channel.js";
import { part, type Schedule, type Span, type Transfer } from "./schedule.js";

/** As many early messages are kept without a look at the schedule. */
const EARLY_MIN = 64;

/** The part of a geometry that an execution needs. */
export interface ExecutionHost {
  readonly size: number;
  readonly scratch: Scratch;
  /** Whether a member has ended, and all its messages are delivered. */
  isGone(rank: number): boolean;
  /** Has `ended()` called when a member ends that may be in another node. */
  watch(rank: number): void;
  send(kind: number, rank: number, operation: CollectiveOperation, tag: number, payload?: Uint8Array): Result;
  sendLong(rank: number, operation: CollectiveOperation, tag: number, payload: Uint8Array, onSent: () => void): void;
  /** The operation is over. */
  over(operation: CollectiveOperation, result: Result): void;
  /** The operation has failed here, so it fails for all members. */
  failed(operation: CollectiveOperation, result: Result, why: string): void;
  /** Nothing is being sent any more of an operation that has failed. */
  sent(operation: CollectiveOperation): void;
}

/** A transfer that a member awaits. */
interface Incoming {
  readonly span: Span;
  /** Bytes that have come. */
  got: number;
}

/** A long transfer to another member. */
interface Outgoing {
  readonly span: Span;
  /** Bytes that were given to the transport; and the bytes that the transport still has. */
  next: number;
  sending: number;
}

/** The contents of a receiver's READY, in bytes. */
interface Ready {
  readonly awaited: number;
  readonly upTo: number;
}

export class Execution extends CollectiveOperation {
  readonly isMutual = false;
  readonly isPolling = false;
  readonly #host: ExecutionHost;
  /** The operation named in messages to the geometry: this execution, or the operation of which it is a part. */
  readonly #operation: CollectiveOperation;
  readonly #onOver: () => void;
  #schedule: Schedule;
  readonly buffers: OperationBuffers;
  #piece: Piece | undefined;
  #round = -1;
  /** Transfers of this round that are not over, and 1 while they are being posted. */
  #left = 0;
  /** Long messages that are being sent. */
  #sending = 0;
  /** Receives of this round that are awaited, and sends of which the receiver does not await all bytes yet, by key. */
  readonly #awaited = new Map<number, Incoming>();
  readonly #held = new Map<number, Outgoing>();
  /** Messages that have come before their round, by key: bytes, or a receiver's READY. */
  readonly #early = new Map<number, Uint8Array>();
  readonly #ready = new Map<number, Ready>();
  /** Bytes of long transfers, as announced by their senders. */
  readonly #announced = new Map<number, number>();

  /**
   * @param operation the operation of which this execution is a part, which passes the schedule to begin() @param onOver called
   * at the end of the execution
   */
  constructor(
    host: ExecutionHost,
    schedule: Schedule,
    buffers: OperationBuffers,
    operation?: CollectiveOperation,
    onOver = (): void => host.over(this, SUCCESS),
  ) {
    super();
    this.#host = host;
    this.#operation = operation ?? this;
    this.#onOver = onOver;
    this.#schedule = schedule;
    this.buffers = buffers;
  }

  /** Begins. The execution may be over at once. */
  begin(schedule = this.#schedule): void {
    this.#schedule = schedule;
    const { scratchBytes } = schedule;
    try {
      if (scratchBytes > 0) this.#piece = this.#host.scratch.takeAnywhere(scratchBytes);
    } catch (error) {
      this.#failed(ENOMEM, (error as Error).message);
      return;
    }
    this.#next();
  }

  override get isSending(): boolean {
    return this.#sending > 0;
  }

  lookBeforeSleep(): boolean {
    return false;
  }

  advance(): void {}

  /** A message of this operation has come. */
  came(kind: number, rank: number, arrival: Arrival, tag: number): void {
    if (this.#operation.isStopped) return;
    const key = this.#key(rank, tag);
    if (kind === COLLECTIVE_READY) {
      this.#cameReady(rank, tag, lengthsIn(arrival));
      return;
    }
    const awaited = this.#awaited.get(key);
    if (awaited !== undefined) this.#take(awaited, arrival.payload, rank, tag);
    // A long transfer comes when this member is ready for it, and so never early.
    else if (arrival.payloadBytes <= EAGER_BYTES) this.#keep(this.#early, key, arrival.payload.slice());
  }

  /**
   * Keeps an early message, unless more messages have come than all rounds await. A tag is any number that a member has sent.
   */
  #keep<Value>(kept: Map<number, Value>, key: number, value: Value): void {
    if (kept.size >= EARLY_MIN && kept.size >= transfersOf(this.#schedule)) return;
    kept.set(key, value);
  }

  #cameReady(rank: number, tag: number, { sent, awaited, upTo }: Lengths): void {
    const key = this.#key(rank, tag);
    if (sent !== undefined) {
      const incoming = this.#awaited.get(key);
      if (incoming === undefined) this.#keep(this.#announced, key, sent);
      else this.#isAsAwaited(rank, sent, incoming.span.bytes);
      return;
    }
    const ready = { awaited, upTo };
    const held = this.#held.get(key);
    if (held === undefined) this.#keep(this.#ready, key, ready);
    else this.#sendUpTo(rank, tag, held, ready);
  }

  override lengths(kind: number, rank: number, arrival: Arrival, tag: number): string {
    const isReady = kind === COLLECTIVE_READY && lengthsIn(arrival).sent === undefined;
    return describeLengths(kind, rank, arrival, this.#bytesOf(isReady ? "sends" : "receives", this.#key(rank, tag)));
  }

  /** Bytes of a transfer; 0: there is none. */
  #bytesOf(side: "sends" | "receives", key: number): number {
    for (const round of this.#schedule.rounds) {
      const found = round[side].find(({ peer, tag }) => this.#key(peer, tag) === key);
      if (found !== undefined) return found.span.bytes;
    }
    return 0;
  }

  ended(rank: number): void {
    if (this.#operation.isStopped) return;
    for (const key of [...this.#awaited.keys(), ...this.#held.keys()]) {
      if (key % this.#host.size !== rank) continue;
      this.#failed(SHUTDOWN, "");
      return;
    }
    // Without a look at later rounds, this member would hear of the mismatch only once the other members have come to those
    // rounds.
    const { rounds } = this.#schedule;
    for (let place = this.#round + 1; place < rounds.length; place++) {
      const { receives, sends } = rounds[place] as Schedule["rounds"][number];
      const isMissing = receives.some(({ peer, tag }) => peer === rank && !this.#early.has(this.#key(peer, tag)));
      if (!isMissing && !sends.some(({ peer, span }) => peer === rank && span.bytes > EAGER_BYTES)) continue;
      this.#failed(SHUTDOWN, "");
      return;
    }
  }

  awaited(): number[] {
    return [...this.#awaited.keys(), ...this.#held.keys()].map((key) => key % this.#host.size);
  }

  release(): void {
    if (this.#piece !== undefined) this.#host.scratch.giveBack(this.#piece);
    this.#piece = undefined;
    this.#awaited.clear();
    this.#held.clear();
    this.#early.clear();
    this.#ready.clear();
    this.#announced.clear();
  }

  #key(rank: number, tag: number): number {
    return tag * this.#host.size + rank;
  }

  /** Begins the next round, and later rounds while each is over at once. */
  #next(): void {
    while (!this.#operation.isStopped) {
      this.#round++;
      const round = this.#schedule.rounds[this.#round];
      if (round === undefined) {
        if (this.#isAllTaken()) this.#onOver();
        return;
      }
      this.#left = 1;
      for (const receive of round.receives) if (!this.#operation.isStopped) this.#receive(receive);
      for (const send of round.sends) if (!this.#operation.isStopped) this.#send(send);
      if (this.#operation.isStopped || --this.#left > 0) return;
      if (!this.#runLocals()) return;
    }
  }

  /** Fails if a member has sent or awaited bytes in a transfer of which this member knows nothing. */
  #isAllTaken(): boolean {
    for (const [key, { length }] of this.#early) return this.#isAsAwaited(key % this.#host.size, length, 0);
    for (const [key, sent] of this.#announced) return this.#isAsAwaited(key % this.#host.size, sent, 0);
    for (const [key, { awaited }] of this.#ready) {
      return this.#isAsSent(key % this.#host.size, awaited, this.#bytesOf("sends", key));
    }
    return true;
  }

  /** False: another member sends other bytes than this member awaits, so the operation has failed. */
  #isAsAwaited(rank: number, sent: number, awaited: number): boolean {
    if (sent !== awaited) this.#failed(ERROR, describeSent(rank, sent, awaited));
    return sent === awaited;
  }

  /** False: another member awaits other bytes than this member sends, so the operation has failed. */
  #isAsSent(rank: number, awaited: number, sent: number): boolean {
    if (awaited !== sent) this.#failed(ERROR, describeAwaited(rank, awaited, sent));
    return awaited === sent;
  }

  /** A transfer of this round is over. */
  #done(): void {
    if (--this.#left > 0 || this.#operation.isStopped) return;
    if (this.#runLocals()) this.#next();
  }

  #receive({ peer, span, tag }: Transfer): void {
    const key = this.#key(peer, tag);
    const incoming = { span, got: 0 };
    const early = this.#early.get(key);
    if (early !== undefined) {
      this.#early.delete(key);
      this.#copy(incoming, early, peer);
      return;
    }
    const announced = this.#announced.get(key);
    this.#announced.delete(key);
    if (announced !== undefined && !this.#isAsAwaited(peer, announced, span.bytes)) return;
    if (this.#host.isGone(peer)) {
      this.#failed(SHUTDOWN, "");
      return;
    }
    this.#left++;
    this.#awaited.set(key, incoming);
    this.#host.watch(peer);
    if (span.bytes > EAGER_BYTES) this.#let(peer, tag, incoming);
  }

  /** Lets the next fragments of a long transfer come. */
  #let(rank: number, tag: number, { span, got }: Incoming): void {
    const upTo = Math.min(span.bytes, got + FRAGMENTS_AHEAD * FRAGMENT_BYTES);
    // Once all fragments were asked for, no READY is left to send.
    if (got > 0 && upTo === Math.min(span.bytes, got - FRAGMENT_BYTES + FRAGMENTS_AHEAD * FRAGMENT_BYTES)) return;
    const payload = new Uint8Array(Float64Array.of(span.bytes, upTo).buffer);
    this.#sent(this.#host.send(COLLECTIVE_READY, rank, this.#operation, tag, payload));
  }

  #send({ peer, span, tag }: Transfer): void {
    const key = this.#key(peer, tag);
    if (span.bytes <= EAGER_BYTES) {
      this.#sent(this.#host.send(COLLECTIVE_DATA, peer, this.#operation, tag, this.#bytes(span)));
      return;
    }
    this.#left++;
    const outgoing = { span, next: 0, sending: 0 };
    const ready = this.#ready.get(key);
    if (ready === undefined && this.#host.isGone(peer)) {
      this.#failed(SHUTDOWN, "");
      return;
    }
    this.#held.set(key, outgoing);
    this.#host.watch(peer);
    if (ready === undefined) {
      const payload = new Uint8Array(Float64Array.of(span.bytes).buffer);
      this.#sent(this.#host.send(COLLECTIVE_READY, peer, this.#operation, tag, payload));
      return;
    }
    this.#ready.delete(key);
    this.#sendUpTo(peer, tag, outgoing, ready);
  }

  /** Sends fragments that the receiver lets come. */
  #sendUpTo(rank: number, tag: number, outgoing: Outgoing, { awaited, upTo }: Ready): void {
    const { span } = outgoing;
    if (!this.#isAsSent(rank, awaited, span.bytes)) return;
    // A receiver may let more come than there is.
    const end = Math.min(upTo, span.bytes);
    while (outgoing.next < end && !this.#operation.isStopped) {
      const from = outgoing.next;
      const bytes = Math.min(FRAGMENT_BYTES, span.bytes - from);
      outgoing.next += bytes;
      outgoing.sending += bytes;
      if (outgoing.next === span.bytes) this.#held.delete(this.#key(rank, tag));
      this.#sendFragment(rank, tag, outgoing, part(span, from, bytes));
    }
  }

  #sendFragment(rank: number, tag: number, outgoing: Outgoing, fragment: Span): void {
    const isLast = (): boolean => outgoing.sending === 0 && outgoing.next === outgoing.span.bytes;
    if (fragment.bytes <= EAGER_BYTES) {
      outgoing.sending -= fragment.bytes;
      this.#sent(this.#host.send(COLLECTIVE_DATA, rank, this.#operation, tag, this.#bytes(fragment)));
      if (isLast()) this.#done();
      return;
    }
    // SHUTDOWN is told by ended(), too.
    this.#sending++;
    this.#host.sendLong(rank, this.#operation, tag, this.#bytes(fragment), () => {
      const operation = this.#operation;
      this.#sending--;
      outgoing.sending -= fragment.bytes;
      if (!operation.isStopped) {
        if (isLast()) this.#done();
      } else if (!operation.isSending) this.#host.sent(operation);
    });
  }

  #failed(result: Result, why: string): void {
    this.#host.failed(this.#operation, result, why);
  }

  #sent(result: Result): void {
    if (result !== SUCCESS) this.#failed(result, "");
  }

  /** Takes bytes that this member awaits. */
  #take(incoming: Incoming, bytes: Uint8Array, rank: number, tag: number): void {
    if (!this.#copy(incoming, bytes, rank)) return;
    if (incoming.got < incoming.span.bytes) {
      this.#let(rank, tag, incoming);
      return;
    }
    this.#awaited.delete(this.#key(rank, tag));
    this.#done();
  }

  /** False: this member awaits other bytes, so the operation has failed. */
  #copy(incoming: Incoming, bytes: Uint8Array, rank: number): boolean {
    const { span, got } = incoming;
    if (bytes.length !== Math.min(span.bytes - got, FRAGMENT_BYTES)) {
      this.#failed(ERROR, describeSent(rank, bytes.length, span.bytes));
      return false;
    }
    incoming.got += bytes.length;
    if (copyIntoIfThere(this.#buffer(span), span.offset + got, bytes)) return true;
    this.#failed(ERROR, "the buffer for what is received was detached or shrunk");
    return false;
  }

  /** Runs the local steps of the round. False: a step has failed. */
  #runLocals(): boolean {
    for (const local of this.#schedule.rounds[this.#round]?.locals ?? []) {
      try {
        if (local.kind === "copy") copyInto(this.#buffer(local.to), local.to.offset, this.#bytes(local.from));
        else this.#reduce(local.out, local.left, local.right);
      } catch (error) {
        this.#operation.cause = error;
        this.#failed(ERROR, textOf(error));
        return false;
      }
    }
    return true;
  }

  /** All operands are in the scratch buffer. */
  #reduce(out: Span, left: Span, right: Span): void {
    const { pointer: base, elsewhere } = this.#piece as Piece;
    this.buffers.reducer?.reduce(base + out.offset, base + left.offset, base + right.offset, out.bytes, elsewhere);
  }

  #buffer({ buffer }: Span): Uint8Array {
    if (buffer === "scratch") return (this.#piece?.bytes ?? NO_BYTES) as Uint8Array;
    return this.buffers[buffer];
  }

  #bytes(span: Span): Uint8Array {
    return this.#buffer(span).subarray(span.offset, span.offset + span.bytes);
  }
}

const NO_BYTES = new Uint8Array(0);

/** The content of a message without data: the bytes that a transfer's sender has, or the receiver's READY. */
interface Lengths extends Ready {
  readonly sent: number | undefined;
}

function lengthsIn({ payload, payloadBytes }: Arrival): Lengths {
  if (payloadBytes !== 8 && payloadBytes !== 16) return { sent: undefined, awaited: Number.NaN, upTo: 0 };
  const [first, upTo = 0] = new Float64Array(payload.slice().buffer) as unknown as [number, number?];
  return { sent: payloadBytes === 8 ? first : undefined, awaited: first, upTo };
}

function describeSent(rank: number, sent: number, awaited: number): string {
  return `rank ${rank} has sent ${sent} bytes, ${awaited} are awaited: the lengths differ`;
}

function describeAwaited(rank: number, awaited: number, sent: number): string {
  return `rank ${rank} awaits ${awaited} bytes, ${sent} are sent: the lengths differ`;
}

/** How a message differs from this member's transfer of `own` bytes; empty if they agree. */
export function describeLengths(kind: number, rank: number, arrival: Arrival, own: number): string {
  const { sent, awaited } = lengthsIn(arrival);
  if (kind === COLLECTIVE_READY && sent === undefined)
    return awaited === own ? "" : describeAwaited(rank, awaited, own);
  const bytes = kind === COLLECTIVE_READY ? (sent as number) : arrival.payloadBytes;
  return bytes === own ? "" : describeSent(rank, bytes, own);
}

/** Transfers of all rounds. */
function transfersOf({ rounds }: Schedule): number {
  return rounds.reduce((sum, { receives, sends }) => sum + receives.length + sends.length, 0);
}

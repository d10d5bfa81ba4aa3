// A schedule: one member's steps in a collective operation over messages, in rounds. An algorithm is a function that makes the
// schedule from the member's rank, the number of members and the lengths alone. The function sends nothing itself, so that a
// test can count the messages that a schedule would send. The form is that of Hoefler's LibNBC.

/** The buffers of a member: its input, its output, and memory that the operation itself takes. */
export type BufferName = "send" | "receive" | "scratch";

/** A part of a buffer, in bytes. */
export interface Span {
  readonly buffer: BufferName;
  readonly offset: number;
  readonly bytes: number;
}

/** Bytes that go to a member, or come from it. Send and receive of two members in one round are matched by `tag`. */
export interface Transfer {
  /** Rank of the other member. */
  readonly peer: number;
  readonly span: Span;
  /**
   * Matches a send to its receive. As a rule, the tag is the number of the round at the receiver; add() puts the phase above
   * this number.
   */
  readonly tag: number;
}

/** A local step of a member on its own bytes. */
export type Local =
  | { readonly kind: "copy"; readonly from: Span; readonly to: Span }
  /** `out = left op right`, element by element. `out` may be `left` or `right`. */
  | { readonly kind: "reduce"; readonly out: Span; readonly left: Span; readonly right: Span };

/** All transfers of a round go on at the same time; `locals` follow once all of them are over. */
export interface Round {
  readonly sends: readonly Transfer[];
  readonly receives: readonly Transfer[];
  readonly locals: readonly Local[];
}

export interface Schedule {
  /** Bytes of the scratch buffer. */
  readonly scratchBytes: number;
  readonly rounds: readonly Round[];
}

const NOTHING: Span = { buffer: "scratch", offset: 0, bytes: 0 };

/** Collects the rounds of a schedule. Transfers and local steps of no bytes are left out; a signal is a message without bytes. */
export class ScheduleBuilder {
  readonly #rounds: Round[] = [];
  #sends: Transfer[] = [];
  #receives: Transfer[] = [];
  #locals: Local[] = [];
  #scratch = 0;
  /** Bytes that schedules take which were added. */
  #added = 0;

  /** Takes bytes of the scratch buffer, at a multiple of 16. */
  scratch(bytes: number): Span {
    const offset = this.#scratch;
    this.#scratch = offset + ((bytes + 15) & ~15);
    return { buffer: "scratch", offset, bytes };
  }

  /** @param tag the number of the round at the other end; default: this round's number */
  send(peer: number, span: Span, tag = this.#rounds.length): this {
    if (span.bytes > 0) this.#sends.push({ peer, span, tag });
    return this;
  }

  receive(peer: number, span: Span, tag = this.#rounds.length): this {
    if (span.bytes > 0) this.#receives.push({ peer, span, tag });
    return this;
  }

  /** Sends a message of no bytes. */
  signal(peer: number): this {
    this.#sends.push({ peer, span: NOTHING, tag: this.#rounds.length });
    return this;
  }

  /** Receives a message of no bytes. */
  hear(peer: number): this {
    this.#receives.push({ peer, span: NOTHING, tag: this.#rounds.length });
    return this;
  }

  /** Copies that continue each other become one. */
  copy(from: Span, to: Span): this {
    const isSame = from.buffer === to.buffer && from.offset === to.offset;
    if (from.bytes === 0 || isSame) return this;
    const last = this.#locals.at(-1);
    if (last?.kind === "copy" && isNext(last.from, from) && isNext(last.to, to)) {
      const bytes = last.from.bytes + from.bytes;
      this.#locals[this.#locals.length - 1] = {
        kind: "copy",
        from: { ...last.from, bytes },
        to: { ...last.to, bytes },
      };
    } else this.#locals.push({ kind: "copy", from, to });
    return this;
  }

  reduce(out: Span, left: Span, right: Span): this {
    if (out.bytes > 0) this.#locals.push({ kind: "reduce", out, left, right });
    return this;
  }

  /** Ends a round, also an empty one: so the numbers of the rounds are the same for all members. */
  round(): this {
    this.#rounds.push({ sends: this.#sends, receives: this.#receives, locals: this.#locals });
    this.#sends = [];
    this.#receives = [];
    this.#locals = [];
    return this;
  }

  /**
   * Adds the rounds of an operation of some members, after the existing rounds. The operation's scratch bytes lie after the
   * bytes taken before, and are free again when its rounds are over.
   * @param phase 2 to 4,095: the same at all members of the added operation, and different in each added operation. Phase 1
   *   belongs to a barrier before a schedule.
   * @param members the ranks in this schedule of the operation's members
   * @param buffers the buffers of that operation
   */
  add(
    schedule: Schedule,
    phase: number,
    members: readonly number[],
    buffers: { readonly send?: Span; readonly receive?: Span },
  ): this {
    if (this.#isOpen) this.round();
    const base = { send: buffers.send, receive: buffers.receive, scratch: span("scratch", this.#scratch, 0) };
    const place = ({ buffer, offset, bytes }: Span): Span => {
      const whole = base[buffer];
      if (whole === undefined) throw new Error(`no buffer for "${buffer}"`);
      return part(whole, offset, bytes);
    };
    const moved = ({ peer, span: from, tag }: Transfer): Transfer => ({
      peer: members[peer] as number,
      span: place(from),
      tag: phase * PHASE_TAGS + tag,
    });
    for (const { sends, receives, locals } of schedule.rounds) {
      this.#sends = sends.map(moved);
      this.#receives = receives.map(moved);
      for (const local of locals) {
        if (local.kind === "copy") this.copy(place(local.from), place(local.to));
        else this.reduce(place(local.out), place(local.left), place(local.right));
      }
      this.round();
    }
    this.#added = Math.max(this.#added, this.#scratch + schedule.scratchBytes);
    return this;
  }

  build(): Schedule {
    if (this.#isOpen) this.round();
    return { scratchBytes: Math.max(this.#scratch, this.#added), rounds: this.#rounds };
  }

  get #isOpen(): boolean {
    return this.#sends.length + this.#receives.length + this.#locals.length > 0;
  }
}

/** More tags than one operation has. */
const PHASE_TAGS = 2 ** 20;

/** Whether a span begins where another span ends. */
function isNext(one: Span, other: Span): boolean {
  return one.buffer === other.buffer && one.offset + one.bytes === other.offset;
}

export function span(buffer: BufferName, offset: number, bytes: number): Span {
  return { buffer, offset, bytes };
}

/** A part of a span. */
export function part({ buffer, offset }: Span, from: number, bytes: number): Span {
  return { buffer, offset: offset + from, bytes };
}

// Runs the schedules of all members of a collective operation, without tasks. Messages arrive in a random order, and bytes
// are read and written at random moments between the beginning and the end of a round. What depends on timing is wrong for
// some seed, and what inspect() refuses is wrong for some timing.
import type { Schedule, Span, Transfer } from "../../src/collective/schedule/schedule.js";

/** What one member has. `send` may lie in `receive`, where the operation is in place. */
export interface Member {
  readonly schedule: Schedule;
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
}

/** `out = left op right`, for all elements. `out` may be one of the others. */
export interface Operator {
  readonly elementBytes: number;
  reduce(out: Uint8Array, left: Uint8Array, right: Uint8Array): void;
}

export type FaultKind =
  | "bounds"
  | "overlap"
  | "tag"
  | "peer"
  | "empty"
  | "input written"
  | "operand"
  | "lengths"
  | "stuck"
  | "undelivered";

export class Fault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, rank: number, round: number, text: string) {
    super(`${kind}: rank ${rank}, round ${round}: ${text}`);
    this.kind = kind;
  }
}

export function randomBytes(length: number, random: (below: number) => number): Uint8Array {
  const bytes = new Uint8Array(length);
  let word = random(2 ** 31) + 1;
  for (let i = 0; i < length; i++) {
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    bytes[i] = word;
  }
  return bytes;
}

const written = ({ buffer, offset, bytes }: Span): string => `${buffer}[${offset}, ${offset + bytes})`;

/** The memory of a member; scratch memory has what others left there. */
class Memory {
  readonly #buffers: Readonly<Record<Span["buffer"], Uint8Array>>;

  constructor({ schedule, send, receive }: Member, random: (below: number) => number) {
    this.#buffers = { send, receive, scratch: randomBytes(schedule.scratchBytes, random) };
  }

  isWithin({ buffer, offset, bytes }: Span): boolean {
    return offset >= 0 && bytes >= 0 && offset + bytes <= this.#buffers[buffer].length;
  }

  of({ buffer, offset, bytes }: Span): Uint8Array {
    return this.#buffers[buffer].subarray(offset, offset + bytes);
  }

  overlap(one: Span, other: Span): boolean {
    const [a, b] = [this.of(one), this.of(other)];
    const isShared = a.buffer === b.buffer && a.length > 0 && b.length > 0;
    return isShared && a.byteOffset < b.byteOffset + b.length && b.byteOffset < a.byteOffset + a.length;
  }

  isSame(one: Span, other: Span): boolean {
    const [a, b] = [this.of(one), this.of(other)];
    return a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.length === b.length;
  }
}

/** Checks one member's schedule by itself: what the executor relies upon, for any timing. */
function inspect(rank: number, { schedule }: Member, memory: Memory, size: number, elementBytes: number): void {
  const used = { sends: new Set<string>(), receives: new Set<string>() };
  for (const [number, { sends, receives, locals }] of schedule.rounds.entries()) {
    const fault = (kind: FaultKind, text: string): Fault => new Fault(kind, rank, number, text);
    const bound = (span: Span): void => {
      if (!memory.isWithin(span)) throw fault("bounds", written(span));
    };
    for (const side of ["sends", "receives"] as const) {
      for (const { peer, span, tag } of side === "sends" ? sends : receives) {
        bound(span);
        if (peer === rank || !(peer >= 0 && peer < size)) throw fault("peer", `${side}: ${peer}`);
        const key = `${peer} ${tag}`;
        if (used[side].has(key)) throw fault("tag", `${side}: tag ${tag} of rank ${peer} is used again`);
        used[side].add(key);
      }
    }
    for (const [i, { span }] of receives.entries()) {
      if (span.buffer === "send") throw fault("input written", written(span));
      const others = [...sends, ...receives.slice(i + 1)];
      const other = others.find((one) => memory.overlap(span, one.span));
      if (other !== undefined) throw fault("overlap", `${written(span)} is received, ${written(other.span)} in use`);
    }
    for (const local of locals) {
      const [out, ...inputs] = local.kind === "copy" ? [local.to, local.from] : [local.out, local.left, local.right];
      for (const span of [out, ...inputs]) {
        bound(span);
        if (span.bytes === 0 || span.bytes !== out.bytes) throw fault("empty", written(span));
        const isOperand = local.kind === "reduce";
        if (isOperand && (span.buffer !== "scratch" || span.offset % elementBytes || span.bytes % elementBytes)) {
          throw fault("operand", written(span));
        }
        if (memory.overlap(out, span) && !memory.isSame(out, span)) {
          throw fault("overlap", `${written(out)} is made of ${written(span)}`);
        }
      }
      if (out.buffer === "send") throw fault("input written", written(out));
    }
  }
}

interface Message {
  readonly from: number;
  readonly to: number;
  readonly tag: number;
  readonly bytes: Uint8Array;
}

/** What a run has shown besides the bytes in the buffers of the members. */
export interface Outcome {
  /** For each member, how many members had begun when it was over. */
  readonly begunBefore: readonly number[];
}

/**
 * Runs an operation to its end. Some messages are sent at once, others when their receiver is ready.
 * @throws Fault
 */
export function simulate(
  members: readonly Member[],
  operator: Operator | undefined,
  random: (below: number) => number,
  isInspected = true,
): Outcome {
  const size = members.length;
  const memories = members.map((member) => new Memory(member, random));
  if (isInspected) {
    for (const [rank, member] of members.entries()) {
      inspect(rank, member, memories[rank] as Memory, size, operator?.elementBytes ?? 1);
    }
  }
  /** What may happen next, in any order. */
  const ready: (() => void)[] = [];
  const rounds = members.map(() => -1);
  const left = members.map(() => 0);
  const begunBefore = members.map(() => 0);
  let begun = 0;
  /** Messages that came before their round, sends that wait for their receiver, and receives that wait. */
  const early = new Map<string, Message[]>();
  const held = new Map<string, (() => void)[]>();
  const awaited = new Map<string, Span>();
  const keyOf = (to: number, from: number, tag: number): string => `${from} → ${to}, tag ${tag}`;
  /** Adds one to a list of a map. */
  const add = <T>(map: Map<string, T[]>, key: string, one: T): void =>
    void map.set(key, [...(map.get(key) ?? []), one]);
  /** Takes any one of a list. */
  const take = <T>(map: Map<string, T[]>, key: string): T | undefined => {
    const list = map.get(key);
    if (list === undefined) return undefined;
    const [one] = list.splice(random(list.length), 1);
    if (list.length === 0) map.delete(key);
    return one;
  };

  const done = (rank: number): void => {
    left[rank] = (left[rank] as number) - 1;
    if (left[rank] !== 0) return;
    const memory = memories[rank] as Memory;
    for (const local of members[rank]?.schedule.rounds[rounds[rank] as number]?.locals ?? []) {
      if (local.kind === "copy") memory.of(local.to).set(memory.of(local.from));
      else operator?.reduce(memory.of(local.out), memory.of(local.left), memory.of(local.right));
    }
    ready.push(() => begin(rank));
  };

  const arrive = ({ from, to, tag, bytes }: Message): void => {
    const key = keyOf(to, from, tag);
    const span = awaited.get(key);
    if (span === undefined) {
      add(early, key, { from, to, tag, bytes });
      return;
    }
    awaited.delete(key);
    if (span.bytes !== bytes.length) {
      throw new Fault("lengths", to, rounds[to] as number, `${key}: ${bytes.length} bytes come, not ${span.bytes}`);
    }
    (memories[to] as Memory).of(span).set(bytes);
    done(to);
  };

  const send = (from: number, { peer: to, span, tag }: Transfer): void => {
    const read = (): Uint8Array => (memories[from] as Memory).of(span).slice();
    if (random(2) === 0) {
      ready.push(() => {
        const message = { from, to, tag, bytes: read() };
        ready.push(() => arrive(message));
        done(from);
      });
      return;
    }
    const key = keyOf(to, from, tag);
    const move = (): void => {
      arrive({ from, to, tag, bytes: read() });
      done(from);
    };
    if (awaited.has(key)) ready.push(move);
    else add(held, key, move);
  };

  const begin = (rank: number): void => {
    rounds[rank] = (rounds[rank] as number) + 1;
    if (rounds[rank] === 0) begun++;
    const round = members[rank]?.schedule.rounds[rounds[rank] as number];
    if (round === undefined) {
      begunBefore[rank] = begun;
      return;
    }
    left[rank] = round.sends.length + round.receives.length + 1;
    for (const { peer, span, tag } of round.receives) {
      const key = keyOf(rank, peer, tag);
      // Some bytes may be there already.
      (memories[rank] as Memory).of(span).fill(random(256));
      awaited.set(key, span);
      const message = take(early, key);
      const move = message === undefined ? take(held, key) : () => arrive(message);
      if (move !== undefined) ready.push(move);
    }
    for (const transfer of round.sends) send(rank, transfer);
    ready.push(() => done(rank));
  };

  for (const rank of members.keys()) ready.push(() => begin(rank));
  while (ready.length > 0) {
    const place = random(ready.length);
    const event = ready[place] as () => void;
    ready[place] = ready[ready.length - 1] as () => void;
    ready.pop();
    event();
  }
  for (const [rank, { schedule }] of members.entries()) {
    const round = rounds[rank] as number;
    if (round >= schedule.rounds.length) continue;
    const waits = [...awaited.keys(), ...held.keys()].join("; ");
    throw new Fault("stuck", rank, round, `members wait for ${waits}`);
  }
  const [lost] = early.keys();
  if (lost !== undefined) throw new Fault("undelivered", -1, -1, lost);
  return { begunBefore };
}

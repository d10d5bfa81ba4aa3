// One lane against arrays: what was sent, what is in the target's hand, and how many bytes that makes.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  EVENT_LANE_MAX,
  KIND_MESSAGE,
  LANE_HEAD_OFFSET,
  LANE_NEXT_OFFSET,
  TASK_BELL_OFFSET,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import { capacity, fraction, share, start, word } from "../support/arbitraries.js";
import { type Build, makeRig, type Rig, type Straddle } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { assertProperty } from "../support/seed.js";

interface Sent {
  readonly kind: number;
  readonly meta: number;
  readonly bytes: number[];
}

interface Model {
  readonly capacity: number;
  readonly recordMax: number;
  /** Sent and not taken. */
  sent: Sent[];
  /** Taken and not released. */
  hand: Sent[];
  /** Bytes that are released, but that release() has not given back yet. */
  kept: number;
  /** Where the records in the hand lie. */
  bodies: number[];
  paused: boolean;
  wanted: number;
  /** Rings of the origin's bell. */
  rings: number;
  /** Gives every record other bytes. */
  serial: number;
}

interface Real {
  readonly rig: Rig;
  readonly lane: number;
}

const sizeOf = (length: number): number => Math.ceil((length + 8) / 16) * 16;

const bytesOf = (records: Sent[]): number => records.reduce((sum, { bytes }) => sum + sizeOf(bytes.length), 0);

function freeOf({ capacity, sent, hand, kept }: Model): number {
  return capacity - 16 - kept - bytesOf(sent) - bytesOf(hand);
}

function roomOf(model: Model): number {
  return Math.max(0, Math.min(freeOf(model), model.recordMax) - 8);
}

abstract class Step implements fc.Command<Model, Real> {
  check(_model: Readonly<Model>): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    const { rig, lane } = real;
    const head = rig.word(lane + LANE_HEAD_OFFSET);
    rig.producer.bellArm(rig.task(1));
    this.act(model, real);
    // What is kept is the kernels' choice, within the bounds that the steps check; then it must fit all the rest.
    const next = rig.word(lane + LANE_NEXT_OFFSET);
    model.kept = seqDelta(next, rig.word(lane + LANE_HEAD_OFFSET)) - bytesOf(model.hand);
    expect(model.kept).toBeGreaterThanOrEqual(0);
    if (head !== rig.word(lane + LANE_HEAD_OFFSET)) model.rings += model.wanted;
    expect(rig.tailWord(lane)).toBe(0);
    expect(rig.producer.laneRoom(lane)).toBe(roomOf(model));
    expect(rig.consumer.lanePeek(lane)).toBe(model.sent.length > 0 ? 1 : 0);
    expect(rig.word(rig.task(1) + TASK_BELL_OFFSET)).toBe(model.rings);
  }

  abstract act(model: Model, real: Real): void;
  abstract toString(): string;
}

class SendWords extends Step {
  readonly #length: number;
  readonly #meta: number;
  readonly #words: number[];

  constructor(length: number, meta: number, words: number[]) {
    super();
    this.#length = length;
    this.#meta = meta;
    this.#words = words;
  }

  act(model: Model, { rig, lane }: Real): void {
    const [a = 0, b = 0] = this.#words;
    const fits = freeOf(model) >= sizeOf(this.#length);
    expect(rig.producer.laneSendWords(lane, this.#length, this.#meta, a, b)).toBe(fits ? 1 : 0);
    const bytes = [...new Uint8Array(new Uint32Array([a, b]).buffer)].slice(0, this.#length);
    if (fits) model.sent.push({ kind: KIND_MESSAGE, meta: this.#meta, bytes });
  }

  toString(): string {
    return `sendWords(${this.#length})`;
  }
}

class Send extends Step {
  readonly #reserve: number;
  readonly #commit: number;
  readonly #kind: number;

  /** @param commit how much of what is reserved is committed; negative: none, it is abandoned */
  constructor(reserve: number, commit: number, kind: number) {
    super();
    this.#reserve = reserve;
    this.#commit = commit;
    this.#kind = kind;
  }

  act(model: Model, { rig, lane }: Real): void {
    const reserved = share(this.#reserve, model.recordMax - 8);
    const fits = freeOf(model) >= sizeOf(reserved);
    const body = rig.producer.laneReserve(lane, reserved);
    expect(body !== 0).toBe(fits);
    if (!fits) return;
    expect(rig.producer.laneRoom(lane)).toBe(0);
    const random = randomOf(++model.serial);
    const bytes = Array.from({ length: reserved }, () => 1 + random(255));
    rig.write(body, bytes);
    if (this.#commit < 0) {
      rig.producer.laneAbort(lane);
      return;
    }
    const committed = share(this.#commit, reserved);
    rig.producer.laneCommit(lane, this.#kind, committed, model.serial);
    model.sent.push({ kind: this.#kind, meta: model.serial, bytes: bytes.slice(0, committed) });
  }

  toString(): string {
    return this.#commit < 0 ? `abort(${this.#reserve})` : `send(${this.#reserve}, ${this.#commit}, kind ${this.#kind})`;
  }
}

class Advance extends Step {
  override check({ hand }: Readonly<Model>): boolean {
    return hand.length === 0;
  }

  act(model: Model, { rig }: Real): void {
    const events = rig.advance();
    if (!model.paused) model.hand = model.sent.splice(0, EVENT_LANE_MAX);
    expect(events.map(({ kind, meta, bytes }) => ({ kind, meta, bytes }))).toEqual(model.hand);
    model.bodies = events.map(({ body }) => body);
  }

  toString(): string {
    return "advance()";
  }
}

class Release extends Step {
  act(model: Model, { rig, lane }: Real): void {
    rig.release();
    model.hand = [];
    const kept = seqDelta(rig.word(lane + LANE_NEXT_OFFSET), rig.word(lane + LANE_HEAD_OFFSET));
    if (!model.paused) expect(kept).toBeLessThanOrEqual(model.wanted === 1 ? 0 : model.capacity / 8);
  }

  toString(): string {
    return "release()";
  }
}

class Peek extends Step {
  override check({ hand }: Readonly<Model>): boolean {
    return hand.length === 0;
  }

  act(model: Model, { rig, lane }: Real): void {
    const found = rig.consumer.peek(rig.context(0));
    if (!model.paused) expect(found).toBe(model.sent.length > 0 ? 1 : 0);
    // With nothing to do, everything is given back.
    if (found === 0) expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(rig.word(lane + LANE_NEXT_OFFSET));
  }

  toString(): string {
    return "peek()";
  }
}

class Pause extends Step {
  readonly #at: number;

  constructor(at: number) {
    super();
    this.#at = at;
  }

  override check({ hand, paused }: Readonly<Model>): boolean {
    return hand.length > 0 && !paused;
  }

  act(model: Model, { rig, lane }: Real): void {
    const at = share(this.#at, model.hand.length - 1);
    rig.consumer.lanePause(lane, model.bodies[at] as number);
    model.sent.unshift(...model.hand.splice(at));
    model.paused = true;
  }

  toString(): string {
    return `pause(${this.#at})`;
  }
}

class Resume extends Step {
  override check({ paused }: Readonly<Model>): boolean {
    return paused;
  }

  act(model: Model, { rig }: Real): void {
    rig.consumer.laneResume(rig.context(0), 1);
    model.paused = false;
  }

  toString(): string {
    return "resume()";
  }
}

class WantRoom extends Step {
  readonly #wanted: number;

  constructor(wanted: number) {
    super();
    this.#wanted = wanted;
  }

  act(model: Model, { rig, lane }: Real): void {
    rig.producer.laneWantRoom(lane, this.#wanted);
    model.wanted = this.#wanted;
  }

  toString(): string {
    return `wantRoom(${this.#wanted})`;
  }
}

const kind = fc.integer({ min: 0, max: 7 });
const commands = fc.commands(
  [
    fc
      .tuple(fc.integer({ min: 0, max: 8 }), word, fc.array(word, { minLength: 2, maxLength: 2 }))
      .map((a) => new SendWords(...a)),
    fc.tuple(fraction, fc.constantFrom(1, 1, 1, -1), kind).map((a) => new Send(...a)),
    fc.tuple(fraction, fraction, kind).map((a) => new Send(...a)),
    fc.constant(new Advance()),
    fc.constant(new Advance()),
    fc.constant(new Release()),
    fc.constant(new Release()),
    fc.constant(new Peek()),
    fraction.map((at) => new Pause(at)),
    fc.constant(new Resume()),
    fc.constantFrom(0, 1).map((wanted) => new WantRoom(wanted)),
  ],
  { maxCommands: 80, size: "max" },
);

describe.each<[Build, Build, Straddle | undefined]>([
  ["wasm", "wasm", undefined],
  ["debug", "twin", undefined],
  ["twin", "twin", undefined],
  ["wasm", "twin", "heap"],
  ["twin", "wasm", "heap"],
])("%s sends, %s receives, straddle %s", (producer, consumer, straddle) => {
  it("gives what was sent, in order and whole, and knows its room to the byte", () => {
    const property = fc.property(start, capacity, fc.boolean(), commands, (start, capacity, long, sequence) => {
      // One context each: origin 1 is task 1, whose bell the model counts.
      const rig = makeRig({ producer, consumer, straddle, contexts: 1 });
      const recordMax = long ? capacity - 16 : Math.max(32, capacity / 4);
      const lane = rig.openAt(start, 1, 0, capacity, recordMax);
      const model: Model = {
        capacity,
        recordMax,
        sent: [],
        hand: [],
        kept: 0,
        bodies: [],
        paused: false,
        wanted: 0,
        rings: 0,
        serial: 0,
      };
      fc.modelRun(() => ({ model, real: { rig, lane } }), sequence);
      if (model.paused) new Resume().run(model, { rig, lane });
      new Release().run(model, { rig, lane });
      while (model.sent.length > 0) {
        new Advance().run(model, { rig, lane });
        new Release().run(model, { rig, lane });
      }
      new Peek().run(model, { rig, lane });
      expect(rig.producer.laneRoom(lane)).toBe(recordMax - 8);
    });
    assertProperty(property, 150);
  });
});

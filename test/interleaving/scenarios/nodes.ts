// What the scenarios of a node among others share: the agent's thread, a task of the node, and what stands for the other nodes.
// The agent, the clients and their contexts are those of the runtime.
import {
  CHAIN_BEGIN,
  CHAIN_MOVE,
  CHAIN_OVER,
  CHAIN_SHIP,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  DISPATCH_ID_NOTICE,
  DISPATCH_ID_PULL,
  DISPATCH_ID_PULLED,
  KIND_MESSAGE,
  KIND_RTS,
  META_DISPATCH_MASK,
  META_HEADER_SHIFT,
  RTS_BLOCK_INDEX_OFFSET,
  RTS_BYTES_OFFSET,
  RTS_FIFO_OFFSET,
  RTS_SIZE,
  TRANSFER_DONE,
} from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import { type Endpoint, endpointOf, taskOf } from "../../../src/core/endpoint.js";
import type { Message } from "../../../src/core/message/message.js";
import type { ReceiveOptions } from "../../../src/core/message/pacing.js";
import type { MemRegion } from "../../../src/core/region.js";
import { EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { engineSlot } from "../../../src/memory/map.js";
import { SlotTable } from "../../../src/node/address.js";
import type { Client } from "../../../src/pami/client.js";
import type { Context } from "../../../src/pami/context.js";
import type { PutParameters } from "../../../src/protocol/rma/parameters.js";
import { Agent } from "../../../src/transport/net/agent.js";
import type { Frame, OnFrame, Pipe } from "../../../src/transport/net/frames.js";
import type { LaneRecord } from "../../../src/transport/net/records.js";
import { frameWith, recordsIn } from "../../support/record.js";
import { WholeFrames } from "../../support/whole-frames.js";
import type { World } from "../world.js";
import { handleOf, same, throws } from "./support.js";

/** Tasks of other nodes, each with a node of its own. None of them has a slot that it prefers. */
export const ONE = 70;
export const OTHER = 80;
export const THIRD = 90;

/**
 * The node has two tasks, and one slot for all others; or one, and two; or two, and two. What ships has two at least: one slot is
 * the agent's, so a task would wait for ever to begin something with a task that has no slot.
 */
export const ONE_SLOT = { locals: 2, isCrowded: true } as const;
export const TWO_SLOTS = { locals: 1, isCrowded: true } as const;
export const TWO_EACH = { locals: 2, tasks: 4, isCrowded: true } as const;

export const DISPATCH = 5;
const OFFERED = 6;
/** Noted in place of a message's number: a put went to a task, an offer, the news that its own offer is over. */
export const PUT = 50;
export const OFFER = 51;
export const TAKEN = 52;
/** Plus the number of a task of this node: the news that this task has ended. */
export const END = 53;
/** Words that name the rget FIFO of an offer, in a request to send and in all that is said about it. */
const PLACE_WORDS = 4;

const NO_BYTES = new Uint8Array(0);
/** The first messages, by number. */
export const PAYLOADS: readonly Uint8Array[] = Array.from({ length: 8 }, (_, i) => Uint8Array.from([i, 0, 0, 0]));

/** Bytes of a payload that a task of another node offers. */
function offeredBytes(from: number, to: number): Uint8Array {
  return Uint8Array.from({ length: to - from }, (_, i) => 7 * (from + i) + 1);
}

function wordAt(bytes: Uint8Array, offset: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(offset, true);
}

function bytesOf(...words: number[]): Uint8Array {
  return new Uint8Array(Uint32Array.from(words).buffer);
}

/** The descriptors of a frame. */
function descriptorsIn(words: Int32Array): Int32Array[] {
  const count = words.length / DESCRIPTOR_WORDS;
  return Array.from({ length: count }, (_, i) => words.slice(i * DESCRIPTOR_WORDS, (i + 1) * DESCRIPTOR_WORDS));
}

/** A word of a descriptor, by its offset in bytes. */
function wordOf(descriptor: Int32Array, offset: number): number {
  return descriptor[offset >>> 2] as number;
}

/** Where a MOVE names its destination. */
const TARGET_OFFSETS = [
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
];

/** The other nodes: notes the task and the number of each message that goes there. */
class Others extends WholeFrames implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = true;
  readonly talkedTo = new Set<number>();
  readonly #world: World;
  readonly #answers: (() => void)[] = [];
  /** What the other nodes do once nothing else happens any more. */
  readonly #late: (() => void)[] = [];
  /** Of the payload that a task of theirs offers: where its target takes it, and what fetches its later fragments. */
  #place: readonly number[] = [];
  #rgets: readonly Int32Array[] = [];

  constructor(world: World) {
    super();
    this.#world = world;
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    this.talkedTo.add(taskOf(to));
    if ("ask" in frame) {
      const answer = { answer: frame.ask, results: [TRANSFER_DONE], data: undefined };
      this.#answers.push(() => this.onFrame(to, from, answer));
      for (let i = 0; i <= frame.more.length / 2; i++) this.#note(to, PUT);
    } else if ("end" in frame && frame.end === "task") this.#note(to, END + taskOf(from));
    else if ("chain" in frame) this.#chained(from, to, frame.chain, frame.words);
    else if ("records" in frame) {
      for (const record of recordsIn(frame.records) ?? []) this.#take(from, to, record);
    }
  }

  #note(task: Endpoint, what: number): void {
    this.#world.note(taskOf(task));
    this.#world.note(what);
  }

  #take(from: Endpoint, to: Endpoint, { kind, meta, body }: LaneRecord): void {
    const dispatch = meta & META_DISPATCH_MASK;
    if (kind === KIND_RTS) {
      this.#note(to, OFFER);
      this.#late.push(() => this.#tell(to, from, DISPATCH_ID_NOTICE, noticeOf(body)));
    } else if (kind === KIND_MESSAGE && dispatch === DISPATCH_ID_PULL) {
      const [at, bytes] = [wordAt(body, 4 * PLACE_WORDS), wordAt(body, 4 * PLACE_WORDS + 4)];
      const header = new Uint8Array([...body.subarray(0, 4 * PLACE_WORDS), ...bytesOf(at, TRANSFER_DONE)]);
      this.#late.push(() => this.#tell(to, from, DISPATCH_ID_PULLED, header, offeredBytes(at, at + bytes)));
    } else if (kind === KIND_MESSAGE && dispatch === DISPATCH_ID_NOTICE) this.#note(to, TAKEN);
    // Without memory for an offer, the payload goes in a message.
    else if (kind === KIND_MESSAGE && dispatch === OFFERED) this.#note(to, OFFER);
    else if (kind === KIND_MESSAGE) {
      same("the dispatch id of a message", [dispatch], [DISPATCH]);
      this.#note(to, body[0] as number);
    }
  }

  /** Something is said of a payload that the engines move: the task that has offered it does its part. */
  #chained(from: Endpoint, to: Endpoint, chain: number, words: Int32Array): void {
    const said = words.subarray(PLACE_WORDS);
    if (chain === CHAIN_OVER) this.#note(to, TAKEN);
    else if (chain === CHAIN_BEGIN) {
      this.#place = [...said.subarray(0, PLACE_WORDS)];
      this.#rgets = descriptorsIn(said.subarray(PLACE_WORDS));
      for (const rget of this.#rgets)
        same("the kind of an RGET", [wordOf(rget, DESCRIPTOR_KIND_OFFSET)], [DESCRIPTOR_FETCH]);
    } else if (chain === CHAIN_SHIP) {
      if (this.#place.length === 0) throw new Error("a link came before the news of its chain");
      for (const descriptor of descriptorsIn(said)) this.#late.push(() => this.#process(to, from, descriptor));
    }
  }

  #process(from: Endpoint, to: Endpoint, descriptor: Int32Array): void {
    const kind = wordOf(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (kind === DESCRIPTOR_RGET) {
      const rget = this.#rgets[wordOf(descriptor, DESCRIPTOR_VALUE_OFFSET)] ?? [];
      this.#frame(from, to, { chain: CHAIN_SHIP, words: Int32Array.of(...this.#place, ...rget), data: undefined });
    } else if (kind === DESCRIPTOR_MOVE) {
      const bytes = wordOf(descriptor, DESCRIPTOR_BYTES_OFFSET);
      const at = wordOf(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET);
      const target = TARGET_OFFSETS.map((offset) => wordOf(descriptor, offset));
      const words = Int32Array.of(...this.#place, ...target, TRANSFER_DONE, bytes);
      this.#frame(from, to, { chain: CHAIN_MOVE, words, data: offeredBytes(at, at + bytes) });
    }
  }

  #frame(from: Endpoint, to: Endpoint, frame: Frame): void {
    if (!this.onFrame(from, to, frame)) throw new Error("a frame was dropped");
  }

  /** A task says a number to a task of this node. */
  say(from: number, to: number, number: number): void {
    this.#tell(endpointOf(from, 0), endpointOf(to, 0), DISPATCH, NO_BYTES, PAYLOADS[number]);
  }

  /** A task offers a payload to a task of this node. */
  offer(from: number, to: number, bytes: number): void {
    const body = new Uint8Array(RTS_SIZE);
    const words = new DataView(body.buffer);
    words.setUint32(RTS_BYTES_OFFSET, bytes, true);
    words.setUint32(RTS_FIFO_OFFSET, 1, true);
    this.#send(endpointOf(from, 0), endpointOf(to, 0), KIND_RTS, OFFERED, body);
  }

  #tell(from: Endpoint, to: Endpoint, dispatch: number, header: Uint8Array, payload: Uint8Array = NO_BYTES): void {
    const body = new Uint8Array(alignUp(header.length, 8) + payload.length);
    body.set(header);
    body.set(payload, body.length - payload.length);
    this.#send(from, to, KIND_MESSAGE, (header.length << META_HEADER_SHIFT) | dispatch, body);
  }

  #send(from: Endpoint, to: Endpoint, kind: number, meta: number, body: Uint8Array): void {
    this.#frame(from, to, { records: frameWith(kind, meta, body) });
  }

  get isLate(): boolean {
    return this.#late.length > 0;
  }

  answerLate(): void {
    for (const answer of this.#late.splice(0)) answer();
  }

  /** What was asked is answered. Returns whether there was anything. */
  answer(): boolean {
    const answers = this.#answers.splice(0);
    for (const answer of answers) answer();
    return answers.length > 0;
  }

  firstTaskOf(task: number): number {
    return task;
  }

  receivesFrom(): boolean {
    return false;
  }

  drop(task: number): boolean {
    this.talkedTo.delete(task);
    return true;
  }
}

/** The header of the message that a payload was taken, which a request to send has offered. */
function noticeOf(request: Uint8Array): Uint8Array {
  const block = [0, 4, 8].map((at) => wordAt(request, RTS_BLOCK_INDEX_OFFSET + at));
  return bytesOf(...block, wordAt(request, RTS_FIFO_OFFSET), TRANSFER_DONE);
}

/** One thing that comes from the other nodes. */
export type Event = (others: Others, agent: Agent) => void;

/** Turns without work, before the agent sleeps. */
const SPINS = 3;

/** The agent's thread, until the tasks' threads are through: before each of the first turns, one thing comes. */
export function agent(...events: readonly Event[]) {
  return (world: World): void => run(world, events, []);
}

/** The same; but these things come together, each time that the agent has slept. */
export function flooded(...flood: readonly Event[]) {
  return (world: World): void => run(world, [], flood);
}

function run(world: World, events: readonly Event[], flood: readonly Event[]): void {
  const { kernel, memory, map } = world;
  const others = new Others(world);
  const self = new Agent(kernel, memory, map, others, false);
  const slot = engineSlot(map);
  let idle = 0;
  for (let turn = 0; ; turn++) {
    const isOver = world.hasEnded(0) && world.hasEnded(2);
    const seen = kernel.bellArm(slot);
    events[turn]?.(others, self);
    const isAny = others.answer();
    const isIdle = !self.turn() && !isAny && !self.hasWork && turn >= events.length;
    if (isOver && isIdle) return;
    const sleeps = isIdle && ++idle % SPINS === 0;
    const longest = others.isLate || self.isRestless || flood.length > 0 ? 1 : Number.POSITIVE_INFINITY;
    if (sleeps && world.sleep(slot, seen, longest)) others.answerLate();
    kernel.bellDisarm(slot);
    if (sleeps && !isOver) for (const event of flood) event(others, self);
  }
}

/** A task of another node says a number. */
export function says(from: number, number: number, to = 0): Event {
  return (others) => others.say(from, to, number);
}

/** A task of another node offers a payload. */
export function offers(from: number, bytes: number): Event {
  return (others) => others.offer(from, 0, bytes);
}

/** A task of this node, with a context that notes origin and number of each message, or counts them alone. */
export class Own {
  readonly client: Client;
  readonly context: Context;
  got = 0;
  /** The task that sent the last message. */
  last = -1;
  readonly #world: World;

  constructor(world: World, slot: number, notes = true) {
    this.#world = world;
    this.client = world.client(slot);
    this.context = this.client.createContext({ spin: 0, pendingBytes: 0 });
    this.context.dispatch(DISPATCH, (message: Message) => {
      this.got++;
      this.last = message.task;
      if (!notes) return;
      world.note(taskOf(message.origin));
      world.note(message.getInt32(0));
    });
  }

  /** A region, once the heap's lock is free. */
  region(bytes: number): MemRegion {
    for (;;) {
      let region: MemRegion | undefined;
      if (!throws("PAMIR_BUSY", () => (region = this.client.createRegion(bytes))))
        return region as unknown as MemRegion;
      this.idle();
    }
  }

  /** Makes a notice. The first round may acknowledge it together with the next one, behind the lanes that it has read. */
  makeNotice(): void {
    const region = this.region(4);
    void region.handle;
    region.close();
  }

  /**
   * Takes each payload that is offered: its message counts once the payload is there. Before that, it sends the origin a
   * number, which wakes the agent.
   */
  takeOffers(destination: Uint8Array, options?: ReceiveOptions): void {
    const onComplete = (origin: unknown, result: Result): void => {
      same("the result of a payload", [result], [SUCCESS]);
      same("a payload", [...destination], [...offeredBytes(0, destination.length)]);
      this.got++;
      this.#world.note(origin as number);
      this.#world.note(TAKEN);
    };
    this.context.dispatch(OFFERED, (message: Message) => {
      if (this.context.sendImmediate(message.origin, DISPATCH, null, PAYLOADS[1], false) === SUCCESS) {
        this.#world.note(taskOf(message.origin));
        this.#world.note(1);
      }
      message.receive(destination, onComplete, taskOf(message.origin), options);
    });
  }

  /** Offers a payload, and waits until it is taken. Notes that, unless there is no slot for its target. */
  offer(to: number, payload: MemRegion): void {
    let result = -1;
    const onLocal = (_: unknown, how: Result): void => {
      result = how;
    };
    const offer = {
      to: endpointOf(to, 0),
      dispatch: OFFERED,
      payload: payload.bytes,
      rendezvous: true,
      onLocal,
    } as const;
    if (this.context.send({ ...offer, queue: false }) !== SUCCESS) return;
    this.#world.note(to);
    this.#world.note(OFFER);
    this.context.advanceUntil(() => result >= 0);
    same("the result of an offer", [result], [SUCCESS]);
  }

  /** Tries until there is a slot for a task, and room. Returns what it came to then. */
  #insist(to: number, attempt: (target: Endpoint) => Result): Result {
    const target = endpointOf(to, 0);
    for (;;) {
      const result = attempt(target);
      if (result !== EAGAIN) return result;
      let isTold = false;
      this.context.whenRoom(target, 4, () => {
        isTold = true;
      });
      this.context.advanceUntil(() => isTold);
    }
  }

  /** Sends a number. Returns SUCCESS, or SHUTDOWN if the target has ended. */
  #say(to: number, number: number): Result {
    return this.#insist(to, (target) => this.context.sendImmediate(target, DISPATCH, null, PAYLOADS[number]));
  }

  /** Sends a number to a task that goes on. */
  say(to: number, number: number): void {
    same("what a message came to", [this.#say(to, number)], [SUCCESS]);
  }

  /** Sends a number to a task that may have ended. */
  sayIfUp(to: number, number: number): void {
    const result = this.#say(to, number);
    if (result !== SHUTDOWN) same("what a message came to", [result], [SUCCESS]);
  }

  /** Sends a number whose place is reserved for some rounds, and notes it, unless there is no slot for its target. */
  sayLate(to: number, number: number, rounds: number): void {
    const target = endpointOf(to, 0);
    const at = this.context.reserve(target, DISPATCH, 4);
    for (let round = 0; round < rounds; round++) this.context.advance();
    if (at < 0) return;
    this.#world.note(to);
    this.#world.note(number);
    this.#world.store(at, number);
    this.context.commit(target);
  }

  /** Puts a word into a region of a task, and waits until it is there. */
  put(to: number, local: MemRegion): void {
    const remote = handleOf(this.#world, 0, 0);
    this.#put({ to: endpointOf(to, 0), local, remote, bytes: 4 });
  }

  /** Copies within a region of its own, which is so long that the engine does it. */
  copy(local: MemRegion, bytes: number): void {
    this.#put({ to: this.context.endpoint, local, remote: local.handle, remoteOffset: bytes, bytes });
  }

  #put(put: Omit<PutParameters, "onRemote">): void {
    let result = -1;
    const onRemote = (_: unknown, how: Result): void => {
      result = how;
    };
    same("what a put came to", [this.#insist(taskOf(put.to), () => this.context.put({ ...put, onRemote }))], [SUCCESS]);
    this.context.advanceUntil(() => result >= 0);
    same("the result of a put", [result], [SUCCESS]);
  }

  /** Advances until no other thread goes on. */
  idle(): void {
    this.context.advanceUntil(() => false, { timeout: 1 });
  }

  /** Sleeps without a round until no other thread goes on. */
  rest(): void {
    const { kernel } = this.#world;
    const slot = this.#world.task(this.client.task);
    kernel.bellWait(slot, kernel.bellArm(slot), 1);
    kernel.bellDisarm(slot);
  }

  /** Advances until so many messages have come. */
  await(count: number): void {
    this.context.advanceUntil(() => this.got >= count);
  }
}

/** Gives slots to these tasks, from the first free one on. */
export function bindAll(world: World, ...tasks: readonly number[]): void {
  const { kernel, memory, map } = world;
  const addresses = new SlotTable(kernel, memory, map);
  for (const task of tasks) if (addresses.bind(task, map.tasks) < 0) throw new Error(`no slot for task ${task}`);
}

/** What was noted of one task, in order. */
export function allOf(task: number, notes: readonly number[] = []): number[] {
  return notes.filter((_, i) => i % 2 === 1 && notes[i - 1] === task);
}

/** The same without the ends of tasks. */
export function of(task: number, notes?: readonly number[]): number[] {
  return allOf(task, notes).filter((one) => one < END);
}

// MPI's matching, done by lists of objects: what a kernel is to do with any sequence of commands. After each of them, all
// requests, all bytes around the engine's memory, its counters and all its blocks are looked at.
import fc from "fast-check";
import { expect } from "vitest";
import * as L from "../../assembly/layout.js";
import { fraction, share } from "./arbitraries.js";
import type { MpiRig } from "./mpi-kernels.js";

export type MpiCommand =
  | { readonly do: "post"; comm: number; source: number; tag: number; capacity: number }
  | { readonly do: "arrive"; comm: number; source: number; tag: number; bytes: number; isRts: boolean }
  | { readonly do: "probe"; comm: number; source: number; tag: number }
  | { readonly do: "take"; comm: number; source: number; tag: number }
  | { readonly do: "matched"; which: number; capacity: number }
  | { readonly do: "cancel"; which: number }
  | { readonly do: "free"; which: number }
  | { readonly do: "answer"; which: number }
  | { readonly do: "fail"; which: number; error: number }
  | { readonly do: "sent" }
  | { readonly do: "extend"; bytes: number }
  /** A message that no engine sends. */
  | { readonly do: "wrong"; word: number; field: "comm" | "kind" | "bytes" | "answer" };

export const COMMS = 3;
const rank = fc.integer({ min: 0, max: 2 });
const wanted = fc.oneof({ weight: 3, arbitrary: rank }, { weight: 2, arbitrary: fc.constant(L.MPI_ANY) });
const comm = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: COMMS - 1 }));
/** Around the ends of the first size classes, and where a payload is not of whole words. */
const bytes = fc.oneof(fc.constantFrom(0, 1, 16, 31, 32, 33, 95, 96, 97, 224, 225), fc.integer({ min: 0, max: 300 }));
const which = fraction;
const done = <T extends string>(name: T) => fc.constant(name);

export const mpiCommand: fc.Arbitrary<MpiCommand> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ do: done("post"), comm, source: wanted, tag: wanted, capacity: bytes }) },
  {
    weight: 9,
    arbitrary: fc.record({ do: done("arrive"), comm, source: rank, tag: rank, bytes, isRts: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: done("probe"), comm, source: wanted, tag: wanted }) },
  { weight: 2, arbitrary: fc.record({ do: done("take"), comm, source: wanted, tag: wanted }) },
  { weight: 2, arbitrary: fc.record({ do: done("matched"), which, capacity: bytes }) },
  { weight: 2, arbitrary: fc.record({ do: done("cancel"), which }) },
  { weight: 4, arbitrary: fc.record({ do: done("free"), which }) },
  { weight: 2, arbitrary: fc.record({ do: done("sent") }) },
  { weight: 2, arbitrary: fc.record({ do: done("answer"), which }) },
  { weight: 1, arbitrary: fc.record({ do: done("fail"), which, error: fc.integer({ min: 1, max: 99 }) }) },
  { weight: 1, arbitrary: fc.record({ do: done("extend"), bytes: fc.constantFrom(0, 64, 320, 1000, 4096) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: done("wrong"),
      word: fc.oneof(fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff), fc.nat(300_000)),
      field: fc.constantFrom("comm", "kind", "bytes", "answer"),
    }),
  },
);

/** The words of a header. */
function headerWords(given: { comm: number; kind: number; source: number; tag: number; bytes: number }): Uint32Array {
  const { comm, kind, source, tag, bytes } = given;
  return Uint32Array.of(comm | (kind << L.MPI_HEADER_KIND_SHIFT), source, tag, bytes);
}

interface Message {
  readonly comm: number;
  readonly source: number;
  readonly tag: number;
  readonly isRts: boolean;
  readonly bytes: number;
  readonly origin: number;
  /** What follows the header. */
  readonly content: Uint8Array;
  /** Where it lies once it is taken. */
  pointer: number;
}

interface Request {
  readonly pointer: number;
  state: number;
  error: number;
  /** Undefined for a send. */
  readonly receive?: {
    readonly comm: number;
    readonly source: number;
    readonly tag: number;
    readonly slot: number;
    readonly capacity: number;
  };
  message?: Message;
}

export interface MpiSizes {
  /** Of the engine's first memory. */
  readonly engine: number;
  /** Of all that it may be given later. */
  readonly more: number;
  /** Of the buffer of a receive. */
  readonly buffer: number;
  readonly buffers: number;
}

export const SMALL: MpiSizes = { engine: 2048, more: 32_768, buffer: 320, buffers: 64 };

const UNIT = 64;
const fits = (wanted: number, value: number): boolean => wanted === L.MPI_ANY || wanted === value;
const classOf = (bytes: number): number => Math.max(L.MPI_BLOCK_CLASS_MIN, Math.ceil(Math.log2(bytes)));

/** As expect(found).toEqual(expected), which takes ten times as long. */
function same(found: readonly number[], expected: readonly number[], what: string): void {
  if (found.length === expected.length && found.every((value, i) => value === expected[i])) return;
  expect(found, what).toEqual(expected);
}

/** Bytes that a test needs for an engine of these sizes. */
export function bytesOf({ engine, more, buffer, buffers }: MpiSizes): number {
  return UNIT * Math.ceil(((buffers + 2) * buffer + engine + more) / UNIT);
}

/** Plays commands on a kernel, and says what it does otherwise than the model. */
export class MpiPlayer {
  readonly #rig: MpiRig;
  readonly #sizes: MpiSizes;
  readonly #engine: number;
  readonly #area: Uint8Array;
  /** What is to stand outside of the engine's memory. */
  readonly #around: Uint8Array;
  readonly #comms = Array.from({ length: COMMS }, () => ({ posted: [] as Request[], stored: [] as Message[] }));
  readonly #requests: Request[] = [];
  readonly #taken: Message[] = [];
  readonly #usedSlots = new Set<number>();
  /** Of the engine's memory: free blocks by class, bytes that were in no block yet, and those that are given up. */
  readonly #free = new Map<number, number>();
  #left: number;
  #lost = 0;
  #given = 0;
  #messages = 0;
  /** How often the engine had no memory. */
  refused = 0;

  constructor(rig: MpiRig, sizes: MpiSizes = SMALL) {
    this.#rig = rig;
    this.#sizes = sizes;
    const { memory, base, kernel } = rig;
    this.#area = memory.bytes.subarray(base, base + bytesOf(sizes));
    this.#area.fill(0xa5);
    // What it may be given later lies before it, so that the end of its first memory may be the end of all.
    this.#engine = base + bytesOf(sizes) - UNIT * Math.floor(sizes.engine / UNIT);
    this.#around = this.#area.slice(0, (sizes.buffers + 2) * sizes.buffer);
    const bytes = base + bytesOf(sizes) - this.#engine;
    kernel.mpiInit(this.#engine, bytes, COMMS);
    this.#left = bytes - L.MPI_ENGINE_SIZE - UNIT * Math.ceil((COMMS * L.MPI_COMM_SIZE) / UNIT);
    this.#check();
  }

  /** Bytes of the engine's memory that were in no block yet. */
  get left(): number {
    return this.#left;
  }

  play(commands: readonly MpiCommand[]): void {
    for (const command of commands) {
      this.#do(command);
      this.#check();
    }
  }

  /** Ends all that is under way, and gives all requests back. */
  drain(): void {
    const all = (): void => {
      while (this.#requests.length > 0) {
        const request = this.#requests[0] as Request;
        if (request.state === L.MPI_REQUEST_SENT) this.#answer(request);
        else if (request.state === L.MPI_REQUEST_POSTED) this.#cancel(request);
        this.#freeRequest(request);
      }
    };
    all();
    while (this.#taken.length > 0) {
      if (!this.#hasRoom(L.MPI_REQUEST_SIZE)) this.#do({ do: "extend", bytes: UNIT });
      this.#do({ do: "matched", which: 0, capacity: this.#sizes.buffer });
      all();
    }
    for (const [comm, { stored }] of this.#comms.entries()) {
      while (stored.length > 0) {
        if (!this.#hasRoom(L.MPI_REQUEST_SIZE)) this.#do({ do: "extend", bytes: UNIT });
        this.#do({ do: "post", comm, source: L.MPI_ANY, tag: L.MPI_ANY, capacity: this.#sizes.buffer });
        all();
      }
    }
    this.#check();
    same(this.#counters(), [0, 0, 0], "stored, storedBytes, posted");
  }

  #do(command: MpiCommand): void {
    if (command.do === "post") this.#post(command);
    else if (command.do === "arrive") this.#arrive(command);
    else if (command.do === "probe" || command.do === "take") this.#look(command);
    else if (command.do === "matched") this.#matched(command);
    else if (command.do === "sent") this.#sent();
    else if (command.do === "extend") this.#extend(command.bytes);
    else if (command.do === "wrong") this.#wrong(command);
    else {
      const { which } = command;
      const one = (all: Request[]): Request | undefined => all[share(which, all.length - 1)];
      const isFor = { cancel: [1, 2, 4, 5], free: [1, 2, 3, 4, 5], answer: [3], fail: [1, 2, 3, 4, 5] }[command.do];
      const request = one(this.#requests.filter(({ state }) => isFor.includes(state)));
      if (request === undefined) return;
      if (command.do === "cancel") this.#cancel(request);
      else if (command.do === "free") this.#freeRequest(request);
      else if (command.do === "answer") this.#answer(request);
      else this.#fail(request, command.error);
    }
  }

  #post({ comm, source, tag, capacity }: { comm: number; source: number; tag: number; capacity: number }): void {
    const slot = this.#freeSlot();
    if (slot === undefined) return;
    const { kernel } = this.#rig;
    const pointer = this.#request(() => kernel.mpiPost(this.#engine, comm, source, tag, this.#buffer(slot), capacity));
    if (pointer === undefined) return;
    const { posted, stored } = this.#comms[comm] as { posted: Request[]; stored: Message[] };
    const request: Request = {
      pointer,
      state: L.MPI_REQUEST_POSTED,
      error: 0,
      receive: { comm, source, tag, slot, capacity },
    };
    this.#add(request);
    const found = stored.findIndex((message) => fits(source, message.source) && fits(tag, message.tag));
    if (found < 0) posted.push(request);
    else this.#receiveStored(request, stored.splice(found, 1)[0] as Message);
  }

  #arrive({
    comm,
    source,
    tag,
    bytes,
    isRts,
  }: {
    comm: number;
    source: number;
    tag: number;
    bytes: number;
    isRts: boolean;
  }): void {
    const n = ++this.#messages;
    const content = Uint8Array.from({ length: isRts ? L.MPI_RTS_SIZE : bytes }, (_, i) => n * 31 + i * 7 + (i >>> 3));
    const message: Message = {
      comm,
      source,
      tag,
      isRts,
      bytes,
      origin: 1000 + n,
      content,
      pointer: 0,
    };
    const { posted, stored } = this.#comms[comm] as { posted: Request[]; stored: Message[] };
    const found = posted.findIndex(({ receive }) => fits(receive?.source ?? 0, source) && fits(receive?.tag ?? 0, tag));
    const needs = L.MPI_STORED_PAYLOAD_OFFSET + content.length;
    const hasRoom = found >= 0 || this.#hasRoom(needs);
    const { header, payload } = this.#write(message);
    const before = hasRoom ? undefined : this.#area.slice();
    const result = this.#rig.kernel.mpiArrive(this.#engine, header, payload, message.origin);
    if (before !== undefined) {
      expect([result, "nothing has happened"]).toEqual([L.MPI_NO_MEMORY, this.#isAs(before)]);
      this.refused++;
    } else if (found < 0) {
      expect(result).toBe(L.MPI_ARRIVED_STORED);
      this.#takeBlock(needs);
      stored.push(message);
    } else {
      const [request] = posted.splice(found, 1) as [Request];
      expect(result).toBe(request.pointer);
      this.#receive(request, message);
    }
  }

  /** Writes a message to where its receiver finds it. */
  #write({ comm, source, tag, isRts, bytes, content }: Message): { header: number; payload: number } {
    const { base } = this.#rig;
    const header = new Uint8Array(
      headerWords({ comm, kind: isRts ? L.MPI_RTS : L.MPI_EAGER, source, tag, bytes }).buffer,
    );
    for (const area of [this.#around, this.#area]) {
      area.set(header, 0);
      area.set(content, this.#sizes.buffer);
    }
    return { header: base, payload: base + this.#sizes.buffer };
  }

  #look({ do: what, comm, source, tag }: { do: "probe" | "take"; comm: number; source: number; tag: number }): void {
    const { kernel } = this.#rig;
    const { stored } = this.#comms[comm] as { stored: Message[] };
    const found = stored.findIndex((message) => fits(source, message.source) && fits(tag, message.tag));
    const call = what === "take" ? kernel.mpiTake : kernel.mpiProbe;
    const pointer = call(this.#engine, comm, source, tag);
    if (found < 0) {
      expect(pointer).toBe(0);
      return;
    }
    const message = stored[found] as Message;
    this.#checkStored(pointer, message);
    if (what !== "take") return;
    message.pointer = pointer;
    this.#taken.push(message);
    stored.splice(found, 1);
  }

  #matched({ which, capacity }: { which: number; capacity: number }): void {
    const slot = this.#freeSlot();
    const message = this.#taken[share(which, this.#taken.length - 1)];
    if (slot === undefined || message === undefined) return;
    const { kernel } = this.#rig;
    const { comm } = message;
    const pointer = this.#request(() => kernel.mpiMatched(this.#engine, message.pointer, this.#buffer(slot), capacity));
    if (pointer === undefined) return;
    const request: Request = { pointer, state: 0, error: 0, receive: { comm, source: 0, tag: 0, slot, capacity } };
    this.#add(request);
    this.#taken.splice(this.#taken.indexOf(message), 1);
    this.#receiveStored(request, message);
  }

  #sent(): void {
    const pointer = this.#request(() => this.#rig.kernel.mpiSent(this.#engine, 3));
    if (pointer === undefined) return;
    expect(this.#word(pointer + L.MPI_REQUEST_ORIGIN_OFFSET)).toBe(3);
    this.#add({ pointer, state: L.MPI_REQUEST_SENT, error: 0 });
  }

  #answer(request: Request): void {
    expect(this.#answerTo(request.pointer)).toBe(request.pointer);
    request.state = L.MPI_REQUEST_DONE;
  }

  #answerTo(number: number): number {
    const words = headerWords({ comm: 0, kind: L.MPI_ANSWER, source: 0, tag: 0, bytes: number });
    for (const area of [this.#around, this.#area]) area.set(new Uint8Array(words.buffer), 0);
    return this.#rig.kernel.mpiArrive(this.#engine, this.#rig.base, 0, 7);
  }

  #cancel(request: Request): void {
    const isPosted = request.state === L.MPI_REQUEST_POSTED;
    expect(this.#rig.kernel.mpiCancel(this.#engine, request.pointer)).toBe(Number(isPosted));
    if (!isPosted) return;
    request.state = L.MPI_REQUEST_CANCELED;
    this.#unpost(request);
  }

  #fail(request: Request, error: number): void {
    const waits = request.state === L.MPI_REQUEST_POSTED || request.state === L.MPI_REQUEST_SENT;
    expect(this.#rig.kernel.mpiFail(this.#engine, request.pointer, error)).toBe(Number(waits));
    if (!waits) return;
    if (request.state === L.MPI_REQUEST_POSTED) this.#unpost(request);
    request.state = L.MPI_REQUEST_DONE;
    request.error = error;
  }

  #unpost(request: Request): void {
    const { comm } = request.receive as { comm: number };
    const { posted } = this.#comms[comm] as { posted: Request[] };
    posted.splice(posted.indexOf(request), 1);
  }

  #freeRequest(request: Request): void {
    if (request.state === L.MPI_REQUEST_POSTED) this.#unpost(request);
    this.#rig.kernel.mpiFree(this.#engine, request.pointer);
    this.#giveBlock(L.MPI_REQUEST_SIZE);
    this.#requests.splice(this.#requests.indexOf(request), 1);
    if (request.receive !== undefined) this.#usedSlots.delete(request.receive.slot);
  }

  #extend(bytes: number): void {
    const { base, kernel } = this.#rig;
    const whole = UNIT * Math.ceil(bytes / UNIT);
    if (this.#given + whole + UNIT > this.#sizes.more) return;
    // The last 64 bytes of each are not the engine's.
    const from = base + UNIT * Math.ceil(((this.#sizes.buffers + 2) * this.#sizes.buffer) / UNIT) + this.#given;
    kernel.mpiExtend(this.#engine, from, bytes);
    this.#given += whole + UNIT;
    for (let size = L.MPI_BLOCK_CLASS_MAX; size >= L.MPI_BLOCK_CLASS_MIN; size--) {
      for (; this.#left >= 2 ** size; this.#left -= 2 ** size) this.#giveBlock(2 ** size);
    }
    this.#lost += this.#left;
    this.#left = bytes;
  }

  #wrong({ field, word: given }: { field: "comm" | "kind" | "bytes" | "answer"; word: number }): void {
    const word = field === "comm" || field === "kind" ? given & 0xffff : given;
    const isRight = {
      comm: word < COMMS,
      kind: word <= L.MPI_ANSWER,
      bytes: word <= L.MPI_EAGER_BYTES_MAX,
      answer: false,
    };
    if (isRight[field]) return;
    if (field === "answer") {
      // Also the numbers of requests that wait for no answer, and of those that are free.
      const others = this.#requests.filter(({ state }) => state !== L.MPI_REQUEST_SENT).map(({ pointer }) => pointer);
      const number =
        word % 3 === 0
          ? others[word % Math.max(1, others.length)]
          : word % 3 === 1
            ? this.#engine + (word % 4096)
            : word;
      if (this.#requests.some(({ pointer, state }) => pointer === number && state === L.MPI_REQUEST_SENT)) return;
      expect(this.#answerTo(number ?? word)).toBe(L.MPI_NO_REQUEST);
      return;
    }
    const { header, payload } = this.#write({
      comm: 0,
      source: 0,
      tag: 0,
      isRts: false,
      bytes: 0,
      content: new Uint8Array(0),
      origin: 0,
      pointer: 0,
    });
    const at = {
      comm: L.MPI_HEADER_COMM_OFFSET,
      kind: L.MPI_HEADER_COMM_OFFSET + L.MPI_HEADER_KIND_SHIFT / 8,
      bytes: L.MPI_HEADER_BYTES_OFFSET,
    }[field];
    // Number and kind have 16 bits each.
    const bytes = new Uint8Array(field === "bytes" ? Uint32Array.of(word).buffer : Uint16Array.of(word).buffer);
    for (const area of [this.#around, this.#area]) area.set(bytes, at);
    const before = this.#area.slice();
    const result = this.#rig.kernel.mpiArrive(this.#engine, header, payload, 5);
    expect([result, "nothing has happened"]).toEqual([L.MPI_NO_REQUEST, this.#isAs(before)]);
  }

  /** Calls what makes a request. @returns its pointer; undefined: there was no memory, and nothing has happened */
  #request(call: () => number): number | undefined {
    const hasRoom = this.#hasRoom(L.MPI_REQUEST_SIZE);
    const before = hasRoom ? undefined : this.#area.slice();
    const result = call();
    if (before === undefined) {
      expect(result).toBeGreaterThan(L.MPI_NO_REQUEST);
      this.#takeBlock(L.MPI_REQUEST_SIZE);
      return result;
    }
    expect([result, "nothing has happened"]).toEqual([L.MPI_NO_MEMORY, this.#isAs(before)]);
    this.refused++;
    return undefined;
  }

  #isAs(before: Uint8Array): string {
    return Buffer.compare(before, this.#area) === 0 ? "nothing has happened" : "the memory has changed";
  }

  #add(request: Request): void {
    this.#requests.push(request);
    if (request.receive !== undefined) this.#usedSlots.add(request.receive.slot);
  }

  #receive(request: Request, message: Message): void {
    const { slot, capacity } = request.receive as { slot: number; capacity: number };
    request.message = message;
    request.state = message.isRts ? L.MPI_REQUEST_MATCHED : L.MPI_REQUEST_DONE;
    request.error = message.bytes > capacity ? L.MPI_TRUNCATED : 0;
    if (!message.isRts) this.#around.set(message.content.subarray(0, capacity), this.#buffer(slot) - this.#rig.base);
  }

  #receiveStored(request: Request, message: Message): void {
    this.#giveBlock(L.MPI_STORED_PAYLOAD_OFFSET + message.content.length);
    this.#receive(request, message);
  }

  #freeSlot(): number | undefined {
    for (let slot = 0; slot < this.#sizes.buffers; slot++) if (!this.#usedSlots.has(slot)) return slot;
    return undefined;
  }

  #buffer(slot: number): number {
    return this.#rig.base + (2 + slot) * this.#sizes.buffer;
  }

  #hasRoom(bytes: number): boolean {
    return (this.#free.get(classOf(bytes)) ?? 0) > 0 || this.#left >= 2 ** classOf(bytes);
  }

  #takeBlock(bytes: number): void {
    const size = classOf(bytes);
    const free = this.#free.get(size) ?? 0;
    if (free > 0) this.#free.set(size, free - 1);
    else this.#left -= 2 ** size;
  }

  #giveBlock(bytes: number): void {
    this.#free.set(classOf(bytes), (this.#free.get(classOf(bytes)) ?? 0) + 1);
  }

  #word(pointer: number): number {
    return (this.#rig.memory.words[pointer >>> 2] as number) >>> 0;
  }

  #check(): void {
    if (Buffer.compare(this.#area.subarray(0, this.#around.length), this.#around) !== 0) {
      const at = this.#around.findIndex((byte, i) => byte !== this.#area[i]);
      throw new Error(
        `byte ${at} is ${this.#area[at]}, not ${this.#around[at]}: buffer ${Math.floor(at / this.#sizes.buffer) - 2}`,
      );
    }
    for (const request of this.#requests) this.#checkRequest(request);
    const messages = [...this.#comms.flatMap(({ stored }) => stored), ...this.#taken];
    const bytes = messages.reduce((sum, { content }) => sum + content.length, 0);
    const posted = this.#comms.reduce((sum, { posted }) => sum + posted.length, 0);
    same(this.#counters(), [messages.length, bytes, posted], "stored, storedBytes, posted");
    this.#checkBlocks();
  }

  #counters(): number[] {
    const at = [L.MPI_ENGINE_STORED_OFFSET, L.MPI_ENGINE_STORED_BYTES_OFFSET, L.MPI_ENGINE_POSTED_OFFSET];
    return at.map((offset) => this.#word(this.#engine + offset));
  }

  #checkRequest({ pointer, state, error, receive, message }: Request): void {
    const field = (offset: number): number => this.#word(pointer + offset);
    const found = [field(L.MPI_REQUEST_STATE_OFFSET), field(L.MPI_REQUEST_ERROR_OFFSET)];
    const expected = [state, error];
    if (receive !== undefined) {
      const { comm, slot, capacity } = receive;
      found.push(
        field(L.MPI_REQUEST_COMM_OFFSET),
        field(L.MPI_REQUEST_BUFFER_OFFSET),
        field(L.MPI_REQUEST_CAPACITY_OFFSET),
      );
      expected.push(comm, this.#buffer(slot), capacity);
      if (message !== undefined || state === L.MPI_REQUEST_POSTED) {
        found.push(field(L.MPI_REQUEST_SOURCE_OFFSET), field(L.MPI_REQUEST_TAG_OFFSET));
        expected.push((message ?? receive).source >>> 0, (message ?? receive).tag >>> 0);
      }
    }
    if (message !== undefined) {
      found.push(field(L.MPI_REQUEST_BYTES_OFFSET), field(L.MPI_REQUEST_ORIGIN_OFFSET));
      expected.push(message.bytes, message.origin);
    }
    if (message?.isRts) {
      const at = [L.MPI_REQUEST_INDEX_OFFSET, L.MPI_REQUEST_GENERATION_OFFSET, L.MPI_REQUEST_OFFSET_OFFSET];
      found.push(field(L.MPI_REQUEST_ANSWER_OFFSET), ...at.map(field));
      const [index, generation, offset, number] = new Uint32Array(message.content.slice().buffer);
      expected.push(number as number, index as number, generation as number, offset as number);
    }
    same(found, expected, `the request at ${pointer}`);
  }

  #checkStored(pointer: number, { comm, source, tag, isRts, bytes, origin, content }: Message): void {
    const header = [0, 1, 2, 3].map((word) => this.#word(pointer + L.MPI_STORED_HEADER_OFFSET + 4 * word));
    const found = [...header, this.#word(pointer + L.MPI_STORED_ORIGIN_OFFSET)];
    const expected = [...headerWords({ comm, kind: Number(isRts), source, tag, bytes }), origin];
    same(found, expected, `the message at ${pointer}`);
    const at = pointer + L.MPI_STORED_PAYLOAD_OFFSET;
    const isSame = Buffer.compare(this.#rig.memory.bytes.subarray(at, at + content.length), content) === 0;
    if (!isSame) throw new Error(`the payload of the message at ${pointer} is not that which has come`);
  }

  /** Each byte of the engine's memory is in one block, in use or free, or was never part of one. */
  #checkBlocks(): void {
    const used = new Map<number, number>();
    const add = (pointer: number, bytes: number): void => {
      for (let unit = pointer; unit < pointer + bytes; unit += UNIT) {
        if (used.has(unit)) throw new Error(`the block at ${pointer} is a part of that at ${used.get(unit)}`);
        used.set(unit, pointer);
      }
    };
    for (const { pointer } of this.#requests) add(pointer, L.MPI_REQUEST_SIZE);
    const blockOf = ({ content }: Message): number => 2 ** classOf(L.MPI_STORED_PAYLOAD_OFFSET + content.length);
    for (const message of this.#taken) add(message.pointer, blockOf(message));
    for (const [comm, { stored }] of this.#comms.entries()) {
      let pointer = this.#engine + L.MPI_ENGINE_SIZE + comm * L.MPI_COMM_SIZE + L.MPI_COMM_STORED_FIRST_OFFSET;
      for (const message of stored) {
        pointer = this.#word(pointer);
        this.#checkStored(pointer, message);
        add(pointer, blockOf(message));
      }
      same([this.#word(pointer)], [0], `what follows the last message of communicator ${comm}`);
    }
    this.#checkQueues();
    for (let size = 0; size < 32; size++) {
      let block = this.#word(this.#engine + L.MPI_ENGINE_FREE_OFFSET + 4 * size);
      let count = 0;
      for (; block !== 0; block = this.#word(block), count++) add(block, 2 ** size);
      same([count], [this.#free.get(size) ?? 0], `free blocks of class ${size}`);
    }
    const next = this.#word(this.#engine + L.MPI_ENGINE_NEXT_OFFSET);
    same([(this.#word(this.#engine + L.MPI_ENGINE_END_OFFSET) - next) >>> 0], [this.#left], "bytes that are left");
    for (const unit of used.keys())
      if (unit >= next && unit < next + this.#left) throw new Error(`${unit} is in a block`);
  }
  /** A queue with an entry too many would soon be a circle, and the kernel would not end. */
  #checkQueues(): void {
    const check = (queue: number, expected: readonly Request[]): void => {
      const found: number[] = [];
      for (let entry = this.#word(queue); entry !== 0 && found.length <= expected.length; entry = this.#word(entry))
        found.push(entry);
      const pointers = expected.map(({ pointer }) => pointer);
      same(found, pointers, "a queue of requests");
    };
    const table = this.#engine + L.MPI_ENGINE_SIZE + L.MPI_COMM_POSTED_FIRST_OFFSET;
    for (const [comm, { posted }] of this.#comms.entries()) check(table + comm * L.MPI_COMM_SIZE, posted);
    const sent = this.#requests.filter(({ state }) => state === L.MPI_REQUEST_SENT);
    check(this.#engine + L.MPI_ENGINE_SENT_FIRST_OFFSET, sent);
  }
}

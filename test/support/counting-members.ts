// Members of one memory, all on this thread, whose loads and stores are counted: the cache lines of others that each one
// reads in an operation, those of its own that others read, and the bytes that it copies and reduces.
import { MEMBER_SIZE, PAGE_SIZE } from "../../assembly/layout.js";
import type { CollectiveOperation, OperationBuffers, Reducer } from "../../src/collective/operation.js";
import type { Piece, Scratch } from "../../src/collective/scratch.js";
import { SharedMembers } from "../../src/collective/shared/shared-members.js";
import {
  type SharedAlgorithm,
  type SharedHost,
  SharedOperation,
} from "../../src/collective/shared/shared-operation.js";
import { type Result, SUCCESS } from "../../src/core/result.js";
import { type Kernel, type Memory, memoryOf } from "../../src/kernel/kernel.js";

const LINE = 64;
/** Behind all memory: the task slots, of which the members read nothing but the flag of one that sleeps. */
const TASKS = 2 ** 31;

/** What one member has done in an operation. */
class Counts {
  readonly written = new Set<number>();
  readonly read = new Set<number>();
  rings = 0;
  local = 0;
}

function mark(lines: Set<number>, pointer: number, bytes: number): void {
  for (let line = Math.floor(pointer / LINE); line * LINE < pointer + bytes; line++) lines.add(line);
}

/** A view whose elements are counted as they are read and written. */
function counted<View extends Int32Array | Uint8Array>(view: View, count: () => Counts): View {
  const size = view.BYTES_PER_ELEMENT;
  return new Proxy(view, {
    get(target, name) {
      const place = Number(name as string);
      if (Number.isInteger(place)) {
        mark(count().read, size * place, size);
        return target[place];
      }
      const value = target[name as keyof View] as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
    set(target, name, value) {
      const place = Number(name as string);
      mark(count().written, size * place, size);
      target[place] = value;
      return true;
    },
  });
}

/** As the members of the runtime, with the bytes that they copy counted. */
class CountingMembers extends SharedMembers {
  counts = new Counts();

  override read(target: Uint8Array, offset: number, pointer: number, bytes: number): void {
    if (this.pointerOf(target) + offset !== pointer) this.counts.local += bytes;
    super.read(target, offset, pointer, bytes);
  }

  override write(pointer: number, source: Uint8Array): void {
    this.counts.local += source.length;
    super.write(pointer, source);
  }

  override readWords(target: Int32Array, pointer: number): void {
    this.counts.local += target.byteLength;
    super.readWords(target, pointer);
  }

  override writeWords(pointer: number, source: Int32Array, copy?: number): void {
    this.counts.local += source.byteLength * (copy === undefined ? 1 : 2);
    super.writeWords(pointer, source, copy);
  }
}

class CountingMember {
  readonly shared: CountingMembers;
  readonly buffers: OperationBuffers;
  readonly #host: SharedHost;
  operation!: SharedOperation;

  constructor(
    memory: Memory,
    rank: number,
    blocks: readonly number[],
    send: Uint8Array,
    receive: Uint8Array,
    scratch: Scratch,
  ) {
    const count = (): Counts => this.shared.counts;
    const { words, bytes } = memory;
    const copyBytes = (to: number, from: number, length: number): void => {
      mark(count().read, from, length);
      mark(count().written, to, length);
      bytes.copyWithin(to, from, from + length);
    };
    const kernel = {
      loadWord(pointer: number): number {
        if (pointer >= TASKS) {
          count().rings++;
          return 0;
        }
        mark(count().read, pointer, 4);
        return words[pointer >>> 2] as number;
      },
      storeWord(pointer: number, value: number): void {
        mark(count().written, pointer, 4);
        words[pointer >>> 2] = value;
      },
      ring(): void {
        count().rings++;
      },
      copyBytes,
    } as unknown as Kernel;
    const reducer: Reducer = {
      elementBytes: 8,
      align: 1,
      isUser: false,
      reduce: (out, left, right, length) => {
        for (const operand of [left, right]) mark(count().read, operand, length);
        mark(count().written, out, length);
        count().local += length;
        for (let at = 0; at < length; at++) {
          bytes[out + at] = (bytes[left + at] as number) + (bytes[right + at] as number);
        }
      },
    };
    const seen = { ...memory, words: counted(words, count), bytes: counted(bytes, count) } as Memory;
    const cold = {
      copyCold(to: number, from: number, length: number): number {
        copyBytes(to, from, length);
        return 0;
      },
    };
    const tasks = blocks.map((_, task) => TASKS + task);
    this.shared = new CountingMembers(kernel, cold, seen, rank, blocks, tasks);
    this.buffers = { send, receive, reducer };
    const over = (operation: CollectiveOperation, result: Result): void => {
      operation.result = result;
      operation.release();
      this.shared.complete(operation.number, operation.isMutual && result === SUCCESS);
    };
    // No operation here lacks memory, so none sends messages.
    const host: Partial<SharedHost> = {
      shared: this.shared,
      scratch,
      hasAnyEnded: false,
      hasEnded: () => false,
      over,
      failed(_operation, result, why) {
        throw new Error(`an operation fails with ${result}: ${why}`);
      },
      sent: () => {},
    };
    this.#host = host as SharedHost;
  }

  begin(number: number, steps: SharedAlgorithm): void {
    this.shared.counts = new Counts();
    this.operation = new SharedOperation(this.#host, this.buffers, steps);
    this.operation.number = number;
  }
}

/** What an operation costs. */
export interface Cost {
  /** Lines that the busiest member writes and others read, and lines of others' memory that the busiest one reads. */
  readonly written: number;
  readonly read: number;
  /** Lines that all members read. */
  readonly readByAll: number;
  /** How often members look whether another one sleeps. */
  readonly rings: number;
  /** Bytes that copies and reductions of the busiest member write. */
  readonly local: number;
}

export class CountingCrowd {
  readonly members: readonly CountingMember[];
  readonly #random: (below: number) => number;
  /** The rank of the member whose memory each page is. */
  readonly #owners: number[] = [];
  #number = 0;

  /** @param bytes of each member's "send" and "receive" */
  constructor(size: number, sent: number, received: number, random: (below: number) => number) {
    this.#random = random;
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    const take = (owner: number, bytes: number): number => {
      const at = this.#owners.length * PAGE_SIZE;
      for (let end = at; end < at + bytes; end += PAGE_SIZE) this.#owners.push(owner);
      return at;
    };
    // Scratch memory for a copy, and for partial results of blocks of 16 KiB.
    const spare = 2 * Math.max(sent, received) + 8 * 16384;
    take(0, PAGE_SIZE); // A pointer of 0 means something else.
    const blocks = ranks.map((rank) => take(rank, PAGE_SIZE));
    const places = ranks.map((rank) => [take(rank, sent), take(rank, received), take(rank, spare)] as const);
    const memory = memoryOf(new SharedArrayBuffer(this.#owners.length * PAGE_SIZE));
    for (const block of blocks) memory.bytes.fill(0, block, block + MEMBER_SIZE);
    this.members = places.map(([send, receive, scratch], rank) => {
      let taken = 0;
      const pieces = {
        take(bytes: number): Piece {
          const pointer = scratch + taken;
          taken += Math.ceil(bytes / LINE) * LINE;
          return { pointer, bytes: memory.bytes.subarray(pointer, pointer + bytes) };
        },
        giveBack(): void {
          taken = 0;
        },
      } as unknown as Scratch;
      const view = (at: number, bytes: number): Uint8Array => memory.bytes.subarray(at, at + bytes);
      return new CountingMember(memory, rank, blocks, view(send, sent), view(receive, received), pieces);
    });
  }

  /** One operation of all members, each of which goes on in turn, in an order that is drawn. */
  operate(make: (member: CountingMember) => SharedAlgorithm): Cost {
    this.#number++;
    for (const member of this.members) member.begin(this.#number, make(member));
    const left = [...this.members];
    while (left.length > 0) {
      for (let place = left.length - 1; place > 0; place--) {
        const other = this.#random(place + 1);
        const [one, two] = [left[place], left[other]] as [CountingMember, CountingMember];
        [left[place], left[other]] = [two, one];
      }
      for (const member of left) member.operation.advance();
      for (let place = left.length - 1; place >= 0; place--) if (left[place]?.operation.isOver) left.splice(place, 1);
    }
    return this.#cost();
  }

  #ownerOf(line: number): number {
    return this.#owners[Math.floor((line * LINE) / PAGE_SIZE)] as number;
  }

  #cost(): Cost {
    const all = this.members.map(({ shared }) => shared.counts);
    const readers = new Map<number, number>();
    for (const { read } of all) for (const line of read) readers.set(line, (readers.get(line) ?? 0) + 1);
    const isOfAnother = (line: number, counts: Counts): boolean => all[this.#ownerOf(line)] !== counts;
    const written = all.map((counts) => {
      return [...counts.written].filter((line) => (readers.get(line) ?? 0) > Number(counts.read.has(line))).length;
    });
    const read = all.map((counts) => [...counts.read].filter((line) => isOfAnother(line, counts)).length);
    return {
      written: Math.max(...written),
      read: Math.max(...read),
      readByAll: read.reduce((sum, lines) => sum + lines, 0),
      rings: all.reduce((sum, { rings }) => sum + rings, 0),
      local: Math.max(...all.map(({ local }) => local)),
    };
  }
}

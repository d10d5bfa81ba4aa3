// Where a program lies: moved into a region of the job's memory, or in a memory of its own.
import { type Client, type MemRegion, PamiError } from "../index.js";
import { guardStack, hasNullGuard, isWholeStack, lowError, mendNullGuard, nullError, stackError } from "./guards.js";
import { relocate } from "./relocate.js";
import { type ProgramShape, STACK_POINTER, withStackExport } from "./shape.js";

/** A program in its place. */
export interface ProgramPlace {
  readonly module: WebAssembly.Module;
  /** The memory that the program imports; undefined: it has its own. */
  readonly imported: WebAssembly.Memory | undefined;
  /** The region of the job's memory with the program; undefined: it has a memory of its own. */
  readonly arena: MemRegion | undefined;
  /** Where MPI may keep values, in a program with a memory of its own. */
  readonly kept: KeptPlace | undefined;
  /** Address of the low end of its stack; undefined: it is not known. */
  readonly stackGuard: number | undefined;
  /** Address of the bytes that a write through NULL changes; undefined: there are none. */
  readonly nullGuard: number | undefined;
  /** The memory that the program's addresses are offsets of, as long as it is now. */
  bytes(): Uint8Array;
  /** The end of its heap: an address, signed as calls of WebAssembly pass it. */
  arenaEnd(): number;
  /** Lengthens the heap. @returns the address of the new bytes, signed; -1: there is no room */
  arenaGrow(bytes: number): number;
  /** The program is instantiated, and has not begun. */
  begin(instance: WebAssembly.Instance): void;
  /**
   * What the program has damaged, as far as its guards tell: its stack has run over, or it has written through NULL. Called
   * at its end. @param cause what became of the program
   */
  damage(cause?: Error): PamiError | undefined;
}

/** Bytes of the program's memory that the program does not use. */
export interface KeptPlace {
  readonly at: number;
  readonly bytes: number;
}

const PAGE = 65_536;
/** One page less than 4 GiB, whose end is no address. */
const PAGES_MAX = 65_535;
/** Pointers of a moved program are signed numbers in calls: beyond, they would be negative. */
const ADDRESSES = 2 ** 31;
/** The part of a node's heap that programs take, of its first ADDRESSES bytes; the rest is for lanes, buffers and stored messages. */
const HEAP_SHARE = 0.75;
/**
 * Bytes of a rank's share that are left for the engine of MPI, an eighth at most: a quarter of the heap is kept for lanes, and of
 * many ranks the last ones would find nothing else.
 */
const ENGINE_BYTES = 2 ** 21;
/** Bytes at the top of a program's stack that MPI takes: the shortest stack that linkers make by themselves has 64 KiB. */
const KEPT_BYTES = 8192;
const NO_ROOM = -1;

/** Moves a program into the memory of its node. @throws PAMIR_NO_MEMORY, PAMIR_PROGRAM */
export function placeInJob(
  client: Client,
  memory: WebAssembly.Memory,
  binary: Uint8Array,
  shape: ProgramShape,
  heapBytes: number | undefined,
): ProgramPlace {
  const arena = arenaOf(client, shape.bytes, heapBytes);
  const { byteOffset: base, length } = arena.bytes;
  // What is behind it, the heap, is cleared as it is taken: to clear 48 MiB takes 195 ms.
  client.bytes.fill(0, base, base + shape.bytes);
  guardStack(client.bytes, base);
  const hasNull = hasNullGuard(client.bytes);
  // The heap is taken in parts: of a libc that begins with what the linker left of the last page, this is all the rest.
  let heapEnd = base + shape.bytes;
  return {
    module: new WebAssembly.Module(relocate(binary, base, shape)),
    imported: memory,
    arena,
    kept: undefined,
    stackGuard: base,
    nullGuard: hasNull ? 0 : undefined,
    bytes: () => client.bytes,
    arenaEnd: () => heapEnd,
    arenaGrow: (count) => {
      const start = heapEnd;
      if (count >>> 0 > base + length - start) return NO_ROOM;
      heapEnd += count >>> 0;
      return start;
    },
    begin() {},
    damage(cause) {
      // The more probable cause first: a stack that has run over has not come to address 0.
      if (!isWholeStack(client.bytes, base)) return stackError(cause);
      return hasNull && !mendNullGuard(client.bytes) ? nullError(cause) : undefined;
    },
  };
}

/** Gives a program a memory of its own. @throws PAMIR_PROGRAM the binary has no memory; PAMIR_NO_MEMORY */
export function placeApart(binary: Uint8Array, shape: ProgramShape, heapBytes = 0): ProgramPlace {
  const { imported: wanted, stack, stackFirst } = shape;
  let memory: WebAssembly.Memory | undefined;
  if (wanted !== undefined) {
    const initial = Math.min(PAGES_MAX, wanted.pages + Math.ceil(heapBytes / PAGE));
    memory = newMemory({ initial, maximum: wanted.pagesMax ?? PAGES_MAX, shared: wanted.isShared });
  }
  const imported = memory;
  let pointer: WebAssembly.Global | undefined;
  let bytes = new Uint8Array(0);
  const current = (): Uint8Array => {
    const { buffer } = memory as WebAssembly.Memory;
    // A memory that has grown has another buffer.
    if (bytes.buffer !== buffer) bytes = new Uint8Array(buffer);
    return bytes;
  };
  return {
    module: new WebAssembly.Module(withStackExport(binary, shape)),
    imported,
    arena: undefined,
    kept: stack && { at: stack.top - KEPT_BYTES, bytes: KEPT_BYTES },
    stackGuard: stackFirst ? 0 : undefined,
    nullGuard: undefined,
    bytes: current,
    arenaEnd: () => current().length | 0,
    arenaGrow: (count) => growBy(memory as WebAssembly.Memory, count >>> 0),
    begin({ exports }) {
      pointer = exports[STACK_POINTER] as WebAssembly.Global | undefined;
      memory ??= exports.memory as WebAssembly.Memory | undefined;
      if (memory === undefined)
        throw new PamiError("PAMIR_PROGRAM", "the program neither imports nor exports its memory");
      if (pointer !== undefined) pointer.value -= KEPT_BYTES;
      if (stackFirst) guardStack(current(), 0);
    },
    damage(cause) {
      if (stack === undefined || !stackFirst) return undefined;
      // A frame that begins below address 0 traps before it reaches the guard.
      if ((pointer?.value as number) >>> 0 > stack.top) return stackError(cause);
      return isWholeStack(current(), 0) ? undefined : lowError(cause);
    },
  };
}

function newMemory(limits: WebAssembly.MemoryDescriptor): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory(limits);
  } catch (cause) {
    const text = `no memory of ${limits.initial * PAGE} bytes for the program: ${(cause as Error).message}`;
    throw new PamiError("PAMIR_NO_MEMORY", text, { cause });
  }
}

function growBy(memory: WebAssembly.Memory, bytes: number): number {
  try {
    return (memory.grow(Math.ceil(bytes / PAGE)) * PAGE) | 0;
  } catch {
    return NO_ROOM;
  }
}

/** The region of a program: its stack and data, then its heap. */
function arenaOf(client: Client, bytes: number, heapBytes: number | undefined): MemRegion {
  const tasks = client.localTasks.length;
  const share = (Math.min(client.query("CLIENT_MEM_SIZE") * 2 ** 20, ADDRESSES) * HEAP_SHARE) / tasks;
  const own = share - Math.min(ENGINE_BYTES, share / 8);
  const whole = heapBytes === undefined ? Math.floor(own / PAGE) * PAGE : bytes + heapBytes;
  if (whole < bytes + PAGE) {
    const text = `the program needs ${bytes} bytes and a heap, and each of ${tasks} tasks has ${whole}: give the job more heapBytes, up to ${ADDRESSES}, or a node fewer tasks`;
    throw new PamiError("PAMIR_NO_MEMORY", text);
  }
  const arena = client.createRegion(whole);
  const end = arena.bytes.byteOffset + whole;
  if (end <= ADDRESSES) return arena;
  arena.close();
  throw new PamiError(
    "PAMIR_NO_MEMORY",
    `the program would end at address ${end}, the limit is ${ADDRESSES}: give the job fewer heapBytes`,
  );
}

// Bytes of descriptors: reads, writes and places.
import { copyOf } from "../../support/copy.js";
import type { FileDescriptor } from "./descriptors.js";
import type { WasiCall, WasiState } from "./host.js";
import { FLAG, fail, RIGHT } from "./numbers.js";

const WHENCE = { start: 0, here: 1, end: 2 } as const;

export function ioCalls(state: WasiState): Record<string, WasiCall> {
  const { memory, descriptors } = state;
  return {
    fd_read(fd: number, vectors: number, count: number, result: number) {
      memory.need(result, 4);
      memory.setU32(result, read(state, fd, memory.vectors(vectors, count)));
    },
    fd_write(fd: number, vectors: number, count: number, result: number) {
      memory.need(result, 4);
      memory.setU32(result, write(state, fd, memory.gathered(vectors, count)));
    },
    fd_pread(fd: number, vectors: number, count: number, offset: bigint, result: number) {
      memory.need(result, 4);
      const { file } = descriptors.file(fd, RIGHT.read | RIGHT.seek);
      memory.setU32(result, readAt(file, memory.vectors(vectors, count), placeOf(offset)));
    },
    fd_pwrite(fd: number, vectors: number, count: number, offset: bigint, result: number) {
      memory.need(result, 4);
      const found = descriptors.file(fd, RIGHT.write | RIGHT.seek);
      const bytes = found.file.write(memory.gathered(vectors, count), placeOf(offset));
      syncIfAsked(found);
      memory.setU32(result, bytes);
    },
    fd_seek(fd: number, offset: bigint, whence: number, result: number) {
      memory.need(result, 8);
      // To ask for the place is no seek.
      const found = descriptors.file(fd, whence === WHENCE.here && offset === 0n ? RIGHT.tell : RIGHT.seek);
      if (whence < WHENCE.start || whence > WHENCE.end) fail("INVAL");
      let base = 0n;
      if (whence === WHENCE.here) base = BigInt(found.position);
      if (whence === WHENCE.end) base = found.file.status().size;
      found.position = placeOf(base + offset);
      memory.setU64(result, BigInt(found.position));
    },
    fd_tell(fd: number, result: number) {
      memory.setU64(result, BigInt(descriptors.file(fd, RIGHT.tell).position));
    },
  };
}

/** A place in a file. @throws EINVAL it is negative, or beyond what a JavaScript number counts */
export function placeOf(offset: bigint): number {
  if (offset < 0n || offset > BigInt(Number.MAX_SAFE_INTEGER)) fail("INVAL");
  return Number(offset);
}

function read({ host, descriptors }: WasiState, fd: number, parts: readonly Uint8Array[]): number {
  const found = descriptors.get(fd);
  if (found.kind === "folder") fail("ISDIR");
  descriptors.get(fd, RIGHT.read);
  if (found.kind === "file") {
    const bytes = readAt(found.file, parts, found.position);
    found.position += bytes;
    return bytes;
  }
  const wanted = parts.reduce((sum, { length }) => sum + length, 0);
  if (wanted === 0) return 0;
  const bytes = host.read(wanted);
  scatter(bytes, parts);
  return bytes.length;
}

function scatter(bytes: Uint8Array, parts: readonly Uint8Array[]): void {
  let at = 0;
  for (const part of parts) {
    part.set(bytes.subarray(at, at + part.length));
    at += part.length;
  }
}

function readAt(file: FileDescriptor["file"], parts: readonly Uint8Array[], offset: number): number {
  let total = 0;
  for (const part of parts) {
    const bytes = part.length === 0 ? 0 : file.read(part, offset + total);
    total += bytes;
    if (bytes < part.length) break;
  }
  return total;
}

function write({ host, descriptors }: WasiState, fd: number, bytes: Uint8Array): number {
  const found = descriptors.get(fd);
  if (found.kind === "folder") fail("ISDIR");
  descriptors.get(fd, RIGHT.write);
  if (found.kind === "stream") {
    if (bytes.length > 0) host.write(found.stream as 1 | 2, copyOf(bytes));
    return bytes.length;
  }
  if (bytes.length === 0) return 0;
  const appends = (found.flags & FLAG.append) !== 0;
  const written = appends ? found.file.append(bytes) : found.file.write(bytes, found.position);
  found.position = appends ? Number(found.file.status().size) : found.position + written;
  syncIfAsked(found);
  return written;
}

/** Flags ask for it after each write. */
function syncIfAsked({ file, flags }: FileDescriptor): void {
  if ((flags & (FLAG.sync | FLAG.datasync)) !== 0) file.sync((flags & FLAG.sync) === 0);
}

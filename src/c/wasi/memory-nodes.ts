// What lies in a folder of memory: files, folders, links, each with its inode, its times and its names.
import { copyInto } from "../../support/copy.js";
import { encodeText } from "../../support/text.js";
import type { FileStatus } from "./files.js";
import { FILETYPE, fail, nanoseconds } from "./numbers.js";

/** All folders of memory are one device, with one series of inodes, so that no two files look like one. */
const DEVICE = 1n;
const FIRST_BYTES = 4096;
/** A file's bytes lie in one array. */
const SIZE_MAX = 2 ** 32;
let inodes = 0n;

export abstract class Node {
  readonly inode = ++inodes;
  abstract readonly type: number;
  abstract readonly size: number;
  links = 1;
  accessed: bigint;
  modified: bigint;
  changed: bigint;
  readonly wallTime: () => number;

  constructor(wallTime: () => number) {
    this.wallTime = wallTime;
    this.accessed = this.modified = this.changed = this.now();
  }

  now(): bigint {
    return nanoseconds(this.wallTime());
  }

  touch(): void {
    this.modified = this.changed = this.now();
  }

  setTimes(accessed: bigint, modified: bigint): void {
    Object.assign(this, { accessed, modified, changed: this.now() });
  }

  status(): FileStatus {
    const { inode, type, accessed, modified, changed } = this;
    const [links, size] = [BigInt(this.links), BigInt(this.size)];
    return { device: DEVICE, inode, type, links, size, accessed, modified, changed };
  }
}

export class SymlinkNode extends Node {
  readonly type = FILETYPE.link;
  readonly target: string;
  readonly size: number;

  constructor(target: string, wallTime: () => number) {
    super(wallTime);
    this.target = target;
    this.size = encodeText(target).length;
  }
}

export class FileNode extends Node {
  readonly type = FILETYPE.file;
  size: number;
  #bytes: Uint8Array;
  /** The bytes are those that were given: the first write copies them. */
  #isGiven = true;

  constructor(bytes: Uint8Array, wallTime: () => number) {
    super(wallTime);
    this.#bytes = bytes;
    this.size = bytes.length;
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size);
  }

  read(into: Uint8Array, offset: number): number {
    const part = this.#bytes.subarray(Math.min(offset, this.size), Math.min(offset + into.length, this.size));
    copyInto(into, 0, part);
    this.accessed = this.now();
    return part.length;
  }

  write(bytes: Uint8Array, offset: number): number {
    if (bytes.length === 0) return 0;
    if (offset + bytes.length > this.size) this.setSize(offset + bytes.length);
    this.#own(this.size);
    copyInto(this.#bytes, offset, bytes);
    this.touch();
    return bytes.length;
  }

  setSize(size: number): void {
    if (size > SIZE_MAX) fail("FBIG");
    this.#own(size);
    if (size < this.size) this.#bytes.fill(0, size, this.size);
    this.size = size;
    this.touch();
  }

  /** An array of the node's own for so many bytes, 0 beyond the file's end. */
  #own(size: number): void {
    if (!this.#isGiven && size <= this.#bytes.length) return;
    const room =
      size > this.#bytes.length ? Math.max(size, Math.min(this.#bytes.length * 2, SIZE_MAX), FIRST_BYTES) : size;
    const bytes = newBytes(room);
    copyInto(bytes, 0, this.#bytes.subarray(0, Math.min(this.size, room)));
    this.#bytes = bytes;
    this.#isGiven = false;
  }
}

function newBytes(count: number): Uint8Array {
  try {
    return new Uint8Array(count);
  } catch {
    return fail("NOSPC");
  }
}

export class FolderNode extends Node {
  readonly type = FILETYPE.folder;
  readonly size = 0;
  readonly entries = new Map<string, Node>();
  parent: FolderNode | undefined;

  constructor(parent: FolderNode | undefined, wallTime: () => number) {
    super(wallTime);
    this.parent = parent;
  }

  add(name: string, node: Node): void {
    this.entries.set(name, node);
    this.touch();
  }

  remove(name: string, node: Node): void {
    this.entries.delete(name);
    node.links--;
    node.changed = this.now();
    this.touch();
  }

  isWithin(other: Node): boolean {
    for (let node: FolderNode | undefined = this; node !== undefined; node = node.parent)
      if (node === other) return true;
    return false;
  }
}

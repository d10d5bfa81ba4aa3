// Files that lie in memory: for pages, and for programs that are given all of their files.
import { copyOf } from "../../support/copy.js";
import { encodeText } from "../../support/text.js";
import type { FileAccess, FileStatus, Folder, FolderEntry, ProgramFile } from "./files.js";
import { FileNode, FolderNode, type Node, SymlinkNode } from "./memory-nodes.js";
import { fail } from "./numbers.js";

/** Files by their names: bytes, texts, and folders. */
export interface MemoryTree {
  /** A file's bytes or text, or the files of a folder. */
  readonly [name: string]: Uint8Array | string | MemoryTree;
}

class MemoryFile implements ProgramFile {
  readonly #node: FileNode;

  constructor(node: FileNode) {
    this.#node = node;
  }

  status(): FileStatus {
    return this.#node.status();
  }

  read(into: Uint8Array, offset: number): number {
    return this.#node.read(into, offset);
  }

  write(bytes: Uint8Array, offset: number): number {
    return this.#node.write(bytes, offset);
  }

  append(bytes: Uint8Array): number {
    return this.#node.write(bytes, this.#node.size);
  }

  setSize(size: number): void {
    this.#node.setSize(size);
  }

  setTimes(accessed: bigint, modified: bigint): void {
    this.#node.setTimes(accessed, modified);
  }

  sync(): void {}

  close(): void {}
}

/** A folder in memory, whose files programs read and write. */
export class MemoryFolder implements Folder {
  readonly #node: FolderNode;

  private constructor(node: FolderNode) {
    this.#node = node;
  }

  /**
   * @param tree files with which the folder begins; arrays are not copied before a program writes to them
   * @param wallTime milliseconds since 1970, for the times of files
   */
  static of(tree: MemoryTree, wallTime: () => number): MemoryFolder {
    const root = new FolderNode(undefined, wallTime);
    fill(root, tree);
    return new MemoryFolder(root);
  }

  /** A copy of the bytes of a file, by a path without links; undefined if there is none. */
  contents(path: string): Uint8Array<ArrayBuffer> | undefined {
    let node: Node | undefined = this.#node;
    for (const name of path.split("/")) node = node instanceof FolderNode ? node.entries.get(name) : undefined;
    return node instanceof FileNode ? copyOf(node.bytes) : undefined;
  }

  /** Copies of all files below, without links. */
  tree(): MemoryTree {
    return treeOf(this.#node);
  }

  status(name: string): FileStatus | undefined {
    return this.#find(name)?.status();
  }

  entries(): FolderEntry[] {
    return Array.from(this.#node.entries, ([name, { inode, type }]) => ({ name, inode, type }));
  }

  folder(name: string): Folder {
    const node = this.#get(name);
    return node instanceof FolderNode ? new MemoryFolder(node) : fail("NOTDIR");
  }

  open(name: string, how: FileAccess): ProgramFile {
    let node = this.#find(name);
    if (node !== undefined && how.creates && how.exclusive) fail("EXIST");
    if (node === undefined && how.creates) {
      this.#isThere();
      node = new FileNode(new Uint8Array(0), this.#node.wallTime);
      this.#node.add(name, node);
    }
    if (node === undefined) fail("NOENT");
    if (node instanceof FolderNode) fail("ISDIR");
    if (!(node instanceof FileNode)) fail("LOOP");
    if (how.truncates) node.setSize(0);
    return new MemoryFile(node);
  }

  createFolder(name: string): void {
    if (this.#find(name) !== undefined) fail("EXIST");
    this.#isThere();
    this.#node.add(name, new FolderNode(this.#node, this.#node.wallTime));
  }

  removeFolder(name: string): void {
    const node = this.#get(name);
    if (!(node instanceof FolderNode)) fail("NOTDIR");
    if (node.entries.size > 0) fail("NOTEMPTY");
    this.#node.remove(name, node);
  }

  removeFile(name: string): void {
    const node = this.#get(name);
    if (node instanceof FolderNode) fail("ISDIR");
    this.#node.remove(name, node);
  }

  readLink(name: string): string {
    const node = this.#get(name);
    return node instanceof SymlinkNode ? node.target : fail("INVAL");
  }

  createLink(name: string, target: string): void {
    if (this.#find(name) !== undefined) fail("EXIST");
    this.#isThere();
    this.#node.add(name, new SymlinkNode(target, this.#node.wallTime));
  }

  rename(name: string, to: Folder, toName: string): void {
    if (!(to instanceof MemoryFolder)) fail("XDEV");
    const node = this.#get(name);
    const replaced = to.#find(toName);
    if (replaced === node) return;
    if (node instanceof FolderNode) {
      if (to.#node.isWithin(node)) fail("INVAL");
      if (replaced !== undefined && !(replaced instanceof FolderNode)) fail("NOTDIR");
      if (replaced instanceof FolderNode && replaced.entries.size > 0) fail("NOTEMPTY");
    } else if (replaced instanceof FolderNode) fail("ISDIR");
    to.#isThere();
    if (replaced !== undefined) to.#node.remove(toName, replaced);
    this.#node.entries.delete(name);
    this.#node.touch();
    to.#node.add(toName, node);
    if (node instanceof FolderNode) node.parent = to.#node;
  }

  link(name: string, to: Folder, toName: string): void {
    if (!(to instanceof MemoryFolder)) fail("XDEV");
    const node = this.#get(name);
    if (node instanceof FolderNode) fail("PERM");
    if (!(node instanceof FileNode)) fail("NOTSUP");
    if (to.#find(toName) !== undefined) fail("EXIST");
    to.#isThere();
    node.links++;
    to.#node.add(toName, node);
  }

  setTimes(name: string, accessed: bigint, modified: bigint): void {
    this.#get(name).setTimes(accessed, modified);
  }

  #find(name: string): Node | undefined {
    return name === "." ? this.#node : this.#node.entries.get(name);
  }

  #get(name: string): Node {
    return this.#find(name) ?? fail("NOENT");
  }

  /** A folder that was removed while a program has it open takes no new names. */
  #isThere(): void {
    if (this.#node.links === 0) fail("NOENT");
  }
}

function fill(folder: FolderNode, tree: MemoryTree): void {
  for (const [name, value] of Object.entries(tree)) {
    if (typeof value === "string") folder.add(name, new FileNode(encodeText(value), folder.wallTime));
    else if (value instanceof Uint8Array) folder.add(name, new FileNode(value, folder.wallTime));
    else {
      const inner = new FolderNode(folder, folder.wallTime);
      fill(inner, value);
      folder.add(name, inner);
    }
  }
}

function treeOf(folder: FolderNode): MemoryTree {
  const found: Record<string, MemoryTree[string]> = {};
  for (const [name, node] of folder.entries) {
    if (node instanceof FolderNode) found[name] = treeOf(node);
    else if (node instanceof FileNode) found[name] = copyOf(node.bytes);
  }
  return found;
}

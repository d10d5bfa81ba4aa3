// Where nodes are, and which process each of them is. Most nodes have an address that all others know. A *mobile* node has
// none: it connects to others first.
//
// Without a key, a packet counts as a node's if it comes from the node's address. With a key, the seal identifies a node, and
// the node is where its latest packet came from that opened. Each start of a node draws an *instance*, which its handshakes
// state. So a second process with the same number has to be at the node's address before the node is known.
//
// A packet opens once. An attacker that delivers a packet from its own address before the original comes takes the packets
// to that node until the node's next packet comes. It can neither read them nor acknowledge them.
import type { Address } from "../link/link.js";

/** Which process a node is. */
interface Process {
  /** The upper half of its epoch. */
  readonly start: number;
  readonly instance: readonly number[];
}

/** Words of an instance: the last ones of a nonce of four. */
const INSTANCE_WORDS = 2;

export class Routes {
  readonly isSealed: boolean;
  readonly #addressOf: (node: number) => Address | undefined;
  /** Of nodes that are not where `addressOf` says: where they were last. */
  readonly #moved = new Map<number, Address>();
  /** Those of them that do not answer there: packets go where `addressOf` says. */
  readonly #doubted = new Set<number>();
  /** With a key: the process that each node is. */
  readonly #processes = new Map<number, Process>();
  /** Called when a node has come, or has another address. What went to the old one is lost, and the node is alive. */
  onMove: (node: number) => void = () => {};

  constructor(addressOf: (node: number) => Address | undefined, isSealed: boolean) {
    this.#addressOf = addressOf;
    this.isSealed = isSealed;
  }

  /** The address of a node; an empty string: there is no such node, or it has not come yet. */
  to(node: number): Address {
    const moved = this.#moved.get(node);
    const known = this.#addressOf(node);
    if (moved === undefined || (known !== undefined && this.#doubted.has(node))) return known ?? "";
    return moved;
  }

  /** Whether packets of a node may come from an address. With a key they may come from every address, and have to open. */
  allows(node: number, from: Address): boolean {
    return this.isSealed || this.#addressOf(node) === from;
  }

  /**
   * Whether a handshake is of the process that a node is. If that is not known, it is the process at the node's address.
   * @param nonce of the handshake, which has opened
   * @param from where it came from; undefined: it answers a packet that went to the node's address
   */
  admits(node: number, epoch: number, nonce: readonly number[], from?: Address): boolean {
    const address = this.#addressOf(node);
    const isThere = from === undefined || from === address;
    if (!this.isSealed) return isThere;
    const start = epoch >>> 16;
    const instance = nonce.slice(-INSTANCE_WORDS);
    const known = this.#processes.get(node);
    if (known?.start === start) return instance.every((word, i) => word === known.instance[i]);
    if (!isThere && address !== undefined) return false;
    this.#processes.set(node, { start, instance });
    return true;
  }

  /** The latest packet of a node has opened. */
  note(node: number, from: Address): void {
    if (!this.isSealed || this.to(node) === from) return;
    this.#doubted.delete(node);
    this.#moved.set(node, from);
    this.onMove(node);
  }

  /** A node does not answer. If it has moved, the next packets go to the other one of its two addresses. */
  doubt(node: number): void {
    if (this.#moved.has(node) && !this.#doubted.delete(node)) this.#doubted.add(node);
  }

  /** A node was given up, or has restarted. */
  forget(node: number): void {
    this.#moved.delete(node);
    this.#doubted.delete(node);
  }
}

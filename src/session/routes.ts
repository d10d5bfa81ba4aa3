// Where nodes are. Most have an address that all nodes know. A *mobile* node has none: it connects to others, and may have
// another address after each connection. Its seal identifies it: it is where its last packet came from that opened. So only
// a job with a key may have mobile nodes.
//
// A packet opens once. An attacker that delivers a packet from its own address before the original comes takes the packets
// to that node until the node's next packet comes. It can neither read them nor acknowledge them.
import type { Address } from "../link/link.js";

export class Routes {
  readonly #addressOf: (node: number) => Address | undefined;
  readonly #isSealed: boolean;
  /** Of mobile nodes: where they were last. */
  readonly #last = new Map<number, Address>();
  /** Called when a node has come, or has another address. What went to the old one is lost, and the node is alive. */
  onMove: (node: number) => void = () => {};

  constructor(addressOf: (node: number) => Address | undefined, isSealed: boolean) {
    this.#addressOf = addressOf;
    this.#isSealed = isSealed;
  }

  /** The address of a node; an empty string: there is no such node, or it has not come yet. */
  to(node: number): Address {
    return this.#addressOf(node) ?? this.#last.get(node) ?? "";
  }

  isMobile(node: number): boolean {
    return this.#isSealed && this.#addressOf(node) === undefined;
  }

  /** Whether packets of a node may come from an address. */
  allows(node: number, from: Address): boolean {
    return this.isMobile(node) || this.#addressOf(node) === from;
  }

  /** The latest packet of a node has opened. */
  note(node: number, from: Address): void {
    if (!this.isMobile(node) || this.#last.get(node) === from) return;
    this.#last.set(node, from);
    this.onMove(node);
  }

  /** A node was given up, or has restarted. */
  forget(node: number): void {
    this.#last.delete(node);
  }
}

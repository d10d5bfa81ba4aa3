// The incarnations of nodes: the latest epoch of each other node, and the epoch that this node states to it.
import { seqDelta } from "../../assembly/seq.js";
import type { SessionsOptions } from "./sessions-options.js";
import { SparseWords } from "./store/sparse-words.js";

/**
 * Incarnations that one start of a node can have for another node. The count has 16 bits. Each takes a silence, unless the
 * other node refuses it: with that of 60 s, the count lasts six weeks.
 */
const GIVEN_UP_MAX = 0xffff;

export class Incarnations {
  readonly #epoch: number;
  readonly #onLost: SessionsOptions["onLost"];
  /** The latest epoch of each node; 0: none is known. */
  readonly #epochs = new SparseWords();
  /** How often this node gave up each other node: each time, it begins another incarnation for that node. */
  readonly #givenUp = new Map<number, number>();

  /** @param epoch how often this node has been started */
  constructor(epoch: number, onLost: SessionsOptions["onLost"]) {
    this.#epoch = epoch;
    this.#onLost = onLost;
  }

  /** The latest epoch of a node that is certain; 0: none is known. */
  epochOf(node: number): number {
    return this.#epochs.get(node);
  }

  /**
   * The epoch that this node states to another one. When this node gives the other one up, it begins another incarnation for
   * it. The data in flight is lost in both directions, and both nodes report the loss.
   */
  epochFor(node: number): number {
    return ((this.#epoch << 16) + (this.#givenUp.get(node) ?? 0)) >>> 0;
  }

  /** Whether an epoch of a node is invalid (0), or a later one is known. */
  isStale(node: number, epoch: number): boolean {
    const known = this.epochOf(node);
    return epoch === 0 || (known !== 0 && seqDelta(epoch, known) < 0);
  }

  /**
   * Notes an epoch that is not stale. If it is a new one, everything of the earlier incarnation is lost. The epoch must be
   * certain: a replayed packet, to a new incarnation of this node, proves none. If the start is the same, the node has given
   * this one up. So it has if its first epoch says so, unless it may have given up an earlier start of this node.
   */
  note(node: number, epoch: number): void {
    const known = this.epochOf(node);
    if (known === epoch) return;
    this.#epochs.set(node, epoch);
    const isGivenUp = known === 0 ? this.#epoch === 1 && (epoch & 0xffff) > 0 : known >>> 16 === epoch >>> 16;
    if (isGivenUp) this.#onLost(node, "givenUp", 0);
    else if (known !== 0) this.#onLost(node, "restarted", 0);
  }

  /** Gives a node up: it does not answer (D10), or refuses this node. @param refused why; 0: it does not answer */
  giveUp(node: number, refused: number): void {
    this.#givenUp.set(node, Math.min((this.#givenUp.get(node) ?? 0) + 1, GIVEN_UP_MAX));
    this.#onLost(node, refused === 0 ? "silent" : "refused", refused);
  }

  /** Sizes of what grows with the number of other nodes that are known: words of epochs, nodes that were given up. */
  get kept(): { epochs: number; givenUp: number } {
    return { epochs: this.#epochs.length, givenUp: this.#givenUp.size };
  }
}

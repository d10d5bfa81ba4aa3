// @ts-check
// The halos of a task: the rows beside its own. A neighbor puts them here, and the put's notification counts the step.
import { SUCCESS } from "pamir";
import { rowsOf } from "./water.js";

/** Plans whose halos have counters: those of the last one are left alone while the next one begins. */
const EPOCHS = 4;
/** Bytes before the rows. */
const HEAD = 4096;

/** @param {number} size @param {number} side 0: above, 1: below @param {number} plane */
const rowOffset = (size, side, plane) => HEAD + 4 * size * (2 * side + plane);
/** @param {number} side @param {number} epoch */
const counterOffset = (side, epoch) => 4 * (2 * (epoch % EPOCHS) + side);

export class Halos {
  /** Task and handle of the neighbor above, and below. @type {({ to: number, remote: number } | undefined)[]} */
  #neighbors = [];
  #epoch = 0;
  /** Puts so far. */
  puts = 0;

  /** @param {import("pamir").Client} client @param {import("pamir").Context} context @param {number} size */
  constructor(client, context, size) {
    this.context = context;
    this.size = size;
    // The rows that come, and behind them the rows that go: a put has its source in a region of its task.
    this.region = client.createRegion(HEAD + 4 * size * 8);
    this.region.bytes.fill(0);
    this.counters = new Int32Array(this.region.bytes.buffer, this.region.bytes.byteOffset, 2 * EPOCHS);
    const { buffer, byteOffset } = this.region.bytes;
    /** By side and plane: 4 rows that come, 4 that go. */
    this.rows = rowsOf(new Float32Array(buffer, byteOffset + HEAD, 8 * size), size);
  }

  /** Takes up a plan. @param {import("./layout.js").Plan} plan @param {number} place of this task in it */
  begin({ epoch, members, halos }, place) {
    this.#epoch = epoch;
    this.#neighbors = [place - 1, place + 1].map((at) =>
      members[at] === undefined ? undefined : { to: members[at], remote: halos[at] },
    );
    // The water ends at a border of the tank. Elsewhere, a neighbor may have put its row here before this task has the plan.
    for (const [side, neighbor] of this.#neighbors.entries()) {
      if (neighbor === undefined) for (const plane of [0, 1]) this.rows[2 * side + plane].fill(0);
    }
    // No task writes to those of the next plan before this task has stopped.
    for (const side of [0, 1]) Atomics.store(this.counters, counterOffset(side, epoch + 1) / 4, 0);
  }

  /** Whether the rows beside the own ones are those of a step. @param {number} step */
  have(step) {
    return this.#neighbors.every((neighbor, side) => neighbor === undefined || this.come(side) > step);
  }

  /** The last step whose row a neighbor has put here, and 1. @param {number} side */
  come(side) {
    return Atomics.load(this.counters, counterOffset(side, this.#epoch) / 4);
  }

  /**
   * Hands the border rows of a step to the neighbors: a put each, and a counter that changes behind the bytes.
   * @param {number} step
   * @param {Float32Array[]} own rows of heights, with those above and below
   * @returns {boolean} whether both neighbors are there
   */
  put(step, own) {
    let isWhole = true;
    for (const [side, neighbor] of this.#neighbors.entries()) {
      if (neighbor === undefined) continue;
      const from = 4 + 2 * side + (step & 1);
      this.rows[from].set(own[side === 0 ? 1 : own.length - 2]);
      const result = this.context.put({
        to: neighbor.to,
        local: this.region,
        localOffset: HEAD + 4 * this.size * from,
        remote: neighbor.remote,
        remoteOffset: rowOffset(this.size, 1 - side, step & 1),
        bytes: 4 * this.size,
        notify: {
          remote: neighbor.remote,
          offset: counterOffset(1 - side, this.#epoch),
          operation: "set",
          value: step + 1,
        },
      });
      this.puts++;
      isWhole &&= result === SUCCESS;
    }
    return isWhole;
  }
}

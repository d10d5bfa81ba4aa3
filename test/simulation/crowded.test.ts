// Nodes with fewer slots than tasks that talk to them: every task gets its share, whoever talks, and however often.
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../src/core/endpoint.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { EAGAIN, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import { byEffort } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const DATA = 1;
const LIMITS = { contexts: 2, laneBytes: 2048, heapBytes: 2 ** 21, regions: 4, fifos: 1, slots: 4 };

/** How a task waits for a slot. */
type Manner =
  /** By whenRoom(), in whose callback it sends. */
  | "sends when told"
  /** By whenRoom(); it sends some rounds later. */
  | "sends later"
  /** It tries again after some turns. */
  | "tries now and then";

/** One direction between two contexts: says 0, 1, …, one number a turn. */
class Stream {
  readonly from: Context;
  readonly to: Endpoint;
  readonly manner: Manner;
  sent = 0;
  came = 0;
  #due = 0;
  #isWaiting = false;

  constructor(from: Context, to: Context, manner: Manner) {
    this.from = from;
    this.to = to.endpoint;
    this.manner = manner;
  }

  /** Says numbers below this one. */
  sayTo(end: number): void {
    this.#due = end;
    while (!this.#isWaiting && this.sent < this.#due) {
      const result = this.from.sendImmediate(this.to, DATA, null, Int32Array.of(this.sent), false);
      if (result === SUCCESS) this.sent++;
      else {
        expect(result).toBe(EAGAIN);
        if (this.manner === "tries now and then") return;
        this.#isWaiting = true;
        this.from.whenRoom(this.to, 4, () => {
          this.#isWaiting = false;
          if (this.manner === "sends when told") this.sayTo(this.#due);
        });
      }
    }
  }
}

/** Nodes of one or two tasks each, with so many slots for tasks of others. */
class Crowd {
  readonly #job: NetworkedJob;
  /** By node: the first context of its first task. */
  readonly nodes: readonly Context[];
  /** The second context of the first task; with two tasks, that of the second one. */
  readonly second: Context;
  readonly #all: readonly Context[];
  readonly streams: Stream[] = [];

  constructor(kernel: KernelName, far: number, peers: number, tasksPerNode: number) {
    const tasks = tasksPerNode * (1 + far);
    this.#job = new NetworkedJob({ seed: SEED, limits: { ...LIMITS, tasks }, peers, tasksPerNode, kernels: [kernel] });
    const firsts = this.#job.tasks.map(({ client }) => client.createContext());
    const own = this.#job.tasks[tasksPerNode - 1];
    this.second = own?.client.createContext() as Context;
    this.#all = [...firsts, this.second];
    this.nodes = firsts.filter((_, task) => task % tasksPerNode === 0);
    for (const context of this.#all) {
      context.dispatch(DATA, (message) => {
        const stream = this.streams.find(({ from, to }) => from.endpoint === message.origin && to === context.endpoint);
        expect(message.getInt32(0)).toBe(stream?.came);
        if (stream !== undefined) stream.came++;
      });
    }
  }

  add(from: Context, to: Context, manner: Manner): Stream {
    const stream = new Stream(from, to, manner);
    this.streams.push(stream);
    return stream;
  }

  async turn(): Promise<void> {
    for (const context of this.#all) context.advance();
    await this.#job.turn();
  }

  close(): void {
    for (const { client } of this.#job.tasks) client.close();
  }
}

const KERNELS = ["wasm", "ts"] as const;
const MANNERS: readonly Manner[] = ["sends when told", "sends later", "tries now and then"];
const FARS = byEffort({ quick: [3], normal: [3, 10], deep: [3, 4, 6, 8, 10] });
/** Turns that a slot takes from one task to another: as many rounds of each context as there are acknowledgments, and some. */
const CHANGE = 10;

describe.each(KERNELS)("two slots, and more tasks of other nodes: %s", (kernel) => {
  describe.each(MANNERS)("a task %s", (manner) => {
    it.each(FARS.flatMap((far) => [1, 2].map((locals) => [far, locals] as const)))(
      "%i far tasks talk with a node of %i tasks, both ways: all comes in a bounded number of turns",
      async (far, locals) => {
        const crowd = new Crowd(kernel, far, 2, locals);
        const [own, ...others] = crowd.nodes as [Context, ...Context[]];
        for (const other of others) {
          crowd.add(own, other, manner);
          crowd.add(other, own, manner);
          crowd.add(crowd.second, other, manner);
        }
        const COUNT = 5;
        for (let turns = 0; crowd.streams.some(({ came }) => came < COUNT); turns++) {
          expect(turns, String(crowd.streams.map(({ came }) => came))).toBeLessThan(
            COUNT * CHANGE * crowd.streams.length,
          );
          // One number a turn; a stream that waited catches up.
          for (const stream of crowd.streams) stream.sayTo(Math.min(COUNT, turns + 1));
          await crowd.turn();
        }
        crowd.close();
      },
    );
  });

  it.each(FARS)(
    "%i far tasks talk without end: each gets its share, and so does what the node's task begins",
    async (far) => {
      const QUIET = 3;
      const crowd = new Crowd(kernel, far + QUIET, 2, 1);
      const [own, ...others] = crowd.nodes as [Context, ...Context[]];
      for (const [index, other] of others.entries()) {
        if (index < far) crowd.add(other, own, "sends when told");
        else crowd.add(index % 2 === 0 ? own : crowd.second, other, "sends later");
      }
      const TURNS = CHANGE * crowd.streams.length;
      for (let round = 1; round <= 5; round++) {
        const before = crowd.streams.map(({ came }) => came);
        for (let turn = 0; turn < TURNS; turn++) {
          for (const stream of crowd.streams) stream.sayTo(stream.sent + 1);
          await crowd.turn();
        }
        const got = crowd.streams.map(({ came }, i) => came - (before[i] as number));
        expect(Math.min(...got), `round ${round}: ${got}`).toBeGreaterThan(0);
      }
      crowd.close();
    },
  );

  it.each([1, 2, 3, 4, 5])(
    "a context waits for a slot, while another one tries two targets every %i turns",
    async (every) => {
      const crowd = new Crowd(kernel, 3, 2, 1);
      const [own, one, other, third] = crowd.nodes as [Context, Context, Context, Context];
      const tries = [one, other].map((to) => crowd.add(own, to, "tries now and then"));
      for (let turn = 0; turn < 10; turn++) {
        for (const stream of tries) stream.sayTo(stream.sent + 1);
        await crowd.turn();
      }
      const waits = crowd.add(crowd.second, third, "sends when told");
      for (let turn = 0; waits.came < 3; turn++) {
        expect(turn).toBeLessThan(20 * CHANGE);
        waits.sayTo(waits.came + 1);
        if (turn % every === 0) for (const stream of tries) stream.sayTo(stream.sent + 1);
        await crowd.turn();
      }
      crowd.close();
    },
  );
});

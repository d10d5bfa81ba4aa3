// The engine thread dies at any step: whoever waited for it hears of each operation once, and is its own engine from then on.
import { TASK_STATE_OFFSET, TASK_UP } from "../../../assembly/layout.js";
import { endpointOf } from "../../../src/core/endpoint.js";
import { ERROR, SUCCESS } from "../../../src/core/result.js";
import { markEngineDead } from "../../../src/node/liveness.js";
import type { Context } from "../../../src/pami/context.js";
import { map, SLICE } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { handleOf, openAtStart, PAGE, regionAtStart, same, serveForever, setUp } from "./support.js";

/** What the monitor does. */
const markLost = ({ kernel }: World): void => markEngineDead(kernel, map);

/** The same, once nobody has anything else to do. */
function markLostLate(world: World): void {
  const slot = world.task(2);
  world.kernel.bellWait(slot, world.kernel.bellArm(slot), 1);
  markLost(world);
}

/** Of a put: three slices, so that nobody does it at once, nor in the next advance. */
const WORDS = (2 * SLICE) / 4 + 1;

/** Puts of task 0 to the first region of task 1, each to a place of its own: word i of put n is 3 n + i. */
class Puts {
  readonly #world: World;
  readonly #context: Context;
  readonly #base: number;
  /** What each put, or fence, has been called back with. */
  readonly #results: (number | undefined)[] = [];
  #puts = 0;
  /** How many were there at the last fence. */
  #fenced = 0;

  constructor(world: World, context: Context, base: number) {
    this.#world = world;
    this.#context = context;
    this.#base = base;
  }

  get areOver(): boolean {
    return !this.#results.includes(undefined);
  }

  /** @returns the number of its callback, of which it has two, or none */
  put(hasCallbacks: boolean): void {
    const number = this.#puts++;
    const [first, second] = hasCallbacks ? [this.#callback(number), this.#callback(number)] : [];
    const offset = 4 * WORDS * number;
    const [local, remote] = [regionAtStart(this.#world, 0), handleOf(this.#world, 1, 0)];
    const to = endpointOf(1, 0);
    const places = { localOffset: 0, remoteOffset: offset, bytes: 4 * WORDS };
    same(
      "the result of a put",
      [this.#context.put({ to, local, remote, ...places, onLocal: first, onRemote: second })],
      [SUCCESS],
    );
  }

  fence(): void {
    this.#context.fence(endpointOf(1, 0), this.#callback(this.#fenced, true));
    this.#fenced = this.#puts;
  }

  /** A callback that is called once; with SUCCESS, all is there that was put from number `from` on. */
  #callback(from: number, isFence = false): (cookie: unknown, result: number) => void {
    const place = this.#results.push(undefined) - 1;
    const to = this.#puts;
    // Who has got an ERROR is its own engine by then: what it puts is done. A fence tells of what was before.
    const isSure = !isFence && this.#results.includes(ERROR);
    return (_, result) => {
      if (this.#results[place] !== undefined) throw new Error(`callback ${place} is called twice`);
      if (result !== SUCCESS && (result !== ERROR || isSure)) throw new Error(`callback ${place} got ${result}`);
      if (this.#results.slice(0, place).includes(undefined)) throw new Error(`callback ${place} is too early`);
      this.#results[place] = result;
      this.#world.note(result);
      if (result !== SUCCESS) return;
      const words = Array.from({ length: (to - from) * WORDS }, (__, i) => i % WORDS);
      same(
        "words that were put",
        words.map((___, i) => this.#world.load(this.#base + 4 * (WORDS * from + i))),
        words,
      );
    };
  }
}

/** One page is the region that task 1 has, and nobody is there. */
function setup(world: World): void {
  setUp(world, []);
  openAtStart(world, 0);
  world.setWord(world.task(1) + TASK_STATE_OFFSET, TASK_UP);
  const page = world.kernel.regionAllocate(map.job, 1, 1);
  for (let at = 0; at < PAGE; at += 4) world.setWord(page + at, -1);
  world.kernel.regionOpen(map.job, map.regions, page, PAGE);
}

const REMOTE_PAGE = map.heapBase + PAGE;

/** What task 0 does while the engine thread dies, or after it; `count`: callbacks of its puts and fences. */
function putting(
  name: string,
  count: number,
  monitor: (world: World) => void,
  run: (puts: Puts, wait: () => void) => void,
): Scenario {
  return {
    name: `the engine thread dies with puts under way: ${name}`,
    engine: true,
    bound: 1,
    mortal: [1],
    endless: [1],
    monitor,
    setup,
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        const puts = new Puts(world, context, REMOTE_PAGE);
        run(puts, () => context.advanceUntil(() => puts.areOver));
      },
      serveForever,
    ],
    check(_, [results = []]) {
      same("callbacks", [results.length], [count]);
    },
  };
}

export const ENGINE_DIES_SCENARIOS: readonly Scenario[] = [
  putting("each callback is called once, and the task goes on by itself", 5, markLost, (puts, wait) => {
    puts.put(true);
    puts.fence();
    wait();
    puts.put(true);
    wait();
  }),
  putting("nothing is called again that was before the monitor has heard", 5, markLostLate, (puts, wait) => {
    puts.put(true);
    wait();
    puts.fence();
    wait();
    puts.put(true);
    wait();
  }),
];

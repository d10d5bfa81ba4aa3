// Slots of tasks of other nodes are asked back while payloads are on offer, to those tasks and from them.
import type { ReceiveOptions } from "../../../src/core/message/pacing.js";
import { announceStart } from "../../../src/node/liveness.js";
import type { Scenario } from "../scenario.js";
import { agent, bindAll, ONE, ONE_SLOT, Own, of, offers, says, TAKEN, THIRD } from "./nodes.js";
import { same } from "./support.js";

/** Bytes of a payload. */
const BYTES = 8;
/** Of one that has several fragments, which are the smallest ones. */
const FRAGMENT = 64;
const CHAIN_BYTES = 2 * FRAGMENT;

/** Where a payload goes, and how. */
type Destination = [Uint8Array, ReceiveOptions?];

/** A task of another node offers a payload. */
function takes(how: string, destinationOf: (own: Own) => Destination, bytes: number): Scenario {
  return {
    name: `the slot is asked back of a task of another node that offers a payload, which is ${how}`,
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup() {},
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.takeOffers(...destinationOf(own));
        own.makeNotice();
        own.await(2);
      },
      agent(offers(ONE, bytes), says(THIRD, 7)),
    ],
    check(_, [taken, told]) {
      same("what was taken", of(ONE, taken).slice(-1), [TAKEN]);
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, told), of(ONE, taken));
    },
  };
}

/**
 * The target may read the offer behind its acknowledgment, as the last record of the lane. Without a handler, it begins
 * nothing then. So it says with the next acknowledgment that it needs the slot.
 */
export const KEPT_OFFER: Scenario = {
  name: "the slot is asked back of a task of another node that offers a payload, for which there is no handler yet",
  node: ONE_SLOT,
  endless: [1],
  bound: 1,
  setup() {},
  threads: [
    (world) => {
      const own = new Own(world, 0);
      // The round that sees this notice may see the agent's too, behind the lanes that it has read.
      announceStart(world.kernel, world.map);
      own.idle();
      own.takeOffers(new Uint8Array(BYTES));
      own.await(1);
    },
    agent(offers(ONE, BYTES), says(THIRD, 7)),
  ],
  check(_, [taken, told]) {
    same("what was taken", of(ONE, taken).slice(-1), [TAKEN]);
    same("what went to the one", of(ONE, told), of(ONE, taken));
  },
};

export const PURGE_OFFER_SCENARIOS: readonly Scenario[] = [
  {
    name: "a task offers a payload to a task whose slot is asked back",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.offer(ONE, own.region(BYTES));
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, offered]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, offered), of(ONE, taken));
    },
  },
  takes("copied by the target's thread", () => [new Uint8Array(BYTES)], BYTES),
  takes(
    "moved by the engines",
    (own) => [own.region(CHAIN_BYTES).bytes, { fragment: FRAGMENT, depth: 1 }],
    CHAIN_BYTES,
  ),
  KEPT_OFFER,
];

// A node has fewer slots than there are tasks of other nodes that talk to it, and that it talks to. Each gets a slot in its turn,
// however much the others have to say: no schedule goes on for ever.
import { endpointOf } from "../../../src/core/endpoint.js";
import { SUCCESS } from "../../../src/core/result.js";
import type { Context } from "../../../src/pami/context.js";
import type { Scenario } from "../scenario.js";
import {
  agent,
  bindAll,
  DISPATCH,
  flooded,
  ONE,
  OTHER,
  Own,
  of,
  PAYLOADS,
  says,
  THIRD,
  TWO_EACH,
  TWO_SLOTS,
} from "./nodes.js";
import { same } from "./support.js";

const FOURTH = 60;
/** What the tasks of the node say to each other last: each has said all by then that it says to others. */
const LAST = 7;

/** Tasks of other nodes speak again and again, and a task of the node begins something with two others. */
function speaks(...loud: readonly number[]): Scenario {
  return {
    name: `a task waits for slots while ${loud.length} tasks of other nodes speak again and again`,
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    atMost: 3000,
    setup: (world) => bindAll(world, ONE, OTHER),
    threads: [
      (world) => {
        const own = new Own(world, 0, false);
        own.say(THIRD, 1);
        own.say(FOURTH, 2);
      },
      flooded(...loud.map((task) => says(task, 4))),
    ],
    check(_, [, sent]) {
      same("what went to the third", of(THIRD, sent), [1]);
      same("what went to the fourth", of(FOURTH, sent), [2]);
    },
  };
}

/** Tries to send. */
function attempt(context: Context, to: number, number: number): boolean {
  return context.sendImmediate(endpointOf(to, 0), DISPATCH, null, PAYLOADS[number], false) === SUCCESS;
}

/** A context waits for a slot. Another one of its task does not wait: it tries again after some rounds. */
function tries(every: number): Scenario {
  return {
    name: `a context waits for a slot while another one tries to have one every ${every} rounds`,
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    atMost: 3000,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        const second = own.client.createContext({ spin: 0, pendingBytes: 0 });
        let isTold = false;
        second.whenRoom(endpointOf(THIRD, 0), 4, () => {
          isTold = true;
        });
        for (let rounds = 0; !isTold || !attempt(second, THIRD, 3); rounds++) {
          if (rounds % every === 0) attempt(own.context, ONE, 1);
          own.context.advance();
          second.advance();
          own.idle();
        }
        own.idle();
      },
      agent(),
    ],
    check: (_, [, sent]) => same("what went to the third", of(THIRD, sent), [3]),
  };
}

export const CROWDED_SCENARIOS: readonly Scenario[] = [
  {
    name: "a task talks to more tasks of other nodes than there are slots, one after the other",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    atMost: 3000,
    setup: (world) => bindAll(world, ONE, OTHER),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(THIRD, 1);
        own.say(ONE, 2);
        own.await(3);
        own.say(THIRD, 3);
      },
      agent(says(OTHER, 4), says(THIRD, 5), says(ONE, 6)),
    ],
    check(_, [taken, sent]) {
      same("what went to the third", of(THIRD, sent), [1, 3]);
      same("what went to the one", of(ONE, sent), [2]);
      same(
        "what came",
        [OTHER, THIRD, ONE].flatMap((task) => of(task, taken)),
        [4, 5, 6],
      );
    },
  },
  {
    name: "two tasks talk to two tasks of other nodes in opposite order, while a third one has one of two slots",
    node: TWO_EACH,
    endless: [1],
    bound: 1,
    atMost: 1000,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(OTHER, 1);
        own.say(THIRD, 2);
        own.say(1, LAST);
        own.await(1);
      },
      agent(),
      (world) => {
        const own = new Own(world, 1);
        own.say(THIRD, 3);
        own.say(OTHER, 4);
        own.say(0, LAST);
        own.await(1);
      },
    ],
    check(_, [, sent]) {
      same("what went to the other", of(OTHER, sent).sort(), [1, 4]);
      same("what went to the third", of(THIRD, sent).sort(), [2, 3]);
    },
  },
  {
    name: "two tasks wait for slots, and so do frames of two others",
    node: TWO_EACH,
    endless: [1],
    bound: 1,
    atMost: 1000,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(OTHER, 1);
        own.await(2);
        own.say(1, LAST);
        own.await(3);
      },
      agent(says(ONE, 5), says(FOURTH, 6)),
      (world) => {
        const own = new Own(world, 1);
        own.say(THIRD, 3);
        own.say(0, LAST);
        own.await(1);
      },
    ],
    check(_, [taken, sent]) {
      same("what went to the other", of(OTHER, sent), [1]);
      same("what went to the third", of(THIRD, sent), [3]);
      same(
        "what came",
        [ONE, FOURTH].flatMap((task) => of(task, taken)),
        [5, 6],
      );
    },
  },
  speaks(ONE),
  speaks(ONE, OTHER, FOURTH + 1),
  tries(3),
  tries(4),
];

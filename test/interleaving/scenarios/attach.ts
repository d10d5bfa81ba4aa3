// Tasks that join at the same time, by the runtime's own client and contexts.
import { endpointOf } from "../../../src/core/endpoint.js";
import type { Message } from "../../../src/core/message/message.js";
import { SUCCESS } from "../../../src/core/result.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { same } from "./support.js";

const DISPATCH = 5;

/** Joins, sends its number to the other one, and waits for the other one's. */
function join(task: number) {
  const payload = Uint8Array.from([task + 1, 0, 0, 0]);
  return (world: World): void => {
    const client = world.client(task);
    const context = client.createContext({ spin: 0 });
    let got = 0;
    context.dispatch(DISPATCH, (message: Message) => {
      got++;
      world.note(message.getInt32(0));
    });
    const result = context.sendImmediate(endpointOf(1 - task, 0), DISPATCH, null, payload);
    if (result !== SUCCESS) throw new Error(`sendImmediate() came to ${result}`);
    context.advanceUntil(() => got > 0);
  };
}

export const ATTACH_SCENARIOS: readonly Scenario[] = [
  {
    name: "two tasks attach at once, open lanes to each other and send",
    setup() {},
    threads: [join(0), join(1)],
    check(_, [first = [], second = []]) {
      same("what task 0 got", first, [2]);
      same("what task 1 got", second, [1]);
    },
  },
  {
    name: "the same place is taken by one of two",
    setup() {},
    threads: [0, 1].map(() => (world: World) => {
      try {
        world.client(2);
        world.note(1);
      } catch (error) {
        world.note((error as { code?: string }).code === "PAMIR_CLOSED" ? 0 : -1);
      }
    }),
    check(_, [first = [], second = []]) {
      same("who has it", [...first, ...second].sort(), [0, 1]);
    },
  },
];

// Slots of tasks of other nodes are given back and given away again, while contexts use them. The agent, the clients and their
// contexts are those of the runtime. The other nodes are stood for by what takes the agent's frames, and has some for it.
import { KIND_MESSAGE, META_DISPATCH_MASK, NONE, TRANSFER_DONE } from "../../../assembly/layout.js";
import { type Endpoint, endpointOf, taskOf } from "../../../src/core/endpoint.js";
import type { Message } from "../../../src/core/message.js";
import type { MemRegion } from "../../../src/core/region.js";
import { EAGAIN, type Result, SUCCESS } from "../../../src/core/result.js";
import { engineSlot } from "../../../src/memory/map.js";
import { Addresses } from "../../../src/node/address.js";
import { markDead } from "../../../src/node/liveness.js";
import type { Client } from "../../../src/pami/client.js";
import type { Context } from "../../../src/pami/context.js";
import { Agent } from "../../../src/transport/net/agent.js";
import type { Frame, OnFrame, Pipe } from "../../../src/transport/net/frames.js";
import { NO_REST, putRecord, recordBytes, recordsIn } from "../../../src/transport/net/records.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { bound } from "./bind.js";
import { handleOf, openAtStart, regionAtStart, same } from "./support.js";

/** Tasks of other nodes, each with a node of its own. None of them has a slot that it prefers. */
const ONE = 70;
const OTHER = 80;
const THIRD = 90;
const DISPATCH = 5;
/** Noted in place of a message's number. */
const PUT = 50;

const PAYLOADS = Array.from({ length: 8 }, (_, i) => Uint8Array.from([i, 0, 0, 0]));

/** The other nodes: notes the task and the number of each message that goes there. */
class Others implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = true;
  readonly talkedTo = new Set<number>();
  readonly #world: World;
  readonly #answers: (() => void)[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  buffer(bytes: number): Uint8Array {
    return new Uint8Array(bytes);
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    this.talkedTo.add(taskOf(to));
    if ("ask" in frame) {
      const answer = { answer: frame.ask, result: TRANSFER_DONE, data: undefined };
      this.#answers.push(() => this.onFrame(to, from, answer));
      this.#world.note(taskOf(to));
      this.#world.note(PUT);
    }
    if (!("records" in frame)) return;
    const { records = [] } = recordsIn(frame.records, NO_REST) ?? {};
    for (const { kind, meta, body } of records) {
      if (kind !== KIND_MESSAGE) continue;
      same("the dispatch id of a message", [meta & META_DISPATCH_MASK], [DISPATCH]);
      this.#world.note(taskOf(to));
      this.#world.note(body[0] as number);
    }
  }

  /** A task says a number to a task of this node. */
  say(from: number, to: number, number: number): void {
    const body = PAYLOADS[number] as Uint8Array;
    const records = new Uint8Array(recordBytes(body.length));
    putRecord(records, 0, KIND_MESSAGE, DISPATCH, body);
    if (!this.onFrame(endpointOf(from, 0), endpointOf(to, 0), { records })) throw new Error("a frame was dropped");
  }

  /** What was asked is answered. Returns whether there was anything. */
  answer(): boolean {
    const answers = this.#answers.splice(0);
    for (const answer of answers) answer();
    return answers.length > 0;
  }

  firstTaskOf(task: number): number {
    return task;
  }

  receivesFrom(): boolean {
    return false;
  }

  drop(task: number): boolean {
    this.talkedTo.delete(task);
    return true;
  }

  flush(): void {}

  leave(): void {}
}

/** One thing that comes from the other nodes. */
type Event = (others: Others, agent: Agent) => void;

/** Turns without work, before the agent sleeps. */
const SPINS = 3;

/** The agent's thread, until the tasks' threads are through: before each of the first turns, one thing comes. */
function agent(...events: readonly Event[]) {
  return (world: World): void => {
    const { kernel, memory, map } = world;
    const others = new Others(world);
    const self = new Agent(kernel, memory, map, others, false);
    const slot = engineSlot(map);
    let idle = 0;
    for (let turn = 0; ; turn++) {
      const isOver = world.hasEnded(0) && world.hasEnded(2);
      const seen = kernel.bellArm(slot);
      events[turn]?.(others, self);
      const isAny = others.answer();
      const isIdle = !self.turn() && !isAny && !self.hasWork && turn >= events.length;
      if (isOver && isIdle) return;
      if (isIdle && ++idle % SPINS === 0) kernel.bellWait(slot, seen, -1);
      kernel.bellDisarm(slot);
    }
  };
}

/** A task of another node says a number. */
function says(from: number, number: number, to = 0): Event {
  return (others) => others.say(from, to, number);
}

/** A task of this node, with a context that notes origin and number of each message. */
class Own {
  readonly client: Client;
  readonly context: Context;
  got = 0;
  /** The task that sent the last message. */
  last = -1;
  readonly #world: World;

  constructor(world: World, slot: number) {
    this.#world = world;
    this.client = world.client(slot);
    this.context = this.client.createContext({ spin: 0, pendingBytes: 0 });
    this.context.dispatch(DISPATCH, (message: Message) => {
      this.got++;
      this.last = message.task;
      world.note(taskOf(message.origin));
      world.note(message.getInt32(0));
    });
  }

  /** Tries until there is a slot for a task, and room. */
  #insist(to: number, attempt: (target: Endpoint) => Result): void {
    const target = endpointOf(to, 0);
    for (let result = attempt(target); result !== SUCCESS; result = attempt(target)) {
      if (result !== EAGAIN) throw new Error(`an attempt came to ${result}`);
      let isTold = false;
      this.context.whenRoom(target, 4, () => {
        isTold = true;
      });
      this.context.advanceUntil(() => isTold);
    }
  }

  /** Sends a number. */
  say(to: number, number: number): void {
    this.#insist(to, (target) => this.context.sendImmediate(target, DISPATCH, null, PAYLOADS[number]));
  }

  /** Sends a number whose place is reserved for some rounds, and notes it, unless there is no slot for its target. */
  sayLate(to: number, number: number, rounds: number): void {
    const target = endpointOf(to, 0);
    const at = this.context.reserve(target, DISPATCH, 4);
    for (let round = 0; round < rounds; round++) this.context.advance();
    if (at < 0) return;
    this.#world.note(to);
    this.#world.note(number);
    this.#world.store(at, number);
    this.context.commit(target);
  }

  /** Puts a word into a region of a task, and waits until it is there. */
  put(to: number, local: MemRegion): void {
    let result = -1;
    const onRemote = (_: unknown, how: Result): void => {
      result = how;
    };
    const remote = handleOf(this.#world, 0, 0);
    this.#insist(to, (target) => this.context.put({ to: target, local, remote, bytes: 4, onRemote }));
    this.context.advanceUntil(() => result >= 0);
    same("the result of a put", [result], [SUCCESS]);
  }

  /** Advances until so many messages have come. */
  await(count: number): void {
    this.context.advanceUntil(() => this.got >= count);
  }
}

/** Gives slots to these tasks, from the first free one on. */
function bindAll(world: World, ...tasks: readonly number[]): void {
  const { kernel, memory, map } = world;
  const addresses = new Addresses(kernel, memory, map);
  for (const task of tasks) if (addresses.bind(task, map.tasks) < 0) throw new Error(`no slot for task ${task}`);
}

/** The numbers that were noted of one task, in order. */
function of(task: number, notes: readonly number[] = []): number[] {
  return notes.filter((_, i) => i % 2 === 1 && notes[i - 1] === task);
}

/** Where a task is found is another's only once this context has acknowledged that. */
function look({ kernel, memory, map }: World, task: number): void {
  const addresses = new Addresses(kernel, memory, map);
  const ordinal = addresses.ordinalOf(endpointOf(task, 1));
  if (ordinal < 0) return;
  const there = addresses.endpointAt(ordinal);
  if (there !== endpointOf(task, 1) && there !== NONE) throw new Error(`at the ordinal of task ${task} is ${there}`);
}

/** The node has two tasks, and one slot for all others; or one, and two. */
const ONE_SLOT = { locals: 2, isCrowded: true } as const;
const TWO_SLOTS = { locals: 1, isCrowded: true } as const;

export const PURGE_SCENARIOS: readonly Scenario[] = [
  {
    name: "a task sends while its target's slot is asked back",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup: (world) => bindAll(world, ONE, OTHER),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(ONE, 1);
        own.say(ONE, 2);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), [1, 2]);
    },
  },
  {
    name: "a task begins transfers while their target's slot is asked back",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, ONE, OTHER);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        const local = regionAtStart(world, 0);
        own.put(ONE, local);
        own.put(ONE, local);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, asked]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("puts that went to the one", of(ONE, asked), [PUT, PUT]);
    },
  },
  {
    name: "a task lets the slot go of a task to which it has a lane",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 0);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [said, sent]) {
      same("what came of the third", of(THIRD, said), [7]);
      same("what went to the one", of(ONE, sent), of(ONE, said));
    },
  },
  {
    name: "one task holds a slot that is asked back, the other one lets it go",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 3);
        own.await(1);
      },
      agent(says(THIRD, 7, 1), says(THIRD, 7)),
      (world) => new Own(world, 1).await(1),
    ],
    check(_, [said, sent, taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), of(ONE, said));
    },
  },
  {
    name: "a slot is given to another task while late readers still look",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        for (let round = 0; round < 4; round++) {
          look(world, ONE);
          own.context.advance();
        }
        own.await(1);
        own.say(THIRD, 1);
      },
      agent(says(THIRD, 7), says(THIRD, 7, 1)),
      (world) => {
        const own = new Own(world, 1);
        for (let round = 0; round < 2; round++) {
          own.context.advance();
          look(world, ONE);
        }
        own.await(1);
      },
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the third", of(THIRD, sent), [1]);
    },
  },
  {
    name: "a task dies between its hold on a slot and its acknowledgement",
    node: ONE_SLOT,
    endless: [1],
    mortal: [0],
    bound: 0,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 3);
        own.await(1);
      },
      agent(says(THIRD, 7, 1), says(THIRD, 7)),
      (world) => new Own(world, 1).await(1),
    ],
    monitor: ({ kernel, map }) => markDead(kernel, map, 0),
    check(_, [said, sent, taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      // What it has not committed is lost with it.
      const came = of(ONE, sent);
      same("what went to the one", came, came.length === 0 ? [] : of(ONE, said));
    },
  },
  {
    name: "a task of another node speaks while its slot is asked back",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup() {},
    threads: [(world) => new Own(world, 0).await(4), agent(says(ONE, 4), says(THIRD, 7), says(ONE, 5), says(ONE, 6))],
    check(_, [taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what came of the one", of(ONE, taken), [4, 5, 6]);
    },
  },
  {
    name: "the slot of a task that has ended is given to another",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, ONE);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.context.sendImmediate(endpointOf(ONE, 0), DISPATCH, null, PAYLOADS[2]);
        own.context.advanceUntil(() => own.last === THIRD);
        own.say(THIRD, 1);
        own.put(THIRD, regionAtStart(world, 0));
      },
      agent(says(ONE, 5), (_, self) => self.ended(ONE, false), says(THIRD, 7), says(THIRD, 7, 1)),
      (world) => new Own(world, 1).await(1),
    ],
    check(_, [taken, sent]) {
      // What is in no lane when it ends is lost with it.
      const came = of(ONE, taken);
      same("what came of the one", came, came.length === 0 ? [] : [5]);
      same("what came of the third", of(THIRD, taken), [7]);
      // A put overtakes what is in a lane.
      same("what went to the third", of(THIRD, sent).sort(), [1, PUT]);
    },
  },
  {
    name: "two slots are free: a task and the agent want one each, and the task another one",
    node: TWO_SLOTS,
    setup() {},
    threads: [
      ({ kernel, memory, map }) => {
        const addresses = new Addresses(kernel, memory, map);
        for (const task of [ONE, OTHER]) addresses.bind(task, 0);
      },
      (world) => {
        const { kernel, memory, map } = world;
        const addresses = new Addresses(kernel, memory, map);
        // A task that has the lock goes on after a while. Each vain try takes a preemption, of which a schedule has at most 8.
        for (let tries = 1; addresses.bind(THIRD, map.tasks) < 0; tries++) {
          if (tries > 9) throw new Error("the agent finds no slot");
          kernel.bellWait(engineSlot(map), kernel.bellArm(engineSlot(map)), 1);
        }
      },
    ],
    check(world) {
      const numbers = bound(world);
      if (!numbers.includes(THIRD)) throw new Error("the agent has no slot");
    },
  },
  {
    name: "a task and a frame wait for slots at once",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup() {},
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(ONE, 1);
        own.say(OTHER, 2);
        own.await(1);
        own.say(ONE, 3);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), [1, 3]);
      same("what went to the other", of(OTHER, sent), [2]);
    },
  },
];

// Falling asleep and being woken, by each kind of event: no wake-up is lost. The waiting is that of the runtime.
import {
  CONTEXT_NOTICE_SEEN_OFFSET,
  DESCRIPTOR_RMW,
  INJECTION_STAGED_OFFSET,
  RMW_ADD,
  RMW_NOTIFY,
  SLICE_BYTES,
  TASK_BELL_OFFSET,
  TASK_INTERRUPT_OFFSET,
  TASK_NOTICE_OFFSET,
  TRANSFER_DONE,
  WAIT_ADVANCE_UNTIL,
} from "../../../assembly/layout.js";
import { Spins } from "../../../src/node/spins.js";
import { pipeAwake, pipeOf, pipeSleep } from "../../../src/process/pipe-words.js";
import { Bells } from "../../../src/transport/net/bells.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import {
  betweenProcesses,
  messages,
  ORIGIN,
  OTHER,
  openAtStart,
  rest,
  same,
  send,
  smallLane,
  TARGET,
  take,
} from "./support.js";

/** Meta word of the second of messages(). */
const SECOND = 2;
const FOREVER = Number.POSITIVE_INFINITY;
/** What a wait tells beside; of no meaning here. */
const WAIT = {
  kind: WAIT_ADVANCE_UNTIL,
  activity: { busy: 0 },
  restless: () => false,
  spins: new Spins(),
  found: false,
};

/** The last look before the target falls asleep, as that of a context. */
const lastLookOf = (world: World): boolean => world.kernel.lastLook(world.context(TARGET)) !== 0;

/** Waits until the target has taken `count` messages; whether it has. */
function await_(world: World, count: number, timeout = FOREVER): boolean {
  let got = 0;
  const poll = (): boolean => {
    got += take(world);
    return got >= count;
  };
  return world
    .parker(0)
    .wait({ poll, lastLook: () => lastLookOf(world), ...WAIT, block: world.context(TARGET) }, timeout, 0);
}

/** Sends messages, asleep while there is no room. `look`: what is done once more before it falls asleep. */
function sendAll(world: World, from: number, count: number, look: "room" | "send"): void {
  const { kernel } = world;
  const lane = kernel.laneOf(world.context(TARGET), ORIGIN);
  let sent = from;
  const trySend = (): boolean => {
    while (sent < from + count && send(world, lane, sent)) sent++;
    return sent === from + count;
  };
  const poll = (): boolean => {
    if (!trySend()) kernel.laneWantRoom(lane, 1);
    return sent === from + count;
  };
  const lastLook = (): boolean => {
    kernel.bellArm(world.task(1));
    return look === "send" ? trySend() : kernel.laneRoom(lane) >= 4;
  };
  world.parker(1).wait({ poll, lastLook, ...WAIT, block: world.context(ORIGIN) }, FOREVER, 0);
  kernel.laneWantRoom(lane, 0);
}

/** Sends messages, of which each rings. */
function sendEach(world: World, count: number): void {
  const lane = world.kernel.laneOf(world.context(TARGET), ORIGIN);
  for (let i = 0; i < count; i++) send(world, lane, i);
}

/** Sends messages as the agent does: it rings once, behind them. */
function sendHeld(world: World, count: number): void {
  const lane = world.kernel.laneOf(world.context(TARGET), ORIGIN);
  const bells = new Bells(world.kernel, world.map);
  for (let i = 0; i < count; i++) {
    bells.hold(0);
    send(world, lane, i);
  }
  bells.ring();
}

/** How messages are sent to a target that may sleep. */
type Sends = (world: World, count: number) => void;

function two(how: string, sends: Sends): Scenario {
  return {
    name: `the target sleeps until it has two messages${how}`,
    setup: smallLane,
    threads: [(world) => void await_(world, 2), (world) => sends(world, 2)],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(2));
    },
  };
}

function room(lastLook: "room" | "send"): Scenario {
  return {
    name: `the origin of a full lane sleeps until there is room; the last look is a ${lastLook === "room" ? "look for room" : "send"}`,
    setup(world) {
      const lane = smallLane(world, lastLook === "room" ? 16 : 64);
      for (let i = 0; i < 3; i++) send(world, lane, i);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 2; i++) take(world);
        world.kernel.peek(world.context(TARGET));
      },
      (world) => sendAll(world, 3, 1, lastLook),
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(4));
    },
  };
}

/** Words of a region of task 0: what is put there, and the word that tells of it. */
const DATA_WORD = 3;
const TOLD_WORD = 5;

const wordOf = ({ map }: World, word: number): number => map.heapBase + 4 * word;

/** Task 1 adds 1 to the word that tells, and wakes the task that it belongs to. */
function tell(world: World): void {
  const { kernel, map } = world;
  const descriptor = world.fifo(map.contexts) + INJECTION_STAGED_OFFSET;
  const index = map.regions - 1;
  const words = [DESCRIPTOR_RMW, RMW_ADD | RMW_NOTIFY, 0, 0, 0, index, 1, 4 * TOLD_WORD, 1, 0];
  for (const [i, value] of words.entries()) world.store(descriptor + 4 * i, value);
  const result = kernel.perform(map.job, descriptor, SLICE_BYTES);
  if (result !== TRANSFER_DONE) throw new Error(`the change came to ${result}`);
}

/** Task 0 sleeps until the word that tells is so much above its start. */
function awaitWord(world: World, rise: number): void {
  const holds = (): boolean => world.kernel.loadWord(wordOf(world, TOLD_WORD)) >= TOLD_WORD + rise;
  const lastLook = (): boolean => {
    world.kernel.bellArm(world.task(0));
    return holds();
  };
  world.parker(0).wait({ poll: holds, lastLook, ...WAIT, block: world.context(TARGET) }, FOREVER, 0);
}

function wordAndMessage(name: string, sends: Sends): Scenario {
  return {
    name,
    setup(world) {
      openAtStart(world, 0);
      smallLane(world);
    },
    threads: [
      (world) => {
        awaitWord(world, 1);
        await_(world, 1);
      },
      (world) => tell(world),
      (world) => sends(world, 1),
    ],
    check(world, [taken = []]) {
      same("messages", [...taken, ...rest(world)], messages(1));
    },
  };
}

/** A word that tells, and the tasks that change it; what was put before is there. */
const WORD_SCENARIOS: readonly Scenario[] = [
  {
    name: "a task sleeps until a word of its region tells that bytes have come",
    setup: (world) => openAtStart(world, 0),
    threads: [
      (world) => {
        awaitWord(world, 1);
        world.note(world.load(wordOf(world, DATA_WORD)));
        awaitWord(world, 2);
      },
      (world) => {
        world.store(wordOf(world, DATA_WORD), 77);
        tell(world);
        tell(world);
      },
    ],
    check(_, [seen = []]) {
      same("bytes behind the word", seen, [77]);
    },
  },
  wordAndMessage("a task sleeps until a word and a message have come, each from another task", sendEach),
  wordAndMessage(
    "the agent holds the target's bell, and another task changes the word for which the target waits",
    sendHeld,
  ),
];

const THREAD_SCENARIOS: readonly Scenario[] = [
  ...WORD_SCENARIOS,
  two("", sendEach),
  two(", for which the agent rings once", sendHeld),
  room("room"),
  room("send"),
  {
    name: "two sleepers: the target for messages, the origin for room",
    setup: smallLane,
    threads: [(world) => void await_(world, 5), (world) => sendAll(world, 0, 5, "room")],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(5));
    },
  },
  {
    name: "a timeout fires as the message comes",
    setup: smallLane,
    threads: [
      (world) => {
        const { kernel } = world;
        const slot = world.task(0);
        // A bare sleep: what wakes it is not lost because the time was up as well.
        const seen = kernel.bellArm(slot);
        if (kernel.peek(world.context(TARGET)) === 0) {
          if (world.sleep(slot, seen, 5)) world.note(-1);
        }
        kernel.bellDisarm(slot);
        world.note(-2);
        await_(world, 1);
        if (await_(world, 1, 5)) throw new Error("a message that was never sent");
      },
      (world) => void send(world, world.kernel.laneOf(world.context(TARGET), ORIGIN), 0),
    ],
    check(world, [taken = []]) {
      same("messages", [...taken.filter((note) => note > 0), ...rest(world)], messages(1));
    },
  },
  {
    name: "a sleeper is interrupted, and another one sleeps on",
    setup: smallLane,
    threads: [
      (world) => {
        const slot = world.task(0);
        const context = world.context(TARGET);
        let notice = 0;
        const poll = (): boolean => {
          notice = world.kernel.loadWord(slot + TASK_NOTICE_OFFSET);
          world.store(context + CONTEXT_NOTICE_SEEN_OFFSET, notice);
          if (world.kernel.loadWord(slot + TASK_INTERRUPT_OFFSET) !== 0) return true;
          take(world);
          return false;
        };
        world
          .parker(0)
          .wait({ poll, lastLook: () => lastLookOf(world), ...WAIT, block: world.context(TARGET) }, FOREVER, 0);
      },
      (world) => {
        send(world, world.kernel.laneOf(world.context(TARGET), ORIGIN), 0);
        // As job.interrupt(0) does.
        world.kernel.addWord(world.task(0) + TASK_INTERRUPT_OFFSET, 1);
        world.kernel.addWord(world.task(0) + TASK_NOTICE_OFFSET, 1);
        world.kernel.ringAlways(world.task(0));
      },
      (world) => {
        const slot = world.task(2);
        const seen = world.kernel.bellArm(slot);
        if (!world.sleep(slot, seen, 5)) throw new Error("woken by another one's bell");
        world.kernel.bellDisarm(slot);
      },
    ],
    check(world, [taken = []]) {
      world.store(world.context(TARGET) + CONTEXT_NOTICE_SEEN_OFFSET, world.word(world.task(0) + TASK_NOTICE_OFFSET));
      same("messages", [...taken, ...rest(world)], messages(1));
    },
  },
];

/**
 * A process dies at any step of a message, and no other one hears of its end: so it is if it is stopped. It may have taken the
 * sleeper's flag down, and not have rung.
 */
const STOPPED: Scenario = {
  name: "a process stops within a message, and that of another one wakes the sleeper all the same",
  processes: { sleepsEnd: true },
  mortal: [1],
  bound: 1,
  setup(world) {
    smallLane(world);
    world.openAt(0, OTHER, TARGET, 64, 48);
  },
  threads: [
    (world) => {
      const poll = (): boolean => {
        take(world);
        return world.notes.includes(SECOND);
      };
      world
        .parker(0)
        .wait({ poll, lastLook: () => lastLookOf(world), ...WAIT, block: world.context(TARGET) }, FOREVER, 0);
    },
    (world) => void send(world, world.kernel.laneOf(world.context(TARGET), ORIGIN), 0),
    (world) => void send(world, world.kernel.laneOf(world.context(TARGET), OTHER), 1),
  ],
  check(_, [taken = []]) {
    same("messages of the process that goes on", taken.slice(taken.indexOf(SECOND)), messages(2).slice(2));
  },
};

const PROCESS_SCENARIOS: readonly Scenario[] = THREAD_SCENARIOS.map(betweenProcesses);

/** Any process. */
const PID = 7;

/**
 * A thread sleeps by reading its pipe, twice. The bell of task 1 stands for the pipe: each ring of it is a byte, which stays
 * until it is read.
 */
const PIPE: Scenario = {
  name: "a thread sleeps by its pipe, until it is rung twice",
  setup: (world) => world.store(wordOf(world, TOLD_WORD), 0),
  threads: [
    (world) => {
      const { kernel } = world;
      const [slot, pipe] = [world.task(0), world.task(1)];
      const word = wordOf(world, TOLD_WORD);
      let read = 0;
      for (let told = kernel.loadWord(word); told < 2; told = kernel.loadWord(word)) {
        const seen = kernel.bellArm(slot);
        if (kernel.loadWord(word) === told && !pipeSleep(kernel, slot, seen, PID)) {
          // A notification that comes late ends the wait without a byte, as no read of a pipe does.
          while (kernel.loadWord(pipe + TASK_BELL_OFFSET) === read) kernel.bellWait(pipe, read, -1);
          read++;
        }
        pipeAwake(kernel, slot);
        kernel.bellDisarm(slot);
      }
      world.note(kernel.loadWord(word));
    },
    (world) => {
      const { kernel } = world;
      const slot = world.task(0);
      for (let round = 0; round < 2; round++) {
        kernel.addWord(wordOf(world, TOLD_WORD), 1);
        const bell = kernel.loadWord(slot + TASK_BELL_OFFSET);
        kernel.ring(slot);
        // The flag was up: this thread also wakes the other process.
        if (kernel.loadWord(slot + TASK_BELL_OFFSET) !== bell && pipeOf(kernel, slot) !== 0) {
          kernel.ringAlways(world.task(1));
        }
      }
    },
  ],
  check(_, [told]) {
    same("what the sleeper was told", told ?? [], [2]);
  },
};

export const PIPE_SCENARIOS: readonly Scenario[] = [PIPE];
export const PARK_SCENARIOS: readonly Scenario[] = [...THREAD_SCENARIOS, ...PROCESS_SCENARIOS, STOPPED];

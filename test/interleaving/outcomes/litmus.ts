// Pairs of acts that meet at one sync point, with what may come of them and what never may. Each is run by two real
// workers at the same moment, again and again.
import {
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  CONTEXT_EVENTS_OFFSET,
  LANE_CAPACITY_OFFSET,
  LANE_IDLE_OFFSET,
  LANE_TARGET_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  TASK_BELL_OFFSET,
  TASK_STATE_OFFSET,
} from "../../../assembly/layout.js";
import type { Rig } from "../../support/kernels.js";

const TARGET = 0;
const ORIGIN = 2;

export interface Litmus {
  readonly name: string;
  /** Outcomes that would be a bug. */
  readonly forbidden: readonly string[];
  /** Once. */
  setup(rig: Rig): void;
  /** Before each round, by actor 0 alone. */
  reset(rig: Rig, round: number): void;
  /** The acts; an actor has what it returns told to outcome(). */
  readonly acts: readonly [(rig: Rig, round: number) => number, (rig: Rig, round: number) => number];
  /** After each round, by actor 0 alone. */
  outcome(rig: Rig, results: readonly [number, number], round: number): string;
}

const laneOf = (rig: Rig): number => rig.consumer.laneOf(rig.context(TARGET), ORIGIN);
const openLane = (rig: Rig): void => void rig.openAt(2 ** 32 - 16, ORIGIN, TARGET, 64, 48);
const sendRound = (rig: Rig, round: number): number =>
  rig.producer.laneSendWords(laneOf(rig), 8, round & 0xffff, round, ~round);

/** Takes what there is; 1: the message of this round, whole; 2: another one, or half of one; 0: nothing. */
function takeRound(rig: Rig, round: number): number {
  const context = rig.context(TARGET);
  if (rig.consumer.advance(context, 1) === 0) return 0;
  const event = context + CONTEXT_EVENTS_OFFSET;
  const body = rig.word(event + 8);
  const isWhole =
    rig.word(event + 4) === (round & 0xffff) && rig.word(body) === round && rig.word(body + 4) === ~round >>> 0;
  rig.consumer.release(context);
  return isWhole ? 1 : 2;
}

/** Whether the message of the round is found later, if the last look says that there is something. */
function takeLater(rig: Rig, round: number): number {
  for (let tries = 0; tries < 3 && rig.consumer.peek(rig.context(TARGET)) !== 0; tries++) {
    const found = takeRound(rig, round);
    if (found !== 0) return found;
  }
  return 0;
}

const seenAtOnce = (rig: Rig, [found]: readonly [number, number], round: number): string => {
  const when = found === 0 ? "later" : "at once";
  const what = found === 0 ? takeLater(rig, round) : found;
  return what === 0 ? "lost" : what === 2 ? "torn" : `seen ${when}`;
};

let bell = 0;

/** One acts before it would fall asleep, the other one before it would have to wake it. */
function awake(task: number, actor: 0 | 1) {
  return (rig: Rig, results: readonly [number, number]): string => {
    const isRung = rig.word(rig.task(task) + TASK_BELL_OFFSET) !== bell;
    const hasSeen = results[actor] !== 0;
    rig.consumer.bellDisarm(rig.task(task));
    return hasSeen && isRung ? "seen and rung" : hasSeen ? "seen" : isRung ? "rung" : "asleep for ever";
  };
}

export const LITMUS: readonly Litmus[] = [
  {
    name: "a message is sent as its target looks (SYNC commit)",
    forbidden: ["torn", "lost"],
    setup: openLane,
    reset() {},
    acts: [takeRound, sendRound],
    outcome: seenAtOnce,
  },
  {
    name: "a message is sent as its lane loses its ready bit (SYNC ready)",
    forbidden: ["torn", "lost"],
    setup(rig) {
      for (let origin = 0; origin <= ATTENDED_KEEP + 1; origin++) rig.send(rig.open(origin, TARGET, 64, 48), [origin]);
      rig.drain(TARGET);
    },
    reset(rig) {
      for (let origin = 0; origin <= ATTENDED_KEEP + 1; origin++) {
        const lane = rig.consumer.laneOf(rig.context(TARGET), origin);
        rig.setWord(lane + LANE_IDLE_OFFSET, origin === ORIGIN ? ATTENDED_IDLE_MAX : 0);
      }
    },
    acts: [takeRound, sendRound],
    outcome: seenAtOnce,
  },
  {
    name: "a task falls asleep as a message comes (SYNC park)",
    forbidden: ["asleep for ever"],
    setup: openLane,
    reset(rig) {
      rig.drain(TARGET);
      bell = rig.word(rig.task(0) + TASK_BELL_OFFSET);
    },
    acts: [
      (rig) => {
        rig.consumer.bellArm(rig.task(0));
        return rig.consumer.peek(rig.context(TARGET));
      },
      sendRound,
    ],
    outcome: awake(0, 0),
  },
  {
    name: "an origin asks for room as its target gives some back (SYNC room-wanted, SYNC release)",
    forbidden: ["asleep for ever"],
    setup: openLane,
    reset(rig, round) {
      rig.producer.laneWantRoom(laneOf(rig), 0);
      rig.drain(TARGET);
      rig.settle(TARGET);
      while (sendRound(rig, round) === 1);
      rig.consumer.advance(rig.context(TARGET), 1);
      bell = rig.word(rig.task(1) + TASK_BELL_OFFSET);
    },
    acts: [
      (rig) => {
        rig.consumer.release(rig.context(TARGET));
        return 0;
      },
      (rig) => {
        rig.producer.laneWantRoom(laneOf(rig), 1);
        rig.producer.bellArm(rig.task(1));
        return rig.producer.laneRoom(laneOf(rig));
      },
    ],
    outcome: awake(1, 1),
  },
  {
    name: "two tasks allocate (SYNC heap-lock)",
    forbidden: ["one extent for two", "none"],
    setup() {},
    reset() {},
    acts: [
      (rig) => rig.consumer.heapAllocate(rig.map.job, 2, 0),
      (rig) => rig.producer.heapAllocate(rig.map.job, 2, 1),
    ],
    outcome(rig, results) {
      const [one, other] = results.map((pointer) => pointer !== OPEN_NO_MEMORY && pointer !== OPEN_BUSY);
      for (const [i, had] of [one, other].entries()) {
        if (had) rig.consumer.heapFree(rig.map.job, results[i] as number);
      }
      if (!one && !other) return "none";
      if (!one || !other) return "one found the heap locked";
      if (Math.abs(results[0] - results[1]) < 8192) return "one extent for two";
      return results[0] < results[1] ? "task 0 first" : "task 1 first";
    },
  },
  {
    name: "a lane is entered as its target looks (SYNC lane-entry)",
    forbidden: ["half made"],
    setup() {},
    reset(rig) {
      rig.producer.laneReclaim(rig.map.job, ORIGIN, TARGET);
    },
    acts: [
      (rig) => {
        const lane = laneOf(rig);
        if (lane === 0) return 0;
        return rig.word(lane + LANE_CAPACITY_OFFSET) === 64 && rig.word(lane + LANE_TARGET_OFFSET) === TARGET ? 1 : 2;
      },
      (rig) => rig.producer.laneOpen(rig.map.job, ORIGIN, TARGET, 64, 48),
    ],
    outcome: (_, [found]) => ["not yet", "made", "half made"][found] as string,
  },
  {
    name: "two threads join as one task (SYNC task-state)",
    forbidden: ["both", "neither"],
    setup() {},
    reset(rig) {
      rig.consumer.storeWord(rig.task(2) + TASK_STATE_OFFSET, 0);
    },
    acts: [
      (rig) => Number(rig.consumer.exchangeIf(rig.task(2) + TASK_STATE_OFFSET, 0, 1) === 0),
      (rig) => Number(rig.producer.exchangeIf(rig.task(2) + TASK_STATE_OFFSET, 0, 1) === 0),
    ],
    outcome: (_, [one, other]) => (one + other === 2 ? "both" : one ? "thread 0" : other ? "thread 1" : "neither"),
  },
];

// One lane: sending, wrapping, filling up, reserving; and the lane itself made, replaced, given back.
import { ADVANCE_EVENTS_MASK, CONTEXT_EVENTS_OFFSET } from "../../../assembly/layout.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { messages, noteEvents, ORIGIN, rest, same, send, smallLane, TARGET, take } from "./support.js";

/** The origin: tries to send so often, and notes how many messages there are then, the `before` first ones included. */
function origin(attempts: number, before = 0) {
  return (world: World): void => {
    const lane = world.kernel.laneOf(world.context(TARGET), ORIGIN);
    let sent = before;
    for (let tries = 0; tries < attempts; tries++) if (send(world, lane, sent)) sent++;
    world.note(sent);
  };
}

/** All that the origin has noted came, in order. */
function inOrder(world: World, [taken = [], [sent = 0] = []]: readonly (readonly number[])[]): void {
  same("messages, in order", [...taken, ...rest(world)], messages(sent));
}

/** The lane is replaced when it has taken its first message, by one of this many bytes. */
function replaced(name: string, capacity: number): Scenario {
  return {
    name,
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 4; i++) take(world);
      },
      (world) => {
        const { kernel, map } = world;
        let lane = kernel.laneOf(world.context(TARGET), ORIGIN);
        let sent = 0;
        if (send(world, lane, sent)) sent++;
        lane = kernel.laneReplace(map.job, lane, capacity, 48);
        for (let tries = 0; tries < 2; tries++) if (send(world, lane, sent)) sent++;
        world.note(sent);
      },
    ],
    check(world, [taken = [], [sent = 0] = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(sent));
      if (sent !== 3) throw new Error(`${sent} of 3 messages found room`);
      if (world.kernel.heapFreePages(world.map.job) !== world.map.heapPages - 1) throw new Error("a lane was lost");
    },
  };
}

export const LANE_SCENARIOS: readonly Scenario[] = [
  {
    name: "send and advance: the smallest lane, full, wrapping",
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 5; i++) take(world);
      },
      origin(6),
    ],
    check(world, [taken = [], [sent = 0] = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(sent));
      if (sent < 3) throw new Error(`${sent} messages found room in a lane for three`);
    },
  },
  {
    name: "reserve, write in place, commit, abort",
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 4; i++) take(world);
      },
      (world) => {
        const { kernel } = world;
        const lane = kernel.laneOf(world.context(TARGET), ORIGIN);
        let sent = 0;
        for (let i = 0; i < 4; i++) {
          const body = kernel.laneReserve(lane, 24);
          if (body === 0) continue;
          for (let word = 0; word < 6; word++) world.store(body + 4 * word, i === 1 ? -1 : 100 + sent);
          if (i === 1) kernel.laneAbort(lane);
          else kernel.laneCommit(lane, 0, i === 0 ? 24 : 4, ++sent);
        }
        world.note(sent);
      },
    ],
    check: inOrder,
  },
  {
    name: "lines ahead are taken while the freed ones are taken back",
    // Nearly full: one record of 992 bytes, read and not yet freed; behind it place for one small record.
    setup(world) {
      const lane = world.openAt(0, ORIGIN, TARGET, 1024, 1008);
      world.kernel.laneReserve(lane, 984);
      world.kernel.laneCommit(lane, 0, 984, 1);
      take(world);
    },
    threads: [
      (world) => {
        take(world);
        world.kernel.peek(world.context(TARGET));
        take(world);
      },
      origin(4),
    ],
    check: inOrder,
  },
  {
    name: "a large record is read while its origin comes to where it would take lines ahead",
    // From 512 to 1,264: the next small record ends at 1,280, and the fourth line behind it is that of 512.
    setup(world) {
      const lane = world.openAt(512, ORIGIN, TARGET, 1024, 1008);
      const body = world.kernel.laneReserve(lane, 744);
      for (let at = 0; at < 744; at += 4) world.setWord(body + at, 100);
      world.kernel.laneCommit(lane, 0, 744, 1);
    },
    threads: [
      (world) => {
        const { kernel } = world;
        const context = world.context(TARGET);
        const count = kernel.advance(context, 1) & ADVANCE_EVENTS_MASK;
        const body = world.load(context + CONTEXT_EVENTS_OFFSET + 8);
        for (let at = 0; at < 744; at += 24) same("a word of the record", [world.load(body + at)], [100]);
        noteEvents(world, count);
        kernel.release(context);
        take(world);
      },
      origin(2, 1),
    ],
    check: inOrder,
  },
  {
    name: "a lane is paused and resumed while its origin sends",
    setup: smallLane,
    threads: [
      (world) => {
        const { kernel } = world;
        const context = world.context(TARGET);
        take(world);
        const lane = kernel.laneOf(context, ORIGIN);
        // As a full queue of unexpected messages does: from a record on, or with no record in hand.
        if ((kernel.advance(context, 1) & ADVANCE_EVENTS_MASK) !== 0) {
          kernel.lanePause(lane, world.load(context + CONTEXT_EVENTS_OFFSET + 8));
          kernel.release(context);
          for (let i = 0; i < 2; i++) if (take(world) !== 0) throw new Error("a paused lane is polled");
          kernel.laneResume(context, ORIGIN);
        }
        take(world);
      },
      origin(4),
    ],
    check: inOrder,
  },
  {
    name: "a lane is opened while the last one of its origin is detached",
    setup(world) {
      const { kernel, map } = world;
      kernel.laneReplace(map.job, smallLane(world), 0, 0);
      world.advance(TARGET);
      world.release(TARGET);
      kernel.laneSwitch(map.job, world.context(TARGET), ORIGIN, 0);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 3; i++) take(world);
      },
      (world) => {
        // One message only: a second one would bring the first to light.
        send(world, world.kernel.laneOpen(world.map.job, ORIGIN, TARGET, 64, 48), 0);
      },
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(1));
    },
  },
  {
    name: "a lane is closed and opened again",
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 4; i++) take(world);
      },
      (world) => {
        const { kernel, map } = world;
        let lane = kernel.laneOf(world.context(TARGET), ORIGIN);
        send(world, lane, 0);
        kernel.laneReplace(map.job, lane, 0, 0);
        let sent = 1;
        for (let tries = 0; tries < 2 && sent === 1; tries++) {
          lane = kernel.laneOpen(map.job, ORIGIN, TARGET, 64, 48);
          if (lane >= 4096 && send(world, lane, 1)) sent++;
        }
        world.note(sent);
      },
    ],
    check: inOrder,
  },
  replaced("a lane is replaced by one of the same size while its target reads", 64),
  replaced("a lane is replaced by a larger one while its target reads", 128),
];

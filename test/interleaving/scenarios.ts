// The scenarios: small, but each with the places where a schedule can do harm.
import { ADVANCE_EVENTS_MASK, CONTEXT_EVENTS_OFFSET, KIND_SWITCH } from "../../assembly/layout.js";
import type { Scenario } from "./scenario.js";
import type { World } from "./world.js";

const TARGET = 0;
const ORIGIN = 1;

/** Throws what differs. */
function same(what: string, is: unknown, should: unknown): void {
  if (JSON.stringify(is) !== JSON.stringify(should)) {
    throw new Error(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  }
}

/** Notes the meta word and first body word of every event in hand, and releases. */
function take(world: World, result: number): number {
  const count = result & ADVANCE_EVENTS_MASK;
  for (let i = 0; i < count; i++) {
    const event = world.context(TARGET) + CONTEXT_EVENTS_OFFSET + 16 * i;
    world.note(world.load(event + 4));
    world.note(world.load(world.load(event + 8)));
  }
  if (count > 0) world.kernel.release(world.context(TARGET));
  return count;
}

/** What is left once all threads are through: all that the last look before a sleep would wake for. */
function rest(world: World): number[] {
  const found: number[] = [];
  while (world.kernel.peek(world.context(TARGET)) !== 0) {
    for (const { kind, meta, body } of world.take(TARGET)) {
      if (kind === KIND_SWITCH) world.kernel.laneSwitch(world.map.job, world.context(TARGET), ORIGIN, world.word(body));
      else found.push(meta, world.word(body));
    }
  }
  return found;
}

const messages = (count: number): number[] => Array.from({ length: count }, (_, i) => [i + 1, 100 + i]).flat();

/** A lane of 64 bytes whose positions wrap at 2^32 `before` bytes from its start. */
function smallLane(world: World, before = 16): number {
  return world.openAt(2 ** 32 - before, ORIGIN, TARGET, 64, 48);
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "send and advance: the smallest lane, full, wrapping",
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 5; i++) take(world, world.kernel.advance(world.context(TARGET), 1));
      },
      (world) => {
        const at = world.kernel.laneOf(world.context(TARGET), ORIGIN);
        let sent = 0;
        for (let tries = 0; tries < 6; tries++) {
          if (world.kernel.laneSendWords(at, 4, sent + 1, 100 + sent, 0) === 1) sent++;
        }
        world.note(sent);
      },
    ],
    check(world, [taken = [], [sent = 0] = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(sent));
      if (sent < 3) throw new Error(`${sent} messages found room in a lane for three`);
    },
  },
  {
    name: "park and wake: the target sleeps until it has two messages",
    setup: smallLane,
    threads: [
      (world) => {
        const { kernel } = world;
        const context = world.context(TARGET);
        for (let got = 0; got < 2; ) {
          got += take(world, kernel.advance(context, 1));
          if (got >= 2) break;
          const seen = kernel.bellArm(world.task(0));
          if (kernel.peek(context) === 0) kernel.bellWait(world.task(0), seen, -1);
          kernel.bellDisarm(world.task(0));
        }
      },
      (world) => {
        const at = world.kernel.laneOf(world.context(TARGET), ORIGIN);
        for (let i = 0; i < 2; i++) world.kernel.laneSendWords(at, 4, i + 1, 100 + i, 0);
      },
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(2));
    },
  },
  {
    name: "room: the origin of a full lane sleeps until there is room",
    setup(world) {
      const lane = smallLane(world);
      for (let i = 0; i < 3; i++) world.kernel.laneSendWords(lane, 4, i + 1, 100 + i, 0);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 2; i++) take(world, world.kernel.advance(world.context(TARGET), 1));
        world.kernel.peek(world.context(TARGET));
      },
      (world) => {
        const { kernel } = world;
        const at = kernel.laneOf(world.context(TARGET), ORIGIN);
        while (kernel.laneSendWords(at, 4, 4, 103, 0) === 0) {
          kernel.laneWantRoom(at, 1);
          const seen = kernel.bellArm(world.task(1));
          if (kernel.laneRoom(at) < 4) kernel.bellWait(world.task(1), seen, -1);
          kernel.bellDisarm(world.task(1));
          kernel.laneWantRoom(at, 0);
        }
      },
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(4));
    },
  },
  {
    name: "room: as above, but the last look is a send",
    setup(world) {
      const lane = smallLane(world, 64);
      for (let i = 0; i < 3; i++) world.kernel.laneSendWords(lane, 4, i + 1, 100 + i, 0);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 2; i++) take(world, world.kernel.advance(world.context(TARGET), 1));
        world.kernel.peek(world.context(TARGET));
      },
      (world) => {
        const { kernel } = world;
        const at = kernel.laneOf(world.context(TARGET), ORIGIN);
        const send = (): boolean => kernel.laneSendWords(at, 4, 4, 103, 0) === 1;
        while (!send()) {
          kernel.laneWantRoom(at, 1);
          const seen = kernel.bellArm(world.task(1));
          const sent = send();
          if (!sent) kernel.bellWait(world.task(1), seen, -1);
          kernel.bellDisarm(world.task(1));
          if (sent) break;
        }
      },
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(4));
    },
  },
  {
    name: "a lane is opened while the last one of its origin is detached",
    setup(world) {
      const lane = smallLane(world);
      world.kernel.laneReplace(world.map.job, lane, 0, 0);
      world.advance(TARGET);
      world.release(TARGET);
      world.kernel.laneSwitch(world.map.job, world.context(TARGET), ORIGIN, 0);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 3; i++) take(world, world.kernel.advance(world.context(TARGET), 1));
      },
      (world) => {
        // One message only: a second one would bring the first to light.
        const at = world.kernel.laneOpen(world.map.job, ORIGIN, TARGET, 64, 48);
        world.kernel.laneSendWords(at, 4, 1, 100, 0);
      },
    ],
    check(world, [taken = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(1));
    },
  },
  {
    name: "reserve, write in place, commit, abort",
    setup: smallLane,
    threads: [
      (world) => {
        for (let i = 0; i < 4; i++) take(world, world.kernel.advance(world.context(TARGET), 1));
      },
      (world) => {
        const { kernel } = world;
        const at = kernel.laneOf(world.context(TARGET), ORIGIN);
        for (let i = 0; i < 3; i++) {
          const body = kernel.laneReserve(at, 24);
          if (body === 0) return;
          for (let word = 0; word < 6; word++) world.store(body + 4 * word, i === 1 ? -1 : 100 + i / 2);
          if (i === 1) kernel.laneAbort(at);
          else {
            kernel.laneCommit(at, 0, i === 0 ? 24 : 4, 1 + i / 2);
            world.note(i);
          }
        }
      },
    ],
    check(world, [taken = [], noted = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(noted.length));
    },
  },
  {
    name: "a lane is closed and opened again",
    setup: smallLane,
    threads: [
      (world) => {
        const { kernel } = world;
        for (let i = 0; i < 4; i++) {
          const count = kernel.advance(world.context(TARGET), 1) & ADVANCE_EVENTS_MASK;
          let ends = false;
          for (let event = 0; event < count; event++) {
            const pointer = world.context(TARGET) + CONTEXT_EVENTS_OFFSET + 16 * event;
            if (((world.load(pointer) >>> 28) & 7) === KIND_SWITCH) ends = true;
            else {
              world.note(world.load(pointer + 4));
              world.note(world.load(world.load(pointer + 8)));
            }
          }
          if (count > 0) kernel.release(world.context(TARGET));
          if (ends) kernel.laneSwitch(world.map.job, world.context(TARGET), ORIGIN, 0);
        }
      },
      (world) => {
        const { kernel } = world;
        let at = kernel.laneOf(world.context(TARGET), ORIGIN);
        kernel.laneSendWords(at, 4, 1, 100, 0);
        kernel.laneReplace(world.map.job, at, 0, 0);
        let sent = 1;
        for (let tries = 0; tries < 2; tries++) {
          at = kernel.laneOpen(world.map.job, ORIGIN, TARGET, 64, 48);
          if (at < 4096) continue;
          kernel.laneSendWords(at, 4, 2, 101, 0);
          sent++;
          break;
        }
        world.note(sent);
      },
    ],
    check(world, [taken = [], [sent = 0] = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(sent));
    },
  },
];

// Lanes, heap, bells, and who calls the engine: see compare.ts.
import { describe, it } from "vitest";
import {
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_READY_OFFSET,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_KIND_OFFSET,
  INJECTION_STAGED_OFFSET,
  JOB_HEAP_LOCK_OFFSET,
  KIND_SWITCH,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  POOL_SLOTS_OFFSET,
  POOL_TASK_OFFSET,
  TASK_DEAD,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import type { Rig, RigOptions, Straddle, TakenEvent } from "../support/kernels.js";
import { compare, type Operations, pick, type Random, word } from "./compare.js";

const TASKS = 6;
const CONTEXTS = 6; // 36 endpoints: the ready bits need a second word
const ENDPOINTS = TASKS * CONTEXTS;
const SEQUENCES = 30;
const OPERATIONS = 400;

interface LaneState {
  pointer: number;
  readonly origin: number;
  readonly target: number;
  reserved: number;
  closed: boolean;
}

/** What the operations need to know to keep to the kernels' contract. */
interface State {
  lanes: LaneState[];
  extents: number[];
  /** Batches that are not released yet, by the target. */
  hands: Map<number, TakenEvent[]>;
  paused: Set<string>;
  notices: number;
}

/** Few targets, so that their contexts see much. */
const anyTarget = (random: Random): number => random(3);
const capacityOf = (random: Random): number => pick(random, [64, 128, 1024, 8192]) ?? 64;
const recordMaxOf = (random: Random, lane: number, rig: Rig): number => random(rig.word(lane + 12) - 8 + 1);

/** A lane that may be sent on. */
function openLane(state: State, random: Random): LaneState | undefined {
  return pick(
    random,
    state.lanes.filter(({ closed, reserved }) => !closed && reserved === 0),
  );
}

/** Of an engine thread. */
function thread(): Operations<State> {
  return {
    engineServe: {
      weight: 5,
      choose: () => ({ text: "engineServe()", act: (rig) => rig.consumer.engineServe(rig.map.job) }),
    },
    completionTake: {
      weight: 5,
      choose: (_, random) => {
        const [ordinal, number] = [random(ENDPOINTS), random(2)];
        return {
          text: `completionTake(${ordinal}, ${number})`,
          act: (rig) => rig.producer.completionTake(rig.fifo(ordinal, number)),
        };
      },
    },
    engineState: {
      weight: 1,
      choose: (_, random) => {
        const state = random(3) === 0 ? TASK_DEAD : TASK_UP;
        return {
          text: `the state of the engine is ${state}`,
          act: (rig) => rig.producer.storeWord(rig.engine + TASK_STATE_OFFSET, state),
        };
      },
    },
  };
}

/** Every choice is made from numbers drawn beforehand, so that both kernels are asked the same. */
function operations(reference: Rig): Operations<State> {
  return {
    heapAllocate: {
      weight: 2,
      choose: (state, random) => {
        const [pages, owner] = [1 + random(6), random(TASKS)];
        return {
          text: `heapAllocate(${pages}, ${owner})`,
          act: (rig) => {
            const extent = rig.producer.heapAllocate(rig.map.job, pages, owner);
            if (extent > OPEN_BUSY && rig === reference) state.extents.push(extent);
            return extent;
          },
        };
      },
    },
    heapFree: {
      weight: 3,
      choose: (state, random) => {
        const extent = pick(random, state.extents);
        if (extent === undefined) return undefined;
        state.extents = state.extents.filter((other) => other !== extent);
        return { text: `heapFree(${extent})`, act: (rig) => rig.producer.heapFree(rig.map.job, extent) };
      },
    },
    extentPass: {
      weight: 3,
      choose: (state, random) => {
        const extent = pick(random, state.extents);
        if (extent === undefined) return undefined;
        const [owner, to] = [random(TASKS), random(TASKS)];
        return {
          text: `extentPass(${extent}, ${owner}, ${to})`,
          act: (rig) => rig.producer.extentPass(rig.map.job, extent, owner, to),
        };
      },
    },
    buffers: {
      weight: 3,
      choose: (state, random) => {
        const extent = pick(random, state.extents);
        if (extent === undefined) return undefined;
        const [slot, what, task, wanted] = [random(960), random(3), random(TASKS), random(2)];
        return {
          text: `bufferWant(${wanted}), bufferRelease(${slot}, ${what}) in ${extent}`,
          act: (rig) => {
            rig.setWord(extent + POOL_TASK_OFFSET, rig.task(task));
            rig.producer.bufferWant(extent, wanted);
            rig.consumer.bufferRelease(extent + POOL_SLOTS_OFFSET + 4 * slot, what);
            // Words that other operations take for their own.
            rig.setWord(extent + POOL_TASK_OFFSET, 0);
          },
        };
      },
    },
    heapFreePages: {
      weight: 1,
      choose: () => ({ text: "heapFreePages()", act: (rig) => rig.producer.heapFreePages(rig.map.job) }),
    },
    heapLocked: {
      weight: 1,
      choose: (_, random) => {
        const [origin, target] = [random(ENDPOINTS), anyTarget(random)];
        return {
          text: `laneOpen(${origin}, ${target}) while the heap is locked`,
          act: (rig) => {
            rig.setWord(rig.map.job + JOB_HEAP_LOCK_OFFSET, 9);
            const result = rig.producer.laneOpen(rig.map.job, origin, target, 64, 48);
            rig.setWord(rig.map.job + JOB_HEAP_LOCK_OFFSET, 0);
            return result;
          },
        };
      },
    },
    laneOpen: {
      weight: 8,
      choose: (state, random) => {
        const [origin, target, capacity] = [random(ENDPOINTS), anyTarget(random), capacityOf(random)];
        const recordMax = 16 + 16 * random(capacity / 16 - 1);
        return {
          text: `laneOpen(${origin}, ${target}, ${capacity}, ${recordMax})`,
          act: (rig) => {
            const pointer = rig.producer.laneOpen(rig.map.job, origin, target, capacity, recordMax);
            if (pointer > OPEN_BUSY && rig === reference) {
              state.lanes.push({ pointer, origin, target, reserved: -1, closed: false });
              (state.lanes.at(-1) as LaneState).reserved = 0;
            }
            return pointer;
          },
        };
      },
    },
    laneSendWords: {
      weight: 20,
      choose: (state, random) => {
        const lane = openLane(state, random);
        if (lane === undefined) return undefined;
        const [length, meta, a, b] = [random(9), word(random), word(random), word(random)];
        const count = random(8) === 0 ? 150 : 1;
        return {
          text: `${count} × laneSendWords(${lane.pointer}, ${length}, ${[meta, a, b]})`,
          act: (rig) => {
            let sent = 0;
            for (let i = 0; i < count; i++) sent += rig.producer.laneSendWords(lane.pointer, length, meta, a, b);
            return sent;
          },
        };
      },
    },
    laneReserve: {
      weight: 20,
      choose: (state, random) => {
        const lane = openLane(state, random);
        if (lane === undefined) return undefined;
        const length = recordMaxOf(random, lane.pointer, reference);
        const fill = 1 + random(255);
        return {
          text: `laneReserve(${lane.pointer}, ${length})`,
          act: (rig) => {
            const body = rig.producer.laneReserve(lane.pointer, length);
            if (body !== 0) {
              rig.memory.bytes.fill(fill, body, body + length);
              if (rig === reference) lane.reserved = length + 1;
            }
            return body;
          },
        };
      },
    },
    laneCommit: {
      weight: 25,
      choose: (state, random) => {
        const lane = pick(
          random,
          state.lanes.filter(({ reserved }) => reserved > 0),
        );
        if (lane === undefined) return undefined;
        const length = random(3) === 0 ? random(lane.reserved) : lane.reserved - 1;
        const [kind, meta] = [random(3), word(random)];
        lane.reserved = 0;
        return {
          text: `laneCommit(${lane.pointer}, ${kind}, ${length}, ${meta})`,
          act: (rig) => rig.producer.laneCommit(lane.pointer, kind, length, meta),
        };
      },
    },
    laneAbort: {
      weight: 3,
      choose: (state, random) => {
        const lane = pick(
          random,
          state.lanes.filter(({ reserved }) => reserved > 0),
        );
        if (lane === undefined) return undefined;
        lane.reserved = 0;
        return { text: `laneAbort(${lane.pointer})`, act: (rig) => rig.producer.laneAbort(lane.pointer) };
      },
    },
    laneRoom: {
      weight: 3,
      choose: (state, random) => {
        const lane = pick(random, state.lanes);
        return lane && { text: `laneRoom(${lane.pointer})`, act: (rig) => rig.producer.laneRoom(lane.pointer) };
      },
    },
    laneWantRoom: {
      weight: 3,
      choose: (state, random) => {
        const lane = pick(random, state.lanes);
        const wanted = random(2);
        return (
          lane && {
            text: `laneWantRoom(${lane.pointer}, ${wanted})`,
            act: (rig) => rig.producer.laneWantRoom(lane.pointer, wanted),
          }
        );
      },
    },
    laneReplace: {
      weight: 4,
      choose: (state, random) => {
        const lane = pick(
          random,
          state.lanes.filter(({ closed }) => !closed),
        );
        if (lane === undefined) return undefined;
        const capacity = random(4) === 0 ? 0 : capacityOf(random);
        return {
          text: `laneReplace(${lane.pointer}, ${capacity})`,
          act: (rig) => {
            const result = rig.producer.laneReplace(rig.map.job, lane.pointer, capacity, 32);
            if (rig === reference && result !== OPEN_BUSY && result !== OPEN_NO_MEMORY) {
              if (capacity === 0) lane.closed = true;
              else lane.pointer = result;
            }
            return result;
          },
        };
      },
    },
    advance: {
      weight: 25,
      choose: (state, random) => {
        const [target, rounds] = [anyTarget(random), pick(random, [1, 1, 1, 3, 40]) as number];
        if (state.hands.has(target)) return undefined;
        return {
          text: `advance(${target}, ${rounds})`,
          act: (rig) => {
            const result = rig.consumer.advance(rig.context(target), rounds);
            const events = rig.events(result, target);
            if (rig === reference && events.length > 0) state.hands.set(target, events);
            return [result, events];
          },
        };
      },
    },
    lanePause: {
      weight: 5,
      choose: (state, random) => {
        const target = anyTarget(random);
        const hand = state.hands.get(target) ?? [];
        const at = pick(random, hand);
        if (at === undefined || state.paused.has(`${target}/${at.origin}`)) return undefined;
        state.paused.add(`${target}/${at.origin}`);
        const from = hand.indexOf(at);
        state.hands.set(
          target,
          hand.filter(({ origin }, i) => origin !== at.origin || i < from),
        );
        return {
          text: `lanePause(${at.origin} of ${target}, ${at.body})`,
          act: (rig) => rig.consumer.lanePause(rig.consumer.laneOf(rig.context(target), at.origin), at.body),
        };
      },
    },
    release: {
      weight: 25,
      choose: (state, random) => {
        const target = anyTarget(random);
        const hand = state.hands.get(target);
        if (hand === undefined) return undefined;
        state.hands.delete(target);
        const ended = hand.filter(({ kind }) => kind === KIND_SWITCH);
        return {
          text: `release(${target}), and ${ended.length} × laneSwitch()`,
          act: (rig) => {
            const next = ended.map(({ origin, bytes }) => [
              origin,
              new DataView(new Uint8Array(bytes).buffer).getUint32(0, true),
            ]);
            rig.release(target);
            for (const [origin, fresh] of next as [number, number][]) {
              rig.consumer.laneSwitch(rig.map.job, rig.context(target), origin, fresh);
              const last = (lane: LaneState): boolean =>
                lane.closed && lane.origin === origin && lane.target === target;
              if (rig === reference && fresh === 0) state.lanes = state.lanes.filter((lane) => !last(lane));
            }
            return next;
          },
        };
      },
    },
    laneResume: {
      // Allowed only where a lane is paused: at a weight of 2, one seed in a hundred did it twice only.
      weight: 5,
      choose: (state, random) => {
        const key = pick(random, [...state.paused]);
        if (key === undefined) return undefined;
        state.paused.delete(key);
        const [target, origin] = key.split("/").map(Number) as [number, number];
        return {
          text: `laneResume(${origin} of ${target})`,
          act: (rig) => rig.consumer.laneResume(rig.context(target), origin),
        };
      },
    },
    looks: {
      weight: 5,
      choose: (state, random) => {
        const target = anyTarget(random);
        const lane = pick(random, state.lanes);
        if (state.hands.has(target)) return undefined; // peek() frees what is in the hand
        const looksLast = random(2) === 0;
        return {
          text: `${looksLast ? "lastLook" : "peek"}(${target}), laneOf(), lanePeek()`,
          act: (rig) => [
            looksLast ? rig.consumer.lastLook(rig.context(target)) : rig.consumer.peek(rig.context(target)),
            rig.consumer.laneOf(rig.context(target), lane?.origin ?? 0),
            lane && !lane.closed ? rig.consumer.lanePeek(lane.pointer) : 0,
          ],
        };
      },
    },
    staleReadyBit: {
      weight: 1,
      choose: (_, random) => {
        const [target, bit] = [anyTarget(random), random(ENDPOINTS)];
        return {
          text: `ready bit ${bit} of ${target}`,
          act: (rig) => {
            const pointer = rig.context(target) + CONTEXT_READY_OFFSET + 4 * (bit >>> 5);
            rig.setWord(pointer, rig.word(pointer) | (1 << (bit & 31)));
          },
        };
      },
    },
    notice: {
      weight: 1,
      choose: (state, random) => {
        const task = random(TASKS);
        state.notices++;
        return {
          text: `notice of task ${task}`,
          act: (rig) => rig.producer.addWord(rig.task(task) + TASK_NOTICE_OFFSET, 1),
        };
      },
    },
    noticeSeen: {
      weight: 2,
      choose: (_, random) => {
        const target = anyTarget(random);
        return {
          text: `notice of ${target} dealt with`,
          act: (rig) => {
            const task = rig.task(Math.floor(target / CONTEXTS));
            rig.setWord(rig.context(target) + CONTEXT_NOTICE_SEEN_OFFSET, rig.word(task + TASK_NOTICE_OFFSET));
          },
        };
      },
    },
    bells: {
      weight: 5,
      choose: (_, random) => {
        // With an engine thread, its slot is behind those of the tasks.
        const [task, what] = [random(TASKS + Number(reference.map.engine)), random(5)];
        return {
          text: `bell ${what} of task ${task}`,
          act: ({ consumer, producer, ...rig }) => {
            const slot = rig.map.tasksBase + task * 384;
            if (what === 0) return producer.ringAlways(slot);
            if (what === 1) return producer.ring(slot);
            if (what === 2) return consumer.bellDisarm(slot);
            const seen = consumer.bellArm(slot);
            return what === 3 ? seen : consumer.bellWait(slot, seen - 1, -1);
          },
        };
      },
    },
    fences: {
      weight: 10,
      choose: (_, random) => {
        const [ordinal, number, calls] = [random(ENDPOINTS), random(reference.map.fifos), random(4) !== 0];
        return {
          text: `a fence of ${ordinal}${calls ? ", and engineCall()" : ""}`,
          act: (rig) => {
            const fifo = rig.fifo(ordinal, number);
            rig.setWord(fifo + INJECTION_STAGED_OFFSET + DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_FENCE);
            const slot = rig.producer.inject(fifo, 0);
            if (calls) rig.producer.engineCall(rig.map.job, ordinal);
            return slot;
          },
        };
      },
    },
    ...(reference.map.engine ? thread() : {}),
    spinning: {
      weight: 3,
      choose: (_, random) => {
        const [task, enters] = [random(TASKS), random(2) === 1];
        return {
          text: `spin${enters ? "Enter" : "Leave"}(${task})`,
          act: ({ producer, map }) =>
            enters ? producer.spinEnter(map.job, task, TASKS) : producer.spinLeave(map.job, task),
        };
      },
    },
    words: {
      // Not allowed before the heap has given an extent: at a weight of 2, some seeds did it twice only.
      weight: 6,
      choose: (state, random) => {
        const extent = pick(random, state.extents);
        if (extent === undefined) return undefined;
        const [a, b, from, to, length] = [word(random), word(random), random(500), random(500), random(600)];
        return {
          text: `words of extent ${extent}`,
          act: ({ producer }) => {
            producer.storeWord(extent, a);
            const results = [
              producer.exchangeIf(extent, a, b),
              producer.exchangeIf(extent, a, 1),
              producer.addWord(extent, a),
            ];
            producer.clearBits(extent, b);
            producer.copyBytes(extent + to, extent + from, length);
            producer.fillBytes(extent + from, a, to);
            return [...results, producer.loadWord(extent)];
          },
        };
      },
    },
  };
}

describe("wasm and twin, in two memories", () => {
  it.each<[string, Straddle | undefined, number, "inline" | "thread"]>([
    ["", undefined, SEQUENCES, "inline"],
    [", with an engine thread", undefined, SEQUENCES, "thread"],
    [", 2^31 in the heap", "heap", SEQUENCES, "inline"],
    [", 2^31 in a context block", "context", SEQUENCES / 3, "inline"],
    [", 2^31 in a context block, with an engine thread", "context", SEQUENCES / 3, "thread"],
  ])("the same results and the same bytes after every operation%s", (_, straddle, sequences, engine) => {
    const options: RigOptions = { tasks: TASKS, contexts: CONTEXTS, heapBytes: 16 * PAGE_SIZE, straddle, engine };
    const state = (): State => ({ lanes: [], extents: [], hands: new Map(), paused: new Set(), notices: 0 });
    compare({ options, sequences, length: OPERATIONS, state, operations });
  });
});

// Rget FIFOs, chains and injection FIFOs, with what is forged or stale among it, and the engine thread: see compare.ts.
import { describe, it } from "vitest";
import {
  AWAY_NONE,
  AWAY_OVER,
  AWAY_YES,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  CONTEXT_CLOSED,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  DEPTH_MAX,
  DESCRIPTOR_COMPLETION,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_GET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_PUT,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_RGET,
  DESCRIPTOR_RMW,
  DESCRIPTOR_SHIFT,
  INJECTION_AHEAD_OFFSET,
  INJECTION_AWAY_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_OLDEST_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  LINK_SIZE,
  NONE,
  PAGE_SIZE,
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_AWAY_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_GENERATION_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_SLOTS,
  RGET_FIFO_SLOTS_OFFSET,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RMW_FETCH,
  RMW_OPERATION_MASK,
  SHORT_BYTES,
  SLICE_BYTES,
  TASK_ABSENT,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_REFUSED,
  TRANSFER_REMOTE_BOUNDS,
} from "../../assembly/layout.js";
import { addBlock, chainWords, type Region, readySide, type Side, sideOf } from "../support/chains.js";
import type { Rig, RigOptions, Straddle } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { compare, type Operations, pick, type Random, word } from "./compare.js";

const SEQUENCES = 20;
const OPERATIONS = 500;
/** Blocks of rget FIFOs that each of the tasks 0 and 1 has. */
const BLOCKS = 2;
/** Pages of data of each: payloads come from there, and go there; more than a slice. */
const DATA_PAGES = 80;
/** Regions for the links of a chain that each has; each has so many links. */
const CHAINS = 4;
const LINKS = 32;
const PAGES = 2 * (BLOCKS * (BLOCK_SIZE / PAGE_SIZE) + DATA_PAGES + CHAINS * 2);

/** What each task has, at the places of its regions. */
const DATA = BLOCKS;
const FIRST_CHAIN = BLOCKS + 1;

interface Transfer {
  readonly origin: Side;
  readonly target: Side;
  /** The sides that have not closed their rget FIFO. */
  readonly open: Set<Side>;
  readonly links: number;
}

interface State {
  transfers: Transfer[];
  /** Rget FIFOs and regions of links that a transfer has. */
  readonly taken: Set<string>;
}

/** A region of a task as it is now. Where it lies follows from prepare(). */
function regionOf(rig: Rig, task: number, place: number): Region {
  const index = task * rig.map.regions + place;
  const entry = rig.map.regionsBase + 16 * index;
  return { index, generation: rig.word(entry), base: rig.word(entry + 4) };
}

function prepare(rig: Rig): void {
  const { producer: kernel, map } = rig;
  const noise = randomOf(1);
  for (const task of [0, 1]) {
    const open = (place: number, bytes: number): void => {
      const base = kernel.regionAllocate(map.job, Math.ceil(bytes / PAGE_SIZE), task);
      kernel.regionOpen(map.job, task * map.regions + place, base, bytes);
    };
    for (let i = 0; i < BLOCKS; i++) {
      open(i, BLOCK_SIZE);
      const block = regionOf(rig, task, i);
      addBlock(rig, task, block);
      for (let number = 0; number < RGET_FIFO_COUNT; number++) {
        const side = sideOf(map, task, block, number);
        readySide(rig, side, 1 - task);
        // Some are about to wrap.
        const start = [0, 0x7ffffffe, 0xfffffffe][number % 3] as number;
        for (const offset of [RGET_FIFO_GENERATION_OFFSET, RGET_FIFO_HEAD_OFFSET, RGET_FIFO_TAIL_OFFSET]) {
          rig.setWord(side.rgetFifo + offset, start);
        }
      }
    }
    open(DATA, DATA_PAGES * PAGE_SIZE);
    const { base } = regionOf(rig, task, DATA);
    for (let at = 0; at < DATA_PAGES * PAGE_SIZE; at += 4) rig.setWord(base + at, noise(2 ** 31));
    for (let i = 0; i < CHAINS; i++) open(FIRST_CHAIN + i, LINKS * LINK_SIZE);
    for (let number = 0; number < map.fifos; number++) {
      const start = [0, 0xffffffe0][number % 2] as number;
      for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_HEAD_OFFSET, INJECTION_OLDEST_OFFSET]) {
        rig.setWord(rig.fifo(task, number) + offset, start);
      }
    }
  }
}

const keyOf = ({ task, block, number }: Side): string => `rgetFifo ${number} of block ${block.index} of task ${task}`;

/** A shape of a transfer; some have more links than there is room for, or fragments larger than any payload. */
function shapeOf(random: Random) {
  const fragment = pick(random, [1, 8, 100, 1 + random(5000), SLICE_BYTES + 8, 0x7fffffff, 0xfffffff0]) as number;
  const fragments = fragment > SLICE_BYTES ? 1 : 1 + random(random(8) === 0 ? 40 : 12);
  const last = random(3) === 0 ? fragment : 1 + random(Math.min(fragment, 2 ** 31));
  const bytes = random(10) === 0 ? 0xffffffff : (fragments - 1) * fragment + last;
  const ring = pick(random, [0, 0, 1, 4, 0xffffffff]) as number;
  // What can't be a chain: nothing to move, no fragment, a depth that is too large.
  if (random(20) === 0) return { fragment, bytes: 0, depth: 1, ring };
  if (random(20) === 0) return { fragment: 0, bytes, depth: 1, ring };
  return { fragment, bytes, depth: random(DEPTH_MAX + 2), ring };
}

/** What an engine may move in one go; mostly a slice. */
const mostOf = (random: Random): number =>
  pick(random, [SLICE_BYTES, SLICE_BYTES, SHORT_BYTES, random(SLICE_BYTES), random(200), 0]) as number;

const sidesOf = (state: State): Side[] => state.transfers.flatMap(({ open }) => [...open]);

/** Calls the engine for the context whose FIFO it is. */
function callFor(rig: Rig, fifo: number): void {
  const { job, injectionBase, injectionSize, fifos } = rig.map;
  rig.producer.engineCall(job, Math.floor((fifo - injectionBase) / injectionSize / fifos));
}

function operations(reference: Rig): Operations<State> {
  /** Whether there is a slot of another node's task, behind those of tasks 0 and 1. */
  const hasAway = reference.map.locals < reference.map.tasks;
  const anySide = (task: number, random: Random): Side =>
    sideOf(reference.map, task, regionOf(reference, task, random(BLOCKS)), random(RGET_FIFO_COUNT));
  const offsetIn = (random: Random): number =>
    pick(random, [0, 8, random(3000), DATA_PAGES * PAGE_SIZE - random(3000)]) ?? 0;

  /** A region, a generation and an offset. Never a block: what is moved there would be rget FIFOs. */
  const anyPlace = (random: Random): number[] => [
    random(4) === 0 ? word(random) | 0x10000 : random(2) * reference.map.regions + DATA,
    random(4) === 0 ? word(random) : 1,
    random(4) === 0 ? word(random) : offsetIn(random),
  ];
  const fifoOf = (random: Random): [text: string, of: (rig: Rig) => number] => {
    const [task, number] = [random(2), random(reference.map.fifos)];
    return [`FIFO ${number} of task ${task}`, (rig) => rig.fifo(task, number)];
  };
  /** Words of a descriptor: mostly one that can be done. */
  const descriptorOf = (random: Random): number[] => {
    const kinds = [DESCRIPTOR_PUT, DESCRIPTOR_GET, DESCRIPTOR_RMW, DESCRIPTOR_FENCE, DESCRIPTOR_COMPLETION];
    const kind = random(20) === 0 ? word(random) : (pick(random, kinds) as number);
    const rmw = (1 + random(5)) | (random(8) * RMW_FETCH);
    const sizes = [0, 8, random(200), random(5000), SLICE_BYTES + random(8), random(DATA_PAGES * PAGE_SIZE)];
    const size = pick(random, sizes) as number;
    const any = random(20) === 0;
    const goesAway = hasAway && random(4) === 0;
    const place = (isAway = false): number[] => {
      if (isAway) return [2 * reference.map.regions + DATA, 1, random(4) === 0 ? offsetIn(random) : 8 * random(8)];
      if (any) return anyPlace(random);
      const { index, generation } = regionOf(reference, random(2), DATA);
      return [index, generation, random(4) === 0 ? offsetIn(random) : 8 * random(8)];
    };
    const operands = [word(random), word(random), word(random), word(random)];
    return [kind, kind === DESCRIPTOR_RMW ? rmw : size, ...place(), ...place(goesAway), ...operands];
  };
  const writeStaged = (rig: Rig, fifo: number, words: number[]): void => {
    for (const [i, value] of words.entries()) rig.setWord(fifo + INJECTION_STAGED_OFFSET + 4 * i, value);
  };

  const fifos: Operations<State> = {
    inject: {
      weight: 20,
      choose: (_, random) => {
        const [[text, of], words, completions, calls] = [
          fifoOf(random),
          descriptorOf(random),
          random(3),
          random(3) !== 0,
        ];
        return {
          text: `inject(${words}; ${completions}) into ${text}`,
          act: (rig) => {
            const fifo = of(rig);
            writeStaged(rig, fifo, words);
            // A fence is one by itself.
            const slot = rig.producer.inject(fifo, words[0] === DESCRIPTOR_FENCE ? 0 : completions);
            if (calls) callFor(rig, fifo);
            return slot;
          },
        };
      },
    },
    submit: {
      weight: 5,
      choose: (_, random) => {
        const [[text, of], words, hasCallback] = [fifoOf(random), descriptorOf(random), random(2) === 1];
        return {
          text: `submit(${words}; ${hasCallback}) into ${text}`,
          act: (rig) => {
            writeStaged(rig, of(rig), words);
            return rig.producer.submit(rig.map.job, of(rig), hasCallback);
          },
        };
      },
    },
    withoutDescriptor: {
      weight: 5,
      choose: (_, random) => {
        const [words, what] = [descriptorOf(random), random(3)];
        const [, bytes = 0, localIndex = 0, localGeneration = 0, localOffset = 0, ...rest] = words;
        const [index = 0, generation = 0, offset = 0, value = 0] = rest;
        const size = what === 2 ? 4 : Math.min(bytes >>> 0, SHORT_BYTES);
        return {
          text: `${["put", "get", "rmw"][what]} without a descriptor (${words})`,
          act: (rig) => {
            const { job } = rig.map;
            const kernel = rig.producer;
            const local = kernel.placeOf(job, localIndex, localGeneration, localOffset, size);
            if (what === 2) {
              const at = (local & 3) === 0 ? local : 0;
              return kernel.changeNow(job, index, generation, offset, bytes & RMW_OPERATION_MASK, value, at);
            }
            return local === 0 ? 0 : kernel.moveNow(job, index, generation, offset, local, size, what === 0);
          },
        };
      },
    },
    engineRun: {
      weight: 15,
      choose: (_, random) => {
        const [[text, of], most] = [fifoOf(random), mostOf(random)];
        return {
          text: `engineRun(${text}, ${most})`,
          act: (rig) => rig.producer.engineRun(rig.map.job, of(rig), most),
        };
      },
    },
    completionTake: {
      weight: 15,
      choose: (_, random) => {
        const [[text, of], times] = [fifoOf(random), 1 + random(4)];
        return {
          text: `${times} × completionTake(${text})`,
          act: (rig) => Array.from({ length: times }, () => rig.producer.completionTake(of(rig))),
        };
      },
    },
    engineGiveUp: {
      weight: 2,
      choose: (_, random) => {
        const [text, of] = fifoOf(random);
        // It may have ended before it could store how far it had come, and the owner may have taken some of that.
        const before = random(4);
        return {
          text: `engineGiveUp(${text}), ${before} slots before`,
          act: (rig) => {
            const fifo = of(rig);
            rig.setWord(fifo + INJECTION_HEAD_OFFSET, rig.word(fifo + INJECTION_HEAD_OFFSET) - before);
            // What it knew of slots that it had not come to has gone with it: here there is another one.
            rig.setWord(fifo + INJECTION_AHEAD_OFFSET, 0);
            rig.producer.engineGiveUp(rig.map.job, fifo);
          },
        };
      },
    },
    engineCall: {
      weight: 5,
      choose: (_, random) => {
        const ordinal = random(2);
        return { text: `engineCall(${ordinal})`, act: (rig) => rig.producer.engineCall(rig.map.job, ordinal) };
      },
    },
    ends: {
      weight: 2,
      choose: (_, random) => {
        const [task, state] = [
          random(reference.map.tasks),
          pick(random, [TASK_UP, TASK_UP, TASK_UP, TASK_UP, TASK_CLOSED, TASK_DEAD]) as number,
        ];
        return {
          text: `the state of task ${task} is ${state}`,
          act: (rig) => rig.producer.storeWord(rig.task(task) + TASK_STATE_OFFSET, state),
        };
      },
    },
  };

  /** What an agent does. */
  const agent: Operations<State> = {
    engineCarried: {
      weight: 15,
      choose: (_, random) => {
        const [[text, of], result] = [
          fifoOf(random),
          pick(random, [TRANSFER_DONE, TRANSFER_DONE, TRANSFER_REMOTE_BOUNDS]),
        ];
        return {
          text: `engineCarried(${text}, ${result}), if it has stopped`,
          act: (rig) => {
            if (rig.word(of(rig) + INJECTION_AWAY_OFFSET) === AWAY_NONE) return false;
            rig.producer.engineCarried(of(rig), result ?? TRANSFER_DONE);
            callFor(rig, of(rig));
            return true;
          },
        };
      },
    },
    rgetFifoAway: {
      weight: 4,
      choose: (state, random) => {
        const side = pick(random, sidesOf(state));
        const away = pick(random, [0, 0, AWAY_YES, AWAY_YES | AWAY_OVER]) as number;
        return (
          side && {
            text: `${keyOf(side)} is away: ${away}`,
            act: (rig) => rig.setWord(side.rgetFifo + RGET_FIFO_AWAY_OFFSET, away),
          }
        );
      },
    },
  };

  const thread: Operations<State> = {
    engineServe: {
      weight: 40,
      choose: (_, random) => {
        const times = 1 + random(4);
        return {
          text: `${times} × engineServe()`,
          act: (rig) => Array.from({ length: times }, () => rig.producer.engineServe(rig.map.job)),
        };
      },
    },
    notifyEngine: {
      weight: 2,
      choose: () => ({
        text: "the engine is told",
        act: (rig) => rig.producer.addWord(rig.engine + TASK_NOTICE_OFFSET, 1),
      }),
    },
    engineEnds: {
      weight: 2,
      choose: (_, random) => {
        const state = pick(random, [TASK_UP, TASK_UP, TASK_UP, TASK_ABSENT, TASK_CLOSED, TASK_DEAD]) as number;
        return {
          text: `the state of the engine is ${state}`,
          act: (rig) => rig.producer.storeWord(rig.engine + TASK_STATE_OFFSET, state),
        };
      },
    },
    contexts: {
      weight: 2,
      choose: (_, random) => {
        const [ordinal, state] = [
          random(2),
          pick(random, [CONTEXT_OPEN, CONTEXT_OPEN, CONTEXT_OPEN, CONTEXT_CLOSED]) as number,
        ];
        return {
          text: `the state of context ${ordinal} is ${state}`,
          act: (rig) => rig.producer.storeWord(rig.context(ordinal) + CONTEXT_STATE_OFFSET, state),
        };
      },
    },
  };

  return {
    ...fifos,
    ...(reference.map.engine ? thread : {}),
    ...(hasAway ? agent : {}),
    begin: {
      weight: 8,
      choose: (state, random) => {
        const from = random(2);
        const [origin, target] = [anySide(from, random), anySide(1 - from, random)];
        const links = FIRST_CHAIN + random(CHAINS);
        const taken = [keyOf(origin), keyOf(target), `links ${links} of task ${target.task}`];
        const [shape, fromOffset, toOffset] = [shapeOf(random), offsetIn(random), offsetIn(random)];
        const allowed = pick(random, [NONE, NONE, 0, 1, random(12)]) as number;
        const calls = random(4) !== 0;
        const away = hasAway && random(4) === 0 ? AWAY_YES : 0;
        if (taken.some((key) => state.taken.has(key))) return undefined;
        for (const key of taken) state.taken.add(key);
        state.transfers.push({ origin, target, open: new Set([origin, target]), links });
        return {
          text: `${taken.join(", ")}: ${JSON.stringify({ ...shape, fromOffset, toOffset, allowed, away })}`,
          act: (rig) => {
            const generation = rig.producer.rgetOpen(origin.rgetFifo, allowed);
            const own = rig.producer.rgetOpen(target.rgetFifo, NONE);
            const words = chainWords({
              ...shape,
              origin,
              target,
              generation,
              payload: regionOf(rig, from, DATA),
              from: fromOffset,
              destination: regionOf(rig, 1 - from, DATA),
              to: toOffset,
              links: regionOf(rig, 1 - from, links),
            });
            for (const [offset, value] of words) rig.setWord(target.rgetFifo + offset, value);
            for (const { rgetFifo } of [origin, target]) rig.setWord(rgetFifo + RGET_FIFO_AWAY_OFFSET, away);
            const written = rig.producer.chainWrite(rig.map.job, target.rgetFifo);
            if (calls) rig.producer.engineCall(rig.map.job, target.ordinal);
            return [generation, own, written];
          },
        };
      },
    },
    chainRun: {
      weight: 40,
      choose: (_, random) => {
        const [task, times, most] = [random(2), 1 + random(3), mostOf(random)];
        return {
          text: `${times} × chainRun(${task}, ${most})`,
          act: (rig) =>
            Array.from({ length: times }, () =>
              rig.producer.chainRun(rig.map.job, rig.context(task * rig.map.contexts), most),
            ),
        };
      },
    },
    chainLeft: {
      weight: 5,
      choose: (_, random) => {
        const task = random(2);
        return {
          text: `chainLeft(${task})`,
          act: (rig) => rig.producer.chainLeft(rig.context(task * rig.map.contexts)),
        };
      },
    },
    allow: {
      weight: 8,
      choose: (state, random) => {
        const side = pick(random, state.transfers)?.origin;
        const allowed = pick(random, [1, 2, random(12), NONE, 0x80000000]) as number;
        return (
          side && {
            text: `${allowed} fragments of ${keyOf(side)}`,
            act: (rig) => rig.producer.storeWord(side.rgetFifo + RGET_FIFO_ALLOWED_OFFSET, allowed),
          }
        );
      },
    },
    stop: {
      weight: 2,
      choose: (state, random) => {
        const side = pick(random, sidesOf(state));
        return (
          side && {
            text: `${keyOf(side)} gives up`,
            act: (rig) => rig.producer.storeWord(side.rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED),
          }
        );
      },
    },
    told: {
      weight: 5,
      choose: (_, random) => {
        const side = anySide(random(2), random);
        const register = side.block.base + BLOCK_STATUS_OFFSET;
        return {
          text: `the status register of block ${side.block.index}`,
          act: (rig) => {
            const bits = rig.producer.loadWord(register);
            rig.producer.clearBits(register, bits);
            return bits;
          },
        };
      },
    },
    close: {
      weight: 5,
      choose: (state, random) => {
        const transfer = pick(random, state.transfers);
        const side = transfer && pick(random, [...transfer.open]);
        if (transfer === undefined || side === undefined) return undefined;
        transfer.open.delete(side);
        const clears = random(2) === 1;
        state.taken.delete(keyOf(side));
        if (transfer.open.size === 0) {
          state.transfers = state.transfers.filter((other) => other !== transfer);
          state.taken.delete(`links ${transfer.links} of task ${transfer.target.task}`);
        }
        return {
          text: `${keyOf(side)} is closed${clears ? ", and cleared" : ""}`,
          act: (rig) => {
            rig.producer.rgetClose(side.rgetFifo);
            return clears ? rig.producer.rgetClear(side.rgetFifo) : undefined;
          },
        };
      },
    },
    rgetClear: {
      weight: 3,
      choose: (state, random) => {
        const side = anySide(random(2), random);
        if (state.taken.has(keyOf(side))) return undefined;
        return { text: `${keyOf(side)} is cleared`, act: (rig) => rig.producer.rgetClear(side.rgetFifo) };
      },
    },
    chainBreak: {
      weight: 2,
      choose: (state, random) => {
        const side = random(3) === 0 ? anySide(random(2), random) : pick(random, sidesOf(state));
        return (
          side && {
            text: `chainBreak(${keyOf(side)})`,
            act: (rig) => rig.producer.chainBreak(rig.map.job, side.rgetFifo),
          }
        );
      },
    },
    chainNotice: {
      weight: 3,
      choose: (state, random) => {
        const side = pick(random, sidesOf(state)) ?? anySide(random(2), random);
        const { block, offset, task } = side;
        const index = random(4) === 0 ? word(random) : block.index;
        const generation = random(4) === 0 ? word(random) : block.generation;
        const place = random(4) === 0 ? word(random) : offset + (random(8) === 0 ? 2 : 0);
        const off = pick(random, [0, 0, 0, 1, 2]) as number;
        return {
          text: `chainNotice(${index}, ${generation}, ${place}), to ${keyOf(side)}`,
          act: (rig) => {
            const own = rig.word(side.rgetFifo + RGET_FIFO_GENERATION_OFFSET) - off;
            const { job } = rig.map;
            return rig.producer.chainNotice(
              job,
              index,
              generation,
              place,
              own,
              task * rig.map.contexts,
              TRANSFER_REFUSED,
            );
          },
        };
      },
    },
    garbage: {
      weight: 4,
      choose: (state, random) => {
        const side = pick(random, sidesOf(state));
        if (side === undefined) return undefined;
        const kinds = [DESCRIPTOR_RGET, DESCRIPTOR_REFILL, DESCRIPTOR_FETCH, DESCRIPTOR_MOVE, DESCRIPTOR_NOTICE];
        const kind = pick(random, [...kinds, 0, DESCRIPTOR_FENCE, word(random)]) as number;
        const slots = [0, 1, 3, 4, 0x80000000, 0xffffffff];
        const sizes = [0, 1, random(5000), SLICE_BYTES + 1, word(random)];
        const bytes = pick(random, kind === DESCRIPTOR_FETCH ? slots : sizes) as number;
        const number = random(3) === 0 ? word(random) : random(DEPTH_MAX);
        const words = [kind, bytes, ...anyPlace(random), ...anyPlace(random), number];
        return {
          text: `a descriptor ${words} in ${keyOf(side)}`,
          act: (rig) => {
            const tail = rig.word(side.rgetFifo + RGET_FIFO_TAIL_OFFSET);
            const slot = side.rgetFifo + RGET_FIFO_SLOTS_OFFSET + ((tail & (RGET_FIFO_SLOTS - 1)) << DESCRIPTOR_SHIFT);
            for (const [i, value] of words.entries()) rig.setWord(slot + 4 * i, value);
            rig.producer.storeWord(side.rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + 1);
          },
        };
      },
    },
    region: {
      weight: 1,
      choose: (_, random) => {
        const [task, place] = [random(2), DATA + random(1 + CHAINS)];
        const bytes = place === DATA ? DATA_PAGES * PAGE_SIZE : LINKS * LINK_SIZE;
        return {
          text: `region ${place} of task ${task} is closed, and opened again`,
          act: (rig) => {
            const { index, base } = regionOf(rig, task, place);
            rig.producer.regionClose(rig.map.job, index);
            return rig.producer.regionOpen(rig.map.job, index, base, bytes);
          },
        };
      },
    },
    bells: {
      weight: 2,
      choose: (_, random) => {
        // With an engine thread, its slot is behind those of the tasks.
        const [task, arms] = [random(reference.map.tasks + Number(reference.map.engine)), random(2) === 1];
        return {
          text: `task ${task} ${arms ? "may sleep" : "is awake"}`,
          act: (rig) => (arms ? rig.producer.bellArm(rig.task(task)) : rig.producer.bellDisarm(rig.task(task))),
        };
      },
    },
  };
}

describe("wasm and twin, in two memories: chains and FIFOs", () => {
  it.each<[string, "inline" | "thread", Straddle | undefined, number, number]>([
    ["", "inline", undefined, 64, 2],
    [", by an engine thread", "thread", undefined, 1024, 2],
    [", 2^31 in the heap", "inline", "heap", 1024, 2],
    [", by an engine thread, 2^31 in the heap", "thread", "heap", 16, 2],
    [", with a task of another node", "thread", undefined, 64, 3],
    [", with a task of another node, 2^31 in the heap", "thread", "heap", 16, 3],
  ])("the same results and the same bytes after every operation%s", (_, engine, straddle, slots, tasks) => {
    const limits = { tasks, locals: 2, contexts: 1, slots, heapBytes: PAGES * PAGE_SIZE };
    const options: RigOptions = { ...limits, straddle, engine };
    const state = (): State => ({ transfers: [], taken: new Set() });
    compare({ options, sequences: SEQUENCES, length: OPERATIONS, prepare, state, operations });
  });
});

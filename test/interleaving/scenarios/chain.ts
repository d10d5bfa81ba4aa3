// Self-pacing transfers: two engines that hand each other descriptors, each on the thread of its task; and then a core and
// the engines on threads of their own.
import {
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  JOB_DUE_OFFSET,
  NONE,
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_PASSED_OFFSET,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_SLOTS_OFFSET,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  SLICE_BYTES,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
} from "../../../assembly/layout.js";
import { hasEngineSeenAll, markDead } from "../../../src/node/liveness.js";
import { addBlock, chainWords, type Plan, type Region, readySide, type Side, sideOf } from "../../support/chains.js";
import { map, SLICE } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { PAGE, same, serveForever, setUp, sleepUntil } from "./support.js";

/** Of a task: its block of rget FIFOs, its data, and the links of what it receives; the last two share a page. */
const BLOCK = 0;
const DATA = 1;
const LINKS = 2;
/** Where the payload that a task sends lies in its data, and where what it receives goes. */
const FROM = 0;
const TO = 512;
const LINKS_AT = 2048;
/** What a byte's word is before something is moved there. */
const EMPTY = 0xa5a5a5a5 | 0;

/** Each region is opened once; blocks lie first in the heap, then a page of data for each task. */
function regionOf(task: number, which: number): Region {
  const data = map.heapBase + 2 * BLOCK_SIZE + task * PAGE;
  const base = which === BLOCK ? map.heapBase + task * BLOCK_SIZE : which === DATA ? data : data + LINKS_AT;
  return { index: task * map.regions + which, generation: 1, base };
}

interface Shape {
  readonly fragments: number;
  readonly depth: number;
  readonly fragment?: number;
  /** Bytes of the last fragment. */
  readonly last?: number;
  readonly ring?: number;
}

/** A transfer from a task to the other one of tasks 0 and 1, in the rget FIFO of that number on both sides. */
class Transfer {
  readonly origin: Side;
  readonly target: Side;
  readonly plan: Plan;

  constructor(from: number, number: number, { fragments, depth, fragment = 8, last = 4, ring = 0 }: Shape) {
    const to = 1 - from;
    this.origin = sideOf(map, from, regionOf(from, BLOCK), number);
    this.target = sideOf(map, to, regionOf(to, BLOCK), number);
    this.plan = {
      origin: this.origin,
      target: this.target,
      generation: 1,
      payload: regionOf(from, DATA),
      from: FROM,
      destination: regionOf(to, DATA),
      to: TO,
      links: regionOf(to, LINKS),
      bytes: (fragments - 1) * fragment + last,
      fragment,
      depth,
      ring,
    };
  }

  /** Word i of what is sent, where it is staged or lies. */
  source(i: number): number {
    const { payload, from, ring = 0, fragment } = this.plan;
    return payload.base + from + ((4 * i) % (ring === 0 ? 4096 : ring * fragment));
  }

  /** Word i of what is received. */
  place(i: number): number {
    return this.plan.destination.base + this.plan.to + 4 * i;
  }

  get words(): number {
    return this.plan.bytes / 4;
  }

  /** Both rget FIFOs are opened and the links written, as the cores of both tasks do it. */
  begin(world: World, allowed = NONE): void {
    this.take(world, this.offer(world, allowed));
  }

  /** The origin's core opens its rget FIFO; returns that one's generation. */
  offer(world: World, allowed: number): number {
    return world.kernel.rgetOpen(this.origin.rgetFifo, allowed);
  }

  /** The target's core opens its own, and writes the links. */
  take(world: World, generation: number): void {
    const { target, plan } = this;
    world.kernel.rgetOpen(target.rgetFifo, NONE);
    for (const [offset, value] of chainWords({ ...plan, generation })) world.store(target.rgetFifo + offset, value);
    if (world.kernel.chainWrite(map.job, target.rgetFifo) === 0) throw new Error("the chain is not written");
  }
}

/** Both tasks' blocks and data, before any transfer; the destinations read EMPTY. */
function setupTasks(world: World): void {
  const { kernel } = world;
  const blocks = [0, 1].map((task) => kernel.regionAllocate(map.job, BLOCK_SIZE / PAGE, task));
  const data = [0, 1].map((task) => kernel.regionAllocate(map.job, 1, task));
  for (const task of [0, 1]) {
    same("where it is", [blocks[task], data[task]] as number[], [
      regionOf(task, BLOCK).base,
      regionOf(task, DATA).base,
    ]);
    for (const [which, bytes] of [
      [BLOCK, BLOCK_SIZE],
      [DATA, LINKS_AT],
      [LINKS, PAGE - LINKS_AT],
    ] as const) {
      const { index, base } = regionOf(task, which);
      kernel.regionOpen(map.job, index, base, bytes);
    }
    addBlock(world, task, regionOf(task, BLOCK));
  }
}

/** As setupTasks(), with transfers that may begin: word i of their payload is 100 + i. */
function setupSides(world: World, transfers: readonly Transfer[]): void {
  setupTasks(world);
  for (const transfer of transfers) {
    const { origin, target } = transfer;
    readySide(world, origin, target.task);
    readySide(world, target, origin.task);
    for (let i = 0; i < transfer.words; i++) world.setWord(transfer.source(i), 100 + i);
  }
}

/** As setupSides(), with transfers that are begun. */
function setupTransfers(world: World, transfers: readonly Transfer[], allowed = NONE): void {
  setupSides(world, transfers);
  for (const transfer of transfers) transfer.begin(world, allowed);
}

/** Takes the bits of a task's status register that are set; notes each. */
function takeStatus(world: World, { block }: Side): number {
  const register = block.base + BLOCK_STATUS_OFFSET;
  const bits = world.kernel.loadWord(register);
  if (bits !== 0) {
    world.kernel.clearBits(register, bits);
    world.note(bits);
  }
  return bits;
}

/** What the core of a task does with the transfers that are over. */
function coreIsTold(world: World, task: number, bits: number, transfers: readonly Transfer[]): void {
  for (const transfer of transfers) {
    if ((bits & (1 << transfer.origin.number)) === 0) continue;
    if (transfer.origin.task === task) reuse(world, transfer);
    else expectAll(world, transfer);
  }
}

/** Sleeps on a task's bell, unless `peek` sees something. */
function sleep(world: World, task: number, peek: () => boolean): void {
  const { kernel } = world;
  const slot = world.task(task);
  const seen = kernel.bellArm(slot);
  if (!peek()) kernel.bellWait(slot, seen, -1);
  kernel.bellDisarm(slot);
}

interface Work {
  readonly side: Side;
  /** Until so many rget FIFOs are over. */
  readonly bits: number;
  /** What its core does with those that are. */
  readonly told: (bits: number) => void;
  /** What is true at all times. */
  readonly always?: () => void;
  /** Task on whose bell it sleeps; default: its own. */
  readonly bell?: number;
}

/** A task's engine, and what its core does when it is told; asleep while there is nothing to do. */
function runUntil(world: World, { side, bits, told, always, bell = side.task }: Work): void {
  const { kernel } = world;
  for (let over = 0; ; ) {
    const left = kernel.chainRun(map.job, side.context, SLICE_BYTES);
    always?.();
    const now = takeStatus(world, side);
    if (now !== 0) told(now);
    over |= now;
    if (over === bits) return;
    if (left === 0) sleep(world, bell, () => isTold(world, side) || kernel.chainLeft(side.context) !== 0);
  }
}

/** So many links are asked for beside those whose fragments have arrived (P4), as long as there are so many. */
function expectAsked(world: World, { target, plan }: Transfer): void {
  const links = Math.ceil(plan.bytes / plan.fragment);
  const arrived = Math.floor((plan.bytes - world.word(target.rgetFifo + RGET_FIFO_LEFT_OFFSET)) / plan.fragment);
  const asked = world.word(target.rgetFifo + RGET_FIFO_TAIL_OFFSET);
  if (asked < Math.min(links, arrived + plan.depth)) throw new Error(`${arrived} have arrived, ${asked} are asked for`);
}

/** What a target finds when it is told (P7): all is counted, all words are there, and nothing behind them. */
function expectAll(world: World, transfer: Transfer): void {
  same("bytes left", [world.kernel.loadWord(transfer.target.rgetFifo + RGET_FIFO_LEFT_OFFSET)], [0]);
  const words = Array.from({ length: transfer.words + 1 }, (_, i) => world.load(transfer.place(i)));
  const should = words.map((_, i) => (i === transfer.words ? EMPTY : 100 + i));
  same("what has arrived", words, should);
}

/** An origin that is told uses its payload's memory again. */
function reuse(world: World, transfer: Transfer): void {
  for (let i = 0; i < transfer.words; i++) world.store(transfer.source(i), 7);
}

/** After a run: nobody has anything left, and all came to the same. */
function expectOver(world: World, { origin, target }: Transfer, result: number): void {
  for (const { rgetFifo, block } of [origin, target]) {
    same("slots", [world.word(rgetFifo + RGET_FIFO_HEAD_OFFSET)], [world.word(rgetFifo + RGET_FIFO_TAIL_OFFSET)]);
    same("bits that nobody has taken", [world.word(block.base + BLOCK_STATUS_OFFSET)], [0]);
  }
  same("bytes that have not arrived", [world.word(target.rgetFifo + RGET_FIFO_LEFT_OFFSET)], [0]);
  same(
    "results",
    [world.word(origin.rgetFifo + RGET_FIFO_RESULT_OFFSET), world.word(target.rgetFifo + RGET_FIFO_WRONG_OFFSET)],
    [result, result],
  );
}

/** Transfers of which each task has one end, and its engine on its thread; asleep while it has nothing to do. */
function pulled(name: string, ...transfers: readonly Transfer[]): Scenario {
  const bits = transfers.reduce((all, { origin }) => all | (1 << origin.number), 0);
  const program = (task: number) => (world: World) => {
    const { origin, target } = transfers[0] as Transfer;
    runUntil(world, {
      side: origin.task === task ? origin : target,
      bits,
      told: (now) => coreIsTold(world, task, now, transfers),
      always() {
        for (const transfer of transfers) expectAsked(world, transfer);
      },
    });
  };
  return {
    name,
    setup: (world) => setupTransfers(world, transfers),
    threads: [program(0), program(1)],
    check(world, notes) {
      for (const told of notes) {
        same("the sum of the bits that a task was told", [told.reduce((sum, bit) => sum + bit, 0)], [bits]);
      }
      for (const transfer of transfers) expectOver(world, transfer, TRANSFER_DONE);
    },
  };
}

/** For expectPart(): what a target finds of a transfer that was given up. */
function noteArrived(world: World, transfer: Transfer): void {
  for (let i = 0; i < transfer.words; i++) world.note(world.load(transfer.place(i)));
}

/** Of a transfer that was given up the first words have arrived, as they should, and none behind them; how many? */
function expectPart({ words }: Transfer, arrived: readonly number[]): number {
  const end = arrived.indexOf(EMPTY);
  const count = end === -1 ? words : end;
  const should = Array.from({ length: words }, (_, i) => (i < count ? 100 + i : EMPTY));
  same("what has arrived", arrived, should);
  return count;
}

/** Gives a transfer up; notes how many words have arrived until then. */
function stop(world: World, transfer: Transfer, { rgetFifo }: Side): void {
  world.kernel.storeWord(rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED);
  let count = 0;
  while (count < transfer.words && world.word(transfer.place(count)) !== EMPTY >>> 0) count++;
  world.note(count);
}

/**
 * What is the same whoever gives a transfer up.
 * @param until words that had arrived by then
 * @param most words of what was under way at that moment
 */
function checkStopped(world: World, transfer: Transfer, until: number, most: number, arrived: readonly number[]): void {
  const count = expectPart(transfer, arrived);
  if (count > until + most) throw new Error(`${count} words have arrived, ${until} when it was given up`);
  expectOver(world, transfer, count === transfer.words ? TRANSFER_DONE : TRANSFER_CANCELED);
}

/** A core gives the transfer up when its own engine has run for the first time. */
function stopped(who: "origin" | "target"): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 3, depth: 1, fragment: 20 });
  const program = (side: Side) => (world: World) => {
    if (side === transfer[who]) {
      world.kernel.chainRun(map.job, side.context, SLICE_BYTES);
      stop(world, transfer, side);
    }
    runUntil(world, {
      side,
      bits: 1,
      told() {
        // Nobody writes any more, or reads.
        if (side === transfer.origin) reuse(world, transfer);
        else noteArrived(world, transfer);
      },
    });
  };
  return {
    name: `the ${who} gives a transfer up while both engines are at it`,
    setup: (world) => setupTransfers(world, [transfer]),
    threads: [program(transfer.origin), program(transfer.target)],
    check(world, [atOrigin = [], atTarget = []]) {
      const all = { origin: [...atOrigin], target: [...atTarget] };
      const until = all[who].shift() as number;
      same("the bits that both were told", [...all.origin, all.target.shift() as number], [1, 1]);
      // An origin moves nothing itself while it gives it up.
      checkStopped(world, transfer, until, who === "origin" ? 0 : SLICE / 4, all.target);
    },
  };
}

/** An origin's core, its engine and the target on three threads, asleep on the bells of tasks 0, 1 and 2. */
function stoppedByCore(): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 2, depth: 1 });
  const { origin, target } = transfer;
  return {
    name: "an origin's core gives a transfer up, its engine is another thread, and the target a third one",
    bound: 1,
    setup(world) {
      setupTransfers(world, [transfer]);
      readySide(world, target, 1);
      readySide(world, origin, 2);
    },
    threads: [
      (world) => {
        stop(world, transfer, origin);
        await_(world, () => isTold(world, origin));
        reuse(world, transfer);
      },
      (world) => {
        const { kernel } = world;
        while (!isTold(world, origin)) {
          kernel.chainRun(map.job, origin.context, SLICE_BYTES);
          if (!isTold(world, origin))
            sleep(world, 1, () => isTold(world, origin) || kernel.chainLeft(origin.context) !== 0);
        }
      },
      (world) => runUntil(world, { side: target, bits: 1, told: () => noteArrived(world, transfer), bell: 2 }),
    ],
    check(world, [[until = 0] = [], , atTarget = []]) {
      const [bits = 0, ...arrived] = atTarget;
      same("the bits that both were told", [world.word(origin.block.base + BLOCK_STATUS_OFFSET), bits], [1, 1]);
      world.setWord(origin.block.base + BLOCK_STATUS_OFFSET, 0);
      checkStopped(world, transfer, until, 2, arrived);
    },
  };
}

/** Whether a task's status register says anything. */
function isTold(world: World, { block }: Side): boolean {
  return world.kernel.loadWord(block.base + BLOCK_STATUS_OFFSET) !== 0;
}

/** Rounds of both engines after which nothing is left that they can do. */
const ROUNDS = 4;

/** Both tasks' engines on one thread, which is not that of the cores: asleep on task 1's bell until the work is over. */
function runEngines(world: World, { origin, target }: Transfer, isOver: () => boolean): void {
  const { kernel } = world;
  while (!isOver()) {
    const slot = world.task(1);
    const seen = kernel.bellArm(slot);
    for (let i = 0; i < ROUNDS; i++) {
      kernel.chainRun(map.job, target.context, SLICE_BYTES);
      kernel.chainRun(map.job, origin.context, SLICE_BYTES);
    }
    // A core waits for fragments that have passed, too.
    kernel.ring(world.task(0));
    if (!isOver()) kernel.bellWait(slot, seen, -1);
    kernel.bellDisarm(slot);
  }
}

/** Sleeps on task 0's bell until `look` sees something. */
function await_(world: World, look: () => boolean): void {
  while (!look()) sleep(world, 0, look);
}

/**
 * A core stages fragments in a ring of two, while its engine moves them on another thread.
 * @param count fragments that it stages before it gives the rest of them up
 */
function staged(name: string, count: number): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 4, depth: 1, ring: 2, last: 8 });
  const { origin, target } = transfer;
  const result = count === 4 ? TRANSFER_DONE : TRANSFER_CANCELED;
  return {
    name,
    setup(world) {
      setupTransfers(world, [transfer], 0);
      readySide(world, target, 0);
    },
    threads: [
      (world) => {
        const { kernel } = world;
        for (let fragment = 0; fragment < count; fragment++) {
          await_(world, () => kernel.loadWord(origin.rgetFifo + RGET_FIFO_PASSED_OFFSET) + 2 > fragment);
          for (const word of [2 * fragment, 2 * fragment + 1]) world.store(transfer.source(word), 100 + word);
          kernel.storeWord(origin.rgetFifo + RGET_FIFO_ALLOWED_OFFSET, fragment + 1);
          kernel.ring(world.task(1));
        }
        if (count < 4) {
          kernel.storeWord(origin.rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED);
          kernel.ring(world.task(1)); // its engine may wait for the next fragment
        }
        await_(world, () => isTold(world, origin));
        world.note(world.load(origin.rgetFifo + RGET_FIFO_RESULT_OFFSET));
        takeStatus(world, origin);
        reuse(world, transfer);
        kernel.rgetClose(origin.rgetFifo);
        kernel.rgetClear(origin.rgetFifo);
      },
      (world) => {
        runEngines(world, transfer, () => isTold(world, target));
        takeStatus(world, target);
        if (count === 4) expectAll(world, transfer);
        else noteArrived(world, transfer);
      },
    ],
    check(world, [atOrigin = [], atTarget = []]) {
      const [bits = 0, ...arrived] = atTarget;
      same("what both were told", [...atOrigin, bits], [result, 1, 1]);
      // What was not staged is not moved.
      if (count < 4 && expectPart(transfer, arrived) > 2 * count) throw new Error("more than was staged has arrived");
      expectOver(world, transfer, result);
    },
  };
}

/** Two transfers, one after the other, in the same rget FIFOs: both cores on one thread, both engines on another. */
function again(): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 2, depth: 1 });
  const { origin, target } = transfer;
  /** Counts the transfers that are over. */
  const over = (world: World): number => world.task(2);
  return {
    name: "rget FIFOs are closed, and opened for another transfer, while the engines of both sides run",
    bound: 1, // with 2 there are 120,000 schedules
    setup(world) {
      setupTransfers(world, []);
      for (const side of [origin, target]) readySide(world, side, 0);
    },
    threads: [
      (world) => {
        const { kernel } = world;
        for (let round = 0; round < 2; round++) {
          for (let i = 0; i < transfer.words; i++) {
            world.store(transfer.source(i), 100 + i);
            world.store(transfer.place(i), EMPTY);
          }
          transfer.begin(world);
          kernel.ring(world.task(1));
          for (const side of [target, origin]) {
            for (let told = 0; told === 0; ) {
              await_(world, () => isTold(world, side));
              told = takeStatus(world, side);
            }
            if (side === target) expectAll(world, transfer);
            else reuse(world, transfer);
            kernel.rgetClose(side.rgetFifo);
            kernel.rgetClear(side.rgetFifo);
          }
          kernel.storeWord(over(world), round + 1);
          kernel.ring(world.task(1));
        }
      },
      (world) => runEngines(world, transfer, () => world.kernel.loadWord(over(world)) === 2),
    ],
    check(world, [notes = []]) {
      same("bits that the cores were told", notes, [1, 1, 1, 1]);
      expectOver(world, transfer, TRANSFER_DONE);
    },
  };
}

/** Has the engine thread look at a task's rget FIFOs. */
function call(world: World, task: number): void {
  world.kernel.engineCall(map.job, task * map.contexts);
}

/** A target's core begins a transfer that was offered at the start. */
function takeServed(world: World, transfer: Transfer): void {
  transfer.take(world, 1);
  call(world, transfer.target.task);
}

/** As setupSides(), where there is an engine thread, and all is offered. */
function setupServed(world: World, transfers: readonly Transfer[], allowed = NONE): void {
  setUp(world, [0, 1]);
  setupSides(world, transfers);
  for (const transfer of transfers) transfer.offer(world, allowed);
}

/** After a run: the engine thread has nothing left. */
function expectServed(world: World, transfers: readonly Transfer[], result = TRANSFER_DONE): void {
  for (const transfer of transfers) expectOver(world, transfer, result);
  same("what the engine is still to look at", [world.word(map.job + JOB_DUE_OFFSET)], [0]);
}

/** Transfers whose cores only begin them, and sleep until they are told: the engine thread does all the rest. */
function served(name: string, bound: number, ...transfers: readonly Transfer[]): Scenario {
  const bits = transfers.reduce((all, { origin }) => all | (1 << origin.number), 0);
  const program = (task: number) => (world: World) => {
    const { origin, target } = transfers[0] as Transfer;
    for (const transfer of transfers) if (transfer.target.task === task) takeServed(world, transfer);
    let over = 0;
    sleepUntil(world, world.task(task), () => {
      const now = takeStatus(world, origin.task === task ? origin : target);
      coreIsTold(world, task, now, transfers);
      over |= now;
      return over === bits;
    });
  };
  return {
    name,
    engine: true,
    bound,
    endless: [2],
    setup: (world) => setupServed(world, transfers),
    threads: [program(0), program(1), serveForever],
    check(world, notes) {
      for (const told of notes.slice(0, 2)) {
        same("the sum of the bits that a task was told", [told.reduce((sum, bit) => sum + bit, 0)], [bits]);
      }
      expectServed(world, transfers);
    },
  };
}

/** As staged(), where the core asks the engine thread, and sleeps until that has moved a fragment. */
function stagedServed(name: string, count: number): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 3, depth: 1, ring: 1, last: 8 });
  const { origin, target } = transfer;
  const result = count === 3 ? TRANSFER_DONE : TRANSFER_CANCELED;
  return {
    name,
    engine: true,
    bound: 1,
    endless: [2],
    setup: (world) => setupServed(world, [transfer], 0),
    threads: [
      (world) => {
        const { kernel } = world;
        for (let fragment = 0; fragment < count; fragment++) {
          sleepUntil(
            world,
            world.task(0),
            () => kernel.loadWord(origin.rgetFifo + RGET_FIFO_PASSED_OFFSET) === fragment,
          );
          for (const word of [2 * fragment, 2 * fragment + 1]) world.store(transfer.source(word), 100 + word);
          kernel.storeWord(origin.rgetFifo + RGET_FIFO_ALLOWED_OFFSET, fragment + 1);
          call(world, 0);
        }
        if (count < 3) {
          kernel.storeWord(origin.rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED);
          call(world, 0);
        }
        sleepUntil(world, world.task(0), () => takeStatus(world, origin) !== 0);
        reuse(world, transfer);
      },
      (world) => {
        takeServed(world, transfer);
        sleepUntil(world, world.task(1), () => takeStatus(world, target) !== 0);
        if (count === 3) expectAll(world, transfer);
        else noteArrived(world, transfer);
      },
      serveForever,
    ],
    check(world, [atOrigin = [], atTarget = []]) {
      const [bits = 0, ...arrived] = atTarget;
      same("what both were told", [...atOrigin, bits], [1, 1]);
      // What was not staged is not moved.
      if (count < 3 && expectPart(transfer, arrived) > 2 * count) throw new Error("more than was staged has arrived");
      expectServed(world, [transfer], result);
    },
  };
}

/** A task dies while the engine thread is at a chain of its: whoever sees that it has heard of that has all its memory. */
function diesServed(who: "origin" | "target"): Scenario {
  const transfer = new Transfer(0, 0, { fragments: 2, depth: 1 });
  const side = transfer[who];
  const data = (i: number): number => (who === "origin" ? transfer.source(i) : transfer.place(i));
  const words = [
    ...Array.from({ length: transfer.words }, (_, i) => data(i)),
    ...[RGET_FIFO_TAIL_OFFSET, RGET_FIFO_HEAD_OFFSET, RGET_FIFO_LEFT_OFFSET, RGET_FIFO_SLOTS_OFFSET].map(
      (at) => side.rgetFifo + at,
    ),
  ];
  return {
    name: `P11: the ${who} of a chain dies while the engine thread is at it`,
    engine: true,
    endless: [1],
    setup(world) {
      setupServed(world, [transfer]);
      takeServed(world, transfer);
    },
    threads: [
      (world) => {
        markDead(world.kernel, map, side.task);
        sleepUntil(world, world.task(1 - side.task), () => hasEngineSeenAll(world.kernel, map));
        for (const word of words) world.store(word, 7);
      },
      serveForever,
    ],
    check(world) {
      same(
        "what was written once the engine thread had heard",
        words.map((word) => world.word(word)),
        words.map(() => 7),
      );
    },
  };
}

export const CHAIN_SCENARIOS: readonly Scenario[] = [
  pulled("three fragments at depth 1, pulled", new Transfer(0, 0, { fragments: 3, depth: 1 })),
  staged("a core stages fragments in a ring of two, its engine is another thread", 4),
  staged("a core that stages fragments gives the rest up, its engine is another thread", 1),
  stopped("origin"),
  stopped("target"),
  pulled("three fragments at depth 2, pulled", new Transfer(0, 0, { fragments: 3, depth: 2, fragment: 20 })),
  pulled(
    "two transfers in opposite directions, in rget FIFOs of the same blocks",
    new Transfer(0, 0, { fragments: 2, depth: 1 }),
    new Transfer(1, 1, { fragments: 2, depth: 1 }),
  ),
  again(),
  stoppedByCore(),
  served(
    "P8, P11: three fragments at depth 1, while both cores sleep and the engine thread does all",
    1,
    new Transfer(0, 0, { fragments: 3, depth: 1 }),
  ),
  served(
    "P9, P11: transfers in both directions, while both cores sleep and the engine thread does all",
    1,
    new Transfer(0, 0, { fragments: 2, depth: 1 }),
    new Transfer(1, 1, { fragments: 2, depth: 1 }),
  ),
  stagedServed("P11: a core sleeps until the engine thread has moved what it has staged, and stages more", 3),
  stagedServed("P11: a core that stages gives the rest up while the engine thread is at it", 1),
  diesServed("origin"),
  diesServed("target"),
];

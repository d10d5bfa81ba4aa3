// A member of a geometry in one memory that dies at any step: each other one completes the operation, or hears of the end, and
// nobody sleeps for ever. Whoever has acknowledged the end may find the dead member's memory written anew.
import { MEMBER_SIZE, TASK_DEAD, TASK_STATE_OFFSET } from "../../../assembly/layout.js";
import type { OperationBuffers } from "../../../src/collective/operation.js";
import type { SharedAlgorithm, SharedOperation } from "../../../src/collective/shared/shared-operation.js";
import { BarrierSteps, FlatReduceSteps } from "../../../src/collective/shared/shared-steps.js";
import { ERROR, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { markDead } from "../../../src/node/liveness.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import { Unwind } from "../turnstile.js";
import type { World } from "../world.js";
import { KILLED } from "./death.js";
import {
  blockOf,
  bytesOf,
  firstOf,
  Member,
  NOTHING,
  OUTSIDE,
  OutsideGatherSteps,
  OutsideSteps,
  ranksOf,
  SliceSteps,
  setUpMembers,
  sumsOf,
  valuesOf,
  viewOf,
  WORDS,
} from "./members.js";
import { PAGE, same } from "./support.js";

/** A copy of the dead member's block, for each member; behind that, a word of each: an operation that has failed for it. */
const copyOf = (rank: number): number => map.heapBase + PAGE * (8 + rank);
const TOLD = map.heapBase + PAGE * 12;
/** How many members have acknowledged the end. */
const ACKNOWLEDGED = TOLD + 64;
const ownOf = (rank: number): number => OUTSIDE + 64 * rank;

/** A member that hears of another one's end, as a geometry does, or dies itself. */
class Survivor extends Member {
  readonly #isMortal: boolean;

  constructor(world: World, rank: number, size: number, isMortal: boolean) {
    super(world, rank, size);
    this.#isMortal = isMortal;
  }

  /** As GeometryCore.sharedMemberEnded() does. True: another one has told that the operation has failed. */
  readonly hear = (operation: SharedOperation): boolean => {
    const { kernel } = this.world;
    let isTold = false;
    for (const other of ranksOf(this.shared.size)) {
      if (other === this.rank) continue;
      const told = kernel.loadWord(TOLD + 4 * other);
      isTold ||= told !== 0 && told <= operation.number;
      if (this.ended.has(other)) continue;
      if (kernel.loadWord(this.world.task(other) + TASK_STATE_OFFSET) !== TASK_DEAD) continue;
      this.shared.keep(other, copyOf(this.rank));
      operation.advance();
      this.ended.add(other);
      // The last one that has acknowledged the end may take the memory.
      if (kernel.addWord(ACKNOWLEDGED, 1) === this.shared.size - 2) this.#reuse(other);
    }
    return isTold;
  };

  /** Nobody holds the dead member's memory: it becomes something else. */
  #reuse(dead: number): void {
    for (let at = 0; at < MEMBER_SIZE; at += 4) this.world.store(blockOf(dead) + at, -1);
    for (let at = 0; at < 64; at += 4) this.world.store(ownOf(dead) + at, -1);
  }

  /** One operation. @returns whether it was completed. The others are told if not, by what stands for a message */
  operate(steps: SharedAlgorithm, buffers: OperationBuffers, number: number): boolean {
    const result = this.runAmongMortals(steps, buffers, this.hear);
    if (result === SUCCESS) return true;
    // What its death throws is caught as if a reduction had thrown it.
    if (this.#isMortal && result === ERROR) throw new Unwind();
    same("the result", [result], [SHUTDOWN]);
    const { kernel } = this.world;
    kernel.storeWord(TOLD + 4 * this.rank, number);
    for (const other of ranksOf(this.shared.size)) if (other !== this.rank) kernel.ring(this.world.task(other));
    return false;
  }
}

/** @returns whether the operation was completed */
type Act = (member: Survivor, round: number) => boolean;

const barrier: Act = (member, round) => member.operate(new BarrierSteps(member.shared), NOTHING, round);

const allreduce: Act = (member, round) => {
  const { shared, rank } = member;
  member.send.set(valuesOf(rank, round));
  if (!member.operate(new FlatReduceSteps(shared, undefined), member.buffers, round)) return false;
  member.expect(round, sumsOf(round, shared.size));
  return true;
};

/** From memory that the root writes anew as soon as it has completed the operation, or has failed. */
const broadcast: Act = (member, round) => {
  const { world, rank, shared } = member;
  if (rank === 0) for (const [word, value] of valuesOf(0, round).entries()) world.store(OUTSIDE + 4 * word, value);
  const buffers = { ...NOTHING, send: viewOf(world, OUTSIDE, WORDS), receive: bytesOf(member.receive) };
  const isOver = member.operate(new OutsideSteps(shared), buffers, round);
  if (rank === 0) for (let word = 0; word < WORDS; word++) world.store(OUTSIDE + 4 * word, 0);
  else if (isOver) member.expect(round, valuesOf(0, round));
  return isOver;
};

/** The root reads a word of each, where it lies. */
const gather: Act = (member, round) => {
  const { world, rank, shared } = member;
  const ranks = ranksOf(shared.size);
  world.store(ownOf(rank), firstOf(rank, round));
  const receive = new Int32Array(shared.size);
  const blocks = { counts: ranks.map(() => 4), offsets: ranks.map((other) => 4 * other) };
  const buffers = { ...NOTHING, send: viewOf(world, ownOf(rank), 1), receive: bytesOf(receive) };
  if (!member.operate(new OutsideGatherSteps(shared, 0, blocks), buffers, round)) return false;
  const all = ranks.map((other) => firstOf(other, round));
  if (rank === 0) same(`what the root has of round ${round}`, [...receive], all);
  return true;
};

const slices: Act = (member, round) => {
  const { world, rank, shared } = member;
  const { size } = shared;
  const [send, receive] = [ownOf(rank), ownOf(rank) + 32];
  for (const [word, value] of valuesOf(rank, round, size).entries()) world.store(send + 4 * word, value);
  const buffers = { ...member.buffers, send: viewOf(world, send, size), receive: viewOf(world, receive, size) };
  if (!member.operate(new SliceSteps(member, buffers), buffers, round)) return false;
  const has = Array.from({ length: size }, (_, word) => world.load(receive + 4 * word));
  same(`what member ${rank} has of round ${round}`, has, sumsOf(round, size, size));
  return true;
};

function dying(name: string, act: Act, victim: number, size: number, bound = 0, rounds = 2): Scenario {
  const ranks = ranksOf(size);
  const thread = (rank: number) => (world: World) => {
    const member = new Survivor(world, rank, size, rank === victim);
    let round = 1;
    while (round <= rounds && act(member, round)) round++;
    world.note(round - 1);
  };
  return {
    name: `members: ${name}`,
    mortal: [victim],
    monitor(world) {
      world.note(KILLED);
      markDead(world.kernel, map, victim);
    },
    bound,
    setup(world) {
      setUpMembers(world, ranks);
      for (const rank of ranks) world.setWord(TOLD + 4 * rank, 0);
      world.setWord(ACKNOWLEDGED, 0);
    },
    threads: ranks.map(thread),
    check(_, notes) {
      if (notes[victim]?.includes(KILLED)) return;
      same(
        "rounds",
        notes.flat(),
        ranks.map(() => rounds),
      );
    },
  };
}

export const MEMBER_DEATH_SCENARIOS: readonly Scenario[] = [
  dying("one of two dies in a barrier", barrier, 1, 2, 1),
  dying("one of two dies in a reduction", allreduce, 1, 2, 1),
  dying("the root dies in a broadcast from its memory", broadcast, 0, 2, 1),
  dying("the reader dies in a broadcast from its root's memory", broadcast, 1, 2, 1),
  dying("one of two dies in a reduction by slices", slices, 1, 2, 1, 1),
  dying("one of three dies in a barrier", barrier, 1, 3),
  dying("one of three dies in a reduction", allreduce, 2, 3),
  dying("the root dies in a broadcast to two from its memory", broadcast, 0, 3),
  dying("one of two readers dies in a broadcast from their root's memory", broadcast, 1, 3),
  dying("one of three dies in a gather from their memory", gather, 2, 3),
  dying("one of three dies in a reduction by slices", slices, 2, 3, 0, 1),
];

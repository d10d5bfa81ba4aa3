// Members of one memory that sleep whenever they have nothing to do: each operation ends, and wakes each member as often as it
// must. All are on this thread: one that sleeps goes on only once its bell has rung.
import { expect, it } from "vitest";
import { MEMBER_INLINE_BYTES, MEMBER_SIZE, MEMBER_SLOTS, PAGE_SIZE, TASK_BELL_OFFSET } from "../../assembly/layout.js";
import type { Buffers, Operation, Reducer } from "../../src/collective/operation.js";
import type { Piece, Scratch } from "../../src/collective/scratch.js";
import { SharedMembers } from "../../src/collective/shared-members.js";
import { type SharedHost, SharedOperation, type Steps } from "../../src/collective/shared-operation.js";
import {
  BarrierSteps,
  BroadcastSteps,
  FLAT_MEMBERS,
  FlatReduceSteps,
  GatherSteps,
  SliceReduceSteps,
  UniformScatterSteps,
} from "../../src/collective/shared-steps.js";
import { ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import { byEffort } from "../support/effort.js";
import { makeRig } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";

const COLD = { copyCold: (): never => expect.unreachable() };
/** More than fits into a slot. */
const LONG = 2 * MEMBER_INLINE_BYTES;
const ROOT = 1;

class Sleeper {
  readonly shared: SharedMembers;
  readonly host: SharedHost;
  readonly buffers: Buffers;
  operation!: SharedOperation;
  isAsleep = false;
  wakes = 0;
  #seen = 0;
  #number = 0;

  constructor(crowd: Crowd, rank: number, shared: SharedMembers, buffers: Buffers, scratch: Scratch) {
    this.shared = shared;
    this.buffers = buffers;
    const over = (operation: Operation, result: Result): void => {
      operation.result = result;
      operation.release();
      shared.complete(operation.number, operation.isMutual && result === SUCCESS);
    };
    // No operation here lacks memory, so none sends messages.
    const host: Partial<SharedHost> = {
      shared,
      scratch,
      get hasAnyEnded() {
        return crowd.ended !== undefined;
      },
      hasEnded: (other) => other === crowd.ended,
      over,
      failed(operation, result) {
        if (operation.isStopped) return;
        operation.failure = result;
        operation.abandon(result);
        crowd.tell(rank, result);
        if (!operation.isSending) over(operation, result);
      },
      sent: (operation) => over(operation, operation.failure),
    };
    this.host = host as SharedHost;
  }

  begin(steps: Steps): void {
    this.operation = new SharedOperation(this.host, this.buffers, steps);
    this.operation.number = ++this.#number;
    this.isAsleep = false;
  }

  /** Goes on. It falls asleep if there is nothing to do. @returns whether its operation is over */
  run({ rig }: Crowd): boolean {
    this.operation.advance();
    if (this.operation.isOver) return true;
    const task = rig.task(this.shared.rank);
    this.#seen = rig.producer.bellArm(task);
    this.isAsleep = !this.operation.hasWork;
    if (!this.isAsleep) rig.producer.bellDisarm(task);
    return false;
  }

  /** Wakes it if its bell has rung. */
  look({ rig }: Crowd): void {
    const task = rig.task(this.shared.rank);
    if (!this.isAsleep || rig.producer.loadWord(task + TASK_BELL_OFFSET) === this.#seen) return;
    rig.producer.bellDisarm(task);
    this.isAsleep = false;
    this.wakes++;
  }
}

/** Members, each of a task of its own. */
class Crowd {
  readonly rig;
  readonly members: readonly Sleeper[];
  ended: number | undefined;
  readonly #random: (below: number) => number;
  /** Failures that members have not heard of yet. */
  readonly #told = new Map<number, Result>();

  constructor(size: number, bytes: number, random: (below: number) => number) {
    this.#random = random;
    this.rig = makeRig({ tasks: size, contexts: 1, slots: size, heapBytes: 128 * PAGE_SIZE });
    const { memory, map, producer } = this.rig;
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    const pageOf = (page: number): number => map.heapBase + PAGE_SIZE * page;
    const blocks = ranks.map(pageOf);
    for (const block of blocks) memory.bytes.fill(0, block, block + MEMBER_SIZE);
    const tasks = ranks.map((rank) => this.rig.task(rank));
    const reducer: Reducer = {
      elementBytes: 1,
      isUser: false,
      reduce(out, left, right, length) {
        for (let at = 0; at < length; at++) {
          memory.bytes[out + at] = (memory.bytes[left + at] as number) + (memory.bytes[right + at] as number);
        }
      },
    };
    this.members = ranks.map((rank) => {
      const shared = new SharedMembers(producer, COLD, memory, rank, blocks, tasks);
      const send = memory.bytes.subarray(pageOf(size + rank), pageOf(size + rank) + bytes);
      // Room for a block of each.
      const receive = memory.bytes.subarray(
        send.byteOffset + 1024,
        send.byteOffset + 1024 + Math.min(bytes * size, 2048),
      );
      let taken = 0;
      const take = (length: number): Piece => {
        const pointer = receive.byteOffset + 2048 + taken;
        taken += length;
        return { pointer, bytes: memory.bytes.subarray(pointer, pointer + length) } as Piece;
      };
      const giveBack = (): void => {
        taken = 0;
      };
      const scratch = { take, giveBack } as unknown as Scratch;
      return new Sleeper(this, rank, shared, { send, receive: bytes === 0 ? send : receive, reducer }, scratch);
    });
  }

  /** An operation has failed at a member: messages tell the others, some time. */
  tell(rank: number, result: Result): void {
    for (const { shared } of this.members) if (shared.rank !== rank) this.#told.set(shared.rank, result);
  }

  /** One operation of all members, in any order. @param meanwhile called before each step @returns how often members woke */
  operate(make: (member: Sleeper) => Steps, meanwhile: (step: number) => void = () => {}): number {
    for (const member of this.members) {
      member.begin(make(member));
      member.wakes = 0;
    }
    this.#told.clear();
    const random = this.#random;
    for (let step = 0; ; step++) {
      meanwhile(step);
      for (const member of this.members) member.look(this);
      const left = this.members.filter(({ operation, shared }) => !operation.isOver && shared.rank !== this.ended);
      if (left.length === 0) return this.members.reduce((sum, { wakes }) => sum + wakes, 0);
      const told = left.filter(({ shared }) => this.#told.has(shared.rank));
      const awake = left.filter(({ isAsleep }) => !isAsleep);
      if (told.length > 0 && (awake.length === 0 || random(4) === 0)) {
        const member = told[random(told.length)] as Sleeper;
        const result = this.#told.get(member.shared.rank) as Result;
        this.#told.delete(member.shared.rank);
        member.host.failed(member.operation, result, "");
        member.isAsleep = false;
      } else {
        const names = left.map(({ shared }) => shared.rank);
        expect(awake.length, `members ${names} sleep for ever`).toBeGreaterThan(0);
        (awake[random(awake.length)] as Sleeper).run(this);
      }
    }
  }
}

type Make = (member: Sleeper) => Steps;
const blocksOf = (size: number, bytes: number) => ({
  counts: new Array<number>(size).fill(bytes),
  offsets: Array.from({ length: size }, (_, rank) => rank * bytes),
});

/** Most wake-ups of n members: one for each stage in which a member may have to wait. */
const CASES: readonly (readonly [string, number, Make, (n: number) => number])[] = [
  ["barrier", 0, ({ shared }) => new BarrierSteps(shared), (n) => n - 1],
  ["flat allreduce", 8, ({ shared }) => new FlatReduceSteps(shared, undefined), (n) => n - 1],
  ["flat reduce", 8, ({ shared }) => new FlatReduceSteps(shared, ROOT), () => 1],
  ["short broadcast", 8, ({ shared }) => new BroadcastSteps(shared, ROOT), (n) => n - 1],
  ["long broadcast", LONG, ({ shared }) => new BroadcastSteps(shared, ROOT), (n) => n],
  ["short gather", 8, ({ shared }) => new GatherSteps(shared, ROOT, blocksOf(shared.size, 8)), () => 1],
  ["long gather", 100, ({ shared }) => new GatherSteps(shared, ROOT, blocksOf(shared.size, 100)), (n) => n],
  ["allgather", 100, ({ shared }) => new GatherSteps(shared, undefined, blocksOf(shared.size, 100)), (n) => 2 * n - 2],
  ["scatter", 160, ({ shared }) => new UniformScatterSteps(shared, ROOT, 10), (n) => n],
  ["alltoall", 160, ({ shared }) => new UniformScatterSteps(shared, undefined, 10), (n) => 2 * n - 2],
  [
    "allreduce by slices",
    LONG,
    ({ shared, buffers }) => new SliceReduceSteps(shared, buffers, undefined),
    (n) => 3 * n - 3,
  ],
  ["reduce by slices", LONG, ({ shared, buffers }) => new SliceReduceSteps(shared, buffers, ROOT), (n) => 3 * n - 3],
];

const SIZES = [2, 3, 8, 9, 12, 16];
const ROUNDS = byEffort({ quick: 3, normal: 10, deep: 100 }) + MEMBER_SLOTS;

it.each(CASES)("%s: no member sleeps for ever, nor wakes more often than it has to wait", (_, bytes, make, most) => {
  for (const size of SIZES) {
    const crowd = new Crowd(size, bytes, randomOf(SEED + size));
    for (let round = 0; round < ROUNDS; round++) {
      expect(crowd.operate(make), `${size} members`).toBeLessThanOrEqual(most(size));
      for (const { operation } of crowd.members) expect(operation.result).toBe(SUCCESS);
    }
  }
});

it.each(CASES)("%s: where it fails at a member, or a member ends, none sleeps for ever", (_, bytes, make) => {
  for (let round = 0; round < 4 * ROUNDS; round++) {
    const random = randomOf(SEED + round);
    const size = 2 + random(15);
    const crowd = new Crowd(size, bytes, random);
    const [victim, at, isEnd] = [random(size), random(3 * size), random(2) === 0];
    crowd.operate(make, (step) => {
      if (step !== at) return;
      const { operation, host } = crowd.members[victim] as Sleeper;
      if (!isEnd) host.failed(operation, ERROR, "");
      else {
        crowd.ended = victim;
        // As the monitor does: each looks.
        for (const { shared } of crowd.members) crowd.rig.producer.ring(crowd.rig.task(shared.rank));
      }
    });
    const failure = isEnd ? SHUTDOWN : ERROR;
    for (const { operation, shared } of crowd.members) {
      if (shared.rank !== crowd.ended) expect([SUCCESS, failure]).toContain(operation.result);
    }
  }
});

it(`a flat reduction has at most ${FLAT_MEMBERS} members, and as many find room for what is between`, () => {
  const crowd = new Crowd(FLAT_MEMBERS, MEMBER_INLINE_BYTES, randomOf(SEED));
  for (const { buffers, shared } of crowd.members) buffers.send.fill(shared.rank);
  crowd.operate(({ shared }) => new FlatReduceSteps(shared, undefined));
  const sum = ((FLAT_MEMBERS * (FLAT_MEMBERS - 1)) / 2) % 256;
  for (const { buffers } of crowd.members) {
    expect(new Set(buffers.receive.subarray(0, MEMBER_INLINE_BYTES))).toEqual(new Set([sum]));
  }
  const [{ shared, buffers }] = crowd.members as [Sleeper];
  const fits = (size: number): boolean =>
    FlatReduceSteps.fits({ size } as SharedMembers, MEMBER_INLINE_BYTES, buffers.reducer as Reducer);
  expect([shared.size, shared.size + 1].map(fits)).toEqual([true, false]);
});

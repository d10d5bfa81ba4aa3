// Members of one memory that sleep whenever they have nothing to do: each operation ends, and wakes each member as often as it
// must. All are on this thread: one that sleeps goes on only once its bell has rung.
import { expect, it } from "vitest";
import {
  MEMBER_INLINE_BYTES,
  MEMBER_SIZE,
  MEMBER_SLOTS,
  NONE,
  PAGE_SIZE,
  TASK_BELL_OFFSET,
} from "../../assembly/layout.js";
import type { CollectiveOperation, OperationBuffers, Reducer } from "../../src/collective/operation.js";
import type { Piece, Scratch } from "../../src/collective/scratch.js";
import { SharedMembers } from "../../src/collective/shared/shared-members.js";
import {
  type SharedAlgorithm,
  type SharedHost,
  SharedOperation,
} from "../../src/collective/shared/shared-operation.js";
import {
  BarrierSteps,
  BroadcastSteps,
  FLAT_MEMBERS,
  FlatReduceSteps,
  GatherSteps,
  SliceReduceSteps,
  UniformScatterSteps,
} from "../../src/collective/shared/shared-steps.js";
import { ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import { byEffort } from "../support/effort.js";
import { makeRig } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";

const COLD = { copyCold: (): never => expect.unreachable() };
/** More than fits into a slot. */
const LONG = 2 * MEMBER_INLINE_BYTES;
const ROOT = 1;
/** More than any operation here takes. */
const STEPS_MAX = 20_000;

/** What a member begins. */
interface Begun {
  readonly steps: SharedAlgorithm;
  readonly signature?: number;
  /** Of "send"; all that there are, if not given. */
  readonly bytes?: number;
}

class Sleeper {
  readonly shared: SharedMembers;
  readonly host: SharedHost;
  readonly buffers: OperationBuffers;
  operation!: SharedOperation;
  isAsleep = false;
  /** Whether its thread sleeps in an asynchronous wait, and begins the operation meanwhile. */
  isWaiting = false;
  /** Whether it advances again and again, and never sleeps. */
  isRestless = false;
  /** Whether it goes on at all yet. */
  hasCome = (): boolean => true;
  wakes = 0;
  #seen = 0;
  #number = 0;

  constructor(crowd: Crowd, rank: number, shared: SharedMembers, buffers: OperationBuffers, scratch: Scratch) {
    this.shared = shared;
    this.buffers = buffers;
    const over = (operation: CollectiveOperation, result: Result): void => {
      operation.result = result;
      operation.release();
      shared.complete(operation.number, operation.isMutual && result === SUCCESS);
    };
    const host: Partial<SharedHost> = {
      shared,
      scratch,
      // What a member that lacks memory sends does not come.
      start: () => {},
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

  begin({ steps, signature = 0, bytes = this.buffers.send.length }: Begun): void {
    const buffers = { ...this.buffers, send: this.buffers.send.subarray(0, bytes) };
    this.operation = new SharedOperation(this.host, buffers, steps, () => ({ rounds: [], scratchBytes: 0 }));
    this.operation.number = ++this.#number;
    this.operation.signature = signature;
    this.isAsleep = false;
  }

  /** Its thread falls asleep before the operation begins. Code that is called meanwhile begins it, and looks no more. */
  wait({ rig }: Crowd): void {
    this.isWaiting = true;
    this.#seen = rig.producer.bellArm(rig.task(this.shared.rank));
  }

  /** Goes on. It falls asleep if there is nothing to do. @returns whether its operation is over */
  run({ rig }: Crowd): boolean {
    this.operation.advance();
    const isAsleep = this.isWaiting;
    this.isWaiting = false;
    const task = rig.task(this.shared.rank);
    if (this.operation.isOver) {
      if (isAsleep) rig.producer.bellDisarm(task);
      return true;
    }
    this.isAsleep = isAsleep;
    if (isAsleep || this.isRestless) return false;
    this.#seen = rig.producer.bellArm(task);
    this.isAsleep = !this.operation.lookBeforeSleep();
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
      align: 1,
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
  operate(make: Make, meanwhile: (step: number) => void = () => {}): number {
    return this.run((member) => ({ steps: make(member) }), meanwhile);
  }

  /** As operate(), where members may differ in what they begin. */
  run(begun: (member: Sleeper) => Begun, meanwhile: (step: number) => void = () => {}): number {
    for (const member of this.members) {
      member.begin(begun(member));
      member.wakes = 0;
    }
    this.#told.clear();
    const random = this.#random;
    for (let step = 0; ; step++) {
      meanwhile(step);
      for (const member of this.members) member.look(this);
      const left = this.members.filter(({ operation, shared }) => !operation.isOver && shared.rank !== this.ended);
      if (left.length === 0) return this.members.reduce((sum, { wakes }) => sum + wakes, 0);
      const here = left.filter((member) => member.hasCome());
      const told = here.filter(({ shared }) => this.#told.has(shared.rank));
      const awake = here.filter(({ isAsleep }) => !isAsleep);
      if (told.length > 0 && (awake.length === 0 || random(4) === 0)) {
        const member = told[random(told.length)] as Sleeper;
        const result = this.#told.get(member.shared.rank) as Result;
        this.#told.delete(member.shared.rank);
        member.host.failed(member.operation, result, "");
        member.isAsleep = false;
      } else {
        const names = left.map(({ shared }) => shared.rank);
        expect(awake.length, `members ${names} sleep for ever`).toBeGreaterThan(0);
        expect(step, `members ${names} look for ever`).toBeLessThan(STEPS_MAX);
        (awake[random(awake.length)] as Sleeper).run(this);
      }
    }
  }
}

type Make = (member: Sleeper) => SharedAlgorithm;
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

/** Kinds of operations, some of which have a root, with these bytes of "send" at each member. */
const KINDS: readonly ((root: number, bytes: number) => Make)[] = [
  () => (member) => new BarrierSteps(member.shared),
  (root) => (member) => new BroadcastSteps(member.shared, root),
  (root, bytes) => (member) => new GatherSteps(member.shared, root, blocksOf(member.shared.size, bytes)),
  (_, bytes) => (member) => new GatherSteps(member.shared, undefined, blocksOf(member.shared.size, bytes)),
  (root) => (member) => new UniformScatterSteps(member.shared, root, 1),
  () => (member) => new UniformScatterSteps(member.shared, undefined, 1),
  (root, bytes) => (member) =>
    bytes === LONG
      ? new SliceReduceSteps(member.shared, member.buffers, root)
      : new FlatReduceSteps(member.shared, root),
];

it("where members begin different things, none waits for ever, and none takes what is not for it", () => {
  for (let round = 0; round < 100 * ROUNDS; round++) {
    const random = randomOf(SEED + round);
    const size = 2 + random(5);
    const crowd = new Crowd(size, LONG, random);
    // Two things that members begin: of one kind with other roots or lengths, or of two kinds.
    const kind = random(KINDS.length);
    const choices = [kind, random(2) === 0 ? kind : random(KINDS.length)].map((of) => {
      const [root, bytes] = [random(size), random(2) === 0 ? 16 : LONG];
      return {
        make: (KINDS[of] as (typeof KINDS)[number])(root, bytes),
        bytes,
        signature: 10_000 * of + LONG * root + bytes,
      };
    });
    for (let number = 0; number < 2; number++) {
      const begun = crowd.members.map((member): Begun => {
        const { make, ...choice } = choices[random(2)] as (typeof choices)[number];
        if (random(4) === 0) member.wait(crowd);
        else member.isRestless = random(4) === 0;
        return { ...choice, steps: make(member) };
      });
      crowd.run(({ shared }) => begun[shared.rank] as Begun);
      for (const [rank, { operation }] of crowd.members.entries()) {
        const { steps, signature } = begun[rank] as Begun;
        const isStranger = (other: number): boolean => begun[other]?.signature !== signature;
        const isAlike = !begun.some((_, other) => isStranger(other));
        const should = steps.sources.some(isStranger) ? [ERROR] : isAlike ? [SUCCESS] : [SUCCESS, ERROR];
        expect(should).toContain(operation.result);
      }
    }
  }
});

it("a member whose source begins something else ends, although a third one comes only then", () => {
  for (const [kind, make] of KINDS.entries()) {
    for (let round = 0; round < ROUNDS; round++) {
      const crowd = new Crowd(3, LONG, randomOf(SEED + round));
      const [third, source, reader] = crowd.members as [Sleeper, Sleeper, Sleeper];
      third.hasCome = () => reader.operation.isOver;
      crowd.run((member) => {
        const isOther = member === source;
        return {
          signature: isOther ? kind : -1,
          steps: isOther ? make(0, LONG)(member) : new BroadcastSteps(member.shared, 1),
        };
      });
      expect(reader.operation.result).toBe(ERROR);
    }
  }
});

/** A broadcast whose root has no memory for its bytes: they go by messages. */
class LackingSteps extends BroadcastSteps {
  override publish(): number {
    return NONE;
  }
}

it("members that await messages, as their root has no memory, end once another one has begun something else", () => {
  for (let round = 0; round < 4 * ROUNDS; round++) {
    const random = randomOf(SEED + round);
    const crowd = new Crowd(3, LONG, random);
    const [reader, source, third] = crowd.members as [Sleeper, Sleeper, Sleeper];
    for (const member of [reader, source]) member.isRestless = random(2) === 0;
    // At any time, or once the others sleep, or have looked often.
    let left = random(2) === 0 ? 40 : 0;
    third.hasCome = () => {
      if (reader.isAsleep && source.isAsleep) left = 0;
      return --left < 0;
    };
    crowd.run((member) => {
      const isOther = member === third;
      return {
        signature: isOther ? 1 : 2,
        bytes: isOther ? 8 : LONG,
        steps: isOther ? new BroadcastSteps(member.shared, 2) : new LackingSteps(member.shared, 1),
      };
    });
    expect([reader, source].map(({ operation }) => operation.result)).toEqual([ERROR, ERROR]);
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

// Collective operations of two or three members that share a memory: each writes its block, and reads those of the others.
import { MEMBER_SIZE, MEMBER_SLOTS } from "../../../assembly/layout.js";
import type { CollectiveOperation, OperationBuffers, Reducer } from "../../../src/collective/operation.js";
import type { Piece, Scratch } from "../../../src/collective/scratch.js";
import { SharedMembers } from "../../../src/collective/shared/shared-members.js";
import {
  type SharedAlgorithm,
  type SharedHost,
  SharedOperation,
} from "../../../src/collective/shared/shared-operation.js";
import {
  BarrierSteps,
  BroadcastSteps,
  FlatReduceSteps,
  GatherSteps,
  SliceReduceSteps,
  UniformScatterSteps,
} from "../../../src/collective/shared/shared-steps.js";
import { CANCELED, EAGAIN, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { PAGE, same, setUp, sleepUntil } from "./support.js";

const MEMBERS_MAX = 3;
export const blockOf = (rank: number): number => map.heapBase + PAGE * rank;
/** Memory of the root, or of all members, outside of their slots. */
export const OUTSIDE = map.heapBase + PAGE * MEMBERS_MAX;
/** Scratch memory of each member. */
const scratchOf = (rank: number): number => map.heapBase + PAGE * (MEMBERS_MAX + 1 + rank);
export const WORDS = 2;
/** Nothing here is so long that it is copied so. */
const COLD = {
  copyCold(): never {
    throw new Error("a copy of 8 KiB or more");
  },
};
export const NOTHING: OperationBuffers = { send: new Uint8Array(), receive: new Uint8Array(), reducer: undefined };

/** The first word of what a member has in a round; the others count on from there. */
export const firstOf = (rank: number, round: number): number => 1000 * (rank + 1) + 10 * round;

export const valuesOf = (rank: number, round: number, words = WORDS): number[] =>
  Array.from({ length: words }, (_, word) => firstOf(rank, round) + word);

export function sumsOf(round: number, size = 2, words = WORDS): number[] {
  const all = ranksOf(size).map((rank) => valuesOf(rank, round, words));
  return Array.from({ length: words }, (_, word) => all.reduce((sum, values) => sum + (values[word] as number), 0));
}

export function ranksOf(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

/** The blocks of members that the runtime has, but what it copies byte by byte goes word by word here, with hooks. */
class WordMembers extends SharedMembers {
  readonly #world: World;

  constructor(world: World, rank: number, size: number) {
    const ranks = ranksOf(size);
    const tasks = ranks.map((other) => world.task(other));
    super(world.kernel, COLD, world.memory, rank, ranks.map(blockOf), tasks);
    this.#world = world;
  }

  override read(target: Uint8Array, offset: number, pointer: number, bytes: number): void {
    const words = new Int32Array(target.buffer, target.byteOffset + offset, bytes / 4);
    for (let word = 0; word < words.length; word++) words[word] = this.#world.load(pointer + 4 * word);
  }

  override write(pointer: number, source: Uint8Array): void {
    const words = new Int32Array(source.buffer, source.byteOffset, source.length / 4);
    for (const [word, value] of words.entries()) this.#world.store(pointer + 4 * word, value);
  }
}

/** One member, in its thread. Its task has the same number. */
export class Member {
  readonly world: World;
  readonly shared: SharedMembers;
  readonly rank: number;
  readonly send = new Int32Array(WORDS);
  readonly receive = new Int32Array(WORDS);
  /** Ranks of members whose end this one has heard of. */
  readonly ended = new Set<number>();
  readonly #host: SharedHost;
  /** Operations under way. */
  readonly #active: CollectiveOperation[] = [];
  #number = 0;
  #completed = 0;

  constructor(world: World, rank: number, size: number) {
    this.world = world;
    this.rank = rank;
    const shared = new WordMembers(world, rank, size);
    this.shared = shared;
    const { ended } = this;
    let taken = 0;
    const scratch = {
      take(bytes: number): Piece {
        const pointer = scratchOf(rank) + taken;
        taken += bytes;
        return { pointer, bytes: world.memory.bytes.subarray(pointer, pointer + bytes) };
      },
      giveBack(): void {
        taken = 0;
      },
    };
    // There is always memory, so none sends messages.
    const host: Omit<SharedHost, "size" | "isGone" | "watch" | "send" | "sendLong" | "start"> = {
      shared,
      scratch: scratch as unknown as Scratch,
      get hasAnyEnded() {
        return ended.size > 0;
      },
      hasEnded: (other) => ended.has(other),
      over: (operation, result) => {
        operation.result = result;
        this.#active.splice(this.#active.indexOf(operation), 1);
        const completed = (this.#active[0]?.number ?? this.#number + 1) - 1;
        if (completed === this.#completed) return;
        this.#completed = completed;
        shared.complete(completed, operation.isMutual && result === SUCCESS);
      },
      failed(operation, result, why) {
        if (operation.isStopped) return;
        operation.why = why;
        operation.failure = result;
        operation.abandon(result);
        if (!operation.isSending) this.over(operation, result);
      },
      sent(operation) {
        this.over(operation, operation.failure);
      },
    };
    this.#host = host as SharedHost;
  }

  get buffers(): OperationBuffers {
    return { send: bytesOf(this.send), receive: bytesOf(this.receive), reducer: this.#sum };
  }

  /** One operation, from its begin to its end. */
  run(steps: SharedAlgorithm, buffers = this.buffers): void {
    const operation = this.#begun(steps, buffers);
    sleepUntil(this.world, this.world.task(this.rank), operation.look);
    if (operation.result !== SUCCESS) throw new Error(`operation ${operation.number}: ${operation.why}`);
  }

  /** As run(), begun by meet(). */
  runMeeting(steps: SharedAlgorithm, buffers = this.buffers): void {
    const operation = this.#begun(steps, buffers);
    if (operation.meet()) this.#host.over(operation, SUCCESS);
    else sleepUntil(this.world, this.world.task(this.rank), operation.look);
    if (operation.result !== SUCCESS) throw new Error(`operation ${operation.number}: ${operation.why}`);
  }

  /** An operation that fails at a member once it has arrived. The others hear of it before they look on. Returns the result. */
  runToFailure(steps: SharedAlgorithm, buffers: OperationBuffers, failing: number): Result {
    const { shared, world, rank } = this;
    const operation = this.#begun(steps, buffers);
    const source = shared.slotOf(failing, operation.number);
    const hear = (): boolean => shared.hasArrived(source, operation.number) && shared.failureIn(source) !== SUCCESS;
    operation.advance();
    if (rank === failing) this.#host.failed(operation, ERROR, "it is to fail");
    sleepUntil(world, world.task(rank), () => {
      if (rank !== failing && hear()) this.#host.failed(operation, ERROR, "it has failed elsewhere");
      return operation.look();
    });
    return operation.result;
  }

  /** An operation after whose arrival the root's context closes: nothing waits for those that read its memory. */
  runToClose(steps: SharedAlgorithm, buffers: OperationBuffers): Result {
    const operation = this.#begun(steps, buffers);
    operation.advance();
    if (this.rank === 0) this.#host.failed(operation, CANCELED, "its context closes");
    else sleepUntil(this.world, this.world.task(this.rank), operation.look);
    return operation.result;
  }

  /**
   * An operation that others may not have begun: they have begun another one by this number. Each hears of failures elsewhere.
   * It is begun by meet() if it may be. The last look before a sleep is that of a context.
   */
  runAmongStrangers(steps: SharedAlgorithm, buffers: OperationBuffers, signature: number): Result {
    const { shared, world, rank } = this;
    const operation = this.#begun(steps, buffers);
    operation.signature = signature;
    const { number } = operation;
    if (operation.mayMeet && operation.meet()) this.#host.over(operation, SUCCESS);
    const hear = (): boolean => {
      const slots = ranksOf(shared.size).map((other) => shared.slotOf(other, number));
      return slots.some((slot) => shared.hasArrived(slot, number) && shared.failureIn(slot) !== SUCCESS);
    };
    const task = world.task(rank);
    while (!operation.look()) {
      const seen = world.kernel.bellArm(task);
      const isTold = operation.failure === EAGAIN && hear();
      if (!isTold && !operation.lookBeforeSleep()) world.kernel.bellWait(task, seen, -1);
      world.kernel.bellDisarm(task);
      if (isTold) this.#host.failed(operation, ERROR, "it has failed elsewhere");
    }
    return operation.result;
  }

  /** An operation while others may end, begun by meet() if it may be. @param hear called before each look: whether it is to fail */
  runAmongMortals(
    steps: SharedAlgorithm,
    buffers: OperationBuffers,
    hear: (operation: SharedOperation) => boolean,
  ): Result {
    const operation = this.#begun(steps, buffers);
    if (operation.mayMeet && operation.meet()) this.#host.over(operation, SUCCESS);
    else
      sleepUntil(this.world, this.world.task(this.rank), () => {
        if (hear(operation)) this.#host.failed(operation, SHUTDOWN, "a member has ended");
        return operation.look();
      });
    return operation.result;
  }

  /** Begins an operation that never ends, so that this member completes nothing any more. */
  beginForGood(): void {
    this.#begun(new BarrierSteps(this.shared), NOTHING);
  }

  #begun(steps: SharedAlgorithm, buffers: OperationBuffers): SharedOperation {
    const operation = new SharedOperation(this.#host, buffers, steps);
    operation.number = ++this.#number;
    this.#active.push(operation);
    return operation;
  }

  /** Throws if this member has received something else. */
  expect(round: number, should: readonly number[]): void {
    same(`what member ${this.rank} has of round ${round}`, [...this.receive], should);
  }

  readonly #sum: Reducer = {
    elementBytes: 4,
    align: 1,
    isUser: false,
    reduce: (out, left, right, bytes) => {
      const { world } = this;
      for (let at = 0; at < bytes; at += 4) world.store(out + at, world.load(left + at) + world.load(right + at));
    },
  };
}

export function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A broadcast of bytes that stay where they are, however few they are. */
export class OutsideSteps extends BroadcastSteps {
  readonly #isRoot: boolean;

  constructor(shared: SharedMembers, root = 0) {
    super(shared, root);
    this.#isRoot = shared.rank === root;
  }

  override publish(operation: SharedOperation): number {
    return this.#isRoot ? operation.pointerTo(operation.buffers.send) : 0;
  }
}

/** As OutsideSteps, where the root may write its memory while it is read: then what was read does not count. */
class RacingSteps extends OutsideSteps {
  readonly #world: World;

  constructor({ world, shared }: Member) {
    super(shared);
    this.#world = world;
  }

  override arrived({ buffers }: SharedOperation, _rank: number, pointer: number): void {
    const words = new Int32Array(buffers.receive.buffer, buffers.receive.byteOffset, WORDS);
    for (let word = 0; word < WORDS; word++) words[word] = this.#world.kernel.loadWord(pointer + 4 * word);
  }
}

/** As GatherSteps and UniformScatterSteps, of words that stay where they are, however few they are. */
export class OutsideGatherSteps extends GatherSteps {
  override publish({ shared, buffers }: SharedOperation, slot: number): number {
    shared.noteLength(slot, buffers.send.length);
    return shared.pointerOf(buffers.send);
  }
}

class OutsideAlltoallSteps extends UniformScatterSteps {
  override publish({ shared, buffers }: SharedOperation): number {
    return shared.pointerOf(buffers.send);
  }
}

/** A reduction by slices, of operands and to results that stay where they are. */
export class SliceSteps extends SliceReduceSteps {
  readonly #world: World;

  constructor({ world, shared }: Member, buffers: OperationBuffers) {
    super(shared, buffers, undefined);
    this.#world = world;
  }

  /** So few words would be read in the slot: the others are to read this member's memory instead. */
  override publish(operation: SharedOperation, slot: number): number {
    super.publish(operation, slot);
    return operation.pointerTo(operation.buffers.send);
  }

  override takeSlice({ shared, buffers }: SharedOperation, rank: number, pointer: number): void {
    const place = shared.pointerOf(buffers.receive) + 4 * rank;
    if (place !== pointer) this.#world.store(place, this.#world.load(pointer));
  }
}

/** What a member does in each round. */
type Round = (member: Member, round: number) => void;

/** @param isMeeting whether the barriers of odd rounds begin by meet() */
function barrier(isMeeting = false): Round {
  return (member, round) => {
    const { world, rank, shared } = member;
    // A word of each member, written before the barrier and read behind it.
    const place = (of: number): number => OUTSIDE + 4 * (MEMBERS_MAX * round + of);
    world.store(place(rank), firstOf(rank, round));
    const steps = new BarrierSteps(member.shared);
    if (isMeeting && round % 2 === 1) member.runMeeting(steps, NOTHING);
    else member.run(steps, NOTHING);
    for (let of = 0; of < shared.size; of++)
      same(`word of member ${of}`, [world.load(place(of))], [firstOf(of, round)]);
  };
}

/** @param isMeeting whether they begin by meet() */
function allreduce(isMeeting = false): Round {
  return (member, round) => {
    member.send.set(valuesOf(member.rank, round));
    const steps = new FlatReduceSteps(member.shared, undefined);
    if (isMeeting) member.runMeeting(steps);
    else member.run(steps);
    member.expect(round, sumsOf(round, member.shared.size));
  };
}

export const viewOf = ({ memory }: World, at: number, words: number): Uint8Array =>
  memory.bytes.subarray(at, at + 4 * words);

/** Slices of a word each, reduced straight into the memory of the member that gets them. */
function reduceBySlices(member: Member, round: number): void {
  const { world, rank } = member;
  const { size } = member.shared;
  const [send, receive] = [OUTSIDE + 64 * rank, OUTSIDE + 64 * rank + 32];
  for (const [word, value] of valuesOf(rank, round, size).entries()) {
    world.store(send + 4 * word, value);
    world.store(receive + 4 * word, 0);
  }
  const buffers = { ...member.buffers, send: viewOf(world, send, size), receive: viewOf(world, receive, size) };
  member.run(new SliceSteps(member, buffers), buffers);
  const has = Array.from({ length: size }, (_, word) => world.load(receive + 4 * word));
  same(`what member ${rank} has of round ${round}`, has, sumsOf(round, size, size));
}

/** Each gets a word of each. @param isInline whether they go into the slots */
function allgather(isInline: boolean): Round {
  return (member, round) => {
    const { world, rank, shared } = member;
    const { size } = shared;
    const own = OUTSIDE + 64 * rank;
    world.store(own, firstOf(rank, round));
    const receive = new Int32Array(size);
    const send = isInline ? bytesOf(Int32Array.of(firstOf(rank, round))) : viewOf(world, own, 1);
    const blocks = { counts: ranksOf(size).map(() => 4), offsets: ranksOf(size).map((other) => 4 * other) };
    const steps = new (isInline ? GatherSteps : OutsideGatherSteps)(shared, undefined, blocks);
    member.run(steps, { ...NOTHING, send, receive: bytesOf(receive) });
    same(
      `what member ${rank} has of round ${round}`,
      [...receive],
      ranksOf(size).map((other) => firstOf(other, round)),
    );
  };
}

/** Each has a word for each, in memory that it writes anew at once. */
function alltoall(member: Member, round: number): void {
  const { world, rank, shared } = member;
  const { size } = shared;
  const own = OUTSIDE + 64 * rank;
  for (const [word, value] of valuesOf(rank, round, size).entries()) world.store(own + 4 * word, value);
  const receive = new Int32Array(size);
  const steps = new OutsideAlltoallSteps(shared, undefined, 4);
  member.run(steps, { ...NOTHING, send: viewOf(world, own, size), receive: bytesOf(receive) });
  same(
    `what member ${rank} has of round ${round}`,
    [...receive],
    ranksOf(size).map((other) => firstOf(other, round) + rank),
  );
}

/** Between two reductions, the root is as far ahead as the slots permit: it meets the other in the first slot again. */
function broadcastBetweenMeetings(member: Member, round: number): void {
  if (round === 1 || round === MEMBER_SLOTS + 1) allreduce(true)(member, round);
  else reduceThenBroadcast(member, round);
}

/** After a reduction, the root is as far ahead as the slots permit, and it knows how far the other was then. */
function reduceThenBroadcast(member: Member, round: number): void {
  if (round === 1) {
    allreduce()(member, round);
    return;
  }
  member.send.set(valuesOf(0, round));
  member.run(new BroadcastSteps(member.shared, 0));
  if (member.rank !== 0) member.expect(round, valuesOf(0, round));
}

/** The reader completes one operation, and the next one only after the root has got the slot of the first again. */
function broadcastAhead(member: Member, round: number): void {
  const { world, rank, shared } = member;
  const awaited = MEMBER_SLOTS + 1;
  if (round === 2 && rank !== 0) {
    sleepUntil(world, world.task(rank), () => shared.hasArrived(shared.slotOf(0, awaited), awaited));
  }
  member.send.set(valuesOf(0, round));
  member.run(new BroadcastSteps(shared, 0));
  if (rank !== 0) member.expect(round, valuesOf(0, round));
}

/** @param failing a round that fails at the root */
function broadcastFromOutside(failing = 0): Round {
  return (member, round) => {
    const { world, rank, shared } = member;
    if (rank === 0) for (const [word, value] of valuesOf(0, round).entries()) world.store(OUTSIDE + 4 * word, value);
    const send = world.memory.bytes.subarray(OUTSIDE, OUTSIDE + 4 * WORDS);
    const buffers = { ...member.buffers, send };
    let result: Result = SUCCESS;
    if (round === failing) result = member.runToFailure(new OutsideSteps(shared), buffers, 0);
    else member.run(new OutsideSteps(shared), buffers);
    if (rank !== 0 && result === SUCCESS) member.expect(round, valuesOf(0, round));
  };
}

/** The root's context closes, and the root's memory is written anew at once. */
function closing(member: Member, round: number): void {
  const { world, rank } = member;
  const word = (place: number): number => OUTSIDE + 4 * place;
  if (rank === 0) for (const [place, value] of valuesOf(0, round).entries()) world.store(word(place), value);
  const send = world.memory.bytes.subarray(OUTSIDE, OUTSIDE + 4 * WORDS);
  const result = member.runToClose(new RacingSteps(member), { ...member.buffers, send });
  if (rank === 0) for (let place = 0; place < WORDS; place++) world.kernel.storeWord(word(place), 0);
  else if (result === SUCCESS) member.expect(round, valuesOf(0, round));
}

/** A broadcast fails while an earlier operation is under way: so no member tells that it has completed it. */
function failing(member: Member, round: number): void {
  member.beginForGood();
  broadcastFromOutside(round)(member, round);
}

/** What a member begins while others begin something else. */
type Act = (member: Member) => [steps: SharedAlgorithm, buffers: OperationBuffers];

const barrierAct: Act = ({ shared }) => [new BarrierSteps(shared), NOTHING];
const shortBroadcast =
  (root: number): Act =>
  (member) => [new BroadcastSteps(member.shared, root), member.buffers];
const outsideOf = ({ rank, world }: Member): Uint8Array => viewOf(world, OUTSIDE + 64 * rank, WORDS);
const longBroadcast =
  (root: number): Act =>
  (member) => [new OutsideSteps(member.shared, root), { ...member.buffers, send: outsideOf(member) }];
/** From where the words lie, or from slots. */
const gatherTo =
  (root: number, Gather: typeof GatherSteps): Act =>
  (member) => {
    const ranks = ranksOf(member.shared.size);
    const blocks = { counts: ranks.map(() => 4 * WORDS), offsets: ranks.map((rank) => 4 * WORDS * rank) };
    const receive = bytesOf(new Int32Array(WORDS * ranks.length));
    return [new Gather(member.shared, root, blocks), { ...NOTHING, send: outsideOf(member), receive }];
  };

/**
 * Members that begin different things under one number; two, a barrier behind that.
 * @param acts those that are the same object differ in nothing
 * @param isLate whether the last one begins only once the first one is through
 */
function strangers(name: string, acts: readonly Act[], bound = 2, isLate = false): Scenario {
  const ranks = ranksOf(acts.length);
  const last = acts.length - 1;
  const through = OUTSIDE + PAGE - 4;
  const thread = (rank: number) => (world: World) => {
    const { kernel } = world;
    const member = new Member(world, rank, acts.length);
    const act = acts[rank] as Act;
    const [steps, buffers] = act(member);
    if (isLate && rank === last) sleepUntil(world, world.task(rank), () => kernel.loadWord(through) !== 0);
    const isCheated = steps.sources.some((source) => acts[source] !== act);
    const result = member.runAmongStrangers(steps, buffers, acts.indexOf(act));
    if (isCheated || result !== SUCCESS) same(`the result of member ${rank}`, [result], [ERROR]);
    if (acts.length === 2) member.run(new BarrierSteps(member.shared), NOTHING);
    world.note(rank);
    if (!isLate || rank !== 0) return;
    kernel.storeWord(through, 1);
    kernel.ring(world.task(last));
  };
  return {
    name: `members: ${name}`,
    bound,
    setup(world) {
      setUpMembers(world, ranks);
      world.setWord(through, 0);
    },
    threads: ranks.map(thread),
    check: (_, notes) => same("members that are through", notes.flat(), ranks),
  };
}

const [fromFirst, fromSecond, fromThird] = [0, 1, 2].map(shortBroadcast) as [Act, Act, Act];
const [longFromFirst, longFromSecond] = [0, 1].map(longBroadcast) as [Act, Act];
const [toFirst, toSecond] = [0, 1].map((root) => gatherTo(root, OutsideGatherSteps)) as [Act, Act];
const toThird = gatherTo(2, GatherSteps);

export const STRANGER_SCENARIOS: readonly Scenario[] = [
  strangers("two that take each other for the root of a broadcast", [fromSecond, fromFirst]),
  strangers("two roots of one broadcast from their memory", [longFromFirst, longFromSecond]),
  strangers("a root of a broadcast from its memory, and one of a broadcast from its slot", [longFromFirst, fromSecond]),
  strangers("three, one of which has another root for a broadcast", [fromFirst, fromFirst, fromSecond], 1),
  strangers("three, each of which takes the next for the root of a broadcast", [fromSecond, fromThird, fromFirst], 1),
  strangers("three, one of which has another root for a gather from memory", [toSecond, toSecond, toFirst], 1),
  strangers("a barrier of two, of whom the third one awaits a broadcast", [barrierAct, barrierAct, fromSecond], 1),
  strangers(
    "a broadcast's reader, whose root is through, while a third one is late",
    [fromSecond, toThird, toThird],
    2,
    true,
  ),
  strangers(
    "a broadcast's reader, whose root is in a barrier, while a third one is late",
    [fromSecond, barrierAct, barrierAct],
    1,
    true,
  ),
];

export function setUpMembers(world: World, ranks: readonly number[]): void {
  setUp(world, ranks);
  for (const rank of ranks) {
    for (let at = 0; at < MEMBER_SIZE; at += 4) world.setWord(blockOf(rank) + at, 0);
  }
}

function members(name: string, rounds: number, round: Round, bound = 2, size = 2): Scenario {
  const ranks = ranksOf(size);
  const thread = (rank: number) => (world: World) => {
    const member = new Member(world, rank, size);
    for (let i = 1; i <= rounds; i++) round(member, i);
    world.note(rounds);
  };
  return {
    name: `members: ${name}`,
    bound,
    setup: (world) => setUpMembers(world, ranks),
    threads: ranks.map(thread),
    check(_, notes) {
      same(
        "rounds",
        notes.flat(),
        ranks.map(() => rounds),
      );
    },
  };
}

export const MEMBER_SCENARIOS: readonly Scenario[] = [
  members("barriers, more than there are slots", MEMBER_SLOTS + 2, barrier(), 1),
  members("reductions in a row, each of other operands", 3, allreduce()),
  members("members that meet in barriers, more than there are slots", MEMBER_SLOTS + 2, barrier(true), 1),
  members("members that meet in reductions, each of other operands", 3, allreduce(true)),
  members("members that meet, and again once all slots were used", MEMBER_SLOTS + 1, broadcastBetweenMeetings, 1),
  members("three members that meet in two barriers", 2, barrier(true), 1, 3),
  members(
    "a root that broadcasts more than there are slots before its reader looks",
    MEMBER_SLOTS + 3,
    reduceThenBroadcast,
    1,
  ),
  members("a root that gets one slot back from its reader, and no other", MEMBER_SLOTS + 1, broadcastAhead, 1),
  members("a broadcast from memory that its root writes anew at once", 3, broadcastFromOutside()),
  members("a broadcast that fails at its root, which writes its memory anew", 2, broadcastFromOutside(1)),
  members("two barriers of three", 2, barrier(), 1, 3),
  members("broadcasts to two readers from memory that their root writes anew", 2, broadcastFromOutside(), 1, 3),
  members("a broadcast that fails at its root, and at one of two readers", 1, broadcastFromOutside(1), 1, 3),
  members("a broadcast that fails behind an operation that goes on", 1, failing),
  members("a broadcast whose root closes its context, and writes its memory anew", 1, closing),
  members("reductions by slices, in memory that is written anew at once", 2, reduceBySlices),
  members("a reduction by slices of three", 1, reduceBySlices, 1, 3),
  members("allgathers in slots", 3, allgather(true)),
  members("allgathers of memory that is written anew at once", 2, allgather(false)),
  members("an allgather of three, from their memory", 1, allgather(false), 1, 3),
  members("all-to-alls of memory that is written anew at once", 2, alltoall),
  members("an all-to-all of three, from their memory", 1, alltoall, 1, 3),
];

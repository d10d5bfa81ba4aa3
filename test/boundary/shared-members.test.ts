// The MEMBER blocks of two members, without operations: what is in a slot after calls in an order that is rare.
import { expect, it } from "vitest";
import { MEMBER_SIZE, MEMBER_SLOTS, PAGE_SIZE } from "../../assembly/layout.js";
import { SharedMembers } from "../../src/collective/shared/shared-members.js";
import { ERROR, SUCCESS } from "../../src/core/result.js";
import { makeRig } from "../support/kernels.js";

/** Nothing here is so long that it is copied so. */
const COLD = { copyCold: (): never => expect.unreachable() };

function pair(): [SharedMembers, SharedMembers] {
  const rig = makeRig({ heapBytes: 4 * PAGE_SIZE });
  const { memory, map } = rig;
  const blocks = [map.heapBase, map.heapBase + PAGE_SIZE];
  for (const block of blocks) memory.bytes.fill(0, block, block + MEMBER_SIZE);
  const tasks = [rig.task(0), rig.task(1)];
  const [one, other] = [0, 1].map((rank) => new SharedMembers(rig.producer, COLD, memory, rank, blocks, tasks));
  return [one as SharedMembers, other as SharedMembers];
}

/** The first member waits for a slot; the second one gives some back, and the next operation finds that out first. */
function overtaken(): { one: SharedMembers; held: number; next: number; slot: number } {
  const [one, other] = pair();
  for (let number = 1; number <= MEMBER_SLOTS; number++) one.arrive(number, SUCCESS, 0, 0);
  one.complete(MEMBER_SLOTS, false);
  const [held, next] = [MEMBER_SLOTS + 1, MEMBER_SLOTS + 2];
  expect(one.mayEnter(held)).toBe(false);
  other.complete(2, false);
  expect(one.mayEnter(next)).toBe(true);
  return { one, held, next, slot: other.slotOf(0, next) };
}

it("a member that has said in its slots what it has completed, and stored nothing, gives its slots back", () => {
  const [one, other] = pair();
  for (let number = 1; number <= MEMBER_SLOTS; number++) {
    for (const member of [one, other]) member.arrive(number, SUCCESS, 0, 0);
    one.note(1, one.slotOf(1, number));
    for (const member of [one, other]) member.complete(number, true);
  }
  const last = MEMBER_SLOTS - 1 + MEMBER_SLOTS;
  expect(one.mayEnter(last)).toBe(true);
  expect(one.mayEnter(last + 1)).toBe(false);
  expect(one.laggard(last + 1)).toBe(1);
  // The vain look at what is stored, which is 0, has not undone that.
  expect(one.mayEnter(last)).toBe(true);
  other.complete(MEMBER_SLOTS + 1, false);
  expect(one.mayEnter(last + 1)).toBe(true);
});

it("an operation that waited for its slot leaves the result of one that has arrived before it", () => {
  const { one, held, next, slot } = overtaken();
  one.arrive(next, ERROR, 0, 0);
  one.arrive(held, SUCCESS, 0, 0);
  expect(one.hasArrived(slot, next)).toBe(true);
  expect(one.resultIn(slot)).toBe(ERROR);
});

it("an operation that waited for its slot leaves the failure of one that has arrived before it", () => {
  const { one, held, next, slot } = overtaken();
  one.arrive(next, SUCCESS, 0, 0);
  one.fail(next, ERROR);
  one.arrive(held, SUCCESS, 0, 0);
  expect(one.failureIn(slot)).toBe(ERROR);
});

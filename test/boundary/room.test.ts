// whenRoom() behind a large send that was refused: it waits for what the send lacks, which may be memory, or a place in the
// pending queue. Told sooner, a caller would be refused again and again. Both tasks are this thread's.
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { TASK_SLEEPS_OFFSET } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { MemRegion } from "../../src/core/region.js";
import { EAGAIN, ENOMEM, type Result, SUCCESS } from "../../src/core/result.js";
import { selectKernel } from "../../src/kernel/select.js";
import { type Limits, taskSlot } from "../../src/memory/map.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import type { Context } from "../../src/pami/context.js";
import { makeClient } from "../../src/start/client.js";
import { portsJob } from "../support/ports-job.js";

const KIB = 1024;
const MIB = 1024 * KIB;
/** A payload that goes in a buffer, or in packets. */
const LARGE = 200 * KIB;
const LIMITS: Limits = {
  tasks: 2,
  contexts: 2,
  laneBytes: 4096,
  heapBytes: 2 * MIB,
  regions: 512,
  fifos: 2,
  slots: 16,
};
const WHOLE = 1;

function rigOf(clients: readonly Client[], pendingBytes: number, between: () => Promise<void>) {
  const [ours, theirs] = clients as [Client, Client];
  const origin = ours.createContext({ pendingBytes });
  const [target, other] = [theirs.createContext(), theirs.createContext()];
  let came = 0;
  for (const context of [target, other]) context.dispatch(WHOLE, () => void came++);
  // Lanes, before the heap is full.
  for (const { endpoint } of [target, other]) expect(origin.sendImmediate(endpoint, WHOLE)).toBe(SUCCESS);
  const turn = async (...readers: Context[]): Promise<void> => {
    for (let turns = 0; turns < 20; turns++) {
      origin.advance();
      await between();
      for (const reader of readers) reader.advance();
      await between();
    }
  };
  /** Sends as large a payload, which the pending queue would copy. */
  const send = (to: Context, bytes = LARGE, queue = true): Result =>
    origin.send({ to: to.endpoint, dispatch: WHOLE, payload: new Uint8Array(bytes), queue });
  /** Turns in which both targets read, until something has come about. */
  const turnUntil = async (isOver: () => boolean): Promise<void> => {
    for (let turns = 0; !isOver(); turns++) {
      expect(turns).toBeLessThan(100);
      await turn(target, other);
    }
  };
  const told: Result[] = [];
  const whenRoom = (bytes = LARGE): void =>
    origin.whenRoom(target.endpoint, bytes, (_, result) => void told.push(result));
  const close = (): void => {
    for (const client of clients) client.close();
  };
  return { ours, theirs, origin, target, other, turn, turnUntil, send, told, whenRoom, close, came: () => came };
}

function shared(kernel: KernelName, pendingBytes = 0) {
  const { map, shared, memory } = makeJobMemory({ limits: LIMITS, isFixed: true, base: 0 }, kernel === "wasm");
  const parts = { kernel: selectKernel(kernel, shared, memory), memory, map };
  const clients = [0, 1].map((task) => makeClient({ ...parts, task }));
  const sleeps = (): number => parts.kernel.loadWord(taskSlot(map, 0) + TASK_SLEEPS_OFFSET);
  return { ...rigOf(clients, pendingBytes, () => nextTurn()), sleeps };
}

/** Takes all memory that regions get. */
function fillHeap({ theirs }: { theirs: Client }): MemRegion[] {
  const regions: MemRegion[] = [];
  for (let bytes = MIB; bytes >= 4 * KIB; bytes /= 2) {
    try {
      for (;;) regions.push(theirs.createRegion(bytes));
    } catch (error) {
      expect(error).toMatchObject({ code: "PAMIR_NO_MEMORY" });
    }
  }
  return regions;
}

describe.each(["wasm", "ts"] as const)("whenRoom() behind a large send that was refused: %s", (kernel) => {
  it("waits for memory, where the message must not wait in the pending queue", async () => {
    const rig = shared(kernel);
    const { target, other, turn, send, told, whenRoom, close } = rig;
    const regions = fillHeap(rig);
    await turn(target, other);
    for (let round = 0; round < 3; round++) {
      expect(send(target, LARGE, round !== 1)).toBe(EAGAIN);
      whenRoom();
      await turn(target, other);
      expect(told.length).toBe(round);
      const [largest] = regions.splice(0, 1);
      largest?.close();
      await turn(target, other);
      expect(told.length).toBe(round + 1);
      expect(send(target, LARGE, round !== 1)).toBe(SUCCESS);
      await turn(target, other);
      expect(rig.came()).toBe(3 + 2 * round);
      // The pool gives its memory back, and others take it.
      expect(rig.origin.purge([target.endpoint])).toBe(SUCCESS);
      await turn(target, other);
      regions.unshift(...fillHeap(rig));
      rig.origin.sendImmediate(target.endpoint, WHOLE);
      await turn(target, other);
    }
    expect(told).toEqual([SUCCESS, SUCCESS, SUCCESS]);
    close();
  });

  it.each([true, false])(
    "tells of ENOMEM for what a larger lane alone takes, as its send does; queued: %s",
    async (queue) => {
      const rig = shared(kernel);
      const { target, other, turn, send, told, whenRoom, close } = rig;
      const regions = fillHeap(rig);
      await turn(target, other);
      expect(send(target, LARGE, queue)).toBe(EAGAIN);
      // Memory for LARGE may never come, and these do not wait for it.
      whenRoom(10 * KIB);
      whenRoom(100);
      await turn(target, other);
      expect(told).toEqual([ENOMEM, SUCCESS]);
      expect(send(target, 10 * KIB, queue)).toBe(ENOMEM);
      for (const region of regions) region.close();
      close();
    },
  );

  it("sleeps while it waits, and is told of memory that another task frees", async () => {
    const rig = shared(kernel);
    const { origin, target, other, turn, send, close } = rig;
    const regions = fillHeap(rig);
    await turn(target, other);
    expect(send(target)).toBe(EAGAIN);
    let isTold = false;
    const wait = origin.whenRoom(target.endpoint, LARGE).then(() => {
      isTold = true;
    });
    const before = rig.sleeps();
    for (let naps = 0; rig.sleeps() < before + 3; naps++) {
      expect(naps).toBeLessThan(1000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(isTold).toBe(false);
    for (const region of regions) region.close();
    await turn(target, other);
    await wait;
    expect(send(target)).toBe(SUCCESS);
    close();
  });

  it("waits until another target has read, where the pool is all in flight to that one", async () => {
    const rig = shared(kernel);
    const { target, other, turn, send, told, whenRoom, close } = rig;
    await turn(target, other);
    while (send(other) === SUCCESS);
    expect(send(target)).toBe(EAGAIN);
    whenRoom();
    await turn(target);
    expect(told).toEqual([]);
    await turn(target, other);
    expect(told).toEqual([SUCCESS]);
    expect(send(target)).toBe(SUCCESS);
    close();
  });

  it.each([LARGE, 10 * KIB])("waits for a place in the pending queue for %i bytes, without memory", async (bytes) => {
    const rig = shared(kernel, 300 * KIB);
    const { target, other, turn, turnUntil, send, told, whenRoom, close } = rig;
    fillHeap(rig);
    await turn(target, other);
    expect(send(other, 295 * KIB)).toBe(SUCCESS);
    expect(send(target, bytes)).toBe(EAGAIN);
    whenRoom(bytes);
    await turn(target);
    expect(told).toEqual([]);
    await turnUntil(() => told.length > 0);
    expect(told).toEqual([SUCCESS]);
    expect(send(target, bytes)).toBe(SUCCESS);
    await turnUntil(() => rig.came() === 4);
    close();
  });
});

it("whenRoom() waits for a place in the pending queue where tasks share no memory", async () => {
  const { tasks, turn: between } = portsJob(LIMITS, ["wasm", "ts"]);
  const rig = rigOf(
    tasks.map(({ client }) => client),
    8 * MIB,
    between,
  );
  const { target, other, turn, turnUntil, send, told, whenRoom, close } = rig;
  await turn(target, other);
  expect(send(other, 8 * MIB - LARGE + 1)).toBe(SUCCESS);
  expect(send(target)).toBe(EAGAIN);
  whenRoom();
  await turn(target);
  expect(told).toEqual([]);
  await turnUntil(() => told.length > 0);
  expect(told).toEqual([SUCCESS]);
  expect(send(target)).toBe(SUCCESS);
  close();
});

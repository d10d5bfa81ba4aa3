// How often the agent looks through the blocks of all bound slots. With 256 of them, a look takes microseconds, and the agent may
// get hundreds of thousands of frames a second.
import { describe, expect, it } from "vitest";
import {
  CONTEXT_OPEN,
  CONTEXT_READY_OFFSET,
  CONTEXT_STATE_OFFSET,
  KIND_MESSAGE,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { endpointOf } from "../../src/core/endpoint.js";
import { selectKernel } from "../../src/kernel/select.js";
import { contextBlock, ordinalOf, taskSlot } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { Agent } from "../../src/transport/net/agent.js";
import type { Frame, OnFrame, Pipe } from "../../src/transport/net/frames.js";
import { CREDIT_BYTES } from "../../src/transport/net/records.js";
import { ShmLanes } from "../../src/transport/shm/lanes.js";
import { frameWith } from "../support/record.js";
import { copyOfFrame, WholeFrames } from "../support/whole-frames.js";

const SLOTS = 256;
const LIMITS = { tasks: 1024, contexts: 1, laneBytes: 65_536, heapBytes: 2 ** 24, regions: 16, fifos: 1, slots: 4 };
const FRAMES = 1000;
/** A task of another node. */
const ONE = 70;

/** The other nodes: what is sent to them is kept. */
class Others extends WholeFrames implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = true;
  readonly talkedTo = new Set<number>();
  readonly sent: Frame[] = [];
  firstTaskOf = (task: number): number => task;
  receivesFrom = (): boolean => true;
  drop = (): boolean => true;
  send(_from: number, _to: number, frame: Frame): void {
    this.sent.push(copyOfFrame(frame));
  }
}

describe.each(["wasm", "ts"] as const)("%s", (name) => {
  function make() {
    const limits = nodeLimits(LIMITS, 1, SLOTS);
    const { map, shared, memory } = makeJobMemory({ limits, isFixed: true, base: 0, first: 0 }, name === "wasm");
    const kernel = selectKernel(name, shared, memory);
    let looks = 0;
    // The first ready words of the blocks that stand for tasks of other nodes.
    const watched = new Set<number>();
    for (let slot = 1; slot < map.tasks; slot++)
      watched.add(contextBlock(map, ordinalOf(map, slot, 0)) + CONTEXT_READY_OFFSET);
    const loadWord = kernel.loadWord.bind(kernel);
    kernel.loadWord = (pointer) => {
      if (watched.has(pointer)) looks++;
      return loadWord(pointer);
    };
    const pipe = new Others();
    const agent = new Agent(kernel, memory, map, pipe, false);
    const context = contextBlock(map, 0);
    kernel.storeWord(taskSlot(map, 0) + TASK_STATE_OFFSET, TASK_UP);
    kernel.storeWord(context + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
    for (let task = ONE; task < ONE + SLOTS; task++) agent.addresses.bind(task, map.tasks);
    agent.turn();
    /** Looks at blocks during a call. */
    const looksOf = (call: () => void): number => {
      const before = looks;
      call();
      return looks - before;
    };
    return { map, memory, kernel, agent, pipe, context, looksOf };
  }

  it(`a turn looks at the block of each of ${SLOTS} bound slots`, () => {
    const { agent, looksOf } = make();
    expect(looksOf(() => agent.turn())).toBe(SLOTS);
  });

  it(`${FRAMES} frames without a credit: no look at any block, alone or together`, () => {
    const { kernel, agent, pipe, context, looksOf } = make();
    const records = frameWith(KIND_MESSAGE, 1, new Uint8Array(8));
    let came = 0;
    const say = (): void => {
      expect(pipe.onFrame(endpointOf(ONE, 0), endpointOf(0, 0), { records })).toBe(true);
      const count = kernel.advance(context, 1) & 0xffff;
      if (count > 0) kernel.release(context);
      came += count;
    };
    const looks = looksOf(() => {
      for (let frame = 0; frame < FRAMES / 2; frame++) say();
      agent.beginBatch();
      for (let frame = 0; frame < FRAMES / 2; frame++) say();
      agent.endBatch();
    });
    expect({ looks, came }).toEqual({ looks: 0, came: FRAMES });
  });

  it("a credit for a pair that was held back: its records go at once, and no other block is looked at", () => {
    const { map, memory, kernel, agent, pipe, looksOf } = make();
    const body = new Uint8Array(8192);
    const lanes = new ShmLanes(kernel, memory, map, 0);
    const target = agent.addresses.ordinalOf(endpointOf(ONE, 0));
    const put = (): boolean => {
      lanes.ensure(target, body.length);
      const lane = lanes.open[target] as number;
      const pointer = kernel.laneReserve(lane, body.length);
      if (pointer !== 0) kernel.laneCommit(lane, KIND_MESSAGE, body.length, 1);
      return pointer !== 0;
    };
    const bytesSent = (): number =>
      pipe.sent.reduce((sum, frame) => sum + ("records" in frame ? frame.records.length : 0), 0);
    while (bytesSent() < CREDIT_BYTES) {
      expect(put()).toBe(true);
      agent.turn();
    }
    const full = bytesSent();
    expect(put()).toBe(true);
    agent.turn();
    expect(bytesSent()).toBe(full);
    const credit = { credit: CREDIT_BYTES / 4 };
    const looks = looksOf(() => expect(pipe.onFrame(endpointOf(ONE, 0), endpointOf(0, 0), credit)).toBe(true));
    expect(bytesSent()).toBeGreaterThan(full);
    expect(looks).toBeLessThanOrEqual(1);
  });
});

// What the agent of a node waits for while it sleeps. No context runs: the test reads and acknowledges for it.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  JOB_HEAP_LOCK_OFFSET,
  KIND_MESSAGE,
  TASK_BELL_OFFSET,
  TASK_LEAVING_OFFSET,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { endpointOf } from "../../src/core/endpoint.js";
import { selectKernel } from "../../src/kernel/select.js";
import { contextBlock, engineSlot, taskSlot } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import { interruptTask } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { serveNode } from "../../src/start/node/agent-thread.js";
import { Agent } from "../../src/transport/net/agent.js";
import type { OnFrame, Pipe } from "../../src/transport/net/frames.js";
import { frameWith } from "../support/record.js";
import { WholeFrames } from "../support/whole-frames.js";

const LIMITS = { tasks: 1024, contexts: 1, laneBytes: 64, heapBytes: 2 ** 20, regions: 16, fifos: 1, slots: 4 };
/** Tasks of other nodes. */
const ONE = 70;
const OTHER = 80;

/** The other nodes, which take everything and say nothing. */
class Silence extends WholeFrames implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = true;
  readonly talkedTo = new Set<number>();
  firstTaskOf = (task: number): number => task;
  receivesFrom = (): boolean => false;
  drop = (): boolean => true;
  send(): void {}
}

describe.each(["wasm", "ts"] as const)("%s", (name) => {
  let rig: ReturnType<typeof make>;
  beforeEach(() => {
    rig = make();
  });

  function make() {
    const limits = nodeLimits(LIMITS, 1, 1);
    const { map, shared, memory } = makeJobMemory({ limits, isFixed: true, base: 0, first: 0 }, name === "wasm");
    const kernel = selectKernel(name, shared, memory);
    const pipe = new Silence();
    const agent = new Agent(kernel, memory, map, pipe, false);
    const context = contextBlock(map, 0);
    kernel.storeWord(taskSlot(map, 0) + TASK_STATE_OFFSET, TASK_UP);
    kernel.storeWord(context + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
    /** A task of another node sends a message of 4 bytes. */
    const say = (from: number): void => {
      const records = frameWith(KIND_MESSAGE, 1, new Uint8Array(4));
      expect(pipe.onFrame(endpointOf(from, 0), endpointOf(0, 0), { records })).toBe(true);
    };
    /** The context takes what has come. Returns how many messages. */
    const take = (): number => {
      const count = kernel.advance(context, 1) & 0xffff;
      if (count > 0) kernel.release(context);
      return count;
    };
    const acknowledge = (): void => {
      const notice = kernel.loadWord(taskSlot(map, 0) + TASK_NOTICE_OFFSET);
      kernel.storeWord(context + CONTEXT_NOTICE_SEEN_OFFSET, notice);
    };
    return { map, memory, kernel, agent, context, say, take, acknowledge };
  }

  it("a full lane whose slot is asked back: the agent is rung once it is read", () => {
    const { map, kernel, agent, say, take, acknowledge } = rig;
    for (let message = 0; message < 3; message++) say(ONE);
    agent.turn();
    const ordinal = agent.addresses.ordinalOf(endpointOf(ONE, 0));
    expect(kernel.laneRoom(kernel.laneOf(contextBlock(map, 0), ordinal))).toBe(0);
    say(OTHER);
    while (agent.turn());
    const slot = taskSlot(map, agent.addresses.slotOf(ONE));
    expect(kernel.loadWord(slot + TASK_LEAVING_OFFSET)).toBe(1);
    acknowledge();
    while (agent.turn());
    expect(kernel.loadWord(slot + TASK_LEAVING_OFFSET)).toBe(1);
    const seen = kernel.bellArm(engineSlot(map));
    expect(take()).toBe(3);
    expect(kernel.loadWord(engineSlot(map) + TASK_BELL_OFFSET)).not.toBe(seen);
  });

  describe("on a thread of its own", () => {
    let served: Promise<void> | undefined;
    afterEach(async () => {
      interruptTask(rig.kernel, rig.map, rig.map.tasks);
      await served;
    });

    it("a message waits while a thread holds the heap's lock: the agent tries again, though no thread rings", async () => {
      const { map, memory, kernel, agent, say, take } = rig;
      const lock = map.job + JOB_HEAP_LOCK_OFFSET;
      kernel.storeWord(lock, 1);
      served = serveNode(agent, kernel, memory, map);
      say(ONE);
      for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(take()).toBe(0);
      kernel.storeWord(lock, 0);
      await expect.poll(take, { timeout: 60_000 }).toBe(1);
    });

    it("takes what has come while it spins, without a turn of the event loop", async () => {
      const { map, memory, kernel, agent, say, take } = rig;
      let looks = 0;
      // The first spin has no end by its time: on a busy machine, the system's clock would end it after the first look.
      const clock = { origin: 0, now: () => (looks < 3 ? 0 : looks) };
      agent.receive = () => {
        // Nothing else runs on this thread meanwhile.
        if (++looks !== 3) return false;
        say(ONE);
        return true;
      };
      served = serveNode(agent, kernel, memory, map, clock);
      expect(looks).toBe(3);
      expect(take()).toBe(1);
    });
  });
});

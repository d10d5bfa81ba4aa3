// Slots that are given back, at the agent's side alone: no context runs.
import { describe, expect, it } from "vitest";
import { HELD_UNTIL_RING, TASK_HELD_OFFSET, TASK_LEAVING_OFFSET } from "../../assembly/layout.js";
import { selectKernel } from "../../src/kernel/select.js";
import { taskSlot } from "../../src/memory/map.js";
import { SlotTable } from "../../src/node/address.js";
import { nodeLimits } from "../../src/node/limits.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { Purge } from "../../src/transport/net/purge.js";

const LIMITS = { tasks: 1024, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 20, regions: 16, fifos: 1, slots: 4 };
const FAR = 70;

describe.each(["wasm", "ts"] as const)("%s", (name) => {
  it.each([
    ["ends before the agent looks at it: the slot is asked for again", true],
    ["goes on: the slot is not asked for until the task rings", false],
  ])("a task that holds a slot %s", (_, ends) => {
    const { map, shared, memory } = makeJobMemory(
      { limits: nodeLimits(LIMITS, 1, 1), isFixed: true, base: 0, first: 0 },
      name === "wasm",
    );
    const kernel = selectKernel(name, shared, memory);
    const addresses = new SlotTable(kernel, memory, map);
    const purge = new Purge(
      { kernel, memory, map, addresses },
      {
        isBusy: () => false,
        closeLanes: () => false,
        lastUse: () => 1,
        forget: () => {},
      },
    );
    const bound = addresses.bind(FAR, map.tasks);
    purge.took(bound, FAR);
    const slot = taskSlot(map, bound);
    const turn = (): number => {
      purge.isWanted = true;
      // The agent's thread is the engine: it acknowledges notices, too.
      kernel.engineServe(map.job);
      purge.turn();
      return kernel.loadWord(slot + TASK_LEAVING_OFFSET);
    };
    expect(turn()).toBe(1);
    kernel.storeWord(slot + TASK_HELD_OFFSET, HELD_UNTIL_RING);
    if (ends) purge.ended();
    const asked = [turn(), turn(), turn()];
    expect(asked.at(-1)).toBe(Number(ends));
  });
});

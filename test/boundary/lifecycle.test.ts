// The life cycle of tasks without a host: which exits count, and what terminate() does to workers of either kind.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TASK_CLOSED, TASK_INTERRUPT_OFFSET, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { TaskErrors } from "../../src/core/task-errors.js";
import { sharedAtomics } from "../../src/kernel/atomics.js";
import { taskSlot } from "../../src/memory/map.js";
import { hasLeft, interruptTask } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { Lifecycle } from "../../src/start/tasks/lifecycle.js";
import type { TaskExit } from "../../src/start/tasks/monitor.js";

const TASKS = 3;

function rig() {
  const limits = { tasks: TASKS, contexts: 1, laneBytes: 4096, heapBytes: 65536, regions: 64, fifos: 1, slots: 8 };
  const { map, memory } = makeJobMemory({ limits, isFixed: true, base: 0 }, false);
  const sync = sharedAtomics(memory);
  const said: string[] = [];
  const exits: TaskExit[] = [];
  const errors = new TaskErrors(new SharedArrayBuffer(TaskErrors.bytesFor(TASKS)));
  const lifecycle = new Lifecycle(errors, {
    hasLeft: (task) => hasLeft(sync, map, task),
    interrupt: (task) => interruptTask(sync, map, task),
    markDead: (task) => void said.push(`dead ${task}`),
    stays: (task, why) => void said.push(`stays ${task} ${why}`),
    ended: (exit, error, shown) => {
      exits.push(exit);
      said.push(`ended ${exit.task} ${exit.cause} ${error?.message ?? "no error"} ${shown ?? "as it is"}`);
    },
  });
  const own = (task: number): void =>
    lifecycle.add(task, { terminate: (isAll) => void said.push(`terminate ${task}${isAll ? " of all" : ""}`) });
  const adopted = (task: number): void =>
    lifecycle.add(task, {
      askToLeave: () => void said.push(`ask ${task}`),
      terminate: () => void said.push(`give up ${task}`),
    });
  const interrupts = (task: number): number => sync.loadWord(taskSlot(map, task) + TASK_INTERRUPT_OFFSET);
  const leave = (task: number): void => sync.storeWord(taskSlot(map, task) + TASK_STATE_OFFSET, TASK_CLOSED);
  return { lifecycle, said, exits, errors, own, adopted, interrupts, leave };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the end of a task", () => {
  it("is told once, behind the mark, with its error written before", () => {
    const { lifecycle, said, errors, own } = rig();
    own(1);
    lifecycle.end({ task: 1, code: 1, cause: "error", error: "TypeError: why" }, "printed");
    lifecycle.end({ task: 1, code: 0, cause: "exit" });
    expect(said).toEqual(["dead 1", "ended 1 error why printed"]);
    expect(errors.of(1)?.message).toBe("why");
  });

  it("of a task that was never added changes nothing", () => {
    const { lifecycle, said } = rig();
    lifecycle.end({ task: 2, code: 0, cause: "exit" });
    expect(said).toEqual([]);
  });

  it("that nobody explains depends on whether the client was closed, and on terminate()", () => {
    const { lifecycle, adopted, leave } = rig();
    const error = "its worker ended without closing the client";
    expect(lifecycle.silentExit(1)).toEqual({ task: 1, code: 1, cause: "exit", error });
    leave(1);
    expect(lifecycle.silentExit(1)).toEqual({ task: 1, code: 0, cause: "exit" });
    adopted(2);
    lifecycle.terminate(2);
    expect(lifecycle.silentExit(2)).toEqual({ task: 2, code: 1, cause: "terminated", error });
  });
});

describe("terminate()", () => {
  it("ends one task, or all that go on, and says which", () => {
    const { lifecycle, said, own } = rig();
    for (const task of [0, 1, 2]) own(task);
    lifecycle.terminate(1);
    lifecycle.end({ task: 1, code: 1, cause: "terminated" });
    lifecycle.terminate("all");
    expect(said).toEqual([
      "terminate 1",
      "dead 1",
      "ended 1 terminated task 1 was ended by terminate() as it is",
      "terminate 0 of all",
      "terminate 2 of all",
    ]);
    expect([0, 1, 2].map((task) => lifecycle.isTerminated(task))).toEqual([true, true, true]);
  });

  it("asks a program's own worker once, interrupts it where it blocks, and then ends the job without it, not dead", () => {
    const { lifecycle, said, exits, adopted, interrupts } = rig();
    adopted(1);
    lifecycle.terminate(1);
    lifecycle.terminate("all");
    expect([said, interrupts(1)]).toEqual([["ask 1"], 0]);
    vi.advanceTimersByTime(999);
    expect([said, interrupts(1)]).toEqual([["ask 1"], 1]);
    vi.advanceTimersByTime(1);
    expect(said).toEqual(["ask 1", "give up 1", "ended 1 terminated task 1 was ended by terminate() as it is"]);
    const error = "its worker, which the program has started, has not left within 1000 ms";
    expect(exits).toEqual([{ task: 1, code: 1, cause: "terminated", error }]);
    lifecycle.end({ task: 1, code: 0, cause: "exit" });
    expect(exits).toHaveLength(1);
  });

  it("of one task lets a program's own worker go on that has not left: it is not dead before it ends", () => {
    const { lifecycle, said, adopted } = rig();
    adopted(1);
    for (let round = 0; round < 2; round++) {
      lifecycle.terminate(1);
      vi.advanceTimersByTime(1000);
      const why =
        "its worker, which the program has started, has not left within 1000 ms: it blocks, or computes. The task goes on until that worker ends";
      expect(said.splice(0)).toEqual(["ask 1", `stays 1 ${why}`]);
    }
    lifecycle.end({ task: 1, code: 0, cause: "terminated" });
    expect(said).toEqual(["dead 1", "ended 1 terminated task 1 was ended by terminate() as it is"]);
  });

  it("neither interrupts nor gives up a worker that has left meanwhile", () => {
    const { lifecycle, said, adopted, interrupts } = rig();
    adopted(1);
    lifecycle.terminate(1);
    lifecycle.end({ task: 1, code: 0, cause: "terminated" });
    vi.advanceTimersByTime(10_000);
    expect([said, interrupts(1)]).toEqual([
      ["ask 1", "dead 1", "ended 1 terminated task 1 was ended by terminate() as it is"],
      0,
    ]);
  });
});

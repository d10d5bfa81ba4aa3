// The bells of a node's tasks, as the agent rings them: once for what comes together.
import { expect, it } from "vitest";
import { TASK_BELL_OFFSET, TASK_PARKED_OFFSET } from "../../assembly/layout.js";
import { taskSlot } from "../../src/memory/map.js";
import { Bells } from "../../src/transport/net/bells.js";
import { CoresJob } from "../support/cores.js";

const names = ["wasm", "ts"] as const;

it.each(names)("%s: a task that sleeps is rung once, however often it was held; one that is awake is not", (name) => {
  const { kernel, map } = CoresJob.shared([name]).task(0);
  const bells = new Bells(kernel, map);
  const rings = (slot: number): number => kernel.loadWord(taskSlot(map, slot) + TASK_BELL_OFFSET);
  kernel.bellArm(taskSlot(map, 0));
  for (let i = 0; i < 3; i++) for (const slot of [0, 1]) bells.hold(slot);
  expect(kernel.loadWord(taskSlot(map, 0) + TASK_PARKED_OFFSET)).toBe(0);
  // What other threads write rings it no more.
  kernel.ring(taskSlot(map, 0));
  expect([rings(0), rings(1)]).toEqual([0, 0]);
  bells.ring();
  expect([rings(0), rings(1)]).toEqual([1, 0]);
  bells.ring();
  expect([rings(0), rings(1)]).toEqual([1, 0]);
  // It has woken, and sleeps again, before the rest of a batch.
  kernel.bellArm(taskSlot(map, 0));
  bells.hold(0);
  kernel.bellArm(taskSlot(map, 0));
  bells.hold(0);
  bells.ring();
  expect([rings(0), rings(1)]).toEqual([2, 0]);
});

// A lane that was full many times, with messages of which it holds many: between tasks of one node it stays, since a larger one
// is no faster. Where an agent reads or writes it, it grows, since each time that it is full costs a wake-up.
import { describe, expect, it } from "vitest";
import { LANE_BYTES_GROWN, LANE_CAPACITY_OFFSET } from "../../assembly/layout.js";
import { EAGAIN, SUCCESS } from "../../src/core/result.js";
import { contextBlock, ordinalOf } from "../../src/memory/map.js";
import { LANE_BYTES_AGENT } from "../../src/transport/shm/lanes.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 4, contexts: 1, laneBytes: 4096, heapBytes: 4 * 2 ** 20, regions: 16, fifos: 2, slots: 16 };
const DATA = 1;
const MESSAGES = 20_000;

/** Bytes of the lane from one task to another, in the memory of a node. */
function laneBytes(at: Networked, from: number, to: number): number {
  const { map, addresses } = at.task;
  const ordinal = (task: number): number => ordinalOf(map, addresses.slotOf(task), 0);
  const lane = at.kernel.laneOf(contextBlock(map, ordinal(to)), ordinal(from));
  return at.memory.words[(lane + LANE_CAPACITY_OFFSET) >>> 2] as number;
}

describe.each(["wasm", "ts"] as const)("lanes that are full again and again: %s", (kernel) => {
  async function flooded(target: number, heapBytes = LIMITS.heapBytes) {
    const job = new NetworkedJob({ seed: SEED, limits: { ...LIMITS, heapBytes }, tasksPerNode: 2, kernels: [kernel] });
    const contexts = job.tasks.map(({ client }) => client.createContext());
    const [origin] = contexts as [(typeof contexts)[0]];
    const came: number[] = [];
    contexts[target]?.dispatch(DATA, (message) => void came.push(message.getInt32(0)));
    for (let sent = 0; came.length < MESSAGES; ) {
      while (sent < MESSAGES) {
        const result = origin.sendImmediate(contexts[target]?.endpoint as number, DATA, null, Int32Array.of(sent));
        if (result === EAGAIN) break;
        expect(result).toBe(SUCCESS);
        sent++;
      }
      // The target reads later than all that comes.
      for (let turns = 0; turns < 5; turns++) await job.turn();
      for (const context of contexts) context.advance();
    }
    expect(came).toEqual(Array.from({ length: MESSAGES }, (_, i) => i));
    const [here, there] = [job.tasks[0], job.tasks[target]] as [Networked, Networked];
    const bytes = [laneBytes(here, 0, target), laneBytes(there, 0, target)];
    for (const { client } of job.tasks) client.close();
    return bytes;
  }

  it.each([
    [4, LANE_BYTES_GROWN],
    [64, LANE_BYTES_AGENT / 4],
    [128, LANE_BYTES_AGENT / 2],
    [256, LANE_BYTES_AGENT],
  ])(
    "to a task of another node, with a heap of %i MiB: lanes of %i bytes replace those at both sides",
    async (heap, bytes) => {
      expect(await flooded(2, heap * 2 ** 20)).toEqual([bytes, bytes]);
    },
  );

  it("to a task of another node, without memory for a large lane: by what there is memory for, or not at all", async () => {
    for (const bytes of await flooded(2, 2 ** 18)) {
      expect(bytes).toBeGreaterThanOrEqual(LIMITS.laneBytes);
      expect(bytes).toBeLessThan(LANE_BYTES_GROWN);
    }
  });

  it("to a task of the same node: the lane stays", async () => {
    expect(await flooded(1)).toEqual([LIMITS.laneBytes, LIMITS.laneBytes]);
  });

  it("to a task of another node that reads nothing: no dump says of the lane that its target's unexpected queue is full", async () => {
    const job = new NetworkedJob({ seed: SEED, limits: LIMITS, tasksPerNode: 2, kernels: [kernel] });
    const [origin, , target] = job.tasks.map(({ client }) => client.createContext());
    const stuck = new Set<string>();
    for (let sent = 0; sent < 100_000; sent++) {
      if (origin?.sendImmediate(target?.endpoint as number, DATA, null, new Uint8Array(64)) !== EAGAIN) continue;
      await job.turn();
      origin?.advance();
      for (const line of job.tasks[0]?.client.dump().stuck ?? []) stuck.add(line);
    }
    // The agent has held the pair back: it wants credits, and the lane is full.
    expect([...stuck].join("\n")).toContain("lane 0.0 → 2.0: the origin waits for room");
    expect([...stuck].filter((line) => line.includes("not read"))).toEqual([]);
    for (const { client } of job.tasks) client.close();
  });
});

// What a node's memory costs: its own tasks and the peers with which they talk, however large the job is.
import { describe, expect, it } from "vitest";
import { PAGE_SIZE } from "../../assembly/layout.js";
import { SUCCESS } from "../../src/core/result.js";
import { endpointsFit, type Limits, memoryMap } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import type { Context } from "../../src/pami/context.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const NODES = 1024;
const TASKS_PER_NODE = 4;
const JOB_TASKS = NODES * TASKS_PER_NODE;
const PEERS = 10;
/** Nodes of the peer tasks, far apart, and the node in question. */
const OWN = 500;
const OTHERS = Array.from({ length: PEERS }, (_, i) => (i < PEERS / 2 ? i * 7 : NODES - 1 - i * 9));
/** All else as launch() has it. */
const LIMITS = { contexts: 4, laneBytes: 16_384, heapBytes: 16 * 2 ** 20, jobTasks: JOB_TASKS };
const DATA = 1;
const KIB = 1024;

function mapOf(peers: number, more: Partial<Limits> = {}) {
  return memoryMap(nodeLimits({ ...LIMITS, tasks: TASKS_PER_NODE, ...more }, TASKS_PER_NODE, peers));
}

/** Bytes of a node's memory that are in use. */
function bytesOf({ map, free }: Networked): number {
  return map.heapBase + (map.heapPages - free()) * PAGE_SIZE;
}

function jobOf(only: number[], peers: number): NetworkedJob {
  const limits = { ...LIMITS, tasks: only.length * TASKS_PER_NODE };
  return new NetworkedJob({ seed: SEED, limits, tasksPerNode: TASKS_PER_NODE, only, peers, kernels: ["ts"] });
}

/** Every context that a task may have. */
const openAll = ({ client }: Networked): Context[] =>
  Array.from({ length: LIMITS.contexts }, () => client.createContext());

describe("slots for tasks of other nodes", () => {
  const limitsOf = (jobTasks: number, contexts: number): Limits => ({ ...LIMITS, tasks: jobTasks, jobTasks, contexts });

  it.each([
    // Tasks of the job, contexts, tasks of the node: peers that get a slot.
    [1, 4, 1, 0],
    [256, 4, 1, 255],
    [257, 4, 1, 255],
    [1024, 4, 1, 255],
    [1024, 1, 1, 1023],
    [1024, 127, 1, 7],
    [1024, 127, 6, 2],
    [256, 4, 256, 0],
    [256, 4, 255, 1],
    [1024, 4, 254, 2],
  ])(
    "%i tasks with %i contexts, %i of them here: %i, in 1,024 endpoints at the most",
    (tasks, contexts, locals, peers) => {
      const { tasks: slots, ...node } = nodeLimits(limitsOf(tasks, contexts), locals);
      expect({ slots, ...node }).toMatchObject({ slots: locals + peers, locals, jobTasks: tasks, engine: true });
      expect(endpointsFit({ ...LIMITS, tasks: slots, contexts })).toBe(true);
    },
  );

  it.each([
    // A task binds no slot if that would be the last free one.
    [257, 4, 255, 2, 1028],
    [1024, 4, 255, 2, 1028],
    [257, 4, 256, 1, 1028],
    [1024, 127, 7, 2, 1143],
    [1024, 127, 8, 2, 1270],
  ])(
    "%i tasks with %i contexts, %i of them here: there is no room for %i others",
    (tasks, contexts, locals, least, all) => {
      expect(() => nodeLimits(limitsOf(tasks, contexts), locals)).toThrowError(
        expect.objectContaining({
          code: "PAMIR_INVAL",
          message: `a node of ${locals} tasks with ${contexts} contexts, and ${least} tasks of other nodes, are ${all} endpoints, the limit is 1024`,
        }),
      );
    },
  );

  it("fewer, if fewer are wanted", () => {
    expect(nodeLimits(limitsOf(1024, 4), 1, 10).tasks).toBe(11);
    expect(nodeLimits(limitsOf(1024, 4), 1, 1000).tasks).toBe(256);
  });
});

describe("bytes of a node's memory", () => {
  it("do not depend on how many tasks the job has", () => {
    for (const peers of [0, 1, PEERS, 100]) {
      const sizes = [JOB_TASKS, 4, 200, 2 ** 24].map((jobTasks) => mapOf(peers, { jobTasks }).heapBase);
      expect(new Set(sizes).size).toBe(1);
    }
  });

  it("grow with each slot for a peer by less than 24 KiB: it has no regions, and no injection FIFOs", () => {
    expect((mapOf(PEERS + 1).heapBase - mapOf(0).heapBase) / (PEERS + 1)).toBeLessThan(24 * KIB);
  });

  it(`with ${PEERS} peers that talk: a quarter more than alone, and 64 KiB for each pair of endpoints`, async () => {
    const single = jobOf([OWN], 0);
    for (const task of single.tasks) openAll(task);
    const alone = bytesOf(single.tasks[0] as Networked);
    // Its tasks have slots for their peers, and for one more task of which something may come.
    const job = jobOf([OWN, ...OTHERS], PEERS + 1);
    const contexts = job.tasks.map(openAll);
    let came = 0;
    for (const context of contexts.flat()) {
      context.dispatch(DATA, (message) => {
        came++;
        if (message.getInt32(0) === 0)
          expect(context.sendImmediate(message.origin, DATA, null, Int32Array.of(1))).toBe(SUCCESS);
      });
    }
    for (let i = 0; i < PEERS; i++) {
      const own = contexts[i % TASKS_PER_NODE]?.[i % LIMITS.contexts] as Context;
      const peer = contexts[(1 + i) * TASKS_PER_NODE + (i % TASKS_PER_NODE)]?.[1] as Context;
      expect(own.sendImmediate(peer.endpoint, DATA, null, Int32Array.of(0))).toBe(SUCCESS);
    }
    for (let turns = 0; came < 2 * PEERS; turns++) {
      if (turns > 1000) throw new Error(`${came} messages came`);
      for (const context of contexts.flat()) context.advance();
      await job.turn();
    }
    const bytes = bytesOf(job.tasks[0] as Networked);
    expect(bytes).toBeGreaterThan(alone);
    expect(bytes).toBeLessThanOrEqual(1.25 * alone + PEERS * 64 * KIB);
    for (const { client } of [...job.tasks, ...single.tasks]) client.close();
  });
});

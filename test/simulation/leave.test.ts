// Nodes that leave, in virtual time: each stays until other nodes have acknowledged what it has sent, and no longer.
import { describe, expect, it } from "vitest";
import { EAGAIN } from "../../src/core/result.js";
import { type Faults, NO_FAULTS } from "../../src/link/simulated-network.js";
import type { Context } from "../../src/pami/context.js";
import { scaled } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { replayNote, SEED } from "../support/seed.js";

const LIMITS = { tasks: 3, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 22, regions: 8, fifos: 2, slots: 8 };
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i * 3);
const DATA = 1;
const COUNT = 100;
/** Microseconds. */
const HOP = 100;
const ROUND_TRIP = 2 * HOP;
/** For which a node answers sessions that their nodes have not ended. */
const LINGER = 500_000;
/** For which an agent waits at the most: see src/start/node/started-agent.ts. */
const LEAVE = 10_000_000;
/** Of tasks: the first one sends to the second one. */
const PAIRS = [
  [0, 2],
  [1, 2],
  [2, 1],
] as const;
const LOSSY: Faults = { loss: 0.05, duplicate: 0.02, reorder: 0.05, reorderMicroseconds: 300 };

function start(seed: number, faults: Faults, key: Uint8Array | undefined) {
  const job = new NetworkedJob({ seed, limits: LIMITS, kernels: ["ts"], faults, key, hopMicroseconds: HOP });
  const contexts = job.tasks.map(({ client }) => client.createContext());
  const came = contexts.map(() => 0);
  for (const [task, context] of contexts.entries()) context.dispatch(DATA, () => void came[task]++);
  const turn = async (): Promise<void> => {
    for (const [task, context] of contexts.entries())
      if (!context.closed && job.tasks[task]?.isDown === false) context.advance();
    await job.turn();
  };
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await turn();
  };
  const send = async (from: number, to: number): Promise<void> => {
    const [context, target] = [contexts[from] as Context, contexts[to] as Context];
    for (let sent = 0; sent < COUNT; ) {
      if (context.sendImmediate(target.endpoint, DATA, null, new Uint8Array(100)) === EAGAIN) await turn();
      else sent++;
    }
  };
  /** When each node that leaves had settled, in virtual microseconds since it left. */
  const settled: (number | undefined)[] = [];
  const leave = (task: number): void => {
    const { client, node } = job.tasks[task] as (typeof job.tasks)[0];
    const left = job.network.now;
    client.close();
    node.settle(() => {
      settled[task] = job.network.now - left;
      node.close();
    });
  };
  return { job, contexts, came, until, send, settled, leave };
}

describe.each([
  ["not sealed", undefined],
  ["sealed", KEY],
] as const)(`nodes that leave, %s (${replayNote()})`, (_, key) => {
  it("while others go on: within some round trips", async () => {
    const { came, until, send, settled, leave, job } = start(SEED, NO_FAULTS, key);
    for (const [from, to] of PAIRS) await send(from, to);
    await until(() => came[1] === COUNT && came[2] === 2 * COUNT);
    leave(2);
    await until(() => settled[2] !== undefined);
    expect((settled[2] as number) / ROUND_TRIP).toBeLessThan(20);
    leave(0);
    leave(1);
    await until(() => settled[0] !== undefined && settled[1] !== undefined);
    expect(job.lost).toEqual([]);
  });

  it("from a network that loses packets: all that they have sent has come, and all of them end", async () => {
    for (let round = 0; round < scaled(20); round++) {
      const { job, contexts, came, until, send, settled, leave } = start(SEED + round, LOSSY, key);
      for (const [from, to] of PAIRS) await send(from, to);
      await until(() => came[1] === COUNT);
      for (const task of [0, 1]) {
        await until(() => (contexts[task] as Context).drained);
        leave(task);
      }
      await until(() => came[2] === 2 * COUNT);
      leave(2);
      await until(() => [0, 1, 2].every((task) => settled[task] !== undefined));
      expect(Math.max(...(settled as number[])) / LEAVE).toBeLessThan(1);
      expect(job.lost).toEqual([]);
    }
  });

  it("a node that is down: another one waits for it, until it is said to be absent", async () => {
    const { job, came, until, send, settled, leave } = start(SEED, NO_FAULTS, key);
    await send(1, 0);
    await until(() => came[0] === COUNT);
    job.endNode(1);
    await send(0, 1);
    leave(0);
    const { now } = job.network;
    await until(() => job.network.now - now > 2 * LINGER);
    expect([settled[0], [...(job.tasks[0]?.sessions.unacknowledged ?? [])]]).toEqual([undefined, [1]]);
    job.tasks[0]?.node.abandon(1);
    expect(settled[0]).toBeGreaterThan(2 * LINGER);
  });
});

// Messages to another node whose records leave their lane without a copy in between: with bodies about as long as that begins,
// of lengths that are no multiples of 4, and with so many at once that the packets have no room for all.
import { describe, expect, it } from "vitest";
import type { MemRegion } from "../../src/core/region.js";
import { type Result, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import { bytesFrom } from "../support/bytes.js";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16384, heapBytes: 2 ** 26, regions: 16, fifos: 2, slots: 16 };
const DATA = 1;
const LENGTHS = [
  ...[-9, -8, -4, -3, -2, -1, 0, 1, 2, 3, 4, 8].map((more) => 32_768 + more),
  ...[65_280, 65_504, 65_536, 65_537, 69_632, 100_003, 300_001],
];

const bytesOf = (number: number): Uint8Array => {
  const length = LENGTHS[number % LENGTHS.length] as number;
  return bytesFrom(length, (i) => (i + 17 * number + (i >>> 8)) & 255);
};

describe.each(["wasm", "ts"] as const)("long records: %s", (kernel) => {
  it.each([
    ["one after the other", 1],
    ["more at once than the packets to a node take", 200],
  ])("%s, come whole and in order", { timeout: 60_000 }, async (_, atOnce) => {
    const job = new NetworkedJob({ seed: SEED, limits: LIMITS, tasksPerNode: 1, kernels: [kernel] });
    const [origin, target] = job.tasks.map(({ client }) => client.createContext()) as [Context, Context];
    const messages = Math.max(atOnce, LENGTHS.length);
    let [came, wrong] = [0, 0];
    const check = (bytes: Uint8Array): void => {
      if (Buffer.compare(bytes, bytesOf(came++)) !== 0) wrong++;
    };
    target.dispatch(DATA, (message) => {
      if (message.immediate) check(message.payload);
      else {
        const bytes = new Uint8Array(message.payloadBytes);
        message.receive(bytes, () => check(bytes));
      }
    });
    for (let sent = 0, done = 0; came < messages; ) {
      for (; sent < messages && sent - done < atOnce; sent++)
        origin.send({ to: target.endpoint, dispatch: DATA, payload: bytesOf(sent), onLocal: () => done++ });
      await job.turn();
      origin.advance();
      target.advance();
    }
    expect(wrong).toBe(0);
    for (const { client } of job.tasks) client.close();
  });

  it("behind puts that share a long frame of an odd length: the messages come, and the puts are done", async () => {
    const job = new NetworkedJob({ seed: SEED, limits: LIMITS, tasksPerNode: 1, kernels: [kernel] });
    const [origin, target] = job.tasks.map(({ client }) => client.createContext()) as [Context, Context];
    const [from, to] = job.tasks.map(({ client }) => client.createRegion(2 ** 18)) as [MemRegion, MemRegion];
    from.bytes.set(bytesOf(LENGTHS.length - 1).subarray(0, 2 ** 18));
    let [came, done] = [0, 0];
    target.dispatch(DATA, () => void came++);
    // All in the injection FIFO before the agent looks: one frame.
    const puts = 14;
    for (let put = 0; put < puts; put++) {
      const place = { localOffset: put * 5001, remoteOffset: put * 5001 };
      const onRemote = (_: unknown, result: Result) => void (result === SUCCESS && done++);
      const last = put === puts - 1 ? { onRemote } : {};
      const result = origin.put({
        to: target.endpoint,
        local: from,
        remote: to.handle,
        bytes: 5001,
        ...place,
        ...last,
      });
      expect(result).toBe(SUCCESS);
    }
    for (let sent = 0, turns = 0; (came < 8 || done < 1) && turns < 5000; turns++) {
      if (sent < 8 && origin.send({ to: target.endpoint, dispatch: DATA, payload: new Uint8Array(40_000) }) === SUCCESS)
        sent++;
      await job.turn();
      origin.advance();
      target.advance();
    }
    expect([came, done]).toEqual([8, 1]);
    expect(Buffer.compare(to.bytes.subarray(0, 70_014), from.bytes.subarray(0, 70_014))).toBe(0);
    for (const { client } of job.tasks) client.close();
  });
});

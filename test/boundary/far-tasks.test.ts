// A job whose numbers go up to the largest there is, 2^24 - 1, with few tasks: every operation works between the first task
// and the last one, both ways, and nothing is as large as the job could be.
import { describe, expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { MemRegion } from "../../src/core/region.js";
import { EAGAIN, type Result, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import { bytesFrom } from "../support/bytes.js";
import { type Networked, NetworkedJob, type NetworkedOptions } from "../support/networked.js";
import { replayNote, SEED } from "../support/seed.js";

const JOB_TASKS = 2 ** 24;
const LAST_TASK = JOB_TASKS - 1;
const DATA = 1;
const CALL = 2;
/** Of a node: its own tasks, and two peers. */
const LIMITS = { contexts: 3, laneBytes: 4096, heapBytes: 8 * 2 ** 20, regions: 16, fifos: 2, slots: 16 };
/** More than a slice, and more than a fragment of an offered payload. */
const LARGE = 700_003;

const KERNELS: KernelName[][] = [["wasm"], ["ts"], ["wasm", "ts"]];

function jobOf(tasksPerNode: number, kernels: KernelName[], more: Partial<NetworkedOptions> = {}): NetworkedJob {
  const only = [0, Math.floor(LAST_TASK / tasksPerNode)];
  const limits = { ...LIMITS, tasks: 2 * tasksPerNode, jobTasks: JOB_TASKS };
  return new NetworkedJob({ seed: SEED, limits, tasksPerNode, peers: 2, kernels, only, ...more });
}

const bytesOf = (length: number, salt: number): Uint8Array =>
  bytesFrom(length, (i) => (i * 7 + (i >>> 9) + salt) & 255);

interface Side {
  readonly task: Networked;
  readonly context: Context;
  readonly region: MemRegion;
  readonly came: { origin: number; header: number[]; payload: Uint8Array }[];
}

function sideOf(task: Networked): Side {
  const came: Side["came"] = [];
  // Not its first context: an endpoint has all of its bits.
  const [, , context] = [0, 1, 2].map(() => task.client.createContext());
  if (context === undefined) throw new Error("no context");
  context.dispatch(DATA, (message) => {
    const { origin } = message;
    const header = [...message.header.slice()];
    if (message.immediate) came.push({ origin, header, payload: message.payload.slice() });
    else {
      const payload = new Uint8Array(message.payloadBytes);
      message.receive(payload, (_, result) => {
        if (result === SUCCESS) came.push({ origin, header, payload });
      });
    }
  });
  context.dispatch(CALL, (message) => message.payload.slice().reverse());
  return { task, context, region: task.client.createRegion(LARGE + 64), came };
}

describe.each([1, 4])("with %i tasks on each node", (tasksPerNode) => {
  describe.each(KERNELS.map((kernels) => [kernels.join(" and "), kernels] as const))("%s", (_, kernels) => {
    it(`every operation, between task 0 and task 2^24 - 1, both ways (${replayNote()})`, async () => {
      const job = jobOf(tasksPerNode, kernels);
      const numbers = job.tasks.map(({ client }) => client.task);
      expect([numbers[0], numbers.at(-1), numbers.length]).toEqual([0, LAST_TASK, 2 * tasksPerNode]);
      const [first, last] = [job.tasks[0], job.tasks.at(-1)].map((task) => sideOf(task as Networked)) as [Side, Side];
      const until = async (isOver: () => boolean): Promise<void> => {
        for (let turns = 0; !isOver(); turns++) {
          if (turns > 5000) throw new Error("it does not come about");
          for (const { context } of [first, last]) context.advance();
          await job.turn();
        }
      };
      for (const [from, to] of [
        [first, last],
        [last, first],
      ] as const) {
        const target = to.context.endpoint;
        expect(target).toBe(2 * 2 ** 24 + to.task.client.task);
        expect(from.task.client.endpoint(to.task.client.task, 2)).toBe(target);
        const origin = from.context.endpoint;
        // Messages of all sizes, in order; the last is offered.
        const sizes = [0, 8, 1000, 5000, LARGE, LARGE];
        let told = 0;
        for (const [i, size] of sizes.entries()) {
          const payload = bytesOf(size, i);
          const offer = i === sizes.length - 1 ? { rendezvous: true, onLocal: () => void told++ } : {};
          expect(from.context.send({ to: target, dispatch: DATA, header: Uint8Array.of(i), payload, ...offer })).toBe(
            SUCCESS,
          );
        }
        await until(() => to.came.length === sizes.length && told === 1);
        for (const [i, size] of sizes.entries()) {
          const message = to.came.find(({ header }) => header[0] === i);
          expect(message?.origin).toBe(origin);
          expect(Buffer.compare(message?.payload as Uint8Array, bytesOf(size, i))).toBe(0);
        }
        let reply: Uint8Array | undefined;
        from.context.call(target, CALL, Uint8Array.of(1, 2, 3)).then((value) => {
          reply = value;
        });
        await until(() => reply !== undefined);
        expect([...(reply as Uint8Array)]).toEqual([3, 2, 1]);
        // One-sided, there and back.
        const results: Result[] = [];
        const onRemote = (_: unknown, result: Result): void => void results.push(result);
        from.region.bytes.set(bytesOf(LARGE, 77));
        const transfer = { to: target, local: from.region, remote: to.region.handle, bytes: LARGE };
        expect(from.context.put({ ...transfer, remoteOffset: 64, onRemote })).toBe(SUCCESS);
        await until(() => results.length === 1);
        expect(Buffer.compare(to.region.bytes.subarray(64, 64 + LARGE), bytesOf(LARGE, 77))).toBe(0);
        from.region.bytes.fill(0);
        expect(from.context.get({ ...transfer, remoteOffset: 64, onLocal: onRemote })).toBe(SUCCESS);
        await until(() => results.length === 2);
        expect(Buffer.compare(from.region.bytes.subarray(0, LARGE), bytesOf(LARGE, 77))).toBe(0);
        new Int32Array(to.region.bytes.buffer, to.region.bytes.byteOffset, 4)[1] = 40;
        const word = { to: target, remote: to.region.handle, remoteOffset: 4, result: from.region, resultOffset: 8 };
        expect(from.context.rmw({ ...word, operation: "fetch-add", value: 2, onDone: onRemote })).toBe(SUCCESS);
        await until(() => results.length === 3);
        expect(results).toEqual([SUCCESS, SUCCESS, SUCCESS]);
        expect(new Int32Array(to.region.bytes.buffer, to.region.bytes.byteOffset, 4)[1]).toBe(42);
        expect(new Int32Array(from.region.bytes.buffer, from.region.bytes.byteOffset, 4)[2]).toBe(40);
      }
      expect(job.tasks.map(({ frames }) => frames.wrong)).toEqual(numbers.map(() => 0));
      for (const { client } of job.tasks) client.close();
    });
  });

  it("an endpoint beyond the job is refused, and one that no node has is silent", async () => {
    const job = jobOf(tasksPerNode, ["ts"]);
    const [task] = job.tasks as [Networked];
    const context = task.client.createContext();
    expect(() => task.client.endpoint(JOB_TASKS, 0)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    const wrong = 3 * 2 ** 24 + LAST_TASK;
    expect(() => context.sendImmediate(wrong, DATA)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    const nobody = task.client.endpoint(2 ** 23, 1);
    expect([SUCCESS, EAGAIN]).toContain(context.sendImmediate(nobody, DATA));
    for (let turns = 0; turns < 10; turns++) {
      context.advance();
      await job.turn();
    }
    for (const { client } of job.tasks) client.close();
  });
});

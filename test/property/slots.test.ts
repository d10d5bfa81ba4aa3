// Nodes with fewer slots than the job has other tasks: slots are given back and given away again, and order survives.
import { describe, expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import { EAGAIN, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import { byEffort } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";

const DATA = 1;
const CALL = 2;
const LIMITS = { contexts: 2, laneBytes: 2048, heapBytes: 2 ** 23, regions: 16, fifos: 2, slots: 8 };
/** The agent files an offer in a lane after the contexts have agreed to give the slot of its origin back. */
const LATE_OFFER = 1_124_360_512;

describe.each([["wasm"], ["ts"], ["wasm", "ts"]].map((kernels) => ({ kernels: kernels as KernelName[] })))(
  "slots: $kernels",
  ({ kernels }) => {
    it.each([
      LATE_OFFER,
      ...Array.from({ length: byEffort({ quick: 4, normal: 8, deep: 16 }) }, (_, draw) => SEED + draw),
    ])(
      "random traffic among more tasks than there are slots: all comes, in order (replay: PAMIR_SEED=%i)",
      async (seed) => {
        const random = randomOf(seed);
        const tasksPerNode = [1, 2, 3][random(3)] as number;
        const tasks = tasksPerNode * (4 + random(3));
        const peers = 2 + random(3);
        const faults =
          random(2) === 0 ? { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 100 } : undefined;
        const job = new NetworkedJob({
          seed,
          limits: { ...LIMITS, tasks },
          kernels,
          tasksPerNode,
          peers,
          ...(faults && { faults }),
        });
        const wrong: string[] = [];
        const sent = new Map<string, number>();
        const came = new Map<string, number>();
        const contexts = job.tasks.flatMap(({ client }) => [client.createContext(), client.createContext()]);
        let [calls, answers, puts, done] = [0, 0, 0, 0];
        const regions = job.tasks.map(({ client }) => client.createRegion(8 * tasks));
        for (const { bytes } of regions) bytes.fill(0);
        for (const [to, context] of contexts.entries()) {
          context.dispatch(DATA, (message) => {
            const [from, number] = new Int32Array(message.header.slice().buffer) as unknown as [number, number];
            const key = `${from} ${to}`;
            if (number !== (came.get(key) ?? 0)) wrong.push(`${key}: ${number}, not ${came.get(key) ?? 0}`);
            came.set(key, number + 1);
            if (message.origin !== (contexts[from] as Context).endpoint) wrong.push(`${key}: origin ${message.origin}`);
            if (!message.immediate) message.receive(new Uint8Array(message.payloadBytes));
          });
          context.dispatch(CALL, (message) => message.payload.slice());
        }
        const act = (from: number, to: number): void => {
          const [context, target] = [contexts[from] as Context, (contexts[to] as Context).endpoint];
          const key = `${from} ${to}`;
          const number = sent.get(key) ?? 0;
          const what = random(10);
          if (what === 0) {
            calls++;
            const payload = Uint8Array.of(from, to);
            context.call(target, CALL, payload).then(
              (reply) => {
                answers++;
                if (Buffer.compare(reply, payload) !== 0) wrong.push(`reply ${key}`);
              },
              (error) => wrong.push(String(error)),
            );
            return;
          }
          const [one, other] = [from >> 1, to >> 1];
          if (what === 1) {
            const remote = (regions[other] as (typeof regions)[0]).handle;
            const local = regions[one] as (typeof regions)[0];
            const put = { to: target, local, localOffset: 0, remote, remoteOffset: 8 * one, bytes: 8 };
            const result = context.put({ ...put, onRemote: () => void done++ });
            if (result === SUCCESS) puts++;
            else if (result !== EAGAIN) wrong.push(`put ${result}`);
            return;
          }
          const payload = new Uint8Array([0, 8, 300, 5000, 80_000][random(5)] as number);
          const offer = payload.length > 0 && random(4) === 0 ? { rendezvous: true, onLocal: () => {} } : {};
          const result = context.send({
            to: target,
            dispatch: DATA,
            header: Int32Array.of(from, number),
            payload,
            ...offer,
          });
          if (result === SUCCESS) sent.set(key, number + 1);
          else if (result !== EAGAIN) wrong.push(`send ${result}`);
        };
        const isDone = (): boolean =>
          answers === calls && done === puts && [...sent].every(([key, number]) => came.get(key) === number);
        for (let step = 0; step < 1500; step++) {
          const what = random(10);
          if (what < 4) act(random(contexts.length), random(contexts.length));
          else if (what < 8) (contexts[random(contexts.length)] as Context).advance();
          else await job.turn();
        }
        for (let step = 0; step < 20_000 && !isDone(); step++) {
          for (const context of contexts) context.advance();
          await job.turn();
        }
        expect(wrong).toEqual([]);
        expect(isDone()).toBe(true);
        expect(job.tasks.map(({ frames }) => frames.wrong)).toEqual(job.tasks.map(() => 0));
        expect(sent.size).toBeGreaterThan(20);
        for (const { client } of job.tasks) client.close();
      },
      60_000,
    );
  },
);

// Tasks that share no memory, on one thread, so that it runs without a browser: random traffic, slow readers, ends. Frames
// go through ports, or through a simulated network.
import { describe, expect, it } from "vitest";
import { PAGE_SIZE } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { EAGAIN, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Faults } from "../../src/link/simulated-network.js";
import type { Limits } from "../../src/memory/map.js";
import type { Context } from "../../src/pami/context.js";
import { bytesFrom } from "../support/bytes.js";
import { NetworkedJob } from "../support/networked.js";
import { type PrivateJob, type PrivateTask, portsJob } from "../support/ports-job.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const TASKS = 3;
const CONTEXTS = 2;
const DATA = 1;
const LIMITS = {
  tasks: TASKS,
  contexts: CONTEXTS,
  laneBytes: 2048,
  heapBytes: 2 ** 23,
  regions: 8,
  fifos: 2,
  slots: 8,
};
const SIZES = [0, 8, 500, 5000, 40_000, 150_000];
const REGION = 300_000;

/** One context, what it has sent and what has come, by the ordinal of the other. */
interface Party {
  readonly task: number;
  readonly context: Context;
  readonly sent: number[];
  readonly came: number[];
}

function sizeOf(number: number): number {
  return SIZES[(number * 5) % SIZES.length] as number;
}

/** Contexts of all tasks, each checking what comes. */
function parties(tasks: readonly PrivateTask[], wrong: string[]): Party[] {
  return tasks.flatMap(({ client }, task) =>
    Array.from({ length: CONTEXTS }, () => {
      const context = client.createContext();
      const party: Party = { task, context, sent: new Array(6).fill(0), came: new Array(6).fill(0) };
      context.dispatch(DATA, (message) => {
        const [from, number] = new Int32Array(message.header.slice().buffer) as unknown as [number, number];
        const is = (bytes: Uint8Array) =>
          bytes.length === sizeOf(number) && bytes.every((byte, i) => byte === ((number + i) & 255));
        const expected = party.came[from] as number;
        party.came[from] = expected + 1;
        if (number !== expected) wrong.push(`${number} instead of ${expected}`);
        if (message.immediate) {
          if (!is(message.payload)) wrong.push(`bytes of ${number}`);
          return;
        }
        const into = new Uint8Array(message.payloadBytes);
        message.receive(into, (_, result) => {
          if (result === SUCCESS && !is(into)) wrong.push(`bytes of ${number}`);
        });
      });
      return party;
    }),
  );
}

function send(all: readonly Party[], from: number, to: number): number {
  const { context, sent } = all[from] as Party;
  const number = sent[to] as number;
  const payload = bytesFrom(sizeOf(number), (i) => number + i);
  const isOffered = payload.length > 0 && number % 2 === 0;
  const result = context.send({
    ...(isOffered ? { rendezvous: true, onLocal: () => payload.fill(0) } : {}),
    to: (all[to] as Party).context.endpoint,
    dispatch: DATA,
    header: Int32Array.of(from, number),
    payload,
  });
  if (result === SUCCESS) sent[to] = number + 1;
  return result;
}

/** Bytes of all lanes in a task's memory. */
function lanesOf({ client }: PrivateTask): number {
  return client.dump().heap.owners.reduce((sum, { lanes }) => sum + lanes, 0);
}

/** There is nothing in the heap of a task's node but what these tasks give back on demand, each what it had. */
function expectEmpty({ agent, map }: PrivateTask, tasks: readonly PrivateTask[]): void {
  const isEmpty = tasks.some(({ agent: its, client }) => {
    try {
      if (its === agent) client.createRegion(map.heapPages * PAGE_SIZE).close();
      return its === agent;
    } catch {
      return false;
    }
  });
  expect(isEmpty).toBe(true);
}

type MakeJob = (limits: Limits, kernels: readonly KernelName[]) => PrivateJob;

const networked =
  (loss: number, tasksPerNode = 1): MakeJob =>
  (limits, kernels) =>
    new NetworkedJob({ seed: SEED, limits, kernels, faults: faultsOf(loss), tasksPerNode });

const COURIERS: Record<string, MakeJob> = {
  ports: portsJob,
  "a network": networked(0),
  "a network that loses, repeats and reorders": networked(0.05),
  // With two tasks, one memory; with three, two.
  "nodes of two tasks, a network that loses, repeats and reorders": networked(0.05, 2),
  "one node, of up to four tasks": networked(0, 4),
};

function faultsOf(part: number): Faults {
  return { loss: part, duplicate: part, reorder: part, reorderMicroseconds: 100 };
}

const KERNELS = [["wasm"], ["ts"], ["wasm", "ts"]] as const;

describe.each(Object.keys(COURIERS).flatMap((pipe) => KERNELS.map((kernels) => ({ pipe, kernels }))))(
  "$pipe, $kernels",
  ({ pipe, kernels }) => {
    const makeJob = (limits: Limits) => (COURIERS[pipe] as MakeJob)(limits, kernels);

    it("lanes given up and opened again, more often than a window has bytes for: the window stays", async () => {
      const job = makeJob({ ...LIMITS, tasks: 2, contexts: 1 });
      const { tasks } = job;
      const [context, other] = tasks.map(({ client }) => client.createContext()) as [Context, Context];
      let came = 0;
      other.dispatch(DATA, () => {
        came++;
      });
      const rounds = 80_000;
      for (let i = 1; i <= rounds; i++) {
        for (let tries = 0; context.sendImmediate(other.endpoint, DATA) !== SUCCESS && tries < 100; tries++)
          await job.turn();
        for (let tries = 0; came < i && tries < 100; tries++) {
          await job.turn();
          context.advance();
          while (other.advance() > 0);
        }
        if (came !== i) break;
        for (let tries = 0; context.purge([other.endpoint]) !== SUCCESS && tries < 100; tries++) await job.turn();
      }
      expect(came).toBe(rounds);
      for (const { client } of tasks) client.close();
    }, 600_000);

    it("what a task has read goes back to who sent it, where it says nothing else", async () => {
      const job = makeJob({ ...LIMITS, tasks: 2 });
      const { tasks } = job;
      const [origin, target] = tasks.map(({ client }) => client.createContext()) as [Context, Context];
      const count = 20;
      let came = 0;
      target.dispatch(DATA, () => {
        came++;
      });
      const payload = new Uint8Array(60_000);
      let sent = 0;
      // What it has not read yet fills the window; then all is quiet.
      for (let idle = 0; idle < 200; idle++) {
        while (sent < count && origin.send({ to: target.endpoint, dispatch: DATA, payload }) === SUCCESS) sent++;
        origin.advance();
        await job.turn();
      }
      for (let tries = 0; came < count && tries < 1000; tries++) {
        while (target.advance() > 0);
        await job.turn();
        while (sent < count && origin.send({ to: target.endpoint, dispatch: DATA, payload }) === SUCCESS) sent++;
        origin.advance();
      }
      expect([sent, came]).toEqual([count, count]);
      for (const { client } of tasks) client.close();
    });

    it("a context that is not read holds up no other of its task", async () => {
      const job = makeJob({ ...LIMITS, tasks: 2 });
      const { tasks } = job;
      const [held, free] = [0, 1].map(() => (tasks[0] as PrivateTask).client.createContext()) as [Context, Context];
      const target = (tasks[1] as PrivateTask).client.createContext({ unexpectedBytes: 1000 });
      const all = [held, free, target];
      let came = 0;
      target.dispatch(DATA, () => {
        came++;
      });
      // Nobody handles these: two of them fill its unexpected queue, and the others what may be on its way.
      for (let i = 0; i < 12; i++)
        held.send({ to: target.endpoint, dispatch: DATA + 1, payload: new Uint8Array(60_000) });
      for (let i = 0; i < 100; i++) {
        for (const context of all) context.advance();
        await job.turn();
      }
      expect(free.sendImmediate(target.endpoint, DATA)).toBe(SUCCESS);
      for (let i = 0; came === 0 && i < 100; i++) {
        for (const context of all) context.advance();
        await job.turn();
      }
      expect(came).toBe(1);
      for (const { client } of tasks) client.close();
    });

    it.each([0, 1, 2])(`random traffic arrives whole and in order (${replayNote()} + %i)`, async (more) => {
      const random = randomOf(SEED + more);
      const job = makeJob(LIMITS);
      const { tasks } = job;
      const wrong: string[] = [];
      const all = parties(tasks, wrong);
      for (let step = 0; step < 600; step++) {
        const what = random(10);
        if (what < 6) {
          const result = send(all, random(all.length), random(all.length));
          if (result !== EAGAIN) expect(result).toBe(SUCCESS);
        } else if (what < 9) (all[random(all.length)] as Party).context.advance();
        else await job.turn();
      }
      const isDone = () => all.every(({ sent }, from) => all.every(({ came }, to) => came[from] === sent[to]));
      for (let step = 0; step < 20_000 && !isDone(); step++) {
        for (const { context } of all) context.advance();
        await job.turn();
      }
      expect(isDone()).toBe(true);
      expect(wrong).toEqual([]);
      for (const { client } of tasks) client.close();
    });

    it.each([0, 1, 2])(`a context closes in the middle of it (${replayNote()} + %i)`, async (more) => {
      const random = randomOf(SEED + more);
      const job = makeJob(LIMITS);
      const { tasks } = job;
      const wrong: string[] = [];
      const all = parties(tasks, wrong);
      const gone = all[3] as Party;
      const living = all.filter((party) => party !== gone);
      const { endpoint } = gone.context;
      const ended: Party[] = [];
      // What it had sent is there by then.
      const check = (party: Party, last: number) => {
        ended.push(party);
        if (party.came[3] !== last) wrong.push(`${party.came[3]} of ${last} words`);
      };
      for (const party of living) {
        const to = all.indexOf(party);
        party.context.whenEnded(endpoint, () => check(party, gone.sent[to] as number));
      }
      const step = async (count: number) => {
        for (let i = 0; i < count; i++) {
          const from = random(all.length);
          if (!(all[from] as Party).context.closed) send(all, from, (from + 1 + random(all.length - 1)) % all.length);
          if (random(8) === 0) await job.turn();
          const { context } = all[random(all.length)] as Party;
          if (!context.closed) context.advance();
        }
      };
      await step(200);
      // What is pending at its end is dropped.
      for (let tries = 0; !gone.context.drained && tries < 20_000; tries++) {
        for (const { context } of all) context.advance();
        await job.turn();
      }
      gone.context.close();
      await step(200);
      const places = living.map((party) => all.indexOf(party));
      const hasCome = () => places.every((from) => places.every((to) => all[to]?.came[from] === all[from]?.sent[to]));
      for (let tries = 0; !(ended.length === living.length && hasCome()) && tries < 20_000; tries++) {
        for (const { context } of living) context.advance();
        await job.turn();
      }
      expect(ended.length).toBe(living.length);
      expect(hasCome()).toBe(true);
      for (const { context } of living) expect(context.sendImmediate(endpoint, DATA)).toBe(SHUTDOWN);
      expect(wrong).toEqual([]);
      // All lanes are given back: those to it and from it, and, given up, those between the living.
      for (let tries = 0; tries < 50; tries++) {
        for (const { context } of living) {
          context.purge(living.map((other) => other.context.endpoint).filter((other) => other !== context.endpoint));
          context.advance();
        }
        await job.turn();
      }
      expect(tasks.map(lanesOf)).toEqual([0, 0, 0]);
      // And what they had for payloads that were offered, once they close.
      for (const { context } of living) context.close();
      for (let tries = 0; tries < 50; tries++) await job.turn();
      for (const task of tasks) expectEmpty(task, tasks);
      for (const { client } of tasks) client.close();
    });

    it("a context closes behind a full lane, and before one: all that it sent is there, and nobody is held up", async () => {
      const job = makeJob({ ...LIMITS, tasks: 2 });
      const { tasks } = job;
      const [one, two] = tasks as [PrivateTask, PrivateTask];
      const [control, gone] = [one.client.createContext(), one.client.createContext()];
      const other = two.client.createContext();
      const payload = new Uint8Array(500);
      const fill = async (from: Context, to: Context): Promise<number> => {
        let sent = 0;
        for (let idle = 0; idle < 20; idle++) {
          await job.turn();
          // To the last granule: there is no room to say that it ends.
          for (const bytes of [payload, null]) {
            while (from.sendImmediate(to.endpoint, DATA, Int32Array.of(sent), bytes, false) === SUCCESS) {
              sent++;
              idle = 0;
            }
          }
        }
        return sent;
      };
      const words = await fill(gone, other);
      await fill(other, gone);
      gone.close();
      let came = 0;
      let wrong = 0;
      const ended: string[] = [];
      other.dispatch(DATA, ({ header }) => {
        if (new Int32Array(header.slice().buffer)[0] !== came++) wrong++;
      });
      other.whenEnded(gone.endpoint, () => ended.push(`context, behind ${came}`));
      control.whenEnded(other.endpoint, () => ended.push("task"));
      for (let tries = 0; ended.length === 0 && tries < 20_000; tries++) {
        other.advance();
        control.advance();
        await job.turn();
      }
      expect([ended, wrong]).toEqual([[`context, behind ${words}`], 0]);
      expect(tasks.map(({ map, free }) => map.heapPages - free())).toEqual([0, 0]);
      two.client.close();
      for (let tries = 0; ended.length === 1 && tries < 20_000; tries++) {
        control.advance();
        await job.turn();
      }
      expect(ended[1]).toBe("task");
      one.client.close();
    });

    it.each([
      { hasLeft: true, more: 0 },
      { hasLeft: true, more: 1 },
      { hasLeft: false, more: 2 },
      { hasLeft: false, more: 3 },
    ])(`a task ends in the middle of it: %o (${replayNote()})`, async ({ hasLeft, more }) => {
      const random = randomOf(SEED + more);
      const job = makeJob(LIMITS);
      const { tasks } = job;
      const [survivor, victim] = tasks as [PrivateTask, PrivateTask];
      const wrong: string[] = [];
      const all = parties(tasks, wrong);
      const mine = survivor.client.createRegion(REGION);
      const theirs = victim.client.createRegion(REGION);
      const { context } = all[0] as Party;
      const to = victim.client.endpoint(victim.client.task);
      const results: number[] = [];
      for (let step = 0; step < 200; step++) {
        const from = random(all.length);
        // Not to itself: a lane to oneself is never given back.
        const result = send(all, from, (from + 1 + random(all.length - 1)) % all.length);
        if (result !== EAGAIN) expect(result).toBe(SUCCESS);
        if (random(8) === 0) await job.turn();
        (all[random(all.length)] as Party).context.advance();
      }
      const issued = 5;
      for (let i = 0; i < issued; i++) {
        const onRemote = (_: unknown, result: number) => void results.push(result);
        expect(context.put({ to, local: mine, remote: theirs.handle, onRemote })).toBe(SUCCESS);
      }
      if (hasLeft) victim.client.close();
      else job.end(1);
      const living = all.filter(({ task }) => task !== 1);
      let told = 0;
      for (const { context: one } of living) one.whenEnded(to, () => void told++);
      // Who has nothing to say to it need not hear that it has ended.
      for (const { context: one } of living) one.sendImmediate(to, DATA + 1);
      const isWhole = () =>
        living.every((one) => living.every((other) => one.came[all.indexOf(other)] === other.sent[all.indexOf(one)]));
      const isOver = () => results.length === issued && told === living.length && isWhole();
      for (let step = 0; step < 20_000 && !isOver(); step++) {
        for (const { context: one } of living) one.advance();
        await job.turn();
      }
      expect(results.length).toBe(issued);
      expect(results.every((result) => result === SUCCESS || result === SHUTDOWN)).toBe(true);
      for (const { context: one } of living) expect(one.sendImmediate(to, DATA)).toBe(SHUTDOWN);
      // Of what the dead one said, the beginning.
      expect(isWhole()).toBe(true);
      expect(wrong).toEqual([]);
      // Its lanes are given back. When those between the living are too, there is the region.
      const endpoints = living.map(({ context: one }) => one.endpoint);
      for (let step = 0; step < 2000 && lanesOf(survivor) > 0; step++) {
        for (const { context: one } of living) {
          one.purge(endpoints.filter((other) => other !== one.endpoint));
          one.advance();
        }
        await job.turn();
      }
      expect(lanesOf(survivor)).toBe(0);
      mine.close();
      for (const { context: one } of living) one.close();
      for (let step = 0; step < 50; step++) await job.turn();
      const left = [tasks[0], tasks[2]] as PrivateTask[];
      expectEmpty(survivor, left);
      for (const { client } of left) client.close();
    });
  },
);

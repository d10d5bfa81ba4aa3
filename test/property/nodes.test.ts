// Nodes of two tasks on a simulated network: one of them ends, and the other goes on; the node goes down; waits; dumps.
import { describe, expect, it } from "vitest";
import { PAGE_SIZE } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Faults } from "../../src/link/simulated-network.js";
import type { Context } from "../../src/pami/context.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const DATA = 1;
const LIMITS = { tasks: 4, contexts: 3, laneBytes: 2048, heapBytes: 2 ** 22, regions: 8, fifos: 2, slots: 8 };
/** Virtual microseconds in which a node that does not answer is given up. */
const SILENCE = 20_000_000;

/** Streams overtake each other. */
const FAULTS: Faults = { loss: 0.1, duplicate: 0.1, reorder: 0.3, reorderMicroseconds: 3000 };

interface Given {
  readonly tasks?: number;
  readonly faults?: Faults;
  readonly more?: number;
}

function nodesJob(kernels: readonly KernelName[], { tasks = LIMITS.tasks, faults, more = 0 }: Given = {}) {
  const limits = { ...LIMITS, tasks };
  const job = new NetworkedJob({ seed: SEED + more, limits, kernels, tasksPerNode: 2, ...(faults && { faults }) });
  const contexts = job.tasks.map(({ client }) => client.createContext());
  const one = (task: number): Context => contexts[task] as Context;
  const member = (task: number): Networked => job.tasks[task] as Networked;
  const turn = async (): Promise<void> => {
    for (const [task, context] of contexts.entries()) if (!member(task).isDown && !context.closed) context.advance();
    await job.turn();
  };
  const until = async (condition: () => boolean, most = 2000): Promise<void> => {
    for (let turns = 0; turns < most && !condition(); turns++) await turn();
  };
  const close = (): void => {
    for (const { client, isDown } of job.tasks) if (!isDown) client.close();
  };
  return { job, one, member, turn, until, close };
}

/** Sends small messages with a number each until one finds no room. Returns how many. */
function fill(from: Context, to: Context, bytes = 500): number {
  for (let number = 0; ; number++) {
    const sent = from.sendImmediate(to.endpoint, DATA, Int32Array.of(number), new Uint8Array(bytes), false);
    if (sent !== SUCCESS) return number;
  }
}

describe.each([["wasm"], ["ts"], ["wasm", "ts"]].map((kernels) => ({ kernels: kernels as KernelName[] })))(
  `nodes of two tasks, $kernels (${replayNote()})`,
  ({ kernels }) => {
    it.each(["closes", "dies"].flatMap((how) => [0, 1, 2, 3, 4, 5].map((more) => ({ how, more }))))(
      "a task $how: its last words to each task of a node come before its end, + $more",
      async ({ how, more }) => {
        const { job, one, member, turn, until, close } = nodesJob(kernels, { faults: FAULTS, more });
        const [came, told] = [
          [0, 0],
          [-1, -1],
        ];
        for (const to of [0, 1]) {
          one(to).dispatch(DATA, () => void (came[to] as number)++);
          one(to).whenEnded(one(2).endpoint, () => {
            told[to] = came[to] as number;
          });
        }
        one(2).sendImmediate(one(0).endpoint, DATA);
        one(2).sendImmediate(one(1).endpoint, DATA);
        await until(() => came[0] === 1 && came[1] === 1);
        // Frames of many packets to task 1, and one packet to task 0: the end comes there first.
        let sent = 1;
        const words = { to: one(1).endpoint, dispatch: DATA, payload: new Uint8Array(60_000) };
        while (sent < 4 && one(2).send(words) === SUCCESS) sent++;
        expect(one(2).sendImmediate(one(0).endpoint, DATA)).toBe(SUCCESS);
        if (how === "closes") member(2).client.close();
        else job.end(2);
        await until(() => told.every((count) => count >= 0));
        expect([came, told]).toEqual([
          [2, sent],
          [2, sent],
        ]);
        // Its sibling goes on.
        expect(one(3).sendImmediate(one(0).endpoint, DATA)).toBe(SUCCESS);
        await until(() => came[0] === 3);
        expect(came[0]).toBe(3);
        for (const to of [0, 1, 3]) expect(one(to).sendImmediate(one(2).endpoint, DATA)).toBe(SHUTDOWN);
        await turn();
        expect(job.tasks.map(({ frames }) => frames.wrong)).toEqual([0, 0, 0, 0]);
        close();
      },
    );

    it("contexts close one after the other: what a sibling sends keeps to its credit, and comes", async () => {
      const { job, one, member, turn, close } = nodesJob(kernels);
      const [target, origin] = [one(0), one(2)];
      const others = [1, 2].map(() => member(3).client.createContext());
      let sent = 0;
      const push = async (): Promise<void> => {
        for (let idle = 0; idle < 20; idle++) {
          origin.advance();
          const more = fill(origin, target, 1500);
          sent += more;
          if (more > 0) idle = 0;
          await job.turn();
        }
      };
      // The target does not read: a lane, a credit and a lane are full.
      await push();
      for (const context of [...others, one(3)]) {
        expect(context.sendImmediate(one(1).endpoint, DATA)).toBe(SUCCESS);
        await job.turn();
        context.close();
        await push();
      }
      member(3).client.close();
      await push();
      let came = 0;
      target.dispatch(DATA, () => void came++);
      for (let turns = 0; turns < 2000 && came < sent; turns++) await turn();
      expect([came, member(0).frames.wrong]).toEqual([sent, 0]);
      close();
    });

    it("a task dies: lanes and heap come back at both nodes, whatever was under way", async () => {
      const { job, one, member, turn, until, close } = nodesJob(kernels);
      const results: number[] = [];
      const onRemote = (_: unknown, result: number) => void results.push(result);
      const regions = job.tasks.map(({ client }) => client.createRegion(400_000));
      const [dead, other, sibling] = [1, 2, 0];
      const put = (from: number, to: number) => ({
        to: one(to).endpoint,
        local: regions[from] as (typeof regions)[0],
        remote: (regions[to] as (typeof regions)[0]).handle,
        onRemote,
      });
      one(dead).dispatch(DATA, (message) => {
        if (!message.immediate) message.receive((regions[dead] as (typeof regions)[0]).bytes.subarray(0, 300_000));
      });
      one(other).dispatch(DATA, (message) => {
        if (!message.immediate) message.receive((regions[other] as (typeof regions)[0]).bytes.subarray(0, 300_000));
      });
      const payload = new Uint8Array(300_000);
      const offer = { dispatch: DATA, payload, rendezvous: true, onLocal: () => {}, onRemote };
      // What it offers, and is offered; what it puts and gets; and what is put to it.
      expect(one(other).send({ ...offer, to: one(dead).endpoint })).toBe(SUCCESS);
      expect(one(dead).send({ ...offer, to: one(other).endpoint, onRemote: () => {} })).toBe(SUCCESS);
      expect(one(dead).put({ ...put(dead, other), onRemote: () => {} })).toBe(SUCCESS);
      await turn();
      const got = {
        to: one(other).endpoint,
        local: regions[dead],
        remote: (regions[other] as (typeof regions)[0]).handle,
      };
      expect(one(dead).get({ ...(got as ReturnType<typeof put>), onLocal: () => {} })).toBe(SUCCESS);
      for (const from of [other, 3]) expect(one(from).put(put(from, dead))).toBe(SUCCESS);
      one(dead).advance();
      one(other).advance();
      job.run(40);
      job.end(dead);
      await until(() => results.length === 3);
      expect(results).toEqual([SHUTDOWN, SHUTDOWN, SHUTDOWN]);
      for (const from of [sibling, other, 3]) expect(one(from).sendImmediate(one(dead).endpoint, DATA)).toBe(SHUTDOWN);
      for (let turns = 0; turns < 50; turns++) await turn();
      for (const task of [sibling, other, 3]) (regions[task] as (typeof regions)[0]).close();
      // What the dead one had is its sibling's: nothing is read or written there any more.
      const reused = member(sibling).client.createRegion(3_800_000);
      const random = randomOf(SEED);
      const words = new Int32Array(reused.bytes.buffer, reused.bytes.byteOffset, reused.length >>> 2);
      for (const place of words.keys()) words[place] = random(4) === 0 ? 0 : 1 + random(5);
      const before = words.slice();
      for (let turns = 0; turns < 10; turns++) await turn();
      expect(words.every((word, place) => word === before[place])).toBe(true);
      reused.close();
      const living = [sibling, other, 3].map(one);
      for (const context of living) context.close();
      for (let turns = 0; turns < 50; turns++) await turn();
      // Each task gives back what it can, and says what is free: some is kept for lanes.
      const bytes = member(other).map.heapPages * PAGE_SIZE;
      expect(() => member(3).client.createRegion(bytes)).toThrow("are free");
      for (const task of [sibling, other]) {
        expect(() => member(task).client.createRegion(bytes)).toThrow(`${bytes} are free`);
      }
      close();
    });

    it("what is put to a task that has died is refused, though its node has not told yet: its memory is another's", async () => {
      const { job, one, member, until, close } = nodesJob(kernels);
      const region = member(1).client.createRegion(4096);
      const local = member(2).client.createRegion(4096);
      const { handle: remote, bytes } = region;
      const results: number[] = [];
      one(2).sendImmediate(one(0).endpoint, DATA);
      await until(() => false, 20);
      bytes.fill(0);
      local.bytes.fill(7);
      const to = one(1).endpoint;
      expect(one(2).put({ to, local, remote, onRemote: (_, result) => void results.push(result) })).toBe(SUCCESS);
      expect(
        one(2).rmw({ to, remote, operation: "add", value: 1, onDone: (_, result) => void results.push(result) }),
      ).toBe(SUCCESS);
      job.end(1);
      await until(() => results.length === 2);
      expect(results).toEqual([SHUTDOWN, SHUTDOWN]);
      expect(bytes.every((byte) => byte === 0)).toBe(true);
      close();
    });

    it("ends before two nodes have met: each is told once it is waited for", async () => {
      const { job, one, member, until, close } = nodesJob(kernels);
      const second = member(3).client.createContext();
      const ended: string[] = [];
      second.close();
      job.end(2);
      await until(() => false, 10);
      one(0).whenEnded(second.endpoint, () => void ended.push("context"));
      await until(() => ended.length === 1);
      expect(ended).toEqual(["context"]);
      one(1).whenEnded(one(2).endpoint, () => void ended.push("task"));
      await until(() => ended.length === 2);
      expect(ended).toEqual(["context", "task"]);
      close();
    });

    it("a task whose sibling, in slot 0, has ended waits for an end, and is told", async () => {
      const { one, member, until, close } = nodesJob(kernels);
      let came = 0;
      one(2).dispatch(DATA, () => void came++);
      one(0).sendImmediate(one(2).endpoint, DATA);
      await until(() => came === 1);
      member(0).client.close();
      await until(() => false, 20);
      let ended = 0;
      one(1).whenEnded(one(3).endpoint, () => void ended++);
      await until(() => false, 20);
      member(3).client.close();
      await until(() => ended === 1);
      expect(ended).toBe(1);
      close();
    });

    it("a node goes down: all its tasks have ended for the others, those too to which nothing was said", async () => {
      const { job, one, until, close } = nodesJob(kernels, { tasks: 6 });
      const ended: number[] = [];
      let came = 0;
      one(4).dispatch(DATA, () => void came++);
      one(0).sendImmediate(one(4).endpoint, DATA);
      await until(() => came === 1);
      one(0).whenEnded(one(5).endpoint, () => void ended.push(5));
      job.endNode(4);
      // It is not acknowledged.
      one(0).sendImmediate(one(4).endpoint, DATA);
      one(0).advance();
      await job.turn();
      job.run(SILENCE);
      await until(() => ended.length === 1);
      expect(ended).toEqual([5]);
      for (const from of [0, 1]) {
        for (const to of [4, 5]) {
          one(from).sendImmediate(one(to).endpoint, DATA);
          await until(() => false, 5);
          expect(one(from).sendImmediate(one(to).endpoint, DATA)).toBe(SHUTDOWN);
        }
      }
      // The other node's tasks talk to it for the first time.
      one(2).sendImmediate(one(5).endpoint, DATA);
      one(2).advance();
      await job.turn();
      job.run(SILENCE);
      await until(() => one(3).sendImmediate(one(4).endpoint, DATA) === SHUTDOWN, 50);
      for (const to of [4, 5]) expect(one(3).sendImmediate(one(to).endpoint, DATA)).toBe(SHUTDOWN);
      close();
    });

    it("a node is frozen beyond the silence: it is given up, and cut off from all nodes once it goes on", async () => {
      const { job, one, member, until, close } = nodesJob(kernels, { tasks: 6 });
      let came = 0;
      one(4).dispatch(DATA, () => void came++);
      one(5).dispatch(DATA, () => {});
      for (const from of [0, 2]) one(from).sendImmediate(one(4).endpoint, DATA);
      await until(() => came === 2);
      const { node } = member(4);
      node.isDown = true;
      one(0).sendImmediate(one(4).endpoint, DATA);
      one(0).advance();
      await job.turn();
      job.run(SILENCE);
      await until(() => one(0).sendImmediate(one(5).endpoint, DATA) === SHUTDOWN, 50);
      expect(job.lost).toContainEqual([0, 2, "silent"]);
      node.isDown = false;
      node.pipe.flush(); // its alarm, which is late
      job.run(SILENCE / 10);
      expect(job.lost.filter(([who]) => who === 2)).toEqual([[2, 0, "givenUp"]]);
      for (const from of [4, 5]) {
        one(from).advance();
        for (const to of [0, 1, 2, 3]) expect(one(from).sendImmediate(one(to).endpoint, DATA)).toBe(SHUTDOWN);
        expect(one(from).sendImmediate(one(9 - from).endpoint, DATA)).toBe(SUCCESS);
      }
      // For the other nodes, too, all of its tasks end.
      one(2).sendImmediate(one(4).endpoint, DATA);
      one(2).advance();
      await job.turn();
      job.run(SILENCE);
      await until(() => one(3).sendImmediate(one(5).endpoint, DATA) === SHUTDOWN, 50);
      for (const from of [0, 1, 2, 3]) {
        for (const to of [4, 5]) expect(one(from).sendImmediate(one(to).endpoint, DATA)).toBe(SHUTDOWN);
      }
      close();
    });

    it("a wait ends by what a sibling sends or puts, by an interrupt of its own task, and by no other's", async () => {
      const { job, one, member, close } = nodesJob(kernels);
      const said: string[] = [];
      const wait = (task: number): Promise<void> =>
        one(task)
          .progress({ timeout: 60_000 })
          .then(
            (events) => void said.push(`${task}: ${events > 0}`),
            ({ code }) => void said.push(`${task}: ${code}`),
          );
      const both = [0, 1].map(wait);
      await new Promise((resolve) => setTimeout(resolve, 20));
      one(1).dispatch(DATA, () => {});
      one(0).sendImmediate(one(1).endpoint, DATA);
      await both[1];
      expect(said).toEqual(["1: true"]);
      member(0).agent.interrupt(0);
      await both[0];
      expect(said).toEqual(["1: true", "0: PAMIR_INTERRUPTED"]);
      const word = member(1).client.createRegion(8);
      word.bytes.fill(0);
      const waited = one(1).waitWord(word, 0, (value) => value === 1, { timeout: 60_000 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      one(0).rmw({ to: one(1).endpoint, remote: word.handle, operation: "add", value: 1, notify: true });
      await waited;
      // The context that reads makes room, and rings.
      fill(one(0), one(1));
      const room = one(0).whenRoom(one(1).endpoint, 500, { timeout: 60_000 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      one(1).advance();
      await room;
      job.run();
      close();
    });

    it("a dump has the tasks of the node and those that have a slot, by their numbers", async () => {
      const { one, member, until, close } = nodesJob(kernels, { tasks: 6 });
      const region = member(3).client.createRegion(300_000);
      let offers = 0;
      one(5).dispatch(DATA, (message) => {
        offers++;
        // It is not taken yet: the payload stays offered.
        message.receive(new Uint8Array(message.payloadBytes), () => {});
      });
      one(3).send({ to: one(5).endpoint, dispatch: DATA, payload: region.bytes, rendezvous: true, onLocal: () => {} });
      one(3).advance();
      const { dump } = member(3).client;
      const text = member(3).client.dump().toString();
      expect(dump.call(member(3).client).tasks.map(({ task }) => task)).toEqual([2, 3, 5]);
      expect(text).toContain("payload to 5.0: 300000 bytes offered");
      expect(text).toContain("task 3: up");
      expect([member(2).client.localTasks, member(3).client.localTasks]).toEqual([
        [2, 3],
        [2, 3],
      ]);
      expect(member(5).client.localTasks).toEqual([4, 5]);
      expect(member(3).client.size).toBe(6);
      await until(() => offers === 1);
      expect(offers).toBe(1);
      close();
    });
  },
);

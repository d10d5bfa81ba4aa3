// A node whose slots for tasks of other nodes are all taken, by tasks with which something is under way: what goes to one more
// task is refused or waits, and what comes from one more task waits too. Nothing is lost once a slot is free.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JOB_BIND_LOCK_OFFSET, JOB_SLOTS_WANTED_OFFSET } from "../../assembly/layout.js";
import type { Endpoint } from "../../src/core/endpoint.js";
import { EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import { markEngineDead } from "../../src/node/liveness.js";
import type { Context } from "../../src/pami/context.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 4, contexts: 2, laneBytes: 4096, heapBytes: 4 * 2 ** 20, regions: 16, fifos: 2, slots: 16 };
const DATA = 1;
const CALL = 2;
/** Turns in which all that can happen does. */
const TURNS = 60;

describe.each(["wasm", "ts"] as const)("without a free slot: %s", (kernel) => {
  let job: NetworkedJob;
  let contexts: Context[];
  /** Of each task: what came, in order. */
  let came: string[][];
  /** Tasks whose slots are held. */
  let held: number[];

  beforeEach(() => {
    // One slot for what the node's task begins, and one for what comes.
    job = new NetworkedJob({ seed: SEED, limits: LIMITS, peers: 2, kernels: [kernel] });
    [came, held] = [[[], [], [], []], []];
    contexts = job.tasks.map(({ client }, task) => {
      const context = client.createContext();
      const note = (text: string): void => void came[task]?.push(text);
      context.dispatch(DATA, (message) => note(`data ${message.getInt32(0)}`));
      context.dispatch(CALL, (message) => {
        note(`call ${message.getInt32(0)}`);
        return message.payload.slice();
      });
      return context;
    });
  });

  afterEach(() => {
    for (const { client } of job.tasks) client.close();
  });

  const context = (task: number): Context => contexts[task] as Context;
  const endpoint = (task: number): Endpoint => context(task).endpoint;
  const task = (number: number): Networked => job.tasks[number] as Networked;

  /** All that task 0 begins with task 2 comes to SHUTDOWN. */
  async function expectShutdown(): Promise<void> {
    const to = endpoint(2);
    const local = task(0).client.createRegion(64);
    const remote = task(2).client.createRegion(64).handle;
    expect([
      context(0).sendImmediate(to, DATA),
      context(0).send({ to, dispatch: DATA, payload: new Uint8Array(10) }),
      context(0).put({ to, local, remote, bytes: 8 }),
      context(0).get({ to, local, remote, bytes: 8 }),
      context(0).rmw({ to, remote, operation: "add", value: 1 }),
    ]).toEqual(Array(5).fill(SHUTDOWN));
    await expect(context(0).call(to, CALL)).rejects.toMatchObject({ code: "PAMIR_SHUTDOWN" });
  }

  async function turn(turns = TURNS): Promise<void> {
    for (let i = 0; i < turns; i++) {
      for (const each of contexts) each.advance();
      await job.turn();
    }
  }

  /** Takes the slot of a task for what the node's own task has begun, until letGo(): an open reservation. */
  function hold(target: number): void {
    expect(context(0).reserve(endpoint(target), DATA, 4)).toBeDefined();
    held.push(target);
  }

  function letGo(): void {
    for (const target of held.splice(0)) context(0).abort(endpoint(target));
  }

  async function until(isOver: () => boolean): Promise<void> {
    for (let turns = 0; !isOver(); turns++) {
      if (turns > 2000) throw new Error(`it does not come about: ${JSON.stringify(came)}`);
      await turn(1);
    }
  }

  it("every operation without a queue of its own is refused, again and again, and leaves nothing behind", async () => {
    hold(1);
    const local = task(0).client.createRegion(64);
    const remote = task(2).client.createRegion(64);
    const { handle } = remote;
    remote.bytes.fill(7);
    local.bytes.fill(1);
    const to = endpoint(2);
    const payload = Int32Array.of(5);
    let called = 0;
    const callback = (): void => void called++;
    for (let round = 0; round < 3; round++) {
      const transfer = { to, local, remote: handle, bytes: 8, onLocal: callback };
      expect([
        context(0).sendImmediate(to, DATA, null, payload),
        context(0).send({ to, dispatch: DATA, payload }),
        context(0).send({ to, dispatch: DATA, payload, queue: false, onLocal: callback, onRemote: callback }),
        context(0).send({ to, dispatch: DATA, payload: new Uint8Array(100_000), rendezvous: true, onLocal: callback }),
        context(0).put({ ...transfer, onRemote: callback }),
        context(0).get(transfer),
        context(0).rmw({ to, remote: handle, operation: "add", value: 1, onDone: callback }),
      ]).toEqual(Array(7).fill(EAGAIN));
      await turn();
    }
    expect([called, came[2], [...new Set(remote.bytes)], [...new Set(local.bytes)]]).toEqual([0, [], [7], [1]]);
    // Once a slot is free, it is accepted.
    letGo();
    await until(() => context(0).sendImmediate(to, DATA, null, payload) === SUCCESS);
    await until(() => came[2]?.length === 1);
  });

  it("whenRoom() waits, and so do calls; then all come in order, and what is sent later behind them", async () => {
    hold(1);
    const to = endpoint(2);
    const told: string[] = [];
    context(0).whenRoom(to, 8, (_, result: Result) => void told.push(`room ${result}`));
    for (const number of [1, 2, 3]) {
      context(0)
        .call(to, CALL, Int32Array.of(number))
        .then((reply) => void told.push(`reply ${new Int32Array(reply.buffer)[0]}`));
    }
    // Of another target that has no slot either.
    context(0)
      .call(endpoint(3), CALL, Int32Array.of(9))
      .then(() => void told.push("other"));
    expect(context(0).sendImmediate(to, DATA, null, Int32Array.of(4))).toBe(EAGAIN);
    await turn();
    expect([told, came[2], came[3]]).toEqual([[], [], []]);
    letGo();
    await until(() => {
      // The slot may be free before the context has looked at what waits for it.
      task(0).agent.turn();
      return context(0).sendImmediate(to, DATA, null, Int32Array.of(4)) === SUCCESS;
    });
    await until(() => told.length === 5 && came[2]?.length === 4);
    expect(came[2]).toEqual(["call 1", "call 2", "call 3", "data 4"]);
    expect(came[3]).toEqual(["call 9"]);
    expect(told.filter((each) => each !== "other" && !each.startsWith("room"))).toEqual([
      "reply 1",
      "reply 2",
      "reply 3",
    ]);
    expect(told).toContain(`room ${SUCCESS}`);
  });

  /** Another thread has the lock of the slots, and does not run, until the function that this returns is called. */
  function takeLock(): () => void {
    const { kernel, map } = task(0);
    const lock = map.job + JOB_BIND_LOCK_OFFSET;
    kernel.storeWord(lock, map.tasks);
    return () => kernel.storeWord(lock, 0);
  }

  it("another thread is binding a slot, and does not run: a send without a queue gets EAGAIN, and whenRoom() waits", async () => {
    const release = takeLock();
    const to = endpoint(2);
    const told: Result[] = [];
    expect(context(0).send({ to, dispatch: DATA, queue: false })).toBe(EAGAIN);
    context(0).whenRoom(to, 4, (_, result: Result) => void told.push(result));
    await turn();
    expect([told, wantsSlot()]).toEqual([[], false]);
    release();
    await until(() => told.length === 1);
    expect(told).toEqual([SUCCESS]);
    expect(context(0).sendImmediate(to, DATA, null, Int32Array.of(1))).toBe(SUCCESS);
    await until(() => came[2]?.length === 1);
  });

  it("another thread is binding a slot, and does not run: sends wait in the pending queue, in order, and take no slot away", async () => {
    const release = takeLock();
    const to = endpoint(2);
    const told: string[] = [];
    const note = (cookie: unknown, result: Result): void => void told.push(`${cookie} ${result}`);
    const header = Int32Array.of(0);
    const payload = Int32Array.of(0);
    for (const number of [1, 2, 3]) {
      payload[0] = number;
      const parameters = { to, dispatch: DATA, header, payload };
      const callbacks = { payload: payload.slice(), onLocal: note, onRemote: note, cookie: number };
      if (number === 1) expect(context(0).sendImmediate(to, DATA, header, payload)).toBe(SUCCESS);
      else expect(context(0).send({ ...parameters, ...(number === 3 ? callbacks : {}) })).toBe(SUCCESS);
    }
    payload[0] = 9;
    const pending = (): unknown => task(0).client.dump().tasks[0]?.contexts[0]?.pending;
    expect(pending()).toMatchObject({ messages: 3 });
    await turn();
    expect([came[2], told, wantsSlot()]).toEqual([[], [], false]);
    release();
    expect(context(0).sendImmediate(to, DATA, null, Int32Array.of(4))).toBe(SUCCESS);
    await until(() => came[2]?.length === 4 && told.length === 2);
    expect(came[2]).toEqual(["data 1", "data 2", "data 3", "data 4"]);
    expect(told).toEqual([`3 ${SUCCESS}`, `3 ${SUCCESS}`]);
    expect(pending()).toEqual({ messages: 0, bytes: 0 });
  });

  it("sends that wait for the lock of the slots come to SHUTDOWN once the agent has ended", async () => {
    takeLock();
    const to = endpoint(2);
    const told: Result[] = [];
    const note = (_: unknown, result: Result): void => void told.push(result);
    expect(context(0).send({ to, dispatch: DATA, onLocal: note, onRemote: note })).toBe(SUCCESS);
    await turn(5);
    expect(told).toEqual([]);
    const { kernel, map } = task(0);
    markEngineDead(kernel, map);
    await turn(5);
    expect(told).toEqual([SHUTDOWN, SHUTDOWN]);
  });

  /** Whether the next advance() of the node's context asks for a slot: the agent forgets that in its turn. */
  function wantsSlot(): boolean {
    const { kernel, map, agent } = task(0);
    const words: number[] = [];
    for (let i = 0; i < 2; i++) {
      agent.turn();
      context(0).advance();
      words.push(kernel.loadWord(map.job + JOB_SLOTS_WANTED_OFFSET));
    }
    return words.some((word) => word !== 0);
  }

  it("a wait for room may be given up: then it is never told", async () => {
    hold(1);
    const abort = new AbortController();
    const to = endpoint(2);
    const room = context(0).whenRoom(to, 8, { signal: abort.signal });
    const outcome = room.then(
      () => "room",
      (error: { code?: string }) => error.code,
    );
    await turn(5);
    expect(wantsSlot()).toBe(true);
    abort.abort();
    await turn(5);
    expect([await outcome, wantsSlot()]).toEqual(["PAMIR_CANCELED", false]);
    letGo();
    await until(() => context(0).sendImmediate(to, DATA, null, Int32Array.of(1)) === SUCCESS);
    await until(() => came[2]?.length === 1);
  });

  it("sendWhenRoom() advances by itself until a slot is free", async () => {
    hold(1);
    let isOver = false;
    const room = context(0).sendWhenRoom({ to: endpoint(2), dispatch: DATA, payload: Int32Array.of(1) });
    const ended = room.then(() => {
      isOver = true;
    });
    const pass = async (): Promise<void> => {
      for (const each of contexts.slice(1)) each.advance();
      await job.turn();
      await new Promise(setImmediate);
    };
    for (let turns = 0; turns < TURNS; turns++) await pass();
    expect(isOver).toBe(false);
    letGo();
    for (let turns = 0; !isOver && turns < 10 * TURNS; turns++) await pass();
    expect(isOver).toBe(true);
    await ended;
  });

  it("a task is watched that has no slot yet: its end is told once it has had one", async () => {
    hold(1);
    let isOver = false;
    context(0).whenEnded(endpoint(2), () => {
      isOver = true;
    });
    await turn();
    letGo();
    await turn();
    expect(isOver).toBe(false);
    task(2).client.close();
    contexts.splice(2, 1);
    await until(() => isOver);
  });

  it("what comes gets the last slot; then what comes from one more task waits, and is not lost", async () => {
    hold(1);
    expect(context(3).sendImmediate(endpoint(0), DATA, null, Int32Array.of(0))).toBe(SUCCESS);
    await until(() => came[0]?.length === 1);
    hold(3);
    for (const number of [1, 2])
      expect(context(2).sendImmediate(endpoint(0), DATA, null, Int32Array.of(number))).toBe(SUCCESS);
    const reply = context(2).call(endpoint(0), CALL, Int32Array.of(3));
    let replied = false;
    reply.then(() => {
      replied = true;
    });
    await turn();
    expect([came[0], replied]).toEqual([["data 0"], false]);
    letGo();
    await until(() => replied);
    expect(came[0]).toEqual(["data 0", "data 1", "data 2", "call 3"]);
  });

  it("once the agent has ended, what waits for a slot comes to SHUTDOWN, and so does what is begun then", async () => {
    hold(1);
    const to = endpoint(2);
    const told: unknown[] = [];
    context(0).whenRoom(to, 8, (_, result: Result) => void told.push(result));
    const promised = context(0)
      .whenRoom(to, 8)
      .then(String, (error: { code?: string }) => void told.push(error.code));
    context(0).whenEnded(to, (_, result) => void told.push(result));
    const call = context(0)
      .call(to, CALL)
      .then(String, (error: { code?: string }) => void told.push(error.code));
    await turn(5);
    expect(told).toEqual([]);
    const { kernel, map } = task(0);
    markEngineDead(kernel, map);
    await turn(5);
    await Promise.all([promised, call]);
    const shutdown = String(SHUTDOWN);
    expect(told.map(String).sort()).toEqual([shutdown, shutdown, "PAMIR_SHUTDOWN", "PAMIR_SHUTDOWN"]);
    await expectShutdown();
    await context(0).whenEnded(to);
    letGo();
  });

  it("once the agent has ended, a task without a slot is as one that has ended, for whatever is begun", async () => {
    const { kernel, map } = task(0);
    markEngineDead(kernel, map);
    const to = endpoint(2);
    const told: unknown[] = [];
    context(0).whenEnded(to, (_, result) => void told.push(result));
    const ended = context(0).whenEnded(to);
    const room = context(0)
      .whenRoom(to, 8)
      .then(String, (error: { code?: string }) => void told.push(error.code));
    await expectShutdown();
    await turn(5);
    await Promise.all([ended, room]);
    expect(told).toEqual([SHUTDOWN, "PAMIR_SHUTDOWN"]);
  });

  it("messages without a handler hold no slot, and come in order and with their origin once there is one", async () => {
    const LATE = 3;
    const say = (from: number, dispatch: number, number: number): void => {
      expect(context(from).sendImmediate(endpoint(0), dispatch, null, Int32Array.of(number))).toBe(SUCCESS);
    };
    for (const from of [1, 2]) {
      say(from, LATE, from);
      await turn();
    }
    say(3, DATA, 3);
    await until(() => came[0]?.length === 1);
    say(1, LATE, 10);
    await turn();
    const late: number[][] = [];
    context(0).dispatch(LATE, (message) => void late.push([message.origin, message.getInt32(0)]));
    await until(() => late.length === 3);
    expect(late).toEqual([
      [endpoint(1), 1],
      [endpoint(2), 2],
      [endpoint(1), 10],
    ]);
    expect(came[0]).toEqual(["data 3"]);
  });
});

it("slots that are held, more than are asked for at once, don't hide one that is idle; those are asked for once they are idle", async () => {
  const HELD = [1, 2, 3, 4, 5];
  const limits = { ...LIMITS, tasks: 9, heapBytes: 2 ** 21 };
  const job = new NetworkedJob({ seed: SEED, limits, peers: 6, kernels: ["wasm"] });
  const contexts = job.tasks.map(({ client }) => client.createContext());
  const [own, ...others] = contexts as [Context, ...Context[]];
  const came: number[] = [];
  own.dispatch(DATA, (message) => void came.push(message.task));
  const until = async (count: number): Promise<void> => {
    for (let turns = 0; came.length < count; turns++) {
      if (turns > 2000) throw new Error(`only these came: ${came}`);
      for (const each of contexts) each.advance();
      await job.turn();
    }
  };
  for (const task of HELD) expect(own.reserve((others[task - 1] as Context).endpoint, DATA, 4)).toBeGreaterThan(0);
  for (const [index, task] of [6, 7].entries()) {
    expect(others[task - 1]?.sendImmediate(own.endpoint, DATA)).toBe(SUCCESS);
    await until(index + 1);
  }
  // Its only idle slot is held, too. A message waits until one of them is not.
  const last = (others[6] as Context).endpoint;
  expect(own.reserve(last, DATA, 4)).toBeGreaterThan(0);
  expect(others[7]?.sendImmediate(own.endpoint, DATA)).toBe(SUCCESS);
  for (let turns = 0; turns < TURNS; turns++) {
    for (const each of contexts) each.advance();
    await job.turn();
  }
  expect(came).toEqual([6, 7]);
  own.abort((others[2] as Context).endpoint);
  await until(3);
  expect(came).toEqual([6, 7, 8]);
  for (const { client } of job.tasks) client.close();
});

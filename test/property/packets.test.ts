// Messages of all sizes where the heap has no memory for larger lanes: they come in packets through the small ones, and
// no handler sees a difference. Random traffic to handlers of all kinds, calls and streams, in shared memory and in tasks apart.
import { setImmediate as nextTurn } from "node:timers/promises";
import { type KernelName, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { EAGAIN, ENOMEM, SUCCESS } from "../../src/core/result.js";
import type { Limits } from "../../src/memory/map.js";
import type { Context } from "../../src/pami/context.js";
import { fillHeap } from "../api/support.js";
import { byEffort } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { type PrivateJob, portsJob } from "../support/ports-job.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const PLAIN = 1;
/** Its payload is always received. */
const RECEIVED = 2;
/** Its handler comes late. */
const LATE = 3;
const STREAM = 4;
const CALL = 5;
const KINDS = [PLAIN, RECEIVED, LATE, STREAM];
const HEADERS = [8, 8, 8, 9, 100, 5000, 40_000, 65_000];
const PAYLOADS = [0, 1, 8, 100, 1000, 5000, 20_000, 69_000, 69_632, 150_000];
/** A message of 150 KB takes 2,500 records through a lane of 64 bytes, each a message of a port between nodes: 300 steps take 9 s. */
const STEPS = byEffort({ quick: 150, normal: 300, deep: 1500 });
/** From this step on, LATE messages have a handler. */
const LATE_STEP = Math.floor((2 / 3) * STEPS);

interface World {
  readonly contexts: readonly Context[];
  /** There is more memory, or less. */
  change(random: (below: number) => number): void;
  /** Has what is under way arrive, or come closer. */
  turn(): Promise<void>;
  close(): Promise<void>;
}

/** Takes all memory that regions may have; returns how to give some back, or take it again. */
function fill(client: { createRegion(bytes: number): { close(): void } }): World["change"] {
  const regions = fillHeap(client);
  return (random) => {
    if (random(2) === 0) regions.push(...fillHeap(client));
    else regions.splice(random(regions.length), 1)[0]?.close();
  };
}

const worlds: Record<string, (kernels: readonly KernelName[], laneBytes: number) => Promise<World>> = {
  async shared([kernel], laneBytes) {
    const options = { tasks: 1, contexts: 4, join: true, kernel, laneBytes, heapBytes: 2 ** 21 };
    const job = await launch(null, options);
    const change = fill(job.client);
    const contexts = Array.from({ length: 4 }, () => job.client.createContext({ unexpectedBytes: 200_000 }));
    return {
      contexts: contexts as unknown as Context[],
      change,
      turn: () => nextTurn(),
      close: async () => void (await job.terminate()),
    };
  },
  ports: async (kernels, laneBytes) => apart(portsJob(limitsOf(laneBytes), kernels)),
  networked: async (kernels, laneBytes) => {
    const faults = { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 100 };
    return apart(new NetworkedJob({ seed: SEED, limits: limitsOf(laneBytes), kernels, faults }));
  },
  "networked, two tasks a node": async (kernels, laneBytes) => {
    const limits = { ...limitsOf(laneBytes), tasks: 4, heapBytes: 2 ** 23 };
    return apart(new NetworkedJob({ seed: SEED, limits, kernels, tasksPerNode: 2 }));
  },
};

function limitsOf(laneBytes: number): Limits {
  return { tasks: 2, contexts: 2, laneBytes, heapBytes: 2 ** 21, regions: 1024, fifos: 1, slots: 4 };
}

function apart(job: PrivateJob): World {
  const { tasks } = job;
  const changes = tasks.map(({ client }) => fill(client));
  const contexts = tasks.flatMap(({ client }) => [0, 1].map(() => client.createContext({ unexpectedBytes: 200_000 })));
  return {
    contexts,
    change: (random) => changes[random(changes.length)]?.(random),
    async turn() {
      await nextTurn();
      await job.turn();
    },
    async close() {
      for (const { client } of tasks) client.close();
      job.end(0);
    },
  };
}

/** Message `number` of one kind from one context to another. */
function contentOf(kind: number, from: number, number: number): { header: Uint8Array; payload: Uint8Array } {
  const random = randomOf(kind * 7919 + from * 104_729 + number);
  const one = (list: readonly number[]) => list[random(list.length)] as number;
  const large = random(4) === 0;
  const header = new Uint8Array(large ? one(HEADERS) : 8);
  const payload = new Uint8Array(large ? one(PAYLOADS) : random(300));
  for (let i = 8; i < header.length; i++) header[i] = number + i;
  for (let i = 0; i < payload.length; i++) payload[i] = number + from + 3 * i + (i >> 8);
  new Int32Array(header.buffer, 0, 2).set([from, number]);
  return { header, payload };
}

async function traffic({ contexts, change, turn }: World, isSteady: boolean, seed: number): Promise<void> {
  const random = randomOf(seed);
  const wrong: string[] = [];
  const sent = new Map<string, number>();
  const came = new Map<string, number>();
  const count = (counts: Map<string, number>, key: string) => counts.get(key) ?? 0;
  let answers = 0;
  let calls = 0;

  function check(
    kind: number,
    to: number,
    header: Uint8Array,
    payload: Uint8Array | undefined,
  ): (rest: Uint8Array) => void {
    const [from, number] = new Int32Array(header.slice(0, 8).buffer) as unknown as [number, number];
    const key = `${kind} ${from} ${to}`;
    if (count(came, key) !== number) wrong.push(`${number} of ${key}, not ${count(came, key)}`);
    came.set(key, number + 1);
    const content = contentOf(kind, from, number);
    if (Buffer.compare(header, content.header) !== 0) wrong.push(`header of ${number} of ${key}`);
    const compare = (bytes: Uint8Array) => {
      if (Buffer.compare(bytes, content.payload) !== 0) wrong.push(`payload of ${number} of ${key}`);
    };
    if (payload !== undefined) compare(payload);
    return compare;
  }

  /** Handlers send too. */
  const acts = (to: number) => {
    if (random(8) === 0) act(to, random(contexts.length));
  };
  const listen = (context: Context, to: number, kind: number) =>
    context.dispatch(
      kind,
      (message) => {
        acts(to);
        if (message.immediate) return void check(kind, to, message.header, message.payload);
        const compare = check(kind, to, message.header, undefined);
        const bytes = new Uint8Array(message.payloadBytes);
        if (random(8) === 0) message.discard();
        else message.receive(bytes, (_, result) => (result === SUCCESS ? compare(bytes) : wrong.push("cut")));
      },
      kind === RECEIVED ? { recvImmediate: "disable" } : {},
    );
  const leave = new AbortController();
  const streams: Promise<void>[] = [];
  contexts.forEach((context, to) => {
    listen(context, to, PLAIN);
    listen(context, to, RECEIVED);
    context.dispatch(CALL, (message) => {
      const { header } = message;
      const [from, number] = new Int32Array(header.slice(0, 8).buffer) as unknown as [number, number];
      const reply = contentOf(CALL, from + 100, number).payload;
      acts(to);
      if (message.immediate) return check(CALL, to, header, message.payload) && reply;
      const compare = check(CALL, to, header, undefined);
      const bytes = new Uint8Array(message.payloadBytes);
      return new Promise((resolve) => {
        message.receive(bytes, () => {
          compare(bytes);
          resolve(reply);
        });
      });
    });
    const read = async () => {
      for await (const { header, payload } of context.messages(STREAM, { signal: leave.signal }))
        check(STREAM, to, header, payload);
    };
    streams.push(read().catch((error) => void (error.code === "PAMIR_CANCELED" || wrong.push(String(error)))));
  });

  const act = (from: number, to: number) => {
    const context = contexts[from] as Context;
    const target = (contexts[to] as Context).endpoint;
    const isCall = random(5) === 0 && calls - answers < 20;
    const kind = isCall ? CALL : (KINDS[random(KINDS.length)] as number);
    const key = `${kind} ${from} ${to}`;
    const number = count(sent, key);
    const { header, payload } = contentOf(kind, from, number);
    if (isCall) {
      calls++;
      sent.set(key, number + 1);
      void context.call(target, CALL, payload, { header }).then(
        (reply) => {
          answers++;
          if (Buffer.compare(reply, contentOf(CALL, from + 100, number).payload) !== 0)
            wrong.push(`reply ${number} of ${key}`);
        },
        (error) => wrong.push(`${error}`),
      );
      header.fill(0);
      payload.fill(0);
      return;
    }
    const isHeld = random(2) === 0;
    const onLocal = isHeld ? () => void payload.fill(0) : undefined;
    const queue = random(4) > 0;
    const result =
      header.length + payload.length < 4000 && random(2) === 0
        ? context.sendImmediate(target, kind, header, payload, queue)
        : context.send({ to: target, dispatch: kind, header, payload, queue, ...(onLocal && { onLocal }) });
    if (result === SUCCESS) sent.set(key, number + 1);
    else if (result !== EAGAIN && (queue || result !== ENOMEM))
      wrong.push(`send of ${payload.length} came to ${result}`);
    header.fill(0);
    if (!isHeld) payload.fill(0);
  };

  const purge = (from: number, to: number) => {
    if (from === to) return;
    try {
      (contexts[from] as Context).purge([(contexts[to] as Context).endpoint]);
    } catch (error) {
      if (!/under way/.test(String(error))) throw error;
    }
  };

  for (let step = 0; step < STEPS; step++) {
    const what = random(10);
    if (what < 5) act(random(contexts.length), random(contexts.length));
    else if (what < 9) (contexts[random(contexts.length)] as Context).advance();
    else if (isSteady || random(4) > 0) await turn();
    else if (random(2) === 0) change(random);
    else purge(random(contexts.length), random(contexts.length));
    if (step === LATE_STEP) for (const [to, context] of contexts.entries()) listen(context, to, LATE);
  }
  const isDone = () => answers === calls && [...sent].every(([key, number]) => count(came, key) === number);
  for (let step = 0; step < 100_000 && !isDone(); step++) {
    for (const context of contexts) context.advance();
    if (!isSteady && step % 64 === 0) change(random);
    if (step % 8 === 0) await turn();
  }
  leave.abort();
  for (const context of contexts) context.advance();
  await Promise.all(streams);
  expect(wrong).toEqual([]);
  expect(isDone()).toBe(true);
}

describe.each([{ kernels: ["wasm"] }, { kernels: ["ts"] }, { kernels: ["wasm", "ts"] }] as const)(
  "$kernels",
  ({ kernels }) => {
    describe.each(Object.keys(worlds))("%s", (name) => {
      it.each([
        [64, true],
        [512, true],
        [64, false],
        [512, false],
        [8192, false],
      ])(`lanes of %i bytes, always full: %o (${replayNote()})`, async (laneBytes, isSteady) => {
        const world = await (worlds[name] as (typeof worlds)[string])(kernels, laneBytes);
        try {
          await traffic(world, isSteady, SEED + laneBytes);
        } finally {
          await world.close();
        }
      });
    });
  },
);

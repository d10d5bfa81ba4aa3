// A member of the job that has the key, and bends one word of what it sends: any word of any frame, of each kind of traffic. Its
// own traffic may fail. That of others goes on, and no task throws, hangs, or takes memory without a bound.
import { describe, expect, it } from "vitest";
import { FRAME_MORE } from "../../assembly/layout.js";
import type { Context, Geometry, MemRegion } from "../../src/index.js";
import { scaled } from "../support/effort.js";
import { ACCOMPLICE, HONEST, HOSTILE, SIBLING, TARGET } from "../support/hostile-job.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const DATA = 1;
const CALLED = 2;
const LIMITS = { tasks: 6, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 23, regions: 32, fifos: 2, slots: 8 };
const KINDS = ["RECORDS", "CREDIT", "ASK", "ANSWER", "END", "PROBE", "CHAIN"];
/** Turns after which what is not over never is. */
const TURNS = 3000;

/** Values that a word is bent to. */
const VALUES: readonly [string, (word: number) => number][] = [
  ["zero", () => 0],
  ["one", () => 1],
  ["its successor", (word) => word + 1],
  ["its predecessor", (word) => word - 1],
  ["the most", () => 0xffffffff],
  ["half of that", () => 0x7fffffff],
  ["a large one", () => 0x00100000],
  ["its upper half more", (word) => word + 0x10000],
  ["its upper byte more", (word) => word + 0x1000000],
];

/** Which frame is bent, of those that go to the target's node, and which word of its first segment. */
interface Bend {
  readonly frame: number;
  readonly word: number;
  readonly value: number;
}

interface Outcome {
  /** Frames that the liar has sent, by kind, with their words. */
  readonly sent: readonly { readonly kind: number; readonly words: number }[];
  readonly bent: string;
}

const pattern = (bytes: number, by: number): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, i) => (i * 7 + by) & 255);

function bentJob(bend: Bend | undefined) {
  const job = new NetworkedJob({ seed: 1, limits: LIMITS, kernels: ["wasm", "ts"], tasksPerNode: 2 });
  const member = (task: number): Networked => job.tasks[task] as Networked;
  const contexts = job.tasks.map(({ client }) => client.createContext());
  const sent: { kind: number; words: number }[] = [];
  let bent = "nothing";
  /** Pairs of which a frame goes on in the next segment. */
  const midway = new Set<string>();
  const { sessions } = member(HOSTILE);
  /** The segment that was claimed last: its content is there once the sessions are called again. */
  let claimed = (): void => {};
  const claim = sessions.claim.bind(sessions);
  sessions.claim = (node, origin, target, kind, length) => {
    settleClaim();
    const packet = claim(node, origin, target, kind, length);
    if (node !== 0 || packet === undefined) return packet;
    const { content } = packet;
    claimed = () => {
      const words = length >>> 2;
      const pair = `${origin} ${target}`;
      const isFirst = !midway.has(pair);
      if (isFirst && bend?.frame === sent.length && bend.word < words) {
        const view = new DataView(packet.bytes.buffer, content, length);
        const [name, change] = VALUES[bend.value] as (typeof VALUES)[number];
        const before = view.getUint32(4 * bend.word, true);
        view.setUint32(4 * bend.word, change(before) >>> 0, true);
        bent = `word ${bend.word} of ${KINDS[(kind & ~FRAME_MORE) - 1]} of ${words} words, ${before}: ${name}`;
      }
      if ((kind & FRAME_MORE) !== 0) midway.add(pair);
      else midway.delete(pair);
      if (isFirst) sent.push({ kind, words });
    };
    return packet;
  };
  const settleClaim = (): void => {
    claimed();
    claimed = () => {};
  };
  const pump = sessions.pump.bind(sessions);
  sessions.pump = (node) => {
    settleClaim();
    pump(node);
  };
  const advance = sessions.advance.bind(sessions);
  sessions.advance = () => {
    settleClaim();
    return advance();
  };
  const turn = async (): Promise<void> => {
    for (const [task, context] of contexts.entries()) if (!member(task).isDown && !context.closed) context.advance();
    await job.turn();
  };
  const until = async (isOver: () => boolean, most = TURNS): Promise<boolean> => {
    for (let turns = 0; turns < most && !isOver(); turns++) {
      await turn();
      await new Promise((resolve) => (turns % 4 === 0 ? setTimeout(resolve) : setImmediate(resolve)));
    }
    return isOver();
  };
  const settled = async <T>(promises: readonly Promise<T>[], most = TURNS) => {
    let results: PromiseSettledResult<T>[] | undefined;
    void Promise.allSettled(promises).then((all) => {
      results = all;
    });
    await until(() => results !== undefined, most);
    return results;
  };
  const close = (): void => {
    for (const { client, isDown } of job.tasks) if (!isDown) client.close();
  };
  return { job, member, contexts, sent, turn, until, settled, close, bentText: () => bent };
}

/** All kinds of traffic between the target and the liar, and beside it that of honest tasks. */
async function run(bend: Bend | undefined): Promise<Outcome> {
  const { job, member, contexts, sent, until, settled, close, bentText } = bentJob(bend);
  const wrong: string[] = [];
  const got = new Map<string, number>();
  for (const [task, context] of contexts.entries()) {
    context.dispatch(DATA, (message) => {
      const { task: from, payloadBytes } = message;
      got.set(`${from}>${task}`, (got.get(`${from}>${task}`) ?? 0) + 1);
      const check = (bytes: Uint8Array): void => {
        const isRight = bytes.every((byte, i) => byte === ((i * 7 + from) & 255));
        if (from !== HOSTILE && !isRight) wrong.push(`bytes ${from}>${task}`);
      };
      if (message.immediate) check(message.payload);
      else {
        const region = task % 2 === 0 ? member(task).client.createRegion(payloadBytes) : undefined;
        const into = region?.bytes ?? new Uint8Array(payloadBytes);
        message.receive(into, (_, result) => {
          if (result === 0) check(into);
          region?.close();
        });
      }
    });
    context.dispatch(CALLED, (message) => pattern(message.payloadBytes + 1, task));
  }
  const regions = job.tasks.map(({ client }) => client.createRegion(65_536)) as MemRegion[];
  const call = async (from: number, to: number, bytes: number): Promise<void> => {
    const reply = await (contexts[from] as Context).call(
      (contexts[to] as Context).endpoint,
      CALLED,
      pattern(bytes, from),
      { timeout: 60_000 },
    );
    if (reply.length !== bytes + 1 || reply[1] !== ((7 + to) & 255)) wrong.push(`reply ${from}>${to}`);
  };
  const traffic = (from: number, to: number): Promise<void>[] => {
    const [context, other] = [contexts[from], contexts[to]] as [Context, Context];
    const toRegion = (regions[to] as MemRegion).handle;
    const own = regions[from] as MemRegion;
    const results: Promise<void>[] = [];
    for (const bytes of [10, 3000, 40_000, 100_000])
      context.send({ to: other.endpoint, dispatch: DATA, payload: pattern(bytes, from) });
    for (const bytes of [200, 30_000, 200_000])
      context.send({
        to: other.endpoint,
        dispatch: DATA,
        payload: pattern(bytes, from),
        rendezvous: true,
        onLocal: () => {},
        onRemote: () => {},
      });
    for (const bytes of [4, 30_000]) results.push(call(from, to, bytes));
    const at = 1024 * from;
    const common = { to: other.endpoint, local: own, localOffset: at, bytes: 512, remote: toRegion, remoteOffset: at };
    context.put({ ...common });
    context.get({ ...common });
    context.rmw({
      to: other.endpoint,
      operation: "add",
      value: 1,
      remote: toRegion,
      remoteOffset: 60_000,
      onDone: () => {},
    });
    return results;
  };
  const liars = [...traffic(HOSTILE, TARGET), ...traffic(TARGET, HOSTILE)];
  const others = [
    [HONEST, TARGET],
    [TARGET, HONEST],
    [SIBLING, TARGET],
    [ACCOMPLICE, HONEST],
  ].flatMap(([from, to]) => traffic(from as number, to as number));
  const made = [TARGET, HOSTILE, HONEST].map((task) =>
    member(task).client.createGeometry([TARGET, HOSTILE, HONEST], { timeout: 60_000 }),
  );
  for (const one of [...liars, ...made]) one.catch(() => {});
  expect(
    await until(() => (got.get("4>0") ?? 0) >= 7 && (got.get("0>4") ?? 0) >= 7),
    `honest messages; ${bentText()}`,
  ).toBe(true);
  const results = await settled(others);
  expect(
    results?.map(({ status }) => status),
    bentText(),
  ).toEqual(others.map(() => "fulfilled"));
  await settled(liars, 200);
  const geometries =
    (await settled(made, 200))?.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])) ?? [];
  for (const geometry of geometries) geometry.dispatch(1, () => new Uint8Array(10));
  const all = geometries.flatMap((geometry: Geometry) => [
    geometry.barrier({ timeout: 60_000 }),
    geometry.allreduce({ operation: "sum", send: Int32Array.of(1) }),
    geometry.broadcast({ root: 1, buffer: new Uint8Array(100_000) }),
    geometry.gather({ root: 0, send: new Uint8Array(100_000) }),
    ...(geometry.rank === 1
      ? [
          geometry.amBroadcast({ dispatch: 1, payload: new Uint8Array(10) }),
          geometry.amScatter({ dispatch: 1, send: new Uint8Array(30) }),
          geometry.amGather({ dispatch: 1, send: new Uint8Array(10) }),
        ]
      : []),
    ...(geometry.rank === 0 ? [geometry.amGather({ dispatch: 1, send: new Uint8Array(10) })] : []),
  ]);
  for (const one of all) (one as Promise<unknown>).catch(() => {});
  await settled(all as Promise<unknown>[], 300);
  if (bend === undefined) {
    expect(geometries).toHaveLength(3);
    expect((await settled(all as Promise<unknown>[]))?.map(({ status }) => status)).toEqual(all.map(() => "fulfilled"));
  }
  // What honest members do together afterwards is right.
  const without = [TARGET, SIBLING, HONEST];
  const later = await settled(without.map((task) => member(task).client.createGeometry(without, { timeout: 60_000 })));
  expect(
    later?.map(({ status }) => status),
    bentText(),
  ).toEqual(without.map(() => "fulfilled"));
  const sums = without.map(() => new Int32Array(1));
  const over = await settled(
    later?.map((one, rank) =>
      (one as PromiseFulfilledResult<Geometry>).value.allreduce({
        operation: "sum",
        send: Int32Array.of(rank + 1),
        receive: sums[rank] as Int32Array,
      }),
    ) as Promise<unknown>[],
  );
  expect(
    over?.map(({ status }) => status),
    bentText(),
  ).toEqual(without.map(() => "fulfilled"));
  expect(
    sums.map((sum) => sum[0]),
    bentText(),
  ).toEqual([6, 6, 6]);
  expect(wrong, bentText()).toEqual([]);
  close();
  return { sent, bent: bentText() };
}

// Loaded on demand: no turn of virtual time waits for that.
await import("../../src/pami/make-geometry.js");

describe("a member that bends a word", () => {
  it("of nothing: all of it works", async () => {
    const { sent } = await run(undefined);
    expect(new Set(sent.map(({ kind }) => kind & ~FRAME_MORE)).size).toBeGreaterThanOrEqual(5);
  }, 600_000);

  it.each(Array.from({ length: scaled(24) }, (_, i) => i))(
    `any word of any frame (${replayNote()} + %i)`,
    async (more) => {
      const random = randomOf(SEED + more);
      const word = random([4, 16, 64][random(3)] as number);
      await run({ frame: random(80), word, value: random(VALUES.length) });
    },
    600_000,
  );
});

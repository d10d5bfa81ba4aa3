// A payload whose buffer is detached or shrunk after its send, or its region closed: the message is broken off, both sides hear
// an error, and whatever else goes between the two is neither lost nor reordered. Both tasks are this thread's, so that the target reads
// nothing before the test says so.
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { MemRegion } from "../../src/core/region.js";
import { ERROR, type Result, SUCCESS } from "../../src/core/result.js";
import { selectKernel } from "../../src/kernel/select.js";
import type { Limits } from "../../src/memory/map.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import type { Context } from "../../src/pami/context.js";
import type { SendParameters } from "../../src/protocol/eager/send-parameters.js";
import { makeClient } from "../../src/start/client.js";
import { wasCut } from "../../src/support/copy.js";
import { engineJob } from "../support/engine.js";
import { NetworkedJob } from "../support/networked.js";
import { type PrivateJob, portsJob } from "../support/ports-job.js";
import { SEED } from "../support/seed.js";

const MIB = 1024 ** 2;
/** More than a buffer, a lane, and an agent's credit take at once. */
const LARGE = 3 * MIB;
const LIMITS: Limits = {
  tasks: 2,
  contexts: 2,
  laneBytes: 4096,
  heapBytes: 8 * MIB,
  regions: 64,
  fifos: 2,
  slots: 16,
};
const SMALL = 1;
const WHOLE = 2;
const EARLY = 3;
const LATE = 4;
const OFFERED = 5;
const ASKED = 6;

interface Pair {
  readonly clients: readonly Client[];
  readonly origin: Context;
  readonly target: Context;
  /** Has what is under way come closer, and advances both. */
  readonly turn: () => Promise<void>;
}

function pairOf(clients: readonly Client[], between: () => Promise<void> | number | undefined): Pair {
  const [origin, target] = clients.map((client) => client.createContext({ unexpectedBytes: 2 * LARGE })) as [
    Context,
    Context,
  ];
  const turn = async (): Promise<void> => {
    origin.advance();
    await between();
    target.advance();
    await between();
    await nextTurn();
  };
  return { clients, origin, target, turn };
}

function sharedPair(kernel: KernelName): Pair {
  const { map, shared, memory } = makeJobMemory({ limits: LIMITS, isFixed: true, base: 0 }, kernel === "wasm");
  const parts = { kernel: selectKernel(kernel, shared, memory), memory, map };
  return pairOf(
    [0, 1].map((task) => makeClient({ ...parts, task })),
    () => undefined,
  );
}

function enginePair(kernel: KernelName): Pair {
  const { clients, serve } = engineJob(kernel, LIMITS);
  return pairOf(clients, serve);
}

function pairApart(job: PrivateJob): Pair {
  return pairOf(
    job.tasks.map(({ client }) => client),
    () => job.turn(),
  );
}

const FAULTS = { loss: 0.05, duplicate: 0.05, reorder: 0.05, reorderMicroseconds: 300 };

const TRANSPORTS: readonly [string, () => Pair][] = [
  ["shared memory, wasm", () => sharedPair("wasm")],
  ["shared memory, twin", () => sharedPair("ts")],
  ["shared memory, engine thread", () => enginePair("wasm")],
  ["ports, wasm and twin", () => pairApart(portsJob(LIMITS, ["wasm", "ts"]))],
  [
    "network, twin and wasm",
    () => pairApart(new NetworkedJob({ seed: SEED, limits: LIMITS, kernels: ["ts", "wasm"], faults: FAULTS })),
  ],
];

type Resizable = ArrayBuffer & { resize(bytes: number): void };

function resizable(bytes: number, most = bytes): Resizable {
  const Constructor = ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => Resizable;
  return new Constructor(bytes, { maxByteLength: most });
}

/** A payload, and what happens to it. */
interface Fate {
  readonly payload: Uint8Array;
  readonly strike: () => void;
}

const regions = new WeakMap<Client, MemRegion>();

const FATES: readonly [string, (bytes: number, client: Client) => Fate][] = [
  [
    "detached",
    (bytes) => {
      const buffer = new ArrayBuffer(bytes);
      return { payload: new Uint8Array(buffer), strike: () => void structuredClone(buffer, { transfer: [buffer] }) };
    },
  ],
  [
    "shrunk",
    (bytes) => {
      const buffer = resizable(bytes + 8);
      return { payload: new Uint8Array(buffer, 8, bytes), strike: () => buffer.resize(bytes + 7) };
    },
  ],
  [
    "shrunk, seen by a view that follows its length",
    (bytes) => {
      const buffer = resizable(bytes);
      return { payload: new Uint8Array(buffer), strike: () => buffer.resize(bytes - 1) };
    },
  ],
  [
    "closed with its region",
    (bytes, client) => {
      // One for all payloads that are struck together: they would not fit.
      const last = regions.get(client);
      const region = last === undefined || last.closed ? client.createRegion(LARGE + 8) : last;
      regions.set(client, region);
      return { payload: region.bytes.subarray(8, 8 + bytes), strike: () => region.close() };
    },
  ],
];

describe.each(TRANSPORTS)("%s: a payload whose buffer is", (_, make) => {
  /** A pair that counts small messages, and logs what its callbacks were told. */
  function rig() {
    const pair = make();
    const { origin, target, turn } = pair;
    const log: string[] = [];
    const came: string[] = [];
    target.dispatch(SMALL, ({ payload }) => void came.push(`small ${payload[0]}`));
    target.dispatch(WHOLE, ({ payloadBytes }) => void came.push(`whole ${payloadBytes}`));
    target.dispatch(
      EARLY,
      (message) => {
        const { payloadBytes } = message;
        const said = (_: unknown, result: Result) => void came.push(`early ${result} ${payloadBytes}`);
        message.receive(new Uint8Array(payloadBytes), said);
      },
      { delivery: "early" },
    );
    const send = (name: string, parameters: Omit<SendParameters, "to">): void => {
      const told = (what: string) => (_: unknown, result: Result) => void log.push(`${name} ${what} ${result}`);
      const callbacks = { onLocal: told("local"), onRemote: told("remote") };
      expect(origin.send({ to: target.endpoint, ...callbacks, ...parameters })).toBe(SUCCESS);
    };
    let smalls = 0;
    const small = (): void => send(`small ${++smalls}`, { dispatch: SMALL, payload: Uint8Array.of(smalls) });
    /** Turns until it is so, and then some more, in which nothing else may happen. */
    const until = async (condition: () => boolean): Promise<void> => {
      for (let turns = 0; !condition(); turns++) {
        if (turns > 5000) throw new Error(`not yet: ${condition}, ${log}, ${came}`);
        await turn();
      }
      for (let turns = 0; turns < 10; turns++) await turn();
    };
    const close = (): void => {
      for (const client of pair.clients) client.close();
    };
    return { ...pair, sender: pair.clients[0] as Client, log, came, send, small, until, close };
  }

  const told = (name: string, result: number): string[] => [`${name} local ${result}`, `${name} remote ${result}`];

  it.each(FATES)("%s when the message has begun: what is behind it comes", async (_, fateOf) => {
    const { sender, origin, target, log, came, send, small, until, close } = rig();
    for (const dispatch of [WHOLE, EARLY]) {
      const name = dispatch === WHOLE ? "whole" : "early";
      log.length = 0;
      came.length = 0;
      const { payload, strike } = fateOf(LARGE, sender);
      small();
      send("large", { dispatch, header: new Uint8Array(12), payload });
      small();
      expect(log).toEqual([]);
      strike();
      let fenced: Result | undefined;
      origin.fence(target.endpoint, (_, result) => {
        fenced = result;
      });
      let roomy: Result | undefined;
      origin.whenRoom(target.endpoint, 100, (_, result) => {
        roomy = result;
      });
      const [first, second] = name === "whole" ? [1, 2] : [3, 4];
      // The origin is told that the second one has arrived, maybe before the target's context has read it.
      const isRead = () => came.includes(`small ${second}`);
      await until(() => log.length === 6 && fenced !== undefined && roomy !== undefined && isRead());
      expect(log).toEqual([
        ...told(`small ${first}`, SUCCESS),
        ...told("large", ERROR),
        ...told(`small ${second}`, SUCCESS),
      ]);
      expect([fenced, roomy]).toEqual([SUCCESS, SUCCESS]);
      const heard = name === "whole" ? [] : [`early ${ERROR} ${LARGE}`];
      expect(came.filter((what) => what.startsWith("small"))).toEqual([`small ${first}`, `small ${second}`]);
      expect(came.filter((what) => !what.startsWith("small"))).toEqual(heard);
    }
    // The next large one comes whole.
    came.length = 0;
    send("again", { dispatch: WHOLE, payload: new Uint8Array(LARGE) });
    await until(() => came.length === 1);
    expect(came).toEqual([`whole ${LARGE}`]);
    expect(await drained(origin, until)).toBe(true);
    close();
  });

  it.each(FATES)("%s when the message has begun, and has no handler yet: it is in no queue", async (_, fateOf) => {
    const { sender, target, log, came, send, small, until, close } = rig();
    const { payload, strike } = fateOf(LARGE, sender);
    send("kept", { dispatch: LATE, payload: Uint8Array.of(1) });
    send("large", { dispatch: LATE, payload });
    strike();
    send("kept too", { dispatch: LATE, payload: Uint8Array.of(2) });
    small();
    await until(() => came.length === 1);
    expect(log).toContain(`large local ${ERROR}`);
    target.dispatch(LATE, (message) => void came.push(`late ${message.payload[0]}`));
    await until(() => came.length === 3);
    expect(came).toEqual(["small 1", "late 1", "late 2"]);
    close();
  });

  it.each(FATES)("%s while the message is pending: the target never hears of it", async (_, fateOf) => {
    const { sender, log, came, send, small, until, close } = rig();
    send("before", { dispatch: WHOLE, payload: new Uint8Array(LARGE) });
    const sizes = [8, 100, 30_000, LARGE];
    const fates = sizes.map((bytes) => fateOf(bytes, sender));
    for (const [place, { payload }] of fates.entries()) {
      send(`${payload.length} bytes`, { dispatch: place % 2 === 0 ? WHOLE : EARLY, payload });
    }
    small();
    for (const { strike } of fates) strike();
    await until(() => came.length === 2);
    expect(log).toEqual([
      ...told("before", SUCCESS),
      ...sizes.flatMap((bytes) => told(`${bytes} bytes`, ERROR)),
      ...told("small 1", SUCCESS),
    ]);
    expect(came).toEqual([`whole ${LARGE}`, "small 1"]);
    close();
  });

  it("grown, seen by a view that follows its length: what was sent comes, and no more", async () => {
    const { came, send, until, close } = rig();
    const sizes = [LARGE, 100, LARGE];
    const buffers = sizes.map((bytes) => resizable(bytes, 2 * LARGE));
    for (const [place, buffer] of buffers.entries()) {
      const rendezvous = place === 2;
      send(String(place), { dispatch: rendezvous ? EARLY : WHOLE, payload: new Uint8Array(buffer), rendezvous });
    }
    for (const buffer of buffers) buffer.resize(2 * LARGE);
    await until(() => came.length === 3);
    expect(came).toEqual([`whole ${LARGE}`, "whole 100", `early ${SUCCESS} ${LARGE}`]);
    close();
  });

  it.each(FATES)("%s while it is offered: both sides' callbacks get ERROR", async (_, fateOf) => {
    const { clients, sender, target, log, came, send, small, until, close } = rig();
    const region = (clients[1] as Client).createRegion(LARGE);
    let into: Uint8Array = new Uint8Array(LARGE);
    target.dispatch(OFFERED, (message) => {
      message.receive(into, (_, result) => void came.push(`offered ${result}`));
    });
    for (const destination of [into, region.bytes]) {
      into = destination;
      log.length = 0;
      came.length = 0;
      const { payload, strike } = fateOf(LARGE, sender);
      send("large", { dispatch: OFFERED, payload, rendezvous: true });
      strike();
      await until(() => log.length === 2 && came.length === 1);
      expect(log).toEqual(told("large", ERROR));
      expect(came).toEqual([`offered ${ERROR}`]);
    }
    log.length = 0;
    came.length = 0;
    // More than may be offered at a time: the others wait, and are struck there.
    const fates = Array.from({ length: 12 }, () => fateOf(LARGE, sender));
    for (const [place, { payload }] of fates.entries()) {
      send(String(place), { dispatch: OFFERED, payload, rendezvous: true });
    }
    small();
    for (const { strike } of fates) strike();
    await until(() => log.length === 26 && came.includes("small 1"));
    expect(log.filter((what) => what.endsWith(` ${ERROR}`)).length).toBe(24);
    expect(came.filter((what) => what !== `offered ${ERROR}` && what !== "small 1")).toEqual([]);
    close();
  });

  it.each(FATES)("%s behind a reply that is under way: the call rejects", async (_, fateOf) => {
    const { clients, origin, target, until, close } = rig();
    const { payload, strike } = fateOf(LARGE, clients[1] as Client);
    // Answers, and strikes when as much of the reply has gone as has room: behind all that the promise has called back, and
    // before the next advance().
    const answer = async (): Promise<Uint8Array> => {
      void (async () => {
        for (let i = 0; i < 20; i++) await undefined;
        strike();
      })();
      return payload;
    };
    target.dispatch(ASKED, (message) => (message.payloadBytes === 0 ? answer() : new Uint8Array(LARGE)));
    const settled: string[] = [];
    const ask = (name: string, request: Uint8Array | undefined): void => {
      origin.call(target.endpoint, ASKED, request).then(
        (reply) => settled.push(`${name} ${reply.length}`),
        ({ name: error, code, message }) =>
          settled.push(`${name} ${error} ${code} ${/detached or shrunk, or its region was closed/.test(message)}`),
      );
    };
    ask("first", undefined);
    ask("second", Uint8Array.of(1));
    await until(() => settled.length === 2);
    expect(settled.toSorted()).toEqual(["first PamiError PAMIR_INVAL true", `second ${LARGE}`]);
    close();
  });

  it.each(["at once", "by a promise"])(
    "a call whose reply is detached before it is sent, %s, rejects, and later ones are answered",
    async (how) => {
      const { origin, target, until, close } = rig();
      target.dispatch(ASKED, (message) => {
        const reply = new Uint8Array(LARGE);
        if (message.payloadBytes === 0) structuredClone(reply.buffer, { transfer: [reply.buffer] });
        return how === "at once" ? reply : Promise.resolve(reply);
      });
      const settled: string[] = [];
      for (const request of [undefined, Uint8Array.of(1)]) {
        origin.call(target.endpoint, ASKED, request).then(
          (reply) => settled.push(`${reply.length}`),
          ({ code }) => settled.push(code),
        );
      }
      await until(() => settled.length === 2);
      expect(settled.toSorted()).toEqual([`${LARGE}`, "PAMIR_INVAL"]);
      close();
    },
  );
});

it("a view is cut once its buffer is detached or shrunk, also to code that is optimized for all kinds of buffers", () => {
  const BYTES = 64;
  const makers = [
    () => new Uint8Array(new ArrayBuffer(BYTES)),
    () => new Uint8Array(resizable(BYTES + 8), 8, BYTES),
    () => new Uint8Array(new SharedArrayBuffer(BYTES)),
  ];
  const views = makers.map((make) => make());
  let cut = 0;
  for (let i = 0; i < 300_000; i++) if (wasCut(views[i % views.length] as Uint8Array, BYTES)) cut++;
  expect(cut).toBe(0);
  for (const { buffer } of views.slice(0, 2)) structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
  expect(views.map((view) => wasCut(view, BYTES))).toEqual([true, true, false]);
  const shrunk = resizable(BYTES + 8);
  const view = new Uint8Array(shrunk, 8, BYTES);
  shrunk.resize(BYTES + 7);
  expect(wasCut(view, BYTES)).toBe(true);
});

describe.each(TRANSPORTS)("%s: a destination whose buffer is", (_, make) => {
  it.each(FATES)("%s while the payload comes: ERROR, and both contexts go on", async (_, fateOf) => {
    const { clients, origin, target, turn } = make();
    const until = async (condition: () => boolean): Promise<void> => {
      for (let turns = 0; !condition(); turns++) {
        if (turns > 5000) throw new Error(`not yet: ${condition}`);
        await turn();
      }
    };
    const came: string[] = [];
    let strike = (): void => {};
    for (const dispatch of [EARLY, OFFERED, ASKED]) {
      target.dispatch(
        dispatch,
        (message) => {
          const { payload, strike: soon } = fateOf(message.payloadBytes, clients[1] as Client);
          // At once, while it may be copied already, or after a turn.
          if (dispatch === ASKED) message.receive(payload, (_, result) => void came.push(`${dispatch} ${result}`));
          if (dispatch === ASKED) soon();
          else {
            strike = soon;
            message.receive(payload, (_, result) => void came.push(`${dispatch} ${result}`));
          }
        },
        { delivery: "early" },
      );
    }
    target.dispatch(SMALL, ({ payload }) => void came.push(`small ${payload[0]}`));
    let sent = 0;
    for (const dispatch of [EARLY, OFFERED, ASKED]) {
      came.length = 0;
      strike = () => {};
      const payload = new Uint8Array(LARGE);
      const rendezvous = dispatch !== EARLY;
      const results: Result[] = [];
      const onLocal = (_: unknown, result: Result) => void results.push(result);
      expect(origin.send({ to: target.endpoint, dispatch, payload, rendezvous, onLocal })).toBe(SUCCESS);
      for (let turns = 0; turns < 5000 && came.length === 0; turns++) {
        await turn();
        strike();
        strike = () => {};
      }
      await until(() => came.length === 1 && results.length === 1);
      expect(came).toEqual([`${dispatch} ${ERROR}`]);
      // What was sent in packets has gone, whatever became of it there.
      expect(results).toEqual([rendezvous ? ERROR : SUCCESS]);
      expect(origin.sendImmediate(target.endpoint, SMALL, null, Uint8Array.of(++sent))).toBe(SUCCESS);
      await until(() => came.length === 2);
      expect(came[1]).toBe(`small ${sent}`);
    }
    expect(await drained(origin, until)).toBe(true);
    for (const client of clients) client.close();
    expect(clients.map(({ closed }) => closed)).toEqual([true, true]);
  });
});

it.each(["wasm", "ts"] as const)(
  "%s: a typed get from another node, into a region that is closed meanwhile: ERROR, and nothing is written",
  async (kernel) => {
    const { clients, origin, target, turn } = pairApart(portsJob(LIMITS, [kernel]));
    const [own, other] = clients as [Client, Client];
    const [from, into] = [other.createRegion(LARGE), own.createRegion(LARGE)];
    from.bytes.fill(1);
    into.bytes.fill(2);
    const type = (await own.createType()).addSimple(24, 8, 700, 64).complete();
    const results: Result[] = [];
    const onLocal = (_: unknown, result: Result) => void results.push(result);
    const get = { to: target.endpoint, local: into, remote: from.handle, localType: type, onLocal };
    expect(origin.get(get)).toBe(SUCCESS);
    into.close();
    for (let turns = 0; turns < 5000 && results.length === 0; turns++) await turn();
    expect(results).toEqual([ERROR]);
    expect(into.bytes.subarray(0, 64 * 700).every((byte) => byte === 2)).toBe(true);
    for (const client of clients) client.close();
  },
);

/** Whether drain() comes to its end. */
async function drained(origin: Context, until: (condition: () => boolean) => Promise<void>): Promise<boolean> {
  let isOver = false;
  const over = origin.drain().then(() => {
    isOver = true;
  });
  await until(() => isOver);
  await over;
  return isOver;
}

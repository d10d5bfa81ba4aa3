// Nodes and endpoints with large numbers: the sessions work as with small ones, and keep as much.
import { describe, expect, it } from "vitest";
import { PACKET_DATA, SEGMENT_ORIGIN_OFFSET, SEGMENT_SIZE, SEGMENT_TARGET_OFFSET } from "../../assembly/layout.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import type { Sessions } from "../../src/session/sessions.js";
import { submit } from "../support/submit.js";
import { JOB, keyOf } from "./nodes.js";
import { Pipe, type PipeOptions } from "./pipe.js";

/** Nodes of the job, of one task each: task = node. */
const NODES = 2 ** 24;
const LAST = NODES - 1;
/** Contexts of the last node. All others have one. */
const CONTEXTS = 255;

const endpointOf = (context: number, task: number): number => ((context << 24) | task) >>> 0;

const nodeOf = (endpoint: number): number => {
  const task = endpoint & 0xffffff;
  return endpoint >>> 24 < (task === LAST ? CONTEXTS : 1) ? task : -1;
};

interface Side {
  readonly sessions: Sessions;
  /** `origin>target:byte` of each segment that came. */
  readonly given: string[];
}

/** Node 0 and another one. */
function pairOf(other: number, options: PipeOptions = {}) {
  const pipe = new Pipe(NODES, { nodeOf, ...options });
  const start = (node: number, epoch = 1): Side => {
    const given: string[] = [];
    const sessions = pipe.start(
      node,
      (segment) => {
        const { words, bytes } = pipe.memory;
        const [origin, target] = [SEGMENT_ORIGIN_OFFSET, SEGMENT_TARGET_OFFSET].map(
          (offset) => (words[(segment + offset) >>> 2] as number) >>> 0,
        );
        given.push(`${origin}>${target}:${bytes[segment + SEGMENT_SIZE]}`);
      },
      epoch,
    );
    return { sessions, given };
  };
  return { pipe, start, near: start(0), far: start(other) };
}

const ENDS = [
  ["node 1", 1, 1],
  ["the last node", LAST, LAST],
  ["an endpoint of the last node, below 2^31", LAST, endpointOf(126, LAST)],
  ["an endpoint of the last node, above 2^31", LAST, endpointOf(CONTEXTS - 1, LAST)],
] as const;

const LINKS: readonly [string, PipeOptions][] = [
  ["", {}],
  [", faithful link", { isFaithful: true }],
  [", with a key", { keySchedule: keyScheduleOf(keyOf(1), JOB) }],
  [", twin", { kernelName: "ts" }],
];

describe.each(LINKS)("sessions of node 0%s", (_, options) => {
  it.each(ENDS)(
    "D6 D8 with %s: segments come in order, both ways, and the state is that of node 1",
    (_name, node, end) => {
      const exchange = (other: number, endpoint: number) => {
        const { pipe, near, far } = pairOf(other, options);
        for (let round = 0; round < 3; round++) {
          for (let i = 0; i < 50; i++) {
            submit(near.sessions, other, 0, endpoint, 1, Uint8Array.of(50 * round + i));
            submit(far.sessions, 0, endpoint, 0, 1, Uint8Array.of(50 * round + i));
          }
          pipe.run();
        }
        const bytes = Array.from({ length: 150 }, (_, i) => i);
        expect(far.given).toEqual(bytes.map((byte) => `0>${endpoint}:${byte}`));
        expect(near.given).toEqual(bytes.map((byte) => `${endpoint}>0:${byte}`));
        return [near, far].map(({ sessions: { kept, inUse, dropped } }) => ({ kept, inUse, dropped }));
      };
      const state = exchange(node, end);
      expect(state).toEqual(exchange(1, 1));
      expect(state[0]?.kept).toMatchObject({ epochs: 32, orders: 32, streams: 1 });
    },
  );
});

describe("what is over", () => {
  it.each(ENDS)("D8 of %s: its streams restart, and the memory of its order numbers is given back", (_, node, end) => {
    const lost: number[] = [];
    const { pipe, start, near, far } = pairOf(node, {
      onLost: (other) => {
        lost.push(other);
        near.sessions.forgetTarget(end);
        near.sessions.streams.forget(end);
      },
    });
    const send = (byte: number, { sessions }: Side): void => {
      submit(near.sessions, node, 0, end, 1, Uint8Array.of(byte));
      submit(sessions, 0, end, 0, 1, Uint8Array.of(byte));
      pipe.run();
    };
    send(1, far);
    pipe.end(node);
    // It learns of the restart by the next packet, from either side; what was sent before that is lost.
    const again = start(node, 2);
    submit(again.sessions, 0, end, 0, 1, Uint8Array.of(2));
    pipe.run();
    expect(lost).toEqual([node]);
    send(3, again);
    expect(again.given).toEqual([`0>${end}:3`]);
    expect(near.given).toEqual([1, 2, 3].map((byte) => `${end}>0:${byte}`));
    near.sessions.forgetTarget(end);
    near.sessions.streams.forget(end);
    expect(near.sessions.kept).toMatchObject({ orders: 32, streams: 0 });
  });

  it("D6 the order numbers of many endpoints take at most 22 bytes each, and none when all are forgotten", () => {
    const { near } = pairOf(LAST, { txQueueBytes: 2 ** 30 });
    const ends = Array.from({ length: 10_000 }, (_, i) => endpointOf(i % CONTEXTS, LAST - 7 * (i % 1009)));
    for (const end of ends) submit(near.sessions, LAST, 0, end, 1, Uint8Array.of(1));
    expect(4 * near.sessions.kept.orders).toBeLessThan(22 * new Set(ends).size);
    for (const end of ends) near.sessions.forgetTarget(end);
    expect(near.sessions.kept.orders).toBe(32);
  });
});

describe("endpoints that do not exist", () => {
  it.each([
    ["from a context that the last node does not have", endpointOf(255, LAST), 0],
    ["from another node", LAST - 1, 0],
    ["for a context that node 0 does not have", LAST, endpointOf(1, 0)],
    ["for another node", LAST, 1],
    ["from node 0 itself", 0, 0],
  ])("D8 a segment %s is dropped as foreign, and creates no stream", (_, origin, target) => {
    const { pipe, near, far } = pairOf(LAST);
    submit(far.sessions, 0, LAST, 0, 1, Uint8Array.of(1));
    pipe.run();
    expect([near.given.length, near.sessions.kept.streams]).toEqual([1, 1]);
    let packets = 0;
    pipe.tap = (from, _to, packet) => {
      if (from === LAST && packet[2] === PACKET_DATA) packets++;
    };
    submit(far.sessions, 0, origin, target, 1, Uint8Array.of(2));
    for (let i = 0; i < 10; i++) {
      near.sessions.advance();
      far.sessions.advance();
      pipe.carry();
    }
    expect([packets, near.sessions.dropped.foreign]).toEqual([1, 1]);
    expect([near.given.length, near.sessions.kept.streams]).toEqual([1, 1]);
  });
});

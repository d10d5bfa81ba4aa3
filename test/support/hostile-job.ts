// A job of three nodes with two tasks each, one of which says what it likes: it has the key, and puts any frame into its
// sessions.
import {
  FIRST_PREFIX_SIZE,
  KIND_BROKEN,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_RTS,
  KIND_SWITCH,
} from "../../assembly/layout.js";
import { taskOf } from "../../src/core/endpoint.js";
import { encode } from "../../src/transport/net/encoding.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { bytesFrom } from "./bytes.js";
import { type Networked, NetworkedJob } from "./networked.js";
import { submit } from "./submit.js";

export const CONTEXTS = 2;
/** Tasks of the target's node, of that whose agent says what it likes, and of an honest one. */
export const [TARGET, SIBLING, HOSTILE, ACCOMPLICE, HONEST, BYSTANDER] = [0, 1, 2, 3, 4, 5] as const;
export const DATA = 1;
export const LIMITS = {
  tasks: 6,
  contexts: CONTEXTS,
  laneBytes: 2048,
  heapBytes: 2 ** 22,
  regions: 8,
  fifos: 2,
  slots: 8,
};

/** Kinds of records by their numbers on a link. */
export const NUMBERS: Record<number, number> = {
  [KIND_MESSAGE]: 1,
  [KIND_FIRST]: 2,
  [KIND_MORE]: 3,
  [KIND_RTS]: 4,
  [KIND_BROKEN]: 5,
  [KIND_SWITCH]: 6,
};

/** A record as it is in a frame: prefix, body, padding. */
export function record(
  kind: number,
  headerBytes: number,
  body: readonly number[] = [],
  length = body.length,
  id = DATA,
): number[] {
  const bytes = new Uint8Array(8 + 4 * Math.ceil(body.length / 4));
  const words = new DataView(bytes.buffer);
  words.setUint32(0, (((NUMBERS[kind] ?? 99) << 24) | length) >>> 0, true);
  words.setUint32(4, (headerBytes << 16) | id, true);
  bytes.set(body, 8);
  return [...bytes];
}

/** The first record of a message that comes in packets. */
export function first(payloadBytes: number, here: number, headerBytes = 0, id = DATA): number[] {
  const prefix = [...new Uint8Array(FIRST_PREFIX_SIZE)];
  prefix.splice(0, 4, ...new Uint8Array(Uint32Array.of(payloadBytes).buffer));
  const body = [...prefix, ...new Array<number>(here).fill(7)];
  return record(KIND_FIRST, headerBytes, body, body.length, id);
}

export const fill = (bytes: number) => new Array<number>(bytes).fill(7);
export const records = (...all: readonly number[][]): Frame => ({ records: Uint8Array.from(all.flat()) });
/** So many messages without header and payload. */
export const empty = (count: number): Frame => {
  const one = record(KIND_MESSAGE, 0, [], 0, 0);
  return { records: bytesFrom(count * one.length, (at) => one[at % one.length] as number) };
};
/** Names an rget FIFO, and says nothing more of it. */
export const chainWords = (offset: number, generation: number, index = 0) =>
  Int32Array.of(index, 1, offset, generation);
export const descriptor = (kind: number, bytes: number) => Int32Array.of(kind, bytes, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
export const ask = (
  kind: number,
  bytes: number,
  { moved = 0, more = [] as number[], data = undefined as Uint8Array | undefined },
) => ({
  ask: 1,
  descriptor: descriptor(kind, bytes),
  moved,
  more: Int32Array.from(more),
  data,
});

export function hostileJob(seed: number, limits = LIMITS) {
  const job = new NetworkedJob({ seed, limits, kernels: ["wasm", "ts"], tasksPerNode: 2 });
  const member = (task: number): Networked => job.tasks[task] as Networked;
  const [target, hostile, honest] = [TARGET, HOSTILE, HONEST].map(member) as [Networked, Networked, Networked];
  const context = target.client.createContext();
  const sibling = member(SIBLING).client.createContext();
  const other = honest.client.createContext();
  /** Bytes of what came, by the task that sent it: to the target, and to its sibling. */
  const [came, beside]: [number, number][][] = [[], []] as [[number, number][], [number, number][]];
  for (const [one, list] of [
    [context, came],
    [sibling, beside],
  ] as const) {
    one.dispatch(DATA, (message) => {
      list.push([taskOf(message.origin), message.payloadBytes]);
      if (!message.immediate) message.receive(new Uint8Array(message.payloadBytes));
    });
  }
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      await job.turn();
      while (context.advance() > 0);
      while (sibling.advance() > 0);
    }
  };
  const post = async (frame: Frame, to: number = TARGET, from: number = HOSTILE): Promise<void> => {
    hostile.frames.send(from, to, frame);
    hostile.frames.flush();
    await settle();
  };
  /** To the target's node, whatever the frame names. */
  const postRaw = async (frame: Frame, to: number, from: number): Promise<void> => {
    const { kind, head, data } = encode(frame);
    submit(hostile.sessions, 0, from, to, kind, Uint8Array.of(...head, ...data));
    hostile.frames.flush();
    await settle();
  };
  /** While the target does not look. */
  const postAll = async (frames: readonly Frame[]): Promise<void> => {
    for (const frame of frames) hostile.frames.send(HOSTILE, TARGET, frame);
    hostile.frames.flush();
    for (let i = 0; i < 50; i++) await job.turn();
  };
  const close = (): void => {
    for (const { client } of job.tasks) client.close();
  };
  return { job, target, hostile, honest, context, sibling, other, came, beside, post, postRaw, postAll, settle, close };
}

// poll_oneoff(): how a program sleeps, and how it asks whether a descriptor is ready.

import type { WasiCall, WasiState } from "./host.js";
import { fail, RIGHT, WasiFailure } from "./numbers.js";
import { timeOf } from "./process-calls.js";

/** Offsets in `__wasi_subscription_t`, and its bytes. */
const SUBSCRIPTION = { tag: 8, fd: 16, clock: 16, timeout: 24, flags: 40, bytes: 48 } as const;
/** Offsets in `__wasi_event_t`, and its bytes. */
const EVENT = { error: 8, kind: 10, available: 16, flags: 24, bytes: 32 } as const;
const KIND = { clock: 0, read: 1, write: 2 } as const;
const IS_ABSOLUTE = 1;
const NANOSECONDS = 1_000_000;
/** A longer list is a mistake, and would keep the thread long. */
const SUBSCRIPTIONS_MAX = 4096;

interface Event {
  /** Where its subscription stands. */
  readonly at: number;
  readonly kind: number;
  readonly errno: number;
  /** Bytes that may be read or written at once. */
  readonly available: bigint;
}

interface Alarm {
  readonly at: number;
  /** Nanoseconds until then. */
  readonly left: () => bigint;
}

export function pollCalls(state: WasiState): Record<string, WasiCall> {
  const { host, memory } = state;
  return {
    poll_oneoff(subscriptions: number, events: number, count: number, result: number) {
      const total = count >>> 0;
      if (total === 0 || total > SUBSCRIPTIONS_MAX) fail("INVAL");
      memory.need(subscriptions, total * SUBSCRIPTION.bytes);
      memory.need(events, total * EVENT.bytes);
      memory.need(result, 4);
      const found: Event[] = [];
      const alarms: Alarm[] = [];
      for (let i = 0; i < total; i++) {
        const at = (subscriptions >>> 0) + i * SUBSCRIPTION.bytes;
        const kind = memory.u8(at + SUBSCRIPTION.tag);
        if (kind > KIND.write) fail("INVAL");
        if (kind === KIND.clock) addAlarm(state, at, alarms, found);
        else found.push(readiness(state, at, kind));
      }
      while (found.length === 0) {
        const left = alarms.map((alarm) => alarm.left()).reduce((least, one) => (one < least ? one : least));
        if (left <= 0n) break;
        host.sleep(Number(left) / NANOSECONDS);
      }
      for (const { at, left } of alarms)
        if (left() <= 0n) found.push({ at, kind: KIND.clock, errno: 0, available: 0n });
      for (const [i, event] of found.entries()) writeEvent(state, (events >>> 0) + i * EVENT.bytes, event);
      memory.setU32(result, found.length);
    },
  };
}

function addAlarm(state: WasiState, at: number, alarms: Alarm[], found: Event[]): void {
  const { memory } = state;
  const clock = memory.u32(at + SUBSCRIPTION.clock);
  const timeout = memory.u64(at + SUBSCRIPTION.timeout);
  const isAbsolute = (memory.u16(at + SUBSCRIPTION.flags) & IS_ABSOLUTE) !== 0;
  try {
    const due = isAbsolute ? timeout : timeOf(state, clock) + timeout;
    alarms.push({ at, left: () => due - timeOf(state, clock) });
  } catch (error) {
    if (!(error instanceof WasiFailure)) throw error;
    found.push({ at, kind: KIND.clock, errno: error.errno, available: 0n });
  }
}

/** All descriptors are ready: files do not block, and a read of standard input waits. */
function readiness({ memory, descriptors }: WasiState, at: number, kind: number): Event {
  try {
    const found = descriptors.get(memory.u32(at + SUBSCRIPTION.fd), RIGHT.poll);
    const isFile = found.kind === "file" && kind === KIND.read;
    const left = isFile ? found.file.status().size - BigInt(found.position) : 1n;
    return { at, kind, errno: 0, available: left < 0n ? 0n : left };
  } catch (error) {
    if (!(error instanceof WasiFailure)) throw error;
    return { at, kind, errno: error.errno, available: 0n };
  }
}

function writeEvent({ memory }: WasiState, to: number, { at, kind, errno, available }: Event): void {
  const userdata = memory.u64(at);
  memory.setU64(to, userdata);
  memory.setU16(to + EVENT.error, errno);
  memory.setU8(to + EVENT.kind, kind);
  memory.setU64(to + EVENT.available, available);
  memory.setU16(to + EVENT.flags, 0);
}

// job.trace(): the events of all tasks, read from the shared memory, in the format of Chrome's trace viewer and Perfetto:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
import * as L from "../../assembly/layout.js";
import { contextOf, taskOf } from "../core/endpoint.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { type MemoryMap, traceRing } from "../memory/map.js";
import { WAITS } from "../node/wait-kinds.js";
import { nodeModule } from "../support/host.js";

/** An event of a trace. Times are in microseconds. */
export interface TraceEvent {
  /** `X`: lasts `dur`. `s`, `f`: begin and end of an arrow. `b`, `e`: of a fence. `i`: an instant. `M`: a name. */
  readonly ph: "X" | "s" | "f" | "b" | "e" | "i" | "M";
  /** Label: `send id 7`, `id 7` (its handler), `put`, `asleep in progress()`, `task 1 has ended`. */
  readonly name: string;
  /** Kind of the event: `send`, `handler`, `message` (an arrow), `transfer`, `fence`, `park`, `death`. */
  readonly cat?: string;
  /** Begin of the event, counted from the first event of the trace. */
  readonly ts: number;
  /** Duration of the event. */
  readonly dur?: number;
  /** Process: always 1, because all tasks share one. */
  readonly pid: number;
  /** Number of the task. */
  readonly tid: number;
  /** Id that both ends of an arrow or fence share. */
  readonly id?: number;
  /** For an arrow: it ends at the event that is under way at that time. */
  readonly bp?: "e";
  /** For an instant: its scope is the task. */
  readonly s?: "t";
  /** Endpoints (`from`, `to`, as task.context), bytes, and the number of the message. */
  readonly args?: Readonly<Record<string, unknown>>;
}

/** The result of `job.trace()`: the last events of all tasks. */
export interface Trace {
  /** The events of each task, in order. */
  readonly traceEvents: readonly TraceEvent[];
  /** Unit in which viewers show times. */
  readonly displayTimeUnit: "ns";
  /**
   * Time of `ts` 0 in milliseconds, on a clock that all threads of the machine share: two traces lie on one axis by their
   * origins. In browsers it is `performance.timeOrigin + performance.now()`, in Node `process.hrtime()`; 0 without events.
   */
  readonly origin: number;
  /** Returns the trace as JSON text, which Perfetto and chrome://tracing open. */
  toString(): string;
}

/** Options of `job.trace` and `job.traceAll`. */
export interface TraceReadOptions {
  /**
   * Last entries of each task's ring that are read, at least 1 (default: all): for a live view. An entry is an event or a
   * reading of the clock, as in `launch({ trace: { events } })`.
   */
  events?: number | undefined;
}

/** One event as it stands in a ring, with its time in milliseconds. */
export interface Recorded {
  readonly kind: number;
  readonly id: number;
  readonly context: number;
  readonly whom: number;
  readonly count: number;
  readonly bytes: number;
  time: number;
}

const EVENT_WORDS = 1 << (L.TRACE_EVENT_SHIFT - 2);
const ID_MASK = (1 << (L.TRACE_CONTEXT_SHIFT - L.TRACE_ID_SHIFT)) - 1;
const KIND_MASK = (1 << L.TRACE_ID_SHIFT) - 1;
/** The process of all events: all tasks share one. */
const PID = 1;
const TRANSFERS: Readonly<Record<number, string>> = {
  [L.TRACE_PUT]: "put",
  [L.TRACE_GET]: "get",
  [L.TRACE_RMW]: "rmw",
};

/**
 * The events of one task, the oldest first. Clock readings are included only where they end a round.
 * @param last entries of the ring that are read at most
 */
export function recorded(
  map: MemoryMap,
  { buffer }: Memory,
  kernel: Pick<Kernel, "loadWord">,
  task: number,
  last = map.traceEvents,
): Recorded[] {
  const ring = traceRing(map, task);
  const position = (): number => kernel.loadWord(ring + L.TRACE_POSITION_OFFSET) >>> 0;
  const first = ring + L.TRACE_EVENTS_OFFSET;
  const size = map.traceEvents;
  const end = position();
  // The first of the last entries needs a reading before it, which dates it.
  const wanted = Math.min(size, last + L.TRACE_UNREAD_MAX);
  const cells = copyOf(new Int32Array(buffer, first, size * EVENT_WORDS), end, wanted);
  // The task goes on meanwhile. The events that it has overwritten since, and the one that it writes now, are dropped.
  const written = (position() - end) >>> 0;
  const kept = Math.max(0, Math.min(end, wanted, size - 1 - written));
  const events: Recorded[] = [];
  const floats = new Float64Array(cells.buffer);
  /** Events after the last reading of the clock: their time is not known yet. */
  let open = 0;
  let read = Number.NaN;
  /** Events before the last entries: they are there to date the others. */
  let early = 0;
  for (let back = kept; back > 0; back--) {
    const at = (wanted - back) * EVENT_WORDS;
    const head = cells[at] as number;
    const whom = cells[at + 1] as number;
    const kind = head & KIND_MASK;
    if (kind === L.TRACE_CLOCK) {
      const now = floats[(at + 2) >>> 1] as number;
      // Spreads the events over the time between two readings, the first at its beginning.
      for (let place = 0; place < open; place++) {
        (events.at(place - open) as Recorded).time = read + ((now - read) * place) / open;
      }
      open = 0;
      read = now;
      if (whom !== 1) continue;
    } else if (Number.isNaN(read)) continue;
    // Until the round is over, events are a nanosecond apart.
    events.push({
      kind,
      id: (head >>> L.TRACE_ID_SHIFT) & ID_MASK,
      context: head >>> L.TRACE_CONTEXT_SHIFT,
      whom: whom >>> 0,
      count: (cells[at + 2] as number) >>> 0,
      bytes: (cells[at + 3] as number) >>> 0,
      time: read + open * 1e-6,
    });
    if (kind !== L.TRACE_CLOCK) open++;
    if (back > last) early = events.length;
  }
  return events.slice(early);
}

/** The last entries of a ring before a position, in order. Entries before the first are any. */
function copyOf(ring: Int32Array, end: number, count: number): Int32Array {
  const copy = new Int32Array(count * EVENT_WORDS);
  const to = (end * EVENT_WORDS) % ring.length;
  const tail = Math.min(to, copy.length);
  copy.set(ring.subarray(to - tail, to), copy.length - tail);
  copy.set(ring.subarray(ring.length - (copy.length - tail)), 0);
  return copy;
}

/** Microseconds from one time to another, at least a nanosecond. */
const length = (from: number, to: number): number => Math.max(0.001, Math.round((to - from) * 1e3) / 1e3);

const OWN_IDS: Readonly<Record<number, string>> = {
  [L.DISPATCH_ID_CALL]: "call",
  [L.DISPATCH_ID_REPLY]: "reply",
  [L.DISPATCH_ID_ABORT]: "abort",
  [L.DISPATCH_ID_COLLECTIVE]: "collective",
};

const nameOfId = (id: number): string => OWN_IDS[id] ?? `id ${id}`;

const nameOfEndpoint = (endpoint: number): string =>
  endpoint === L.NONE ? "all" : `${taskOf(endpoint)}.${contextOf(endpoint)}`;

/** The trace of the tasks of this memory. */
export function traceOf(
  map: MemoryMap,
  memory: Memory,
  kernel: Pick<Kernel, "loadWord">,
  tasks: number,
  events: number | undefined,
): Trace {
  const count = Math.min(tasks, map.locals);
  return traceFrom(Array.from({ length: count }, (_, task) => recorded(map, memory, kernel, task, events)));
}

/** The trace of these tasks; undefined: the events of that task were not read. */
export function traceFrom(given: readonly (readonly Recorded[] | undefined)[]): Trace {
  const all = given.map((events) => events ?? []);
  const begin = all.reduce((least, events) => Math.min(least, events[0]?.time ?? least), Number.POSITIVE_INFINITY);
  const micros = (time: number): number => Math.round((time - begin) * 1e6) / 1e3;
  const out: TraceEvent[] = [];
  const arrows = new Map<string, number>();
  const arrow = (from: string, to: string, { id, count }: Recorded): number => {
    const key = `${from} ${to} ${id} ${count}`;
    const known = arrows.get(key) ?? arrows.size + 1;
    arrows.set(key, known);
    return known;
  };
  for (const [task, events] of all.entries()) {
    const of = { pid: PID, tid: task };
    out.push({
      ph: "M",
      name: "thread_name",
      ts: 0,
      ...of,
      args: { name: `task ${task}${given[task] ? "" : ", not read"}` },
    });
    /** When the current handler and the current sleep began. */
    let handler: number | undefined;
    let parked: Recorded | undefined;
    const handlerEnds = (ts: number): void => {
      if (handler === undefined) return;
      const begun = out[handler] as TraceEvent;
      out[handler] = { ...begun, dur: length(begun.ts, ts) };
      handler = undefined;
    };
    for (const [place, event] of events.entries()) {
      const { kind, id, context, whom, count, bytes, time } = event;
      const ts = micros(time);
      const own = `${task}.${context}`;
      const other = nameOfEndpoint(whom);
      // Up to the next event, but at most a microsecond: the next event may begin another round.
      const lasts = Math.min(1, length(ts, micros(events[place + 1]?.time ?? time)));
      if (kind === L.TRACE_SEND) {
        const name = `send ${nameOfId(id)}`;
        out.push({ ph: "X", name, cat: "send", ts, dur: lasts, ...of, args: { from: own, to: other, count, bytes } });
        out.push({ ph: "s", name: "message", cat: "message", ts, ...of, id: arrow(own, other, event) });
      } else if (kind === L.TRACE_HANDLER) {
        handlerEnds(ts);
        handler = out.length;
        const args = { from: other, to: own, count, bytes };
        out.push({ ph: "X", name: nameOfId(id), cat: "handler", ts, dur: lasts, ...of, args });
        out.push({ ph: "f", bp: "e", name: "message", cat: "message", ts, ...of, id: arrow(other, own, event) });
      } else if (kind === L.TRACE_FENCE || kind === L.TRACE_FENCED) {
        const ph = kind === L.TRACE_FENCE ? "b" : "e";
        out.push({
          ph,
          name: "fence",
          cat: "fence",
          ts,
          ...of,
          id: fenceOf(task, context, count),
          args: { to: other },
        });
      } else if (kind === L.TRACE_CLOCK) handlerEnds(ts);
      else if (kind === L.TRACE_PARK) parked = event;
      else if (kind === L.TRACE_WAKE && parked !== undefined) {
        const since = micros(parked.time);
        const name = `asleep in ${Object.keys(WAITS)[count]}`;
        out.push({ ph: "X", name, cat: "park", ts: since, dur: length(since, ts), ...of });
        parked = undefined;
      } else if (kind === L.TRACE_DEATH) {
        out.push({ ph: "i", s: "t", name: `task ${count} has ended`, cat: "death", ts, ...of });
      } else if (kind in TRANSFERS) {
        const name = TRANSFERS[kind] as string;
        out.push({ ph: "X", name, cat: "transfer", ts, dur: lasts, ...of, args: { from: own, to: other, bytes } });
      }
    }
  }
  return traceWith(whole(out), Number.isFinite(begin) ? begin : 0);
}

function traceWith(traceEvents: readonly TraceEvent[], origin: number): Trace {
  const trace = { traceEvents, displayTimeUnit: "ns" as const, origin };
  return { ...trace, toString: () => JSON.stringify(trace) };
}

/** Leaves out arrows without their begin or end, and ends of fences without their begin: viewers report them as errors. */
function whole(events: readonly TraceEvent[]): TraceEvent[] {
  const seen = { s: new Set<number>(), f: new Set<number>(), b: new Set<number>() };
  const idOf = ({ id }: TraceEvent): number => id as number;
  for (const event of events) if (event.ph in seen) seen[event.ph as keyof typeof seen].add(idOf(event));
  const other = { s: seen.f, f: seen.s, e: seen.b };
  return events.filter((event) => other[event.ph as keyof typeof other]?.has(idOf(event)) ?? true);
}

/** Traced jobs of this process that go to a file. */
let files = 0;

/** Writes the trace when the job or the process ends. The second job's file has its number before the extension. */
export function writeAtEnd(job: { readonly exited: Promise<unknown>; trace(): Trace }, file: string): void {
  const fs = nodeModule("fs") as typeof import("node:fs");
  files++;
  const own = files === 1 ? file : file.replace(/(\.[^./\\]*)?$/, `-${files}$1`);
  const write = (): void => {
    try {
      fs.writeFileSync(own, String(job.trace()));
    } catch (error) {
      console.warn(`pamir: the trace is lost: ${(error as Error).message}`);
    }
  };
  process.on("exit", write);
  void job.exited.then(() => {
    process.off("exit", write);
    write();
  });
}

/** A number that no other fence has. */
function fenceOf(task: number, context: number, count: number): number {
  return (task * 256 + context) * 2 ** 32 + count;
}

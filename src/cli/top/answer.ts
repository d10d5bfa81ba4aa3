// What a job answers to `pamir top`, and whether an answer is that. Another version of pamir may say something else.
import type { Dump } from "pamir";

/** Where a node is in its job. */
interface Place {
  /** The job's fingerprint. */
  readonly job: number;
  readonly node: number;
  readonly tasksPerNode: number;
  /** The process that started the answering one. */
  readonly parent: number;
  /** By node: its answering process. */
  readonly nodes: readonly { readonly pid: number; readonly isHere: boolean }[];
}

/** What a socket answers, with the time of the look, in milliseconds. */
export interface Seen {
  readonly socket: string;
  readonly at: number;
  readonly pid: number;
  readonly program: readonly string[];
  /** Undefined: the dump is of the whole job. */
  readonly place?: Place;
  readonly dump: Dump;
}

/** What a value has to be: of this type, a list of such, or an object with such members and perhaps more. */
type Shape = "number" | "string" | "boolean" | readonly [Shape] | { readonly [name: string]: Shape };

const CONTEXT: Shape = {
  context: "number",
  messages: "number",
  pending: { bytes: "number" },
  unexpectedBytes: "number",
  calls: "number",
  waits: ["string"],
  lanes: [{ queued: "number" }],
};

/** What `pamir top` shows. */
const ANSWER: Shape = {
  pid: "number",
  program: ["string"],
  dump: {
    heap: { bytes: "number", free: "number" },
    stuck: ["string"],
    tasks: [
      {
        task: "number",
        state: "string",
        parked: "boolean",
        sleeps: "number",
        spinsWon: "number",
        spinsLost: "number",
        contexts: [CONTEXT],
      },
    ],
  },
};

const PLACE: Shape = {
  job: "number",
  node: "number",
  tasksPerNode: "number",
  parent: "number",
  nodes: [{ pid: "number", isHere: "boolean" }],
};

function has(value: unknown, shape: Shape): boolean {
  if (typeof shape === "string") return typeof value === shape;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(shape)) return Array.isArray(value) && value.every((one) => has(one, shape[0] as Shape));
  return Object.entries(shape).every(([name, member]) => has((value as Record<string, unknown>)[name], member));
}

export function isAnswer(value: unknown): value is Omit<Seen, "socket" | "at"> {
  if (!has(value, ANSWER)) return false;
  const { place } = value as { place?: unknown };
  return place === undefined || has(place, PLACE);
}

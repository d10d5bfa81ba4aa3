// What a job answers to `pamir top`, and whether an answer is that. Another version of pamir may say something else.
import type { Dump } from "pamir";

/** Where a node is in its job. */
interface Place {
  /** The job's fingerprint. */
  readonly job: number;
  /** The name under which its nodes met. */
  readonly name?: string;
  readonly node: number;
  readonly tasksPerNode: number;
  /** The process that started the answering one. */
  readonly parent: number;
  /** By node: its answering process. */
  readonly nodes: readonly { readonly pid: number; readonly isHere: boolean }[];
}

/** How packets go to another node. */
export interface NodeWay {
  readonly node: number;
  /** Undefined: none have gone there. */
  readonly by?: string;
  readonly at?: string;
  /** Milliseconds. */
  readonly age?: number;
  readonly hasEnded: boolean;
}

/** How packets go to the other nodes. */
interface NodeWays {
  /** The kind of the link. */
  readonly link: string;
  /** False: the node's agent was busy. */
  readonly isKnown: boolean;
  readonly ways: readonly NodeWay[];
  readonly traffic: readonly {
    readonly by: string;
    readonly at?: string;
    readonly sent: number;
    readonly received: number;
    readonly breaks: number;
  }[];
}

/** What a socket answers, with the time of the look, in milliseconds. */
export interface Seen {
  readonly socket: string;
  readonly at: number;
  readonly pid: number;
  readonly program: readonly string[];
  /** Undefined: the dump is of the whole job. */
  readonly place?: Place;
  readonly ways?: NodeWays;
  readonly dump: Dump;
}

/**
 * What a value has to be: of this type, a list of such, or an object with such members and perhaps more. A name that ends with
 * "?" may be absent.
 */
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
  "name?": "string",
  node: "number",
  tasksPerNode: "number",
  parent: "number",
  nodes: [{ pid: "number", isHere: "boolean" }],
};

const WAYS: Shape = {
  link: "string",
  isKnown: "boolean",
  ways: [{ node: "number", "by?": "string", "at?": "string", "age?": "number", hasEnded: "boolean" }],
  traffic: [{ by: "string", "at?": "string", sent: "number", received: "number", breaks: "number" }],
};

function has(value: unknown, shape: Shape): boolean {
  if (typeof shape === "string") return typeof value === shape;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(shape)) return Array.isArray(value) && value.every((one) => has(one, shape[0] as Shape));
  return Object.entries(shape).every(([name, member]) => {
    const found = (value as Record<string, unknown>)[name.replace("?", "")];
    return (found === undefined && name.endsWith("?")) || has(found, member);
  });
}

export function isAnswer(value: unknown): value is Omit<Seen, "socket" | "at"> {
  if (!has(value, ANSWER)) return false;
  return has(value, { "place?": PLACE, "ways?": WAYS });
}

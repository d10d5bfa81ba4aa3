// Debug mode: each member sends its call to all other members, and the operation begins once all calls are there. So all
// members compare the same calls, find the same difference, and name the same member. A member whose arguments are refused
// sends the refusal.
import type { Arrival } from "../protocol/late-handler.js";

/** A member's call. Members must agree on the first fields; the last two fields must fit each other. */
export interface CollectiveCall {
  /** "reduce() of f64 by sum" */
  readonly what: string;
  readonly root: number;
  readonly bytes: number;
  /** Bytes of the blocks of all members, if all members know them. */
  readonly counts: string;
  readonly algorithm: string;
  /** Bytes that go to each member, and that come from each, where members have blocks of different lengths. */
  readonly gives: readonly number[];
  readonly gets: readonly number[];
  /** Why the member has begun nothing: its arguments were refused. */
  readonly refusal?: string;
}

const AGREED = ["what", "root", "bytes", "counts", "algorithm"] as const;

/** Bytes of the longest call that is read: its texts, and two numbers for each member. */
const TEXTS_MAX = 65_536;
const MEMBER_MAX = 64;

/** The call in a message. A malformed call differs from all other calls. */
export function callIn({ payload, payloadBytes }: Arrival, size: number): CollectiveCall {
  try {
    if (payloadBytes <= TEXTS_MAX + MEMBER_MAX * size) {
      const call = JSON.parse(new TextDecoder().decode(payload.slice())) as CollectiveCall;
      const { gives, gets, refusal } = call;
      const texts = [refusal, ...AGREED.map((field) => call[field])];
      // Anything else could not be put into the text of an error.
      const areTexts = texts.every((value) => value == null || typeof value === "string" || typeof value === "number");
      if (areTexts && areNumbers(gives) && areNumbers(gets)) return call;
    }
  } catch {}
  return { what: "an unknown operation", gives: [], gets: [] } as unknown as CollectiveCall;
}

function areNumbers(values: unknown): boolean {
  return Array.isArray(values) && values.every((value) => value == null || typeof value === "number");
}

/** The first place whose value differs from most places, and the first of these most places; -1: all have the same value. */
export function oddOf(values: readonly unknown[]): [odd: number, usual: number] {
  if (values.every((value) => value === values[0])) return [-1, 0];
  const votes = (value: unknown): number => values.filter((other) => other === value).length;
  const usual = values.reduce((best, value) => (votes(value) > votes(best) ? value : best));
  return [values.findIndex((value) => value !== usual), values.indexOf(usual)];
}

/** The calls of the members for one operation. */
export class Check {
  /** By rank. */
  readonly calls: (CollectiveCall | undefined)[];

  constructor(size: number) {
    this.calls = new Array(size).fill(undefined);
  }

  /** Ranks whose calls are awaited. */
  awaited(): number[] {
    return [...this.calls.keys()].filter((rank) => this.calls[rank] === undefined);
  }

  /** Which member differs from most other members, and how, once all calls are there; empty if no member differs. */
  difference(): string {
    const calls = this.calls as CollectiveCall[];
    const refused = calls.findIndex(({ refusal }) => refusal !== undefined);
    if (refused >= 0) {
      return `rank ${refused} has begun nothing, as its arguments were refused: ${calls[refused]?.refusal}`;
    }
    for (const field of AGREED) {
      const values = calls.map((call) => call[field]);
      const [odd, usual] = oddOf(values);
      if (odd < 0) continue;
      const name = field === "what" ? "" : `${calls[odd]?.what} with ${field} `;
      return `rank ${odd} has begun ${name}${values[odd]}, rank ${usual} ${name}${values[usual]}`;
    }
    let text = "";
    for (const [from, { what, gives }] of calls.entries()) {
      for (const [to, bytes] of gives.entries()) {
        const awaited = calls[to]?.gets[from];
        if (bytes !== awaited) {
          text ||= `${what}: rank ${from} has ${bytes} bytes for rank ${to}, which awaits ${awaited}`;
        }
      }
    }
    return text;
  }
}

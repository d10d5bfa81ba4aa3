import { codecs, dispatchId } from "pamir";
import { askInTurn, count, halve, rotate, scatterUpdates } from "./members.js";

/** @typedef {import("pamir").Geometry} Geometry */
/** What all members of a geometry do together, without blocking. */
export const TOGETHER = {
  halve,
  rotate: (/** @type {Geometry} */ world) => rotate(world, false),
  count: (/** @type {Geometry} */ world) => count(world, false, false),
  countStriped: (/** @type {Geometry} */ world) => count(world, true, false),
  scatterUpdates: async (/** @type {Geometry} */ world) => {
    const { changed, wrong } = await scatterUpdates(world, false);
    return changed > 0 ? wrong : "nothing has changed";
  },
  askInTurn: (/** @type {Geometry} */ world) => askInTurn(world, false),
};

// Dispatch ids that api.suite.ts and its tasks agree upon.
export const ANSWER = 1;
export const ECHO = 2;
export const LARGE = 3;
export const FORWARD = 4;
export const SEND = 5;
export const REGION = 6;
export const READ = 7;
export const HOLD = 8;
export const CLOSE = 9;
export const THROW = 10;
export const WATCH = 11;
export const LAST_WORDS = 12;
export const CALL_BACK = 13;
export const LATER = 14;
export const STREAM = 15;
export const OPEN = 16;
export const AWAIT_END = 17;
export const RELEASE = 18;
export const AWAIT_WORD = 22;
export const NOTIFIED = 23;
export const NOTED = 24;
export const PUT_BACK = 25;
export const SIZE = 26;
export const END_OF = 27;
export const BUSY = 28;
export const GEOMETRY = 31;
/**
 * One operation of a geometry: its case, and what the member has got by it.
 * @type {import("pamir").DispatchId<import("./collective-case.js").Case, Uint8Array>}
 */
export const CASE = dispatchId(29, codecs.json(), codecs.bytes);
/** What members do together, by its name. @type {import("pamir").DispatchId<keyof typeof TOGETHER, unknown>} */
export const DO = dispatchId(30, codecs.json(), codecs.json());
/** @type {import("pamir").DispatchId<{ numbers: number[], held?: boolean }, { sum: number, task: number }>} */
export const SUM = dispatchId(20, codecs.json(), codecs.json());
/** @type {import("pamir").DispatchId<string, string>} */
export const FAIL = dispatchId(21, codecs.text, codecs.text);

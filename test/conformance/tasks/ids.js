import { codecs, dispatchId } from "pamir";

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
/** @type {import("pamir").DispatchId<{ numbers: number[], held?: boolean }, { sum: number, task: number }>} */
export const SUM = dispatchId(20, codecs.json(), codecs.json());
/** @type {import("pamir").DispatchId<string, string>} */
export const FAIL = dispatchId(21, codecs.text, codecs.text);

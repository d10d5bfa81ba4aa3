// The waits of a thread, by the name of the call. The number is that of its counter in the context's block.
import {
  WAIT_ADVANCE_UNTIL,
  WAIT_CALL,
  WAIT_COLLECTIVE,
  WAIT_DRAIN,
  WAIT_ENDED,
  WAIT_FLUSH,
  WAIT_MESSAGES,
  WAIT_PROGRESS,
  WAIT_ROOM,
  WAIT_STARTED,
  WAIT_WORD,
} from "../../assembly/layout.js";

export const WAITS = {
  "advanceUntil()": WAIT_ADVANCE_UNTIL,
  "progress()": WAIT_PROGRESS,
  "whenRoom()": WAIT_ROOM,
  "messages()": WAIT_MESSAGES,
  "drain()": WAIT_DRAIN,
  "whenEnded()": WAIT_ENDED,
  "flush()": WAIT_FLUSH,
  "call()": WAIT_CALL,
  "waitWord()": WAIT_WORD,
  "whenStarted()": WAIT_STARTED,
  "collective()": WAIT_COLLECTIVE,
} as const;

export type WaitName = keyof typeof WAITS;

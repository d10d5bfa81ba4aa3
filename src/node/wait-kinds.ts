// The waits of a thread, by the name of the call. The number is that of its counter in the context's block.
import * as L from "../../assembly/layout.js";

export const WAITS = {
  "advanceUntil()": L.WAIT_ADVANCE_UNTIL,
  "progress()": L.WAIT_PROGRESS,
  "whenRoom()": L.WAIT_ROOM,
  "messages()": L.WAIT_MESSAGES,
  "drain()": L.WAIT_DRAIN,
  "whenEnded()": L.WAIT_ENDED,
  "flush()": L.WAIT_FLUSH,
  "call()": L.WAIT_CALL,
  "waitWord()": L.WAIT_WORD,
  "whenStarted()": L.WAIT_STARTED,
  "collective()": L.WAIT_COLLECTIVE,
} as const;

export type WaitName = keyof typeof WAITS;

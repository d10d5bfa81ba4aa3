// Takes news for a node of one task, on a thread that does not block.
import type { SharedAtomics } from "../../kernel/atomics.js";
import type { Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import { interruptTask } from "../../node/liveness.js";
import { dumpData } from "../../observe/dump.js";
import { recorded } from "../../observe/trace.js";
import { systemClock } from "../../support/clock.js";
import type { TaskNews, TaskReport } from "../start-message.js";

/** A node's memory on one thread. */
export interface NodeView {
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly sync: SharedAtomics;
}

/** The slot of the node's only task. */
export const SLOT = 0;

/** @param tell takes the answer to a question */
export function hearNews(
  { memory, map, sync }: NodeView,
  news: TaskNews,
  tell: (report: Extract<TaskReport, { answer: number }>) => void,
): void {
  if ("interrupt" in news) interruptTask(sync, map, SLOT);
  else if ("ask" in news) {
    const isTrace = news.what === "trace";
    const given = isTrace ? recorded(map, memory, sync, SLOT, news.events) : dumpData(map, memory, sync, systemClock);
    tell({ answer: news.ask, given });
  }
}

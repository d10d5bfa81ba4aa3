// Deliberate bugs in the FIFO message queue: see mutants.ts.
import type { Mutant } from "./mutants.js";
import { REORDER_SCENARIOS } from "./scenarios/reorder.js";

const TAIL = "  publish(queue, queue + QUEUE_TAIL_OFFSET, tail + 1);\n";
const LOCK = "  if (subHead + 1 == subTail) publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_LOCKED);\n";
const NEXT = "  store<u32>(queue, next + 1, QUEUE_NEXT_OFFSET);\n";
const UNLOCK = "  publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_RESET);\n";
const IS_LOCKED = "  if (loadWord(queue + QUEUE_TURN_OFFSET) != QUEUE_LOCKED) return 0;\n";

const CHANGES: readonly [name: string, find: string, replace: string][] = [
  ["S1: tail is published by a plain store", TAIL, "  store<u32>(queue, tail + 1, QUEUE_TAIL_OFFSET);\n"],
  [
    "S1: tail is published before the packet is in its slot",
    "  const slot = slotAt(queue, window, tail);\n",
    `${TAIL}  const slot = slotAt(queue, window, tail);\n`,
  ],
  [
    "S2: sub-tail goes on over what is out of sequence",
    "    while (subTail != tail && load<u32>(slotAt(queue, window, subTail)) == order) {\n",
    "    while (subTail != tail) {\n",
  ],
  ["S3: the run is given back before next is written", NEXT, `${LOCK}${NEXT}`],
  ["S3: the run is given back one packet early", LOCK, LOCK.replace("subHead + 1", "subHead + 2")],
  [
    "S5: the sub-pointers are reset to head, whatever is there",
    "  if (head == tail || load<u32>(slotAt(queue, window, head)) != next) {\n",
    "  if (head == tail) {\n",
  ],
  ["S6: head does not move on", "  store<u32>(queue, head, QUEUE_HEAD_OFFSET);\n", ""],
  ["S7: the sub-pointers are reset while the first thread is at its run", IS_LOCKED, ""],
  [
    "S7: whether they are locked is a plain look",
    IS_LOCKED,
    IS_LOCKED.replace("loadWord(queue + QUEUE_TURN_OFFSET)", "load<u32>(queue, QUEUE_TURN_OFFSET)"),
  ],
  [
    "S7: they are locked by a plain store",
    LOCK,
    LOCK.replace(
      "publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_LOCKED)",
      "store<u32>(queue, QUEUE_LOCKED, QUEUE_TURN_OFFSET)",
    ),
  ],
  ["S7: they are unlocked by a plain store", UNLOCK, "  store<u32>(queue, QUEUE_RESET, QUEUE_TURN_OFFSET);\n"],
  [
    "S7: they are unlocked before they are reset",
    "  store<u32>(queue, place, QUEUE_START_OFFSET);\n",
    "  if (place != tail) publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_RESET);\n  store<u32>(queue, place, QUEUE_START_OFFSET);\n",
  ],
  [
    "S7: the first thread takes no notice of the lock",
    "  if (loadWord(queue + QUEUE_TURN_OFFSET) == QUEUE_LOCKED) return 0;\n",
    "",
  ],
  [
    "S9: a packet is accepted twice",
    "  if (i32(ahead) < 0 || load<u32>(entry) == order) {\n",
    "  if (i32(ahead) < 0) {\n",
  ],
];

export const REORDER_MUTANTS: readonly Mutant[] = CHANGES.map(([name, find, replace]) => ({
  name,
  file: "session/reorder.ts",
  find,
  replace,
  scenarios: REORDER_SCENARIOS,
}));

// Deliberate bugs in the kernels and in what stands on them, as changes of the sources that ship: what ships knows nothing of them. A mutant that
// no scenario catches fails the suite, and so does one whose place is no longer found.
import { fileURLToPath } from "node:url";
import { JOB_REGIONS_BASE_OFFSET, REGION_SHIFT } from "../../assembly/layout.js";
import { compileKernels, misplacedOf, mutated, type SourceMutant } from "../support/compile.js";
import { ENGINE_MUTANTS } from "./engine-mutants.js";
import { MEMBER_MUTANTS } from "./member-mutants.js";
import { PURGE_MUTANTS } from "./purge-mutants.js";
import { REORDER_MUTANTS } from "./reorder-mutants.js";
import type { Scenario } from "./scenario.js";
import { ATTACH_SCENARIOS } from "./scenarios/attach.js";
import { BIND_SCENARIOS } from "./scenarios/bind.js";
import { BUFFER_SCENARIOS } from "./scenarios/buffer.js";
import { CHAIN_SCENARIOS } from "./scenarios/chain.js";
import { DEATH_SCENARIOS } from "./scenarios/death.js";
import { FAR_DEATH_SCENARIOS } from "./scenarios/far-death.js";
import { HEAP_SCENARIOS } from "./scenarios/heap.js";
import { HEAP_DEATH_SCENARIOS } from "./scenarios/heap-dies.js";
import { LANE_SCENARIOS } from "./scenarios/lane.js";
import { PARK_SCENARIOS, PIPE_SCENARIOS } from "./scenarios/park.js";
import { READY_SCENARIOS } from "./scenarios/ready.js";
import { RMA_SCENARIOS } from "./scenarios/rma.js";
import { RMA_ENDS_SCENARIOS } from "./scenarios/rma-ends.js";

export interface Mutant extends SourceMutant {
  /** One of these is to catch it; default: those about its file. */
  readonly scenarios?: readonly Scenario[];
}

const DIVIDE = "        if (length > pages) storeWord(entry + (pages << 2), length - pages);\n";
const NAME_EXTENT =
  "        word = (state << EXTENT_STATE_SHIFT) | (owner << EXTENT_OWNER_SHIFT) | pages;\n        storeWord(entry, word);\n";
const MEND = "  kernel.exchangeIf(map.job + L.JOB_HEAP_LOCK_OFFSET, task + 1, 0);\n";

/** A task dies while it uses the heap. */
const HEAP_DEATH_MUTANTS: readonly Mutant[] = [
  {
    name: "the monitor does not mend the heap's lock",
    file: "src/node/liveness.ts",
    find: MEND,
    replace: "",
  },
  {
    name: "the monitor frees the heap's lock, whoever holds it",
    file: "src/node/liveness.ts",
    find: MEND,
    replace: "  kernel.storeWord(map.job + L.JOB_HEAP_LOCK_OFFSET, 0);\n",
  },
  {
    name: "the monitor does not mend the heap's lock where the agent held it",
    file: "src/node/liveness.ts",
    find: "    kernel.exchangeIf(map.job + L.JOB_HEAP_LOCK_OFFSET, slot + 1, 0);",
    replace: "",
  },
  {
    name: "an extent is entered before the rest of the free one that it was cut from",
    file: "heap.ts",
    find: `${DIVIDE}${NAME_EXTENT}`,
    replace: `${NAME_EXTENT}${DIVIDE}`,
  },
  {
    name: "an extent has its owner only once the heap's lock is free",
    file: "heap.ts",
    find: "  storeWord(lock, 0);\n  if (found",
    replace:
      "  storeWord(lock, 0);\n  if (found != OPEN_NO_MEMORY) {\n    const entry = table + (page << 2);\n    storeWord(entry, loadWord(entry) ^ (EXTENT_OWNER_MASK << EXTENT_OWNER_SHIFT));\n  }\n  if (found",
  },
].map((mutant) => ({ scenarios: HEAP_DEATH_SCENARIOS, ...mutant }));

const LANES = [
  ...LANE_SCENARIOS,
  ...READY_SCENARIOS,
  ...PARK_SCENARIOS,
  ...HEAP_SCENARIOS,
  ...ATTACH_SCENARIOS,
  ...DEATH_SCENARIOS,
];
const TRANSFERS = [...RMA_SCENARIOS, ...RMA_ENDS_SCENARIOS];

/** Which scenarios are about a file: all of them would take minutes for each mutant. */
export const SCENARIOS_OF: Readonly<Record<string, readonly Scenario[]>> = {
  "lane.ts": LANES,
  "reception.ts": LANES,
  "sync.ts": PARK_SCENARIOS,
  "heap.ts": HEAP_SCENARIOS,
  "buffer.ts": BUFFER_SCENARIOS,
  "engine.ts": TRANSFERS,
  "completion.ts": TRANSFERS,
  "region.ts": TRANSFERS,
  "chain.ts": CHAIN_SCENARIOS,
  "src/node/address.ts": BIND_SCENARIOS,
  "src/node/bell.ts": PARK_SCENARIOS,
  "src/process/pipe-words.ts": PIPE_SCENARIOS,
  "src/transport/net/bells.ts": PARK_SCENARIOS,
  "src/memory/regions.ts": RMA_ENDS_SCENARIOS,
  "src/protocol/eager/ended-origins.ts": RMA_ENDS_SCENARIOS,
  "src/node/liveness.ts": RMA_ENDS_SCENARIOS,
  "src/transport/net/agent.ts": FAR_DEATH_SCENARIOS,
};

const SAY_PIPE =
  "  words.storeWord(slot + TASK_PIPE_PROCESS_OFFSET, pid); // SYNC pipe (sleep): pairs with pipeOf().\n";

/** An rmw changes its word, and then wakes the owner of that. */
const CHANGE = `  if (bytes == 4) {
    const value = load<u32>(descriptor, DESCRIPTOR_VALUE_OFFSET);
    const old = changeWord(remote, what, value, load<u32>(descriptor, DESCRIPTOR_TEST_OFFSET), compares);
    if (fetches) store<u32>(local, old);
  } else {
    const value = load<u64>(descriptor, DESCRIPTOR_VALUE_OFFSET);
    const old = changeWide(remote, what, value, load<u64>(descriptor, DESCRIPTOR_TEST_OFFSET), compares);
    if (fetches) store<u64>(local, old);
  }
`;
const WAKE = "  if ((operation & RMW_NOTIFY) != 0) ringOwner(job, remoteIndex);\n";
const COMMIT = "  storeWord(record, commit);\n";
const READY = "  if ((loadWord(word) & bit) == 0) setBits(word, bit);\n";
const MOVE_PART = "  if (result == TRANSFER_DONE) result = transferPart(job, descriptor, true, moved, part);\n";
const TELL_PEER = "    tell(peer, taskOf(job, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET)));\n";

const CLOSE_AGENT = `  const agent = engineSlot(map) + L.TASK_STATE_OFFSET;
  // SYNC task-state (dead): pairs with hasEngineThread(), with serve(), which then does not begin, and with bind().
  if (kernel.exchangeIf(agent, L.TASK_ABSENT, L.TASK_CLOSED) === L.TASK_UP) kernel.storeWord(agent, L.TASK_DEAD);
`;
const MARK_PEERS = `  const peers = markUnreachable(kernel, map);
`;

/** Gives slots to tasks of other nodes. */
const BIND_MUTANTS: readonly Mutant[] = [
  {
    name: "the lock is not looked at before a slot is given away",
    file: "src/node/address.ts",
    find: "kernel.exchangeIf(lock, 0, holder + 1) !== 0; tries++",
    replace: "kernel.exchangeIf(lock, 0, holder + 1) !== 0 && tries < 2; tries++",
  },
  {
    name: "a task is not looked for once more under the lock",
    file: "src/node/address.ts",
    find: "  #bindLocked(number: number, least: number): number {\n    const bound = this.slotOf(number);\n",
    replace: "  #bindLocked(number: number, least: number): number {\n    const bound: number = UNBOUND;\n",
  },
  {
    name: "the first endpoint of a slot is stored before the others",
    file: "src/node/address.ts",
    find: "    for (let context = contexts - 1; context >= 0; context--) {\n",
    replace: "    for (let context = 0; context < contexts; context++) {\n",
  },
  {
    name: "nothing orders what a slot has with the look at it",
    file: "src/node/address.ts",
    find: "    return slot < locals || this.#kernel.loadWord(",
    replace: "    return true || slot < locals || this.#kernel.loadWord(",
  },
  {
    name: "a slot that a dead thread has begun to give away is lost",
    file: "src/node/address.ts",
    find: "L.TASK_STATE_OFFSET) < L.TASK_CLOSED;\n",
    replace: "L.TASK_STATE_OFFSET) === 0;\n",
  },
  {
    name: "a slot that is bound while the agent ends stays up",
    file: "src/node/address.ts",
    find: "    if (this.hasAgentEnded) {\n      this.#kernel.storeWord(",
    replace: "    if (L.NONE === 0) {\n      this.#kernel.storeWord(",
  },
  {
    name: "the agent is marked as dead behind the tasks of other nodes",
    file: "src/node/liveness.ts",
    find: `${CLOSE_AGENT}${MARK_PEERS}`,
    replace: `${MARK_PEERS}${CLOSE_AGENT}`,
    scenarios: BIND_SCENARIOS,
  },
  {
    name: "a thread looks at its bell before it says that it sleeps by its pipe",
    file: "src/process/pipe-words.ts",
    find: `${SAY_PIPE}  return words.loadWord(slot + TASK_BELL_OFFSET) !== seen;\n`,
    replace: `  const isRung = words.loadWord(slot + TASK_BELL_OFFSET) !== seen;\n${SAY_PIPE}  return isRung;\n`,
  },
  {
    name: "a thread does not look at its bell once more before it reads its pipe",
    file: "src/process/pipe-words.ts",
    find: "  return words.loadWord(slot + TASK_BELL_OFFSET) !== seen;\n",
    replace: "  return seen === -1;\n",
  },
  {
    name: "the agent is not told of what a dead thread gave away",
    file: "src/node/liveness.ts",
    find: "  kernel.addWord(map.job + L.JOB_BINDS_OFFSET, 1);",
    replace: "",
    scenarios: BIND_SCENARIOS,
  },
  {
    name: "the lock of a dead thread that gave a slot away is not released",
    file: "src/node/liveness.ts",
    find: "  kernel.exchangeIf(map.job + L.JOB_BIND_LOCK_OFFSET, task + 1, 0);",
    replace: "",
    scenarios: BIND_SCENARIOS,
  },
];

export const MUTANTS: readonly Mutant[] = [
  {
    name: "the record is published before its payload is written",
    file: "lane.ts",
    find: "  store<u32>(record, a, RECORD_BODY_OFFSET);\n  store<u32>(record, b, RECORD_BODY_OFFSET + 4);\n  publish(lane, record, RECORD_COMMITTED | bytes, RECORD_GRANULE);\n",
    replace:
      "  publish(lane, record, RECORD_COMMITTED | bytes, RECORD_GRANULE);\n  store<u32>(record, a, RECORD_BODY_OFFSET);\n  store<u32>(record, b, RECORD_BODY_OFFSET + 4);\n",
  },
  {
    name: "the commit is a plain store",
    file: "lane.ts",
    find: COMMIT,
    replace: "  store<u32>(record, commit);\n",
  },
  {
    name: "the word behind a record is not cleared",
    file: "lane.ts",
    find: "  store<u32>(lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1)), 0);\n",
    replace: "",
  },
  {
    name: "the word behind a record is cleared after the commit",
    file: "lane.ts",
    find: COMMIT,
    replace: `${COMMIT}  store<u32>(lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1)), 0);\n`,
  },
  {
    name: "the ready bit is never set",
    file: "lane.ts",
    find: READY,
    replace: "",
  },
  {
    name: "the ready bit is looked at before the commit",
    file: "lane.ts",
    find: COMMIT,
    replace: `  const seen = loadWord(load<usize>(lane, LANE_READY_WORD_OFFSET));\n  if ((seen & load<u32>(lane, LANE_READY_BIT_OFFSET)) != 0) {\n    storeWord(record, commit);\n    ring(load<usize>(lane, LANE_TARGET_TASK_OFFSET));\n    return;\n  }\n${COMMIT}`,
  },
  {
    name: "the bell is rung before the commit",
    file: "lane.ts",
    find: COMMIT,
    replace: `  ring(load<usize>(lane, LANE_TARGET_TASK_OFFSET));\n${COMMIT}  if (commit != 0) {\n    const early = load<usize>(lane, LANE_READY_WORD_OFFSET);\n    setBits(early, load<u32>(lane, LANE_READY_BIT_OFFSET));\n    return;\n  }\n`,
  },
  {
    name: "a full lane trusts the old copy of head",
    file: "lane.ts",
    find: "    const head = loadWord(lane + LANE_HEAD_OFFSET);\n    store<u32>(lane, head, LANE_HEAD_CACHE_OFFSET);\n    if (<i32>(tail - head) > limit) {\n",
    replace: "    const head = load<u32>(lane, LANE_HEAD_CACHE_OFFSET);\n    if (<i32>(tail - head) > limit) {\n",
  },
  {
    name: "the free granule is given away: wrap off by one",
    file: "lane.ts",
    find: "  const limit: i32 = capacity - RECORD_GRANULE - size;\n",
    replace: "  const limit: i32 = capacity - size;\n",
  },
  {
    name: "positions are compared as if they never wrapped",
    file: "lane.ts",
    find: "    if (<i32>(tail - head) > limit) {\n",
    replace: "    if (tail > head + limit) {\n",
  },
  {
    name: "records are freed before they are handled",
    file: "reception.ts",
    find: "  store<u32>(lane, 0, LANE_IDLE_OFFSET);\n  store<usize>(entry, record);\n",
    replace: "  store<u32>(lane, 0, LANE_IDLE_OFFSET);\n  store<usize>(entry, record);\n  laneRelease(lane);\n",
  },
  {
    name: "no thread rings for freed room",
    file: "lane.ts",
    find: "  if (loadWord(lane + LANE_ROOM_WANTED_OFFSET) != 0) ring(load<usize>(lane, LANE_ORIGIN_TASK_OFFSET));\n",
    replace: "",
  },
  {
    name: "whether room is wanted is looked at before head is moved",
    file: "lane.ts",
    find: "  storeWord(lane + LANE_HEAD_OFFSET, next);\n",
    replace:
      "  const wanted = loadWord(lane + LANE_ROOM_WANTED_OFFSET);\n  storeWord(lane + LANE_HEAD_OFFSET, next);\n  if (wanted == 0) return;\n",
  },
  {
    name: "the lane is not polled once more after its ready bit was cleared",
    file: "reception.ts",
    find: "  if (loadWord(polled) != 0) {\n    setBits",
    replace: "  if (polled == 0) {\n    setBits",
  },
  {
    name: "the ready bit is cleared after the last poll",
    file: "reception.ts",
    find: "  clearBits(context + CONTEXT_READY_OFFSET + word, bit);\n  const polled = polledOf(context, origin); // read now: the origin may have opened the lane since the last poll\n  if (loadWord(polled) != 0) {\n",
    replace:
      "  const polled = polledOf(context, origin);\n  const last_ = loadWord(polled);\n  clearBits(context + CONTEXT_READY_OFFSET + word, bit);\n  if (last_ != 0) {\n",
  },
  {
    name: "the last look before sleep leaves out new ready bits",
    file: "reception.ts",
    find: "    if ((loadWord(context + CONTEXT_READY_OFFSET + (word << 2)) & ~attending) != 0) return 1;\n",
    replace: "    if (attending == 0xffffffff) return 1;\n",
  },
  {
    name: "the last look before sleep comes before the bell is armed",
    file: "reception.ts",
    find: "  bellArm(load<usize>(context, CONTEXT_TASK_OFFSET));\n  return peek(context);\n",
    replace: "  const found = peek(context);\n  bellArm(load<usize>(context, CONTEXT_TASK_OFFSET));\n  return found;\n",
    scenarios: PARK_SCENARIOS,
  },
  {
    name: "a thread reads its bell behind the last look before it sleeps",
    file: "src/node/park.ts",
    find: "    const seen = this.#hintWords[this.#bellAt] as number;\n    const hasWork = awaited.lastLook();\n",
    replace: "    const hasWork = awaited.lastLook();\n    const seen = this.#hintWords[this.#bellAt] as number;\n",
    scenarios: PARK_SCENARIOS,
  },
  {
    name: "a ring takes the flag down behind the wake",
    file: "sync.ts",
    find: "  atomic.store<u32>(task + TASK_PARKED_OFFSET, 0);\n  ringAlways(task);\n",
    replace: "  ringAlways(task);\n  atomic.store<u32>(task + TASK_PARKED_OFFSET, 0);\n",
    scenarios: PARK_SCENARIOS,
  },
  {
    name: "the agent does not ring a task whose flag it has taken down",
    file: "src/transport/net/bells.ts",
    find: "      this.#kernel.ringAlways(task);\n",
    replace: "",
  },
  {
    name: "the agent rings such a task only if its flag is up",
    file: "src/transport/net/bells.ts",
    find: "      this.#kernel.ringAlways(task);\n",
    replace: "      this.#kernel.ring(task);\n",
  },
  {
    name: "the agent forgets a task that it has held before",
    file: "src/transport/net/bells.ts",
    find: "=== 1) this.#held.add(task);",
    replace: "=== 1 && !this.#held.has(task)) this.#held.add(task); else this.#held.delete(task);",
  },
  {
    name: "a ring wakes no other process",
    file: "sync.ts",
    find: "  wake(task + TASK_BELL_OFFSET);\n",
    replace: "",
  },
  {
    name: "a ring wakes other processes before the bell is counted up",
    file: "sync.ts",
    find: "  atomic.add<u32>(task + TASK_BELL_OFFSET, 1);\n  atomic.notify(task + TASK_BELL_OFFSET, -1);\n  wake(task + TASK_BELL_OFFSET);\n",
    replace:
      "  wake(task + TASK_BELL_OFFSET);\n  atomic.add<u32>(task + TASK_BELL_OFFSET, 1);\n  atomic.notify(task + TASK_BELL_OFFSET, -1);\n",
  },
  {
    name: "a process that sleeps waits for the ring of one that may be stopped",
    file: "src/node/bell.ts",
    find: " && kernel.loadWord(slot + TASK_PARKED_OFFSET) !== 0",
    replace: "",
  },
  {
    name: "the sleeper does not say that it may sleep",
    file: "sync.ts",
    find: "  atomic.store<u32>(task + TASK_PARKED_OFFSET, 1);\n",
    replace: "",
  },
  {
    name: "a word that tells wakes nobody",
    file: "engine.ts",
    find: "  if ((operation & RMW_NOTIFY) != 0) ringOwner(job, remoteIndex);\n",
    replace: "",
    scenarios: PARK_SCENARIOS,
  },
  {
    name: "the owner of a word that tells is woken before the word is changed",
    file: "engine.ts",
    find: `${CHANGE}  // SYNC park (word): after the change, at which the owner looks once more before it sleeps.\n${WAKE}`,
    replace: `${WAKE}${CHANGE}`,
    scenarios: PARK_SCENARIOS,
  },
  {
    name: "the bell is read after the flag is up and the look is done",
    file: "sync.ts",
    find: "  return atomic.wait<i32>(task + TASK_BELL_OFFSET, <i32>seen, nanoseconds);\n",
    replace:
      "  return atomic.wait<i32>(task + TASK_BELL_OFFSET, atomic.load<i32>(task + TASK_BELL_OFFSET), nanoseconds);\n",
  },
  {
    name: "the lane is read after its last record was published",
    file: "lane.ts",
    find: `  const target = load<usize>(lane, LANE_TARGET_TASK_OFFSET);
  // SYNC commit (commit): makes the record's bytes visible; pairs with the polls in reception.ts.
${COMMIT}`,
    replace: `${COMMIT}  const target = load<usize>(lane, LANE_TARGET_TASK_OFFSET);\n`,
  },
  {
    name: "lines ahead are taken that are not free",
    file: "lane.ts",
    find: "  if (<i32>used >= <i32>(capacity - 2 * AHEAD_BYTES)) return;\n",
    replace: "  if (used == 1) return;\n",
  },
  {
    name: "one line too many is taken back",
    file: "lane.ts",
    find: "  for (let position = from; seqDelta(to, position) > 0; ",
    replace: "  for (let position = from; seqDelta(to, position) >= 0; ",
  },
  {
    name: "a lane is opened before the last one is given back",
    file: "lane.ts",
    find: "  if (loadWord(entry) != 0) return OPEN_BUSY;\n",
    replace: "",
  },
  {
    name: "the heap is divided without its lock",
    file: "heap.ts",
    find: "  while (exchangeIf(lock, 0, owner + 1) != 0) {\n",
    replace: "  while (owner == 0xffffffff) {\n",
  },
  {
    name: "an extent is freed by a plain store",
    file: "heap.ts",
    find: "  storeWord(entry, loadWord(entry) & EXTENT_PAGES_MASK);\n",
    replace: "  store<u32>(entry, loadWord(entry) & EXTENT_PAGES_MASK);\n",
  },
  {
    name: "what is taken back is not compared: it may be another one's by now",
    file: "heap.ts",
    find: "exchangeIf(entry, word, length);\n",
    replace: "storeWord(entry, length);\n",
  },
  {
    name: "a dead origin's ready bit is not set",
    file: "reception.ts",
    find: "export function laneReady(context: usize, origin: u32): void {\n",
    replace: "export function laneReady(context: usize, origin: u32): void {\n  if (origin != 0xffffffff) return;\n",
  },
  {
    name: "only the last lane to a dead target is taken back",
    file: "lane.ts",
    find: "      if (isOurs) exchangeIf(entry, word, length);\n",
    replace: "      if (isOurs) {\n        exchangeIf(entry, word, length);\n        break;\n      }\n",
  },
  {
    name: "a descriptor is published before it is written",
    file: "engine.ts",
    find: "  // Word by word, as they were written:",
    replace: "  storeWord(fifo + INJECTION_TAIL_OFFSET, tail + 1 + completions);\n  // Word by word:",
  },
  {
    name: "room is looked for without the completion descriptors",
    file: "engine.ts",
    find: "  if (!hasRoom(fifo, 1 + completions)) return NONE;\n  const tail",
    replace: "  if (!hasRoom(fifo, 1)) return NONE;\n  const tail",
  },
  {
    name: "slots behind an unread bit are taken for free",
    file: "engine.ts",
    find: "  if (load<u32>(fifo, INJECTION_PENDING_OFFSET) != 0) return false;\n",
    replace: "",
  },
  {
    name: "the engine looks at tail by a plain load",
    file: "engine.ts",
    find: "engineRunTo(job, fifo, loadWord(fifo + INJECTION_TAIL_OFFSET), most)",
    replace: "engineRunTo(job, fifo, load<u32>(fifo, INJECTION_TAIL_OFFSET), most)",
  },
  {
    name: "a completion bit is set before what is behind it is there",
    file: "engine.ts",
    find: "    const done = proceed(job, fifo, descriptor, kind, left, part);\n",
    replace:
      "    const next = slotOf(fifo, (head + 1) & mask);\n    if (load<u32>(next, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_COMPLETION) completionSet(fifo, ((head + 1) & mask) >>> 5, 1 << ((head + 1) & 31));\n    const done = proceed(job, fifo, descriptor, kind, left, part);\n",
  },
  {
    name: "a completion bit that is taken is not cleared",
    file: "completion.ts",
    find: "  clearBits(fifo + INJECTION_MASK_OFFSET + ((slot >>> 5) << 2), 1 << (slot & 31));\n  clearAbove(fifo, slot);\n",
    replace: "  clearAbove(fifo, slot);\n",
  },
  {
    name: "a completion bit is set by a plain store",
    file: "completion.ts",
    find: "    const before = setBitsOf(words + (word << 2), bits);\n",
    replace:
      "    const before = load<u32>(words + (word << 2));\n    store<u32>(words + (word << 2), before | bits);\n",
  },
  {
    name: "a handle's generation is not looked at",
    file: "region.ts",
    find: "  if (loadWord(entry + REGION_GENERATION_OFFSET) != generation || (generation & 1) == 0) return 0;\n",
    replace: "  if (loadWord(entry + REGION_GENERATION_OFFSET) == 0 || (generation & 1) == 0) return 0;\n",
  },
  {
    name: "a region is looked at for the first slice alone",
    file: "engine.ts",
    find: "  const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);\n  if (remoteEntry == 0) return TRANSFER_REMOTE_CLOSED;\n  const remote = regionPlace(remoteEntry, remoteOffset, bytes);\n  if (remote == 0) return TRANSFER_REMOTE_BOUNDS;\n  // The",
    replace: `  const entry = regionOf(job, remoteIndex, remoteGeneration);\n  const remoteEntry = entry == 0 && moved != 0 ? load<usize>(job, ${JOB_REGIONS_BASE_OFFSET}) + (remoteIndex << ${REGION_SHIFT}) : entry;\n  if (remoteEntry == 0) return TRANSFER_REMOTE_CLOSED;\n  const remote = regionPlace(remoteEntry, remoteOffset, bytes);\n  if (remote == 0) return TRANSFER_REMOTE_BOUNDS;\n  // The`,
  },
  {
    name: "a closed region's pages are used again at once",
    file: "src/memory/regions.ts",
    find: "      if (!this.#grace.isOver(closed.grace)) return true;\n",
    replace: "",
  },
  {
    name: "what is under way to a task that has ended goes on",
    file: "engine.ts",
    find: "  if (result == TRANSFER_DONE) result = isUp ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;\n",
    replace:
      "  if (result == TRANSFER_DONE) result = isUp || before != 0 ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;\n",
  },
  {
    name: "what waits for room is begun when its target has ended",
    file: "engine.ts",
    find: "  if (result == TRANSFER_DONE) result = isUp ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;\n",
    replace:
      "  if (result == TRANSFER_DONE) result = isUp || before == 0 ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;\n",
  },
  {
    name: "what an ended task had is anybody's before all have been told of it",
    file: "src/node/liveness.ts",
    find: "  if (kernel.loadWord(taskSlot(map, task) + L.TASK_TOLD_OFFSET) === 0) return true;\n",
    replace: "",
  },
  {
    name: "those who were told before all were are not told again",
    file: "src/node/liveness.ts",
    find: "L.TASK_TOLD_OFFSET, 1);\n  notifyTasks(kernel, map);\n",
    replace: "L.TASK_TOLD_OFFSET, 1);\n",
  },
  {
    name: "the agent does not tell that it has taken an ended task's lanes back",
    file: "src/transport/net/agent.ts",
    find: "    announceStart(this.#kernel, this.#map);\n    this.#tellOfTask(slot);\n",
    replace: "    this.#tellOfTask(slot);\n",
  },
  {
    name: "what an ended task had is anybody's before all have heard of it",
    file: "src/node/liveness.ts",
    find: "      isOpen &&\n      kernel.loadWord(block + L.CONTEXT_NOTICE_SEEN_OFFSET) !== kernel.loadWord(slot + L.TASK_NOTICE_OFFSET)\n",
    replace: "      isOpen && slot === 0\n",
  },
  {
    name: "whoever acknowledges last does not look again at what ended tasks had",
    file: "src/protocol/eager/ended-origins.ts",
    find: "    for (const task of ended) this.#unreclaimed.add(task);\n",
    replace: "",
  },
  {
    name: "a region is opened before its entry says where it is",
    file: "region.ts",
    find: "  store<usize>(entry, base, REGION_BASE_OFFSET);\n  store<u32>(entry, bytes, REGION_BYTES_OFFSET);\n",
    replace:
      "  storeWord(entry, load<u32>(entry) + 1);\n  store<usize>(entry, base, REGION_BASE_OFFSET);\n  store<u32>(entry, bytes, REGION_BYTES_OFFSET);\n  if (bytes != 0) return load<u32>(entry);\n",
  },
  {
    name: "a link is published before it is written",
    file: "chain.ts",
    find: "  const tail = load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET);\n  for (let i: u32 = 0; i < slots; i++) {\n",
    replace:
      "  const tail = load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET);\n  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);\n  for (let i: u32 = 0; i < slots; i++) {\n",
  },
  {
    name: "no thread rings for what is shipped",
    file: "chain.ts",
    find: "  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);\n  engineCall(job, endpoint);\n",
    replace: "  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);\n",
  },
  {
    name: "the bell is rung before a link is shipped",
    file: "chain.ts",
    find: "  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);\n  engineCall(job, endpoint);\n",
    replace: "  engineCall(job, endpoint);\n  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);\n",
  },
  {
    name: "no thread rings when an rget FIFO is over",
    file: "chain.ts",
    find: "load<u32>(rgetFifo, RGET_FIFO_BIT_OFFSET));\n  ring(task);\n",
    replace: "load<u32>(rgetFifo, RGET_FIFO_BIT_OFFSET));\n",
  },
  {
    name: "a status bit is set by a plain store",
    file: "chain.ts",
    find: "  setBits(load<usize>(rgetFifo, RGET_FIFO_STATUS_OFFSET), load<u32>(rgetFifo, RGET_FIFO_BIT_OFFSET));\n",
    replace:
      "  const register = load<usize>(rgetFifo, RGET_FIFO_STATUS_OFFSET);\n  store<u32>(register, load<u32>(register) | load<u32>(rgetFifo, RGET_FIFO_BIT_OFFSET));\n",
  },
  {
    name: "the target is told before its last fragment is counted",
    file: "chain.ts",
    find: `  if (addWord(peer + RGET_FIFO_LEFT_OFFSET, -bytes) == bytes) {\n${TELL_PEER}  }\n`,
    replace: `  if (loadWord(peer + RGET_FIFO_LEFT_OFFSET) == bytes) {\n${TELL_PEER}  }\n  addWord(peer + RGET_FIFO_LEFT_OFFSET, -bytes);\n`,
  },
  {
    name: "a fragment is counted before it is moved",
    file: "chain.ts",
    find: MOVE_PART,
    replace: `  const isLast = bytes - moved <= part && peer != 0;\n  if (isLast && addWord(peer + RGET_FIFO_LEFT_OFFSET, -bytes) == bytes) {\n${TELL_PEER}  }\n  if (isLast) addWord(peer + RGET_FIFO_LEFT_OFFSET, bytes);\n${MOVE_PART}`,
  },
  {
    name: "a fragment's place in the ring is free before it is moved",
    file: "chain.ts",
    find: MOVE_PART,
    replace: `  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, load<u32>(rgetFifo, RGET_FIFO_PASSED_OFFSET) + 1);\n${MOVE_PART}  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, load<u32>(rgetFifo, RGET_FIFO_PASSED_OFFSET) - 1);\n`,
  },
  {
    name: "a fragment is moved though it is not staged",
    file: "chain.ts",
    find: "    if (isHeld(rgetFifo, descriptor)) break;\n",
    replace: "",
  },
  {
    name: "an engine that waits for a fragment does not hear that the rest is given up",
    file: "chain.ts",
    find: "  return loadWord(rgetFifo + RGET_FIFO_STOP_OFFSET) == TRANSFER_DONE;\n",
    replace: "  return true;\n",
  },
  {
    name: "an origin that gives up is not heeded",
    file: "chain.ts",
    find: "  let result = loadWord(rgetFifo + RGET_FIFO_STOP_OFFSET);\n",
    replace: "  let result = TRANSFER_DONE;\n",
  },
  {
    name: "a target that gives up is not heeded",
    file: "chain.ts",
    find: "peer == 0 ? TRANSFER_ENDED : loadWord(peer + RGET_FIFO_STOP_OFFSET);\n",
    replace: "peer == 0 ? TRANSFER_ENDED : TRANSFER_DONE;\n",
  },
  {
    name: "the next link is asked for behind its fragment",
    file: "chain.ts",
    find: "    if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) {\n",
    replace:
      "    const next = slotAt(rgetFifo, head + 1);\n    if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_RGET && head + 1 != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET) && load<u32>(next, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_MOVE) {\n      hasMoved = true;\n      while (!moveSlice(job, rgetFifo, next, sliceOf(rgetFifo, next), context));\n      processOne(job, rgetFifo, descriptor, context);\n      head += 2;\n      store<u32>(rgetFifo, head, RGET_FIFO_HEAD_OFFSET);\n      continue;\n    }\n    if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) {\n",
  },
  {
    name: "an origin RGET is not refilled",
    file: "chain.ts",
    find: "  } else if (kind == DESCRIPTOR_REFILL) {\n",
    replace: "  } else if (kind == DESCRIPTOR_REFILL && rgetFifo == 0) {\n",
  },
  {
    name: "an origin RGET is refilled before it is shipped",
    file: "chain.ts",
    find: "  if (kind == DESCRIPTOR_RGET) {\n    const peer = peerOf(job, rgetFifo);\n",
    replace:
      "  if (kind == DESCRIPTOR_RGET) {\n    const peer = peerOf(job, rgetFifo);\n    const behind = slotAt(rgetFifo, load<u32>(rgetFifo, RGET_FIFO_HEAD_OFFSET));\n    if (load<u32>(behind, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_REFILL)\n      memory.copy(rget + DESCRIPTOR_BYTES_OFFSET, behind + DESCRIPTOR_BYTES_OFFSET, DESCRIPTOR_VALUE_OFFSET - 4);\n",
  },
  {
    name: "the first links are shipped before what they need is written",
    file: "chain.ts",
    find: "  storeWord(rgetFifo + RGET_FIFO_LEFT_OFFSET, bytes);\n",
    replace:
      "  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET) + (depth < n ? depth : n));\n  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET) - (depth < n ? depth : n));\n  storeWord(rgetFifo + RGET_FIFO_LEFT_OFFSET, bytes);\n",
  },
  {
    name: "the engine looks for shipped descriptors by a plain load",
    file: "chain.ts",
    find: "  while (head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET)) {\n",
    replace: "  while (head != load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET)) {\n",
  },
  {
    name: "the last look before sleep leaves out what is shipped",
    file: "chain.ts",
    find: "      if (head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET) && !isHeld(rgetFifo, slotAt(rgetFifo, head))) return true;\n",
    replace: "      if (head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET) && rgetFifo == 0) return true;\n",
  },
  {
    name: "the origin is told before its rget FIFO is left alone",
    file: "chain.ts",
    find: "      store<u32>(rgetFifo, head, RGET_FIFO_HEAD_OFFSET);\n      processOne(job, rgetFifo, descriptor, context);\n",
    replace:
      "      processOne(job, rgetFifo, descriptor, context);\n      store<u32>(rgetFifo, head, RGET_FIFO_HEAD_OFFSET);\n",
  },
  {
    name: "an rget FIFO that is opened again begins with its first slot",
    file: "chain.ts",
    find: "  store<u32>(rgetFifo, 0, RGET_FIFO_MOVED_OFFSET);\n  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, 0);\n",
    replace:
      "  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, 0);\n  store<u32>(rgetFifo, 0, RGET_FIFO_HEAD_OFFSET);\n  store<u32>(rgetFifo, 0, RGET_FIFO_MOVED_OFFSET);\n  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, 0);\n",
  },
  {
    name: "a target rings for a buffer before it says that it has read it",
    file: "buffer.ts",
    find: "  storeWord(slot, state);\n",
    replace: "  ring(load<usize>(pool, POOL_TASK_OFFSET));\n  storeWord(slot, state);\n  return;\n",
  },
  {
    name: "a target looks whether its origin waits for a buffer before it says that it has read one",
    file: "buffer.ts",
    find: "  storeWord(slot, state);\n",
    replace:
      "  const wanted = loadWord(pool + POOL_WANTED_OFFSET);\n  storeWord(slot, state);\n  if (wanted != 0) ring(load<usize>(pool, POOL_TASK_OFFSET));\n  return;\n",
  },
  {
    name: "a target that has read a buffer wakes nobody",
    file: "buffer.ts",
    find: "  if (loadWord(pool + POOL_WANTED_OFFSET) != 0) ring(",
    replace: "  if (loadWord(pool + POOL_WANTED_OFFSET) == 7) ring(",
  },
  {
    name: "a target says that a buffer is its own before it is",
    file: "src/memory/regions.ts",
    find: "    this.#kernel.extentPass(job, extent, owner, this.#task);\n    told();\n    this.#countKept(size);\n",
    replace: "    told();\n    this.#kernel.extentPass(job, extent, owner, this.#task);\n    this.#countKept(size);\n",
    scenarios: BUFFER_SCENARIOS,
  },
  {
    name: "what was given is freed before its owner is its target",
    file: "src/memory/regions.ts",
    find: "    this.#kernel.extentPass(job, extent, owner, this.#task);\n    told();\n    this.#kernel.heapFree(job, extent);\n",
    replace: "    this.#kernel.heapFree(job, extent);\n    told();\n",
    scenarios: BUFFER_SCENARIOS,
  },
  ...HEAP_DEATH_MUTANTS,
  ...ENGINE_MUTANTS,
  ...REORDER_MUTANTS,
  ...BIND_MUTANTS,
  ...PURGE_MUTANTS,
  ...MEMBER_MUTANTS,
];

/** A text with the mutant in it. */
/** Mutants whose place is not found, or is not one: the sources have changed. */
export function misplaced(): string[] {
  return misplacedOf(MUTANTS);
}

/** What becomes of the sources in TypeScript, if the mutant is in one of them. */
export function changed(mutant: Mutant): ((path: string, text: string) => string) | undefined {
  if (!mutant.file.startsWith("src/")) return undefined;
  const path = fileURLToPath(new URL(`../../${mutant.file}`, import.meta.url));
  return (one, text) => (one === path ? mutated(mutant, text) : text);
}

/** The wasm module of the sources with a mutant in them; without one: the sources as they are. */
export function compiled(mutant?: Mutant): Promise<Uint8Array> {
  return compileKernels("index.ts", "release", mutant);
}

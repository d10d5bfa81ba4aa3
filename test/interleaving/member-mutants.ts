// Deliberate bugs in what members of a geometry share: see mutants.ts.
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";
import { MEMBER_SCENARIOS, STRANGER_SCENARIOS } from "./scenarios/members.js";
import { MEMBER_DEATH_SCENARIOS } from "./scenarios/members-die.js";

const WORDS = "src/collective/shared/shared-members.ts";
const OPERATION = "src/collective/shared/shared-operation.ts";
const STEPS = "src/collective/shared/shared-steps.ts";

const ARRIVE = "    shared.arrive(number, result, this.signature, data);\n";
const RING = "    if (!this.#steps.isOfAll || shared.haveArrived(number)) shared.ring(this.#readers);\n";
const ARRIVED = "    this.kernel.storeWord(slot + L.MEMBER_ARRIVED_OFFSET, number);\n";
const RESULT = "    words[(slot + L.MEMBER_RESULT_OFFSET) >>> 2] = result;\n";
const BEFORE = [
  "    words[(slot + L.MEMBER_BEFORE_OFFSET) >>> 2] = this.#completed;\n",
  "    words[(slot + L.MEMBER_FAILED_OFFSET) >>> 2] = SUCCESS;\n",
].join("");
/** Of meet(). */
const MET_RESULT = "    words[(slot + L.MEMBER_RESULT_OFFSET) >>> 2] = SUCCESS;\n";
const MET_ARRIVED = "    kernel.storeWord(slot + L.MEMBER_ARRIVED_OFFSET, number);\n";
const MET_RING = "    if (size <= 2 || this.#haveAll(L.MEMBER_ARRIVED_OFFSET, number)) this.#ringOthers();\n";
const PASS = "    this.kernel.storeWord(this.slotOf(this.rank, number) + L.MEMBER_PASSED_OFFSET, number);\n";
const IS_LAST = [
  "    const but = sources.length === 1 ? sources[0] : undefined;\n",
  "    // SYNC member-passed (look)\n",
  "    const isLast = isAlone || this.#haveAll(L.MEMBER_PASSED_OFFSET, number, but);\n",
].join("");
const WAKE_SOURCE = "    if (isLast) for (const source of sources) this.#ring(source);\n";
const COMPLETED =
  "    this.kernel.storeWord((this.#blocks[this.rank] as number) + L.MEMBER_COMPLETED_OFFSET, number);\n";
const WANTED = "this.kernel.loadWord((this.#blocks[rank] as number) + L.MEMBER_WANTED_OFFSET) !== 0";
const SLICE = "    words[(slot + L.MEMBER_SLICE_OFFSET) >>> 2] = slice;\n";
const REDUCED = "    this.kernel.storeWord(slot + L.MEMBER_REDUCED_OFFSET, number);\n";
const SLICED = "      slice = this.#steps.slice(this);\n";
const FAIL = "L.MEMBER_FAILED_OFFSET, result);\n    this.#ringOthers();\n";
const AGAIN =
  "      for (const rank of this.#sources) if (!this.#mayRead(rank, shared.slotOf(rank, number), true)) return;\n";
const STRANGERS = "    if (!this.isMutual && this.#readers.length < shared.size - 1) shared.ringStrangers(number);\n";
const TAKE = "      this.#steps.arrived(this, rank, shared.dataIn(slot));\n";

const LOOK = "        this.#lookAtEnds();\n        return;\n";
const PASSED = "        if (shared.hasPassed(rank, number)) continue;\n";
const PASSED_BY_STRANGER = "        if (shared.isStranger(rank, number)) this.#differs(rank);\n";

const CHANGES: readonly [name: string, file: string, find: string, replace: string][] = [
  ["a member arrives before its words are written", WORDS, RESULT, `${ARRIVED}${RESULT}`],
  ["a member looks whether it is the last before it has arrived", OPERATION, `${ARRIVE}${RING}`, `${RING}${ARRIVE}`],
  ["the last member that arrives wakes none", OPERATION, RING, RING.replace("shared.haveArrived(number)", "false")],
  [
    "the last slice wakes none",
    WORDS,
    "if (this.#haveAll(L.MEMBER_REDUCED_OFFSET, number)) this.#ringOthers();\n",
    "\n",
  ],
  ["the last reader does not wake its root", WORDS, WAKE_SOURCE, ""],
  ["a reader looks whether it is the last before it has passed", WORDS, `${PASS}${IS_LAST}`, `${IS_LAST}${PASS}`],
  ["a member that waits for a slot does not say so", OPERATION, "      shared.want();\n", ""],
  [
    "a member looks whether others wait for slots before it gives some back",
    WORDS,
    COMPLETED,
    `    for (let rank = 0; rank < this.size; rank++) if (${WANTED}) this.#ring(rank);\n${COMPLETED}    return;\n`,
  ],
  [
    "a member that has arrived for an earlier operation counts",
    WORDS,
    "L.MEMBER_ARRIVED_OFFSET) >>> 0 === number;\n",
    "L.MEMBER_ARRIVED_OFFSET) >>> 0 >= number - L.MEMBER_SLOTS;\n",
  ],
  [
    "a member's slot is written one operation too early",
    WORDS,
    "    return seqDelta(number, this.#least) <= L.MEMBER_SLOTS;\n",
    "    return seqDelta(number, this.#least) <= L.MEMBER_SLOTS + 1;\n",
  ],
  [
    "a member says that it has completed what it begins",
    WORDS,
    `${BEFORE}    // SYNC member-arrived (publish): pairs with hasArrived()`,
    `${BEFORE.replace("this.#completed", "number")}    // SYNC member-arrived (publish): pairs with hasArrived()`,
  ],
  [
    "a reader of a broadcast does not say that it has completed it",
    STEPS,
    "export class BroadcastSteps extends SharedAlgorithm {\n  readonly isMutual = false;\n",
    "export class BroadcastSteps extends SharedAlgorithm {\n  readonly isMutual = true;\n",
  ],
  ["a slice is there before the words say where", WORDS, SLICE, `${REDUCED}${SLICE}`],
  [
    "a slice is there before it is reduced",
    OPERATION,
    SLICED,
    `      this.shared.reduced(this.number, SUCCESS, this.shared.pointerOf(this.buffers.receive) + 4 * this.shared.rank);\n${SLICED}`,
  ],
  [
    "a member that meets others does not wait for them",
    WORDS,
    "        if (look === MEET_LOOKS) return false;\n",
    "        if (look === MEET_LOOKS) return true;\n",
  ],
  ["a member that meets others arrives before its words are written", WORDS, MET_RESULT, `${MET_ARRIVED}${MET_RESULT}`],
  ["the last member that meets others wakes none", WORDS, MET_RING, ""],
  [
    "a member that meets others looks whether it is the last before it has arrived",
    WORDS,
    MET_ARRIVED,
    `${MET_RING}${MET_ARRIVED}    if (size > 0) return false;\n`,
  ],
  ["a member that meets others writes its slot too early", WORDS, "    if (room < 0) {\n", "    if (room < -1) {\n"],
  [
    "a member that meets others says that it has completed what it begins",
    WORDS,
    `${BEFORE}    // SYNC member-arrived (publish): pairs with the look`,
    `${BEFORE.replace("this.#completed", "number")}    // SYNC member-arrived (publish): pairs with the look`,
  ],
  ["a member does not say that it has read what another has", WORDS, PASS, ""],
  [
    "a member says that it has read before it reads",
    OPERATION,
    TAKE,
    `      if (!shared.isInline(slot)) shared.pass(number, this.#sources, false);\n${TAKE}`,
  ],
  [
    "a root does not wait for those that read its memory",
    OPERATION,
    "    if (this.#isRead) {\n",
    "    if (this.#isRead && this.#steps.hasSlices) {\n",
  ],
  [
    "a root whose broadcast has failed does not wait for those that read its memory",
    OPERATION,
    "    return this.#stage === STOPPED && this.#isRead && this.#readers.filter(this.#isReading).length > 0;\n",
    "    return false;\n",
  ],
  [
    "a member reads what another one has whose operation has failed",
    OPERATION,
    "    const failure = isUnreadable ? SHUTDOWN : shared.failureIn(slot);\n",
    "    const failure = isUnreadable ? SHUTDOWN : SUCCESS;\n",
  ],
  [
    "a root whose broadcast has failed waits for members that do not read any more",
    WORDS,
    "    return this.failureIn(slot) === SUCCESS && ",
    "    return ",
  ],
  [
    "a member whose operation has failed does not wake the others",
    WORDS,
    FAIL,
    FAIL.replace("    this.#ringOthers();\n", ""),
  ],
  ["a reader does not look for failures behind its pass", OPERATION, AGAIN, ""],
  [
    "a member of an allgather does not wait for those that read its memory",
    OPERATION,
    PASSED,
    "        if (this.isMutual || shared.hasPassed(rank, number)) continue;\n",
  ],
  [
    "a member that gathers does not say how many bytes it has",
    STEPS,
    "    shared.noteLength(slot, buffers.send.length);\n    if (this.#longest === 0)",
    "    if (this.#longest === 0)",
  ],
];

/** Bugs that show where a member ends. */
const DEATH_CHANGES: typeof CHANGES = [
  [
    "a member that waits for one to arrive does not look whether that one has ended",
    OPERATION,
    `      if (!shared.hasArrived(slot, number)) {\n${LOOK}`,
    "      if (!shared.hasArrived(slot, number)) {\n        return;\n",
  ],
  [
    "a member that waits for a slice does not look whether its member has ended",
    OPERATION,
    `      if (!shared.hasReduced(rank, number)) {\n${LOOK}`,
    "      if (!shared.hasReduced(rank, number)) {\n        return;\n",
  ],
  [
    "a root that waits for a reader does not look whether that one has ended",
    OPERATION,
    `${PASSED}${PASSED_BY_STRANGER}${LOOK}`,
    `${PASSED}${PASSED_BY_STRANGER}        return;\n`,
  ],
  [
    "a member reads what one has left that has ended",
    OPERATION,
    "    const failure = isUnreadable ? SHUTDOWN : shared.failureIn(slot);\n",
    "    const failure = shared.failureIn(slot);\n",
  ],
  ["a member looks on at the block of one that has ended", WORDS, "    this.#blocks[rank] = copy;\n", "\n"],
];

/** Bugs that show where members begin different things. */
const STRANGER_CHANGES: typeof CHANGES = [
  [
    "a member meets one that has begun something else",
    WORDS,
    "      if (words[(its + L.MEMBER_SIGNATURE_OFFSET) >>> 2] !== signature) return false;\n",
    "",
  ],
  ["a member that arrives leaves those asleep that have begun something else", OPERATION, STRANGERS, ""],
  [
    "a member looks before it arrives whether those sleep that have begun something else",
    OPERATION,
    `${ARRIVE}${RING}${STRANGERS}`,
    `${STRANGERS}${ARRIVE}${RING}`,
  ],
  [
    "a member does not look before it sleeps whether another one has begun something else",
    OPERATION,
    "    this.#stranger = shared.stranger(number);\n    return this.#stranger >= 0;\n",
    "    return false;\n",
  ],
  [
    "a member that has failed waits for one that has begun something else",
    WORDS,
    " && !this.isStranger(rank, number);\n",
    ";\n",
  ],
];

const mutantsOf = (changes: typeof CHANGES, scenarios: readonly Scenario[]): Mutant[] =>
  changes.map(([name, file, find, replace]) => ({ name, file, find, replace, scenarios }));

export const MEMBER_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(CHANGES, MEMBER_SCENARIOS),
  ...mutantsOf(STRANGER_CHANGES, STRANGER_SCENARIOS),
  ...mutantsOf(DEATH_CHANGES, MEMBER_DEATH_SCENARIOS),
];

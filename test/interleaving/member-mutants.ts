// Deliberate bugs in what members of a geometry share: see mutants.ts.
import type { Mutant } from "./mutants.js";
import { MEMBER_SCENARIOS } from "./scenarios/members.js";

const WORDS = "src/collective/shared-members.ts";
const OPERATION = "src/collective/shared-operation.ts";

const ARRIVED = "    this.kernel.storeWord(slot + MEMBER_ARRIVED_OFFSET, number);\n";
const RESULT = "    words[(slot + MEMBER_RESULT_OFFSET) >>> 2] = result;\n";
const PASS = "    this.kernel.storeWord(this.slotOf(this.rank, number) + MEMBER_PASSED_OFFSET, number);\n";
const TAKE = "      this.#steps.arrived(this, rank, shared.dataIn(slot));\n";

const CHANGES: readonly [name: string, file: string, find: string, replace: string][] = [
  ["a member arrives before its words are written", WORDS, RESULT, `${ARRIVED}${RESULT}`],
  [
    "the others are woken before a member has arrived",
    WORDS,
    `${ARRIVED}    this.#ring();\n`,
    `    this.#ring();\n${ARRIVED}`,
  ],
  [
    "a member that has arrived for an earlier operation counts",
    WORDS,
    "MEMBER_ARRIVED_OFFSET) >>> 0 === number;\n",
    "MEMBER_ARRIVED_OFFSET) >>> 0 >= number - MEMBER_SLOTS;\n",
  ],
  [
    "a member's slot is written one operation too early",
    WORDS,
    "    return seqDelta(number, this.#least) <= MEMBER_SLOTS;\n",
    "    return seqDelta(number, this.#least) <= MEMBER_SLOTS + 1;\n",
  ],
  ["a member does not say that it has read what another has", WORDS, PASS, ""],
  [
    "a member says that it has read before it reads",
    OPERATION,
    TAKE,
    `      if (!shared.isInline(slot)) shared.pass(number);\n${TAKE}`,
  ],
  [
    "a root does not wait for those that read its memory",
    OPERATION,
    "    this.#isOutside = data !== 0 && this.#readers.length > 0;\n",
    "    this.#isOutside = false;\n",
  ],
];

export const MEMBER_MUTANTS: readonly Mutant[] = CHANGES.map(([name, file, find, replace]) => ({
  name,
  file,
  find,
  replace,
  scenarios: MEMBER_SCENARIOS,
}));

// Deliberate bugs in how slots of tasks of other nodes are given back: see mutants.ts.
import type { Mutant } from "./mutants.js";
import { PURGE_SCENARIOS } from "./scenarios/purge.js";

const PURGE = "src/transport/net/purge.ts";
const SLOTS = "src/protocol/slots.ts";
const CONTEXT = "src/protocol/context-core.ts";
const ADDRESS = "src/node/address.ts";

const CLOSE = "    this.#kernel.storeWord(taskSlot(this.#map, slot) + TASK_STATE_OFFSET, TASK_CLOSED);\n";
const LOOK_AT_SLOTS = "    this.#task.lookAtSlots?.(this, this.#task);\n";

const MUTANTS: readonly Omit<Mutant, "scenarios">[] = [
  // ── The agent asks for a slot, and waits for every context ──────────────────────────────────────────────────────
  {
    name: "the agent does not wait until every context has acknowledged that a slot is asked back",
    file: PURGE,
    find: "    if (!this.#grace.isOver(one.grace)) return false;\n",
    replace: '    if (one.phase === "freed" && !this.#grace.isOver(one.grace)) return false;\n',
  },
  {
    name: "a held slot is given away",
    file: PURGE,
    find: "    if (isHeld || this.#host.isBusy(slot)",
    replace: "    if (this.#host.isBusy(slot)",
  },
  {
    name: "a slot is freed though there are lanes to or from its task",
    file: PURGE,
    find: "      if (!this.#host.closeLanes(slot) || this.#hasLanes(slot)) return false;\n",
    replace: "      if (!this.#host.closeLanes(slot)) return false;\n",
  },
  {
    name: "a slot that stays is said to be leaving",
    file: PURGE,
    find: "    this.#kernel.storeWord(taskSlot(this.#map, slot) + TASK_LEAVING_OFFSET, 0);\n",
    replace: "",
  },
  {
    name: "the agent sleeps while a slot is on its way back",
    file: PURGE,
    find: "    this.isRestless = isWanted || this.#leaving.length > 0;\n    if (!this.isRestless) return;\n",
    replace: "    if (!isWanted && this.#leaving.length === 0) return;\n",
  },
  // ── The slot is free ────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "a freed slot is given away before every context has forgotten its task",
    file: PURGE,
    find: "    if (!this.#grace.isOver(one.grace)) return false;\n",
    replace: '    if (one.phase !== "freed" && !this.#grace.isOver(one.grace)) return false;\n',
  },
  {
    name: "a slot has no endpoint any more before it is closed",
    file: PURGE,
    find: CLOSE,
    replace: `    this.#kernel.storeWord(this.#map.endpointsBase + 4 * ordinalOf(this.#map, slot, 0), NONE);\n${CLOSE}`,
  },
  {
    name: "a freed slot is free for all before the agent has cleared it",
    file: PURGE,
    find: "    const { words } = this.#memory;\n",
    replace:
      "    this.#kernel.storeWord(taskSlot(this.#map, slot) + TASK_STATE_OFFSET, TASK_ABSENT);\n    const { words } = this.#memory;\n",
  },
  {
    name: "the agent forgets nothing of a freed slot",
    file: PURGE,
    find: "    this.#host.forget(slot, task);\n",
    replace: "",
  },
  {
    name: "the slot of a task that has ended is freed while contexts may use it",
    file: PURGE,
    find: "        if (!mayBeInUse(this.#kernel, this.#map, slot) && !this.#hasLanes(slot)) this.#takeBack(slot, task);\n",
    replace: "        this.#takeBack(slot, task);\n",
  },
  // ── Contexts ────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "a context acknowledges before it looks at slots",
    file: CONTEXT,
    find: LOOK_AT_SLOTS,
    replace: `    this.receiver.acknowledgeNotice(notice, []);\n${LOOK_AT_SLOTS}`,
  },
  {
    name: "a context holds no slot that it needs",
    file: SLOTS,
    find: "      if (isHeld) kernel.storeWord(",
    replace: "      if (isHeld && map.tasks === 0) kernel.storeWord(",
  },
  {
    name: "a context looks for one of a task's contexts alone before it lets its slot go",
    file: SLOTS,
    find: "      for (let context = 0; context < map.contexts; context++) {\n",
    replace: "      for (let context = 1; context < map.contexts; context++) {\n",
  },
  {
    name: "a context forgets nothing of a freed slot",
    file: SLOTS,
    find: ">= TASK_CLOSED) core.forgetSlot(slot);\n",
    replace: "> 99) core.forgetSlot(slot);\n",
  },
  {
    name: "something new is begun in a slot that is about to be given back",
    file: ADDRESS,
    find: "    if (slot < 0 || !this.isLeaving(",
    replace: "    if (slot < 0 || holder >= 0 || !this.isLeaving(",
  },
  {
    name: "the agent is not told that a task waits for a slot",
    file: ADDRESS,
    find: "    this.#kernel.storeWord(this.#map.job + JOB_SLOTS_WANTED_OFFSET, 1); // SYNC purge (want)\n",
    replace: "",
  },
  {
    name: "a task takes the last free slot",
    file: ADDRESS,
    find: "holder === this.#map.tasks ? 1 : 2);\n",
    replace: "1);\n",
  },
];

export const PURGE_MUTANTS: readonly Mutant[] = MUTANTS.map((mutant) => ({ ...mutant, scenarios: PURGE_SCENARIOS }));

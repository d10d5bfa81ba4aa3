// Deliberate bugs in how slots of tasks of other nodes are given back: see mutants.ts.
import type { Mutant } from "./mutants.js";
import { CROWDED_SCENARIOS } from "./scenarios/crowded.js";
import { FORGOTTEN, PURGE_SCENARIOS } from "./scenarios/purge.js";
import { KEPT_OFFER, PURGE_OFFER_SCENARIOS } from "./scenarios/purge-offers.js";

const PURGE = "src/transport/net/purge.ts";
const SLOTS = "src/protocol/slots.ts";
const BELL = "src/protocol/slot-bell.ts";
const CONTEXT = "src/protocol/context-core.ts";
const REMOTE_RENDEZVOUS = "src/transport/net/remote-rendezvous.ts";
const ADDRESS = "src/node/address.ts";
const INGRESS = "src/transport/net/ingress.ts";

const CLOSE = "    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET, L.TASK_CLOSED);\n";
const LOOK_AT_SLOTS = "    this.#task.lookAtSlots?.(this, this.#task);\n";

const WRITE_RGETS = `  for (let i: u32 = 0; i < depth && i + depth < n; i++) {
    writeFetch(rgetFifo, peer + RGET_FIFO_RGETS_OFFSET + (i << DESCRIPTOR_SHIFT), i + depth, n, depth);
  }
`;
const SAY_BEGUN = `  // SYNC rget-away (begun): makes the origin RGETs visible; pairs with the agent, which sends them. Before the first FETCH.
  if (away != 0) storeWord(rgetFifo + RGET_FIFO_AWAY_OFFSET, away | AWAY_BEGUN);
`;

const MUTANTS: readonly Mutant[] = [
  // ── The agent asks for a slot, and waits for every context ──────────────────────────────────────────────────────
  {
    name: "the agent does not wait until every context has acknowledged that a slot is asked back",
    file: PURGE,
    find: "    if (!this.#grace.isOver(one.grace)) return false;\n",
    replace: '    if (one.phase === "freed" && !this.#grace.isOver(one.grace)) return false;\n',
  },
  {
    name: "a slot is freed as soon as its lanes are gone",
    file: PURGE,
    find: "    if (!this.#grace.isOver(one.grace)) return false;\n",
    replace: '    if (one.phase !== "closed" && !this.#grace.isOver(one.grace)) return false;\n',
    scenarios: [KEPT_OFFER],
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
    find: "    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_LEAVING_OFFSET, 0);\n",
    replace: "",
  },
  {
    name: "the agent asks for no slot again that was held",
    file: PURGE,
    find: "      this.#held.clear();\n",
    replace: "",
  },
  {
    name: "the agent waits for a ring where a task wanted to begin something",
    file: PURGE,
    find: "      for (const slot of this.#reached) this.#held.delete(slot);\n",
    replace: "",
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
    replace: `    this.#kernel.storeWord(this.#map.endpointsBase + 4 * ordinalOf(this.#map, slot, 0), L.NONE);\n${CLOSE}`,
  },
  {
    name: "a freed slot is free for all before the agent has cleared it",
    file: PURGE,
    find: "    const { words } = this.#memory;\n",
    replace:
      "    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET, L.TASK_ABSENT);\n    const { words } = this.#memory;\n",
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
  // ── Contexts ring the agent, which sleeps ───────────────────────────────────────────────────────────────────────
  {
    name: "a context does not ring behind its acknowledgment",
    file: SLOTS,
    find: "    watch?.noticed();\n",
    replace: "",
  },
  {
    name: "a context does not ring once it has given up a lane",
    file: BELL,
    find: ") !== 0) this.#lanes.add(ordinal);\n",
    replace: ") !== 0) this.#count();\n",
  },
  {
    name: "the agent finds a slot held behind the news that it is not",
    file: BELL,
    find: "      kernel.exchangeIf(taskSlot(map, taskAt(map, ordinal)) + TASK_HELD_OFFSET, HELD_UNTIL_RING, HELD_SILENTLY);\n",
    replace: "",
  },
  {
    name: "the agent does not learn that a slot is not needed any more that it has found held",
    file: BELL,
    find: "    if (isIdle) kernel.exchangeIf(map.job + JOB_SLOTS_WANTED_OFFSET, SLOTS_ENOUGH, SLOTS_LET_GO);\n",
    replace: "",
  },
  // ── Each has a slot in its turn ────────────────────────────────────────────────────────────────────────────────
  {
    name: "frames have every slot that gets free, while tasks wait for one",
    file: PURGE,
    find: '    if (this.#turnOf !== "tasks") return false;\n',
    replace: "    return false;\n",
    scenarios: CROWDED_SCENARIOS,
  },
  {
    name: "frames have a slot that was freed before each context has tried to have it",
    file: PURGE,
    find: "      // Each context begins a round, and tries to have the slot.\n      this.#rest(slot, task);\n",
    replace: "      this.#grace.begin();\n",
    scenarios: CROWDED_SCENARIOS,
  },
  {
    name: "records that wait for a slot keep it",
    file: INGRESS,
    find: "kindAt(next, 0) === KIND_MORE",
    replace: "next.length > 0",
    scenarios: CROWDED_SCENARIOS,
  },
  {
    name: "the agent turns round while records wait for a slot that is asked back, and for room",
    file: INGRESS,
    find: "origin < 0 || this.#addresses.isSlotLeaving(origin) ? 0 :",
    replace: "origin < 0 ? 0 :",
    scenarios: CROWDED_SCENARIOS,
  },
  {
    name: "a task keeps a slot that is asked back, without using it",
    file: ADDRESS,
    find: "    return slot < 0 || !this.isSlotLeaving(ordinalOf(this.#map, slot, 0)) ? slot : UNBOUND;\n",
    replace: `    if (slot < 0 || !this.isSlotLeaving(ordinalOf(this.#map, slot, 0))) return slot;
    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_HELD_OFFSET, 1);
    return UNBOUND;
`,
    scenarios: CROWDED_SCENARIOS,
  },
  // ── Payloads on offer ──────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "a slot that stays is asked for again before a context can use it",
    file: PURGE,
    find: '    if (!this.#grace.isOver(one.grace)) return false;\n    if (one.phase === "rests") return true;\n',
    replace: '    if (one.phase === "stays") return true;\n    if (!this.#grace.isOver(one.grace)) return false;\n',
    scenarios: [...CROWDED_SCENARIOS, ...PURGE_SCENARIOS],
  },
  {
    name: "the agent finds a chain begun whose RGETs are not written",
    file: "chain.ts",
    find: `${WRITE_RGETS}${SAY_BEGUN}`,
    replace: `${SAY_BEGUN}${WRITE_RGETS}`,
    scenarios: PURGE_OFFER_SCENARIOS,
  },
  {
    name: "the agent reads where an rget FIFO ends as if no other thread wrote it",
    file: REMOTE_RENDEZVOUS,
    find: "    return this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET) >>> 0;\n",
    replace: "    return this.#get(rgetFifo, L.RGET_FIFO_TAIL_OFFSET);\n",
  },
  // ── Contexts ────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "a context acknowledges before it looks at slots",
    file: CONTEXT,
    find: LOOK_AT_SLOTS,
    replace: `    this.#endedOrigins.acknowledgeNotice(notice, []);\n${LOOK_AT_SLOTS}`,
    scenarios: [FORGOTTEN],
  },
  {
    name: "a context looks for one of a task's contexts alone before it lets its slot go",
    file: SLOTS,
    find: "        for (let context = 0; context < map.contexts; context++) {\n",
    replace: "        for (let context = 1; context < map.contexts; context++) {\n",
  },
  {
    name: "a context forgets nothing of a freed slot",
    file: SLOTS,
    find: "        if (hasEnded) core.forgetSlot(slot);\n",
    replace: "        if (hasEnded && map.tasks === 0) core.forgetSlot(slot);\n",
  },
  {
    name: "something new is begun in a slot that is about to be given back",
    file: ADDRESS,
    find: "    return slot < 0 || !this.isSlotLeaving(",
    replace: "    return slot < 0 || holder >= 0 || !this.isSlotLeaving(",
  },
  {
    name: "the agent is not told that a task waits for a slot",
    file: ADDRESS,
    find: "    this.#kernel.storeWord(this.#map.job + L.JOB_SLOTS_WANTED_OFFSET, L.SLOTS_WANTED); // SYNC purge (want)\n",
    replace: "",
  },
  {
    name: "a task takes the last free slot",
    file: ADDRESS,
    find: "holder === this.#map.tasks ? 1 : 2);\n",
    replace: "1);\n",
  },
];

const SCENARIOS = [...PURGE_SCENARIOS, ...PURGE_OFFER_SCENARIOS];

export const PURGE_MUTANTS: readonly Mutant[] = MUTANTS.map((mutant) => ({ scenarios: SCENARIOS, ...mutant }));

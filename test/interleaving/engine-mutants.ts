// Deliberate bugs in what the engine thread has brought: see mutants.ts.
import { JOB_ENGINE_OFFSET, TASK_NOTICE_OFFSET, TASK_SEEN_OFFSET } from "../../assembly/layout.js";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";
import { CHAIN_SCENARIOS } from "./scenarios/chain.js";
import { ENGINE_SCENARIOS } from "./scenarios/engine.js";
import { ENGINE_DIES_SCENARIOS } from "./scenarios/engine-dies.js";
import { ENGINE_DIES_CHAIN_SCENARIOS } from "./scenarios/engine-dies-chain.js";
import { GIVEN_UP_SCENARIOS } from "./scenarios/given-up.js";
import { RMA_SCENARIOS } from "./scenarios/rma.js";

/** Mutants that one of these scenarios is to catch. */
function by(scenarios: readonly Scenario[], ...mutants: readonly Mutant[]): Mutant[] {
  return mutants.map((mutant) => ({ ...mutant, scenarios }));
}

const CLEAR = "  clearBits(pointer, bit);\n";
const LOOK_AGAIN = `${CLEAR}  if (isServed(contextOf(job, ordinal)) && isDue(job, ordinal)) setBits(pointer, bit);\n`;
const CALL = "  setBits(word, bit);\n  ring(engine);\n";
const RUN = "  const left = engineRunTo(job, fifo, tail, most);\n";
const MOVED = "  if (load<u32>(fifo, INJECTION_HEAD_OFFSET) == before) return left;\n";

const PASSED = "  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, load<u32>(rgetFifo, RGET_FIFO_PASSED_OFFSET) + 1);\n";
const RING_STAGER =
  "  if (loadWord(rgetFifo + RGET_FIFO_ALLOWED_OFFSET) != NONE) ring(load<usize>(context, CONTEXT_TASK_OFFSET));\n";
const SERVED = "      const served = isServed(contextOf(job, ordinal));\n";
/** The engine thread acknowledges what it was told. */
const SEEN = `storeWord(load<usize>(job, ${JOB_ENGINE_OFFSET}) + ${TASK_SEEN_OFFSET}, loadWord(load<usize>(job, ${JOB_ENGINE_OFFSET}) + ${TASK_NOTICE_OFFSET}));\n`;

/** What the cores of a chain do, while the engine thread does all the rest. */
const SERVED_CHAINS = CHAIN_SCENARIOS.filter(({ engine }) => engine);

export const ENGINE_MUTANTS: readonly Mutant[] = [
  ...by(
    ENGINE_DIES_SCENARIOS,
    {
      name: "what was done before the engine thread died, and taken, is given up once more",
      file: "engine.ts",
      find: "  if (i32(oldest - head) > 0) head = oldest;\n",
      replace: "  if (oldest == 1) head = oldest;\n",
    },
    {
      name: "what a dead engine thread had to do is left to nobody",
      file: "src/protocol/rma/engine-progress.ts",
      find: "      this.#parts.kernel.engineGiveUp(this.#parts.map.job, this.#pointer);\n",
      replace: "",
    },
    {
      name: "a FIFO of which all is taken is not given up where the engine thread died before it said how far it was",
      file: "src/protocol/rma/engine-progress.ts",
      find: "      this.#parts.kernel.engineGiveUp(this.#parts.map.job, this.#pointer);\n",
      replace: "      if (this.left) this.#parts.kernel.engineGiveUp(this.#parts.map.job, this.#pointer);\n",
    },
    {
      name: "nobody hears that the engine thread has died",
      file: "src/node/engine.ts",
      find: "    this.isOwn = true;\n    return true;\n",
      replace: "    return false;\n",
    },
  ),
  ...by(
    ENGINE_DIES_CHAIN_SCENARIOS,
    {
      name: "a chain that the dead engine thread had begun is left as it is",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "        if (side.breakOff()) this.#break({ block, number }, side);\n",
      replace: "        if (side.breakOff()) continue;\n",
    },
    {
      name: "the last look before sleep leaves out the status register",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "    if (this.#blocks.some((block) => this.#toldIn(block) !== 0)) return true;\n",
      replace: "",
    },
    {
      name: "an rget FIFO that is broken off stays open",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "    this.#kernel.rgetClose(rgetFifo.pointer);\n    const slot = slotOf(",
      replace: "    const slot = slotOf(",
    },
  ),
  ...by(
    SERVED_CHAINS,
    {
      name: "the last look for a context leaves out its rget FIFOs",
      file: "serve.ts",
      find: "  return chainLeft(contextOf(job, ordinal));\n",
      replace: "  return false;\n",
    },
    {
      name: "no thread rings a core whose fragment is moved",
      file: "chain.ts",
      find: RING_STAGER,
      replace: "",
    },
    {
      name: "a core is rung before it is said that its fragment is moved",
      file: "chain.ts",
      find: `${PASSED}${RING_STAGER}`,
      replace: `${RING_STAGER}${PASSED}`,
    },
    {
      name: "an engine does not look whether the owner of the other rget FIFO has ended",
      file: "chain.ts",
      find: "  if (hasEnded(taskOf(job, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET)))) return 0;\n",
      replace: "",
    },
  ),
  ...by(
    GIVEN_UP_SCENARIOS,
    {
      name: "an rget FIFO that was given up is the next one's before the engine thread has acknowledged that",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "before.filter(({ notice }) => !hasEngineSeen(this.#kernel, this.#map, notice));\n",
      replace: "before.filter(({ notice }) => notice < 0);\n",
    },
    {
      name: "an rget FIFO that was given up is not emptied",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "const isNoted = kernel.rgetClear(rgetFifo.pointer) !== 0;\n",
      replace: "const isNoted = false;\n",
    },
    {
      name: "what was told of an rget FIFO that was given up is left for the next one",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "    kernel.clearBits(block.pointer + L.BLOCK_STATUS_OFFSET, 1 << number);\n    const isNoted",
      replace: "    const isNoted",
    },
    {
      name: "an rget FIFO that is given up is not closed",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "    this.#kernel.rgetClose(side.rgetFifo.pointer);\n    this.#abandoned",
      replace: "    this.#abandoned",
    },
    {
      name: "what is all there when its origin ends is over before the engine thread can have told of it",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "        this.#abandon({ block, number }, side);\n",
      replace:
        "        const left = this.#kernel.loadWord(side.rgetFifo.pointer + L.RGET_FIFO_LEFT_OFFSET);\n        if (left === 0) this.#end({ block, number }, side, this.#resultOf(side));\n        else this.#abandon({ block, number }, side);\n",
    },
    {
      name: "what is told to a side after the other one has ended is forgotten when it is seen",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "if (place.block === block) bits &= ~(1 << place.number);",
      replace: "if (place.block !== block) bits &= ~(1 << place.number);",
    },
    {
      name: "what is told to a side after the other one has ended is not minded",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "return isTold || isNoted",
      replace: "return isNoted",
    },
    {
      name: "the NOTICE that is left in an rget FIFO whose other side has ended is not minded",
      file: "src/protocol/rendezvous/transfers.ts",
      find: "isTold || isNoted || isThere",
      replace: "isTold || isThere",
    },
    {
      name: "what a context that closes had staged is taken for a mistake",
      file: "chain.ts",
      find: "  if (result == TRANSFER_LOCAL_CLOSED && loadWord(context + CONTEXT_RGET_FIFOS_OFFSET) == 0) result = TRANSFER_ENDED;\n",
      replace: "",
    },
    {
      name: "an engine processes what is left in an rget FIFO that is closed",
      file: "chain.ts",
      find: "isOpen(rgetFifo) && rgetFifoRun(job, rgetFifo, context)",
      replace: "rgetFifoRun(job, rgetFifo, context)",
    },
    {
      name: "an engine does not look whether the other rget FIFO is still that one",
      file: "chain.ts",
      find: "  return loadWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET) == own ? rgetFifo : 0;\n",
      replace: "  return rgetFifo;\n",
    },
  ),
  ...by(
    RMA_SCENARIOS,
    {
      name: "the oldest completion is looked for once",
      file: "completion.ts",
      find: "  if (slot < first || slot >>> 5 != first >>> 5) slot = nextDone(fifo, first);\n",
      replace: "",
    },
    {
      name: "it is looked for once more only behind the end of the mask",
      file: "completion.ts",
      find: "  if (slot < first || slot >>> 5 != first >>> 5) slot",
      replace: "  if (slot < first) slot",
    },
  ),
  ...by(
    ENGINE_SCENARIOS,
    {
      name: "no thread rings the engine thread",
      file: "due.ts",
      find: CALL,
      replace: "  setBits(word, bit);\n",
    },
    {
      name: "the engine thread is rung before its bit is set",
      file: "due.ts",
      find: CALL,
      replace: "  ring(engine);\n  setBits(word, bit);\n",
    },
    {
      name: "a due bit is set by a plain store",
      file: "due.ts",
      find: CALL,
      replace: "  store<u32>(word, load<u32>(word) | bit);\n  ring(engine);\n",
    },
    {
      name: "a due bit is looked at by a plain load",
      file: "due.ts",
      find: "  if ((loadWord(word) & bit) != 0) return;\n",
      replace: "  if ((load<u32>(word) & bit) != 0) return;\n",
    },
    {
      name: "the engine thread looks at due bits by a plain load",
      file: "serve.ts",
      find: "bits = loadWord(job + JOB_DUE_OFFSET + (word << 2)); bits",
      replace: "bits = load<u32>(job + JOB_DUE_OFFSET + (word << 2)); bits",
    },
    {
      name: "a due bit is cleared, and nobody looks once more",
      file: "serve.ts",
      find: LOOK_AGAIN,
      replace: CLEAR,
    },
    {
      name: "the last look is before a due bit is cleared",
      file: "serve.ts",
      find: LOOK_AGAIN,
      replace: `  const isStill = isServed(contextOf(job, ordinal)) && isDue(job, ordinal);\n${CLEAR}  if (isStill) setBits(pointer, bit);\n`,
    },
    {
      name: "a due bit is cleared by a plain store",
      file: "serve.ts",
      find: LOOK_AGAIN,
      replace: LOOK_AGAIN.replace("clearBits(pointer, bit)", "store<u32>(pointer, load<u32>(pointer) & ~bit)"),
    },
    {
      name: "the last look at a FIFO is a plain load",
      file: "serve.ts",
      find: "  if (loadWord(fifo + INJECTION_TAIL_OFFSET) == load",
      replace: "  if (load<u32>(fifo, INJECTION_TAIL_OFFSET) == load",
    },
    {
      name: "no thread rings for what the engine thread has processed",
      file: "serve.ts",
      find: MOVED,
      replace: "  if (most != 0) return left;\n",
    },
    {
      name: "the owner of a FIFO is rung before it is processed",
      file: "serve.ts",
      find: RUN,
      replace: `  if (loadWord(fifo + INJECTION_TAIL_OFFSET) != before) ring(load<usize>(context, CONTEXT_TASK_OFFSET));\n${RUN}  if (most != 0) return left;\n`,
    },
    {
      name: "a FIFO is taken for idle by a plain look",
      file: "engine.ts",
      find: "load<u32>(fifo, INJECTION_HEAD_OFFSET) : loadWord(fifo + INJECTION_HEAD_OFFSET);\n  return head",
      replace: "load<u32>(fifo, INJECTION_HEAD_OFFSET) : load<u32>(fifo, INJECTION_HEAD_OFFSET);\n  return head",
    },
    {
      name: "what is taken is behind what the engine thread has not yet said",
      file: "engine.ts",
      find: "  if (load<u32>(fifo, INJECTION_OLDEST_OFFSET) == tail) return true;\n",
      replace: "",
    },
    {
      name: "what is short does not wait for what is before it",
      file: "engine.ts",
      find: " && isProcessed(fifo, isInline);",
      replace: " && (isProcessed(fifo, isInline) || kind == DESCRIPTOR_PUT);",
    },
    {
      name: "a fence does not wait for what is before it",
      file: "engine.ts",
      find: " && isProcessed(fifo, isInline);",
      replace: " && (isProcessed(fifo, isInline) || kind == DESCRIPTOR_FENCE);",
    },
    {
      name: "the engine thread says how far it is by a plain store",
      file: "engine.ts",
      find: "  if (head != before) storeWord(fifo + INJECTION_HEAD_OFFSET, head);\n",
      replace: "  if (head != before) store<u32>(fifo, head, INJECTION_HEAD_OFFSET);\n",
    },
    {
      name: "the engine thread says how far it is before it is there",
      file: "engine.ts",
      find: "    const done = proceed(job, fifo, descriptor, kind, left, part);\n",
      replace:
        "    storeWord(fifo + INJECTION_HEAD_OFFSET, head + 1);\n    storeWord(fifo + INJECTION_HEAD_OFFSET, head);\n    const done = proceed(job, fifo, descriptor, kind, left, part);\n",
    },
    {
      name: "nobody waits until the engine thread has acknowledged",
      file: "src/node/liveness.ts",
      find: "L.TASK_SEEN_OFFSET), notice) >= 0;\n",
      replace: "L.TASK_SEEN_OFFSET), notice) >= -1;\n",
    },
    {
      name: "no thread rings the engine thread for what was closed",
      file: "src/node/liveness.ts",
      find: "  kernel.ring(slot);\n  return notice;\n",
      replace: "  return notice;\n",
    },
    {
      name: "the engine thread acknowledges by a plain store",
      file: "serve.ts",
      find: "  storeWord(engine + TASK_SEEN_OFFSET, notice);\n",
      replace: "  store<u32>(engine, notice, TASK_SEEN_OFFSET);\n",
    },
    {
      name: "the engine thread acknowledges behind its look whether it serves somebody",
      file: "serve.ts",
      find: SERVED,
      replace: `${SERVED}      acknowledge(job, engine);\n`,
    },
    {
      name: "the engine thread acknowledges behind its look at a region",
      file: "engine.ts",
      find: "  const to = isPut ? remote : local;\n",
      replace: `  ${SEEN}  const to = isPut ? remote : local;\n`,
    },
    {
      name: "nobody is told that the engine thread has acknowledged",
      file: "serve.ts",
      find: "    addWord(slot + TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)\n    ring(slot);\n",
      replace: "",
    },
    {
      name: "whoever is told that the engine thread has acknowledged does not look again",
      file: "serve.ts",
      find: "    addWord(slot + TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)\n",
      replace: "",
    },
    {
      name: "the engine thread goes on for a task that has ended",
      file: "serve.ts",
      find: " && loadWord(task + TASK_STATE_OFFSET) == TASK_UP",
      replace: "",
    },
    {
      name: "the engine thread goes on for a context that has closed",
      file: "serve.ts",
      find: "  return loadWord(context + CONTEXT_STATE_OFFSET) == CONTEXT_OPEN && loadWord",
      replace: "  return loadWord",
    },
    {
      name: "the engine thread goes on with what goes to a task that has ended",
      file: "engine.ts",
      find: "  const isUp = isOwnerUp(job, load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET));\n  const before",
      replace: "  const isUp = true;\n  const before",
    },
    {
      name: "a closed region's pages are used again while the engine thread may be at it",
      file: "src/node/liveness.ts",
      find: "      if (!hasEngineSeen(kernel, map, engineNotice)) return false;\n",
      replace: "",
    },
    {
      name: "an end rings an engine thread whose flag is up alone",
      file: "src/node/liveness.ts",
      find: "    kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)\n    kernel.ringAlways(slot);\n",
      replace: "    kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)\n    kernel.ring(slot);\n",
    },
    {
      name: "a dead task's pages are used again while the engine thread may be at them",
      file: "src/node/liveness.ts",
      find: "  if (!hasEngineSeenAll(kernel, map)) return true;\n",
      replace: "",
    },
  ),
];

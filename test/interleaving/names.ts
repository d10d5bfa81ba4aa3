// Names for the words of a job's memory, from the pictures in assembly/layout.ts.
import * as layout from "../../assembly/layout.js";
import { contextBlock } from "../../src/memory/map.js";
import { JOB_WORDS, KIND, LOG, map } from "./control.js";

/** Fields of an area: byte offset and name, in ascending order. */
function fieldsOf(area: string): [offset: number, name: string][] {
  const found = Object.entries(layout).flatMap(([name, value]): [number, string][] => {
    const field = new RegExp(`^${area}_(.*)_OFFSET$`).exec(name)?.[1];
    return field === undefined || typeof value !== "number" ? [] : [[value, field.toLowerCase().replaceAll("_", " ")]];
  });
  return found.sort(([a], [b]) => a - b);
}

const FIELDS = new Map(
  ["JOB", "TASK", "CONTEXT", "LANE", "REGION", "INJECTION", "BLOCK", "RGET_FIFO", "DESCRIPTOR"].map((area) => [
    area,
    fieldsOf(area),
  ]),
);

function field(area: string, offset: number): string {
  const [start, name] = (FIELDS.get(area) ?? []).findLast(([at]) => at <= offset) ?? [0, "?"];
  return offset === start ? name : `${name} + ${offset - start}`;
}

/** Pointers to the blocks of rget FIFOs in a job's memory. */
export function blocksIn(words: Int32Array): number[] {
  const blocks: number[] = [];
  for (let ordinal = 0; ordinal < map.tasks * map.contexts; ordinal++) {
    let block = words[(contextBlock(map, ordinal) + layout.CONTEXT_RGET_FIFOS_OFFSET) >>> 2] as number;
    while (block !== 0 && !blocks.includes(block)) {
      blocks.push(block);
      block = words[(block + layout.BLOCK_NEXT_OFFSET) >>> 2] as number;
    }
  }
  return blocks;
}

/** A field in a block of rget FIFOs. */
function blockField(page: number, offset: number): string {
  const at = offset - layout.BLOCK_RGET_FIFOS_OFFSET;
  if (at < 0) return `block of rget FIFOs in page ${page}: ${field("BLOCK", offset)}`;
  const inFifo = at % layout.RGET_FIFO_SIZE;
  const inRgets = inFifo - layout.RGET_FIFO_RGETS_OFFSET;
  const inSlots = inFifo - layout.RGET_FIFO_SLOTS_OFFSET;
  const rgetFifo = `rgetFifo ${Math.floor(at / layout.RGET_FIFO_SIZE)} in page ${page}`;
  if (inRgets < 0) return `${rgetFifo}: ${field("RGET_FIFO", inFifo)}`;
  const [what, inAll] = inSlots < 0 ? ["RGET", inRgets] : ["slot", inSlots];
  const number = Math.floor(inAll / layout.DESCRIPTOR_SIZE);
  return `${rgetFifo}: ${what} ${number}, ${field("DESCRIPTOR", inAll % layout.DESCRIPTOR_SIZE)}`;
}

/**
 * What lies at a word: the heap's pages are taken to hold lanes, each from a page's start.
 * @param blocks but these hold rget FIFOs
 */
export function nameOf(word: number, blocks: readonly number[]): string {
  const pointer = 4 * word;
  if (word >= JOB_WORDS) return `word ${word}`;
  const block = blocks.find((start) => pointer >= start && pointer < start + layout.BLOCK_SIZE);
  if (block !== undefined) return blockField((block - map.heapBase) / layout.PAGE_SIZE, pointer - block);
  if (pointer >= map.heapBase) {
    const page = Math.floor((pointer - map.heapBase) / layout.PAGE_SIZE);
    const offset = (pointer - map.heapBase) % layout.PAGE_SIZE;
    return offset < layout.LANE_CONTROL_SIZE
      ? `lane in page ${page}: ${field("LANE", offset)}`
      : `lane in page ${page}: ring + ${offset - layout.LANE_CONTROL_SIZE}`;
  }
  if (pointer >= map.heapTable) return `heap table: page ${(pointer - map.heapTable) / 4}`;
  if (pointer >= map.injectionBase) {
    const fifo = Math.floor((pointer - map.injectionBase) / map.injectionSize);
    return `injection FIFO ${fifo}: ${field("INJECTION", (pointer - map.injectionBase) % map.injectionSize)}`;
  }
  if (pointer >= map.regionsBase) {
    const index = Math.floor((pointer - map.regionsBase) / layout.REGION_SIZE);
    return `region ${index}: ${field("REGION", (pointer - map.regionsBase) % layout.REGION_SIZE)}`;
  }
  if (pointer >= map.endpointsBase) return `endpoint of ordinal ${(pointer - map.endpointsBase) / 4}`;
  if (pointer >= map.contextsBase) {
    const ordinal = Math.floor((pointer - map.contextsBase) / map.contextSize);
    return `context ${ordinal}: ${field("CONTEXT", (pointer - map.contextsBase) % map.contextSize)}`;
  }
  if (pointer >= map.tasksBase) {
    const task = Math.floor((pointer - map.tasksBase) / layout.TASK_SIZE);
    // Of four slots, the engine's is the fifth one.
    const whose = task < map.tasks ? `task ${task}` : task > map.tasks ? "engine thread" : "engine thread or slot 3";
    return `${whose}: ${field("TASK", (pointer - map.tasksBase) % layout.TASK_SIZE)}`;
  }
  return `job: ${field("JOB", pointer)}`;
}

const KINDS = new Map<number, string>([
  [KIND.load, "load"],
  [KIND.store, "store"],
  [KIND.atomicLoad, "atomic load"],
  [KIND.hint, "look"],
  [KIND.atomicStore, "atomic store"],
  [KIND.atomicChange, "atomic change"],
  [KIND.wait, "wait"],
  [KIND.notify, "notify"],
  [KIND.begin, "begin"],
  [KIND.end, "end"],
  [KIND.join, "end of thread"],
]);

/** One line of a trace: each thread has a column of its own. */
export function describeStep(step: number, entry: number, blocks: readonly number[]): string {
  const thread = (entry >>> LOG.threadShift) & 3;
  const kind = (entry >>> LOG.kindShift) & 15;
  const word = entry & LOG.wordMask;
  const where =
    kind === KIND.begin || kind === KIND.end ? "" : kind === KIND.join ? String(word) : nameOf(word, blocks);
  const forced = (entry & LOG.forced) !== 0;
  const mark = forced ? "  ─ another thread" : (entry & LOG.switched) !== 0 ? "  ⇄ before this" : "";
  const again = (entry & LOG.resumed) !== 0 ? "  (now)" : "";
  return `${String(step).padStart(4)}  ${" │    ".repeat(thread)}${thread}: ${KINDS.get(kind)} ${where}${mark}${again}`.trimEnd();
}

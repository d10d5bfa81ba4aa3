// Both sides of a self-pacing transfer in a rig: blocks of windows, and the words that chainWrite() makes its links of.
import {
  BLOCK_NEXT_OFFSET,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  BLOCK_WINDOWS_OFFSET,
  CONTEXT_WINDOWS_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_CHAIN_GENERATION_OFFSET,
  WINDOW_CHAIN_INDEX_OFFSET,
  WINDOW_DEPTH_OFFSET,
  WINDOW_FROM_GENERATION_OFFSET,
  WINDOW_FROM_INDEX_OFFSET,
  WINDOW_FROM_OFFSET_OFFSET,
  WINDOW_OWN_GENERATION_OFFSET,
  WINDOW_OWN_INDEX_OFFSET,
  WINDOW_OWN_OFFSET_OFFSET,
  WINDOW_PEER_GENERATION_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_OFFSET_OFFSET,
  WINDOW_PEER_TASK_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_PORTION_OFFSET,
  WINDOW_RING_OFFSET,
  WINDOW_SIZE,
  WINDOW_STATUS_OFFSET,
  WINDOW_TO_GENERATION_OFFSET,
  WINDOW_TO_INDEX_OFFSET,
  WINDOW_TO_OFFSET_OFFSET,
} from "../../assembly/layout.js";
import { contextBlock, type MemoryMap } from "../../src/memory/map.js";
import type { Rig } from "./kernels.js";

/** A region that is open. */
export interface Region {
  readonly index: number;
  readonly generation: number;
  readonly base: number;
}

/** A window of a task's first context; its number is its bit in the status register. */
export interface Side {
  readonly task: number;
  readonly context: number;
  readonly block: Region;
  readonly number: number;
  /** Offset of the window in its block. */
  readonly offset: number;
  readonly window: number;
}

/** What a chain is made of. */
export interface Plan {
  readonly origin: Side;
  readonly target: Side;
  /** Generation of the origin's window. */
  readonly generation: number;
  readonly payload: Region;
  readonly from: number;
  readonly destination: Region;
  readonly to: number;
  readonly links: Region;
  readonly bytes: number;
  readonly portion: number;
  readonly depth: number;
  readonly ring?: number;
}

/** Makes a region a block of windows, the first in the list of a task's first context. */
export function addBlock(rig: Rig, task: number, block: Region): void {
  const context = rig.context(task * rig.map.contexts);
  rig.memory.bytes.fill(0, block.base, block.base + BLOCK_SIZE);
  rig.setWord(block.base + BLOCK_NEXT_OFFSET, rig.word(context + CONTEXT_WINDOWS_OFFSET));
  rig.setWord(context + CONTEXT_WINDOWS_OFFSET, block.base);
}

/** A window of a block. */
export function sideOf(map: MemoryMap, task: number, block: Region, number: number): Side {
  const offset = BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
  return {
    task,
    context: contextBlock(map, task * map.contexts),
    block,
    number,
    offset,
    window: block.base + offset,
  };
}

/** Once for each window: where it tells its owner, and who owns the other one. */
export function readySide(rig: Rig, { block, window, number }: Side, peer: number): void {
  rig.setWord(window + WINDOW_STATUS_OFFSET, block.base + BLOCK_STATUS_OFFSET);
  rig.setWord(window + WINDOW_BIT_OFFSET, 1 << number);
  rig.setWord(window + WINDOW_PEER_TASK_OFFSET, rig.task(peer));
}

/** What the target's core writes into its window before chainWrite(): offset and value of each word. */
export function chainWords(plan: Plan): [offset: number, value: number][] {
  const { origin, target, payload, destination, links } = plan;
  return [
    [WINDOW_PEER_INDEX_OFFSET, origin.block.index],
    [WINDOW_PEER_GENERATION_OFFSET, origin.block.generation],
    [WINDOW_PEER_OFFSET_OFFSET, origin.offset],
    [WINDOW_PEER_WINDOW_OFFSET, plan.generation],
    [WINDOW_OWN_INDEX_OFFSET, target.block.index],
    [WINDOW_OWN_GENERATION_OFFSET, target.block.generation],
    [WINDOW_OWN_OFFSET_OFFSET, target.offset],
    [WINDOW_FROM_INDEX_OFFSET, payload.index],
    [WINDOW_FROM_GENERATION_OFFSET, payload.generation],
    [WINDOW_FROM_OFFSET_OFFSET, plan.from],
    [WINDOW_TO_INDEX_OFFSET, destination.index],
    [WINDOW_TO_GENERATION_OFFSET, destination.generation],
    [WINDOW_TO_OFFSET_OFFSET, plan.to],
    [WINDOW_CHAIN_INDEX_OFFSET, links.index],
    [WINDOW_CHAIN_GENERATION_OFFSET, links.generation],
    [WINDOW_BYTES_OFFSET, plan.bytes],
    [WINDOW_PORTION_OFFSET, plan.portion],
    [WINDOW_RING_OFFSET, plan.ring ?? 0],
    [WINDOW_DEPTH_OFFSET, plan.depth],
  ];
}

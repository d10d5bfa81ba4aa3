// Twin of assembly/region.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Due } from "./due.js";

export type Region = ReturnType<typeof twinRegion>;

export function twinRegion({ words }: Memory, { loadWord, ring, storeWord }: SharedAtomics, { hasEnded }: Due) {
  function entryOf(job: number, index: number): number {
    return (words[(job + L.JOB_REGIONS_BASE_OFFSET) >>> 2] >>> 0) + (index << L.REGION_SHIFT);
  }

  function regionOpen(job: number, index: number, base: number, length: number): number {
    const entry = entryOf(job, index);
    words[(entry + L.REGION_BASE_OFFSET) >>> 2] = base;
    words[(entry + L.REGION_BYTES_OFFSET) >>> 2] = length;
    const generation = (words[(entry + L.REGION_GENERATION_OFFSET) >>> 2] + 1) >>> 0;
    // SYNC region (open)
    storeWord(entry + L.REGION_GENERATION_OFFSET, generation);
    return generation;
  }

  function regionClose(job: number, index: number): void {
    const entry = entryOf(job, index);
    // SYNC region (close)
    storeWord(entry + L.REGION_GENERATION_OFFSET, words[(entry + L.REGION_GENERATION_OFFSET) >>> 2] + 1);
  }

  function regionOf(job: number, index: number, generation: number): number {
    const entries = words[(job + L.JOB_LOCALS_OFFSET) >>> 2] * words[(job + L.JOB_REGIONS_OFFSET) >>> 2];
    if (index >>> 0 >= entries || (generation & 1) === 0) return 0;
    const entry = entryOf(job, index);
    // SYNC region (look)
    return loadWord(entry + L.REGION_GENERATION_OFFSET) === (generation | 0) ? entry : 0;
  }

  function isRemote(job: number, index: number): boolean {
    const task = Math.floor((index >>> 0) / words[(job + L.JOB_REGIONS_OFFSET) >>> 2]);
    return task >= words[(job + L.JOB_LOCALS_OFFSET) >>> 2] && task < words[(job + L.JOB_TASKS_OFFSET) >>> 2];
  }

  function isOwnerUp(job: number, index: number): boolean {
    const task = Math.floor((index >>> 0) / words[(job + L.JOB_REGIONS_OFFSET) >>> 2]);
    if (task >= words[(job + L.JOB_TASKS_OFFSET) >>> 2]) return true;
    return !hasEnded((words[(job + L.JOB_TASKS_BASE_OFFSET) >>> 2] >>> 0) + task * L.TASK_SIZE);
  }

  function ringOwner(job: number, index: number): void {
    const task = Math.floor((index >>> 0) / words[(job + L.JOB_REGIONS_OFFSET) >>> 2]);
    ring((words[(job + L.JOB_TASKS_BASE_OFFSET) >>> 2] >>> 0) + task * L.TASK_SIZE);
  }

  function regionPlace(entry: number, offset: number, length: number): number {
    const end = (offset >>> 0) + (length >>> 0);
    if (end > words[(entry + L.REGION_BYTES_OFFSET) >>> 2] >>> 0) return 0;
    return (words[(entry + L.REGION_BASE_OFFSET) >>> 2] >>> 0) + (offset >>> 0);
  }

  function placeOf(job: number, index: number, generation: number, offset: number, length: number): number {
    const entry = regionOf(job, index, generation);
    return entry === 0 ? 0 : regionPlace(entry, offset, length);
  }

  return { regionOpen, regionClose, regionOf, isRemote, isOwnerUp, ringOwner, regionPlace, placeOf };
}

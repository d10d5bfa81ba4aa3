// A memory that processes map from a file: the system may lack pages for it.
import { expect, it } from "vitest";
import { OPEN_NO_MEMORY, PAGE_SIZE } from "../../assembly/layout.js";
import type { Futex } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { providerOf } from "../../src/process/process-memory.js";
import { thrownBy } from "../api/support.js";

/** Makes memories for which the system has so many bytes, and records what is asked of it. */
function scarce(most: number) {
  const asked: [pointer: number, bytes: number][] = [];
  let left = most;
  const futex: Futex = {
    wait: () => 0,
    wake() {},
    reserve(pointer, bytes) {
      asked.push([pointer, bytes]);
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    doorbell: undefined,
    close() {},
  };
  const make = (bytes: number) => {
    const pages = bytes / 65_536;
    return {
      shared: new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }),
      futex,
      provide: providerOf(futex),
    };
  };
  const limits = { tasks: 2, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 20 };
  return { asked, jobMemory: () => makeJobMemory({ limits, isFixed: true, base: 0 }, true, make) };
}

it.each(["wasm", "ts"] as const)("an extent that the system has no pages for is free again, kernel %s", (name) => {
  const { asked, jobMemory } = scarce(2 ** 20);
  const { map, shared, memory } = jobMemory();
  const kernel = selectKernel(name, shared, memory);
  const tables = asked.reduce((sum, [, bytes]) => sum + bytes, 0);
  const pages = Math.floor((2 ** 20 - tables) / PAGE_SIZE);
  expect(pages).toBeLessThan(map.heapPages);
  const free = kernel.heapFreePages(map.job);
  for (const allocate of [kernel.heapAllocate, kernel.regionAllocate]) {
    expect(allocate(map.job, pages + 1, 0)).toBe(OPEN_NO_MEMORY);
    expect(asked.at(-1)).toEqual([map.heapBase, (pages + 1) * PAGE_SIZE]);
    expect(kernel.heapFreePages(map.job)).toBe(free);
  }
  expect(kernel.heapAllocate(map.job, pages, 0)).toBe(map.heapBase);
  expect(kernel.heapAllocate(map.job, map.heapPages, 0)).toBe(OPEN_NO_MEMORY);
  expect(asked.at(-1)).toEqual([map.heapBase, pages * PAGE_SIZE]);
});

it("the tables of a job have their pages before it begins, or launch() fails", () => {
  const { asked, jobMemory } = scarce(2 ** 20);
  const { map, memory } = jobMemory();
  const [tables, errors] = asked.map(([pointer, bytes]) => [pointer, pointer + bytes]);
  expect(tables?.[0]).toBeLessThanOrEqual(map.job);
  expect(tables?.[1]).toBe(map.heapBase);
  expect(errors?.[0]).toBeLessThanOrEqual(map.end);
  expect(errors?.[1]).toBe(memory.buffer.byteLength);
  const { code, text } = thrownBy(scarce(8192).jobMemory);
  expect([code, text]).toEqual(["PAMIR_MEMORY", expect.stringMatching(/no memory for the \d+ bytes.*ENOMEM/)]);
});

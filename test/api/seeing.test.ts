// What can be seen of memory: statistics of the heap, injection FIFOs in the dump, and debug mode's warnings.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Client, SUCCESS } from "pamir";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PATIENCE, until, VARIANTS, withJob } from "./support.js";

const PAGE = 4096;
const SLICE = 262144;

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(VARIANTS)("$name", (variant) => {
  it("the dump says what the heap is used for, by whom, and what is free in one piece", () =>
    withJob(variant, {}, ({ job, client, context }) => {
      const before = job.dump().heap;
      expect(before.free).toBeLessThanOrEqual(before.bytes);
      const [first, second] = [client.createRegion(3 * PAGE), client.createRegion(PAGE + 1)];
      expect(context.resume([client.endpoint(1)])).toBe(SUCCESS);
      const { free, owners } = job.dump().heap;
      const own = owners.find(({ task }) => task === 0);
      expect(own?.regions).toBe(5 * PAGE);
      expect(own?.lanes).toBeGreaterThan(0);
      expect(free).toBe(before.free - 5 * PAGE - (own?.lanes as number));
      // The hole that the first one leaves is not joined with what is free behind the second.
      first.close();
      context.advance();
      client.createRegion(1).close();
      const { heap } = job.dump();
      expect(heap.largest).toBeLessThan(heap.free);
      expect(heap.largest).toBeGreaterThan(heap.free - 5 * PAGE);
      expect(job.dump().toString()).toMatch(/heap: \d+ of \d+ bytes free, \d+ in one piece\n {2}of task 0: lanes \d+ /);
      second.close();
    }));

  it("the dump says what an injection FIFO has left, and what was refused", () =>
    withJob(variant, { fifos: 1, slots: 8 }, ({ job, client, context }) => {
      const bytes = 4 * SLICE;
      const [from, into] = [client.createRegion(bytes), client.createRegion(bytes)];
      const injections = () => job.dump().tasks[0]?.contexts[0]?.injections;
      expect(injections()).toEqual([]);
      let result = -1;
      const onLocal = (_: unknown, told: number) => {
        result = told;
      };
      context.put({ to: context.endpoint, local: from, remote: into.handle, bytes, onLocal });
      expect(injections()).toEqual([{ fifo: 0, slots: 8, left: 2, pending: 1, refused: 0 }]);
      expect(job.dump().stuck).toContain("injection FIFO 0 of 0.0: 2 descriptors wait for it to advance");
      expect(job.dump().toString()).toContain("injection FIFO 0 of 8 slots: 2 left, 1 callbacks pending, 0 refused");
      into.close();
      until(context, () => result !== -1);
      expect(result).not.toBe(SUCCESS);
      expect(injections()).toEqual([{ fifo: 0, slots: 8, left: 0, pending: 0, refused: 1 }]);
    }));
});

describe("debug mode", () => {
  const [plain] = VARIANTS;
  const warnings = () => {
    const told: string[] = [];
    vi.spyOn(console, "warn").mockImplementation((text: string) => void told.push(text));
    return told;
  };
  const makeOne = (client: Client, bytes: number): number => client.createRegion(bytes).handle;

  it("names each region that is open when its task closes the client, and where it was made", () => {
    const told = warnings();
    return withJob(plain, { debug: true }, ({ client }) => {
      makeOne(client, 10);
      client.createRegion(20).close();
      client.close();
      expect(told).toHaveLength(1);
      expect(told[0]).toMatch(
        /^pamir: task 0 closes its client with a region of 10 bytes that was never closed, made at .*makeOne.*seeing\.test/,
      );
    });
  });

  it("tells of a region that nobody can close any more", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const told = warnings();
    return withJob(plain, { debug: true }, async ({ client }) => {
      makeOne(client, 30);
      const start = performance.now();
      while (told.length === 0 && performance.now() - start < PATIENCE) {
        collect();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(told).toEqual([expect.stringMatching(/^pamir: task 0 lost a region of 30 bytes that was never closed/)]);
      client.close();
      expect(told).toHaveLength(1);
    });
  });

  it("is off unless it is asked for", () => {
    const told = warnings();
    return withJob(plain, {}, ({ client }) => {
      makeOne(client, 10);
      client.close();
      expect(told).toEqual([]);
    });
  });

  it("is true or false", async () => {
    await expect(withJob(plain, { debug: "yes" as never }, () => {})).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: 'debug is "yes", not a boolean',
    });
  });
});

// The host of a node whose link is real: one alarm, never early, and numbers that nobody can predict.
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LinkHost } from "../../src/start/node/link-host.js";
import { randomWords } from "../../src/support/randomness.js";

describe("the alarm", () => {
  let host: LinkHost;
  let called: { readonly name: string; readonly isEarly: boolean }[];

  beforeEach(() => {
    host = new LinkHost();
    called = [];
  });

  afterEach(() => host.close());

  /** Sets it so many microseconds ahead. */
  const set = (ahead: number, name = `${ahead}`): void => {
    const time = host.now() + ahead;
    host.at(time, () => called.push({ name, isEarly: host.now() < time }));
  };

  it.each([-5000, 0, 1, 300, 999, 1000, 1001, 2500, 12_345])(
    "%i µs ahead: called once, and not early",
    async (ahead) => {
      set(ahead);
      expect(called).toEqual([]);
      await vi.waitUntil(() => called.length > 0, { interval: 1, timeout: 60_000 });
      await delay(5);
      expect(called).toEqual([{ name: `${ahead}`, isEarly: false }]);
    },
  );

  it.each([
    [20_000, 500],
    [20_000, 3000],
    [800, 100],
    [800, -1],
  ])("%i µs ahead, then %i: the second one replaces the first", async (first, second) => {
    set(first, "first");
    set(second, "second");
    await vi.waitUntil(() => called.length > 0, { interval: 1, timeout: 60_000 });
    await delay(30);
    expect(called).toEqual([{ name: "second", isEarly: false }]);
  });

  it("can be set within its own call", async () => {
    let rounds = 0;
    const again = (): void => {
      if (++rounds < 20) host.at(host.now() + 100 * rounds, again);
    };
    host.at(host.now(), again);
    await vi.waitUntil(() => rounds === 20, { interval: 1, timeout: 60_000 });
  });

  it.each([100, 5000])("close() cancels one that is %i µs ahead", async (ahead) => {
    set(ahead);
    host.close();
    await delay(20);
    expect(called).toEqual([]);
  });
});

it("onLost is told of lost nodes, if there is one", () => {
  const lost: number[] = [];
  new LinkHost((node) => lost.push(node)).onLost(3, "silent", 0);
  new LinkHost().onLost(3, "silent", 0);
  expect(lost).toEqual([3]);
});

it("randomWords(): u32s that do not repeat, and that another source does not give", () => {
  const [one, other] = [randomWords(), randomWords()];
  const words = Array.from({ length: 2000 }, () => [one(), other()]).flat();
  for (const word of words) expect(Number.isInteger(word) && word >= 0 && word < 2 ** 32).toBe(true);
  // Two of 4,000 are equal in one of 500 runs; four pairs never are.
  expect(new Set(words).size).toBeGreaterThan(3996);
  // Each bit is set about as often as not: 10 standard deviations.
  for (let bit = 0; bit < 32; bit++) {
    const set = words.filter((word) => ((word >>> bit) & 1) === 1).length;
    expect(Math.abs(set - 2000)).toBeLessThan(320);
  }
});

// Whether a wait spins: learned from what the last spins came to, by a clock that only stands where the test puts it.
import { expect, it } from "vitest";
import { Spins } from "../../src/node/spins.js";

function clocked() {
  let now = 0;
  const spins = new Spins();
  const clock = { now: () => now, origin: 0 };
  return {
    pays: () => spins.pays(clock),
    won: () => spins.won(),
    lost: (preempted = false) => spins.lost(now, preempted),
    pass(milliseconds: number) {
      now += milliseconds;
    },
    /** Milliseconds until the next spin, to a tenth. */
    backOff() {
      const start = now;
      while (!spins.pays(clock)) now += 1 / 1024;
      return Number((now - start).toFixed(1));
    },
  };
}

it("spins at first, and reads no clock while spins are won", () => {
  const spins = new Spins();
  const clock = {
    now: (): number => {
      throw new Error("the clock was read");
    },
    origin: 0,
  };
  expect(spins.pays(clock)).toBe(true);
  spins.won();
  expect(spins.pays(clock)).toBe(true);
});

it("a spin that was lost keeps the next ones from spinning, twice as long each time, up to a limit", () => {
  const spins = clocked();
  const lengths = Array.from({ length: 10 }, () => {
    spins.lost();
    return spins.backOff();
  });
  expect(lengths).toEqual([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 25.6, 25.6]);
});

it("one in which another thread took the core counts twice", () => {
  const spins = clocked();
  spins.lost(true);
  expect(spins.backOff()).toBe(0.4);
});

it("each win makes up for one loss", () => {
  const spins = clocked();
  for (let i = 0; i < 3; i++) spins.lost();
  expect(spins.pays()).toBe(false);
  spins.pass(0.8);
  expect(spins.pays()).toBe(true);
  for (let i = 0; i < 2; i++) spins.won();
  spins.lost();
  expect(spins.backOff()).toBe(0.4);
  for (let i = 0; i < 2; i++) spins.won();
  expect(spins.pays()).toBe(true);
  spins.lost();
  expect(spins.backOff()).toBe(0.2);
});

it("where no loss is left, four wins make up for a later one, and no more than 32 are kept", () => {
  const spins = clocked();
  for (let i = 0; i < 7; i++) spins.won();
  spins.lost();
  expect(spins.pays()).toBe(true);
  spins.lost();
  expect(spins.backOff()).toBe(0.2);
  for (let i = 0; i < 1001; i++) spins.won();
  for (let i = 0; i < 4; i++) {
    spins.lost(true);
    expect(spins.pays()).toBe(true);
  }
  spins.lost();
  expect(spins.pays()).toBe(false);
});

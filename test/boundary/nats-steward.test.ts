// The steward of a job at a NATS server: no number is given twice, whatever happens to the launchers, and the living ones go on.
import { describe, expect, it } from "vitest";
import { scaled } from "../support/effort.js";
import { replayNote, SEED } from "../support/seed.js";
import { type SimulatedComer, StewardWorld } from "../support/steward-world.js";

const QUIET_MS = 60_000;
/** Milliseconds after which a launcher that is up knows what the others do. */
const KNOWS_MS = 40_000;

/** Each comer has one number, and no other comer has that. */
function expectOnce(comers: readonly SimulatedComer[]): void {
  for (const { tasks } of comers) expect(tasks.size).toBeLessThanOrEqual(1);
  const given = comers.flatMap(({ tasks }) => [...tasks]);
  expect(new Set(given).size).toBe(given.length);
}

const numbersOf = (comers: readonly SimulatedComer[]): number[] =>
  comers.flatMap(({ tasks }) => [...tasks]).sort((a, b) => a - b);

describe("a steward", () => {
  const quiet = { seed: SEED, delay: 50, replays: 0 };

  it("is the launcher of the lowest node, and gives consecutive numbers, and all addresses", () => {
    const world = new StewardWorld({ ...quiet, launchers: 3, most: 6 });
    world.run(5000);
    expect(world.stewards.map(({ seat }) => seat)).toEqual([0]);
    const first = world.come();
    world.run(3000);
    const comers = [first, world.come(), world.come()];
    world.run(5000);
    expect(numbersOf(comers)).toEqual([3, 4, 5]);
    expect(first.tasks).toEqual(new Set([3]));
    const last = comers.find(({ tasks }) => tasks.has(5));
    expect(last?.addresses?.slice(0, 4)).toEqual(["first 0", "first 1", "first 2", `later ${first.id}`]);
    const late = world.come();
    world.run(2000);
    expect(late.refused).toBe("all of its 3 numbers for later tasks are taken (--spare, spare of attach())");
  });

  it("says that the job may have ended, if it came later and its task has not met the others", () => {
    const world = new StewardWorld({ ...quiet, launchers: 1, most: 4 });
    world.run(3000);
    world.join(1, false);
    world.run(3000);
    world.kill(world.launchers[0] as never);
    world.run(20_000);
    expect(world.stewards.map(({ seat }) => seat)).toEqual([1]);
    const comer = world.come();
    world.run(3000);
    expect(comer.wait).toBe("a task that has met the others: the launchers that had one have ended");
  });

  it("is followed by another one, when it leaves and when it is killed, and by one that came later", () => {
    const world = new StewardWorld({ ...quiet, launchers: 3, most: 9 });
    /** The one steward, which none of these was. */
    const next = (...before: readonly unknown[]) => {
      const [steward, ...others] = world.stewards;
      expect(others).toEqual([]);
      return steward === undefined || before.includes(steward) ? expect.fail("no other steward") : steward;
    };
    world.run(3000);
    const first = next();
    const comers = [world.come()];
    world.run(3000);
    first.steward.leave();
    world.run(3000);
    const second = next(first);
    comers.push(world.come());
    world.run(3000);
    world.join(3);
    world.run(3000);
    world.kill(second);
    world.run(20_000);
    const third = next(first, second);
    comers.push(world.come());
    world.run(10_000);
    world.kill(third);
    world.run(20_000);
    next(first, second, third);
    comers.push(world.come());
    world.run(20_000);
    expect(numbersOf(comers)).toEqual([3, 4, 5, 6]);
    expectOnce(comers);
  });

  it("is there soon after a server that all had lost: none of them can have missed anything", () => {
    const world = new StewardWorld({ ...quiet, launchers: 3, most: 9 });
    world.run(3000);
    const comers = [world.come()];
    world.run(3000);
    for (const one of world.launchers) world.cut(one, true);
    world.run(2000);
    for (const one of world.launchers) world.after(world.random(1000), () => world.connect(one));
    comers.push(world.come());
    world.run(10_000);
    expect(numbersOf(comers)).toEqual([3, 4]);
    expect(world.stewards.length).toBe(1);
  });

  it("waits long for one that has not come back, which may know of more numbers", () => {
    const world = new StewardWorld({ ...quiet, launchers: 3, most: 9 });
    world.run(3000);
    for (const one of world.launchers) world.cut(one, true);
    world.run(2000);
    for (const one of world.launchers.slice(1)) world.connect(one);
    const comer = world.come();
    world.run(12_000);
    expect([...comer.tasks, ...world.stewards]).toEqual([]);
    world.run(20_000);
    expect(comer.tasks).toEqual(new Set([3]));
  });

  it("gives no number to a message of an earlier job, and the same number to the same task", () => {
    const world = new StewardWorld({ ...quiet, launchers: 1, most: 3 });
    world.run(3000);
    const ghost = world.come();
    ghost.isAway = true;
    for (let i = 0; i < 20; i++) {
      world.ask(ghost, {});
      world.ask(ghost, { round: "0123456789abcdef" });
      world.run(500);
    }
    const [one, other] = [world.come(), world.come()];
    world.run(3000);
    for (const comer of [one, other]) for (let i = 0; i < 5; i++) world.ask(comer, {});
    world.run(3000);
    expect(numbersOf([one, other])).toEqual([1, 2]);
    expectOnce([one, other]);
  });

  it("tells the others which comer has left, and whose subscription the server misses", () => {
    const world = new StewardWorld({ ...quiet, launchers: 3, most: 6 });
    world.run(3000);
    const comer = world.come();
    world.run(3000);
    world.ask(comer, { leaves: true });
    world.run(3000);
    for (const { steward } of world.launchers) expect([steward.gone, steward.ended]).toEqual([[3], [3]]);
    world.kill(world.launchers[2] as never);
    for (let i = 0; i < 12; i++) {
      world.launchers[0]?.steward.absent(2);
      world.run(1000);
    }
    expect(world.launchers[1]?.steward.ended).toEqual([2, 3]);
    const next = world.come();
    world.run(3000);
    expect(next.addresses).toEqual(["first 0", "first 1", null, null, `later ${next.id}`]);
  });

  it("junk does nothing", () => {
    const world = new StewardWorld({ ...quiet, launchers: 2, most: 4 });
    world.run(3000);
    const junk = [
      {},
      { of: 1 },
      { of: "1", term: 0 },
      { of: 1, term: 0, add: [null, [], ["give"], ["give", 2, 1, 5, 0, 0]] },
    ];
    for (const one of junk) for (const { steward } of world.launchers) steward.hear(one as never);
    for (const come of [undefined, null, 5, "x"]) world.launchers[0]?.steward.hearComer({ come } as never);
    const comer = world.come();
    world.run(3000);
    expect(comer.tasks).toEqual(new Set([2]));
  });
});

describe(`stewards that are killed, stopped and cut off (${replayNote()})`, () => {
  /** What happens to a launcher, at any time. */
  function disturb(world: StewardWorld): void {
    const { random } = world;
    const up = world.launchers.filter(({ state }) => state === "up");
    // The steward more often than others.
    const one = random(2) === 0 ? (world.stewards[0] ?? up[0]) : up[random(Math.max(1, up.length))];
    if (one === undefined) return;
    // One that is left has to know what the others know.
    const others = up.filter((other) => other !== one && other.steward.isReady && world.time - other.since > KNOWS_MS);
    const what = random(others.length > 0 ? 3 : 2);
    if (what === 2) world.kill(one);
    else if (what === 1) {
      world.stop(one);
      world.after(random(12_000), () => world.goOn(one));
    } else {
      world.cut(one, random(2) === 0);
      world.after(random(12_000), () => world.connect(one));
    }
  }

  it.each(Array.from({ length: scaled(100) }, (_, i) => SEED + i))(
    "seed %d: no number twice, and all get one",
    (seed) => {
      const world = new StewardWorld({ seed, launchers: 1 + (Math.abs(seed) % 5), most: 100, delay: 120, replays: 10 });
      const { random } = world;
      for (let turn = 0; turn < 60; turn++) {
        world.run(random(4000));
        if (random(2) === 0) world.come();
        if (random(3) === 0) disturb(world);
        const came = world.comers.filter(({ tasks }) => tasks.size === 1);
        const [task] = came[random(Math.max(1, came.length))]?.tasks ?? [];
        if (random(6) === 0 && task !== undefined && world.launchers.every(({ seat }) => seat !== task))
          world.join(task);
        expectOnce(world.comers);
      }
      world.run(QUIET_MS);
      const last = world.come();
      world.run(QUIET_MS);
      expect(world.stewards.length).toBe(1);
      expectOnce(world.comers);
      for (const { addresses, tasks } of world.comers)
        expect([tasks.size, addresses === undefined]).toEqual([1, false]);
      // All that have come are in the table of the last one, or have ended.
      for (const { tasks, id } of world.comers) {
        const node = [...tasks][0] as number;
        expect(last.addresses?.[node]).toBe(`later ${id}`);
      }
    },
  );
});

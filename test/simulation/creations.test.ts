// Members that make a geometry again and again, give up after a while, and may end: each on its own, in any order. Each call
// ends with a geometry that all members have, or an error that says why; and nothing is left behind.
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../src/core/endpoint.js";
import type { Geometry } from "../../src/index.js";
import { SEED, scaled } from "../support/effort.js";
import { type Carrier, type Mortal, MortalJob } from "../support/mortal-members.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";

type Random = (below: number) => number;

/** Calls of createGeometry() within which one works, or a member has ended. */
const TRIES = 60;

/** In each round, members advance in another order, and some do not. */
function anyOrder(job: MortalJob, random: Random): () => readonly Mortal[] {
  return () => {
    const left = job.members.filter(() => random(4) > 0);
    return job.members.map(() => left.splice(random(left.length), 1)[0]).filter((member) => member !== undefined);
  };
}

/** Once all is quiet, every region has been given back. */
async function expectNoRegions(job: MortalJob): Promise<void> {
  for (let time = 0; time < 2; time++) {
    await job.quiet();
    for (const { task } of job.living) task.reclaim();
  }
  expect(job.regionBytes()).toEqual([]);
}

/**
 * Makes the geometry until a barrier of it works.
 * @returns the geometry; undefined: the one that may end has ended
 */
async function insist(
  member: Mortal,
  endpoints: readonly Endpoint[],
  mortal: Mortal,
  random: Random,
): Promise<Geometry | undefined> {
  for (let time = 0; time < TRIES; time++) {
    await member.pause(random(6));
    // Short at first, so that members give up at any point. Later, all come.
    const rounds = random(4) === 0 ? 0 : random(Math.min(2 ** time, 300) + 4);
    let geometry: Geometry | undefined;
    try {
      geometry = await member.geometry(endpoints, 0, rounds);
      await geometry.barrier();
      return geometry;
    } catch (error) {
      geometry?.close();
      const { code, message } = error as { code?: string; message: string };
      if (mortal.isDead && code === "PAMIR_SHUTDOWN" && message.includes("has ended")) return undefined;
      // A member that closes a geometry has ended for the others.
      const named =
        code === "PAMIR_TIMEDOUT" ? /waits for/ : code === "PAMIR_SHUTDOWN" ? / gave up: | has ended/ : /^$/;
      if (!named.test(message)) throw error;
    }
  }
  throw new Error(`no geometry in ${TRIES} tries`);
}

async function run(carrier: Carrier, random: Random, dies: boolean): Promise<void> {
  const size = 2 + random(4);
  const job = new MortalJob(size, carrier);
  try {
    job.order = anyOrder(job, random);
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    for (let left = size - 1; left > 0; left--) {
      const other = random(left + 1);
      [endpoints[left], endpoints[other]] = [endpoints[other] as Endpoint, endpoints[left] as Endpoint];
    }
    const mortal = job.members[random(size)] as Mortal;
    if (dies) mortal.end = mortal.calls + random(400);
    const outcomes = await job.outcomes((member) => insist(member, endpoints, mortal, random));
    for (const outcome of outcomes.values()) if (outcome instanceof Error) throw outcome;
    const made = [...outcomes.values()].filter((one) => one !== undefined) as Geometry[];
    if (!mortal.isDead) expect(made.length).toBe(size);
    mortal.end = Number.POSITIVE_INFINITY;
    for (const one of made) one.close();
    const left = job.living.map(({ endpoint }) => endpoint);
    const again = await job.outcomes(async (member) => {
      const geometry = await member.geometry(left);
      await geometry.barrier();
      geometry.close();
    });
    for (const outcome of again.values()) expect(outcome).toBeUndefined();
    job.order = () => job.members;
    await expectNoRegions(job);
  } finally {
    await job.close();
  }
}

describe.each<[carrier: Carrier, cases: number]>([
  ["one memory", 60],
  ["ports", 10],
])("members that share %s", (carrier, cases) => {
  it.each([
    ["give up and call again", false],
    ["give up and call again while one ends", true],
  ])(`%s (${replayNote()})`, async (_, dies) => {
    for (let round = 0; round < scaled(cases); round++) {
      try {
        await run(carrier, randomOf(SEED + round), dies);
      } catch (error) {
        throw new Error(`round ${round}`, { cause: error });
      }
    }
  });
});

it.each<[Carrier]>([["one memory"], ["ports"]])(
  "%s: the first member knows that one has ended, and calls no more: the others hear it",
  async (carrier) => {
    const job = new MortalJob(4, carrier);
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const [first, second, third, mortal] = job.members as [Mortal, Mortal, Mortal, Mortal];
      const made = await job.outcomes((member) => member.geometry(endpoints));
      job.kill(mortal);
      const broken = await job.outcomes((member) => (made.get(member) as Geometry).barrier(), [first]);
      expect(broken.get(first)).toMatchObject({ code: "PAMIR_SHUTDOWN" });
      const late = await job.outcomes((member) => member.geometry(endpoints), [second, third]);
      const message = "createGeometry(): context 0 of task 3 has ended";
      for (const outcome of late.values()) expect(outcome).toMatchObject({ code: "PAMIR_SHUTDOWN", message });
      for (const member of job.living) (made.get(member) as Geometry).close();
      await expectNoRegions(job);
    } finally {
      await job.close();
    }
  },
);

it("more members leave than a late one remembers: what it begins ends, and memory comes back", {
  timeout: 600_000,
}, async () => {
  const size = 67;
  const job = new MortalJob(size, "one memory", { heapBytes: 2 ** 26, regions: 512 });
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const [first] = job.members as [Mortal];
    const late = job.members[size - 1] as Mortal;
    const leavers = job.members.slice(1, -1);
    let round = 0;
    job.order = () => {
      // The first one has sent the table by now, and the others give up before they get it.
      if (++round === 2) for (const member of leavers) member.look();
      return round < 3 ? [first] : round < 20 ? job.members.filter((member) => member !== late) : job.members;
    };
    const outcomes = await job.outcomes(async (member) => {
      const isLeaver = leavers.includes(member);
      const geometry = await member.geometry(endpoints, 0, isLeaver ? 0 : Number.POSITIVE_INFINITY);
      await geometry.barrier().finally(() => geometry.close());
    });
    for (const [member, outcome] of outcomes) {
      expect((outcome as { code?: string }).code).toBe(leavers.includes(member) ? "PAMIR_TIMEDOUT" : "PAMIR_SHUTDOWN");
    }
    await expectNoRegions(job);
  } finally {
    await job.close();
  }
});

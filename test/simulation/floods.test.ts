// Floods of connect packets by a member of the job, which has the key: what a node keeps stays bounded, the sessions of others go
// on, and others that connect meanwhile are accepted. The source of a packet can be forged: it is the address of the stated node.
import { describe, expect, it } from "vitest";
import { nodeKeyScheduleOf } from "../../src/seal/node.js";
import type { Sessions } from "../../src/session/sessions.js";
import { byEffort } from "../support/effort.js";
import { forgedConnect } from "../support/forged-connect.js";
import { randomOf } from "../support/random.js";
import { JOB, keyOf, Simulation } from "./nodes.js";

const KEY = keyOf(1);
const NODES = 32;
const [OPEN, VICTIM, LIAR, LATER, OTHERS] = [0, 1, 2, 3, 4] as const;
const COUNT = byEffort({ quick: 5000, normal: 5000, deep: 100_000 });
/** The epoch of a node's first start. */
const FIRST = 65_536;
/** Microseconds between two packets of the flood. */
const APART = 200;
const schedule = nodeKeyScheduleOf(KEY, JOB);
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);

interface Stated {
  readonly node: number;
  readonly epoch: number;
  readonly serial: number;
  /** Default: the node that it states. */
  readonly from?: number;
}

interface Flood {
  readonly stated: (i: number, random: (below: number) => number) => Stated;
  /** Of the forged packets, those that came to what is doubted. */
  readonly came: (sessions: Sessions) => number;
  /** The least share of them that must. */
  readonly share?: number;
}

const taken = ({ counts }: Sessions): number => counts.taken;
const foreign = ({ dropped }: Sessions): number => dropped.foreign;

describe("floods of connect packets that are sealed by the job's key", () => {
  it.each<[string, Flood]>([
    ["of one node, from its address", { stated: (i) => ({ node: LIAR, epoch: FIRST, serial: 1 + i }), came: taken }],
    [
      "of one node, from any address",
      {
        stated: (i, random) => ({ node: LIAR, epoch: FIRST, serial: 1 + i, from: random(NODES) }),
        // The first one counts only from the node's address.
        came: taken,
        share: 0.9,
      },
    ],
    [
      "of one node, with any serial number",
      {
        stated: (_, random) => ({ node: LIAR, epoch: FIRST, serial: random(2 ** 32) }),
        // Half of them lie below the replay window.
        came: (sessions) => taken(sessions) + sessions.counts.refused,
        share: 0.4,
      },
    ],
    [
      "of one node, as ever later starts",
      { stated: (i) => ({ node: LIAR, epoch: FIRST * (1 + (i % 32_000)), serial: 1 + i }), came: taken, share: 0.3 },
    ],
    [
      "of nodes that have not come",
      { stated: (i, random) => ({ node: OTHERS + random(NODES - OTHERS), epoch: FIRST, serial: 1 + i }), came: taken },
    ],
    [
      "of nodes that there are not",
      { stated: (i, random) => ({ node: NODES + random(2 ** 31), epoch: FIRST, serial: 1 + i }), came: foreign },
    ],
  ])("%s: what is kept is bounded, an open session goes on, and another node connects", (_, flood) => {
    const random = randomOf(1);
    const simulation = new Simulation({ seed: 1, nodes: NODES, sessionsOf: () => ({ keySchedule: schedule }) });
    const { network, nodes } = simulation;
    const { sessions } = nodes[VICTIM] as (typeof nodes)[number];
    simulation.submit(OPEN, VICTIM, text(0));
    simulation.run(network.now + 10_000);
    let sent = 0;
    const used: number[] = [];
    const before = flood.came(sessions);
    for (let i = 0; i < COUNT; i++) {
      const { from, ...one } = flood.stated(i, random);
      const [initiator, nonce] = [1 + random(2 ** 32 - 1), [random(2 ** 32), random(2 ** 32)] as const];
      const packet = forgedConnect({ ...one, target: VICTIM, initiator, nonce }, schedule, JOB);
      network.carry(from ?? one.node, VICTIM, packet);
      if (i % 100 === 0) simulation.submit(OPEN, VICTIM, text(++sent));
      // While the flood goes on, and has taken what it can.
      if (i === COUNT >>> 1) simulation.submit(LATER, VICTIM, text(0));
      simulation.run(network.now + APART);
      if (i % 1000 === 0) used.push(simulation.arena.used);
    }
    const came = flood.came(sessions) - before;
    expect(simulation.given.get(`${4 * LATER}>${4 * VICTIM}`)).toEqual(["0:segment 0"]);
    simulation.run(network.now + 1_000_000);
    expect(simulation.given.get(`${4 * OPEN}>${4 * VICTIM}`)).toEqual(
      Array.from({ length: sent + 1 }, (_, i) => `${i}:segment ${i}`),
    );
    expect(came).toBeGreaterThanOrEqual((flood.share ?? 1) * COUNT);
    expect(sessions.kept.connects).toBeLessThanOrEqual(NODES);
    expect(sessions.kept.streams).toBeLessThanOrEqual(2);
    expect(sessions.inUse.responders).toBeLessThanOrEqual(64);
    expect(Math.max(...used) - simulation.fixedBytes).toBeLessThan(2 ** 20);
    expect(simulation.lost).toEqual([]);
  });
});

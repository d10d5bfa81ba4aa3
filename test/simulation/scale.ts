// Large simulations, of any size.
import { expect } from "vitest";
import { PACKET_DATA } from "../../assembly/layout.js";
import { ENDPOINTS, Simulation } from "./nodes.js";

const contentOf = (number: number): Buffer => Buffer.from(`segment ${number}`);
const expected = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}:segment ${i}`);

function expectNothingLeft({ nodes, arena, fixedBytes, lost }: Simulation): void {
  expect(lost).toEqual([]);
  for (const { sessions } of nodes)
    expect(sessions.inUse).toEqual({ initiators: 0, responders: 0, txQueues: 0, buffered: 0 });
  expect(arena.used).toBe(fixedBytes);
}

/** Many nodes, each of which sends to some others, over lossy links. */
export function manyNodes(nodes: number, peers: number, segments: number): void {
  const simulation = new Simulation({
    seed: 1,
    nodes,
    topology: {
      kind: "torus",
      sides: [Math.ceil(nodes ** (1 / 3)), Math.ceil(nodes ** (1 / 3)), Math.ceil(nodes ** (1 / 3))],
    },
    faults: { loss: 0.01, duplicate: 0.01, reorder: 0.01, reorderMicroseconds: 1000 },
    sessions: { initiators: 4, responders: 16 },
  });
  const targets = (from: number): number[] => Array.from({ length: peers }, (_, i) => (from + 1 + 37 * i) % nodes);
  for (let i = 0; i < segments; i++) {
    for (let from = 0; from < nodes; from++) for (const to of targets(from)) simulation.submit(from, to, contentOf(i));
  }
  simulation.run(simulation.network.now + 20e6);
  simulation.network.faults = { loss: 0, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
  expect(simulation.run()).toBe(true);
  for (let from = 0; from < nodes; from++) {
    for (const to of targets(from)) {
      expect(simulation.given.get(`${from * ENDPOINTS}>${to * ENDPOINTS}`)).toEqual(expected(segments));
    }
  }
  expect(simulation.lost).toEqual([]);
  // Disconnect packets may have been lost. Those responders are reused when another node needs one.
  for (const { sessions } of simulation.nodes)
    expect(sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0, buffered: 0 });
  expect(simulation.arena.used).toBe(simulation.fixedBytes);
}

/** One node sends to many, with few initiator contexts. */
export function manyTargets(targets: number, initiators = 8): Simulation {
  const simulation = new Simulation({
    seed: 2,
    nodes: targets + 1,
    sessionsOf: (node) => (node === 0 ? { initiators } : { initiators: 1, responders: 1 }),
  });
  for (const round of [0, 1]) {
    for (let to = 1; to <= targets; to++) simulation.submit(0, to, contentOf(round));
    expect(simulation.run()).toBe(true);
  }
  for (let to = 1; to <= targets; to++) expect(simulation.given.get(`0>${to * ENDPOINTS}`)).toEqual(expected(2));
  expectNothingLeft(simulation);
  return simulation;
}

/**
 * Four silent targets for each initiator context, and some targets that answer. Those are served meanwhile.
 * @param acceptsOnly whether the silent targets accept sessions, but acknowledge nothing in them
 */
export function silentTargets(initiators: number, acceptsOnly: boolean): void {
  const silent = 4 * initiators;
  const answering = 4;
  const simulation = new Simulation({ seed: 3, nodes: 1 + silent + answering, sessions: { initiators } });
  simulation.network.isLost = (_, to, packet) => to >= 1 && to <= silent && (!acceptsOnly || packet[2] === PACKET_DATA);
  for (let to = 1; to <= silent; to++) simulation.submit(0, to, contentOf(0));
  simulation.run(1000);
  // By now, all contexts serve silent nodes. From now on, segments to the others must arrive before the silent are given up.
  const count = 100;
  for (let i = 0; i < count; i++) {
    simulation.network.at(1000 + i * 10_000, () => {
      for (let to = silent + 1; to <= silent + answering; to++) simulation.submit(0, to, contentOf(i));
    });
  }
  simulation.run(1000 + count * 10_000 + 1_000_000);
  expect(simulation.lost).toEqual([]);
  for (let to = silent + 1; to <= silent + answering; to++) {
    expect(simulation.given.get(`0>${to * ENDPOINTS}`)).toEqual(expected(count));
  }
  expect(simulation.run()).toBe(true);
  expect(simulation.lost.map(([, node]) => node).sort((a, b) => a - b)).toEqual(
    Array.from({ length: silent }, (_, i) => i + 1),
  );
  expect(simulation.network.now).toBeLessThan(60e6);
  expect(simulation.nodes[0]?.sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0 });
}

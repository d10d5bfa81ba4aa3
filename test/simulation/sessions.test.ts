import { expect, it } from "vitest";
import { Simulation } from "./nodes.js";

it("two nodes", () => {
  const simulation = new Simulation({ seed: 1, nodes: 2 });
  for (let i = 0; i < 1000; i++) expect(simulation.submit(0, 1, Buffer.from(`message ${i}`))).toBe(true);
  simulation.run();
  console.log(
    simulation.network.now,
    simulation.network.counts,
    simulation.nodes[0]?.sessions.counts,
    simulation.nodes[1]?.sessions.counts,
    simulation.nodes.map((n) => n.sessions.inUse),
  );
  expect(simulation.given.get("0>4")).toEqual(Array.from({ length: 1000 }, (_, i) => `${i}:message ${i}`));
});
it("two nodes, faults", () => {
  const faults = { loss: 0.05, duplicate: 0.02, reorder: 0.1, reorderMicroseconds: 200 };
  const simulation = new Simulation({ seed: 1, nodes: 2, faults });
  for (let i = 0; i < 20000; i++) expect(simulation.submit(0, 1, Buffer.from(`message ${i}`))).toBe(true);
  simulation.run();
  console.log(
    simulation.network.now,
    simulation.network.counts,
    simulation.nodes[0]?.sessions.counts,
    simulation.nodes[1]?.sessions.counts,
    simulation.nodes.map((n) => n.sessions.inUse),
    simulation.lost,
  );
  expect(simulation.given.get("0>4")?.length).toEqual(20000);
});

// Wrong input: other versions, other jobs, node numbers in use, clocks that jump, links with small packets. Each with a key
// and without.
import { describe, expect, it } from "vitest";
import {
  PACKET_DATA,
  PACKET_WRONG_JOB,
  PACKET_WRONG_VERSION,
  REFUSED_NAME,
  REFUSED_NODE,
} from "../../assembly/layout.js";
import { submit } from "../support/submit.js";
import { keyOf, type SimulatedNode, Simulation, type SimulationOptions } from "./nodes.js";

const HOUR = 3600e6;
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);
const expected = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}:segment ${i}`);
const nodeOf = (simulation: Simulation, number: number): SimulatedNode => simulation.nodes[number] as SimulatedNode;

describe.each([
  ["without a key", undefined],
  ["with a key", keyOf(1)],
])("%s", (_, key) => {
  const simulated = (options: Partial<SimulationOptions>): Simulation =>
    new Simulation({ seed: 1, nodes: 3, key, ...options });

  it("D9 a later version of the format: its packets are counted, not answered, and its node is given up in bounded time", () => {
    const simulation = simulated({});
    let answers = 0;
    simulation.network.isLost = (from, to, packet) => {
      if (from === 0 && to === 1 && packet[1] === 1) {
        const later = packet.slice();
        later[1] = 2;
        simulation.network.carry(0, 1, later);
        return true;
      }
      if (from === 1) answers++;
      return false;
    };
    simulation.submit(0, 1, text(0));
    simulation.submit(0, 2, text(0));
    expect(simulation.run(20e6)).toBe(true);
    expect(answers).toBe(0);
    expect(nodeOf(simulation, 1).sessions.dropped.malformed[PACKET_WRONG_VERSION]).toBeGreaterThan(2);
    expect(simulation.lost).toEqual([[0, 1, false]]);
    expect(simulation.given.get("0>8")).toEqual(expected(1));
  });

  it("D9 a node of another job: its packets are counted, not answered, and it is given up in bounded time", () => {
    const simulation = simulated({ sessionsOf: (node) => (node === 1 ? { job: 77 } : {}) });
    simulation.submit(0, 1, text(0));
    simulation.submit(1, 2, text(0));
    simulation.submit(0, 2, text(0));
    expect(simulation.run(20e6)).toBe(true);
    for (const node of [1, 2]) {
      expect(nodeOf(simulation, node).sessions.dropped.malformed[PACKET_WRONG_JOB]).toBeGreaterThan(2);
    }
    expect(simulation.lost.sort()).toEqual([
      [0, 1, false],
      [1, 2, false],
    ]);
    expect([...simulation.given.keys()]).toEqual(["0>8"]);
  });

  it("D9 D10 two live nodes have the same number: the one at the wrong address is refused with the reason, the other goes on", () => {
    const simulation = simulated({ sessionsOf: (node) => (node === 2 ? { node: 1 } : {}) });
    const twin = nodeOf(simulation, 2).sessions;
    for (let i = 0; i < 10; i++) {
      simulation.submit(1, 0, text(i));
      submit(twin, 0, 4, 0, 1, Buffer.from("another's"));
    }
    simulation.wake(nodeOf(simulation, 2));
    expect(simulation.run(1e6)).toBe(true);
    expect(simulation.given.get("4>0")).toEqual(expected(10));
    expect(simulation.refused).toEqual([[2, 0, REFUSED_NAME]]);
    expect(simulation.lost).toEqual([[2, 0, false]]);
    expect(nodeOf(simulation, 0).sessions.dropped.wrongAddress).toBe(1);
    // Segments to that number go to the other one, as before.
    simulation.submit(0, 1, text(0));
    expect(simulation.run(2e6)).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(expected(1));
    expect(twin.inUse).toMatchObject({ initiators: 0, txQueues: 0 });
  });

  it("D8 D10 an address leads to another node for a while: that refuses with the reason, and later the streams restart", () => {
    let isMisled = false;
    const addressOf = (node: number): string => String(isMisled && node === 1 ? 2 : node);
    const simulation = simulated({ sessionsOf: (node) => (node === 0 ? { addressOf } : {}) });
    for (let i = 0; i < 5; i++) simulation.submit(0, 1, text(i));
    simulation.run();
    isMisled = true;
    simulation.submit(0, 1, text(5));
    simulation.run();
    expect(simulation.refused).toEqual([[0, 1, REFUSED_NODE]]);
    isMisled = false;
    // Order numbers restart at 0. They must not be taken for those of the stream before.
    for (let i = 0; i < 3; i++) simulation.submit(0, 1, text(i));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4")).toEqual([...expected(5), ...expected(3)]);
    expect(simulation.lost).toEqual([
      [0, 1, false],
      [1, 0, true],
    ]);
  });

  it("D9 D10 a start that is not the latest is refused with the reason, and the latest loses nothing", () => {
    const simulation = simulated({ nodes: 2 });
    const other = nodeOf(simulation, 1);
    other.epoch = 2;
    simulation.start(other);
    simulation.submit(1, 0, text(0));
    simulation.run();
    other.epoch = 1;
    simulation.start(other);
    simulation.submit(1, 0, text(0));
    simulation.run();
    expect(simulation.given.get("4>0")).toEqual(expected(1));
    expect(simulation.refused).toEqual([[1, 0, REFUSED_NAME]]);
    expect(simulation.lost).toEqual([[1, 0, false]]);
    expect(nodeOf(simulation, 0).sessions.dropped.stale).toBe(1);
  });

  it.each([
    ["forward", HOUR],
    ["forward, far", 10_000 * HOUR],
    ["backward", -HOUR],
    ["backward, far", -10_000 * HOUR],
  ])(
    "D9 D10 a clock jumps %s while data is in flight and a node is slow to answer: no node is lost, and all data arrives soon",
    (_, jump) => {
      for (const jumping of [0, 1]) {
        const simulation = simulated({ nodes: 2, sessions: { txQueueBytes: 1e9 } });
        const content = (i: number): Buffer => Buffer.alloc(1000, i);
        for (let i = 0; i < 1000; i++) simulation.submit(0, 1, content(i));
        // The node is silent for a second, through several probes.
        simulation.network.at(300, () => {
          expect(simulation.given.get("0>4")?.length).toBeLessThan(900);
          nodeOf(simulation, 1).isFrozen = true;
        });
        for (const time of [200, 500_000, 700_000]) {
          simulation.network.at(time, () => {
            nodeOf(simulation, jumping).skew += jump;
            simulation.wake(nodeOf(simulation, jumping));
          });
        }
        simulation.network.at(1e6, () => {
          nodeOf(simulation, 1).isFrozen = false;
          simulation.wake(nodeOf(simulation, 1));
        });
        expect(simulation.run(6e6), `node ${jumping}`).toBe(true);
        const given = simulation.given.get("0>4") as string[];
        expect(given.length).toBe(1000);
        for (const [i, one] of given.entries()) expect(one).toBe(`${i}:${content(i).toString("latin1")}`);
        expect(simulation.lost).toEqual([]);
      }
    },
  );

  it("D9 a link whose packets are too small or too large is refused, with the value and its limits", () => {
    const message = "packetBytes of a link is %, not a multiple of 4 from 192 to 65504";
    for (const packetBytes of [0, 40, 188, 190, 194, 65508, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => simulated({ packetBytes })).toThrow(new RangeError(message.replace("%", String(packetBytes))));
    }
    for (const packetBytes of [192, 65504]) {
      const simulation = simulated({
        packetBytes,
        faults: { loss: 0.1, duplicate: 0.1, reorder: 0.3, reorderMicroseconds: 500 },
      });
      const largest = Buffer.alloc(nodeOf(simulation, 0).sessions.contentMax, 7);
      for (let i = 0; i < 300; i++) simulation.submit(0, 1, largest);
      expect(simulation.run()).toBe(true);
      const given = simulation.given.get("0>4") as string[];
      expect(given.length).toBeGreaterThan(10);
      for (const [i, content] of given.entries()) expect(content === `${i}:${largest.toString("latin1")}`).toBe(true);
      expect(() => simulation.submit(0, 1, Buffer.alloc(largest.length + 1))).toThrow(RangeError);
      // The refused segment took no order number.
      const count = given.length;
      simulation.submit(0, 1, text(0));
      expect(simulation.run()).toBe(true);
      expect((simulation.given.get("0>4") as string[]).length).toBe(count + 1);
    }
    expect(() => simulated({ sessions: { sessionPackets: 63 } })).toThrow(
      new RangeError("sessionPackets is 63, not an integer from 64 to 1073741824"),
    );
  });

  it("D10 a node that accepts sessions, but acknowledges nothing in them, is given up in bounded time", () => {
    const simulation = simulated({ sessions: { initiators: 1 } });
    // Only small packets arrive, as on a path whose MTU is smaller than the link says.
    simulation.network.isLost = (from, to, packet) => from === 0 && to === 1 && packet[2] === PACKET_DATA;
    simulation.submit(0, 1, text(0));
    for (let i = 0; i < 500; i++) simulation.network.at(40_000 * i, () => simulation.submit(0, 2, text(i)));
    expect(simulation.run(30e6)).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, false]]);
    expect(simulation.given.get("0>8")).toEqual(expected(500));
  });

  it("D5b D7 a 0-RTT handshake that is refused for want of a responder is tried again, and nothing is lost", () => {
    const simulation = simulated({ nodes: 9, isFaithful: true, sessions: { responders: 1 } });
    for (const round of [0, 1]) {
      for (let i = 0; i < 50; i++)
        for (let from = 1; from < 9; from++) simulation.submit(from, 0, text(50 * round + i));
      expect(simulation.run()).toBe(true);
    }
    for (let from = 1; from < 9; from++) expect(simulation.given.get(`${4 * from}>0`)).toEqual(expected(100));
    expect(simulation.lost).toEqual([]);
  });
});

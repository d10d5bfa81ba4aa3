// One simulation: what it is made of is drawn from its seed, so that each one has some kinds of faults and not others.
import type { Topology } from "../../src/wire/simulated.js";
import { randomOf } from "../support/random.js";
import { ENDPOINTS, keyOf, type SimulatedNode, Simulation } from "./nodes.js";

/** What came of it. */
export interface Outcome {
  readonly seed: number;
  readonly text: string;
  readonly segments: number;
  /** Virtual microseconds from when faults stopped until all was quiet. */
  readonly quietAfter: number;
  readonly wrong: string[];
}

/** Virtual microseconds in which all is quiet once nothing goes wrong any more. */
const QUIET_WITHIN = 30e6;

/** As many in each dimension, so that there are so many at least. */
function torusOf(nodes: number, random: (below: number) => number): Topology {
  const dimensions = 1 + random(3);
  const side = Math.max(2, Math.ceil(nodes ** (1 / dimensions)));
  return { kind: "torus", sides: Array(dimensions).fill(side) };
}

function topologyOf(nodes: number, random: (below: number) => number): Topology {
  const kind = random(3);
  if (kind === 0) return { kind: "full" };
  if (kind === 1) return torusOf(nodes, random);
  const arity = 2 + random(4);
  const levels = Math.max(2, Math.ceil(Math.log(nodes) / Math.log(arity)) + 1);
  return { kind: "tree", arity, levels };
}

export function swarm(seed: number, nodesMax = 10): Outcome {
  const random = randomOf(seed);
  const often = (most: number): number => (random(2) === 0 ? 0 : (most * random(1000)) / 1000);
  const nodes = 2 + random(nodesMax - 1);
  const faults = {
    loss: often(0.2),
    duplicate: often(0.1),
    reorder: often(0.3),
    reorderMicroseconds: 10 ** random(5),
  };
  const topology = topologyOf(nodes, random);
  const sessions = {
    initiators: 1 + random(4),
    responders: 1 + random(random(2) === 0 ? 2 : 16),
    backlogBytes: 1000 * 10 ** random(4),
  };
  const hopMicroseconds = 1 + random(random(2) === 0 ? 10 : 1000);
  const [hasPartitions, hasFreezes] = [random(3) === 0, random(3) === 0];
  const packetBytes = [200, 1400, 9000, 65504][random(4)] as number;
  const isSealed = random(2) === 0;
  const simulation = new Simulation({
    seed: seed + 1,
    key: isSealed ? keyOf(seed) : undefined,
    nodes,
    topology,
    faults,
    hopMicroseconds,
    packetBytes,
    queueBytes: 10 ** (4 + random(3)),
    kernel: random(4) === 0 ? "ts" : "wasm",
    sessions,
  });
  const { network } = simulation;
  const wrong: string[] = [];
  /** Segments that were sent, by stream. */
  const sent = new Map<string, string[]>();

  /** One send from a node; whether there was room. */
  function send(from: SimulatedNode, serial: number): boolean {
    const to = random(nodes);
    if (to === from.number) return true;
    const [origin, target] = [random(ENDPOINTS), random(ENDPOINTS)];
    const bytes = random(4) === 0 ? random(from.sessions.contentMax) : random(100);
    const content = Buffer.alloc(Math.max(bytes, 8), serial & 0xff);
    content.write(String(serial));
    if (!simulation.submit(from.number, to, content, origin, target)) return false;
    const key = `${from.number * ENDPOINTS + origin}>${to * ENDPOINTS + target}`;
    const list = sent.get(key) ?? [];
    sent.set(key, list);
    list.push(`${list.length}:${content.toString("latin1")}`);
    return true;
  }

  const count = 50 + random(random(2) === 0 ? 200 : 2000);
  const span = 1e4 * 10 ** random(3);
  for (let serial = 0; serial < count; serial++) {
    const from = simulation.nodes[random(nodes)] as SimulatedNode;
    const attempt = (): void => {
      // Whoever is frozen sends nothing; where there is no room, later.
      if (from.isFrozen || !send(from, serial)) network.at(network.now + 1000, attempt);
    };
    network.at(random(span), attempt);
  }
  if (hasPartitions) {
    for (let i = 0; i < 3; i++) {
      const [a, b, isOneWay] = [random(nodes), random(nodes), random(2) === 0];
      const begin = random(span);
      network.at(begin, () => {
        network.isLost = (from, to) => (from === a && to === b) || (!isOneWay && from === b && to === a);
      });
      network.at(begin + random(2e6), () => {
        network.isLost = () => false;
      });
    }
  }
  if (hasFreezes) {
    const node = simulation.nodes[random(nodes)] as SimulatedNode;
    const begin = random(span);
    network.at(begin, () => {
      node.isFrozen = true;
    });
    network.at(begin + random(2e6), () => {
      node.isFrozen = false;
      simulation.wake(node);
    });
  }
  simulation.run(span + 2e6);
  network.faults = { loss: 0, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
  network.isLost = () => false;
  const stopped = network.now;
  if (!simulation.run(stopped + QUIET_WITHIN)) wrong.push(`not quiet after ${QUIET_WITHIN} µs`);

  for (const [stream, contents] of sent) {
    const given = simulation.given.get(stream) ?? [];
    const place = contents.findIndex((content, i) => content !== given[i]);
    if (place !== -1)
      wrong.push(`stream ${stream}: segment ${place} of ${contents.length} is ${given[place]?.slice(0, 20)}`);
    else if (given.length !== contents.length)
      wrong.push(`stream ${stream}: ${given.length} segments, not ${contents.length}`);
  }
  if (simulation.lost.length > 0) wrong.push(`nodes were given up: ${JSON.stringify(simulation.lost)}`);
  for (const { number, sessions: one } of simulation.nodes) {
    const { initiators, backlogs, waiting } = one.inUse;
    if (initiators + backlogs + waiting > 0) wrong.push(`node ${number} still has ${JSON.stringify(one.inUse)}`);
  }
  if (simulation.heap.used !== simulation.fixedBytes)
    wrong.push(`${simulation.heap.used - simulation.fixedBytes} bytes leak`);
  const text = JSON.stringify({
    isSealed,
    nodes,
    topology,
    faults,
    sessions,
    hopMicroseconds,
    packetBytes,
    hasPartitions,
    hasFreezes,
    count,
    span,
  });
  return { seed, text, segments: count, quietAfter: network.now - stopped, wrong };
}

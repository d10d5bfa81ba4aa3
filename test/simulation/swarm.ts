// One simulation. Its seed draws the nodes, the topology, the traffic and which kinds of faults occur.
import { NO_FAULTS, type Topology } from "../../src/link/simulated-network.js";
import { randomOf } from "../support/random.js";
import { ENDPOINTS, keyOf, type SimulatedNode, Simulation } from "./nodes.js";
import { Sent } from "./sent.js";

/** The result of a simulation. */
export interface Outcome {
  readonly seed: number;
  /** The drawn parameters. */
  readonly drawn: Readonly<Record<string, unknown>>;
  /** Counters. */
  readonly counts: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

/** Virtual microseconds after the last fault in which all becomes quiet. A silent node has been given up by then. */
const QUIET_WITHIN = 30e6;
/**
 * Round trips of the longest path that a responder takes for each session, refusals in between included, if all nodes send
 * to all others at once. Up to 48 were needed, by one responder for 39 nodes in a tree of 7 levels.
 */
const SESSION_TRIPS = 60;
/** Virtual microseconds after the last fault in which all segments find room. */
const SENT_WITHIN = 120e6;
/** Microseconds for which a node may be frozen or cut off without being given up, and after which it is given up. */
const SHORT = 2e6;
const LONG = 25e6;
/** The most virtual microseconds until a segment that found no room is tried again. */
const RETRY_MAX = 1e6;

type Random = (below: number) => number;

/** Nodes in each dimension, for at least that many nodes. */
function torusOf(nodes: number, random: Random): Topology {
  const dimensions = 1 + random(3);
  const side = Math.max(2, Math.ceil(nodes ** (1 / dimensions)));
  return { kind: "torus", sides: Array(dimensions).fill(side) };
}

function topologyOf(nodes: number, random: Random): Topology {
  const kind = random(3);
  if (kind === 0) return { kind: "full" };
  if (kind === 1) return torusOf(nodes, random);
  const arity = 2 + random(4);
  const levels = Math.max(2, Math.ceil(Math.log(nodes) / Math.log(arity)) + 1);
  return { kind: "tree", arity, levels };
}

/** Hops of the longest path between two nodes. */
function longestWay(topology: Topology): number {
  if (topology.kind === "full") return 1;
  if (topology.kind === "tree") return 2 * (topology.levels - 1);
  return topology.sides.reduce((hops, side) => hops + Math.floor(side / 2), 0);
}

/** Virtual microseconds in which all becomes quiet after all nodes have sent to all others. */
function quietAfterAll({ nodes, topology, hopMicroseconds, sessions }: ReturnType<typeof draw>): number {
  const roundTrip = 2 * longestWay(topology) * hopMicroseconds;
  return Math.max(QUIET_WITHIN, (nodes / sessions.responders) * SESSION_TRIPS * roundTrip);
}

/** Draws the parameters of a simulation. */
function draw(random: Random, nodesMin: number, nodesMax: number) {
  const often = (most: number): number => (random(2) === 0 ? 0 : (most * random(1000)) / 1000);
  const nodes = nodesMin + random(nodesMax - nodesMin + 1);
  const isFaithful = random(8) === 0;
  const faults = isFaithful
    ? NO_FAULTS
    : { loss: often(0.2), duplicate: often(0.1), reorder: often(0.3), reorderMicroseconds: 10 ** random(5) };
  return {
    nodes,
    isFaithful,
    faults,
    topology: topologyOf(nodes, random),
    sessions: {
      initiators: 1 + random(4),
      responders: 1 + random(random(2) === 0 ? 2 : 16),
      txQueueBytes: 1000 * 10 ** random(4),
    },
    hopMicroseconds: 1 + random(random(2) === 0 ? 10 : 1000),
    packetBytes: [200, 1400, 9000, 65504][random(4)] as number,
    queueBytes: isFaithful ? 1e9 : 10 ** (4 + random(3)),
    linkPackets: random(3) === 0 ? 1 + random(8) : undefined,
    kernel: (random(4) === 0 ? "ts" : "wasm") as "ts" | "wasm",
    partitions: !isFaithful && random(3) === 0 ? 3 : 0,
    freezes: !isFaithful && random(3) === 0 ? 1 : 0,
    /** Whether some of those last until a node is given up. */
    isLong: random(3) === 0,
    restarts: random(3) === 0 ? 1 + random(3) : 0,
    /** Whether there is a node that never answers. */
    hasSilent: nodes > 2 && random(6) === 0,
    count: 50 + random(random(2) === 0 ? 200 : 2000),
    span: 1e4 * 10 ** random(3),
    isSealed: random(2) === 0,
    turnMicroseconds: random(2) === 0 ? 1 + random(100) : undefined,
  };
}

/** Draws and runs a simulation. */
export function swarm(seed: number, nodesMin = 2, nodesMax = 10): Outcome {
  const random = randomOf(seed);
  const drawn = draw(random, nodesMin, nodesMax);
  const { nodes, faults, sessions, span, isLong, hasSilent } = drawn;
  const sent = new Sent(nodes, ENDPOINTS);
  const simulation = new Simulation({
    ...drawn,
    seed: seed + 1,
    key: drawn.isSealed ? keyOf(seed) : undefined,
    onLost: (node, other) => sent.cut(node, other),
  });
  const { network } = simulation;
  const wrong: string[] = [];
  const silent = hasSilent ? (simulation.nodes[nodes - 1] as SimulatedNode) : undefined;
  if (silent !== undefined) silent.isFrozen = true;

  /** Sends a segment. @returns whether there was room */
  function send(from: SimulatedNode, to: number, bytes: number): boolean {
    const [origin, target] = [random(ENDPOINTS), random(ENDPOINTS)];
    const content = sent.next(bytes);
    if (!simulation.submit(from.number, to, content, origin, target)) return false;
    sent.add(from.number * ENDPOINTS + origin, to * ENDPOINTS + target, content);
    return true;
  }

  /** Segments that have found no room so far. */
  let held = 0;
  function sendSomething(from: SimulatedNode): void {
    const to = random(nodes);
    const bytes = random(4) === 0 ? random(from.sessions.contentMax) : random(100);
    let wait = 1000;
    held++;
    const attempt = (): void => {
      // A frozen node sends nothing. Without room, the segment is tried again later.
      if (!from.isFrozen && (send(from, to, bytes) || to === silent?.number)) {
        held--;
        return;
      }
      network.at(network.now + wait, attempt);
      wait = Math.min(2 * wait, RETRY_MAX);
    };
    if (to === from.number || from === silent) held--;
    else attempt();
  }

  for (let i = 0; i < drawn.count; i++) {
    const from = simulation.nodes[random(nodes)] as SimulatedNode;
    network.at(random(span), () => sendSomething(from));
  }
  const lasting = (): number => (isLong && random(2) === 0 ? random(LONG) : random(SHORT));
  let faultsEnd = span + SHORT;
  for (let i = 0; i < drawn.partitions; i++) {
    const [a, b, isOneWay] = [random(nodes), random(nodes), random(2) === 0];
    const begin = random(span);
    const end = begin + lasting();
    faultsEnd = Math.max(faultsEnd, end);
    network.at(begin, () => {
      network.isLost = (from, to) => (from === a && to === b) || (!isOneWay && from === b && to === a);
    });
    network.at(end, () => {
      network.isLost = () => false;
    });
  }
  for (let i = 0; i < drawn.freezes; i++) {
    const node = simulation.nodes[random(nodes)] as SimulatedNode;
    const begin = random(span);
    const end = begin + lasting();
    faultsEnd = Math.max(faultsEnd, end);
    if (node === silent) continue;
    network.at(begin, () => {
      node.isFrozen = true;
    });
    network.at(end, () => {
      node.isFrozen = false;
      simulation.wake(node);
    });
  }
  for (let i = 0; i < drawn.restarts; i++) {
    const node = simulation.nodes[random(nodes)] as SimulatedNode;
    if (node === silent) continue;
    network.at(random(2 * span), () => {
      sent.cutAll(node.number);
      simulation.restart(node);
    });
  }

  simulation.run(faultsEnd);
  network.faults = NO_FAULTS;
  network.isLost = () => false;
  while (held > 0 && network.now < faultsEnd + SENT_WITHIN && network.step());
  if (held > 0) wrong.push(`no room for ${held} segments in ${SENT_WITHIN} µs`);
  const stopped = network.now;
  if (!simulation.run(stopped + QUIET_WITHIN)) wrong.push(`not quiet ${QUIET_WITHIN} µs after the last fault`);
  const quietAfter = network.now - stopped;
  const mayLose = isLong || drawn.restarts > 0 || hasSilent;
  if (!mayLose && simulation.lost.length > 0) wrong.push(`nodes were given up: ${JSON.stringify(simulation.lost)}`);

  const { loss, duplicate, reorder } = faults;
  const total = (key: "data" | "retransmitted" | "acknowledgments"): number =>
    simulation.nodes.reduce((sum, node) => sum + node.sessions.counts[key], 0);
  const counts = {
    data: total("data"),
    retransmitted: total("retransmitted"),
    acknowledgments: total("acknowledgments"),
  };
  // On shared edges, packets of other nodes may delay a packet unpredictably, so that it is retransmitted.
  const isInOrder =
    drawn.topology.kind === "full" &&
    duplicate === 0 &&
    reorder === 0 &&
    drawn.partitions + drawn.freezes === 0 &&
    !mayLose;
  const { lost } = network.counts;
  if (isInOrder && counts.retransmitted > 2 * lost)
    wrong.push(`${counts.retransmitted} packets are sent again, ${lost} were lost`);

  // In the first round, all nodes learn of restarts and of having been given up. The second round must arrive everywhere.
  for (const round of [0, 1]) {
    const losses = simulation.lost.length;
    for (const from of simulation.nodes) {
      for (const to of simulation.nodes) {
        if (from !== to && from !== silent && to !== silent) send(from, to.number, 20);
      }
    }
    if (!simulation.run(network.now + quietAfterAll(drawn))) wrong.push(`not quiet after round ${round}`);
    if (round === 1 && simulation.lost.length > losses)
      wrong.push(`lost in the second round: ${JSON.stringify(simulation.lost.slice(losses))}`);
  }
  wrong.push(...sent.compare(simulation.given));
  for (const { number, sessions: one, isFrozen } of simulation.nodes) {
    const { initiators, responders, txQueues, buffered } = one.inUse;
    if (initiators + txQueues + buffered > 0 || responders > sessions.responders)
      wrong.push(`node ${number} still has ${JSON.stringify(one.inUse)}`);
    if (isFrozen !== (silent?.number === number)) wrong.push(`node ${number} is ${isFrozen ? "" : "not "}frozen`);
  }
  if (simulation.arena.used !== simulation.fixedBytes)
    wrong.push(`${simulation.arena.used - simulation.fixedBytes} bytes leak`);
  return {
    seed,
    drawn,
    counts: { ...network.counts, ...counts, losses: simulation.lost.length, quietAfter: Math.round(quietAfter), loss },
    wrong,
  };
}

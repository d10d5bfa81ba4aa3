// Figures in virtual time, the same on every machine. The bench prints them, and a test compares them with their goals.
import { idleBytes } from "./idle.js";
import { Simulation } from "./nodes.js";

/** Bytes of the messages to many targets. */
const MESSAGE_BYTES = 64;
/** Messages to one target in a turn. */
const TURN = 32;

export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly goal: number;
  readonly hoped: number;
  readonly isLess: boolean;
}

/** Virtual microseconds of a transfer to another node at 10 Gbit/s. */
function transferTime(kibibytes: number, loss: number): number {
  const faults = { loss, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
  const simulation = new Simulation({ seed: 1, nodes: 2, faults, hopMicroseconds: 100, keepsContents: false });
  const { network } = simulation;
  const content = Buffer.alloc(1024);
  let left = kibibytes;
  const refill = (): void => {
    while (left > 0 && simulation.submit(0, 1, content)) left--;
    if (left > 0) network.at(network.now + 50, refill);
  };
  refill();
  while (simulation.givenCount < kibibytes) {
    if (!network.step()) throw new Error(`${simulation.givenCount} of ${kibibytes} came`);
  }
  return network.now;
}

/** Goodput with 1 % random loss, as a part of the goodput without loss. */
export function goodput(kibibytes: number): number {
  return transferTime(kibibytes, 0) / transferTime(kibibytes, 0.01);
}

/**
 * Retransmissions as a part of all packets, if one packet in ten is reordered, and none is lost.
 * @param late the most round trips, of 2 ms, by which reordering delays a packet
 * @param targets nodes; the sessions of more than one take turns
 */
export function sentAgain(packets: number, late: number, targets: number): number {
  const faults = { loss: 0, duplicate: 0, reorder: 0.1, reorderMicroseconds: late * 2000 };
  const simulation = new Simulation({
    seed: 11,
    nodes: 1 + targets,
    faults,
    hopMicroseconds: 1000,
    keepsContents: false,
    sessions: { initiators: 2, txQueueBytes: 1e9 },
  });
  const content = Buffer.alloc(1024);
  for (let i = 0; i < packets; i++) simulation.enqueue(0, 1 + (i % targets), content);
  const origin = simulation.nodes[0] as (typeof simulation.nodes)[0];
  simulation.wake(origin);
  simulation.run();
  if (simulation.givenCount !== packets) throw new Error(`${simulation.givenCount} of ${packets} came`);
  return origin.sessions.counts.retransmitted / packets;
}

/** Virtual microseconds until each target has received its messages, from one node with one link of 10 Gbit/s. */
function fanTime(targets: number, messages: number, hopMicroseconds: number, isFaithful: boolean): number {
  const simulation = new Simulation({
    seed: 2,
    nodes: targets + 1,
    topology: { kind: "tree", arity: targets + 1, levels: 2 },
    hopMicroseconds,
    isFaithful,
    keepsContents: false,
    sessionsOf: (node) => (node === 0 ? { initiators: 8, txQueueBytes: 1e9 } : { initiators: 1, responders: 1 }),
  });
  const { network } = simulation;
  const send = (count: number): number => {
    const begin = network.now;
    const until = simulation.givenCount + targets * count;
    const content = Buffer.alloc(MESSAGE_BYTES);
    for (let i = 0; i < count; i += TURN) {
      for (let to = 1; to <= targets; to++) for (let j = 0; j < TURN; j++) simulation.enqueue(0, to, content);
    }
    simulation.wake(simulation.nodes[0] as (typeof simulation.nodes)[0]);
    while (simulation.givenCount < until) if (!network.step()) throw new Error(`${simulation.givenCount} came`);
    return network.now - begin;
  };
  send(TURN); // so that the nodes know their epochs
  simulation.run();
  return send(messages);
}

/** Messages a second to many targets, one turn each, as a part of the messages a second to 8 targets. */
export function fan(targets: number, hopMicroseconds: number, isFaithful: boolean): number {
  const messages = (targets / 8) * TURN;
  return fanTime(8, messages, hopMicroseconds, isFaithful) / fanTime(targets, TURN, hopMicroseconds, isFaithful);
}

export function figures(quick: boolean): Figure[] {
  const targets = quick ? 800 : 10_000;
  const lossy = { goal: 0.8, hoped: 0.95, isLess: false };
  const again = { goal: 0.05, hoped: 0.01, isLess: true };
  const idle = { goal: 64, hoped: 16, isLess: true };
  const fans = [1, 2, 5].flatMap((hop) =>
    [false, true].map((isFaithful) => ({
      what: `messages a second to ${targets} targets, ${TURN} a turn, 8 contexts, hop ${hop} µs, ${isFaithful ? "0-RTT" : "full"} handshakes : to 8 targets`,
      value: fan(targets, hop, isFaithful),
      goal: 0.5,
      hoped: 0.9,
      isLess: false,
    })),
  );
  return [
    { what: "goodput at 10 Gbit/s, 100 µs, 1 % lost : none", value: goodput(quick ? 4096 : 65_536), ...lossy },
    {
      what: "retransmissions : packets, one in ten up to 2 ms late, round trip 2 ms, none lost, 8 targets",
      value: sentAgain(quick ? 4000 : 40_000, 1, 8),
      ...again,
    },
    { what: "bytes of an idle target at its origin", value: idleBytes(4000), ...idle },
    ...fans,
  ];
}

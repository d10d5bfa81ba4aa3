// Floods of connect packets by a member of the job, which has the key: what a node keeps stays bounded, the sessions of others go
// on, and others that connect meanwhile are accepted.
import { describe, expect, it } from "vitest";
import {
  CONNECT_EPOCH_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_SERIAL_OFFSET,
  CONNECT_SIZE,
  CONNECT_TARGET_OFFSET,
  PACKET_CONNECT,
  PACKET_JOB_OFFSET,
} from "../../assembly/layout.js";
import { nodeKeyScheduleOf } from "../../src/seal/node.js";
import { sealed } from "../../src/session/key-schedule.js";
import { Packet } from "../../src/session/packet.js";
import { byEffort } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { JOB, keyOf, Simulation } from "./nodes.js";

const KEY = keyOf(1);
const NODES = 8;
const [VICTIM, OPEN, LIAR, LATER] = [1, 0, 2, 3] as const;
const COUNT = byEffort({ quick: 5000, normal: 5000, deep: 100_000 });
/** Microseconds between two packets of the flood. */
const APART = 200;
const schedule = nodeKeyScheduleOf(KEY, JOB);
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);

interface Stated {
  readonly node: number;
  readonly epoch: number;
  readonly serial: number;
  readonly from: number;
}

/** A connect packet that is sealed by the job's key. */
function connect({ node, epoch, serial }: Stated, random: (below: number) => number): Uint8Array {
  const body = new DataView(new ArrayBuffer(CONNECT_SIZE));
  const set = (offset: number, word: number): void => body.setUint32(offset, word, true);
  set(CONNECT_INITIATOR_OFFSET, 1 + random(2 ** 32 - 1));
  set(CONNECT_NODE_OFFSET, node);
  set(CONNECT_EPOCH_OFFSET, epoch);
  set(CONNECT_SERIAL_OFFSET, serial);
  set(CONNECT_TARGET_OFFSET, VICTIM);
  for (const word of [0, 4]) set(CONNECT_NONCE_OFFSET + word, random(2 ** 32));
  // The instance of the node: the same in each.
  for (const word of [8, 12]) set(CONNECT_NONCE_OFFSET + word, 1000 + node);
  const packet = new Packet(1452).begin(PACKET_CONNECT, JOB);
  for (let at = 0; at < CONNECT_SIZE; at += 4) packet.word(body.getUint32(at, true));
  packet.address(0, 1, 0);
  const bytes = sealed(packet, schedule.handshake, new Uint8Array(1452)).slice();
  expect(new DataView(bytes.buffer).getUint32(PACKET_JOB_OFFSET, true)).toBe(JOB);
  return bytes;
}

describe("floods of connect packets that are sealed by the job's key", () => {
  it.each<[string, (i: number, random: (below: number) => number) => Stated]>([
    ["of one node, from its address", (i) => ({ node: LIAR, epoch: 1, serial: 1 + i, from: LIAR })],
    ["of one node, from any address", (i, random) => ({ node: LIAR, epoch: 1, serial: 1 + i, from: random(NODES) })],
    [
      "of one node, with any serial number",
      (_, random) => ({ node: LIAR, epoch: 1, serial: random(2 ** 32), from: LIAR }),
    ],
    [
      "of one node, as ever later starts",
      (i) => ({ node: LIAR, epoch: 65_536 * (i % 32_000) + 1, serial: 1 + i, from: LIAR }),
    ],
    ["of nodes that have not come", (i, random) => ({ node: 4 + random(4), epoch: 1, serial: 1 + i, from: LIAR })],
    [
      "of nodes that there are not",
      (i, random) => ({ node: NODES + random(2 ** 31), epoch: 1, serial: 1 + i, from: LIAR }),
    ],
  ])("%s: what is kept is bounded, an open session goes on, and another node connects", (_, stated) => {
    const random = randomOf(1);
    const simulation = new Simulation({ seed: 1, nodes: NODES, sessionsOf: () => ({ keySchedule: schedule }) });
    const { network, nodes } = simulation;
    const { sessions } = nodes[VICTIM] as (typeof nodes)[number];
    simulation.submit(OPEN, VICTIM, text(0));
    simulation.run(network.now + 10_000);
    let sent = 0;
    const used: number[] = [];
    for (let i = 0; i < COUNT; i++) {
      const one = stated(i, random);
      network.carry(one.from, VICTIM, connect(one, random));
      if (i % 100 === 0) simulation.submit(OPEN, VICTIM, text(++sent));
      // While the flood goes on, and has taken what it can.
      if (i === COUNT >>> 1) simulation.submit(LATER, VICTIM, text(0));
      simulation.run(network.now + APART);
      if (i % 1000 === 0) used.push(simulation.arena.used);
    }
    expect(simulation.given.get(`${4 * LATER}>${4 * VICTIM}`)).toEqual(["0:segment 0"]);
    simulation.run(network.now + 1_000_000);
    expect(simulation.given.get(`${4 * OPEN}>${4 * VICTIM}`)).toEqual(
      Array.from({ length: sent + 1 }, (_, i) => `${i}:segment ${i}`),
    );
    expect(sessions.kept.connects).toBeLessThanOrEqual(NODES);
    expect(sessions.kept.streams).toBeLessThanOrEqual(2);
    expect(sessions.inUse.responders).toBeLessThanOrEqual(64);
    expect(Math.max(...used) - simulation.fixedBytes).toBeLessThan(2 ** 20);
    expect(simulation.lost).toEqual([]);
  });
});

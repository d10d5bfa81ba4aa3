// A job key outlives nodes and sessions. Under each key that is derived from it, no nonce seals two packets: over losses, moves,
// restarts and sessions that end, in both directions, with 0-RTT or without.
import crypto from "node:crypto";
import { describe, expect, it } from "vitest";
import { PACKET_SENT_OFFSET } from "../../assembly/layout.js";
import { AeadSeal, nodeKeyScheduleOf } from "../../src/seal/node.js";
import { SESSION_PACKETS_MAX } from "../../src/session/node-state.js";
import type { KeySchedule, Seal } from "../../src/session/wire/key-schedule.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { JOB, keyOf, type SimulatedNode, Simulation } from "./nodes.js";

const NODES = 3;

/** Notes the key and the nonce of each packet that is sealed by an AEAD. */
class Watch {
  readonly keys = new Set<string>();
  readonly pairs = new Set<string>();
  readonly again: string[] = [];

  schedule(key: Uint8Array): KeySchedule {
    return nodeKeyScheduleOf(key, JOB, (derived) => this.#watched(derived));
  }

  #watched(key: Uint8Array): Seal {
    const name = Buffer.from(key).toString("hex");
    const seal = new AeadSeal(crypto, key);
    return {
      seal: (packet, body, sent, plain) => {
        const pair = `${name} ${sent}`;
        if (this.pairs.has(pair)) this.again.push(pair);
        this.pairs.add(pair);
        this.keys.add(name);
        seal.seal(packet, body, sent, plain);
      },
      open: (packet, body, sent) => seal.open(packet, body, sent),
    };
  }
}

const FAULTS = { loss: 0.05, duplicate: 0.05, reorder: 0.2, reorderMicroseconds: 500 };

describe(`nonces under one job key (${replayNote()})`, () => {
  it.each(
    Array.from({ length: scaled(8) }, (_, more) => ({ more, isFaithful: more % 2 === 1, keepsEpoch: more % 4 > 1 })),
  )("none seals two packets: $more, 0-RTT: $isFaithful, restarts with the same number: $keepsEpoch", (given) => {
    const { more, isFaithful, keepsEpoch } = given;
    const random = randomOf(SEED + more);
    const watch = new Watch();
    const keySchedule = watch.schedule(keyOf(1));
    const simulation = new Simulation({
      seed: SEED + more,
      nodes: NODES,
      isFaithful,
      ...(!isFaithful && { faults: FAULTS }),
      sessions: { sessionPackets: 64, responders: 2 },
      sessionsOf: () => ({ keySchedule }),
    });
    const { network } = simulation;
    for (let round = 0; round < 40; round++) {
      for (let from = 0; from < NODES; from++)
        for (let to = 0; to < NODES; to++)
          for (let i = random(40); from !== to && i > 0; i--)
            simulation.submit(from, to, Buffer.alloc(1 + random(900)));
      simulation.run(network.now + 1 + random(200_000));
      const node = simulation.nodes[random(NODES)] as SimulatedNode;
      // One at a time is elsewhere: two that have both moved lose each other.
      for (const { number } of simulation.nodes) network.move(number, String(number));
      if (random(3) > 0) continue;
      if (random(2) === 0) network.move(node.number, `${node.number} at ${round}`);
      else {
        if (!keepsEpoch) node.epoch += 65_536;
        simulation.start(node);
      }
    }
    simulation.run(network.now + 1_000_000);
    expect(watch.again).toEqual([]);
    expect(watch.pairs.size).toBeGreaterThan(100);
    expect(watch.keys.size).toBeGreaterThan(10);
  });

  it("a session ends before its counter wraps, however often its packets are sent again", () => {
    // One that has sent half of the most in vain is given up: see initiators.ts.
    expect(2 * SESSION_PACKETS_MAX).toBeLessThan(2 ** 32);
    const watch = new Watch();
    const keySchedule = watch.schedule(keyOf(1));
    const sessionsOf = () => ({ keySchedule, sessionPackets: 64 });
    const simulation = new Simulation({ seed: 1, nodes: 2, sessionsOf });
    let isCut = false;
    let most = 0;
    simulation.network.isLost = (_from, _to, packet) => {
      most = Math.max(most, new DataView(packet.buffer, packet.byteOffset).getUint32(PACKET_SENT_OFFSET, true));
      return isCut;
    };
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 50; i++) simulation.submit(0, 1, Buffer.alloc(900));
      isCut = true;
      simulation.run(simulation.network.now + 3_000_000);
      isCut = false;
      simulation.run(simulation.network.now + 3_000_000);
    }
    expect(watch.again).toEqual([]);
    expect(most).toBeLessThanOrEqual(2 * 64);
    expect(simulation.lost).toEqual([]);
  });
});

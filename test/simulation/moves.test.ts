// Nodes whose address changes, in virtual time: in mid-session and between sessions, at one end, and at both at once. An
// attacker replays and forges their packets; a second node has the number of the first.
import { describe, expect, it } from "vitest";
import {
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  REFUSED_NAME,
} from "../../assembly/layout.js";
import type { Link } from "../../src/link/link.js";
import { SimulatedNetwork } from "../../src/link/simulated-network.js";
import { byEffort, scaled } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { submit } from "../support/submit.js";
import { keyOf, Simulation, type SimulationOptions } from "./nodes.js";

const LIMITS = { tasks: 2, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 22, regions: 8, fifos: 2, slots: 8 };
const KEY = keyOf(1);
const DATA = 1;
const EVIL = "evil";
const MOVES = 100;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);
const expected = (count: number): string[] => numbers(count).map((i) => `${i}:segment ${i}`);

/** Two whole nodes on a bad network. Everything that comes to a node is recorded, as an attacker would. */
function movingJob(seed: number) {
  const random = randomOf(seed);
  const word = (): number => random(2 ** 32);
  const faults = { loss: 0.02, duplicate: 0.02, reorder: 0.05, reorderMicroseconds: 300 };
  const network = new SimulatedNetwork({ nodes: 2, random: word, faults });
  const links: Link[] = [network.attach(0), network.attach(1)];
  const host = { now: () => network.now, at: network.at.bind(network), random: word };
  const wire = { links, addresses: ["0", "1"], hosts: [host, host] };
  let toEvil = 0;
  for (const link of links) {
    const { send } = link;
    link.send = (to, packet) => {
      if (to === EVIL) toEvil++;
      return send.call(link, to, packet);
    };
  }
  const job = new NetworkedJob({ seed, limits: LIMITS, kernels: ["wasm", "ts"], key: KEY, wire });
  const recorded: Uint8Array[][] = [[], []];
  const receive = links.map(({ onPacket }) => onPacket);
  for (const [node, link] of links.entries()) {
    link.onPacket = (from, packet) => {
      recorded[node]?.push(packet.slice());
      receive[node]?.(from, packet);
    };
  }
  const contexts = job.tasks.map(({ client }) => client.createContext());
  const came: number[][] = [[], []];
  for (const [task, context] of contexts.entries()) {
    context.dispatch(DATA, (message) => void came[task]?.push(message.headerWord(0)));
  }
  const run = (microseconds: number): void => {
    const until = network.now + microseconds;
    network.at(until, () => {});
    while (network.now < until) network.step();
    for (const context of contexts) if (!context.closed) context.advance();
  };
  const say = (from: number, number: number): boolean => {
    const to = contexts[1 - from] as (typeof contexts)[0];
    return contexts[from]?.sendImmediate(to.endpoint, DATA, Int32Array.of(number), null, false) === 0;
  };
  return { random, network, links, recorded, receive, job, came, run, say, toEvil: () => toEvil };
}

const WAYS: readonly { readonly what: string; readonly movers: readonly number[]; readonly linger: number }[] = [
  { what: "the first node", movers: [0], linger: 0 },
  { what: "the second node", movers: [1], linger: 0 },
  { what: "one node or the other", movers: [0, 1], linger: 0 },
  { what: "both at once, where the old addresses hold for a while", movers: [0, 1], linger: 3_000_000 },
];

describe.each([1, 2, 3, 4])(`a node's address changes, draw %i (${replayNote()})`, (draw) => {
  it.each(WAYS)(`$what, ${MOVES} times: all comes once and in order, whatever is replayed and forged`, (way) => {
    const { random, network, recorded, receive, job, came, run, say, toEvil } = movingJob(SEED + draw);
    const count = scaled(1500);
    const sent = [0, 0];
    say(0, sent[0]++);
    while (came[1]?.length === 0) run(500);
    let moves = 0;
    const isOver = (): boolean => moves >= MOVES && came.every(({ length }, to) => length === sent[1 - to]);
    for (let rounds = 0; !isOver(); rounds++) {
      // Nodes that are quiet are found by their probes, within a second or two.
      const isDue = random(4) === 0 || network.isQuiet;
      if (moves < MOVES && isDue) {
        const both = way.linger > 0;
        const movers = both ? way.movers : [way.movers[random(way.movers.length)] as number];
        // Where the old addresses are gone at once, each has to be heard before the other moves.
        const isHeard = [0, 1].every(
          (from) => job.tasks[1 - from]?.sessions.addressOf(from) === network.addressOf(from),
        );
        if (isHeard) {
          for (const node of movers) network.move(node, `${node} at ${moves}`, way.linger);
          moves++;
        }
      }
      for (const from of [0, 1]) {
        // It goes on until the last move.
        const most = moves < MOVES ? 20 : count - (sent[from] as number);
        for (let burst = random(Math.max(1, Math.min(20, most + 1))); burst > 0; burst--) {
          if (!say(from, sent[from] as number)) break;
          sent[from]++;
        }
      }
      for (let copies = random(4); copies > 0; copies--) {
        const node = random(2);
        const known = recorded[node] as Uint8Array[];
        const packet = known[random(known.length)]?.slice();
        if (packet === undefined) continue;
        if (random(3) === 0) packet[random(packet.length)] ^= 1 << random(8);
        receive[node]?.(EVIL, packet);
      }
      run(random(2000));
      expect(rounds).toBeLessThan(100_000);
    }
    expect(came).toEqual([numbers(sent[1] as number), numbers(sent[0] as number)]);
    expect(job.lost).toEqual([]);
    expect(toEvil()).toBe(0);
    for (const { client } of job.tasks) client.close();
    run(5_000_000);
    for (const { sessions, arena } of job.tasks) {
      expect([sessions.inUse.txQueues, arena.used]).toEqual([0, job.arenaBytes]);
    }
  });

  it("between sessions, while it is quiet: the other finds it once it probes, and nothing is lost", () => {
    const { network, job, came, run, say } = movingJob(SEED + draw);
    say(0, 0);
    while (came[1]?.length === 0) run(500);
    for (let round = 1; round <= 5; round++) {
      while (job.tasks.some(({ sessions }) => sessions.inUse.initiators > 0)) run(10_000);
      network.move(1, `1 at ${round}`);
      say(0, round);
      for (let rounds = 0; came[1].length === round && rounds < 10_000; rounds++) run(1000);
      expect(came[1]).toEqual(numbers(round + 1));
    }
    expect(job.lost).toEqual([]);
  });

  it("at both ends at once, where the old addresses are gone: neither is found until one is back", () => {
    const { network, job, came, run, say } = movingJob(SEED + draw);
    for (const node of [0, 1]) say(node, 0);
    while (came.some(({ length }) => length === 0)) run(500);
    for (const node of [0, 1]) network.move(node, `${node} elsewhere`);
    for (const node of [0, 1]) say(node, 1);
    for (let rounds = 0; rounds < 500; rounds++) run(10_000);
    expect(came).toEqual([[0], [0]]);
    network.move(draw % 2, String(draw % 2));
    for (let rounds = 0; rounds < 500 && came.some(({ length }) => length < 2); rounds++) run(10_000);
    expect(came).toEqual([
      [0, 1],
      [0, 1],
    ]);
    expect(job.lost).toEqual([]);
  });
});

/** Sessions alone, and the links that carry their packets. */
function sessionsOf(options: Partial<SimulationOptions> = {}) {
  const links: Link[] = [];
  const around = (link: Link): Link => {
    links.push(link);
    return link;
  };
  const simulation = new Simulation({ seed: 1, nodes: 3, key: KEY, around, ...options });
  const { network, nodes } = simulation;
  const [first, second, third] = nodes.map(({ sessions }) => sessions) as [Sessions, Sessions, Sessions];
  return { simulation, network, links: links as [Link, Link, Link], first, second, third };
}
type Sessions = Simulation["nodes"][0]["sessions"];

/** Packets that the network took meanwhile, and lost if `isHeld` says so. */
function tapped(network: SimulatedNetwork, call: () => void, isHeld: (kind: number) => boolean = () => false) {
  const packets: { readonly from: number; readonly to: number; readonly bytes: Uint8Array }[] = [];
  network.isLost = (from, to, bytes) => {
    packets.push({ from, to, bytes: bytes.slice() });
    return isHeld(bytes[2] as number);
  };
  call();
  network.isLost = () => false;
  return packets;
}

describe("an address of a node that was known before", () => {
  it("is replaced by the latest packet that opens, at the origin and at the target", () => {
    const { simulation, network, first, second } = sessionsOf();
    simulation.submit(0, 1, text(0));
    simulation.run(10_000);
    network.move(1, "b");
    // Its acknowledgment comes from there.
    network.move(0, "a");
    simulation.submit(0, 1, text(1));
    simulation.run(10_000 + 5e6);
    expect(second.addressOf(0)).toBe("0"); // "1" is gone: nothing of node 0 came
    simulation.submit(1, 0, text(0));
    // Both have moved at once: they meet again as soon as one is back.
    network.move(0, "0");
    simulation.run();
    expect([first.addressOf(1), second.addressOf(0)]).toEqual(["b", "0"]);
    expect([simulation.given.get("0>4"), simulation.given.get("4>0")]).toEqual([expected(2), expected(1)]);
    expect(simulation.lost).toEqual([]);
  });

  it("is not replaced by what is replayed, forged, older, or a handshake", () => {
    const { simulation, network, links, first } = sessionsOf();
    const old = tapped(network, () => {
      for (let i = 0; i < 5; i++) simulation.submit(1, 0, text(i));
      simulation.run(2000);
    }).filter(({ to }) => to === 0);
    expect(old.length).toBeGreaterThan(1);
    // A data packet that is late, though none that came before was later; then it is older than one from the new address.
    const late = tapped(
      network,
      () => simulation.submit(1, 0, text(5)),
      (kind) => kind === PACKET_DATA,
    );
    expect(late.length).toBe(1);
    network.move(1, "b");
    simulation.submit(1, 0, text(6));
    simulation.run(network.now + 100);
    expect(first.addressOf(1)).toBe("b");
    const { taken } = first.counts;
    links[0].onPacket("1", late[0]?.bytes as Uint8Array);
    expect(first.counts.taken).toBe(taken + 1); // it was not there before
    expect(first.addressOf(1)).toBe("b");
    for (const { bytes } of old) links[0].onPacket(EVIL, bytes.slice());
    expect(first.addressOf(1)).toBe("b");
    const [fresh] = tapped(
      network,
      () => simulation.submit(1, 0, text(7)),
      () => true,
    );
    const { bytes } = fresh as { bytes: Uint8Array };
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const forged = bytes.slice();
      forged[bit >>> 3] = (forged[bit >>> 3] as number) ^ (1 << (bit & 7));
      links[0].onPacket(EVIL, forged);
    }
    expect(first.addressOf(1)).toBe("b");
    // Proof that the packet was fresh: whole, it moves the node.
    links[0].onPacket(EVIL, bytes.slice());
    expect(first.addressOf(1)).toBe(EVIL);
    simulation.run();
    expect(first.addressOf(1)).toBe("b");
    expect(simulation.given.get("4>0")).toEqual(expected(8));
    const [connect] = tapped(
      network,
      () => simulation.submit(1, 0, text(8)),
      () => true,
    );
    expect(connect?.bytes[2]).toBe(PACKET_CONNECT);
    links[0].onPacket(EVIL, connect?.bytes.slice() as Uint8Array);
    expect(first.addressOf(1)).toBe("b");
    simulation.run();
    expect(simulation.given.get("4>0")).toEqual(expected(9));
    expect(simulation.lost).toEqual([]);
  });

  it("is not replaced by an older acknowledgment", () => {
    const { simulation, network, links, first } = sessionsOf();
    simulation.submit(0, 1, text(0));
    simulation.run(200);
    const [, late] = tapped(
      network,
      () => {
        simulation.submit(0, 1, text(1));
        simulation.run(network.now + 50);
      },
      (kind) => kind === PACKET_ACKNOWLEDGE,
    );
    network.move(1, "b", 1000); // packets to the old address reach it for a while
    simulation.submit(0, 1, text(2));
    simulation.run(network.now + 200);
    expect(first.addressOf(1)).toBe("b");
    const { taken } = first.counts;
    links[0].onPacket("1", late?.bytes as Uint8Array);
    expect(first.counts.taken).toBe(taken + 1);
    expect(first.addressOf(1)).toBe("b");
    simulation.run();
    expect(simulation.given.get("0>4")).toEqual(expected(3));
  });

  it("goes to a copy that overtakes its packet, until the next packet of the node, or two attempts without an answer", () => {
    const { simulation, network, links, first } = sessionsOf();
    simulation.submit(1, 0, text(0));
    simulation.run(2000);
    let stolen = PACKET_DATA;
    const { onPacket } = links[0];
    links[0].onPacket = (from, packet) => {
      if (packet[2] === stolen) onPacket(EVIL, packet.slice());
      onPacket(from, packet);
    };
    simulation.submit(1, 0, text(1));
    simulation.run(network.now + 100);
    expect(first.addressOf(1)).toBe(EVIL);
    stolen = PACKET_DISCONNECT;
    simulation.submit(1, 0, text(2));
    simulation.run(network.now + 100);
    expect(first.addressOf(1)).toBe("1");
    // The last packet of its session is stolen, too.
    simulation.run();
    expect(first.addressOf(1)).toBe(EVIL);
    // The node says nothing by itself.
    simulation.submit(0, 1, text(0));
    simulation.run(network.now + 1e6);
    expect(first.addressOf(1)).toBe("1");
    expect([simulation.given.get("0>4"), simulation.given.get("4>0")]).toEqual([expected(1), expected(3)]);
    expect(simulation.lost).toEqual([]);
  });

  it.each([true, false])("is replaced by an answer to a connect packet; the node was known before: %s", (isKnown) => {
    const { simulation, network, links, first } = sessionsOf();
    simulation.submit(0, 1, text(0));
    if (isKnown) simulation.run();
    const { onPacket } = links[1];
    links[1].onPacket = (from, packet) => {
      if (packet[2] === PACKET_CONNECT) network.move(1, isKnown ? "b" : "a");
      onPacket(from, packet);
    };
    simulation.submit(0, 1, text(1));
    simulation.run();
    expect(first.addressOf(1)).toBe(isKnown ? "b" : "a");
    expect(simulation.given.get("0>4")).toEqual(expected(2));
    expect(simulation.lost).toEqual([]);
  });

  it("is not lost for a third node that refuses a copy of a connect packet", () => {
    const { simulation, network, links, first } = sessionsOf();
    for (const round of [0, 1]) {
      const [connect] = tapped(
        network,
        () => simulation.submit(0, 1, text(round)),
        () => true,
      );
      links[2].onPacket("0", connect?.bytes as Uint8Array);
      simulation.run(network.now + 1000);
      expect(first.dropped.wrongAddress).toBe(round + 1);
      simulation.run();
    }
    expect(simulation.given.get("0>4")).toEqual(expected(2));
    expect(simulation.lost).toEqual([]);
  });

  it("stays where packets are not sealed: those from elsewhere are dropped, and the node is refused as it always was", () => {
    const { simulation, network, links, first } = sessionsOf({ key: undefined });
    simulation.submit(1, 0, text(0));
    simulation.run(2000);
    network.move(1, "b");
    simulation.submit(1, 0, text(1));
    simulation.run();
    const { unknownSession, wrongAddress } = first.dropped;
    expect([unknownSession, wrongAddress]).toEqual([1, 1]);
    expect(first.addressOf(1)).toBe("1");
    expect(simulation.given.get("4>0")).toEqual(expected(1));
    expect(simulation.refused).toEqual([[1, 0, REFUSED_NAME]]);
    // So is an acknowledgment.
    network.move(1, "1");
    simulation.submit(0, 2, text(0));
    simulation.run(network.now + 2000);
    const acknowledged = first.dropped.unknownSession;
    const { onPacket } = links[0];
    links[0].onPacket = (from, packet) => onPacket(from === "2" ? "c" : from, packet);
    simulation.submit(0, 2, text(1));
    simulation.run(network.now + 2000);
    expect(first.dropped.unknownSession).toBeGreaterThan(acknowledged);
    expect(first.addressOf(2)).toBe("2");
  });

  it("holds for the process that was there: the same start of a node that states another instance is refused there, too", () => {
    const { simulation, network, first } = sessionsOf({ sessionsOf: (node) => (node === 2 ? { node: 1 } : {}) });
    simulation.submit(1, 0, text(0));
    simulation.run();
    // The other process gets the address that the node had.
    network.move(1, "b");
    network.move(2, "1");
    simulation.submit(0, 1, text(0));
    simulation.run(network.now + 2e6);
    expect(first.dropped.wrongAddress).toBeGreaterThan(0);
    expect(simulation.given.has("0>4")).toBe(false);
    simulation.submit(1, 0, text(1));
    simulation.run();
    expect(first.addressOf(1)).toBe("b");
    expect([simulation.given.get("0>4"), simulation.given.get("4>0")]).toEqual([expected(1), expected(2)]);
    submit(simulation.nodes[2]?.sessions, 0, 4, 0, 1, text(9));
    simulation.wake(simulation.nodes[2] as Simulation["nodes"][0]);
    simulation.run();
    expect(simulation.refused).toEqual([[2, 0, REFUSED_NAME]]);
    expect(simulation.given.get("4>0")).toEqual(expected(2));
  });
});

/** Connect packets of each of two nodes with one number: their serial numbers meet in every way. */
const ATTEMPTS = 250;

describe(`two live nodes with one number, ${replayNote()}`, { timeout: 600_000 }, () => {
  it.each(numbers(byEffort({ quick: 4, normal: 8, deep: 40 })))(
    `the second one is refused each time, whatever both have sent, and moves nothing: draw %i`,
    (draw) => {
      const { simulation, network, links, first, third } = sessionsOf({
        seed: SEED + draw,
        sessionsOf: (node) => (node === 2 ? { node: 1 } : {}),
      });
      const { random } = simulation;
      const ofSecond: Uint8Array[] = [];
      network.isLost = (from, _, packet) => {
        if (from === 2) ofSecond.push(packet.slice());
        return false;
      };
      let sent = 0;
      simulation.submit(1, 0, text(sent++));
      simulation.run();
      for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
        // In some draws the first node is far ahead, in others the second one, or both go in step.
        for (let turns = random([1, 2, 4, 12][draw % 4] as number); turns > 0; turns--) {
          if (random(4) === 0) network.move(1, `1 at ${attempt}.${turns}`);
          simulation.submit(1, 0, text(sent++));
          simulation.run();
        }
        if (random(4) === 0) simulation.submit(1, 0, text(sent++)); // its session is open meanwhile
        submit(third, 0, 4, 0, 1, text(attempt));
        simulation.wake(simulation.nodes[2] as Simulation["nodes"][0]);
        simulation.run(network.now + random(200));
        // As if they came from where the first one is.
        for (const packet of ofSecond.splice(0)) links[0].onPacket(network.addressOf(1), packet);
        simulation.run();
        expect(simulation.refused.length).toBe(attempt);
        expect(first.addressOf(1)).toBe(network.addressOf(1));
      }
      expect(new Set(simulation.refused.map(String))).toEqual(new Set([`2,0,${REFUSED_NAME}`]));
      expect(simulation.given.get("4>0")).toEqual(expected(sent));
      expect(simulation.lost.every(([reporter, other]) => reporter === 2 && other === 0)).toBe(true);
      expect(first.dropped.wrongAddress).toBeGreaterThanOrEqual(ATTEMPTS);
    },
  );
});

// A mobile node: one whose address changes, in virtual time, with an attacker that sees its packets.
import { describe, expect, it } from "vitest";
import type { Address, Link } from "../../src/link/link.js";
import { SimulatedNetwork } from "../../src/link/simulated-network.js";
import { scaled } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const LIMITS = { tasks: 2, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 22, regions: 8, fifos: 2, slots: 8 };
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i * 5);
const DATA = 1;
const EVIL = "evil";

/** The link of a node with a fixed address, as it sees a mobile node: the network translates that node's address. */
class Translated implements Link {
  readonly isFaithful = false;
  /** Packets that came from the mobile node, as an attacker has recorded them. */
  readonly recorded: Uint8Array[] = [];
  /** Packets that were sent to the attacker, and to addresses that the mobile node had before. */
  toEvil = 0;
  toOld = 0;
  #address = 0;
  onPacket: Link["onPacket"] = () => {};
  onRoom: Link["onRoom"] = () => {};
  readonly #link: Link;
  readonly #mobile: Address;

  constructor(link: Link, mobile: Address) {
    this.#link = link;
    this.#mobile = mobile;
    link.onPacket = (from, packet) => {
      this.recorded.push(packet.slice());
      this.onPacket(from === mobile ? this.#current : from, packet);
    };
    link.onRoom = () => this.onRoom();
  }

  get #current(): Address {
    return `at ${this.#address}`;
  }

  /** The mobile node has another address from now on. */
  move(): void {
    this.#address++;
  }

  get packetBytes(): number {
    return this.#link.packetBytes;
  }

  send(to: Address, packet: Uint8Array): boolean {
    if (to === EVIL) this.toEvil++;
    else if (to !== this.#current) this.toOld++;
    else return this.#link.send(this.#mobile, packet);
    return true;
  }

  close(): void {
    this.#link.close();
  }
}

function mobileJob(seed: number, key: Uint8Array | undefined) {
  const random = randomOf(seed);
  const word = (): number => random(2 ** 32);
  const faults = { loss: 0.02, duplicate: 0.02, reorder: 0.05, reorderMicroseconds: 300 };
  const network = new SimulatedNetwork({ nodes: 2, random: word, faults });
  const link = new Translated(network.attach(0), "1");
  const host = { now: () => network.now, at: network.at.bind(network), random: word };
  const mobileLink = network.attach(1);
  const wire = { links: [link, mobileLink], addresses: ["0", undefined], hosts: [host, host] };
  const job = new NetworkedJob({ seed, limits: LIMITS, kernels: ["wasm", "ts"], key, wire });
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
  return { random, network, link, mobileLink, job, contexts, came, run };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe.each([1, 2, 3, 4])(`a mobile node, draw %i (${replayNote()})`, (draw) => {
  it("moves: what both sides send comes once and in order; replayed packets attract nothing", () => {
    const { random, link, job, contexts, came, run } = mobileJob(SEED + draw, KEY);
    const [fixed, mobile] = contexts as [(typeof contexts)[0], (typeof contexts)[0]];
    const count = scaled(1500);
    const sent = [0, 0];
    // It connects first.
    expect(mobile.sendImmediate(fixed.endpoint, DATA, Int32Array.of(sent[1]++))).toBe(0);
    while (came[0]?.length === 0) run(500);
    // It ends where all has come, and a packet has been sent to an old address: in some draws, that takes more moves.
    const isOver = (): boolean => link.toOld > 0 && came[0].length === sent[1] && came[1].length === sent[0];
    for (let rounds = 0; !isOver() || sent[0] < count || sent[1] < count; rounds++) {
      if (rounds === 3 || random(10) === 0) link.move();
      for (const [from, context] of contexts.entries()) {
        const to = contexts[1 - from] as typeof context;
        const isEnough = sent[from] >= count && link.toOld > 0;
        for (let burst = isEnough ? 0 : random(20); burst > 0; burst--) {
          if (context.sendImmediate(to.endpoint, DATA, Int32Array.of(sent[from]), null, false) !== 0) break;
          sent[from]++;
        }
      }
      // The attacker repeats what it has seen, and forges.
      for (let copies = random(4); copies > 0; copies--) {
        const packet = (link.recorded[random(link.recorded.length)] as Uint8Array).slice();
        if (random(3) === 0) packet[random(packet.length)] ^= 1 << random(8);
        link.onPacket(EVIL, packet);
      }
      run(random(2000));
      expect(rounds).toBeLessThan(100_000);
    }
    expect(came).toEqual([numbers(sent[1]), numbers(sent[0])]);
    expect(job.lost).toEqual([]);
    // Nothing answers a replay or a forgery.
    expect(link.toEvil).toBe(0);
    for (const { client } of job.tasks) client.close();
    run(5_000_000);
    for (const { sessions, arena } of job.tasks) {
      expect([sessions.inUse.txQueues, arena.used]).toEqual([0, job.arenaBytes]);
    }
  });

  it("attracts packets to an attacker that is faster than the node, only until the node's next packet", () => {
    const { link, contexts, came, run } = mobileJob(SEED + draw, KEY);
    const [fixed, mobile] = contexts as [(typeof contexts)[0], (typeof contexts)[0]];
    const { onPacket } = link;
    let isStolen = false;
    link.onPacket = (from, packet) => {
      if (isStolen) onPacket(EVIL, packet.slice());
      onPacket(from, packet);
    };
    for (let number = 0; number < 300; number++) {
      isStolen = number >= 100 && number < 200;
      mobile.sendImmediate(fixed.endpoint, DATA, Int32Array.of(number));
      fixed.sendImmediate(mobile.endpoint, DATA, Int32Array.of(number));
      run(1000);
    }
    for (let rounds = 0; rounds < 10_000 && (came[0].length < 300 || came[1].length < 300); rounds++) run(1000);
    expect(came).toEqual([numbers(300), numbers(300)]);
    expect(link.toEvil).toBeGreaterThan(0);
  });

  it("has no access without a key", () => {
    const { job, link, contexts, came, run } = mobileJob(SEED + draw, undefined);
    const [fixed, mobile] = contexts as [(typeof contexts)[0], (typeof contexts)[0]];
    mobile.sendImmediate(fixed.endpoint, DATA, Int32Array.of(0));
    for (let rounds = 0; rounds < 300; rounds++) run(10_000);
    expect(came).toEqual([[], []]);
    const { sessions } = job.tasks[0] as (typeof job.tasks)[0];
    expect(sessions.counts.taken).toBe(0);
    expect(sessions.dropped.wrongAddress).toBeGreaterThan(0);
    expect(link.toEvil).toBe(0);
  });
});

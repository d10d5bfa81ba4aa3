// LossyLink: what it does to packets, and that sessions over it deliver everything.
import { describe, expect, it } from "vitest";
import type { Link } from "../../src/link/link.js";
import { type Impairments, LossyLink } from "../../src/link/lossy-link.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { Simulation } from "./nodes.js";

/** A link that records what is sent. */
function recorded(): { link: Link; sent: number[] } {
  const sent: number[] = [];
  const link: Link = {
    packetBytes: 1400,
    isFaithful: true,
    send: (to, packet) => {
      sent.push(packet[0] as number);
      expect(to).toBe("there");
      return true;
    },
    onPacket: () => {},
    onRoom: () => {},
    close: () => sent.push(-1),
  };
  return { link, sent };
}

function played(impairments: Impairments, count: number, seed = SEED): { lossy: LossyLink; sent: number[] } {
  const { link, sent } = recorded();
  const random = randomOf(seed);
  const lossy = new LossyLink(link, impairments, () => random(2 ** 32));
  const packet = new Uint8Array(1);
  for (let i = 0; i < count; i++) {
    packet[0] = i;
    expect(lossy.send("there", packet)).toBe(true);
    packet.fill(255); // the caller owns the bytes again
  }
  return { lossy, sent };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe(`a lossy link (${replayNote()})`, () => {
  it("without impairments passes all packets on, in order, in both directions", () => {
    const { lossy, sent } = played({}, 100);
    expect(sent).toEqual(upTo(100));
    expect([lossy.packetBytes, lossy.isFaithful]).toEqual([1400, false]);
    const { link } = recorded();
    const other = new LossyLink(link, {}, () => 0);
    const came: unknown[] = [];
    other.onPacket = (from) => came.push(from);
    other.onRoom = () => came.push("room");
    link.onPacket("x", new Uint8Array(1));
    link.onRoom();
    expect(came).toEqual(["x"]);
    link.send = () => false;
    expect(other.send("there", new Uint8Array(1))).toBe(false);
    link.onRoom();
    link.onRoom();
    expect(came).toEqual(["x", "room"]);
  });

  it("has the abilities of its link: it receives into its caller's memory, and without a turn", () => {
    const { link } = recorded();
    const memory = new Uint8Array(8);
    const given: unknown[] = [];
    const able: Link = {
      ...link,
      receiveInto: (allocate) => given.push(allocate(8)),
      receive: () => given.push("receive") > 0,
    };
    const lossy = new LossyLink(able, {}, () => 0);
    lossy.receiveInto((bytes) => memory.subarray(0, bytes));
    expect(lossy.receive?.()).toBe(true);
    expect(given).toEqual([memory, "receive"]);
    const unable = new LossyLink(link, {}, () => 0);
    unable.receiveInto(() => memory);
    expect(unable.receive).toBe(undefined);
  });

  it("repeats nothing that is refused, and tells of no refusal of packets that it holds or repeats", () => {
    const { link, sent } = recorded();
    const carry = link.send;
    let isBlocked = true;
    link.send = (to, packet) => !isBlocked && carry(to, packet);
    const lossy = new LossyLink(link, { duplicate: 1 }, () => 0);
    let rooms = 0;
    lossy.onRoom = () => rooms++;
    expect([lossy.send("there", Uint8Array.of(1)), lossy.counts.duplicated]).toEqual([false, 0]);
    link.onRoom();
    isBlocked = false;
    link.send = (to, packet) => {
      const isTaken = !isBlocked && carry(to, packet);
      isBlocked = true;
      return isTaken;
    };
    expect([lossy.send("there", Uint8Array.of(2)), lossy.counts.duplicated]).toEqual([true, 1]);
    link.onRoom();
    expect([sent, rooms]).toEqual([[2], 1]);
  });

  it("with probability 1: loses all, duplicates all, and delays each by the number of packets that it states", () => {
    expect(played({ loss: 1 }, 50).sent).toEqual([]);
    expect(played({ duplicate: 1 }, 3).sent).toEqual([0, 0, 1, 1, 2, 2]);
    // One packet overtakes each of them, so the last ones are still held.
    expect(played({ reorder: 1, reorderPackets: 1 }, 6).sent).toEqual(upTo(4));
    const { sent } = played({ reorder: 0.3, reorderPackets: 5 }, 200);
    expect(sent).not.toEqual(sent.toSorted((a, b) => a - b));
    expect(new Set(sent).size).toBe(sent.length);
    expect(sent.every((number, place) => Math.abs(number - place) <= 10)).toBe(true);
  });

  it("impairs packets as often as stated, and equally with the same seed", () => {
    const impairments = { loss: 0.1, duplicate: 0.05, reorder: 0.2 };
    const [first, second] = [played(impairments, 20_000), played(impairments, 20_000)];
    expect(first.sent).toEqual(second.sent);
    const { sent, lost, duplicated, reordered } = first.lossy.counts;
    for (const [count, part] of [
      [lost, 0.1],
      [duplicated, 0.9 * 0.05],
      [reordered, 0.9 * 0.2],
    ] as const) {
      // Six standard deviations.
      expect(Math.abs(count - part * sent)).toBeLessThan(6 * Math.sqrt(sent * part));
    }
    expect(played(impairments, 20_000, SEED + 1).sent).not.toEqual(first.sent);
  });

  it("holds a bounded number of packets, and none after close()", () => {
    const { lossy, sent } = played({ reorder: 1, reorderPackets: 1000 }, 500);
    expect(sent.length).toBeGreaterThan(400);
    const before = sent.length;
    lossy.close();
    expect(sent.slice(before)).toEqual([-1]);
  });

  it.each([
    [{ loss: 1.1 }, "loss of a lossy link is 1.1, not a probability from 0 to 1"],
    [{ duplicate: Number.NaN }, "duplicate of a lossy link is NaN"],
    [{ reorder: -1 }, "reorder of a lossy link is -1"],
    [{ reorderPackets: 0 }, "reorderPackets of a lossy link is 0, not an integer from 1 to 1000"],
  ])("refuses %j", (impairments, message) => {
    expect(() => new LossyLink(recorded().link, impairments, () => 0)).toThrow(message);
  });

  it.each([{ loss: 0.2 }, { duplicate: 0.2 }, { reorder: 0.5 }, { loss: 0.1, duplicate: 0.1, reorder: 0.2 }])(
    "D8 sessions over it deliver everything once and in order: %j",
    (impairments) => {
      const random = randomOf(SEED);
      const links: LossyLink[] = [];
      const simulation = new Simulation({
        seed: SEED,
        nodes: 2,
        around: (link) => {
          const lossy = new LossyLink(link, impairments, () => random(2 ** 32));
          links.push(lossy);
          return lossy;
        },
      });
      for (let i = 0; i < 500; i++) simulation.submit(i & 1, (i + 1) & 1, Buffer.alloc(300, String(i)));
      expect(simulation.run()).toBe(true);
      for (const [stream, first] of [
        ["0>4", 0],
        ["4>0", 1],
      ] as const) {
        const wanted = upTo(250).map((i) => `${i}:${Buffer.alloc(300, String(2 * i + first)).toString("latin1")}`);
        expect(simulation.given.get(stream)).toEqual(wanted);
      }
      expect(links.every(({ counts }) => counts.lost + counts.duplicated + counts.reordered > 0)).toBe(true);
    },
  );
});

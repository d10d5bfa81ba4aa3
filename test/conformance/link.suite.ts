// What every link does: the contract of src/link/link.ts. A rig has four nodes. After each test it is checked what came: a
// faithful link has delivered every packet that it took once and in order, and another one nothing that it did not take.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PACKET_BYTES_MAX } from "../../assembly/layout.js";
import type { Address, Link } from "../../src/link/link.js";
import { bytesFrom } from "../support/bytes.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

export interface LinkRig {
  /** Of each node, and the addresses by which the others know it. */
  readonly links: readonly Link[];
  readonly addresses: readonly Address[];
  /** Addresses that no node has. */
  readonly unknown: readonly Address[];
  /** Whether links refuse packets when many are sent at once. */
  readonly refuses: boolean;
  /** Whether packets are lost, repeated and overtaken here, some of a few hundred. Undefined: the system decides. */
  readonly hasFaults: boolean | undefined;
  /** Has everything that is under way arrive. */
  settle(): Promise<void>;
}

/** Attempts after which a packet has come, even where many are lost. */
const ATTEMPTS = 100;

/** Milliseconds in which a packet comes, also by a server that has no core. */
const PATIENCE = 20_000;

/** Equal for equal bytes alone. */
const textOf = (bytes: Uint8Array): string => new TextDecoder("latin1").decode(bytes);

/** Packet `number` of a sequence: its bytes follow from the number and the length. */
const packetOf = (number: number, length: number): Uint8Array<ArrayBuffer> =>
  bytesFrom(length, (i) => (number * 37 + i * 11 + (i >>> 8)) & 255);

export function linkSuite(name: string, make: () => LinkRig | Promise<LinkRig>): void {
  describe(name, () => {
    let rig: LinkRig;
    /** By receiver: what came, as `sender:bytes`, and the addresses that came with it. */
    let came: string[][];
    let from: Address[][];
    /** What the links took, as `receiver:bytes`, by sender. */
    let taken: string[][];
    /** By node: refusals since the last onRoom(), and calls of onRoom(). */
    let refusals: number[];
    let rooms: number[];
    let closed: boolean[];
    /** The nodes whose link is in send(). */
    let sending: Set<number>;
    /** Breaches of the contract that a callback has seen: an error that it throws may end elsewhere. */
    let breaches: string[];
    /** What a test does on arrival and on room. */
    let onPacket: (node: number, from: Address, bytes: Uint8Array) => void;
    let onRoom: (node: number) => void;

    const linkOf = (node: number): Link => rig.links[node] as Link;
    const addressOf = (node: number): Address => rig.addresses[node] as Address;

    beforeEach(async () => {
      rig = await make();
      const lists = <T>(): T[][] => rig.links.map(() => []);
      [came, from, taken] = [lists(), lists(), lists()];
      [refusals, rooms, closed] = [rig.links.map(() => 0), rig.links.map(() => 0), rig.links.map(() => false)];
      sending = new Set();
      breaches = [];
      onPacket = () => {};
      onRoom = () => {};
      rig.links.forEach((link, node) => {
        link.onPacket = (address, bytes) => {
          if (closed[node]) breaches.push(`a packet came to node ${node} after close()`);
          if (sending.size > 0) breaches.push(`a packet came to node ${node} within send() of ${[...sending]}`);
          came[node]?.push(`${rig.addresses.indexOf(address)}:${textOf(bytes)}`);
          from[node]?.push(address);
          onPacket(node, address, bytes);
          // They are the callback's: what comes later is whole all the same.
          bytes.fill(0xaa);
        };
        link.onRoom = () => {
          if (closed[node]) breaches.push(`onRoom() of node ${node} after close()`);
          if (sending.size > 0) breaches.push(`onRoom() of node ${node} within send() of ${[...sending]}`);
          if (refusals[node] === 0) breaches.push(`onRoom() of node ${node} without a refusal`);
          refusals[node] = 0;
          rooms[node] = (rooms[node] ?? 0) + 1;
          onRoom(node);
        };
      });
    });

    afterEach(async () => {
      await rig.settle();
      expect(breaches).toEqual([]);
      for (const to of rig.links.keys()) {
        for (const sender of rig.links.keys()) {
          const [arrived, sent] = [contents(came[to], sender), contents(taken[sender], to)];
          if (linkOf(to).isFaithful && !closed[sender] && !closed[to]) expect(arrived).toEqual(sent);
          else expect(arrived.filter((one) => !sent.includes(one))).toEqual([]);
        }
        expect(from[to]?.filter((address) => !rig.addresses.includes(address))).toEqual([]);
      }
      for (const link of rig.links) link.close();
      await rig.settle();
    });

    /** Of packets of one link, those from or to a node. */
    const contents = (packets: readonly string[] = [], node: number): string[] =>
      packets.filter((one) => one.startsWith(`${node}:`)).map((one) => one.slice(2));

    /** Sends a packet, then overwrites it. @returns whether the link took it */
    function send(node: number, address: Address, packet: Uint8Array): boolean {
      const text = textOf(packet);
      sending.add(node);
      try {
        const isTaken = linkOf(node).send(address, packet);
        if (!isTaken) refusals[node] = (refusals[node] ?? 0) + 1;
        else taken[node]?.push(`${rig.addresses.indexOf(address)}:${text}`);
        return isTaken;
      } finally {
        sending.delete(node);
        packet.fill(0x55);
      }
    }

    /** Waits until something holds, or for longer than a packet takes. */
    async function until(isSo: () => boolean): Promise<void> {
      for (const end = performance.now() + PATIENCE; !isSo() && performance.now() < end; ) await rig.settle();
    }

    /** Sends a packet until it has come: at once on a faithful link. @param make makes it anew */
    async function deliver(node: number, to: number, make: () => Uint8Array): Promise<void> {
      const wanted = `${node}:${textOf(make())}`;
      const { isFaithful } = linkOf(node);
      for (let i = 0; i < (isFaithful ? 1 : ATTEMPTS) && !came[to]?.includes(wanted); i++) {
        expect(send(node, addressOf(to), make())).toBe(true);
        await rig.settle();
      }
      if (isFaithful) await until(() => came[to]?.includes(wanted) === true);
      // Not toContain(): it would print all bytes.
      expect(came[to]?.includes(wanted)).toBe(true);
    }

    it("packetBytes: a multiple of 4 that the format of packets allows", () => {
      for (const { packetBytes } of rig.links) {
        expect(packetBytes % 4).toBe(0);
        expect(packetBytes).toBeGreaterThan(0);
        expect(packetBytes).toBeLessThanOrEqual(PACKET_BYTES_MAX);
      }
    });

    it("packets of every size up to packetBytes arrive whole", async () => {
      const { packetBytes } = linkOf(0);
      for (const length of [0, 1, 3, 4, 100, packetBytes - 1, packetBytes])
        await deliver(0, 1, () => packetOf(length, length));
    });

    it("a packet of more than packetBytes is refused with value and limit; nothing of it comes, and the link goes on", async () => {
      const { packetBytes } = linkOf(0);
      // More than once: a link that loses or delays packets must not do that with these.
      for (let i = 0; i < 30; i++) {
        const length = packetBytes + 1 + i;
        expect(() => send(0, addressOf(1), packetOf(1, length))).toThrow(
          expect.objectContaining({
            name: "PamiError",
            code: "PAMIR_TOO_LARGE",
            message: `a packet has ${length} bytes, and the link carries at most ${packetBytes}`,
          }),
        );
      }
      await rig.settle();
      expect(came[1]).toEqual([]);
      await deliver(0, 1, () => packetOf(2, packetBytes));
    });

    it("the bytes are the caller's again when send() returns, whatever kind of view it gave, and what is beside them", async () => {
      const views: (() => Uint8Array)[] = [() => new Uint8Array(200), () => new Uint8Array(400).subarray(100, 300)];
      if (typeof SharedArrayBuffer !== "undefined")
        views.push(() => new Uint8Array(new SharedArrayBuffer(300), 20, 200));
      if (typeof Buffer !== "undefined") views.push(() => Buffer.alloc(400).subarray(100, 300));
      for (const [i, view] of views.entries()) {
        const made: Uint8Array[] = [];
        await deliver(2, 3, () => {
          const bytes = view();
          new Uint8Array(bytes.buffer).fill(0x77);
          bytes.set(packetOf(i, 200));
          made.push(bytes);
          return bytes;
        });
        // The first one was not sent.
        for (const { buffer, byteOffset, length } of made.slice(1)) {
          const whole = [...new Uint8Array(buffer)];
          const beside = [...whole.slice(0, byteOffset), ...whole.slice(byteOffset + length)];
          expect(whole.length).toBeGreaterThanOrEqual(200);
          expect(beside.every((byte) => byte === 0x77)).toBe(true);
          expect(whole.slice(byteOffset, byteOffset + length).every((byte) => byte === 0x55)).toBe(true);
        }
      }
    });

    it("bytes in onPacket are the callback's until it returns: equal packets arrive equal though each is overwritten", async () => {
      for (let i = 0; i < 20 || (i < ATTEMPTS && came[1]?.length === 0); i++) {
        send(0, addressOf(1), packetOf(7, 50));
        await rig.settle();
      }
      const wanted = `0:${textOf(packetOf(7, 50))}`;
      expect(came[1]?.length).toBeGreaterThan(0);
      expect(came[1]?.filter((one) => one !== wanted)).toEqual([]);
    });

    it("receiveInto(): what comes in memory of the caller's begins at a multiple of 4, and is whole; it asks for no more", async () => {
      let given: Uint8Array | undefined;
      let asked = 0;
      linkOf(1).receiveInto?.((bytes) => {
        asked++;
        given = new Uint8Array(bytes + 128).subarray(64, 64 + bytes);
        return given;
      });
      expect(asked).toBeLessThanOrEqual(1);
      onPacket = (_, __, bytes) => {
        if (bytes.buffer === given?.buffer && bytes.byteOffset % 4 !== 0)
          breaches.push("a packet begins within a word");
      };
      const sent = Array.from({ length: 64 }, (_, i) => packetOf(i, 1 + ((i * 97) % linkOf(0).packetBytes)));
      const all = new Set(sent.map((packet) => `0:${textOf(packet)}`));
      for (let i = 0; i < ATTEMPTS && came[1]?.length === 0; i++) {
        for (const packet of sent) send(0, addressOf(1), packet.slice());
        await rig.settle();
      }
      expect(came[1]?.length).toBeGreaterThan(0);
      expect(came[1]?.filter((one) => !all.has(one))).toEqual([]);
      const around = new Uint8Array(given?.buffer ?? new ArrayBuffer(128));
      const beside = [...around.subarray(0, 64), ...around.subarray(-64)];
      expect(beside.every((byte) => byte === 0)).toBe(true);
    });

    it("the address that comes with a packet is the one that packets to its sender go to", async () => {
      onPacket = (node, address, bytes) => {
        if (node === 0) send(0, address, packetOf((bytes[0] as number) + 100, 8));
      };
      for (const node of [1, 2, 3]) {
        const wanted = `0:${textOf(packetOf(node + 100, 8))}`;
        for (let i = 0; i < ATTEMPTS && !came[node]?.includes(wanted); i++) {
          const packet = packetOf(node, 8);
          packet[0] = node;
          send(node, addressOf(0), packet);
          await rig.settle();
        }
      }
      for (const node of [1, 2, 3]) {
        // Its own answer, and no other's.
        const answer = packetOf(node + 100, 8);
        expect(new Set(came[node])).toEqual(new Set([`0:${textOf(answer)}`]));
      }
    });

    it("send() calls nothing: answers within onPacket follow each other, and none is nested", async () => {
      let depth = 0;
      let rounds = 0;
      onPacket = (node, address) => {
        if (++depth > 1) breaches.push("a packet came within onPacket()");
        if (++rounds < 200) send(node, address, packetOf(rounds, 12));
        depth--;
      };
      for (let i = 0; i < ATTEMPTS && rounds < 200; i++) {
        send(0, addressOf(1), packetOf(1000 + i, 12));
        await rig.settle();
      }
      expect(rounds).toBeGreaterThanOrEqual(200);
    });

    it.each([1, 2, 3])(
      `random packets among all nodes: nothing is altered or misdirected, draw %i (${replayNote()})`,
      async (draw) => {
        const random = randomOf(SEED ^ (draw * 7919));
        const { packetBytes } = linkOf(0);
        const lengths = [20, 300, packetBytes];
        for (let number = 0; number < scaled(600); number++) {
          const [node, to] = [random(4), random(4)];
          if (node === to) continue;
          send(node, addressOf(to), packetOf(number, 4 + random((lengths[random(3)] as number) - 3)));
          if (random(20) === 0) await rig.settle();
        }
        await rig.settle();
        expect(came.flat().length).toBeGreaterThan(0);
      },
    );

    it("isFaithful: every packet once and in order; a rig that has faults shows each of them", async () => {
      const count = 600;
      for (let number = 0; number < count; number++) {
        // Two bytes tell them apart.
        const packet = new Uint8Array([number & 255, number >>> 8, 0, 0]);
        while (!send(0, addressOf(1), packet.slice())) await rig.settle();
      }
      await rig.settle();
      const faults = () => {
        const numbers = (came[1] ?? []).map((one) => (taken[0] ?? []).indexOf(`1${one.slice(1)}`));
        const distinct = new Set(numbers).size;
        const isSorted = numbers.every((number, i) => i === 0 || number >= (numbers[i - 1] as number));
        return { loss: distinct < count, repetition: numbers.length > distinct, overtaking: !isSorted };
      };
      const { hasFaults } = rig;
      if (hasFaults) await until(() => Object.values(faults()).every(Boolean));
      if (hasFaults !== undefined)
        expect(faults()).toEqual({ loss: hasFaults, repetition: hasFaults, overtaking: hasFaults });
      if (hasFaults !== false) expect(linkOf(0).isFaithful).toBe(false);
    });

    it("false from send(): the packet is not taken; onRoom() follows, once for all refusals, and there is room then", async () => {
      let number = 0;
      const next = (): Uint8Array => packetOf(number++, 300);
      for (let round = 0; round < 5; round++) {
        const before = rooms[0] as number;
        let refused = 0;
        for (let i = 0; i < 100; i++) if (!send(0, addressOf(1 + (i % 3)), next())) refused++;
        expect(refused > 0).toBe(rig.refuses);
        expect(rooms[0]).toBe(before);
        await rig.settle();
        expect(rooms[0]).toBe(before + (rig.refuses ? 1 : 0));
        expect(send(0, addressOf(1), next())).toBe(true);
        await rig.settle();
      }
      // The others were refused nothing.
      expect(rooms.slice(1)).toEqual([0, 0, 0]);
    });

    it("a sender that goes on at each onRoom() gets everything through", async () => {
      let number = 0;
      const pump = (): void => {
        while (number < 300 && send(0, addressOf(1), packetOf(number, 64 + number))) number++;
      };
      onRoom = pump;
      pump();
      expect(number < 300).toBe(rig.refuses);
      await rig.settle();
      expect(number).toBe(300);
      expect(taken[0]?.length).toBe(300);
    });

    it("a packet to an address that no node has is lost, and others are not", async () => {
      for (const address of rig.unknown) {
        for (let i = 0; i < 5; i++) {
          expect(send(0, address, packetOf(i, 40))).toBe(true);
          await rig.settle();
        }
      }
      expect(came).toEqual([[], [], [], []]);
      await deliver(0, 1, () => packetOf(9, 40));
    });

    describe("close()", () => {
      const close = (node: number): void => {
        linkOf(node).close();
        closed[node] = true;
      };

      it("ends what is on its way to the link; packets to it are lost, and the others' go on", async () => {
        for (let i = 0; i < 50; i++) send(0, addressOf(1), packetOf(i, 40));
        close(1);
        await rig.settle();
        expect(came[1]).toEqual([]);
        for (let i = 0; i < 5; i++) {
          expect(send(0, addressOf(1), packetOf(i, 40))).toBe(true);
          await rig.settle();
        }
        await deliver(0, 2, () => packetOf(5, 40));
        await deliver(3, 0, () => packetOf(6, 40));
      });

      it("within onPacket(): that packet was the last", async () => {
        onPacket = (node) => {
          if (node === 1 && !closed[1]) close(1);
        };
        for (let i = 0; i < 50; i++) send(0, addressOf(1), packetOf(i, 40));
        for (let i = 0; i < 50; i++) send(2, addressOf(1), packetOf(i, 40));
        await rig.settle();
        await until(() => came[1]?.length !== 0);
        expect(came[1]?.length).toBe(1);
      });

      it("with a refusal: onRoom() does not follow", async () => {
        for (let i = 0; i < 100; i++) send(0, addressOf(1), packetOf(i, 40));
        close(0);
        await rig.settle();
        expect(rooms[0]).toBe(0);
      });

      it("twice is once, and send() loses its packets from then on", async () => {
        await deliver(0, 1, () => packetOf(1, 40));
        const before = came[1]?.length;
        close(0);
        close(0);
        for (let i = 0; i < 100; i++) expect(send(0, addressOf(1), packetOf(100 + i, 40))).toBe(true);
        await rig.settle();
        expect(came[1]?.length).toBe(before);
        expect(send(1, addressOf(0), packetOf(3, 40))).toBe(true);
        await rig.settle();
        close(0);
      });
    });
  });
}

// A link with two ways: it takes the short one when it is there, goes back when it is not, and hears no strangers.
import { createSocket } from "node:dgram";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { formatNatsAddress, parseNatsAddress, SECRET_BYTES } from "../../src/link/nats/nats-address.js";
import { NatsLink } from "../../src/link/nats/nats-link.js";
import { TwoWayLink } from "../../src/link/nats/two-way-link.js";
import { parseUdpAddress } from "../../src/link/udp/udp-address.js";
import { openUdpLink } from "../../src/link/udp/udp-link.js";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { bytesFrom } from "../support/bytes.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

describe("addresses", () => {
  const secret = bytesFrom(SECRET_BYTES, (i) => 250 + i);

  it.each([undefined, "udp:10.0.0.1:9000", "udp:[fe80::1%eth0]:1"])("with the socket %s", (udp) => {
    const address = formatNatsAddress("a-job", 7, secret, udp);
    expect(address).toMatch(/^pamir\.a-job\.n\.7\.[\da-f-]+$/);
    expect(parseNatsAddress(address)).toEqual({ job: "a-job", secret, udp });
  });

  it.each(["", "pamir.a.n.7", "pamir.a.n.7.00", "pamir.a.b.n.7.0011223344556677", "pamir.a.n.7.0011223344556677-123"])(
    "%j is none",
    (address) => expect(parseNatsAddress(address)).toBeUndefined(),
  );
});

describe.skipIf(NATS_SERVER === undefined)("two nodes", async () => {
  const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
  afterAll(() => server?.close());
  const open: TwoWayLink[] = [];
  afterEach(() => {
    for (const link of open.splice(0)) link.close();
  });

  /** A node whose packets by UDP are lost while `cable.isCut`. */
  async function node(number: number, cable: { isCut: boolean }): Promise<TwoWayLink> {
    const udp = await openUdpLink("udp:127.0.0.1:0");
    const send = udp.send.bind(udp);
    udp.send = (to, packet) => cable.isCut || send(to, packet);
    const connection = await connectNats(natsPlace({ nats: server?.url, job: "two" }), { name: `${number}` });
    const secret = bytesFrom(SECRET_BYTES, (i) => 16 * number + i);
    const address = formatNatsAddress("two", number, secret, udp.address);
    const link = new TwoWayLink(new NatsLink(connection, address, "two", 4096), udp, secret);
    await connection.flush();
    open.push(link);
    return link;
  }

  it("packets take the short way, the long one while that is cut, and the short one again", async () => {
    const cable = { isCut: false };
    const [one, other] = [await node(1, cable), await node(2, cable)];
    let came = 0;
    other.onPacket = (from, packet) => {
      expect(from).toBe(one.address);
      expect(packet.length).toBe(100);
      came++;
    };
    /** Sends until something is so. */
    const until = async (isTrue: () => boolean): Promise<void> => {
      for (const began = performance.now(); !isTrue(); await delay(5)) {
        if (performance.now() - began > 60_000) throw new Error(JSON.stringify([one.counts, one.long, came]));
        one.send(other.address, new Uint8Array(100));
      }
    };
    await until(() => other.counts.receivedDirect > 10);
    // A process that stood still for a second and a half has gone back meanwhile.
    const isShort = (): boolean => one.counts.shortened === one.counts.lengthened + 1;
    expect(isShort()).toBe(true);
    cable.isCut = true;
    const { lengthened } = one.counts;
    await until(() => one.counts.lengthened === lengthened + 1);
    const before = came;
    const long = other.long.received;
    await until(() => came > before + 10);
    expect(other.long.received).toBeGreaterThan(long);
    cable.isCut = false;
    const direct = other.counts.receivedDirect;
    await until(() => other.counts.receivedDirect > direct + 10);
    expect(isShort()).toBe(true);
  });

  it("a stranger's packets by UDP are dropped, also behind a probe with another secret", async () => {
    const link = await node(1, { isCut: false });
    const came: string[] = [];
    link.onPacket = (from) => void came.push(from);
    const { host, port } = parseUdpAddress(parseNatsAddress(link.address)?.udp as string);
    const socket = createSocket("udp4");
    const answers: Uint8Array[] = [];
    socket.on("message", (answer) => void answers.push(answer));
    const probe = (secret: Uint8Array): Uint8Array => {
      const from = new TextEncoder().encode(formatNatsAddress("two", 9, secret));
      return Uint8Array.from([0x50, 0x4d, 0x52, 0x50, ...secret, ...from]);
    };
    const own = parseNatsAddress(link.address)?.secret as Uint8Array;
    const wrong = own.map((byte, i) => (i === 7 ? byte ^ 1 : byte));
    for (const packet of [probe(wrong), new Uint8Array(100), new Uint8Array(0), probe(own).subarray(0, 12)])
      await new Promise((resolve) => socket.send(packet, port, host, resolve));
    await delay(100);
    expect([came, answers]).toEqual([[], []]);
    // The same with the right one is heard: so the others would have been.
    for (const packet of [probe(own), new Uint8Array(100)])
      await new Promise((resolve) => socket.send(packet, port, host, resolve));
    while (came.length === 0 || answers.length === 0) await delay(5);
    expect(came).toEqual([formatNatsAddress("two", 9, own)]);
    expect(answers.length).toBe(1);
    socket.close();
  });
});

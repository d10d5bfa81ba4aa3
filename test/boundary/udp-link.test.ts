// A link over UDP, beyond the contract of links: sockets that do not open, errors of the system, strangers, and the buffers
// of packets that wait for the kernel.
import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type DatagramSocket, openUdpLink, resolveUdpAddress, UdpLink } from "../../src/link/udp/udp-link.js";
import { systemClock } from "../../src/support/clock.js";
import { bundle } from "../support/bundle.js";
import { bytesFrom } from "../support/bytes.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { closedPort, hasIpv6, SlowSocket, slowLink, withCalls } from "../support/udp-rig.js";

const links: UdpLink[] = [];

type Open = (...given: Parameters<typeof openUdpLink>) => Promise<UdpLink>;

async function open(...given: Parameters<typeof openUdpLink>): Promise<UdpLink> {
  const link = await openUdpLink(...given);
  links.push(link);
  return link;
}

/** The same, by foreign calls. */
const openByCalls: Open = (address, options) => open(address, options, withCalls);

const OPENS: readonly (readonly [string, Open])[] = [
  ["by Node", open],
  ["by foreign calls", openByCalls],
];

/** Gives the event loop turns until something is so, which takes a few; the test's own limit ends the others. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn();
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}

afterEach(() => {
  vi.restoreAllMocks();
  for (const link of links.splice(0)) link.close();
});

it("a packet's memory: a long one's is freed as soon as onPacket has returned, whatever it does", async () => {
  const [from, to] = [await open("udp:127.0.0.1:0"), await open("udp:127.0.0.1:0")];
  const lengths = [16, 4095, 4096, 60_000];
  const came: Uint8Array[] = [];
  to.onPacket = (_, packet) => void came.push(packet);
  for (const length of lengths) expect(from.send(to.address, new Uint8Array(length).fill(1))).toBe(true);
  await until(() => came.length === lengths.length);
  expect(came.map(({ length }) => length)).toEqual([16, 4095, 0, 0]);
});

describe.each(OPENS)("openUdpLink() %s", (_how, open) => {
  it("takes the port that it is told, or one that the system chooses, and states its address", async () => {
    const first = await open("udp:127.0.0.1:0");
    expect(first.address).toMatch(/^udp:127\.0\.0\.1:[1-9]\d*$/);
    first.close();
    await nextTurn();
    expect((await open(first.address)).address).toBe(first.address);
    expect((await open("udp:localhost:0")).address).toMatch(/^udp:(127\.0\.0\.1|\[::1\]):[1-9]\d*$/);
  });

  it("its port is its own, also where another socket would share it", async () => {
    const link = await open("udp:127.0.0.1:0");
    const other = createSocket({ type: "udp4", reuseAddr: true });
    other.bind(Number(link.address.split(":").at(-1)), "127.0.0.1");
    const [error] = await once(other, "error");
    other.close();
    expect(error).toMatchObject({ code: "EADDRINUSE" });
  });

  it.each([
    [
      "a port in use",
      async () => (await open("udp:127.0.0.1:0")).address,
      /^no UDP socket at udp:127.*: the port is in use/,
    ],
    [
      "an address of another machine",
      () => "udp:192.0.2.1:4567",
      /^no UDP socket at udp:192.0.2.1:4567: this machine has no/,
    ],
    [
      "a name that does not resolve",
      () => "udp:nowhere.invalid:4567",
      /^udp:nowhere.invalid:4567: the host name does not resol/,
    ],
  ])("%s: an error that names the address and the cause", async (_, address, message) => {
    await expect(open(await address())).rejects.toMatchObject({
      name: "PamiError",
      code: "PAMIR_ADDRESS",
      message: expect.stringMatching(message),
      cause: expect.objectContaining({ code: expect.stringMatching(/^E/) }),
    });
  });

  it.each([
    ["nonsense", {}, 'a UDP address is "nonsense", not udp:HOST:PORT, with an IPv6 address in brackets'],
    ["udp:127.0.0.1:65536", {}, 'a UDP address is "udp:127.0.0.1:65536", not an address with a port from 0 to 65535'],
    ["udp:127.0.0.1:0", { packetBytes: 1228 }, "packetBytes of a UDP link is 1228, not an integer from 1232 to 65504"],
    ["udp:127.0.0.1:0", { packetBytes: 1234 }, "packetBytes of a UDP link is 1234, not a multiple of 4"],
    [
      "udp:127.0.0.1:0",
      { packetBytes: 65508 },
      "packetBytes of a UDP link is 65508, not an integer from 1232 to 65504",
    ],
    [
      "udp:127.0.0.1:0",
      { packetBytes: Number.NaN },
      "packetBytes of a UDP link is NaN, not an integer from 1232 to 65504",
    ],
    ["udp:127.0.0.1:0", { sendPackets: 0 }, "sendPackets is 0, not an integer from 1 to 65536"],
    ["udp:127.0.0.1:0", { receiveBufferBytes: 1 }, "receiveBufferBytes is 1, not an integer from 4096 to 1073741824"],
  ])("%s with %o is refused", async (address, options, message) => {
    await expect(open(address, options)).rejects.toMatchObject({ code: "PAMIR_INVAL", message });
  });

  it("the default packet fits an Ethernet frame with either version of IP", async () => {
    const { packetBytes } = await open("udp:0.0.0.0:0");
    expect(packetBytes).toBeLessThanOrEqual(1500 - 40 - 8);
    expect(packetBytes).toBeGreaterThan(1400);
  });

  it.each([
    [4096, 1452],
    [2 ** 30, 65_504],
  ])("on loopback it is larger, if the receive buffer holds a burst: %i bytes", async (receiveBufferBytes, most) => {
    const { packetBytes } = await open("udp:127.0.0.1:0", { receiveBufferBytes });
    expect(packetBytes % 4).toBe(0);
    expect(packetBytes).toBeGreaterThanOrEqual(1452);
    expect(packetBytes).toBeLessThanOrEqual(most);
  });
});

describe("resolveUdpAddress()", () => {
  it("gives the canonical address: of a host name, and of an address", async () => {
    expect(await resolveUdpAddress("udp:localhost:4567", 4)).toBe("udp:127.0.0.1:4567");
    expect(await resolveUdpAddress("udp:[0:0::1]:4567")).toBe("udp:[::1]:4567");
    expect(await resolveUdpAddress("udp:[::ffff:127.0.0.1]:4567")).toBe("udp:127.0.0.1:4567");
  });

  it("refuses nonsense, port 0, and a name that does not resolve", async () => {
    await expect(resolveUdpAddress("udp:a b:1")).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    await expect(resolveUdpAddress("udp:127.0.0.1:0")).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    await expect(resolveUdpAddress("udp:nowhere.invalid:1")).rejects.toMatchObject({ code: "PAMIR_ADDRESS" });
  });
});

describe("families", () => {
  it("a socket of IPv4 and IPv6 has the addresses that its peers have, and both ways lead back", async () => {
    if (!(await hasIpv6())) return console.log("not run: a socket of both families, for there is no IPv6 here");
    const both = await open("udp:[::]:0");
    const port = both.address.split(":").at(-1);
    for (const host of ["127.0.0.1", "[::1]"]) {
      const peer = await open(`udp:${host}:0`);
      const came: string[] = [];
      both.onPacket = (from, bytes) => {
        came.push(from);
        both.send(from, bytes);
      };
      peer.onPacket = (from, bytes) => came.push(`${from} ${[...bytes]}`);
      peer.send(`udp:${host}:${port}`, Uint8Array.of(7));
      await until(() => came.length === 2);
      expect(came).toEqual([peer.address, `udp:${host}:${port} 7`]);
    }
  });
});

describe("errors of the system", () => {
  it.each([
    ["a port where no socket is", () => closedPort("127.0.0.1"), 0],
    ["another machine, from loopback", () => "udp:192.0.2.1:9", 1],
    ["broadcast, which is not allowed", () => "udp:255.255.255.255:9", 1],
  ])("%s: the packet is lost, and the link goes on", async (_, address, failed) => {
    const [link, other] = [await open("udp:127.0.0.1:0"), await open("udp:127.0.0.1:0")];
    const to = await address();
    for (let i = 0; i < 10; i++) {
      expect(link.send(to, Uint8Array.of(i))).toBe(true);
      await turns(2);
    }
    if (failed > 0) expect(link.counts.failed).toBe(10);
    expect([...link.errors.values()].reduce((sum, count) => sum + count, 0)).toBe(link.counts.failed);
    for (const code of link.errors.keys()) expect(code).toMatch(/^E[A-Z]+$/);
    let came = 0;
    other.onPacket = () => came++;
    link.send(other.address, Uint8Array.of(1));
    await until(() => came === 1);
  });

  it("errors that come later, and events of the socket, are counted by their codes", async () => {
    let onError: ((error: Error) => void) | undefined;
    const sent: ((error: Error | null) => void)[] = [];
    const socket: DatagramSocket = {
      address: () => ({ address: "127.0.0.1", family: "IPv4", port: 9 }),
      getSendQueueCount: () => sent.length,
      send: (...given) => sent.push(given[5]),
      on: (event: string, listener: (given: never, from: never) => void) => {
        if (event === "error") onError = listener as typeof onError;
      },
      off: () => {},
      close: () => {},
      ref: () => {},
      unref: () => {},
    };
    const link = new UdpLink(socket);
    const error = (code?: string) => Object.assign(new Error("of the system"), { code });
    for (const code of ["EMSGSIZE", "EPERM", "EMSGSIZE", undefined]) {
      link.send("udp:127.0.0.1:10", Uint8Array.of(1));
      sent.shift()?.(error(code));
    }
    onError?.(error("ECONNREFUSED"));
    expect(Object.fromEntries(link.errors)).toEqual({ EMSGSIZE: 2, EPERM: 1, unknown: 1, ECONNREFUSED: 1 });
    expect(link.counts.failed).toBe(5);
  });
});

describe("packets from strangers", () => {
  const title = `%s: random datagrams of every size come as the bytes that they are, and nothing throws (${replayNote()})`;
  it.each(OPENS)(title, async (_how, open) => {
    const random = randomOf(SEED);
    const link = await open("udp:127.0.0.1:0");
    const stranger = createSocket("udp4");
    stranger.bind(0, "127.0.0.1");
    await once(stranger, "listening");
    const from = `udp:127.0.0.1:${stranger.address().port}`;
    const port = Number(link.address.split(":").at(-1));
    const sent: Buffer[] = [];
    let [at, came, strange] = [0, 0, 0];
    link.onPacket = (address, bytes) => {
      came++;
      // Some may be lost. Loopback keeps the order.
      while (at < sent.length && !sent[at]?.equals(bytes)) at++;
      if (at++ >= sent.length || address !== from) strange++;
      bytes.fill(0);
    };
    for (let count = scaled(10_000); count > 0; count--) {
      const length = [random(4), random(64), random(1500), random(count % 100 === 0 ? 65_508 : 100)][
        random(4)
      ] as number;
      const bytes = Buffer.from(bytesFrom(length, () => random(256)));
      sent.push(bytes);
      stranger.send(bytes, port, "127.0.0.1");
      if (count % 32 === 0) await turns(2);
    }
    await until(() => came >= sent.length * 0.9);
    await turns(10);
    stranger.close();
    expect(strange).toBe(0);
    expect(link.counts.received).toBe(came);
  });
});

describe("foreign calls", () => {
  it("a burst of several senders comes whole, in the order of each, with all sizes that there are", async () => {
    const to = await openByCalls("udp:127.0.0.1:0");
    const from = await Promise.all(
      [open, openByCalls, open].map((open) => open("udp:127.0.0.1:0", { packetBytes: 65_504 })),
    );
    const came = new Map<string, Uint8Array[]>(from.map(({ address }) => [address, []]));
    to.onPacket = (address, packet) => void came.get(address)?.push(Uint8Array.from(packet));
    const sent = [0, 1, 2, 3, 8, 100, 1452, 4096, 1, 30_000, 65_504].map((length, i) => new Uint8Array(length).fill(i));
    // Nothing is received meanwhile: the first comes by Node, all others by foreign calls.
    for (const packet of sent) for (const link of from) expect(link.send(to.address, packet)).toBe(true);
    await until(() => to.counts.received === from.length * sent.length);
    for (const packets of came.values()) expect(packets).toEqual(sent);
  });

  it("a burst comes in memory that the link was given, or, where there is none, as before", async () => {
    for (const given of [new Uint8Array(2 ** 20), undefined]) {
      const to = await openByCalls("udp:127.0.0.1:0");
      const from = await openByCalls("udp:127.0.0.1:0");
      to.receiveInto((bytes) => given?.subarray(0, bytes));
      let there = 0;
      let wrong = 0;
      to.onPacket = (_, packet) => {
        if (packet.buffer === given?.buffer) there++;
        if (!packet.every((byte) => byte === packet.length % 251)) wrong++;
      };
      const lengths = Array.from({ length: 20 }, (_, i) => 70 * (i + 1));
      for (const length of lengths) from.send(to.address, new Uint8Array(length).fill(length % 251));
      await until(() => to.counts.received === lengths.length);
      // The first one of a burst comes by Node.
      expect([there > 0, wrong]).toEqual([given !== undefined, 0]);
    }
  });

  it("close() within onPacket, amid a burst: nothing comes any more, and the next socket has its own packets", async () => {
    const [from, to] = [await openByCalls("udp:127.0.0.1:0"), await openByCalls("udp:127.0.0.1:0")];
    let came = 0;
    to.onPacket = () => {
      if (++came === 3) to.close();
    };
    for (let count = 0; count < 30; count++) from.send(to.address, new Uint8Array(8));
    await until(() => came === 3);
    const next = await openByCalls("udp:127.0.0.1:0");
    let others = 0;
    next.onPacket = () => void others++;
    from.send(next.address, new Uint8Array(8));
    await until(() => others === 1);
    await turns(10);
    expect([came, others]).toEqual([3, 1]);
    expect(to.send(from.address, new Uint8Array(8))).toBe(true);
  });

  it("a burst comes whole after many single packets, and single packets after it", async () => {
    const [from, to] = [await openByCalls("udp:127.0.0.1:0"), await openByCalls("udp:127.0.0.1:0")];
    const came: number[] = [];
    to.onPacket = (_, packet) => void came.push(packet[0] as number);
    const send = (first: number): void => void from.send(to.address, Uint8Array.of(first, 0, 0, 0));
    for (const burst of [...Array(40).fill(1), 30, 1, 1, 20, 3, 1]) {
      const begin = came.length;
      for (let i = 0; i < burst; i++) send(i);
      await until(() => came.length === begin + burst);
      expect(came.slice(begin)).toEqual(Array.from({ length: burst }, (_, i) => i));
    }
  });

  it("looks for the rest of a burst less often where there was none, and at each packet where there was", async () => {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    let looks = 0;
    let hasRest = false;
    const link = new UdpLink(socket, {
      calls: {
        descriptor: -1,
        ownPort: () => {},
        send: () => false,
        receive: (take) => {
          looks++;
          if (hasRest) take(new Uint8Array(4), "127.0.0.1", 1);
          return false;
        },
        yieldProcessor: () => {},
        receiveInto: () => {},
      },
    });
    links.push(link);
    const from = await open("udp:127.0.0.1:0");
    const looksOf = async (packets: number): Promise<number> => {
      looks = 0;
      for (let i = 0; i < packets; i++) {
        const { received } = link.counts;
        from.send(link.address, new Uint8Array(4));
        await until(() => link.counts.received > received);
      }
      return looks;
    };
    // At the packets 1, 3, 7, 15, 31, 47 and 63.
    expect(await looksOf(64)).toBe(7);
    hasRest = true;
    await looksOf(16);
    expect(await looksOf(16)).toBe(16);
  });

  it("receive(): what has come is taken without a turn of the event loop, and says whether there was any", async () => {
    const [from, to] = [await openByCalls("udp:127.0.0.1:0"), await openByCalls("udp:127.0.0.1:0")];
    const came: [string, number][] = [];
    to.onPacket = (address, packet) => void came.push([address, packet.length]);
    expect(to.receive?.()).toBe(false);
    for (const length of [4, 1452, 60_000]) from.send(to.address, new Uint8Array(length));
    // On loopback, a datagram is there when it is sent; where the kernel is busy, soon.
    let hadAny = false;
    for (const end = performance.now() + 60_000; came.length < 3 && performance.now() < end; )
      hadAny = to.receive?.() === true || hadAny;
    expect(hadAny).toBe(true);
    expect(came).toEqual([4, 1452, 60_000].map((length) => [from.address, length]));
    expect(to.receive?.()).toBe(false);
    from.send(to.address, new Uint8Array(8));
    to.close();
    expect(to.receive?.()).toBe(false);
    expect([came.length, to.counts.received]).toEqual([3, 3]);
  });

  it("without foreign calls there is no receive()", async () => {
    expect((await open("udp:127.0.0.1:0")).receive).toBeUndefined();
  });

  it("what the system does not take at once goes by Node, and nothing overtakes it", async () => {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    let takes = true;
    const bySystem: number[] = [];
    const link = new UdpLink(new SlowSocket(socket), {
      calls: {
        descriptor: -1,
        ownPort: () => {},
        send: (_host, _port, packet) => {
          if (takes) bySystem.push(packet[0] as number);
          return takes;
        },
        receive: () => false,
        yieldProcessor: () => {},
        receiveInto: () => {},
      },
    });
    links.push(link);
    const to = await open("udp:127.0.0.1:0");
    const byNode: number[] = [];
    to.onPacket = (_, packet) => void byNode.push(packet[0] as number);
    const send = (first: number): void => void link.send(to.address, Uint8Array.of(first, 0, 0, 0));
    send(0);
    takes = false;
    send(1);
    takes = true;
    // Behind the one that waits.
    send(2);
    await until(() => byNode.length === 2);
    await turns(3);
    send(3);
    expect([bySystem, byNode]).toEqual([
      [0, 3],
      [1, 2],
    ]);
    expect(link.counts.sent).toBe(4);
  });

  it("are of IPv4 alone", async () => {
    const hosts: string[] = [];
    const watched = (host: string, port: number) => {
      hosts.push(host);
      return withCalls(host, port);
    };
    links.push(await openUdpLink("udp:127.0.0.1:0", {}, watched));
    if (await hasIpv6()) links.push(await openUdpLink("udp:[::1]:0", {}, watched));
    expect(hosts).toEqual(["127.0.0.1"]);
  });
});

describe("packets that the system refuses", () => {
  /** A socket whose system refuses packets with a code, or takes them. */
  function refusingLink() {
    const state = { code: "" };
    const socket: DatagramSocket = {
      address: () => ({ address: "192.0.2.1", family: "IPv4", port: 9 }),
      getSendQueueCount: () => 0,
      send: (_bytes, _offset, _length, port, address, sent) => {
        const { code } = state;
        const error = code === "" ? null : Object.assign(new Error(`send ${code}`), { code, address, port });
        process.nextTick(sent, error);
      },
      on: () => {},
      off: () => {},
      close: () => {},
      ref: () => {},
      unref: () => {},
    };
    const link = new UdpLink(socket);
    const told: string[] = [];
    link.onUnsent = (to, code) => void told.push(`${to} ${code}`);
    // In a time of its own: how busy the machine is does not matter to it.
    let time = systemClock.now();
    vi.spyOn(systemClock, "now").mockImplementation(() => time);
    const sendFor = async (milliseconds: number, ...all: readonly string[]): Promise<void> => {
      for (const end = time + milliseconds; time < end; time += 20) {
        for (const to of all) link.send(to, new Uint8Array(24));
        await nextTurn();
      }
    };
    return { link, state, told, sendFor };
  }
  const [ONE, OTHER] = ["udp:192.0.2.2:4567", "udp:192.0.2.3:4567"];

  it.each(["ENETUNREACH", "EHOSTUNREACH", "EPERM", "EACCES", "ENETDOWN"])(
    "%s: told within 2 s, once for each address, whatever is sent",
    async (code) => {
      const { link, state, told, sendFor } = refusingLink();
      state.code = code;
      await sendFor(700, ONE, OTHER);
      expect(told.sort()).toEqual([`${ONE} ${code}`, `${OTHER} ${code}`]);
      expect(link.errors.get(code)).toBe(link.counts.failed);
    },
  );

  it("one that is refused alone, and a port at which nobody is, are not told", async () => {
    const { state, told, sendFor } = refusingLink();
    state.code = "ENETUNREACH";
    await sendFor(1, ONE);
    state.code = "";
    await sendFor(600, ONE);
    state.code = "ECONNREFUSED";
    await sendFor(700, ONE);
    expect(told).toEqual([]);
  });
});

describe("room", () => {
  /** A system that takes packets when it is told to. */
  function busySystem(sendPackets: number) {
    const waiting: { readonly bytes: Uint8Array; readonly sent: (error: Error | null) => void }[] = [];
    const buffers = new Set<ArrayBufferLike>();
    const taken: number[] = [];
    let isBusy = true;
    const socket: DatagramSocket = {
      address: () => ({ address: "127.0.0.1", family: "IPv4", port: 9 }),
      getSendQueueCount: () => waiting.length,
      send: (bytes, offset, length, _port, _host, sent) => {
        buffers.add(bytes.buffer);
        const packet = { bytes: bytes.subarray(offset, offset + length), sent };
        if (isBusy) waiting.push(packet);
        else {
          taken.push(packet.bytes[0] as number);
          process.nextTick(sent, null);
        }
      },
      on: () => {},
      off: () => {},
      close: () => {},
      ref: () => {},
      unref: () => {},
    };
    const link = new UdpLink(socket, { sendPackets });
    let rooms = 0;
    link.onRoom = () => rooms++;
    return {
      link,
      buffers,
      taken,
      waiting,
      rooms: () => rooms,
      /** It takes so many of those that wait. */
      take: (count: number) => {
        for (const { bytes, sent } of waiting.splice(0, count)) {
          taken.push(bytes[0] as number);
          sent(null);
        }
      },
      setBusy: (value: boolean) => {
        isBusy = value;
      },
    };
  }

  it.each([1, 2, 3, 64])("of %i packets: those that wait keep their bytes, and more are refused", (sendPackets) => {
    const { link, taken, take, rooms, buffers } = busySystem(sendPackets);
    const packet = new Uint8Array(1);
    let number = 0;
    for (let round = 0; round < 3; round++) {
      while (link.send("udp:127.0.0.1:10", packet.fill(number))) number++;
      packet.fill(0xee);
      expect(number - taken.length).toBe(sendPackets);
      expect(link.send("udp:127.0.0.1:10", packet)).toBe(false);
      expect(link.send("udp:127.0.0.1:11", packet)).toBe(false);
      // Once, when half of the room is free; not before.
      take(Math.ceil(sendPackets / 2) - 1);
      expect(rooms()).toBe(round);
      take(1);
      expect(rooms()).toBe(round + 1);
      take(sendPackets);
      expect(rooms()).toBe(round + 1);
      expect(taken).toEqual(Array.from({ length: number }, (_, i) => i & 255));
    }
    expect(buffers.size).toBe(sendPackets);
    expect(link.counts.refused).toBe(9);
  });

  it("packets that the system takes at once share one buffer", async () => {
    const { link, taken, buffers, setBusy, take } = busySystem(4);
    setBusy(false);
    for (let number = 0; number < 100; number++) link.send("udp:127.0.0.1:10", Uint8Array.of(number));
    expect([taken.length, buffers.size]).toEqual([100, 1]);
    // Callbacks of earlier packets do not free the buffer of one that waits.
    setBusy(true);
    link.send("udp:127.0.0.1:10", Uint8Array.of(100));
    await nextTurn();
    link.send("udp:127.0.0.1:10", Uint8Array.of(101));
    take(2);
    expect(taken.slice(100)).toEqual([100, 101]);
  });

  it("close() while packets wait: nothing is called any more", async () => {
    const { link, take, rooms } = busySystem(2);
    while (link.send("udp:127.0.0.1:10", Uint8Array.of(1)));
    link.close();
    take(2);
    expect(rooms()).toBe(0);
    expect(link.send("udp:127.0.0.1:10", Uint8Array.of(1))).toBe(true);
  });

  it("a real socket that is closed while packets wait in Node: no error, and nothing is called", async () => {
    const [link, other] = [await slowLink("127.0.0.1", { sendPackets: 8 }), await open("udp:127.0.0.1:0")];
    let called = 0;
    link.onPacket = () => called++;
    link.onRoom = () => called++;
    other.onPacket = (from, bytes) => other.send(from, bytes);
    while (link.send(other.address, new Uint8Array(1000)));
    await turns(1);
    const before = called;
    link.close();
    await turns(20);
    expect(called).toBe(before);
  });

  it("Node's own queue: packets that it sends later have the bytes that they had", async () => {
    // Node sends each datagram of such a process by its queue, as it does where the socket's send buffer is full.
    const option = "--test-udp-no-try-send";
    if (spawnSync(process.execPath, [option, "-e", "0"]).status !== 0)
      return console.log(`not run: Node's queue of datagrams, since this Node has no ${option}`);
    const url = await bundle(new URL("../../src/link/udp/udp-link.ts", import.meta.url));
    const program = `
      const { openUdpLink } = await import(${JSON.stringify(url.href)});
      const [a, b] = [await openUdpLink("udp:127.0.0.1:0", { sendPackets: 8 }), await openUdpLink("udp:127.0.0.1:0")];
      const packet = new Uint8Array(1000);
      const told = { refused: 0, rooms: 0, came: 0, wrong: 0 };
      let number = 0;
      const pump = () => {
        while (number < 500) {
          const isTaken = a.send(b.address, packet.fill(number & 255));
          packet.fill(0xee);
          if (!isTaken) return told.refused++;
          number++;
        }
      };
      a.onRoom = () => { told.rooms++; pump(); };
      b.onPacket = (from, bytes) => {
        const wanted = told.came++ & 255;
        if (bytes.length !== 1000 || bytes.some((byte) => byte !== wanted)) told.wrong++;
        if (told.came < 500) return;
        a.close();
        b.close();
        console.log(JSON.stringify(told));
      };
      pump();`;
    const { stdout, stderr } = spawnSync(process.execPath, [option, "--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(stderr).toBe("");
    const told = JSON.parse(stdout);
    expect(told).toEqual({ refused: told.rooms, rooms: told.rooms, came: 500, wrong: 0 });
    expect(told.rooms).toBeGreaterThan(10);
  });
});

// The channel of a page and its host: packets that are replayed, changed or of another side; keys that are replaced.
import { afterEach, describe, expect, it } from "vitest";
import { openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import { nodeKeyScheduleOf } from "../../src/seal/node.js";
import { randomBytes } from "../../src/web/bytes.js";
import {
  type Admission,
  DATA,
  HELLO,
  hello,
  NONCE_BYTES,
  PageChannel,
  readControl,
  readHello,
  readRefused,
  readWelcome,
  refused,
  welcome,
} from "../../src/web/channel.js";
import { HostLink } from "../../src/web/host-link.js";
import { PageLink, sealsOf } from "../../src/web/page-link.js";
import { parseTicket } from "../../src/web/ticket.js";
import { Tickets } from "../../src/web/tickets.js";

const JOB = 7;
const NONCES = [randomBytes(NONCE_BYTES), randomBytes(NONCE_BYTES)] as const;
const schedule = nodeKeyScheduleOf(randomBytes(32), JOB);

/** The channels of both sides. */
function pair(): { page: PageChannel; host: PageChannel } {
  const { toTarget, toOrigin } = sealsOf(schedule, ...NONCES);
  return { page: new PageChannel(toTarget, toOrigin), host: new PageChannel(toOrigin, toTarget) };
}

describe("a channel", () => {
  it("opens each packet once, in order, and none that was changed", () => {
    const { page, host } = pair();
    const [first, second, third] = [1, 2, 3].map((node) => page.seal(DATA, node, Uint8Array.of(node, 0, 0)));
    const opened = host.open(Uint8Array.from(first as Uint8Array));
    expect([opened?.kind, opened?.node, ...(opened?.body ?? [])]).toEqual([DATA, 1, 1, 0, 0]);
    expect(host.open(first as Uint8Array)).toBeUndefined();
    expect(host.open(Uint8Array.from(third as Uint8Array))?.node).toBe(3);
    expect(host.open(second as Uint8Array)).toBeUndefined();
    const packet = page.seal(DATA, 1, new Uint8Array(5));
    for (let at = 0; at < packet.length; at++) {
      const changed = Uint8Array.from(packet);
      changed[at] = (changed[at] as number) ^ 1;
      expect(host.open(changed)).toBeUndefined();
    }
    for (let bytes = 0; bytes < packet.length; bytes++) expect(host.open(packet.slice(0, bytes))).toBeUndefined();
    expect(host.open(Uint8Array.from(packet))?.body.length).toBe(5);
  });

  it("opens none of its own packets, nor of other nonces", () => {
    const { page, host } = pair();
    expect(page.open(page.seal(DATA, 0, new Uint8Array(4)))).toBeUndefined();
    const { toTarget, toOrigin } = sealsOf(schedule, NONCES[1], NONCES[0]);
    expect(host.open(new PageChannel(toTarget, toOrigin).seal(DATA, 0, new Uint8Array(4)))).toBeUndefined();
  });

  it("an answer to a HELLO is not longer, and is for that HELLO alone", () => {
    const id = randomBytes(8);
    const first = hello(id, NONCES[0], schedule.handshake);
    expect(readHello(first)).toEqual({ version: 1, id, nonce: NONCES[0] });
    expect(readHello(first.slice(1))).toBeUndefined();
    const answers = [welcome(NONCES[0], NONCES[1], schedule.handshake), refused(NONCES[0], "version")];
    for (const answer of answers) expect(answer.length).toBeLessThanOrEqual(first.length);
    const [greeting, refusal] = answers as [Uint8Array, Uint8Array];
    expect(readWelcome(greeting, NONCES[0], schedule.handshake)).toEqual(NONCES[1]);
    expect(readWelcome(greeting, NONCES[1], schedule.handshake)).toBeUndefined();
    const other = nodeKeyScheduleOf(randomBytes(32), JOB);
    expect(readWelcome(greeting, NONCES[0], other.handshake)).toBeUndefined();
    expect([readRefused(refusal, NONCES[0]), readRefused(refusal, NONCES[1])]).toEqual(["version", undefined]);
    refusal[2] = 9;
    expect(readRefused(refusal, NONCES[0])).toBeUndefined();
  });

  it.each(["", "1", "null", "{", '"x"'])("a control packet that says %j is none", (text) => {
    expect(readControl(new TextEncoder().encode(text))).toBeUndefined();
  });
});

describe("links", () => {
  const closed: (() => void)[] = [];
  afterEach(() => {
    for (const close of closed.splice(0)) close();
  });

  /** A host with one page, whose connection gets other keys after some packets. */
  async function joined(
    packetsMax: number,
    layout: number,
  ): Promise<{ host: HostLink; page: PageLink; refused: string; proofs: [kind: number, isProof: boolean][] }> {
    const server = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" });
    const address = server.address as string;
    const tickets = new Tickets({
      job: JOB,
      address,
      most: 1,
      makeKeySchedule: nodeKeyScheduleOf,
      random: randomBytes,
    });
    const events = { onJoined: () => {}, onEnded: () => {} };
    const common = { tickets, nodes: 2, options: {}, silence: 60_000, layout: 1, random: randomBytes };
    const host = new HostLink(server, { ...common, ...events });
    const proofs: [number, boolean][] = [];
    const { onPacket } = server;
    server.onPacket = (from, packet) => {
      const [kind = -1] = packet;
      const isProof = onPacket(from, packet) as boolean;
      proofs.push([kind, isProof]);
      return isProof;
    };
    const { id, secret } = parseTicket(tickets.issue(60_000).ticket);
    const inner = await openWebSocketLink();
    let page: PageLink | undefined;
    const result = await new Promise<Admission | string>((resolve) => {
      page = new PageLink(
        inner,
        {
          address,
          id,
          schedule: nodeKeyScheduleOf(secret, JOB),
          instance: "1",
          layout,
          version: "",
          random: randomBytes,
          packetsMax,
        },
        { admitted: resolve, refused: resolve, state: () => {}, over: () => {}, silent: () => {} },
      );
    });
    closed.push(
      () => host.close(),
      () => page?.close(),
      () => tickets.close(),
    );
    return { host, page: page as PageLink, refused: typeof result === "string" ? result : "", proofs };
  }

  it("are a member's once it has confirmed a ticket: its greeting proves nothing, nor does a node that is refused", async () => {
    const { proofs } = await joined(1000, 1);
    // A busy page greets again.
    const said = proofs.map(([kind, isProof]) => [kind === HELLO, isProof]);
    expect(said[0]).toEqual([true, false]);
    expect(said.at(-1)).toEqual([false, true]);
    expect(said.filter(([isHello, isProof]) => isHello === isProof)).toEqual([]);
    const other = await joined(1000, 2);
    expect(other.refused).toBe("version");
    expect(other.proofs.filter(([, isProof]) => isProof)).toEqual([]);
    expect(other.proofs.length).toBeGreaterThanOrEqual(2);
  });

  it("get other keys after some packets, and lose none", async () => {
    const { host, page } = await joined(8, 1);
    let heard = 0;
    host.onPacket = (from, packet) => {
      expect([from, packet[0]]).toEqual(["1", heard & 255]);
      heard++;
      host.send("1", packet);
    };
    let echoed = 0;
    await new Promise<void>((resolve) => {
      page.onPacket = (from, packet) => {
        expect([from, packet[0]]).toEqual(["0", echoed & 255]);
        if (++echoed === 200) resolve();
        else page.send("0", Uint8Array.of(echoed));
      };
      page.send("0", Uint8Array.of(0));
    });
    expect(heard).toBe(200);
  });

  it("a page with another layout is refused", async () => {
    expect((await joined(8, 2)).refused).toBe("version");
  });
});

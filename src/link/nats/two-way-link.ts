// A link with two ways: through a NATS server, and by UDP straight to a node that this one reaches. Packets may be lost and
// overtaken on either, so they go the short way from the moment that it is proved, and the long way again when it is silent.
//
//   PROBE      by UDP, to a node that packets go to: { magic, the secret of its address, the own address }
//   ECHO       the answer, to where the PROBE came from: { magic, the secret of that node's address, the own address }
//
// An ECHO proves both directions, and to its receiver that the address is there. A program that does not see
// the server's messages knows no secret; one that does could only make packets vanish, as the server can.
import { systemClock } from "../../support/clock.js";
import { decodeText, encodeText } from "../../support/text.js";
import { every } from "../../support/timers.js";
import type { LinkWays, NodeLink, PacketWay, WayTraffic } from "../kind.js";
import { type Address, checkPacket, type Link } from "../link.js";
import type { UdpLink } from "../udp/udp-link.js";
import { parseNatsAddress, SECRET_BYTES } from "./nats-address.js";
import type { NatsLink } from "./nats-link.js";

/** "PMRP", "PMRE": no packet of a session has that length and such a secret behind. */
const PROBE = 0x50_4d_52_50;
const ECHO = 0x50_4d_52_45;
const HEAD = 4 + SECRET_BYTES;
/** Milliseconds between looks at the ways of nodes to which packets go. */
const LOOK_MS = 250;
/** Milliseconds without an ECHO after which the short way is given up. */
const SILENT_MS = 1500;
/** Milliseconds between probes of a way that is not there: they double up to the most. */
const PROBE_MS_MAX = 8000;
/** Nodes, and sources of packets by UDP, that are remembered: strangers may name as many as they like. */
const REMEMBERED_MAX = 65_536;

/** The short way, as texts name it. */
const SHORT = "nats short way";

/** A node to which packets have gone. */
interface Ways {
  /** Where its UDP socket is, as its address says; "": it has none. */
  readonly stated: Address;
  readonly probe: Uint8Array;
  /** Where packets go by UDP; undefined: the long way. */
  direct: Address | undefined;
  /** When that has changed. */
  since: number;
  /** Packets have gone there since the last look. */
  isUsed: boolean;
  echoedAt: number;
  nextProbe: number;
  pause: number;
}

export class TwoWayLink implements NodeLink, LinkWays {
  readonly packetBytes: number;
  readonly isFaithful = false;
  readonly address: Address;
  /** Takes packets that have come the short way. */
  readonly receive: Link["receive"];
  onPacket: Link["onPacket"] = () => {};
  onRoom: Link["onRoom"] = () => {};
  /** Packets that went the short way, and those that came by it; changes from the long to the short way, and back. */
  readonly counts = { direct: 0, receivedDirect: 0, shortened: 0, lengthened: 0 };
  /** Counts of the long way. */
  readonly long: NatsLink["counts"];
  readonly #nats: NatsLink;
  readonly #udp: UdpLink;
  readonly #secret: Uint8Array;
  readonly #ways = new Map<Address, Ways>();
  /** By source of packets: the address of its node. */
  readonly #sources = new Map<Address, Address>();
  readonly #stop: () => void;
  #hasRefused = false;

  /** @param secret that of the address @param udp open; both are the link's from now on */
  constructor(nats: NatsLink, udp: UdpLink, secret: Uint8Array) {
    this.#nats = nats;
    this.#udp = udp;
    this.#secret = secret;
    this.address = nats.address;
    this.receive = udp.receive && (() => udp.receive?.() === true);
    this.long = nats.counts;
    this.packetBytes = Math.min(nats.packetBytes, udp.packetBytes);
    nats.onPacket = (from, packet) => this.onPacket(from, packet);
    udp.onPacket = (source, packet) => this.#receive(source, packet);
    nats.onRoom = this.#room;
    udp.onRoom = this.#room;
    this.#stop = every(LOOK_MS, this.#look);
  }

  readonly #room = (): void => {
    if (!this.#hasRefused) return;
    this.#hasRefused = false;
    this.onRoom();
  };

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    const ways = this.#ways.get(to) ?? this.#add(to);
    ways.isUsed = true;
    const { direct } = ways;
    const isTaken = direct === undefined ? this.#nats.send(to, packet) : this.#udp.send(direct, packet);
    if (!isTaken) this.#hasRefused = true;
    else if (direct !== undefined) this.counts.direct++;
    return isTaken;
  }

  #add(to: Address): Ways {
    const { udp = "", secret } = parseNatsAddress(to) ?? {};
    const probe = secret === undefined ? new Uint8Array(0) : this.#message(PROBE, secret);
    const state = {
      direct: undefined,
      since: systemClock.now(),
      isUsed: false,
      echoedAt: 0,
      nextProbe: 0,
      pause: LOOK_MS,
    };
    const ways: Ways = { stated: udp, probe, ...state };
    if (this.#ways.size >= REMEMBERED_MAX) this.#ways.clear();
    this.#ways.set(to, ways);
    if (udp !== "") this.#udp.send(udp, probe);
    return ways;
  }

  #message(kind: number, secret: Uint8Array): Uint8Array {
    const own = encodeText(this.address);
    const message = new Uint8Array(HEAD + own.length);
    new DataView(message.buffer).setUint32(0, kind);
    message.set(secret, 4);
    message.set(own, HEAD);
    return message;
  }

  /** Looks at the ways of nodes to which packets go. */
  readonly #look = (): void => {
    const now = systemClock.now();
    for (const ways of this.#ways.values()) {
      if (ways.direct !== undefined && now - ways.echoedAt > SILENT_MS && ways.isUsed) {
        ways.direct = undefined;
        ways.since = now;
        this.counts.lengthened++;
      }
      if (!ways.isUsed || ways.stated === "" || now < ways.nextProbe) continue;
      ways.isUsed = false;
      ways.pause = ways.direct === undefined ? Math.min(2 * ways.pause, PROBE_MS_MAX) : LOOK_MS;
      ways.nextProbe = now + ways.pause;
      this.#udp.send(ways.direct ?? ways.stated, ways.probe);
    }
  };

  #receive(source: Address, packet: Uint8Array): unknown {
    const kind = packet.length > HEAD ? new DataView(packet.buffer, packet.byteOffset).getUint32(0) : 0;
    if ((kind === PROBE || kind === ECHO) && this.#secret.every((byte, i) => packet[4 + i] === byte)) {
      this.#prove(source, kind, decodeText(packet.subarray(HEAD)));
      return undefined;
    }
    const from = this.#sources.get(source);
    if (from === undefined) return undefined;
    this.counts.receivedDirect++;
    return this.onPacket(from, packet);
  }

  /** A PROBE or an ECHO with this link's secret has come. */
  #prove(source: Address, kind: number, from: Address): void {
    const place = parseNatsAddress(from);
    if (place === undefined) return;
    if (this.#sources.size >= REMEMBERED_MAX) this.#sources.clear();
    this.#sources.set(source, from);
    const ways = this.#ways.get(from) ?? this.#add(from);
    if (kind === PROBE) {
      this.#udp.send(source, this.#message(ECHO, place.secret));
      // It is worth a try now, whatever the pause.
      if (ways.direct === undefined) ways.nextProbe = 0;
      return;
    }
    ways.echoedAt = systemClock.now();
    if (ways.direct === source) return;
    this.counts.shortened++;
    ways.direct = source;
    ways.since = ways.echoedAt;
  }

  wayTo(to: Address): PacketWay | undefined {
    const { direct, since = 0 } = this.#ways.get(to) ?? {};
    if (direct !== undefined) return { by: SHORT, at: direct.replace("udp:", ""), since };
    const way = this.#nats.wayTo(to);
    return way && { ...way, since: Math.max(way.since, since) };
  }

  get traffic(): readonly WayTraffic[] {
    const { direct, receivedDirect, lengthened } = this.counts;
    return [...this.#nats.traffic, { by: SHORT, sent: direct, received: receivedDirect, breaks: lengthened }];
  }

  isAbsent(address: Address, isLong: boolean): boolean {
    return this.#ways.get(address)?.direct === undefined && this.#nats.isAbsent(address, isLong);
  }

  /** Packets that come the short way. */
  receiveInto(allocate: (bytes: number) => Uint8Array | undefined): void {
    this.#udp.receiveInto(allocate);
  }

  ref(): void {
    this.#nats.ref();
    this.#udp.ref();
  }

  unref(): void {
    this.#nats.unref();
    this.#udp.unref();
  }

  close(): void {
    this.#stop();
    this.#nats.close();
    this.#udp.close();
  }
}

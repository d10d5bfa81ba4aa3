// Four nodes in one thread, whose links are UDP sockets of this machine: for the conformance suite of links.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { createRequire } from "node:module";
import type { Address, Link } from "../../src/link/link.js";
import { openDatagrams } from "../../src/link/udp/udp-calls.js";
import {
  type DatagramCalls,
  type DatagramSocket,
  openUdpLink,
  UdpLink,
  type UdpLinkOptions,
} from "../../src/link/udp/udp-link.js";
import { byKoffi } from "../../src/process/ffi.js";
import { settler } from "./settler.js";

/** Opens sockets with calls of their own, where this machine has them: for openUdpLink(). */
export function withCalls(host: string, port: number): DatagramCalls | undefined {
  return openDatagrams(byKoffi(createRequire(import.meta.url).resolve("koffi")), host, port);
}

/** Whether this machine has an IPv6 loopback. */
export async function hasIpv6(): Promise<boolean> {
  const socket = createSocket("udp6");
  try {
    socket.bind(0, "::1");
    await once(socket, "listening");
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}

/** An address of a host at which no socket is. */
export async function closedPort(host: string): Promise<Address> {
  const link = await openUdpLink(`udp:${host}:0`);
  link.close();
  return link.address;
}

/** A socket whose system takes two datagrams in each turn of the event loop; the others wait, as if it were busy. */
export class SlowSocket implements DatagramSocket {
  readonly #socket: Socket;
  readonly #waiting: (() => void)[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(...given: Parameters<DatagramSocket["send"]>): void {
    // The bytes are read when its turn comes: until then they must stay as they are.
    this.#waiting.push(() => this.#socket.send(...given));
    if (this.#waiting.length === 1) setImmediate(() => this.#drain());
  }

  #drain(): void {
    for (const send of this.#waiting.splice(0, 2)) send();
    if (this.#waiting.length > 0) setImmediate(() => this.#drain());
  }

  getSendQueueCount(): number {
    return this.#waiting.length;
  }

  address(): ReturnType<Socket["address"]> {
    return this.#socket.address();
  }

  on(event: string, listener: (...given: never[]) => void): void {
    this.#socket.on(event, listener as () => void);
  }

  off(event: string, listener: (...given: never[]) => void): void {
    this.#socket.off(event, listener as () => void);
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#waiting.length = 0;
    this.#socket.close();
  }
}

/** A link over a socket that takes packets slowly. */
export async function slowLink(host: string, options: UdpLinkOptions): Promise<UdpLink> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.bind(0, host);
  await once(socket, "listening");
  return new UdpLink(new SlowSocket(socket), options);
}

interface UdpRigOptions {
  readonly open?: () => Promise<UdpLink>;
  readonly refuses?: boolean;
  readonly around?: (link: Link) => Link;
}

/** @param host as addresses have it */
export async function udpRig(host: string, options: UdpRigOptions = {}) {
  const { open = () => openUdpLink(`udp:${host}:0`), refuses = false, around = (link) => link } = options;
  const links = await Promise.all([open(), open(), open(), open()]);
  const addresses = links.map(({ address }) => address);
  const otherFamily = host.includes(":") ? "udp:127.0.0.1:4567" : "udp:[::1]:4567";
  const unknown = ["", "4", "udp:", `udp:${host}`, "udp:localhost:4567", otherFamily, await closedPort(host)];
  const total = (name: "sent" | "received"): number => links.reduce((sum, { counts }) => sum + counts[name], 0);
  const settle = settler(() => ({ sent: total("sent"), received: total("received") }));
  return { links: links.map(around), addresses, unknown, refuses, hasFaults: undefined, settle };
}

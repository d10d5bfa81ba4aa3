// A link of a user's own, over Unix sockets: nodes of one machine, in folders that only their user enters. It is a module as
// PAMIR_LINK_MODULE names it (docs/own-link.md), and knows nothing of pamir but the contract.
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PamiError } from "pamir";

/** @import { Server, Socket } from "node:net" */
/** @import { NodeLink } from "pamir" */

const SCHEME = "unix:";
const PACKET_BYTES = 32_768;
/** Bytes that wait for a node: further packets to it are lost, so that one node holds up no other. */
const QUEUE_BYTES = 2 ** 20;

/**
 * A stream begins with the address of its sender, so that packets come from where those to it go. Everything on it is a
 * length of 4 bytes, and so many bytes.
 * @param {Uint8Array} bytes
 */
function framed(bytes) {
  const frame = Buffer.alloc(4 + bytes.length);
  frame.writeUInt32LE(bytes.length);
  frame.set(bytes, 4);
  return frame;
}

/** @implements {NodeLink} */
class UnixLink {
  isFaithful = false;
  /** @type {NodeLink["onPacket"]} */
  onPacket = () => undefined;
  /** Never called: send() refuses nothing. */
  onRoom = () => {};
  counts = { sent: 0, received: 0 };
  #server;
  #folder;
  /** @type {Map<string, Socket>} By address: the stream on which packets to it go. */
  #outgoing = new Map();
  /** @type {Set<Socket>} */
  #incoming = new Set();
  #isKept = true;
  #isClosed = false;

  /** @param {Server} server @param {string} folder @param {number} packetBytes */
  constructor(server, folder, packetBytes) {
    this.packetBytes = packetBytes;
    this.address = SCHEME + server.address();
    this.#server = server.on("connection", (socket) => this.#accept(socket));
    this.#folder = folder;
  }

  /** @param {string} to @param {Uint8Array} packet */
  send(to, packet) {
    if (packet.length > this.packetBytes) {
      const text = `a packet has ${packet.length} bytes, and the link carries at most ${this.packetBytes}`;
      throw new PamiError("PAMIR_TOO_LARGE", text);
    }
    if (this.#isClosed || !to.startsWith(`${SCHEME}/`)) return true;
    const socket = this.#outgoing.get(to) ?? this.#connect(to);
    if (socket.writableLength > QUEUE_BYTES) return true;
    this.counts.sent++;
    socket.write(framed(packet));
    return true;
  }

  /** @param {string} to */
  #connect(to) {
    const socket = this.#hold(connect(to.slice(SCHEME.length)));
    this.#outgoing.set(to, socket);
    // The next packet tries again. What waited for this stream is lost.
    socket.on("close", () => this.#outgoing.get(to) === socket && this.#outgoing.delete(to));
    socket.write(framed(Buffer.from(this.address)));
    return socket;
  }

  /** @param {Socket} socket */
  #accept(socket) {
    this.#hold(socket);
    this.#incoming.add(socket);
    socket.on("close", () => this.#incoming.delete(socket));
    /** @type {string | undefined} */
    let from;
    /** @type {Buffer} */
    let rest = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 4 && !this.#isClosed) {
        const length = rest.readUInt32LE();
        // Another program has connected.
        if (length > PACKET_BYTES) return void socket.destroy();
        if (rest.length < 4 + length) return;
        // The callback may write to what it gets.
        const packet = new Uint8Array(rest.subarray(4, 4 + length));
        rest = rest.subarray(4 + length);
        if (from === undefined) from = Buffer.from(packet).toString();
        else {
          this.counts.received++;
          this.onPacket(from, packet);
        }
      }
    });
  }

  /** @param {Socket} socket */
  #hold(socket) {
    if (!this.#isKept) socket.unref();
    // "close" follows.
    return socket.on("error", () => {});
  }

  get #handles() {
    return [this.#server, ...this.#outgoing.values(), ...this.#incoming];
  }

  ref() {
    this.#isKept = true;
    for (const handle of this.#handles) handle.ref();
  }

  unref() {
    this.#isKept = false;
    for (const handle of this.#handles) handle.unref();
  }

  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const socket of this.#incoming) socket.destroy();
    // What was sent still goes out.
    for (const socket of this.#outgoing.values()) socket.end();
    this.#server.close(() => rmSync(this.#folder, { recursive: true, force: true }));
  }
}

/** @type {import("pamir").LinkKind} */
export default {
  name: "unix",
  title: "Unix sockets",
  packetBytesMax: PACKET_BYTES,
  mayRest: true,
  bind: () => SCHEME,
  async open(_bind, { packetBytes = PACKET_BYTES }) {
    const folder = mkdtempSync(join(tmpdir(), "unix-link-"));
    const server = createServer();
    await new Promise((resolve, reject) => {
      server.once("error", reject).listen(join(folder, "node"), () => resolve(undefined));
    });
    return new UnixLink(server, folder, packetBytes);
  },
  // The file is gone, or nothing listens at it any more: the system alone says so, so it can't be forged.
  isAbsent: (address) =>
    new Promise((resolve) => {
      const socket = connect(address.slice(SCHEME.length));
      const end = (/** @type {boolean} */ isAbsent) => {
        socket.destroy();
        resolve(isAbsent);
      };
      socket.on("connect", () => end(false));
      socket.on("error", (/** @type {NodeJS.ErrnoException} */ { code }) =>
        end(code === "ENOENT" || code === "ECONNREFUSED"),
      );
    }),
};

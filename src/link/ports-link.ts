// A link over message ports, between nodes of one process or page: one channel for each pair of nodes, made at its first
// packet. The ports may be Node's or a browser's.
import { PACKET_BYTES_MAX } from "../../assembly/layout.js";
import { type Address, checkPacket, type Link } from "./link.js";

/**
 * It never refuses a packet, since a port takes any number of them: what bounds them is the sessions' `txQueueBytes` for
 * each node, and their congestion window. In Node, its ports keep the thread alive until close().
 */
export class PortsLink implements Link {
  readonly packetBytes: number = PACKET_BYTES_MAX;
  readonly isFaithful = true;
  onPacket: Link["onPacket"] = () => {};
  /** Never called. */
  onRoom: Link["onRoom"] = () => {};
  readonly #connect: (to: Address, port: MessagePort) => void;
  /** By address: the port that packets to it go by. It stays the same until it closes, so that packets stay in order. */
  readonly #outgoing = new Map<Address, MessagePort>();
  /** All open ports, and the address at the other end of each. */
  readonly #ports = new Map<MessagePort, Address>();
  #isClosed = false;

  /**
   * @param connect brings the other end of a new channel to accept() of the node at that address, later or at once. Where no
   * node has the address, it closes the port.
   */
  constructor(connect: (to: Address, port: MessagePort) => void) {
    this.#connect = connect;
  }

  /**
   * Takes the end of a channel that the node at another address has made. Two nodes that make one at the same time have two,
   * and each sends by its own.
   */
  accept(from: Address, port: MessagePort): void {
    if (this.#isClosed) port.close();
    else this.#add(from, port);
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#isClosed) return true;
    // Not slice(): that of a Buffer copies nothing.
    const { buffer } = new Uint8Array(packet);
    (this.#outgoing.get(to) ?? this.#open(to)).postMessage(buffer, [buffer]);
    return true;
  }

  #open(to: Address): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#add(to, port1);
    this.#connect(to, port2);
    return port1;
  }

  #add(address: Address, port: MessagePort): void {
    this.#ports.set(port, address);
    if (!this.#outgoing.has(address)) this.#outgoing.set(address, port);
    port.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      // Node delivers the messages that a port has received, also after that port was closed.
      if (this.#ports.has(port)) this.onPacket(address, new Uint8Array(data));
    };
    // The other node has closed its link or ended. Not every browser says so: drop() is for those.
    port.addEventListener("close", () => this.#remove(port));
  }

  #remove(port: MessagePort): void {
    const address = this.#ports.get(port);
    if (address === undefined) return;
    this.#ports.delete(port);
    if (this.#outgoing.get(address) === port) this.#outgoing.delete(address);
    port.close();
  }

  /** The node at an address has ended. The next packet to that address, or from it, comes by another channel. */
  drop(address: Address): void {
    for (const [port, other] of this.#ports) if (other === address) this.#remove(port);
  }

  close(): void {
    this.#isClosed = true;
    for (const port of this.#ports.keys()) this.#remove(port);
  }
}

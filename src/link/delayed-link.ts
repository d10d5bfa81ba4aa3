// Decorates any link with the way that packets have to go: each leaves some milliseconds after it was sent, in order. A program
// can thus be tried on one machine as between distant ones.
import type { Clock } from "../support/clock.js";
import { after } from "../support/timers.js";
import { type Address, checkPacket, type Link } from "./link.js";
import { LinkDecorator } from "./link-decorator.js";

/** Bytes that may be on their way. Further packets are lost, as in a router whose queue is full: 64 MiB are 20 ms at 3 GB/s. */
const WAY_BYTES = 2 ** 26;

interface Delayed {
  readonly to: Address;
  readonly packet: Uint8Array;
  /** When it leaves, in milliseconds. */
  readonly due: number;
}

export class DelayedLink extends LinkDecorator {
  readonly #delay: number;
  readonly #clock: Clock;
  #way: Delayed[] = [];
  #bytes = 0;
  #stop: (() => void) | undefined;

  /** @param delay milliseconds */
  constructor(link: Link, delay: number, clock: Clock) {
    super(link);
    this.#delay = delay;
    this.#clock = clock;
    link.onRoom = () => this.#release();
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#bytes + packet.length > WAY_BYTES) return true;
    this.#bytes += packet.length;
    this.#way.push({ to, packet: new Uint8Array(packet), due: this.#clock.now() + this.#delay });
    if (this.#way.length === 1) this.#wait();
    return true;
  }

  #wait(): void {
    const [first] = this.#way;
    this.#stop = first && after(Math.max(0, first.due - this.#clock.now()), () => this.#release());
  }

  /** Sends what is due. A link without room calls this again once it has some. */
  #release(): void {
    this.#stop?.();
    this.#stop = undefined;
    const now = this.#clock.now();
    let count = 0;
    for (const { to, packet, due } of this.#way) {
      // A timer may be a millisecond early.
      if (due > now + 1) break;
      if (!this.link.send(to, packet)) break;
      this.#bytes -= packet.length;
      count++;
    }
    this.#way.splice(0, count);
    const [first] = this.#way;
    if (first !== undefined && first.due > now + 1) this.#wait();
  }

  close(): void {
    this.#stop?.();
    this.#way = [];
    this.link.close();
  }
}

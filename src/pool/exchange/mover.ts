// What is moved between this side and another one: the port by which it goes, and what has come by it.
//
// A message has one number for all that it moves, which goes by the port as [number, values]; the message itself has the
// number in place of each of the values, in their order. The port is posted to first, so that in Node all is there when the
// message is read. In a browser an event brings it, maybe later: the message is then read again.
//
// A reply to a call that was given up is never read. Replies that move something are short, and so come in their order: what
// has come for an earlier one than that which is read is dropped.
import { PamiError } from "../../index.js";
import { nodeModule } from "../../support/host.js";
import { after } from "../../support/timers.js";
import { dropMoved } from "./move.js";

/** Thrown while a message is read: what it moves has not come yet. */
export class NotCome extends PamiError {
  /** Resolves once it has come. */
  readonly come: Promise<void>;
  constructor(come: Promise<void>) {
    super("PAMIR_WOULD_BLOCK", "what a message moves has not come yet");
    this.come = come;
  }
}

/** Numbers are even for requests, odd for replies. */
const STEP = 2;
/** Milliseconds in which what an endpoint has posted before its end comes. */
const LAST_MS = 1000;

type Posted = [number: number, values: unknown[]];

export class PortMover {
  #port: MessagePort | undefined;
  /** Node's, which gives what has been posted at once. */
  readonly #receive = nodeModule("worker_threads")?.receiveMessageOnPort as
    | ((port: MessagePort) => { readonly message: Posted } | undefined)
    | undefined;
  readonly #come = new Map<number, unknown[]>();
  /** What has come for messages that are about to be read again. */
  readonly #held = new Map<number, unknown[]>();
  readonly #awaited = new Map<number, { resolve(): void; reject(error: unknown): void }>();
  /** The next numbers of requests and replies. */
  readonly #next: [request: number, reply: number] = [0, 1];
  /** No reply with a lower number is read any more. */
  #floor = 0;
  /** What the message that is being read has moved, and how much of it was taken. */
  #reading: { number: number; values: unknown[]; taken: number } | undefined;

  get port(): MessagePort | undefined {
    return this.#port;
  }

  /** Whether a message may be read before what it moves has come. */
  get isLate(): boolean {
    return this.#port !== undefined && this.#receive === undefined;
  }

  /** The last reply that has moved something. */
  get lastReply(): number {
    return this.#next[1] - STEP;
  }

  open(port: MessagePort): void {
    if (this.#port !== undefined) return;
    this.#port = port;
    if (this.#receive !== undefined) return;
    port.addEventListener("message", ({ data }: MessageEvent<Posted>) => this.#arrived(data));
    port.start();
  }

  /** The number of a message. */
  next(isReply: boolean): number {
    const kind = isReply ? 1 : 0;
    const number = this.#next[kind];
    this.#next[kind] += STEP;
    return number;
  }

  /** The next of the values that the message moves which is being read. @throws NotCome */
  take(number: number): unknown {
    if (this.#reading?.number !== number) {
      this.#reading = { number, values: this.#takeAll(number), taken: 0 };
    }
    const { values, taken } = this.#reading;
    if (taken >= values.length) throw notMoved(number);
    this.#reading.taken++;
    return values[taken];
  }

  #takeAll(number: number): unknown[] {
    const port = this.#port;
    if (port === undefined) throw notMoved(number);
    let values = this.#held.get(number) ?? this.#come.get(number);
    while (values === undefined && this.#receive !== undefined) {
      const received = this.#receive(port);
      if (received === undefined) throw notMoved(number);
      this.#arrived(received.message);
      values = this.#come.get(number);
    }
    if (values === undefined) {
      throw new NotCome(
        new Promise((resolve, reject) => {
          this.#awaited.set(number, { resolve, reject });
        }),
      );
    }
    this.#held.delete(number);
    this.#come.delete(number);
    if (number % STEP === 1) this.dropTo(number);
    return values;
  }

  #arrived([number, values]: Posted): void {
    const awaited = this.#awaited.get(number);
    if (awaited !== undefined) {
      this.#held.set(number, values);
      this.#awaited.delete(number);
      awaited.resolve();
    } else if (number % STEP === 1 && number < this.#floor) dropMoved(values);
    else this.#come.set(number, values);
  }

  /** No reply up to this one is read any more, but those that are awaited. */
  dropTo(reply: number): void {
    this.#floor = Math.max(this.#floor, reply + STEP);
    if (this.#receive !== undefined && this.#port !== undefined) {
      for (let got = this.#receive(this.#port); got !== undefined; got = this.#receive(this.#port))
        this.#arrived(got.message);
    }
    for (const [number, values] of this.#come) {
      if (number % STEP === 0 || number >= this.#floor) continue;
      this.#come.delete(number);
      dropMoved(values);
    }
  }

  /** The other side has ended. */
  close(): void {
    const end = (): void => {
      this.#port?.close();
      for (const { reject } of this.#awaited.values()) {
        reject(new PamiError("PAMIR_SHUTDOWN", "the endpoint has ended before what it moved has come"));
      }
      this.#awaited.clear();
      for (const values of this.#come.values()) dropMoved(values);
      this.#come.clear();
    };
    if (this.#awaited.size > 0) after(LAST_MS, end, false);
    else end();
  }
}

function notMoved(number: number): PamiError {
  return new PamiError(
    "PAMIR_INVAL",
    `a message has number ${number} in place of what it moves, and nothing has come for it`,
  );
}

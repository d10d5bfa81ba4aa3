// Streams of bytes over NATS, for the rendezvous: rank 0 listens at a subject. Messages may be lost when a connection to the
// server breaks, so each has a number, and is sent again until it is acknowledged.
//
// ╒═══ message ══════════════════════════════════════════════════════════════════════════════════════════════════╕
//  byte  field   bytes  meaning
//     0  kind        1  ACK: nothing but the acknowledgment; DATA; END: the sender writes no more; RESET: it has no such stream
//     1  number      4  of DATA and END in their direction, from 1; big-endian
//     5  ack         4  the last number up to which the sender has everything
//     9  data            of DATA, up to CHUNK bytes, or what the server takes
//
// A message to the subject of the listener begins a stream if its reply subject is new. The listener answers from a subject of
// the stream's own, to which the server also says that the other side has gone (status 503).
import type { PamiError } from "../../core/error.js";
import { checkRights, hasNoListener, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { systemClock } from "../../support/clock.js";
import { after } from "../../support/timers.js";
import type { Stream } from "../lines.js";
import { needModule } from "../node.js";

const NONE = new Uint8Array(0);
const ACK = 0;
const DATA = 1;
const END = 2;
const RESET = 3;
const HEAD = 9;
const CHUNK = 32_768;
/** Milliseconds after which what is not acknowledged is sent again, and between messages of a stream that has nothing to say. */
const AGAIN_MS = 250;
const ALIVE_MS = 1000;
/** Milliseconds without a sign of the other side: its process may be stopped, or the server gone. */
const SILENCE_MS = 60_000;
/** Milliseconds for which the server says that the other side has gone: one that connects again is back before. */
const ABSENT_MS = 5000;

/** What a stream sends by. */
type Publish = (message: Uint8Array) => void;

/** One side of a stream. */
class NatsStream {
  readonly duplex: Stream;
  readonly #publish: Publish;
  readonly #chunk: number;
  readonly #onEnd: () => void;
  readonly #onAnswer: () => void;
  /** Messages that are not acknowledged, and what follows the acknowledgment of each. */
  readonly #unacknowledged: { readonly message: Uint8Array; readonly done: (error?: Error | null) => void }[] = [];
  #first = 1;
  #received = 0;
  #sentAt = systemClock.now();
  #heardAt = systemClock.now();
  #absentSince = 0;
  #hasEnded = false;
  #cancel: () => void;

  /**
   * @param chunk bytes of data in a message
   * @param onAnswer called at the first message of the other side
   * @param onEnd called once the stream is closed
   */
  constructor(publish: Publish, chunk: number, onAnswer: () => void, onEnd: () => void) {
    this.#publish = publish;
    this.#chunk = chunk;
    this.#onAnswer = onAnswer;
    this.#onEnd = onEnd;
    const { Duplex } = needModule("stream");
    this.duplex = new Duplex({
      read: () => {},
      write: (bytes: Uint8Array, _, done) => this.#write(bytes, done),
      final: (done) => this.#send(END, NONE, done),
      destroy: (error, done) => {
        const isOpen = !this.#hasEnded;
        this.#close();
        if (isOpen) this.#tryPublish(messageOf(RESET, 0, 0));
        done(error);
      },
    });
    this.#cancel = after(AGAIN_MS, this.#look, false);
  }

  /** The first message of either side. */
  greet(): void {
    this.#acknowledge();
  }

  #write(bytes: Uint8Array, done: (error?: Error | null) => void): void {
    const chunk = this.#chunk;
    for (let at = 0; at < bytes.length; at += chunk) {
      const isLast = at + chunk >= bytes.length;
      this.#send(DATA, bytes.subarray(at, at + chunk), isLast ? done : () => {});
    }
    if (bytes.length === 0) done();
  }

  #send(kind: number, data: Uint8Array, done: (error?: Error | null) => void): void {
    const message = messageOf(kind, this.#first + this.#unacknowledged.length, this.#received, data);
    this.#unacknowledged.push({ message, done });
    this.#emit(message);
  }

  #emit(message: Uint8Array): void {
    this.#sentAt = systemClock.now();
    const error = this.#tryPublish(message);
    if (error !== undefined) this.duplex.destroy(error as Error);
  }

  /** @returns the error of a connection that is closed */
  #tryPublish(message: Uint8Array): unknown {
    try {
      this.#publish(message);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #acknowledge(): void {
    this.#emit(messageOf(ACK, 0, this.#received));
  }

  readonly #look = (): void => {
    if (this.#hasEnded) return;
    const now = systemClock.now();
    const isAbsent = this.#absentSince > 0 && now - this.#absentSince > ABSENT_MS;
    if (isAbsent || now - this.#heardAt > SILENCE_MS) {
      this.duplex.destroy(new Error(isAbsent ? "the other side has gone" : "the other side does not answer"));
      return;
    }
    this.#cancel = after(AGAIN_MS, this.#look, false);
    if (this.#unacknowledged.length > 0) for (const { message } of this.#unacknowledged) this.#emit(message);
    else if (now - this.#sentAt >= ALIVE_MS) this.#acknowledge();
  };

  /** A message of the other side, or of the server. */
  hear(message: NatsMessage): void {
    const { data } = message;
    if (this.#hasEnded) return;
    if (hasNoListener(message)) {
      if (this.#absentSince === 0) this.#absentSince = systemClock.now();
      return;
    }
    if (data.length < HEAD) return;
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    const [kind, number, ack] = [view.getUint8(0), view.getUint32(1), view.getUint32(5)];
    this.#heardAt = systemClock.now();
    this.#absentSince = 0;
    this.#onAnswer();
    if (kind === RESET) {
      this.#close();
      this.duplex.destroy();
      return;
    }
    while (this.#first <= ack && this.#unacknowledged.length > 0) {
      this.#first++;
      this.#unacknowledged.shift()?.done();
    }
    if (kind !== DATA && kind !== END) return;
    if (number === this.#received + 1) {
      this.#received = number;
      this.duplex.push(kind === END ? null : data.slice(HEAD));
    }
    this.#acknowledge();
  }

  #close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancel();
    for (const { done } of this.#unacknowledged.splice(0)) done(new Error("the stream is closed"));
    this.#onEnd();
  }
}

/** Whether a message may be the first one of a stream: later ones also come for a stream that this side has closed. */
function isFirst(data: Uint8Array): boolean {
  if (data.length < HEAD) return false;
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  return view.getUint8(0) <= DATA && view.getUint32(1) <= 1 && view.getUint32(5) === 0;
}

/** Bytes of data that a message may have: the client throws at a longer one. */
function chunkOf({ info }: NatsConnection): number {
  return Math.max(1, Math.min(CHUNK, (info?.max_payload ?? CHUNK) - HEAD));
}

function messageOf(kind: number, number: number, ack: number, data: Uint8Array = NONE): Uint8Array {
  const message = new Uint8Array(HEAD + data.length);
  const view = new DataView(message.buffer);
  view.setUint8(0, kind);
  view.setUint32(1, number);
  view.setUint32(5, ack);
  message.set(data, HEAD);
  return message;
}

/**
 * Listens at a subject of a job.
 * @param onStream called with each stream whose other side has written to it
 * @returns a function that ends this, and leaves the streams @throws PAMIR_NATS this user may not
 */
export async function listenAtSubject(
  connection: NatsConnection,
  job: string,
  subject: string,
  onStream: (stream: Stream) => void,
): Promise<() => void> {
  const streams = new Map<string, NatsStream>();
  const numbers = new Map<string, string>();
  /** Streams without data: the other side gives one up if it was told before that nothing listens here. */
  const empty = new Set<NatsStream>();
  let count = 0;
  const open = (to: string): NatsStream => {
    const number = `${++count}`;
    const reply = `${subject}.${number}`;
    const publish = (message: Uint8Array): void => connection.publish(to, message, { reply });
    const close = (): void => {
      streams.delete(to);
      numbers.delete(number);
      empty.delete(stream);
    };
    const stream = new NatsStream(publish, chunkOf(connection), () => {}, close);
    streams.set(to, stream);
    numbers.set(number, to);
    empty.add(stream);
    stream.duplex.on("error", () => {});
    stream.greet();
    return stream;
  };
  const callback = (error: Error | null, message: NatsMessage): void => {
    // Without a reply subject, the client has "" there.
    if (error !== null || !message.reply) return;
    const kind = message.data[0];
    const stream = streams.get(message.reply) ?? (isFirst(message.data) ? open(message.reply) : undefined);
    if (stream === undefined) return;
    if ((kind === DATA || kind === END) && empty.delete(stream)) onStream(stream.duplex);
    stream.hear(message);
  };
  const toStream = (error: Error | null, message: NatsMessage): void => {
    const to = numbers.get(message?.subject.slice(subject.length + 1) ?? "");
    if (error === null && to !== undefined) streams.get(to)?.hear(message);
  };
  const subscriptions = [
    connection.subscribe(subject, { callback }),
    connection.subscribe(`${subject}.*`, { callback: toStream }),
  ];
  const stop = (): void => {
    for (const one of subscriptions) one.unsubscribe();
  };
  try {
    await checkRights(connection, job, subject);
    return stop;
  } catch (error) {
    stop();
    throw error;
  }
}

/**
 * Connects to a subject.
 * @param own a subject that nothing else uses
 * @param denied resolves if the server refuses the connection's user a subject
 * @throws PAMIR_NATS what `denied` resolves with; Error nothing answers in time
 */
export async function connectToSubject(
  connection: NatsConnection,
  subject: string,
  own: string,
  timeout: number,
  denied: Promise<PamiError>,
): Promise<Stream> {
  let answered = (): void => {};
  let fail = (_: unknown): void => {};
  const subscription = connection.subscribe(own, {
    callback: (error, message) => {
      if (error !== null) return;
      if (hasNoListener(message)) fail(new Error("nothing listens there"));
      stream.hear(message);
    },
  });
  const stream = new NatsStream(
    (message) => connection.publish(subject, message, { reply: own }),
    chunkOf(connection),
    () => answered(),
    () => subscription.unsubscribe(),
  );
  await new Promise<void>((resolve, reject) => {
    const cancel = after(timeout, () => fail(new Error(`no answer within ${timeout} ms`)));
    const settle = (): void => {
      cancel();
      fail = () => {};
    };
    answered = () => {
      settle();
      resolve();
    };
    fail = (error) => {
      settle();
      stream.duplex.destroy();
      reject(error);
    };
    void denied.then((error) => fail(error));
    stream.duplex.on("error", () => {});
    stream.greet();
  });
  return stream.duplex;
}

// pamir/port: something with a MessagePort's shape that goes by pamir, so that Comlink and whatever else takes such a port
// runs over it unchanged. Values are bytes on the way, by a codec; a MessagePort that is transferred stays on its own
// thread, and what is posted to it is carried over: a channel of its own, beside the port's.
//
//   message   header  0  channel, as its opener numbers it: from 1 up its own, negative the other side's, 0 the port's
//                     4  MessagePorts that come with it, or CLOSE
//             payload the value by the codec; with ports, { value, channels }
import {
  type AbortSignalLike,
  type Codec,
  type Context,
  EAGAIN,
  type Endpoint,
  type HostMessagePort,
  type Message,
  PamiError,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
  SUCCESS,
} from "../index.js";
import { throwUncaught } from "../support/host.js";
import { isPromised, promised } from "../support/promise.js";

/** Bytes of a message's header. */
const HEADER_BYTES = 8;
/** Stands in place of a count of ports when the channel is closed. */
const CLOSE = -1;
/** Key of the object that stands for a MessagePort in a value; its value is an index of `channels`. */
const MARK = "pamir:port";

/** Options of `portTo`. */
export interface PortOptions {
  /** Dispatch id of both ends. It serves ports only, any number of them to different endpoints. */
  readonly id: number;
  /** Turns values into bytes: `@msgpack/msgpack`, `cbor-x`, `{ encode: v8.serialize, decode: v8.deserialize }`, … */
  readonly codec: Codec<unknown>;
}

/** The event of a listener: the main parts of a MessageEvent. */
export interface PortEvent {
  /** `message`, or `close` when no more messages come. */
  readonly type: "message" | "close";
  /** The value that was posted. */
  readonly data: unknown;
  /** The MessagePorts that came with it. */
  readonly ports: readonly HostMessagePort[];
  /** The port that received it. */
  readonly target: Port;
}

type Listener = ((event: PortEvent) => void) | { handleEvent(event: PortEvent): void };

/** A value on its way out, or in. */
interface Packet {
  readonly channel: number;
  readonly ports: number;
  readonly bytes: Uint8Array;
  isComplete: boolean;
}

/** Another port's traffic, carried over. */
interface Bridge {
  readonly port: MessagePort;
  /** Ids of its requests that are not answered: see isRequest(). */
  readonly requests: Set<string>;
}

/**
 * Makes a port to an endpoint. The endpoint needs a port back to this context's endpoint.
 * @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN
 */
export function portTo(context: Context, to: Endpoint, options: PortOptions): Port {
  if (typeof (context as Partial<Context> | null)?.whenEnded !== "function") {
    throw new PamiError("PAMIR_INVAL", `context of portTo() is ${show(context)}, not a Context`);
  }
  if (typeof options !== "object" || options === null) {
    throw new PamiError("PAMIR_INVAL", `options of portTo() are ${show(options)}, not { id, codec }`);
  }
  for (const key in options) {
    if (key !== "id" && key !== "codec") {
      throw new PamiError("PAMIR_INVAL", `options of portTo(): there is no ${show(key)}, but id, codec`);
    }
  }
  const { id, codec } = options;
  if (typeof codec?.encode !== "function" || typeof codec.decode !== "function") {
    throw new PamiError("PAMIR_INVAL", `codec of portTo() is ${show(codec)}, without encode() and decode()`);
  }
  let hub = hubs.get(context);
  if (hub === undefined) {
    hub = new Hub(context);
    hubs.set(context, hub);
  }
  return hub.open(to, id, codec);
}

const hubs = new WeakMap<Context, Hub>();

/**
 * Ends a hub's wait. Each wait adds a listener and removes it: with an AbortSignal of the host's, a call over Comlink took 93 µs
 * instead of 80, both sides on one core.
 */
class Stop implements AbortSignalLike {
  readonly #listeners = new Set<() => void>();
  readonly reason = undefined;
  aborted = false;

  addEventListener(_: "abort", listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }

  abort(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
  }
}

/** The ports of one context. */
class Hub {
  readonly #context: Context;
  readonly #ports = new Map<number, Map<Endpoint, Port>>();
  #started = 0;
  #stop = new Stop();

  constructor(context: Context) {
    this.#context = context;
  }

  open(to: Endpoint, id: number, codec: Codec<unknown>): Port {
    let ports = this.#ports.get(id);
    if (ports?.has(to)) throw new PamiError("PAMIR_INVAL", `endpoint ${to} has a port with dispatch id ${id} already`);
    // It checks the endpoint, before the dispatch id is taken.
    const port = new Port(this.#context, to, id, codec, this);
    if (ports === undefined) {
      const opened = new Map<Endpoint, Port>();
      this.#context.dispatch(id, (message) => {
        const port = opened.get(message.origin);
        if (port !== undefined) port.receive(message);
        else if (!message.immediate) message.discard();
      });
      ports = opened;
      this.#ports.set(id, ports);
    }
    ports.set(to, port);
    return port;
  }

  closed(to: Endpoint, id: number): void {
    this.#ports.get(id)?.delete(to);
  }

  /** Called when a port starts: the hub advances the context while any port is started. */
  started(): void {
    if (this.#started++ === 0) void this.#advance(this.#stop);
  }

  stopped(): void {
    if (--this.#started > 0) return;
    this.#stop.abort();
    this.#stop = new Stop();
  }

  async #advance(signal: AbortSignalLike): Promise<void> {
    while (!this.#context.closed) {
      try {
        await this.#context.progress({ signal });
      } catch (error) {
        const { code } = error as { code?: string };
        if (code === "PAMIR_CANCELED") return;
        if (code === "PAMIR_CLOSED") break;
        // A handler threw it, or it is an interrupt, which is meant for waits of the user.
        if (code !== "PAMIR_INTERRUPTED") throwUncaught(error);
      }
    }
    for (const ports of this.#ports.values()) for (const port of ports.values()) port.end(CLOSED);
  }
}

/**
 * An object with the shape of a MessagePort. Posted values are copied, transferred buffers included. As with a MessagePort,
 * the queue of posts that wait for room has no limit. The port advances its context from start() on; setting `onmessage`
 * calls start(). When the endpoint ends, listeners get a `close` event, and pending requests in Comlink's form get an error
 * with code PAMIR_SHUTDOWN.
 */
export class Port {
  readonly #context: Context;
  readonly #to: Endpoint;
  readonly #id: number;
  readonly #codec: Codec<unknown>;
  readonly #hub: Hub;
  readonly #listeners = { message: new Set<Listener>(), close: new Set<Listener>() };
  #onmessage: ((event: PortEvent) => void) | null = null;
  /** Packets that came before start(), and packets that are still incomplete, with all later ones. */
  readonly #incoming: Packet[] = [];
  /** Packets that wait for room. */
  readonly #waiting: Packet[] = [];
  readonly #bridges = new Map<number, Bridge>();
  readonly #requests = new Set<string>();
  /** The header of short packets. */
  readonly #header = new Int32Array(HEADER_BYTES / 4);
  #channels = 0;
  #isStarted = false;
  #isClosed = false;
  /** Why the port has ended. */
  #reason: Reason | undefined;

  /** @internal */
  constructor(context: Context, to: Endpoint, id: number, codec: Codec<unknown>, hub: Hub) {
    this.#context = context;
    this.#to = to;
    this.#id = id;
    this.#codec = codec;
    this.#hub = hub;
    context.whenEnded(to, () => this.end({ code: "PAMIR_SHUTDOWN", message: `endpoint ${to} has ended` }));
  }

  /** An additional listener, or null. Setting a listener starts the port. */
  get onmessage(): ((event: PortEvent) => void) | null {
    return this.#onmessage;
  }

  set onmessage(listener: ((event: PortEvent) => void) | null) {
    if (listener !== null && typeof listener !== "function") {
      throw new PamiError("PAMIR_INVAL", `onmessage of a port is ${show(listener)}, not a function, nor null`);
    }
    this.#onmessage = listener;
    if (listener !== null) this.start();
  }

  /** Adds a listener. The port delivers messages from start() on. */
  addEventListener(type: "message" | "close", listener: Listener): void {
    if (typeof listener !== "function" && typeof listener?.handleEvent !== "function") {
      throw new PamiError(
        "PAMIR_INVAL",
        `listener of a port is ${show(listener)}, not a function, nor { handleEvent }`,
      );
    }
    this.#listeners[type]?.add(listener);
  }

  /** Removes a listener. */
  removeEventListener(type: "message" | "close", listener: Listener): void {
    this.#listeners[type]?.delete(listener);
  }

  /** Delivers messages from now on, earlier ones first, and advances the context. */
  start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    this.#hub.started();
    // Not within the caller: listeners may be added behind it.
    queueMicrotask(() => this.#deliver());
  }

  /**
   * Posts a value. The codec reads it before this returns, and the caller keeps it. Posts that find no room wait in order.
   * @throws errors of the codec; PAMIR_INVAL for a transfer of anything but buffers and MessagePorts
   */
  postMessage(data: unknown, transfer: readonly object[] | { transfer?: readonly object[] } = []): void {
    const list: unknown = Array.isArray(transfer)
      ? transfer
      : ((transfer as { transfer?: unknown } | null)?.transfer ??
        (transfer !== null && isOptions(transfer) ? [] : transfer));
    if (!Array.isArray(list)) throw new PamiError("PAMIR_INVAL", `transfer is ${show(list)}, not an array`);
    if (!this.#isClosed) this.#post(0, this.#requests, data, list);
  }

  /** Stops delivery. Unlike with a MessagePort, the other end stays open. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hub.closed(this.#to, this.#id);
    if (this.#isStarted) this.#hub.stopped();
    for (const { port } of this.#bridges.values()) port.close();
    this.#bridges.clear();
    this.#waiting.length = 0;
    this.#incoming.length = 0;
  }

  /** @internal Takes a message for this port. */
  receive(message: Message): void {
    const words = new Int32Array(message.header.slice().buffer);
    const bytes = new Uint8Array(message.payloadBytes);
    // The side that opens a channel numbers it.
    const channel = -(words[0] as number);
    const packet: Packet = { channel, ports: words[1] as number, bytes, isComplete: message.immediate };
    this.#incoming.push(packet);
    if (message.immediate) message.copyTo(bytes);
    else {
      message.receive(bytes, (_, result) => {
        // Of a message that breaks off nothing is delivered, and nothing comes behind it.
        packet.isComplete = result === SUCCESS;
        this.#deliver();
      });
    }
    this.#deliver();
  }

  #deliver(): void {
    while (this.#isStarted && this.#incoming[0]?.isComplete) {
      const packet = this.#incoming.shift() as Packet;
      reporting(() => this.#take(packet));
    }
  }

  #take({ channel, ports, bytes }: Packet): void {
    if (ports === CLOSE) {
      this.#bridges.get(channel)?.port.close();
      this.#bridges.delete(channel);
      return;
    }
    const decoded = this.#codec.decode(bytes);
    if (isPromised(decoded)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `decode() of a port's codec gave ${show(decoded)}: it gives its value at once`,
      );
    }
    const [data, given] = ports > 0 ? this.#withPorts(decoded as Marked) : [decoded, []];
    if (channel === 0) {
      forget(this.#requests, data);
      this.#emit({ type: "message", data, ports: given, target: this });
      return;
    }
    const bridge = this.#bridges.get(channel);
    if (bridge === undefined) return;
    forget(bridge.requests, data);
    bridge.port.postMessage(data, given);
  }

  #emit(event: PortEvent): void {
    if (event.type === "message") reporting(() => this.#onmessage?.(event));
    for (const listener of [...this.#listeners[event.type]]) {
      reporting(() => (typeof listener === "function" ? listener(event) : listener.handleEvent(event)));
    }
  }

  #post(channel: number, requests: Set<string>, data: unknown, transfer: readonly object[]): void {
    if (isRequest(data)) requests.add(data.id);
    if (this.#context.closed) this.end(CLOSED);
    if (this.#reason !== undefined) {
      this.#refuse(channel, requests);
      return;
    }
    const ports = transfer.filter((each) => each instanceof MessagePort);
    const other = transfer.find((each) => !(each instanceof MessagePort) && !(each instanceof ArrayBuffer));
    if (other !== undefined) {
      throw new PamiError(
        "PAMIR_INVAL",
        `transfer of ${show(other)}: a port carries buffers, which it copies, and MessagePorts`,
      );
    }
    const value = ports.length === 0 ? data : this.#withoutPorts(data, ports);
    const bytes: unknown = this.#codec.encode(value);
    if (!(bytes instanceof Uint8Array)) {
      const why = isPromised(bytes) ? ": it gives its bytes at once" : "";
      throw new PamiError("PAMIR_INVAL", `encode() of a port's codec gave ${show(bytes)}, not a Uint8Array${why}`);
    }
    const packet = { channel, ports: ports.length, bytes, isComplete: true };
    if (this.#waiting.length === 0 && this.#attemptAtOnce(packet)) return;
    // It may wait for room.
    this.#send(this.#codec.inPlace ? { ...packet, bytes: bytes.slice() } : packet);
  }

  #send(packet: Packet): void {
    if (this.#waiting.length > 0) {
      this.#waiting.push(packet);
      return;
    }
    if (this.#attempt(packet) !== EAGAIN) return;
    this.#waiting.push(packet);
    this.#awaitRoom();
  }

  /**
   * Sends a short packet, whose bytes are copied. An `onLocal` would be an event, which ends the hub's wait: two waits a call.
   * @returns false: the packet is not short, or has no room
   */
  #attemptAtOnce({ channel, ports, bytes }: Packet): boolean {
    if (HEADER_BYTES + bytes.length > SEND_IMMEDIATE_MAX) return false;
    this.#header[0] = channel;
    this.#header[1] = ports;
    return this.#context.sendImmediate(this.#to, this.#id, this.#header, bytes) !== EAGAIN;
  }

  #attempt(packet: Packet): number {
    if (this.#attemptAtOnce(packet)) return SUCCESS;
    const { channel, ports, bytes } = packet;
    // With onLocal the payload is not copied. No other code has these bytes.
    const onLocal = () => {};
    const header = Int32Array.of(channel, ports);
    return this.#context.send({ to: this.#to, dispatch: this.#id, header, payload: bytes, onLocal });
  }

  #awaitRoom(): void {
    const [{ bytes }] = this.#waiting as [Packet];
    const total = HEADER_BYTES + bytes.length;
    const flush = (): number => {
      while (this.#waiting.length > 0 && this.#attempt(this.#waiting[0] as Packet) !== EAGAIN) this.#waiting.shift();
      return this.#waiting.length > 0 ? EAGAIN : SUCCESS;
    };
    if (total > RECV_IMMEDIATE_MAX) {
      // It may also need a place in the pending queue, so each advance() tries again.
      this.#context.post(flush);
    } else {
      this.#context.whenRoom(this.#to, total, () => {
        if (flush() === EAGAIN) this.#awaitRoom();
      });
    }
  }

  /** Gives each transferred port a channel, and replaces it in the value by a mark. */
  #withoutPorts(data: unknown, ports: readonly MessagePort[]): Marked {
    const channels = ports.map((port) => {
      const channel = ++this.#channels;
      this.#bridge(channel, port);
      return channel;
    });
    const value = replace(data, (each) => {
      const place = ports.indexOf(each as MessagePort);
      return place < 0 ? each : { [MARK]: place };
    });
    return { value, channels };
  }

  #withPorts({ value, channels }: Marked): [data: unknown, ports: MessagePort[]] {
    const ports = channels.map((channel) => {
      const { port1, port2 } = new MessageChannel();
      this.#bridge(-channel, port1);
      return port2;
    });
    const data = replace(value, (each) => {
      const place = (each as { [MARK]?: number } | null)?.[MARK];
      return place === undefined ? each : ports[place];
    });
    return [data, ports];
  }

  #bridge(channel: number, port: MessagePort): void {
    const requests = new Set<string>();
    this.#bridges.set(channel, { port, requests });
    port.onmessage = ({ data, ports }) => this.#post(channel, requests, data, ports ?? []);
    port.addEventListener("close", () => {
      if (this.#bridges.delete(channel) && this.#reason === undefined && !this.#context.closed) {
        this.#send({ channel, ports: CLOSE, bytes: new Uint8Array(), isComplete: true });
      }
    });
    // In Node it would keep the thread running.
    (port as { unref?: () => void }).unref?.();
  }

  /** @internal Ends the port: no more messages come. */
  end(reason: Reason): void {
    if (this.#reason !== undefined || this.#isClosed) return;
    this.#reason = reason;
    this.#waiting.length = 0;
    this.#refuse(0, this.#requests);
    for (const [channel, { port, requests }] of this.#bridges) {
      this.#refuse(channel, requests);
      // It is closed behind the last answer.
      queueMicrotask(() => port.close());
    }
    this.#emit({ type: "close", data: undefined, ports: [], target: this });
  }

  /** Rejects the requests that can get no reply any more. */
  #refuse(channel: number, requests: Set<string>): void {
    const value = { isError: true, value: { name: "PamiError", ...this.#reason } };
    const thrown = { type: "HANDLER", name: "throw", value };
    for (const id of requests) {
      const data = { ...thrown, id };
      if (channel !== 0) this.#bridges.get(channel)?.port.postMessage(data);
      // Behind what the caller does with the promise that it is about to get.
      else queueMicrotask(() => this.#emit({ type: "message", data, ports: [], target: this }));
    }
    requests.clear();
  }
}

/** Calls a listener. As with an EventTarget, what it throws is an uncaught error, and all else goes on. */
function reporting(listener: () => unknown): void {
  try {
    promised(listener());
  } catch (error) {
    throwUncaught(error);
  }
}

/** Formats a value for an error's text. */
function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return String(value);
  try {
    const name: unknown = typeof value === "function" ? value.name : value.constructor?.name;
    if (typeof name === "string") return typeof value === "function" ? `function ${name}` : name;
  } catch {}
  return typeof value;
}

function isOptions(transfer: unknown): boolean {
  return typeof transfer === "object" && !ArrayBuffer.isView(transfer) && !(transfer instanceof ArrayBuffer);
}

/** Why a port has ended, as the error of a request says it. */
interface Reason {
  readonly code: string;
  readonly message: string;
}

const CLOSED: Reason = { code: "PAMIR_CLOSED", message: "the port's context is closed" };

interface Marked {
  readonly value: unknown;
  readonly channels: readonly number[];
}

/** Whether a value is a request of Comlink: it has an id, and a type that replies do not have. */
function isRequest(data: unknown): data is { id: string } {
  const { id, type } = (data ?? {}) as { id?: unknown; type?: unknown };
  return typeof id === "string" && typeof type === "string" && type !== "RAW" && type !== "HANDLER";
}

function forget(requests: Set<string>, data: unknown): void {
  if (requests.size > 0) requests.delete((data as { id: string } | null)?.id ?? "");
}

/** Copies a value with some parts replaced, within plain objects and arrays. */
function replace(value: unknown, by: (part: unknown) => unknown): unknown {
  const replaced = by(value);
  if (replaced !== value || typeof value !== "object" || value === null) return replaced;
  if (Array.isArray(value)) return value.map((part) => replace(part, by));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replace(part, by)]));
}

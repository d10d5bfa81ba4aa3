// A rank in TypeScript: its engine, the sends that wait for room, and its waits.
import { type Client, type Context, EAGAIN, type Geometry, PamiError, type ProgressOptions } from "../index.js";
import { CopyPlaces } from "./buffers.js";
import { Communicators } from "./communicator.js";
import { MessageEngine, NO_ROOM, PeerEnded, type RankGroup, type Request } from "./engine.js";

/** A send, which begins once its target has room. */
export interface CommSend {
  readonly group: RankGroup;
  readonly to: number;
  readonly tag: number;
  readonly payload: Uint8Array;
  readonly synchronous: boolean;
  /** The engine's request, or NO_ROOM. */
  entry: Request;
  /** Why it can't begin. */
  failure: unknown;
}

const ALWAYS = (): boolean => true;

export class Rank {
  readonly client: Client;
  readonly engine: MessageEngine;
  readonly communicators: Communicators;
  readonly places: CopyPlaces;
  /** Whether finalize() has been called. */
  isFinalized = false;
  /** Sends that have found no room, in the order of their calls. */
  #waiting: CommSend[] = [];

  constructor(client: Client, context: Context, world: Geometry) {
    this.client = client;
    this.engine = new MessageEngine(client, context);
    this.communicators = new Communicators(client, context, world);
    this.places = new CopyPlaces(client);
  }

  /** @throws PAMIR_CLOSED */
  checkOpen(call: string): void {
    if (this.isFinalized) throw new PamiError("PAMIR_CLOSED", `${call}() after finalize()`);
  }

  /** Before anything is begun that would have to be taken back. @throws PAMIR_WOULD_BLOCK, PAMIR_NOT_ISOLATED, PAMIR_REENTRANT */
  checkMayBlock(): void {
    this.engine.waitUntil(ALWAYS);
  }

  /** Begins a send now, or once there is room. */
  begin(send: CommSend): void {
    const endpoint = send.group.endpoints[send.to];
    // None overtakes an earlier one to the same rank.
    const isBehind = this.#waiting.some(({ group, to }) => group.endpoints[to] === endpoint);
    if (!isBehind) this.#try(send);
    if (send.entry !== NO_ROOM) return;
    this.#waiting.push(send);
    if (this.#waiting.length > 1) return;
    // Each round tries again: also those of waits for other things.
    this.engine.context.post(() => {
      this.#beginWaiting();
      return this.#waiting.length > 0 ? EAGAIN : undefined;
    });
  }

  #try(send: CommSend): void {
    try {
      send.entry = this.engine.trySend(send.group, send.to, send.tag, send.payload, send.synchronous);
    } catch (error) {
      send.entry = 0;
      send.failure = error;
    }
  }

  #beginWaiting(): void {
    const full = new Set<number | undefined>();
    this.#waiting = this.#waiting.filter((send) => {
      const endpoint = send.group.endpoints[send.to];
      if (full.has(endpoint)) return true;
      this.#try(send);
      if (send.entry !== NO_ROOM) return false;
      full.add(endpoint);
      return true;
    });
  }

  /** Whether all sends are over, and all messages out. */
  get isDrained(): boolean {
    return this.#waiting.length === 0 && this.engine.isDrained && this.engine.context.drained;
  }

  /** Waits for a condition. Does not block the thread. @param call for errors @throws as `context.progress()` */
  async until(call: string, condition: () => boolean, options?: ProgressOptions): Promise<void> {
    try {
      await this.engine.until(condition, options);
    } catch (error) {
      throw this.#named(call, error);
    }
  }

  /** Waits for a condition. Blocks the thread. */
  block(condition: () => boolean): void {
    this.engine.waitUntil(condition);
  }

  /** An error of a wait, with the name of the call for which it was. */
  #named(call: string, error: unknown): unknown {
    const { code, message, cause } = error as PamiError;
    const texts: Partial<Record<string, string>> = {
      PAMIR_TIMEDOUT: "was not over in time",
      PAMIR_CANCELED: "was canceled",
      PAMIR_INTERRUPTED: "was interrupted",
      PAMIR_CLOSED: "the context was closed",
    };
    const text = texts[code];
    if (text === undefined || !message.startsWith("collective()")) return error;
    return new PamiError(code, `${call}() of rank ${this.communicators.world.rank}: ${text}`, { cause });
  }
}

/** An error of the engine as one of the package. */
export function asPamiError(call: string, error: unknown): unknown {
  return error instanceof PeerEnded ? new PamiError("PAMIR_SHUTDOWN", `${call}(): ${error.message}`) : error;
}

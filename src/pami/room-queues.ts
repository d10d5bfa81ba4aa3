// Sends that wait until their messages are accepted, in order for each endpoint: `context.sendWhenRoom()`. One loop advances
// for all of them, and tries the first of each endpoint again after each round.
import type { Endpoint } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import { EAGAIN, type Result } from "../core/result.js";
import type { SendParameters } from "../protocol/eager/send-parameters.js";
import { nextTurn, throwUncaught } from "../support/host.js";

/** What the queues need of their context. */
export interface RoomHost {
  /** As `Context.send`. */
  send(parameters: SendParameters): Result;
  /** Advances until the condition holds. @throws PAMIR_CLOSED, PAMIR_INTERRUPTED; what handlers throw */
  until(condition: () => boolean): Promise<void>;
  /** Wakes until(), to ask its condition again. */
  ring(): void;
  readonly isClosed: boolean;
}

/** A send that waits. */
export interface WaitingSend {
  readonly parameters: SendParameters;
  /** Called with its result, never EAGAIN. */
  accepted(result: Result): void;
  failed(error: unknown): void;
}

export class RoomQueues {
  readonly #host: RoomHost;
  readonly #queues = new Map<Endpoint, Set<WaitingSend>>();
  #isTrying = false;

  constructor(host: RoomHost) {
    this.#host = host;
  }

  /** Whether sends to an endpoint wait. */
  has(to: Endpoint): boolean {
    return this.#queues.has(to);
  }

  add(send: WaitingSend): void {
    const { to } = send.parameters;
    const queue = this.#queues.get(to);
    if (queue === undefined) this.#queues.set(to, new Set([send]));
    else queue.add(send);
    if (!this.#isTrying) void this.#tryOn();
  }

  /** Takes back a send that waits. @returns whether it did */
  remove(send: WaitingSend): boolean {
    const { to } = send.parameters;
    const queue = this.#queues.get(to);
    if (queue?.delete(send) !== true) return false;
    if (queue.size === 0) this.#queues.delete(to);
    this.#host.ring();
    return true;
  }

  /** Tries until no send waits. */
  async #tryOn(): Promise<void> {
    this.#isTrying = true;
    while (this.#queues.size > 0) {
      try {
        await this.#host.until(() => this.#tryAll());
      } catch (error) {
        const isInterrupted = error instanceof PamiError && error.code === "PAMIR_INTERRUPTED";
        if (this.#host.isClosed || isInterrupted) this.#failAll(error);
        else {
          // A handler threw it, not a send.
          throwUncaught(error);
          await nextTurn();
        }
      }
    }
    this.#isTrying = false;
  }

  /** @returns whether no send waits any more */
  #tryAll(): boolean {
    for (const [to, queue] of this.#queues) {
      for (const send of queue) {
        if (!this.#try(send)) break;
        queue.delete(send);
      }
      if (queue.size === 0) this.#queues.delete(to);
    }
    return this.#queues.size === 0;
  }

  /** @returns false: there is no room yet */
  #try(send: WaitingSend): boolean {
    try {
      const result = this.#host.send(send.parameters);
      if (result === EAGAIN) return false;
      send.accepted(result);
    } catch (error) {
      send.failed(error);
    }
    return true;
  }

  #failAll(error: unknown): void {
    const queues = [...this.#queues.values()];
    this.#queues.clear();
    for (const queue of queues) for (const send of queue) send.failed(error);
  }
}

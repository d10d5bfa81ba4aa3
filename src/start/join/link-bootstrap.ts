// How the nodes of a job find each other if launch() started their processes: the nodes ask the monitor, each process by its
// channel. The monitor holds a few values and one barrier at a time.
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import { NODE_BARRIERS } from "../../bootstrap/later.js";
import { PamiError } from "../../core/error.js";

/** From a process to the monitor. The answer has the same number. */
export type BootstrapRequest = { readonly ask: number } & (
  | { readonly put: string; readonly value: Uint8Array }
  | { readonly get: string }
  | { readonly barrier: "all" | "later" }
);
/** From the monitor to a process. */
export interface BootstrapAnswer {
  readonly answer: number;
  readonly value?: Uint8Array | undefined;
  /** Why there is no answer. */
  readonly failure?: string | undefined;
}

interface Pending {
  readonly resolve: (value: Uint8Array | undefined) => void;
  readonly reject: (error: PamiError) => void;
}

/** A process's channel to the monitor, for the bootstraps of its nodes. */
export class BootstrapChannel {
  readonly #send: (request: BootstrapRequest) => void;
  readonly #pending = new Map<number, Pending>();
  #asked = 0;
  #failure: PamiError | undefined;

  constructor(send: (request: BootstrapRequest) => void) {
    this.#send = send;
  }

  hear({ answer, value, failure }: BootstrapAnswer): void {
    const pending = this.#pending.get(answer);
    this.#pending.delete(answer);
    if (failure === undefined) pending?.resolve(value);
    else pending?.reject(new PamiError("PAMIR_BOOTSTRAP", failure));
  }

  /** The monitor has ended: there are no more answers. */
  fail(why: string): void {
    this.#failure = new PamiError("PAMIR_BOOTSTRAP", why);
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
  }

  /**
   * The bootstrap of one node. A node that comes later passes each barrier once the other nodes have passed all of their
   * barriers.
   */
  bootstrapOf(rank: number, size: number): Bootstrap {
    const none = async (): Promise<void> => {};
    return {
      rank,
      size,
      localRank: rank,
      localSize: size,
      put: async (key, value) => void (await this.#ask((ask) => ({ ask, put: key, value }))),
      get: (key) => this.#ask((ask) => ({ ask, get: key })),
      barrier: async () => void (await this.#ask((ask) => ({ ask, barrier: rank < size ? "all" : "later" }))),
      close: none,
      // The process ends, and the monitor tells the others.
      fail: none,
    };
  }

  #ask(request: (ask: number) => BootstrapRequest): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      const ask = this.#asked++;
      this.#pending.set(ask, { resolve, reject });
      this.#send(request(ask));
    });
  }
}

/** The monitor's side. */
export class BootstrapServer {
  readonly #size: number;
  readonly #values = new Map<string, Uint8Array>();
  #waiting: ((failure?: string) => void)[] = [];
  /** Of nodes that come later. */
  #later: ((failure?: string) => void)[] = [];
  #barriers = 0;
  #failure: string | undefined;

  /** @param size nodes, all of which come to each barrier */
  constructor(size: number) {
    this.#size = size;
  }

  /** Stores a value of the launcher's own, or replaces it. */
  store(key: string, value: Uint8Array): void {
    this.#values.set(key, value);
  }

  take(request: BootstrapRequest, reply: (answer: BootstrapAnswer) => void): void {
    const answer = request.ask;
    if ("put" in request) {
      this.#values.set(request.put, request.value);
      reply({ answer });
    } else if ("get" in request) reply({ answer, value: this.#values.get(request.get) });
    else {
      (request.barrier === "all" ? this.#waiting : this.#later).push((failure) => reply({ answer, failure }));
      const isComplete = this.#waiting.length === this.#size;
      if (isComplete && this.#failure === undefined) this.#barriers++;
      if (isComplete || this.#isDone || this.#failure !== undefined) this.#release(this.#failure);
    }
  }

  /** Whether all nodes have passed their barriers. */
  get #isDone(): boolean {
    return this.#barriers >= NODE_BARRIERS;
  }

  /** A process has ended: from now on, no barrier is complete. */
  fail(why: string): void {
    this.#failure ??= why;
    this.#release(this.#failure);
  }

  #release(failure?: string): void {
    const released = this.#waiting;
    this.#waiting = [];
    for (const go of released) go(failure);
    if (!this.#isDone && failure === undefined) return;
    const later = this.#later;
    this.#later = [];
    for (const go of later) go(this.#isDone ? undefined : failure);
  }
}

// Large messages between three tasks of two contexts each, and whatever may happen to them: taken in every way, declined,
// given up, their regions closed, contexts, tasks and the engine thread ended, in any order. Each side that goes on is told
// once, and the truth, and nothing is written behind that. All on one thread: random numbers say which thread does the next step.
import { describe, expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { Message } from "../../src/core/message/message.js";
import type { MemRegion } from "../../src/core/region.js";
import { CANCELED, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import { markDead } from "../../src/node/liveness.js";
import type { Client } from "../../src/pami/client.js";
import type { Context } from "../../src/pami/context.js";
import { type EngineJob, engineJob } from "../support/engine.js";
import { type PostedJob, postedJob } from "../support/posted.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const TASKS = 3;
const CONTEXTS = 2;
const LIMITS = {
  tasks: TASKS,
  contexts: CONTEXTS,
  laneBytes: 4096,
  heapBytes: 12 * 1024 ** 2,
  regions: 64,
  fifos: 1,
  slots: 4,
};
const DATA = 1;
/** Lives of a job, and in each: transfers, ends of tasks and contexts. */
const LIVES = 20;
const TRANSFERS_MAX = 26;
const ENDS_MAX = 4;
const FRAGMENTS = [4096, 65_536, 300_000];
/** What the origin writes over its payload once it is told, and what is in a destination before. */
const OVERWRITTEN = 0xdd;
const UNTOUCHED = 0xee;

/**
 * What moves the bytes: the engine of each task, an engine thread (between whose turns it may end), or frames between
 * memories.
 */
const MODES = ["inline", "thread", "frames"] as const;
type Mode = (typeof MODES)[number];

type Taking = "discard" | "throw" | "memory" | "region";
const TAKINGS: readonly Taking[] = ["discard", "throw", "memory", "region", "region", "region", "region", "region"];

interface Transfer {
  readonly id: number;
  /** Contexts, of all tasks. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  readonly taking: Taking;
  readonly payload: Uint8Array;
  readonly source: MemRegion | undefined;
  readonly controllers: { readonly origin: AbortController; readonly target: AbortController };
  destination?: Uint8Array;
  into?: MemRegion | undefined;
  /** The destination as it was when its target was told. */
  arrived?: Uint8Array;
  readonly told: { readonly local: Result[]; readonly remote: Result[]; readonly received: Result[] };
  wasAsked: boolean;
  wasGivenUp: boolean;
  wasClosed: boolean;
  hasThrown: boolean;
  /** The engine thread has ended meanwhile. */
  mayBreak: boolean;
}

function byteOf(id: number, i: number): number {
  return (id * 31 + i * 7 + (i >>> 8) + (i >>> 16)) & 255;
}

function isWhole({ id, bytes, destination }: Transfer): boolean {
  return destination?.subarray(0, bytes).every((byte, i) => byte === byteOf(id, i)) ?? false;
}

class Life {
  readonly wrong: string[] = [];
  readonly #random: (below: number) => number;
  readonly #posted: PostedJob | undefined;
  readonly #engineJob: EngineJob | undefined;
  readonly #clients: readonly Client[];
  readonly #contexts: readonly Context[];
  readonly #transfers: Transfer[] = [];
  readonly #endedContexts = new Set<number>();
  readonly #endedTasks = new Set<number>();
  /** Of those, whose last words may be lost. */
  readonly #died = new Set<number>();
  /** The engine thread. */
  #engine: "none" | "works" | "ended";
  /** Contexts that have advanced since that has ended. */
  readonly #heard = new Set<number>();
  #ends = 0;

  constructor(mode: Mode, seed: number) {
    this.#random = randomOf(seed);
    const kernel: KernelName = this.#random(2) === 0 ? "wasm" : "ts";
    if (mode === "frames") this.#posted = postedJob(LIMITS, this.#random(2) === 0 ? ["wasm", "ts"] : [kernel]);
    else this.#engineJob = engineJob(kernel, LIMITS);
    if (mode === "inline") this.#engineJob?.end();
    this.#engine = mode === "thread" ? "works" : "none";
    this.#clients = this.#posted?.tasks.map(({ client }) => client) ?? this.#engineJob?.clients ?? [];
    this.#contexts = this.#clients.flatMap((client) =>
      Array.from({ length: CONTEXTS }, () => client.createContext({ fragment: 65_536 })),
    );
    for (const [number, context] of this.#contexts.entries()) {
      context.dispatch(DATA, (message) => this.#take(number, message));
    }
  }

  async run(): Promise<void> {
    const isMortal = this.#random(4) > 0;
    for (let steps = 150 + this.#random(250); steps > 0; steps--) {
      await undefined;
      this.#step(isMortal);
    }
    // Whatever was begun comes to an end; a few rounds more, for what comes behind that.
    for (let round = 0, over = 0; over < 20 && round < 600; round++) {
      await undefined;
      for (let i = 0; i < 30 && this.#posted?.deliver(); i++);
      for (let i = 0; i < 4 && this.#engine === "works"; i++) this.#engineJob?.serve();
      for (const number of this.#contexts.keys()) this.#advance(number);
      if (round > 60 && this.#transfers.every((transfer) => this.#isOver(transfer))) over++;
    }
    for (const transfer of this.#transfers) this.#judge(transfer);
    for (const { frame } of this.#posted?.wrong ?? []) {
      this.wrong.push(`a frame was none: ${Object.keys(frame)}, ${JSON.stringify({ ...frame, data: undefined })}`);
    }
    for (const [task, client] of this.#clients.entries()) if (!this.#endedTasks.has(task)) client.close();
  }

  #taskOf(context: number): number {
    return Math.floor(context / CONTEXTS);
  }

  #goesOn(context: number): boolean {
    return !this.#endedContexts.has(context) && !this.#endedTasks.has(this.#taskOf(context));
  }

  #clientOf(context: number): Client {
    return this.#clients[this.#taskOf(context)] as Client;
  }

  #say({ id, from, to, bytes, taking }: Transfer, what: string): void {
    this.wrong.push(`transfer ${id}, ${bytes} bytes from ${from} to ${to}, taken by ${taking}: ${what}`);
  }

  #region(context: number, bytes: number): MemRegion | undefined {
    try {
      return this.#clientOf(context).createRegion(bytes);
    } catch {
      return undefined; // there is no memory: ordinary memory will do
    }
  }

  // ── What happens ──────────────────────────────────────────────────────────────────────────────────────────────

  #step(isMortal: boolean): void {
    const random = this.#random;
    const what = random(20);
    if (what < 3) this.#offerBetween(random(this.#contexts.length), random(this.#contexts.length));
    else if (what < 10) this.#advance(random(this.#contexts.length));
    else if (what < 15) this.#carry();
    else if (what === 15 && random(4) === 0) this.#giveUp();
    else if (what === 16 && random(8) === 0) this.#closeRegion();
    else if (what === 17 && this.#engine === "works" && random(5) === 0) this.#endEngine();
    else if (what === 18 && isMortal && this.#ends < ENDS_MAX && random(10) === 0)
      this.#end(random(this.#contexts.length));
  }

  #carry(): void {
    if (this.#posted !== undefined) this.#posted.deliver();
    else if (this.#engine === "works") this.#engineJob?.serve();
  }

  #advance(context: number): void {
    if (!this.#goesOn(context)) return;
    try {
      (this.#contexts[context] as Context).advance();
    } catch (error) {
      const errors: Error[] = error instanceof AggregateError ? error.errors : [error as Error];
      if (errors.some(({ message }) => message !== "refused")) throw error;
    }
    if (this.#engine === "ended") this.#heard.add(context);
  }

  #offerBetween(from: number, to: number): void {
    if (!this.#goesOn(from) || !this.#goesOn(to) || this.#transfers.length >= TRANSFERS_MAX) return;
    const random = this.#random;
    const id = this.#transfers.length;
    const bytes = [1 + random(3000), 1 + random(400_000), 65_536 * (1 + random(5)), 300_000][random(4)] as number;
    const source = random(3) > 0 ? this.#region(from, bytes) : undefined;
    const payload = source?.bytes ?? new Uint8Array(bytes);
    for (let i = 0; i < bytes; i++) payload[i] = byteOf(id, i);
    const transfer: Transfer = {
      id,
      from,
      to,
      bytes,
      taking: TAKINGS[random(TAKINGS.length)] as Taking,
      payload,
      source,
      controllers: { origin: new AbortController(), target: new AbortController() },
      told: { local: [], remote: [], received: [] },
      wasAsked: false,
      wasGivenUp: false,
      wasClosed: false,
      hasThrown: false,
      // Who has not heard of the engine thread's end leaves it to that.
      mayBreak:
        this.#engine === "ended" &&
        [...this.#contexts.keys()].some((one) => this.#goesOn(one) && !this.#heard.has(one)),
    };
    const result = (this.#contexts[from] as Context).send({
      to: (this.#contexts[to] as Context).endpoint,
      dispatch: DATA,
      header: Int32Array.of(id),
      payload,
      rendezvous: true,
      signal: transfer.controllers.origin.signal,
      onLocal: (_, result) => {
        this.#onFrame(transfer, "local", result);
        if (source?.closed !== true) payload.fill(OVERWRITTEN);
        this.#offerOneMore(from);
      },
      onRemote: (_, result) => this.#onFrame(transfer, "remote", result),
    });
    if (result === SUCCESS) this.#transfers.push(transfer);
  }

  /** From within a callback or a handler: what they have done with an rget FIFO is not over for the kernels. */
  #offerOneMore(from: number): void {
    if (this.#random(4) === 0) this.#offerBetween(from, this.#random(this.#contexts.length));
  }

  #take(context: number, message: Message): void {
    const transfer = this.#transfers[new Int32Array(message.header.slice().buffer)[0] as number] as Transfer;
    transfer.wasAsked = true;
    if (message.immediate) return; // there was no memory for an rget FIFO
    this.#offerOneMore(context);
    if (transfer.taking === "discard") {
      message.discard();
      return;
    }
    if (transfer.taking === "throw") {
      transfer.hasThrown = true;
      throw new Error("refused");
    }
    transfer.into = transfer.taking === "region" ? this.#region(context, transfer.bytes) : undefined;
    const destination = transfer.into?.bytes ?? new Uint8Array(transfer.bytes);
    transfer.destination = destination.fill(UNTOUCHED);
    const onComplete = (_: unknown, result: Result): void => {
      this.#onFrame(transfer, "received", result);
      if (transfer.into?.closed !== true) transfer.arrived = destination.slice();
    };
    const fragment = FRAGMENTS[this.#random(FRAGMENTS.length)] as number;
    const signal = transfer.controllers.target.signal;
    message.receive(destination, onComplete, undefined, { fragment, depth: 1 + this.#random(4), signal });
  }

  #giveUp(): void {
    const transfer = this.#transfers[this.#random(TRANSFERS_MAX)];
    const role = this.#random(2) === 0 ? "origin" : "target";
    if (transfer === undefined || !this.#goesOn(role === "origin" ? transfer.from : transfer.to)) return;
    transfer.wasGivenUp = true;
    transfer.controllers[role].abort();
  }

  #closeRegion(): void {
    const transfer = this.#transfers[this.#random(TRANSFERS_MAX)];
    if (transfer === undefined) return;
    const isSource = this.#random(2) === 0;
    const region = isSource ? transfer.source : transfer.into;
    const owner = this.#taskOf(isSource ? transfer.from : transfer.to);
    if (region === undefined || region.closed || this.#endedTasks.has(owner)) return;
    transfer.wasClosed = true;
    region.close();
  }

  #endEngine(): void {
    this.#engine = "ended";
    for (const transfer of this.#transfers) transfer.mayBreak = true;
    this.#engineJob?.end();
  }

  #end(context: number): void {
    if (!this.#goesOn(context)) return;
    this.#ends++;
    const task = this.#taskOf(context);
    const how = ["closes", "leaves", "dies"][this.#random(3)];
    if (how === "closes") {
      this.#endedContexts.add(context);
      (this.#contexts[context] as Context).close();
      return;
    }
    this.#endedTasks.add(task);
    if (how === "leaves") {
      (this.#clients[task] as Client).close();
      return;
    }
    this.#died.add(task);
    if (this.#posted !== undefined) this.#posted.end(task);
    else if (this.#engineJob !== undefined) markDead(this.#engineJob.kernel, this.#engineJob.map, task);
  }

  // ── What is true ──────────────────────────────────────────────────────────────────────────────────────────────

  #onFrame(transfer: Transfer, who: keyof Transfer["told"], result: Result): void {
    const { told, from, to, wasAsked, wasGivenUp, wasClosed, hasThrown, mayBreak, destination, into } = transfer;
    told[who].push(result);
    if (told[who].length > 1) this.#say(transfer, `${who}: told ${told[who]}`);
    const peer = who === "received" ? from : to;
    if (result === CANCELED && !wasGivenUp) this.#say(transfer, `${who}: CANCELED, by nobody`);
    if (result === SHUTDOWN && this.#goesOn(peer)) this.#say(transfer, `${who}: SHUTDOWN, of one who goes on`);
    if (result === ERROR && !hasThrown && !wasClosed && !mayBreak) this.#say(transfer, `${who}: ERROR, for no reason`);
    if (result !== SUCCESS) return;
    if (!wasAsked) this.#say(transfer, `${who}: SUCCESS, and nobody was asked`);
    // A task that has ended has given its regions back: another's may be there.
    const isKept = this.#posted !== undefined || !this.#endedTasks.has(this.#taskOf(to));
    if (destination !== undefined && into?.closed !== true && isKept && !isWhole(transfer)) {
      this.#say(transfer, `${who}: SUCCESS, and it is not there`);
    }
  }

  #isOver({ from, to, told, destination }: Transfer): boolean {
    const isSent = !this.#goesOn(from) || (told.local.length > 0 && told.remote.length > 0);
    return isSent && (!this.#goesOn(to) || destination === undefined || told.received.length > 0);
  }

  #judge(transfer: Transfer): void {
    const { from, to, told, destination, arrived, into, wasClosed, wasGivenUp } = transfer;
    if (!this.#isOver(transfer)) this.#say(transfer, `told ${JSON.stringify(told)}, and no more`);
    const [local, remote, received] = [told.local[0], told.remote[0], told.received[0]];
    if (local !== undefined && remote !== undefined && local !== remote)
      this.#say(transfer, `${local}, then ${remote}`);
    if (
      arrived !== undefined &&
      this.#goesOn(to) &&
      into?.closed !== true &&
      Buffer.compare(arrived, destination as Uint8Array)
    ) {
      this.#say(transfer, "written behind its callback");
    }
    // Where there are two reasons, each side may be told of one; and what one who dies was about to say is lost.
    const mayDiffer = (wasClosed && wasGivenUp) || [from, to].some((one) => this.#died.has(this.#taskOf(one)));
    if (local !== undefined && received !== undefined && local !== received && !mayDiffer) {
      this.#say(transfer, `the origin was told ${local}, the target ${received}`);
    }
  }
}

describe.each(MODES)("P10 large messages, whatever happens to them: %s", (mode) => {
  it("each side is told once, and the truth, and nothing is written behind that", async () => {
    for (let i = 0; i < LIVES; i++) {
      const life = new Life(mode, SEED + i);
      await life.run();
      expect(life.wrong, `${replayNote()}, life ${i}`).toEqual([]);
    }
  });
});

// Debug mode: regions that are never closed, and the place that made each.
import { Message } from "../core/message/message.js";
import type { PublicCall } from "../memory/regions.js";

/** A region, as far as it matters here. */
interface Region {
  readonly index: number;
  readonly length: number;
}

/** What a warning says of a region whose object is gone. */
interface Made {
  readonly bytes: number;
  /** Line of the stack from which it was made. */
  readonly place: string;
}

export class RegionWatch {
  readonly #task: number;
  readonly #open = new Map<number, Made>();
  /** Of the call for which regions are made now, if it began earlier. */
  #place: string | undefined;
  /** Called when the garbage collector takes an open region, which no code can close any more. */
  readonly #lost = new FinalizationRegistry<number>((index) => {
    this.#warn(index, "lost a region");
    this.#open.delete(index);
  });

  constructor(task: number) {
    this.#task = task;
  }

  /** @param token stands for the region when it is closed */
  opened(region: Region, token: object): void {
    // Of the calls that make regions, keep() alone passes no place: a receiver without debug mode knows of none.
    const place = this.#place ?? this.placeOfCall(Message.prototype.keep);
    this.#open.set(region.index, { bytes: region.length, place });
    this.#lost.register(region, region.index, token);
  }

  /** Looks for no name in the stack: bundlers rename classes, as esbuild does with one that refers to itself. */
  placeOfCall(call: PublicCall): string {
    const holder = { stack: "" };
    Error.captureStackTrace?.(holder, call);
    // The first frame with a line and a column, in the notation of V8 or of Firefox.
    const frame = /^(?: *at )?(.*:\d+:\d+\)?)$/m.exec(holder.stack);
    return frame?.[1] ?? "an unknown place";
  }

  during<T>(place: string, make: () => T): T {
    this.#place = place;
    try {
      return make();
    } finally {
      this.#place = undefined;
    }
  }

  closed(index: number, token: object): void {
    this.#open.delete(index);
    this.#lost.unregister(token);
  }

  /** The task closes its client. */
  report(): void {
    for (const index of this.#open.keys()) this.#warn(index, "closes its client with a region");
    this.#open.clear();
  }

  #warn(index: number, what: string): void {
    const made = this.#open.get(index);
    if (made === undefined) return;
    console.warn(
      `pamir: task ${this.#task} ${what} of ${made.bytes} bytes that was never closed, made at ${made.place}`,
    );
  }
}

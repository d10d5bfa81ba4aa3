// Debug mode: regions that are never closed, and the place that made each.

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
    const lines = new Error().stack?.split("\n") ?? [];
    const own = lines.findLastIndex((line) => /\b(createRegion|Message\.keep)\b/.test(line));
    const place = (lines[own + 1] ?? "an unknown place").trim().replace(/^at /, "");
    this.#open.set(region.index, { bytes: region.length, place });
    this.#lost.register(region, region.index, token);
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

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

/** Calls of the API that make regions. */
const OWN_CALLS = /\b(createRegion|Message\.keep|Geometry\.(shareRegion|create(Counter|Aggregator|Grid)))\b/;

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
    this.#open.set(region.index, { bytes: region.length, place: this.#place ?? this.placeOfCall() });
    this.#lost.register(region, region.index, token);
  }

  placeOfCall(): string {
    const lines = new Error().stack?.split("\n") ?? [];
    const own = lines.findLastIndex((line) => OWN_CALLS.test(line));
    const line = own < 0 ? undefined : lines[own + 1];
    return line?.trim().replace(/^at /, "") ?? "an unknown place";
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

// Calls that wait for a worker: those of a higher priority first, of one priority in their order.

/** A queue with priorities. */
export class Queue<T> {
  /** Highest priority first. */
  readonly #levels: { readonly priority: number; readonly items: Set<T> }[] = [];
  size = 0;

  push(item: T, priority: number): void {
    let place = 0;
    while (place < this.#levels.length && (this.#levels[place]?.priority as number) > priority) place++;
    let level = this.#levels[place];
    if (level?.priority !== priority) {
      level = { priority, items: new Set() };
      this.#levels.splice(place, 0, level);
    }
    level.items.add(item);
    this.size++;
  }

  /** Takes out the first item that `fits`. */
  take(fits: (item: T) => boolean): T | undefined {
    for (const [place, { items }] of this.#levels.entries()) {
      for (const item of items) {
        if (!fits(item)) continue;
        items.delete(item);
        if (items.size === 0) this.#levels.splice(place, 1);
        this.size--;
        return item;
      }
    }
    return undefined;
  }

  /** Takes out an item. @returns whether it was there */
  remove(item: T): boolean {
    return this.take((one) => one === item) !== undefined;
  }

  /** Takes out all items. */
  clear(): T[] {
    const all = this.#levels.flatMap(({ items }) => [...items]);
    this.#levels.length = 0;
    this.size = 0;
    return all;
  }
}

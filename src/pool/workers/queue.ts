// Calls that wait for a worker: those of a higher priority first, of one priority in their order. Some wait for the worker of
// one place, and stand in a lane of their own: a worker's next call is found without looking at those of other places.
//
// A level of a lane is a list whose links lie in its items. With a Map, each removal at its front takes longer: 12 µs each for
// 65,536 items.

/** What waits. */
export interface Item<T> {
  /** The only place that takes it; undefined: any. */
  readonly place: number | undefined;
  readonly priority: number;
  /** The queue's own. */
  order: number;
  previous: T | undefined;
  next: T | undefined;
}

interface Level<T> {
  readonly priority: number;
  first: T | undefined;
  last: T | undefined;
}

/** A queue with priorities and places. */
export class PriorityQueue<T extends Item<T>> {
  /** Levels by the only place that takes their items, the highest priority first. */
  readonly #lanes = new Map<number | undefined, Level<T>[]>();
  #order = 0;
  size = 0;

  push(item: T): void {
    const level = this.#levelFor(item);
    item.order = ++this.#order;
    item.previous = level.last;
    if (level.last === undefined) level.first = item;
    else level.last.next = item;
    level.last = item;
    this.size++;
  }

  #levelFor({ place, priority }: T): Level<T> {
    let levels = this.#lanes.get(place);
    if (levels === undefined) {
      levels = [];
      this.#lanes.set(place, levels);
    }
    let at = 0;
    while (at < levels.length && (levels[at]?.priority as number) > priority) at++;
    let level = levels[at];
    if (level?.priority !== priority) {
      level = { priority, first: undefined, last: undefined };
      levels.splice(at, 0, level);
    }
    return level;
  }

  /** Takes out the first item that a place takes. */
  take(place: number): T | undefined {
    const any = this.#first(undefined);
    const own = this.#first(place);
    const isOwn = any === undefined || (own !== undefined && isBefore(own, any));
    const first = isOwn ? own : any;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Takes out an item. @returns whether it was there */
  remove(item: T): boolean {
    if (item.order === 0) return false;
    item.order = 0;
    const levels = this.#lanes.get(item.place) as Level<T>[];
    const at = levels.findIndex(({ priority }) => priority === item.priority);
    const level = levels[at] as Level<T>;
    const { previous, next } = item;
    if (previous === undefined) level.first = next;
    else previous.next = next;
    if (next === undefined) level.last = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.size--;
    if (level.first === undefined) levels.splice(at, 1);
    if (levels.length === 0) this.#lanes.delete(item.place);
    return true;
  }

  /** Whether an item waits that any place takes. */
  get hasAny(): boolean {
    return this.#lanes.has(undefined);
  }

  /** Places for which items wait that no other takes. */
  get places(): number[] {
    return [...this.#lanes.keys()].filter((place) => place !== undefined);
  }

  /** Takes out all items. */
  clear(): T[] {
    const all: T[] = [];
    for (const levels of this.#lanes.values()) {
      for (const { first } of levels) for (let item = first; item !== undefined; item = item.next) all.push(item);
    }
    for (const item of all) this.remove(item);
    return all;
  }

  #first(place: number | undefined): T | undefined {
    return this.#lanes.get(place)?.[0]?.first;
  }
}

function isBefore<T extends Item<T>>(one: T, other: T): boolean {
  return one.priority > other.priority || (one.priority === other.priority && one.order < other.order);
}

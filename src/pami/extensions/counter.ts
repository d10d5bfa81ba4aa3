// A counter that the members of a geometry share: each number is given out once.
import { checkKeys, type Keys, NO_OPTIONS } from "../../core/check.js";
import { checkInteger, PamiError } from "../../core/error.js";
import type { MemRegion } from "../../core/region.js";
import { EAGAIN, type Result, SUCCESS } from "../../core/result.js";
import type { RmwParameters } from "../../protocol/rma/parameters.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, type WaitOptions } from "../waits.js";
import { type ExtensionHost, errorOf, isLocal } from "./extension-host.js";
import { beginOf } from "./process-grid.js";
import { type SharedRegion, shareRegion } from "./shared-region.js";

/** Options of `geometry.createCounter`. All members give the same. */
export interface CounterOptions extends ProgressOptions {
  /** Rank of the member that has the counter's word (default 0). */
  readonly root?: number | undefined;
  /** The first number, an integer from 0 (default 0). */
  readonly start?: number | undefined;
  /** The numbers end before this one (default: there is no end). */
  readonly limit?: number | undefined;
  /**
   * Whether each member has a word of its own, for an equal part of the numbers up to `limit` (default false). A member takes
   * from its part first, then from those of others. So members in one memory rarely use the same cache line.
   */
  readonly striped?: boolean | undefined;
}

const KEYS: Keys<CounterOptions> = { ...PROGRESS_KEYS, root: true, start: true, limit: true, striped: true };
const WORD_BYTES = 8;
/** What next() and add() may have under way at other nodes. */
const UNDER_WAY_MAX = 256;
const MOST = Number.MAX_SAFE_INTEGER;

/** A counter that the members of a geometry share, from `geometry.createCounter()`. It belongs to this member's thread. */
export class Counter {
  readonly #host: ExtensionHost;
  readonly #region: SharedRegion;
  /** Old values, one for each operation under way: two words each. */
  readonly #results: MemRegion;
  readonly #words: Uint32Array;
  /** Places in #results that are free. Place 0 is for operations that are done at once. */
  readonly #free = Array.from({ length: UNDER_WAY_MAX }, (_, place) => place + 1);
  /** Where the numbers of each member's word end; of a counter with one word, the root's alone. */
  readonly #ends: readonly number[];
  readonly #root: number;
  readonly #isStriped: boolean;
  /** The member from which this one takes. */
  #from: number;
  readonly #parameters: RmwParameters;

  /** @internal */
  constructor(host: ExtensionHost, region: SharedRegion, results: MemRegion, root: number | undefined, ends: number[]) {
    const { rank, endpoints } = host.group;
    this.#host = host;
    this.#region = region;
    this.#results = results;
    this.#words = new Uint32Array(results.bytes.buffer, results.bytes.byteOffset, results.length / 4);
    this.#root = root ?? rank;
    this.#isStriped = root === undefined;
    this.#from = this.#root;
    this.#ends = ends;
    this.#parameters = {
      to: endpoints[this.#root] as number,
      remote: region.handles[this.#root] as number,
      operation: "fetch-add",
      type: "i64",
      value: 1,
      result: results,
      resultOffset: 0,
      onDone: undefined,
    };
  }

  /**
   * Takes the next number. Each number is taken once, by one member. With `striped`, they come in no common order.
   * @returns the number; undefined: the limit is reached
   * @throws PAMIR_SHUTDOWN (the member that has the word has ended), PAMIR_CLOSED; as `progress()`
   */
  async next(options: ProgressOptions = NO_OPTIONS): Promise<number | undefined> {
    this.#checkOpen("next");
    checkProgress("next()", options);
    for (;;) {
      const number = await this.#fetchAdd("next", this.#from, 1, options);
      if (number < (this.#ends[this.#from] as number)) return number;
      if (!this.#goOn()) return undefined;
    }
  }

  /** As next(), but blocks the thread. @throws also PAMIR_TIMEDOUT, which names the member that has the word */
  nextSync(options: WaitOptions = NO_OPTIONS): number | undefined {
    this.#checkOpen("nextSync");
    if (options !== NO_OPTIONS) checkWait("nextSync()", options);
    for (;;) {
      const number = this.#fetchAddSync("nextSync", this.#from, 1, options);
      if (number < (this.#ends[this.#from] as number)) return number;
      if (!this.#goOn()) return undefined;
    }
  }

  /**
   * Adds to the counter. `add(0)` reads it.
   * @param value an i32
   * @returns the value before
   * @throws PAMIR_INVAL (a striped counter has no common value); as next()
   */
  async add(value: number, options: ProgressOptions = NO_OPTIONS): Promise<number> {
    this.#checkAdd("add", value);
    checkProgress("add()", options);
    return this.#fetchAdd("add", this.#root, value, options);
  }

  /** As add(), but blocks the thread. @throws also PAMIR_TIMEDOUT */
  addSync(value: number, options: WaitOptions = NO_OPTIONS): number {
    this.#checkAdd("addSync", value);
    if (options !== NO_OPTIONS) checkWait("addSync()", options);
    return this.#fetchAddSync("addSync", this.#root, value, options);
  }

  /** Ends the counter once all members have called this. @throws as `geometry.barrier()` */
  async close(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("close()", options);
    try {
      await this.#region.close(options);
    } finally {
      this.#results.close();
    }
  }

  #checkAdd(call: string, value: number): void {
    this.#checkOpen(call);
    checkInteger(`value of ${call}()`, value, -(2 ** 31), 2 ** 31 - 1);
    if (this.#isStriped) throw new PamiError("PAMIR_INVAL", `${call}() of a striped counter: it has no common value`);
  }

  /** Goes on to the next member that may have numbers. False: this member has been at all. */
  #goOn(): boolean {
    const { size, rank } = this.#host.group;
    if (!this.#isStriped) return false;
    const next = (this.#from + 1) % size;
    if (next === rank) return false;
    this.#from = next;
    return true;
  }

  async #fetchAdd(call: string, rank: number, value: number, options: ProgressOptions): Promise<number> {
    if (isLocal(this.#host.task, this.#host.group.endpoints[rank] as number)) return this.#now(call, rank, value);
    const { until } = this.#host;
    const asked = (): number[] => [rank];
    while (this.#free.length === 0) await until(call, () => this.#free.length > 0, options, asked);
    const fetched = this.#begin(rank, value);
    const isOver = (): boolean => fetched.result !== EAGAIN || this.#tries(fetched, rank, value);
    try {
      await until(call, isOver, options, asked);
    } catch (error) {
      this.#giveUp(fetched);
      throw error;
    }
    return this.#end(call, fetched);
  }

  #fetchAddSync(call: string, rank: number, value: number, options: WaitOptions): number {
    if (isLocal(this.#host.task, this.#host.group.endpoints[rank] as number)) return this.#now(call, rank, value);
    const { untilSync } = this.#host;
    const asked = (): number[] => [rank];
    const whenFree = untilSync(call, () => this.#free.length > 0, options, asked);
    if (whenFree !== SUCCESS) throw this.#host.group.lastError;
    const fetched = this.#begin(rank, value);
    const isOver = (): boolean => fetched.result !== EAGAIN || this.#tries(fetched, rank, value);
    const waited = untilSync(call, isOver, options, asked);
    if (waited === SUCCESS) return this.#end(call, fetched);
    this.#giveUp(fetched);
    throw this.#host.group.lastError;
  }

  /** In this memory, where the old value is there at once. */
  #now(call: string, rank: number, value: number): number {
    const result = this.#rmw(rank, value, 0, undefined);
    if (result !== SUCCESS) throw errorOf(this.#host, call, result);
    return this.#valueAt(0);
  }

  #begin(rank: number, value: number): Fetched {
    const fetched: Fetched = { place: this.#free.pop() as number, result: EAGAIN, isOut: false, isGivenUp: false };
    this.#tries(fetched, rank, value);
    return fetched;
  }

  /** Issues it, if there is room. @returns whether it has failed at once */
  #tries(fetched: Fetched, rank: number, value: number): boolean {
    if (fetched.isOut) return false;
    const result = this.#rmw(rank, value, fetched.place, (_, came) => {
      fetched.result = came;
      if (fetched.isGivenUp) this.#free.push(fetched.place);
    });
    fetched.isOut = result === SUCCESS;
    if (result !== SUCCESS && result !== EAGAIN) fetched.result = result;
    return fetched.result !== EAGAIN;
  }

  /** The old value may still come, so its place is free only then. */
  #giveUp(fetched: Fetched): void {
    if (fetched.isOut && fetched.result === EAGAIN) fetched.isGivenUp = true;
    else this.#free.push(fetched.place);
  }

  #end(call: string, { place, result }: Fetched): number {
    const value = this.#valueAt(place);
    this.#free.push(place);
    if (result !== SUCCESS) throw errorOf(this.#host, call, result);
    return value;
  }

  #rmw(rank: number, value: number, place: number, onDone: RmwParameters["onDone"]): Result {
    const parameters = this.#parameters;
    parameters.to = this.#host.group.endpoints[rank] as number;
    parameters.remote = this.#region.handles[rank] as number;
    parameters.value = value;
    parameters.resultOffset = place * WORD_BYTES;
    parameters.onDone = onDone;
    return this.#host.context.rmw(parameters);
  }

  #valueAt(place: number): number {
    const high = (this.#words[2 * place + 1] as number) | 0;
    return high * 2 ** 32 + (this.#words[2 * place] as number);
  }

  #checkOpen(call: string): void {
    if (this.#region.region.closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a counter that is closed`);
  }
}

/** An operation at another node. */
interface Fetched {
  readonly place: number;
  result: Result;
  /** Whether it was issued. */
  isOut: boolean;
  /** Whether its caller has stopped waiting. */
  isGivenUp: boolean;
}

/** @throws as `geometry.createCounter` */
export function createCounter(host: ExtensionHost, options: CounterOptions): Promise<Counter> {
  checkKeys("options of createCounter()", options, KEYS);
  const { root = 0, start = 0, limit, striped = false, ...wait } = options;
  const { size, rank } = host.group;
  checkInteger("root of createCounter()", root, 0, size - 1);
  checkInteger("start of createCounter()", start, 0, MOST);
  if (limit !== undefined) checkInteger("limit of createCounter()", limit, start, MOST);
  if (typeof striped !== "boolean" || (striped && limit === undefined)) {
    throw new PamiError("PAMIR_INVAL", `striped of createCounter() is ${striped}: true needs a limit`);
  }
  const end = limit ?? Number.POSITIVE_INFINITY;
  const firsts = Array.from({ length: size + 1 }, (_, one) => {
    if (!striped) return start;
    return one === size ? end : start + beginOf(one, end - start, size);
  });
  let results: MemRegion | undefined;
  const prepare = ({ bytes }: MemRegion): void => {
    const first = firsts[rank] as number;
    new Uint32Array(bytes.buffer, bytes.byteOffset, 2).set([first % 2 ** 32, Math.floor(first / 2 ** 32)]);
    results = host.task.regions.create((UNDER_WAY_MAX + 1) * WORD_BYTES);
  };
  const undo = (): void => results?.close();
  const ends = striped ? firsts.slice(1) : new Array<number>(size).fill(end);
  const same = { root, start, limit, striped };
  return shareRegion(host, WORD_BYTES, wait, { call: "createCounter", same, prepare, undo }).then(
    (region) => new Counter(host, region, results as unknown as MemRegion, striped ? undefined : root, ends),
  );
}

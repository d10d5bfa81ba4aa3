// Geometries: lists of endpoints that do collective operations. This file checks arguments and waits; collective/ does the work.
import type { ActiveHandler } from "../collective/active.js";
import type { Agreement } from "../collective/agreement.js";
import { oddOf } from "../collective/calls.js";
import type { PartOf } from "../collective/collectives.js";
import type { GeometryCore } from "../collective/geometry-core.js";
import type { CollectiveOperation as Begun } from "../collective/operation.js";
import {
  ACTIVE_TYPES,
  type ActiveType,
  type CollectiveType,
  OPERATION_ROWS,
  type OperationType,
} from "../collective/operations.js";
import {
  ACTIVE_ALGORITHM,
  ALGORITHMS,
  type Algorithm,
  type AlgorithmInfo,
  algorithmOf,
  begin,
  type CollectiveRequest,
  callOf,
  defaultAlgorithm,
} from "../collective/select.js";
import { SharedOperation } from "../collective/shared/shared-operation.js";
import { BarrierSteps } from "../collective/shared/shared-steps.js";
import { checkCallback, checkFunction, checkKeys, checkObject, NO_OPTIONS } from "../core/check.js";
import type { Endpoint } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { DISPATCH_ID_MAX } from "../core/limits.js";
import { EAGAIN, type Result, SUCCESS } from "../core/result.js";
import type { CollectiveKernel } from "../kernel/collective.js";
import type { Memory } from "../kernel/kernel.js";
import type { Task } from "../protocol/task.js";
import { loadOnce } from "../support/promise.js";
import { beginActive } from "./active-requests.js";
import {
  COLLECTIVE_KEYS,
  type CollectiveParametersOf,
  type Given,
  IS_SAME_CALL,
  type IsSame,
} from "./collective-parameters.js";
import { BARRIER, BARRIER_SIGNATURE, bytesOf, type Prepared, Requests } from "./collective-requests.js";
import type { Context } from "./context.js";
import type { Aggregator, AggregatorParameters, KindsParameters } from "./extensions/aggregator.js";
import type { Counter, CounterOptions } from "./extensions/counter.js";
import type { ExtensionHost } from "./extensions/extension-host.js";
import type { CellArray, Grid, GridParameters } from "./extensions/grid.js";
import type { ItemArray } from "./extensions/item-kind.js";
import type { SharedRegion } from "./extensions/shared-region.js";
import { awaitedOf, lateError, named } from "./late-members.js";
import type { OperationForms } from "./operation-forms.js";
import { awaitSteps, blockOnSteps, checkMayBlock, type Step, type StepHost, type Steps } from "./steps.js";
import { checkProgress, checkWait, type ProgressOptions, type WaitOptions } from "./waits.js";

/** What a geometry needs of its context and client. */
export interface GeometryParts extends StepHost {
  readonly memory: Memory;
  readonly task: Task;
  readonly context: Context;
  shutdownError(text: string, to: Endpoint): Error;
  /** Makes a geometry of some of the members, for this context. @param call "split" */
  create(call: string, endpoints: readonly Endpoint[], part: PartOf): Steps<Geometry>;
  readonly kernel: CollectiveKernel;
}

/** What makes regions, counters, aggregators and grids, once it is loaded. */
type Extensions = typeof import("./extensions/extensions.js");
const loadExtensions = loadOnce((): Promise<Extensions> => import("./extensions/extensions.js"));
/** Milliseconds for which shrink() waits for news of members of which nothing is heard, where a launcher tells of each end. */
const NEWS_MS = 2000;
/** Operations under way beyond which collective() returns EAGAIN. */
const UNDER_WAY_MAX = 64;

/**
 * Endpoints that do collective operations together, as a communicator in MPI. Each member has a Geometry of its own, which
 * belongs to its thread. All members begin the same operations in the same order. An operation that has begun makes progress
 * while this member advances its context. Buffers must not be changed before the operation is over, and must not overlap
 * unless it works in place.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the static block defines the methods.
export class Geometry {
  /** Number of this member: 0 … size - 1. */
  readonly rank: number;
  /** Number of members. */
  readonly size: number;
  /** The endpoints of the members, by rank. */
  readonly endpoints: readonly Endpoint[];
  readonly #core: GeometryCore;
  readonly #parts: GeometryParts;
  readonly #requests: Requests;
  /** Whether blocking calls may be made on this thread. */
  readonly #mayBlock: boolean;
  /** The last calls that differed, the newest first. */
  readonly #recent: RecentCall[] = [];
  #lastError: Error | undefined;
  /** A shrink() that was given up. */
  #shrinking: Shrinking | undefined;
  /** The barrier of barrierSync(), used again and again. */
  readonly #barrier: SharedOperation | undefined;

  static {
    for (const type of Object.keys(OPERATION_ROWS) as OperationType[]) {
      // Without parameters, and with a shorter way.
      if (type === "barrier") continue;
      const forms = {
        [type](this: Geometry, parameters: object, options: ProgressOptions = NO_OPTIONS): Promise<unknown> {
          return this.#promise(type, parameters, options);
        },
        [`${type}Sync`](this: Geometry, parameters: object, options: WaitOptions = NO_OPTIONS): Result {
          return this.#sync(type, parameters, options);
        },
      };
      for (const [name, value] of Object.entries(forms)) {
        Object.defineProperty(Geometry.prototype, name, { value, writable: true, configurable: true });
      }
    }
  }

  /** @internal */
  constructor(core: GeometryCore, parts: GeometryParts) {
    this.rank = core.rank;
    this.size = core.size;
    this.endpoints = core.endpoints;
    this.#core = core;
    this.#parts = parts;
    this.#requests = new Requests(core.rank, core.size, parts.memory, parts.kernel);
    const { mayBlock, whyPrivate } = parts.task.parker;
    this.#mayBlock = mayBlock && whyPrivate === "";
    if (!core.isShared) return;
    this.#barrier = new SharedOperation(core, BARRIER, new BarrierSteps(core.shared));
    const [{ name }] = ALGORITHMS.barrier as [Algorithm];
    this.#barrier.call = callOf(BARRIER, BARRIER_SIGNATURE, name, core.size);
  }

  /** Whether close() has been called. */
  get closed(): boolean {
    return this.#core.isClosed;
  }

  /**
   * Why the last blocking call that did not return SUCCESS has not: the error that a promise would have. It names the members
   * that were awaited, the one that has ended, or the one that differs. So it is for the blocking calls of the geometry's grids,
   * counters and aggregators. undefined: all have succeeded so far.
   */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Returns the endpoint of a member. @throws PAMIR_INVAL */
  endpoint(rank: number): Endpoint {
    checkInteger("rank", rank, 0, this.size - 1);
    return this.endpoints[rank] as Endpoint;
  }

  /** Returns the algorithms of a type of operation that work in this geometry, the preferred ones first. @throws PAMIR_INVAL for an unknown type */
  algorithms(type: CollectiveType | ActiveType): AlgorithmInfo[] {
    checkType(type);
    if (isActive(type)) return [{ ...ACTIVE_ALGORITHM }];
    const fitting = ALGORITHMS[type].filter((algorithm) => algorithm.fits(this.#core));
    return fitting.map(({ name, always, conditions, preferred }) => ({ name, always, conditions, preferred }));
  }

  /**
   * Begins an operation, and returns. `onDone` gets its result.
   * @returns SUCCESS, or EAGAIN (64 operations are under way: advance, and try again)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  collective<Type extends CollectiveType | ActiveType>(type: Type, parameters: CollectiveParametersOf[Type]): Result {
    try {
      checkType(type);
      checkCallback("onDone", parameters?.onDone);
    } catch (error) {
      throw this.#refused(error, type);
    }
    if (this.#core.underWay + this.#core.active.underWay >= UNDER_WAY_MAX) return EAGAIN;
    const operation = this.#begin(type, parameters);
    const { onDone, cookie } = parameters;
    if (onDone !== undefined) this.#core.whenOver(operation, onDone, cookie);
    return SUCCESS;
  }

  /** Resolves once all members have begun this barrier. @throws as `collective()` and `progress()`; PAMIR_SHUTDOWN */
  async barrier(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    await this.#promise("barrier", NO_OPTIONS, options);
  }

  /**
   * As barrier(), but blocks the thread, as advanceUntil() does. If all members share a memory, it allocates nothing unless it
   * sleeps.
   * @returns SUCCESS, SHUTDOWN (a member has ended), ERROR, TIMEDOUT or INTERRUPTED
   */
  barrierSync(options: WaitOptions = NO_OPTIONS): Result {
    const operation = this.#barrier;
    const core = this.#core;
    if (options !== NO_OPTIONS) this.#checkWait("barrier", options);
    if (!this.#mayBlock) this.#refuseBlocking("barrier");
    if (operation === undefined || core.underWay > 0) return this.#sync("barrier", NO_OPTIONS, options);
    if (core.isClosed) this.#checkOpen("barrier");
    operation.reset();
    core.beginShared(operation, BARRIER_SIGNATURE);
    if (operation.result === SUCCESS) return SUCCESS;
    if (operation.isOver) return this.#heard("barrier", operation, operation.result);
    return this.#wait("barrier", operation, options);
  }

  /**
   * Sets the handler of a dispatch id of this geometry, for active messages. It runs in `advance()`. Messages that came before
   * are delivered at once. What it returns for `amGather` and `amReduce` is its block; it is copied. An error that it throws
   * comes out of `advance()`, and the root gets PAMIR_COLLECTIVE, which names its rank.
   * @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN, PAMIR_CLOSED
   */
  dispatch(id: number, handler: ActiveHandler): void {
    this.#checkOpen("dispatch");
    checkInteger("dispatch", id, 0, DISPATCH_ID_MAX);
    checkFunction("handler of dispatch()", handler);
    const { active } = this.#core;
    if (active.has(id)) throw new PamiError("PAMIR_DISPATCH_TAKEN", `dispatch id ${id} of the geometry has a handler`);
    active.handle(id, handler);
    active.rethrow();
  }

  /**
   * Makes a geometry of the members with the same color, as MPI_Comm_split. All members call it.
   * @param color from 0; undefined: this member is in none of the new geometries, and gets undefined
   * @param key orders the members of the new geometry; equal keys keep the order of ranks
   */
  split(color: number, key?: number, options?: ProgressOptions): Promise<Geometry>;
  split(color: undefined, key?: number, options?: ProgressOptions): Promise<undefined>;
  async split(color: number | undefined, key = 0, options: ProgressOptions = NO_OPTIONS): Promise<unknown> {
    const steps = this.#split("split", color, key, () => checkProgress("split()", options));
    return awaitSteps(steps, this.#parts, options);
  }

  /** As split(), but blocks the thread. @throws as split(), and as advanceUntil() */
  splitSync(color: number, key?: number, options?: WaitOptions): Geometry;
  splitSync(color: undefined, key?: number, options?: WaitOptions): undefined;
  splitSync(color: number | undefined, key = 0, options: WaitOptions = NO_OPTIONS): Geometry | undefined {
    const steps = this.#split("splitSync", color, key, () => this.#checkBlocks("split", options));
    return blockOnSteps(steps, this.#parts.host, options);
  }

  *#split(call: string, color: number | undefined, key: number, check: () => void): Steps<Geometry | undefined> {
    this.#checkOpen(call);
    try {
      if (color !== undefined) checkInteger("color", color, 0, 2 ** 31 - 1);
      checkInteger("key", key, -(2 ** 31), 2 ** 31 - 1);
      check();
    } catch (error) {
      throw this.#refused(error, "allgather");
    }
    const all = new Int32Array(2 * this.size);
    const operation = this.#begin("allgather", { send: Int32Array.of(color ?? -1, key), receive: all }, false);
    if (!operation.isOver) yield { until: operation, late: this.#late(call, () => awaitedOf(operation)) };
    if (operation.result !== SUCCESS) throw this.#errorOf(call, operation);
    if (color === undefined) return undefined;
    const ranks = this.endpoints
      .map((_, rank) => rank)
      .filter((rank) => all[2 * rank] === color)
      .sort((one, other) => (all[2 * one + 1] as number) - (all[2 * other + 1] as number) || one - other);
    const members = ranks.map((rank) => this.endpoints[rank] as Endpoint);
    return yield* this.#parts.create(call, members, { whole: this.#core, isSplit: true });
  }

  /** Makes a geometry of the members that share this member's memory. All members call it. */
  async splitByNode(options: ProgressOptions = NO_OPTIONS): Promise<Geometry> {
    checkProgress("splitByNode()", options);
    this.#checkOpen("splitByNode");
    const node = this.#core.nodes[this.rank];
    const members = this.endpoints.filter((_, rank) => this.#core.nodes[rank] === node);
    const steps = this.#parts.create("splitByNode", members, { whole: this.#core, isSplit: false });
    return awaitSteps(steps, this.#parts, options);
  }

  /**
   * Makes a region of each member, and gives all of them the handles of all. Its bytes are 0. All members call it. If one has
   * no memory, it fails for all of them, and no region is left.
   * @param bytes length of this member's region, from 1; each member has its own
   * @throws PAMIR_NO_MEMORY (names the member), PAMIR_INVAL; PAMIR_COLLECTIVE (another member has a wrong length); as
   *   `barrier()`
   */
  shareRegion(bytes: number, options: ProgressOptions = NO_OPTIONS): Promise<SharedRegion> {
    return this.#extend("shareRegion", ({ shareRegion }) => shareRegion(this.#host, bytes, options));
  }

  /**
   * Makes a counter that all members share, to deal out numbers: pieces of work, places in a file. All members call it, with the
   * same options.
   * @throws PAMIR_INVAL, PAMIR_COLLECTIVE (the options differ); as shareRegion()
   */
  createCounter(options: CounterOptions = NO_OPTIONS): Promise<Counter> {
    return this.#extend("createCounter", ({ createCounter }) => createCounter(this.#host, options));
  }

  /**
   * Makes an aggregator: it packs small items for other members into messages. All members call it. Items are of one kind, or
   * of several, in any mix.
   * @throws PAMIR_INVAL, PAMIR_NO_MEMORY, PAMIR_COLLECTIVE (bytes or kinds differ); as `barrier()`
   */
  createAggregator<View extends ItemArray>(parameters: AggregatorParameters<View>): Promise<Aggregator<View>>;
  createAggregator<Views extends readonly ItemArray[]>(
    parameters: KindsParameters<Views>,
  ): Promise<Aggregator<Views[number]>>;
  createAggregator(parameters: AggregatorParameters | KindsParameters): Promise<Aggregator> {
    return this.#extend("createAggregator", ({ createAggregator }) => createAggregator(this.#host, parameters));
  }

  /**
   * Makes a grid of 1, 2 or 3 dimensions: each member has a block of it, with a halo that exchange() fills. All members call
   * it, with the same parameters.
   * @throws PAMIR_INVAL (also if a block is narrower than the halo), PAMIR_COLLECTIVE (the parameters differ); as
   *   shareRegion()
   */
  createGrid<View extends CellArray = Float64Array>(parameters: GridParameters<View>): Promise<Grid<View>> {
    return this.#extend("createGrid", ({ createGrid }) => createGrid(this.#host, parameters));
  }

  /** Loads what is built upon geometries. @param make throws if the arguments are refused */
  async #extend<T>(
    call: "shareRegion" | "createCounter" | "createAggregator" | "createGrid",
    make: (extensions: Extensions) => Promise<T>,
  ): Promise<T> {
    this.#checkOpen(call);
    const { regions } = this.#host.task.observers;
    const place = regions?.placeOfCall(this[call]) ?? "";
    const extensions = await loadExtensions();
    try {
      return regions === undefined ? make(extensions) : regions.during(place, () => make(extensions));
    } catch (error) {
      throw this.#refused(error, "allgather");
    }
  }

  get #host(): ExtensionHost {
    const { task, context, host } = this.#parts;
    return {
      group: this,
      core: this.#core,
      task,
      context,
      allgather: (call, send, options) => this.#promise("allgather", { send }, options, call) as Promise<Uint8Array>,
      barrier: async (call, options) => void (await this.#promise("barrier", NO_OPTIONS, options, call)),
      until: (call, condition, options, awaited) => named(this, call, host.until(condition, options), awaited),
      untilSync: (call, condition, options, awaited) => {
        const result = host.advanceUntil(condition, options);
        if (result !== SUCCESS) this.#lastError = lateError(this, call, result, awaited());
        return result;
      },
      exchange: (parameters) => this.#begin("alltoall", parameters, false),
      awaitedOf,
      oddOf,
      noteError: (error) => {
        this.#lastError = error;
      },
    };
  }

  /**
   * Makes the geometry of the members that are left, after one has ended or closed: they agree on them, although others may
   * end meanwhile. All that are left call it. Operations under way have failed before, or fail. If its wait ends, by a timeout
   * or an error, the next call goes on from there.
   *
   * Where nothing is heard of members, they may go on without those that are left. So at most one part of the geometry goes on:
   * more than half of its members, or half of them with rank 0. In all other parts, each member gets `PAMIR_MINORITY`. If all that
   * are gone have ended for certain, any number goes on. Where a launcher tells of each end, it waits for that up to 2 s.
   * @throws PAMIR_MINORITY: another call goes on from there, and knows what has become certain since; as `client.createGeometry`
   */
  async shrink(options: ProgressOptions = NO_OPTIONS): Promise<Geometry> {
    checkProgress("shrink()", options);
    return awaitSteps(this.#shrink("shrink", options), this.#parts, options);
  }

  /** As shrink(), but blocks the thread. Either call goes on from where the other was given up. @throws as shrink(), and as advanceUntil() */
  shrinkSync(options: WaitOptions = NO_OPTIONS): Geometry {
    this.#checkBlocks("shrink", options);
    return blockOnSteps(this.#shrink("shrinkSync", options), this.#parts.host, options);
  }

  *#shrink(call: string, { timeout }: WaitOptions): Steps<Geometry> {
    this.#checkOpen(call);
    // A call that was given up goes on from there: else this member's votes would answer other ones of the others.
    let state = this.#shrinking ?? new Shrinking(-1);
    this.#shrinking = undefined;
    for (;;) {
      if (state.ended === undefined) {
        state.decision ??= yield* this.#agree(call, state, true);
        yield* this.#settle(call, state, state.decision, timeout);
        state.ended = state.decision.ended;
      }
      const { ended } = state;
      if (state.made === undefined && state.failure === undefined) {
        const left = this.endpoints.filter((_, rank) => !ended.has(rank));
        try {
          state.made = yield* this.#parts.create(call, left, { whole: this.#core, isSplit: false });
        } catch (error) {
          state.failure = error;
        }
      }
      // It counts if it is made everywhere: else some would go on with it, and others without.
      const { isGood } = yield* this.#agree(call, state, state.made !== undefined);
      const { made, failure } = state;
      if (made !== undefined && isGood) return made;
      made?.close();
      if (ended.size === state.known)
        throw failure ?? new PamiError("PAMIR_SHUTDOWN", `${call}(): a member has no geometry`);
      state = new Shrinking(ended.size);
    }
  }

  *#agree(call: string, state: Shrinking, isGood: boolean): Steps<Agreement> {
    state.agreement ??= this.#core.agree(isGood);
    const { agreement } = state;
    try {
      const late = this.#late(call, () => agreement.awaited());
      yield { until: () => agreement.isOver || this.closed, late };
    } catch (error) {
      this.#shrinking = state;
      throw error;
    }
    // This member comes to the new geometry no more, and others may have it.
    if (this.closed) state.made?.close();
    this.#checkOpen(call);
    state.agreement = undefined;
    return agreement;
  }

  /**
   * The members have agreed on those that are left. Over once it is certain that these may go on. Where only silence has told
   * of an end, the news of a launcher may come behind it.
   * @throws PAMIR_MINORITY
   */
  *#settle(call: string, state: Shrinking, decision: Agreement, timeout = Number.POSITIVE_INFINITY): Steps<void> {
    const isSettled = (): boolean => this.closed || this.#core.isSettled(decision);
    if (isSettled() && decision.mayGoOn) return;
    this.#shrinking = state;
    try {
      yield { until: isSettled, timeout: NEWS_MS, late: this.#late(call, () => decision.silent) };
    } catch (error) {
      if ((error as PamiError).code !== "PAMIR_TIMEDOUT" || timeout <= NEWS_MS) throw error;
    }
    this.#checkOpen(call);
    if (!decision.mayGoOn) throw minority(this, call, decision);
    this.#shrinking = undefined;
  }

  /** The error of a wait for members. */
  #late(call: string, ranks: () => readonly number[]): Step["late"] {
    return (result, cause) => lateError(this, call, result, ranks(), cause);
  }

  /**
   * Ends the geometry at this member. Operations that are under way here get CANCELED; for the other members, this member has
   * ended. Its memory comes back once all members that share it have closed.
   */
  close(): void {
    this.#shrinking?.made?.close();
    this.#core.close();
  }

  /** Calls close() at the end of a block with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal See GeometryCore. */
  lend(): number {
    return this.#core.lend();
  }

  #checkOpen(call: string): void {
    if (this.#core.isClosed) throw new PamiError("PAMIR_CLOSED", `${call}() of a geometry that is closed`);
  }

  /** In debug mode, the other members hear that this one's arguments were refused: so all stay in step. @returns the error */
  #refused(error: unknown, type: OperationType): unknown {
    if (!isActive(type)) this.#core.refuse(String((error as Error)?.message));
    return error;
  }

  #checkWait(type: OperationType, options: WaitOptions): void {
    try {
      checkWait(`${type}Sync()`, options);
    } catch (error) {
      throw this.#refused(error, type);
    }
  }

  /** Before the operation begins, for one that begins goes on. @throws PAMIR_WOULD_BLOCK, PAMIR_NOT_ISOLATED */
  #refuseBlocking(type: OperationType): void {
    try {
      checkMayBlock(this.#parts.task, type);
    } catch (error) {
      throw this.#refused(error, type);
    }
  }

  /** @param call "split" @throws PAMIR_INVAL, PAMIR_WOULD_BLOCK, PAMIR_NOT_ISOLATED */
  #checkBlocks(call: string, options: WaitOptions): void {
    checkWait(`${call}Sync()`, options);
    checkMayBlock(this.#parts.task, call);
  }

  #sync(type: OperationType, parameters: object, options: WaitOptions): Result {
    if (options !== NO_OPTIONS) this.#checkWait(type, options);
    if (!this.#mayBlock) this.#refuseBlocking(type);
    const operation = this.#begin(type, parameters);
    if (operation.result === SUCCESS) return SUCCESS;
    if (operation.isOver) return this.#heard(type, operation, operation.result);
    return this.#wait(type, operation, options);
  }

  /** Blocks the thread until an operation is over. */
  #wait(type: OperationType, operation: Begun, options: WaitOptions): Result {
    operation.waits++;
    try {
      if (this.#parts.host.spin(operation.look)) return this.#heard(type, operation, operation.result);
      const waited = this.#parts.host.advanceUntil(operation.look, options);
      return this.#heard(type, operation, operation.isOver ? operation.result : waited);
    } finally {
      operation.waits--;
    }
  }

  /** @param user the call of which the operation is a part: errors name it, and it is over before a handler's error is thrown */
  async #promise(type: OperationType, parameters: object, options: ProgressOptions, user?: string): Promise<unknown> {
    const given = parameters as Given;
    const call = user ?? type;
    let made: ArrayBufferView | undefined;
    try {
      checkProgress(`${call}()`, options);
      checkObject(`parameters of ${call}()`, parameters);
      made = this.#requests.made(type, given);
    } catch (error) {
      throw this.#refused(error, type);
    }
    this.#checkOpen(call);
    const operation = this.#begin(type, made === undefined ? given : { ...given, receive: made }, made === undefined);
    operation.waits++;
    try {
      if (operation.isOver) await this.#parts.task.parker.turn();
      else {
        const wait = this.#parts.waits.until(operation, options, user !== undefined);
        await named(this, call, wait, () => awaitedOf(operation));
      }
      if (operation.result !== SUCCESS) throw this.#errorOf(call, operation);
    } finally {
      operation.waits--;
    }
    return made ?? given.receive ?? given.buffer ?? undefined;
  }

  /** How the wait of a blocking form has ended. */
  #heard(type: OperationType, operation: Begun, result: Result): Result {
    if (result !== SUCCESS) {
      const call = `${type}Sync`;
      this.#lastError = operation.isOver
        ? this.#errorOf(call, operation)
        : lateError(this, call, result, awaitedOf(operation));
    }
    return result;
  }

  #errorOf(call: string, { result, why, cause }: Begun): Error {
    const what = `${call}() of rank ${this.rank}`;
    if (result === EAGAIN || result === SUCCESS) throw new Error(`${what} has no error`);
    return this.#core.errorOf(what, result, why, this.#parts.shutdownError, cause);
  }

  /** @param mayRepeat whether the views are the caller's: those that a promise makes come once */
  #begin(type: OperationType, parameters: object, mayRepeat = true): Begun {
    const core = this.#core;
    if (core.isClosed) this.#checkOpen(type);
    const given = parameters as Given;
    let like: RecentCall | undefined;
    if (given != null) {
      let likes = 0;
      for (const recent of this.#recent) {
        const fit = recent.fitOf(type, given);
        if (fit === SAME) return recent.begin(core);
        if (fit === LIKE && ++likes === LIKES_MAX) like = recent;
      }
    }
    let recent: RecentCall;
    let isOnce = !mayRepeat || OPERATION_ROWS[type].isUneven;
    try {
      checkKeys(`parameters of ${type}()`, parameters, COLLECTIVE_KEYS[type]);
      if (like?.take(given)) {
        // It may be repeated from now on, and is found at once then.
        this.#recent.splice(this.#recent.indexOf(like), 1);
        this.#recent.unshift(like);
        return like.begin(core);
      }
      if (isActive(type)) return beginActive(this.#core, this.#requests, type, given);
      const prepared = this.#requests.of(type, given);
      isOnce ||= prepared.isOnce === true;
      recent = new RecentCall(type, given, prepared, this.#algorithm(prepared.request, given.algorithm));
      // A later call takes what was made for this one.
      if (recent.isShort) isOnce = false;
    } catch (error) {
      throw this.#refused(error, type);
    }
    if (!isOnce) {
      if (this.#recent.length === RECENT_MAX) this.#recent.pop();
      this.#recent.unshift(recent);
    }
    return recent.begin(this.#core);
  }

  #algorithm(request: CollectiveRequest, name: string | undefined): Algorithm {
    if (name === undefined) return defaultAlgorithm(request, this.#core);
    const fitting = ALGORITHMS[request.type].filter((algorithm) => algorithm.fits(this.#core));
    const found = algorithmOf(request.type, fitting, name);
    if (!found.works(request, this.#core)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `algorithm ${name} of ${request.type}() does not work here: ${found.conditions}`,
      );
    }
    return found;
  }
}

export interface Geometry extends OperationForms {}

/** Ranks that an error names. */
const NAMED_MAX = 8;

/** PAMIR_MINORITY: others may go on without these members. */
function minority({ rank, size }: Geometry, call: string, { ended, certain, silent }: Agreement): PamiError {
  const left = size - ended.size;
  const what = `${left} of ${size} members ${left === 1 ? "is" : "are"} left, ended: ${certain.size}`;
  const named = `rank${silent.length === 1 ? "" : "s"} ${silent.slice(0, NAMED_MAX).join(", ")}`;
  const more = silent.length > NAMED_MAX ? ` and ${silent.length - NAMED_MAX} more` : "";
  const why = `nothing is heard of ${named}${more}, which may go on without this one`;
  return new PamiError("PAMIR_MINORITY", `${call}() of rank ${rank}: ${what}; ${why}`);
}

/** How far a round of shrink() has come. */
class Shrinking {
  /** How many members had ended in the round before; -1: this is the first one. */
  readonly known: number;
  /** What is being agreed on. */
  agreement: Agreement | undefined;
  /** What all have agreed on. */
  decision: Agreement | undefined;
  /** Members that have ended, once it is certain that the others may go on. */
  ended: ReadonlySet<number> | undefined;
  /** The new geometry, or why there is none. */
  made: Geometry | undefined;
  failure: unknown;

  constructor(known: number) {
    this.known = known;
  }
}

/** @throws PAMIR_INVAL */
function checkType(type: OperationType): void {
  if (typeof type === "string" && Object.hasOwn(OPERATION_ROWS, type)) return;
  const types = Object.keys(OPERATION_ROWS).join(", ");
  throw new PamiError("PAMIR_INVAL", `type ${show(type)} is unknown; there are ${types}`);
}

function isActive(type: OperationType): type is ActiveType {
  return (ACTIVE_TYPES as readonly string[]).includes(type);
}

/** Calls whose parameters are remembered: a program that repeats them has nothing checked or made anew. */
const RECENT_MAX = 8;
/** Calls that only differ in their arrays, of which so many are remembered: a program may take turns with its arrays. */
const LIKES_MAX = 4;
/** How a call fits one that is remembered: as LIKE, only the arrays differ. */
const SAME = 2;
const LIKE = 1;
const OTHER = 0;
/** All elements begin at multiples of it. */
const ALIGN = 8;

class RecentCall {
  readonly #type: CollectiveType;
  readonly #isSame: IsSame;
  #given: Given;
  #prepared: Prepared;
  readonly #algorithm: Algorithm;
  readonly #sendBytes: number;
  readonly #receiveBytes: number;
  /** Whether the arrays are those of shared memory, whose lengths never change. */
  #isShared: boolean;
  /** Whether a call may take it that only differs in its arrays. */
  readonly isShort: boolean;
  /** An operation that can be begun again. */
  #operation: SharedOperation | undefined;

  constructor(type: CollectiveType, given: Given, prepared: Prepared, algorithm: Algorithm) {
    this.#type = type;
    // Those without are not remembered.
    this.#isSame = IS_SAME_CALL[type] as IsSame;
    // The caller may change its object.
    this.#given = { ...given };
    this.#prepared = prepared;
    this.#algorithm = algorithm;
    this.#sendBytes = prepared.request.send.length;
    this.#receiveBytes = prepared.request.receive.length;
    this.#isShared = [prepared.request.send, prepared.request.receive].every(
      ({ buffer }) => !(buffer instanceof ArrayBuffer),
    );
    this.isShort = type === "allreduce" && algorithm.name === "flat";
  }

  /** Whether a call has the same parameters, or LIKE ones. */
  fitOf(type: OperationType, given: Given): typeof SAME | typeof LIKE | typeof OTHER {
    if (type !== this.#type) return OTHER;
    if (!this.#isSame(given, this.#given)) return this.isShort && this.#isLike(given) ? LIKE : OTHER;
    // The views may have other lengths than they had.
    if (this.#isShared) return SAME;
    const { send, receive } = this.#prepared.request;
    return send.length === this.#sendBytes && receive.length === this.#receiveBytes ? SAME : OTHER;
  }

  /** Whether only the arrays of a call differ, in nothing that matters. */
  #isLike({ send, receive, operation, type, algorithm }: Given): boolean {
    const own = this.#given;
    if (operation !== own.operation || type !== own.type || algorithm !== own.algorithm) return false;
    if (send == null || receive == null || own.send == null || own.receive == null) return false;
    return (
      send.constructor === own.send.constructor &&
      receive.constructor === own.receive.constructor &&
      send.byteLength === this.#sendBytes &&
      receive.byteLength === this.#receiveBytes &&
      send.byteOffset % ALIGN === 0 &&
      receive.byteOffset % ALIGN === 0 &&
      send.buffer !== receive.buffer
    );
  }

  /** Becomes a call that is like it, if its operation is idle: what was checked and made for the one holds for the other. */
  take(given: Given): boolean {
    const operation = this.#operation;
    if (operation === undefined || operation.result === EAGAIN || operation.waits > 0) return false;
    const send = bytesOf("allreduce", "send", given.send);
    const receive = bytesOf("allreduce", "receive", given.receive);
    const { request, signature } = this.#prepared;
    const next = { ...request, send, receive };
    this.#given = { ...given };
    this.#prepared = { request: next, signature };
    this.#isShared = false;
    operation.use(next);
    return true;
  }

  begin(core: GeometryCore): Begun {
    const { request, signature } = this.#prepared;
    const known = this.#operation;
    if (known !== undefined && known.result !== EAGAIN && known.waits === 0) {
      known.reset();
      core.beginShared(known, known.signature);
      return known;
    }
    const operation = begin(this.#algorithm, request, core, signature);
    if (operation instanceof SharedOperation) this.#operation = operation;
    return operation;
  }
}

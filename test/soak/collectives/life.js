// @ts-check
// The life of a task in a round of collective operations. In each epoch, all tasks make the same geometries, begin the same
// operations in the same order, and shrink the geometries until only survivors are left. Those that are to end do so on the way.
//
// A task blocks in an operation, or awaits one, only if no other member needs something of it that it would begin later. So
// each wait ends, unless pamir is at fault.
import { EAGAIN, ERROR, SHUTDOWN, SUCCESS, TIMEDOUT } from "pamir";
import { mapShared } from "../../api/tasks/flags.js";
import { pattern, randomFrom } from "../../api/tasks/random.js";
import { Book } from "../model.js";
import { caseOf, fateOf, geometriesOf, STRUCK_ENDS } from "./draw.js";
import { ARRAYS, answerOf, partOf } from "./model.js";
import { Pages, SHRINKS } from "./pages.js";

/**
 * @typedef {import("../../api/tasks/flags.js").SharedPlace} SharedPlace
 * @typedef {{ round: import("./draw.js").CollectiveRound, pages: SharedArrayBuffer | SharedPlace, places: number, epoch?: number }} Args
 * @typedef {import("pamir").Geometry} Geometry
 * @typedef {import("pamir").Context} Context
 * @typedef {import("./draw.js").Case} Case
 */

/** Dispatch id of messages among members, and of their geometries' active messages, and bytes of a long one. */
const MESSAGE = 1;
const LONG_BYTES = 20_000;
/** Operations of a geometry that was shrunk, each time. */
const AGAIN = 3;
/** Milliseconds in which a dump is made. */
const DUMP_MS = 1000;
/** Keys of operations: those of an epoch, and those of a geometry that was shrunk. */
const EPOCH_KEYS = 4096;
const SHRUNK_KEY = 1024;

/** What this task is in a geometry. */
class Membership {
  /** It has heard of an end, so that no later operation can succeed. */
  isBroken = false;

  /**
   * @param {string} name
   * @param {Geometry} geometry
   * @param {Context} context
   * @param {readonly number[]} tasks by rank
   * @param {boolean} isMortal whether a member may end
   */
  constructor(name, geometry, context, tasks, isMortal) {
    this.name = name;
    this.geometry = geometry;
    this.context = context;
    this.tasks = tasks;
    this.isMortal = isMortal;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** @param {unknown} error */
const codeOf = (error) => /** @type {{ code?: string } | undefined } */ (error)?.code ?? "";

/** Results by the code of an error. @type {Record<string, number>} */
const RESULTS = { PAMIR_SHUTDOWN: SHUTDOWN, PAMIR_COLLECTIVE: ERROR, PAMIR_TIMEDOUT: TIMEDOUT };

/** @param {import("pamir").Client} client @param {Args} args */
export async function live(client, { round, pages: given, places, epoch: only }) {
  const { survivors, victims, patience, contexts: count, steps } = round;
  const buffer = given instanceof SharedArrayBuffer ? given : await mapShared(given);
  const book = new Book(buffer, places, 1);
  const pages = new Pages(buffer, Book.bytes(places, 1), places);
  const isVictim = client.task >= survivors;
  const { below } = randomFrom((round.seed ^ Math.imul(client.task + 1, 0x2c1b3c6d)) | 0);
  const fate = fateOf(round, client.task);
  const asleep = new Int32Array(new SharedArrayBuffer(4));
  const { pendingBytes, spin } = round;
  const contexts = Array.from({ length: count }, () => client.createContext({ pendingBytes, spin }));
  /** Operations under way. @type {Set<string>} */
  const underWay = new Set();
  /** Numbers of messages, by endpoint: of the last that was sent, and of the last that came. @type {Map<string, number>} */
  const sent = new Map();
  /** @type {Map<string, number>} */
  const came = new Map();
  let point = 0;
  let begun = 0;

  /** @param {import("../model.js").Failure} failure @param {string} why */
  const fail = (failure, why) => book.fail(failure, `task ${client.task}: ${why}`);

  for (const context of contexts) {
    context.dispatch(MESSAGE, (message) => {
      const { origin } = message;
      const [number, length] = /** @type {Int32Array & [number, number]} */ (
        new Int32Array(message.header.slice().buffer)
      );
      const key = `${context.index} ${origin}`;
      const before = came.get(key) ?? 0;
      if (number !== before + 1)
        fail(number <= before ? "reordered" : "lost", `message ${number} of ${origin} behind ${before}`);
      came.set(key, number);
      book.count("messages");
      const bytes = new Uint8Array(length);
      const check = () => {
        if (Buffer.compare(bytes, pattern(length, number)) !== 0) fail("torn", `message ${number} of ${origin}`);
      };
      if (message.immediate) {
        bytes.set(message.payload);
        check();
      } else message.receive(bytes, (_, result) => result === SUCCESS && check());
    });
  }
  const first = /** @type {Context} */ (contexts[0]);

  /** Advances until the condition holds; what does not come to it hangs. @param {() => boolean} condition @param {string} what */
  async function until(condition, what) {
    const end = performance.now() + patience;
    for (let turns = 0; !condition() && book.counted("hung") === 0; turns++) {
      if (performance.now() > end) fail("hung", `${what}; under way: ${[...underWay].join("; ")}`);
      for (const context of contexts) if (!context.closed) context.advance();
      const context = contexts[turns % contexts.length];
      if (below(4) > 0 || context === undefined || context.closed) await turn();
      else
        await context.progress({ timeout: 2 }).catch((error) => {
          if (codeOf(error) !== "PAMIR_TIMEDOUT") throw error;
        });
    }
    // The thread that watches has time for a dump of the job as it is.
    if (book.counted("hung") > 0) for (;;) await new Promise((resolve) => setTimeout(resolve, DUMP_MS));
  }

  /**
   * Awaits calls, each of which advances its own context. Members may wait for the other contexts of this task, too.
   * @param {readonly { context: Context, promise: Promise<void> }[]} calls
   */
  async function whileOthersAdvance(calls) {
    const pending = new Set(calls);
    let isOver = false;
    const all = Promise.all(calls.map((call) => call.promise.then(() => pending.delete(call))));
    // One that throws ends this task, whatever the others wait for.
    const over = () => {
      isOver = true;
    };
    all.then(over, over);
    while (contexts.length > 1 && !isOver) {
      const busy = [...pending].map(({ context }) => context);
      for (const context of contexts) if (!context.closed && !busy.includes(context)) context.advance();
      await turn();
    }
    await all;
  }

  /** A point at which a task may end. @param {Membership[]} memberships */
  function mayEnd(memberships) {
    if (!isVictim || point++ !== fate.point) return;
    if (STRUCK_ENDS.includes(fate.how)) {
      if (fate.how === "context") for (const context of contexts) context.close();
      if (fate.how === "geometry") for (const { geometry } of memberships) geometry.close();
      pages.strike(client.task, fate.delay);
      return;
    }
    if (fate.how === "throw") throw new Error("dies");
    if (fate.how === "exit") process.exit(9);
    if (fate.how === "suicide") process.kill(process.pid, "SIGKILL");
    client.close();
    process.exit(0);
  }

  /** Whether this task has closed what it would go on with. */
  const isThrough = () => isVictim && (fate.how === "context" || fate.how === "geometry") && point > fate.point;

  /**
   * An operation is over here.
   * @param {Membership} membership
   * @param {string} what
   * @param {Case} one
   * @param {number} result
   * @param {boolean} wasBroken when it began
   */
  function finished(membership, what, one, result, wasBroken) {
    const isActive = one.type.startsWith("am");
    const throws =
      one.operation === "throws" && one.type === "allreduce" && membership.tasks.length > 1 && one.count > 0;
    if (result === SUCCESS) {
      if (wasBroken && !isActive) fail("others", `${what} has worked behind one that had not`);
      if (throws) fail("others", `${what} has worked`);
    } else if (result === SHUTDOWN) {
      if (!membership.isMortal) fail("others", `${what} came to SHUTDOWN`);
      // Another operation may need nothing of the member that has ended.
      if (!isActive) membership.isBroken = true;
    } else if (result === TIMEDOUT) fail("hung", `${what} has not ended`);
    else if (!(throws && result === ERROR) && !isThrough()) fail("others", `${what} came to ${result}`);
  }

  /** Views of an operation, in regions or not. */
  function memory() {
    const inRegions = below(3) === 0;
    /** @type {import("pamir").MemRegion[]} */
    const regions = [];
    /** @type {Uint8Array[]} */
    const all = [];
    /** @param {keyof typeof ARRAYS} element */
    const takeOf = (element) => (/** @type {number} */ elements) => {
      const Class = ARRAYS[element];
      const bytes = elements * Class.BYTES_PER_ELEMENT;
      const region = inRegions && bytes > 0 ? client.createRegion(bytes) : undefined;
      if (region !== undefined) regions.push(region);
      const view =
        region === undefined
          ? new Class(elements)
          : new Class(/** @type {any} */ (region.bytes.buffer), region.bytes.byteOffset, elements);
      all.push(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
      return view;
    };
    // It is the task's again, and becomes something else at once.
    const giveBack = () => {
      for (const bytes of all) bytes.fill(0xa5);
      for (const region of regions) region.close();
    };
    return { takeOf, giveBack };
  }

  /**
   * Begins an operation, and awaits it or not.
   * @param {Membership} membership
   * @param {Case} one
   * @param {number} [number] of the operation in the epoch
   */
  function operate(membership, one, number) {
    const { geometry, name } = membership;
    const { type } = one;
    const size = geometry.size;
    // Only collective() has algorithms of barriers. Blocking stops the other contexts, which other members may wait for.
    const takesCallback = type === "barrier" && one.algorithm > 0;
    const blocks = contexts.length === 1 && !takesCallback && below(2) === 0;
    if (isThrough()) return;
    const isActive = type.startsWith("am");
    // The root alone begins these. What is shrunk may close before they are over.
    if (isActive && (number === undefined || one.root !== geometry.rank)) return;
    const { takeOf, giveBack } = memory();
    const { parameters, problem } = partOf(one, geometry.rank, size, takeOf(one.element));
    const algorithms = geometry.algorithms(type).filter(({ always }) => always);
    const algorithm = one.algorithm === 0 ? undefined : algorithms[one.algorithm % algorithms.length]?.name;
    const all = {
      ...parameters,
      ...(algorithm === undefined ? {} : { algorithm }),
      ...(isActive ? { dispatch: MESSAGE, header: Int32Array.of(number ?? 0) } : {}),
    };
    const what = `${type} ${begun++} (${number}) of ${name}, rank ${geometry.rank} of ${size}, ${one.element} × ${one.count}, ${one.operation}, ${algorithm}`;
    const wasBroken = membership.isBroken;
    const options = { timeout: patience };
    const over = (/** @type {number} */ result) => {
      underWay.delete(what);
      if (result === SUCCESS) {
        const wrong = problem();
        if (wrong !== undefined) fail("contents", `${what}: ${wrong}`);
        if (type === "barrier" && number !== undefined) {
          const early = membership.tasks.findIndex((task) => pages.begun(task) < number);
          if (early >= 0) fail("others", `${what} is over before rank ${early} has come`);
        }
      }
      finished(membership, what, one, result, wasBroken);
      giveBack();
      book.count("operations");
    };
    underWay.add(what);
    if (blocks) {
      const call = /** @type {(given: object, options: object) => number} */ (
        /** @type {any} */ (geometry)[`${type}Sync`]
      );
      const result = type === "barrier" ? geometry.barrierSync(options) : call.call(geometry, all, options);
      over(result);
      return;
    }
    if (!takesCallback && below(2) === 0) {
      const call = /** @type {(given: object, options?: object) => Promise<unknown>} */ (
        /** @type {any} */ (geometry)[type]
      );
      const promise = type === "barrier" ? geometry.barrier(options) : call.call(geometry, all, options);
      promise.then(
        () => over(SUCCESS),
        (error) => {
          const result = RESULTS[codeOf(error)];
          if (result === undefined && !(isThrough() && codeOf(error) === "PAMIR_CLOSED"))
            fail("others", `${what}: ${error}`);
          if (result === TIMEDOUT) fail("hung", `${error.message}`);
          over(result ?? SHUTDOWN);
        },
      );
      return;
    }
    const onDone = (/** @type {unknown} */ cookie, /** @type {number} */ result) => {
      if (cookie !== what) fail("others", `${what}: the callback of ${cookie}`);
      over(result);
    };
    const result = geometry.collective(type, /** @type {any} */ ({ ...all, onDone, cookie: what }));
    if (result !== SUCCESS) fail("others", `${what} was refused: ${result}`);
  }

  /** Answers the active messages of a geometry. @param {Geometry} geometry @param {string} name */
  function answer(geometry, name) {
    geometry.dispatch(MESSAGE, (message) => {
      const [number = 0] = new Int32Array(message.header.slice().buffer);
      const { answer: own, problem } = answerOf(caseOf(round, number, geometry.size), geometry.rank, message);
      if (problem !== undefined) fail("contents", `active message ${number} of ${name}: ${problem}`);
      book.count("messages");
      return own;
    });
  }

  /** Messages to members, between operations. @param {Membership} membership */
  function talk({ geometry, context }) {
    const to = geometry.endpoint(below(geometry.size));
    if (to === context.endpoint) return;
    const key = `${context.index} ${to}`;
    const number = (sent.get(key) ?? 0) + 1;
    const length = below(4) === 0 ? LONG_BYTES : below(60);
    const header = Int32Array.of(number, length);
    const payload = pattern(length, number);
    const result =
      length > 100
        ? context.send({ to, dispatch: MESSAGE, header, payload })
        : context.sendImmediate(to, MESSAGE, header, payload);
    if (result === SUCCESS) sent.set(key, number);
    else if (result !== EAGAIN && result !== SHUTDOWN) fail("others", `a message to ${to} came to ${result}`);
  }

  /** Sleeps or advances, as a program does. */
  async function rest() {
    const kind = below(12);
    if (kind < 4) for (const context of contexts) context.closed || context.advance();
    else if (kind < 7) await turn();
    else if (kind < 8 && round.slow) Atomics.wait(asleep, 0, 0, below(20));
  }

  /** @param {number} epoch @param {Membership} world */
  async function liveEpoch(epoch, world) {
    const numbers = Array.from({ length: survivors + victims }, (_, place) =>
      place < survivors ? place : survivors + epoch * victims + place - survivors,
    );
    await until(() => numbers.every((task) => pages.isAttached(task)), "for all to attach");
    /** @type {Membership[][]} */
    const made = [];
    const lists = geometriesOf(round, epoch);
    const creations = lists.flatMap((members, index) => {
      const endpoints = members.map(({ place, context }) =>
        client.endpoint(/** @type {number} */ (numbers[place]), context),
      );
      const tasks = members.map(({ place }) => /** @type {number} */ (numbers[place]));
      const own = contexts.filter(({ endpoint }) => endpoints.includes(endpoint));
      made[index] = [];
      return own.map((context) => ({ context, promise: create(context, endpoints, tasks, index) }));
    });
    /** @param {Context} context @param {number[]} endpoints @param {number[]} tasks @param {number} index */
    async function create(context, endpoints, tasks, index) {
      try {
        const geometry = await client.createGeometry(endpoints, { context, id: index, timeout: patience });
        answer(geometry, `geometry ${epoch}.${index}`);
        made[index]?.push(new Membership(`geometry ${epoch}.${index}`, geometry, context, tasks, true));
      } catch (error) {
        const code = codeOf(error);
        if (code === "PAMIR_TIMEDOUT") fail("hung", String(error));
        if (code !== "PAMIR_SHUTDOWN" && !(isThrough() && code === "PAMIR_CLOSED")) fail("others", `${error}`);
      }
    }
    mayEnd([]);
    await whileOthersAdvance(creations);
    for (const memberships of made) memberships.sort((one, other) => one.context.index - other.context.index);
    const alive = () => (isThrough() ? [] : made);
    for (let step = 0; step < steps; step++) {
      mayEnd(made.flat());
      const number = (epoch + 1) * EPOCH_KEYS + step;
      const { below: common } = randomFrom((round.seed ^ Math.imul(number, 0x3c6ef372)) | 0);
      const index = common(lists.length + 1) - 1;
      const memberships = index < 0 ? [world] : (alive()[index] ?? []);
      pages.begin(client.task, number);
      if (isVictim && index < 0) continue;
      await until(() => underWay.size < round.underWay, "for room");
      for (const membership of memberships) {
        const one = caseOf(round, number, membership.geometry.size);
        operate(membership, one, number);
        if (below(4) === 0 && !isThrough()) talk(membership);
      }
      await rest();
    }
    pages.begin(client.task, (epoch + 2) * EPOCH_KEYS - 1);
    mayEnd(made.flat());
    await until(() => underWay.size === 0, "for what is under way");
    for (const [index, memberships] of alive().entries()) {
      await whileOthersAdvance(
        memberships.map((membership) => ({
          context: membership.context,
          promise: shrunk(membership, epoch, index, numbers),
        })),
      );
    }
    for (const { geometry } of made.flat()) geometry.close();
  }

  /**
   * Shrinks a geometry until only survivors are left, which use it.
   * @param {Membership} membership
   * @param {number} epoch
   * @param {number} index
   * @param {readonly number[]} numbers tasks of the epoch
   */
  async function shrunk(membership, epoch, index, numbers) {
    let current = membership;
    for (let time = 0; time < SHRINKS; time++) {
      mayEnd([current]);
      if (isThrough()) return;
      const { geometry, context } = current;
      /** @type {Geometry} */
      let next;
      try {
        next = await geometry.shrink({ timeout: patience });
      } catch (error) {
        if (isThrough()) return;
        fail(codeOf(error) === "PAMIR_TIMEDOUT" ? "hung" : "others", `shrink() of ${current.name}: ${error}`);
        return;
      }
      if (current !== membership) geometry.close();
      const tasks = next.endpoints.map(
        (endpoint) => /** @type {number} */ (membership.tasks[membership.geometry.endpoints.indexOf(endpoint)]),
      );
      const isOver = tasks.every((task) => task < survivors);
      const hash =
        next.endpoints.reduce((sum, endpoint) => Math.imul(sum ^ endpoint, 0x01000193) ^ (sum >>> 15), 7) | 1;
      if (!pages.isSame(index, time, hash))
        fail("others", `${current.name}: other members have another one, not ${next.endpoints}`);
      current = new Membership(`${membership.name}, shrunk ${time}`, next, context, tasks, !isOver);
      for (let again = 0; again < AGAIN && !isThrough(); again++) {
        const key = epoch * EPOCH_KEYS + SHRUNK_KEY + (index * SHRINKS + time) * AGAIN + again;
        operate(current, caseOf(round, key, next.size));
      }
      const name = current.name;
      await until(() => [...underWay].every((what) => !what.includes(name)), "for what is under way");
      if (isOver) {
        next.close();
        return;
      }
      // Those that another thread is to end have their time, so that this loop ends.
      const isAwaited = (/** @type {number} */ task) => pages.delayOf(task) !== undefined && !pages.isDead(task);
      await until(() => time < 2 || !numbers.some(isAwaited), "for those that are struck");
    }
    fail("others", `${membership.name} was shrunk ${SHRINKS} times`);
  }

  /** Idle memory of this task goes back: no region finds so much. */
  function trim() {
    try {
      client.createRegion(round.heapBytes).close();
    } catch (error) {
      if (codeOf(error) !== "PAMIR_NO_MEMORY") throw error;
    }
  }

  book.begin(client.task);
  pages.attach(client.task);
  if (isVictim) {
    await liveEpoch(only ?? 0, /** @type {Membership} */ (/** @type {unknown} */ (undefined)));
    if (!isThrough()) pages.strike(client.task, fate.delay);
    for (;;) {
      for (const context of contexts) if (!context.closed) context.advance();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  const geometry = await client.world({ timeout: patience });
  answer(geometry, "the world");
  const everybody = Array.from({ length: survivors }, (_, task) => task);
  const world = new Membership("the world", geometry, first, everybody, false);
  // What this task has sent from other contexts may still wait for room.
  const meet = () => whileOthersAdvance([{ context: first, promise: geometry.barrier({ timeout: patience }) }]);
  for (let epoch = 0; ; epoch++) {
    let waits = 0;
    await until(() => {
      if (waits++ % 16 === 0) trim();
      return pages.epoch > epoch || pages.epoch < 0;
    }, "for the next epoch");
    if (pages.epoch < 0) break;
    await liveEpoch(epoch, world);
    await meet();
    pages.raiseDone();
  }
  await meet();
  geometry.close();
  let waits = 0;
  pages.raiseDone();
  await until(() => {
    if (waits++ % 16 === 0) trim();
    return pages.epoch === -2;
  }, "to leave");
  await client.close({ drain: true });
}

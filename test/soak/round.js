// @ts-check
// One round: a job, the deaths in it, and what has come of it. The watchdog is here: this thread waits for nothing without
// a limit, unless it is a task itself.
import { launch } from "pamir";
import { makeShared } from "../api/tasks/flags.js";
import { randomFrom } from "../api/tasks/random.js";
import { fateOf, TERMINATED } from "./draw.js";
import { survive } from "./life.js";
import { ALONE, Book, CHECKED, FAILURES, LEAVE, STOP, STRUCK } from "./model.js";

/**
 * @typedef {object} Outcome
 * @property {number} operations
 * @property {number} messages
 * @property {number} kills
 * @property {Record<import("./model.js").Failure, number>} failures
 * @property {string[]} notes why, for the first of them
 * @property {string} dump of the job, where something hung
 */

/** Bytes of a page of the heap. */
const PAGE_BYTES = 4096;
/** One part of the map lies below 2^31 then, and the other above. */
const STRADDLING = 2 ** 31 - 1024 ** 2;
/** Milliseconds between two looks. */
const LOOK_MS = 10;
/** Milliseconds after which who wants to wait for its end does. */
const SETTLED_MS = 60;

/** It may end before it has begun. */
const ENGINE_ENDS = /^pamir: (the engine thread has ended|there is no engine thread): it was terminated\./;

/** How often it was said that the engine thread has ended, which is no news here. */
function countEnds() {
  let count = 0;
  const { warn } = console;
  console.warn = (...said) => {
    if (ENGINE_ENDS.test(String(said[0]))) count++;
    else warn(...said);
  };
  return () => count;
}

/** @param {import("./draw.js").Round} round @returns {Promise<Outcome>} */
export async function runRound(round) {
  const { contexts, kernels, kills, survivors, patience } = round;
  const warned = countEnds();
  const places = survivors + kills;
  const bytes = Book.bytes(places, contexts);
  const shared = round.processes > 0 ? await makeShared(bytes) : undefined;
  const buffer = shared?.buffer ?? new SharedArrayBuffer(bytes);
  const book = new Book(buffer, places, contexts);
  const { below } = randomFrom(round.seed);
  const args = { round, pages: shared?.place ?? buffer, places };
  /**
   * Tasks that have not ended, as they have to. A process takes its time to begin, and its task's life counts from then on.
   * @typedef {{ seat: number, since: number | undefined, isStruck: boolean, by: number }} Victim
   * @type {Map<number, Victim>}
   */
  const doomed = new Map();
  let isStopped = false;
  let isOver = false;

  const job = await launch(new URL("task.js", import.meta.url), {
    tasks: survivors,
    maxTasks: places,
    join: round.join,
    // One more, for the last of them to look at the memory.
    contexts: contexts + 1,
    kernel: Array.from({ length: survivors }, (_, task) => kernelOf(task)),
    laneBytes: round.laneBytes,
    heapBytes: round.heapBytes,
    fifos: round.fifos,
    slots: round.slots,
    engine: round.engine,
    ...(round.straddles ? { memoryBase: STRADDLING } : {}),
    ...(round.processes > 0 ? { processes: round.processes } : {}),
    args,
    onExit,
  });
  const own = round.join ? survive(job.client, args) : Promise.resolve();
  own.catch((error) => book.fail("others", `task 0: ${error.stack}`));

  /** @param {number} task */
  function kernelOf(task) {
    return /** @type {import("./draw.js").KernelName} */ (kernels[task % kernels.length]);
  }

  /** One more that is to die. @param {number} seat */
  function spawn(seat) {
    const task = job.tasks;
    const { how, lifetime } = fateOf(round, task);
    job.spawn({
      kernel: kernelOf(task),
      args: { ...args, seat },
      ...(how === "memory" && { workerOptions: { resourceLimits: { maxOldGenerationSizeMb: 24 } } }),
    });
    const now = performance.now();
    const since = round.processes > 0 ? undefined : now;
    doomed.set(task, { seat, since, isStruck: false, by: now + lifetime + patience });
  }

  /** @param {import("pamir").TaskExit} exit */
  function onExit({ task, cause, error }) {
    const victim = doomed.get(task);
    if (victim === undefined) {
      if (isOver || book.flag(CHECKED) === survivors) return;
      book.fail("others", `task ${task} has ended: ${cause}, ${error}`);
      return;
    }
    doomed.delete(task);
    book.count("kills");
    const { how } = fateOf(round, task);
    // What goes on beside a step that was broken off may be the first to throw: it finds itself within a round, or a queue
    // whose length is raised and whose entry is not there.
    const isThrown = how === "throw" && book.isBroken(task);
    const isKilled = how === "killed" && cause === "process" && / was killed by SIGKILL$/.test(error ?? "");
    if (!isThrown && !isKilled && !["exit", "memory", "terminated"].includes(cause))
      book.fail("others", `task ${task}, ${how}, has ended: ${cause}, ${error}`);
    if (!isStopped && job.tasks < places) spawn(victim.seat);
  }

  /** Ends those whose time has come. */
  function reap() {
    const now = performance.now();
    for (const [task, victim] of doomed) {
      const { how, lifetime } = fateOf(round, task);
      const pid = book.processOf(task);
      if (pid > 0) victim.since ??= now;
      const end = (victim.since ?? Number.POSITIVE_INFINITY) + lifetime;
      if (!victim.isStruck && how === "killed" && now > end) {
        victim.isStruck = true;
        process.kill(pid, "SIGKILL");
      }
      if (!victim.isStruck && TERMINATED.includes(how) && now > end + SETTLED_MS) {
        victim.isStruck = true;
        void job.terminate(task);
      }
      if (now < victim.by) continue;
      book.fail("hung", `task ${task} has not ended: ${how}`);
    }
  }

  /**
   * Looks again and again until the condition holds; nothing may take longer than so many milliseconds.
   * @param {() => boolean} condition
   * @param {number} most
   * @param {string} what
   */
  async function watch(condition, most, what) {
    const end = performance.now() + most;
    for (;;) {
      if (book.counted("hung") > 0) return false;
      if (condition()) return true;
      if (performance.now() > end) {
        book.fail("hung", what);
        return false;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      reap();
    }
  }

  /** Nothing but what the last task needs for itself is taken of the heap. */
  function left() {
    const { heap, tasks } = job.dump();
    const owners = heap.owners.filter(({ task, regions }) => task !== 0 || regions > PAGE_BYTES);
    const lanes = (tasks[0]?.contexts ?? []).flatMap((context) =>
      context.lanes.filter(({ origin }) => origin[0] !== 0),
    );
    return owners.length + lanes.length === 0 ? undefined : JSON.stringify({ owners, lanes });
  }

  const hasBegun = () => Array.from({ length: survivors }, (_, task) => task).every((task) => book.processOf(task) > 0);
  let goesOn = await watch(hasBegun, patience, "to begin");
  const start = performance.now();
  const until = start + round.milliseconds;
  if (kills > 0) for (let seat = survivors; seat < round.tasks; seat++) spawn(seat);
  const isEnough = () =>
    performance.now() > until ||
    book.hasFailed ||
    book.flag(STRUCK) > 0 ||
    (kills > 0 && doomed.size === 0 && job.tasks === places);
  const endOfEngine = start + (round.engineEnd ?? Number.POSITIVE_INFINITY);
  let isEngineEnded = false;
  const disturbs = () => {
    if (round.interrupts && below(4) === 0) job.interrupt(below(job.tasks));
    if (!isEngineEnded && performance.now() > endOfEngine) {
      isEngineEnded = true;
      /** @type {import("pamir").Job & { endEngine(): void }} */ (job).endEngine();
    }
    return isEnough();
  };
  goesOn = goesOn && (await watch(disturbs, round.milliseconds + patience, "the traffic"));
  isStopped = true;
  goesOn = goesOn && (await watch(() => doomed.size === 0, 2 * patience, "the deaths"));
  for (let task = 0; task < survivors; task++) book.leave(task);
  book.raise(STOP);
  goesOn = goesOn && (await watch(() => book.flag(ALONE) > 0, 4 * patience, "the end of the round"));
  // The monitor's thread tells of it, which may be later than all that the tasks had left to do.
  const isTold = () => job.engine !== "thread" && warned() > 0;
  if (isEngineEnded) goesOn = goesOn && (await watch(isTold, patience, "to be told of the end of the engine thread"));
  const dump = goesOn ? "" : String(job.dump());
  if (goesOn && job.engine !== (isEngineEnded ? "ended" : round.engine))
    book.fail("others", `the engine is ${job.engine}`);
  if (goesOn && warned() !== Number(isEngineEnded))
    book.fail("others", "the end of the engine thread was not told once");
  if (goesOn && !book.hasFailed) {
    const end = performance.now() + patience / 4;
    // Looked at until there is nothing, and not once more.
    let rest = left();
    while (rest !== undefined && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      rest = left();
    }
    if (rest !== undefined) book.fail("memory", rest);
  }
  book.raise(LEAVE);
  let hasEnded = false;
  void job.exited.then(() => {
    hasEnded = true;
  });
  if (goesOn) await watch(() => hasEnded, patience, "to leave");
  isOver = true;
  await job.terminate();
  return {
    operations: book.counted("operations"),
    messages: book.counted("messages"),
    kills: book.counted("kills"),
    failures: /** @type {Outcome["failures"]} */ (
      Object.fromEntries(FAILURES.map((failure) => [failure, book.counted(failure)]))
    ),
    notes: book.notes,
    dump,
  };
}

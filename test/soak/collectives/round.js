// @ts-check
// One round of collective operations: a job, the deaths in each of its epochs, and what has come of it. The memory of the heap
// must be what it was, behind each epoch.
import { launch } from "pamir";
import { makeShared } from "../../api/tasks/flags.js";
import { Book, FAILURES } from "../model.js";
import { fateOf } from "./draw.js";
import { Pages } from "./pages.js";

/** Milliseconds between two looks. */
const LOOK_MS = 1;
/** One part of the map lies below 2^31 then, and the other above. */
const STRADDLING = 2 ** 31 - 1024 ** 2;

/** @param {import("./draw.js").CollectiveRound} round @returns {Promise<import("../round.js").Outcome>} */
export async function runCollectiveRound(round) {
  const { survivors, victims, epochs, kernels, patience } = round;
  const places = survivors + victims * epochs;
  const bytes = Book.bytes(places, 1) + Pages.bytes(places);
  const shared = round.processes > 0 ? await makeShared(bytes) : undefined;
  const buffer = shared?.buffer ?? new SharedArrayBuffer(bytes);
  const book = new Book(buffer, places, 1);
  const pages = new Pages(buffer, Book.bytes(places, 1), places);
  const args = { round, pages: shared?.place ?? buffer, places };
  /** Tasks that have not ended, as they have to; and when those that asked for it are ended. @type {Map<number, number | undefined>} */
  const doomed = new Map();
  let isOver = false;

  const job = await launch(new URL("task.js", import.meta.url), {
    tasks: survivors,
    maxTasks: places,
    contexts: round.contexts,
    kernel: Array.from({ length: survivors }, (_, task) => kernelOf(task)),
    laneBytes: round.laneBytes,
    heapBytes: round.heapBytes,
    engine: round.engine,
    ...(round.straddles ? { memoryBase: STRADDLING } : {}),
    ...(round.processes > 0 ? { processes: round.processes } : {}),
    args,
    onExit,
  });

  /** @param {number} task */
  function kernelOf(task) {
    return /** @type {import("./draw.js").KernelName} */ (kernels[task % kernels.length]);
  }

  /** @param {import("pamir").TaskExit} exit */
  function onExit({ task, cause, error }) {
    pages.bury(task);
    if (!doomed.delete(task)) {
      if (!isOver) book.fail("others", `task ${task} has ended: ${cause}, ${error}`);
      return;
    }
    book.count("kills");
    const { how } = fateOf(round, task);
    const isThrown = how === "throw" && /dies/.test(error ?? "");
    const isKilled = ["killed", "suicide"].includes(how) && / was killed by SIGKILL$/.test(error ?? "");
    if (!isThrown && !isKilled && !["exit", "terminated"].includes(cause))
      book.fail("others", `task ${task}, ${how}, has ended: ${cause}, ${error}`);
  }

  /** Ends those whose time has come. */
  function reap() {
    const now = performance.now();
    for (const [task, at] of doomed) {
      const delay = pages.delayOf(task);
      if (delay === undefined) continue;
      if (at === undefined) doomed.set(task, now + delay);
      else if (now >= at) {
        doomed.set(task, Number.POSITIVE_INFINITY);
        if (fateOf(round, task).how === "killed") process.kill(book.processOf(task), "SIGKILL");
        else void job.terminate(task);
      }
    }
  }

  /**
   * Looks again and again until the condition holds; nothing may take longer than the patience.
   * @param {() => boolean} condition
   * @param {string} what
   */
  async function watch(condition, what) {
    const end = performance.now() + 2 * patience;
    while (book.counted("hung") === 0) {
      if (condition()) return true;
      if (performance.now() > end) book.fail("hung", what);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      reap();
    }
    return false;
  }

  /** Bytes in regions of survivors, and all that the dead have. */
  function taken() {
    const { owners } = job.dump().heap;
    const lost = owners.filter(({ task }) => task >= survivors);
    const regions = Array.from({ length: survivors }, (_, of) => owners.find(({ task }) => task === of)?.regions ?? 0);
    return JSON.stringify({ regions, lost });
  }

  /** Waits until the heap is as it was. @param {string} before @param {string} when */
  async function settle(before, when) {
    const end = performance.now() + patience / 4;
    let now = taken();
    while (now !== before && performance.now() < end && book.counted("hung") === 0) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      now = taken();
    }
    if (now !== before) book.fail("memory", `${when}: ${now}, not ${before}`);
  }

  /** Each survivor has the block of its world. */
  const BLOCK = survivors > 0 ? 4096 : 0;
  const expected = JSON.stringify({ regions: new Array(survivors).fill(BLOCK), lost: [] });
  const until = performance.now() + round.milliseconds;
  let goesOn = await watch(
    () => Array.from({ length: survivors }, (_, task) => task).every((task) => pages.isAttached(task)),
    "to begin",
  );
  let epoch = 0;
  for (; goesOn && !book.hasFailed && epoch < epochs && (epoch === 0 || performance.now() < until); epoch++) {
    pages.clear();
    for (let seat = 0; seat < victims; seat++) {
      const task = job.tasks;
      doomed.set(task, undefined);
      job.spawn({ kernel: kernelOf(task), args: { ...args, epoch } });
    }
    pages.epoch = epoch + 1;
    goesOn = await watch(() => pages.done === survivors && doomed.size === 0, `epoch ${epoch}`);
    if (goesOn) await settle(expected, `behind epoch ${epoch}`);
  }
  if (goesOn && !book.hasFailed) {
    pages.clear();
    pages.epoch = -1;
    goesOn = await watch(() => pages.done === survivors, "the end of the round");
    if (goesOn) await settle(JSON.stringify({ regions: new Array(survivors).fill(0), lost: [] }), "at the end");
  }
  const dump = book.counted("hung") + book.counted("memory") > 0 ? String(job.dump()) : "";
  isOver = true;
  pages.epoch = -2;
  let hasEnded = false;
  void job.exited.then(() => {
    hasEnded = true;
  });
  if (goesOn && !book.hasFailed) await watch(() => hasEnded, "to leave");
  await job.terminate();
  return {
    operations: book.counted("operations"),
    messages: book.counted("messages"),
    kills: book.counted("kills"),
    failures: /** @type {import("../round.js").Outcome["failures"]} */ (
      Object.fromEntries(FAILURES.map((failure) => [failure, book.counted(failure)]))
    ),
    notes: book.notes,
    dump,
  };
}

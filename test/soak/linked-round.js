// @ts-check
// One round whose tasks are processes in several nodes, joined by a link: started as a launcher starts them, with a job key.
// Some of them are killed. What a killed one had sent may be lost; what came of it is whole, in order, and came once.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeShared } from "../api/tasks/flags.js";
import { randomFrom } from "../api/tasks/random.js";
import { fateOf } from "./draw.js";
import { ALONE, Book, FAILURES, LEAVE, STOP, STRUCK } from "./model.js";
import { freePorts, Servers } from "./servers.js";

/** Milliseconds between two looks. */
const LOOK_MS = 10;
/** Milliseconds of silence after which a node is given up: longer than a busy machine delays one. */
const SILENCE_MS = 10_000;
/** The same where servers are away: a client finds after 16 s that a stopped server is none, and others may be away by then. */
const SERVERS_SILENCE_MS = 40_000;
/** How processes of each end have ended: an exit code, or a signal. @type {Partial<Record<import("./draw.js").End, number | string>>} */
const CODES = { killed: "SIGKILL", exit: 9 };

/** @param {import("./draw.js").Round} round @returns {Promise<import("./round.js").Outcome>} */
export async function runLinkedRound(round) {
  const { tasks, contexts, survivors, tasksPerNode, milliseconds, patience } = round;
  const { below } = randomFrom(round.seed);
  const { buffer, place } = await makeShared(Book.bytes(tasks, contexts));
  const book = new Book(buffer, tasks, contexts);
  const folder = mkdtempSync(join(tmpdir(), "pamir-soak-"));
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
  const { laneBytes, heapBytes, fifos, slots, kernels, nats } = round;
  const servers = nats === undefined ? undefined : await Servers.start();
  const [port] = await freePorts(1);
  const options = {
    contexts: contexts + 1,
    laneBytes,
    heapBytes,
    fifos,
    slots,
    kernel: kernels[0],
    silence: nats === undefined ? SILENCE_MS : SERVERS_SILENCE_MS,
    link: nats === undefined ? "udp" : "nats",
  };
  const env = {
    ...process.env,
    PAMIR_SIZE: `${tasks}`,
    PAMIR_RENDEZVOUS: `127.0.0.1:${port}`,
    PAMIR_KEY_FILE: keyFile,
    PAMIR_OPTIONS: JSON.stringify(options),
    ...(servers && { PAMIR_NATS: servers.urls, PAMIR_NATS_DIRECT: nats?.isDirect ? "1" : "0" }),
    PAMIR_SOAK: JSON.stringify({ round, pages: place, places: tasks }),
  };
  let running = tasks;
  /** Whether all have to end now. */
  let isOver = false;

  /** @param {number} task */
  function start(task) {
    const own = { PAMIR_RANK: `${task}`, PAMIR_NODE: `node ${Math.floor(task / tasksPerNode)}` };
    const program = fileURLToPath(new URL("linked-task.js", import.meta.url));
    const child = spawn(process.execPath, [program], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...env, ...own },
    });
    child.on("close", (code, signal) => {
      running--;
      const how = code ?? signal;
      const isDoomed = task >= survivors;
      if (isDoomed) book.count("kills");
      const awaited = isDoomed ? (CODES[fateOf(round, task).how] ?? 0) : 0;
      if (!isOver && how !== awaited)
        book.fail("others", `the process of task ${task} has ended: ${how}, not ${awaited}`);
    });
    return child;
  }

  const children = Array.from({ length: tasks }, (_, task) => start(task));
  /** Milliseconds from the beginning of the traffic. */
  const kills = children.map((_, task) =>
    task >= survivors && fateOf(round, task).how === "killed" ? below(milliseconds) : Number.POSITIVE_INFINITY,
  );

  /** Looks until the condition holds; nothing may take longer. @param {() => boolean} condition @param {number} most @param {string} what */
  async function watch(condition, most, what) {
    const end = performance.now() + most;
    while (book.counted("hung") === 0) {
      if (condition()) return true;
      if (performance.now() > end) book.fail("hung", what);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return false;
  }

  try {
    const hasBegun = () => children.every((_, task) => book.processOf(task) > 0 || task >= survivors);
    let goesOn = await watch(hasBegun, patience, "to begin");
    const start = performance.now();
    servers?.disturb(nats?.disturbances ?? []);
    const traffic = () => {
      for (const [task, at] of kills.entries()) {
        if (performance.now() < start + at) continue;
        kills[task] = Number.POSITIVE_INFINITY;
        children[task]?.kill("SIGKILL");
      }
      const isEnough = performance.now() > start + milliseconds || book.flag(STRUCK) > 0 || book.hasFailed;
      return isEnough && kills.every((at) => at === Number.POSITIVE_INFINITY);
    };
    goesOn = goesOn && (await watch(traffic, milliseconds + patience, "the traffic"));
    goesOn = goesOn && (await watch(() => running <= survivors, patience, "the deaths"));
    for (let task = 0; task < survivors; task++) book.leave(task);
    book.raise(STOP);
    goesOn = goesOn && (await watch(() => book.flag(ALONE) > 0, 4 * patience, "the end of the round"));
    book.raise(LEAVE);
    if (goesOn) await watch(() => running === 0, patience, "to leave");
  } finally {
    isOver = true;
    for (const child of children) child.kill("SIGKILL");
    servers?.close();
    rmSync(folder, { recursive: true });
  }
  return {
    operations: book.counted("operations"),
    messages: book.counted("messages"),
    kills: book.counted("kills"),
    failures: /** @type {import("./round.js").Outcome["failures"]} */ (
      Object.fromEntries(FAILURES.map((failure) => [failure, book.counted(failure)]))
    ),
    notes: book.notes,
    dump: "",
  };
}

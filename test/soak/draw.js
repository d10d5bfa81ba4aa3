// @ts-check
// What a round is like, drawn from the seed: which kinds of operation, how many tasks, which kernels, how small everything
// is, who is killed and how. Rounds differ much, so that what hides in one comes up in another (swarm testing).
import { randomFrom } from "../api/tasks/random.js";
import { drawDisturbances } from "./servers.js";

/** @typedef {"wasm" | "ts"} KernelName */

export const OPERATIONS = /** @type {const} */ ([
  "immediate",
  "now",
  "send",
  "reserve",
  "offer",
  "stream",
  "call",
  "streamCall",
  "transfer",
  "add",
  "draw",
  "change",
  "whenRoom",
  "wait",
  "purge",
  "post",
]);
/** @typedef {(typeof OPERATIONS)[number]} Operation */

/**
 * How a task ends: within any step of JavaScript (throw, exit, memory, terminate), while it waits or does not
 * (parked, asleep, blocked), and by itself (closed, drained).
 */
export const ENDS = /** @type {const} */ ([
  "throw",
  "exit",
  "memory",
  "terminate",
  "parked",
  "asleep",
  "blocked",
  "closed",
  "drained",
]);
/** Within any machine instruction: its process is killed. */
const KILLED = "killed";
/** @typedef {(typeof ENDS)[number] | typeof KILLED} End */
/** Those that somebody else has to end. @type {readonly End[]} */
export const TERMINATED = ["terminate", "parked", "asleep", "blocked"];

/**
 * @typedef {object} Round
 * @property {number} seed of this round
 * @property {number} tasks at once
 * @property {number} contexts a task
 * @property {readonly KernelName[]} kernels in turn
 * @property {number} processes among which those that are not killed are divided; each other has its own. 0: all are threads
 * @property {number} tasksPerNode of nodes that a link joins; each task is a process then. 0: there is one node
 * @property {{ isDirect: boolean, disturbances: readonly import("./servers.js").Disturbance[] }} [nats] the link goes through servers, and by UDP if it may
 * @property {boolean} join the thread that launched it is task 0
 * @property {number} survivors of the tasks, those that are not killed: at least one
 * @property {number} kills at most, of the tasks that come after those; 0: there are none
 * @property {readonly End[]} ends
 * @property {number} milliseconds of traffic
 * @property {readonly Operation[]} operations those drawn more often are in it more often
 * @property {readonly number[]} sizes of messages, at most
 * @property {number} blockBytes of a transfer
 * @property {number} offerBytes of a region from which payloads are offered, and of one into which they go
 * @property {number} laneBytes
 * @property {number} heapBytes
 * @property {boolean} isTight the heap is too small for all lanes to grow
 * @property {number} fifos
 * @property {number} slots
 * @property {number} pendingBytes
 * @property {number} unexpectedBytes
 * @property {number} spin
 * @property {boolean} slow tasks do not advance for a while, now and then
 * @property {boolean} interrupts
 * @property {boolean} straddles 2^31 is in the midst of the memory
 * @property {"inline" | "thread"} engine
 * @property {number | undefined} engineEnd milliseconds after which the engine thread is ended, if it is
 * @property {number} patience milliseconds in which everything has ended
 * @property {boolean} [meets] tasks that go on meet in barriers and reductions, too
 * @property {import("./model.js").Fault} [fault]
 */

const SMALL = [0, 8, 8, 8, 100, 500];
const LARGE = [5000, 20_000, 80_000, 300_000];

/**
 * @param {number} seed
 * @param {number} number of the round
 * @param {{ kernels: readonly KernelName[], tasks: readonly [least: number, most: number], processes?: boolean, link?: "udp" | "nats" | undefined, crowd?: boolean, milliseconds: number, patience: number }} limits
 * @returns {Round}
 */
export function drawRound(
  seed,
  number,
  { kernels, tasks: [least, most], processes = false, link, crowd = false, milliseconds, patience },
) {
  const { below } = randomFrom((Math.imul(seed, 0x9e3779b1) + number) | 0);
  /** @template T @param {readonly T[]} list @returns {T} */
  const one = (list) => /** @type {T} */ (list[below(list.length)]);
  /** @template T @param {readonly T[]} list @returns {T[]} */
  const some = (list) => list.filter(() => below(3) > 0);
  const tasks = least + below(most - least + 1);
  const contexts = 1 + below(2);
  const kills = below(3) > 0 && tasks > 1 ? 60 : 0;
  const isTight = below(3) === 0;
  const drawn = some(OPERATIONS);
  const operations = [...drawn, ...some(drawn), ...some(drawn), one(["immediate", "now", "send", "reserve"])];
  const sizes = [...SMALL, ...some(LARGE)];
  const blockBytes = one([4096, 65_536, 300_000]);
  const seats = tasks * contexts;
  const offerBytes = operations.includes("offer") ? Math.max(...sizes) : 0;
  const regionBytes = seats * (seats * 3 * blockBytes + 2 ** 16 + 2 * offerBytes);
  const heapBytes =
    Math.ceil((isTight ? 1.5 * regionBytes + seats * seats * 98_304 : 2 * regionBytes + 2 ** 27) / 65_536) * 65_536;
  const order = Array.from({ length: tasks }, () => one(kernels));
  /** @type {Round} */
  const round = {
    seed: below(2 ** 31),
    tasks,
    contexts,
    kernels: order,
    join: below(3) === 0,
    survivors: kills > 0 ? 1 + below(tasks - 1) : tasks,
    kills,
    processes: 0,
    tasksPerNode: 0,
    ends: [one(ENDS), ...some(ENDS)],
    milliseconds,
    operations: /** @type {Operation[]} */ (operations),
    sizes,
    blockBytes,
    offerBytes,
    laneBytes: 2 ** (6 + below(9)),
    heapBytes,
    isTight,
    fifos: one([1, 1, 2, 4]),
    slots: one([4, 4, 8, 64]),
    pendingBytes: one([1024, 8192, 65_536, 2 ** 20]),
    unexpectedBytes: one([0, 1024, 65_536, 2 ** 20]),
    spin: one([0, 0.05]),
    slow: below(2) === 0,
    interrupts: below(3) === 0,
    straddles: below(4) === 0,
    patience,
    // Drawn last: what is drawn above is the same without it.
    ...drawEngine(below, milliseconds),
  };
  if (link === "udp") return overLink(round, below);
  if (link === "nats") return overServers(overLink(round, below), below);
  const whole = crowd ? inCrowd(round) : round;
  return processes ? inProcesses(whole, below) : whole;
}

/**
 * The same round in processes of several nodes. All of them are there from the beginning. The first task of a node has its
 * agent, so a task that goes on never depends on one that is killed: those have the last numbers.
 * @param {Round} round
 * @param {(limit: number) => number} below
 * @returns {Round}
 */
function overLink(round, below) {
  const { tasks, survivors } = round;
  return {
    ...round,
    tasksPerNode: tasks % 2 === 0 ? 1 + below(2) : 1,
    kernels: round.kernels.slice(0, 1),
    join: false,
    kills: tasks - survivors,
    ends: [KILLED, KILLED, "exit", "closed", "drained"],
    heapBytes: round.heapBytes + 2 ** 26,
    interrupts: false,
    straddles: false,
    engine: "inline",
    engineEnd: undefined,
  };
}

/** The same round of nodes that are joined by NATS servers. @param {Round} round @param {(limit: number) => number} below @returns {Round} */
function overServers(round, below) {
  return { ...round, nats: { isDirect: below(3) === 0, disturbances: drawDisturbances(below, round.milliseconds) } };
}

/**
 * The same round of many tasks, of which half go on: with calls and streams, and barriers between them. What each task has is
 * small. Interrupts would end the waits of barriers.
 * @param {Round} round
 * @returns {Round}
 */
function inCrowd(round) {
  const { tasks, operations } = round;
  const sizes = [...SMALL, 5000];
  const blockBytes = 4096;
  const offerBytes = operations.includes("offer") ? 5000 : 0;
  return {
    ...round,
    contexts: 1,
    survivors: Math.ceil(tasks / 2),
    kills: 60,
    operations: [...operations, "call", "stream", "streamCall"],
    sizes,
    blockBytes,
    offerBytes,
    heapBytes: 2 * tasks * (tasks * (3 * blockBytes + 98_304) + 2 ** 16 + 2 * offerBytes) + 2 ** 27,
    isTight: false,
    interrupts: false,
    meets: true,
  };
}

/** The same round in processes; half of those that end are killed. @param {Round} round @param {(limit: number) => number} below */
function inProcesses(round, below) {
  const others = round.survivors - (round.join ? 1 : 0);
  return {
    ...round,
    processes: 1 + below(Math.max(1, others)),
    ends: round.ends.flatMap((end) => /** @type {const} */ ([end, KILLED])),
  };
}

/**
 * @param {(limit: number) => number} below
 * @param {number} milliseconds
 * @returns {Pick<Round, "engine" | "engineEnd">}
 */
function drawEngine(below, milliseconds) {
  const engine = below(2) === 0 ? "thread" : "inline";
  return { engine, engineEnd: engine === "thread" && below(3) === 0 ? below(milliseconds) : undefined };
}

/** How and when a task ends, in milliseconds from its beginning. @param {Round} round @param {number} task */
export function fateOf(round, task) {
  const { below } = randomFrom((round.seed ^ Math.imul(task + 1, 0x85ebca6b)) | 0);
  const how = /** @type {End} */ (round.ends[below(round.ends.length)]);
  return { how, lifetime: 1 + below(80) };
}

// @ts-check
// What a round of collective operations is like, drawn from the seed: its tasks, the geometries of each epoch, the operations
// that all members begin in the same order, and who ends where.
import { randomFrom } from "../../api/tasks/random.js";

/** @typedef {import("../draw.js").KernelName} KernelName */
/** @typedef {import("pamir").CollectiveType | import("pamir").ActiveType} CollectiveType */

/**
 * How a member ends: at once, by itself (throw, exit, closed, context, geometry, suicide), or within any step of JavaScript
 * (terminate) or machine instruction (killed) near that place. `suicide` and `killed` need a process of its own.
 */
const ENDS = /** @type {const} */ (["throw", "exit", "closed", "context", "geometry", "terminate", "terminate"]);
const KILLS = /** @type {const} */ (["suicide", "killed", "killed"]);
/** @typedef {(typeof ENDS)[number] | (typeof KILLS)[number]} End */
/** Those that another thread or process has to end. @type {readonly End[]} */
export const STRUCK_ENDS = ["context", "geometry", "terminate", "killed"];

/**
 * @typedef {object} CollectiveRound
 * @property {"collectives"} kind
 * @property {number} seed of this round
 * @property {number} survivors tasks that go on
 * @property {number} victims tasks that are started in each epoch, and end in it
 * @property {number} epochs at most
 * @property {number} steps of an epoch: operations that are begun
 * @property {number} contexts a task
 * @property {readonly KernelName[]} kernels in turn
 * @property {number} processes among which the survivors are divided; each victim has its own. 0: all are threads
 * @property {readonly End[]} ends
 * @property {number} milliseconds in which epochs are begun
 * @property {number} laneBytes
 * @property {number} heapBytes
 * @property {number} pendingBytes
 * @property {number} spin
 * @property {boolean} slow tasks do not advance for a while, now and then
 * @property {boolean} straddles 2^31 is in the midst of the memory
 * @property {"inline" | "thread"} engine
 * @property {number} longest elements of an operation, at most
 * @property {number} underWay operations of a task, at most
 * @property {number} patience milliseconds in which everything has ended
 */

/**
 * @param {number} seed
 * @param {number} number of the round
 * @param {{ kernels: readonly KernelName[], tasks: readonly [least: number, most: number], processes?: boolean, milliseconds: number, patience: number }} limits
 * @returns {CollectiveRound}
 */
export function drawCollectiveRound(
  seed,
  number,
  { kernels, tasks: [least, most], processes = false, milliseconds, patience },
) {
  const { below } = randomFrom((Math.imul(seed, 0x7feb352d) + number) | 0);
  /** @template T @param {readonly T[]} list @returns {T} */
  const one = (list) => /** @type {T} */ (list[below(list.length)]);
  const tasks = Math.max(2, least + below(most - least + 1));
  const victims = 1 + below(Math.min(3, tasks - 1));
  const contexts = 1 + below(2);
  const ends = processes ? [...ENDS, ...KILLS, ...KILLS] : ENDS;
  const survivors = tasks - victims;
  const longest = one([20, 1000, 20_000]);
  return {
    kind: "collectives",
    seed: below(2 ** 31),
    survivors,
    victims,
    epochs: 40,
    steps: one([5, 15, 60]),
    contexts,
    kernels: Array.from({ length: tasks }, () => one(kernels)),
    processes: processes ? 1 + below(survivors) : 0,
    ends: [one(ends), ...ends.filter(() => below(2) === 0)],
    milliseconds,
    laneBytes: 2 ** (8 + below(7)),
    heapBytes: 2 ** 28,
    pendingBytes: one([1024, 65_536, 2 ** 20]),
    spin: one([0, 0.05]),
    slow: below(3) === 0,
    straddles: below(4) === 0,
    engine: below(4) === 0 ? "thread" : "inline",
    longest,
    underWay: one([1, 3, 12]),
    patience,
  };
}

/** A member: a task, as its place in the epoch (survivors first, then victims), and one of its contexts. */
/** @typedef {{ place: number, context: number }} Member */

/**
 * The geometries of an epoch besides that of the survivors, each with one of those, and with one that ends.
 * @param {CollectiveRound} round
 * @param {number} epoch
 * @returns {Member[][]}
 */
export function geometriesOf({ seed, survivors, victims, contexts }, epoch) {
  const { below } = randomFrom((seed ^ Math.imul(epoch + 1, 0x27d4eb2f)) | 0);
  return Array.from({ length: 1 + below(3) }, () => {
    const sure = [below(survivors), survivors + below(victims)];
    /** @type {Member[]} */
    const members = [];
    for (let place = 0; place < survivors + victims; place++) {
      if (!sure.includes(place) && below(4) === 0) continue;
      const context = below(contexts);
      members.push({ place, context });
      if (contexts > 1 && below(6) === 0) members.push({ place, context: 1 - context });
    }
    for (let left = members.length - 1; left > 0; left--) {
      const other = below(left + 1);
      [members[left], members[other]] = /** @type {[Member, Member]} */ ([members[other], members[left]]);
    }
    return members;
  });
}

/** @type {readonly CollectiveType[]} */
const TYPES = [
  "barrier",
  "barrier",
  "broadcast",
  "broadcast",
  "reduce",
  "allreduce",
  "allreduce",
  "gather",
  "gatherv",
  "scatter",
  "scatterv",
  "allgather",
  "allgatherv",
  "alltoall",
  "alltoall",
  "alltoallv",
  "scan",
  "reduceScatter",
  "amBroadcast",
  "amScatter",
  "amGather",
  "amReduce",
];
const LENGTHS = [0, 1, 1, 2, 7, 8, 9, 20, 300, 1000, 5000, 20_000];
/** Elements of all blocks of a member, at most. */
const WHOLE = 60_000;
/** Elements of a block that goes to handlers: a member that comes late keeps less than its bound. */
const TO_HANDLERS = 200;
const ELEMENTS = /** @type {const} */ (["u8", "i32", "f64"]);
/** `throws` is a function that does nothing else. */
const OPERATIONS = /** @type {const} */ (["sum", "max", "min", "combine", "throws"]);

/**
 * An operation as all members know it.
 * @typedef {object} Case
 * @property {CollectiveType} type
 * @property {(typeof ELEMENTS)[number]} element
 * @property {(typeof OPERATIONS)[number]} operation
 * @property {number} root
 * @property {number} count elements of a block, or of a vector
 * @property {boolean} isUneven blocks have different lengths, where they may
 * @property {boolean} inPlace
 * @property {boolean} exclusive
 * @property {number} algorithm which of those that always work; 0: the default
 * @property {number} seed
 */

/**
 * @param {CollectiveRound} round
 * @param {number} key of the operation: other keys, other operations
 * @param {number} size of the geometry
 * @returns {Case}
 */
export function caseOf({ seed, longest }, key, size) {
  const { below } = randomFrom((seed ^ Math.imul(key + 1, 0x165667b1)) | 0);
  /** @template T @param {readonly T[]} list @returns {T} */
  const one = (list) => /** @type {T} */ (list[below(list.length)]);
  const type = one(TYPES);
  const drawn = one(OPERATIONS);
  // Those of one member combine nothing, and where one alone combines, the others need not hear of it.
  const maySkip = type !== "allreduce" || size < 2 || below(3) > 0;
  return {
    type,
    element: one(ELEMENTS),
    operation: drawn === "throws" && maySkip ? "sum" : drawn,
    root: below(size),
    count: Math.min(
      one(LENGTHS),
      longest,
      type === "amBroadcast" || type === "amScatter" ? TO_HANDLERS : Math.floor(WHOLE / size),
    ),
    isUneven: below(2) === 0,
    inPlace: below(4) === 0,
    exclusive: below(2) === 0,
    algorithm: below(3) > 0 ? 0 : below(8),
    seed: below(2 ** 31),
  };
}

/**
 * How and where a task of an epoch ends: at so manieth point of what it does.
 * @param {CollectiveRound} round
 * @param {number} task
 */
export function fateOf({ seed, ends, steps }, task) {
  const { below } = randomFrom((seed ^ Math.imul(task + 1, 0x85ebca6b)) | 0);
  const how = /** @type {End} */ (ends[below(ends.length)]);
  // Often at the beginning, and at the end, where geometries are made.
  const kind = below(5);
  const point = kind === 0 ? below(4) : kind === 1 ? steps + below(12) : below(steps + 12);
  return { how, point, delay: below(4) };
}

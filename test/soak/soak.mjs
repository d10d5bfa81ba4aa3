#!/usr/bin/env node
// @ts-check
// npm run soak: rounds of random traffic or of collective operations, with kills, each compared with a model, until the time is
// over.
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { drawCollectiveRound } from "./collectives/draw.js";
import { drawRound, OPERATIONS } from "./draw.js";
import { FAILURES, FAULTS } from "./model.js";
import { runAlone, without } from "./run-alone.js";
import { NATS_SERVER } from "./servers.js";

/** @typedef {import("./round.js").Outcome} Outcome */

const HELP = `soak: random traffic and collective operations with kills of tasks, compared with a model

Usage: npm run soak -- [options]

  --minutes N      how long new rounds are begun (default 5)
  --seed S         of all that is drawn (default: another each time)
  --round R        this round of the seed alone
  --only KIND      rounds of traffic, or of collectives (default: in turn; over a link, traffic)
  --kernels LIST   of the tasks: wasm, ts, or both (default wasm,ts)
  --tasks RANGE    tasks at once, 1 to 8, as 3 or 2..4 (default 2..4)
  --crowd          traffic of more tasks than cores, four times as many unless --tasks (up to 64) says otherwise: half of them
                   are killed, and the others meet in barriers meanwhile
  --processes      tasks run in processes that share a memory, and some of those are killed (Linux)
  --link udp       tasks run in processes of several nodes, joined by UDP, and some of those are killed (Linux)
  --link nats      the same through a cluster of three NATS servers, which are killed, stopped and started again; in a third of the
                   rounds by UDP as well
  --seconds N      of traffic in a round (default 4)
  --patience N     seconds in which everything that was begun has ended (default 60)
  --help

A round draws which operations there are, who is killed and how, how small lanes, FIFOs and queues are, whether there is an
engine thread, and whether that ends. A round of collectives has epochs: survivors and tasks that end in it make geometries,
begin operations in all forms, and shrink the geometries. Counted are:

  lost, repeated, reordered, torn   messages, by pair and number; of one that was killed, those that it knew were out
  hung                              what did not end: with what was under way, and a dump of the job
  sums                              words that rmws have changed
  contents                          bytes that were put and got; results of collective operations
  calls                             wrongly answered
  memory                            of the heap, that did not come back
  others                            results, errors and ends that may not be

Exit codes: 0 none of them; 1 any; 2 wrong options.
`;

class UsageError extends Error {}

/** @param {string} option @param {string} value @param {number} least @param {number} most @param {RegExp} shape */
function number(option, value, least, most, shape = /^\d+$/) {
  const given = shape.test(value) ? Number(value) : Number.NaN;
  if (given >= least && given <= most) return given;
  const what = shape.test("0.5") ? "a number" : "a whole number";
  throw new UsageError(`${option} is ${JSON.stringify(value)}: ${what} from ${least} to ${most}`);
}

/** @param {string} value */
function kernelsOf(value) {
  const names = value.split(",");
  for (const name of names) {
    if (name !== "wasm" && name !== "ts")
      throw new UsageError(`--kernels is ${JSON.stringify(value)}: a list of wasm and ts`);
  }
  return /** @type {import("./draw.js").KernelName[]} */ (names);
}

const TASKS_MAX = 8;
const CROWD_MAX = 64;
/** @param {string | undefined} given @param {boolean} crowd @returns {readonly [number, number]} */
function tasksOf(given, crowd) {
  const limit = crowd ? CROWD_MAX : TASKS_MAX;
  const value = given ?? (crowd ? String(Math.min(CROWD_MAX, 4 * availableParallelism())) : "2..4");
  const [, least = "", most = least] = /^(\d+)(?:\.\.(\d+))?$/.exec(value) ?? [];
  const range = /** @type {const} */ ([Number(least), Number(most)]);
  if (least !== "" && range[0] >= 1 && range[0] <= range[1] && range[1] <= limit) return range;
  throw new UsageError(`--tasks is ${JSON.stringify(value)}: a number or range from 1 to ${limit}, as 3 or 2..4`);
}

/** @param {string | undefined} value @param {boolean} processes @returns {"udp" | "nats" | undefined} */
function linkOf(value, processes) {
  if (value === undefined) return undefined;
  if (value !== "udp" && value !== "nats")
    throw new UsageError(`--link is ${JSON.stringify(value)}: there are udp and nats`);
  if (processes) throw new UsageError("--link does not go with --processes: its tasks are processes");
  if (value === "nats" && NATS_SERVER === undefined)
    throw new UsageError("--link is nats, but nats-server is not installed");
  return value;
}

/** @param {boolean} crowd @param {string | undefined} link */
function crowdOf(crowd, link) {
  if (crowd && link !== undefined) throw new UsageError("--crowd does not go with --link: its tasks are in one node");
  return crowd;
}

/** @typedef {"traffic" | "collectives"} Kind */

/** @param {string | undefined} value @param {string | undefined} link @param {boolean} crowd @returns {Kind | undefined} */
function onlyOf(value, link, crowd) {
  if (value === undefined) return link === undefined && !crowd ? undefined : "traffic";
  if (value !== "traffic" && value !== "collectives")
    throw new UsageError(`--only is ${JSON.stringify(value)}: there are traffic and collectives`);
  if (value === "collectives" && link !== undefined)
    throw new UsageError("--only collectives does not go with --link: in each epoch, its tasks start others");
  if (value === "collectives" && crowd)
    throw new UsageError("--only collectives does not go with --crowd: its traffic has barriers");
  return value;
}

const ANY = /^\d+(\.\d+)?$/;

/** @param {string[]} args */
function optionsOf(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "5" },
      seed: { type: "string" },
      round: { type: "string" },
      only: { type: "string" },
      kernels: { type: "string", default: "wasm,ts" },
      tasks: { type: "string" },
      crowd: { type: "boolean", default: false },
      processes: { type: "boolean", default: false },
      link: { type: "string" },
      seconds: { type: "string", default: "4" },
      patience: { type: "string", default: "60" },
      help: { type: "boolean", short: "h" },
    },
  });
  return {
    help: values.help === true,
    minutes: number("--minutes", values.minutes, 0, 100_000, ANY),
    seed:
      values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : number("--seed", values.seed, 0, 2 ** 31 - 1),
    round: values.round === undefined ? undefined : number("--round", values.round, 0, 2 ** 31 - 1),
    only: onlyOf(values.only, values.link, values.crowd),
    kernels: kernelsOf(values.kernels),
    tasks: tasksOf(values.tasks, values.crowd),
    crowd: crowdOf(values.crowd, values.link),
    processes: values.processes,
    link: linkOf(values.link, values.processes),
    milliseconds: 1000 * number("--seconds", values.seconds, 0.1, 3600, ANY),
    patience: 1000 * number("--patience", values.patience, 0.1, 3600, ANY),
  };
}

/** What the soak's own test has a round do to the model. */
function faultOf() {
  const fault = process.env.PAMIR_SOAK_FAULT;
  if (fault === undefined) return undefined;
  if (fault in FAULTS) return /** @type {import("./model.js").Fault} */ (fault);
  throw new UsageError(`PAMIR_SOAK_FAULT is ${JSON.stringify(fault)}: there are ${Object.keys(FAULTS).join(", ")}`);
}

/** @param {Outcome["failures"]} failures @param {boolean} [all] */
const textOf = (failures, all = false) =>
  FAILURES.filter((failure) => all || failures[failure] > 0).map((failure) => `${failure} ${failures[failure]}`);

/**
 * @param {Kind} kind
 * @param {number} seed
 * @param {number} number
 * @param {Parameters<typeof drawRound>[2]} limits
 * @param {import("./model.js").Fault | undefined} fault
 */
function roundOf(kind, seed, number, limits, fault) {
  if (kind === "collectives") return drawCollectiveRound(seed, number, limits);
  const round = drawRound(seed, number, limits);
  if (fault === undefined) return round;
  const all = { fault, kills: 0, survivors: round.tasks, isTight: false, operations: OPERATIONS, engineEnd: undefined };
  return { ...round, ...all };
}

/** @param {import("./draw.js").Round} round */
function describeTraffic(round) {
  const { tasks, contexts, kernels, laneBytes, slots, processes, tasksPerNode, engine, engineEnd, nats } = round;
  const whose = engine === "inline" ? "" : engineEnd === undefined ? ", engine thread" : ", engine thread that ends";
  const nodes = tasksPerNode > 0 ? `, ${tasks / tasksPerNode} nodes` : "";
  const divided = processes > 0 ? `, ${processes} processes` : nodes;
  const ways = nats === undefined ? "" : `, by ${nats.isDirect ? "two ways" : "servers"}`;
  const servers = nats === undefined ? "" : `, servers disturbed ${nats.disturbances.length} times`;
  return `${tasks} tasks (${kernels}) × ${contexts}, lanes of ${laneBytes}, ${slots} slots${divided}${whose}${ways}${servers}`;
}

/** @param {import("./collectives/draw.js").CollectiveRound} round */
function describeCollectives({ survivors, victims, contexts, kernels, steps, underWay, longest, processes, engine }) {
  const tasks = `${survivors} tasks and ${victims} that end (${kernels}) × ${contexts}`;
  const divided = processes > 0 ? `, ${processes} processes` : "";
  const whose = engine === "inline" ? "" : ", engine thread";
  return `collectives: ${tasks}, epochs of ${steps}, ${underWay} under way, up to ${longest}${divided}${whose}`;
}

/** @param {string[]} args @returns {Promise<number>} */
async function soak(args) {
  const { help, minutes, seed, round: single, only, patience, ...limits } = optionsOf(args);
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const fault = faultOf();
  const where = limits.link !== undefined ? `, over ${limits.link}` : limits.processes ? ", in processes" : "";
  const range = limits.tasks.join(" to ");
  console.log(`soak: seed ${seed}, ${minutes} minutes, kernels ${limits.kernels}, tasks ${range}${where}`);
  const total = without(true, "");
  total.failures.hung = 0;
  const end = performance.now() + minutes * 60_000;
  let rounds = 0;
  const first = single ?? 0;
  for (let number = first; number === first || (single === undefined && performance.now() < end); number++) {
    const kind = only ?? (number % 2 === 0 ? "traffic" : "collectives");
    const round = roundOf(kind, seed, number, { ...limits, patience }, fault);
    const { operations, messages, kills, failures, notes, dump } = await runAlone(round, () =>
      console.log(`round ${number}: Node aborted by an assertion of its own: once more`),
    );
    rounds++;
    total.operations += operations;
    total.kills += kills;
    for (const failure of FAILURES) total.failures[failure] += failures[failure];
    const what = "kind" in round ? describeCollectives(round) : describeTraffic(round);
    const wrong = textOf(failures);
    const state = wrong.length === 0 ? "ok" : wrong.join(", ");
    console.log(`round ${number}: ${what}: ${operations} operations, ${messages} messages, ${kills} kills: ${state}`);
    if (wrong.length === 0) continue;
    for (const note of notes) console.log(`  ${note}`);
    if (dump !== "") console.log(dump.replace(/^/gm, "  "));
    const { kernels: list, tasks: range, milliseconds } = limits;
    const place = limits.link !== undefined ? ` --link ${limits.link}` : limits.processes ? " --processes" : "";
    const options = `${place}${limits.crowd ? " --crowd" : ""}`;
    const again = `--seed ${seed} --round ${number} --only ${kind} --kernels ${list} --tasks ${range.join("..")} --seconds ${milliseconds / 1000}${options}`;
    console.log(`  again: npm run soak -- ${again}`);
  }
  const { operations, kills, failures } = total;
  const counts = textOf(failures, true).join(", ");
  console.log(`soak: seed ${seed}, ${rounds} rounds, ${operations} operations, ${kills} kills, ${counts}`);
  return textOf(failures).length > 0 ? 1 : 0;
}

try {
  process.exitCode = await soak(process.argv.slice(2));
} catch (error) {
  const { code = "", message } = /** @type {{ code?: string, message: string }} */ (error);
  if (!(error instanceof UsageError) && !code.startsWith("ERR_PARSE_ARGS")) throw error;
  console.error(`soak: ${message}`);
  process.exitCode = 2;
}

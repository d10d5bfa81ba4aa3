// The options of `pamir perf`, and its help.
import { parseArgs } from "node:util";
import { oneOf, UsageError, wholeNumber } from "../../src/cli/usage.js";
import { LINK_SYSTEMS, ON_REQUEST, PROCESS_SYSTEMS, SYSTEMS, type System, TESTS, type Test } from "./plan.js";
import { blocksOf, COLLECTIVE_TESTS, isCollective } from "./work.js";

export interface PerfOptions {
  readonly tests: readonly Test[];
  readonly systems: readonly System[];
  /** Sizes asked for; none: each test's own. */
  readonly bytes: readonly number[];
  readonly runs: number;
  /** Members of the collective operations. */
  readonly tasks: number;
  readonly json: boolean;
  readonly quick: boolean;
  /** Shows the goals of pamir's developers beside the ratios. */
  readonly goals: boolean;
}

const BYTES_MAX = 2 ** 24;
/** Of rndv_bw alone, which has four payloads under way rather than 64. */
const RNDV_BYTES_MAX = 2 ** 30;
/** Of all vectors of a collective operation. */
const VECTOR_BYTES_MAX = 2 ** 29;
/** Threads that measure: of more, a machine that runs few at once only shows that they take turns. */
const TASKS_MIN = 2;
const TASKS_MAX = 64;
const RUNS = 5;
const LINK_NAMES = Object.keys(LINK_SYSTEMS);
const DEFAULT_SYSTEMS = SYSTEMS.map(({ name }) => name).filter((name) => !ON_REQUEST.has(name));

export function perfHelp(): string {
  const list = (items: readonly { name: string; what: string }[]) =>
    items.map(({ name, what }) => `  ${name.padEnd(21)} ${what}`).join("\n");
  return `pamir perf: measures messages between two threads, side by side with others

Usage: pamir perf [--test NAME]… [--bytes N]… [--system NAME]… [--runs N] [--json] [--quick] [--goals]
                  [--processes] [--link NAME] [--tasks N]

  --test NAME           only this test; may be repeated
  --bytes N             payload in bytes instead of each test's own sizes; may be repeated
  --system NAME         only this system; may be repeated
  --runs N              runs of each, alternating between the systems (default ${RUNS}); medians are shown
  --json                one JSON object on standard output, nothing else
  --quick               tiny runs: shows that it works, the numbers mean little
  --processes           also two tasks in a process each, over memory that they share: the system ${PROCESS_SYSTEMS[0]}
  --link NAME           two nodes on loopback, beside bare sockets: messages of 64 bytes and of 1 MiB: ${LINK_NAMES.join(" or ")}
  --tasks N             collective operations of N tasks, ${TASKS_MIN} to ${TASKS_MAX} (default ${TASKS_MIN}), and no other tests
  --goals               beside each ratio, the goal of pamir's developers, and whether it is met
  --help                this text

Tests:
${list(TESTS)}

Systems (what is not installed here is left out, and said so):
${list(SYSTEMS)}

Every run is bracketed by the hand-off: where that moves by more than 15 %, the run is repeated.
Exit codes: 0; 1 a run of pamir failed; 2 wrong input; 3 the machine was too unsteady, the numbers are void.
`;
}

function namesOf<Name extends string>(items: readonly { readonly name: Name }[]): Name[] {
  return items.map(({ name }) => name);
}

export function parsePerf(args: string[]): PerfOptions | "help" {
  const { values } = parseArgs({
    args,
    options: {
      test: { type: "string", multiple: true },
      bytes: { type: "string", multiple: true },
      system: { type: "string", multiple: true },
      runs: { type: "string" },
      json: { type: "boolean" },
      quick: { type: "boolean" },
      goals: { type: "boolean" },
      processes: { type: "boolean" },
      link: { type: "string" },
      tasks: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return "help";
  const testNames = values.test?.map((name) => oneOf("--test", name, namesOf(TESTS)));
  const asked = values.system?.map((name) => oneOf("--system", name, namesOf(SYSTEMS)));
  const link = values.link === undefined ? undefined : oneOf("--link", values.link, LINK_NAMES);
  const members = values.tasks === undefined ? undefined : wholeNumber("--tasks", values.tasks, TASKS_MIN, TASKS_MAX);
  if (members !== undefined && link !== undefined)
    throw new UsageError("--tasks does not go with --link: it is for collective operations in one memory");
  const other = members === undefined ? undefined : testNames?.find((name) => !isCollective(name));
  if (other !== undefined)
    throw new UsageError(`--tasks does not go with --test ${other}: it is for ${COLLECTIVE_TESTS.join(", ")}`);
  const usual: readonly string[] = link === undefined ? DEFAULT_SYSTEMS : (LINK_SYSTEMS[link] ?? []);
  const systemNames = values.processes ? [...(asked ?? usual), ...PROCESS_SYSTEMS] : (asked ?? usual);
  const quick = values.quick ?? false;
  const runs = values.runs === undefined ? (quick ? 1 : RUNS) : wholeNumber("--runs", values.runs, 1, 1000);
  const tests = TESTS.filter(
    ({ name, linkBytes }) =>
      testNames?.includes(name) ??
      (members === undefined ? link === undefined || linkBytes !== undefined : isCollective(name)),
  ).map((test) => (link === undefined ? test : { ...test, bytes: test.linkBytes ?? test.bytes }));
  const tasks = members ?? TASKS_MIN;
  const most = tests.every(({ name }) => name === "rndv_bw") ? RNDV_BYTES_MAX : bytesMax(tests, tasks);
  const bytes = (values.bytes ?? []).map((value) => wholeNumber("--bytes", value, 1, most));
  const systems = SYSTEMS.filter(({ name }) => systemNames.includes(name));
  if (!tests.some((test) => systems.some((system) => system.does(test.name)))) {
    throw new UsageError(`nothing to measure: ${namesOf(systems).join(", ")} has no ${namesOf(tests).join(", ")}`);
  }
  return {
    tests,
    systems,
    bytes: [...new Set(bytes)],
    runs,
    tasks,
    json: values.json ?? false,
    quick,
    goals: values.goals ?? false,
  };
}

/** Bytes at most of a payload: the vectors of all members have to fit. */
function bytesMax(tests: readonly Test[], tasks: number): number {
  const blocks = tests.map(({ name }) => (isCollective(name) ? blocksOf(name, tasks) : 1));
  return Math.min(BYTES_MAX, Math.floor(VECTOR_BYTES_MAX / Math.max(...blocks)));
}

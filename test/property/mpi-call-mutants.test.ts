// Whether the programs of test/c find bugs in the short calls of MPI: deliberate ones in the sources of that module, in a copy of dist.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, expect, inject, it } from "vitest";
import { callsHex } from "../../src/generated/calls.js";
import { bytesOfHex } from "../../src/kernel/hex.js";
import { compileKernels, misplacedOf, type SourceMutant } from "../support/compile.js";
import { byEffort, sample } from "../support/effort.js";
import { replayNote, SEED } from "../support/seed.js";

const [BLOCK, CALLS, CARRY] = ["calls/block.ts", "calls/calls.ts", "calls/carry.ts"];

/** A mutant, and the program that fails by it. */
interface CallMutant extends SourceMutant {
  readonly by: "messages" | "nonblocking" | "random" | "before";
}

const MUTANTS: readonly CallMutant[] = [
  {
    name: "the events of a round are handled from the last to the first",
    file: CARRY,
    find: "(place << EVENT_SHIFT)",
    replace: "((count - 1 - place) << EVENT_SHIFT)",
    by: "random",
  },
  {
    name: "a receive that was truncated has no error",
    file: CALLS,
    find: "  return load<u32>(request, MPI_REQUEST_ERROR_OFFSET) == 0;\n",
    replace: "  return true;\n",
    by: "messages",
  },
  {
    name: "what is truncated is copied as a whole, if it is long",
    file: CARRY,
    find: "min<u32>(load<u32>(request, MPI_REQUEST_BYTES_OFFSET), load<u32>(request, MPI_REQUEST_CAPACITY_OFFSET))",
    replace: "load<u32>(request, MPI_REQUEST_BYTES_OFFSET)",
    by: "messages",
  },
  {
    name: "the last bytes of a long message are not copied",
    file: CARRY,
    find: "memory.copy(buffer, from, bytes);",
    replace: "memory.copy(buffer, from, bytes & ~7);",
    by: "random",
  },
  {
    name: "a long message comes from the begin of the sender's program",
    file: CARRY,
    find: "    load<u32>(request, MPI_REQUEST_OFFSET_OFFSET),\n",
    replace: "    0,\n",
    by: "random",
  },
  {
    name: "the answer of a long message names no request",
    file: CARRY,
    find: "  store<u32>(body, load<u32>(request, MPI_REQUEST_ANSWER_OFFSET), MPI_HEADER_BYTES_OFFSET);\n",
    replace: "",
    by: "messages",
  },
  {
    name: "a long message is not fetched at its arrival",
    file: CARRY,
    find: "  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) == MPI_REQUEST_MATCHED) pull(request);\n  return true;",
    replace: "  return true;",
    by: "messages",
  },
  {
    name: "a receive from any rank gets the messages of rank 0 alone",
    file: CARRY,
    find: "number, from, wanted, buffer, bytes);",
    replace: "number, from == MPI_ANY ? 0 : from, wanted, buffer, bytes);",
    by: "messages",
  },
  {
    name: "a receive of any tag waits for that tag",
    file: CARRY,
    find: "const wanted = tag == MPI_C_ANY_TAG ? MPI_ANY : tag;",
    replace: "const wanted = tag;",
    by: "messages",
  },
  {
    name: "a probe of any tag looks for that tag",
    file: CALLS,
    find: "const wanted = tag == MPI_C_ANY_TAG ? MPI_ANY : tag;",
    replace: "const wanted = tag;",
    by: "random",
  },
  {
    name: "all communicators are one to those who send",
    file: CARRY,
    find: "store<u32>(at, number | (kind << MPI_HEADER_KIND_SHIFT)",
    replace: "store<u32>(at, kind << MPI_HEADER_KIND_SHIFT",
    by: "messages",
  },
  {
    name: "the gate is open before MPI_Init()",
    file: BLOCK,
    find: "    word(MPI_CALLS_OPEN_OFFSET) != 0 &&\n",
    replace: "",
    by: "before",
  },
  {
    name: "a wait returns once a message has begun",
    file: CARRY,
    find: "  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) >= MPI_REQUEST_DONE) return true;\n  for",
    replace: "  return true;\n  for",
    by: "messages",
  },
  {
    name: "a test returns its request with a flag that says it is not over",
    file: CALLS,
    find: "  store<u32>(flag, 1);\n  store<u32>(pointer, MPI_C_REQUEST_NULL);",
    replace: "  store<u32>(flag, 0);\n  store<u32>(pointer, MPI_C_REQUEST_NULL);",
    by: "random",
  },
  {
    name: "waitall does not wait for the last request",
    file: CALLS,
    find: "  for (let i = 0; i < count; i++) {\n    const request = load<usize>(requests + (i << 2));\n    if (request == MPI_C_REQUEST_NULL) continue;",
    replace:
      "  for (let i = 0; i < count - 1; i++) {\n    const request = load<usize>(requests + (i << 2));\n    if (request == MPI_C_REQUEST_NULL) continue;",
    by: "random",
  },
  {
    name: "waitall writes each status in the place of the first",
    file: CALLS,
    find: "statuses + (i << MPI_C_STATUS_SHIFT)",
    replace: "statuses",
    by: "random",
  },
  {
    name: "the request of all sends that are over at once is given back",
    file: CALLS,
    find: "  if (request != word(MPI_CALLS_SENT_AT_ONCE_OFFSET)) mpiFree(",
    replace: "  mpiFree(",
    by: "messages",
  },
  {
    name: "a message may be longer than its lane takes",
    file: CARRY,
    find: "lane == 0 || recordSize(bytes) > load<u32>(lane, LANE_RECORD_MAX_OFFSET) ? 0 : lane",
    replace: "lane",
    by: "random",
  },
  {
    name: "a count is that of bytes",
    file: CALLS,
    find: "store<u32>(count, bytes / element);",
    replace: "store<u32>(count, bytes);",
    by: "messages",
  },
];

/** A copy of the package, whose short calls are the module of a mutant. */
let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(inject("folder"), "calls-"));
  mkdirSync(join(copy, "dist"));
  cpSync("dist", join(copy, "dist"), { recursive: true, filter: (path) => !/\.(map|d\.ts)$/.test(path) });
  cpSync("package.json", join(copy, "package.json"));
});

/** The module in dist/c.js: the bundler breaks its line. */
const SHIPPED = /callsHex = "([0-9a-f\\\n]+)"/;
const bundle = readFileSync("dist/c.js", "utf8");

function use(module: Uint8Array): void {
  writeFileSync(
    join(copy, "dist/c.js"),
    bundle.replace(SHIPPED, `callsHex = "${Buffer.from(module).toString("hex")}"`),
  );
}

/** Whether a program says all that it has to, by the copy, in so many milliseconds: some mutants wait for ever. */
function holds(by: CallMutant["by"], timeout: number, seed: number = SEED): boolean {
  const rounds = "20";
  const [program, ...args] = by === "before" ? ["ends", by] : by === "random" ? [by, String(seed), rounds] : [by];
  const path = resolve(import.meta.dirname, `../c/built/${program}.wasm`);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(copy, "dist/cli.js"), "run", "-n", "3", "--no-labels", path, ...args],
    { encoding: "utf8", timeout, killSignal: "SIGKILL" },
  );
  if (by === "before") return /was called before MPI_Init\(\)/.test(stderr);
  const lines = stdout.trim().split("\n");
  return status === 0 && lines.every((line) => /: (\d+) of \1$|^(\d+) of \2 rounds$/.test(line));
}

it("without a mutant the sources give the module that ships, byte for byte, and all programs hold", async () => {
  expect(SHIPPED.exec(bundle)?.[1]?.replaceAll("\\\n", "")).toBe(callsHex);
  const module = await compileKernels("calls/index.ts", "calls");
  expect(Buffer.compare(bytesOfHex(callsHex), module)).toBe(0);
  use(module);
  expect((["messages", "nonblocking", "random", "before"] as const).filter((by) => !holds(by, 100_000))).toEqual([]);
}, 900_000);

it("each mutant has its place in the sources", () => {
  expect(misplacedOf(MUTANTS)).toEqual([]);
});

/** In this run: in test:deep all of them. */
const drawn = sample(MUTANTS, byEffort({ quick: 1, normal: 3, deep: MUTANTS.length }), "mutants of MPI's short calls");

it.each(drawn.map((mutant) => [mutant.name, mutant] as const))(
  "caught: %s",
  async (_, mutant) => {
    use(await compileKernels("calls/index.ts", "calls", mutant));
    // Of random messages, not all rounds have those that the mutant breaks.
    const seeds = Array.from({ length: mutant.by === "random" ? 8 : 1 }, (_, i) => (SEED + i) >>> 0);
    expect(
      seeds.every((seed) => holds(mutant.by, 20_000, seed)),
      replayNote(),
    ).toBe(false);
  },
  600_000,
);

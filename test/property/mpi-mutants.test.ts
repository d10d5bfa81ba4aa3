// Whether the property of mpi-match.test.ts finds what it is for: deliberate bugs in the sources of the kernels.
import fc from "fast-check";
import { expect, it } from "vitest";
import { mpiHex } from "../../src/generated/mpi.js";
import { bytesOfHex } from "../../src/kernel/hex.js";
import { compileKernels, misplacedOf, type SourceMutant } from "../support/compile.js";
import { byEffort, sample } from "../support/effort.js";
import { mpiRig } from "../support/mpi-kernels.js";
import { bytesOf, MpiPlayer, mpiCommand, SMALL } from "../support/mpi-model.js";
import { replayNote, SEED } from "../support/seed.js";

const [BLOCKS, MATCH] = ["mpi/blocks.ts", "mpi/match.ts"];

const MUTANTS: readonly SourceMutant[] = [
  {
    name: "a receive from any source gets nothing",
    file: MATCH,
    find: "(wantedSource == MPI_ANY || wantedSource == source)",
    replace: "wantedSource == source",
  },
  {
    name: "a receive of any tag gets nothing",
    file: MATCH,
    find: "(wantedTag == MPI_ANY || wantedTag == tag)",
    replace: "wantedTag == tag",
  },
  {
    name: "tags are not compared",
    file: MATCH,
    find: " && (wantedTag == MPI_ANY || wantedTag == tag)",
    replace: "",
  },
  {
    name: "all communicators are one",
    file: MATCH,
    find: "  return engine + MPI_ENGINE_SIZE + (number << MPI_COMM_SHIFT);\n",
    replace: "  return engine + MPI_ENGINE_SIZE;\n",
  },
  {
    name: "the last that came is the first to go",
    file: MATCH,
    find: "  store<usize>(entry, 0);\n  if (load<usize>(queue) == 0) store<usize>(queue, entry);\n  else store<usize>(load<usize>(queue, 4), entry);\n",
    replace: "  store<usize>(entry, load<usize>(queue));\n  store<usize>(queue, entry);\n",
  },
  {
    name: "the end of a queue is not mended when its last entry is taken",
    file: MATCH,
    find: "  if (next == 0) store<usize>(queue, place, 4);\n",
    replace: "",
  },
  {
    name: "what is truncated is copied as a whole",
    file: MATCH,
    find: "payload, isWhole ? bytes : capacity);",
    replace: "payload, bytes);",
  },
  {
    name: "a message as long as its buffer is truncated",
    file: MATCH,
    find: "const isWhole = bytes <= capacity;",
    replace: "const isWhole = bytes < capacity;",
  },
  {
    name: "a receive keeps the error of an earlier one",
    file: MATCH,
    find: "  store<u32>(request, 0, MPI_REQUEST_ERROR_OFFSET);\n",
    replace: "",
  },
  {
    name: "a canceled receive stays in its queue",
    file: MATCH,
    find: "  takeOut(engine, request);\n  store<u32>(request, MPI_REQUEST_CANCELED",
    replace: "  store<u32>(request, MPI_REQUEST_CANCELED",
  },
  {
    name: "a request that is given back stays in its queue",
    file: MATCH,
    find: "  takeOut(engine, request);\n  store<u32>(request, MPI_REQUEST_FREE",
    replace: "  store<u32>(request, MPI_REQUEST_FREE",
  },
  {
    name: "a canceled receive is counted as posted",
    file: MATCH,
    find: "MPI_COMM_POSTED_FIRST_OFFSET;\n    store<u32>(engine, load<u32>(engine, MPI_ENGINE_POSTED_OFFSET) - 1, MPI_ENGINE_POSTED_OFFSET);\n  } else",
    replace: "MPI_COMM_POSTED_FIRST_OFFSET;\n  } else",
  },
  {
    name: "the bytes of received messages are counted as stored",
    file: MATCH,
    find: "MPI_ENGINE_STORED_BYTES_OFFSET) - bytes,",
    replace: "MPI_ENGINE_STORED_BYTES_OFFSET),",
  },
  {
    name: "a stored MPI_RTS is taken for its payload",
    file: MATCH,
    find: "kind == MPI_RTS ? MPI_RTS_SIZE : ",
    replace: "",
  },
  {
    name: "a message that is taken stays in its queue",
    file: MATCH,
    find: "return place == 0 ? 0 : unlink(queue, place);",
    replace: "return place == 0 ? 0 : load<usize>(place);",
  },
  {
    name: "an answer completes the oldest sent request",
    file: MATCH,
    find: "findEntry(engine + MPI_ENGINE_SENT_FIRST_OFFSET, load<usize>(header, MPI_HEADER_BYTES_OFFSET))",
    replace: "engine + MPI_ENGINE_SENT_FIRST_OFFSET",
  },
  {
    name: "an answer is believed",
    file: MATCH,
    find: "  if (place == 0) return MPI_NO_REQUEST;\n  const request = unlink(engine + MPI_ENGINE_SENT_FIRST_OFFSET, place);\n",
    replace:
      "  const request = load<usize>(header, MPI_HEADER_BYTES_OFFSET);\n  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) != MPI_REQUEST_SENT) return MPI_NO_REQUEST;\n  unlink(engine + MPI_ENGINE_SENT_FIRST_OFFSET, place);\n",
  },
  {
    name: "a message of any length is believed",
    file: MATCH,
    find: " || bytes > MPI_EAGER_BYTES_MAX",
    replace: "",
  },
  {
    name: "the number of a communicator is believed",
    file: MATCH,
    find: " || number >= load<u32>(engine, MPI_ENGINE_COMM_COUNT_OFFSET)",
    replace: "",
  },
  {
    name: "a block is given back to the class of its payload",
    file: MATCH,
    find: "  giveBlock(engine, stored, MPI_STORED_PAYLOAD_OFFSET + bytes);",
    replace: "  giveBlock(engine, stored, bytes);",
  },
  {
    name: "a free block is given away twice",
    file: BLOCKS,
    find: "    store<usize>(list, load<usize>(block));\n    return block;",
    replace: "    return block;",
  },
  {
    name: "the last block of the memory is never taken",
    file: BLOCKS,
    find: "- next < 1 << sizeClass) return 0;",
    replace: "- next <= 1 << sizeClass) return 0;",
  },
  {
    name: "a block is taken where half of it has room",
    file: BLOCKS,
    find: "- next < 1 << sizeClass) return 0;",
    replace: "- next < 1 << (sizeClass - 1)) return 0;",
  },
  {
    name: "blocks of 2^n and one byte are of class n",
    file: BLOCKS,
    find: "32 - clz<u32>(bytes - 1)",
    replace: "32 - clz<u32>(bytes - 2)",
  },
  {
    name: "more memory makes what is left of the last one lost",
    file: MATCH,
    find: "  divideRest(engine);\n",
    replace: "",
  },
];

const commands = fc.array(mpiCommand, { maxLength: 100, size: "max" });

/** Whether anything goes wrong with a module. */
function fails(module: WebAssembly.Module): boolean {
  const rig = mpiRig(module, bytesOf(SMALL), 64);
  const property = fc.property(commands, (sequence) => {
    const player = new MpiPlayer(rig);
    player.play(sequence);
    player.drain();
  });
  return fc.check(property, { seed: SEED, numRuns: 300, endOnFailure: true }).failed;
}

it("without a mutant the sources give the module that ships, byte for byte", async () => {
  expect(Buffer.compare(bytesOfHex(mpiHex), await compileKernels("mpi/index.ts", "mpi"))).toBe(0);
});

it("each mutant has its place in the sources", () => {
  expect(misplacedOf(MUTANTS)).toEqual([]);
});

/** In this run: in test:deep all of them. */
const drawn = sample(MUTANTS, byEffort({ quick: 2, normal: 4, deep: MUTANTS.length }), "MPI's mutants");

it.each(drawn.map((mutant) => [mutant.name, mutant] as const))("caught: %s", async (_, mutant) => {
  const module = new WebAssembly.Module(await compileKernels("mpi/index.ts", "mpi", mutant));
  expect(fails(module), replayNote()).toBe(true);
});

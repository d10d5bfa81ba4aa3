// MPI's matching engine: see compare.ts.
import { describe, it } from "vitest";
import * as L from "../../assembly/layout.js";
import type { Memory } from "../../src/kernel/kernel.js";
import { type MpiKernel, selectMpiKernel } from "../../src/kernel/mpi.js";
import type { Rig, RigOptions, Straddle } from "../support/kernels.js";
import { compare, type Operations, pick, type Random, word } from "./compare.js";

const COMMS = 4;
const HEADER = 4;
/** Where in the heap a test has the payload of a message, the buffers of receives, the engine, and what it gets later. */
const [PAYLOAD, BUFFERS, ENGINE, MORE] = [64, 8192, 65_536, 81_920];
const ENGINE_BYTES = MORE - ENGINE;
const HEAP_BYTES = 512 * 1024;

/** The kernels of a rig that makes a memory's map: in wasm, or the twin. */
const made = new WeakMap<Memory, MpiKernel>();
function mpi({ memory, producer }: Rig): MpiKernel {
  const kernel = made.get(memory) ?? selectMpiKernel(producer.name, memory);
  made.set(memory, kernel);
  return kernel;
}

const engineOf = ({ map }: Rig): number => map.heapBase + ENGINE;

interface State {
  /** Requests by how they were made, and messages that were taken. */
  readonly requests: Set<number>;
  readonly taken: Set<number>;
  given: number;
}

const wanted = (random: Random): number => (random(3) === 0 ? L.MPI_ANY : random(3));
const length = (random: Random): number =>
  pick(random, [0, 1, 32, 33, 96, 97, random(400), random(4000), L.MPI_EAGER_BYTES_MAX]) as number;

function operations(reference: Rig): Operations<State> {
  /** What a call returns that makes a request. */
  const request = (state: State, rig: Rig, pointer: number): number => {
    if (rig === reference && pointer > L.MPI_NO_REQUEST) state.requests.add(pointer);
    return pointer;
  };
  const arrive = (rig: Rig, header: readonly number[], payload: readonly number[], origin: number): number => {
    const { heapBase } = rig.map;
    for (const [i, value] of header.entries()) rig.setWord(heapBase + HEADER + 4 * i, value);
    rig.write(heapBase + PAYLOAD, payload);
    return mpi(rig).mpiArrive(engineOf(rig), heapBase + HEADER, heapBase + PAYLOAD, origin);
  };
  const stateOf = (pointer: number): number => reference.word(pointer + L.MPI_REQUEST_STATE_OFFSET);
  const ofStates = ({ requests }: State, states: readonly number[]): number[] =>
    [...requests].filter((pointer) => states.includes(stateOf(pointer)));
  const look = (name: "mpiProbe" | "mpiTake", weight: number): Operations<State> => ({
    [name]: {
      weight,
      choose: (state, random) => {
        const [comm, source, tag] = [random(COMMS), wanted(random), wanted(random)];
        const act = (rig: Rig): number => {
          const pointer = mpi(rig)[name](engineOf(rig), comm, source, tag);
          if (rig === reference && name === "mpiTake" && pointer !== 0) state.taken.add(pointer);
          return pointer;
        };
        return { text: `${name}(${comm}, ${source}, ${tag})`, act };
      },
    },
  });
  return {
    ...look("mpiProbe", 2),
    ...look("mpiTake", 2),
    post: {
      weight: 10,
      choose: (state, random) => {
        const [comm, source, tag, capacity] = [random(COMMS), wanted(random), wanted(random), length(random) % 4001];
        const at = BUFFERS + random(50_000);
        const act = (rig: Rig): number =>
          request(state, rig, mpi(rig).mpiPost(engineOf(rig), comm, source, tag, rig.map.heapBase + at, capacity));
        return { text: `mpiPost(${comm}, ${source}, ${tag}, +${at}, ${capacity})`, act };
      },
    },
    arrive: {
      weight: 10,
      choose: (_, random) => {
        const isRts = random(4) === 0;
        const bytes = isRts ? word(random) : length(random);
        const kind = isRts ? L.MPI_RTS : L.MPI_EAGER;
        const header = [random(COMMS) | (kind << L.MPI_HEADER_KIND_SHIFT), random(3), random(3), bytes];
        const payload = Array.from({ length: isRts ? L.MPI_RTS_SIZE : Math.min(bytes, 4000) }, () => random(256));
        const origin = word(random);
        return { text: `mpiArrive(${header}, from ${origin})`, act: (rig) => arrive(rig, header, payload, origin) };
      },
    },
    wrong: {
      weight: 1,
      choose: (_, random) => {
        const header = [0, 0, 0, 1];
        const [field, least, most] = pick(random, [
          [0, COMMS, L.MPI_HEADER_COMM_MASK],
          [0, 3 << L.MPI_HEADER_KIND_SHIFT, 0x7fffffff],
          [3, L.MPI_EAGER_BYTES_MAX + 1, 0xffffffff],
        ]) as [number, number, number];
        header[field] = Math.max(least, (word(random) & most) >>> 0);
        return { text: `mpiArrive(${header})`, act: (rig) => arrive(rig, header, [], 0) };
      },
    },
    answer: {
      weight: 4,
      choose: (state, random) => {
        const sent = pick(random, ofStates(state, [L.MPI_REQUEST_SENT]));
        // Also what is no request, or one that waits for no answer.
        const number = (random(4) === 0 ? (pick(random, [...state.requests]) ?? word(random)) : sent) ?? word(random);
        const header = [L.MPI_ANSWER << L.MPI_HEADER_KIND_SHIFT, 0, 0, number];
        return { text: `an answer to ${number}`, act: (rig) => arrive(rig, header, [], 0) };
      },
    },
    sent: {
      weight: 4,
      choose: (state, random) => {
        const target = word(random);
        const act = (rig: Rig): number => request(state, rig, mpi(rig).mpiSent(engineOf(rig), target));
        return { text: `mpiSent(to ${target})`, act };
      },
    },
    matched: {
      weight: 3,
      choose: (state, random) => {
        const stored = pick(random, [...state.taken]);
        if (stored === undefined) return undefined;
        const [at, capacity] = [BUFFERS + random(50_000), length(random) % 4001];
        const act = (rig: Rig): number => {
          const pointer = mpi(rig).mpiMatched(engineOf(rig), stored, rig.map.heapBase + at, capacity);
          if (rig === reference && pointer !== L.MPI_NO_MEMORY) state.taken.delete(stored);
          return request(state, rig, pointer);
        };
        return { text: `mpiMatched(${stored}, +${at}, ${capacity})`, act };
      },
    },
    cancel: {
      weight: 2,
      choose: ({ requests }, random) => {
        const pointer = pick(random, [...requests]);
        if (pointer === undefined) return undefined;
        return { text: `mpiCancel(${pointer})`, act: (rig) => mpi(rig).mpiCancel(engineOf(rig), pointer) };
      },
    },
    fail: {
      weight: 1,
      choose: ({ requests }, random) => {
        const [pointer, error] = [pick(random, [...requests]), word(random)];
        if (pointer === undefined) return undefined;
        return { text: `mpiFail(${pointer})`, act: (rig) => mpi(rig).mpiFail(engineOf(rig), pointer, error) };
      },
    },
    free: {
      weight: 8,
      choose: (state, random) => {
        // Rarely one that waits.
        const over = [L.MPI_REQUEST_MATCHED, L.MPI_REQUEST_DONE, L.MPI_REQUEST_CANCELED];
        const pointer = pick(random, random(8) === 0 ? [...state.requests] : ofStates(state, over));
        if (pointer === undefined) return undefined;
        state.requests.delete(pointer);
        return { text: `mpiFree(${pointer})`, act: (rig) => mpi(rig).mpiFree(engineOf(rig), pointer) };
      },
    },
    extend: {
      weight: 1,
      choose: (state, random) => {
        const bytes = 4 * random(pick(random, [16, 2000, 40_000]) as number);
        if (MORE + state.given + bytes > HEAP_BYTES) return undefined;
        const at = MORE + state.given;
        state.given += bytes;
        const act = (rig: Rig): void => mpi(rig).mpiExtend(engineOf(rig), rig.map.heapBase + at, bytes);
        return { text: `mpiExtend(+${at}, ${bytes})`, act };
      },
    },
    init: {
      weight: 1,
      choose: (state, random) => {
        if (random(20) !== 0) return undefined;
        state.requests.clear();
        state.taken.clear();
        state.given = 0;
        return { text: "mpiInit()", act: (rig) => mpi(rig).mpiInit(engineOf(rig), ENGINE_BYTES, COMMS) };
      },
    },
  };
}

describe("wasm and twin, in two memories: MPI's matching engine", () => {
  it.each<[string, Straddle | undefined]>([
    ["", undefined],
    [", 2^31 in the heap", "heap"],
  ])("the same results and the same bytes after every operation%s", (_, straddle) => {
    const options: RigOptions = { tasks: 1, contexts: 1, heapBytes: HEAP_BYTES, straddle };
    const state = (): State => ({ requests: new Set(), taken: new Set(), given: 0 });
    const prepare = (rig: Rig): void => mpi(rig).mpiInit(engineOf(rig), ENGINE_BYTES, COMMS);
    compare({ options, sequences: 12, length: 1000, prepare, state, operations });
  });
});

// Windows: how they are made and freed. Source: MPI 5.0, section 12.2.
import type { Geometry, MemRegion } from "../../../index.js";
import { ERR, FLAVOR, PROC_NULL, SUCCESS, WIN_NULL } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Infos } from "../objects/info.js";
import type { Call } from "../state.js";
import type { GivenMemory, WindowSet } from "./windows.js";

/** The calls that make and free windows: the number is that of the argument with the communicator. */
export function makingCalls(windows: WindowSet, infos: Infos): Record<string, readonly [number, Call]> {
  const { state } = windows;
  const checked = (size: number, unit: number): void => {
    if (size < 0) throw new MpiFailure(ERR.SIZE, `the window has ${size} bytes, not a number from 0`);
    if (unit <= 0) throw new MpiFailure(ERR.DISP, `the unit of displacements is ${unit}, not a number from 1`);
  };
  /** Memory of this rank's own, aligned for all types. */
  const allocated = (size: number, unit: number): GivenMemory => {
    const region = windows.allocate(Math.max(8, size));
    return { base: region.bytes.byteOffset, size, unit, region };
  };
  const stored = (pointer: number | undefined, info: number | undefined, handle: number): number => {
    const { info: hints } = windows.table.get(handle);
    for (const [key, value] of infos.entries(info as number)) hints.set(key, value);
    state.setWord(pointer as number, handle);
    return SUCCESS;
  };
  return {
    MPI_Win_create: [
      4,
      (base, size, unit, info, comm, pointer) => {
        checked(size as number, unit as number);
        const at = (base as number) >>> 0;
        const region = size === 0 ? undefined : regionOf(windows, at, size as number, ERR.ARG);
        const given = { base: at, size: size as number, unit: unit as number, region };
        return stored(
          pointer,
          info,
          windows.create(comm as number, FLAVOR.CREATE, () => given),
        );
      },
    ],
    MPI_Win_allocate: [
      3,
      (size, unit, info, comm, base, pointer) => {
        checked(size as number, unit as number);
        const given = allocated(size as number, unit as number);
        state.setWord(base as number, given.base);
        return stored(
          pointer,
          info,
          windows.create(comm as number, FLAVOR.ALLOCATE, () => given),
        );
      },
    ],
    MPI_Win_allocate_shared: [
      3,
      (size, unit, info, comm, base, pointer) => {
        checked(size as number, unit as number);
        const { endpoints, rank } = state.comms.get(comm as number).comm;
        const locals = new Set(state.client.localTasks);
        const stranger = endpoints.findIndex((endpoint) => !locals.has(state.client.taskOf(endpoint)));
        if (stranger >= 0) {
          const text = `rank ${stranger} is one of another node: MPI_Comm_split_type() makes a communicator of one node's`;
          throw new MpiFailure(ERR.RMA_SHARED, text);
        }
        const handle = windows.create(comm as number, FLAVOR.SHARED, (geometry) => {
          const total = totalOf(geometry, size as number);
          return rank === 0
            ? { ...allocated(total, unit as number), size: size as number }
            : { base: 0, size: size as number, unit: unit as number, region: undefined };
        });
        state.setWord(base as number, windows.table.get(handle).parts[rank]?.base ?? 0);
        return stored(pointer, info, handle);
      },
    ],
    MPI_Win_create_dynamic: [
      1,
      (info, comm, pointer) => {
        // Displacements are addresses: the program's whole memory is the window's.
        const region = state.arena;
        const { byteOffset: first, length } = region.bytes;
        const given = { base: 0, size: first + length, unit: 1, region };
        return stored(
          pointer,
          info,
          windows.create(comm as number, FLAVOR.DYNAMIC, () => given),
        );
      },
    ],
  };
}

/** The calls about windows that exist. Their first argument is the window, unless they take a pointer to its handle. */
export function lifeCalls(windows: WindowSet): Record<string, readonly [number, Call]> {
  const { state, table } = windows;
  return {
    MPI_Win_free: [
      -1,
      (pointer) => {
        windows.free(state.word(pointer as number));
        state.setWord(pointer as number, WIN_NULL);
        return SUCCESS;
      },
    ],
    MPI_Win_shared_query: [
      0,
      (handle, rank, size, unit, base) => {
        const { flavor, parts } = table.get(handle as number);
        if (flavor !== FLAVOR.SHARED)
          throw new MpiFailure(ERR.RMA_FLAVOR, "the window is none of MPI_Win_allocate_shared()");
        // MPI_PROC_NULL: the first rank that has memory.
        const part = rank === PROC_NULL ? (parts.find((one) => one.size > 0) ?? parts[0]) : parts[rank as number];
        if (part === undefined) throw new MpiFailure(ERR.RANK, `rank ${rank} is none of 0 to ${parts.length - 1}`);
        state.setWord(size as number, part.size);
        state.setWord(unit as number, part.unit);
        state.setWord(base as number, part.base);
        return SUCCESS;
      },
    ],
    MPI_Win_attach: [
      0,
      (handle, base, size) => {
        const window = dynamic(windows, handle as number);
        regionOf(windows, (base as number) >>> 0, size as number, ERR.RMA_ATTACH);
        window.attached.set((base as number) >>> 0, size as number);
        return SUCCESS;
      },
    ],
    MPI_Win_detach: [
      0,
      (handle, base) => {
        const { attached } = dynamic(windows, handle as number);
        if (attached.delete((base as number) >>> 0)) return SUCCESS;
        throw new MpiFailure(ERR.RMA_ATTACH, `no memory at ${(base as number) >>> 0} is attached`);
      },
    ],
  };
}

function dynamic(windows: WindowSet, handle: number) {
  const window = windows.table.get(handle);
  if (window.flavor === FLAVOR.DYNAMIC) return window;
  throw new MpiFailure(ERR.RMA_FLAVOR, "the window is none of MPI_Win_create_dynamic()");
}

/** The region of this task that holds memory. @throws MpiFailure */
function regionOf({ state }: WindowSet, base: number, size: number, errorClass: number): MemRegion {
  if (size >= 0 && state.engine.holds(base, size)) return state.engine.regionOf(base, size);
  throw new MpiFailure(errorClass, `${size} bytes at ${base} lie outside of the program's memory`);
}

/** Bytes of all ranks together. */
function totalOf(geometry: Geometry | undefined, size: number): number {
  const total = Float64Array.of(size);
  geometry?.allreduceSync({ send: null, receive: total, operation: "sum", type: "f64" });
  return total[0] as number;
}

// What shared regions, counters, grids and aggregators need of the geometry upon which they are built.
import type { GeometryCore } from "../collective/geometry-core.js";
import type { Operation } from "../collective/operation.js";
import { type Endpoint, nameOf, taskOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import { EAGAIN, type Result, SUCCESS } from "../core/result.js";
import type { Task } from "../protocol/task.js";
import type { ExchangeParameters } from "./collective-parameters.js";
import type { Context } from "./context.js";
import type { ProgressOptions, WaitOptions } from "./waits.js";

/** The operations of the geometry that extensions use. */
export interface Group {
  readonly rank: number;
  readonly size: number;
  readonly endpoints: readonly Endpoint[];
  readonly closed: boolean;
  readonly lastError: Error | undefined;
  allgather(parameters: ExchangeParameters<Float64Array>, options: ProgressOptions): Promise<Float64Array>;
  barrier(options: ProgressOptions): Promise<void>;
}

export interface ExtensionHost {
  readonly group: Group;
  readonly core: GeometryCore;
  readonly task: Task;
  readonly context: Context;
  /** Blocks the thread until the condition holds. If it gives up, `lastError` names the members that `awaited` returns. */
  untilSync(call: string, condition: () => boolean, options: WaitOptions, awaited: () => readonly number[]): Result;
  /** Resolves once the condition holds. A timeout names the members that `awaited` returns. */
  until(
    call: string,
    condition: () => boolean,
    options: ProgressOptions,
    awaited: () => readonly number[],
  ): Promise<void>;
  /** Begins an alltoall whose buffers are not used again. */
  exchange(parameters: ExchangeParameters<Float64Array>): Operation;
  /** Ranks for which an operation waits. */
  awaitedOf(operation: Operation): number[];
  /** Sets the geometry's `lastError`: a blocking call has failed. */
  noteError(error: Error): void;
}

const FINE = 0;
const NO_MEMORY = 1;
const FAILED = 2;
/** Words in front of what members tell each other: FINE, NO_MEMORY or FAILED, and the bytes that it wanted. */
const HEAD = 2;

/** What each member of a geometry makes. */
interface Making {
  /** As which it was called: "shareRegion()". */
  readonly call: string;
  /** Bytes that it needs. */
  readonly bytes: number;
  /** Makes it, and returns a row of so many numbers about it. */
  readonly make: () => readonly number[];
  readonly width: number;
  /** Removes what was made: another member has failed. */
  readonly undo: () => void;
}

/**
 * Each member makes something of its own, and tells the others about it. If one has failed, all fail.
 * @returns the rows of all members
 * @throws what `make` throws; PAMIR_NO_MEMORY or PAMIR_COLLECTIVE, which name the member that failed; as a barrier
 */
export async function makeTogether(
  { group }: ExtensionHost,
  { call, bytes, make, width, undo }: Making,
  options: ProgressOptions,
): Promise<number[][]> {
  let row: readonly number[] = [];
  let code = FINE;
  let error: unknown;
  try {
    row = make();
  } catch (thrown) {
    error = thrown;
    code = thrown instanceof PamiError && thrown.code === "PAMIR_NO_MEMORY" ? NO_MEMORY : FAILED;
  }
  try {
    const send = new Float64Array(HEAD + width);
    send[0] = code;
    send[1] = bytes;
    send.set(row, HEAD);
    const all = await group.allgather({ send }, options);
    if (error !== undefined) throw error;
    const rows = group.endpoints.map((_, rank) => [...all.subarray(rank * send.length, (rank + 1) * send.length)]);
    for (const [rank, [itsCode, wanted]] of rows.entries()) if (itsCode !== FINE) throw refusal(rank, itsCode, wanted);
    return rows.map((words) => words.slice(HEAD));
  } catch (failure) {
    if (error === undefined) undo();
    throw error ?? failure;
  }

  function refusal(rank: number, itsCode: number | undefined, wanted: number | undefined): Error {
    const who = `${call}: rank ${rank} (${nameOf(group.endpoints[rank] as Endpoint)})`;
    return itsCode === NO_MEMORY
      ? new PamiError("PAMIR_NO_MEMORY", `${who} has no memory for ${wanted} bytes`)
      : new PamiError("PAMIR_COLLECTIVE", `${who} has failed`);
  }
}

/** Whether an endpoint is of a task of this memory that has not ended. */
export function isLocal(task: Task, endpoint: Endpoint): boolean {
  const slot = task.addresses.slotOf(taskOf(endpoint));
  return slot >= 0 && slot < task.map.locals && !task.hasEnded(slot);
}

/** The error of a call of an extension that has not come to SUCCESS. */
export function errorOf({ core, task }: ExtensionHost, call: string, result: Result): Error {
  const what = `${call}()`;
  if (result === SUCCESS) throw new Error(`${what} has no error`);
  if (core.isClosed) return new PamiError("PAMIR_CLOSED", `${what}: the geometry was closed`);
  return core.errorOf(what, result, "", (text, to) => task.shutdownError(text, to));
}

/** What a wait looks for. */
export class Look {
  /** What the last look has returned; EAGAIN: it is not over. */
  result: Result = EAGAIN;
  readonly isOver: () => boolean;

  constructor(look: () => Result) {
    this.isOver = () => {
      this.result = look();
      return this.result !== EAGAIN;
    };
  }
}

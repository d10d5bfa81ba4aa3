// What shared regions, counters, grids and aggregators need of the geometry upon which they are built.
import type { GeometryCore } from "../../collective/geometry-core.js";
import type { CollectiveOperation } from "../../collective/operation.js";
import { type Endpoint, nameOf, taskOf } from "../../core/endpoint.js";
import { type ErrorCode, PamiError } from "../../core/error.js";
import { EAGAIN, type Result, SUCCESS } from "../../core/result.js";
import type { Task } from "../../protocol/task.js";
import type { ExchangeParameters } from "../collective-parameters.js";
import type { Context } from "../context.js";
import type { ProgressOptions, WaitOptions } from "../waits.js";

/** What extensions see of the geometry. */
export interface Group {
  readonly rank: number;
  readonly size: number;
  readonly endpoints: readonly Endpoint[];
  readonly closed: boolean;
  readonly lastError: Error | undefined;
}

export interface ExtensionHost {
  readonly group: Group;
  readonly core: GeometryCore;
  readonly task: Task;
  readonly context: Context;
  /** An allgather that is part of a call, which its errors name. What handlers throw meanwhile, the context throws after it. */
  allgather(call: string, send: Uint8Array, options: ProgressOptions): Promise<Uint8Array>;
  /** A barrier, in the same way. */
  barrier(call: string, options: ProgressOptions): Promise<void>;
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
  exchange(parameters: ExchangeParameters<Float64Array>): CollectiveOperation;
  /** Which member has another value than most, and one of those; -1: none. */
  oddOf(values: readonly string[]): readonly [odd: number, usual: number];
  /** Ranks for which an operation waits. */
  awaitedOf(operation: CollectiveOperation): number[];
  /** Sets the geometry's `lastError`: a blocking call has failed. */
  noteError(error: Error): void;
}

/** What members tell each other: the code of the others' error, or nothing; two numbers; a text. */
const ROW_BYTES = 256;
/** The text is cut to so many characters. */
const TEXT_MAX = 216;
const SEPARATOR = "; ";

/** What each member of a geometry makes. */
interface Making {
  /** As which it was called: "shareRegion". */
  readonly call: string;
  /** Parameters that all members must have given, by name. Those of one call have the same names at all members. */
  readonly same: object;
  /** Makes it, and returns two numbers about it. */
  readonly make: () => readonly number[];
  /** Removes what was made: another member has failed. */
  readonly undo: () => void;
}

/**
 * Each member makes something of its own, and tells the others about it. If one has failed, or has called something else, all
 * fail.
 * @returns the numbers of all members
 * @throws what `make` throws; PAMIR_NO_MEMORY or PAMIR_COLLECTIVE, which name the member; as a barrier
 */
export async function makeTogether(
  { group, allgather, oddOf }: ExtensionHost,
  { call, same, make, undo }: Making,
  options: ProgressOptions,
): Promise<number[][]> {
  let row: readonly number[] = [0, 0];
  let code: ErrorCode | "" = "";
  let text = [call, ...Object.entries(same).map(([name, value]) => `${name} ${value}`)].join(SEPARATOR);
  // What is cut off is compared by a hash.
  if (text.length > TEXT_MAX) text = `${text.slice(0, TEXT_MAX - 12)} ${hashOf(text)}`;
  let error: unknown;
  try {
    row = make();
  } catch (thrown) {
    error = thrown;
    code = (thrown as PamiError).code === "PAMIR_NO_MEMORY" ? "PAMIR_NO_MEMORY" : "PAMIR_COLLECTIVE";
    text = (thrown as Error).message;
  }
  try {
    const send = new Uint8Array(ROW_BYTES);
    new TextEncoder().encodeInto([code, ...row, text].join(SEPARATOR), send);
    const all = await allgather(call, send, options);
    if (error !== undefined) throw error;
    const rows = group.endpoints.map((_, rank) => {
      const came = new TextDecoder().decode(all.subarray(rank * ROW_BYTES, (rank + 1) * ROW_BYTES));
      return came.replaceAll("\0", "").split(SEPARATOR);
    });
    const saidBy = (rank: number): string[] => (rows[rank] as string[]).slice(3);
    const failed = rows.findIndex(([its]) => its !== "");
    if (failed >= 0) {
      const who = `${call}(): rank ${failed} (${nameOf(group.endpoints[failed] as Endpoint)}) has failed`;
      throw new PamiError(rows[failed]?.[0] as ErrorCode, `${who}: ${saidBy(failed).join(SEPARATOR)}`);
    }
    const [odd, usual] = oddOf(rows.map((_, rank) => saidBy(rank).join(SEPARATOR)));
    if (odd >= 0) throw new PamiError("PAMIR_COLLECTIVE", differenceOf(odd, saidBy(odd), usual, saidBy(usual)));
    return rows.map(([, ...numbers]) => numbers.map(Number));
  } catch (failure) {
    if (error === undefined) undo();
    throw error ?? failure;
  }
}

function hashOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) >>> 0;
  return hash;
}

/** How two calls differ: in their names, or in the first parameter. */
function differenceOf(odd: number, its: readonly string[], usual: number, others: readonly string[]): string {
  const place = its.findIndex((parameter, at) => parameter !== others[at]);
  const describe = ([call, ...parameters]: readonly string[]): string =>
    `${call}()${place > 0 ? ` with ${parameters[place - 1]}` : ""}`;
  return `rank ${odd} has called ${describe(its)}, rank ${usual} ${describe(others)}`;
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
export class ResultLook {
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

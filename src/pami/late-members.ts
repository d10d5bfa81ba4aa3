// Waits for members of a geometry that give up: their errors name the members.
import type { CollectiveOperation } from "../collective/operation.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import { type Result, TIMEDOUT } from "../core/result.js";

/** The member that waits. */
interface Member {
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
}

/** Members that an error names, at most. */
const NAMED_MAX = 8;

/** The error of a wait that has given up. @param call "barrier" */
export function lateError(
  { rank: own, endpoints }: Member,
  call: string,
  result: Result,
  ranks: readonly number[],
  cause?: unknown,
): PamiError {
  const named = ranks.slice(0, NAMED_MAX).map((rank) => `rank ${rank} (${nameOf(endpoints[rank] as Endpoint)})`);
  if (ranks.length > NAMED_MAX) named.push(`${ranks.length - NAMED_MAX} more`);
  if (ranks.length === 0) named.push("its own next advance()"); // what it waited for has come
  const [code, how] =
    result === TIMEDOUT
      ? (["PAMIR_TIMEDOUT", "still"] as const)
      : (["PAMIR_INTERRUPTED", "was interrupted, and"] as const);
  return new PamiError(code, `${call}() of rank ${own} ${how} waits for ${named.join(", ")}`, { cause });
}

/** Ranks for which an operation waits. */
export function awaitedOf(operation: CollectiveOperation): number[] {
  return (operation.check ?? operation).awaited();
}

/** Awaits a wait, whose timeout names the members that `awaited` returns. @throws as the wait */
export async function named(
  member: Member,
  call: string,
  wait: Promise<void>,
  awaited: () => readonly number[],
): Promise<void> {
  try {
    await wait;
  } catch (error) {
    if (!(error instanceof PamiError) || error.code !== "PAMIR_TIMEDOUT") throw error;
    throw lateError(member, call, TIMEDOUT, awaited(), error);
  }
}

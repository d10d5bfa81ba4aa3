// What attach() checks in a task, for a launcher that checks it before any task. Loaded only where there is something to check.
import { type JoinOptions, joinOptions } from "../../launch/join-options.js";
import { checkLimits } from "../../launch/limits.js";

/**
 * Options of a job as PAMIR_OPTIONS has them.
 * @param given come before those of `text` @param locals tasks of a node @throws PAMIR_INVAL, PAMIR_MEMORY
 */
export function checkedOptions(text: string, given: JoinOptions, locals: number): JoinOptions {
  const options = { ...joinOptions(text), ...given };
  checkLimits(options, locals);
  return options;
}

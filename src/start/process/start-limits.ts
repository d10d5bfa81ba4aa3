// Limits of this system that forbid another process, which Node reports as "EMFILE" and "EAGAIN". Without imports: where this
// process has no descriptor left, the next file might not be opened.

export const DESCRIPTORS_CODE = "PAMIR_DESCRIPTORS";
const PROCESSES_CODE = "PAMIR_NO_PROCESSES";

/** Descriptors of this process, and processes and threads of its user: numbers, or "unlimited". */
interface UserLimits {
  readonly open_files?: { readonly soft: number | string };
  readonly max_user_processes?: { readonly soft: number | string };
}

function userLimits(): UserLimits {
  return (process.report.getReport() as { userLimits?: UserLimits }).userLimits ?? {};
}

/**
 * The text with its code, since ends of tasks and lines of commands are no errors. Opens no file. @param what the program
 * should use fewer of
 */
export function descriptorsText(what = "processes"): string {
  return `${descriptorsReason(what)} (${DESCRIPTORS_CODE})`;
}

/** As descriptorsText(), for an error that has the code itself. */
export function descriptorsReason(what: string): string {
  const limit = userLimits().open_files?.soft ?? "the";
  return `all ${limit} descriptors that this process may have are in use: raise ulimit -n, or start fewer ${what}`;
}

/**
 * Free descriptors that `pamir run` needs to start a job: with fewer, Node ends somewhere with a stack. Each process or thread
 * of a task takes more descriptors; if none is left later, the error's text is descriptorsText().
 */
const FREE_MIN = 5;
/**
 * More descriptors for detached processes. Each process has a thread that sees other processes end (5), an event, a process,
 * and a pipe of its task.
 */
const DETACHED_MIN = 9;

/**
 * Why no job can start with so few descriptors; undefined: a job can start.
 * @param limits the text of /proc/self/limits @param open descriptors: Node itself has about 20
 */
export function fewDescriptorsText(limits: string, open: number, isDetached: boolean): string | undefined {
  const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  const needed = open + FREE_MIN + (isDetached ? DETACHED_MIN : 0);
  if (limit === undefined || Number(limit) >= needed) return undefined;
  const least = `pamir run needs ${needed} at least, and some more for each task`;
  return `this process may have ${limit} descriptors (ulimit -n): ${least} (${DESCRIPTORS_CODE})`;
}

/** As descriptorsText(), where the system refuses to start a process. */
export function processesText(): string {
  const limit = userLimits().max_user_processes?.soft ?? "so many";
  const most = `a user may have ${limit} processes and threads (ulimit -u), and a cgroup may allow fewer`;
  return `the system starts no more processes: ${most}: raise that, or start fewer processes (${PROCESSES_CODE})`;
}

/** Why a process can't be started. @param error of spawn() */
export function startText({ message }: Error): string {
  if (message.endsWith("EMFILE")) return descriptorsText();
  return message.endsWith("EAGAIN") ? processesText() : message;
}

/** The error code with which a text of withCode() begins, or undefined. */
export function codeIn(text: string | undefined): string | undefined {
  return [DESCRIPTORS_CODE, PROCESSES_CODE].find((code) => text?.endsWith(`(${code})`));
}

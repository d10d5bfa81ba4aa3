// Ends the processes of tasks if the launching process is killed, by a signal that it can't handle. The guard is a shell that
// reads a pipe: it learns the process groups, and sees the pipe's end. It needs no polling, and nothing of the system but sh.
import type { ChildProcess } from "node:child_process";
import { nodeModule } from "../../support/host.js";

/** Reads "+ group" and "- group". At the end of its input, the shell kills all groups that it still has. */
const PROGRAM = `
groups=
while read -r what group; do
  case $what in
    +) groups="$groups $group" ;;
    -) kept=
       for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
       groups=$kept ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
`;

export class Guard {
  readonly #shell: ChildProcess;

  /** @param onFailure called if there is no guard, with the reason */
  constructor(onFailure: (why: string) => void) {
    const { spawn } = nodeModule("child_process") as typeof import("node:child_process");
    // A session of its own: signals of the terminal don't reach it.
    this.#shell = spawn("/bin/sh", ["-c", PROGRAM, "pamir-guard"], {
      detached: true,
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#shell.on("error", (error) => onFailure(error.message));
    this.#shell.stdin?.on("error", () => {});
    this.#shell.unref();
    (this.#shell.stdin as { unref?: () => void } | null)?.unref?.();
  }

  /** A process group whose processes are to end with this process. */
  add(group: number): void {
    this.#shell.stdin?.write(`+ ${group}\n`);
  }

  /** A process group that has ended. */
  remove(group: number): void {
    this.#shell.stdin?.write(`- ${group}\n`);
  }

  /** Ends the guard, and the groups that it has. */
  close(): void {
    this.#shell.stdin?.end();
  }
}

// A job that `pamir top` may look at: its monitor, or each of its nodes, answers on a local socket, in a folder that only its
// user can read. The answer describes the job and has the dump, as JSON over HTTP.
import { environment, isNode, mayRead, nodeModule } from "../support/host.js";
import { makePrivateFolder } from "../support/node/private-folder.js";

/** The answer to `pamir top`. */
export interface Visible<Dump> {
  readonly pid: number;
  /** How the process was started. */
  readonly program: readonly string[];
  /** Undefined: the dump is of the whole job. */
  readonly place?: VisiblePlace | undefined;
  /** How its packets go to other nodes. */
  readonly ways?: VisibleWays | undefined;
  readonly dump: Dump;
}

/** A node's place among those of its job. Each node answers for itself. */
export interface VisiblePlace {
  /** The job's fingerprint, which its nodes have in common. */
  readonly job: number;
  /** The name under which its nodes met. */
  readonly name?: string | undefined;
  readonly node: number;
  readonly tasksPerNode: number;
  /** The process that started this one. */
  readonly parent: number;
  /** By node: the process that answers, and whether that is on this machine. */
  readonly nodes: readonly { readonly pid: number; readonly isHere: boolean }[];
}

/** How a node's packets go to the others. */
export interface VisibleWays {
  /** The kind of its link. */
  readonly link: string;
  /** False: the agent was busy, so that nothing else is known. */
  readonly isKnown: boolean;
  /** The other nodes with which the job has begun, or which have come: the first WAYS_MAX of them. */
  readonly ways: readonly VisibleWay[];
  readonly traffic: readonly {
    readonly by: string;
    readonly at?: string | undefined;
    readonly sent: number;
    readonly received: number;
    readonly breaks: number;
  }[];
}

export interface VisibleWay {
  readonly node: number;
  /** By what: a kind of link, or one of its ways. Undefined: no packets have gone there. */
  readonly by?: string | undefined;
  readonly at?: string | undefined;
  /** Milliseconds for which it has been so. */
  readonly age?: number | undefined;
  /** Whether the node has ended. */
  readonly hasEnded: boolean;
}

/** The program's command line, if `pamir top` may see its job. @param top what the options of launch() say */
export function visibleProgram(top?: boolean): readonly string[] | undefined {
  return (top ?? environment("PAMIR_TOP") === "1") && isNode() ? process.argv : undefined;
}

/** The folder with the sockets of this user's jobs; undefined on hosts without them. */
export function socketFolder(): string | undefined {
  const os = nodeModule("os");
  if (os === undefined) return undefined;
  // Named pipes have no folders: their names share a prefix instead.
  if (os.platform() === "win32") return "\\\\.\\pipe\\";
  if (!mayRead({ name: "env", variable: "TMPDIR" }) || !mayRead({ name: "sys", kind: "uid" })) return undefined;
  // Not userInfo(), which throws for a user without an entry in the password file, as containers have them.
  return `${os.tmpdir()}/pamir-${process.geteuid?.()}`;
}

/** Makes the folder. Returns an error text, or undefined. */
function prepare(folder: string): string | undefined {
  try {
    makePrivateFolder(folder);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Answers until the thread ends, and keeps no thread running. If it fails, the job goes on, and `pamir top` does not see it.
 * @param job a number that no other job of the process has, and no other node
 */
export function becomeVisible<Seen extends Omit<Visible<unknown>, "pid" | "program">>(
  job: number,
  program: readonly string[],
  look: () => Seen | Promise<Seen>,
): void {
  const fs = nodeModule("fs") as typeof import("node:fs");
  const http = nodeModule("http") as typeof import("node:http");
  const folder = socketFolder() as string;
  const { pid } = process;
  // Not by console.warn(): the launching thread prints a worker's console output, and may be blocked.
  const fail = (why: string): void => void fs.writeSync(2, `pamir: top can't see this job: ${why}\n`);
  const isPipe = folder.startsWith("\\");
  const wrong = isPipe ? undefined : prepare(folder);
  if (wrong !== undefined) {
    fail(wrong);
    return;
  }
  const server = http.createServer(async (_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ pid, program, ...(await look()) }));
  });
  server.unref();
  server.on("error", (error) => fail(error.message));
  server.listen(`${folder}${isPipe ? "" : "/"}pamir-${pid}-${job}.sock`);
  process.on("exit", () => server.close());
}

// What `pamir top` learns from the sockets of this machine's jobs. A job of several nodes has a socket for each of them.
import { readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { type Dump, info } from "pamir";

/** Where a node is in its job. */
interface Place {
  /** The job's fingerprint. */
  readonly job: number;
  readonly node: number;
  readonly tasksPerNode: number;
  /** The process that started the answering one. */
  readonly parent: number;
  /** By node: its answering process. */
  readonly nodes: readonly { readonly pid: number; readonly isHere: boolean }[];
}

/** What a socket answers, with the time of the look, in milliseconds. */
export interface Seen {
  readonly socket: string;
  readonly at: number;
  readonly pid: number;
  readonly program: readonly string[];
  /** Undefined: the dump is of the whole job. */
  readonly place?: Place;
  readonly dump: Dump;
}

/** A look at all jobs. */
export interface Look {
  readonly seen: readonly Seen[];
  /** Processes of sockets that have not answered in time. */
  readonly silent: ReadonlySet<number>;
}

const ANSWER_MS = 2000;

/** What the jobs answer; those that have gone without a word are forgotten. @param pid a process of the job, or its launcher */
export async function look(pid: number | undefined): Promise<Look> {
  const folder = info().sockets as string;
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    names = [];
  }
  const silent = new Set<number>();
  const answers = await Promise.all(
    names.map(async (name) => {
      const owner = Number(/^pamir-(\d+)-\d+\.sock$/.exec(name)?.[1]);
      const answer = Number.isNaN(owner) ? undefined : await ask(join(folder, name));
      if (answer === "silent") silent.add(owner);
      return answer === "silent" ? undefined : answer;
    }),
  );
  const seen = answers.filter((answer) => answer !== undefined && (pid === undefined || isOf(answer, pid))) as Seen[];
  const order = ({ place }: Seen): number => place?.node ?? 0;
  seen.sort((a, b) => order(a) - order(b) || a.pid - b.pid || a.socket.localeCompare(b.socket));
  return { seen, silent };
}

function isOf({ pid: own, place }: Seen, pid: number): boolean {
  return own === pid || place?.parent === pid || place?.nodes.some((node) => node.isHere && node.pid === pid) === true;
}

function ask(socket: string): Promise<Seen | "silent" | undefined> {
  return new Promise((resolve) => {
    const request = get({ socketPath: socket, timeout: ANSWER_MS }, async (response) => {
      let text = "";
      try {
        for await (const part of response.setEncoding("utf8")) text += part;
        resolve({ socket, at: performance.now(), ...(JSON.parse(text) as Omit<Seen, "socket" | "at">) });
      } catch {
        // It has ended meanwhile.
        resolve(undefined);
      }
    });
    request.on("timeout", () => {
      resolve("silent");
      request.destroy();
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      // Its process was killed: no process listens there any more.
      if (error.code === "ECONNREFUSED") rmSync(socket, { force: true });
      resolve(undefined);
    });
  });
}

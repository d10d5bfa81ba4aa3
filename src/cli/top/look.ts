// What `pamir top` learns from the sockets of this machine's jobs. A job of several nodes has a socket for each of them.
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { info } from "pamir";
import { whyNotPrivate } from "../../support/node/private-folder.js";
import { after } from "../../support/timers.js";
import { isAnswer, type Seen } from "./answer.js";

/** A look at all jobs. */
export interface JobsLook {
  readonly seen: readonly Seen[];
  /** Processes of sockets that have not answered in time. */
  readonly silent: ReadonlySet<number>;
}

/** What is taken of one answer: 4 GiB have room for 174,000 lanes, and a dump has some 100 bytes for each. */
export const ANSWER_LIMITS = {
  /** Milliseconds without another byte, after which a process counts as silent. */
  silence: 2000,
  /** Milliseconds for all of the answer. */
  total: 20_000,
  bytes: 64 * 1024 ** 2,
};

/**
 * What the jobs answer; those that have gone without a word are forgotten.
 * @param pid a process of the job, or its launcher
 * @throws FolderError
 */
export async function look(pid: number | undefined): Promise<JobsLook> {
  const folder = info().sockets as string;
  const names = socketsIn(folder);
  const silent = new Set<number>();
  const answers = await Promise.all(
    names.map(async (name) => {
      const owner = ownerOf(name);
      const answer = Number.isNaN(owner) ? undefined : await ask(join(folder, name));
      if (answer === "silent") silent.add(owner);
      return answer === "silent" ? undefined : answer;
    }),
  );
  const all = answers.filter((answer) => answer !== undefined) as Seen[];
  const jobs = new Set(all.filter((answer) => pid === undefined || isOf(answer, pid)).map(jobOf));
  // A job is shown as a whole: several launchers may have started its nodes.
  const seen = all.filter((answer) => jobs.has(jobOf(answer)));
  const order = ({ place }: Seen): number => place?.node ?? 0;
  seen.sort((a, b) => order(a) - order(b) || a.pid - b.pid || a.socket.localeCompare(b.socket));
  return { seen, silent };
}

/** The process that has made a socket, by the socket's name. */
function ownerOf(socket: string): number {
  return Number(/(?:^|[\\/])pamir-(\d+)-\d+\.sock$/.exec(socket)?.[1]);
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // EPERM: it goes on in the name of another user.
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}

/** What answers of one job have in common. */
export function jobOf({ socket, place }: Seen): string {
  return place === undefined ? socket : `job ${place.job}`;
}

function isOf({ pid: own, place }: Seen, pid: number): boolean {
  return own === pid || place?.parent === pid || place?.nodes.some((node) => node.isHere && node.pid === pid) === true;
}

/** The folder of the sockets is not this user's alone. */
export class FolderError extends Error {}

/** Names of the sockets. What else lies there is left alone. @throws FolderError */
function socketsIn(folder: string): string[] {
  try {
    const isPipe = folder.startsWith("\\");
    const why = isPipe ? undefined : whyNotPrivate(folder);
    if (why !== undefined) throw new FolderError(`${why}. What answers there may be no job of this user`);
    return readdirSync(folder).filter((name) => isPipe || lstatSync(join(folder, name)).isSocket());
  } catch (error) {
    // The folder is made by the first job that opts in; a socket may go at any time.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return [];
  }
}

/** Asks a process for its answer. "silent": it gives none in time. Undefined: it has gone, or what it says makes no sense. */
export function ask(socket: string, limits = ANSWER_LIMITS): Promise<Seen | "silent" | undefined> {
  return new Promise((resolve) => {
    const stop = after(limits.total, () => {
      resolve("silent");
      request.destroy();
    });
    const request = get({ socketPath: socket, timeout: limits.silence }, async (response) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      try {
        for await (const part of response as AsyncIterable<Buffer>) {
          bytes += part.length;
          if (bytes > limits.bytes) throw new RangeError(`more than ${limits.bytes} bytes`);
          parts.push(part);
        }
        const answer: unknown = JSON.parse(Buffer.concat(parts).toString());
        resolve(isAnswer(answer) ? { ...answer, socket, at: performance.now() } : undefined);
      } catch {
        // It has ended meanwhile, or is no job.
        resolve(undefined);
        request.destroy();
      }
    });
    request.on("close", stop);
    request.on("timeout", () => {
      resolve("silent");
      request.destroy();
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      // Its process was killed, or has made the socket and does not listen yet.
      if (error.code === "ECONNREFUSED" && hasEnded(ownerOf(socket))) rmSync(socket, { force: true });
      resolve(undefined);
    });
  });
}

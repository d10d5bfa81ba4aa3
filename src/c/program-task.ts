// The task of launchProgram(): runs what its launcher gave it, and tells it what the program writes and how it ended.
import { attach, PamiError } from "../index.js";
import type { HostMessagePort } from "../support/like.js";
import { memoryFiles } from "./memory-program-files.js";
import { type ProgramEnd, runProgram } from "./program.js";
import { hear, type NewsPort, type ProgramNews, type ProgramOrder } from "./program-news.js";

/**
 * Runs a program in this worker, which launchProgram() has started: a module with this one call is all that launchProgram()
 * needs. Blocks the thread until the program ends.
 * @throws PAMIR_NOT_IN_JOB; PAMIR_INVAL: launch() has started this worker, not launchProgram()
 */
export async function programTask(): Promise<void> {
  const client = await attach();
  const order = client.args as ProgramOrder | undefined;
  const port = client.port as (HostMessagePort & NewsPort) | undefined;
  if (port === undefined || order?.program === undefined)
    throw new PamiError("PAMIR_INVAL", "programTask() runs in workers of launchProgram(), not of launch()");
  const tell = (news: ProgramNews): void => port.postMessage(news);
  const files = memoryFiles(order.files);
  let input = new TextEncoder().encode(client.rank === 0 ? order.input : "");
  const { code, error } = await runProgram(client, order.program, {
    args: order.args,
    env: order.env,
    hostName: order.hostName,
    isolate: order.isolate,
    folders: ["/", "."].map((path) => ({ path, folder: files.folder })),
    write: (stream, bytes) => tell({ stream, bytes: new Uint8Array(bytes) }),
    read(count) {
      const part = input.subarray(0, count);
      input = input.subarray(part.length);
      return part;
    },
  }).catch((error: unknown): ProgramEnd => {
    if (error instanceof PamiError) return { code: 2, error };
    throw error;
  });
  // The launcher's answer says that it has all: the job's end closes the port, with what is on its way.
  const answer = new Promise<void>((resolve) => hear(port, () => resolve()));
  const failure = error && { code: (error as Partial<PamiError>).code, message: error.message };
  tell({ code, error: failure, files: files.tree() });
  await answer;
  client.close();
}

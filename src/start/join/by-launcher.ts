// attach() in a process that a launcher has started: mpiexec, mpirun, srun, a script, or `pamir run --nodes` and `--hosts`.

import { takeLater } from "../../bootstrap/later.js";
import { type OpenedBootstrap, openBootstrap } from "../../bootstrap/open.js";
import { whyOf } from "../../bootstrap/text.js";
import type { BootstrapWait } from "../../bootstrap/waits.js";
import { PamiError } from "../../core/error.js";
import { environment } from "../../support/host.js";
import { printable } from "../../support/printable.js";
import { type Joined, joinBy } from "./join.js";
import { meetAt, type NatsJob } from "./nats-job.js";

/**
 * Joins the job of the launcher that started this process, or one that meets at a NATS server.
 * @throws PAMIR_NOT_IN_JOB and what openBootstrap() throws
 */
export async function joinByLauncher(place?: NatsJob): Promise<Joined> {
  if (place !== undefined) meetAt(place, process.env);
  const options = {
    insecure: environment("PAMIR_INSECURE") === "1",
    onWait: ({ waited, most, what }: BootstrapWait) =>
      say(`for ${Math.round(waited / 1000)} of ${Math.round(most / 1000)} s, attach() waits for ${what}`),
    onRefused: (why: string) => say(`attach() has refused a process: ${why}`),
  };
  const { bootstrap, key } = await openBootstrap(process.env, options).catch((cause: unknown): OpenedBootstrap => {
    const { code, message } = cause as PamiError;
    if (code !== "PAMIR_LAUNCHER" || !message.startsWith("no launcher")) throw cause;
    const text = "attach() in a thread that no job started: use launch(), here or above";
    throw new PamiError("PAMIR_NOT_IN_JOB", text, { cause });
  });
  let joined: Joined;
  try {
    const taken = takeLater(process.env);
    const { news, report, rank } = taken ?? {};
    const later = bootstrap.later === undefined ? taken : { ...bootstrap.later, news, report, rank };
    joined = await joinBy(bootstrap, key, undefined, later);
  } catch (error) {
    await bootstrap.fail(whyOf(error));
    throw error;
  }
  await bootstrap.close();
  return joined;
}

function say(text: string): void {
  process.stderr.write(`pamir: ${printable(text, true)}\n`);
}

// How a task comes by its client.

import { JOB_HASH_OFFSET, JOB_MAGIC, JOB_MAGIC_OFFSET } from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { VERSION } from "../generated/version.js";
import { openMemory, selectKernel } from "../kernel/select.js";
import { readMap } from "../memory/map.js";
import { Client } from "../pami/client.js";
import { PamiError } from "../pami/error.js";
import { nodeModule } from "../support/host.js";
import { TICKET, type Ticket } from "./ticket.js";

let attached: Client | undefined;

/**
 * Joins the job that started this worker. A second call returns the same client.
 * @throws PAMIR_NOT_IN_JOB where no job started this thread, PAMIR_VERSION where another pamir did
 */
export async function attach(): Promise<Client> {
  if (attached !== undefined) return attached;
  const data = nodeModule("worker_threads")?.workerData as { [TICKET]?: Ticket } | null | undefined;
  const ticket = data?.[TICKET];
  if (ticket === undefined) {
    throw new PamiError("PAMIR_NOT_IN_JOB", "attach() in a thread that no job started: use launch(), here or above");
  }
  attached = clientOf(ticket);
  return attached;
}

/** The client for a ticket. */
export function clientOf(ticket: Ticket): Client {
  const memory = openMemory(ticket.memory);
  const word = (offset: number): number => (memory.words[(ticket.job + offset) >>> 2] as number) >>> 0;
  const theirs = word(JOB_HASH_OFFSET);
  if (word(JOB_MAGIC_OFFSET) !== JOB_MAGIC || theirs !== LAYOUT_HASH || ticket.layoutHash !== LAYOUT_HASH) {
    throw new PamiError(
      "PAMIR_VERSION",
      `the job was launched by pamir ${ticket.version} (layout ${theirs}), this task imports ${VERSION} (layout ${LAYOUT_HASH}): use one copy`,
    );
  }
  const kernel = selectKernel(ticket.kernel, ticket.memory, memory, ticket.module);
  const { task, args, debug } = ticket;
  return new Client({ kernel, memory, map: readMap(memory, ticket.job), task, args, debug });
}

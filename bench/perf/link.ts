// Starts what is measured over links: two processes of pamir, each a node of its own, and the sockets beside it.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { cleaned, withFolder } from "./clean-up.js";
import { limitOf, type Order, within } from "./peers.js";
import { type Figures, LINK_WORK, makeResultFile, type PerfWork, readResults } from "./work.js";

/** Of each node, for what it sends. */
interface Impairments {
  readonly loss: number;
  readonly seed: number;
}

const KEY_BYTES = 32;
/** The descriptor by which a node gets the key. */
const KEY_FD = 3;
const HOST = "127.0.0.1";

/** A port at which nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/**
 * A run of two nodes of one task, whose agents talk by a link on loopback.
 * @param link name of its kind
 * @param isSealed with a job key
 * @param options of the nodes
 */
export function runNodes(
  order: Order,
  link: string,
  isSealed: boolean,
  options: { readonly impairments?: Impairments; readonly agent?: "inline" } = {},
): Promise<Figures> {
  return withFolder(async (folder) => {
    const results = makeResultFile(join(folder, "results"), 2);
    // Two tasks, mostly two agents, and two processors: the system places them.
    const work: PerfWork = { ...order, cpus: [], results, barrier: join(folder, "barrier") };
    const env = {
      PAMIR_SIZE: "2",
      PAMIR_RENDEZVOUS: `${HOST}:${await freePort()}`,
      PAMIR_OPTIONS: JSON.stringify({ contexts: 1, link, ...options }),
      ...(isSealed ? { PAMIR_KEY_FD: `${KEY_FD}` } : { PAMIR_INSECURE: "1" }),
      [LINK_WORK]: JSON.stringify(work),
    };
    const key = isSealed ? randomBytes(KEY_BYTES) : undefined;
    const nodes = [0, 1].map((task) => startNode(task, env, key));
    const ends = nodes.map(endOf);
    const endAll = (): void => {
      for (const node of nodes) node.kill("SIGKILL");
    };
    try {
      await cleaned(() => within(limitOf(order), Promise.all(ends), endAll), endAll);
    } finally {
      await Promise.allSettled(ends);
    }
    return readResults(results);
  });
}

/** @param key comes by a pipe: no file has it */
function startNode(task: number, env: NodeJS.ProcessEnv, key: Uint8Array | undefined): ChildProcess {
  const node = spawn(process.execPath, [fileURLToPath(new URL("./tasks/perf.js", import.meta.url))], {
    stdio: ["ignore", "inherit", "pipe", key === undefined ? "ignore" : "pipe"],
    env: { ...process.env, ...env, PAMIR_RANK: `${task}`, PAMIR_NODE: `${task}` },
  });
  const secret = node.stdio[KEY_FD] as Duplex | null;
  // A process that has ended has not read it.
  secret?.on("error", () => {}).end(key);
  return node;
}

/** Resolves once a node has ended. @throws what it has said, if it failed */
async function endOf(node: ChildProcess, task: number): Promise<void> {
  let said = "";
  node.stderr?.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  const [code] = await once(node, "close");
  if (code !== 0) throw new Error(`task ${task}: exit code ${code}: ${said.trim()}`);
}

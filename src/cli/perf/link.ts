// Starts what is measured over links: two processes of pamir, each a node of its own, and the sockets beside it.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { limitOf, type Order, within } from "./peers.js";
import { type Figures, LINK_WORK, makeResultFile, readResults, type Work } from "./work.js";

const KEY_BYTES = 32;
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

/** A run of two nodes of one task, whose agents talk by a link on loopback. @param isSealed with a job key */
export async function runNodes(order: Order, link: "udp" | "websocket", isSealed: boolean): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "pamir-perf-"));
  const results = makeResultFile(join(folder, "results"), 2);
  // Two tasks, two agents, and two processors: the system places them.
  const work: Work = { ...order, cpus: [], results, barrier: join(folder, "barrier") };
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, randomBytes(KEY_BYTES).toString("hex"), { mode: 0o600 });
  const rendezvous = `${HOST}:${await freePort()}`;
  const children: ChildProcess[] = [];
  const ends = [0, 1].map(async (task) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("./tasks/perf.js", import.meta.url))], {
      stdio: ["ignore", "inherit", "pipe"],
      env: {
        ...process.env,
        PAMIR_RANK: `${task}`,
        PAMIR_SIZE: "2",
        PAMIR_NODE: `${task}`,
        PAMIR_RENDEZVOUS: rendezvous,
        PAMIR_OPTIONS: JSON.stringify({ contexts: 1, link }),
        ...(isSealed ? { PAMIR_KEY_FILE: keyFile } : { PAMIR_INSECURE: "1" }),
        [LINK_WORK]: JSON.stringify(work),
      },
    });
    children.push(child);
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`task ${task}: exit code ${code}: ${said.trim()}`);
  });
  const endAll = (): void => {
    for (const child of children) child.kill("SIGKILL");
  };
  try {
    await within(limitOf(order), Promise.all(ends), endAll);
    return readResults(results);
  } finally {
    endAll();
    await Promise.allSettled(ends);
    rmSync(folder, { recursive: true, force: true });
  }
}

// Nodes of a job at a NATS server on two hosts, which are network namespaces: packets go by UDP where the cable carries that, and
// else through the server, and change from one to the other under traffic.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { said } from "../support/nats-launcher.js";
import { NATS_SERVER } from "../support/nats-server.js";
import { cli, withoutWaits } from "../support/run-command.js";
import { type End, TwoHosts, UDP, whyNoHosts } from "../support/two-hosts.js";

const program = fileURLToPath(new URL("programs/until-told.js", import.meta.url));
/** On its own host, the port is free. */
const PORT = 4222;
const ENDS = [0, 1] as const;
const PATIENCE = 60_000;

const isRequired = process.env.PAMIR_REQUIRE_NAMESPACES === "1";
const why = whyNoHosts();
if (why !== "" && !isRequired) console.log(`not run: nodes at a NATS server in network namespaces (${why})`);

describe.skipIf(why !== "" || NATS_SERVER === undefined)(
  "nodes at a server, on two hosts",
  { timeout: 300_000 },
  () => {
    const folder = mkdtempSync(join(inject("folder"), "nats-namespaces-"));
    const keyFile = join(folder, "key");
    writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
    const children = new Set<ChildProcess>();
    let jobs = 0;
    let hosts: TwoHosts;
    let server: ChildProcess;

    function on(end: End, ...words: string[]): ChildProcess {
      const [command, ...args] = [...hosts.on(end), ...words];
      const { PATH } = process.env;
      return spawn(command as string, args, {
        stdio: ["ignore", "pipe", "pipe"],
        env: { PATH, PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: '{"silence":60000}' },
      });
    }

    beforeAll(async () => {
      hosts = await TwoHosts.start();
      server = on(0, NATS_SERVER as string, "-a", hosts.addresses[0], "-p", `${PORT}`);
      await said(server, "Server is ready", "stderr");
    });
    afterEach(() => {
      for (const child of children) child.kill("SIGKILL");
      children.clear();
      hosts.cable("up");
      for (const end of ENDS) hosts.filter(end, undefined);
    });
    afterAll(async () => {
      server.kill("SIGKILL");
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
      hosts.close();
      rmSync(folder, { recursive: true, force: true });
    });

    /** A node on each host, whose tasks send to each other until end() is called. */
    async function start() {
      const job = `cut-${++jobs}`;
      const file = join(folder, job);
      const url = `nats://${hosts.addresses[0]}:${PORT}`;
      const args = ["run", "--nats", url, "--job", job, "--nodes", "2", "-n", "2", "--top", program, file];
      const nodes = ENDS.map((end) => {
        const child = on(end, process.execPath, cli, ...args);
        children.add(child);
        const ended = Promise.all([text(child.stdout as never), text(child.stderr as never), once(child, "close")]);
        return { begins: said(child, "begins"), ended };
      });
      await Promise.all(nodes.map(({ begins }) => begins));
      const info = (end: End): string => hosts.run(end, process.execPath, cli, "info", "--job", job);
      return {
        /** Waits until both nodes say so. */
        async until(said: RegExp): Promise<void> {
          for (const end of ENDS)
            for (const began = performance.now(); ; await delay(100)) {
              const shown = info(end);
              if (said.test(shown)) break;
              if (performance.now() - began > PATIENCE) throw new Error(`not ${said}: ${shown}`);
            }
        },
        info,
        async end(): Promise<{ readonly status: unknown; readonly out: string; readonly err: string }[]> {
          writeFileSync(file, "");
          const all = await Promise.all(nodes.map(({ ended }) => ended));
          return all.map(([out, err, [status]]) => ({
            status,
            out: out.replace(/^\[\d\] /gm, ""),
            err: withoutWaits(err),
          }));
        },
      };
    }

    const GOOD = [0, 1].map(() => ({ status: 0, out: "begins\nall came\n", err: "" }));
    const SHORT = /\n {2}node \d +by nats short way, through 10\.83\.71\.\d:\d+, for /;
    const LONG = /\n {2}node \d +by nats, through 10\.83\.71\.1:4222, for /;

    it("the short way is blocked, and open again, in both directions, then in one; then the cable is cut", async () => {
      const nodes = await start();
      await nodes.until(SHORT);
      for (const blocked of [ENDS, [1]] as const) {
        for (const end of blocked) hosts.filter(end, UDP);
        await nodes.until(LONG);
        for (const end of blocked) hosts.filter(end, undefined);
        await nodes.until(SHORT);
      }
      await nodes.until(/by nats short way: .*; it broke [2-9]/);
      hosts.cable("down");
      await delay(3000);
      hosts.cable("up");
      await nodes.until(SHORT);
      expect(await nodes.end()).toEqual(GOOD);
    });

    it("UDP is blocked from the start: all packets go through the server, until it is not", async () => {
      for (const end of ENDS) hosts.filter(end, UDP);
      const nodes = await start();
      await nodes.until(LONG);
      for (const end of ENDS) expect(nodes.info(end)).not.toMatch(/by nats short way: [1-9]/);
      for (const end of ENDS) hosts.filter(end, undefined);
      await nodes.until(SHORT);
      expect(await nodes.end()).toEqual(GOOD);
    });
  },
);

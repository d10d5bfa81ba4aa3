// @ts-check
// A cluster of NATS servers of a round, which are killed, stopped, and started again at times that the seed draws.
import { spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Servers of a cluster. */
export const SERVERS = 3;
/** The program; Debian has it in a folder for administrators. Undefined: it is not installed. */
export const NATS_SERVER = ["nats-server", "/usr/sbin/nats-server"].find(
  (program) => spawnSync(program, ["--version"]).status === 0,
);
/** Milliseconds after which a client takes a server for dead that answers no ping, at the most. */
const STALE_MS = 16_000;

/**
 * @typedef {object} Disturbance
 * @property {number} at milliseconds from the beginning of the traffic
 * @property {readonly number[]} servers
 * @property {"SIGKILL" | "SIGSTOP"} signal
 * @property {number} lasts milliseconds until they are started again, or go on
 */

/** @param {(limit: number) => number} below @param {number} milliseconds of traffic @returns {Disturbance[]} */
export function drawDisturbances(below, milliseconds) {
  const all = Array.from({ length: SERVERS }, (_, server) => server);
  return Array.from({ length: 1 + below(1 + milliseconds / 1000) }, () => {
    const isAll = below(4) === 0;
    const isLong = below(8) === 0;
    return {
      at: below(milliseconds),
      servers: isAll ? all : [below(SERVERS)],
      signal: /** @type {const} */ (["SIGKILL", "SIGKILL", "SIGSTOP"])[below(3)] ?? "SIGKILL",
      lasts: isAll ? below(5000) : isLong ? STALE_MS : below(3000),
    };
  });
}

/** From where ports are taken: systems give none of them to sockets that name no port, as those of all tasks do. */
const [FIRST_PORT, PORTS_END] = [16_384, 32_768];

/** Ports that are free, each of them another one. @param {number} count @returns {Promise<number[]>} */
export async function freePorts(count) {
  /** @type {Set<number>} */
  const ports = new Set();
  while (ports.size < count) {
    const port = randomInt(FIRST_PORT, PORTS_END);
    const server = createServer();
    const isFree = new Promise((resolve) =>
      server.once("error", () => resolve(false)).once("listening", () => resolve(true)),
    );
    server.listen(port, "127.0.0.1");
    if (!(await isFree)) continue;
    ports.add(port);
    await new Promise((resolve) => server.close(resolve));
  }
  return [...ports];
}

export class Servers {
  /** @type {(import("node:child_process").ChildProcess | undefined)[]} */
  #shells = [];
  /** By server: its process. @type {number[]} */
  #pids = [];
  /** Those that are away. @type {Set<number>} */
  #away = new Set();
  /** @type {Set<NodeJS.Timeout>} */
  #timers = new Set();
  /** @type {number[]} */
  #ports = [];
  /** @type {number[]} */
  #routes = [];

  /** All of a cluster, once they answer. */
  static async start() {
    const servers = new Servers();
    const ports = await freePorts(2 * SERVERS);
    servers.#ports = ports.slice(0, SERVERS);
    servers.#routes = ports.slice(SERVERS);
    await Promise.all(servers.#ports.map((_, server) => servers.#start(server)));
    return servers;
  }

  /** As PAMIR_NATS has it. */
  get urls() {
    return this.#ports.map((port) => `nats://127.0.0.1:${port}`).join(",");
  }

  /** Resolves once the server runs: a client tries again until it listens. @param {number} server @returns {Promise<void>} */
  #start(server) {
    const routes = this.#routes.map((port) => `nats://127.0.0.1:${port}`).join(",");
    const own = ["-a", "127.0.0.1", "-p", `${this.#ports[server]}`];
    const cluster = ["--cluster_name", "soak", "--cluster", `nats://127.0.0.1:${this.#routes[server]}`];
    const args = [...own, ...cluster, "--routes", routes];
    // The shell reads until this process has ended, however: so no server is left.
    const script = '"$@" >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null';
    const shell = spawn("sh", ["-c", script, "sh", /** @type {string} */ (NATS_SERVER), ...args], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.#shells[server] = shell;
    return new Promise((resolve) =>
      shell.stdout.once("data", (text) => {
        this.#pids[server] = Number(text);
        resolve();
      }),
    );
  }

  /** Carries them out, from now on. @param {readonly Disturbance[]} disturbances */
  disturb(disturbances) {
    for (const disturbance of disturbances) this.#after(disturbance.at, () => this.#begin(disturbance));
  }

  /** @param {number} milliseconds @param {() => void} call */
  #after(milliseconds, call) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      call();
    }, milliseconds);
    this.#timers.add(timer);
  }

  /** @param {Disturbance} disturbance */
  #begin({ servers, signal, lasts }) {
    const hit = servers.filter((server) => !this.#away.has(server));
    for (const server of hit) {
      this.#away.add(server);
      process.kill(/** @type {number} */ (this.#pids[server]), signal);
    }
    this.#after(lasts, () => {
      for (const server of hit) void this.#restore(server, signal);
    });
  }

  /** @param {number} server @param {"SIGKILL" | "SIGSTOP"} signal */
  async #restore(server, signal) {
    if (signal === "SIGSTOP") process.kill(/** @type {number} */ (this.#pids[server]), "SIGCONT");
    else {
      this.#shells[server]?.stdin?.end();
      await this.#start(server);
    }
    this.#away.delete(server);
  }

  close() {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const shell of this.#shells) shell?.stdin?.end();
  }
}

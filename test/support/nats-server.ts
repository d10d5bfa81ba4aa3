// NATS servers of this machine, each on free ports of loopback: Debian's package nats-server.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.js";

/** The program, if this machine has it; Debian has it in a folder for administrators. */
export const NATS_SERVER: string | undefined = ["nats-server", "/usr/sbin/nats-server"].find(
  (program) => spawnSync(program, ["--version"]).status === 0,
);

if (NATS_SERVER === undefined) {
  const text = "not run: what needs a NATS server, which this machine does not have (nats-server)";
  if (process.env.PAMIR_REQUIRE_LAUNCHERS === "1") throw new Error(text);
  console.log(text);
}

/** What a server may be given besides its ports: lines of its configuration. */
export interface NatsServerOptions {
  readonly config?: string;
  /** Of a cluster: the URLs of routes to other servers. */
  readonly routes?: readonly string[];
  /** Variables that its configuration names. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Milliseconds for a server to start. */
const START_MS = 60_000;

export class NatsServer {
  readonly #folder = mkdtempSync(join(tmpdir(), "pamir-nats-"));
  #options: NatsServerOptions;
  #child: ChildProcess | undefined;
  #ports: Record<string, string[]> = {};
  /** Of those that systems give to no other socket while the server is away. */
  readonly #port: number;
  readonly #cluster: number;

  private constructor(options: NatsServerOptions, port: number, cluster: number) {
    this.#options = options;
    this.#port = port;
    this.#cluster = cluster;
  }

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    for (let left = 3; ; left--) {
      const server = new NatsServer(options, await freePort(), await freePort());
      try {
        await server.again();
        return server;
      } catch (error) {
        await server.close();
        // A test beside this one has drawn the same port.
        if (left === 0 || !/address already in use/.test(String(error))) throw error;
      }
    }
  }

  /** nats://127.0.0.1:PORT */
  get url(): string {
    return this.#ports.nats?.[0] as string;
  }

  /** Where other servers of its cluster reach it. */
  get route(): string {
    return this.#ports.cluster?.[0] as string;
  }

  /** Where pages reach it. */
  get websocket(): string {
    return this.#ports.websocket?.[0] as string;
  }

  /** Its lines, for errors. */
  get log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /** Starts it, or starts it again on the same ports. */
  async again(): Promise<void> {
    const ports = join(this.#folder, "ports");
    rmSync(ports, { recursive: true, force: true });
    mkdirSync(ports);
    this.#configure(ports);
    this.#child = spawn(NATS_SERVER as string, ["-c", join(this.#folder, "config")], {
      stdio: "ignore",
      env: { ...process.env, ...this.#options.env },
    });
    const ended = once(this.#child, "exit").then(() => "ended");
    for (const began = performance.now(); ; ) {
      const [file] = readdirSync(ports);
      const text = file === undefined ? "" : readFileSync(join(ports, file), "utf8");
      if (text !== "") {
        this.#ports = JSON.parse(text) as Record<string, string[]>;
        break;
      }
      if ((await Promise.race([ended, delay(10)])) === "ended" || performance.now() - began > START_MS)
        throw new Error(`nats-server does not start: ${existsSync(join(this.#folder, "log")) ? this.log : "no log"}`);
    }
  }

  #configure(ports: string): void {
    const { config = "", routes } = this.#options;
    const cluster =
      routes === undefined
        ? ""
        : `cluster { name: test, listen: "127.0.0.1:${this.#cluster}", routes: ${JSON.stringify(routes)} }`;
    const lines = [
      `listen: "127.0.0.1:${this.#port}"`,
      `ports_file_dir: ${JSON.stringify(ports)}`,
      `log_file: ${JSON.stringify(join(this.#folder, "log"))}`,
      "lame_duck_duration: 30s",
      cluster,
      config,
    ];
    writeFileSync(join(this.#folder, "config"), lines.join("\n"));
  }

  /** Takes another configuration while it runs. Resolves once it has done so. */
  async reload(config: string): Promise<void> {
    this.#options = { ...this.#options, config };
    this.#configure(join(this.#folder, "ports"));
    const count = (): number => this.log.split("Reloaded server configuration").length;
    const before = count();
    this.#child?.kill("SIGHUP");
    for (const began = performance.now(); count() === before; await delay(20))
      if (performance.now() - began > START_MS) throw new Error(`nats-server does not reload: ${this.log}`);
  }

  /** It answers nothing, and keeps its connections. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child?.kill("SIGCONT");
  }

  /** It takes no more clients, and sends those that it has to other servers. Resolves once it has ended. */
  async lameDuck(): Promise<void> {
    const child = this.#child as ChildProcess;
    const ended = once(child, "exit");
    child.kill("SIGUSR2");
    await ended;
  }

  /** Kills it. again() starts it again. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Servers of one cluster. */
export async function natsCluster(count: number, options: NatsServerOptions = {}): Promise<NatsServer[]> {
  const servers = [await NatsServer.start({ ...options, routes: [] })];
  while (servers.length < count)
    servers.push(await NatsServer.start({ ...options, routes: servers.map(({ route }) => route) }));
  return servers;
}

// The peers outside Node: the C programs of bench/peers under no library, Open MPI or MPICH; and ucx_perftest. What is missing
// on a machine is left out, with the reason.
import { execFile, execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { needPath, pathOf } from "../../src/cli/commands.js";
import { pause } from "../../src/support/timers.js";
import { compile } from "./compile.js";
import { Missing, type Order } from "./peers.js";
import { type Figures, isCollective } from "./work.js";

/** Beside dist/ in the package. */
const SOURCES = fileURLToPath(new URL("../bench/peers/", import.meta.url));
const C_RING_BYTES = 1024 * 1024;

/** Output of a command, or undefined where it can't be run. @param command an absolute path; undefined: it is not installed */
function outputOf(command: string | undefined, args: string[]): string | undefined {
  if (command === undefined) return undefined;
  try {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 20_000 });
  } catch {
    return undefined;
  }
}

/** Runs a program to its end; its output. */
function run(command: string, args: readonly string[], seconds: number, env = process.env): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      { env, timeout: 30_000 + 10_000 * seconds, killSignal: "SIGKILL" },
      (error, out, complaint) => {
        if (error === null) resolve(out);
        else
          reject(
            new Error(`${command} failed: ${(complaint || error.message).trim().split("\n").slice(0, 3).join(" ")}`),
          );
      },
    );
  });
}

export type Runner = (order: Order) => Promise<Figures>;

/** A way to measure, or why there is none. */
export type Native = { readonly run: Runner } | { readonly missing: string };

/** Arguments that all our programs begin with; -1: not bound. */
function common({ cpus, seconds }: Order): string[] {
  return [String(cpus[0] ?? -1), String(cpus[1] ?? -1), String(seconds)];
}

function program(compiler: string, name: string): { path: string } | { missing: string } {
  try {
    return { path: compile(compiler, SOURCES, name) };
  } catch (error) {
    const text = String((error as { stderr?: Buffer }).stderr ?? (error as Error).message);
    return { missing: `${basename(compiler)} does not compile ${name}.c: ${text.trim().split("\n")[0]}` };
  }
}

function compilerOf(): string | undefined {
  return ["cc", "gcc", "clang"]
    .flatMap((name) => pathOf(name) ?? [])
    .find((command) => outputOf(command, ["--version"]) !== undefined);
}

/** handoff.c, futex.c or ring.c. */
export function nativeC(name: "handoff" | "futex" | "ring"): Native {
  const compiler = compilerOf();
  if (compiler === undefined) return { missing: "there is no C compiler (cc)" };
  const built = program(compiler, name);
  if ("missing" in built) return built;
  return {
    run: async (order) => {
      // At least four messages have room, whatever their size.
      const capacity = Math.max(C_RING_BYTES, 4 * 2 ** Math.ceil(Math.log2(order.bytes + 16)));
      const more = name === "ring" ? [String(order.bytes), String(capacity)] : [];
      return JSON.parse(await run(built.path, [...common(order), ...more], order.seconds)) as Figures;
    },
  };
}

const MPI = {
  openmpi: {
    suffix: "openmpi",
    is: /open ?mpi|open-rte/i,
    options: ["--oversubscribe", "--bind-to", "none", ...(process.getuid?.() === 0 ? ["--allow-run-as-root"] : [])],
    // With --oversubscribe, Open MPI does not look whether there are more processes than cores.
    crowded: ["--mca", "mpi_yield_when_idle", "1"],
  },
  // It spins. On two cores, 3200 barriers of eight processes took more than 35 s.
  mpich: { suffix: "mpich", is: /mpich|hydra/i, options: ["-bind-to", "none"], crowded: undefined },
} as const;

/** mpi.c under one of the two. Both may be installed: then their commands have suffixes. */
export function nativeMpi(name: keyof typeof MPI): Native {
  const { suffix, is, options, crowded } = MPI[name];
  const fits = (command: string) => is.test(outputOf(command, ["--version"]) ?? "");
  const installed = (name: string): string[] => [`${name}.${suffix}`, name].flatMap((one) => pathOf(one) ?? []);
  const starter = installed("mpirun").find(fits);
  const compiler = installed("mpicc").find((command) => is.test(outputOf(command, ["-show"]) ?? ""));
  if (starter === undefined || compiler === undefined) return { missing: `${name} (mpicc, mpirun) is not installed` };
  const built = program(compiler, "mpi");
  if ("missing" in built) return built;
  const together = program(compiler, "collectives");
  if ("missing" in together) return together;
  return {
    run: async (order) => {
      const { path } = isCollective(order.test) ? together : built;
      const what = isCollective(order.test)
        ? order.test
        : order.test === "am_lat"
          ? "lat"
          : order.test === "rndv_bw"
            ? "rndv"
            : "rate";
      const { tasks, bytes } = order;
      const more = tasks > availableParallelism() ? crowded : [];
      if (more === undefined) throw new Missing(`${name} gives no core away, and there are more processes than cores`);
      const args = [...options, ...more, "-n", String(tasks), path, ...common(order), String(bytes), what];
      return JSON.parse(await run(starter, args, order.seconds)) as Figures;
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** ucx_perftest over shared memory: `ucx`, active messages as a user has them (UCP); `ucx-uct`, the layer below. */
export function nativeUcx(name: "ucx" | "ucx-uct"): Native {
  const perftest = pathOf("ucx_perftest");
  if (perftest === undefined || outputOf(perftest, ["-h"]) === undefined)
    return { missing: "ucx_perftest is not installed" };
  const env = { ...process.env, UCX_TLS: "shm,self", UCX_LOG_LEVEL: "error" };
  const uct = name === "ucx-uct";
  return {
    run: async (order) => {
      const { test, bytes, seconds, cpus } = order;
      const latency = test === "am_lat";
      // It counts messages, not seconds: as many as take about that long.
      const each = latency ? 250 + bytes / 5 : 60 + bytes / 10;
      const count = Math.max(1000, Math.round((seconds * 1e9) / each));
      const what = `${uct ? "" : "ucp_"}am_${latency ? "lat" : "bw"}`;
      const layer = uct ? ["-d", "memory", "-x", "posix"] : [];
      const test_ = ["-t", what, "-s", String(bytes), "-n", String(count), "-v", ...layer];
      const port = String(await freePort());
      const command = (thread: number, host: string[]): [string, string[]] => {
        const args = [...host, "-p", port, ...test_];
        const cpu = cpus[thread];
        return cpu === undefined ? [perftest, args] : [needPath("taskset"), ["-c", String(cpu), perftest, ...args]];
      };
      const server = spawn(...command(1, []), { env, stdio: "ignore" });
      const ended = new Promise((resolve) => server.on("close", resolve).on("error", resolve));
      try {
        let lines = "";
        for (let attempt = 1; lines === ""; attempt++) {
          await pause(150 * attempt);
          lines = await run(...command(0, ["127.0.0.1"]), seconds, env).catch((error: Error) => {
            if (attempt === 4) throw error;
            return "";
          });
        }
        const row = (lines.trim().split("\n").pop() as string).split(",").map(Number);
        const [iterations = 0, median = 0, , , , , , rate = 0] = row;
        return latency ? { p50_ns: median * 1000 } : { messages_per_s: rate, messages: iterations };
      } finally {
        server.kill("SIGKILL");
        await ended;
      }
    },
  };
}

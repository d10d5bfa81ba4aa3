// What the host is: the one place that asks. Web APIs where they suffice, Node's modules where there is Node.

/** A built-in module of Node, or undefined elsewhere: no static `node:` import, so bundlers see none. */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  const { process } = globalThis as { process?: { type?: string; getBuiltinModule?: (id: string) => unknown } };
  // With nodeIntegration, pages of Electron and their Web Workers have Node's modules, and can't start its threads.
  if (process?.type === "renderer" || process?.type === "worker") return undefined;
  return process?.getBuiltinModule?.(`node:${name}`) as NodeModules[Name] | undefined;
}

interface NodeModules {
  worker_threads: typeof import("node:worker_threads");
  os: typeof import("node:os");
  fs: typeof import("node:fs");
  url: typeof import("node:url");
  http: typeof import("node:http");
  https: typeof import("node:https");
  net: typeof import("node:net");
  buffer: typeof import("node:buffer");
  util: typeof import("node:util");
  crypto: typeof import("node:crypto");
  diagnostics_channel: typeof import("node:diagnostics_channel");
  dgram: typeof import("node:dgram");
  dns: typeof import("node:dns");
  module: typeof import("node:module");
  child_process: typeof import("node:child_process");
  v8: typeof import("node:v8");
  stream: typeof import("node:stream");
  tls: typeof import("node:tls");
  tty: typeof import("node:tty");
  vm: typeof import("node:vm");
}

/** Node's MessagePort, which has other events than a browser's. */
export type NodePort = InstanceType<NodeModules["worker_threads"]["MessagePort"]>;
/** Node's Worker. */
export type NodeWorker = InstanceType<NodeModules["worker_threads"]["Worker"]>;

export function isNode(): boolean {
  return nodeModule("worker_threads") !== undefined;
}

/** What Deno asks its user about before a program may read it. */
type Permission = { readonly name: "env"; readonly variable: string } | { readonly name: "sys"; readonly kind: string };

/** Whether this program may read something: everywhere but in Deno, which would ask the user, or throw. */
export function mayRead(what: Permission): boolean {
  const { Deno } = globalThis as {
    Deno?: { permissions?: { querySync(permission: Permission): { readonly state: string } } };
  };
  const answer = Deno?.permissions?.querySync(what);
  return answer === undefined || answer.state === "granted";
}

/** A variable of the environment; undefined where there is none, or Deno's permissions hide it. */
export function environment(name: string): string | undefined {
  return isNode() && mayRead({ name: "env", variable: name }) ? process.env[name] : undefined;
}

/** Web Locks; undefined where there are none: in Node, in worklets, and on pages of insecure origins. */
export function webLocks(): LockManager | undefined {
  return globalThis.navigator?.locks;
}

/** Whether standard output is a terminal that shows colors, and whether standard error is. */
export function hasColors(): Record<"stdout" | "stderr", boolean> {
  const shows = (stream: Pick<typeof process.stdout, "isTTY" | "hasColors">): boolean =>
    stream.isTTY === true && (stream.hasColors?.() ?? false);
  return { stdout: shows(process.stdout), stderr: shows(process.stderr) };
}

/** Makes the exit code of this program, or of this worker, that of a failure, unless it is set. */
export function failProcess(code: number): void {
  if (isNode()) process.exitCode ??= code;
}

/** Ends this program, or this worker, with an exit code. Returns where there are none: in browsers. */
export function endProcess(code: number): void {
  if (isNode()) process.exit(code);
}

/** Whether this thread may block: a page's own must not. Node's may, also where a document is feigned. */
export function mayBlock(): boolean {
  return isNode() || typeof document === "undefined";
}

/**
 * Whether this is a worker of Node whose event loop has nothing to wait for: no timer, no I/O, no port with a listener, except
 * those that are unref()ed. It takes 0.2 µs. Node does not list what zlib, crypto and WebAssembly do on other threads.
 */
export function isLoopIdle(): boolean {
  isWorker ??= nodeModule("worker_threads")?.isMainThread === false;
  return isWorker && globalThis.process.getActiveResourcesInfo?.().length === 0;
}

let isWorker: boolean | undefined;

/** Resolves once the event loop has had its turn: timers, I/O, messages. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { setImmediate } = globalThis as { setImmediate?: (then: () => void) => void };
    if (setImmediate !== undefined) return setImmediate(resolve);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Throws an error that no caller of this code may catch: the host's handler of uncaught errors sees it. */
export function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** What is to be added to `performance.now()` of this thread for a time that all threads share, in milliseconds. */
export function clockOrigin(): number {
  const { process } = globalThis as { process?: { hrtime?: { bigint?: () => bigint } } };
  const time = process?.hrtime?.bigint;
  // In Node each thread's time origin is rounded to microseconds, and a message takes less.
  return time === undefined ? performance.timeOrigin : Number(time()) / 1e6 - performance.now();
}

/** Whether threads may share memory: `crossOriginIsolated` of a page; true where there are no pages. */
export function isIsolated(): boolean {
  return (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
}

/** A name that is used nowhere else. */
export function uniqueName(): string {
  return Math.random().toString(36).slice(2) + Date.now().toString(36);
}

/** Name of the processor, as far as the host tells it. */
export function processorName(): string {
  if (!mayRead({ name: "sys", kind: "cpus" })) return "unknown";
  return nodeModule("os")?.cpus()[0]?.model.trim() ?? "unknown";
}

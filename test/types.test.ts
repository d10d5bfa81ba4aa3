// The declarations of the package as a program sees them: strict, without skipLibCheck, for each way to find modules, with
// and without the types of a browser and of Node, with six versions of the latter, and by TypeScript from 5.7 on.
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

const run = promisify(execFile);
const TSC_7 = realpathSync("node_modules/typescript/bin/tsc");
const TSC_6 = realpathSync("node_modules/@typescript/old/bin/tsc");
/** The oldest one: README.md names it. */
const TSC_5_7 = realpathSync("node_modules/typescript-5.7/bin/tsc");

/** What compiles wherever there is JavaScript. */
const ANYWHERE = `
import {
  attach, type Client, type Codec, type Context, codecs, dispatchId, EAGAIN, type Endpoint, errorText, type Geometry,
  type IntegerArray, type Job,
  type LaunchOptions, launch, type Message, PamiError, RemoteError, type Result, SUCCESS,
} from "pamir";
import { type Port, portTo } from "pamir/port";
import * as values from "pamir";

const options: LaunchOptions = { tasks: 2, join: true, engine: "thread", trace: { events: 64 } };
const codec: Codec<{ x: number }> = { encode: () => new Uint8Array(8), decode: (bytes) => ({ x: bytes.length }) };
const add = dispatchId(7, codecs.json<[number, number]>(), codecs.json<number>());
const names: readonly string[] = Object.keys(values);

export async function use(context: Context, client: Client, to: Endpoint): Promise<number> {
  context.dispatch(1, (message: Message) => {
    const sum: number = message.getInt32(0) + message.payload.length + names.length;
    if (sum > 0) message.discard();
  });
  context.dispatch(add, ([a, b], _, { signal }) => (signal.aborted ? 0 : a + b));
  const sum: number = await context.call(to, add, [1, 2], { timeout: 1000 });
  using region = client.createRegion(4096);
  const result: Result = context.put({ to, local: region, remote: region.handle, bytes: 8, onRemote: () => {} });
  if (result === EAGAIN || context.advanceUntil(() => true, { timeout: 1 }) !== SUCCESS) errorText(result);
  const world: Geometry = await client.world();
  const items = await world.createAggregator({ type: BigInt64Array, length: 2, onItems: (view) => void view.length });
  const place: number = items.reserve(0);
  const elements = items.elements();
  if (place >= 0) elements[place] = 1n;
  const ranks: IntegerArray = Uint8Array.of(0, 1);
  const taken: number = items.pushMany(ranks, new BigInt64Array(4)) + items.pushMany(1, elements, 0, 1);
  if (taken === -EAGAIN) items.updateMany(ranks, ranks, BigInt64Array.of(1n, 2n), 0, 1);
  // @ts-expect-error Items of another type.
  items.pushMany(0, new Int32Array(2));
  // @ts-expect-error An array of numbers has no ranks.
  items.updateMany([0, 1], ranks, elements);
  for await (const { payload } of context.messages(dispatchId(8, codec))) return payload.x + sum;
  const port: Port = portTo(context, to, { id: 3, codec: codecs.json() });
  port.postMessage({ x: 1 }, [new ArrayBuffer(8)]);
  port.onmessage = ({ ports: [first] }) => first?.postMessage(1);
  // @ts-expect-error A number is no payload.
  context.sendImmediate(to, 1, null, 3);
  // @ts-expect-error The package exports the type of a context, not its class.
  new values.Context();
  return 0;
}

export async function start(): Promise<Job> {
  try {
    return await launch("file:///task.js", options);
  } catch (error) {
    if (error instanceof PamiError && !(error instanceof RemoteError) && error.code === "PAMIR_ENTRY") await attach();
    throw error;
  }
}
`;

/** What pamir/pool infers from the type of a worker's functions. */
const POOL = `
import { connect, type Connection, type Pool, pool, proxy, serve } from "pamir/pool";

export const api = serve({
  square: (n: number) => n ** 2,
  keys: async (map: Map<string, Date>, limit = 10): Promise<string[]> => [...map.keys()].slice(0, limit),
  *numbers(count: number) {
    for (let i = 0; i < count; i++) yield i;
  },
  async *rows(file: string) {
    yield { file, row: 1 };
  },
  list: (): Set<bigint> => new Set(),
  later: async (call: (text: string) => void) => call("x"),
  version: "1",
});
export type Api = typeof api;

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles where the type is exactly that. */
function is<Expected>() {
  return <Given>(_: Given, same: Same<Given, Expected>) => same;
}

export async function use(workers: Pool<Api>, connection: Connection<Api>): Promise<void> {
  is<Promise<number>>()(workers.square(12), true);
  is<Promise<string[]>>()(workers.keys(new Map()), true);
  is<Promise<Set<bigint>>>()(workers.list(), true);
  is<Promise<void>>()(workers.later((text) => void text.length), true);
  for await (const value of workers.numbers.stream(3)) is<number>()(value, true);
  for await (const value of workers.rows.stream("f")) is<{ file: string; row: number }>()(value, true);
  for await (const value of workers.keys.stream(new Map(), 2)) is<string>()(value, true);
  for await (const value of workers.list.stream()) is<bigint>()(value, true);
  is<number>()(workers.sync.square(2), true);
  is<string[]>()(workers.sync.keys(new Map()), true);
  is<Promise<number[]>>()(workers.all.square(2), true);
  is<Promise<string[][]>>()(workers.all.keys(new Map()), true);
  is<Promise<number>>()(workers.with({ timeout: 1, priority: 2, retries: 3 }).square(2), true);
  is<Promise<number>>()(workers.by("key").square(2), true);
  is<Promise<number> | undefined>()(workers[0]?.square(2), true);
  for await (const value of workers.map([1, 2], (n) => workers.square(n))) is<number>()(value, true);
  for await (const value of workers.map(new Set("ab"), async (text, place) => [text, place] as const, { ordered: false }))
    is<readonly [string, number]>()(value, true);
  is<Promise<number>>()(connection.square(2), true);
  is<number>()(connection.sync.square(2), true);
  is<number>()(workers.stats.waitTime.p99, true);
  workers.events((event) => {
    if (event.type === "exit") is<number>()(event.exit.code, true);
    // @ts-expect-error Only "exit" has an exit.
    else event.exit;
  });
  // @ts-expect-error A name that the worker does not serve.
  workers.sqare(2);
  // @ts-expect-error A field that is no function.
  workers.version();
  // @ts-expect-error An argument of the wrong type.
  workers.square("2");
  // @ts-expect-error An argument too few.
  workers.square();
  // @ts-expect-error An argument too many.
  workers.square(1, 2);
  // @ts-expect-error Also of a stream,
  workers.numbers.stream("3");
  // @ts-expect-error of a blocking call,
  workers.sync.square("2");
  // @ts-expect-error of a call of all workers,
  workers.all.square("2");
  // @ts-expect-error and of the worker of a key.
  workers.by(1).square("2");
  // @ts-expect-error A result of another type.
  const text: string = await workers.square(2);
  // @ts-expect-error A blocking call gives no stream.
  workers.sync.numbers.stream(2);
  // @ts-expect-error An option that there is not.
  workers.with({ timout: 1 });
  // @ts-expect-error A key is a string or a number.
  workers.by({});
  // @ts-expect-error A number is nothing that could stay.
  proxy(1);
  // @ts-expect-error Functions are served by name.
  serve(() => 1);
  void text;
}

/** The methods of a class, and what a program names itself. */
export class Counter {
  #count = 0;
  add(by: number): number {
    return (this.#count += by);
  }
}
export const counter = serve(new Counter());

export async function start(context: Parameters<typeof connect>[0], to: Parameters<typeof connect>[1]): Promise<void> {
  const workers = await pool<Api>("file:///worker.js", { workers: 2, min: 1, max: 4, recycleAfter: 3 });
  is<Pool<Api>>()(workers, true);
  is<Connection<typeof counter>>()(await connect<typeof counter>(context, to), true);
  const counters = await pool<typeof counter>("file:///worker.js");
  is<Promise<number>>()(counters.add(2), true);
  // @ts-expect-error An option that there is not.
  await pool<Api>("file:///worker.js", { worker: 2 });
  // @ts-expect-error A worker's entry is a URL, or makes a worker.
  await pool<Api>(7);
}
`;

/** Every public name, as a program passes it on: each of them is there, as a value or as a type. */
function surface(entries: readonly string[]): string {
  return entries
    .map((entry) => {
      const text = readFileSync(join("dist", `${entry}.d.ts`), "utf8");
      const from = entry === "index" ? "pamir" : `pamir/${entry}`;
      const lines = [...text.matchAll(/^export (type )?\{ (.+) \};$/gm)];
      expect(lines.length).toBeGreaterThan(0);
      return lines.map(([, type = "", names]) => `export ${type}{ ${names} } from "${from}";\n`).join("");
    })
    .join("");
}

/** What the lib of a browser and the types of Node both have. */
const HOST = `
import { type AbortSignalLike, type CallScope, codecs, type Context, dispatchId, launch, type ProgressOptions } from "pamir";

/** The host's signals go wherever pamir's type stands, and those that pamir gives go wherever the host's type stands. */
export function signals(own: AbortSignal, { signal: given }: CallScope): readonly [AbortSignalLike, AbortSignal] {
  const options: ProgressOptions = { signal: own };
  const both: AbortSignal[] = [own, given];
  const likes: AbortSignalLike[] = both;
  return [options.signal ?? likes[0] ?? given, given];
}

export async function stop(context: Context): Promise<void> {
  // The signal of a handler is the host's own: it goes wherever that goes.
  context.dispatch(1, ({ signal }) => until(signal));
  context.dispatch(dispatchId(2, codecs.text, codecs.text), async (text, _, { signal }) => {
    await until(signal);
    return text;
  });
  for await (const { signal } of context.messages(3)) if (signal !== undefined) await until(signal);
  const controller = new AbortController();
  await context.progress({ signal: controller.signal, timeout: 1 });
  context.send({ to: context.endpoint, dispatch: 1, payload: new Uint8Array(8), signal: controller.signal });
  await launch(new URL("./task.js", "file:///"), { signal: controller.signal });
}

function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}
`;

/** A browser's. */
const BROWSER = `
import { attach, type Job, launch } from "pamir";
import type { Port } from "pamir/port";

export async function start(job: Job, port: Port, own: MessagePort): Promise<void> {
  const makeWorker = () => new Worker(new URL("./task.js", "file:///"), { type: "module" });
  await launch(makeWorker, {});
  job.adopt(makeWorker());
  port.onmessage = ({ ports: [first = own] }) => first.addEventListener("message", () => {});
  const { port1, port2 } = new MessageChannel();
  job.adopt(port1);
  await attach(port2);
  port.postMessage(1, [port1]);
  port.postMessage(1, { transfer: [port1] });
  // @ts-expect-error A document is no worker.
  job.adopt(document);
}
`;

/** Node's. */
const NODE = `
import { MessageChannel, parentPort, Worker } from "node:worker_threads";
import { attach, type Job, launch } from "pamir";
import type { Port } from "pamir/port";

export async function start(job: Job, port: Port): Promise<void> {
  job.adopt(new Worker("./task.js"));
  job.spawn({ entry: new URL("./task.js", "file:///") });
  const { port1, port2 } = new MessageChannel();
  job.adopt(port1);
  await attach(port2);
  port.postMessage(1, [port1]);
  port.postMessage(1, { transfer: [port1] });
  if (parentPort !== null) await attach(parentPort);
  await launch("file:///task.js", { workerOptions: { stdout: true } });
}
`;

/** What programs for piscina write, with the types of Node 20 and later. */
const PISCINA = `
import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import Default, { ArrayTaskQueue, FixedQueue, isWorkerThread, move, Piscina, workerData } from "pamir/piscina";

export async function use(signal: AbortSignal): Promise<number> {
  const pool = new Piscina<string, number>({
    filename: "/worker.js",
    maxQueue: "auto",
    taskQueue: new FixedQueue(),
    resourceLimits: { maxOldGenerationSizeMb: 16 },
    loadBalancer: (task, workers) => workers.find(({ currentUsage }) => !task.isAbortable && currentUsage === 0) ?? null,
  });
  const result: number = await pool.run("text", { signal, transferList: [new MessageChannel().port1] });
  // @ts-expect-error A task of the wrong type.
  await pool.run(42);
  // @ts-expect-error A result of another type.
  const text: string = await pool.run("text");
  // @ts-expect-error An option that there is not.
  new Piscina({ threads: 2 });
  const any = new Default({ taskQueue: new ArrayTaskQueue() });
  const anything: string = await any.run({ a: move(new Uint8Array(4)) });
  await once(pool, "drain");
  const mean: number | undefined = pool.histogram.runTime?.mean;
  const counts: number = pool.queueSize + pool.completed + pool.threads.length + (mean ?? 0) + pool.utilization;
  await pool.close({ force: isWorkerThread });
  await Piscina.Piscina.prototype.destroy.call(any);
  void (text + anything + String(workerData));
  return result + counts;
}
`;

/** Node's types as they are installed here, under the name of their major version. */
const NODE_TYPES: Record<string, string> = {
  16: "types-node-16",
  18: "types-node-18",
  20: "@types/node",
  22: "types-node-22",
  24: "types-node-24",
  26: "types-node-26",
};

const COMPILERS: Record<string, string> = { [TSC_6]: ", TypeScript 6", [TSC_5_7]: ", TypeScript 5.7" };

/** Each compiles in a folder of its own. */
const PROJECTS = [
  { resolution: "nodenext", dom: false, node: undefined, tsc: TSC_7 },
  { resolution: "nodenext", dom: false, node: "20", tsc: TSC_7 },
  { resolution: "nodenext", dom: true, node: undefined, tsc: TSC_7 },
  { resolution: "nodenext", dom: true, node: "20", tsc: TSC_7 },
  { resolution: "node16", dom: false, node: undefined, tsc: TSC_7 },
  { resolution: "node16", dom: true, node: "20", tsc: TSC_7 },
  { resolution: "bundler", dom: true, node: undefined, tsc: TSC_7 },
  { resolution: "bundler", dom: false, node: "20", tsc: TSC_7 },
  ...["16", "18", "22", "24", "26"].map((node) => ({ resolution: "nodenext", dom: false, node, tsc: TSC_7 })),
  ...["16", "26"].map((node) => ({ resolution: "nodenext", dom: true, node, tsc: TSC_7 })),
  { resolution: "nodenext", dom: true, node: undefined, tsc: TSC_6 },
  { resolution: "nodenext", dom: true, node: "20", tsc: TSC_5_7 },
  // It reads no "exports". TypeScript 7 does not have it any more.
  { resolution: "node10", dom: false, node: "20", tsc: TSC_5_7 },
  { resolution: "node10", dom: true, node: undefined, tsc: TSC_5_7 },
].map((project) => {
  const { resolution, dom, node, tsc } = project;
  const types = node === undefined ? "without @types/node" : `@types/node ${node}`;
  const lib = dom ? "with lib dom" : "without lib dom";
  return { ...project, name: `${resolution}, ${lib}, ${types}${COMPILERS[tsc] ?? ""}` };
});

let root: string;

beforeAll(() => {
  root = mkdtempSync(join(inject("folder"), "types-"));
  const installed = join(root, "node_modules", "pamir");
  mkdirSync(join(installed, "dist"), { recursive: true });
  cpSync("package.json", join(installed, "package.json"));
  for (const name of readdirSync("dist").filter((each) => each.endsWith(".d.ts"))) {
    cpSync(join("dist", name), join(installed, "dist", name));
  }
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it.each(PROJECTS)("$name", async ({ name, resolution, dom, node, tsc }) => {
  const folder = join(root, name.replace(/\W+/g, "-"));
  mkdirSync(join(folder, "node_modules", "@types"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "anywhere.ts"), ANYWHERE);
  writeFileSync(join(folder, "pool.ts"), POOL);
  writeFileSync(join(folder, "surface.ts"), surface(["index", "pool", "port", "web"]));
  if (dom || node !== undefined) writeFileSync(join(folder, "host.ts"), HOST);
  if (dom) writeFileSync(join(folder, "browser.ts"), BROWSER);
  if (node !== undefined) {
    writeFileSync(join(folder, "node.ts"), NODE);
    // Like piscina itself, it has types of Node 20.
    if (Number(node) >= 20) {
      writeFileSync(join(folder, "piscina.ts"), PISCINA);
      writeFileSync(join(folder, "surface-node.ts"), surface(["piscina"]));
    }
    symlinkSync(
      realpathSync(join("node_modules", NODE_TYPES[node] as string)),
      join(folder, "node_modules/@types/node"),
    );
  }
  const compilerOptions = {
    strict: true,
    // The types of Node 16 themselves do not compile with it.
    exactOptionalPropertyTypes: node !== "16",
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
    target: "es2022",
    lib: ["es2022", ...(dom ? ["dom", "dom.iterable"] : [])],
    types: node === undefined ? [] : ["node"],
    module: ["bundler", "node10"].includes(resolution) ? "esnext" : resolution,
    moduleResolution: resolution,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const said = await run(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { cwd: folder }).then(
    () => "",
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
  expect(said).toBe("");
});

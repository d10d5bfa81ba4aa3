// What pamir promises, in short, on whatever host runs this: each claim of the README's table of hosts is a line here. It is
// run from the package as npm installs it; prints `ok: CLAIM` or `FAILED: CLAIM`. A task of it has the claim's name in args.
import assert from "node:assert/strict";
import { isMainThread } from "node:worker_threads";
import { attach, codecs, dispatchId, info, launch, SUCCESS } from "pamir";

const PATIENCE = { timeout: 60_000 };
const LARGE = 4 * 1024 ** 2;
const [HELLO, GO, SUM, PAYLOAD] = [1, 2, 3, 4];
/** @type {import("pamir").DispatchId<[number, number], number>} */
const add = dispatchId(5, codecs.json(), codecs.json());

/** @param {string} args @param {import("pamir").LaunchOptions} [options] */
function job(args, options = {}) {
  return launch(new URL(import.meta.url), { tasks: 2, join: true, args, heapBytes: 2 ** 25, ...options });
}

/** Waits without blocking. @param {import("pamir").Context} context @param {() => boolean} condition */
async function until(context, condition) {
  while (!condition()) await context.progress(PATIENCE);
}

/** A message each way, by blocking waits at both sides. @param {import("pamir").LaunchOptions} options */
async function messages(options) {
  const made = await job("echo", options);
  const client = /** @type {import("pamir").Client} */ (made.client);
  const context = client.createContext();
  let heard = 0;
  context.dispatch(HELLO, (message) => {
    heard = message.getInt32(0);
  });
  assert.equal(context.sendImmediate(client.endpoint(1), HELLO, null, Int32Array.of(41)), SUCCESS);
  assert.equal(
    context.advanceUntil(() => heard > 0, PATIENCE),
    SUCCESS,
  );
  assert.equal(heard, 42);
  client.close();
  assert.deepEqual(
    (await made.exited).map(({ code, cause }) => ({ code, cause })),
    [{ code: 0, cause: "exit" }],
  );
}

/** What is tried, and how. @type {Record<string, () => Promise<void>>} */
const CLAIMS = {
  "tasks share memory": async () => assert.equal(info().mode, "shared"),
  "messages, WebAssembly kernels": () => messages({ kernel: "wasm" }),
  "messages, TypeScript kernels": () => messages({ kernel: "ts" }),
  "await call()": async () => {
    const made = await job("call");
    const client = /** @type {import("pamir").Client} */ (made.client);
    const context = client.createContext();
    assert.equal(await context.call(client.endpoint(1), add, [20, 22], PATIENCE), 42);
    await made.terminate();
  },
  "put() and get()": async () => {
    const made = await job("region");
    const client = /** @type {import("pamir").Client} */ (made.client);
    const context = client.createContext();
    /** @type {number} */
    let remote = 0;
    context.dispatch(HELLO, (message) => {
      remote = new Float64Array(message.payload.slice().buffer)[0] ?? 0;
    });
    await until(context, () => remote !== 0);
    const local = client.createRegion(64);
    local.bytes.fill(7);
    const to = client.endpoint(1);
    assert.equal(context.put({ to, local, remote, bytes: 64 }), SUCCESS);
    await context.flush(PATIENCE);
    local.bytes.fill(0);
    assert.equal(context.get({ to, local, remote, bytes: 64 }), SUCCESS);
    await context.flush(PATIENCE);
    assert.ok(local.bytes.every((byte) => byte === 7));
    await made.terminate();
  },
  "an engine thread": async () => {
    const made = await job("payload", { engine: "thread" });
    const client = /** @type {import("pamir").Client} */ (made.client);
    const context = client.createContext();
    let isReady = false;
    let sum = -1;
    context.dispatch(GO, () => {
      isReady = true;
    });
    context.dispatch(SUM, (message) => {
      sum = message.getInt32(0);
    });
    await until(context, () => isReady);
    const region = client.createRegion(LARGE);
    region.bytes.fill(1);
    const parameters = { to: client.endpoint(1), dispatch: PAYLOAD, payload: region.bytes, onLocal: () => {} };
    assert.equal(context.send(parameters), SUCCESS);
    await until(context, () => sum >= 0);
    assert.equal(sum, LARGE);
    assert.equal(made.engine, "thread");
    await made.terminate();
  },
  "a task that throws is noticed while its launcher blocks": async () => {
    const made = await job("throw", { onExit: () => {} });
    const client = /** @type {import("pamir").Client} */ (made.client);
    const context = client.createContext();
    let isOver = false;
    context.whenEnded(client.endpoint(1), () => {
      isOver = true;
    });
    assert.equal(
      context.advanceUntil(() => isOver, PATIENCE),
      SUCCESS,
    );
    client.close();
    const [exit] = await made.exited;
    assert.equal(exit?.cause, "error");
    assert.match(exit?.error ?? "", /on purpose/);
  },
  "a task is terminated": async () => {
    const made = await job("wait");
    const client = /** @type {import("pamir").Client} */ (made.client);
    const context = client.createContext();
    const ended = context.whenEnded(client.endpoint(1), PATIENCE);
    await made.terminate(1);
    await ended;
    client.close();
    assert.equal((await made.exited)[0]?.cause, "terminated");
  },
};

/** What a task does, by `args`. @type {Record<string, (client: import("pamir").Client) => unknown>} */
const TASKS = {
  async echo(client) {
    const context = client.createContext();
    let isOver = false;
    context.dispatch(HELLO, (message) => {
      context.sendImmediate(message.origin, HELLO, null, Int32Array.of(message.getInt32(0) + 1));
      isOver = true;
    });
    context.advanceUntil(() => isOver, PATIENCE);
    await client.close({ drain: true });
  },
  async call(client) {
    const context = client.createContext();
    context.dispatch(add, ([a, b]) => a + b);
    for (;;) await context.progress();
  },
  async region(client) {
    const context = client.createContext();
    const region = client.createRegion(64);
    context.sendImmediate(client.endpoint(0), HELLO, null, Float64Array.of(region.handle));
    for (;;) await context.progress();
  },
  async payload(client) {
    const context = client.createContext();
    const region = client.createRegion(LARGE);
    context.dispatch(PAYLOAD, (message) => {
      message.receive(region.bytes, () => {
        const sum = region.bytes.reduce((total, byte) => total + byte, 0);
        context.sendImmediate(client.endpoint(0), SUM, null, Int32Array.of(sum));
      });
    });
    context.sendImmediate(client.endpoint(0), GO);
    for (;;) await context.progress();
  },
  throw(client) {
    client.createContext();
    throw new Error("on purpose");
  },
  wait(client) {
    client.createContext().advanceUntil(() => false, PATIENCE);
  },
};

if (isMainThread) {
  for (const [claim, prove] of Object.entries(CLAIMS)) {
    try {
      await prove();
      console.log(`ok: ${claim}`);
    } catch (error) {
      console.log(`FAILED: ${claim}: ${/** @type {Error} */ (error).stack}`);
    }
  }
} else {
  const client = await attach();
  await TASKS[/** @type {string} */ (client.args)]?.(client);
}

// The engine thread on a page: a worker from a string, which goes with its job, and which a policy may forbid.
import { type Client, type Context, ERROR, type Job, launch, type Result, SUCCESS } from "pamir";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ANSWER, QUIT, REGION } from "./tasks/peer.js";

const ENTRY = new URL("./tasks/peer.js", import.meta.url);
const TIMEOUT = { timeout: 60_000 };
const BYTES = 4 * 1024 ** 2;
const OPTIONS = { tasks: 2, join: true, heapBytes: 32 * 1024 ** 2, engine: "thread" } as const;

/** URLs of the engine threads' scripts that are there, and their workers: how often each was terminated. */
const urls = new Set<string>();
const engines: { terminated: number }[] = [];
const warnings: string[] = [];

beforeEach(() => {
  const [create, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
  const Real = Worker;
  vi.stubGlobal(
    "Worker",
    class extends Real {
      readonly watched: { terminated: number } | undefined;
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options);
        if (options?.name !== "pamir engine") return;
        this.watched = { terminated: 0 };
        engines.push(this.watched);
      }
      override terminate(): void {
        super.terminate();
        if (this.watched !== undefined) this.watched.terminated++;
      }
    },
  );
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    const url = create.call(URL, blob);
    urls.add(url);
    return url;
  });
  vi.spyOn(URL, "revokeObjectURL").mockImplementation((url) => {
    revoke.call(URL, url);
    urls.delete(url);
  });
  vi.spyOn(console, "warn").mockImplementation((text) => void warnings.push(String(text)));
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  for (const list of [engines, warnings]) list.length = 0;
  urls.clear();
});

/** Puts so much to task 1 that an engine thread does it, if there is one; its callbacks' results. */
async function putMuch(client: Client, context: Context): Promise<Result[]> {
  let remote = -1;
  context.dispatch(ANSWER, (message) => {
    remote = new Float64Array(message.payload.slice().buffer)[0] as number;
  });
  const to = client.endpoint(1);
  context.sendImmediate(to, REGION, null, new Int32Array([BYTES]));
  const [from, back] = [client.createRegion(BYTES), client.createRegion(BYTES)];
  for (let at = 0; at < BYTES; at++) from.bytes[at] = at % 251;
  back.bytes.fill(0);
  while (remote < 0) await context.progress(TIMEOUT);
  const results: Result[] = [];
  const note = (_: unknown, result: Result): void => {
    results.push(result);
  };
  context.put({ to, local: from, remote, onLocal: note, onRemote: note });
  context.get({ to, local: back, remote, onLocal: note });
  while (results.length < 3) await context.progress(TIMEOUT);
  if (!results.includes(ERROR)) expect(back.bytes.every((byte, at) => byte === at % 251)).toBe(true);
  return results;
}

async function onPage(options: Partial<typeof OPTIONS>, body: (job: Job, context: Context) => Promise<void>) {
  const job = await launch(ENTRY, { ...OPTIONS, ...options });
  try {
    await body(job, job.client.createContext());
  } finally {
    await job.terminate();
  }
}

describe.each(["wasm", "ts"] as const)("%s", (kernel) => {
  it("it moves what is long, and its end is no news at the job's", async () => {
    await onPage({ kernel } as object, async (job, context) => {
      expect(await putMuch(job.client, context)).toEqual([SUCCESS, SUCCESS, SUCCESS]);
      expect(job.engine).toBe("thread");
      expect([engines, urls.size]).toEqual([[{ terminated: 0 }], 1]);
    });
    expect([engines, urls.size, warnings]).toEqual([[{ terminated: 1 }], 0, []]);
  });
});

it("a job that says nothing of it has none", () =>
  onPage({ engine: "inline" } as object, async (job, context) => {
    expect(await putMuch(job.client, context)).toEqual([SUCCESS, SUCCESS, SUCCESS]);
    expect([job.engine, engines, urls.size]).toEqual(["inline", [], 0]);
  }));

describe("its worker ends with the job", () => {
  const gone = { terminated: 1 };

  it("that nobody has joined, when its tasks have ended", async () => {
    const job = await launch(ENTRY, { ...OPTIONS, tasks: 2, join: false });
    await Promise.all([job.terminate(0), job.terminate(1)]);
    await job.exited;
    expect([engines, urls.size]).toEqual([[gone], 0]);
  });

  it("whose caller is the last to leave: until then it is there", async () => {
    const job = await launch(ENTRY, OPTIONS);
    const context = job.client.createContext();
    context.sendImmediate(job.client.endpoint(1), QUIT);
    await job.exited;
    const [from, into] = [job.client.createRegion(BYTES), job.client.createRegion(BYTES)];
    from.bytes.fill(3);
    context.put({ to: context.endpoint, local: from, remote: into.handle });
    await context.flush(TIMEOUT);
    expect(into.bytes.every((byte) => byte === 3)).toBe(true);
    expect([job.engine, engines]).toEqual(["thread", [{ terminated: 0 }]]);
    job.client.close();
    expect([engines, urls.size]).toEqual([[gone], 0]);
  });

  it("whose caller leaves first", async () => {
    const job = await launch(ENTRY, OPTIONS);
    const context = job.client.createContext();
    context.sendImmediate(job.client.endpoint(1), QUIT);
    await job.client.close({ drain: true });
    await job.exited;
    expect([engines, urls.size]).toEqual([[gone], 0]);
  });

  it("that is given up by its signal", async () => {
    const controller = new AbortController();
    const job = await launch(ENTRY, { ...OPTIONS, signal: controller.signal });
    controller.abort();
    await job.exited;
    expect([engines, urls.size]).toEqual([[gone], 0]);
  });

  it("whose task's script is not there", async () => {
    const job = await launch(new URL("./tasks/missing.js", import.meta.url), { ...OPTIONS, tasks: 1, join: false });
    await job.exited;
    expect([engines, urls.size]).toEqual([[gone], 0]);
  });
});

it("P11: it ends before its job: a warning, and each task is its own engine", () =>
  onPage({}, async (job, context) => {
    expect(await putMuch(job.client, context)).toEqual([SUCCESS, SUCCESS, SUCCESS]);
    (job as Job & { endEngine(): void }).endEngine();
    while (job.engine === "thread") await new Promise((resolve) => setTimeout(resolve, 1));
    expect([job.engine, engines, urls.size]).toEqual(["ended", [{ terminated: 1 }], 0]);
    expect(warnings).toEqual([
      expect.stringMatching(/the engine thread has ended: .*each task is its own engine now$/),
    ]);
    context.advance(); // it hears of it
    const [from, into] = [job.client.createRegion(BYTES), job.client.createRegion(BYTES)];
    from.bytes.fill(5);
    context.put({ to: context.endpoint, local: from, remote: into.handle });
    await context.flush(TIMEOUT);
    expect(into.bytes.every((byte) => byte === 5)).toBe(true);
  }));

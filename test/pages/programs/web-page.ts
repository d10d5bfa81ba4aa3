// A page, or a worker of a page, that joins a job by the ticket in its fragment, and does what its test asks for.
import { type Client, type Context, type Geometry, type MemRegion, SUCCESS } from "pamir";
import { join } from "pamir/web";

export const [DOUBLE, BULK, COUNT, ASK] = [1, 2, 3, 4];
const PATIENCE = 60_000;

let client: Client;
let context: Context;
let region: MemRegion;
const ends: [number, number][] = [];
let bulks = 0;
let isStopped = false;
let sending = Promise.resolve(0);
/** By origin: the next number that is to come from there, and numbers that came in another order. */
const counted = new Map<number, { next: number; wrong: number }>();

/** @returns the number of its task */
export function begin(joined: Client): number {
  client = joined;
  context = client.createContext();
  context.dispatch(DOUBLE, (message) => Int32Array.of(2 * message.getInt32(0)));
  context.dispatch(BULK, (message) => {
    const into = new Uint8Array(message.payloadBytes);
    message.receive(into, (_, result) => {
      if (result === SUCCESS && into.every((byte, i) => byte === (i & 255))) bulks++;
    });
  });
  context.dispatch(COUNT, (message) => {
    const from = client.taskOf(message.origin);
    const count = counted.get(from) ?? { next: 0, wrong: 0 };
    if (message.getInt32(0) !== count.next++) count.wrong++;
    counted.set(from, count);
  });
  void (async () => {
    while (!context.closed) await context.progress().catch(() => {});
  })();
  return client.task;
}

/** Another task asks by a call for one of the functions of `page`, in JSON. */
export function runAsked(run: (name: string, given: unknown[]) => unknown): void {
  context.dispatch(ASK, async (message) => {
    const [name, ...given] = JSON.parse(new TextDecoder().decode(message.payload.slice())) as [string, ...unknown[]];
    return new TextEncoder().encode(JSON.stringify((await run(name, given)) ?? null));
  });
}

export const page = {
  start: async () => begin(await join(location.hash.slice(1), { insecure: true, timeout: PATIENCE })),
  /** The code with which join() fails. */
  fail: (ticket: string) =>
    join(ticket, { insecure: true, timeout: PATIENCE }).then(
      () => "",
      ({ code }) => code,
    ),
  async double(to: number, value: number): Promise<number> {
    const reply = await context.call(to, DOUBLE, Int32Array.of(value), { timeout: PATIENCE });
    return new DataView(reply.buffer, reply.byteOffset).getInt32(0, true);
  },
  bulk(to: number, bytes: number): Promise<number> {
    const payload = Uint8Array.from({ length: bytes }, (_, i) => i);
    return new Promise((resolve) => {
      context.send({ to, dispatch: BULK, payload, onLocal: () => {}, onRemote: (_, result) => resolve(result) });
    });
  },
  bulks: () => bulks,
  /** Sends numbers in a row to other tasks, each to all, until stop(). */
  traffic(to: number[]): void {
    sending = (async () => {
      let sent = 0;
      for (; !isStopped; sent++) {
        for (const task of to) await context.sendWhenRoom({ to: task, dispatch: COUNT, payload: Int32Array.of(sent) });
        if (sent % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return sent;
    })();
  },
  /** How many it has sent to each. */
  stop(): Promise<number> {
    isStopped = true;
    return sending;
  },
  /** What has come from a task. */
  counted: (from: number) => counted.get(from) ?? { next: 0, wrong: 0 },
  async ask(to: number, name: string, ...given: unknown[]): Promise<unknown> {
    const request = new TextEncoder().encode(JSON.stringify([name, ...given]));
    const reply = await context.call(to, ASK, request, { timeout: PATIENCE });
    return JSON.parse(new TextDecoder().decode(reply));
  },
  /** Makes a region, and names it. */
  open(): number {
    region = client.createRegion(4096);
    return region.handle;
  },
  word: () => new DataView(region.bytes.buffer, region.bytes.byteOffset).getInt32(0, true),
  /** Puts a word into a region of another task, and waits until it is there. */
  async put(to: number, remote: number, value: number): Promise<void> {
    const local = client.createRegion(64);
    new DataView(local.bytes.buffer, local.bytes.byteOffset).setInt32(0, value, true);
    context.put({ to, local, remote, bytes: 4 });
    await context.flush({ timeout: PATIENCE });
  },
  async geometry(members: number[]): Promise<number[]> {
    const geometry: Geometry = await client.createGeometry(members, { timeout: PATIENCE });
    await geometry.barrier();
    const send = Int32Array.of(client.task + 1);
    const receive = new Int32Array(1);
    await geometry.allreduce({ send, receive, operation: "sum" });
    return [...receive];
  },
  watch: (task: number) => context.whenEnded(task, (_: unknown, result: number) => ends.push([task, result])),
  ends: () => ends,
  size: () => client.size,
  task: () => client.task,
  info: () => ({ kernel: client.kernel, isIsolated: crossOriginIsolated }),
  close: () => client.close({ drain: true, timeout: PATIENCE }),
};
export type WebPage = typeof page;

/** The channel of a worker to its page. */
declare const self: Pick<MessagePort, "onmessage" | "postMessage">;

// The test in Node imports the types alone, and the dispatch ids.
if (typeof document !== "undefined") Object.assign(globalThis, { page });
else if (typeof location !== "undefined") {
  self.onmessage = async ({ data: [name, given] }) => {
    const call = page[name as keyof WebPage] as (...given: unknown[]) => unknown;
    self.postMessage(await call(...given));
  };
}

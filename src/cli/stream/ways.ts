// The ways by which files go from one thread to another: by pamir, and by postMessage().
import { Worker } from "node:worker_threads";
import { type Client, type Context, EAGAIN, errorText, launch, SUCCESS } from "pamir";
import { BEGIN, BEGIN_PUT, CHUNK, DIGEST, DONE, END, END_PUT, READY } from "./protocol.js";

/** A way by which files go. */
export interface Way {
  /** What a table's row is called. */
  readonly name: string;
  /** What a table's column is called. */
  readonly short: string;
  readonly move: "put" | "send" | "clone" | "transfer";
  /** Of pamir: what its kernels are written in. */
  readonly kernel?: "wasm" | "ts";
}

/** The ways. Those by pamir in WebAssembly and by postMessage() come first and last. */
export const WAYS: readonly Way[] = [
  { name: "pamir, one-sided (put)", short: "put", move: "put", kernel: "wasm" },
  { name: "pamir, copied (send)", short: "send", move: "send", kernel: "wasm" },
  { name: "pamir-ts, one-sided (put)", short: "ts put", move: "put", kernel: "ts" },
  { name: "pamir-ts, copied (send)", short: "ts send", move: "send", kernel: "ts" },
  { name: "postMessage, copied", short: "clone", move: "clone" },
  { name: "postMessage, transferred", short: "transfer", move: "transfer" },
];

/** Bytes of one message: a whole record, so that the receiver reads it in place. */
const CHUNK_BYTES = 65536;

const HEAP_BYTES_MIN = 64 * 1024 ** 2;

/** Streams files by a way. @param hasArrived called after each of them */
export function streamBy(way: Way, contents: readonly Buffer[], hasArrived: () => void): Promise<FileArrival[]> {
  return way.kernel === undefined ? overPostMessage(contents, way, hasArrived) : overPamir(contents, way, hasArrived);
}

export interface FileArrival {
  readonly digest: string;
  /** Bytes a second, from the first send to the receiver's word that it has everything. */
  readonly rate: number;
}

async function overPamir(
  contents: readonly Buffer[],
  { move, kernel }: Way,
  hasArrived: () => void,
): Promise<FileArrival[]> {
  // For a file that is put there are two regions of its size.
  const heapBytes = 2 * Math.max(...contents.map(({ length }) => length)) + HEAP_BYTES_MIN;
  const job = await launch(new URL("./tasks/stream.js", import.meta.url), { tasks: 2, join: true, kernel, heapBytes });
  const { client } = job;
  const context = client.createContext();
  const answers: Answers = { ready: false, done: false, digest: "", handle: 0 };
  context.dispatch(READY, (message) => {
    answers.ready = true;
    if (message.headerBytes > 0) answers.handle = new Float64Array(message.header.slice().buffer)[0] as number;
  });
  context.dispatch(DONE, () => {
    answers.done = true;
  });
  context.dispatch(DIGEST, (message) => {
    answers.digest = Buffer.from(message.payload).toString("hex");
  });
  const arrived: FileArrival[] = [];
  const moveFile = move === "put" ? putFile : streamFile;
  for (const content of contents) {
    arrived.push(moveFile(client, context, content, answers));
    hasArrived();
  }
  client.close();
  await job.terminate();
  return arrived;
}

/** What task 1 has said of the file in hand. */
interface Answers {
  ready: boolean;
  done: boolean;
  digest: string;
  handle: number;
}

/** One put, from a region of this task, into which the file was read, to one of task 1; a fence tells that it is there. */
function putFile(client: Client, context: Context, content: Buffer, answers: Answers): FileArrival {
  const to = client.endpoint(1);
  answers.ready = false;
  answers.digest = "";
  must(context.sendImmediate(to, BEGIN_PUT, new Float64Array([content.length])));
  wait(context, () => answers.ready);
  using local = client.createRegion(Math.max(1, content.length));
  local.bytes.set(content);
  let isThere = false;
  const start = performance.now();
  must(context.put({ to, local, remote: answers.handle, bytes: content.length }));
  must(
    context.fence(to, () => {
      isThere = true;
    }),
  );
  wait(context, () => isThere);
  const seconds = (performance.now() - start) / 1000;
  must(context.sendImmediate(to, END_PUT));
  wait(context, () => answers.digest !== "");
  return { digest: answers.digest, rate: content.length / seconds };
}

function streamFile(client: Client, context: Context, content: Buffer, answers: Answers): FileArrival {
  const to = client.endpoint(1);
  answers.ready = answers.done = false;
  answers.digest = "";
  must(context.sendImmediate(to, BEGIN, new Float64Array([content.length])));
  wait(context, () => answers.ready);
  const start = performance.now();
  const parameters = { to, dispatch: CHUNK, payload: content as Uint8Array, queue: false };
  for (let offset = 0; offset < content.length; offset += CHUNK_BYTES) {
    parameters.payload = content.subarray(offset, offset + CHUNK_BYTES);
    let result = context.send(parameters);
    while (result === EAGAIN) {
      let hasRoom = false;
      context.whenRoom(to, parameters.payload.length, () => {
        hasRoom = true;
      });
      wait(context, () => hasRoom);
      result = context.send(parameters);
    }
    must(result);
  }
  must(context.sendImmediate(to, END));
  wait(context, () => answers.done);
  const seconds = (performance.now() - start) / 1000;
  wait(context, () => answers.digest !== "");
  return { digest: answers.digest, rate: content.length / seconds };
}

function must(result: number): void {
  if (result !== SUCCESS) throw new Error(`task 1 does not take the file: ${errorText(result)}`);
}

function wait(context: Context, condition: () => boolean): void {
  must(context.advanceUntil(condition, { timeout: 60_000 }));
}

/**
 * The same with postMessage. Cloning a view clones all of its buffer, so each chunk has one of its own: made before the
 * clock runs for `clone`, which copies it again; while it runs for `transfer`, whose only copy this is.
 */
async function overPostMessage(
  contents: readonly Buffer[],
  { move }: Way,
  hasArrived: () => void,
): Promise<FileArrival[]> {
  const transfer = move === "transfer";
  const worker = new Worker(new URL("./tasks/stream-post-message.js", import.meta.url));
  const answer = () => new Promise<unknown>((done) => worker.once("message", done));
  const arrived: FileArrival[] = [];
  for (const content of contents) {
    const starts = Array.from({ length: Math.ceil(content.length / CHUNK_BYTES) }, (_, i) => i * CHUNK_BYTES);
    const cut = (offset: number) => new Uint8Array(content.subarray(offset, offset + CHUNK_BYTES));
    const chunks = transfer ? [] : starts.map(cut);
    const ready = answer();
    worker.postMessage(content.length);
    await ready;
    const done = answer();
    const start = performance.now();
    for (const chunk of chunks) worker.postMessage(chunk);
    if (transfer) {
      for (const offset of starts) {
        const chunk = cut(offset);
        worker.postMessage(chunk, [chunk.buffer]);
      }
    }
    worker.postMessage("end");
    await done;
    const seconds = (performance.now() - start) / 1000;
    const digest = answer();
    worker.postMessage("digest");
    arrived.push({ digest: String(await digest), rate: content.length / seconds });
    hasArrived();
  }
  await worker.terminate();
  return arrived;
}

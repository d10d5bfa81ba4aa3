// The peers in JavaScript: the same work without pamir, on two workers. Thread 0 leads.
import { type MessagePort, workerData } from "node:worker_threads";
import { bareWasm } from "../bare-wasm.js";
import { now, pinThread, RateMeter, Stopwatch, touch } from "../measure.js";
import type { PeerData } from "../peers.js";
import { BATCH, type Figures, meet, placesOf, WINDOW, writeResults } from "../work.js";

const { peer, thread, threads, work, port, memory, module, ringbuf } = workerData as PeerData;
const { bytes, seconds, test } = work;
/** Of a payload, by default. */
const FRAGMENT_BYTES = 262144;
let sink = 0;

/** Messages through a port, cloned; the leader ends by closing it. */
async function postMessageLatency(port: MessagePort): Promise<Figures> {
  const payload = new Uint8Array(bytes).fill(1);
  return await new Promise((resolve) => {
    const watch = new Stopwatch(work, 2);
    port.on("message", (message: Uint8Array) => {
      sink += touch(message, 0, bytes);
      if (thread === 1) port.postMessage(payload);
      else if (watch.lap()) port.postMessage(payload);
      else {
        port.close();
        resolve(watch.figures());
      }
    });
    port.on("close", () => resolve({}));
    if (thread === 0) port.postMessage(payload);
  });
}

/** Windows of messages, then an answer. A transferred buffer is filled first, as others copy the payload; the answer
 *  brings the buffers back. */
async function postMessageRate(port: MessagePort, transfer: boolean): Promise<Figures> {
  const payload = new Uint8Array(bytes).fill(1);
  let buffers = Array.from({ length: transfer ? WINDOW : 0 }, () => new ArrayBuffer(bytes));
  const sendWindow = () => {
    for (let i = 0; i < WINDOW; i++) {
      const buffer = buffers[i];
      if (buffer === undefined) port.postMessage(payload);
      else {
        const filled = new Uint8Array(buffer);
        filled.set(payload);
        port.postMessage(filled, [buffer]);
      }
    }
  };
  return await new Promise((resolve) => {
    port.on("close", () => resolve({}));
    if (thread === 0) {
      const meter = new RateMeter(work);
      port.on("message", (returned: ArrayBuffer[]) => {
        buffers = returned;
        if (meter.window()) return sendWindow();
        port.close();
        resolve(meter.figures());
      });
      sendWindow();
      return;
    }
    let got: ArrayBuffer[] = [];
    let count = 0;
    port.on("message", (message: Uint8Array<ArrayBuffer>) => {
      sink += touch(message, 0, bytes);
      if (transfer) got.push(message.buffer);
      if (++count < WINDOW) return;
      port.postMessage(got, got);
      got = [];
      count = 0;
    });
  });
}

/** What we use of ringbuf.js. */
interface Ring {
  push(elements: Uint8Array, length: number, offset: number): number;
  pop(elements: Uint8Array, length: number, offset: number): number;
}

/** A ring each way, both sides polling. A payload that does not fit is pushed and popped piece by piece. */
async function rings(): Promise<{ put(payload: Uint8Array): void; take(into: Uint8Array): boolean }> {
  const { RingBuffer } = (await import(module as string)) as {
    RingBuffer: new (buffer: SharedArrayBuffer, type: typeof Uint8Array) => Ring;
  };
  const [out, into] = (ringbuf?.buffers ?? []).map((buffer) => new RingBuffer(buffer, Uint8Array));
  const stop = new Int32Array(ringbuf?.stop as SharedArrayBuffer);
  return {
    put(payload) {
      let done = 0;
      while (done < payload.length) done += (out as Ring).push(payload, payload.length - done, done);
    },
    take(payload) {
      let done = 0;
      while (done < payload.length) {
        const popped = (into as Ring).pop(payload, payload.length - done, done);
        done += popped;
        if (popped === 0 && Atomics.load(stop, 0) !== 0) return false;
      }
      return true;
    },
  };
}

async function ringbufLatency(): Promise<Figures> {
  const ring = await rings();
  const payload = new Uint8Array(bytes).fill(1);
  const received = new Uint8Array(bytes);
  if (thread === 1) {
    while (ring.take(received)) {
      sink += touch(received, 0, bytes);
      ring.put(payload);
    }
    return {};
  }
  const watch = new Stopwatch(work, 2 * BATCH);
  do {
    for (let i = 0; i < BATCH; i++) {
      ring.put(payload);
      ring.take(received);
      sink += touch(received, 0, bytes);
    }
  } while (watch.lap());
  Atomics.store(new Int32Array(ringbuf?.stop as SharedArrayBuffer), 0, 1);
  return watch.figures();
}

async function ringbufRate(): Promise<Figures> {
  const ring = await rings();
  const payload = new Uint8Array(bytes).fill(1);
  const received = new Uint8Array(bytes);
  const answer = new Uint8Array(8);
  if (thread === 1) {
    for (let count = 0; ring.take(received); ) {
      sink += touch(received, 0, bytes);
      if (++count % WINDOW === 0) ring.put(answer);
    }
    return {};
  }
  const meter = new RateMeter(work);
  do {
    for (let i = 0; i < WINDOW; i++) ring.put(payload);
    ring.take(answer);
  } while (meter.window());
  Atomics.store(new Int32Array(ringbuf?.stop as SharedArrayBuffer), 0, 1);
  return meter.figures();
}

/** Two threads that sleep and wake each other, and do nothing else. */
function waitNotify({ buffer }: WebAssembly.Memory): Figures {
  const words = new Int32Array(buffer);
  const [mine, theirs] = thread === 0 ? [0, 32] : [32, 0];
  const send = (value: number) => {
    Atomics.store(words, mine as number, value);
    Atomics.notify(words, mine as number, 1);
  };
  const wait = (last: number): number => {
    Atomics.wait(words, theirs as number, last);
    return Atomics.load(words, theirs as number);
  };
  if (thread === 1) {
    for (let last = 0; last >= 0; ) {
      const next = wait(last);
      if (next !== last) send(next);
      last = next;
    }
    return {};
  }
  const watch = new Stopwatch(work, 2);
  let value = 0;
  do {
    send(++value);
    while (wait(value - 1) !== value);
  } while (watch.lap());
  send(-1);
  return watch.figures();
}

function wasmCall(memory: WebAssembly.Memory): Figures {
  const wasm = bareWasm(memory);
  const batch = 1000;
  const watch = new Stopwatch(work, batch);
  const adds = test === "rmw_lat";
  do {
    if (adds) for (let i = 0; i < batch; i++) wasm.add(64, 1);
    else for (let i = 0; i < batch; i++) sink += wasm.load(64);
  } while (watch.lap());
  return watch.figures();
}

function handOff(memory: WebAssembly.Memory): Figures {
  const wasm = bareWasm(memory);
  if (thread === 1) {
    wasm.follow();
    return {};
  }
  const watch = new Stopwatch(work, 2 * BATCH);
  let last = 0;
  do last = wasm.lead(last, BATCH);
  while (watch.lap());
  Atomics.store(new Int32Array(memory.buffer), 0, -1);
  return watch.figures();
}

/** memory.copy of one payload to one place, over and over: in the cache as far as it fits. */
function memoryCopy(memory: WebAssembly.Memory): Figures {
  const wasm = bareWasm(memory);
  const times = Math.max(1, Math.round(262144 / bytes));
  const from = (memory.buffer.byteLength / 2) & ~4095;
  new Uint8Array(memory.buffer).fill(1);
  for (let end = now() + seconds * 2e8; now() < end; ) wasm.copy(0, from, bytes, times);
  const start = now();
  let copies = 0;
  let over = start;
  while (over < start + seconds * 1e9) {
    wasm.copy(0, from, bytes, times);
    copies += times;
    over = now();
  }
  return { messages_per_s: (copies / (over - start)) * 1e9, messages: copies };
}

/** As the engine of a rendezvous: fragment by fragment, each payload to the next place. */
function fragmentCopy(memory: WebAssembly.Memory): Figures {
  const wasm = bareWasm(memory);
  const places = placesOf(bytes);
  new Uint8Array(memory.buffer).fill(1);
  const meter = new RateMeter(work);
  do {
    for (let message = 0; message < places; message++) {
      const to = message * bytes;
      const from = (places + message) * bytes;
      for (let at = 0; at < bytes; at += FRAGMENT_BYTES) {
        wasm.copy(to + at, from + at, Math.min(FRAGMENT_BYTES, bytes - at), 1);
      }
    }
  } while (meter.window(places));
  return meter.figures();
}

async function measure(): Promise<Figures> {
  const latency = test === "am_lat" || test === "wake_lat";
  if (peer === "ringbuf.js") return latency ? await ringbufLatency() : await ringbufRate();
  if (peer === "waitnotify") return waitNotify(memory as WebAssembly.Memory);
  if (peer === "wasmcall") return wasmCall(memory as WebAssembly.Memory);
  if (peer === "memcpy" && test === "rndv_bw") return fragmentCopy(memory as WebAssembly.Memory);
  if (peer === "memcpy") return memoryCopy(memory as WebAssembly.Memory);
  if (peer === "handoff") return handOff(memory as WebAssembly.Memory);
  if (latency) return await postMessageLatency(port as MessagePort);
  return await postMessageRate(port as MessagePort, peer === "postMessage-transfer");
}

pinThread(work.cpus, thread);
meet(work.barrier, threads);
writeResults(work.results, thread, await measure());
if (sink < 0) throw new Error("a sum of bytes is negative");

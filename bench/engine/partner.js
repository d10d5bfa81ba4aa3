// @ts-check
// A thread on the engine thread's processor, and what asks it: it copies there what the puts put, and hands a ball back.
import { Worker, workerData } from "node:worker_threads";

/** Of a put, and of a copy. */
export const PUT_BYTES = 64 * 1024;
/** Hand-offs that are timed together, half a millisecond. */
const HANDOFFS = 4000;

/** A module of one function over an imported memory, copy(to, from, bytes): a memory.copy and nothing else. */
const COPY_MODULE =
  "0061736d0100000001070160037f7f7f000212" +
  "0103656e76066d656d6f7279020300808004" +
  "030201000708010463" +
  "6f707900000a0e010c00200020012002fc0a00000b";

/**
 * In the job's memory, so that it can copy what the puts put: how fast two other places of that size are copied differs by
 * a third, for what of their pages lies in the second level.
 * @param {WebAssembly.Memory} memory @returns {(to: number, from: number, bytes: number) => void}
 */
export function bareCopy(memory) {
  const code = Uint8Array.from(COPY_MODULE.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory } });
  return /** @type {any} */ (exports.copy);
}

/**
 * Bytes per second of a bare copy from one region to another.
 * @param {ReturnType<typeof bareCopy>} copy @param {number} from @param {number} to where the two begin
 * @param {number} places how many places of each @param {number} count of copies
 */
export function copyRate(copy, from, to, places, count) {
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    const at = (i % places) * PUT_BYTES;
    copy(to + at, from + at, PUT_BYTES);
  }
  return (count * PUT_BYTES * 1000) / (performance.now() - start);
}

// ╒═════ CONTROL: words, in lines of their own ═══════════════════════════════════════════════════════╕
//  word  field     writer   meaning
//     0  order     both     IDLE; COPY, HANDOFF: what is wanted. The partner is done when it is IDLE again
//     1  from      asker    COPY: where the two begin
//     2  to
//     3  places             see copyRate()
//     4  count
//     5  rate      partner  MB/s
//    32  ball      asker    HANDOFF: counts up
//    64  return    partner  the ball as it was seen last
// ╘═══════════════════════════════════════════════════════════════════════════════════════════════════╛
const IDLE = 0;
const COPY = 1;
const HANDOFF = 2;
const RATE = 5;
const BALL = 32;
const RETURN = 64;
const WORDS = 128;

/** As the thread that asks sees it: it waits until what it asked for is done. */
export class Partner {
  #control = new Int32Array(new SharedArrayBuffer(4 * WORDS));
  #worker;

  /** On the processor of who makes it. @param {WebAssembly.Memory} memory of the job */
  constructor(memory) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { memory, control: this.#control } });
  }

  /** See copyRate(): the second of two. @param {number} from @param {number} to @param {number} places @param {number} count */
  copyRate(from, to, places, count) {
    this.#control.set([from, to, places, count], 1);
    this.#ask(COPY, () => {});
    return /** @type {number} */ (this.#control[RATE]) * 1e6;
  }

  /** Nanoseconds from the one processor to the other: two threads, two words, nothing else. */
  handoff() {
    const control = this.#control;
    let time = 0;
    control[BALL] = control[RETURN] = 0;
    this.#ask(HANDOFF, () => {
      let start = 0;
      // The first half wakes the partner, and warms up.
      for (let ball = 1; ball <= HANDOFFS; ball++) {
        if (ball === HANDOFFS >> 1) start = performance.now();
        Atomics.store(control, BALL, ball);
        while (Atomics.load(control, RETURN) !== ball);
      }
      time = performance.now() - start;
    });
    return (time * 1e6) / HANDOFFS;
  }

  /** Ends the thread. */
  end() {
    return this.#worker.terminate();
  }

  /** @param {number} order @param {() => void} meanwhile */
  #ask(order, meanwhile) {
    Atomics.store(this.#control, 0, order);
    Atomics.notify(this.#control, 0);
    meanwhile();
    while (Atomics.load(this.#control, 0) !== IDLE) Atomics.wait(this.#control, 0, order);
  }
}

/** The thread itself. @param {{ memory: WebAssembly.Memory, control: Int32Array }} given */
function serve({ memory, control }) {
  const copy = bareCopy(memory);
  for (;;) {
    Atomics.wait(control, 0, IDLE);
    const [order, ...given] = control.subarray(0, RATE);
    if (order === COPY) {
      const [from, to, places, count] = /** @type {[number, number, number, number]} */ (given);
      copyRate(copy, from, to, places, count);
      control[RATE] = copyRate(copy, from, to, places, count) / 1e6;
    } else {
      for (let ball = 0; ball < HANDOFFS; ) {
        const seen = Atomics.load(control, BALL);
        if (seen === ball) continue;
        ball = seen;
        Atomics.store(control, RETURN, ball);
      }
    }
    Atomics.store(control, 0, IDLE);
    Atomics.notify(control, 0);
  }
}

if (workerData?.control) serve(workerData);

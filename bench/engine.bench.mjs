// @ts-check
// What the engine thread costs and spares: puts through it beside a bare memory.copy of the same bytes from and to the same
// places, for each hand-off between the two processors that was found; what an application thread has to do for a large
// message, beside a small one; and small messages while a large one is moved.
//   node bench/engine.bench.mjs [--quick]
import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { isMainThread } from "node:worker_threads";
import { Table } from "console-table-printer";
import { attach, launch } from "pamir";
import { bareCopy, copyRate, Partner, PUT_BYTES } from "./engine/partner.js";

const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 1 : 9;
const KIB = 1024;
const MIB = 1024 * KIB;
/** Of the puts, how many are under way, and how many in a round. */
const IN_FLIGHT = 8;
const PUTS = quick ? 200 : 8000;
/**
 * In how many places one behind the other they lie, on either side: 512 KiB in all, which a cache of the second level holds;
 * 1 MiB, a place for each that is under way, which it just holds, or not: the bare copy of the same places, one time and the
 * next, differs there by up to a factor of 2; and 16 MiB, which it does not hold.
 */
const PLACES = [4, IN_FLIGHT, 128];
const REGION_BYTES = Math.max(...PLACES) * PUT_BYTES;
/** In pieces of 5 ms, and many of them: a processor that others use too is half as fast for some 100 ms at times. */
const TURNS = quick ? 1 : 81;
/** Where one is so much longer than all that are shorter, another state of the machine begins. */
const STATE_GAP = 1.15;
/** Of the large message, and how many are sent one behind the other, large or small. */
const LARGE_BYTES = quick ? 16 * MIB : 1024 * MIB;
const SENDS = 8;
/** Sends that are timed together. */
const PIECE = 4;
const WARM_UP = quick ? 1 : 100;
const HOPS = quick ? 200 : 20_000;
/** Leader, follower and engine have a core each, and there is one for everything else. */
const CORES_FOR_LATENCY = 4;

const DATA = 1;
const LARGE = 2;
const READY = 3;
const ECHO = 4;

/** @param {number[]} values */
const median = (values) => /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);
/** @param {number[]} values */
const spread = (values) => `${Math.min(...values).toPrecision(3)} … ${Math.max(...values).toPrecision(3)}`;

/**
 * Keeps this thread, and those that it starts from now on, on a processor, where the system has a way: a thread that is woken
 * begins on the processor of who wakes it, and who copies shared that with who waits for it for many milliseconds.
 * @param {number} processor
 */
function pin(processor) {
  try {
    const id = readlinkSync("/proc/thread-self").split("/").pop() ?? "";
    execFileSync("taskset", ["-pc", String(processor), id], { stdio: "ignore" });
  } catch {
    // Without it, the runs differ more.
  }
}

/** @type {WebAssembly.Memory[]} All that this thread makes: the job's is the first. */
const memories = [];
WebAssembly.Memory = class extends WebAssembly.Memory {
  /** @param {WebAssembly.MemoryDescriptor} size */
  constructor(size) {
    super(size);
    memories.push(this);
  }
};

/**
 * The same by puts, a callback each.
 * @param {import("pamir").Context} context @param {import("pamir").Endpoint} to
 * @param {import("pamir").MemRegion} local @param {import("pamir").RegionHandle} remote
 * @param {number} offset where the places begin in both @param {number} places
 */
function putRate(context, to, local, remote, offset, places) {
  let underWay = 0;
  const put = {
    to,
    local,
    localOffset: 0,
    remote,
    remoteOffset: 0,
    bytes: PUT_BYTES,
    onLocal: () => {
      underWay--;
    },
  };
  const start = performance.now();
  for (let i = 0; i < PUTS; i++) {
    while (underWay === IN_FLIGHT) context.advance(64);
    put.localOffset = put.remoteOffset = offset + (i % places) * PUT_BYTES;
    underWay++;
    context.put(put);
  }
  while (underWay > 0) context.advance(64);
  return (PUTS * PUT_BYTES * 1000) / (performance.now() - start);
}

/**
 * Turns by the state in which the machine was, as the hand-offs tell; none is left out.
 * @template {{ handoff: number }} T @param {T[]} turns
 */
function statesOf(turns) {
  /** @type {T[][]} */
  const states = [];
  for (const turn of turns.toSorted((a, b) => a.handoff - b.handoff)) {
    const state = states.at(-1);
    if (state !== undefined && turn.handoff <= STATE_GAP * (state.at(-1)?.handoff ?? 0)) state.push(turn);
    else states.push([turn]);
  }
  return states;
}

/** Keeps the thread from everything, and from advancing, for so many milliseconds. @param {number} milliseconds */
const block = (milliseconds) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

/** What a look at the clock takes, in milliseconds. */
const LOOK_MS = (() => {
  const start = performance.now();
  for (let i = 0; i < 1e5; i++) performance.now();
  return (performance.now() - start) / 1e5;
})();

/**
 * Nanoseconds of this thread for one message: its send(), and its part of the advance() in which it is told that it is over.
 * Of pieces of the sends the median, and of the advances: on two processors, three threads keep each other from going on now
 * and then, and that is nothing that the message takes.
 * @param {import("pamir").Context} context @param {import("pamir").SendParameters} message
 * @param {() => void} wake has the target awake: whom a message wakes is nothing that it takes, either
 */
function threadTime(context, message, wake) {
  let over = 0;
  const parameters = { ...message, onLocal: () => over++ };
  const sends = [];
  const advances = [];
  for (let sent = 0; sent < SENDS; sent += PIECE) {
    wake();
    const start = performance.now();
    for (let i = 0; i < PIECE; i++) context.send(parameters);
    sends.push((performance.now() - start - LOOK_MS) / PIECE);
  }
  const count = SENDS;
  while (over < count) {
    // Not counted: nobody would look while nothing can be there.
    if (message.rendezvous) block(5);
    const before = over;
    const start = performance.now();
    context.advance();
    const time = performance.now() - start - LOOK_MS;
    if (over > before) advances.push(time / (over - before));
  }
  return (median(sends) + median(advances)) * 1e6;
}

/** Nanoseconds one way. @param {import("pamir").Context} context @param {import("pamir").Endpoint} to @param {() => number} replies */
function latency(context, to, replies) {
  const bytes = new Uint8Array(8);
  const start = performance.now();
  for (let i = 0; i < HOPS; i++) {
    const before = replies();
    context.sendImmediate(to, ECHO, null, bytes);
    while (replies() === before) context.advance(64);
  }
  return ((performance.now() - start) * 1e6) / (2 * HOPS);
}

async function lead() {
  // The engine thread inherits its processor by way of the monitor.
  pin(1);
  const job = await launch(new URL(import.meta.url), {
    tasks: 2,
    join: true,
    engine: "thread",
    heapBytes: 2 * LARGE_BYTES + 2 * REGION_BYTES + 64 * MIB,
    workerOptions: { argv: process.argv.slice(2) },
  });
  const [memory] = /** @type {[WebAssembly.Memory]} */ (memories);
  const partner = new Partner(memory);
  pin(0);
  const { client } = job;
  const context = client.createContext();
  const to = client.endpoint(1);
  /** @type {[import("pamir").RegionHandle, number] | undefined} The region of the target, and where it begins. */
  let target;
  let replies = 0;
  context.dispatch(READY, (message) => {
    target = /** @type {any} */ (new Float64Array(message.payload.slice().buffer));
  });
  context.dispatch(ECHO, () => {
    replies++;
  });
  context.advanceUntil(() => target !== undefined);
  const [remote, there] = /** @type {[import("pamir").RegionHandle, number]} */ (/** @type {unknown} */ (target));
  const local = client.createRegion(REGION_BYTES);
  local.bytes.fill(1);
  const payload = client.createRegion(LARGE_BYTES).bytes.fill(1);
  const small = { to, dispatch: DATA, payload: new Uint8Array(8) };
  const large = { to, dispatch: LARGE, payload, rendezvous: true };

  const copy = bareCopy(memory);
  const here = local.bytes.byteOffset;
  /** @type {{ name: string, at?: string, ratios: number[], unit: string, least: string, hoped: string }[]} */
  const rows = [];
  for (const places of PLACES) {
    /** Other pages each time, as far as there are: some are copied half as fast as others. @param {number} number */
    const turn = (number) => {
      const offset = (number * places * PUT_BYTES) % REGION_BYTES;
      const copyThere = () => partner.copyRate(here + offset, there + offset, places, PUTS);
      const copyHere = () => copyRate(copy, here + offset, there + offset, places, PUTS);
      const handoffs = [partner.handoff()];
      const copies = [copyThere()];
      // The engine thread fell asleep meanwhile, and the lines are with the other processor.
      putRate(context, to, local, remote, offset, places);
      const rate = putRate(context, to, local, remote, offset, places);
      copies.push(copyThere());
      handoffs.push(partner.handoff());
      copyHere();
      const [a, b] = /** @type {[number, number]} */ (handoffs);
      const [before, after] = /** @type {[number, number]} */ (copies);
      return { rate, ratio: (2 * rate) / (before + after), own: rate / copyHere(), handoff: (a + b) / 2 };
    };
    for (let i = 0; i < 2; i++) turn(i);
    for (const turns of statesOf(Array.from({ length: TURNS }, (_, number) => turn(number)))) {
      rows.push({
        name: `puts of 64 KiB, 8 in flight, of ${(2 * places * PUT_BYTES) / KIB} KiB : memory.copy`,
        at: `${median(turns.map(({ handoff }) => handoff)).toFixed(0)} ns, ${turns.length} of ${TURNS}`,
        ratios: turns.map(({ ratio }) => ratio),
        unit: `${(median(turns.map(({ rate }) => rate)) / 1e9).toPrecision(3)} GB/s; ${median(turns.map(({ own }) => own)).toPrecision(3)} of the sender's own`,
        least: "≥ 0.9",
        hoped: "≥ 0.97",
      });
    }
  }
  await partner.end();

  const wake = () => {
    const before = replies;
    context.sendImmediate(to, ECHO, null, small.payload);
    while (replies === before) context.advance(64);
  };
  // As warm as in a program that does it all day.
  for (let i = 0; i < WARM_UP; i++) threadTime(context, small, wake);
  for (let i = 0; i < WARM_UP; i++) threadTime(context, { ...large, payload: payload.subarray(0, PUT_BYTES) }, wake);
  threadTime(context, large, wake);
  const times = Array.from({ length: ROUNDS }, () => {
    const one = median(Array.from({ length: 9 }, () => threadTime(context, small, wake)));
    return { one, many: threadTime(context, large, wake) };
  });
  rows.push({
    name: `the sender's time for ${LARGE_BYTES / MIB} MiB : 8 B`,
    ratios: times.map(({ one, many }) => many / one),
    unit: `${median(times.map(({ many }) => many)).toPrecision(3)} : ${median(times.map(({ one }) => one)).toPrecision(3)} ns`,
    least: "≤ 20",
    hoped: "≤ 5",
  });

  if (availableParallelism() < CORES_FOR_LATENCY && !quick) {
    console.log(`small messages while a large one is moved: not run, it takes ${CORES_FOR_LATENCY} processors`);
  } else {
    latency(context, to, () => replies);
    const ratios = Array.from({ length: ROUNDS }, () => {
      const idle = latency(context, to, () => replies);
      let over = false;
      context.send({
        ...large,
        onLocal: () => {
          over = true;
        },
      });
      const busy = [];
      while (!over) busy.push(latency(context, to, () => replies));
      return median(busy) / idle;
    });
    rows.push({
      name: "8 B one way while a large one is moved : idle",
      ratios,
      unit: "",
      least: "≤ 3",
      hoped: "≤ 1.5",
    });
  }
  await job.terminate();

  const table = new Table({ columns: [{ name: "what", alignment: "left" }] });
  for (const { name, at = "", ratios, unit, least, hoped } of rows) {
    table.addRow({
      what: name,
      "hand-off": at,
      ratio: median(ratios).toPrecision(3),
      "least … most": spread(ratios),
      figure: unit,
      "at least": least,
      "hoped for": hoped,
    });
  }
  table.printTable();
}

async function follow() {
  const client = await attach();
  pin(availableParallelism() < CORES_FOR_LATENCY ? 1 : 2);
  const context = client.createContext();
  const origin = client.endpoint(0);
  const region = client.createRegion(REGION_BYTES);
  region.bytes.fill(1);
  const destination = client.createRegion(LARGE_BYTES).bytes.fill(1);
  const bytes = new Uint8Array(8);
  context.dispatch(DATA, () => {});
  context.dispatch(LARGE, (message) => message.receive(destination));
  context.dispatch(ECHO, (message) => context.sendImmediate(message.origin, ECHO, null, bytes));
  context.sendImmediate(origin, READY, null, new Float64Array([region.handle, region.bytes.byteOffset]));
  context.advanceUntil(() => false);
}

await (isMainThread ? lead() : follow());

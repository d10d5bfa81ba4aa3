// @ts-check
// A task that shares nothing with the test but messages: it does what it is asked by calls, and ends in every way.
import { closeSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { attach, SHUTDOWN, SUCCESS } from "pamir";
import { ASK, COUNT, DATA, ECHO, OTHER, PATIENCE, QUIT } from "./support.js";

const client = await attach();
const context = client.createContext();
const { waits } = /** @type {{ waits?: "progress" }} */ (client.args ?? {});
/** What createRegion() throws while another task holds the heap's lock, or all memory. */
const PASSING = new Set(["PAMIR_BUSY", "PAMIR_NO_MEMORY"]);

/** A region. A process that has no core may hold the heap's lock for long. @param {number} bytes */
function createRegion(bytes) {
  for (const end = performance.now() + PATIENCE; ; ) {
    try {
      return client.createRegion(bytes);
    } catch (error) {
      if (!PASSING.has(/** @type {{ code: string }} */ (error).code) || performance.now() > end) throw error;
    }
  }
}

const area = createRegion(4096);

let running = true;
/** What this task does between two calls of advance(); undefined: it sleeps. @type {(() => void) | undefined} */
let work;

/** Each task numbers its messages to this one: none may be missing, late or double. @type {Map<number, number>} */
const next = new Map();
const seen = { messages: 0, wrong: 0 };

context.dispatch(DATA, (message) => {
  const number = new DataView(message.header.slice().buffer).getInt32(0, true);
  const origin = message.task;
  if (number !== (next.get(origin) ?? 0)) seen.wrong++;
  next.set(origin, number + 1);
  seen.messages++;
  /** @param {Uint8Array} bytes */
  const check = (bytes) => {
    if (!bytes.every((byte) => byte === (number & 255))) seen.wrong++;
  };
  if (message.immediate) return check(message.payload);
  const bytes = new Uint8Array(message.payloadBytes);
  message.receive(bytes, (_, result) => {
    if (result === SUCCESS) check(bytes);
  });
});
context.dispatch(ECHO, ({ payload }) => Uint8Array.of(payload[0] ?? 0, client.task));
/** Numbers of the next messages to each task, while it goes on. @type {{ to: import("pamir").Endpoint, task: number, number: number }[]} */
let targets = [];
context.dispatch(COUNT, () => {
  const sent = targets.map(({ task, number }) => [task, number]);
  return new TextEncoder().encode(JSON.stringify({ ...seen, received: [...next], sent }));
});
context.dispatch(OTHER, () => {});
context.dispatch(QUIT, () => {
  running = false;
});

/** @type {Record<string, (given: any) => unknown>} */
const ORDERS = {
  process: () => ({ pid: process.pid, title: process.title, area: area.handle }),
  /** The files that this process maps and shares with others. */
  maps: () =>
    readFileSync("/proc/self/maps", "utf8")
      .split("\n")
      .filter((line) => /^\S+ ...s /.test(line))
      .map((line) => line.split(/\s+/).slice(5).join(" ")),
  /** Tries to change the size of a file. */
  truncate({ path, bytes }) {
    const file = openSync(path, "r+");
    try {
      ftruncateSync(file, bytes);
      return "truncated";
    } catch (error) {
      return /** @type {NodeJS.ErrnoException} */ (error).code;
    } finally {
      closeSync(file);
    }
  },
  print({ lines }) {
    for (let i = 0; i < lines; i++) console.log(`line ${i} of task ${client.task}`);
  },
  /** Sends numbered messages to the tasks below `size`, of several sizes, from now on. */
  traffic({ size, sizes }) {
    targets = Array.from({ length: size }, (_, task) => ({ to: client.endpoint(task), task, number: 0 }));
    targets.splice(client.task, 1);
    let turn = 0;
    work = () => {
      for (const target of [...targets]) {
        const { to, number } = target;
        const payload = new Uint8Array(sizes[turn++ % sizes.length]).fill(number);
        const onLocal = payload.length > 4096 ? () => {} : undefined;
        const result = context.send({ to, dispatch: DATA, header: Int32Array.of(number), payload, onLocal });
        if (result === SUCCESS) target.number++;
        else if (result === SHUTDOWN) targets.splice(targets.indexOf(target), 1);
      }
    };
  },
  /** Makes and closes regions, and lanes to the tasks below `size`, from now on. The heap has `regions` extents besides. */
  churn({ size, regions }) {
    for (let i = 0; i < regions; i++) createRegion(1);
    const others = Array.from({ length: size }, (_, task) => client.endpoint(task));
    others.splice(client.task, 1);
    let turn = 0;
    work = () => {
      for (let i = 0; i < 20; i++) {
        try {
          client.createRegion(1 + 5000 * (turn % 3)).close();
        } catch (error) {
          if (!PASSING.has(/** @type {{ code: string }} */ (error).code)) throw error;
        }
      }
      const to = /** @type {import("pamir").Endpoint} */ (others[turn++ % others.length]);
      if (context.sendImmediate(to, OTHER) !== SUCCESS) return;
      if (context.drained) context.purge([to]);
    };
  },
  rest() {
    work = undefined;
  },
  /** Begins messages, and does not end them. */
  reserve({ targets }) {
    work = () => {
      for (const to of targets) if (context.reserve(to, DATA, 64) < 0) throw new Error("there is no room");
      work = undefined;
    };
  },
  abort: () => process.kill(process.pid, "SIGABRT"),
  /** A foreign call that writes to where no memory is. */
  foreign() {
    const koffi = createRequire(import.meta.url)("koffi");
    koffi.load(null).func("memset", "uintptr_t", ["uintptr_t", "int", "size_t"])(0, 0, 1);
  },
  exit: () => process.exit(3),
  throw() {
    work = () => {
      throw new RangeError("thrown by the task");
    };
  },
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
  /** An object that is larger than what the heap's limit is raised by, before V8 ends the thread, ends the process. */
  fatal() {
    const hoard = [];
    for (;;) hoard.push(new Array(2 ** 23).fill(1));
  },
};

context.dispatch(ASK, ({ payload }) => {
  const { order, ...given } = JSON.parse(new TextDecoder().decode(payload.slice()));
  const answer = ORDERS[order]?.(given);
  return new TextEncoder().encode(JSON.stringify(answer ?? null));
});

while (running) {
  if (work !== undefined) {
    work();
    context.advance();
  } else if (waits === "progress") await context.progress();
  else context.advanceUntil(() => work !== undefined || !running);
}
client.close();

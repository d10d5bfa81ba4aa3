// @ts-check
// The other tasks of api.suite.ts. It never blocks, so that it runs wherever there are tasks.
import { attach, EAGAIN, SHUTDOWN, SUCCESS } from "pamir";
import { partOf } from "./collective-case.js";
import {
  ANSWER,
  AWAIT_END,
  AWAIT_WORD,
  BUSY,
  CALL_BACK,
  CASE,
  CLOSE,
  DO,
  ECHO,
  END_OF,
  FAIL,
  FORWARD,
  GEOMETRY,
  HOLD,
  LARGE,
  LAST_WORDS,
  LATER,
  NOTED,
  NOTIFIED,
  OPEN,
  PUT_BACK,
  READ,
  REGION,
  RELEASE,
  SEND,
  SIZE,
  STREAM,
  SUM,
  THROW,
  TOGETHER,
  WATCH,
} from "./ids.js";

const client = await attach();
const { noWaitAsync } = /** @type {{ noWaitAsync: boolean }} */ (client.args);
if (noWaitAsync) Object.assign(Atomics, { waitAsync: undefined });
const context = client.createContext();
let running = true;
/** @type {import("pamir").MemRegion | undefined} */
let region;
let hold = 0;

/** @param {import("pamir").Message} message */
const headerWord = ({ header }) => new Int32Array(header.slice().buffer)[0] ?? 0;

/** @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(`came to ${result}`);
}

/** @type {(message: import("pamir").Message, dispatch?: number) => void} */
const echo = ({ origin, header, payload }, dispatch = ANSWER) =>
  check(context.send({ to: origin, dispatch, header: header.slice(), payload: payload.slice() }));

context.dispatch(ECHO, (message) => echo(message));
context.dispatch(LARGE, (message) => {
  const { origin } = message;
  const header = message.header.slice();
  const bytes = new Uint8Array(message.payloadBytes);
  const back = () => check(context.send({ to: origin, dispatch: LARGE, header, payload: bytes, onLocal: () => {} }));
  if (message.immediate) {
    bytes.set(message.payload);
    back();
  } else message.receive(bytes, back);
});
// To the task in the header; that one answers task 0.
context.dispatch(FORWARD, (message) => {
  const to = client.endpoint(headerWord(message));
  check(context.send({ to, dispatch: SEND, payload: message.payload.slice() }));
});
context.dispatch(SEND, ({ payload }) => {
  check(context.send({ to: client.endpoint(0), dispatch: ANSWER, payload: payload.slice() }));
});
context.dispatch(REGION, (message) => {
  region = client.createRegion(headerWord(message));
  region.bytes.fill(0);
  check(context.sendImmediate(message.origin, ANSWER, null, new Float64Array([region.handle])));
});
// What the region has now: it comes behind a fence.
context.dispatch(READ, ({ origin }) => {
  const payload = /** @type {import("pamir").MemRegion} */ (region).bytes.slice();
  check(context.send({ to: origin, dispatch: LARGE, payload, onLocal: () => {} }));
});
/** The region that was asked for. */
const opened = () => /** @type {import("pamir").MemRegion} */ (region);

// A call that is answered by what the region has once its word at an offset has a value.
context.dispatch(AWAIT_WORD, async ({ header }) => {
  const [offset = 0, wanted] = new Int32Array(header.slice().buffer);
  const value = await context.waitWord(opened(), offset, (word) => word === wanted);
  if (value !== wanted) throw new Error(`waited for ${wanted}, got ${value}`);
  return opened().bytes.slice();
});
// What a put or rmw tells by a message goes back, with the first and the last of its bytes.
context.dispatch(NOTIFIED, ({ origin, payload }) => {
  const [offset = 0, bytes = 0] = new Int32Array(payload.slice().buffer);
  const ends = [opened().bytes[offset] ?? -1, opened().bytes[offset + bytes - 1] ?? -1];
  const header = Int32Array.of(offset, bytes, ...ends);
  check(context.sendImmediate(origin, NOTED, header, payload.slice(8, 16)));
});
// Puts the region into another's, and tells by a word of that.
context.dispatch(PUT_BACK, ({ origin, header, payload }) => {
  const [offset = 0, value = 0] = new Int32Array(header.slice().buffer);
  const remote = new Float64Array(payload.slice().buffer)[0] ?? 0;
  const notify = /** @type {const} */ ({ remote, offset, operation: "set", value });
  check(context.put({ to: origin, local: opened(), remote, bytes: offset, notify }));
});
context.dispatch(HOLD, (message) => {
  hold = headerWord(message);
});
context.dispatch(CLOSE, (message) => {
  for (let i = 0; i < 100; i++) check(context.sendImmediate(message.origin, ANSWER, Int32Array.of(i)));
  running = false;
});
context.dispatch(THROW, () => {
  throw new RangeError("thrown in a task");
});
context.dispatch(LAST_WORDS, ({ origin }) => {
  for (let i = 0; i < 100; i++) check(context.sendImmediate(origin, ANSWER, Int32Array.of(i)));
  throw new RangeError("thrown behind a message");
});
// A call: header and payload come back, the payload upside down.
context.dispatch(CALL_BACK, (message) => {
  const header = message.header.slice();
  const bytes = new Uint8Array(header.length + message.payloadBytes);
  bytes.set(header);
  if (message.immediate) {
    bytes.set(message.payload.slice().reverse(), header.length);
    return bytes;
  }
  return new Promise((resolve) => {
    const rest = bytes.subarray(header.length);
    message.receive(rest, () => {
      rest.reverse();
      resolve(bytes);
    });
  });
});
// A sum that is held is answered behind this.
const released = new Promise((resolve) => context.dispatch(RELEASE, () => resolve(undefined)));
context.dispatch(SUM, async ({ numbers, held }) => {
  if (held) await released;
  return { sum: numbers.reduce((sum, number) => sum + number, 0), task: client.task };
});
context.dispatch(FAIL, async (how) => {
  if (how === "async") await new Promise((resolve) => setTimeout(resolve, 1));
  if (how === "never") await new Promise(() => {});
  if (how === "die") setTimeout(() => void Promise.reject(new Error("dies")), 20);
  if (how === "die") await new Promise(() => {});
  throw Object.assign(new RangeError(`failed: ${how}`), { code: "E_FAILED" });
});
// Has a handler for this id only some time after its first message.
context.dispatch(LATER, (message) => {
  const id = headerWord(message);
  setTimeout(() => context.post(() => context.dispatch(id, ({ payload }) => payload.slice())), 30);
});
// So many messages to task 0.
context.dispatch(STREAM, (message) => {
  const [count = 0, offers = 0] = new Int32Array(message.header.slice().buffer);
  const to = client.endpoint(0);
  const payload = new Uint8Array(500);
  const offer = { rendezvous: true, queue: false, onLocal: () => {} };
  let sent = 0;
  context.post(() => {
    while (sent < count) {
      const header = Int32Array.of(sent);
      const isOffered = offers > 0 && sent % offers === 0;
      const result = isOffered
        ? context.send({ to, dispatch: STREAM, header, payload, ...offer })
        : context.sendImmediate(to, STREAM, header, payload, false);
      if (result !== SUCCESS) return EAGAIN;
      sent++;
    }
    return SUCCESS;
  });
});
// Opens a second context: it answers nothing, and at CLOSE says its last words and closes. The task goes on.
context.dispatch(OPEN, async () => {
  const second = client.createContext();
  second.dispatch(FAIL, () => new Promise(() => {}));
  second.dispatch(CLOSE, ({ origin }) => {
    for (let i = 0; i < 100; i++) check(second.sendImmediate(origin, ANSWER, Int32Array.of(i)));
    second.close();
  });
  while (!second.closed) await second.progress();
});
// A call that is answered when context 1 of task 1 has ended.
context.dispatch(AWAIT_END, () => context.whenEnded(client.endpoint(1, 1)).then(() => Uint8Array.of(1)));
// A call that is answered when the task that it names has ended.
context.dispatch(END_OF, (message) => {
  const ended = message.getInt32(0);
  return context.whenEnded(client.endpoint(ended)).then(() => Uint8Array.of(ended));
});
context.dispatch(BUSY, ({ origin }) => {
  check(context.sendImmediate(origin, ANSWER));
  // What is sent on this thread goes out by a microtask.
  setTimeout(() => {
    for (;;);
  });
});
// A geometry of so many tasks, and what its members do.
context.dispatch(GEOMETRY, async (message) => {
  const world = await client.createGeometry({ from: 0, to: headerWord(message) - 1 }, { timeout: 60_000 });
  context.dispatch(CASE, async (one) => {
    const { problem, bytes } = await partOf(one, world, client, 60_000);
    if (problem !== undefined) throw new Error(problem);
    return bytes ?? new Uint8Array(0);
  });
  context.dispatch(DO, (what) => TOGETHER[what](world));
});
context.dispatch(SIZE, () => Uint8Array.of(client.task, client.size));
// Ends once task 0 has left.
context.dispatch(WATCH, () => {
  context.post(() => {
    if (context.sendImmediate(client.endpoint(0), ANSWER, null, null, false) !== SHUTDOWN) return EAGAIN;
    running = false;
    return SUCCESS;
  });
});
while (running) {
  await context.progress();
  if (hold > 0) await new Promise((resolve) => setTimeout(resolve, hold));
  hold = 0;
}
await client.close({ drain: true });

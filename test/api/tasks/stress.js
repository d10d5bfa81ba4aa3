// @ts-check
// Every task sends numbered and checksummed messages to every other, in every way, and counts what comes wrong.
import { SUCCESS } from "pamir";
import { DATA, OTHER, raise, runScenario, until } from "./support.js";

/** Mulberry32: the seed of the test and the task's number decide all that a task does.
 * @param {number} seed
 */
function randomFrom(seed) {
  let state = seed >>> 0;
  /** @param {number} limit */
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

/** FNV-1a over the bytes, the number and the length.
 * @param {Uint8Array} bytes
 * @param {number} number
 */
function checksum(bytes, number) {
  let hash = 0x811c9dc5 ^ number;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ /** @type {number} */ (bytes[i]), 0x01000193);
  return (hash ^ bytes.length) | 0;
}

/** Places of the counters in the outcome that all tasks share. */
const [SENT, RECEIVED, LOST, REPEATED, REORDERED, BROKEN] = [0, 1, 2, 3, 4, 5];

await runScenario({
  async stress(client, { seed, count, largest, flags: outcome, spin, patience }) {
    const random = randomFrom(seed + 1000 * client.task);
    const contexts = [client.createContext({ spin, pendingBytes: 65_536 }), client.createContext({ spin })];
    const [context] = /** @type {[import("pamir").Context, import("pamir").Context]} */ (contexts);
    const targets = Array.from({ length: client.size * 2 }, (_, i) => ({
      to: client.endpoint(i >> 1, i & 1),
      number: 0,
    }));
    /** @type {Map<string, number>} */
    const next = new Map();
    let announced = 0;
    let expected = 0;
    let received = 0;
    let arriving = 0;
    let callbacks = 0;

    for (const each of contexts) {
      each.dispatch(DATA, (message) => {
        const header = new DataView(message.header.slice().buffer);
        const [number, sum] = [header.getInt32(0, true), header.getInt32(4, true)];
        const pair = `${message.origin} ${each.index}`;
        const due = next.get(pair) ?? 0;
        if (number < due) Atomics.add(outcome, REPEATED, 1);
        else if (number > due) Atomics.add(outcome, REORDERED, 1);
        next.set(pair, Math.max(due, number + 1));
        received++;
        /** @param {Uint8Array} bytes */
        const check = (bytes) => {
          if (checksum(bytes, number) !== sum) Atomics.add(outcome, BROKEN, 1);
        };
        if (message.immediate) check(message.payload);
        else {
          const bytes = new Uint8Array(message.payloadBytes);
          arriving++;
          message.receive(bytes, (_, result) => {
            arriving--;
            if (result === SUCCESS) check(bytes);
            else Atomics.add(outcome, BROKEN, 1);
          });
        }
      });
      // The last message of an origin: how many it sent before.
      each.dispatch(OTHER, (message) => {
        announced++;
        expected += message.getInt32(0);
      });
    }

    const limit = performance.now() + patience;
    const round = () => client.advance(contexts);
    for (let i = 0; i < count; i++) {
      const target = /** @type {(typeof targets)[0]} */ (targets[random(targets.length)]);
      const kind = random(100);
      const bytes = kind < 60 ? random(64) : kind < 90 ? random(2000) : kind < 97 ? random(20_000) : random(largest);
      const payload = new Uint8Array(bytes);
      for (let j = 0; j < bytes; j += 1 + (j >> 4)) payload[j] = random(256);
      const header = Int32Array.of(target.number, checksum(payload, target.number));
      const way = bytes > 4000 ? 2 : random(4);
      for (;;) {
        let taken = false;
        if (way === 0) taken = context.sendImmediate(target.to, DATA, header, payload, false) === SUCCESS;
        else if (way === 1) taken = context.sendImmediate(target.to, DATA, header, payload) === SUCCESS;
        else if (way === 2) {
          const done = () => callbacks--;
          callbacks++;
          taken = context.send({ to: target.to, dispatch: DATA, header, payload, onLocal: done }) === SUCCESS;
          if (!taken) callbacks--;
        } else {
          if (random(8) === 0 && context.reserve(target.to, DATA, 100) > 0) context.abort(target.to);
          const offset = context.reserve(target.to, DATA, bytes, 8);
          taken = offset > 0;
          if (taken) {
            client.bytes.set(new Uint8Array(header.buffer), offset);
            client.bytes.set(payload, offset + 8);
            context.commit(target.to);
          }
        }
        if (taken) break;
        if (performance.now() > limit)
          throw new Error(`message ${i} of ${count}, ${bytes} bytes by way ${way} finds no room`);
        round();
      }
      target.number++;
      if (random(3) === 0) round();
    }
    Atomics.add(outcome, SENT, count);
    for (const { to, number } of targets) {
      while (context.sendImmediate(to, OTHER, null, Int32Array.of(number)) !== SUCCESS) round();
    }

    const complete = () => announced === 2 * client.size && received === expected && arriving === 0 && callbacks === 0;
    if (client.task % 2 === 0) {
      // A sleeper that has two contexts waits for both.
      const waits = contexts.map((each) => ({
        each,
        pending: /** @type {Promise<unknown> | undefined} */ (undefined),
      }));
      while (!complete() && performance.now() < limit) {
        for (const wait of waits) {
          wait.pending ??= wait.each.progress({ timeout: patience }).then(
            () => {
              wait.pending = undefined;
            },
            () => {
              wait.pending = undefined;
            },
          );
        }
        await Promise.race(waits.map(({ pending }) => pending));
      }
    } else {
      while (!complete() && performance.now() < limit) round();
    }
    Atomics.add(outcome, RECEIVED, received);
    Atomics.add(outcome, LOST, expected - received);
    if (!complete())
      throw new Error(`task ${client.task}: ${JSON.stringify({ announced, expected, received, arriving, callbacks })}`);
    // Nobody leaves before all are complete: who leaves takes back what is still in its own queue.
    raise(outcome, 15);
    while (Atomics.load(outcome, 15) < client.size) {
      round();
      Atomics.wait(outcome, 14, 0, 1);
    }
    until(context, () => true);
    process.exit(0);
  },
});

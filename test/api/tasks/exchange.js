// @ts-check
// Payloads of all kinds, offered by everybody to everybody at once, among small messages.
import { EAGAIN, SHUTDOWN, SUCCESS } from "pamir";
import { pattern, randomFrom } from "./random.js";
import { DATA, OTHER } from "./support.js";

/** Numbers of a header: of the message, of where its content begins in `POOL`. */
const HEADER_WORDS = 2;
const POOL = pattern(2 ** 20, 77);

/**
 * Begins it; what is left to do happens in `context.advance()`.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {{ seed: number, count: number, most: number }} what
 */
export function exchange(client, context, { seed, count, most }) {
  const { below } = randomFrom(seed + client.task);
  const seen = { sent: 0, local: 0, remote: 0, came: 0, received: 0, wrong: 0 };
  const everybody = Array.from({ length: client.size }, (_, task) => client.endpoint(task));
  const region = client.createRegion(2 * most);
  const into = client.createRegion(2 * most);
  /** Whether a region is free for the next one. */
  const free = { from: true, into: true };
  const numbers = everybody.map(() => 0);
  /** @type {Map<number, number>} */
  const next = new Map();
  /** Those who have sent all, and whom this one has told so. */
  let over = 0;
  let told = 0;

  context.dispatch(OTHER, () => {
    over++;
  });
  context.dispatch(DATA, (message) => {
    const [number, from] = /** @type {Int32Array & [number, number]} */ (new Int32Array(message.header.slice().buffer));
    const { origin, payloadBytes } = message;
    seen.came++;
    // In the order sent, whatever becomes of them then.
    if (number !== (next.get(origin) ?? 0)) seen.wrong++;
    next.set(origin, number + 1);
    /** @param {Uint8Array} bytes */
    const check = (bytes) => {
      seen.received++;
      if (Buffer.compare(bytes, POOL.subarray(from, from + payloadBytes)) !== 0) seen.wrong++;
    };
    if (message.immediate) return check(message.payload);
    const inRegion = free.into && below(3) > 0;
    if (inRegion) free.into = false;
    const at = below(16);
    const bytes = inRegion ? into.bytes.subarray(at, at + payloadBytes) : new Uint8Array(payloadBytes);
    const onComplete = (/** @type {unknown} */ _, /** @type {number} */ result) => {
      if (result !== SUCCESS) seen.wrong++;
      check(bytes);
      if (inRegion) free.into = true;
    };
    const fragment = below(2) === 0 ? undefined : 64 << below(12);
    message.receive(bytes, onComplete, undefined, { fragment, depth: 1 + below(4) });
  });

  /** One more; false: not now. */
  const send = () => {
    const task = below(everybody.length);
    const number = /** @type {number} */ (numbers[task]);
    const payloadBytes = 1 + below(below(3) === 0 ? most : 300);
    const from = below(POOL.length - payloadBytes);
    const content = POOL.subarray(from, from + payloadBytes);
    const inRegion = free.from && below(2) === 0;
    if (inRegion) free.from = false;
    const at = below(16);
    const payload = inRegion ? region.bytes.subarray(at, at + payloadBytes) : new Uint8Array(payloadBytes);
    payload.set(content);
    const result = context.send({
      to: /** @type {import("pamir").Endpoint} */ (everybody[task]),
      dispatch: DATA,
      header: Int32Array.of(number, from).subarray(0, HEADER_WORDS),
      payload,
      rendezvous: below(3) > 0 ? true : undefined,
      onLocal: (_, came) => {
        seen.local++;
        if (came !== SUCCESS) seen.wrong++;
        payload.fill(0);
        if (inRegion) free.from = true;
      },
      onRemote: () => seen.remote++,
    });
    if (result === SUCCESS) {
      numbers[task] = number + 1;
      seen.sent++;
      return true;
    }
    if (inRegion) free.from = true;
    if (result === SHUTDOWN) seen.wrong++;
    else if (result !== EAGAIN) throw new Error(`send() came to ${result}`);
    return false;
  };

  return {
    seen,
    /** Whether all that this one sends is out, and all that is for it has come: what says so comes behind it. */
    isOver() {
      while (seen.sent < count && send());
      if (seen.sent < count || seen.local < count || seen.remote < count) return false;
      while (told < everybody.length && context.sendImmediate(/** @type {any} */ (everybody[told]), OTHER) === SUCCESS)
        told++;
      return told === everybody.length && over === everybody.length && seen.received === seen.came;
    },
  };
}

// @ts-check
// Everything that an engine does, between two contexts that do it to each other at once; what comes of it is counted.
import { CANCELED, EAGAIN, SHUTDOWN, SUCCESS } from "pamir";
import { pattern, randomFrom } from "./random.js";

const HELLO = 30;
const OFFER = 31;
const OVER = 32;
const POOL = pattern(2 ** 20, 5);
/** Operations of a kind that are under way at once, and the bytes of each. */
const PLACES = 6;
const MOST = 300_000;
const AREA = PLACES * MOST;

/** @typedef {{ handle: number, at: number }} Area where a region is: its handle, and its offset in `client.bytes` */

/**
 * Where operations of a kind may go.
 * @param {number} count
 */
function placesOf(count) {
  const free = Array.from({ length: count }, (_, i) => i);
  return { take: () => free.pop(), give: (/** @type {number} */ place) => void free.push(place) };
}

/** @param {Uint8Array} a @param {Uint8Array} b */
const isSame = (a, b) => Buffer.compare(a, b) === 0;

/**
 * One of two contexts. It begins with `begin()`, and then all happens in `advance()`, and in `isOver()`.
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {import("pamir").Endpoint} to
 * @param {number} seed
 */
export function busy(client, context, to, seed) {
  const { below } = randomFrom(seed);
  const [from, into, words, got, received] = [POOL.length, AREA, 64, AREA, AREA].map((bytes) =>
    client.createRegion(bytes),
  );
  from.bytes.set(POOL);
  words.bytes.fill(0);
  const seen = {
    /** Callbacks that have to come, that came, and what they got. */
    due: 0,
    came: 0,
    success: 0,
    error: 0,
    shutdown: 0,
    canceled: 0,
    /** Payloads of the other one that this one receives, and those that are over. */
    asked: 0,
    taken: 0,
    /** What was added to a word of the other one, by all that is known, and at the most. */
    added: 0,
    issued: 0,
    /** @type {string[]} */
    wrong: [],
  };
  /** @type {{ into: Area, from: Area, words: Area } | undefined} */
  let peer;
  let left = 0;
  let peersOver = 0;
  let round = 0;
  let isTold = true;
  /** Whether the other's memory may be looked at. */
  let isPeerThere = true;
  /** @type {[number, () => boolean][]} */
  let quiet = [];
  /** Calls whose callbacks come in their order. @type {number[]} */
  const order = [];
  let number = 0;
  const [putting, getting, taking] = [placesOf(PLACES), placesOf(PLACES), placesOf(PLACES)];

  /** @param {number} result @param {string} what @param {() => boolean} isThere */
  const count = (result, what, isThere) => {
    if (result === SUCCESS) seen.success++;
    else if (result === SHUTDOWN) seen.shutdown++;
    else if (result === CANCELED) seen.canceled++;
    else seen.error++;
    if (result === SUCCESS && !isThere()) seen.wrong.push(`${what}: it is not there`);
  };

  /** Puts, gets, rmws and fences are called back in order. @param {string} what @param {() => boolean} isThere @param {() => void} [then] */
  const called = (what, isThere, then = () => {}) => {
    const mine = number++;
    order.push(mine);
    seen.due++;
    return (/** @type {unknown} */ _, /** @type {number} */ result) => {
      const next = order.shift();
      if (next !== mine) seen.wrong.push(`${what}: called in the place of ${next}, not of ${mine}`);
      seen.came++;
      count(result, what, isThere);
      then();
    };
  };

  /** @param {Area} area @param {number} at @param {number} bytes */
  const theirs = ({ at: base }, at, bytes) => client.bytes.subarray(base + at, base + at + bytes);
  const sizeOf = () => 1 + below([20, 5000, 40_000, MOST - 1][below(4)] ?? 1);
  /** Takes back what was listed for a call that was refused. */
  const refused = () => {
    order.pop();
    seen.due--;
  };

  /** @type {((others: NonNullable<typeof peer>) => void)[]} */
  const KINDS = [
    function put(others) {
      const place = putting.take();
      if (place === undefined) return;
      const bytes = sizeOf();
      const [localOffset, remoteOffset] = [below(POOL.length - bytes), place * MOST];
      const isThere = () =>
        !isPeerThere ||
        isSame(theirs(others.into, remoteOffset, bytes), POOL.subarray(localOffset, localOffset + bytes));
      const transfer = { to, local: from, localOffset, remote: others.into.handle, remoteOffset, bytes };
      if (below(4) === 0) {
        if (context.put(transfer) === SUCCESS) quiet.push([place, isThere]);
        else putting.give(place);
        return;
      }
      const onRemote = called("put", isThere, () => putting.give(place));
      if (context.put({ ...transfer, onRemote }) === SUCCESS) return;
      refused();
      putting.give(place);
    },
    function get(others) {
      const place = getting.take();
      if (place === undefined) return;
      const bytes = sizeOf();
      const [localOffset, remoteOffset] = [place * MOST, below(POOL.length - bytes)];
      const isThere = () =>
        isSame(got.bytes.subarray(localOffset, localOffset + bytes), POOL.subarray(remoteOffset, remoteOffset + bytes));
      const onLocal = called("get", isThere, () => getting.give(place));
      const transfer = { to, local: got, localOffset, remote: others.from.handle, remoteOffset, bytes };
      if (context.get({ ...transfer, onLocal }) === SUCCESS) return;
      refused();
      getting.give(place);
    },
    function rmw(others) {
      const isAdded = () => {
        seen.added++;
        return true;
      };
      const change = { to, remote: others.words.handle, operation: /** @type {const} */ ("add"), value: 1 };
      if (context.rmw({ ...change, onDone: called("rmw", isAdded) }) === SUCCESS) seen.issued++;
      else refused();
    },
    function fence() {
      const before = quiet;
      quiet = [];
      const isThere = () => before.every(([, each]) => each());
      const done = called("fence", isThere, () => {
        for (const [place] of before) putting.give(place);
      });
      if (context.fence(to, done) === SUCCESS) return;
      refused();
      quiet = before;
    },
    function offer() {
      const bytes = sizeOf();
      const at = below(POOL.length - bytes);
      const payload = below(2) === 0 ? from.bytes.subarray(at, at + bytes) : POOL.slice(at, at + bytes);
      const controller = below(8) === 0 ? new AbortController() : undefined;
      const onLocal = (/** @type {unknown} */ _, /** @type {number} */ result) => {
        seen.came++;
        count(result, "offer", () => true);
      };
      const header = Int32Array.of(at);
      const rest = controller === undefined ? {} : { signal: controller.signal };
      seen.due++;
      const sent = context.send({ to, dispatch: OFFER, header, payload, rendezvous: true, onLocal, ...rest });
      // Where the target has ended the callback says so, too.
      if (sent !== SUCCESS && sent !== SHUTDOWN) seen.due--;
      if (controller === undefined) return;
      context.post(() => {
        if (below(20) > 0) return EAGAIN;
        controller.abort();
        return SUCCESS;
      });
    },
  ];

  context.dispatch(HELLO, ({ payload }) => {
    const at = new Float64Array(payload.slice().buffer);
    const area = (/** @type {number} */ i) => ({ handle: at[i] ?? 0, at: at[i + 1] ?? 0 });
    peer = { into: area(0), from: area(2), words: area(4) };
  });
  context.dispatch(OVER, () => {
    peersOver++;
  });
  context.dispatch(OFFER, (message) => {
    const [at = 0] = new Int32Array(message.header.slice().buffer);
    const { payloadBytes: bytes } = message;
    if (below(10) === 0) return message.discard();
    if (message.immediate) {
      // It could not be offered: too many were staged already, or there was no memory for one more.
      const isRight = isSame(message.payload, POOL.subarray(at, at + bytes));
      if (!isRight) seen.wrong.push("a payload that came with its message is another one");
      return undefined;
    }
    const place = below(3) === 0 ? undefined : taking.take();
    const destination =
      place === undefined ? new Uint8Array(bytes) : received.bytes.subarray(place * MOST, place * MOST + bytes);
    seen.asked++;
    const fragment = below(2) === 0 ? undefined : 64 << below(12);
    message.receive(
      destination,
      (_, result) => {
        seen.taken++;
        count(result, "receive", () => isSame(destination, POOL.subarray(at, at + bytes)));
        if (place !== undefined) taking.give(place);
      },
      undefined,
      { fragment, depth: 1 + below(4) },
    );
    return undefined;
  });
  const hello = [into, from, words].flatMap(({ handle, bytes }) => [handle, bytes.byteOffset]);
  context.send({ to, dispatch: HELLO, payload: new Float64Array(hello) });

  const isAllBack = () => left === 0 && seen.came === seen.due && seen.asked === seen.taken;

  return {
    seen,
    /** Issues so many more; both sides do. @param {number} count */
    begin(count) {
      left = count;
      round++;
      isTold = false;
    },
    /** The other one has ended: nothing is issued any more, and its memory is nobody's. */
    leave() {
      left = 0;
      isPeerThere = false;
    },
    /** Whether all has been issued. */
    isThrough: () => left === 0,
    /** Whether all that was issued here has been called back, and all that the other one offers here. */
    isAllBack: () => isAllBack(),
    /** Whether this side and the other one are through with what they began. */
    isOver() {
      // A few at a time, so that the other one has its turn.
      for (let some = 0; left > 0 && some < 8 && peer !== undefined; some++, left--) {
        /** @type {(others: NonNullable<typeof peer>) => void} */ (KINDS[below(KINDS.length)])(peer);
      }
      if (!isAllBack()) return false;
      if (!isTold && quiet.length === 0 && context.sendImmediate(to, OVER) === SUCCESS) isTold = true;
      if (!isTold && quiet.length > 0 && peer !== undefined) KINDS[3]?.(peer);
      return isTold && peersOver === round;
    },
    /** What is not right about the words that were added to, once it is over. */
    checkWords() {
      if (peer === undefined) return;
      const word = new Int32Array(client.bytes.buffer, peer.words.at, 1)[0] ?? 0;
      if (word < seen.added || word > seen.issued) seen.wrong.push(`${word} was added, ${seen.added} are known`);
    },
    close() {
      for (const region of [from, into, words, got, received]) region.close();
    },
  };
}

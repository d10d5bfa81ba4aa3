// @ts-check
// Every kind of operation to everybody, at random, on one context: what each round wants of it. All that comes is compared
// with the model, at both ends. Tasks that are killed in the midst of it do this, and others that go on.
import { CANCELED, EAGAIN, ENOMEM, ERROR, RECV_IMMEDIATE_MAX, SEND_IMMEDIATE_MAX, SHUTDOWN, SUCCESS } from "pamir";
import { randomFrom } from "../api/tasks/random.js";
import { CALL, contentsOf, DATA, Deliveries, OFFER, REPLY, STREAM, STREAM_CALL, strikerOf } from "./model.js";

const HELLO = 7;
const END = 8;
/** Of an exposed region: the common word and the ticket, the words of each origin, the blocks of each seat. */
const SUM = 0;
const BOOTSTRAP = 4;
const WORDS = 64;
/** Place of what is fetched, in the local region, by seat; its blocks are behind. */
const FETCHED = 16;
/** Errors with which a wait or call may end besides: those it asked for. */
const ENDINGS = ["PAMIR_TIMEDOUT", "PAMIR_CANCELED", "PAMIR_INTERRUPTED"];
/** Promises that are awaited at once. */
const WAITS_MAX = 8;
const CALLS_MAX = 20;
const VERBS = /** @type {const} */ (["set", "add", "or", "and", "xor"]);
/** @typedef {(typeof VERBS)[number]} Verb */

/** @typedef {import("./draw.js").Round} Round */
/** @typedef {import("./model.js").Fault} Fault */
/** @typedef {import("pamir").Endpoint} Endpoint */
/** @typedef {import("pamir").Result} Result */

/** What one endpoint knows of another, and has under way to it. */
class Peer {
  /** Numbers of the next message, by kind. */
  next = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  /** What came to it of what was offered, and what came of that which it offered. */
  given = 0;
  taken = 0;
  /** Of those, what may have come to it or not, and what did not come to this one: the engine thread has ended. */
  unsure = 0;
  broken = 0;
  /** Whether a put of what is under way to our block was broken off: another fence of its FIFO may have been told so. */
  isTorn = false;
  /** The reservation that is open. @type {{ number: number, isLast: boolean } | undefined} */
  reserved = undefined;
  isGreeted = false;
  /** Its region, and where in the local one belongs to its seat. @type {number | undefined} */
  remote = undefined;
  seat = 0;
  /** What was put into our block there, once a fence said so. @type {Uint8Array | undefined} */
  block = undefined;
  /** @type {"idle" | "written" | "fencing" | "fenced" | "getting"} */
  state = "idle";
  puts = 0;
  /** Our own word there; undefined: not known. @type {bigint | undefined} */
  word = undefined;
  /** Last ticket. */
  ticket = -1;
  /** It came to SHUTDOWN. */
  isShut = false;
  /** It has ended, and all of it has come. */
  isGone = false;
  /** Announced by its END: messages of each kind. @type {number[] | undefined} */
  announced = undefined;
  /** Whether our END was sent to it. */
  isTold = false;

  /** @param {Endpoint} to @param {number} ordinal @param {number} task */
  constructor(to, ordinal, task) {
    this.to = to;
    this.ordinal = ordinal;
    this.task = task;
  }
}

/**
 * @param {import("pamir").Client} client
 * @param {Round} round
 * @param {import("./model.js").Book} book
 * @param {{ seat: number, index: number }} place
 */
export function trafficOf(client, round, book, { seat, index }) {
  const { contexts, blockBytes, sizes, pendingBytes, isTight } = round;
  /** What this task has sent may be lost with its node, which has the link. */
  const isPerishable = round.tasksPerNode > 0 && client.task >= round.survivors;
  /** What was under way when the engine thread, or the node's agent, ended comes to ERROR, and may have been done. */
  const isFrail = round.engineEnd !== undefined || isPerishable;
  const random = randomFrom((round.seed + 7919 * client.task + 104_729 * index) | 0);
  const { below } = random;
  const context = client.createContext({ pendingBytes, unexpectedBytes: round.unexpectedBytes, spin: round.spin });
  const self = client.task * contexts + index;
  const name = `${client.task}.${index}`;
  const contents = contentsOf(round.seed, sizes);
  const strikes = strikerOf(book, client.task === 0 ? round.fault : undefined);
  const deliveries = new Deliveries(book, name, strikes);
  const seats = round.tasks * contexts;
  const ownSeat = seat * contexts + index;
  const blocks = Math.ceil((WORDS + 8 * book.endpoints) / 4096) * 4096;
  const placeOfSeat = (/** @type {number} */ of) => 4096 + of * 2 * blockBytes;
  const exposed = regionOf(blocks + seats * blockBytes);
  const local = regionOf(4096 + seats * 2 * blockBytes);
  const [offered, into] = round.offerBytes > 0 ? [round.offerBytes, round.offerBytes].map(regionOf) : [];
  exposed?.bytes.fill(0, 0, blocks);
  /** @type {Map<number, Peer>} */
  const peers = new Map();
  const peersByEndpoint = new Map();
  /** What is under way to or from the local region, by kind and seat: another may have the seat since. @type {Set<string>} */
  const busy = new Set();
  /** What was begun and has not ended. @type {Set<string>} */
  const pending = new Set();
  /** Added without a callback: done once the context is drained. @type {{ done: (value: number) => void, value: number }[]} */
  const unheard = [];
  let begun = 0;
  let waits = 0;
  let calls = 0;
  const leaving = new AbortController();
  /** @type {Promise<void> | undefined} */
  let stream;

  /** @param {number} bytes */
  function regionOf(bytes) {
    try {
      return client.createRegion(bytes);
    } catch (error) {
      // Of a small heap the dead may have most still.
      if (!isTight || codeOf(error) !== "PAMIR_NO_MEMORY") throw error;
      return undefined;
    }
  }

  /** @param {unknown} error */
  function codeOf(error) {
    return /** @type {{ code?: string } | undefined } */ (error)?.code ?? "";
  }

  /** @param {number} task @param {number} of */
  function peerOf(task, of) {
    const ordinal = task * contexts + of;
    const known = peers.get(ordinal);
    if (known !== undefined) return known;
    const peer = new Peer(client.endpoint(task, of), ordinal, task);
    peers.set(ordinal, peer);
    peersByEndpoint.set(peer.to, peer);
    context.whenEnded(peer.to, () => gone(peer));
    return peer;
  }

  /** @param {Endpoint} endpoint @returns {Peer} */
  function peerFrom(endpoint) {
    const known = peersByEndpoint.get(endpoint);
    if (known !== undefined) return known;
    for (let task = 0; task < client.size; task++) for (let of = 0; of < contexts; of++) peerOf(task, of);
    return peersByEndpoint.get(endpoint);
  }

  /**
   * Nothing ends a task that goes on. Where one seems to have ended, this task's node has lost the process that has its link:
   * what others have sent to it, and it to them, may be lost. @param {Peer} peer
   */
  const isCutOff = (peer) => isPerishable && peer.task < round.survivors;

  /** A task has ended: what it is known to have sent has come. @param {Peer} peer */
  function gone(peer) {
    peer.isGone = true;
    if (isCutOff(peer)) book.mute();
    deliveries.due(DATA, peer.ordinal, book.committed(peer.ordinal, self, DATA));
    deliveries.close(DATA, peer.ordinal);
  }

  /** @param {import("./model.js").Failure} failure @param {string} why */
  const fail = (failure, why) => book.fail(failure, `${why} (endpoint ${name})`);

  /** A result is one of those that there may be. @param {Peer} peer @param {Result} result @param {string} what */
  function accepted(peer, result, what) {
    if (result === SUCCESS) return true;
    if (result === SHUTDOWN) peer.isShut = true;
    else if (result !== EAGAIN && !(result === ENOMEM && isTight)) fail("others", `${what} came to ${result}`);
    return false;
  }

  /** A callback that is called once. @param {string} what @param {(result: Result) => void} then @param {Peer} [peer] */
  function once(what, then, peer) {
    const key = `${what} ${begun++}${peer === undefined ? "" : ` to ${peer.to}`}`;
    pending.add(key);
    return {
      call: (/** @type {unknown} */ _, /** @type {Result} */ result) => {
        if (strikes("silence")) return;
        if (!pending.delete(key)) fail("others", `${key}: called twice, or though it was refused`);
        if (result === SHUTDOWN && peer !== undefined) peer.isShut = true;
        then(result);
      },
      /** It was refused: nobody calls. */
      refused: () => void pending.delete(key),
    };
  }

  /**
   * A promise that has to settle, with an error that may be.
   * @param {string} what
   * @param {Promise<unknown>} promise
   * @param {readonly string[]} codes
   */
  function settles(what, promise, codes) {
    const key = `${what} ${begun++}`;
    pending.add(key);
    waits++;
    const over = () => {
      pending.delete(key);
      waits--;
    };
    promise.then(over, (error) => {
      over();
      if (!codes.includes(codeOf(error))) fail("others", `${key} rejected with ${error}`);
    });
  }

  /** @param {Peer} peer @param {number} kind @param {number} number */
  function contentTo(peer, kind, number) {
    const { header, payload } = contents.message(kind, self, peer.ordinal, number);
    return { header, payload: payload.slice() };
  }
  /** A buffer is ours again, and used for something else. @param {Uint8Array} bytes */
  const reuse = (bytes) => void bytes.fill(0xa5);

  // What comes.

  /** @param {number} kind @param {Peer} peer @param {number} number @param {Uint8Array} header @param {Uint8Array} payload */
  function compare(kind, peer, number, header, payload) {
    const sent = contents.message(kind, peer.ordinal, self, number);
    const isWhole = deliveries.isSame(payload, sent.payload) && Buffer.compare(header, sent.header) === 0;
    if (!isWhole) book.fail("torn", `message ${number} of kind ${kind} from endpoint ${peer.to} to ${name}`);
  }
  /** @param {Uint8Array} bytes */
  const words = (bytes) => new Int32Array(bytes.slice().buffer, 0, bytes.length >>> 2);

  context.dispatch(DATA, (message) => {
    const peer = peerFrom(message.origin);
    const header = message.header.slice();
    const number = /** @type {number} */ (new Int32Array(header.buffer, 0, 1)[0]);
    deliveries.arrived(DATA, peer.ordinal, number);
    if (message.immediate) compare(DATA, peer, number, header, message.payload);
    else {
      const bytes = new Uint8Array(message.payloadBytes);
      const done = once("a large message", (result) => {
        if (result === SUCCESS) compare(DATA, peer, number, header, bytes);
        else if (number < book.committed(peer.ordinal, self, DATA) && !(isFrail && result === ERROR) && !isCutOff(peer))
          fail("lost", `message ${number} from ${peer.to} broke off`);
      });
      message.receive(bytes, done.call);
    }
  });
  context.dispatch(HELLO, (message) => {
    const peer = peerFrom(message.origin);
    if (peer.remote !== undefined) fail("repeated", `the greeting of endpoint ${peer.to}`);
    const [handle, of] = new Float64Array(message.payload.slice().buffer);
    peer.remote = /** @type {number} */ (handle);
    peer.seat = /** @type {number} */ (of);
  });
  context.dispatch(END, (message) => {
    const peer = peerFrom(message.origin);
    if (peer.announced !== undefined) fail("repeated", `the END of endpoint ${peer.to}`);
    const announced = [...words(message.payload)];
    peer.announced = announced;
    deliveries.behind(DATA, peer.ordinal, /** @type {number} */ (announced[0]));
  });
  context.dispatch(OFFER, (message) => {
    const peer = peerFrom(message.origin);
    const header = words(message.header);
    asked(OFFER, peer, header);
    const [number] = /** @type {Int32Array & [number]} */ (header);
    const sent = contents.message(OFFER, peer.ordinal, self, number).payload;
    /** @param {Uint8Array} bytes */
    const came = (bytes) => {
      peer.taken++;
      if (!deliveries.isSame(bytes, sent)) book.fail("torn", `offer ${number} from endpoint ${peer.to} to ${name}`);
    };
    if (message.immediate) return came(message.payload);
    if (below(12) === 0) {
      peer.taken++;
      return message.discard();
    }
    const inRegion = into !== undefined && !busy.has("into") && below(3) > 0;
    if (inRegion) busy.add("into");
    const bytes = inRegion
      ? into.bytes.subarray(into.length - message.payloadBytes)
      : new Uint8Array(message.payloadBytes);
    const done = once("an offer is received", (result) => {
      if (result === SUCCESS) came(bytes);
      else if (isFrail && result === ERROR) peer.broken++;
      else if (result === SHUTDOWN ? book.isLeft(peer.task) : result !== CANCELED)
        fail("others", `offer ${number} from ${peer.to} came to ${result}`);
      if (inRegion) busy.delete("into");
    });
    message.receive(bytes, done.call, undefined, {
      fragment: below(2) === 0 ? undefined : 64 << below(14),
      depth: 1 + below(4),
      signal: below(6) === 0 ? abortedSoon() : undefined,
    });
  });
  context.dispatch(CALL, (message) => {
    const peer = peerFrom(message.origin);
    const header = words(message.header);
    asked(CALL, peer, header);
    if (message.immediate) return answer(CALL, peer, header, message.payload);
    const bytes = new Uint8Array(message.payloadBytes);
    return new Promise((resolve, reject) => {
      message.receive(bytes, (_, result) => {
        // Its caller has ended in the midst of it.
        if (result !== SUCCESS) return resolve(undefined);
        try {
          resolve(answer(CALL, peer, header, bytes));
        } catch (error) {
          reject(error);
        }
      });
    });
  });

  /** A call has come: behind the messages before it, and the calls. @param {number} kind @param {Peer} peer @param {Int32Array} header */
  function asked(kind, peer, header) {
    const [number, before] = /** @type {Int32Array & [number, number]} */ (header);
    deliveries.called(kind, peer.ordinal, number);
    deliveries.behind(kind === STREAM_CALL ? STREAM : DATA, peer.ordinal, before);
  }

  /**
   * What a call is answered with.
   * @param {number} kind
   * @param {Peer} peer
   * @param {Int32Array} header
   * @param {Uint8Array} request
   */
  function answer(kind, peer, header, request) {
    const [number] = /** @type {Int32Array & [number]} */ (header);
    const sent = contents.message(kind, peer.ordinal, self, number);
    if (!deliveries.isSame(request, sent.payload))
      book.fail("torn", `call ${number} from endpoint ${peer.to} to ${name}`);
    if (number % 8 === 3) throw Object.assign(new RangeError(`no ${number}`), { code: "SOAK" });
    const reply = contents.message(REPLY, self, peer.ordinal, number).payload;
    return number % 4 === 1 && kind === CALL ? new Promise((resolve) => setImmediate(() => resolve(reply))) : reply;
  }

  /**
   * Takes messages out of the stream at its own pace, and leaves it now and then. A loop ends once all other tasks have ended:
   * what this task sends to itself then is for the next loop.
   */
  async function read() {
    while (!leaving.signal.aborted) {
      try {
        const options =
          below(2) === 0 ? { signal: leaving.signal } : { signal: leaving.signal, timeout: 1 + below(50) };
        for await (const { origin, header, payload, reply } of context.messages(STREAM, options)) {
          const peer = peerFrom(origin);
          const [number] = /** @type {Int32Array & [number]} */ (words(header));
          if (reply === undefined) {
            deliveries.arrived(STREAM, peer.ordinal, number);
            compare(STREAM, peer, number, header, payload);
          } else reply(answerOfStream(peer, words(header), payload));
          if (below(64) === 0) break;
          if (below(200) === 0) await new Promise((resolve) => setTimeout(resolve, below(20)));
        }
      } catch (error) {
        const code = codeOf(error);
        if (code === "PAMIR_CLOSED") return;
        // SHUTDOWN: the loop is over, too, and one of the other tasks has failed.
        if (![...ENDINGS, "PAMIR_SHUTDOWN"].includes(code)) fail("others", `messages(): ${error}`);
      }
      // A loop that is over ends at once, again and again.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  /** A reader has no way to throw. @param {Peer} peer @param {Int32Array} header @param {Uint8Array} request */
  function answerOfStream(peer, header, request) {
    asked(STREAM_CALL, peer, header);
    try {
      return answer(STREAM_CALL, peer, header, request);
    } catch {
      return new Uint8Array(1);
    }
  }

  // What goes out.

  /** @param {Peer} peer @param {number} kind @param {number} number */
  const taken = (peer, kind, number) => {
    peer.next[kind] = number + 1;
    if (peer.reserved !== undefined) peer.reserved.isLast = false;
  };
  /** @param {Peer} peer @param {number} kind @param {number} number */
  const isOut = (peer, kind, number) => {
    if (!isPerishable) book.commit(self, peer.ordinal, kind, number + 1);
  };
  const lengthOf = (/** @type {{ header: Uint8Array, payload: Uint8Array }} */ { header, payload }) =>
    ((header.length + 7) & ~7) + payload.length;

  /** @param {Peer} peer @param {number} kind @param {boolean} queue */
  function sendImmediate(peer, kind, queue) {
    const number = /** @type {number} */ (peer.next[kind]);
    const message = contentTo(peer, kind, number);
    if (lengthOf(message) > SEND_IMMEDIATE_MAX) return send(peer, kind);
    const result = context.sendImmediate(peer.to, kind, message.header, message.payload, queue);
    reuse(message.header);
    reuse(message.payload);
    if (!accepted(peer, result, "sendImmediate()")) return;
    taken(peer, kind, number);
    if (!queue) isOut(peer, kind, number);
  }

  /** @param {Peer} peer @param {number} kind */
  function send(peer, kind) {
    const number = /** @type {number} */ (peer.next[kind]);
    const { header, payload } = contentTo(peer, kind, number);
    const arrived = once(
      "onRemote",
      (result) => {
        if (result === SUCCESS) isOut(peer, kind, number);
        else if (result !== SHUTDOWN && !(isFrail && result === ERROR)) fail("others", `onRemote came to ${result}`);
      },
      peer,
    );
    // What the pending queue can't copy is not copied.
    const isHeld = header.length + payload.length > pendingBytes || below(2) === 0;
    const free = isHeld ? once("onLocal", () => reuse(payload), peer) : undefined;
    const queue = below(4) > 0;
    // Of one that is killed, what is offered and not taken goes with it, also where something behind that is out.
    // And a stream does not give what breaks off.
    const mayOffer = round.offerBytes > 0 && client.task < round.survivors && !(isFrail && kind === STREAM);
    const rendezvous = mayOffer && free !== undefined && payload.length > 0 && below(4) === 0;
    const result = context.send({
      ...(rendezvous ? { rendezvous } : {}),
      to: peer.to,
      dispatch: kind,
      header,
      payload,
      onLocal: free?.call,
      onRemote: arrived.call,
      queue,
    });
    reuse(header);
    if (free === undefined) reuse(payload);
    if (accepted(peer, result, "send()")) taken(peer, kind, number);
    else if (result !== SHUTDOWN) {
      arrived.refused();
      free?.refused();
    }
  }

  /** One that may be given up: its number is skipped then, unless its handler was called before. @param {Peer} peer */
  function offer(peer) {
    const number = /** @type {number} */ (peer.next[OFFER]);
    const content = contents.message(OFFER, self, peer.ordinal, number).payload;
    if (content.length === 0) return taken(peer, OFFER, number);
    const inRegion = offered !== undefined && !busy.has("offered") && below(3) > 0;
    if (inRegion) busy.add("offered");
    const payload = inRegion ? offered.bytes.subarray(offered.length - content.length) : content.slice();
    payload.set(content);
    const signal = below(4) === 0 ? abortedSoon() : undefined;
    const over = () => {
      reuse(payload);
      if (inRegion) busy.delete("offered");
    };
    const done = once(
      "an offer",
      (result) => {
        over();
        if (result === SUCCESS) peer.given++;
        else if (isFrail && result === ERROR) peer.unsure++;
        else if (result !== SHUTDOWN && result !== CANCELED)
          fail("others", `offer ${number} to ${peer.to} came to ${result}`);
      },
      peer,
    );
    const header = Int32Array.of(number, /** @type {number} */ (peer.next[DATA]));
    const queue = below(4) > 0;
    const how = { rendezvous: true, signal, queue };
    const result = context.send({ to: peer.to, dispatch: OFFER, header, payload, onLocal: done.call, ...how });
    header.fill(-1);
    if (accepted(peer, result, "an offer")) taken(peer, OFFER, number);
    else if (result !== SHUTDOWN) {
      done.refused();
      over();
    }
  }

  /** @param {Peer} peer */
  function reserve(peer) {
    if (peer.reserved !== undefined) return end(peer);
    const number = /** @type {number} */ (peer.next[DATA]);
    const { header, payload } = contentTo(peer, DATA, number);
    if (lengthOf({ header, payload }) > RECV_IMMEDIATE_MAX) return send(peer, DATA);
    // More than it will be, now and then.
    const more = below(4) === 0 && lengthOf({ header, payload }) + 64 <= RECV_IMMEDIATE_MAX ? 64 : 0;
    const offset = context.reserve(peer.to, DATA, payload.length + more, header.length);
    if (offset < 0) return void accepted(peer, /** @type {Result} */ (-offset), "reserve()");
    client.bytes.set(header, offset);
    client.bytes.set(payload, offset + ((header.length + 7) & ~7));
    peer.reserved = { number, isLast: true };
    peer.next[DATA] = number + 1;
    // A task that blocks in a reduction would hold back all that it sends behind an open reservation, also the reduction.
    if (below(2) === 0 || round.meets) end(peer);
  }

  /** Commits or aborts the reservation. @param {Peer} peer */
  function end(peer) {
    const { reserved } = peer;
    if (reserved === undefined) return;
    peer.reserved = undefined;
    // What was sent since waits behind it, and counts on its number.
    if (reserved.isLast && below(3) === 0) {
      context.abort(peer.to);
      peer.next[DATA] = reserved.number;
      return;
    }
    context.commit(peer.to, contentTo(peer, DATA, reserved.number).payload.length);
    isOut(peer, DATA, reserved.number);
  }

  /** @param {Peer} peer @param {number} kind */
  function call(peer, kind) {
    if (calls >= CALLS_MAX) return;
    const number = /** @type {number} */ (peer.next[kind]);
    const behind = kind === CALL ? DATA : STREAM;
    const { payload } = contentTo(peer, kind, number);
    const header = Int32Array.of(number, /** @type {number} */ (peer.next[behind]));
    const way = below(5);
    const options = way === 0 ? { timeout: 1 + below(40) } : way === 1 ? { signal: abortedSoon() } : {};
    taken(peer, kind, number);
    calls++;
    const key = `call ${number} of kind ${kind} to ${peer.to}`;
    pending.add(key);
    const over = () => {
      calls--;
      pending.delete(key);
    };
    const called = context.call(peer.to, kind === CALL ? CALL : STREAM, payload, { ...options, header });
    reuse(payload);
    header.fill(-1);
    called.then(
      (reply) => {
        over();
        const awaited =
          number % 8 === 3
            ? kind === STREAM_CALL
              ? new Uint8Array(1)
              : undefined
            : contents.message(REPLY, peer.ordinal, self, number).payload;
        if (awaited === undefined || !deliveries.isSame(reply, awaited, "reply"))
          fail("calls", `${key}: another reply`);
      },
      (error) => {
        over();
        const code = codeOf(error);
        if (code === "PAMIR_SHUTDOWN") peer.isShut = true;
        const isRight =
          code === "SOAK"
            ? kind === CALL && number % 8 === 3 && error.name === "RangeError" && error.message === `no ${number}`
            : code === "PAMIR_SHUTDOWN" ||
              (code === "PAMIR_TIMEDOUT" && way === 0) ||
              (code === "PAMIR_CANCELED" && way === 1) ||
              (code === "PAMIR_INTERRUPTED" && round.interrupts) ||
              (code === "PAMIR_NO_MEMORY" && isTight);
        if (!isRight) fail("calls", `${key} rejected with ${error}`);
      },
    );
  }

  /** A signal that is aborted after some milliseconds. */
  function abortedSoon() {
    return AbortSignal.timeout(1 + below(30));
  }

  /** What a transfer or rmw throws where the other one's region is gone. @param {Peer} peer @param {() => Result} begin */
  function begins(peer, begin) {
    try {
      return accepted(peer, begin(), "a one-sided operation");
    } catch (error) {
      if (codeOf(error) !== "PAMIR_STALE") throw error;
      peer.isShut = true;
      return false;
    }
  }

  /** The next step of: pieces are put into our block, a fence, all of it is got back. @param {Peer} peer */
  function transfer(peer) {
    const { to, remote } = peer;
    if (peer.isShut && (peer.state === "written" || peer.state === "fenced")) abandon(peer);
    if (remote === undefined || local === undefined || peer.isShut) return;
    if (peer.state === "idle") {
      if (busy.has(`blocks ${peer.seat}`)) return;
      busy.add(`blocks ${peer.seat}`);
      write(peer, remote);
    } else if (peer.state === "written") {
      const done = once("fence", (result) => fenced(peer, result));
      peer.state = "fencing";
      if (!accepted(peer, context.fence(to, done.call), "fence()")) {
        done.refused();
        peer.state = "written";
      }
    } else if (peer.state === "fenced") {
      const done = once("get", (result) => got(peer, result), peer);
      peer.state = "getting";
      const place = { localOffset: placeOfSeat(peer.seat) + blockBytes, remoteOffset: blocks + ownSeat * blockBytes };
      if (!begins(peer, () => context.get({ to, local, remote, ...place, bytes: blockBytes, onLocal: done.call }))) {
        done.refused();
        peer.state = "fenced";
      }
    }
  }

  /** @param {Peer} peer */
  function abandon(peer) {
    peer.state = "idle";
    busy.delete(`blocks ${peer.seat}`);
  }

  /** @param {Peer} peer @param {number} remote */
  function write(peer, remote) {
    const region = /** @type {import("pamir").MemRegion} */ (local);
    const staging = placeOfSeat(peer.seat);
    // The first time all of it; pieces do not overlap, for only a fence orders them.
    const from = peer.block === undefined ? 0 : below(blockBytes);
    const to = peer.block === undefined ? blockBytes : from + below(blockBytes - from + 1);
    const pieces = 1 + below(3);
    peer.block ??= new Uint8Array(blockBytes);
    peer.state = "written";
    for (let i = 0; i < pieces; i++) {
      const [begin, stop] = [
        from + Math.floor(((to - from) * i) / pieces),
        from + Math.floor(((to - from) * (i + 1)) / pieces),
      ];
      const bytes = contents.bytes(self, peer.ordinal, peer.puts++, stop - begin);
      region.bytes.set(bytes, staging + begin);
      /** @param {Result} result */
      const there = (result) => {
        if (isFrail && result === ERROR) peer.isTorn = true;
      };
      const callbacks = [once("put onLocal", () => {}, peer), once("put onRemote", there, peer)].map((callback, i) => {
        if (below(2) === 0 || (isFrail && i === 1)) return callback;
        callback.refused();
        return undefined;
      });
      const place = { localOffset: staging + begin, remoteOffset: blocks + ownSeat * blockBytes + begin };
      const [onLocal, onRemote] = callbacks.map((callback) => callback?.call);
      const isBegun = begins(peer, () =>
        context.put({ to: peer.to, local: region, remote, ...place, bytes: stop - begin, onLocal, onRemote }),
      );
      if (isBegun) peer.block.set(bytes, begin);
      else {
        for (const callback of callbacks) callback?.refused();
        // What is there of the first is not known: once more from the beginning.
        if (to - from === blockBytes) peer.block = undefined;
        return;
      }
    }
  }

  /** @param {Peer} peer @param {Result} result */
  function fenced(peer, result) {
    // Something was refused or dropped, of one that has ended; it may share the FIFO.
    if (result !== SUCCESS || peer.isTorn) peer.block = undefined;
    peer.isTorn = false;
    if (result !== SUCCESS && round.kills === 0 && !isFrail) fail("others", `a fence came to ${result}`);
    peer.state = peer.block === undefined ? "idle" : "fenced";
    if (peer.state === "idle") abandon(peer);
  }

  /** @param {Peer} peer @param {Result} result */
  function got(peer, result) {
    peer.state = "idle";
    abandon(peer);
    if (result !== SUCCESS) {
      if (result !== SHUTDOWN && result !== ERROR) fail("others", `a get came to ${result}`);
      refused(peer, result);
      return;
    }
    const region = /** @type {import("pamir").MemRegion} */ (local);
    const from = placeOfSeat(peer.seat) + blockBytes;
    const there = region.bytes.subarray(from, from + blockBytes);
    if (!deliveries.isSame(there, /** @type {Uint8Array} */ (peer.block), "content")) {
      fail("contents", `the block of seat ${ownSeat} in the region of endpoint ${peer.to}`);
    }
  }

  /** Adds to the common word of a target. @param {Peer} peer */
  function add(peer) {
    const { to, remote } = peer;
    if (remote === undefined || peer.isShut) return;
    const value = 1 + below(9);
    const sum = book.sum(peer.ordinal, 0);
    const isHeard = below(3) > 0;
    const done = once("rmw", (result) => ended(peer, sum, value, result), peer);
    sum.issue(strikes("sum") ? value - 1 : value);
    const onDone = isHeard ? done.call : undefined;
    const isBegun = begins(peer, () => context.rmw({ to, remote, remoteOffset: SUM, operation: "add", value, onDone }));
    if (!isBegun) sum.issue(-value);
    if (!isBegun || !isHeard) done.refused();
    if (isBegun && !isHeard) unheard.push({ done: sum.done, value });
  }

  /** @param {Peer} peer @param {{ done(value: number): void, issue(value: number): void }} total @param {number} value @param {Result} result */
  function ended(peer, total, value, result) {
    if (result === SUCCESS) return total.done(value);
    if (result !== SHUTDOWN && result !== ERROR) fail("others", `an rmw came to ${result}`);
    refused(peer, result);
    // It may have been done, where the engine thread or the link ended behind it.
    if (!(isFrail && result === ERROR) && !isCutOff(peer)) total.issue(-value);
  }

  /** Something was refused: the region is gone, and so is its task; or the engine thread. @param {Peer} peer @param {Result} result */
  function refused(peer, result) {
    if (result === ERROR && !isFrail) peer.isShut = true;
  }

  /** Draws a ticket: each is higher than the one before. @param {Peer} peer */
  function draw(peer) {
    const { to, remote } = peer;
    const key = `ticket ${peer.seat}`;
    if (remote === undefined || local === undefined || peer.isShut || busy.has(key)) return;
    const sum = book.sum(peer.ordinal, 1);
    const resultOffset = peer.seat * FETCHED;
    busy.add(key);
    const done = once(
      "a ticket",
      (result) => {
        busy.delete(key);
        ended(peer, sum, 1, result);
        if (result !== SUCCESS) return;
        const ticket = /** @type {number} */ (
          new Int32Array(local.bytes.buffer, local.bytes.byteOffset + resultOffset, 1)[0]
        );
        if (ticket <= peer.ticket) fail("sums", `ticket ${ticket} of endpoint ${to}, after ${peer.ticket}`);
        peer.ticket = ticket;
      },
      peer,
    );
    sum.issue(1);
    const fetch = { operation: /** @type {const} */ ("fetch-add"), value: 1, result: local, resultOffset };
    if (begins(peer, () => context.rmw({ to, remote, remoteOffset: BOOTSTRAP, ...fetch, onDone: done.call }))) return;
    sum.issue(-1);
    done.refused();
    busy.delete(key);
  }

  /** Any operation on the word that is ours alone. @param {Peer} peer */
  function change(peer) {
    const { to, remote, word } = peer;
    const key = `word ${peer.seat}`;
    if (remote === undefined || local === undefined || peer.isShut || busy.has(key)) return;
    const verb = word === undefined ? "set" : /** @type {Verb} */ (VERBS[below(VERBS.length)]);
    const value = BigInt.asIntN(64, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32)));
    const fetches = word !== undefined && below(2) === 0;
    const compares = word !== undefined && below(2) === 0;
    const test = compares ? (below(2) === 0 ? /** @type {bigint} */ (word) : value) : undefined;
    const operation = /** @type {import("pamir").RmwOperation} */ (
      `${fetches ? "fetch-" : ""}${compares ? "compare-" : ""}${verb}`
    );
    const resultOffset = peer.seat * FETCHED + 8;
    const remoteOffset = WORDS + 8 * self;
    busy.add(key);
    const done = once(
      "a word",
      (result) => {
        busy.delete(key);
        refused(peer, result);
        peer.word = undefined;
        if (result !== SUCCESS) return;
        if (fetches) {
          const old = new BigInt64Array(local.bytes.buffer, local.bytes.byteOffset + resultOffset, 1)[0];
          if (old !== word) fail("sums", `the word of endpoint ${to} was ${old}, not ${word}`);
        }
        peer.word = test !== undefined && test !== word ? word : changed(verb, word ?? 0n, value);
      },
      peer,
    );
    const begin = () =>
      context.rmw({
        to,
        remote,
        remoteOffset,
        operation,
        type: "i64",
        value,
        ...(test === undefined ? {} : { test }),
        ...(fetches ? { result: local, resultOffset } : {}),
        onDone: done.call,
      });
    if (begins(peer, begin)) return;
    done.refused();
    busy.delete(key);
  }

  /** @param {Verb} verb @param {bigint} old @param {bigint} value */
  function changed(verb, old, value) {
    const all = { set: value, add: old + value, or: old | value, and: old & value, xor: old ^ value };
    return BigInt.asIntN(64, all[verb]);
  }

  /** A wait of any kind, that ends by itself, or by its timeout or signal. @param {Peer} peer */
  function wait(peer) {
    if (waits >= WAITS_MAX) return;
    const options = below(2) === 0 ? { timeout: below(30) } : { signal: abortedSoon() };
    const codes = [...ENDINGS, "PAMIR_CLOSED"];
    const kind = below(5);
    if (kind === 0) settles("progress()", context.progress(options), codes);
    else if (kind === 1) settles("drain()", context.drain(options), codes);
    else if (kind === 2) settles("flush()", context.flush(options), [...codes, "PAMIR_STALE", "PAMIR_SHUTDOWN"]);
    else if (kind === 3) settles("whenEnded()", context.whenEnded(peer.to, options), codes);
    else {
      const ends = [...codes, "PAMIR_SHUTDOWN", ...(isTight ? ["PAMIR_NO_MEMORY"] : [])];
      settles("whenRoom()", context.whenRoom(peer.to, below(4000), options), ends);
    }
  }

  /** @param {Peer} peer */
  function whenRoom(peer) {
    const done = once(
      "onRoom",
      (result) => {
        if (result !== SUCCESS && result !== SHUTDOWN && !(result === ENOMEM && isTight))
          fail("others", `onRoom got ${result}`);
      },
      peer,
    );
    context.whenRoom(peer.to, below(4000), done.call);
  }

  /** @param {Peer} peer */
  function purge(peer) {
    if (peer.to === context.endpoint || peer.reserved !== undefined || below(8) > 0) return;
    try {
      if (below(4) > 0) context.purge([peer.to]);
      else accepted(peer, context.resume([peer.to]), "resume()");
    } catch (error) {
      if (!/under way/.test(String(error))) throw error;
    }
  }

  function post() {
    let rounds = below(4);
    const done = once("posted work", () => {});
    context.post(() => {
      if (rounds-- > 0) return EAGAIN;
      done.call(undefined, SUCCESS);
      return SUCCESS;
    });
  }

  /** All kinds of operation, by the name by which a round has them. @type {Record<import("./draw.js").Operation, (peer: Peer) => void>} */
  const operations = {
    immediate: (peer) => sendImmediate(peer, DATA, true),
    now: (peer) => sendImmediate(peer, DATA, false),
    send: (peer) => send(peer, DATA),
    reserve,
    offer,
    stream: (peer) => (below(2) === 0 ? send(peer, STREAM) : sendImmediate(peer, STREAM, below(2) === 0)),
    call: (peer) => call(peer, CALL),
    streamCall: (peer) => call(peer, STREAM_CALL),
    transfer,
    add,
    draw,
    change,
    whenRoom,
    wait,
    purge,
    post,
  };
  const wanted = round.operations.map((operation) => operations[operation]);

  /** @param {Peer} peer */
  function greet(peer) {
    if (peer.isGreeted || exposed === undefined) return;
    const result = context.sendImmediate(peer.to, HELLO, null, Float64Array.of(exposed.handle, ownSeat), false);
    peer.isGreeted = accepted(peer, result, "the greeting");
  }

  /** Whether nothing is under way any more; begins what has to follow on what is. */
  function settle() {
    for (const peer of peers.values()) {
      if (peer.reserved !== undefined) end(peer);
      if (peer.state !== "idle") transfer(peer);
    }
    const isIdle = [...peers.values()].every(({ state }) => state === "idle");
    if (pending.size > 0 || calls > 0 || !isIdle || !context.drained) return false;
    for (const { done, value } of unheard.splice(0)) done(value);
    return true;
  }

  /** Those that are left at the end, this one included, and the others. */
  const others = () => {
    for (let task = 0; task < client.size; task++) for (let of = 0; of < contexts; of++) peerOf(task, of);
    const all = [...peers.values()];
    return { left: all.filter(({ task }) => book.isLeft(task)), ended: all.filter(({ task }) => !book.isLeft(task)) };
  };

  return {
    context,
    settle,
    operate() {
      // Mostly to those who live: the first, and those who have come last.
      const last = client.size - 1;
      const kind = below(8);
      const doomed = Math.min(round.tasks, last + 1) - round.survivors;
      const isLast = kind > 4 && doomed > 0;
      const task = kind === 0 ? below(last + 1) : isLast ? last - below(doomed) : below(round.survivors);
      const peer = peerOf(task, below(contexts));
      book.count("operations");
      try {
        greet(peer);
        if (peer.reserved !== undefined && below(4) === 0) end(peer);
        /** @type {(peer: Peer) => void} */ (wanted[below(wanted.length)])(peer);
      } catch (error) {
        fail("others", `${/** @type {Error} */ (error).stack}`);
      }
    },
    /** Begins to read the stream. */
    listen() {
      stream ??= read();
    },
    /** All that was sent is out: so much has to arrive, whatever becomes of this task. */
    allOut() {
      for (const peer of peers.values()) {
        if (peer.isShut) continue;
        for (const kind of [DATA, STREAM]) isOut(peer, kind, /** @type {number} */ (peer.next[kind]) - 1);
      }
    },
    /** Tells those that are left how much they were sent; whether they all have heard, and have told this one. */
    announce() {
      const { left, ended: dead } = others();
      for (const peer of left) {
        if (peer.isTold) continue;
        const [data, stream] = [peer.next[DATA], peer.next[STREAM]].map(Number);
        const last = Int32Array.of(Number(data), Number(stream), peer.given, peer.unsure);
        peer.isTold = accepted(peer, context.sendImmediate(peer.to, END, null, last, false), "the last of it");
      }
      return (
        left.every(({ isTold, announced }) => isTold && announced !== undefined) && dead.every(({ isGone }) => isGone)
      );
    },
    /** Whether all that there is to come has come out of the streams. */
    hasAll() {
      const due = (/** @type {Peer} */ { ordinal, announced }) =>
        announced?.[1] ?? book.committed(ordinal, self, STREAM);
      return [...peers.values()].every((peer) => {
        return deliveries.next(STREAM, peer.ordinal) >= due(peer);
      });
    },
    /** What has not come by now does not come. */
    check() {
      for (const { ordinal, announced = [], task, isShut, to, taken, broken } of peers.values()) {
        const given = announced[2] ?? taken;
        if (taken + broken < given) fail("lost", `${given - taken - broken} of ${given} offers from ${to}`);
        if (taken > given + (announced[3] ?? 0)) fail("repeated", `${taken} offers from ${to}, who knows of ${given}`);

        deliveries.due(STREAM, ordinal, announced[1] ?? book.committed(ordinal, self, STREAM));
        for (const kind of [DATA, STREAM]) deliveries.close(kind, ordinal);
        if (isShut && book.isLeft(task)) fail("others", `endpoint ${to} came to SHUTDOWN, and goes on`);
      }
      if (exposed === undefined) return;
      const there = new Int32Array(exposed.bytes.buffer, exposed.bytes.byteOffset, 2);
      for (const [word, value] of there.entries()) {
        const sum = book.sum(self, word);
        if (value < sum.least() || value > sum.most()) {
          fail("sums", `word ${word} is ${value}, not ${sum.least()} to ${sum.most()}`);
        }
      }
    },
    /** What is under way, in words. */
    underWay() {
      const { left, ended: dead } = others();
      const silent = left.filter(({ announced }) => announced === undefined).map(({ to }) => to);
      const living = dead.filter(({ isGone }) => !isGone).map(({ to }) => to);
      const some = [...pending].slice(0, 6).join(", ");
      return `endpoint ${name}: pending ${pending.size} (${some}), drained ${context.drained}, no END of [${silent}], no end of [${living}]`;
    },
    /** Gives back all that it holds of the heap; whether it has. */
    release() {
      for (const region of [exposed, local, offered, into]) region?.close();
      leaving.abort();
      return (
        context.purge(
          others()
            .left.map(({ to }) => to)
            .filter((to) => to !== context.endpoint),
        ) === SUCCESS
      );
    },
    /** When its reader has left. */
    left: () => stream ?? Promise.resolve(),
  };
}

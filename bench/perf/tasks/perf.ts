// The task of `pamir perf`: what is measured, written as a user of the package would write it. Task 0 leads; in am_fan
// it receives, and all others send.
import {
  attach,
  type Client,
  type Context,
  type Endpoint,
  type Message,
  SEND_IMMEDIATE_MAX,
  type SendParameters,
  SUCCESS,
} from "pamir";
import { CollectionCounter, midmean, now, pinThread, RateMeter, Stopwatch, touch } from "../measure.js";
import {
  BATCH,
  type Figures,
  LINK_WORK,
  meet,
  type PerfWork,
  placesOf,
  WINDOW,
  windowOf,
  writeResults,
} from "../work.js";

const DATA = 1;
const ANSWER = 2;
const WARM = 3;
const STOP = 4;
/** Idle looks in one call while an answer is awaited. */
const ROUNDS = 1000;
/** Calls that don't leave the thread, timed together. */
const CALL_BATCH = 1000;

/** Bytes of the longest message that is sent without a callback. */
const WHOLE_MAX = 65_536;

/** Puts before the fence of fence_many. */
const PUTS_BEFORE_FENCE = 100_000;
const FENCES_TO_WARM = 50_000;
/**
 * Messages of rndv_bw that go before those that are timed: what V8 compiles for a message is compiled then. Of 16 MiB, a
 * second's 1,400 are too few for that, and on two processors every compilation stops one of the two threads, and so both.
 */
const RNDV_TO_WARM = 20_000;
const RNDV_BYTES_TO_WARM = 4096;
/** Bytes of all buffers of put_touch_bw. */
const TOUCH_BYTES = 1024 * 1024;
/** A put of so many bytes without callbacks, with nothing before it, is there when put() returns. */
const DONE_AT_ONCE = 262144;

/** Whether each task has a node of its own: its agent needs a processor too, so that no wait spins for ever. */
const IS_LINKED = process.env[LINK_WORK] !== undefined;

/** Waits of a task over a link, which leave its processor to the agent meanwhile, or to the event loop. */
let until = async (context: Context, isOver: () => boolean): Promise<void> => {
  context.advanceUntil(isOver);
};
const awaited: typeof until = async (context, isOver) => {
  while (!isOver()) await context.progress();
};

/** Sends over a link, once there is room: that is no event for progress(), but whenRoom() awaits it. */
async function sent(context: Context, peer: Endpoint, { bytes }: PerfWork, send: () => boolean): Promise<void> {
  if (until === awaited && bytes <= WHOLE_MAX) while (!send()) await context.whenRoom(peer, bytes);
  else await until(context, send);
}

let sink = 0;

/** A sender of one payload to one endpoint. */
function outlet(context: Context, to: Endpoint, bytes: number): () => boolean {
  const payload = new Uint8Array(bytes).fill(1);
  if (bytes <= SEND_IMMEDIATE_MAX) return () => context.sendImmediate(to, DATA, null, payload, false) === SUCCESS;
  // One object for every call. With onLocal nothing is copied into the pending queue; without a place in it a message
  // of several packets could not be begun.
  const whole = { to, dispatch: DATA, payload, queue: false };
  if (bytes <= WHOLE_MAX) return () => context.send(whole) === SUCCESS;
  let underWay = 0;
  const parameters = { to, dispatch: DATA, payload, onLocal: () => underWay-- };
  return () => {
    if (underWay >= 4) return false;
    underWay++;
    context.send(parameters);
    return true;
  };
}

/** A handler that touches each message and then calls `next`, for messages that arrive whole or in packets. */
function inlet(bytes: number, next: (origin: Endpoint) => void): (message: Message) => void {
  const destination = new Uint8Array(bytes);
  return (message) => {
    if (message.immediate) {
      sink += touch(message.bytes, message.payloadOffset, message.payloadBytes);
      next(message.origin);
      return;
    }
    const { origin } = message;
    message.receive(destination, () => {
      sink += touch(destination, 0, bytes);
      next(origin);
    });
  };
}

async function latencyLeader(context: Context, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const { bytes, test } = work;
  const parked = test === "wake_lat" || IS_LINKED;
  const batch = parked ? 1 : bytes > 4096 ? 4 : BATCH;
  const send = outlet(context, peer, bytes);
  let left = batch;
  let over = false;
  const watch = new Stopwatch(work, 2 * batch);
  const answered = inlet(bytes, () => {
    if (--left === 0) {
      left = batch;
      over = !watch.lap();
    }
    if (!over) send();
  });
  context.dispatch(DATA, answered);
  send();
  if (parked) await until(context, () => over);
  else while (!over) context.advance(ROUNDS);
  return watch.figures();
}

async function latencyFollower(context: Context, peer: Endpoint, { bytes, test }: PerfWork): Promise<void> {
  const send = outlet(context, peer, bytes);
  let over = false;
  context.dispatch(
    DATA,
    inlet(bytes, () => send()),
  );
  context.dispatch(STOP, () => {
    over = true;
  });
  if (test === "wake_lat" || IS_LINKED) await until(context, () => over);
  else while (!over) context.advance(ROUNDS);
}

async function rateLeader(
  context: Context,
  peer: Endpoint,
  work: PerfWork,
  collections: CollectionCounter,
): Promise<Figures> {
  const window = windowOf(work);
  const send = outlet(context, peer, work.bytes);
  let answers = 0;
  context.dispatch(ANSWER, () => answers++);
  // With more tasks than cores, a wait that never sleeps keeps the others from running.
  const parked = work.test === "am_fan" || IS_LINKED;
  const meter = new RateMeter(work);
  meter.onWarm = () => {
    collections.begin();
    context.sendImmediate(peer, WARM);
  };
  let windows = 0;
  const answered = () => answers === windows;
  do {
    for (let i = 0; i < window; i++) {
      if (send()) continue;
      if (IS_LINKED) await sent(context, peer, work, send);
      else while (!send()) context.advance();
    }
    windows++;
    if (parked) await until(context, answered);
    else while (answers !== windows) context.advance(ROUNDS);
  } while (meter.window(window));
  collections.end();
  return meter.figures();
}

async function rateFollower(
  context: Context,
  client: Client,
  work: PerfWork,
  collections: CollectionCounter,
): Promise<void> {
  const window = windowOf(work);
  const got = new Uint32Array(client.size);
  let leaders = work.test === "am_fan" ? client.size - 1 : 1;
  // Every task sends from its context 0, whose endpoint is the number of the task.
  const handler = inlet(work.bytes, (task) => {
    if (++(got as Uint32Array & number[])[task] !== window) return;
    got[task] = 0;
    context.sendImmediate(task, ANSWER);
  });
  context.dispatch(DATA, handler);
  context.dispatch(WARM, () => collections.begin());
  context.dispatch(STOP, () => leaders--);
  if (work.test === "am_fan" || IS_LINKED) await until(context, () => leaders === 0);
  else while (leaders > 0) context.advance(ROUNDS);
  collections.end();
}

/** With a peer that has sent something and is silent now: what a loop that polls pays in ordinary life. */
function idleLeader(context: Context, work: PerfWork): Figures {
  let heard = false;
  context.dispatch(DATA, () => {
    heard = true;
  });
  context.advanceUntil(() => heard);
  const watch = new Stopwatch(work, CALL_BATCH);
  do {
    for (let i = 0; i < CALL_BATCH; i++) context.advance();
  } while (watch.lap());
  return watch.figures();
}

function idleFollower(context: Context, peer: Endpoint): void {
  let over = false;
  context.dispatch(STOP, () => {
    over = true;
  });
  context.sendImmediate(peer, DATA);
  context.advanceUntil(() => over);
}

const isOneSided = ({ test }: PerfWork): boolean => /^(put|get|rmw|fence)_/.test(test);

/** Tells the leader of its region, which has the size of one transfer, and sleeps. */
async function oneSidedFollower(context: Context, client: Client, peer: Endpoint, { bytes }: PerfWork): Promise<void> {
  const region = client.createRegion(Math.max(bytes, 8));
  region.bytes.fill(1);
  let over = false;
  context.dispatch(STOP, () => {
    over = true;
  });
  context.sendImmediate(peer, DATA, new Float64Array([region.handle]));
  await until(context, () => over);
}

/** A region of the size of one transfer, and what a transfer to or from the follower's takes. */
async function oneSided(context: Context, client: Client, peer: Endpoint, { bytes }: PerfWork) {
  const local = client.createRegion(Math.max(bytes, 8));
  local.bytes.fill(1);
  let remote = -1;
  context.dispatch(DATA, (message) => {
    remote = new Float64Array(message.header.slice().buffer)[0] as number;
  });
  await until(context, () => remote >= 0);
  return { to: peer, local, remote };
}

async function oneSidedLatency(context: Context, client: Client, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const given = await oneSided(context, client, peer, work);
  let done = false;
  const parameters = {
    ...given,
    bytes: work.bytes,
    onLocal: () => {
      done = true;
    },
  };
  const isPut = work.test === "put_lat";
  const watch = new Stopwatch(work, CALL_BATCH);
  do {
    for (let i = 0; i < CALL_BATCH; i++) {
      done = false;
      if (isPut) context.put(parameters);
      else context.get(parameters);
      while (!done) context.advance();
    }
  } while (watch.lap());
  return watch.figures();
}

async function rmwLatency(context: Context, client: Client, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const { to, local, remote } = await oneSided(context, client, peer, work);
  const parameters = { to, remote, operation: "fetch-add" as const, value: 1, result: local };
  const watch = new Stopwatch(work, CALL_BATCH);
  do {
    for (let i = 0; i < CALL_BATCH; i++) context.rmw(parameters);
  } while (watch.lap());
  sink += local.bytes[0] as number;
  return watch.figures();
}

async function oneSidedRate(context: Context, client: Client, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const parameters = { ...(await oneSided(context, client, peer, work)), bytes: work.bytes };
  const isPut = work.test === "put_bw";
  const meter = new RateMeter(work);
  let done = false;
  const fenced = () => {
    done = true;
  };
  const wait = async (isOver: () => boolean): Promise<void> => {
    if (work.isLinked) await until(context, isOver);
    else while (!isOver()) context.advance();
  };
  const start = () => (isPut ? context.put(parameters) : context.get(parameters)) === SUCCESS;
  do {
    for (let i = 0; i < WINDOW; i++) if (!start()) await wait(start);
    done = false;
    await wait(() => context.fence(peer, fenced) === SUCCESS);
    await wait(() => done);
  } while (meter.window());
  return meter.figures();
}

/** Puts, and then the time of a fence: less what the clock takes at the same place, found every other time. */
async function fenceLatency(context: Context, client: Client, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const parameters = { ...(await oneSided(context, client, peer, work)), bytes: work.bytes };
  const own = client.createRegion(Math.max(work.bytes, 8));
  const other = { ...parameters, to: context.endpoint, remote: own.handle };
  const puts = work.test === "fence_many" ? PUTS_BEFORE_FENCE : 1;
  const others = work.test === "fence_other" ? PUTS_BEFORE_FENCE - 1 : 0;
  let done = false;
  const fenced = () => {
    done = true;
  };
  const fence = (): void => {
    done = false;
    context.fence(peer, fenced);
    while (!done) context.advance();
  };
  // A fence comes too seldom here to be compiled by itself, and interpreted it takes 1.1 µs.
  for (let i = 0; i < FENCES_TO_WARM; i++) fence();
  const samples: [without: number[], fenced: number[]] = [[], []];
  const end = now() + work.seconds * 1e9;
  for (let round = 0; now() < end || round < 4; round++) {
    for (let i = 0; i < others; i++) context.put(other);
    for (let i = 0; i < puts; i++) context.put(parameters);
    const isFenced = round % 2 === 1;
    const start = now();
    if (isFenced) fence();
    (samples[isFenced ? 1 : 0] as number[]).push(now() - start);
  }
  return { p50_ns: midmean(samples[1]) - midmean(samples[0]) };
}

/**
 * Buffers of the target of put_touch_bw, a power of two from 4 to WINDOW: within that, together as large as the ring that
 * it is compared with.
 */
function buffersOf(bytes: number): number {
  return Math.min(WINDOW, Math.max(4, 2 ** Math.floor(Math.log2(TOUCH_BYTES / bytes))));
}

/** A message behind each put; the target gives the buffers back, some at a time. */
async function touchLeader(context: Context, client: Client, peer: Endpoint, work: PerfWork): Promise<Figures> {
  const given = await oneSided(context, client, peer, work);
  const parameters = { ...given, bytes: work.bytes, remoteOffset: 0 };
  const buffers = buffersOf(work.bytes);
  let free = buffers;
  let buffer = 0;
  context.dispatch(ANSWER, () => {
    free += buffers >>> 2;
  });
  const meter = new RateMeter(work);
  let done = true;
  const large = {
    ...parameters,
    onRemote: () => {
      done = true;
    },
  };
  const put = (): void => {
    // What is done when put() returns needs no callback.
    if (work.bytes <= DONE_AT_ONCE) {
      context.put(parameters);
      return;
    }
    large.remoteOffset = parameters.remoteOffset;
    done = false;
    context.put(large);
    while (!done) context.advance();
  };
  do {
    for (let i = 0; i < WINDOW; i++) {
      while (free === 0) context.advance(ROUNDS);
      parameters.remoteOffset = buffer * work.bytes;
      put();
      while (context.sendImmediate(peer, DATA, null, null, false) !== SUCCESS) context.advance();
      if (++buffer === buffers) buffer = 0;
      free--;
    }
    while (free !== buffers) context.advance(ROUNDS);
  } while (meter.window());
  return meter.figures();
}

function touchFollower(context: Context, client: Client, peer: Endpoint, { bytes }: PerfWork): void {
  const buffers = buffersOf(bytes);
  const region = client.createRegion(buffers * bytes);
  region.bytes.fill(1);
  let over = false;
  let buffer = 0;
  context.dispatch(DATA, () => {
    sink += touch(region.bytes, buffer * bytes, bytes);
    if (++buffer % (buffers >>> 2) === 0) context.sendImmediate(peer, ANSWER);
    if (buffer === buffers) buffer = 0;
  });
  context.dispatch(STOP, () => {
    over = true;
  });
  context.sendImmediate(peer, DATA, new Float64Array([region.handle]));
  while (!over) context.advance(ROUNDS);
}

/** Always as many under way as the window has; each is counted when its payload is free again. */
function rendezvousLeader(context: Context, client: Client, peer: Endpoint, work: PerfWork): Figures {
  const payloads = Array.from({ length: placesOf(work.bytes) }, () => client.createRegion(work.bytes).bytes.fill(1));
  let isReady = false;
  context.dispatch(ANSWER, () => {
    isReady = true;
  });
  context.advanceUntil(() => isReady);
  let underWay = 0;
  const messagesOf = (bytes: number) =>
    payloads.map((payload) => ({
      to: peer,
      dispatch: DATA,
      payload: payload.subarray(0, bytes),
      rendezvous: true,
      onLocal: () => underWay--,
    }));
  const sendAll = (messages: SendParameters[]): void => {
    for (const message of messages) {
      while (underWay === messages.length) context.advance(ROUNDS);
      underWay++;
      context.send(message);
    }
  };
  const short = messagesOf(RNDV_BYTES_TO_WARM);
  for (let sent = 0; sent < RNDV_TO_WARM; sent += short.length) sendAll(short);
  const messages = messagesOf(work.bytes);
  const meter = new RateMeter(work);
  do sendAll(messages);
  while (meter.window(messages.length));
  while (underWay > 0) context.advance(ROUNDS);
  return meter.figures();
}

function rendezvousFollower(context: Context, client: Client, peer: Endpoint, { bytes }: PerfWork): void {
  const places = Array.from({ length: placesOf(bytes) }, () => client.createRegion(bytes).bytes.fill(1));
  let next = 0;
  let over = false;
  context.dispatch(DATA, (message) => {
    message.receive(places[next++ % places.length] as Uint8Array);
  });
  context.dispatch(STOP, () => {
    over = true;
  });
  context.sendImmediate(peer, ANSWER);
  while (!over) context.advance(ROUNDS);
}

async function main(): Promise<void> {
  const client = await attach();
  const given = process.env[LINK_WORK];
  const work = given === undefined ? (client.args as PerfWork) : (JSON.parse(given) as PerfWork);
  const { task } = client;
  pinThread(work.cpus, task);
  // The agent of a node works within the waits of its task, if these can't block.
  if (!client.capabilities.blockingWaits) until = awaited;
  const context = client.createContext(work.test === "wake_lat" ? { spin: 0 } : {});
  const fan = work.test === "am_fan";
  const leads = fan ? task !== 0 : task === 0;
  const peer = client.endpoint(task === 0 ? 1 : 0);
  const rates = work.test === "am_rate" || work.test === "am_bw" || fan;
  const collections = new CollectionCounter();
  meet(work.barrier, client.size);
  let figures: Figures = {};
  if (rates && leads) figures = await rateLeader(context, peer, work, collections);
  else if (rates) await rateFollower(context, client, work, collections);
  else if (work.test === "put_touch_bw" && leads) figures = await touchLeader(context, client, peer, work);
  else if (work.test === "rndv_bw" && leads) figures = rendezvousLeader(context, client, peer, work);
  else if (work.test === "rndv_bw") rendezvousFollower(context, client, peer, work);
  else if (work.test === "put_touch_bw") touchFollower(context, client, peer, work);
  else if (isOneSided(work) && !leads) await oneSidedFollower(context, client, peer, work);
  else if (work.test === "rmw_lat") figures = await rmwLatency(context, client, peer, work);
  else if (work.test.startsWith("fence")) figures = await fenceLatency(context, client, peer, work);
  else if (isOneSided(work)) {
    const measure = work.test.endsWith("_lat") ? oneSidedLatency : oneSidedRate;
    figures = await measure(context, client, peer, work);
  } else if (work.test === "idle" && leads) figures = idleLeader(context, work);
  else if (work.test === "idle") idleFollower(context, peer);
  else if (leads) figures = await latencyLeader(context, peer, work);
  else await latencyFollower(context, peer, work);
  if (leads) {
    context.sendImmediate(peer, STOP);
    // What is still in the pending queue goes out before the client closes.
    if (IS_LINKED) await context.drain();
    else for (let i = 0; i < 100; i++) context.advance();
  }
  if (rates) figures.gcs = await collections.count();
  writeResults(work.results, task, figures);
  client.close();
  if (sink < 0) throw new Error("a sum of bytes is negative");
}

await main();

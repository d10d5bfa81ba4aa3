// @ts-check
// By pamir: task 1 copies blocks into a region of task 2, then both meet in barriers. The page is task 0.
import { attach, codecs, dispatchId } from "pamir";
import { BARRIERS, BLOCK_BYTES, MEASURED, REGION, TOOK, WARM_BARRIERS } from "./sizes.js";

/** Counter behind the block: blocks that have come; OVER: no more do. */
const OVER = -1;

const client = await attach();
const context = client.createContext();
const { milliseconds } = /** @type {{ milliseconds: number }} */ (client.args);
const { blockingWaits } = client.capabilities;
const leads = client.task === 1;
const peer = client.endpoint(3 - client.task);
const json = /** @type {import("pamir").Codec<any>} */ (codecs.json());
const told = (/** @type {number} */ id) => dispatchId(id, json);

const region = client.createRegion(BLOCK_BYTES + 64);
const { buffer, byteOffset } = region.bytes;
const counter = new Int32Array(buffer, byteOffset + BLOCK_BYTES, 1);
/** Handle of the other's region. @type {number | undefined} */
let remote;
let took = 0;
let isAlone = false;
context.whenEnded(peer, () => {
  isAlone = true;
});
context.dispatch(told(REGION), (/** @type {{ handle: number }} */ { handle }) => {
  remote = handle;
});
context.dispatch(TOOK, () => {
  took++;
});

/** @param {() => boolean} condition */
async function until(condition) {
  const isOver = () => isAlone || condition();
  if (blockingWaits) context.advanceUntil(isOver);
  else while (!isOver()) await context.progress();
  if (!condition()) throw new Error("the other worker has ended");
}

/** @param {number} bytes @param {number} value of the counter behind them */
function put(bytes, value) {
  const to = /** @type {number} */ (remote);
  const notify = /** @type {const} */ ({ remote: to, offset: BLOCK_BYTES, operation: "set", value });
  context.put({ to: peer, local: region, remote: to, bytes, notify });
}

/** Copies blocks for some time. @returns {Promise<number>} bytes a second */
async function copy() {
  const start = performance.now();
  let blocks = 0;
  while (performance.now() - start < milliseconds) {
    put(BLOCK_BYTES, ++blocks);
    await until(() => took === blocks);
  }
  const end = performance.now();
  put(8, OVER);
  return (1000 * blocks * BLOCK_BYTES) / (end - start);
}

/** Answers each block. */
async function take() {
  for (let seen = 0; ; ) {
    const isThere = () => Atomics.load(counter, 0) !== seen;
    if (blockingWaits) await until(isThere);
    else await context.waitWord(region, BLOCK_BYTES, isThere);
    seen = Atomics.load(counter, 0);
    if (seen === OVER) return 0;
    context.sendImmediate(peer, TOOK);
  }
}

/** @returns {Promise<number>} µs */
async function barriers() {
  const pair = await client.createGeometry([client.endpoint(1), client.endpoint(2)], { context });
  let start = 0;
  for (let i = -WARM_BARRIERS; i < BARRIERS; i++) {
    if (i === 0) start = performance.now();
    if (blockingWaits) pair.barrierSync();
    else await pair.barrier();
  }
  const end = performance.now();
  pair.close();
  return (1000 * (end - start)) / BARRIERS;
}

context.send({ to: peer, dispatch: told(REGION), payload: { handle: region.handle } });
await until(() => remote !== undefined);
const bytesPerSecond = await (leads ? copy() : take());
const barrierUs = await barriers();
if (leads) context.send({ to: client.endpoint(0), dispatch: told(MEASURED), payload: { bytesPerSecond, barrierUs } });
await client.close({ drain: true });

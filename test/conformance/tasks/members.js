// @ts-check
// What the members of a geometry do with what is built upon it: the tasks, and the test, which is one of them. Some of it
// runs by blocking forms, or by promises where members must not block.
import { EAGAIN, SHUTDOWN, SUCCESS } from "pamir";

/** Longer than any wait takes: a hang ends in a failure. */
const OPTIONS = { timeout: 60_000 };
const CELLS = 24;
const STEPS = 300;
const NUMBERS = 500;
const WORDS = 256;
const UPDATES = 3000;

/** @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(`it came to ${result}`);
}

/**
 * Cells move by one in each step, around the grid. Returns how many are wrong.
 * @param {import("pamir").Geometry} world
 */
export async function rotate(world, isBlocking = true) {
  const grid = await world.createGrid({ size: [CELLS], periodic: true, fields: 2, ...OPTIONS });
  const { count, first } = grid;
  const cells = count[0] ?? 0;
  for (let i = 0; i < cells; i++) grid.cells[grid.index(i)] = i + (first[0] ?? 0);
  for (let step = 0; step < STEPS; step++) {
    if (isBlocking) check(grid.exchangeSync(step % 2, OPTIONS));
    else await grid.exchange(step % 2, OPTIONS);
    const [now, next] = step % 2 === 0 ? grid.fields : [...grid.fields].reverse();
    if (now === undefined || next === undefined) throw new Error("no fields");
    for (let i = 0; i < cells; i++) next[grid.index(i)] = now[grid.index(i - 1)] ?? Number.NaN;
  }
  const wrong = Array.from({ length: cells }, (_, i) => i).filter((i) => {
    return grid.cells[grid.index(i)] !== (i + (first[0] ?? 0) + CELLS * STEPS - STEPS) % CELLS;
  });
  await grid.close(OPTIONS);
  return wrong.length;
}

/**
 * Each number is taken once. Returns how many were not.
 * @param {import("pamir").Geometry} world @param {boolean} striped
 */
export async function count(world, striped, isBlocking = true) {
  const counter = await world.createCounter({ limit: NUMBERS, striped, ...OPTIONS });
  const taken = new Int32Array(NUMBERS);
  const take = () => (isBlocking ? counter.nextSync(OPTIONS) : counter.next(OPTIONS));
  for (let next = await take(); next !== undefined; next = await take()) taken[next]++;
  const all = await world.allreduce({ send: taken, operation: "sum" }, OPTIONS);
  await counter.close(OPTIONS);
  return all.filter((times) => times !== 1).length;
}

/**
 * As HPCC RandomAccess: what is done twice by xor is as it was.
 * @param {import("pamir").Geometry} world
 */
export async function scatterUpdates(world, isBlocking = true) {
  const region = await world.shareRegion(4 * WORDS, OPTIONS);
  const table = region.view(Uint32Array);
  const updates = await world.createAggregator({ type: Uint32Array, region, operation: "xor", delay: 1, ...OPTIONS });
  let sums = 0;
  for (let round = 0; round < 2; round++) {
    let seed = 1 + world.rank;
    for (let update = 0; update < UPDATES; update++) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const at = (seed >>> 8) % (WORDS * world.size);
      const to = Math.floor(at / WORDS);
      let result = updates.update(to, at % WORDS, seed);
      while (result === EAGAIN) {
        if (isBlocking) check(updates.whenRoomSync(to, OPTIONS));
        else await updates.whenRoom(to, OPTIONS);
        result = updates.update(to, at % WORDS, seed);
      }
      check(result);
    }
    if (round === 0 && isBlocking) check(updates.finishSync(OPTIONS));
    else await updates.finish(OPTIONS);
    if (round === 0) sums = table.filter((word) => word !== 0).length;
  }
  updates.close();
  const wrong = table.filter((word) => word !== 0).length;
  await region.close(OPTIONS);
  return { changed: sums, wrong };
}

/**
 * Exchanges until it fails; the last member ends after some of them.
 * @param {import("pamir").Geometry} world
 */
export async function exchangeUntilDeath(world) {
  const grid = await world.createGrid({ size: [4 * world.size, 20], processes: [world.size, 1], ...OPTIONS });
  const late = await world.createAggregator({ type: Int32Array, onItems: () => {}, ...OPTIONS });
  const counter = await world.createCounter({ root: world.size - 1, ...OPTIONS });
  for (let step = 0; ; step++) {
    if (step === 5 && world.rank === world.size - 1) throw new Error("it dies here");
    const result = grid.exchangeSync(0, OPTIONS);
    if (result === SUCCESS) continue;
    const errors = [result === SHUTDOWN ? "PAMIR_SHUTDOWN" : `${result}`];
    for (const call of [
      () => late.finish(OPTIONS),
      () => counter.next(OPTIONS),
      () => grid.exchange(0, OPTIONS),
      () => grid.close(OPTIONS),
    ]) {
      errors.push(await call().then(String, (error) => error.code));
    }
    return { step, errors };
  }
}

/**
 * Two geometries of two contexts of each task, told apart by their ids. All members begin active messages at once.
 * @param {import("pamir").Client} client
 * @param {readonly import("pamir").Context[]} contexts
 */
export async function askAcross(client, contexts) {
  const tasks = Array.from({ length: client.size }, (_, task) => task);
  const endpoints = tasks.flatMap((task) => contexts.map((_, one) => client.endpoint(task, one)));
  const make = (/** @type {number} */ id, /** @type {import("pamir").Context} */ context) =>
    client.createGeometry(endpoints, { context, id, ...OPTIONS });
  const geometries = await Promise.all([7, 8].flatMap((id) => contexts.map((context) => make(id, context))));
  for (const [place, { rank, dispatch }] of geometries.entries()) {
    const id = place < contexts.length ? 7 : 8;
    dispatch.call(geometries[place], 1, () => Int32Array.of(rank, id));
  }
  const sums = geometries.map(async (geometry, place) => {
    const send = Int32Array.of(geometry.rank, place < contexts.length ? 7 : 8);
    const sum = await geometry.amReduce({ dispatch: 1, send, operation: "sum" }, OPTIONS);
    await geometry.barrier(OPTIONS);
    return [...sum];
  });
  return Promise.all(sums);
}

/**
 * Each member in turn begins active messages, and waits until it has the answers.
 * @param {import("pamir").Geometry} world
 */
export async function askInTurn(world, isBlocking = true) {
  const { rank, size } = world;
  const heard = { payload: 0 };
  world.dispatch(1, ({ payload }) => {
    heard.payload += payload[0] ?? 0;
    return Int32Array.of(rank);
  });
  const receive = new Int32Array(size);
  for (let root = 0; root < size; root++) {
    if (rank === root) {
      const payload = { dispatch: 1, payload: Uint8Array.of(1) };
      const blocks = { dispatch: 1, send: new Uint8Array(size).fill(10) };
      const numbers = { dispatch: 1, send: Int32Array.of(rank), receive };
      if (isBlocking) {
        check(world.amBroadcastSync(payload, OPTIONS));
        check(world.amScatterSync(blocks, OPTIONS));
        check(world.amGatherSync(numbers, OPTIONS));
      } else {
        await world.amBroadcast(payload, OPTIONS);
        await world.amScatter(blocks, OPTIONS);
        await world.amGather(numbers, OPTIONS);
      }
    }
    if (isBlocking) check(world.barrierSync(OPTIONS));
    else await world.barrier(OPTIONS);
  }
  return { heard: heard.payload, gathered: [...receive] };
}

/**
 * Those of even ranks, and those of odd ones, each in the reverse order. Returns the ranks of this member's half.
 * @param {import("pamir").Geometry} world
 */
export async function halve(world) {
  const half = await world.split(world.rank % 2, -world.rank, OPTIONS);
  const ranks = await half.allgather({ send: Int32Array.of(world.rank) }, OPTIONS);
  half.close();
  return [...ranks];
}

/**
 * Makes geometries by calls that block: of all tasks but their order, of the halves, and of those that are left once the last
 * rank has closed. Returns what this member has got.
 * @param {import("pamir").Client} client
 */
export async function makeBlocking(client) {
  let refused = "";
  try {
    client.createGeometrySync([client.endpoint(client.task)], OPTIONS).close();
  } catch (error) {
    refused = /** @type {import("pamir").PamiError} */ (error).code;
  }
  await client.world(OPTIONS);
  const tasks = Array.from({ length: client.size }, (_, task) => client.size - 1 - task);
  const all = client.createGeometrySync(tasks, { id: 5, ...OPTIONS });
  const half = all.splitSync(all.rank % 2, -all.rank, OPTIONS);
  const receive = new Int32Array(half.size);
  check(half.allgatherSync({ send: Int32Array.of(all.rank), receive }, OPTIONS));
  const none = all.splitSync(undefined, 0, OPTIONS);
  const told = { refused, rank: all.rank, half: [...receive], none: none === undefined };
  if (all.rank === all.size - 1) {
    all.close();
    return { ...told, left: 0 };
  }
  const left = all.shrinkSync(OPTIONS);
  const sum = new Int32Array(1);
  check(left.allreduceSync({ send: Int32Array.of(1), receive: sum, operation: "sum" }, OPTIONS));
  return { ...told, left: sum[0] };
}

// The whole API over a simulated network: random operations of tasks on nodes of one or several, with faults that are drawn
// from the seed. Nothing waits for real time, so a seed replays a run.

import type { MemRegion } from "../../src/core/region.js";
import { CANCELED, EAGAIN, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Client } from "../../src/pami/client.js";
import type { Context } from "../../src/pami/context.js";
import { bytesFrom } from "../support/bytes.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";

const MESSAGE = 1;
const SIZES = [0, 8, 100, 1000, 5000, 40_000, 150_000];
/** Bytes that each origin has in each region for its puts. Before them, the region has a word that all tasks add to. */
const PLACE = 20_000;
const WORD = 64;
/** Virtual microseconds after the last fault in which all operations end. */
const QUIET_WITHIN = 60e6;
const ROUND_MICROSECONDS = 1000;

/** The result of a run. */
export interface Whole {
  /** The drawn parameters. */
  readonly drawn: Readonly<Record<string, unknown>>;
  readonly counts: {
    /** Operations that were tried, and messages that arrived. */
    readonly operations: number;
    readonly messages: number;
    /** Virtual microseconds from the last fault until all operations had ended. */
    readonly quietAfter: number;
  };
  readonly wrong: readonly string[];
}

/** A task, and its state. */
interface Party {
  readonly task: number;
  readonly client: Client;
  readonly contexts: readonly Context[];
  readonly region: MemRegion;
  readonly local: MemRegion;
  /** By target task: the value of all bytes of its last put there.  */
  readonly put: number[];
  /** The sum that it added to the words of others, by task. */
  readonly added: number[];
  /** Operations of which it was told, and that it waits for. */
  open: number;
}

/** A region; undefined: there is no memory for one. */
function regionOf(client: Client, bytes: number): MemRegion | undefined {
  try {
    return client.createRegion(bytes);
  } catch {
    return undefined;
  }
}

/** @param nodes undefined: drawn from the seed */
export function whole(seed: number, nodes?: number): Whole {
  const random = randomOf(seed);
  const often = (most: number): number => (random(2) === 0 ? 0 : (most * random(1000)) / 1000);
  const [tasks, contexts] = [nodes ?? 2 + random(5), 1 + random(2)];
  const faults = { loss: often(0.1), duplicate: often(0.1), reorder: often(0.2), reorderMicroseconds: 10 ** random(5) };
  const shape = {
    faults,
    packetBytes: [256, 1400, 9000, 65504][random(4)] as number,
    isFaithful: faults.loss + faults.duplicate + faults.reorder === 0 && random(2) === 0,
    hopMicroseconds: 1 + random(random(2) === 0 ? 10 : 500),
    linkPackets: random(3) === 0 ? 1 + random(8) : undefined,
    initiators: 1 + random(4),
    responders: 1 + random(8),
    txQueueBytes: 1000 * 10 ** random(4),
  };
  const limits = {
    tasks,
    contexts,
    laneBytes: 256 << random(6),
    heapBytes: 2 ** 23,
    regions: 64,
    fifos: 1 + random(2),
    slots: 4 << random(5),
  };
  const key = random(4) === 0 ? bytesFrom(32, () => random(256)) : undefined;
  const kernels = ([["wasm"], ["ts"], ["wasm", "ts"]] as const)[random(3)] as readonly ("wasm" | "ts")[];
  const dies = random(3) === 0 && tasks > 2 ? random(tasks) : -1;
  const tasksPerNode = nodes === undefined ? ([1, 2, 4][random(3)] as number) : 1;
  const takesNode = random(2) === 0;
  const job = new NetworkedJob({ seed: seed + 1, limits, kernels, key, tasksPerNode, ...shape });
  const { network } = job;
  const wrong: string[] = [];
  const sent = new Map<string, number>();
  const came = new Map<string, number>();
  /** Messages that their sender may have given up before they were offered. */
  const mayMiss = new Set<string>();
  let messages = 0;
  /** The next message that is to come of a pair, up to `most`, as far as none is to be missed. */
  function nextOf(key: string, most: number): number {
    let next = came.get(key) ?? 0;
    while (next < most && mayMiss.has(`${key}: ${next}`)) next++;
    return next;
  }
  /** Of those that may give up what they send or receive. */
  const givenUp: { readonly abort: AbortController; readonly task: number }[] = [];
  let operations = 0;

  const parties = job.tasks.map(({ client }, task): Party => {
    const region = client.createRegion(WORD + tasks * PLACE);
    region.bytes.fill(0);
    const made = Array.from({ length: contexts }, () => client.createContext());
    made.forEach((context, place) => {
      context.dispatch(MESSAGE, (message) => {
        const [from, number] = new Int32Array(message.header.slice().buffer) as unknown as [number, number];
        const key = `${from}>${task * contexts + place}`;
        const expected = nextOf(key, number);
        came.set(key, expected + 1);
        messages++;
        if (number !== expected) wrong.push(`${key}: ${number} instead of ${expected}`);
        const check = (bytes: Uint8Array): void => {
          if (bytes.length !== sizeOf(number) || bytes.some((byte, i) => byte !== ((number + i) & 255)))
            wrong.push(`${key}: bytes of ${number}`);
        };
        if (message.immediate) return void check(message.payload);
        const inRegion = random(2) === 0 ? regionOf(client, message.payloadBytes) : undefined;
        const into = inRegion?.bytes ?? new Uint8Array(message.payloadBytes);
        const abort = random(10) === 0 ? new AbortController() : undefined;
        if (abort !== undefined) givenUp.push({ abort, task });
        const pace = random(2) === 0 ? { fragment: 64 << random(12), depth: 1 + random(4) } : {};
        const done = (_: unknown, result: number): void => {
          if (result === SUCCESS) check(into);
          else if (result !== SHUTDOWN && result !== CANCELED) wrong.push(`${key}: ${number} came to ${result}`);
          inRegion?.close();
        };
        message.receive(into, done, undefined, { ...pace, ...(abort && { signal: abort.signal }) });
      });
    });
    const local = client.createRegion(PLACE);
    const [put, added] = [new Array<number>(tasks).fill(0), new Array<number>(tasks).fill(0)];
    return { task, client, contexts: made, region, local, put, added, open: 0 };
  });

  /** Gives some of those up that may be. */
  function giveUp(): void {
    for (const one of givenUp.splice(0)) {
      if (random(2) === 0) givenUp.push(one);
      else if (!isDead(one.task)) one.abort.abort();
    }
  }

  const isDead = (task: number): boolean => job.tasks[task]?.isDown === true;

  /** What an operation to a task may come to. */
  function over(party: Party, to: number, what: string, result: number): void {
    party.open--;
    // Endpoints share injection FIFOs, and so what a fence tells of a task that has ended.
    const mayBeOver = isDead(to) || (what === "fence" && dies >= 0 && isDead(dies));
    if (result === SUCCESS || (result === SHUTDOWN && mayBeOver) || (result === CANCELED && what === "offer")) return;
    wrong.push(`${what} to ${to} came to ${result}`);
  }

  function send(party: Party, to: number): void {
    const [place, there] = [random(contexts), random(contexts)];
    const [from, target] = [party.task * contexts + place, to * contexts + there];
    const key = `${from}>${target}`;
    const number = sent.get(key) ?? 0;
    const payload = bytesFrom(sizeOf(number), (i) => number + i);
    const context = party.contexts[place] as Context;
    const isOffered = payload.length > 0 && random(2) === 0;
    const tells = isOffered || random(2) === 0;
    const onRemote = (_: unknown, result: number): void => over(party, to, isOffered ? "offer" : "send", result);
    const region = isOffered && random(2) === 0 ? regionOf(party.client, payload.length) : undefined;
    region?.bytes.set(payload);
    const abort = isOffered && random(10) === 0 ? new AbortController() : undefined;
    if (abort !== undefined) givenUp.push({ abort, task: party.task });
    const onLocal = (): void => region?.close();
    const result = context.send({
      to: (parties[to] as Party).contexts[there]?.endpoint as never,
      dispatch: MESSAGE,
      header: Int32Array.of(from, number),
      payload: region?.bytes ?? payload,
      ...(tells && { onRemote }),
      ...(isOffered && { rendezvous: true, onLocal }),
      ...(abort && { signal: abort.signal }),
    });
    if (result !== SUCCESS) region?.close();
    // Its callbacks are called though it was not sent.
    if (tells && (result === SUCCESS || result === SHUTDOWN)) party.open++;
    if (result === SUCCESS) {
      sent.set(key, number + 1);
      if (abort !== undefined) mayMiss.add(`${key}: ${number}`);
    } else if (result !== EAGAIN && !(result === SHUTDOWN && isDead(to))) wrong.push(`send: ${result}`);
  }

  /** Puts its place of another's region, and fences: then that has what was put. */
  function put(party: Party, to: number): void {
    const context = party.contexts[0] as Context;
    const there = parties[to] as Party;
    // One at a time: what its local bytes are must not change before.
    if (party.open > 0) return;
    const number = ((party.put[to] as number) + 1) & 255;
    party.local.bytes.fill(number);
    const bytes = 1 + random(PLACE);
    const remoteOffset = WORD + party.task * PLACE;
    const toEndpoint = (there.contexts[0] as Context).endpoint;
    const given = { to: toEndpoint, local: party.local, remote: there.region.handle, remoteOffset, bytes };
    const result = context.put({ ...given, onRemote: (_, code) => over(party, to, "put", code) });
    if (result !== SUCCESS) {
      if (result !== EAGAIN && !(result === SHUTDOWN && isDead(to))) wrong.push(`put: ${result}`);
      return;
    }
    party.put[to] = number;
    party.open++;
    const fenced = (_: unknown, code: number): void => {
      over(party, to, "fence", code);
      if (code !== SUCCESS) return;
      const place = there.region.bytes.subarray(remoteOffset, remoteOffset + bytes);
      if (place.some((byte) => byte !== number))
        wrong.push(`fence ${party.task}>${to}: bytes of ${number} are not there`);
    };
    if (context.fence(toEndpoint, fenced) === SUCCESS) party.open++;
  }

  function get(party: Party, to: number): void {
    const there = parties[to] as Party;
    if (party.open > 0) return;
    const remoteOffset = WORD + party.task * PLACE;
    const given = { local: party.local, remote: there.region.handle, remoteOffset, bytes: 1 };
    const result = (party.contexts[0] as Context).get({
      to: (there.contexts[0] as Context).endpoint,
      ...given,
      onLocal: (_, code) => {
        over(party, to, "get", code);
        if (code === SUCCESS && party.local.bytes[0] !== party.put[to])
          wrong.push(`get ${party.task}<${to}: ${party.local.bytes[0]} instead of ${party.put[to]}`);
      },
    });
    if (result === SUCCESS) party.open++;
    else if (result !== EAGAIN && !(result === SHUTDOWN && isDead(to))) wrong.push(`get: ${result}`);
  }

  function add(party: Party, to: number): void {
    const there = parties[to] as Party;
    const value = random(100);
    const result = (party.contexts[0] as Context).rmw({
      to: (there.contexts[0] as Context).endpoint,
      remote: there.region.handle,
      operation: "add",
      value,
      onDone: (_, code) => over(party, to, "rmw", code),
    });
    if (result === SUCCESS) {
      party.open++;
      party.added[to] = (party.added[to] as number) + value;
    } else if (result !== EAGAIN && !(result === SHUTDOWN && isDead(to))) wrong.push(`rmw: ${result}`);
  }

  function sizeOf(number: number): number {
    return SIZES[(number * 5 + seed) % SIZES.length] as number;
  }

  const living = (): Party[] => parties.filter(({ task }) => !isDead(task));
  /** Virtual time passes, and all live tasks advance. */
  function round(): void {
    for (const { contexts: all } of living()) for (const context of all) context.advance();
    job.run(random(2) === 0 ? random(50) : ROUND_MICROSECONDS);
  }

  const steps = 150 + random(300);
  const diesAt = random(steps);
  for (let step = 0; step < steps; step++) {
    if (step === diesAt && dies >= 0 && takesNode) job.endNode(dies);
    else if (step === diesAt && dies >= 0) job.end(dies);
    const party = parties[random(tasks)] as Party;
    const to = random(tasks);
    if (!isDead(party.task)) {
      operations++;
      const what = random(10);
      if (what < 5) send(party, to);
      else if (what < 7) put(party, to);
      else if (what < 8) get(party, to);
      else add(party, to);
    }
    if (random(3) === 0) round();
    if (random(10) === 0) giveUp();
  }

  network.faults = { loss: 0, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
  const stopped = network.now;
  const isWhole = (): boolean =>
    living().every(({ task: from }) => living().every(({ task: to }) => pairIsWhole(from, to)));
  function pairIsWhole(from: number, to: number): boolean {
    for (let a = from * contexts; a < (from + 1) * contexts; a++) {
      for (let b = to * contexts; b < (to + 1) * contexts; b++) {
        const key = `${a}>${b}`;
        const count = sent.get(key) ?? 0;
        if (nextOf(key, count) !== count) return false;
      }
    }
    return true;
  }
  const isOver = (): boolean => isWhole() && living().every(({ open }) => open === 0);
  while (!isOver() && network.now - stopped < QUIET_WITHIN) round();
  const quietAfter = network.now - stopped;
  if (!isOver()) wrong.push(`not over: ${JSON.stringify(living().map(({ open }) => open))}, whole: ${isWhole()}`);
  for (const { task, region } of living()) {
    const word = new Int32Array(region.bytes.buffer, region.bytes.byteOffset, 1)[0] as number;
    const least = living().reduce((sum, { added }) => sum + (added[task] as number), 0);
    const most = parties.reduce((sum, { added }) => sum + (added[task] as number), 0);
    if (word < least || word > most) wrong.push(`the word of ${task} is ${word}, not ${least} … ${most}`);
  }
  // Nothing is left of it: no frame, no session, no byte of an arena that was not there at the beginning.
  for (const { client } of job.tasks.filter((_, task) => !isDead(task))) client.close();
  job.run(QUIET_WITHIN);
  for (const { task } of living()) {
    const { sessions, frames, arena } = job.tasks[task] as (typeof job.tasks)[0];
    const { initiators, txQueues, buffered } = sessions.inUse;
    const left = { ...frames.inUse, initiators, txQueues, buffered };
    if (Object.values(left).some((count) => count > 0)) wrong.push(`left over at ${task}: ${JSON.stringify(left)}`);
    if (arena.used !== job.arenaBytes) wrong.push(`${arena.used} bytes of the arena of ${task}, not ${job.arenaBytes}`);
    if (frames.wrong > 0) wrong.push(`${frames.wrong} frames of ${task} were wrong`);
  }
  return {
    drawn: { ...limits, ...shape, kernels, tasksPerNode, dies, takesNode, isSealed: key !== undefined },
    counts: { operations, messages, quietAfter: Math.round(quietAfter) },
    wrong,
  };
}

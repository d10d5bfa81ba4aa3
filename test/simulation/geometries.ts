// The members of a geometry in one thread, over a network that delivers messages of two members in order, all others in any
// order. Long messages are read when they are delivered. A member may end at any step: what it has sent may be lost from some
// message on, then those that watch it hear that it is gone.
import {
  COLLECTIVE_KIND_OFFSET,
  COLLECTIVE_NUMBER_OFFSET,
  COLLECTIVE_RANK_OFFSET,
  COLLECTIVE_SIGNATURE_OFFSET,
  COLLECTIVE_TAG_OFFSET,
} from "../../assembly/layout.js";
import { Unexpected } from "../../src/collective/active.js";
import { GeometryCore } from "../../src/collective/geometry-core.js";
import type { CollectiveOperation, Reducer } from "../../src/collective/operation.js";
import { Channel } from "../../src/collective/schedule/channel.js";
import { type Piece, Scratch } from "../../src/collective/scratch.js";
import { CompletionQueue } from "../../src/core/completion.js";
import { type Callback, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { RegionTable } from "../../src/memory/regions.js";
import type { Algorithm, Plan } from "./collectives.js";
import { differs, type Operation as Expected, operationOf } from "./collectives.js";
import { type Operator, randomBytes } from "./schedules.js";

type Random = (below: number) => number;

/** An operation that all members begin, each at its time. */
export interface Step {
  readonly plan: Plan;
  readonly algorithm: Algorithm;
  readonly operator: Operator;
  /** A member that calls it with other bytes than the others. */
  readonly odd?: number | undefined;
}

interface Message {
  readonly header: Uint8Array;
  /** A copy, or the sender's own bytes, until `onSent`. */
  readonly payload: Uint8Array;
  readonly onSent: Callback | undefined;
}

/** Gives back pieces with other bytes in them, and knows how many are used. At times it has none in the member's memory. */
class WatchedScratch extends Scratch {
  used = 0;
  readonly #random: Random;

  constructor(regions: RegionTable, random: Random) {
    super(regions);
    this.#random = random;
  }

  override take(bytes: number): Piece | undefined {
    return this.#random(4) === 0 ? undefined : super.take(bytes);
  }

  override takeAnywhere(bytes: number): Piece {
    this.used++;
    return super.takeAnywhere(bytes);
  }

  override giveBack(piece: Piece): void {
    this.used--;
    piece.bytes.fill(this.#random(256));
    super.giveBack(piece);
  }
}

class Party {
  readonly scratch: WatchedScratch;
  readonly core: GeometryCore;
  readonly completions = new CompletionQueue();
  readonly operations: CollectiveOperation[] = [];
  /** Members whose end it is to hear of, and has heard of. */
  readonly watched = new Set<number>();
  readonly gone = new Set<number>();
  readonly memory = new Uint8Array(2 ** 23);
  isEnded = false;
  #end = 0;

  constructor(rank: number, size: number, net: Network, random: Random, isChecked: boolean) {
    const create = (bytes: number) => {
      const place = this.memory.subarray(this.#end, this.#end + bytes);
      this.#end += bytes;
      if (place.length < bytes) throw new Error("the memory of a member is used up");
      return { bytes: place, close: () => {} };
    };
    this.scratch = new WatchedScratch({ create } as unknown as RegionTable, random);
    const sendOwn = (to: number, _: number, header: Uint8Array, payload?: Uint8Array, onSent?: Callback): Result =>
      net.send(rank, to, header, payload ?? new Uint8Array(0), onSent);
    const host = {
      channel: new Channel({ sendOwn, room: () => 1, whenRoom: () => {} }),
      scratch: this.scratch,
      completions: this.completions,
      unexpected: new Unexpected(),
      polling: () => {},
      isGone: (endpoint: number) => this.gone.has(endpoint),
      hasCertainlyEnded: () => false,
      isEndAwaited: () => false,
      watch: (endpoint: number) => void this.watched.add(endpoint),
      dropped: () => {},
      broken: () => {},
      regions: { hold: () => undefined },
      closedAt: () => {},
    };
    const ranks = Array.from({ length: size }, (_, member) => member);
    this.core = new GeometryCore(host, {
      id: 7,
      rank,
      endpoints: ranks,
      ids: ranks.map(() => 7),
      nodes: ranks.map(() => 0),
      isChecked,
      shared: undefined,
      table: undefined,
      release: () => {},
    });
  }
}

class Network {
  readonly parties: readonly Party[];
  readonly #lines = new Map<number, Message[]>();
  readonly #random: Random;
  readonly #size: number;

  constructor(size: number, random: Random, isChecked: boolean) {
    this.#random = random;
    this.#size = size;
    this.parties = Array.from({ length: size }, (_, rank) => new Party(rank, size, this, random, isChecked));
  }

  send(from: number, to: number, header: Uint8Array, payload: Uint8Array, onSent: Callback | undefined): Result {
    if (this.parties[from]?.gone.has(to)) {
      onSent?.(undefined, SHUTDOWN);
      return SHUTDOWN;
    }
    const line = from * this.#size + to;
    const message = { header: header.slice(), payload: onSent === undefined ? payload.slice() : payload, onSent };
    const waiting = this.#lines.get(line);
    if (waiting === undefined) this.#lines.set(line, [message]);
    else waiting.push(message);
    return SUCCESS;
  }

  /** What may happen next, each by a function. */
  events(): (() => void)[] {
    const events: (() => void)[] = [];
    for (const [line, waiting] of this.#lines) {
      const [from, to] = [Math.floor(line / this.#size), line % this.#size];
      if (waiting.length > 0) events.push(() => this.#deliver(from, to, waiting));
    }
    for (const [rank, party] of this.parties.entries()) {
      if (party.isEnded) continue;
      for (const other of party.watched) {
        const isHeard = this.#lines.get(other * this.#size + rank)?.length ?? 0;
        if (!this.parties[other]?.isEnded || isHeard > 0) continue;
        events.push(() => {
          party.watched.delete(other);
          party.gone.add(other);
          party.core.memberGone(other);
        });
      }
    }
    return events;
  }

  #deliver(from: number, to: number, waiting: Message[]): void {
    const { header, payload, onSent } = waiting.shift() as Message;
    const [sender, receiver] = [this.parties[from] as Party, this.parties[to] as Party];
    const bytes = payload.slice();
    if (!sender.isEnded) onSent?.(undefined, receiver.isEnded ? SHUTDOWN : SUCCESS);
    if (receiver.isEnded) return;
    const words = new Uint32Array(header.buffer);
    const word = (offset: number): number => words[offset / 4] as number;
    receiver.core.came(
      word(COLLECTIVE_KIND_OFFSET),
      word(COLLECTIVE_RANK_OFFSET),
      word(COLLECTIVE_NUMBER_OFFSET),
      word(COLLECTIVE_TAG_OFFSET),
      word(COLLECTIVE_SIGNATURE_OFFSET),
      { origin: from, payloadBytes: bytes.length, payload: bytes, headerWord: word },
    );
  }

  /** A member ends: from some message on, those that it has sent to another one are lost; long ones are all lost. */
  end(rank: number): void {
    (this.parties[rank] as Party).isEnded = true;
    for (let to = 0; to < this.#size; to++) {
      const waiting = this.#lines.get(rank * this.#size + to) ?? [];
      const long = waiting.findIndex(({ onSent }) => onSent !== undefined);
      waiting.length = this.#random((long < 0 ? waiting.length : long) + 1);
    }
  }
}

/** How many operations a member has under way. */
const AT_ONCE = 3;

/**
 * Has all members run all steps, in a random order of events. Members end before the events of these numbers.
 * @param isChecked debug mode: members compare what they have called; an operation with an odd member is to fail for all
 * @returns the number of events
 * @throws what is wrong: a member waits for ever, has a wrong result, keeps memory, or fails though all are there
 */
export function runGeometry(
  size: number,
  steps: readonly Step[],
  deaths: readonly number[],
  random: Random,
  isChecked = false,
): number {
  const network = new Network(size, random, isChecked);
  const runs = steps.map(({ plan, algorithm, operator }) => operationOf(plan, algorithm, operator, false, random));
  const begin = (party: Party, rank: number): void => {
    const number = party.operations.length;
    const { members } = runs[number] as Expected;
    const { operator, algorithm, plan, odd } = steps[number] as Step;
    const { schedule, send, receive } = members[rank] as Expected["members"][number];
    const reducer: Reducer = {
      elementBytes: operator.elementBytes,
      align: 1,
      isUser: false,
      reduce(out, left, right, bytes, elsewhere) {
        const all = elsewhere === undefined ? party.memory : new Uint8Array(elsewhere.buffer);
        const at = (pointer: number): Uint8Array => all.subarray(pointer, pointer + bytes);
        operator.reduce(at(out), at(left), at(right));
      },
    };
    const operation = party.core.beginSchedule(schedule, { send, receive, reducer }, number + 1, {
      what: algorithm.name,
      root: plan.root,
      bytes: plan.bytes + (rank === odd ? 8 : 0),
      counts: "",
      algorithm: "",
      gives: [],
      gets: [],
    });
    party.operations.push(operation);
    // Its buffers belong to the caller again once it is over.
    party.core.whenOver(operation, () => send.set(randomBytes(send.length, random)), undefined);
  };
  let events = 0;
  for (; ; events++) {
    if (deaths.includes(events)) network.end(random(size));
    const possible = network.events();
    for (const [rank, party] of network.parties.entries()) {
      const underWay = party.operations.filter(({ isOver }) => !isOver).length;
      const isDue = !party.isEnded && party.operations.length < steps.length && underWay < AT_ONCE;
      if (isDue) possible.push(() => begin(party, rank));
    }
    if (possible.length === 0) break;
    (possible[random(possible.length)] as () => void)();
    for (const { completions } of network.parties) completions.run([]);
  }
  const hasDeath = network.parties.some(({ isEnded }) => isEnded);
  for (const [rank, party] of network.parties.entries()) {
    if (party.isEnded) continue;
    for (const [number, operation] of party.operations.entries()) {
      const what = `rank ${rank}, step ${number}, ${steps[number]?.algorithm.name}`;
      if (!operation.isOver) {
        throw new Error(`${what}: waits for ranks ${operation.awaited()}`);
      }
      const { odd } = steps[number] as Step;
      if (odd !== undefined && operation.result === ERROR) {
        if (size > 2 && !operation.why.includes(`rank ${odd} `)) throw new Error(`${what}: ${operation.why}`);
      } else if (odd === undefined && operation.result === SUCCESS) {
        const { members, expected } = runs[number] as Expected;
        const place = differs((members[rank] as Expected["members"][number]).receive, expected[rank] as Uint8Array);
        if (place >= 0) throw new Error(`${what}: byte ${place} of the result is wrong`);
      } else if (!hasDeath || operation.result !== SHUTDOWN) {
        throw new Error(`${what}: ended with ${operation.result}: ${operation.why}`);
      }
    }
    if (party.scratch.used !== 0) throw new Error(`rank ${rank} keeps ${party.scratch.used} pieces of scratch memory`);
  }
  return events;
}

// The geometries of one context, a progress source: takes the messages of all these geometries, and advances operations that
// read words of other members.
import * as L from "../../assembly/layout.js";
import { type Endpoint, nameOf, taskOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import type { Activity, ProgressSource } from "../core/progress.js";
import type { MemRegion } from "../core/region.js";
import type { CollectiveKernel } from "../kernel/collective.js";
import { taskSlot } from "../memory/map.js";
import type { RegionTable } from "../memory/regions.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { Task } from "../protocol/task.js";
import { Unexpected, UP_REFUSED } from "./active.js";
import { Creation, type CreationHost, Creations, type Row, textIn } from "./creation.js";
import { copyOf } from "./geometry/early-messages.js";
import { GeometryCore, type GeometryHost } from "./geometry-core.js";
import { Channel } from "./schedule/channel.js";
import { Scratch } from "./scratch.js";
import { SharedMembers } from "./shared/shared-members.js";

const INDEX_MASK = 0xffff;

/** The block of a geometry that this member has left, and the members that may still read it. */
interface Leaving {
  readonly region: MemRegion;
  readonly readers: Set<Endpoint>;
}

/** The geometry of which a new one is a part: all members of the new one are also members of this one. */
export interface PartOf {
  /** A member that has closed the larger geometry does not come. */
  readonly whole: GeometryCore;
  /** Whether members first do an operation of the larger geometry. Members at which this operation fails do not come. */
  readonly isSplit: boolean;
}

/** Bytes for which a kept message counts, besides its payload. */
const ARRIVAL_BYTES = 64;
/**
 * Bytes of one member's messages that are kept before a geometry is made: enough for SYNCHRONIZING_INTERVAL operations of 64
 * short transfers each.
 */
const EARLY_BYTES_MAX = 67_108_864;

export class ContextGeometries implements ProgressSource, GeometryHost, CreationHost {
  /** Operations that poll. */
  busy = 0;
  readonly channel: Channel;
  readonly scratch: Scratch;
  readonly completions;
  readonly unexpected = new Unexpected();
  /** Malformed messages, which are dropped. */
  malformed = 0;
  readonly #task: Task;
  readonly #kernel: CollectiveKernel;
  readonly #core: ContextCore;
  readonly #activity: Activity;
  readonly #creations: Creations;
  /** The blocks of geometries that are being made. */
  readonly #blocks = new Map<Creation, MemRegion | undefined>();
  /** Creations of geometries from members of another geometry. */
  readonly #parts = new Map<Creation, PartOf>();
  /** By id. */
  readonly #leaving = new Map<number, Leaving>();
  /**
   * Geometries with operations that poll. A geometry without such operations stays until the next advance(), for its next
   * operation.
   */
  readonly #polling: GeometryCore[] = [];
  /** Geometries by the low half of their ids. */
  readonly #geometries: (GeometryCore | undefined)[] = [];
  /** The high halves of ids: a late message to an id does not reach the next geometry in its place. */
  readonly #generations: number[] = [];
  readonly #free: number[] = [];
  /** Endpoints that have ended, and endpoints whose end is awaited. */
  readonly #gone = new Set<Endpoint>();
  /** Ended endpoints whose end is certain. */
  readonly #certain = new Set<Endpoint>();
  readonly #watched = new Set<Endpoint>();
  readonly #trim = (): boolean => this.scratch.trim();

  constructor(task: Task, core: ContextCore, activity: Activity, kernel: CollectiveKernel) {
    this.#kernel = kernel;
    this.#task = task;
    this.#core = core;
    this.#activity = activity;
    this.channel = new Channel(core.sender);
    this.scratch = new Scratch(task.regions);
    task.trims.push(this.#trim);
    this.completions = core.completions;
    this.#creations = new Creations(this.channel, this);
    core.collective.set((arrival) => this.#came(arrival));
  }

  // Making geometries.

  /**
   * Begins to make a geometry of these endpoints, which include this context's endpoint.
   * @param part the geometry of which the new one is a part
   * @throws PAMIR_NO_MEMORY: the context has 65,536 geometries
   */
  begin(endpoints: readonly Endpoint[], userId: number, part?: PartOf): Creation {
    const index = this.#free.pop() ?? this.#generations.push(1) - 1;
    if (index > INDEX_MASK)
      throw new PamiError("PAMIR_NO_MEMORY", `a context has at most ${INDEX_MASK + 1} geometries`);
    const id = (((this.#generations[index] as number) << 16) | index) >>> 0;
    const rank = endpoints.indexOf(this.#core.endpoint);
    const region = this.#mayShare(endpoints) ? this.#block() : undefined;
    const row: Row = {
      id,
      node: this.#task.addresses.first,
      regionIndex: region?.index ?? L.NONE,
      regionGeneration: region?.generation ?? 0,
      debug: Number(this.#task.observers.isStrict),
    };
    const creation = new Creation(endpoints, userId, rank, row);
    this.#blocks.set(creation, region);
    // The first member waits for all members. All members wait for the first member, and for the member from which they get the
    // table.
    for (const [other, endpoint] of endpoints.entries()) {
      if (rank === 0 || other === 0 || other === creation.parent) this.watch(endpoint);
    }
    this.#creations.begin(creation);
    const gone = endpoints.find((endpoint) => this.#gone.has(endpoint));
    if (gone !== undefined) this.#creations.abandon(creation, `${nameOf(gone)} has ended`);
    else if (part !== undefined) this.#watchWhole(creation, part);
    return creation;
  }

  #watchWhole(creation: Creation, part: PartOf): void {
    const { whole, isSplit } = part;
    const closed = creation.endpoints.find((endpoint) => whole.goneRanks.has(whole.endpoints.indexOf(endpoint)));
    if (closed !== undefined) this.giveUp(creation, hasClosed(closed));
    else if (isSplit && whole.hasMemberEnded) this.giveUp(creation, whole.lost);
    else if (creation.geometry === undefined) this.#parts.set(creation, part);
  }

  broken(geometry: GeometryCore): void {
    for (const [creation, { whole, isSplit }] of [...this.#parts]) {
      if (whole === geometry && isSplit) this.giveUp(creation, geometry.lost);
    }
  }

  get regions(): RegionTable {
    return this.#task.regions;
  }

  /** A member has closed a geometry. */
  closedAt(geometry: GeometryCore, endpoint: Endpoint): void {
    for (const [creation, { whole }] of [...this.#parts]) {
      if (whole === geometry) this.#creations.closedWhole(creation, endpoint, hasClosed(endpoint));
    }
  }

  /** A geometry is made: its messages reach it from now on. */
  made(creation: Creation): void {
    const { endpoints, rank, own, table = [] } = creation;
    const region = this.#blocks.get(creation);
    this.#forget(creation);
    const shared = this.#shared(creation);
    const geometry = new GeometryCore(this, {
      id: own.id,
      rank,
      endpoints,
      ids: table.map(({ id }) => id),
      nodes: table.map(({ node }) => node),
      isChecked: table.every(({ debug }) => debug !== 0),
      shared,
      table: creation.payload,
      release: () => region?.close(),
    });
    creation.geometry = geometry;
    this.#geometries[own.id & INDEX_MASK] = geometry;
    for (const { origin, why } of this.#creations.leaversIn(creation)) {
      geometry.memberLeft(endpoints.indexOf(origin), why);
    }
    for (const [other, endpoint] of endpoints.entries()) {
      // The block of a member that has ended may have become another task's memory already.
      const isLost = shared !== undefined && (!shared.hasBlock(other) || this.#hasEnded(endpoint));
      if (isLost) geometry.memberLeft(other, `${nameOf(endpoint)} has ended`);
      else if (this.#gone.has(endpoint)) geometry.memberGone(other, this.#certain.has(endpoint));
    }
    this.#forgetEarly(creation);
    for (const arrival of creation.early.splice(0)) this.#came(arrival);
    creation.wake();
  }

  #forget(creation: Creation): void {
    this.#blocks.delete(creation);
    this.#parts.delete(creation);
  }

  /** The active messages to a creation count no more. */
  #forgetEarly({ early }: Creation): void {
    for (const arrival of early) if (isActive(arrival)) this.unexpected.letGo(arrival.payload);
  }

  /** This member gives up making a geometry. */
  giveUp(creation: Creation, why: string): void {
    this.#creations.giveUp(creation, `${nameOf(this.#core.endpoint)} gave up: ${why}`);
  }

  /** A geometry is not made. */
  unmade(creation: Creation, hasLeft: boolean): void {
    const { id } = creation.own;
    const region = this.#blocks.get(creation);
    this.#forget(creation);
    this.#freeId(id);
    this.#forgetEarly(creation);
    if (region === undefined) return;
    const others = creation.endpoints.filter((endpoint) => endpoint !== this.#core.endpoint);
    this.#leaving.set(id, { region, readers: new Set(hasLeft ? others : []) });
    if (!hasLeft) this.#unread(id);
    else
      for (const endpoint of others)
        if (this.#gone.has(endpoint)) this.#unread(id, endpoint);
        else this.watch(endpoint);
  }

  /** A member no longer reads the block of a geometry that this member has left. The last such member releases the block. */
  #unread(id: number, reader?: Endpoint): void {
    const leaving = this.#leaving.get(id);
    if (leaving === undefined) return;
    if (reader !== undefined) leaving.readers.delete(reader);
    if (leaving.readers.size > 0) return;
    this.#leaving.delete(id);
    leaving.region.close();
  }

  /** Whether this context has acknowledged that an endpoint of this memory has ended. */
  #hasEnded(endpoint: Endpoint): boolean {
    return this.#core.receiver.ended.has(this.#task.addresses.ordinalOf(endpoint));
  }

  /** Whether all members may share this task's memory. */
  #mayShare(endpoints: readonly Endpoint[]): boolean {
    return endpoints.every((endpoint) => this.#isLocal(endpoint));
  }

  /** Whether an endpoint belongs to a task of this memory. */
  #isLocal(endpoint: Endpoint): boolean {
    const slot = this.#task.addresses.slotOf(taskOf(endpoint));
    return slot >= 0 && slot < this.#task.map.locals;
  }

  /** A block for this member; undefined: there is no memory. */
  #block(): MemRegion | undefined {
    try {
      const region = this.#task.regions.create(4096, true);
      this.#task.kernel.fillBytes(region.bytes.byteOffset, 0, L.MEMBER_SIZE);
      return region;
    } catch {
      return undefined;
    }
  }

  #shared({ endpoints, rank, table = [] }: Creation): SharedMembers | undefined {
    if (!this.#mayShare(endpoints)) return undefined;
    const { kernel, memory, map, addresses } = this.#task;
    const blocks = table.map(({ regionIndex, regionGeneration }) =>
      regionIndex === L.NONE ? 0 : kernel.placeOf(map.job, regionIndex, regionGeneration, 0, L.MEMBER_SIZE),
    );
    // All members see the same table. So if a member has no block or has ended already, all members do without blocks.
    if (table.some(({ regionIndex }) => regionIndex === L.NONE)) return undefined;
    const tasks = endpoints.map((endpoint) => taskSlot(map, addresses.slotOf(taskOf(endpoint))));
    return new SharedMembers(kernel, this.#kernel, memory, rank, blocks, tasks);
  }

  #freeId(id: number): void {
    const index = id & INDEX_MASK;
    this.#geometries[index] = undefined;
    this.#generations[index] = ((this.#generations[index] as number) % 0xffff) + 1;
    this.#free.push(index);
  }

  // The services that geometries use.

  polling(geometry: GeometryCore, change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
    geometry.polling += change;
    if (change === -1 || geometry.isListed) return;
    geometry.isListed = true;
    this.#polling.push(geometry);
  }

  /**
   * A geometry without operations that poll leaves the list of polling geometries. The last geometry of the list takes its
   * place.
   */
  #unlist(geometry: GeometryCore): void {
    if (!geometry.isListed) return;
    geometry.isListed = false;
    const last = this.#polling.pop() as GeometryCore;
    if (last !== geometry) this.#polling[this.#polling.indexOf(geometry)] = last;
  }

  isGone(endpoint: Endpoint): boolean {
    return this.#gone.has(endpoint);
  }

  watch(endpoint: Endpoint): void {
    if (this.#watched.has(endpoint) || endpoint === this.#core.endpoint) return;
    this.#watched.add(endpoint);
    this.#core.watch(endpoint, () => this.#endpointGone(endpoint), undefined);
  }

  dropped(geometry: GeometryCore): void {
    this.#unlist(geometry);
    this.#freeId(geometry.id);
  }

  // The calls of a context to a progress source.

  /** Only asked before a sleep: operations note the failures that they find. */
  get hasWork(): boolean {
    return this.#polling.some((geometry) => geometry.lookBeforeSleep());
  }

  advance(): number {
    const before = this.busy;
    // From the end: the last geometry of the list replaces a geometry that leaves.
    for (let place = this.#polling.length - 1; place >= 0; place--) {
      const geometry = this.#polling[place];
      geometry?.advance();
      if (geometry?.polling === 0) this.#unlist(geometry);
    }
    return before - this.busy;
  }

  /** The blocks of a context that has ended may be used again once this context has acknowledged the end. */
  ended(ordinal: number): void {
    const { addresses } = this.#task;
    const endpoint = addresses.endpointAt(ordinal);
    for (const id of [...this.#leaving.keys()]) this.#unread(id, endpoint);
    for (const geometry of this.#geometries) {
      const rank = geometry?.isShared ? geometry.endpoints.indexOf(endpoint) : -1;
      if (rank >= 0) geometry?.sharedMemberEnded(rank);
    }
  }

  holds(ordinal: number): boolean {
    const endpoint = this.#task.addresses.endpointAt(ordinal);
    return this.#geometries.some(
      (geometry) => geometry !== undefined && geometry.underWay > 0 && geometry.endpoints.includes(endpoint),
    );
  }

  close(): void {
    for (const geometry of this.#geometries) geometry?.close();
    for (const creation of [...this.#creations.pending]) this.giveUp(creation, "the context was closed");
    const { kernel } = this.#task;
    // SYNC context-state (close): before the blocks are closed. Another context copies the blocks before it acknowledges the
    // close.
    kernel.storeWord(this.#core.block + L.CONTEXT_STATE_OFFSET, L.CONTEXT_CLOSED);
    for (const geometry of this.#geometries) geometry?.release();
    for (const { region } of this.#leaving.values()) region.close();
    this.scratch.close();
    this.#task.trims.splice(this.#task.trims.indexOf(this.#trim), 1);
  }

  hasCertainlyEnded(endpoint: Endpoint): boolean {
    return this.#task.hasCertainlyEnded(endpoint);
  }

  isEndAwaited(endpoint: Endpoint): boolean {
    return this.#task.isEndAwaited(endpoint);
  }

  #endpointGone(endpoint: Endpoint): void {
    this.#gone.add(endpoint);
    const isCertain = this.#task.hasCertainlyEnded(endpoint);
    if (isCertain) this.#certain.add(endpoint);
    for (const geometry of this.#geometries) {
      const rank = geometry?.endpoints.indexOf(endpoint) ?? -1;
      if (rank >= 0) geometry?.memberGone(rank, isCertain);
    }
    for (const id of [...this.#leaving.keys()]) this.#unread(id, endpoint);
    this.#creations.endpointGone(endpoint);
  }

  /** A member has left a geometry before it had the table. */
  #left(arrival: Arrival, id: number): void {
    const { origin } = arrival;
    const geometry = this.#withMember(origin, id);
    geometry?.memberLeft(geometry.endpoints.indexOf(origin), textIn(arrival));
    this.#creations.left(arrival, id, arrival.headerWord(L.COLLECTIVE_TAG_OFFSET), geometry !== undefined);
    if (this.#isLocal(origin)) this.channel.address(L.COLLECTIVE_CLOSED, id, 0, 0).send(origin, 0, 0, 0);
  }

  /** The geometry that has an id at a member. */
  #withMember(endpoint: Endpoint, id: number): GeometryCore | undefined {
    return this.#geometries.find((geometry) => geometry?.idAt(geometry.endpoints.indexOf(endpoint)) === id);
  }

  #came(arrival: Arrival): void {
    const kind = arrival.headerWord(L.COLLECTIVE_KIND_OFFSET);
    const to = arrival.headerWord(L.COLLECTIVE_TO_OFFSET);
    const from = arrival.headerWord(L.COLLECTIVE_FROM_OFFSET);
    let isRight = true;
    if (kind === L.COLLECTIVE_CREATE) isRight = this.#creations.created(arrival, from);
    else if (kind === L.COLLECTIVE_TABLE) isRight = this.#creations.tabled(arrival, to);
    else if (kind === L.COLLECTIVE_REFUSED)
      isRight = this.#creations.refused(arrival, to, arrival.headerWord(L.COLLECTIVE_TAG_OFFSET));
    else if (kind === L.COLLECTIVE_ASK) {
      const tag = arrival.headerWord(L.COLLECTIVE_TAG_OFFSET);
      this.#creations.asked(arrival, from, tag, this.#withMember(arrival.origin, from)?.table);
    } else if (kind === L.COLLECTIVE_LEFT) this.#left(arrival, from);
    else this.#cameToGeometry(kind, to, from, arrival);
    if (!isRight) this.malformed++;
  }

  #cameToGeometry(kind: number, to: number, from: number, arrival: Arrival): void {
    const geometry = this.#geometries[to & INDEX_MASK];
    // A member that has closed still waits until all other members close: until then, they may read its block.
    if (geometry === undefined || geometry.id !== to || (geometry.isClosed && kind !== L.COLLECTIVE_CLOSED)) {
      this.#cameToNone(kind, to, from, arrival);
      return;
    }
    const isClose = kind === L.COLLECTIVE_CLOSED;
    const rank = isClose ? geometry.endpoints.indexOf(arrival.origin) : arrival.headerWord(L.COLLECTIVE_RANK_OFFSET);
    if (geometry.endpoints[rank] !== arrival.origin) {
      this.malformed++;
      return;
    }
    const number = arrival.headerWord(L.COLLECTIVE_NUMBER_OFFSET);
    const tag = arrival.headerWord(L.COLLECTIVE_TAG_OFFSET);
    geometry.came(kind, rank, number, tag, arrival.headerWord(L.COLLECTIVE_SIGNATURE_OFFSET) | 0, arrival);
  }

  /** The table has not come yet. @throws PAMIR_NO_MEMORY: too many active messages are kept, so this message is dropped */
  #cameEarly({ early, earlyBytes, endpoints, own, rank }: Creation, from: number, arrival: Arrival): void {
    const { origin, payloadBytes } = arrival;
    const bytes = (earlyBytes.get(origin) ?? 0) + ARRIVAL_BYTES + payloadBytes;
    if (bytes > EARLY_BYTES_MAX || !endpoints.includes(origin)) {
      this.malformed++;
      return;
    }
    earlyBytes.set(origin, bytes);
    const copy = copyOf(arrival);
    try {
      if (isActive(copy))
        this.unexpected.keep(copy.payload, `a geometry that is being made, from ${nameOf(copy.origin)}`);
      early.push(copy);
    } catch (error) {
      const number = copy.headerWord(L.COLLECTIVE_NUMBER_OFFSET);
      const root = copy.headerWord(L.COLLECTIVE_SIGNATURE_OFFSET);
      this.channel.address(L.COLLECTIVE_ACTIVE, from, own.id, rank).send(copy.origin, number, UP_REFUSED, root);
      throw error;
    }
  }

  /** The geometry is being made here, or has closed. */
  #cameToNone(kind: number, to: number, from: number, arrival: Arrival): void {
    const creation = this.#creations.pending.find((one) => one.own.id === to);
    if (creation !== undefined) this.#cameEarly(creation, from, arrival);
    else if (kind === L.COLLECTIVE_CLOSED) this.#unread(to, arrival.origin);
    else if (kind !== L.COLLECTIVE_FAILED) {
      // Without an answer, the sender would wait for this member for ever.
      this.channel.address(L.COLLECTIVE_CLOSED, from, to, 0).send(arrival.origin, 0, 0, 0);
    }
  }
}

function hasClosed(endpoint: Endpoint): string {
  return `${nameOf(endpoint)} has closed the geometry`;
}

function isActive(arrival: Arrival): boolean {
  return arrival.headerWord(L.COLLECTIVE_KIND_OFFSET) === L.COLLECTIVE_ACTIVE;
}

// The geometries of one context: a source of progress. It takes the messages of all of them, and advances operations that
// read words of other members.
import {
  COLLECTIVE_CLOSED,
  COLLECTIVE_CREATE,
  COLLECTIVE_FAILED,
  COLLECTIVE_FROM_OFFSET,
  COLLECTIVE_KIND_OFFSET,
  COLLECTIVE_NUMBER_OFFSET,
  COLLECTIVE_RANK_OFFSET,
  COLLECTIVE_REFUSED,
  COLLECTIVE_SIGNATURE_OFFSET,
  COLLECTIVE_TABLE,
  COLLECTIVE_TAG_OFFSET,
  COLLECTIVE_TO_OFFSET,
  MEMBER_SIZE,
  NONE,
} from "../../assembly/layout.js";
import { type Endpoint, nameOf, taskOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import type { Activity, ProgressSource } from "../core/progress.js";
import type { MemRegion } from "../core/region.js";
import { taskSlot } from "../memory/map.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { Task } from "../protocol/task.js";
import { Channel } from "./channel.js";
import { Creation, Creations, type Row } from "./creation.js";
import { copyOf, GeometryCore, type GeometryHost } from "./geometry-core.js";
import { Scratch } from "./scratch.js";
import { SharedMembers } from "./shared-members.js";
import { describeSignature } from "./signature.js";

const INDEX_MASK = 0xffff;

export class Collectives implements ProgressSource, GeometryHost {
  /** Operations that poll. */
  busy = 0;
  readonly isDrained = true;
  readonly channel: Channel;
  readonly scratch: Scratch;
  readonly completions;
  /** Messages that make no sense: they are dropped. */
  malformed = 0;
  readonly #task: Task;
  readonly #core: ContextCore;
  readonly #activity: Activity;
  readonly #creations: Creations;
  /** The blocks of geometries that are being made. */
  readonly #blocks = new Map<Creation, MemRegion | undefined>();
  /** By the low half of their ids. */
  readonly #geometries: (GeometryCore | undefined)[] = [];
  /** The high halves of ids: a late message to an id does not reach the next geometry in its place. */
  readonly #generations: number[] = [];
  readonly #free: number[] = [];
  /** Endpoints that have ended, and those whose end is awaited. */
  readonly #gone = new Set<Endpoint>();
  readonly #watched = new Set<Endpoint>();

  constructor(task: Task, core: ContextCore, activity: Activity) {
    this.#task = task;
    this.#core = core;
    this.#activity = activity;
    this.channel = new Channel(core.sender);
    this.scratch = new Scratch(task.regions);
    this.completions = core.completions;
    this.#creations = new Creations(this.channel, (creation) => this.#made(creation));
    core.collective.set((arrival) => this.#came(arrival));
  }

  // Making geometries.

  /**
   * Begins to make a geometry of these endpoints, of which this context's is one.
   * @throws PAMIR_NO_MEMORY: the context has 65,536 geometries
   */
  begin(endpoints: readonly Endpoint[], userId: number): Creation {
    const index = this.#free.pop() ?? this.#generations.push(1) - 1;
    if (index > INDEX_MASK)
      throw new PamiError("PAMIR_NO_MEMORY", `a context has at most ${INDEX_MASK + 1} geometries`);
    const id = (((this.#generations[index] as number) << 16) | index) >>> 0;
    const rank = endpoints.indexOf(this.#core.endpoint);
    const region = this.#mayShare(endpoints) ? this.#block() : undefined;
    const row: Row = {
      id,
      node: this.#task.addresses.first,
      regionIndex: region?.index ?? NONE,
      regionGeneration: region?.generation ?? 0,
    };
    const creation = new Creation(endpoints, userId, rank, row);
    this.#blocks.set(creation, region);
    // The first member waits for all, and all for the first. Of other nodes, a member watches no further ones.
    for (const [other, endpoint] of endpoints.entries()) {
      if (rank === 0 || other === 0 || this.#isLocal(endpoint)) this.watch(endpoint);
    }
    this.#creations.begin(creation);
    const gone = endpoints.find((endpoint) => this.#gone.has(endpoint));
    if (gone !== undefined) this.#creations.abandon(creation, `${nameOf(gone)} has ended`);
    return creation;
  }

  /** A geometry is made: its messages reach it from now on. */
  #made(creation: Creation): void {
    const { endpoints, rank, own, table = [] } = creation;
    const region = this.#blocks.get(creation);
    this.#blocks.delete(creation);
    this.#creations.remove(creation);
    const shared = this.#shared(creation);
    const geometry = new GeometryCore(this, {
      id: own.id,
      rank,
      endpoints,
      ids: table.map(({ id }) => id),
      nodes: table.map(({ node }) => node),
      shared,
      release: () => region?.close(),
    });
    creation.geometry = geometry;
    this.#geometries[own.id & INDEX_MASK] = geometry;
    for (const [other, endpoint] of endpoints.entries()) if (this.#gone.has(endpoint)) geometry.memberGone(other);
    for (const arrival of creation.early.splice(0)) this.#came(arrival);
  }

  /** A geometry is not made. @param why undefined: another member has given up */
  giveUp(creation: Creation, why?: string): void {
    if (why === undefined) this.#creations.remove(creation);
    else this.#creations.giveUp(creation, why);
    this.#blocks.get(creation)?.close();
    this.#blocks.delete(creation);
    this.#freeId(creation.own.id);
  }

  /** Whether all members may share this task's memory. */
  #mayShare(endpoints: readonly Endpoint[]): boolean {
    return endpoints.every((endpoint) => this.#isLocal(endpoint));
  }

  /** Whether an endpoint is of a task of this memory. */
  #isLocal(endpoint: Endpoint): boolean {
    const slot = this.#task.addresses.slotOf(taskOf(endpoint));
    return slot >= 0 && slot < this.#task.map.locals;
  }

  /** A block for this member; undefined: there is no memory. */
  #block(): MemRegion | undefined {
    try {
      const region = this.#task.regions.create(4096, true);
      this.#task.kernel.fillBytes(region.bytes.byteOffset, 0, MEMBER_SIZE);
      return region;
    } catch {
      return undefined;
    }
  }

  #shared({ endpoints, rank, table = [] }: Creation): SharedMembers | undefined {
    if (!this.#mayShare(endpoints)) return undefined;
    const { kernel, memory, map, addresses } = this.#task;
    const blocks = table.map(({ regionIndex, regionGeneration }) =>
      regionIndex === NONE ? 0 : kernel.placeOf(map.job, regionIndex, regionGeneration, 0, MEMBER_SIZE),
    );
    // All members see the same table, so all do without, where one has no block or has ended already.
    if (table.some(({ regionIndex }) => regionIndex === NONE)) return undefined;
    const tasks = endpoints.map((endpoint) => taskSlot(map, addresses.slotOf(taskOf(endpoint))));
    return new SharedMembers(kernel, memory, rank, blocks, tasks);
  }

  #freeId(id: number): void {
    const index = id & INDEX_MASK;
    this.#geometries[index] = undefined;
    this.#generations[index] = ((this.#generations[index] as number) % 0xffff) + 1;
    this.#free.push(index);
  }

  // What geometries ask for.

  polling(change: 1 | -1): void {
    this.busy += change;
    this.#activity.busy += change;
  }

  isGone(endpoint: Endpoint): boolean {
    return this.#gone.has(endpoint);
  }

  watch(endpoint: Endpoint): void {
    if (this.#watched.has(endpoint) || endpoint === this.#core.endpoint) return;
    this.#watched.add(endpoint);
    this.#core.watch(endpoint, () => this.#endpointGone(endpoint), undefined);
  }

  dropped({ id }: GeometryCore): void {
    this.#freeId(id);
  }

  describe(signature: number): string {
    return describeSignature(signature);
  }

  // What a context asks of a source of progress.

  get hasWork(): boolean {
    return this.#geometries.some((geometry) => geometry?.hasWork);
  }

  advance(): number {
    const before = this.busy;
    for (const geometry of this.#geometries) geometry?.advance();
    return before - this.busy;
  }

  /** The memory of a task that has ended may be used again once this context has acknowledged it. */
  ended(ordinal: number, isTaskOver: boolean): void {
    if (!isTaskOver) return;
    const { addresses } = this.#task;
    const endpoint = addresses.endpointAt(ordinal);
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

  forget(): void {}

  engineEnded(): void {}

  close(): void {
    for (const geometry of this.#geometries) geometry?.close();
    for (const creation of [...this.#creations.pending]) this.giveUp(creation, "the context was closed");
    this.scratch.close();
  }

  #endpointGone(endpoint: Endpoint): void {
    this.#gone.add(endpoint);
    for (const geometry of this.#geometries) {
      const rank = geometry?.endpoints.indexOf(endpoint) ?? -1;
      if (rank >= 0) geometry?.memberGone(rank);
    }
    for (const creation of [...this.#creations.pending]) {
      if (!creation.endpoints.includes(endpoint)) continue;
      this.#creations.abandon(creation, `${nameOf(endpoint)} has ended`);
    }
  }

  #came(arrival: Arrival): void {
    const kind = arrival.headerWord(COLLECTIVE_KIND_OFFSET);
    const to = arrival.headerWord(COLLECTIVE_TO_OFFSET);
    const from = arrival.headerWord(COLLECTIVE_FROM_OFFSET);
    if (kind === COLLECTIVE_CREATE) this.#creations.created(arrival, from);
    else if (kind === COLLECTIVE_TABLE) this.#creations.tabled(arrival, to);
    else if (kind === COLLECTIVE_REFUSED) {
      if (to === 0) this.#creations.withdrawn(arrival, from);
      else this.#creations.refused(arrival, to);
    } else this.#cameToGeometry(kind, to, from, arrival);
  }

  #cameToGeometry(kind: number, to: number, from: number, arrival: Arrival): void {
    const geometry = this.#geometries[to & INDEX_MASK];
    // A member that has closed still waits for the others to close: until then, they may read its block.
    if (geometry === undefined || geometry.id !== to || (geometry.isClosed && kind !== COLLECTIVE_CLOSED)) {
      this.#cameToNone(kind, to, from, arrival);
      return;
    }
    const isClose = kind === COLLECTIVE_CLOSED;
    const rank = isClose ? geometry.endpoints.indexOf(arrival.origin) : arrival.headerWord(COLLECTIVE_RANK_OFFSET);
    if (geometry.endpoints[rank] !== arrival.origin) {
      this.malformed++;
      return;
    }
    const number = arrival.headerWord(COLLECTIVE_NUMBER_OFFSET);
    const tag = arrival.headerWord(COLLECTIVE_TAG_OFFSET);
    geometry.came(kind, rank, number, tag, arrival.headerWord(COLLECTIVE_SIGNATURE_OFFSET) | 0, arrival);
  }

  /** The geometry is being made here, or has closed. */
  #cameToNone(kind: number, to: number, from: number, arrival: Arrival): void {
    const creation = this.#creations.pending.find((one) => one.own.id === to);
    if (creation !== undefined) creation.early.push(copyOf(arrival));
    else if (kind !== COLLECTIVE_CLOSED && kind !== COLLECTIVE_FAILED) {
      // Its sender would wait for this member for ever.
      this.channel.address(COLLECTIVE_CLOSED, from, to, 0).send(arrival.origin, 0, 0, 0);
    }
  }
}

// The target's side of rendezvous: offered payloads, which are moved to the destination that a handler chose. A chain of
// descriptors between the two engines moves a payload into a region, at the pace of this side. If the destination is no region,
// or there is no memory for a chain, this thread copies the payload, a slice in each advance. If the payload is in another
// memory, this thread asks for slices.
import * as L from "../../../assembly/layout.js";
import { copyToDestination, type Destination, type Message } from "../../core/message/message.js";
import { checkPacing, DEPTH, FRAGMENT_BYTES, type Pacing } from "../../core/message/pacing.js";
import type { MemRegion } from "../../core/region.js";
import { type Result, resultOf, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { OpenRegion, RegionTable } from "../../memory/regions.js";
import { isRemote } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import type { ContextParts } from "../base.js";
import { PULL_BYTES, PULL_WORDS } from "./sender.js";
import { onAbort, type RgetFifo, regionIfAny, type Side, slotOf, type TransferTable } from "./transfers.js";

/** The contents of an RTS. */
export interface PayloadOffer {
  /** Ordinal of the endpoint that offers a payload. */
  readonly origin: number;
  /** Region that holds the payload, its generation, and the offset in it. */
  readonly index: number;
  readonly generation: number;
  readonly offset: number;
  /** The origin's rget FIFO: region of its block, the region's generation, offset in it, and generation of the rget FIFO. */
  readonly blockIndex: number;
  readonly blockGeneration: number;
  readonly place: number;
  readonly rgetFifo: number;
  /** Of the payload. */
  readonly bytes: number;
  /** 0, or the payload goes through a ring of STAGED_COUNT fragments of so many bytes. */
  readonly fragment: number;
}

/**
 * Most bytes of a fragment from another node, unless there would be more than LINK_COUNT_MAX fragments. Small, since both sides
 * buffer fragments.
 */
const AWAY_BYTES_MAX = 1024 * 1024;
/** Bytes of a payload in another memory that the target has asked for and not got. */
const ASKED_BYTES_MAX = 8 * PULL_BYTES;

/** Where a region lies. */
type Place = Pick<OpenRegion, "index" | "generation" | "pointer">;

/** A payload that this thread copies. */
interface Pull {
  readonly request: PayloadOffer;
  readonly destination: Destination;
  /** Bytes that have arrived. */
  at: number;
  /** Of a payload in another memory: bytes that the target has asked for, and the result, TRANSFER_…. */
  asked: number;
  result: number;
  isCanceled: boolean;
  forget: () => void;
}

export class RendezvousReceiver {
  readonly #base: ContextParts;
  readonly #regions: RegionTable;
  readonly #transfers: TransferTable;
  readonly #fragment: number;
  readonly #depth: number;
  #pulls: Pull[] = [];
  /** Links of the chains under way. */
  readonly #linksInUse = new Set<MemRegion>();
  /** Regions for the links of later chains. */
  readonly #links: MemRegion[] = [];
  /** Regions that payloads from other nodes go through. */
  readonly #landings = new Set<MemRegion>();
  readonly #count: (change: 1 | -1) => void;

  /**
   * @param count called for each payload that this thread begins to copy, or has copied
   * @throws PAMIR_INVAL
   */
  constructor(
    base: ContextParts,
    regions: RegionTable,
    transfers: TransferTable,
    pacing: Pacing,
    count: (change: 1 | -1) => void,
  ) {
    this.#count = count;
    checkPacing(pacing);
    base.handlers.handle(L.DISPATCH_ID_PULLED, (message) => this.#came(message));
    this.#base = base;
    this.#regions = regions;
    this.#transfers = transfers;
    this.#fragment = pacing.fragment ?? FRAGMENT_BYTES;
    this.#depth = pacing.depth ?? DEPTH;
  }

  /** Reads an RTS. Its record may be overwritten afterwards. */
  requestAt(rts: number, origin: number): PayloadOffer {
    const word = (offset: number): number => (this.#base.memory.words[(rts + offset) >>> 2] as number) >>> 0;
    return {
      origin,
      bytes: word(L.RTS_BYTES_OFFSET),
      index: word(L.RTS_INDEX_OFFSET),
      generation: word(L.RTS_GENERATION_OFFSET),
      offset: word(L.RTS_OFFSET_OFFSET),
      blockIndex: word(L.RTS_BLOCK_INDEX_OFFSET),
      blockGeneration: word(L.RTS_BLOCK_GENERATION_OFFSET),
      place: word(L.RTS_PLACE_OFFSET),
      rgetFifo: word(L.RTS_FIFO_OFFSET),
      fragment: word(L.RTS_FRAGMENT_OFFSET),
    };
  }

  /** Tells an origin that its payload is not wanted, or refused. */
  decline(request: PayloadOffer, isRefused: boolean): void {
    this.#notice(request, isRefused ? L.TRANSFER_REFUSED : L.TRANSFER_DONE);
  }

  /**
   * Moves a payload to its destination. The destination's callback is called once all bytes are there, or no more bytes come.
   */
  receive(request: PayloadOffer, destination: Destination): void {
    const to = this.#regions.find(destination.bytes);
    if (to !== undefined && this.#chain(request, destination, to)) return;
    const begun = { at: 0, asked: 0, result: L.TRANSFER_DONE, isCanceled: false, forget: () => {} };
    const pull: Pull = { request, destination, ...begun };
    pull.forget = onAbort(destination.options.signal, () => {
      pull.isCanceled = true;
      this.#base.kernel.ring(slotOf(this.#base.map, this.#base.ordinal));
    });
    this.#pulls.push(pull);
    this.#count(1);
  }

  /**
   * receive() of a payload that waits for its reader. If the payload is in another node, the engines move it through a region.
   * Slices that this thread asks for would come behind messages of the origin, which may wait for the same reader.
   */
  gather(request: PayloadOffer, destination: Destination): void {
    const { origin, bytes } = request;
    const landing = this.#isRemote(origin) && bytes > 0 ? regionIfAny(this.#regions, bytes) : undefined;
    if (landing === undefined) {
      this.receive(request, destination);
      return;
    }
    this.#landings.add(landing);
    const landed = landing.bytes.subarray(0, bytes);
    const leave = (): void => {
      this.#landings.delete(landing);
      landing.close();
    };
    const onComplete = (_: unknown, result: Result): void => {
      copyInto(destination.bytes, 0, landed);
      leave();
      this.#complete(destination, result);
    };
    const { index, generation } = landing;
    const to = { index, generation, pointer: landed.byteOffset };
    if (this.#chain(request, { ...destination, bytes: landed, onComplete }, to)) return;
    leave();
    this.receive(request, destination);
  }

  /** Copies a slice of each payload that this thread copies. Returns how many are over. */
  advance(): number {
    if (this.#pulls.length === 0) return 0;
    const pulls = this.#pulls;
    this.#pulls = pulls.filter((pull) => !this.#pull(pull));
    return pulls.length - this.#pulls.length;
  }

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    return this.#pulls.some((pull) => {
      const { request } = pull;
      return this.#isRemote(request.origin) ? this.#canAsk(pull) : this.#canPull(pull, this.#rgetFifoOf(request));
    });
  }

  /** Whether this thread copies a payload of an origin. */
  holds(origin: number): boolean {
    return this.#pulls.some(({ request }) => request.origin === origin);
  }

  /** An endpoint has ended: no more slices come from it. */
  ended(origin: number): void {
    this.#pulls = this.#pulls.filter((pull) => pull.request.origin !== origin || !this.#over(pull, SHUTDOWN));
  }

  /** The context closes. */
  close(): void {
    for (const { forget } of this.#pulls) forget();
    for (const region of [...this.#links, ...this.#linksInUse, ...this.#landings]) region.close();
  }

  /** Begins a chain into a region; false: there is no memory for the chain. */
  #chain(request: PayloadOffer, destination: Destination, to: Place): boolean {
    const { kernel, map, memory, engine } = this.#base;
    const { fragment = this.#fragment, depth = this.#depth } = destination.options;
    const most = this.#isRemote(request.origin) ? Math.min(fragment, AWAY_BYTES_MAX) : fragment;
    // A staged payload has the fragments of its ring.
    const fragmentBytes = request.fragment || Math.max(most, Math.ceil(request.bytes / L.LINK_COUNT_MAX));
    const links = this.#takeLinks(Math.ceil(request.bytes / fragmentBytes) * L.LINK_SIZE);
    if (links === undefined) return false;
    const side = this.#transfers.open(request.origin, L.NONE, (rgetFifo) =>
      this.#side(request, rgetFifo, destination, links),
    );
    if (side === undefined) {
      this.#giveLinks(links);
      return false;
    }
    const { rgetFifo } = side;
    // Word by word: with a list of pairs, V8 took 40 ms rather than 16 ms to optimize this function, on a core that tasks need.
    const { words } = memory;
    const at = rgetFifo.pointer;
    words[(at + L.RGET_FIFO_PEER_INDEX_OFFSET) >>> 2] = request.blockIndex;
    words[(at + L.RGET_FIFO_PEER_GENERATION_OFFSET) >>> 2] = request.blockGeneration;
    words[(at + L.RGET_FIFO_PEER_OFFSET_OFFSET) >>> 2] = request.place;
    words[(at + L.RGET_FIFO_PEER_FIFO_OFFSET) >>> 2] = request.rgetFifo;
    words[(at + L.RGET_FIFO_OWN_INDEX_OFFSET) >>> 2] = rgetFifo.region.index;
    words[(at + L.RGET_FIFO_OWN_GENERATION_OFFSET) >>> 2] = rgetFifo.region.generation;
    words[(at + L.RGET_FIFO_OWN_OFFSET_OFFSET) >>> 2] = rgetFifo.offset;
    words[(at + L.RGET_FIFO_FROM_INDEX_OFFSET) >>> 2] = request.index;
    words[(at + L.RGET_FIFO_FROM_GENERATION_OFFSET) >>> 2] = request.generation;
    words[(at + L.RGET_FIFO_FROM_OFFSET_OFFSET) >>> 2] = request.offset;
    words[(at + L.RGET_FIFO_TO_INDEX_OFFSET) >>> 2] = to.index;
    words[(at + L.RGET_FIFO_TO_GENERATION_OFFSET) >>> 2] = to.generation;
    words[(at + L.RGET_FIFO_TO_OFFSET_OFFSET) >>> 2] = destination.bytes.byteOffset - to.pointer;
    words[(at + L.RGET_FIFO_CHAIN_INDEX_OFFSET) >>> 2] = links.index;
    words[(at + L.RGET_FIFO_CHAIN_GENERATION_OFFSET) >>> 2] = links.generation;
    words[(at + L.RGET_FIFO_BYTES_OFFSET) >>> 2] = request.bytes;
    words[(at + L.RGET_FIFO_FRAGMENT_OFFSET) >>> 2] = fragmentBytes;
    words[(at + L.RGET_FIFO_RING_OFFSET) >>> 2] = request.fragment === 0 ? 0 : L.STAGED_COUNT;
    words[(at + L.RGET_FIFO_DEPTH_OFFSET) >>> 2] = depth;
    // If the origin's rget FIFO is gone, so is the origin. This context is about to hear of its end, and no byte has
    // arrived.
    if (kernel.chainWrite(map.job, rgetFifo.pointer) === 0) {
      kernel.storeWord(rgetFifo.pointer + L.RGET_FIFO_LEFT_OFFSET, request.bytes);
    } else if (!engine.isOwn) engine.call();
    return true;
  }

  #side(request: PayloadOffer, rgetFifo: RgetFifo, destination: Destination, links: MemRegion): Side {
    return {
      rgetFifo,
      resultOffset: L.RGET_FIFO_WRONG_OFFSET,
      forget: onAbort(destination.options.signal, () => this.#transfers.stop(rgetFifo)),
      breakOff: () => {
        this.#notice(request, L.TRANSFER_BROKEN);
        return true;
      },
      over: (result: Result) => {
        this.#giveLinks(links);
        this.#complete(destination, result);
      },
    };
  }

  /** A region that takes the links of a chain; undefined: there is no memory. */
  #takeLinks(bytes: number): MemRegion | undefined {
    let links = this.#links.pop();
    if (links !== undefined && links.length < bytes) {
      links.close();
      links = undefined;
    }
    links ??= regionIfAny(this.#regions, bytes);
    if (links !== undefined) this.#linksInUse.add(links);
    return links;
  }

  #giveLinks(links: MemRegion): void {
    this.#linksInUse.delete(links);
    this.#links.push(links);
  }

  /** Pointer to the origin's rget FIFO; 0: the origin has ended, and this context is about to hear of it. */
  #rgetFifoOf({ blockIndex, blockGeneration, place, rgetFifo }: PayloadOffer): number {
    const { kernel, map } = this.#base;
    const pointer = kernel.placeOf(map.job, blockIndex, blockGeneration, place, L.RGET_FIFO_SIZE);
    if (pointer === 0) return 0;
    // SYNC rget-fifo (look): pairs with rgetOpen() and rgetClose().
    return kernel.loadWord(pointer + L.RGET_FIFO_GENERATION_OFFSET) >>> 0 === rgetFifo ? pointer : 0;
  }

  /** Whether #pull() would do something, given the pointer to the origin's rget FIFO. */
  #canPull({ request, at, isCanceled }: Pull, rgetFifo: number): boolean {
    if (rgetFifo === 0) return false;
    if (isCanceled || request.fragment === 0 || this.#transfers.isStopped(rgetFifo)) return true;
    // SYNC staged (look): pairs with the store of the origin's core, which stages.
    return at < this.#base.kernel.loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) * request.fragment;
  }

  /** Copies the next slice of a payload. Returns whether the payload is over. */
  #pull(pull: Pull): boolean {
    if (this.#isRemote(pull.request.origin)) return this.#ask(pull);
    for (const end = pull.at + L.SLICE_BYTES; pull.at < end; ) {
      // Looked up for each part, because the origin may close meanwhile. Then the next part finds no rget FIFO.
      const rgetFifo = this.#rgetFifoOf(pull.request);
      if (!this.#canPull(pull, rgetFifo)) return false;
      if (this.#pullPart(pull, rgetFifo)) return true;
    }
    return false;
  }

  /** Whether #ask() would do something. */
  #canAsk({ request, at, asked, result, isCanceled }: Pull): boolean {
    if (isCanceled || result !== L.TRANSFER_DONE || at === request.bytes) return true;
    return asked < request.bytes && asked - at < ASKED_BYTES_MAX;
  }

  /** Asks for the next slices of a payload in another memory. Returns whether the payload is over. */
  #ask(pull: Pull): boolean {
    const { request } = pull;
    const isThere = pull.at === request.bytes;
    const result = pull.isCanceled && !isThere ? L.TRANSFER_CANCELED : pull.result;
    if (result !== L.TRANSFER_DONE || isThere) {
      this.#notice(request, result);
      return this.#over(pull, resultOf(result));
    }
    while (pull.asked < request.bytes && pull.asked - pull.at < ASKED_BYTES_MAX) {
      const bytes = sliceAt(request, pull.asked);
      this.#tell(request, L.DISPATCH_ID_PULL, pull.asked, bytes);
      pull.asked += bytes;
    }
    return false;
  }

  /** Copies the next fragment of a staged payload, or the next slice of another. Returns whether the payload is over. */
  #pullPart(pull: Pull, rgetFifo: number): boolean {
    const { request, destination, at } = pull;
    const { kernel, map, memory } = this.#base;
    const { fragment } = request;
    const stop = pull.isCanceled ? L.TRANSFER_CANCELED : this.#transfers.stopOf(rgetFifo);
    const isStopped = stop !== L.TRANSFER_DONE;
    const within = fragment === 0 ? at : at % fragment;
    const most = fragment === 0 ? L.SLICE_BYTES : Math.min(L.SLICE_BYTES, fragment - within);
    const bytes = isStopped ? 0 : Math.min(request.bytes - at, most);
    const place = fragment === 0 ? at : (Math.floor(at / fragment) % L.STAGED_COUNT) * fragment + within;
    const from = kernel.placeOf(map.job, request.index, request.generation, (request.offset + place) >>> 0, bytes);
    // The origin closes its ring after its rget FIFO. If the ring is closed, this context is about to hear of the origin's end.
    if (from === 0 && this.#rgetFifoOf(request) === 0) return false;
    const isThere =
      isStopped || from === 0 || copyToDestination(destination, at, memory.bytes.subarray(from, from + bytes));
    if (isStopped || from === 0 || !isThere) {
      const result = isStopped ? stop : isThere ? L.TRANSFER_REFUSED : L.TRANSFER_BROKEN;
      this.#notice(request, result);
      return this.#over(pull, resultOf(result));
    }
    pull.at = at + bytes;
    if (fragment !== 0 && pull.at % fragment === 0) {
      // SYNC passed (passed): pairs with the origin's core, which stages the next fragment in place of this fragment.
      kernel.storeWord(rgetFifo + L.RGET_FIFO_PASSED_OFFSET, pull.at / fragment);
      kernel.ring(slotOf(map, request.origin));
    }
    if (pull.at < request.bytes) return false;
    // If the origin has closed meanwhile, the copied bytes may be newer bytes. This context will hear of the origin's end soon.
    return this.#notice(request, L.TRANSFER_DONE) && this.#over(pull, SUCCESS);
  }

  #over({ destination, forget }: Pull, result: Result): true {
    this.#count(-1);
    forget();
    this.#complete(destination, result);
    return true;
  }

  #complete({ onComplete, cookie }: Destination, result: Result): void {
    if (onComplete !== undefined) this.#base.completions.push(onComplete, cookie, result);
  }

  #isRemote(origin: number): boolean {
    return isRemote(this.#base.map, origin);
  }

  /** Sends an origin in another node a message about its rget FIFO. */
  #tell(
    { origin, blockIndex, blockGeneration, place, rgetFifo }: PayloadOffer,
    dispatch: number,
    ...words: number[]
  ): void {
    const header = Int32Array.of(blockIndex, blockGeneration, place, rgetFifo, ...words);
    this.#base.tell(this.#base.addresses.endpointAt(origin), dispatch, new Uint8Array(header.buffer));
  }

  /** Takes a slice that this context has asked for. */
  #came(message: Message): void {
    if (message.headerBytes !== 4 * PULL_WORDS) return;
    const word = (place: number): number => message.headerWord(4 * place) >>> 0;
    for (const pull of this.#pulls) {
      const { origin, blockIndex, blockGeneration, place, rgetFifo } = pull.request;
      const isOne = blockIndex === word(0) && blockGeneration === word(1) && place === word(2) && rgetFifo === word(3);
      if (!isOne || this.#base.addresses.endpointAt(origin) !== message.origin) continue;
      take(pull, word(4), word(5), message.payloadBytes > 0 ? message.copy() : undefined);
      return;
    }
  }

  /** Tells an origin the result of its payload. False: the origin's rget FIFO is gone. */
  #notice(request: PayloadOffer, result: number): boolean {
    if (this.#isRemote(request.origin)) {
      this.#tell(request, L.DISPATCH_ID_NOTICE, result);
      return true;
    }
    const { blockIndex, blockGeneration, place, rgetFifo, origin } = request;
    const { kernel, map } = this.#base;
    return kernel.chainNotice(map.job, blockIndex, blockGeneration, place, rgetFifo, origin, result) !== 0;
  }
}

/** Bytes of the slice of a payload that begins at a place. */
function sliceAt({ bytes }: PayloadOffer, at: number): number {
  return Math.min(PULL_BYTES, bytes - at);
}

/** Takes an incoming slice. False: the slice is not the next one. */
function take(pull: Pull, at: number, result: number, data: Uint8Array | undefined): boolean {
  // Slices after a failed slice don't count.
  if (pull.result !== L.TRANSFER_DONE || pull.isCanceled) return true;
  if (at !== pull.at || (data !== undefined && data.length !== sliceAt(pull.request, at))) return false;
  const isThere = data === undefined || copyToDestination(pull.destination, at, data);
  pull.result = isThere ? result : L.TRANSFER_BROKEN;
  pull.at += data?.length ?? 0;
  return true;
}

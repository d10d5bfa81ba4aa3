// Point-to-point messages of MPI over one context: sends, receives, waits. The kernels match (src/kernel/mpi.ts); this file
// carries. A short message goes with its payload. Of a long one goes its place; its receiver gets it from there, and answers.
import * as L from "../../assembly/layout.js";
import {
  type Client,
  type Context,
  EAGAIN,
  type Endpoint,
  MemRegion,
  type Message,
  PamiError,
  type ProgressOptions,
  type Result,
  SHUTDOWN,
  SUCCESS,
} from "../index.js";
import { type MpiKernel, selectMpiKernel } from "../kernel/mpi.js";

/** A pointer to a request of the engine, from send() or receive(). */
export type Request = number;

/** A group of ranks, whose messages no other group gets. */
export interface RankGroup {
  /** Number of the communicator, the same at all its members. */
  readonly number: number;
  /** Rank of this task in it. */
  readonly rank: number;
  /** Endpoints of the members, by rank. */
  readonly endpoints: readonly Endpoint[];
  /** Whether no wait of the group may go on. */
  readonly isRevoked?: boolean;
  /** Ranks whose ends do not end a receive from any rank. */
  readonly acknowledged?: ReadonlySet<number>;
}

/** The dispatch id of the engine's messages: the last of those that programs have. */
export const MPI_DISPATCH: number = L.DISPATCH_ID_MAX;
/** Any rank, or any tag. */
export const ANY: number = L.MPI_ANY;
/** Longest payload that goes with its message, between tasks of one memory; measured: above it, one copy beats two. */
const EAGER_MAX = 16_384;
/** The same to tasks of other nodes, where a place costs a journey there and back. */
const EAGER_MAX_REMOTE = 65_536;
/** Communicators that a task may have, those that it has given back included. */
export const COMMS_MAX = 16_384;
/** Bytes of the engine's first region, and of each further one. */
const REGION_BYTES = 1 << 20;
const HANDLE_INDICES = 2 ** 20;
/** Error of a send whose target has ended before it answered, or of a receive whose source has before its payload was here. */
export const MPI_PEER_ENDED = 0x4001;
/** trySend(): there is no room now. */
export const NO_ROOM: Request = -1;
/** Milliseconds of rest(). */
const REST_MS = 0.1;

/** Of a send that found its target ended, or a receive whose source has. */
export class PeerEnded extends Error {
  readonly rank: number;
  /** Whether it is not about a rank: the communicator is revoked. */
  readonly isRevoked: boolean;

  constructor(rank: number, isRevoked = false) {
    super(rank === ANY ? "a rank has ended, and any rank was to send" : `rank ${rank} has ended`);
    this.rank = rank;
    this.isRevoked = isRevoked;
  }
}

export class MessageEngine {
  readonly client: Client;
  readonly context: Context;
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** The region in which the program's buffers lie, and others with buffers that hold packed data. */
  readonly #arena: MemRegion | undefined;
  readonly #scratch = new Set<MemRegion>();
  readonly #host: Context["host"];
  readonly #kernel: MpiKernel;
  readonly #copyBytes: (to: number, from: number, bytes: number) => void;
  readonly #engine: number;
  readonly #regions: MemRegion[] = [];
  /** A header, and what follows that of an MPI_RTS, as bytes that are sent. */
  readonly #header = new Int32Array(L.MPI_HEADER_SIZE / 4);
  readonly #place = new Int32Array(L.MPI_RTS_SIZE / 4);
  readonly #ended = new Set<Endpoint>();
  readonly #locals: ReadonlySet<number>;
  /** Receives whose payload has found no room to be fetched. */
  readonly #unpulled: Request[] = [];
  /** Answers that found no room. */
  readonly #answers: { readonly to: Endpoint; readonly request: number }[] = [];
  #arrivals = 0;
  #awaited: Request = 0;
  #awaitedGroup: RankGroup | undefined;
  #awaitedFrom = 0;
  readonly #isOver = (): boolean =>
    this.isOver(this.#awaited) || this.isHopeless(this.#awaitedGroup as RankGroup, this.#awaitedFrom, this.#awaited);

  /**
   * @param arena the region in which all buffers lie; undefined: they lie in any region of this task
   * @throws PAMIR_NO_MEMORY
   */
  constructor(client: Client, context: Context, arena?: MemRegion) {
    const host = context.host;
    const { core, task } = host;
    this.#host = host;
    this.client = client;
    this.context = context;
    this.#arena = arena;
    this.bytes = client.bytes;
    this.words = new Int32Array(client.bytes.buffer);
    this.#kernel = selectMpiKernel(client.kernel, task.memory);
    this.#copyBytes = (to, from, bytes) => task.kernel.copyBytes(to, from, bytes);
    const region = this.#newRegion();
    this.#engine = region.bytes.byteOffset;
    this.#kernel.mpiInit(this.#engine, region.length, COMMS_MAX);
    this.#locals = new Set(client.localTasks);
    context.dispatch(MPI_DISPATCH, (message) => this.#arrived(message));
    for (let other = 0; other < client.size; other++) {
      const endpoint = client.endpoint(other);
      if (other !== client.task) core.watch(endpoint, () => this.#endpointEnded(endpoint), undefined);
    }
  }

  /**
   * Sends `bytes` bytes at `buffer`. The buffer may be changed once the request is over.
   * @param synchronous whether the request is over only once a receive has the message
   * @returns the request; 0: the send is over @throws PeerEnded
   */
  send(group: RankGroup, to: number, tag: number, buffer: number, bytes: number, synchronous = false): Request {
    const endpoint = group.endpoints[to] as Endpoint;
    const eagerMax = this.#locals.has(this.client.taskOf(endpoint)) ? EAGER_MAX : EAGER_MAX_REMOTE;
    if (!synchronous && bytes <= eagerMax) {
      const at = this.#reserve(endpoint, bytes, to);
      this.#writeHeader(this.words, at >>> 2, group, tag, L.MPI_EAGER, bytes);
      this.#copyBytes(at + L.MPI_HEADER_SIZE, buffer, bytes);
      this.context.commit(endpoint);
      return 0;
    }
    const request = this.#newRequest(() => this.#kernel.mpiSent(this.#engine, endpoint));
    this.#writePlace(buffer, bytes, request);
    this.#writeHeader(this.#header, 0, group, tag, L.MPI_RTS, bytes);
    const result = this.context.sendSync({
      to: endpoint,
      dispatch: MPI_DISPATCH,
      header: this.#header,
      payload: this.#place,
    });
    if (result !== SUCCESS) {
      this.#kernel.mpiFree(this.#engine, request);
      throw new PeerEnded(to);
    }
    return request;
  }

  /**
   * As send(), but never blocks the thread.
   * @param payload a view of any memory, if the message is short() and not synchronous; else one of a region of this task
   * @returns the request; 0: the send is over; NO_ROOM: nothing was sent
   */
  trySend(group: RankGroup, to: number, tag: number, payload: Uint8Array, synchronous: boolean): Request {
    const endpoint = group.endpoints[to] as Endpoint;
    const { length: bytes } = payload;
    if (!synchronous && this.isShort(group, to, bytes)) {
      const at = this.context.reserve(endpoint, MPI_DISPATCH, bytes, L.MPI_HEADER_SIZE);
      if (at === -EAGAIN) return NO_ROOM;
      if (at <= 0) throw this.#reserveError(at, bytes, to);
      this.#writeHeader(this.words, at >>> 2, group, tag, L.MPI_EAGER, bytes);
      this.bytes.set(payload, at + L.MPI_HEADER_SIZE);
      this.context.commit(endpoint);
      return 0;
    }
    const request = this.#newRequest(() => this.#kernel.mpiSent(this.#engine, endpoint));
    this.#writePlace(payload.byteOffset, bytes, request);
    this.#writeHeader(this.#header, 0, group, tag, L.MPI_RTS, bytes);
    const offer = { to: endpoint, dispatch: MPI_DISPATCH, header: this.#header, payload: this.#place };
    const result = this.context.send(offer);
    if (result === SUCCESS) return request;
    this.#kernel.mpiFree(this.#engine, request);
    if (result === EAGAIN) return NO_ROOM;
    throw this.#reserveError(-result, bytes, to);
  }

  /** Whether the payload of a message goes with it. */
  isShort(group: RankGroup, to: number, bytes: number): boolean {
    const isLocal = this.#locals.has(this.client.taskOf(group.endpoints[to] as Endpoint));
    return bytes <= (isLocal ? EAGER_MAX : EAGER_MAX_REMOTE);
  }

  /** Posts a receive into `capacity` bytes at `buffer`. @param from a rank, or ANY @param tag a tag, or ANY */
  receive(group: RankGroup, from: number, tag: number, buffer: number, capacity: number): Request {
    const request = this.#newRequest(() =>
      this.#kernel.mpiPost(this.#engine, group.number, from, tag, buffer, capacity),
    );
    if (this.state(request) === L.MPI_REQUEST_MATCHED) this.pull(request);
    return request;
  }

  /** Whether a request is over: it has its message, its answer, or was taken back. */
  isOver(request: Request): boolean {
    return request === 0 || this.state(request) >= L.MPI_REQUEST_DONE;
  }

  /**
   * Advances until a request is over. Blocks the thread.
   * @param from the endpoint that has to do something for it; undefined: any
   * @throws PeerEnded that endpoint has ended, and what it sent has come; or the group is revoked
   */
  wait(request: Request, group: RankGroup, from: number): void {
    if (this.isOver(request)) return;
    const awaited = this.#awaited;
    const awaitedGroup = this.#awaitedGroup;
    const awaitedFrom = this.#awaitedFrom;
    this.#awaited = request;
    this.#awaitedGroup = group;
    this.#awaitedFrom = from;
    try {
      this.#until(this.#isOver);
    } finally {
      this.#awaited = awaited;
      this.#awaitedGroup = awaitedGroup;
      this.#awaitedFrom = awaitedFrom;
    }
    if (!this.isOver(request)) throw new PeerEnded(from, group.isRevoked);
  }

  /** Advances until a condition holds. Blocks the thread. */
  waitUntil(condition: () => boolean): void {
    this.#until(condition);
  }

  /** As waitUntil(), but does not block the thread. @throws as `context.progress()` */
  until(condition: () => boolean, options: ProgressOptions = {}): Promise<void> {
    return this.#host.until(() => {
      if (this.owesAnswers) this.#catchUp();
      return condition();
    }, options);
  }

  /** One round. */
  advance(): void {
    this.context.advance();
    if (this.owesAnswers) this.#catchUp();
  }

  /** Sleeps until anything comes, a tenth of a millisecond at most: for loops that poll. */
  rest(): void {
    const seen = this.#arrivals;
    this.context.advanceUntil(() => this.#arrivals !== seen, { timeout: REST_MS });
  }

  /** Whether a rank's task has ended, and what it sent has come. */
  hasEnded(group: RankGroup, rank: number): boolean {
    return this.#hasEnded(group.endpoints[rank]);
  }

  /**
   * Whether a rank will do nothing for a request any more: it has ended. A receive that has its message ends with the transfer,
   * which may still write its buffer.
   */
  isLost(group: RankGroup, rank: number, request: Request): boolean {
    return this.#hasEnded(group.endpoints[rank]) && !this.#isMatched(request);
  }

  /**
   * Whether what a rank has to do will not come: that rank has ended, or for ANY one of which the program does not know.
   * @param request what waits for it; 0: a probe
   */
  isHopeless(group: RankGroup, rank: number, request: Request): boolean {
    if (group.isRevoked) return true;
    if (this.#isMatched(request)) return false;
    if (rank !== ANY) return this.#hasEnded(group.endpoints[rank]);
    if (this.#ended.size === 0) return false;
    return group.endpoints.some((endpoint, other) => this.#ended.has(endpoint) && !group.acknowledged?.has(other));
  }

  /** Pointer to the first stored message that a receive would get now; 0: there is none. See STORED in the layout. */
  probe(group: RankGroup, from: number, tag: number): number {
    return this.#kernel.mpiProbe(this.#engine, group.number, from, tag);
  }

  /** As probe(), but no other receive gets the message: only receiveTaken(). */
  take(group: RankGroup, from: number, tag: number): number {
    return this.#kernel.mpiTake(this.#engine, group.number, from, tag);
  }

  /** Receives a message of take() into `capacity` bytes at `buffer`. */
  receiveTaken(stored: number, buffer: number, capacity: number): Request {
    const request = this.#newRequest(() => this.#kernel.mpiMatched(this.#engine, stored, buffer, capacity));
    if (this.state(request) === L.MPI_REQUEST_MATCHED) this.pull(request);
    return request;
  }

  /** Takes back a receive. @returns whether it is over without a message; else it completes */
  cancel(request: Request): boolean {
    return this.#kernel.mpiCancel(this.#engine, request) === 1;
  }

  /** Gives a request back that is over. */
  free(request: Request): void {
    if (request !== 0) this.#kernel.mpiFree(this.#engine, request);
  }

  /** Whether a number is a pointer to a request of this engine that was not given back. */
  isRequest(pointer: number): boolean {
    const isOne = ({ bytes: { byteOffset, length } }: MemRegion): boolean =>
      pointer >= byteOffset && pointer < byteOffset + length;
    if (pointer % L.MPI_REQUEST_SIZE !== 0 || !this.#regions.some(isOne)) return false;
    const kind = this.#word(pointer + L.MPI_REQUEST_KIND_OFFSET);
    return kind === L.MPI_RECEIVE || kind === L.MPI_SEND;
  }

  state(request: Request): number {
    return this.#word(request + L.MPI_REQUEST_STATE_OFFSET);
  }

  /** A word of a request that is over: MPI_REQUEST_…_OFFSET. */
  field(request: Request, offset: number): number {
    return this.#word(request + offset);
  }

  /** Copies bytes of the memory. */
  copy(to: number, from: number, bytes: number): void {
    this.#copyBytes(to, from, bytes);
  }

  /** Advances until all sends are over. */
  drain(): void {
    this.#until(() => this.isDrained);
  }

  /** Whether all sends are over. */
  get isDrained(): boolean {
    return this.#firstSent === 0 && !this.owesAnswers;
  }

  /** Pointer to the MPI_ENGINE block. */
  get pointer(): number {
    return this.#engine;
  }

  /** Most bytes of a payload that goes with its message to a task of this memory. */
  get eagerMax(): number {
    return EAGER_MAX;
  }

  /** Whether answers wait for room, or payloads that come before answers. */
  get owesAnswers(): boolean {
    return this.#answers.length > 0 || this.#unpulled.length > 0;
  }

  /** Whether the end of any rank is known. */
  get hasLostRanks(): boolean {
    return this.#ended.size > 0;
  }

  /** Gives all memory back. The context stays. */
  close(): void {
    for (const region of this.#regions) region.close();
  }

  /** An endpoint has ended, and all that it sent has come: nothing answers its sends any more. */
  #endpointEnded(endpoint: Endpoint): void {
    this.#ended.add(endpoint);
    let request = this.#firstSent;
    while (request !== 0) {
      const next = this.#word(request + L.MPI_REQUEST_NEXT_OFFSET) >>> 0;
      const target = this.#word(request + L.MPI_REQUEST_ORIGIN_OFFSET) >>> 0;
      if (target === endpoint) this.#kernel.mpiFail(this.#engine, request, MPI_PEER_ENDED);
      request = next;
    }
  }

  /** The first send that waits for its answer; 0: none does. */
  get #firstSent(): Request {
    return this.#word(this.#engine + L.MPI_ENGINE_SENT_FIRST_OFFSET) >>> 0;
  }

  #isMatched(request: Request): boolean {
    return request !== 0 && this.state(request) === L.MPI_REQUEST_MATCHED;
  }

  #word(pointer: number): number {
    return this.words[pointer >>> 2] as number;
  }

  #hasEnded(endpoint: Endpoint | undefined): boolean {
    return endpoint !== undefined && this.#ended.size > 0 && this.#ended.has(endpoint);
  }

  #until(condition: () => boolean): void {
    const result = this.context.advanceUntil(() => {
      if (this.owesAnswers) this.#catchUp();
      return condition();
    });
    if (result !== SUCCESS) throw new PamiError("PAMIR_INTERRUPTED", "the program was interrupted in a call of MPI");
  }

  /** Offset of a reserved message. @throws PeerEnded */
  #reserve(endpoint: Endpoint, bytes: number, rank: number): number {
    let at = this.context.reserve(endpoint, MPI_DISPATCH, bytes, L.MPI_HEADER_SIZE);
    if (at === -EAGAIN) {
      this.#until(() => {
        at = this.context.reserve(endpoint, MPI_DISPATCH, bytes, L.MPI_HEADER_SIZE);
        return at !== -EAGAIN;
      });
    }
    if (at > 0) return at;
    throw this.#reserveError(at, bytes, rank);
  }

  /** @param result negated */
  #reserveError(result: number, bytes: number, rank: number): Error {
    if (result === -SHUTDOWN) return new PeerEnded(rank);
    return new PamiError("PAMIR_NO_MEMORY", `no memory for a message of ${bytes} bytes to rank ${rank}`);
  }

  /** Writes where a buffer lies into what follows the header of an MPI_RTS. */
  #writePlace(buffer: number, length: number, request: Request): void {
    const { handle, bytes } = this.regionOf(buffer, length);
    this.#place[L.MPI_RTS_INDEX_OFFSET >>> 2] = handle % HANDLE_INDICES;
    this.#place[L.MPI_RTS_GENERATION_OFFSET >>> 2] = Math.floor(handle / HANDLE_INDICES);
    this.#place[L.MPI_RTS_OFFSET_OFFSET >>> 2] = buffer - bytes.byteOffset;
    this.#place[L.MPI_RTS_REQUEST_OFFSET >>> 2] = request;
  }

  #writeHeader(words: Int32Array, at: number, group: RankGroup, tag: number, kind: number, bytes: number): void {
    words[at + (L.MPI_HEADER_COMM_OFFSET >>> 2)] = group.number | (kind << L.MPI_HEADER_KIND_SHIFT);
    words[at + (L.MPI_HEADER_SOURCE_OFFSET >>> 2)] = group.rank;
    words[at + (L.MPI_HEADER_TAG_OFFSET >>> 2)] = tag;
    words[at + (L.MPI_HEADER_BYTES_OFFSET >>> 2)] = bytes;
  }

  /** A place for `bytes` bytes, as a buffer of sends and receives, until freeScratch(). @throws PAMIR_NO_MEMORY */
  scratch(bytes: number): MemRegion {
    const region = this.client.createRegion(Math.max(1, bytes));
    this.#scratch.add(region);
    return region;
  }

  freeScratch(region: MemRegion): void {
    this.#scratch.delete(region);
    region.close();
  }

  /** Whether bytes lie in one region of the program, as buffers of messages do. No bytes lie in any. */
  holds(buffer: number, bytes: number): boolean {
    if (bytes === 0) return true;
    const isIn = ({ bytes: { byteOffset, length } }: MemRegion): boolean =>
      buffer >= byteOffset && buffer + bytes <= byteOffset + length;
    if (this.#arena !== undefined && isIn(this.#arena)) return true;
    for (const region of this.#scratch) if (isIn(region)) return true;
    return false;
  }

  /**
   * The region in which a buffer lies. One that begins where a region ends may be another region's.
   * @throws PAMIR_BOUNDS it lies in another task's memory
   */
  regionOf(buffer: number, bytes: number): MemRegion {
    const holds = ({ bytes: { byteOffset, length } }: MemRegion): boolean =>
      buffer >= byteOffset && buffer + bytes <= byteOffset + length;
    if (this.#arena !== undefined && holds(this.#arena)) return this.#arena;
    for (const region of this.#scratch) if (holds(region)) return region;
    const own = this.#arena === undefined ? this.regionAt(this.bytes.subarray(buffer, buffer + bytes)) : undefined;
    if (own !== undefined) return own;
    throw new PamiError("PAMIR_BOUNDS", `the ${bytes} bytes at ${buffer} lie outside of the program's memory`);
  }

  /** The open region of this task in which a view lies; undefined: it lies in none. The region stays that of its owner. */
  regionAt(view: Uint8Array): MemRegion | undefined {
    const { regions } = this.#host.task;
    const found = regions.find(view);
    if (found === undefined) return undefined;
    const { pointer, length, index, generation } = found;
    const bytes = this.bytes.subarray(pointer, pointer + length);
    return new MemRegion(bytes, index, generation, () => {}, regions.stateOf(bytes));
  }

  #newRegion(): MemRegion {
    const region = this.client.createRegion(REGION_BYTES);
    this.#regions.push(region);
    return region;
  }

  #extend(): void {
    const region = this.#newRegion();
    this.#kernel.mpiExtend(this.#engine, region.bytes.byteOffset, region.length);
  }

  #newRequest(make: () => number): Request {
    let request = make();
    if (request === L.MPI_NO_MEMORY) {
      this.#extend();
      request = make();
    }
    return request;
  }

  #arrived(message: Message): void {
    if (message.headerBytes !== L.MPI_HEADER_SIZE || !isWhole(message)) throw foreign(message);
    let { headerOffset: header, payloadOffset: payload } = message;
    if (message.bytes.buffer !== this.bytes.buffer) {
      // A message that came in parts lies elsewhere; the kernels read the job's memory alone.
      const copy = this.client.createRegion(L.MPI_HEADER_SIZE + message.payloadBytes);
      copy.bytes.set(message.header);
      copy.bytes.set(message.payload, L.MPI_HEADER_SIZE);
      header = copy.bytes.byteOffset;
      payload = header + L.MPI_HEADER_SIZE;
      this.#match(header, payload, message.origin);
      copy.close();
    } else this.#match(header, payload, message.origin);
  }

  #match(header: number, payload: number, origin: Endpoint): void {
    this.#arrivals++;
    let request = this.#kernel.mpiArrive(this.#engine, header, payload, origin);
    if (request === L.MPI_NO_MEMORY) {
      this.#extend();
      request = this.#kernel.mpiArrive(this.#engine, header, payload, origin);
    }
    if (request === L.MPI_ARRIVED_STORED) return;
    if (request === L.MPI_NO_MEMORY || request === L.MPI_NO_REQUEST) throw foreign({ origin });
    if (this.state(request) === L.MPI_REQUEST_MATCHED) this.pull(request);
  }

  /** Gets the payload of a matched request, and answers. Fails if the rank that has the payload has ended. */
  pull(request: Request): void {
    if (this.#unpulled.length > 0 || !this.#beginPull(request)) this.#unpulled.push(request);
  }

  /** @returns false: there is no room */
  #beginPull(request: Request): boolean {
    const origin = this.field(request, L.MPI_REQUEST_ORIGIN_OFFSET);
    const whole = this.field(request, L.MPI_REQUEST_BYTES_OFFSET) >>> 0;
    const bytes = Math.min(whole, this.field(request, L.MPI_REQUEST_CAPACITY_OFFSET) >>> 0);
    const answer = this.field(request, L.MPI_REQUEST_ANSWER_OFFSET);
    const end = (result: Result): void => {
      if (result !== SUCCESS) this.words[(request + L.MPI_REQUEST_ERROR_OFFSET) >>> 2] = MPI_PEER_ENDED;
      this.words[(request + L.MPI_REQUEST_STATE_OFFSET) >>> 2] = L.MPI_REQUEST_DONE;
      if (result === SUCCESS) this.#answer(origin, answer);
    };
    const result = bytes === 0 ? SUCCESS : this.#get(request, origin, bytes, end);
    if (bytes === 0 || (result !== SUCCESS && result !== EAGAIN)) end(result);
    return result !== EAGAIN;
  }

  /** @returns SUCCESS: `onLocal` is called; EAGAIN: there is no room; SHUTDOWN: the task that has the payload has ended */
  #get(request: Request, origin: Endpoint, bytes: number, onLocal: (result: Result) => void): Result {
    const buffer = this.field(request, L.MPI_REQUEST_BUFFER_OFFSET) >>> 0;
    const generation = this.field(request, L.MPI_REQUEST_GENERATION_OFFSET) >>> 0;
    const local = this.regionOf(buffer, bytes);
    try {
      return this.context.get({
        to: origin,
        local,
        localOffset: buffer - local.bytes.byteOffset,
        remote: generation * HANDLE_INDICES + this.field(request, L.MPI_REQUEST_INDEX_OFFSET),
        remoteOffset: this.field(request, L.MPI_REQUEST_OFFSET_OFFSET) >>> 0,
        bytes,
        onLocal: (_cookie, result) => onLocal(result),
      });
    } catch (error) {
      // The region may be gone before the news of its task's end comes.
      if ((error as PamiError).code !== "PAMIR_STALE") throw error;
      return SHUTDOWN;
    }
  }

  /** Does what had no room before. */
  #catchUp(): void {
    while (this.#unpulled.length > 0 && this.#beginPull(this.#unpulled[0] as Request)) this.#unpulled.shift();
    if (this.#answers.length > 0) this.#sendAnswers();
  }

  #answer(to: Endpoint, request: number): void {
    this.#answers.push({ to, request });
    if (this.#answers.length === 1) this.#sendAnswers();
  }

  #sendAnswers(): void {
    for (;;) {
      const first = this.#answers[0];
      if (first === undefined) return;
      this.#header.fill(0);
      this.#header[L.MPI_HEADER_COMM_OFFSET >>> 2] = L.MPI_ANSWER << L.MPI_HEADER_KIND_SHIFT;
      this.#header[L.MPI_HEADER_BYTES_OFFSET >>> 2] = first.request;
      if (this.context.sendImmediate(first.to, MPI_DISPATCH, this.#header) === EAGAIN) return;
      this.#answers.shift();
    }
  }
}

/** Whether a message has the payload that its header says. */
function isWhole(message: Message): boolean {
  const kind = message.headerWord(L.MPI_HEADER_COMM_OFFSET) >>> L.MPI_HEADER_KIND_SHIFT;
  const { payloadBytes } = message;
  if (kind === L.MPI_EAGER) return payloadBytes === message.headerWord(L.MPI_HEADER_BYTES_OFFSET);
  return payloadBytes === (kind === L.MPI_RTS ? L.MPI_RTS_SIZE : 0);
}

/** @returns the error of a message that no engine has sent */
function foreign({ origin }: Pick<Message, "origin">): PamiError {
  return new PamiError(
    "PAMIR_INVAL",
    `endpoint ${origin} sent a message to dispatch id ${MPI_DISPATCH} that is none of MPI`,
  );
}

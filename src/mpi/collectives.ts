// Collective operations of a communicator in TypeScript, over its geometry. Source: MPI 5.0, chapter 6.
import {
  type CollectiveType,
  type ElementType,
  type Geometry,
  type Operation,
  PamiError,
  SUCCESS,
  type UserOperation,
} from "../index.js";
import { bytesOf } from "./buffers.js";
import type { Communicator } from "./communicator.js";
import { IN_PLACE } from "./constants.js";
import type { Rank } from "./rank.js";

/** What a reduction combines elements by: a name of pamir's, or a function. */
export type Op = Operation | UserOperation;

/** Blocks of several lengths in one view. */
export interface CommBlocks {
  /** What has the blocks. */
  readonly view: ArrayBufferView;
  /** Elements of the block of each rank. */
  readonly counts: ArrayLike<number>;
  /** Where the block of each rank begins in the view, in elements (default: one behind the other). */
  readonly displacements?: ArrayLike<number> | undefined;
}

type Sent = ArrayBufferView | typeof IN_PLACE;
type Given = Readonly<Record<string, unknown>>;
type AsyncForm = (parameters: Given) => Promise<unknown>;
type SyncForm = (parameters: Given) => number;

/** The bytes of views: the same object again for the same view, since a geometry does not check a call anew that is like one before. */
const known = new WeakMap<ArrayBufferView, Uint8Array>();

/** The bytes of a view. Programs in C move bytes, and all members give a geometry elements of one type. */
function plain(view: ArrayBufferView | null): Uint8Array | null {
  if (view === null || view instanceof Uint8Array) return view;
  let bytes = known.get(view);
  if (bytes?.length !== view.byteLength) {
    bytes = bytesOf("a collective operation", view);
    known.set(view, bytes);
  }
  return bytes;
}

/** What geometries call the part of a member that lies in its other view: nothing. */
function placed(view: Sent | null): Uint8Array | null {
  return view === IN_PLACE ? null : plain(view);
}

function reduction(send: Sent, receive: ArrayBufferView | null, operation: Op, type: ElementType | undefined): Given {
  return { send: send === IN_PLACE ? null : send, receive, operation, ...(type === undefined ? {} : { type }) };
}

/** Numbers of elements as numbers of bytes. */
function scaled(view: ArrayBufferView, elements: ArrayLike<number> | undefined): number[] | undefined {
  if (elements === undefined) return undefined;
  const { BYTES_PER_ELEMENT: bytes = 1 } = view as Partial<Uint8Array>;
  return Array.from(elements, (count) => count * bytes);
}

/** @param own null at the ranks that have no blocks */
function blocks(name: "send" | "receive", own: CommBlocks | null, other: Sent | null): Given {
  if (own === null)
    return name === "send" ? { send: null, receive: placed(other) } : { send: placed(other), receive: null };
  const { view, counts, displacements } = own;
  const [send, receive] = name === "send" ? [plain(view), placed(other)] : [placed(other), plain(view)];
  return { send, receive, counts: scaled(view, counts), displacements: scaled(view, displacements) };
}

function all(send: CommBlocks | typeof IN_PLACE, receive: CommBlocks): Given {
  const sent = send === IN_PLACE ? receive : send;
  return {
    send: send === IN_PLACE ? null : plain(send.view),
    sendCounts: scaled(sent.view, sent.counts),
    sendDisplacements: scaled(sent.view, sent.displacements),
    receive: plain(receive.view),
    receiveCounts: scaled(receive.view, receive.counts),
    receiveDisplacements: scaled(receive.view, receive.displacements),
  };
}

/** The collective operations of a communicator. All its ranks begin the same ones, in the same order. */
export abstract class CommCollectives {
  /** Rank of this task in the communicator. */
  readonly rank: number;
  /** Number of its ranks. */
  readonly size: number;
  /** @internal */
  protected readonly own: Rank;
  /** @internal */
  protected readonly communicator: Communicator;
  #isFreed = false;

  /** @internal */
  constructor(own: Rank, communicator: Communicator) {
    this.own = own;
    this.communicator = communicator;
    this.rank = communicator.rank;
    this.size = communicator.size;
  }

  /** @internal @throws PAMIR_CLOSED */
  protected checkOpen(call: string): void {
    this.own.checkOpen(call);
    if (this.#isFreed) throw new PamiError("PAMIR_CLOSED", `${call}() of a communicator that was freed`);
  }

  /** @internal */
  protected close(): void {
    this.#isFreed = true;
    this.communicator.close();
  }

  /**
   * Resolves once all ranks have begun this barrier. The errors of all collective operations are those of geometries:
   * PAMIR_SHUTDOWN (a rank has ended), PAMIR_COLLECTIVE (ranks began different operations), PAMIR_INVAL, PAMIR_CLOSED.
   */
  async barrier(): Promise<void> {
    await this.#run("barrier", undefined);
  }

  /** As barrier(), but blocks the thread. So do all functions whose names end in `Sync`. */
  barrierSync(): void {
    this.#runSync("barrier", undefined);
  }

  /** Copies the root's view to those of all ranks, which are as long. */
  async bcast(view: ArrayBufferView, root = 0): Promise<void> {
    await this.#run("broadcast", { buffer: plain(view), root });
  }

  /** As bcast(), but blocks the thread. */
  bcastSync(view: ArrayBufferView, root = 0): void {
    this.#runSync("broadcast", { buffer: plain(view), root });
  }

  /**
   * Reduces the elements of all ranks; the root gets the result.
   * @param send IN_PLACE at the root: its elements lie in `receive`
   * @param receive null at the other ranks
   * @param type of the elements; default: that of the view's class. Complex numbers and pairs have to be named
   */
  async reduce(
    send: Sent,
    receive: ArrayBufferView | null,
    operation: Op = "sum",
    root = 0,
    type?: ElementType,
  ): Promise<void> {
    await this.#run("reduce", { ...reduction(send, receive, operation, type), root });
  }

  /** As reduce(), but blocks the thread. */
  reduceSync(send: Sent, receive: ArrayBufferView | null, operation: Op = "sum", root = 0, type?: ElementType): void {
    this.#runSync("reduce", { ...reduction(send, receive, operation, type), root });
  }

  /** As reduce(), and all ranks get the result. */
  async allreduce(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): Promise<void> {
    await this.#run("allreduce", reduction(send, receive, operation, type));
  }

  /** As allreduce(), but blocks the thread. */
  allreduceSync(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): void {
    this.#runSync("allreduce", reduction(send, receive, operation, type));
  }

  /** Reduces the elements of the ranks up to this one. */
  async scan(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): Promise<void> {
    await this.#run("scan", { ...reduction(send, receive, operation, type), exclusive: false });
  }

  /** As scan(), but blocks the thread. */
  scanSync(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): void {
    this.#runSync("scan", { ...reduction(send, receive, operation, type), exclusive: false });
  }

  /** Reduces the elements of the ranks before this one. Rank 0 gets nothing. */
  async exscan(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): Promise<void> {
    await this.#run("scan", { ...reduction(send, receive, operation, type), exclusive: true });
  }

  /** As exscan(), but blocks the thread. */
  exscanSync(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): void {
    this.#runSync("scan", { ...reduction(send, receive, operation, type), exclusive: true });
  }

  /** As reduce(), and each rank gets `counts[rank]` elements of the result. */
  async reduceScatter(
    send: Sent,
    receive: ArrayBufferView,
    counts: ArrayLike<number>,
    operation: Op = "sum",
    type?: ElementType,
  ): Promise<void> {
    await this.#run("reduceScatter", { ...reduction(send, receive, operation, type), counts });
  }

  /** As reduceScatter(), but blocks the thread. */
  reduceScatterSync(
    send: Sent,
    receive: ArrayBufferView,
    counts: ArrayLike<number>,
    operation: Op = "sum",
    type?: ElementType,
  ): void {
    this.#runSync("reduceScatter", { ...reduction(send, receive, operation, type), counts });
  }

  /** As reduceScatter(), and each rank gets as many elements. */
  async reduceScatterBlock(
    send: Sent,
    receive: ArrayBufferView,
    operation: Op = "sum",
    type?: ElementType,
  ): Promise<void> {
    await this.#run("reduceScatter", reduction(send, receive, operation, type));
  }

  /** As reduceScatterBlock(), but blocks the thread. */
  reduceScatterBlockSync(send: Sent, receive: ArrayBufferView, operation: Op = "sum", type?: ElementType): void {
    this.#runSync("reduceScatter", reduction(send, receive, operation, type));
  }

  /**
   * Copies the views of all ranks to the root's `receive`, by rank.
   * @param send IN_PLACE at the root: its block lies in `receive`
   * @param receive null at the other ranks
   */
  async gather(send: Sent, receive: ArrayBufferView | null, root = 0): Promise<void> {
    await this.#run("gather", { send: placed(send), receive: plain(receive), root });
  }

  /** As gather(), but blocks the thread. */
  gatherSync(send: Sent, receive: ArrayBufferView | null, root = 0): void {
    this.#runSync("gather", { send: placed(send), receive: plain(receive), root });
  }

  /** As gather(), with blocks of several lengths. @param receive null at the ranks other than the root */
  async gatherv(send: Sent, receive: CommBlocks | null, root = 0): Promise<void> {
    await this.#run("gatherv", { ...blocks("receive", receive, send), root });
  }

  /** As gatherv(), but blocks the thread. */
  gathervSync(send: Sent, receive: CommBlocks | null, root = 0): void {
    this.#runSync("gatherv", { ...blocks("receive", receive, send), root });
  }

  /**
   * Copies a block of the root's `send` to each rank.
   * @param send null at the ranks other than the root
   * @param receive IN_PLACE at the root: its block stays in `send`
   */
  async scatter(send: ArrayBufferView | null, receive: Sent, root = 0): Promise<void> {
    await this.#run("scatter", { send: plain(send), receive: placed(receive), root });
  }

  /** As scatter(), but blocks the thread. */
  scatterSync(send: ArrayBufferView | null, receive: Sent, root = 0): void {
    this.#runSync("scatter", { send: plain(send), receive: placed(receive), root });
  }

  /** As scatter(), with blocks of several lengths. @param send null at the ranks other than the root */
  async scatterv(send: CommBlocks | null, receive: Sent, root = 0): Promise<void> {
    await this.#run("scatterv", { ...blocks("send", send, receive), root });
  }

  /** As scatterv(), but blocks the thread. */
  scattervSync(send: CommBlocks | null, receive: Sent, root = 0): void {
    this.#runSync("scatterv", { ...blocks("send", send, receive), root });
  }

  /** Copies the views of all ranks to the `receive` of all, by rank. @param send IN_PLACE: the block lies in `receive` */
  async allgather(send: Sent, receive: ArrayBufferView): Promise<void> {
    await this.#run("allgather", { send: placed(send), receive: plain(receive) });
  }

  /** As allgather(), but blocks the thread. */
  allgatherSync(send: Sent, receive: ArrayBufferView): void {
    this.#runSync("allgather", { send: placed(send), receive: plain(receive) });
  }

  /** As allgather(), with blocks of several lengths. */
  async allgatherv(send: Sent, receive: CommBlocks): Promise<void> {
    await this.#run("allgatherv", blocks("receive", receive, send));
  }

  /** As allgatherv(), but blocks the thread. */
  allgathervSync(send: Sent, receive: CommBlocks): void {
    this.#runSync("allgatherv", blocks("receive", receive, send));
  }

  /** Each rank sends a block to each rank. @param send IN_PLACE: the blocks lie in `receive`, and are replaced */
  async alltoall(send: Sent, receive: ArrayBufferView): Promise<void> {
    await this.#run("alltoall", { send: placed(send), receive: plain(receive) });
  }

  /** As alltoall(), but blocks the thread. */
  alltoallSync(send: Sent, receive: ArrayBufferView): void {
    this.#runSync("alltoall", { send: placed(send), receive: plain(receive) });
  }

  /** As alltoall(), with blocks of several lengths. */
  async alltoallv(send: CommBlocks | typeof IN_PLACE, receive: CommBlocks): Promise<void> {
    await this.#run("alltoallv", all(send, receive));
  }

  /** As alltoallv(), but blocks the thread. */
  alltoallvSync(send: CommBlocks | typeof IN_PLACE, receive: CommBlocks): void {
    this.#runSync("alltoallv", all(send, receive));
  }

  async #run(type: CollectiveType, parameters: Given | undefined): Promise<void> {
    this.checkOpen(type);
    // It begins at once where it can: operations begin in the order of their calls.
    const geometry = this.communicator.made ?? (await this.communicator.geometryAsync());
    if (parameters === undefined) await geometry.barrier();
    else await (geometry[type as "allgather"] as unknown as AsyncForm).call(geometry, parameters);
  }

  #runSync(type: CollectiveType, parameters: Given | undefined): void {
    this.checkOpen(type);
    const { geometry } = this.communicator;
    const result =
      parameters === undefined
        ? geometry.barrierSync()
        : (geometry[`${type}Sync` as keyof Geometry] as SyncForm).call(geometry, parameters);
    if (result !== SUCCESS) throw this.communicator.failure(type);
  }
}

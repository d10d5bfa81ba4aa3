// A region of each member of a geometry, with the handles of all.
import { NO_OPTIONS } from "../../core/check.js";
import type { Endpoint } from "../../core/endpoint.js";
import { checkInteger, markCopy, PamiError } from "../../core/error.js";
import { type PayloadView, viewElementBytes, viewOf } from "../../core/message/view.js";
import { generationOf, indexOf, type MemRegion, type RegionHandle } from "../../core/region.js";
import { checkProgress, type ProgressOptions } from "../waits.js";
import { type ExtensionHost, isLocal, makeTogether } from "./extension-host.js";

/**
 * A region of each member of a geometry, from `geometry.shareRegion()`. It belongs to the thread of this member, as the
 * geometry does.
 */
export class SharedRegion {
  /** This member's region. */
  readonly region: MemRegion;
  /** The bytes of this member's region. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** The handles of all members' regions, by rank: for put, get and rmw. */
  readonly handles: readonly RegionHandle[];
  /** The lengths of all members' regions in bytes, by rank. */
  readonly lengths: readonly number[];
  readonly #host: ExtensionHost;
  /** @internal */
  constructor(host: ExtensionHost, region: MemRegion, handles: readonly RegionHandle[], lengths: readonly number[]) {
    this.region = region;
    this.bytes = region.bytes;
    this.handles = handles;
    this.lengths = lengths;
    this.#host = host;
  }

  /** Whether a member's region can be read and written directly: that member shares this one's memory, and has not ended. */
  isDirect(rank: number): boolean {
    return this.#pointer(rank) !== 0;
  }

  /**
   * Returns a view of a member's region: of this member's (default), or of another one that `isDirect()`. Plain reads and
   * writes have no order: synchronize by `barrier()`, messages or Atomics. The view must not be used once the region is
   * closed or its member has ended.
   * @param type a typed array's constructor, or DataView
   * @throws PAMIR_INVAL; PAMIR_BOUNDS (the member shares no memory with this one: use get and put); PAMIR_CLOSED
   */
  view<View extends ArrayBufferView>(type: PayloadView<View>, rank = this.#host.group.rank): View {
    viewElementBytes(type);
    if (this.region.closed) throw new PamiError("PAMIR_CLOSED", "view() of a shared region that is closed");
    const pointer = this.#pointer(rank);
    if (pointer === 0) {
      throw new PamiError("PAMIR_BOUNDS", `view(): the region of rank ${rank} is in another memory, or has ended`);
    }
    return viewOf(type, this.bytes.buffer, pointer, this.lengths[rank] as number);
  }

  /** @internal Where a member's region begins; 0: it is not direct. It stays valid until this thread advances a context. */
  pointerOf(rank: number): number {
    if (this.region.closed || !isLocal(this.#host.task, this.#host.group.endpoints[rank] as Endpoint)) return 0;
    const { kernel, map } = this.#host.task;
    const handle = this.handles[rank] as RegionHandle;
    return kernel.placeOf(map.job, indexOf(handle), generationOf(handle), 0, this.lengths[rank] as number);
  }

  /**
   * Closes the region of this member once all members have called this, so that views and transfers that others have made
   * before are done. All members call it. If it fails, or the geometry is closed, the region is closed too.
   * @throws as `geometry.barrier()`
   */
  async close(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("close()", options);
    const { group, barrier } = this.#host;
    if (this.region.closed) return;
    try {
      if (!group.closed) await barrier("close", options);
    } finally {
      this.region.close();
    }
  }

  #pointer(rank: number): number {
    checkInteger("rank", rank, 0, this.lengths.length - 1);
    return this.pointerOf(rank);
  }
}

/** A shared region that is made for something else. */
interface Purpose {
  /** As which it was called: "createGrid". */
  readonly call: string;
  readonly same: object;
  /** Writes what others may read once the region is there. */
  readonly prepare?: (region: MemRegion) => void;
  /** Takes back what `prepare` has made. */
  readonly undo?: () => void;
}

/** @throws PAMIR_INVAL at once, as all functions of extensions.ts; else its promise rejects as that of `geometry.shareRegion` */
export function shareRegion(
  host: ExtensionHost,
  bytes: number,
  options: ProgressOptions,
  { call, same, prepare, undo }: Purpose = { call: "shareRegion", same: {} },
): Promise<SharedRegion> {
  checkProgress(`${call}()`, options);
  let region: MemRegion | undefined;
  const take = (): void => {
    region?.close();
    undo?.();
  };
  const make = (): readonly number[] => {
    region = host.task.regions.create(bytes);
    region.bytes.fill(0);
    try {
      prepare?.(region);
    } catch (error) {
      take();
      throw error;
    }
    return [region.handle, region.length];
  };
  return makeTogether(host, { call, same, make, undo: take }, options).then((rows) => {
    const [handles, lengths] = [0, 1].map((column) => rows.map((row) => row[column] as number));
    return new SharedRegion(host, region as unknown as MemRegion, handles as number[], lengths as number[]);
  });
}

markCopy(SharedRegion);

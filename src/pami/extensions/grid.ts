// Grids in blocks, one for each member of a geometry, with a halo that the members fill for each other.
//
// An exchange takes one message in each direction. In one memory, a member copies its border cells to where its neighbor
// expects them, and the message says that they are there. To another node, the message carries them. Either way they arrive
// beside the block, so that a neighbor that is ahead does not change a halo that is still read. A neighbor is ahead by one
// exchange at most, since its next one needs this member's message. So two places for each direction are enough.
import type { Extension } from "../../collective/extension.js";
import { checkFlag, checkKeys, type Keys, NO_OPTIONS } from "../../core/check.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import type { PayloadView } from "../../core/message/view.js";
import { EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel } from "../../kernel/kernel.js";
import type { Arrival } from "../../protocol/late-handler.js";
import { copyInto } from "../../support/copy.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, type WaitOptions } from "../waits.js";
import { type ExtensionHost, errorOf } from "./extension-host.js";
import {
  type Block,
  type Box,
  blockOf,
  type GridLayout,
  type GridPlan,
  type GridSide,
  layoutOf,
  sidesOf,
} from "./grid-blocks.js";
import { elementOf } from "./item-kind.js";
import { arrange, integers, rankAt } from "./process-grid.js";
import { type SharedRegion, shareRegion } from "./shared-region.js";

/** Arrays that a grid can have its cells in. */
export type CellArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** Parameters of `geometry.createGrid`. All members give the same. Lists have a number for each dimension. */
export interface GridParameters<View extends CellArray = CellArray> extends ProgressOptions {
  /** Cells of the whole grid: 1, 2 or 3 numbers. The last dimension is contiguous in memory. */
  readonly size: readonly number[];
  /** Members in each dimension; 0: pamir chooses. Their product is the number of members (default: all are chosen). */
  readonly processes?: readonly number[] | undefined;
  /** Whether the grid has no end in a dimension: its first and last blocks are neighbors (default false). */
  readonly periodic?: boolean | readonly boolean[] | undefined;
  /** Width of the halo in cells, in each dimension (default 1). */
  readonly halo?: number | readonly number[] | undefined;
  /** Whether the halo's edges and corners are filled too, which come from diagonal neighbors (default false). */
  readonly corners?: boolean | undefined;
  /** Class of the cells (default Float64Array). */
  readonly type?: PayloadView<View> | undefined;
  /** Number of arrays of cells (default 1): two for a program that computes one from the other. */
  readonly fields?: number | undefined;
}

const KEYS: Keys<GridParameters> = {
  ...PROGRESS_KEYS,
  size: true,
  processes: true,
  periodic: true,
  halo: true,
  corners: true,
  type: true,
  fields: true,
};

/** Rows of fewer cells are copied cell by cell. */
const SHORT_ROW = 16;
/** Payloads of more bytes are read where they lie until they are sent. */
const COPIED_BYTES = 16 * 1024;
/** Tags of messages: a direction, or that an exchange has failed. */
const TAG_FAILED = 64;

type Cells = { [at: number]: unknown; readonly length: number };

/** Cells of one side: on their way, or arrived. */
interface Parcel {
  readonly cells: Cells;
  /** Where they lie in a region; that of the neighbor, if they are on their way in one memory. 0: outside of regions. */
  readonly offset: number;
  /** On their way to another node: the same cells as bytes. */
  readonly bytes: Uint8Array | undefined;
  /** Whether a message still reads them. */
  isInUse: boolean;
}

/** A side with all that an exchange of it needs. */
interface GridNeighbor extends GridSide {
  /** In even and in odd exchanges. */
  readonly outgoing: Parcel[];
  readonly arrivals: readonly Parcel[];
  /** Number of the last exchange of which the cells have arrived. */
  arrived: number;
}

/** What a grid is made of. */
interface GridParts<View extends CellArray> {
  readonly host: ExtensionHost;
  readonly plan: GridPlan;
  /** This member's block, and its sides with neighbors. */
  readonly block: Block;
  readonly sides: readonly GridSide[];
  readonly layout: GridLayout;
  /** The array of cells. */
  readonly type: PayloadView<View>;
  /** The extension's number in its geometry. */
  readonly number: number;
  readonly region: SharedRegion;
}

/**
 * A grid in blocks, from `geometry.createGrid()`. This member has one block, in a region, with a halo on each side. It belongs
 * to this member's thread.
 */
export class Grid<View extends CellArray = Float64Array> {
  /** Cells of the whole grid, by dimension. */
  readonly size: readonly number[];
  /** Members in each dimension. */
  readonly processes: readonly number[];
  /** Where this member is among them. The last coordinate varies fastest with the rank. */
  readonly coordinates: readonly number[];
  /** Width of the halo, by dimension. */
  readonly halo: readonly number[];
  /** Where this member's own cells begin in the whole grid, by dimension. */
  readonly first: readonly number[];
  /** Number of this member's own cells, by dimension. */
  readonly count: readonly number[];
  /** Cells of the block with its halo, by dimension. */
  readonly shape: readonly number[];
  /** How far apart neighbors in a dimension are in `cells`. */
  readonly strides: readonly number[];
  /** The cells with the halo, one array for each field. They are 0 at first, and belong to the program between exchanges. */
  readonly fields: readonly View[];
  readonly #plan: GridPlan;
  readonly #type: PayloadView<View>;
  readonly #host: ExtensionHost;
  readonly #region: SharedRegion;
  readonly #kernel: Kernel;
  readonly #links: readonly GridNeighbor[];
  /** By direction. */
  readonly #byDirection: (GridNeighbor | undefined)[] = [];
  readonly #number: number;
  readonly #fieldBytes: number;
  /** Number of the exchange that has begun last, and of the last that is complete. */
  #begun = 0;
  #completed = 0;
  /** The field of the exchange under way. */
  #field = 0;
  /** SHUTDOWN once an exchange has failed: no later one can succeed. */
  #failed: Result = SUCCESS;
  readonly #isOver = (): boolean => {
    if (this.#failed !== SUCCESS) return true;
    for (let place = 0; place < this.#links.length; place++) {
      if ((this.#links[place] as GridNeighbor).arrived < this.#begun) return false;
    }
    return true;
  };

  /** Ranks of the neighbors whose cells are awaited. */
  readonly #awaited = (): number[] => [
    ...new Set(this.#links.filter(({ arrived }) => arrived < this.#begun).map(({ rank }) => rank)),
  ];

  /** @internal */
  constructor({ host, plan, block, sides, layout, type, number, region }: GridParts<View>) {
    this.size = plan.size;
    this.processes = plan.processes;
    this.halo = plan.halo;
    this.coordinates = block.coordinates;
    this.first = block.first;
    this.count = block.count;
    this.shape = block.shape;
    this.strides = block.strides;
    this.#plan = plan;
    this.#type = type;
    this.#host = host;
    this.#region = region;
    this.#kernel = host.task.kernel;
    this.#number = number;
    this.#fieldBytes = layout.fieldBytes;
    const { buffer, byteOffset } = region.bytes;
    this.fields = Array.from(
      { length: plan.fields },
      (_, field) => new type(buffer, byteOffset + field * layout.fieldBytes, block.cells),
    );
    const layouts = new Map<number, GridLayout>();
    const layoutAt = (rank: number): GridLayout => {
      const known = layouts.get(rank);
      if (known !== undefined) return known;
      const other = blockOf(plan, rank);
      const made = layoutOf(plan, other, sidesOf(plan, other));
      layouts.set(rank, made);
      return made;
    };
    const parcel = (pointer: number, offset: number, cells: number): Parcel => {
      return { cells: new type(buffer, pointer + offset, cells), offset, bytes: undefined, isInUse: false };
    };
    this.#links = sides.map((side) => {
      const { rank, direction, opposite, border, halo } = side;
      const pointer = region.pointerOf(rank);
      const outgoing = [0, 1].map((parity) => {
        if (pointer === 0) return parcelOf(type, border.cells, plan.elementBytes);
        return parcel(pointer, layoutAt(rank).arrivals[parity]?.[opposite] as number, border.cells);
      });
      const arrivals = [0, 1].map((parity) =>
        parcel(byteOffset, layout.arrivals[parity]?.[direction] as number, halo.cells),
      );
      return { ...side, outgoing, arrivals, arrived: 0 };
    });
    for (const link of this.#links) this.#byDirection[link.direction] = link;
  }

  /** The cells of the first field. */
  get cells(): View {
    return this.fields[0] as View;
  }

  /**
   * Returns the place of a cell in `cells`.
   * @param at coordinates in this block, one for each dimension: own cells from 0 to count - 1, the halo on both sides of them
   * @throws PAMIR_INVAL
   */
  index(...at: readonly number[]): number {
    let place = 0;
    for (let dimension = 0; dimension < this.strides.length; dimension++) {
      const one = at[dimension];
      if (!Number.isInteger(one)) {
        throw new PamiError("PAMIR_INVAL", `coordinate ${dimension} of index() is ${show(one)}, not an integer`);
      }
      place += ((one as number) + (this.halo[dimension] as number)) * (this.strides[dimension] as number);
    }
    return place;
  }

  /**
   * Returns the rank of the neighbor so many blocks away in each dimension, as MPI_Cart_shift.
   * @returns undefined: the grid ends before
   * @throws PAMIR_INVAL
   */
  neighbor(...steps: readonly number[]): number | undefined {
    for (const step of integers("steps of neighbor()", [...steps], -(2 ** 31), 2 ** 31, this.size.length)) void step;
    const at = this.coordinates.map((one, dimension) => one + (steps[dimension] as number));
    return rankAt(at, this.processes, this.#plan.periodic);
  }

  /**
   * Gives the neighbors this member's border cells, and returns. exchange() then waits for theirs: a program may compute in
   * between what needs no halo. It may also change its own cells; the halo stays as it is. It may allocate and copy border
   * cells that go to other nodes.
   * @param field the array of cells (default 0)
   * @returns SUCCESS; SHUTDOWN (an exchange has failed)
   * @throws PAMIR_INVAL (an exchange is under way), PAMIR_CLOSED
   */
  begin(field = 0): Result {
    this.#checkOpen("begin");
    checkInteger("field", field, 0, this.fields.length - 1);
    if (this.#begun !== this.#completed) throw new PamiError("PAMIR_INVAL", "begin() while an exchange is under way");
    this.#begun++;
    this.#field = field;
    for (let place = 0; place < this.#links.length && this.#failed === SUCCESS; place++) {
      this.#give(this.#links[place] as GridNeighbor);
    }
    return this.#failed;
  }

  /**
   * Fills the halo with the neighbors' border cells: begins, unless begin() has, and resolves once they are there. Halo cells
   * beyond an end of the grid stay as they are. All members call it, in the same order of fields.
   * @param field the array of cells (default 0); that of begin(), if it was called
   * @throws PAMIR_SHUTDOWN (a neighbor has ended, or its exchange has failed), PAMIR_INVAL, PAMIR_CLOSED; as `progress()`.
   *   After PAMIR_TIMEDOUT or PAMIR_CANCELED, another call waits on
   */
  async exchange(field = 0, options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("exchange()", options);
    this.#beginOnce("exchange", field);
    if (!this.#isOver()) await this.#host.until("exchange", this.#isOver, options, this.#awaited);
    const result = this.#end();
    if (result !== SUCCESS) throw errorOf(this.#host, "exchange", result);
  }

  /**
   * As exchange(), but blocks the thread. If the neighbors are in this memory, it makes no views or messages. The geometry's
   * `lastError` says which neighbors were awaited, or has ended.
   * @returns SUCCESS, SHUTDOWN, TIMEDOUT or INTERRUPTED
   */
  exchangeSync(field = 0, options: WaitOptions = NO_OPTIONS): Result {
    if (options !== NO_OPTIONS) checkWait("exchangeSync()", options);
    this.#beginOnce("exchangeSync", field);
    if (!this.#isOver()) {
      const waited = this.#host.untilSync("exchangeSync", this.#isOver, options, this.#awaited);
      if (waited !== SUCCESS) return waited;
    }
    const result = this.#end();
    if (result !== SUCCESS) this.#host.noteError(errorOf(this.#host, "exchangeSync", result));
    return result;
  }

  /** Ends the grid once all members have called this. Its cells must not be used any more. @throws as `geometry.barrier()` */
  async close(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("close()", options);
    try {
      await this.#region.close(options);
    } finally {
      this.#host.core.extensions.remove(this.#number);
    }
  }

  #checkOpen(call: string): void {
    if (this.#region.region.closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a grid that is closed`);
    if (this.#host.group.closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a geometry that is closed`);
  }

  #beginOnce(call: string, field: number): void {
    this.#checkOpen(call);
    if (this.#begun === this.#completed) this.begin(field);
    else if (field !== this.#field) {
      throw new PamiError("PAMIR_INVAL", `${call}() of field ${show(field)}: that of field ${this.#field} has begun`);
    }
  }

  /** Gives a neighbor the border cells of this exchange. */
  #give(link: GridNeighbor): void {
    const { rank, border, opposite, outgoing } = link;
    const parity = this.#begun & 1;
    let parcel = outgoing[parity] as Parcel;
    let pointer = 0;
    if (parcel.bytes === undefined) {
      pointer = this.#region.pointerOf(rank);
      if (pointer === 0) {
        this.#fail(SHUTDOWN);
        return;
      }
      pointer += parcel.offset;
    } else if (parcel.isInUse) {
      parcel = parcelOf(this.#type, border.cells, this.#plan.elementBytes);
      outgoing[parity] = parcel;
    }
    this.#pack(border, parcel.cells, pointer);
    if (rank === this.#host.group.rank) {
      (this.#byDirection[opposite] as GridNeighbor).arrived = this.#begun;
      return;
    }
    const sent = this.#send(rank, opposite, parcel);
    if (sent !== SUCCESS && sent !== EAGAIN) this.#fail(sent);
  }

  #send(rank: number, direction: number, parcel: Parcel): Result {
    const { core } = this.#host;
    const { bytes } = parcel;
    if (bytes === undefined || bytes.length <= COPIED_BYTES) {
      return core.extensions.send(this.#number, rank, direction, this.#begun, bytes);
    }
    parcel.isInUse = true;
    return core.extensions.send(this.#number, rank, direction, this.#begun, bytes, () => {
      parcel.isInUse = false;
    });
  }

  /** @internal A message of a neighbor. */
  came(rank: number, tag: number, number: number, { payload, payloadBytes }: Arrival): void {
    if (tag === TAG_FAILED) {
      this.#fail(SHUTDOWN);
      return;
    }
    const link = this.#byDirection[tag];
    if (link === undefined || link.rank !== rank || number !== link.arrived + 1) return;
    if (payloadBytes > 0) {
      const { cells, offset } = link.arrivals[number & 1] as Parcel;
      if (payloadBytes !== cells.length * this.#plan.elementBytes) return;
      copyInto(this.#region.bytes, offset, payload);
    }
    link.arrived = number;
  }

  /** @internal A member has ended, and what it has sent is there. */
  gone(rank: number): void {
    if (rank === this.#host.group.rank) this.#failed = SHUTDOWN;
    for (const link of this.#links) if (link.rank === rank && link.arrived < this.#begun) this.#fail(SHUTDOWN);
  }

  /** Fails, and tells the neighbors, which tell theirs: so all members hear of it that still exchange. */
  #fail(result: Result): void {
    if (this.#failed !== SUCCESS) return;
    this.#failed = result;
    const { core, group } = this.#host;
    for (const rank of new Set(this.#links.map((link) => link.rank))) {
      if (rank !== group.rank && !core.hasEnded(rank)) core.extensions.send(this.#number, rank, TAG_FAILED, 0);
    }
  }

  #end(): Result {
    if (this.#failed !== SUCCESS) return this.#failed;
    const parity = this.#begun & 1;
    for (let place = 0; place < this.#links.length; place++) {
      const { halo, arrivals } = this.#links[place] as GridNeighbor;
      const { cells, offset } = arrivals[parity] as Parcel;
      this.#unpack(halo, cells, this.#region.bytes.byteOffset + offset);
    }
    this.#completed = this.#begun;
    return SUCCESS;
  }

  /** Copies a box of the field to a row of cells. @param pointer of those cells; 0: outside of the job's memory */
  #pack({ first, counts, strides }: Box, to: Cells, pointer: number): void {
    const cells = this.fields[this.#field] as Cells;
    const { 0: planes, 1: rows, 2: row } = counts;
    const bytes = this.#plan.elementBytes;
    const from = this.#pointer;
    let next = 0;
    for (let plane = 0; plane < planes; plane++) {
      for (let line = 0; line < rows; line++, next += row) {
        const at = first + plane * strides[0] + line * strides[1];
        if (row >= SHORT_ROW && pointer !== 0) {
          this.#kernel.copyBytes(pointer + next * bytes, from + at * bytes, row * bytes);
        } else for (let cell = 0; cell < row; cell++) to[next + cell] = cells[at + cell];
      }
    }
  }

  #unpack({ first, counts, strides }: Box, from: Cells, pointer: number): void {
    const cells = this.fields[this.#field] as Cells;
    const { 0: planes, 1: rows, 2: row } = counts;
    const bytes = this.#plan.elementBytes;
    const to = this.#pointer;
    let next = 0;
    for (let plane = 0; plane < planes; plane++) {
      for (let line = 0; line < rows; line++, next += row) {
        const at = first + plane * strides[0] + line * strides[1];
        if (row >= SHORT_ROW) this.#kernel.copyBytes(to + at * bytes, pointer + next * bytes, row * bytes);
        else for (let cell = 0; cell < row; cell++) cells[at + cell] = from[next + cell];
      }
    }
  }

  /** Where the field of this exchange begins. */
  get #pointer(): number {
    return this.#region.bytes.byteOffset + this.#field * this.#fieldBytes;
  }
}

/** Cells for another node. */
function parcelOf(type: PayloadView<CellArray>, cells: number, elementBytes: number): Parcel {
  const bytes = new Uint8Array(cells * elementBytes);
  return { cells: new type(bytes.buffer, 0, cells), offset: 0, bytes, isInUse: false };
}

/** @throws as `geometry.createGrid` */
export function createGrid<View extends CellArray>(
  host: ExtensionHost,
  given: GridParameters<View>,
): Promise<Grid<View>> {
  checkKeys("parameters of createGrid()", given, KEYS);
  const { timeout, signal, type = Float64Array as unknown as PayloadView<View> } = given;
  const options = { timeout, signal };
  checkProgress("createGrid()", options);
  const { elementBytes, array } = elementOf("createGrid", type);
  return make(host, planOf(given, elementBytes, host.group.size), type, array, options);
}

async function make<View extends CellArray>(
  host: ExtensionHost,
  plan: GridPlan,
  type: PayloadView<View>,
  array: string,
  options: ProgressOptions,
): Promise<Grid<View>> {
  const block = blockOf(plan, host.group.rank);
  const sides = sidesOf(plan, block);
  const layout = layoutOf(plan, block, sides);
  let grid: Grid<View> | undefined;
  // A neighbor may be ready, and begin an exchange, before this member's promise has resolved.
  const early: (() => void)[] = [];
  const then = (call: (made: Grid<View>) => void): void => {
    if (grid === undefined) early.push(() => call(grid as unknown as Grid<View>));
    else call(grid);
  };
  const known = new Set<string>();
  const extension: Extension = {
    came: (rank, tag, word, arrival) => {
      let kept = arrival;
      if (grid === undefined) {
        // Of each neighbor, the cells of two exchanges at the most: it needs this member's for more. A member that lies sends any.
        const side = sides.find(({ direction }) => direction === tag);
        const most = side?.rank === rank ? side.halo.cells * plan.elementBytes : 0;
        const name = `${rank} ${tag} ${word}`;
        if (known.has(name) || known.size > 4 * sides.length || arrival.payloadBytes > most) return;
        if (tag !== TAG_FAILED && (side?.rank !== rank || word > 2)) return;
        known.add(name);
        kept = { ...arrival, payload: arrival.payload.slice() };
      }
      then((made) => made.came(rank, tag, word, kept));
    },
    gone: (rank) => then((made) => made.gone(rank)),
  };
  const number = host.core.extend(extension);
  try {
    const region = await shareRegion(host, layout.bytes, options, {
      call: "createGrid",
      same: { type: array, ...plan },
    });
    grid = new Grid({ host, plan, block, sides, layout, type, number, region });
  } catch (error) {
    host.core.extensions.remove(number);
    throw error;
  }
  for (const call of early) call();
  return grid;
}

function planOf(given: GridParameters, elementBytes: number, members: number): GridPlan {
  const size = integers("size of createGrid()", given.size, 1, 2 ** 31 - 1);
  const dimensions = size.length;
  const { corners = false, fields = 1, periodic = false } = given;
  checkFlag("corners of createGrid()", corners);
  checkInteger("fields of createGrid()", fields, 1, 64);
  const ends = typeof periodic === "boolean" ? size.map(() => periodic) : periodic;
  if (!Array.isArray(ends) || ends.length !== dimensions || ends.some((one) => typeof one !== "boolean")) {
    throw new PamiError("PAMIR_INVAL", `periodic of createGrid() is ${show(periodic)}, not ${dimensions} booleans`);
  }
  const wanted = integers("processes of createGrid()", given.processes ?? 0, 0, members, dimensions);
  const halo = integers("halo of createGrid()", given.halo ?? 1, 0, 2 ** 20, dimensions);
  const processes = arrange(members, wanted);
  for (const [dimension, cells] of size.entries()) {
    const least = Math.floor(cells / (processes[dimension] as number));
    if (least < Math.max(1, halo[dimension] as number)) {
      const text = `${cells} cells for ${processes[dimension]} members in dimension ${dimension}: ${least} each`;
      throw new PamiError("PAMIR_INVAL", `createGrid(): ${text}, the halo has ${halo[dimension]}`);
    }
  }
  return { size, processes, periodic: ends as boolean[], halo, corners, elementBytes, fields };
}

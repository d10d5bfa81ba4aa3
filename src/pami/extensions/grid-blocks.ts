// Where the cells of a member's block and its halo lie: everything that an exchange needs, computed once.
import { beginOf, coordinatesOf, rankAt } from "./process-grid.js";

/** What all members know of a grid. */
export interface GridPlan {
  /** Cells of the whole grid, by dimension. The last one is contiguous in memory. */
  readonly size: readonly number[];
  readonly processes: readonly number[];
  readonly periodic: readonly boolean[];
  /** Cells on each side of a block, by dimension. */
  readonly halo: readonly number[];
  /** Whether edges and corners are exchanged too. */
  readonly corners: boolean;
  readonly elementBytes: number;
  readonly fields: number;
}

/** The block of one member. */
export interface Block {
  readonly coordinates: readonly number[];
  /** The first own cell in the whole grid, and the number of own cells. */
  readonly first: readonly number[];
  readonly count: readonly number[];
  /** Cells with the halo, and how far apart neighbors are in memory, in cells. */
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly cells: number;
}

/** A box of cells within a block, as rows that are contiguous. */
export interface Box {
  readonly first: number;
  readonly counts: readonly [number, number, number];
  readonly strides: readonly [number, number];
  readonly cells: number;
}

/** A neighbor in one direction, and what is exchanged with it. */
export interface GridSide {
  readonly rank: number;
  /** Its number at this member, and that of this member's side at the neighbor: the opposite one. */
  readonly direction: number;
  readonly opposite: number;
  /** The own cells that the neighbor gets, and the halo cells that it fills. */
  readonly border: Box;
  readonly halo: Box;
}

/** All directions in which blocks touch. Each is a list of -1, 0 and 1; the opposite of the nth is the nth from the end. */
export function directionsOf({ size, corners }: GridPlan): number[][] {
  let all: number[][] = [[]];
  for (const _ of size) all = all.flatMap((one) => [-1, 0, 1].map((step) => [...one, step]));
  return all.filter((steps) => {
    const moves = steps.filter((step) => step !== 0).length;
    return corners ? moves > 0 : moves === 1;
  });
}

export function blockOf({ size, processes, halo }: GridPlan, rank: number): Block {
  const coordinates = coordinatesOf(rank, processes);
  const begin = (dimension: number, more: number): number =>
    beginOf((coordinates[dimension] as number) + more, size[dimension] as number, processes[dimension] as number);
  const first = size.map((_, dimension) => begin(dimension, 0));
  const count = size.map((_, dimension) => begin(dimension, 1) - (first[dimension] as number));
  const shape = count.map((cells, dimension) => cells + 2 * (halo[dimension] as number));
  const strides = shape.map((_, dimension) => shape.slice(dimension + 1).reduce((product, one) => product * one, 1));
  return { coordinates, first, count, shape, strides, cells: shape.reduce((product, one) => product * one, 1) };
}

/** The sides of a member that have a neighbor. */
export function sidesOf(plan: GridPlan, block: Block): GridSide[] {
  const directions = directionsOf(plan);
  return directions.flatMap((steps, direction) => {
    const at = block.coordinates.map((one, dimension) => one + (steps[dimension] as number));
    const rank = rankAt(at, plan.processes, plan.periodic);
    if (rank === undefined) return [];
    const border = boxOf(plan, block, steps, true);
    const halo = boxOf(plan, block, steps, false);
    return [{ rank, direction, opposite: directions.length - 1 - direction, border, halo }];
  });
}

/** @param isBorder own cells; else halo cells */
function boxOf({ halo }: GridPlan, { count, strides }: Block, steps: readonly number[], isBorder: boolean): Box {
  const from = steps.map((step, dimension) => {
    const [width, own] = [halo[dimension] as number, count[dimension] as number];
    if (step === 0) return width;
    if (isBorder) return step < 0 ? width : own;
    return step < 0 ? 0 : width + own;
  });
  const counts = steps.map((step, dimension) => (step === 0 ? count[dimension] : halo[dimension]) as number);
  const [planes = 1, rows = 1, row = 1] = [...new Array<number>(3 - counts.length).fill(1), ...counts];
  const [planeStride = 0, rowStride = 0] = [...new Array<number>(3 - counts.length).fill(0), ...strides];
  return {
    first: from.reduce((sum, one, dimension) => sum + one * (strides[dimension] as number), 0),
    counts: [planes, rows, row],
    strides: [planeStride, rowStride],
    cells: planes * rows * row,
  };
}

/** Where things lie in a member's region, in bytes. */
export interface GridLayout {
  readonly fieldBytes: number;
  /** Where the cells from each direction arrive, in even and in odd exchanges; -1: there is no neighbor. */
  readonly arrivals: readonly (readonly number[])[];
  readonly bytes: number;
}

const LINE = 64;
const aligned = (bytes: number): number => Math.ceil(bytes / LINE) * LINE;

export function layoutOf(plan: GridPlan, block: Block, sides: readonly GridSide[]): GridLayout {
  const { elementBytes, fields } = plan;
  const fieldBytes = aligned(block.cells * elementBytes);
  let next = fields * fieldBytes;
  const arrivals = [0, 1].map(() => {
    const places = new Array<number>(directionsOf(plan).length).fill(-1);
    for (const { direction, halo } of sides) {
      places[direction] = next;
      next += aligned(halo.cells * elementBytes);
    }
    return places;
  });
  return { fieldBytes, arrivals, bytes: next };
}

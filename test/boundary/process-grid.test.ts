import { describe, expect, it } from "vitest";
import { arrange, beginOf, coordinatesOf, rankAt } from "../../src/pami/extensions/process-grid.js";

describe("members in dimensions", () => {
  // As MPI_Dims_create gives them.
  it.each([
    [1, [0], [1]],
    [1, [0, 0, 0], [1, 1, 1]],
    [2, [0, 0], [2, 1]],
    [6, [0, 0], [3, 2]],
    [7, [0, 0], [7, 1]],
    [12, [0, 0], [4, 3]],
    [12, [0, 0, 0], [3, 2, 2]],
    [16, [0, 0, 0], [4, 2, 2]],
    [30, [0, 0, 0], [5, 3, 2]],
    [64, [0, 0, 0], [4, 4, 4]],
    [6, [0, 3, 0], [2, 3, 1]],
    [6, [6, 0], [6, 1]],
    [1000, [0, 0, 0], [10, 10, 10]],
    [1024, [0, 0], [32, 32]],
    [997, [0, 0, 0], [997, 1, 1]],
  ])("%i members for %j: %j", (members, given, expected) => expect(arrange(members, given)).toEqual(expected));

  it.each([
    [7, [0, 3]],
    [6, [2, 2]],
    [6, [7, 0]],
    [4, [4, 2]],
  ])("%i members for %j: refused", (members, given) => {
    expect(() => arrange(members, given)).toThrow(`processes [${given.join(", ")}] do not make ${members} members`);
  });

  it("ranks and coordinates are each other's inverse", () => {
    for (const processes of [[5], [3, 4], [2, 3, 4]]) {
      const members = processes.reduce((product, one) => product * one);
      const open = processes.map(() => false);
      for (let rank = 0; rank < members; rank++) {
        expect(rankAt(coordinatesOf(rank, processes), processes, open)).toBe(rank);
      }
      const beyond = processes.map((_, dimension) => (dimension === 0 ? -1 : 0));
      expect(rankAt(beyond, processes, open)).toBeUndefined();
      const last = processes.map((count, dimension) => (dimension === 0 ? count - 1 : 0));
      const round = processes.map(() => true);
      expect(rankAt(beyond, processes, round)).toBe(rankAt(last, processes, open));
      expect(rankAt([(processes[0] as number) * 3, ...beyond.slice(1)], processes, round)).toBe(0);
    }
  });

  it("blocks are whole, and differ by one cell at most", () => {
    for (const [cells, processes] of [
      [10, 3],
      [7, 7],
      [1_000_003, 64],
      [2 ** 31 - 1, 1000],
    ] as const) {
      const sizes = Array.from(
        { length: processes },
        (_, one) => beginOf(one + 1, cells, processes) - beginOf(one, cells, processes),
      );
      expect(sizes.reduce((sum, one) => sum + one)).toBe(cells);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    }
  });
});

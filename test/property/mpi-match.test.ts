// MPI's matching engine against lists of objects: support/mpi-model.ts.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MPI_ANY, MPI_EAGER_BYTES_MAX, MPI_STORED_PAYLOAD_OFFSET } from "../../assembly/layout.js";
import { mpiRig } from "../support/mpi-kernels.js";
import { bytesOf, type MpiCommand, MpiPlayer, mpiCommand, SMALL } from "../support/mpi-model.js";
import { assertProperty } from "../support/seed.js";

const commands = fc.array(mpiCommand, { maxLength: 100, size: "max" });

describe.each(["wasm", "twin"] as const)("%s", (build) => {
  it.each([
    ["", 64],
    [", across 2^31", 2 ** 31 - bytesOf(SMALL) + 512],
    [", up to 2^32", 2 ** 32 - bytesOf(SMALL)],
  ])("each receive gets the message that MPI says, and all memory serves again%s", (_, base) => {
    const rig = mpiRig(build, bytesOf(SMALL), base);
    const property = fc.property(commands, (sequence) => {
      const player = new MpiPlayer(rig);
      player.play(sequence);
      player.drain();
      const { left, refused } = player;
      const gives = sequence.every((command) => command.do !== "extend") && refused === 0;
      player.play(sequence);
      player.drain();
      // The blocks of the first time serve for the second one, so that a program can go on for ever.
      if (gives) expect(player.left).toBe(left);
    });
    assertProperty(property, 300);
  });

  it("messages of each size class are stored, and truncated to any capacity", () => {
    const sizes = { engine: 2 ** 20, more: 0, buffer: MPI_EAGER_BYTES_MAX + 96, buffers: 2 };
    const player = new MpiPlayer(mpiRig(build, bytesOf(sizes), 64), sizes);
    const lengths = [0, 1, MPI_EAGER_BYTES_MAX - 1, MPI_EAGER_BYTES_MAX];
    for (let size = 6; size < 17; size++)
      for (const one of [-1, 0, 1]) lengths.push(2 ** size - MPI_STORED_PAYLOAD_OFFSET + one);
    for (const bytes of lengths) {
      const message: MpiCommand = { do: "arrive", comm: 0, source: 1, tag: 1, bytes, isRts: false };
      for (const capacity of [bytes, Math.max(0, bytes - 1), Math.ceil(bytes / 2), bytes + 1]) {
        const receive: MpiCommand = { do: "post", comm: 0, source: MPI_ANY, tag: 1, capacity };
        player.play([message, receive, { do: "free", which: 0 }, receive, message, { do: "free", which: 0 }]);
      }
    }
    player.drain();
    expect(player.refused).toBe(0);
  });
});

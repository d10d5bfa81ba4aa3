// Buffers of collective operations that members share a memory for: which member may write them when.
import { expect, it } from "vitest";
import { contextsOf, geometryOf, until } from "../support/collective-rig.js";

it("in place in shared memory, a member's part of a reduceScatter does not overwrite what others still read", async () => {
  const given = await contextsOf(3, "wasm");
  try {
    const geometries = await geometryOf(given);
    const { client } = given.members[0] as (typeof given.members)[0];
    // Longer than what members copy into their slots.
    const views = geometries.map(() => {
      const { bytes } = client.createRegion(3 * 160);
      const view = new Int32Array(bytes.buffer, bytes.byteOffset, 3 * 40);
      view.set(view.map((_, place) => place));
      return view;
    });
    let left = 3;
    const onDone = (): void => void left--;
    // The last member that begins goes on as far as it can, before the others have read anything.
    for (const [rank, geometry] of geometries.entries()) {
      geometry.collective("reduceScatter", {
        send: null,
        receive: views[rank] as Int32Array,
        operation: "sum",
        onDone,
      });
    }
    await until(given, () => left === 0);
    expect(views.map((view) => [...view.subarray(0, 40)])).toEqual(
      [0, 40, 80].map((from) => Array.from({ length: 40 }, (_, place) => 3 * (from + place))),
    );
  } finally {
    await given.close();
  }
});

import { expect, it } from "vitest";
import { makeRig } from "../support/kernels.js";

it("the wasm kernel has few properties of its own: beyond some 40 V8 makes a dictionary of it, and each call takes 7 ns more", () => {
  const { producer } = makeRig({ producer: "wasm" });
  expect(Object.keys(producer)).toEqual(["name"]);
  expect(producer.heapFreePages(0)).toEqual(expect.any(Number));
});

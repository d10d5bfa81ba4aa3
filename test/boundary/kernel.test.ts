import { expect, it, vi } from "vitest";
import { wasmHex } from "../../src/generated/wasm.js";
import { bytesOfHex } from "../../src/kernel/hex.js";
import { makeRig } from "../support/kernels.js";

it("the wasm kernel has few properties of its own: beyond some 40 V8 makes a dictionary of it, and each call takes 7 ns more", () => {
  const { producer } = makeRig({ producer: "wasm" });
  expect(Object.keys(producer)).toEqual(["name"]);
  expect(producer.heapFreePages(0)).toEqual(expect.any(Number));
});

it("hexadecimal digits are decoded alike, with Node's decoder and without", () => {
  const all = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0")).join("");
  const texts = ["", "00", all, wasmHex];
  const byNode = texts.map(bytesOfHex);
  vi.stubGlobal("Buffer", undefined);
  const byHand = texts.map(bytesOfHex);
  vi.unstubAllGlobals();
  expect(byNode).toEqual(byHand);
  expect([...(byHand[2] as Uint8Array)]).toEqual(Array.from({ length: 256 }, (_, byte) => byte));
});

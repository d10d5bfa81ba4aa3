// Ranks that go on after another one has ended (ULFM), and windows of ranks that have ended, in every placement.
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { run } from "../support/run-command.js";

const program = resolve(import.meta.dirname, "built/failures.wasm");
const WAYS: readonly (readonly string[])[] = [
  ["-n", "6"],
  ["-n", "6", "--nodes", "3"],
  ...(process.platform === "linux" ? [["-n", "6", "--processes", "6"]] : []),
];
const drawn = sample(WAYS, byEffort({ quick: 1, normal: 2, deep: WAYS.length }), "placements of ranks that end");

describe.each(drawn.map((way) => [way.join(" "), way] as const))("%s", (_, way) => {
  it.each([
    ["shrink", 3, "5 of 6 failed, 5 left, ranks add up to 14\nring: 5\n4 failed, 4 left\n"],
    ["revoke", 0, "revoked: 6, known: 6, again: 6, all left: 6 of 6\n"],
    ["meet", 3, "5 failed, 0 too early\n4 failed, 0 too early\n"],
    ["revoke-meeting", 0, "known: 6, refused: 6 of 6\n"],
    ["agree", 3, "failed, then success: 5\n"],
    ["any", 3, "failed, pending, success with 2\n"],
    ["transfer", 134, "its end: failed\nmatched: right\nstored: failed\nsuccess from 2: still here\n"],
    ["window", 3, "lock: 7, put failed, fetch failed, flush success, fence failed\n"],
    ["range", 0, "kept: 6 of 6\n"],
  ])("%s", (what, code, lines) => {
    const { status, stdout } = run(...way, "--on-error", "report", "--no-labels", program, what);
    expect({ status, stdout }).toEqual({ status: code, stdout: lines });
  });
});

// A program of PAMI in C, as a user runs it: its rules hold in every placement; and what is refused.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { run } from "../support/run-command.js";

const program = resolve(import.meta.dirname, "built/pami.wasm");

const WAYS: readonly (readonly string[])[] = [
  ["-n", "1"],
  ["-n", "4"],
  ["-n", "7"],
  ["-n", "3", "--nodes", "3"],
  ["-n", "4", "--nodes", "2"],
  ...(process.platform === "linux" ? [["-n", "3", "--processes", "3"]] : []),
];
const drawn = sample(WAYS, byEffort({ quick: 2, normal: 4, deep: WAYS.length }), "placements of a program of PAMI");

describe("pami.c", () => {
  it.each(drawn.map((way) => [way.join(" "), way] as const))("keeps the rules of PAMI: %s", (_, way) => {
    const { status, stdout, stderr } = run(...way, "--no-labels", program);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.trim().split("\n");
    expect(lines.length).toBe(26);
    for (const line of lines) expect(line).toMatch(new RegExp(`: ${way[1]} of ${way[1]}$`));
  });

  it("is refused a memory of its own", () => {
    const { status, stderr } = run("-n", "2", "--isolate", program);
    expect(status).toBe(2);
    expect(stderr).toMatch(/a program of pami\.h can't have a memory of its own/);
  });
});

describe("the document", () => {
  it("names the functions of the header that pamir has, and the others", async () => {
    const header = readFileSync("include/pami.h", "utf8");
    const declared = [...header.matchAll(/^PAMIR_PAMI\(PAMI_(\w+)\)/gm)].map(([, name]) => name as string);
    const section = /^## Programs of PAMI\n([\s\S]*?)^## /m.exec(readFileSync("docs/c.md", "utf8"))?.[1] as string;
    const rows = section.split("\n").filter((line) => line.startsWith("| "));
    const named = [...rows.join("\n").matchAll(/`([A-Z]\w+)`/g)].map(([, name]) => name as string);
    const sources = ["environment", "messages", "transfers", "geometries", "collectives"].map((file) =>
      readFileSync(`src/c/pami/${file}.ts`, "utf8"),
    );
    const there = [...sources.join("\n").matchAll(/^ +PAMI_(\w+):/gm)].map(([, name]) => name as string);
    expect(named.filter((name) => !name.startsWith("PAMI_")).sort()).toEqual(there.sort());
    expect(there.filter((name) => !declared.includes(name))).toEqual([]);
    const absent = declared.filter((name) => !there.includes(name));
    expect(
      absent.filter((name) => !/^(Type_\w+|Send_typed|Geometry_update|Extension_(close|symbol))$/.test(name)),
    ).toEqual([]);
  });
});

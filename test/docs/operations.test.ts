// The table of operations in docs/geometries.md says what their rows say.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { COLLECTIVE_TYPES, OPERATION_ROWS } from "../../src/collective/operations.js";

const page = readFileSync(new URL("../../docs/geometries.md", import.meta.url), "utf8");
const [, table = ""] = page.split("| operation | each member gives | each member gets | null in place |\n");
const [body = ""] = table.split("\n\n");
const rows = body
  .split("\n")
  .slice(1)
  .map((line) => line.split("|").map((cell) => cell.trim()));

it("names each operation, and where only the root gives or gets", () => {
  const told = rows.flatMap(([, names = "", gives = "", gets = "", inPlace = ""]) => {
    const root = gives.startsWith("the root:") ? "gives" : gets.startsWith("the root:") ? "gets" : "";
    return names.split(", ").map((name) => [name.replaceAll("`", ""), root, inPlace.replaceAll("`", "")]);
  });
  const expected = COLLECTIVE_TYPES.map((type) => [type, OPERATION_ROWS[type].root, OPERATION_ROWS[type].inPlace]);
  expect(told.sort()).toEqual(expected.sort());
});

it("has uneven blocks where the name ends in v, as it says", () => {
  for (const type of COLLECTIVE_TYPES) expect(OPERATION_ROWS[type].isUneven, type).toBe(type.endsWith("v"));
});

// docs/hosts.md: which functions of a host refuse shared memory. Node's column is tried here, those of browsers in
// test/browser/isolated/shared-uses.test.ts and test/browser/firefox/page.ts.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { outcomeOf, SHARED_USES, type SharedUse } from "../support/shared-uses.js";

const NODE = Number(process.versions.node.split(".")[0]);

/** Of a major version of Node. */
function outcomeIn({ node }: SharedUse, version: number): string {
  const since = Object.keys(node)
    .map(Number)
    .filter((first) => first <= version);
  return node[Math.max(...since)] as string;
}

it.each(SHARED_USES)("this Node: $name", async (one) => {
  expect(await outcomeOf(one)).toBe(outcomeIn(one, NODE));
});

it("the table has the same rows", () => {
  const [, section = ""] =
    /^## Calls of the host that refuse shared memory\n([\s\S]*?)^## /m.exec(readFileSync("docs/hosts.md", "utf8")) ??
    [];
  const rows = [...section.matchAll(/^\| `?([^|]*?)`? +\|(.*)\|$/gm)].slice(1);
  const cells = rows.map(([, name = "", rest = ""]) => [
    name.replaceAll("`", ""),
    ...rest
      .split("|")
      .slice(0, 6)
      .map((cell) => cell.trim()),
  ]);
  const expected = SHARED_USES.map((one) => [
    one.name,
    ...[20, 22, 24, 26].map((version) => outcomeIn(one, version)),
    one.chromium,
    one.firefox,
  ]);
  expect(cells).toEqual(expected);
});

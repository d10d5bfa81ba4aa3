// docs/guarantees.md: it has a row for each call, and the results of each are those of its docstring.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { apiPages } from "../../scripts/docs.mjs";

const page = readFileSync("docs/guarantees.md", "utf8");
const rows = (page.split("## Call by call")[1] as string).split("\n").filter((line) => line.startsWith("| `"));
/** The names in a row's first column. */
const namesOf = (row: string): string[] =>
  [...(row.split("|")[1] as string).matchAll(/`([\w.]+)`/g)].map(([, name]) => name as string);

/** The methods of the objects that a program works with, each with what is said of it. */
const methods = [
  ...(apiPages().get("docs/api/pamir.md") as string).matchAll(
    /^#### (context|client|geometry|message|memRegion|job|sharedRegion|counter|grid|aggregator)\.(\w+)\(\)\n([\s\S]*?)(?=^#)/gm,
  ),
].map(([, object, name, said]) => ({ object: object as string, name: name as string, said: said as string }));

it("each method has a row", () => {
  const named = new Set(rows.flatMap(namesOf));
  expect(methods.length).toBeGreaterThan(40);
  const missing = methods.filter(
    ({ object, name }) => !named.has(name) && !named.has(`${object.replace("memRegion", "region")}.${name}`),
  );
  expect(missing.map(({ object, name }) => `${object}.${name}()`)).toEqual([]);
});

it("each row names calls that there are", () => {
  const names = new Set(
    methods.flatMap(({ object, name }) => [name, `${object.replace("memRegion", "region")}.${name}`]),
  );
  const others = rows.flatMap(namesOf).filter((name) => !names.has(name));
  expect(others).toEqual(["drained", "launch"]);
});

it("the results in a row are those that the docstring has", () => {
  const said = methods.flatMap(({ object, name, said }) => {
    const returns = /^- \*returns\* ((?:.|\n {2})*)/m.exec(said)?.[1] ?? "";
    return [...returns.matchAll(/\b(EAGAIN|ENOMEM|SHUTDOWN|TIMEDOUT|INTERRUPTED)\b/g)].map(([result]) => ({
      name,
      full: `${object}.${name}`,
      result,
    }));
  });
  expect(said.length).toBeGreaterThan(10);
  const missing = said.filter(
    ({ name, full, result }) =>
      !rows.some((row) => namesOf(row).some((one) => one === name || one === full) && row.includes(result)),
  );
  expect(missing).toEqual([]);
});

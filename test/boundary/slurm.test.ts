// Slurm's lists.
import { expect, it } from "vitest";
import { countAt, firstHostOf } from "../../src/bootstrap/slurm.js";

it.each([
  ["a", "a"],
  ["a,b", "a"],
  ["node[08-11,20],other", "node08"],
  ["node[7]", "node7"],
  ["rack[1-2]node[03,05-06].example.org,x", "rack1node03.example.org"],
  ["n-1.b_c", "n-1.b_c"],
  ["", undefined],
  [",a", undefined],
  ["node[", undefined],
  ["node[]", undefined],
  ["node[1-]", undefined],
  ["node[1]]", undefined],
  ["node[1,,2]", undefined],
  ["-oProxyCommand", undefined],
  ["a b", undefined],
  ["a".repeat(70_000), undefined],
])("the first host of %s is %s", (list, host) => {
  expect(firstHostOf(list)).toBe(host);
});

it.each([
  ["4", 0, 4],
  ["4", 1, undefined],
  ["4(x2),3", 1, 4],
  ["4(x2),3", 2, 3],
  ["4(x2),3", 3, undefined],
  ["1(x999999999)", 999_999_998, 1],
  ["0", 0, undefined],
  ["4(x0)", 0, undefined],
  ["4(x2", 0, undefined],
  ["", 0, undefined],
  ["4,,3", 1, undefined],
])("%s has at place %d the count %s", (list, place, count) => {
  expect(countAt(list, place)).toBe(count);
});

it("a list that takes long for a bad expression takes no time", () => {
  // Each of these has many ways to be taken apart.
  expect(firstHostOf(`${"[1]".repeat(20_000)}!`)).toBeUndefined();
  expect(firstHostOf(`[${"1,".repeat(30_000)}`)).toBeUndefined();
  expect(countAt("1,".repeat(30_000), 5)).toBe(1);
});

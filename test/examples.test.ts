// Every program that the documents show runs as it stands.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

/** What a program prints; it must end with exit code 0. */
function output(file: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8", timeout: 60_000 });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

describe("examples", () => {
  const expected: Record<string, RegExp> = {
    "hello.js": /task [01] hears 4[23]\ntask [01] hears 4[23]/,
    "pi.js": /π ≈ 3\.1415926535\d\d, off by \d\.\de[+-]\d+/,
    "heat.js": /4000 cells, 2000 steps on 4 tasks: 0 cells differ/,
  };

  test("each has an expectation here", () => {
    expect(readdirSync("examples").sort()).toEqual(Object.keys(expected).sort());
  });

  for (const [file, pattern] of Object.entries(expected)) {
    test(file, () => expect(output(join("examples", file))).toMatch(pattern));
  }
});

describe("README.md", () => {
  const code = [...readFileSync("README.md", "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map(([, block]) => block ?? "");

  test("its example runs as it stands", () => {
    expect(code).toHaveLength(1);
    // In a folder of the project, so that it finds the package by its name.
    const folder = mkdtempSync("test/.tmp-");
    try {
      const file = join(folder, "example.mjs");
      writeFileSync(file, code[0] as string);
      expect(output(file)).toMatch(/task [01] hears 4[23]\ntask [01] hears 4[23]/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

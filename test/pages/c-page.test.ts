// Programs in C on the demo's page, as a visitor has them: chosen, run, stopped, changed and compiled; and what goes wrong.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

/** Where a machine that keeps pictures wants them. */
const PICTURES = process.env.PAMIR_PICTURES;
const HAS_CLANG = process.env.PAMIR_REQUIRE_ALL === "1" || existsSync("node_modules/@yowasp/clang");
if (!HAS_CLANG) console.log("not run: compiling in a page, since @yowasp/clang is not installed");
const PATIENCE = { timeout: 100_000 };

let browser: Browser;
/** The page with clang, if it is installed, and the one without. */
let folder: string;
let plain: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-c-page-"));
  plain = mkdtempSync(join(tmpdir(), "pamir-c-plain-"));
  await buildDemo(folder);
  await buildDemo(plain, { hasClang: false });
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  for (const each of [folder, plain]) rmSync(each, { recursive: true, force: true });
});

interface View {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
  readonly headers?: Record<string, string>;
  readonly query?: string;
  readonly from?: string;
  /** What the console may say. */
  readonly allowed?: RegExp;
  /** Runs before any script of the page. */
  readonly first?: string;
}

/** The page, scrolled to its part about C; nothing may be wrong on its console. */
async function visit(view: View, body: (page: Page) => Promise<void>): Promise<void> {
  const { width = 1000, colorScheme = "light", headers = ISOLATION, query = "", from = folder, allowed, first } = view;
  await serve(filesOf(from, headers), async (url) => {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const wrong: string[] = [];
    try {
      if (first !== undefined) await context.addInitScript(first);
      const page = await context.newPage();
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type()) && !allowed?.test(message.text())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      // A tank that rests.
      await page.goto(`${url}?grid=64&workers=1&stop=1&${query}`);
      await page.getByRole("heading", { name: "An MPI program, unchanged" }).scrollIntoViewIfNeeded();
      await body(page);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

const section = (page: Page) => page.getByRole("region", { name: "An MPI program, unchanged" });
const runButton = (page: Page) => section(page).getByRole("button", { name: /^Run$|^Compile/ });
const status = (page: Page) => section(page).getByRole("status");
const output = (page: Page) => section(page).getByRole("region", { name: "What the ranks write" });
const ranks = (page: Page) => section(page).getByRole("spinbutton", { name: "Ranks" });
const source = (page: Page) => section(page).getByRole("textbox", { name: "Source" });

interface Wanted {
  readonly program: string;
  readonly args?: string;
  readonly tasks?: number;
}

/** Chooses a program. */
async function choose(page: Page, { program, args, tasks }: Wanted): Promise<void> {
  await section(page).getByRole("combobox", { name: "Program" }).selectOption(program);
  if (args !== undefined) await section(page).getByRole("textbox", { name: "Arguments" }).fill(args);
  if (tasks !== undefined) await ranks(page).fill(String(tasks));
  // Its source comes from the server.
  const text = readFileSync(join(folder, "c", `${program}.c`), "utf8");
  await expect.poll(() => source(page).inputValue(), PATIENCE).toBe(text);
}

/** Runs what is chosen, and waits for its end. @returns what the page says of it, and each rank's lines */
async function run(page: Page): Promise<{ said: string; lines: string[] }> {
  await runButton(page).click(PATIENCE);
  await expect.poll(() => runButton(page).isEnabled(), PATIENCE).toBe(true);
  const lines = (await output(page).innerText()).split("\n").filter((line) => line !== "");
  return { said: (await status(page).textContent()) ?? "", lines };
}

it.each([
  {
    program: "circle",
    args: "3000000",
    tasks: 3,
    expected: readFileSync("test/c/expected/circle.txt", "utf8").replace("10000000", "3000000"),
  },
  { program: "jacobi", tasks: 2, expected: readFileSync("test/c/expected/jacobi.txt", "utf8") },
])("$program by $tasks ranks writes what it writes in Node", ({ expected, ...wanted }) =>
  visit({}, async (page) => {
    await choose(page, wanted);
    const { said, lines } = await run(page);
    expect(lines.map((line) => line.replace(/^\[0\] /, ""))).toEqual(expected.trim().split("\n"));
    expect(said).toMatch(
      new RegExp(`^${wanted.program}\\.c: ${wanted.tasks} ranks ended with code 0 after [\\d.]+ s\\.$`),
    );
  }),
);

it("hello.c and token.c: the lines of all ranks, with their labels, and again", () =>
  visit({}, async (page) => {
    await choose(page, { program: "hello", tasks: 3 });
    for (let times = 0; times < 2; times++) {
      const { lines } = await run(page);
      expect(lines.sort()).toEqual([0, 1, 2].map((rank) => `[${rank}] rank ${rank} of 3, sum 3`));
    }
    await choose(page, { program: "token", tasks: 2 });
    const { lines } = await run(page);
    expect(lines).toHaveLength(7);
    expect(lines).toContain("[0] 3 rounds of 2 ranks: 3, as it must be");
    expect(lines.filter((line) => line.startsWith("[1] "))).toEqual(
      [1, 2, 3].map((round) => `[1] round ${round}: the token is ${round} here`),
    );
    await choose(page, { program: "token", tasks: 1 });
    expect((await run(page)).said).toMatch(/^token\.c: 1 rank ended with code 0/);
  }));

it("a program that is chosen and run before its source has come is that program", () =>
  visit({}, async (page) => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/c/hello.c", async (route) => {
      await released;
      await route.continue();
    });
    await section(page).getByRole("combobox", { name: "Program" }).selectOption("hello");
    await ranks(page).fill("2");
    const { said, lines } = await run(page);
    expect([said, lines.sort()]).toEqual([
      expect.stringMatching(/^hello\.c: 2 ranks ended with code 0 after/),
      [0, 1].map((rank) => `[${rank}] rank ${rank} of 2, sum 1`),
    ]);
    release();
    await choose(page, { program: "hello" });
    expect(await runButton(page).textContent()).toBe("Run");
  }));

it("as many ranks as the page starts", () =>
  visit({}, async (page) => {
    const tasks = Number(await ranks(page).getAttribute("max"));
    expect(tasks).toBeGreaterThanOrEqual(32);
    await choose(page, { program: "hello", tasks });
    const { said, lines } = await run(page);
    expect(said).toMatch(new RegExp(`^hello\\.c: ${tasks} ranks ended with code 0 after`));
    expect(lines).toHaveLength(tasks);
  }));

it.each([
  ["exit", "code 3", "Rank 1: it has exited with code 3."],
  ["abort", "code 134", "Rank 1: the program called abort()."],
  ["MPI_Abort", "code 5", "Rank 1: MPI_Abort(5)."],
  ["trap", "code 1", "Rank 1: the program has trapped: "],
  ["rank", "code 6", "Rank 1: MPI_Send: rank 2 is none of 0 to 1 (MPI_ERR_RANK)."],
])("a rank that ends by %s is told in a sentence", (args, code, sentence) =>
  visit({}, async (page) => {
    await choose(page, { program: "faults", args, tasks: 2 });
    const { said, lines } = await run(page);
    expect(said).toContain(`faults.c ended with ${code} after `);
    expect(said).toContain(sentence);
    expect(said).toContain("So the other ranks were ended.");
    expect(lines).toContain(`[1] the fault: ${args}`);
    expect(await output(page).locator(".c-error").first().textContent()).toBe(`[1] the fault: ${args}`);
  }),
);

it("a loop for ever is told of, by keyboard it is stopped, the tank pauses meanwhile, and the next run is as the first", () =>
  visit({}, async (page) => {
    await choose(page, { program: "faults", args: "loop", tasks: 2 });
    await runButton(page).focus();
    await page.keyboard.press("Enter");
    await expect
      .poll(() => status(page).textContent(), PATIENCE)
      .toMatch(/^faults\.c still runs after 5\.00 s, and has/);
    expect(await page.evaluate("tank.resting")).toBe(1);
    const stop = section(page).getByRole("button", { name: "Stop" });
    expect(await stop.evaluate((button) => button === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await expect.poll(() => status(page).textContent(), PATIENCE).toMatch(/^faults\.c was stopped after [\d.]+ s\.$/);
    expect(await page.evaluate("tank.resting")).toBe(0);
    expect(await runButton(page).evaluate((button) => button === document.activeElement)).toBe(true);
    await choose(page, { program: "hello" });
    expect((await run(page)).lines).toHaveLength(2);
  }));

it("of many lines the last ones are shown; a flood is ended", () =>
  visit({ query: "lines=20000" }, async (page) => {
    await choose(page, { program: "faults", args: "flood", tasks: 2 });
    const { said, lines } = await run(page);
    expect(said).toMatch(
      /^faults\.c was ended after [\d.]+ s: it has written 20,000 lines, and the page takes no more\.$/,
    );
    expect(lines).toHaveLength(500);
    expect(lines.at(-1)).toMatch(/^\[1\] line (19999|20000) of a flood$/);
    await section(page).getByText("The last 500 of 20,000 lines.").waitFor();
  }));

it("a line of 16 MB comes, and its first part is shown", () =>
  visit({}, async (page) => {
    await choose(page, { program: "faults", args: "long", tasks: 2 });
    const { said, lines } = await run(page);
    expect(said).toMatch(/^faults\.c: 2 ranks ended with code 0/);
    expect(lines.at(-1)).toMatch(/^\[1\] (0123456789)+ … \(16,000,000 characters\)$/);
  }));

it.each([
  ["200", "200 ranks were asked for"],
  ["0", "0 ranks were asked for"],
  ["-1", "-1 ranks were asked for"],
  ["1.5", "1.5 ranks were asked for"],
  ["", "That is no number of ranks"],
])("%s ranks: the page says how many it starts", (typed, asked) =>
  visit({}, async (page) => {
    await choose(page, { program: "hello" });
    await ranks(page).fill(typed);
    await runButton(page).click();
    await expect
      .poll(() => status(page).textContent())
      .toMatch(new RegExp(`^${asked}: this page starts 1 to \\d+\\.$`));
    expect(await ranks(page).getAttribute("aria-invalid")).toBe("true");
    await ranks(page).fill("2");
    expect((await run(page)).lines).toHaveLength(2);
  }),
);

it("as many ranks as cores, two at least", async () => {
  for (const [cores, expected] of [
    [1, "2"],
    [6, "6"],
  ] as const)
    await visit(
      { first: `Object.defineProperty(navigator, "hardwareConcurrency", { get: () => ${cores} })` },
      async (page) => expect(await ranks(page).inputValue()).toBe(expected),
    );
});

it("not isolated, it says why no rank can run, and offers none", () =>
  visit({ headers: {}, query: "not-isolated" }, async (page) => {
    await section(page)
      .getByText(/Here they can't run: .*not cross-origin isolated/)
      .waitFor();
    expect(await section(page).getByRole("button").count()).toBe(0);
  }));

it("without WebAssembly, it says so", () =>
  visit(
    {
      headers: { ...ISOLATION, "Content-Security-Policy": "script-src 'self'; worker-src 'self'" },
      allowed: /Content Security Policy|WebAssembly/,
    },
    async (page) => {
      await choose(page, { program: "hello", tasks: 2 });
      expect((await run(page)).said).toMatch(/WebAssembly/);
    },
  ));

it("without a compiler, sources are shown, not to be changed, with the command that compiles them", () =>
  visit({ from: plain }, async (page) => {
    await choose(page, { program: "circle" });
    expect(await source(page).inputValue()).toBe(readFileSync("examples/c/circle.c", "utf8"));
    expect(await source(page).getAttribute("readonly")).not.toBeNull();
    await section(page)
      .getByText("npx pamir cc -O2 circle.c -o circle.wasm && npx pamir run -n 4 circle.wasm 200000000")
      .waitFor();
    expect(await section(page).getByText("launchProgram(new URL(").count()).toBe(1);
    await choose(page, { program: "hello", tasks: 2 });
    expect((await run(page)).lines).toHaveLength(2);
  }));

describe.each([360, 768, 1920])("at %i px", (width) => {
  it.each(["light", "dark"] as const)("%s: nothing hangs over, and axe finds nothing", (colorScheme) =>
    visit({ width, colorScheme }, async (page) => {
      await choose(page, { program: "faults", args: "abort", tasks: 2 });
      await run(page);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
      expect(await page.evaluate("axe.run('#c').then(({ violations }) => violations.map(({ id }) => id))")).toEqual([]);
      if (PICTURES !== undefined)
        await section(page).screenshot({ path: join(PICTURES, `c-page-${width}-${colorScheme}.png`) });
    }),
  );
});

it("what a page loads before it is scrolled has none of this, and is small", () =>
  serve(filesOf(folder, ISOLATION), async (url) => {
    const page = await browser.newPage();
    const loaded: string[] = [];
    page.on("response", (response) => loaded.push(new URL(response.url()).pathname.slice(1)));
    await page.goto(`${url}?grid=64&workers=1&stop=1`);
    await page.waitForFunction("tank.tank !== undefined");
    // Each once: workers ask for chunks that the page has, sooner or later.
    const bytes = [...new Set(loaded)]
      .filter((name) => /\.(js|css|html)$/.test(name) || name === "")
      .reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name || "index.html"))).length, 0);
    expect(loaded.filter((name) => name.startsWith("c"))).not.toContain("c.css");
    expect(bytes).toBeLessThan(200_000);
    console.log(`the page: ${bytes} bytes at first, gzipped`);
    await page.close();
  }));

describe.skipIf(!HAS_CLANG)("with clang in the page", () => {
  it("a program that is changed is compiled, with its errors by lines, and runs as the one of `pamir cc`", () =>
    visit({}, async (page) => {
      await choose(page, { program: "hello", tasks: 2 });
      const text = await source(page).inputValue();
      await source(page).fill(text.replace("rank %d", "I am %d"));
      const packed = readdirSync(join(folder, "c/clang")).filter((name) => name.endsWith(".bin"));
      const bytes = packed.reduce((sum, name) => sum + statSync(join(folder, "c/clang", name)).size, 0);
      const button = section(page).getByRole("button", { name: /^Compile/ });
      expect(await button.textContent()).toBe(`Compile by clang, which loads ${Math.round(bytes / 1e6)} MB, and run`);
      expect((await run(page)).lines.sort()).toEqual(["[0] I am 0 of 2, sum 1", "[1] I am 1 of 2, sum 1"]);
      expect(await runButton(page).textContent()).toBe("Run");

      await source(page).fill(text.replace("&sum", "&summ").replace("return", "retrun"));
      expect(await runButton(page).textContent()).toBe("Compile by clang, and run");
      const failed = await run(page);
      expect(failed.said).toMatch(/^hello\.c does not compile: line 9: use of undeclared identifier 'summ'/);
      expect(failed.lines).toEqual([]);
      const line = section(page).getByRole("button", { name: /^Line 9: error: use of undeclared identifier 'summ'/ });
      await line.click();
      const chosen =
        "document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)";
      expect(await page.evaluate(chosen)).toContain("MPI_Allreduce(&rank, &summ");

      // One-sided operations need the job's memory: clang's library here is by -fPIC.
      await source(page).fill(readFileSync("examples/c/stencil.c", "utf8"));
      const { lines, said } = await run(page);
      expect(said).toMatch(/ended with code 0/);
      expect(lines.map((each) => each.replace("[0] ", "")).join("\n")).toBe(
        readFileSync("test/c/expected/stencil.txt", "utf8").trim(),
      );

      await section(page).getByRole("button", { name: "Take back the changes" }).click();
      expect(await source(page).inputValue()).toBe(text);
      expect(await runButton(page).textContent()).toBe("Run");
    }));

  it("a line that never ends is shown in parts, and ended as a flood", () =>
    visit({ query: "lines=20000" }, async (page) => {
      await choose(page, { program: "hello", tasks: 2 });
      await source(page).fill("#include <stdio.h>\nint main(void) { for (;;) putchar('a'); }");
      expect((await run(page)).said).toMatch(
        /^hello\.c was ended after [\d.]+ s: it has written [\d,]+ characters, and the page takes no more\.$/,
      );
    }));

  it("of many warnings the first ones are shown", () =>
    visit({}, async (page) => {
      await choose(page, { program: "hello", tasks: 1 });
      const unused = Array.from({ length: 2000 }, (_, i) => `int unused${i};`).join("\n");
      // A browser takes long to type so many lines.
      await source(page).evaluate((editor, text) => {
        (editor as unknown as { value: string }).value = text;
        editor.dispatchEvent(new Event("input"));
      }, `int main(void) {\n${unused}\nreturn 0; }`);
      expect((await run(page)).said).toMatch(/ended with code 0/);
      expect(
        await section(page)
          .getByRole("button", { name: /^Line \d+: warning/ })
          .count(),
      ).toBe(100);
      await section(page)
        .getByText(/ … \([\d,]+ characters; 2,000 errors and warnings\)$/)
        .waitFor({ state: "attached" });
    }));

  it("Tab makes an indent; Escape and Tab leave the editor", () =>
    visit({}, async (page) => {
      await choose(page, { program: "hello" });
      await source(page).focus();
      await page.keyboard.press("ControlOrMeta+Home");
      await page.keyboard.press("Tab");
      expect((await source(page).inputValue()).startsWith("  #include")).toBe(true);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Tab");
      expect(await source(page).evaluate((editor) => editor === document.activeElement)).toBe(false);
    }));

  it("loading is stopped, and begins again", () =>
    visit({}, async (page) => {
      await choose(page, { program: "hello", tasks: 2 });
      await source(page).fill((await source(page).inputValue()).replace("rank %d", "I am %d"));
      await runButton(page).click();
      await section(page).getByRole("button", { name: "Stop" }).click();
      await expect.poll(() => status(page).textContent(), PATIENCE).toMatch(/^hello\.c was stopped after /);
      expect((await run(page)).lines).toHaveLength(2);
    }));

  it("a part of clang that can't be loaded is named", () =>
    visit({ allowed: /404/ }, async (page) => {
      await page.route("**/llvm-resources.tar.bin", (route) => route.fulfill({ status: 404 }));
      await choose(page, { program: "hello", tasks: 2 });
      await source(page).fill("int main(void) {}");
      expect((await run(page)).said).toBe("hello.c can't be run: llvm-resources.tar.bin can't be loaded: status 404.");
    }));
});

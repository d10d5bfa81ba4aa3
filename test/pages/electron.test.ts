// docs/recipes/electron.md: its programs on Node and in Chromium, with a stand-in for the module `electron`. Electron's binary comes
// from GitHub alone, so it is not here.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as esbuild from "esbuild";
import { afterAll, beforeEach, expect, it } from "vitest";
import { onPage, openBrowser } from "./support.js";

const HASH = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

const browser = await openBrowser();
let folder: string;

afterAll(() => browser.close());
beforeEach(() => {
  folder = mkdtempSync(resolve(".tmp-electron-"));
  const electron = join(folder, "node_modules", "electron");
  mkdirSync(electron, { recursive: true });
  cpSync("test/support/electron.cjs", join(electron, "index.js"));
  writeFileSync(join(electron, "package.json"), '{ "name": "electron", "main": "index.js" }');
  return () => rmSync(folder, { recursive: true });
});

/** Writes the blocks under a heading into the folder. */
function recipe(heading: string, page = "electron"): void {
  const text = readFileSync(`docs/recipes/${page}.md`, "utf8");
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  for (const [, language, code = ""] of section.matchAll(/^```(\w+)\n(.*?)^```$/gms)) {
    const name = language === "html" ? "index.html" : (/^\/\/ (\S+)\n/.exec(code)?.[1] ?? expect.fail(code));
    writeFileSync(join(folder, name), code);
  }
}

/** The lines that a program prints, which uses the recipe's. */
function run(program: string): string[] {
  writeFileSync(join(folder, "test.js"), program);
  const { status, stdout, stderr } = spawnSync(process.execPath, ["test.js"], {
    cwd: folder,
    encoding: "utf8",
    timeout: 200_000,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trimEnd().split("\n");
}

/** Resolves once a window has loaded its page. */
const LOADED = `
import electron from "electron";
import "./main.js";
while (electron.known.loaded === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
`;

it("a window calls a pool of the main process by its preload script", () => {
  recipe("Workers of the main process");
  writeFileSync(join(folder, "index.html"), "<!doctype html>");
  expect(run(`${LOADED} console.log(electron.known.loaded, await workers.hash("a"));`)).toEqual([
    `<!doctype html> ${HASH}`,
  ]);
});

it("a window of the recipe's scheme is isolated, and its tasks share memory", async () => {
  recipe("The program", "vite");
  writeFileSync(join(folder, "outside.js"), "secret");
  await esbuild.build({
    entryPoints: ["main.js", "worker.js"].map((name) => join(folder, name)),
    bundle: true,
    format: "esm",
    splitting: true,
    outdir: join(folder, "dist"),
    logLevel: "error",
  });
  cpSync(join(folder, "index.html"), join(folder, "dist", "index.html"));
  recipe("A window with shared memory");
  // The requests of Chromium go to the handler of the scheme, by http.
  writeFileSync(
    join(folder, "test.js"),
    `${LOADED}
import { createServer } from "node:http";
const { privileges, handler } = electron.known.protocols.get("app");
const server = createServer(async ({ url }, response) => {
  const answer = await handler(new Request("app://main" + url)).catch(() => new Response("refused", { status: 403 }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
server.listen(0, "localhost", () => console.log(JSON.stringify([server.address().port, privileges, electron.known.loaded])));`,
  );
  const main = spawn(process.execPath, ["test.js"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = (await once(main.stdout, "data")) as [Buffer];
    const [port, privileges, loaded] = JSON.parse(line.toString()) as [number, object, string];
    expect({ privileges, loaded }).toEqual({
      privileges: { standard: true, secure: true, supportFetchAPI: true },
      loaded: "app://main/index.html",
    });
    const url = `http://localhost:${port}`;
    const said: string[] = [];
    const shown = await onPage(browser, "about:blank", async (page) => {
      page.on("console", (message) => said.push(message.text()));
      await page.goto(`${url}/index.html`);
      await page.waitForFunction("document.querySelector('#out').textContent");
      return page.textContent("#out");
    });
    expect(shown).toBe("12 squared is 144");
    expect(said.filter((text) => text.startsWith("pamir"))).toEqual([expect.stringContaining("tasks share memory")]);
    // No file beside dist is served.
    for (const path of ["/..%2foutside.js", "/%2e%2e/outside.js"]) {
      expect(await fetch(url + path).then((response) => response.text())).not.toContain("secret");
    }
  } finally {
    main.kill();
  }
});

it("the headers by session.webRequest are added to those of the server", () => {
  recipe("A window with shared memory");
  const lines = run(`
import electron from "electron";
import { isolate } from "./session.js";
isolate("https://app.example");
const { filter, listener } = electron.known.headersReceived;
console.log(JSON.stringify(filter));
listener({ responseHeaders: { etag: ["7"] } }, (answer) => console.log(JSON.stringify(answer)));
process.exit();`);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { urls: ["https://app.example/*"] },
    {
      responseHeaders: {
        etag: ["7"],
        "Cross-Origin-Opener-Policy": ["same-origin"],
        "Cross-Origin-Embedder-Policy": ["require-corp"],
      },
    },
  ]);
});

it("a pool in a utility process answers, passes errors on, and its end rejects calls", () => {
  recipe("A utility process");
  const lines = run(`
import { startBackground } from "./background-calls.js";
const background = await startBackground();
console.log(await background.hash("a"));
await background.hash(7).catch(({ message }) => console.log(message.slice(0, 30)));
const call = background.hash("a".repeat(10_000_000));
background.kill();
await call.catch(({ message }) => console.log(message));`);
  expect(lines).toEqual([
    HASH,
    'The "data" argument must be of',
    expect.stringMatching(/^the utility process ended with /),
  ]);
});

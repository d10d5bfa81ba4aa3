// The recipes of docs/headers.md, as they stand there: each page is cross-origin isolated. What a machine lacks is
// reported as not run.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeEach, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { filesOf, onPage, openBrowser, serve, serving } from "./support.js";

/** In CI everything has to run. */
const isRequired = process.env.PAMIR_REQUIRE_ALL === "1";
const text = readFileSync("docs/headers.md", "utf8");

const browser = await openBrowser();
let folder: string;

afterAll(() => browser.close());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pamir-headers-"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>page</title>");
  return () => rmSync(folder, { recursive: true });
});

/** The code blocks under a heading. */
function recipe(heading: string): string[] {
  const section = text.split(/^## /m).find((part) => part.startsWith(heading)) as string;
  return [...section.matchAll(/^```\w*\n(.*?)^```/gms)].map(([, code]) => code as string);
}

function file(name: string, contents: string): string {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
}

const isIsolated = (url: string) => onPage(browser, url, (page) => page.evaluate(() => crossOriginIsolated));

it("without headers a page is not isolated", async () => {
  expect(await serve(filesOf(folder), isIsolated)).toBe(false);
});

it("the two headers", async () => {
  const [, headers] = /```\n(.*?)```/s.exec(text) as unknown as [string, string];
  const isolated = serve((request, response) => {
    for (const line of headers.trim().split("\n")) {
      const [name, value] = line.split(": ") as [string, string];
      response.setHeader(name, value);
    }
    filesOf(folder)(request, response);
  }, isIsolated);
  expect(await isolated).toBe(true);
});

it("Chrome's single header", async () => {
  const [header] = recipe("Chrome's single header") as [string];
  const [name, value] = header.trim().split(": ") as [string, string];
  const isolated = serve((request, response) => {
    response.setHeader(name, value);
    filesOf(folder)(request, response);
  }, isIsolated);
  expect(await isolated).toBe(true);
});

it("Node", async () => {
  const [source] = recipe("Node") as [string];
  expect(source).toContain("// … and the response itself.");
  const code = source
    .replace("createServer((", "export default createServer((")
    .replace("// … and the response itself.", `response.setHeader("content-type", "text/html"); response.end("page");`);
  const { default: server } = (await import(pathToFileURL(file("server.mjs", code)).href)) as { default: Server };
  expect(await serving(server, isIsolated)).toBe(true);
});

it("Vite, dev and preview", async () => {
  const { build, createServer, preview } = await import("vite");
  const configFile = file("vite.config.js", (recipe("Vite") as [string])[0]);
  const options = { root: folder, configFile, logLevel: "error" as const };
  const dev = await createServer({ ...options, server: { port: 0 } });
  await dev.listen();
  expect(await isIsolated(dev.resolvedUrls?.local[0] as string)).toBe(true);
  await dev.close();
  await build(options);
  const shown = await preview({ ...options, preview: { port: 0 } });
  expect(await isIsolated(shown.resolvedUrls?.local[0] as string)).toBe(true);
  await shown.close();
});

interface Rule {
  readonly source: string;
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

/** Whether a page is isolated whose server sends what these rules say of its path. */
function isIsolatedBy(rules: readonly Rule[]): Promise<boolean> {
  return serve((request, response) => {
    for (const { source, headers } of rules) {
      if (!new RegExp(`^${source}$`).test(request.url as string)) continue;
      for (const { key, value } of headers) response.setHeader(key, value);
    }
    filesOf(folder)(request, response);
  }, isIsolated);
}

it("Next.js: its rules, on a server that reads them as Next.js does", async () => {
  const { default: config } = (await import(
    pathToFileURL(file("next.config.mjs", (recipe("Next.js") as [string])[0])).href
  )) as { default: { headers(): Promise<Rule[]> } };
  expect(await isIsolatedBy(await config.headers())).toBe(true);
});

it("Vercel: the same", async () => {
  const { headers } = JSON.parse((recipe("Vercel") as [string])[0]) as { headers: Rule[] };
  expect(await isIsolatedBy(headers)).toBe(true);
});

it("Cloudflare Workers: its answer to a request, with the assets of a folder", async () => {
  const { default: worker } = (await import(
    pathToFileURL(file("worker.mjs", (recipe("Cloudflare Workers") as [string])[0])).href
  )) as { default: { fetch(request: Request, env: unknown): Promise<Response> } };
  const page = readFileSync(join(folder, "index.html"));
  const ASSETS = { fetch: async () => new Response(page, { headers: { "content-type": "text/html" } }) };
  const isolated = serve(async ({ url, headers }, response) => {
    const answer = await worker.fetch(new Request(new URL(url as string, `http://${headers.host}`)), { ASSETS });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  }, isIsolated);
  expect(await isolated).toBe(true);
});

it("a service worker, on a server that sends no headers: with the second load", async () => {
  const [script, tag] = recipe("GitHub Pages") as [string, string];
  file("isolate.js", script);
  file("index.html", `<!doctype html><title>page</title>${tag}`);
  const isolated = serve(filesOf(folder), (url) =>
    onPage(browser, url, async (page) => {
      await page.waitForFunction(() => crossOriginIsolated);
      return true;
    }),
  );
  expect(await isolated).toBe(true);
});

/** Runs a web server until a page of it has been looked at. */
async function withServer(command: string, args: string[], port: number): Promise<boolean> {
  const server = spawn(command, args, { stdio: "ignore" });
  try {
    const url = `http://localhost:${port}/`;
    for (let attempt = 0; attempt < 4000; attempt++) {
      if (
        await fetch(url).then(
          ({ ok }) => ok,
          () => false,
        )
      )
        return await isIsolated(url);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${command} does not answer`);
  } finally {
    server.kill("SIGKILL");
  }
}

function has(command: string): boolean {
  try {
    execFileSync(command, ["-v"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

it.skipIf(!isRequired && !has("nginx"))("nginx (not run where it is not installed)", async () => {
  const port = await freePort();
  const [location] = recipe("nginx") as [string];
  mkdirSync(join(folder, "temp"));
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/temp;`);
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const configuration = `${user} daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
    http { access_log off; ${paths.join(" ")} types { text/html html; }
      server { listen 127.0.0.1:${port}; listen [::1]:${port}; root ${folder}; ${location} } }`;
  expect(await withServer("nginx", ["-p", folder, "-c", file("nginx.conf", configuration)], port)).toBe(true);
});

const apacheModules = "/usr/lib/apache2/modules";
it.skipIf(!isRequired && !existsSync(apacheModules))("Apache (not run where it is not installed)", async () => {
  const port = await freePort();
  const [headers] = recipe("Apache") as [string];
  const modules = ["mpm_event", "authz_core", "dir", "mime", "headers"].map(
    (name) => `LoadModule ${name}_module ${apacheModules}/mod_${name}.so`,
  );
  const user = process.getuid?.() === 0 ? "User www-data\nGroup www-data" : "";
  execFileSync("chmod", ["-R", "a+rX", folder]);
  const configuration = `ServerName localhost\nListen ${port}\nPidFile ${folder}/pid\nErrorLog ${folder}/error.log
${modules.join("\n")}\n${user}\nTypesConfig /dev/null\nAddType text/html .html\nDirectoryIndex index.html
DocumentRoot ${folder}\n<Directory ${folder}>\nRequire all granted\n</Directory>\n${headers}`;
  const args = ["-X", "-d", folder, "-f", file("apache.conf", configuration)];
  expect(await withServer("/usr/sbin/apache2", args, port)).toBe(true);
});

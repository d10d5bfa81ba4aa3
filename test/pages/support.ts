// A headless Chromium, and servers of a folder's files, for tests of whole pages.
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright";
import { CHROMIUM_FLAGS, findChromium } from "../../scripts/find-chromium.mjs";

const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };

export async function openBrowser(): Promise<Browser> {
  const executablePath = await findChromium();
  return chromium.launch({ args: CHROMIUM_FLAGS, ...(executablePath === undefined ? {} : { executablePath }) });
}

/** Answers with the files of a folder. */
export function filesOf(folder: string): RequestListener {
  return (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const file = path.endsWith("/") ? `${path}index.html` : path;
    try {
      const body = readFileSync(join(folder, file));
      response.setHeader("content-type", TYPES[file.split(".").pop() ?? ""] ?? "text/plain");
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  };
}

/** Runs something with a server's address; the server is closed behind it. */
export async function serving<T>(server: Server, body: (url: string) => Promise<T>): Promise<T> {
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  try {
    return await body(`http://localhost:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export function serve<T>(answer: RequestListener, body: (url: string) => Promise<T>): Promise<T> {
  return serving(createServer(answer), body);
}

/** What an expression comes to on a page. */
export async function onPage<T>(browser: Browser, url: string, body: (page: Page) => Promise<T>): Promise<T> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(url);
    return await body(page);
  } finally {
    await context.close();
  }
}
